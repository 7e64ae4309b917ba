//! More than the server can do (R27): five times its capacity is offered, and it goes on doing most of what it can.
//!
//! The capacity is what a closed loop reaches on a new installation. A machine that is shared changes its pace within ten
//! minutes by a quarter, so that it is measured before and behind the overload, each time on an installation of its own, and
//! the mean of both is the peak that the goodput is a share of.
//!
//! Then requests become due at five times that rate, whatever the answers
//! (`overload/open.rs`), and every answer is a success, or 429 or 503 with `Retry-After`. Load generator and server share
//! the cores, so what the generator takes is missing from the goodput: the figure is a lower bound.

mod open;

use std::time::Duration;

use serde_json::json;

use super::Choices;
use super::fixture::{self, Purpose, millis};
use super::restarts::wal_mib;
use crate::bench::bench_store::BenchStore;
use crate::bench::load::{self, SERIAL, Script};
use crate::bench::machine;
use crate::bench::report::median;
use crate::clock;
use crate::failure::{Context, Failure, Outcome};
use crate::http::Request;
use crate::product::{Bootstrap, Server};
use crate::traffic;
use open::{Answers, Offer};

const GOODPUT: f64 = 0.8;
const MOST_MIB: f64 = 512.0;
const RECOVERY: Duration = Duration::from_secs(5);
/// The share of a new server's capacity that one must have again whose store is full of what the overload wrote.
const CAME_BACK: f64 = 0.7;
/// Connections of the closed loop.
const CLOSED: usize = 64;
const ACCOUNTS: usize = 50;

/// Offer several times what the server can do, and judge goodput, refusals, memory and recovery
#[derive(clap::Args)]
pub struct Arguments {
    /// How long the overload lasts, in seconds; the goal is 600
    #[arg(long, default_value_t = 20, value_parser = clap::value_parser!(u64).range(2..))]
    secs: u64,
    /// How many times the capacity is offered
    #[arg(long, default_value_t = 5.0)]
    times: f64,
    /// Over how many connections
    #[arg(long, default_value_t = 1_000)]
    connections: usize,
    #[command(flatten)]
    choices: Choices,
}

pub fn run(arguments: &Arguments) -> Outcome {
    let sizes = format!(
        "--secs {} --times {} --connections {}",
        arguments.secs, arguments.times, arguments.connections
    );
    let purpose = Purpose {
        name: "overload",
        goals: &["R27"],
        sizes,
        profile: "release",
    };
    fixture::each(&arguments.choices, &purpose, |place, seed| {
        drive(arguments, place, seed)
    })
}

fn drive(arguments: &Arguments, place: &BenchStore, _seed: u64) -> Outcome<String> {
    let before = apart(place, "before")?;
    let bootstrap = place.installation.initialize()?;
    let server = place.installation.serve()?;
    let script = mix(&server, &bootstrap)?;
    let offer = Offer {
        per_second: before * arguments.times,
        connections: arguments.connections,
        duration: Duration::from_secs(arguments.secs),
    };
    let mut memory = 0.0_f64;
    let answers = open::offer(server.address, &script, &offer, &mut |seconds, answers| {
        memory = memory.max(machine::resident_mib(server.pid()).unwrap_or_default());
        if seconds % 10 == 0 {
            eprintln!(
                "{seconds:4} s: {} served, {} refused, {memory:.0} MiB",
                answers.served, answers.refused
            );
        }
    })?;
    let paces = recover(&server, &script);
    let wal = wal_mib(&place.installation.store);
    server.stop()?;
    place.installation.check(&["audit", "verify"])?;
    place.installation.check(&["store", "check"])?;
    let behind = apart(place, "behind")?;
    let peak = f64::midpoint(before, behind);
    let (recovery, settled) = recovery(&paces)?;
    println!("{settled:.0}/s after the overload, with all that it left in the store");
    if settled < CAME_BACK * behind {
        let message = format!("the server settles at {settled:.0}/s, and a new one reaches {behind:.0}/s");
        return Err(Failure::new(message));
    }
    println!("peak: {before:.0}/s before, {behind:.0}/s behind the overload");
    judge(arguments, peak, &answers, memory, recovery, wal)
}

/// Returns the capacity of a new installation.
fn apart(place: &BenchStore, name: &str) -> Outcome<f64> {
    let installation = place.beside(name)?;
    let bootstrap = installation.initialize()?;
    let server = installation.serve()?;
    let script = mix(&server, &bootstrap)?;
    let peak = capacity(&server, &script)?;
    server.stop()?;
    println!(
        "{}: the capacity {name} the overload is {peak:.0}/s over {CLOSED} connections",
        fixture::word(place.engine)
    );
    Ok(peak)
}

