//! Lists of MCP sessions under load, by kind of filter, with the plans by which the engines read them.

mod loads;

use std::path::{Path, PathBuf};
use std::time::Duration;

use super::load::{self, Script};
use super::machine;
use super::place::{self, Place};
use super::report::{self, Row, median};
use crate::failure::{Context, Outcome};
use crate::http::Request;
use crate::postgres::{self, Binaries};
use crate::product::{self, Bootstrap, Server, Store};
use crate::{Engine, clock, process};
use loads::Load;

const CONNECTIONS: usize = 16;

/// Measure lists of a million MCP sessions, by kind of filter
#[derive(clap::Args)]
pub struct Arguments {
    /// The engines to measure
    #[arg(long, value_enum, default_value_t = Engine::Both)]
    engine: Engine,
    /// How often everything is measured; the table shows medians
    #[arg(long, default_value_t = 3, value_parser = clap::value_parser!(u32).range(1..))]
    rounds: u32,
    /// How long each load lasts, in seconds
    #[arg(long, default_value_t = 2, value_parser = clap::value_parser!(u64).range(1..))]
    secs: u64,
    /// How many sessions there are
    #[arg(long, default_value_t = 1_000_000)]
    sessions: usize,
    /// The cargo profile of the programs that are built
    #[arg(long, default_value = "release")]
    profile: String,
    /// Also write table and plans, with date, machine and versions, to this file
    #[arg(long)]
    write: Option<PathBuf>,
}

/// What one engine was measured to do.
struct Measured {
    rows: Vec<Row>,
    plans: String,
}

pub fn run(arguments: &Arguments) -> Outcome {
    let binary = product::build(&arguments.profile)?;
    let filler = build_filler(&arguments.profile)?;
    let postgres = if arguments.engine.has_postgres() {
        Some(postgres::find_or_install()?)
    } else {
        None
    };
    let measured = place::each(
        arguments.engine,
        "sessions",
        &binary,
        postgres.as_ref(),
        |place| measure(arguments, place, &filler),
    )?;
    let (mut rows, mut plans) = (Vec::new(), String::new());
    for (engine, measured) in arguments.engine.each().into_iter().zip(measured) {
        rows.extend(measured.rows);
        plans.extend(["\n## Plans of ", engine.name(), "\n\n```\n"]);
        plans.extend([measured.plans.trim_end(), "\n```\n"]);
    }
    let table = report::table(&rows);
    println!("{plans}\n{table}");
    match &arguments.write {
        Some(path) => write(path, arguments, postgres.as_ref(), &format!("{table}{plans}")),
        None => Ok(()),
    }
}

fn write(path: &Path, arguments: &Arguments, postgres: Option<&Binaries>, figures: &str) -> Outcome {
    let mut facts = machine::describe();
    facts.extend(postgres.map(|binaries| format!("PostgreSQL: {}", binaries.version)));
    let text = format!(
        "# Benchmark: lists of MCP sessions\n\n\
         Written by `cargo xtask bench sessions --engine {} --sessions {} --rounds {} --secs {} --write \
         docs/benchmarks-sessions.md`.\n\n\
         - {}\n\n\
         {} sessions of one organization: 40 clients, 2 000 accounts, 20 000 users, 30 sets of scopes, a tenth of them \
         active. {CONNECTIONS} connections; load generator (one thread) and server share the cores. A ratio of 1 or more \
         is a goal that is reached; where two figures of processor time are given, the second is PostgreSQL's.\n\n\
         {figures}",
        arguments.engine.word(),
        arguments.sessions,
        arguments.rounds,
        arguments.secs,
        facts.join("\n- "),
        report::figure(f64::from(u32::try_from(arguments.sessions).unwrap_or(u32::MAX))),
    );
    std::fs::write(path, text).context(format_args!("cannot write {}", path.display()))
}

/// Builds the program that fills the store: no operation opens sessions, and this crate knows no store.
fn build_filler(profile: &str) -> Outcome<PathBuf> {
    let package = ["--package", "provost-server", "--example", "fill_sessions"];
    let mut build = process::cargo();
    process::run(
        build
            .args(["build", "--quiet", "--profile", profile])
            .args(package),
    )?;
    Ok(process::target()
        .join(profile)
        .join("examples")
        .join("fill_sessions"))
}

fn measure(arguments: &Arguments, place: &Place, filler: &Path) -> Outcome<Measured> {
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
        let row = rounds(arguments, place, &server, load, &script).context(load.name)?;
        let (p50, p99) = row.latencies.unwrap_or_default();
        eprintln!(
            "{}: {:3.0} s: load {} of {}: {}: p50 {p50:.1} ms, p99 {p99:.1} ms, CPU {} µs",
            engine.name(),
            start.elapsed().as_secs_f64(),
            number + 1,
            all.len(),
            load.name,
            row.cpu
        );
        rows.push(row);
    }
    server.stop()?;
    Ok(Measured { rows, plans })
}

/// Sends a load in rounds.
fn rounds(
    arguments: &Arguments,
    place: &Place,
    server: &Server,
    load: &Load,
    script: &Script,
) -> Outcome<Row> {
    let (mut p50, mut p99) = (Vec::new(), Vec::new());
    let (mut cpu, mut postgres_cpu) = (Vec::new(), Vec::new());
    load::send(server.address, CONNECTIONS, Duration::from_millis(300), script)?;
    for _ in 0..arguments.rounds {
        let before = place.spent(server);
        let measured = load::send(
            server.address,
            CONNECTIONS,
            Duration::from_secs(arguments.secs),
            script,
        )?;
        let after = place.spent(server);
        #[expect(clippy::cast_precision_loss, reason = "some millions are exact")]
        let per_request = |after: Option<Duration>, before: Option<Duration>| {
            Some(after?.saturating_sub(before?).as_secs_f64() * 1e6 / measured.answers as f64)
        };
        p50.push(measured.p50.as_secs_f64() * 1e3);
        p99.push(measured.p99.as_secs_f64() * 1e3);
        cpu.extend(per_request(after.server, before.server));
        postgres_cpu.extend(per_request(after.postgres, before.postgres));
    }
    let latencies = (median(&p50), median(&p99));
    let mut row = Row::new(
        load.name,
        place.engine.name(),
        " ms",
        load.goals.on(place.engine),
        p99,
    );
    row.latencies = Some(latencies);
    row.cpu = report::figure(median(&cpu));
    if !postgres_cpu.is_empty() {
        row.cpu = format!("{} + {}", row.cpu, report::figure(median(&postgres_cpu)));
    }
    Ok(row)
}

fn question(bootstrap: &Bootstrap, query: &str) -> Vec<u8> {
    let path = bootstrap.path(&format!("mcp/sessions{query}"));
    Request::get(path, &bootstrap.token).bytes()
}
