//! A neighbour who means ill (R50): one organization brings code that never ends, imports, backtests, large lists and large
//! bodies, and another one asks what it always asks.
//!
//! Rate limits are on, as they come. Quiet and loud turns follow one another, and the figure is the ratio of their
//! medians, because a machine that is shared changes its pace within minutes. Whatever the neighbour is answered is no
//! failure; whatever the ordinary organization is answered but a success is one.

mod ill;

use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use serde_json::json;

use super::Choices;
use super::fixture::{self, Purpose, millis};
use crate::bench::bench_store::BenchStore;
use crate::bench::load::quantile;
use crate::bench::report::median;
use crate::failure::{Context, Failure, Outcome};
use crate::http::{Connection, Request};
use crate::product::{Bootstrap, Server, parse_bootstrap};
use crate::random::Random;
use crate::traffic::{self, event};
use crate::{clock, process};

/// The goal: so many times the quiet p99, and so much more.
const TIMES: f64 = 2.0;
const MORE: Duration = Duration::from_millis(20);
/// Between two requests of one connection: an organization that asks now and then, not a load test.
const PAUSE: (u64, u64) = (10, 50);

/// Let one organization be hostile, and measure what another one waits
#[derive(clap::Args)]
pub struct Arguments {
    /// How long a turn lasts, in seconds
    #[arg(long, default_value_t = 10, value_parser = clap::value_parser!(u64).range(2..))]
    secs: u64,
    /// How many quiet turns there are, each followed by a loud one
    #[arg(long, default_value_t = 3, value_parser = clap::value_parser!(u32).range(1..))]
    rounds: u32,
    /// Connections of the ordinary organization
    #[arg(long, default_value_t = 4)]
    ordinary: usize,
    /// Connections of the hostile one
    #[arg(long, default_value_t = 24)]
    hostile: usize,
    #[command(flatten)]
    choices: Choices,
}

pub fn run(arguments: &Arguments) -> Outcome {
    let purpose = Purpose {
        name: "neighbour",
        goals: &["R50"],
        sizes: format!(
            "--secs {} --rounds {} --ordinary {} --hostile {}",
            arguments.secs, arguments.rounds, arguments.ordinary, arguments.hostile
        ),
        profile: "release",
    };
    fixture::each(&arguments.choices, &purpose, |place, seed| {
        drive(arguments, place, seed)
    })
}

/// An organization and what a connection of it needs.
struct Party {
    bootstrap: Bootstrap,
    account: String,
    serial: AtomicU64,
    seed: u64,
}

fn drive(arguments: &Arguments, place: &BenchStore, seed: u64) -> Outcome<String> {
    let mut installation = place.installation.clone();
    installation
        .environment
        .push(("PROVOST_RATE_LIMITS_ENABLED", "true".into()));
    let ordinary = installation.initialize()?;
    let printed = process::output(&mut installation.command(&["init", "--organization", "Beta", "--json"]))?;
    let hostile = parse_bootstrap(&printed)?;
    let server = installation.serve()?;
    let ordinary = settle(ordinary, &server, seed)?;
    let kinds = ill::kinds(&hostile, &server, seed)?;

    let (mut quiet, mut loud) = (Vec::new(), Vec::new());
    let (mut refused, mut successes) = (0, 0);
    for round in 1..=arguments.rounds {
        let alone = turn(arguments, &ordinary, &server, None)?;
        let beside = turn(arguments, &ordinary, &server, Some(&kinds))?;
        println!(
            "{} {round}/{}: p50 {} and p99 {} alone, {} and {} beside the neighbour, who had {} answers and {} refusals",
            fixture::word(place.engine),
            arguments.rounds,
            millis(quantile(&alone.latencies, 50)),
            millis(quantile(&alone.latencies, 99)),
            millis(quantile(&beside.latencies, 50)),
            millis(quantile(&beside.latencies, 99)),
            beside.successes,
            beside.refused,
        );
        quiet.push(quantile(&alone.latencies, 99).as_secs_f64());
        loud.push(quantile(&beside.latencies, 99).as_secs_f64());
        refused += beside.refused;
        successes += beside.successes;
    }
    server.stop()?;
    place.installation.check(&["store", "check"])?;
    let (alone, beside) = (
        Duration::from_secs_f64(median(&quiet)),
        Duration::from_secs_f64(median(&loud)),
    );
    let figure = format!(
        "an ordinary organization's p99 is {} alone and {} beside {} hostile connections with code, backtests, imports, \
         lists and bodies ({successes} answers and {refused} refusals for them); the goal is {}",
        millis(alone),
        millis(beside),
        arguments.hostile,
        millis(alone.mul_f64(TIMES) + MORE),
    );
    if beside > alone.mul_f64(TIMES) + MORE {
        return Err(Failure::new(format!("the neighbour is felt: {figure}")));
    }
    Ok(format!("{figure}."))
}

