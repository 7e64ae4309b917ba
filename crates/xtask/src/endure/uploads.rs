//! Reports of agents through kills of both ends: what a laptop once had in its queue is in the store, once, at the end.
//!
//! ```text
//! home: the next rows ──► agent scan ──► queue/ ──► server ──► sent/         each laptop again and again
//!                            ▲ SIGKILL               ▲ SIGKILL and a new start, at random moments
//!
//! the end: homes are away, so that nothing can be scanned ──► agents send what waits ──► the store is read row by row
//! ```
//!
//! Every report holds other rows than those before it, and says of one file that it cannot be read: the server then adds what it names and
//! removes nothing, so that a report which is lost leaves a gap that no later one fills. What was ever queued is read from the agents'
//! folders after each kill; what was acknowledged is a part of that, because a report leaves the queue for what was sent.
//!
//! Absent on purpose: losses of power, which [`crate::power`] has for the server; the queue's files are written and synced as its are.

mod laptop;

use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use serde_json::{Value, json};

use super::Choices;
use super::fixture::{self, Purpose};
use crate::bench::bench_store::BenchStore;
use crate::clock;
use crate::failure::{Context, Failure, Outcome};
use crate::http::{Connection, Request};
use crate::product::{self, Bootstrap, Installation, Server};
use crate::random::Random;
use laptop::{Home, Laptop};

/// Rows of one report: more than the server takes in one unit, so that a kill can come between two units.
const ROWS_OF_REPORT: usize = 480;
/// Reports of one laptop; a device keeps 2 000 rows.
const REPORTS: usize = 4;
/// LIMIT: rounds in which a laptop sends what waits once nobody is killed any more. Ours; one is enough where nothing is wrong.
const MOST_ROUNDS: u32 = 20;
/// The longest time that a server may take to start, and one agent to end.
const PATIENCE: Duration = Duration::from_mins(2);

/// Kill agents and the server at random moments while reports are sent, and look for each of their rows in the store, once
#[derive(clap::Args)]
pub struct Arguments {
    /// How many rows the reports hold together
    #[arg(long, default_value_t = 4_000, value_parser = clap::value_parser!(u32).range(1..=10_000_000))]
    rows: u32,
    /// How many agents work at once
    #[arg(long, default_value_t = 4, value_parser = clap::value_parser!(u32).range(1..=64))]
    hands: u32,
    /// How many of a hundred runs of an agent are killed
    #[arg(long, default_value_t = 60, value_parser = clap::value_parser!(u32).range(0..=90))]
    agent_kills: u32,
    /// How long the server lives between two kills, at most. Units: milliseconds
    #[arg(long, default_value_t = 2_000, value_parser = clap::value_parser!(u32).range(200..))]
    server_lives: u32,
    #[command(flatten)]
    choices: Choices,
}

/// What became of the server.
#[derive(Default)]
pub(super) struct Totals {
    pub server_kills: u32,
    pub slowest_start: Duration,
}

