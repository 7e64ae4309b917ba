//! Decisions under load: judging by the server's own histogram, and answers beside the disk's raw speed.

mod growth;
mod histogram;
pub mod material;

use std::path::{Path, PathBuf};
use std::time::Duration;

use super::load::{self, Script};
use super::machine;
use super::place::{self, Place};
use super::report::{self, Goal, Row, median};
use crate::Engine;
use crate::failure::{Context, Failure, Outcome};
use crate::postgres::{self, Binaries};
use crate::product::{self, Bootstrap, Server};

/// Measure decisions: 10 to 1 000 policies, 1 to 1 000 events a request, durable and buffered
#[derive(clap::Args)]
pub struct Arguments {
    /// The engines to measure
    #[arg(long, value_enum, default_value_t = Engine::Both)]
    engine: Engine,
    /// How often everything is measured; the table shows medians
    #[arg(long, default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..))]
    rounds: u32,
    /// How long each load lasts, in seconds
    #[arg(long, default_value_t = 3, value_parser = clap::value_parser!(u64).range(1..))]
    secs: u64,
    /// How many policies there are, in growing order
    #[arg(long, value_delimiter = ',', default_value = "10,100,1000")]
    policies: Vec<usize>,
    /// Also write the table, with date, machine and versions, to this file
    #[arg(long)]
    write: Option<PathBuf>,
    /// Measure this binary instead of building one with the release profile
    #[arg(long)]
    binary: Option<PathBuf>,
}

/// What is sent: events of one request, how they are recorded, over so many connections.
#[derive(Clone, Copy)]
struct Load {
    events: usize,
    record: &'static str,
    connections: usize,
}

const fn load(events: usize, record: &'static str, connections: usize) -> Load {
    Load {
        events,
        record,
        connections,
    }
}

/// A request of 1 000 events is half a megabyte: few connections send such.
const LOADS: [Load; 7] = [
    load(1, "durable", 1),
    load(1, "buffered", 64),
    load(1, "durable", 64),
    load(10, "buffered", 16),
    load(10, "durable", 16),
    load(1000, "buffered", 4),
    load(1000, "durable", 4),
];

/// The rounds' figures of one load.
#[derive(Default)]
struct Series {
    rates: Vec<f64>,
    p50: Vec<f64>,
    p99: Vec<f64>,
    cpu: Vec<f64>,
    /// p99 beside that of a raw sync of the same round.
    syncs: Vec<f64>,
    judged_p99: Vec<f64>,
}

pub fn run(arguments: &Arguments) -> Outcome {
    if !arguments.policies.is_sorted() || arguments.policies.first().is_none_or(|count| *count < 10) {
        return Err(Failure::new("--policies grows, and begins at 10 or more"));
    }
    let binary = arguments
        .binary
        .clone()
        .map_or_else(|| product::build("release"), Ok)?;
    let postgres = if arguments.engine.has_postgres() {
        Some(postgres::find_or_install()?)
    } else {
        None
    };
    let measured = place::each(
        arguments.engine,
        "decisions",
        &binary,
        postgres.as_ref(),
        |place| measure(arguments, place),
    )?;
    let mut rows: Vec<Row> = measured.into_iter().flatten().collect();
    rows.extend(growth::measure(
        &binary,
        arguments.rounds,
        Duration::from_secs(arguments.secs),
    )?);
    let table = report::table(&rows);
    println!("{table}");
    match &arguments.write {
        Some(path) => write(path, arguments, postgres.as_ref(), &table),
        None => Ok(()),
    }
}

fn write(path: &Path, arguments: &Arguments, postgres: Option<&Binaries>, table: &str) -> Outcome {
    let mut facts = machine::describe();
    facts.extend(postgres.map(|binaries| format!("PostgreSQL: {}", binaries.version)));
    let facts = facts.join("\n- ");
    let text = format!(
        "# Benchmark: decisions\n\n\
         Written by `cargo xtask bench decisions --rounds {} --secs {} --write docs/benchmarks-decisions.md`.\n\n\
         - {facts}\n\n\
         {}\n\n\
         {table}",
        arguments.rounds,
        arguments.secs,
        material::EXPLANATION
    );
    std::fs::write(path, text).context(format_args!("cannot write {}", path.display()))
}

