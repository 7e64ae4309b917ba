//! The time of a restart (R6): a large store, `kill -9` under load, and the clock until `/readyz` answers 200.
//!
//! The store is filled through the API alone, so that every row is one that the product writes: accounts with their
//! tokens, and changes with reasons and descriptions long enough to make a gigabyte of a million audit entries.

use std::path::Path;
use std::time::Duration;

use serde_json::{Value, json};

use super::Choices;
use super::fixture::{self, Purpose, millis};
use super::known::Judge;
use super::workload::{Scene, Step, Workload};
use crate::Engine;
use crate::bench::bench_store::BenchStore;
use crate::bench::load::{self, SERIAL, Script, quantile};
use crate::bench::machine;
use crate::clock;
use crate::failure::{Context, Failure, Outcome};
use crate::http::{Connection, Request};
use crate::product::{Bootstrap, Server, Store};
use crate::random::Random;
use crate::traffic;

/// Goal: from the start of the process to readiness.
const LIMIT: Duration = Duration::from_secs(2);
const FILLERS: usize = 64;
/// How long one round of filling lasts, after which the figures are shown.
const ROUND: Duration = Duration::from_secs(5);

/// Kill a server with a large store under load, and measure the time until it is ready again
#[derive(clap::Args)]
pub struct Arguments {
    /// How often the server is killed, for each engine
    #[arg(long, default_value_t = 20)]
    cycles: u32,
    /// How many tokens the store holds, each of an account of its own; the goal is 100000
    #[arg(long, default_value_t = 2_000)]
    tokens: u64,
    /// How many audit entries the store holds; the goal is 1000000
    #[arg(long, default_value_t = 20_000)]
    entries: u64,
    /// How many bytes of text each change brings, which decides how large the store becomes
    #[arg(long, default_value_t = 600, value_parser = clap::value_parser!(u32).range(20..=1_400))]
    text: u32,
    /// How many connections send requests when it is killed
    #[arg(long, default_value_t = 16)]
    connections: usize,
    #[command(flatten)]
    choices: Choices,
}

pub fn run(arguments: &Arguments) -> Outcome {
    let sizes = format!(
        "--cycles {} --tokens {} --entries {}",
        arguments.cycles, arguments.tokens, arguments.entries
    );
    let purpose = Purpose {
        name: "restarts",
        goals: &["R6"],
        sizes,
        profile: "release",
    };
    fixture::each(&arguments.choices, &purpose, |place, seed| {
        drive(arguments, place, seed)
    })
}

fn drive(arguments: &Arguments, place: &BenchStore, seed: u64) -> Outcome<String> {
    let installation = &place.installation;
    let bootstrap = installation.initialize()?;
    let mut server = installation.serve()?;
    fill(arguments, place.engine, &server, &bootstrap)?;
    let entries = await_checkpoint(&server, &bootstrap, arguments.entries)?;
    let size = store_size(&installation.store);
    let scene = Scene { bootstrap, seed };
    let mut hands: Vec<Workload<'_>> = (0..arguments.connections)
        .map(|number| Workload::new(&scene, number))
        .collect();
    let mut random = Random::part(seed, 0);
    let (mut ready, mut compared, mut memory) = (Vec::new(), 0, 0.0_f64);
    for cycle in 1..=arguments.cycles {
        let delay = random.millis(50, 600);
        kill_under_load(&mut hands, server, delay)?;
        let wal = wal_mib(&installation.store);
        let start = clock::now();
        let mut started = installation.launch()?;
        started.wait_until_ready(Duration::from_mins(1))?;
        let taken = start.elapsed();
        ready.push(taken);
        server = started;
        compared += judge(&mut hands, &server)?;
        memory = memory.max(machine::resident_mib(server.pid()).unwrap_or_default());
        println!(
            "{} {cycle}/{}: killed after {} ms of load, a WAL of {wal:.1} MiB, ready in {}",
            fixture::word(place.engine),
            arguments.cycles,
            delay.as_millis(),
            millis(taken)
        );
    }
    server.stop()?;
    let checked = clock::now();
    installation.check(&["audit", "verify"])?;
    installation.check(&["store", "check"])?;
    let checked = checked.elapsed();
    ready.sort_unstable();
    let (p50, p99, most) = (quantile(&ready, 50), quantile(&ready, 99), quantile(&ready, 100));
    if p99 > LIMIT {
        return Err(Failure::new(format!(
            "p99 of the time to readiness is {}, the goal is 2 s (p50 {}, at most {})",
            millis(p99),
            millis(p50),
            millis(most)
        )));
    }
    Ok(format!(
        "{} kills of a server with {entries} audit entries and {} tokens{}: ready again p50 {}, p99 {}, at most {}; {compared} \
         records and tokens compared, 0 lost; resident memory at most {memory:.0} MiB; audit verify and store check \
         passed in {:.1} s.",
        ready.len(),
        arguments.tokens,
        size.map_or_else(String::new, |mib| format!(" in {mib:.0} MiB")),
        millis(p50),
        millis(p99),
        millis(most),
        checked.as_secs_f64()
    ))
}

