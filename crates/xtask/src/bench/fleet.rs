//! What a fleet of devices costs that say every five minutes that they are there.
//!
//! Nothing about a device is made easier: each has a key and a token of its own, signs a new proof for every heartbeat and opens a
//! connection for it, because none is kept for five minutes. They call as often as so many devices do. `--faster` has them call more
//! often, and then the share of a core is computed from the time that a request takes, and the page says so.
//!
//! Beside it stands what as many requests cost that do nothing, and what the server does when nobody calls.

use std::time::Duration;

use serde_json::Value;

use super::bench_store::{BenchStore, Spent};
use super::load::quantile;
use super::report::{self, Goal, Row};
use super::rounds::{Rounds, Series};
use crate::clock;
use crate::failure::{Context, Failure, Outcome};
use crate::http::{Connection, Request};
use crate::product::{Bootstrap, Server};
use crate::traffic::machine::Machine;
use crate::traffic::maker::Maker;

/// How often a device says that it is there. Units: seconds.
const INTERVAL: f64 = 300.0;
/// Machines are enrolled over so many connections.
const CONNECTIONS: usize = 8;
/// The server writes no heartbeat that comes sooner after the one before.
const EARLY: Duration = Duration::from_secs(11);
/// What a load may fall short of its pace; a generator that cannot keep up measures something else.
const KEPT_PACE: f64 = 0.95;

/// Measure the server's processor time while enrolled devices send heartbeats at their own pace
#[derive(clap::Args)]
pub struct Arguments {
    #[command(flatten)]
    rounds: Rounds,
    /// How many devices there are
    #[arg(long, default_value_t = 10_000, value_parser = clap::value_parser!(u32).range(500..=100_000))]
    devices: u32,
    /// Have them call so many times as often; the share of a core is then computed from the time of a request
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=25))]
    faster: u32,
}

impl Arguments {
    /// How many heartbeats a second so many devices send.
    fn per_second(&self) -> f64 {
        f64::from(self.devices) / INTERVAL
    }

    /// The share of a core in percent that requests of so many microseconds are, at the devices' own pace.
    fn share(&self, micros: f64) -> f64 {
        micros * self.per_second() / 1e4
    }
}

pub fn run(arguments: &Arguments) -> Outcome {
    let measured = arguments
        .rounds
        .each("fleet", |place| measure(arguments, place))?;
    let pace = match arguments.faster {
        1 => "sent at that pace".to_owned(),
        times => format!(
            "sent {times} times as fast: the shares are the processor time of a request, multiplied by the devices' own pace"
        ),
    };
    let explanation = format!(
        "{} devices that call every {INTERVAL} s are {} heartbeats a second, {pace}. Each device has a key and a token of its own, \
         signs a new proof for every heartbeat and opens a connection for it, without TLS; the proofs are signed on the same \
         cores, which the latencies hold and the processor time does not. The server's processor time is counted in hundredths of a second. \
         Rate limits are off: with them the machines of an organization call 400 times a second at most, and one enrolment token makes \
         10 devices a second. A hundred percent is one core.",
        report::figure(f64::from(arguments.devices)),
        report::figure(arguments.per_second()),
    );
    arguments.rounds.conclude(
        "Benchmark: a fleet of devices",
        &explanation,
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
    #[expect(clippy::cast_precision_loss, reason = "some hundred thousand are exact")]
    let enrolled = count as f64 / start.elapsed().as_secs_f64();
    std::thread::sleep(EARLY);

    let alive = Request {
        token: None,
        ..Request::get("/healthz", "")
    };
    let (mut rest, mut floor, mut beats) = (Vec::new(), Series::default(), Series::default());
    let mut next = 0;
    for round in 1..=arguments.rounds.count {
        rest.push(at_rest(arguments, place, &server)?);
        send(arguments, place, &server, &mut floor, |connection| {
            let answer = connection.send(&alive).map_err(|lost| Failure::new(lost.why))?;
            match answer.status {
                200 => Ok(()),
                _ => Err(Failure::new(format!("/healthz answered {}", answer.summary()))),
            }
        })?;
        let mut last = (0, Value::Null);
        send(arguments, place, &server, &mut beats, |connection| {
            let at = next % machines.len();
            let number = u32::try_from(2 + next / machines.len()).unwrap_or(u32::MAX);
            let request = machines[at].heartbeat(&bootstrap, &format!("beat-{next}"), number);
            next += 1;
            last = (at, connection.fetch(&request)?);
            Ok(())
        })?;
        must_be_kept(&server, &bootstrap, &machines[last.0], &last.1)?;
        eprintln!(
            "{} round {round}/{}: {} heartbeats a second, {} % of a core; at rest {} %",
            place.engine.name(),
            arguments.rounds.count,
            report::figure(beats.rates.last().copied().unwrap_or_default()),
            report::figure(arguments.share(beats.whole_cpu().last().copied().unwrap_or_default())),
            report::figure(rest.last().copied().unwrap_or_default()),
        );
    }
    server.stop()?;
    Ok(rows(arguments, place, enrolled, rest, &floor, &beats))
}

fn rows(
    arguments: &Arguments,
    place: &BenchStore,
    enrolled: f64,
    rest: Vec<f64>,
    floor: &Series,
    beats: &Series,
) -> Vec<Row> {
    let engine = place.engine;
    let plain = |name: &str, unit: &'static str, values: Vec<f64>| {
        Row::new(name, engine.name(), unit, Goal::None, values)
    };
    let shares = |series: &Series| -> Vec<f64> {
        let micros = series.whole_cpu();
        micros.into_iter().map(|micros| arguments.share(micros)).collect()
    };
    let pairs = beats.whole_cpu().into_iter().zip(floor.whole_cpu());
    let ratios = pairs
        .filter(|(_, floor)| *floor > 0.0)
        .map(|(beat, floor)| beat / floor);
    let name = format!(
        "heartbeats of {} devices, of one core",
        report::figure(f64::from(arguments.devices))
    );
    vec![
        plain(
            "enrolments, each with a token, a key and its first heartbeat",
            "/s",
            vec![enrolled],
        ),
        plain("the server when nobody calls, of one core", " %", rest),
        floor.row_of(
            "floor: as many requests to /healthz, of one core",
            engine,
            " %",
            Goal::None,
            shares(floor),
        ),
        beats.row_of(&name, engine, " %", Goal::AtMost(25.0), shares(beats)),
        plain("heartbeats sent", "/s", beats.rates.clone()),
        plain(
            "processor time of a heartbeat beside the floor's request",
            " ×",
            ratios.collect(),
        ),
    ]
}