fn measure(arguments: &Arguments, place: &Place) -> Outcome<Vec<Row>> {
    let engine = place.engine;
    let bootstrap = place.installation.initialize()?;
    let (mut rows, mut made, mut syncs) = (Vec::new(), 0, Vec::new());
    for count in &arguments.policies {
        let server = place.installation.serve()?;
        material::add_policies(&server, &bootstrap, made..*count)?;
        made = *count;
        let mut series: Vec<_> = LOADS.iter().map(|_| Series::default()).collect();
        for round in 1..=arguments.rounds {
            for (load, series) in LOADS.iter().zip(&mut series) {
                let raw = machine::measure_syncs(place.disk(), Duration::from_millis(500))?;
                let raw_ms = raw.p99.as_secs_f64() * 1e3;
                syncs.push(raw_ms);
                one_load(
                    arguments, &server, place, &bootstrap, *load, *count, raw_ms, series,
                )?;
                eprintln!(
                    "{} round {round}/{}: {count} policies, {} events {}, {} connections: {}/s, p99 {} ms, judged {} µs",
                    engine.name(),
                    arguments.rounds,
                    load.events,
                    load.record,
                    load.connections,
                    report::figure(series.rates.last().copied().unwrap_or_default()),
                    report::figure(series.p99.last().copied().unwrap_or_default()),
                    report::figure(series.judged_p99.last().copied().unwrap_or_default()),
                );
            }
        }
        server.stop()?;
        for (load, series) in LOADS.iter().zip(&series) {
            rows.extend(series.rows(engine, *load, *count));
        }
    }
    rows.insert(
        0,
        Row::new("raw fdatasync, p99", engine.name(), " ms", Goal::None, syncs),
    );
    Ok(rows)
}

#[expect(
    clippy::too_many_arguments,
    reason = "the parts of one measurement, used once"
)]
fn one_load(
    arguments: &Arguments,
    server: &Server,
    place: &Place,
    bootstrap: &Bootstrap,
    load: Load,
    policies: usize,
    raw_ms: f64,
    series: &mut Series,
) -> Outcome {
    let script = Script::new(material::requests(bootstrap, load.events, load.record, policies));
    let cpu = || place.spent(server).whole();
    load::send(
        server.address,
        load.connections,
        Duration::from_millis(500),
        &script,
    )?;
    let (before, judged) = (cpu(), histogram::read(server)?);
    let duration = Duration::from_secs(arguments.secs);
    let measured = load::send(server.address, load.connections, duration, &script)?;
    let (after, judged_after) = (cpu(), histogram::read(server)?);
    let p99 = measured.p99.as_secs_f64() * 1e3;
    #[expect(clippy::cast_precision_loss, reason = "some millions are exact")]
    if let (Some(before), Some(after)) = (before, after) {
        let spent = after.saturating_sub(before).as_secs_f64() * 1e6;
        series.cpu.push(spent / measured.answers as f64);
    }
    series.rates.push(measured.per_second());
    series.p50.push(measured.p50.as_secs_f64() * 1e3);
    series.p99.push(p99);
    series.syncs.push(p99 / raw_ms);
    series
        .judged_p99
        .extend(judged_after.since(&judged).quantile(0.99).map(|secs| secs * 1e6));
    Ok(())
}

impl Series {
    fn rows(&self, engine: Engine, load: Load, policies: usize) -> Vec<Row> {
        let Load {
            events,
            record,
            connections,
        } = load;
        let of = format!("{policies} policies, {events} events, {record}, {connections} connections");
        let mut all = Row::new(&of, engine.name(), "/s", Goal::None, self.rates.clone());
        all.latencies = Some((median(&self.p50), median(&self.p99)));
        all.cpu = report::figure(median(&self.cpu));
        let row = |what: &str, unit, goal, values: &[f64]| {
            Row::new(
                &format!("{what}: {of}"),
                engine.name(),
                unit,
                goal,
                values.to_vec(),
            )
        };
        let mut rows = vec![all];
        if (events, connections) == (1, 64) {
            let judged = Goal::AtMost(100.0);
            rows.push(row("judging one event, p99", " µs", judged, &self.judged_p99));
            rows.push(match record {
                "durable" => row("p99 over raw fdatasync p99", " ×", Goal::AtMost(3.0), &self.syncs),
                _ => row("p99", " ms", Goal::AtMost(5.0), &self.p99),
            });
        }
        rows
    }
}