/// Makes the accounts, then changes them until there are enough entries.
fn fill(arguments: &Arguments, engine: Engine, server: &Server, bootstrap: &Bootstrap) -> Outcome {
    let start = clock::now();
    let key = format!("fill-{SERIAL}");
    let mut create = traffic::account(&format!("Account {SERIAL}"), "viewer");
    create["description"] = "x".repeat(arguments.text as usize / 2).into();
    let create = bootstrap
        .change("POST", "service-accounts", create, &key, "filling the store")
        .bytes();
    let say = |what: &str, done: u64, of: u64| {
        let seconds = start.elapsed().as_secs_f64();
        eprintln!(
            "{}: {seconds:4.0} s: {done} of {of} {what}",
            fixture::word(engine)
        );
    };
    let create = Script::new([create]);
    let made = repeat(server, &create, arguments.tokens, |done| {
        say("tokens", done, arguments.tokens);
    })?;
    let ids = account_ids(server, bootstrap, 200)?;
    let text = arguments.text as usize;
    let change = |id: &String| {
        let body = json!({ "description": format!("{SERIAL} {}", "d".repeat(text / 2)) });
        let reason = format!("filling {}", "r".repeat((text / 2).min(480)));
        bootstrap
            .change("PATCH", &format!("service-accounts/{id}"), body, &key, &reason)
            .bytes()
    };
    let changes = Script::new(ids.iter().map(change));
    let missing = arguments.entries.saturating_sub(made);
    repeat(server, &changes, missing, |done| {
        say("audit entries", made + done, arguments.entries);
    })?;
    Ok(())
}

/// Sends a script until there are so many answers.
fn repeat(server: &Server, script: &Script, count: u64, say: impl Fn(u64)) -> Outcome<u64> {
    let mut done = 0;
    let mut round = Duration::from_millis(500);
    while done < count {
        done += load::send(server.address, FILLERS, round, script)?.answers;
        say(done);
        round = ROUND;
    }
    Ok(done)
}

fn account_ids(server: &Server, bootstrap: &Bootstrap, count: usize) -> Outcome<Vec<String>> {
    let mut connection = Connection::new(server.address);
    let mut ids = Vec::new();
    for offset in (0..count).step_by(100) {
        let path = bootstrap.path(&format!("service-accounts?limit=100&offset={offset}"));
        let page = connection.fetch(&Request::get(path, &bootstrap.token))?;
        let accounts = page["serviceAccounts"].as_array().context("no serviceAccounts")?;
        let seeded = accounts.iter().filter(|it| it["permissionRole"] == "viewer");
        ids.extend(seeded.filter_map(|it| it["id"].as_str().map(str::to_owned)));
    }
    if ids.is_empty() {
        return Err(Failure::new("there is no account to change"));
    }
    Ok(ids)
}

/// Waits until the signed checkpoint covers the entries, and returns how many it covers.
fn await_checkpoint(server: &Server, bootstrap: &Bootstrap, count: u64) -> Outcome<u64> {
    let mut connection = Connection::new(server.address);
    let request = Request::get(bootstrap.path("audit/checkpoint"), &bootstrap.token);
    let mut size = 0;
    let is_there = clock::poll_until(Duration::from_mins(20), Duration::from_millis(500), || {
        let body = connection
            .send(&request)
            .ok()
            .and_then(|answer| answer.json().ok());
        size = body
            .and_then(|body: Value| body["size"].as_u64())
            .unwrap_or_default();
        size >= count
    });
    if is_there {
        return Ok(size);
    }
    Err(Failure::new(format!(
        "after 20 min the checkpoint covers {size} of {count} entries"
    )))
}

fn kill_under_load(hands: &mut [Workload<'_>], server: Server, delay: Duration) -> Outcome {
    let address = server.address;
    std::thread::scope(|scope| {
        let busy = |hand: &mut Workload<'_>| -> Outcome {
            let mut connection = Connection::new(address);
            while let Step::Answered = hand.step(&mut connection)? {}
            Ok(())
        };
        let running: Vec<_> = hands
            .iter_mut()
            .map(|hand| scope.spawn(move || busy(hand)))
            .collect();
        std::thread::sleep(delay);
        let killed = server.kill();
        for thread in running {
            thread
                .join()
                .map_err(|_| Failure::new("a connection's thread panicked"))??;
        }
        killed
    })
}

fn judge(hands: &mut [Workload<'_>], server: &Server) -> Outcome<u64> {
    let mut connection = Connection::new(server.address);
    let mut compared = 0;
    for hand in hands {
        hand.retry(&mut connection)?;
        hand.finish_backtest(&mut connection)?;
        let known = hand.look().known.clone();
        let bootstrap = hand.bootstrap();
        let mut judge = Judge::new(server.address, bootstrap, &bootstrap.token);
        judge.compare(&known, &known, true)?;
        compared += judge.compared;
        if !judge.faults.is_empty() {
            return Err(Failure::new(format!(
                "lost by a kill:\n  {}",
                judge.faults.join("\n  ")
            )));
        }
    }
    Ok(compared)
}

#[expect(clippy::cast_precision_loss, reason = "some thousand MiB are exact")]
fn mib(path: &Path) -> f64 {
    path.metadata()
        .map_or(0.0, |data| data.len() as f64 / f64::from(1 << 20))
}

/// The size of the database file; PostgreSQL keeps its own accounts.
fn store_size(store: &Store) -> Option<f64> {
    match store {
        Store::Sqlite { data } => Some(mib(&data.join("provost.db"))),
        Store::Postgres { .. } => None,
    }
}

/// The size of SQLite's write-ahead log.
pub fn wal_mib(store: &Store) -> f64 {
    match store {
        Store::Sqlite { data } => mib(&data.join("provost.db-wal")),
        Store::Postgres { .. } => 0.0,
    }
}
