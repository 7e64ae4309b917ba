//! The API under load, server and load generator on the same cores.

use std::time::Duration;

use super::bench_store::BenchStore;
use super::figures::{self, OtherFigures};
use super::load::Script;
use super::machine;
use super::report::{self, Goal, Row};
use super::rounds::{Rounds, Series};
use super::scripts::{Scripts, create_accounts};
use crate::clock;
use crate::failure::{Context, Failure, Outcome};
use crate::http::Connection;
use crate::product::{Bootstrap, Installation};

/// Measure the API: reads, lists and durable mutations beside the disk's raw speed
#[derive(clap::Args)]
pub struct Arguments {
    #[command(flatten)]
    rounds: Rounds,
    /// How many service accounts the store holds
    #[arg(long, default_value_t = 1000, value_parser = clap::value_parser!(u32).range(100..))]
    accounts: u32,
}

pub fn run(arguments: &Arguments) -> Outcome {
    let measured = arguments
        .rounds
        .each("bench", |place| measure(arguments, place))?;
    let mut rows: Vec<&Row> = measured.engines.iter().flatten().collect();
    let size = measured.binary.metadata();
    let size = size.context("cannot read the binary's size")?.len();
    #[expect(clippy::cast_precision_loss, reason = "some millions are exact")]
    let mib = size as f64 / f64::from(1 << 20);
    let binary = Row::new("Stripped binary", "–", " MiB", Goal::AtMost(30.0), vec![mib]);
    rows.push(&binary);
    arguments.rounds.conclude(
        "Benchmarks",
        "Load generator (one thread) and server share the cores. Every mutation is on the disk before it is answered \
         (SQLite: WAL with synchronous=FULL; PostgreSQL: fsync and synchronous_commit on). Audit of sensitive reads is \
         on, rate limits are off.",
        &report::table(rows),
        &measured,
    )
}

fn measure(arguments: &Arguments, place: &BenchStore) -> Outcome<Vec<Row>> {
    let installation = &place.installation;
    let one_by_one = Installation {
        environment: vec![("PROVOST_WRITER_MAX_BATCH", "1".into())],
        ..installation.clone()
    };
    let bootstrap = installation.initialize()?;
    let ids = seed(arguments, place, &bootstrap)?;
    let scripts = Scripts::new(&bootstrap, &ids);

    let names: [(&str, usize, &Script); 5] = [
        ("read one account", 32, &scripts.read),
        ("read capabilities", 32, &scripts.capabilities),
        ("list 100 accounts", 32, &scripts.list),
        ("durable mutation, 1 connection", 1, &scripts.mutate),
        ("durable mutation, 64 connections", 64, &scripts.mutate),
    ];
    let mut series: Vec<_> = names.iter().map(|_| Series::default()).collect();
    let (mut ungrouped, mut memory, mut ready) = (Series::default(), Vec::new(), Vec::new());
    let (mut syncs, mut gains) = (Vec::new(), Vec::new());

    let rounds = &arguments.rounds;
    for round in 1..=rounds.count {
        syncs.push(machine::measure_syncs(place.disk(), Duration::from_secs(1))?);
        ready.push(time_first_start(place, round)?);

        let server = installation.serve()?;
        std::thread::sleep(Duration::from_secs(1));
        memory.extend(machine::resident_mib(server.pid()));
        for ((name, connections, script), series) in names.iter().zip(&mut series) {
            let sent = rounds.send(place, &server, *connections, script, series);
            sent.context(*name)?;
            rounds.say(place.engine, round, name, series);
        }
        server.stop()?;

        let server = one_by_one.serve()?;
        let name = "one commit per mutation, 64 connections";
        let sent = rounds.send(place, &server, 64, &scripts.mutate, &mut ungrouped);
        sent.context(name)?;
        rounds.say(place.engine, round, name, &ungrouped);
        server.stop()?;
        let grouped = series.last().and_then(|series| series.rates.last());
        let both = grouped.zip(ungrouped.rates.last());
        gains.extend(both.map(|(grouped, single)| grouped / single));
    }
    let others = OtherFigures {
        memory,
        ready,
        syncs,
        gains,
    };
    let names = names.map(|(name, _, _)| name);
    Ok(figures::rows(place.engine, &names, &series, &ungrouped, &others))
}

/// Creates the accounts over some connections at once and returns their ids.
fn seed(arguments: &Arguments, place: &BenchStore, bootstrap: &Bootstrap) -> Outcome<Vec<String>> {
    eprintln!(
        "{}: creating {} accounts",
        place.engine.name(),
        arguments.accounts
    );
    let server = place.installation.serve()?;
    let address = server.address;
    let numbers: Vec<u32> = (0..arguments.accounts).collect();
    let ids = std::thread::scope(|scope| {
        let share = numbers.len().div_ceil(16);
        let create = |numbers| move || create_accounts(&mut Connection::new(address), bootstrap, numbers);
        let threads: Vec<_> = numbers
            .chunks(share)
            .map(|numbers| scope.spawn(create(numbers)))
            .collect();
        let mut ids = Vec::new();
        for thread in threads {
            let made = thread.join();
            ids.extend(made.map_err(|_| Failure::new("a creating thread panicked"))??);
        }
        Ok(ids)
    })?;
    server.stop()?;
    Ok(ids)
}

/// From an empty store to the first 200 of `/readyz`, in ms.
fn time_first_start(place: &BenchStore, round: u32) -> Outcome<f64> {
    let installation = place.beside(&format!("empty{round}"))?;
    let start = clock::now();
    let server = installation.serve()?;
    let elapsed = start.elapsed();
    server.stop()?;
    Ok(elapsed.as_secs_f64() * 1e3)
}