pub fn run(arguments: &Arguments) -> Outcome {
    let sizes = format!(
        "--rows {} --hands {} --agent-kills {} --server-lives {}",
        arguments.rows, arguments.hands, arguments.agent_kills, arguments.server_lives
    );
    let purpose = Purpose {
        name: "uploads",
        goals: &["R1"],
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
    let mut laptops = enrol(arguments, place, address, &bootstrap)?;
    let (server, totals) = storm(arguments, place, seed, server, &mut laptops)?;
    println!(
        "{}: {} laptops queued everything after {} s; nobody is killed any more",
        fixture::word(place.engine),
        laptops.len(),
        begin.elapsed().as_secs()
    );
    for laptop in &mut laptops {
        empty(laptop)?;
    }
    let compared = compare(&laptops, &server, &bootstrap)?;
    server.stop()?;
    installation.check(&["audit", "verify"])?;
    installation.check(&["store", "check"])?;
    if compared != arguments.rows as usize {
        return Err(Failure::new(format!(
            "{compared} rows were compared, and {} were to be made",
            arguments.rows
        )));
    }
    let sum = |count: fn(&Laptop) -> usize| laptops.iter().map(count).sum::<usize>();
    Ok(format!(
        "{compared} rows of {} reports from {} laptops, each in the store once, 0 lost, 0 twice; {} runs of agents, {} of them \
         killed, after {} of which reports waited; {} kills of the server, up again within {} ms; {} s; audit verify and store \
         check passed.",
        sum(Laptop::reports),
        laptops.len(),
        sum(|laptop| laptop.runs),
        sum(|laptop| laptop.kills),
        sum(|laptop| laptop.kills_that_left_something),
        totals.server_kills,
        totals.slowest_start.as_millis(),
        begin.elapsed().as_secs()
    ))
}

/// Starts the server where it was.
pub(super) fn start(installation: &Installation, address: SocketAddr) -> Outcome<Server> {
    let mut server = installation.launch_at(address)?;
    server.wait_until_ready(PATIENCE)?;
    Ok(server)
}

/// Makes the laptops, with the rows that each will report.
fn enrol(
    arguments: &Arguments,
    place: &BenchStore,
    address: SocketAddr,
    bootstrap: &Bootstrap,
) -> Outcome<Vec<Laptop>> {
    let mut connection = Connection::new(address);
    let rows: Vec<String> = (0..arguments.rows)
        .map(|number| format!("row-{number}"))
        .collect();
    let of_each = rows.chunks(ROWS_OF_REPORT * REPORTS).enumerate();
    of_each
        .map(|(number, rows)| {
            let key = format!("laptop-{number}");
            let request = bootstrap
                .act("POST", "devices/enrolment-tokens", &key, "a laptop joins")
                .with_body(json!({ "name": key, "mode": "user" }));
            let made = connection.fetch(&request)?;
            let token = made["token"].as_str().context("a made token is not shown")?;
            let laptop = Laptop {
                binary: place.installation.binary.clone(),
                folder: place.folder().join("laptops").join(number.to_string()),
                reports: rows.chunks(ROWS_OF_REPORT).map(<[String]>::to_vec).collect(),
                seen: BTreeSet::new(),
                runs: 0,
                kills: 0,
                kills_that_left_something: 0,
            };
            laptop.enrol(address, &bootstrap.organization, token)?;
            Ok(laptop)
        })
        .collect()
}

/// Has the laptops report everything, while they and the server are killed. Returns a server that nobody kills.
fn storm(
    arguments: &Arguments,
    place: &BenchStore,
    seed: u64,
    server: Server,
    laptops: &mut [Laptop],
) -> Outcome<(Server, Totals)> {
    let (stop, done) = (AtomicBool::new(false), AtomicUsize::new(0));
    let count = laptops.len();
    let of_each = count.div_ceil(arguments.hands as usize).max(1);
    std::thread::scope(|scope| {
        let (stop, done) = (&stop, &done);
        let hands: Vec<_> = laptops
            .chunks_mut(of_each)
            .zip(1..)
            .map(|(laptops, number)| {
                scope.spawn(move || {
                    let mut random = Random::part(seed, number);
                    let ended = laptops.iter_mut().try_for_each(|laptop| {
                        fill(laptop, arguments, &mut random, stop)?;
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

/// Kills the server and starts it again, until it is over; once at least. It lives for so many milliseconds at most.
pub(super) fn kill_again_and_again(
    server_lives: u32,
    installation: &Installation,
    seed: u64,
    mut server: Server,
    is_over: &dyn Fn() -> bool,
    told: &dyn Fn(u32),
) -> Outcome<(Server, Totals)> {
    let mut random = Random::part(seed, 0);
    let mut totals = Totals::default();
    loop {
        let life = random.millis(50, u64::from(server_lives));
        let ended = clock::poll_until(life, Duration::from_millis(5), is_over);
        let address = server.address;
        server.kill()?;
        totals.server_kills += 1;
        // Some laptops find nobody.
        std::thread::sleep(random.millis(0, 200));
        let begin = clock::now();
        server = start(installation, address).context("after a kill")?;
        totals.slowest_start = totals.slowest_start.max(begin.elapsed());
        if ended {
            return Ok((server, totals));
        }
        if totals.server_kills % 10 == 0 {
            told(totals.server_kills);
        }
    }
}

/// Has a laptop report its rows, one part after the other; each is in its queue, or was, before the next one is in its home.
fn fill(laptop: &mut Laptop, arguments: &Arguments, random: &mut Random, stop: &AtomicBool) -> Outcome {
    for part in 0..laptop.reports() {
        laptop.put(part)?;
        while !laptop.has_queued(part) {
            if stop.load(Ordering::SeqCst) {
                return Ok(());
            }
            let kill = kill_at(arguments, random);
            laptop.run(&["agent", "scan"], Home::There, kill)?;
        }
        if random.chance(50) {
            let kill = kill_at(arguments, random);
            laptop.run(&["agent", "run", "--once"], Home::Away, kill)?;
        }
    }
    Ok(())
}

/// Draws when a run of an agent is killed: a program that ends sooner was not.
fn kill_at(arguments: &Arguments, random: &mut Random) -> Option<Duration> {
    let is_killed = random.chance(u64::from(arguments.agent_kills));
    // Most of what a run does is within its first tenth of a second; an unoptimized program takes longer.
    let most = if random.chance(50) { 120 } else { 500 };
    let at = random.millis(0, most);
    is_killed.then_some(at)
}

/// Has a laptop send what waits; its home is away, so that it cannot say anything anew.
fn empty(laptop: &mut Laptop) -> Outcome {
    let mut said = String::new();
    for _ in 0..MOST_ROUNDS {
        if laptop.waiting()? == 0 {
            return Ok(());
        }
        said = laptop.run(&["agent", "run", "--once"], Home::Away, None)?;
    }
    Err(Failure::new(format!(
        "{} still has a report that waits after {MOST_ROUNDS} rounds; it said last: {}",
        laptop.folder.display(),
        said.trim()
    )))
}

/// Reads every row of every laptop from the server, and returns how many there are.
fn compare(laptops: &[Laptop], server: &Server, bootstrap: &Bootstrap) -> Outcome<usize> {
    let mut connection = Connection::new(server.address);
    let (mut compared, mut faults) = (0, Vec::new());
    for laptop in laptops {
        let kept = rows_of(&laptop.device()?, bootstrap, &mut connection)?;
        for row in &laptop.seen {
            match kept.get(row) {
                Some(1) => compared += 1,
                Some(count) => faults.push(format!("{row} is there {count} times")),
                None => faults.push(format!("{row} is lost")),
            }
        }
        let strangers = kept.keys().filter(|row| !laptop.seen.contains(*row));
        faults.extend(strangers.map(|row| format!("{row} is there, and nobody reported it")));
    }
    if faults.is_empty() {
        return Ok(compared);
    }
    let count = faults.len();
    faults.truncate(20);
    Err(Failure::new(format!(
        "{count} rows are not there once, the first of them:\n  {}",
        faults.join("\n  ")
    )))
}

/// The rows that the server has of a device, and how often it has each.
fn rows_of(
    device: &str,
    bootstrap: &Bootstrap,
    connection: &mut Connection,
) -> Outcome<BTreeMap<String, usize>> {
    let path = bootstrap.path(&format!("devices/{device}/inventory?limit=100"));
    let mut rows = BTreeMap::new();
    let mut next = path.clone();
    loop {
        let page = connection.fetch(&Request::get(next, &bootstrap.token))?;
        let observations = page["observations"].as_array().map_or(&[][..], Vec::as_slice);
        for found in observations.iter().map(|one| &one["found"]) {
            let name = found["configuredName"].as_str();
            let name = name.map_or_else(|| format!("{}", found["kind"]), str::to_owned);
            *rows.entry(name).or_insert(0) += 1;
        }
        match &page["nextCursor"] {
            Value::String(cursor) => next = format!("{path}&cursor={cursor}"),
            _ => return Ok(rows),
        }
    }
}
