//! An hour of mixed load at half the capacity (R28): memory, descriptors and the write-ahead log stay where they are.
//!
//! The capacity is measured first, with the same mix without a pause. Then every connection sends on a schedule that
//! makes half of it. A sample every ten seconds goes into a CSV file in the folder of build results; the verdict is
//! made of them: the slope of the resident memory by least squares after a warm-up of a quarter of the time, the
//! descriptors of the last quarter against those after the warm-up, and the largest write-ahead log.
//!
//! A run that is too short for a slope says so, and is held against a bound of the growth instead.

mod samples;

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use super::Choices;
use super::fixture::{self, Purpose, millis};
use super::workload::{Scene, Step, Workload};
use crate::bench::bench_store::BenchStore;
use crate::failure::{Failure, Outcome};
use crate::http::Connection;
use crate::product::Server;
use crate::{clock, process};
use samples::{Sampler, Verdict};

/// Keep the server at half its capacity for a long time, and watch memory, descriptors and the log of the store
#[derive(clap::Args)]
pub struct Arguments {
    /// How long, in minutes; the goal is 60
    #[arg(long, default_value_t = 2, value_parser = clap::value_parser!(u64).range(1..))]
    minutes: u64,
    /// How many connections
    #[arg(long, default_value_t = 8)]
    connections: usize,
    /// Between two samples, in seconds
    #[arg(long, default_value_t = 10, value_parser = clap::value_parser!(u64).range(1..))]
    every: u64,
    /// How long the capacity is measured, in seconds
    #[arg(long, default_value_t = 10, value_parser = clap::value_parser!(u64).range(1..))]
    capacity_secs: u64,
    #[command(flatten)]
    choices: Choices,
}

pub fn run(arguments: &Arguments) -> Outcome {
    let sizes = format!(
        "--minutes {} --connections {}",
        arguments.minutes, arguments.connections
    );
    let purpose = Purpose {
        name: "soak",
        goals: &["R28"],
        sizes,
        profile: "release",
    };
    fixture::each(&arguments.choices, &purpose, |place, seed| {
        drive(arguments, place, seed)
    })
}

fn drive(arguments: &Arguments, place: &BenchStore, seed: u64) -> Outcome<String> {
    let bootstrap = place.installation.initialize()?;
    let server = place.installation.serve()?;
    let scene = Scene { bootstrap, seed };
    let mut hands: Vec<Workload<'_>> = (0..arguments.connections)
        .map(|number| Workload::new(&scene, number))
        .collect();
    let capacity = capacity(&mut hands, &server, Duration::from_secs(arguments.capacity_secs))?;
    let half = capacity / 2.0;
    println!(
        "{}: {capacity:.0}/s without a pause; {half:.0}/s for {} min",
        fixture::word(place.engine),
        arguments.minutes
    );
    let file = process::target().join(format!("xtask/endure-soak-{}.csv", fixture::word(place.engine)));
    let told: Vec<_> = hands.iter().map(Workload::told).collect();
    let mut sampler = Sampler::create(&file, server.pid(), &place.installation.store, &told)?;
    let start = clock::now();
    let end = start + Duration::from_mins(arguments.minutes);
    #[expect(clippy::cast_precision_loss, reason = "some connections are exact")]
    let period = Duration::from_secs_f64(hands.len() as f64 / half.max(1.0));
    let over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let over = &over;
        let address = server.address;
        let busy = |hand| move || keep_pace(hand, &mut Connection::new(address), period, (start, end), over);
        let running: Vec<_> = hands.iter_mut().map(|hand| scope.spawn(busy(hand))).collect();
        let every = Duration::from_secs(arguments.every);
        let mut next = start + every;
        while next <= end && !over.load(Ordering::SeqCst) {
            std::thread::sleep(next.saturating_duration_since(clock::now()));
            sampler.take(start.elapsed())?;
            next += every;
        }
        for thread in running {
            thread
                .join()
                .map_err(|_| Failure::new("a connection's thread panicked"))??;
        }
        Ok::<(), Failure>(())
    })?;
    let seconds = start.elapsed().as_secs_f64();
    let figures = sampler.totals();
    server.stop()?;
    place.installation.check(&["audit", "verify"])?;
    place.installation.check(&["store", "check"])?;
    let verdict = Verdict::of(sampler.samples())?;
    #[expect(clippy::cast_precision_loss, reason = "some millions are exact")]
    let rate = figures.answers as f64 / seconds;
    let sentence = format!(
        "{:.0} min at {rate:.0}/s, half of a capacity of {capacity:.0}/s, over {} connections: {} answers, all with success \
         ({} changes, {} backtests); p50 {} and p99 {} (the median of the samples); {}; samples in {}",
        seconds / 60.0,
        arguments.connections,
        figures.answers,
        figures.changes,
        figures.judged,
        millis(figures.p50),
        millis(figures.p99),
        verdict.sentence,
        file.file_name()
            .map_or_else(String::new, |name| name.display().to_string())
    );
    if rate < 0.9 * half {
        return Err(Failure::new(format!(
            "the load was not half of the capacity: {sentence}"
        )));
    }
    if verdict.misses.is_empty() {
        return Ok(format!("{sentence}."));
    }
    Err(Failure::new(format!(
        "{} ({sentence})",
        verdict.misses.join("; ")
    )))
}

/// Requests a second of all hands without a pause.
fn capacity(hands: &mut [Workload<'_>], server: &Server, duration: Duration) -> Outcome<f64> {
    let count = |hands: &[Workload<'_>]| -> u64 { hands.iter().map(|hand| hand.look().answers).sum() };
    let before = count(hands);
    let over = AtomicBool::new(false);
    let start = clock::now();
    let end = start + duration;
    std::thread::scope(|scope| {
        let over = &over;
        let address = server.address;
        let busy = |hand| {
            move || {
                keep_pace(
                    hand,
                    &mut Connection::new(address),
                    Duration::ZERO,
                    (start, end),
                    over,
                )
            }
        };
        let running: Vec<_> = hands.iter_mut().map(|hand| scope.spawn(busy(hand))).collect();
        for thread in running {
            thread
                .join()
                .map_err(|_| Failure::new("a connection's thread panicked"))??;
        }
        Ok::<(), Failure>(())
    })?;
    #[expect(clippy::cast_precision_loss, reason = "some millions are exact")]
    let rate = (count(hands) - before) as f64 / start.elapsed().as_secs_f64();
    Ok(rate)
}

/// Sends one request each period; one that is late is followed at once by the next.
fn keep_pace(
    hand: &mut Workload<'_>,
    connection: &mut Connection,
    period: Duration,
    (start, end): (Instant, Instant),
    over: &AtomicBool,
) -> Outcome {
    let mut next = start;
    while clock::now() < end && !over.load(Ordering::SeqCst) {
        std::thread::sleep(next.saturating_duration_since(clock::now()));
        next += period;
        let failure = match hand.step(connection) {
            Ok(Step::Answered) => continue,
            Ok(Step::Lost) => Failure::new("a request got no answer from a living server"),
            Err(failure) => failure,
        };
        over.store(true, Ordering::SeqCst);
        return Err(failure);
    }
    Ok(())
}
