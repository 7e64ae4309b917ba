//! Decisions under load: judging by the server's own histogram, and answers beside the disk's raw speed.

mod growth;
mod histogram;
pub mod material;

use std::time::Duration;

use super::bench_store::BenchStore;
use super::load::Script;
use super::machine;
use super::report::{self, Goal, Row};
use super::rounds::{Rounds, Series};
use crate::Engine;
use crate::failure::{Failure, Outcome};

/// Measure decisions: 10 to 1 000 policies, 1 to 1 000 events a request, durable and buffered
#[derive(clap::Args)]
pub struct Arguments {
    #[command(flatten)]
    rounds: Rounds,
    /// How many policies there are, in growing order
    #[arg(long, value_delimiter = ',', default_value = "10,100,1000")]
    policies: Vec<usize>,
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
struct Figures {
    series: Series,
    /// p99 beside that of a raw sync of the same round.
    syncs: Vec<f64>,
    judged_p99: Vec<f64>,
}

pub fn run(arguments: &Arguments) -> Outcome {
    if !arguments.policies.is_sorted() || arguments.policies.first().is_none_or(|count| *count < 10) {
        return Err(Failure::new("--policies grows, and begins at 10 or more"));
    }
    let rounds = &arguments.rounds;
    let measured = rounds.each("decisions", |place| measure(arguments, place))?;
    let grown = growth::measure(&measured.binary, rounds.count, rounds.length())?;
    let rows = measured.engines.iter().flatten().chain(&grown);
    let table = report::table(rows);
    rounds.conclude("Benchmark: decisions", material::EXPLANATION, &table, &measured)
}

fn measure(arguments: &Arguments, place: &BenchStore) -> Outcome<Vec<Row>> {
    let engine = place.engine;
    let bootstrap = place.installation.initialize()?;
    let (mut rows, mut made, mut syncs) = (Vec::new(), 0, Vec::new());
    for count in &arguments.policies {
        let server = place.installation.serve()?;
        material::add_policies(&server, &bootstrap, made..*count)?;
        made = *count;
        let mut figures: Vec<_> = LOADS.iter().map(|_| Figures::default()).collect();
        for round in 1..=arguments.rounds.count {
            for (load, figures) in LOADS.iter().zip(&mut figures) {
                let raw = machine::measure_syncs(place.disk(), Duration::from_millis(500))?;
                let raw_ms = raw.p99.as_secs_f64() * 1e3;
                syncs.push(raw_ms);
                let requests = material::requests(&bootstrap, load.events, load.record, *count);
                let (script, judged) = (Script::new(requests), histogram::read(&server)?);
                let series = &mut figures.series;
                let rounds = &arguments.rounds;
                rounds.send(place, &server, load.connections, &script, series)?;
                let judged = histogram::read(&server)?.since(&judged).quantile(0.99);
                rounds.say(engine, round, &load.name(*count), series);
                figures.syncs.extend(series.p99.last().map(|p99| p99 / raw_ms));
                figures.judged_p99.extend(judged.map(|secs| secs * 1e6));
            }
        }
        server.stop()?;
        for (load, figures) in LOADS.iter().zip(&figures) {
            rows.extend(figures.rows(engine, *load, *count));
        }
    }
    let raw = Row::new("raw fdatasync, p99", engine.name(), " ms", Goal::None, syncs);
    rows.insert(0, raw);
    Ok(rows)
}

impl Load {
    fn name(self, policies: usize) -> String {
        let Self {
            events,
            record,
            connections,
        } = self;
        format!("{policies} policies, {events} events, {record}, {connections} connections")
    }
}

impl Figures {
    fn rows(&self, engine: Engine, load: Load, policies: usize) -> Vec<Row> {
        let of = load.name(policies);
        let row = |what: &str, unit, goal, values: &[f64]| {
            let name = format!("{what}: {of}");
            Row::new(&name, engine.name(), unit, goal, values.to_vec())
        };
        let mut rows = vec![self.series.row(&of, engine, Goal::None)];
        if (load.events, load.connections) == (1, 64) {
            let judged = Goal::AtMost(100.0);
            rows.push(row("judging one event, p99", " µs", judged, &self.judged_p99));
            rows.push(match load.record {
                "durable" => row("p99 over raw fdatasync p99", " ×", Goal::AtMost(3.0), &self.syncs),
                _ => row("p99", " ms", Goal::AtMost(5.0), &self.series.p99),
            });
        }
        rows
    }
}