/// Makes what the ordinary organization asks about.
fn settle(bootstrap: Bootstrap, server: &Server, seed: u64) -> Outcome<Party> {
    let mut connection = Connection::new(server.address);
    let body = traffic::account("Ordinary", "viewer");
    let key = format!("neighbour-{seed:016x}-ordinary");
    let made = connection.fetch(&bootstrap.change("POST", "service-accounts", body, &key, "neighbour"))?;
    let account = made["serviceAccount"]["id"].as_str().context("no account id")?;
    let policy = json!({
        "definition": {
            "id": "guard", "name": "guard", "action": "block", "evaluateOn": ["pre_tool"], "acknowledgeBroadScope": true,
            "message": "ask the platform team first",
            "conditions": { "field": "tool.id", "op": "eq", "value": "rm" },
        },
    });
    let key = format!("neighbour-{seed:016x}-guard");
    connection.fetch(&bootstrap.change("POST", "content-policies", policy, &key, "neighbour"))?;
    Ok(Party {
        account: account.to_owned(),
        bootstrap,
        serial: AtomicU64::new(0),
        seed,
    })
}

#[derive(Default)]
struct NeighbourRound {
    latencies: Vec<Duration>,
    successes: usize,
    refused: usize,
}

fn turn(
    arguments: &Arguments,
    ordinary: &Party,
    server: &Server,
    ill: Option<&[ill::Kind]>,
) -> Outcome<NeighbourRound> {
    let is_over = AtomicBool::new(false);
    let turn = Mutex::new(NeighbourRound::default());
    std::thread::scope(|scope| -> Outcome {
        let mut hands = Vec::new();
        for number in 0..ill.map_or(0, |_| arguments.hostile) {
            let kinds = ill.unwrap_or_default();
            let (is_over, turn) = (&is_over, &turn);
            let kind = &kinds[number % kinds.len()];
            scope.spawn(move || {
                let counts = ill::storm(kind, server, number, is_over);
                if let Ok(mut turn) = turn.lock() {
                    turn.successes += counts.0;
                    turn.refused += counts.1;
                }
            });
        }
        if ill.is_some() {
            // The neighbour has begun.
            std::thread::sleep(Duration::from_secs(1));
        }
        for number in 0..arguments.ordinary {
            let (is_over, turn) = (&is_over, &turn);
            hands.push(scope.spawn(move || {
                let latencies = ask(ordinary, server, number, is_over)?;
                let mut turn = turn.lock().map_err(|_| Failure::new("a connection panicked"))?;
                turn.latencies.extend(latencies);
                Ok(())
            }));
        }
        std::thread::sleep(Duration::from_secs(arguments.secs));
        is_over.store(true, Ordering::SeqCst);
        let outcomes = hands.into_iter().map(|hand| {
            hand.join()
                .map_err(|_| Failure::new("a connection panicked"))
                .and_then(|told| told)
        });
        outcomes.collect::<Outcome<Vec<()>>>().map(drop)
    })?;
    let mut turn = turn
        .into_inner()
        .map_err(|_| Failure::new("a connection panicked"))?;
    turn.latencies.sort_unstable();
    Ok(turn)
}

/// Reads, decisions and changes, one after the other; each must succeed.
fn ask(party: &Party, server: &Server, number: usize, is_over: &AtomicBool) -> Outcome<Vec<Duration>> {
    let mut random = Random::part(party.seed, 70_000 + number as u64);
    let mut connection = Connection::new(server.address);
    let mut latencies = Vec::new();
    while !is_over.load(Ordering::SeqCst) {
        std::thread::sleep(random.millis(PAUSE.0, PAUSE.1));
        let request = party.choose(&mut random);
        let sent = clock::now();
        let answer = connection
            .send(&request)
            .map_err(|lost| Failure::new(format!("{}: {}", request.path, lost.why)))?;
        if !answer.is_success() {
            return Err(Failure::new(format!(
                "the ordinary organization's {} was answered {}",
                request.path,
                answer.summary()
            )));
        }
        latencies.push(sent.elapsed());
    }
    Ok(latencies)
}

impl Party {
    fn choose(&self, random: &mut Random) -> Request {
        let serial = self.serial.fetch_add(1, Ordering::SeqCst);
        let Self {
            bootstrap, account, ..
        } = self;
        let one = bootstrap.path(&format!("service-accounts/{account}"));
        match random.between(0, 9) {
            0 => Request::new("PATCH", one, &bootstrap.token).with_body(json!({
                "description": format!("as of {serial}"), "reason": "neighbour",
                "idempotencyKey": format!("neighbour-{:016x}-{serial:012}", self.seed),
            })),
            1..=3 => Request::get(one, &bootstrap.token),
            4 => Request::get(bootstrap.path("policies"), &bootstrap.token),
            _ => {
                let (call, tool) = (format!("call-{serial}"), format!("tool-{}", serial % 7));
                bootstrap.decide(&[event("pre_tool", &call, &tool)])
            }
        }
    }
}