/// Returns the share of a core in percent that the server takes while nobody calls.
fn at_rest(arguments: &Arguments, place: &BenchStore, server: &Server) -> Outcome<f64> {
    let (before, begin) = (place.spent(server), clock::now());
    std::thread::sleep(arguments.rounds.length());
    let (own, postgres) = used(&before, &place.spent(server))?;
    let whole = own + postgres.unwrap_or_default();
    Ok(100.0 * whole.as_secs_f64() / begin.elapsed().as_secs_f64())
}

/// Processor time of the server, and of the cluster where there is one.
fn used(before: &Spent, after: &Spent) -> Outcome<(Duration, Option<Duration>)> {
    let between = |before: Option<Duration>, after: Option<Duration>| Some(after?.saturating_sub(before?));
    let own = between(before.server, after.server).context("there is no /proc")?;
    Ok((own, between(before.postgres, after.postgres)))
}

/// Sends one request after the other at the devices' pace, each over a connection of its own.
fn send(
    arguments: &Arguments,
    place: &BenchStore,
    server: &Server,
    series: &mut Series,
    mut one: impl FnMut(&mut Connection) -> Outcome,
) -> Outcome {
    let due = arguments.per_second() * f64::from(arguments.faster);
    let (before, begin) = (place.spent(server), clock::now());
    let mut latencies = Vec::new();
    let mut sent = 0.0;
    while begin.elapsed() < arguments.rounds.length() {
        let start = clock::now();
        one(&mut Connection::new(server.address))?;
        latencies.push(start.elapsed());
        sent += 1.0;
        std::thread::sleep(Duration::from_secs_f64(sent / due).saturating_sub(begin.elapsed()));
    }
    let (own, postgres) = used(&before, &place.spent(server))?;
    let rate = sent / begin.elapsed().as_secs_f64();
    if rate < due * KEPT_PACE {
        return Err(Failure::new(format!(
            "{} requests a second were due and {} were sent: this is another load",
            report::figure(due),
            report::figure(rate)
        )));
    }
    let micros = |time: Duration| time.as_secs_f64() * 1e6 / sent;
    latencies.sort_unstable();
    series.rates.push(rate);
    series.p50.push(quantile(&latencies, 50).as_secs_f64() * 1e3);
    series.p99.push(quantile(&latencies, 99).as_secs_f64() * 1e3);
    series.cpu.push(micros(own));
    series.postgres_cpu.extend(postgres.map(micros));
    Ok(())
}

/// Refuses a heartbeat that was answered and not written: one that comes too early is no work.
fn must_be_kept(server: &Server, bootstrap: &Bootstrap, machine: &Machine, answer: &Value) -> Outcome {
    let request = Request::get(bootstrap.path(&machine.path()), &bootstrap.token);
    let shown = Connection::new(server.address).fetch(&request)?;
    let (kept, said) = (&shown["device"]["lastHeartbeatAt"], &answer["now"]);
    if kept.is_string() && kept == said {
        return Ok(());
    }
    Err(Failure::new(format!(
        "a heartbeat was answered {answer}, and the one that is kept is of {kept}"
    )))
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
