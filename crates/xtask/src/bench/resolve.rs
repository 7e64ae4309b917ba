//! Resolving names to subjects under load, over directories of growing size.

use serde_json::json;

use super::bench_store::BenchStore;
use super::load::Script;
use super::report::{self, Goal, Row};
use super::rounds::{Rounds, Series};
use crate::failure::{Context, Failure, Outcome};
use crate::http::{Connection, Request};
use crate::product::{Bootstrap, Server};
use crate::{Engine, clock};

/// LIMIT: names of one request (specification §8).
const NAMES: usize = 256;
/// LIMIT: lines of a chunk.
const CHUNK: usize = 500;
/// So many different requests are sent in turn.
const REQUESTS: usize = 64;
const CONNECTIONS: usize = 16;

/// Measure the resolution of 256 names against directories that an import filled
#[derive(clap::Args)]
pub struct Arguments {
    #[command(flatten)]
    rounds: Rounds,
    /// How many users the directory holds, in growing order
    #[arg(long, value_delimiter = ',', default_value = "1000,10000,100000")]
    subjects: Vec<usize>,
}

pub fn run(arguments: &Arguments) -> Outcome {
    if !arguments.subjects.is_sorted() || arguments.subjects.first().is_none_or(|size| *size < NAMES) {
        return Err(Failure::new("--subjects grows, and begins at 256 or more"));
    }
    let measured = arguments
        .rounds
        .each("resolve", |place| measure(arguments, place))?;
    arguments.rounds.conclude(
        "Benchmark: the directory",
        "Load generator (one thread) and server share the cores. Users are imported in chunks of 500 lines; each request \
         asks for 256 names that are spread over the whole directory.",
        &report::table(measured.engines.iter().flatten()),
        &measured,
    )
}

fn measure(arguments: &Arguments, place: &BenchStore) -> Outcome<Vec<Row>> {
    let bootstrap = place.installation.initialize()?;
    let (mut rows, mut known) = (Vec::new(), 0);
    for size in &arguments.subjects {
        let server = place.installation.serve()?;
        rows.push(fill(&server, &bootstrap, place.engine, known..*size)?);
        known = *size;
        let script = Script::new((0..REQUESTS).map(|request| question(&bootstrap, request, *size)));
        rows.extend(load_rounds(arguments, place, &server, &script, *size)?);
        server.stop()?;
    }
    Ok(rows)
}

fn login_name(number: usize) -> String {
    format!("person.{number}@benchmark.test")
}

/// Asks for 256 names that are spread over the whole directory.
fn question(bootstrap: &Bootstrap, request: usize, size: usize) -> Vec<u8> {
    let number = |place: usize| (place * size / NAMES + request * 7) % size;
    let subjects: Vec<_> = (0..NAMES)
        .map(|place| json!({ "name": login_name(number(place)) }))
        .collect();
    let path = bootstrap.path("llm-gateway/subjects/resolve");
    Request::new("POST", path, &bootstrap.token)
        .with_body(json!({ "subjects": subjects }))
        .bytes()
}

/// Imports users of these numbers; returns how many a second, and how long the swap took.
fn fill(
    server: &Server,
    bootstrap: &Bootstrap,
    engine: Engine,
    numbers: std::ops::Range<usize>,
) -> Outcome<Row> {
    let mut connection = Connection::new(server.address);
    let (from, to) = (numbers.start, numbers.end);
    let write = |rest: &str, key: &str, mut body: serde_json::Value| {
        body["reason"] = "benchmark".into();
        body["idempotencyKey"] = format!("benchmark-{to}-{key}").into();
        Request::new("POST", bootstrap.path(rest), &bootstrap.token).with_body(body)
    };
    let start = clock::now();
    let open = write(
        "directory/imports",
        "open",
        json!({ "format": "jsonl", "mode": "merge" }),
    );
    let opened = connection.fetch(&open)?;
    let import = opened["import"]["id"]
        .as_str()
        .context("an import without an id")?;
    let numbers: Vec<usize> = numbers.collect();
    for (sequence, part) in (1..).zip(numbers.chunks(CHUNK)) {
        let lines: Vec<String> = part
            .iter()
            .map(|number| json!({ "type": "user", "loginName": login_name(*number) }).to_string())
            .collect();
        let path = bootstrap.path(&format!("directory/imports/{import}/chunks?sequence={sequence}"));
        let mut chunk = Request::new("POST", path, &bootstrap.token);
        chunk.headers = vec![
            ("Idempotency-Key", format!("benchmark-{to}-{sequence}")),
            ("X-Reason", "benchmark".to_owned()),
        ];
        chunk.content = Some(("application/x-ndjson", lines.join("\n").into_bytes()));
        connection.fetch(&chunk)?;
    }
    let apply = write(
        &format!("directory/imports/{import}/apply"),
        "apply",
        json!({ "confirm": true }),
    );
    let swap = clock::now();
    connection.fetch(&apply)?;
    eprintln!(
        "{}: {to} users; the swap took {:.1} ms",
        engine.name(),
        swap.elapsed().as_secs_f64() * 1e3
    );
    #[expect(clippy::cast_precision_loss, reason = "some millions are exact")]
    let rate = (to - from) as f64 / start.elapsed().as_secs_f64();
    let name = format!("import of users {from} to {to}");
    Ok(Row::new(&name, engine.name(), "/s", Goal::None, vec![rate]))
}

fn load_rounds(
    arguments: &Arguments,
    place: &BenchStore,
    server: &Server,
    script: &Script,
    size: usize,
) -> Outcome<Vec<Row>> {
    let mut series = Series::default();
    let rounds = &arguments.rounds;
    for _ in 0..rounds.count {
        rounds.send(place, server, CONNECTIONS, script, &mut series)?;
    }
    let name = format!("resolve {NAMES} of {size} names, {CONNECTIONS} connections");
    let row = |what: &str, goal, values: &[f64]| {
        let name = format!("{what}, {size} subjects");
        Row::new(&name, place.engine.name(), " ms", goal, values.to_vec())
    };
    let cpu: Vec<f64> = series.cpu.iter().map(|micros| micros / 1e3).collect();
    Ok(vec![
        series.row(&name, place.engine, Goal::None),
        row("p99", Goal::AtMost(20.0), &series.p99),
        row("server CPU a request", Goal::AtMost(1.0), &cpu),
    ])
}
