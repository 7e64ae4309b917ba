//! Graceful stops under load (R9): `SIGTERM` at a random moment, and everything that the server took is answered.
//!
//! What was taken and not answered is found without a look inside: every lost request is sent again with its key, and
//! an answer that says "replayed" means that the server had acted and kept silent. A connection that closes before its
//! request was read is no fault; an answer other than a success is one, and so is an answer that breaks off.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use super::Choices;
use super::fixture::{self, Purpose, millis};
use super::known::Judge;
use super::workload::{Scene, Step, Workload, import};
use crate::bench::bench_store::BenchStore;
use crate::bench::load::quantile;
use crate::clock;
use crate::failure::{Context, Failure, Outcome};
use crate::http::Connection;
use crate::product::Server;
use crate::random::Random;

/// Goal: what was accepted is answered, and the process gone, in so much time.
const LIMIT: Duration = Duration::from_secs(10);
/// Lines of one import.
const LINES: usize = 5_000;

/// Stop the server under load at random moments: exit 0, nothing accepted unanswered, nothing lost
#[derive(clap::Args)]
pub struct Arguments {
    /// How often the server is stopped, for each engine
    #[arg(long, default_value_t = 20)]
    cycles: u32,
    /// How many connections keep it busy
    #[arg(long, default_value_t = 16)]
    connections: usize,
    /// How many recorded events the backtests judge, in thousands
    #[arg(long, default_value_t = 100)]
    thousand_events: usize,
    /// After how many stops the store and the audit chain are checked offline
    #[arg(long, default_value_t = 25)]
    check_every: u32,
    #[command(flatten)]
    choices: Choices,
}

#[derive(Default)]
struct Totals {
    stops: Vec<Duration>,
    retried: u64,
    compared: u64,
    continued: u64,
    checks: u32,
}

pub fn run(arguments: &Arguments) -> Outcome {
    let sizes = format!(
        "--cycles {} --connections {} --thousand-events {}",
        arguments.cycles, arguments.connections, arguments.thousand_events
    );
    let purpose = Purpose {
        name: "stops",
        goals: &["R9"],
        sizes,
        profile: "ci",
    };
    fixture::each(&arguments.choices, &purpose, |place, seed| {
        drive(arguments, place, seed)
    })
}

fn drive(arguments: &Arguments, place: &BenchStore, seed: u64) -> Outcome<String> {
    let installation = &place.installation;
    let bootstrap = installation.initialize()?;
    let scene = Scene { bootstrap, seed };
    let mut server = installation.serve()?;
    let mut connection = Connection::new(server.address);
    for number in 0..(arguments.thousand_events * 1_000).div_ceil(LINES) {
        let key = format!("{seed:016x}-{number}");
        connection.fetch(&import(&scene.bootstrap, &key, LINES, 2))?;
    }
    let mut hands: Vec<Workload<'_>> = (0..arguments.connections)
        .map(|number| Workload::new(&scene, number))
        .collect();
    let mut random = Random::part(seed, 0);
    let mut totals = Totals::default();
    for cycle in 1..=arguments.cycles {
        let delay = random.millis(20, 500);
        let before = answers(&hands);
        let taken = stop_under_load(&mut hands, server, delay)?;
        totals.stops.push(taken);
        let is_checked = cycle % arguments.check_every.max(1) == 0 || cycle == arguments.cycles;
        if is_checked {
            installation.check(&["audit", "verify"])?;
            installation.check(&["store", "check"])?;
            totals.checks += 1;
        }
        server = installation.serve()?;
        let retried = judge(&mut hands, &server, &mut totals)?;
        if is_checked || cycle <= 3 {
            println!(
                "{} {cycle}/{}: stopped after {} ms of load, {} answers, gone in {}, {retried} sent again, none of \
                 them had been acted on",
                fixture::word(place.engine),
                arguments.cycles,
                delay.as_millis(),
                answers(&hands) - before,
                millis(taken),
            );
        }
    }
    server.stop()?;
    totals.stops.sort_unstable();
    Ok(format!(
        "{} stops under load of {} connections, each with exit 0: p50 {}, p99 {}, at most {}; {} requests answered, all \
         with success; {} that were not read were sent again and none of them had been acted on; {} records and tokens \
         compared after the restarts, 0 lost; {} backtests went on and succeeded; audit verify and store check passed \
         {} times.",
        totals.stops.len(),
        arguments.connections,
        millis(quantile(&totals.stops, 50)),
        millis(quantile(&totals.stops, 99)),
        millis(quantile(&totals.stops, 100)),
        answers(&hands),
        totals.retried,
        totals.compared,
        totals.continued,
        totals.checks
    ))
}

fn answers(hands: &[Workload<'_>]) -> u64 {
    hands.iter().map(|hand| hand.look().answers).sum()
}

/// Returns how long the server took to be gone.
fn stop_under_load(hands: &mut [Workload<'_>], server: Server, delay: Duration) -> Outcome<Duration> {
    let address = server.address;
    let ending = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let ending = &ending;
        let busy = |hand| move || keep_busy(hand, &mut Connection::new(address), ending);
        let running: Vec<_> = hands.iter_mut().map(|hand| scope.spawn(busy(hand))).collect();
        std::thread::sleep(delay);
        ending.store(true, Ordering::SeqCst);
        let start = clock::now();
        let stopped = server.stop();
        let taken = start.elapsed();
        for thread in running {
            thread
                .join()
                .map_err(|_| Failure::new("a connection's thread panicked"))??;
        }
        stopped?;
        if taken > LIMIT {
            return Err(Failure::new(format!(
                "a stop took {}, the limit is 10 s",
                millis(taken)
            )));
        }
        Ok(taken)
    })
}

fn keep_busy(hand: &mut Workload<'_>, connection: &mut Connection, ending: &AtomicBool) -> Outcome {
    loop {
        if let Step::Lost = hand.step(connection)? {
            if ending.load(Ordering::SeqCst) {
                return Ok(());
            }
            return Err(Failure::new("a request got no answer from a living server"));
        }
    }
}

/// Sends the lost requests again and compares everything; returns how many there were.
fn judge(hands: &mut [Workload<'_>], server: &Server, totals: &mut Totals) -> Outcome<u64> {
    let mut connection = Connection::new(server.address);
    let mut retried = 0;
    for hand in hands.iter_mut() {
        totals.continued += u64::from(hand.running().is_some());
        if let Some(again) = hand.retry(&mut connection)? {
            retried += 1;
            if again.was_done || again.is_cut {
                let how = if again.is_cut {
                    "was answered in part"
                } else {
                    "was done and not answered"
                };
                return Err(Failure::new(format!("the stop: {} {how}", again.what)));
            }
        }
        hand.finish_backtest(&mut connection)
            .context("after the restart")?;
        compare(hand, server, totals)?;
    }
    totals.retried += retried;
    Ok(retried)
}

fn compare(hand: &Workload<'_>, server: &Server, totals: &mut Totals) -> Outcome {
    let known = hand.look().known.clone();
    let bootstrap = hand.bootstrap();
    let mut judge = Judge::new(server.address, bootstrap, &bootstrap.token);
    judge.compare(&known, &known, true)?;
    totals.compared += judge.compared;
    if judge.faults.is_empty() {
        return Ok(());
    }
    Err(Failure::new(format!(
        "lost by a stop:\n  {}",
        judge.faults.join("\n  ")
    )))
}
