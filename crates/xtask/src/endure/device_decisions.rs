//! Logs of decisions through kills of both ends: what a hook was told on a device is in the server's history at the end, once and in order.
//!
//! ```text
//! calls, numbered ──► agent.sock ──► agent: judges, writes its log, tells ──► server ──► history
//!                                      ▲ SIGKILL and a new start              ▲ SIGKILL and a new start, at random moments
//!
//! the end: nobody is killed, agents tell what waits ──► the history is read, event by event, beside what every call was told
//! ```
//!
//! Calls are asked at the agent's socket with the bytes that a client gives its hook, as the hook asks them: a process for each would take
//! most of the time. What an agent answers, records and tells is the product's own doing. Each call has a number, by which it is known what
//! the policies say of it. One that was answered has to be in the history, with that; one whose agent died meanwhile may be there, with the
//! same, or not; nothing is there twice, and nothing that was not asked.
//!
//! Absent on purpose: calls of which the agent says that the server has to be asked, which are no entries of its log; counts of what passes
//! without a word, which may wait for the disk for a second: the organization has everything recorded.

mod kept;
mod person;

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use serde_json::json;

use super::Choices;
use super::fixture::{self, Purpose};
use super::uploads::{Totals, kill_again_and_again, start};
use crate::bench::bench_store::BenchStore;
use crate::bench::hook::laptop::{Laptop, USER};
use crate::clients::administrator::{Administrator, text};
use crate::clock;
use crate::failure::{Context, Failure, Outcome};
use crate::product::{self, Bootstrap, Server};
use crate::random::Random;
use person::Person;

/// Entries of a call before a tool: one of its content, one of the use of the client.
const ENTRIES: u32 = 2;
/// Calls of one laptop: a device tells 50 000 entries a day.
const MOST_CALLS: u32 = 20_000;

/// Kill agents and the server at random moments while devices judge and tell, and look for each answer in the history, once
#[derive(clap::Args)]
pub struct Arguments {
    /// How many entries the logs hold together
    #[arg(long, default_value_t = 20_000, value_parser = clap::value_parser!(u32).range(2..=10_000_000))]
    rows: u32,
    /// How many devices work at once
    #[arg(long, default_value_t = 2, value_parser = clap::value_parser!(u32).range(1..=64))]
    hands: u32,
    /// How long an agent lives between two kills, at most. Units: milliseconds
    #[arg(long, default_value_t = 3_000, value_parser = clap::value_parser!(u32).range(200..))]
    agent_lives: u32,
    /// How long the server lives between two kills, at most. Units: milliseconds
    #[arg(long, default_value_t = 4_000, value_parser = clap::value_parser!(u32).range(200..))]
    server_lives: u32,
    #[command(flatten)]
    choices: Choices,
}

