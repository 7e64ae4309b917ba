//! What a fleet of devices costs that say every five minutes that they are there.

use std::time::Duration;

use super::bench_store::BenchStore;
use super::load::quantile;
use super::report::{self, Goal, Row};
use super::rounds::Rounds;
use crate::clock;
use crate::failure::{Context, Failure, Outcome};
use crate::http::Connection;
use crate::product::{Bootstrap, Server};
use crate::traffic::machine::Machine;
use crate::traffic::maker::Maker;

/// How often a device says that it is there. Units: seconds.
const INTERVAL: f64 = 300.0;
/// Machines are enrolled over so many connections.
const CONNECTIONS: usize = 8;
/// The server writes no heartbeat that comes sooner after the one before.
const EARLY: Duration = Duration::from_secs(11);

/// Measure the server's processor time while enrolled devices send heartbeats at their own pace
#[derive(clap::Args)]
pub struct Arguments {
    #[command(flatten)]
    rounds: Rounds,
    /// How many devices there are
    #[arg(long, default_value_t = 10_000, value_parser = clap::value_parser!(u32).range(500..=100_000))]
    devices: u32,
}

pub fn run(arguments: &Arguments) -> Outcome {
    let measured = arguments
        .rounds
        .each("fleet", |place| measure(arguments, place))?;
    arguments.rounds.conclude(
        "Benchmark: a fleet of devices",
        "Each device has a key of its own and brings a new proof with every heartbeat; the proofs are signed on the same cores, which the \
         processor time does not count. A hundred percent is one core.",
        &report::table(measured.engines.iter().flatten()),
        &measured,
    )
}

fn measure(arguments: &Arguments, place: &BenchStore) -> Outcome<Vec<Row>> {
    let bootstrap = place.installation.initialize()?;
    let server = place.installation.serve()?;
    let count = arguments.devices as usize;
    let start = clock::now();
    let machines = enrol(&server, &bootstrap, count)?;
    let took = start.elapsed().as_secs_f64();
    #[expect(clippy::cast_precision_loss, reason = "some hundred thousand are exact")]
    let per_second = count as f64 / took;
    let engine = place.engine.name();
    let enrolled = Row::new(
        "enrolments with token and first heartbeat",
        engine,
        "/s",
        Goal::None,
        vec![per_second],
    );
    std::thread::sleep(EARLY);
    let mut connection = Connection::new(server.address);
    let (mut shares, mut middles, mut slowest) = (Vec::new(), Vec::new(), Vec::new());
    let mut next = 0;
    for round in 1..=arguments.rounds.count {
        let (before, begin) = (place.spent(&server), clock::now());
        let mut latencies = Vec::new();
        while begin.elapsed() < arguments.rounds.length() {
            let machine = &machines[next % machines.len()];
            let number = u32::try_from(2 + next / machines.len()).unwrap_or(u32::MAX);
            let request = machine.heartbeat(&bootstrap, &format!("beat-{next}"), number);
            let sent = clock::now();
            let answer = connection.fetch(&request)?;
            latencies.push(sent.elapsed());
            if answer["nextHeartbeatSeconds"].as_u64().is_none() {
                return Err(Failure::new(format!("a heartbeat was answered {answer}")));
            }
            next += 1;
            let due = Duration::from_secs_f64(
                f64::from(u32::try_from(latencies.len()).unwrap_or(u32::MAX)) * INTERVAL
                    / f64::from(arguments.devices),
            );
            std::thread::sleep(due.saturating_sub(begin.elapsed()));
        }
        let (after, lasted) = (place.spent(&server), begin.elapsed());
        let spent = |after: Option<Duration>, before: Option<Duration>| Some(after?.saturating_sub(before?));
        let whole = spent(after.server, before.server).context("there is no /proc")?
            + spent(after.postgres, before.postgres).unwrap_or_default();
        shares.push(100.0 * whole.as_secs_f64() / lasted.as_secs_f64());
        latencies.sort_unstable();
        middles.push(quantile(&latencies, 50).as_secs_f64() * 1e3);
        slowest.push(quantile(&latencies, 99).as_secs_f64() * 1e3);
        eprintln!(
            "{engine} round {round}/{}: {} heartbeats, {} % of a core",
            arguments.rounds.count,
            latencies.len(),
            report::figure(shares.last().copied().unwrap_or_default())
        );
    }
    server.stop()?;
    let mut beats = Row::new(
        &format!("heartbeats of {count} devices, of one core"),
        engine,
        " %",
        Goal::AtMost(25.0),
        shares,
    );
    beats.latencies = Some((report::median(&middles), report::median(&slowest)));
    Ok(vec![enrolled, beats])
}

/// Enrols so many machines, each by a token of its own.
fn enrol(server: &Server, bootstrap: &Bootstrap, count: usize) -> Outcome<Vec<Machine>> {
    let part = |first: usize| {
        let mut connection = Connection::new(server.address);
        let mut machines = Vec::new();
        for number in (first..count).step_by(CONNECTIONS) {
            let mut maker = Maker {
                connection: &mut connection,
                bootstrap,
                unique: &format!("bench-{number}"),
                archive: &|_, _| Err(Failure::new("no skill is made here")),
                log_bytes: &|| 0,
                sent: 0,
            };
            let machine = Machine::enrol(&mut maker, false)?;
            machine.call(&mut maker)?;
            machines.push(machine);
            if first == 0 && machines.len().is_multiple_of(250) {
                eprintln!(
                    "about {} of {count} machines are enrolled",
                    machines.len() * CONNECTIONS
                );
            }
        }
        Ok(machines)
    };
    let parts: Vec<Outcome<Vec<Machine>>> = std::thread::scope(|scope| {
        let started: Vec<_> = (0..CONNECTIONS)
            .map(|first| scope.spawn(move || part(first)))
            .collect();
        started
            .into_iter()
            .map(|thread| {
                thread
                    .join()
                    .unwrap_or_else(|_| Err(Failure::new("a thread ended")))
            })
            .collect()
    });
    let mut all = Vec::new();
    for part in parts {
        all.extend(part?);
    }
    Ok(all)
}