/// Reads, lists, changes and decisions, as a fleet of gateways and a few administrators would ask.
fn mix(server: &Server, bootstrap: &Bootstrap) -> Outcome<Script> {
    let mut connection = crate::http::Connection::new(server.address);
    let mut requests = Vec::new();
    for number in 0..ACCOUNTS {
        let create = bootstrap.change(
            "POST",
            "service-accounts",
            traffic::account(&format!("Account {number}"), "viewer"),
            &format!("overload-seed-{number:08}"),
            "overload",
        );
        let made = connection.fetch(&create)?;
        let id = made["serviceAccount"]["id"].as_str().context("no id")?;
        let one = bootstrap.path(&format!("service-accounts/{id}"));
        let change = json!({ "description": format!("as of {SERIAL}"), "reason": "overload",
                             "idempotencyKey": format!("overload-{SERIAL}") });
        let decision = json!({ "events": [{ "occasion": "pre_tool", "callId": SERIAL,
                                            "attributes": { "tool.id": format!("tool-{number}") } }] });
        let post = |method, path: String, body| Request::new(method, path, &bootstrap.token).with_body(body);
        requests.extend([
            Request::get(one.clone(), &bootstrap.token),
            post("POST", bootstrap.path("policies/decisions"), decision),
            Request::get(bootstrap.path("service-accounts?limit=50"), &bootstrap.token),
            post("PATCH", one, change),
        ]);
    }
    Ok(Script::new(requests.iter().map(Request::bytes)))
}

/// The best of three closed loops, after one to warm up.
fn capacity(server: &Server, script: &Script) -> Outcome<f64> {
    load::send(server.address, CLOSED, Duration::from_secs(2), script)?;
    let mut best = 0.0_f64;
    for _ in 0..3 {
        let measured = load::send(server.address, CLOSED, Duration::from_secs(3), script)?;
        best = best.max(measured.per_second());
    }
    Ok(best)
}

/// What a closed loop reaches in every half second after the overload, without a refusal.
fn recover(server: &Server, script: &Script) -> Vec<(Duration, f64)> {
    let start = clock::now();
    let mut paces = Vec::new();
    while start.elapsed() < 2 * RECOVERY {
        let slice = load::send(server.address, CLOSED, Duration::from_millis(500), script);
        if let Ok(slice) = slice {
            paces.push((start.elapsed(), slice.per_second()));
        }
    }
    paces
}

/// Returns when the server reached nine tenths of what it settled at, and that: the median of the second half.
fn recovery(paces: &[(Duration, f64)]) -> Outcome<(Duration, f64)> {
    let second_half: Vec<f64> = paces[paces.len() / 2..].iter().map(|(_, pace)| *pace).collect();
    if second_half.is_empty() {
        return Err(Failure::new("the server answered nothing after the overload"));
    }
    let settled = median(&second_half);
    let reached = paces.iter().find(|(_, pace)| *pace >= 0.9 * settled);
    Ok((reached.context("no pace reaches the median")?.0, settled))
}

#[expect(clippy::cast_precision_loss, reason = "some millions are exact")]
fn judge(
    arguments: &Arguments,
    peak: f64,
    answers: &Answers,
    memory: f64,
    recovery: Duration,
    wal: f64,
) -> Outcome<String> {
    let seconds = answers.duration.as_secs_f64();
    let goodput = answers.served as f64 / seconds;
    let share = goodput / peak;
    // What is answered after the end makes the goodput no better, but nothing more becomes due.
    let offered = answers.due as f64 / arguments.secs as f64;
    let figures = format!(
        "peak {peak:.0}/s; {offered:.0}/s due for {} s over {} connections, {:.0}/s sent; goodput {goodput:.0}/s ({:.0} % \
         of the peak), {} refused with 429 or 503 and Retry-After ({} of \
         them on connections that then ended), {} other answers, {} connections lost; p50 {} and p99 \
         {} of what was served; at most {memory:.0} MiB; a WAL of {wal:.1} MiB; recovered in {:.1} s",
        arguments.secs,
        arguments.connections,
        answers.sent as f64 / seconds,
        share * 100.0,
        answers.refused,
        answers.closed,
        answers.wrong.len(),
        answers.lost,
        millis(answers.p50),
        millis(answers.p99),
        recovery.as_secs_f64()
    );
    let mut misses = Vec::new();
    if share < GOODPUT {
        misses.push("the goodput is below 80 %".to_owned());
    }
    if let Some(wrong) = answers.wrong.first() {
        misses.push(format!(
            "an answer is neither a success nor a refusal with Retry-After: {wrong}"
        ));
    }
    if answers.lost > 0 {
        misses.push("connections were closed without an answer".to_owned());
    }
    if memory >= MOST_MIB {
        misses.push("it takes 512 MiB or more".to_owned());
    }
    if recovery >= RECOVERY {
        misses.push("the recovery takes 5 s or more".to_owned());
    }
    if misses.is_empty() {
        return Ok(format!("{figures}."));
    }
    Err(Failure::new(format!("{} ({figures})", misses.join("; "))))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_has_recovered_when_it_is_as_fast_as_it_stays() {
        let paces = |rates: &[f64]| -> Vec<(Duration, f64)> {
            let at = (1..).map(|number| Duration::from_millis(500 * number));
            at.zip(rates.iter().copied()).collect()
        };
        let (after, settled) = recovery(&paces(&[10.0, 50.0, 95.0, 101.0, 100.0, 99.0])).unwrap();
        assert_eq!((after, settled), (Duration::from_millis(1500), 100.0));
        assert!(recovery(&[]).is_err());
    }
}
