//! Lists of MCP sessions under load, by kind of filter, with the plans by which the engines read them.

mod loads;

use std::path::Path;

use super::bench_store::BenchStore;
use super::load::Script;
use super::report::{self, Row};
use super::rounds::{Rounds, Series};
use crate::failure::{Context, Outcome};
use crate::http::Request;
use crate::product::{self, Bootstrap, Store};
use crate::{clock, process};

const CONNECTIONS: usize = 16;

/// Measure lists of a million MCP sessions, by kind of filter
#[derive(clap::Args)]
pub struct Arguments {
    #[command(flatten)]
    rounds: Rounds,
    /// How many sessions there are
    #[arg(long, default_value_t = 1_000_000)]
    sessions: usize,
}

/// What one engine was measured to do.
struct EngineFigures {
    rows: Vec<Row>,
    plans: String,
}

pub fn run(arguments: &Arguments) -> Outcome {
    // No operation opens sessions, and this crate knows no store: a program of the product's fills it.
    let filler = product::example("provost-server", "fill_sessions", &[])?;
    let measured = arguments
        .rounds
        .each("sessions", |place| measure(arguments, place, &filler))?;
    let mut plans = String::new();
    for (engine, measured) in arguments.rounds.engine.each().into_iter().zip(&measured.engines) {
        plans.extend(["\n## Plans of ", engine.name(), "\n\n```\n"]);
        plans.extend([measured.plans.trim_end(), "\n```\n"]);
    }
    let rows = measured.engines.iter().flat_map(|measured| &measured.rows);
    arguments.rounds.conclude(
        "Benchmark: lists of MCP sessions",
        &format!(
            "{} sessions of one organization: 40 clients, 2 000 accounts, 20 000 users, 30 sets of scopes, a tenth of them \
             active. {CONNECTIONS} connections; load generator (one thread) and server share the cores.",
            report::figure(f64::from(u32::try_from(arguments.sessions).unwrap_or(u32::MAX))),
        ),
        &format!("{}{plans}", report::table(rows)),
        &measured,
    )
}

fn measure(arguments: &Arguments, place: &BenchStore, filler: &Path) -> Outcome<EngineFigures> {
    let engine = place.engine;
    let database = match &place.installation.store {
        Store::Sqlite { data } => data.join("provost.db").display().to_string(),
        Store::Postgres { url, .. } => url.clone(),
    };
    let bootstrap = place.installation.initialize()?;
    let call = |task: &str| {
        let mut program = std::process::Command::new(filler);
        program.args([task, engine.word(), &database, &bootstrap.organization]);
        process::output(program.arg(arguments.sessions.to_string()))
    };
    let start = clock::now();
    eprintln!("{}: filling {} sessions", engine.name(), arguments.sessions);
    call("fill")?;
    eprintln!(
        "{}: filled in {:.0} s",
        engine.name(),
        start.elapsed().as_secs_f64()
    );
    let plans = call("plans")?;
    let server = place.installation.serve()?;
    let all = loads::all();
    let mut rows = Vec::new();
    for (number, load) in all.iter().enumerate() {
        let script = Script::new(load.queries.iter().map(|query| question(&bootstrap, query)));
        let (rounds, mut series) = (&arguments.rounds, Series::default());
        for round in 1..=rounds.count {
            let sent = rounds.send(place, &server, CONNECTIONS, &script, &mut series);
            sent.context(load.name)?;
            let name = format!("load {} of {}: {}", number + 1, all.len(), load.name);
            rounds.say(engine, round, &name, &series);
        }
        let goal = load.goals.on(engine);
        rows.push(series.row_of(load.name, engine, " ms", goal, series.p99.clone()));
    }
    server.stop()?;
    Ok(EngineFigures { rows, plans })
}

fn question(bootstrap: &Bootstrap, query: &str) -> Vec<u8> {
    let path = bootstrap.path(&format!("mcp/sessions{query}"));
    Request::get(path, &bootstrap.token).bytes()
}