pub fn run(arguments: &Arguments) -> Outcome {
    let sizes = format!(
        "--rows {} --hands {} --agent-lives {} --server-lives {}",
        arguments.rows, arguments.hands, arguments.agent_lives, arguments.server_lives
    );
    let purpose = Purpose {
        name: "device-decisions",
        goals: &["R1", "R54"],
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
    let begin = clock::now();
    // The laptops enrol at an address, and every start of the server has it.
    let address = product::free_address()?;
    let server = start(installation, address)?;
    let mut people = enrol(arguments, place, &server, &bootstrap)?;
    let storm_begin = clock::now();
    let (server, totals) = storm(arguments, place, seed, server, &mut people)?;
    let storm_took = storm_begin.elapsed();
    println!(
        "{}: {} laptops judged everything after {} s; nobody is killed any more",
        fixture::word(place.engine),
        people.len(),
        begin.elapsed().as_secs()
    );
    let told_begin = clock::now();
    let waited = people
        .iter()
        .map(Person::waiting)
        .sum::<Outcome<u64>>()
        .context("of what waits")?;
    for person in &mut people {
        person.empty()?;
    }
    let told_took = told_begin.elapsed();
    let compared = kept::compare(&people, &server, &bootstrap)?;
    server.stop()?;
    installation.check(&["audit", "verify"])?;
    installation.check(&["store", "check"])?;
    let sum = |count: fn(&Person) -> u64| people.iter().map(count).sum::<u64>();
    let answered = sum(|person| u64::from(person.answered()));
    if answered * u64::from(ENTRIES) < u64::from(arguments.rows) {
        return Err(Failure::new(format!(
            "{answered} calls were answered, and their {ENTRIES} entries are not {}",
            arguments.rows
        )));
    }
    let unsure = sum(|person| person.unsure);
    #[expect(clippy::cast_precision_loss, reason = "some millions are exact")]
    let rate = compared.events as f64 / (storm_took + told_took).as_secs_f64();
    Ok(format!(
        "{} entries of the logs of {} devices, {answered} calls of which each answer is in the history as it was given, once and in order, 0 \
         lost, 0 twice; {unsure} calls whose agent was killed before it answered, {} of them recorded; {} kills of agents, {} of which left \
         entries that waited, {} kills of the server, up again within {} ms; {waited} entries waited at the end; judged and told in {} s, \
         {rate:.0} entries a second on the processors that judge them; {} s in all; audit verify and store check passed.",
        compared.events,
        people.len(),
        compared.of_unsure,
        sum(|person| person.kills),
        sum(|person| person.kills_that_left_something),
        totals.server_kills,
        totals.slowest_start.as_millis(),
        (storm_took + told_took).as_secs(),
        begin.elapsed().as_secs()
    ))
}

/// Makes the policies and the laptops, whose agents know them.
fn enrol(
    arguments: &Arguments,
    place: &BenchStore,
    server: &Server,
    bootstrap: &Bootstrap,
) -> Outcome<Vec<Person>> {
    let mut administrator = Administrator::new(server, bootstrap);
    let hooks = json!({ "judging": "on", "mode": "enforce", "record": "all" });
    administrator.change(
        "PATCH",
        "automation/settings",
        json!({ "fleet": { "hooks": hooks }, "confirm": true }),
    )?;
    for (id, action, word) in person::POLICIES {
        administrator.post(
            "content-policies",
            json!({ "definition": { "id": id, "name": id, "action": action, "evaluateOn": ["pre_tool"], "acknowledgeBroadScope": true,
                "conditions": { "field": "tool.input.command", "op": "contains", "value": word } } }),
        )?;
    }
    let ada = json!({ "loginName": USER, "displayName": "ada", "email": USER });
    let ada = text(&administrator.post("directory/users", ada)?, "/user/id")?;
    let calls = arguments.rows.div_ceil(ENTRIES);
    let each = (0..calls.div_ceil(MOST_CALLS)).map(|number| {
        let name = format!("p{number}");
        let binary = &place.installation.binary;
        let mut laptop = Laptop::make(place, (&name, &ada), binary, server, bootstrap)?;
        laptop.judges()?;
        laptop.rest()?;
        Ok(Person::new(laptop, MOST_CALLS.min(calls - number * MOST_CALLS)))
    });
    each.collect()
}

/// Has the laptops judge everything, while their agents and the server are killed. Returns a server that nobody kills.
fn storm(
    arguments: &Arguments,
    place: &BenchStore,
    seed: u64,
    server: Server,
    people: &mut [Person],
) -> Outcome<(Server, Totals)> {
    let (stop, done) = (AtomicBool::new(false), AtomicU64::new(0));
    let count = people.len();
    let of_each = count.div_ceil(arguments.hands as usize).max(1);
    std::thread::scope(|scope| {
        let (stop, done) = (&stop, &done);
        let hands: Vec<_> = people
            .chunks_mut(of_each)
            .zip(1..)
            .map(|(people, number)| {
                scope.spawn(move || {
                    let mut random = Random::part(seed, number);
                    let ended = people.iter_mut().try_for_each(|person| {
                        person.work(arguments.agent_lives, &mut random, stop)?;
                        done.fetch_add(1, Ordering::SeqCst);
                        Ok(())
                    });
                    // One that fails ends the others.
                    stop.fetch_or(ended.is_err(), Ordering::SeqCst);
                    ended
                })
            })
            .collect();
        let is_over =
            || stop.load(Ordering::SeqCst) || hands.iter().all(std::thread::ScopedJoinHandle::is_finished);
        let told = |kills: u32| {
            println!(
                "{}: {} of {count} laptops are done, the server was killed {kills} times",
                fixture::word(place.engine),
                done.load(Ordering::SeqCst)
            );
        };
        let killed = kill_again_and_again(
            arguments.server_lives,
            &place.installation,
            seed,
            server,
            &is_over,
            &told,
        );
        stop.fetch_or(killed.is_err(), Ordering::SeqCst);
        for hand in hands {
            hand.join()
                .map_err(|_| Failure::new("a thread of laptops panicked"))??;
        }
        killed
    })
}
