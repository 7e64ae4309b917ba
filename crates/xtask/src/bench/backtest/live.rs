//! The shipped server at work: events imported onto the disk, and live decisions without and with a backtest beside
//! them.

use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use serde_json::{Value, json};

use super::{Line, ProgramOutput};
use crate::bench::bench_store::BenchStore;
use crate::bench::decisions::material;
use crate::bench::load::{self, SERIAL, Script};
use crate::bench::machine;
use crate::bench::report::Goal;
use crate::failure::{Context, Failure, Outcome};
use crate::http::{Connection, Request};
use crate::product::{Bootstrap, Server};
use crate::{Engine, clock};

/// Lines of one body, as many as an import takes, and how many different bodies there are.
const LINES: usize = 5_000;
const BODIES: usize = 8;
/// How long each load lasts.
const LOAD: Duration = Duration::from_secs(3);
const DAYS: u64 = 30;
const PART: &str = "The server at work (SQLite)";

/// Measures a server of this binary.
pub fn measure(said: &mut ProgramOutput, binary: &Path, rounds: u32, policies: usize) -> Outcome {
    let place = BenchStore::create("backtest-live", Engine::Sqlite, binary, None)?;
    let bootstrap = place.installation.initialize()?;
    let server = place.installation.serve()?;
    material::add_policies(&server, &bootstrap, 0..policies)?;
    import(said, rounds, &server, &bootstrap)?;
    decide(said, rounds, policies, &server, &bootstrap)?;
    server.stop()?;
    place.remove()
}

/// Imports as many events as are taken in the time, from two connections; each answer says that its are on the disk.
fn import(said: &mut ProgramOutput, rounds: u32, server: &Server, bootstrap: &Bootstrap) -> Outcome {
    let script = Script::new((0..BODIES).map(|number| body(bootstrap, number)));
    let (mut rates, mut busy) = (Vec::new(), Vec::new());
    for _ in 0..rounds {
        let before = machine::cpu_time(server.pid());
        let measured = load::send(server.address, 2, LOAD, &script)?;
        let after = machine::cpu_time(server.pid());
        #[expect(clippy::cast_precision_loss, reason = "some millions are exact")]
        let events = measured.answers as f64 * LINES as f64;
        rates.push(events / measured.duration.as_secs_f64());
        if let (Some(before), Some(after)) = (before, after) {
            // As many as two processors would take that do nothing else.
            busy.push(2.0 * events / after.saturating_sub(before).as_secs_f64().max(1e-9));
        }
    }
    said.add(
        PART,
        Line {
            measure: format!("events imported and on the disk, bodies of {LINES} lines, 2 connections"),
            unit: "/s".to_owned(),
            goal: Goal::AtLeast(200_000.0),
            values: rates,
            busy,
        },
    );
    Ok(())
}

/// Returns an import of so many lines, of which one is new each time that it is sent.
fn body(bootstrap: &Bootstrap, number: usize) -> Vec<u8> {
    let mut lines = String::new();
    for line in 0..LINES {
        let number = number * LINES + line;
        let mut event = material::event(number, LINES);
        event["at"] = json!(instant(1 + number as u64 % (DAYS - 1), number as u64 % 86_400));
        if line == 0 {
            event["session"] = json!(SERIAL);
        }
        lines += &event.to_string();
        lines.push('\n');
    }
    let path = bootstrap.path("policies/history/import?source=benchmark");
    let request = Request {
        content: Some(("application/x-ndjson", lines.into_bytes())),
        ..Request::new("POST", path, &bootstrap.token)
    };
    request.bytes()
}

/// Returns an instant of the day so many days ago.
fn instant(days_ago: u64, second: u64) -> String {
    let (year, month, day) = clock::civil_date(clock::since_epoch().as_secs() / 86_400 - days_ago);
    let (hour, minute, second) = (second / 3_600, second / 60 % 60, second % 60);
    format!("{year}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}.000Z")
}

/// Measures decisions while nothing else is done, and while one backtest after the other is at work.
fn decide(
    said: &mut ProgramOutput,
    rounds: u32,
    policies: usize,
    server: &Server,
    bootstrap: &Bootstrap,
) -> Outcome {
    let script = Script::new(material::requests(bootstrap, 1, "buffered", policies));
    let p99 = || -> Outcome<f64> {
        let measured = load::send(server.address, 4, LOAD, &script)?;
        Ok(measured.p99.as_secs_f64() * 1e3)
    };
    p99()?;
    let (mut alone, mut beside, mut added, mut judged) = (Vec::new(), Vec::new(), Vec::new(), 0);
    for round in 0..rounds {
        let without = p99()?;
        let is_over = AtomicBool::new(false);
        let with = std::thread::scope(|scope| {
            let backtests = scope.spawn(|| run_backtests(server, bootstrap, round, &is_over));
            let with = p99();
            is_over.store(true, Ordering::Relaxed);
            let events = backtests
                .join()
                .map_err(|_| Failure::new("the backtests panicked"))??;
            judged += events;
            with
        })?;
        alone.push(without);
        beside.push(with);
        added.push(100.0 * (with / without - 1.0));
    }
    said.notes.push(format!(
        "beside live decisions backtests judged {judged} events in {} s",
        LOAD.as_secs() * u64::from(rounds)
    ));
    let mut add = |measure: &str, unit: &str, goal, values| {
        let line = Line {
            measure: measure.to_owned(),
            unit: unit.to_owned(),
            goal,
            values,
            busy: Vec::new(),
        };
        said.add(PART, line);
    };
    add(
        "p99 of live decisions, 4 connections, no backtest",
        " ms",
        Goal::None,
        alone,
    );
    add(
        "p99 of live decisions, a backtest running",
        " ms",
        Goal::None,
        beside,
    );
    add(
        "p99 of live decisions: what a running backtest adds",
        " %",
        Goal::AtMost(20.0),
        added,
    );
    Ok(())
}

/// Runs one backtest after the other until it is over; returns how many events they judged.
fn run_backtests(server: &Server, bootstrap: &Bootstrap, round: u32, is_over: &AtomicBool) -> Outcome<u64> {
    let mut connection = Connection::new(server.address);
    let mut judged = 0;
    for nth in 0.. {
        if is_over.load(Ordering::Relaxed) {
            break;
        }
        let made = connection.fetch(
            &Request::new("POST", bootstrap.path("policies/backtests"), &bootstrap.token)
                .with_body(backtest(&format!("{round:04}-{nth:08}"))),
        )?;
        let id = made["id"].as_str().context("a backtest without an id")?;
        let path = bootstrap.path(&format!("policies/backtests/{id}"));
        let mut run = made.clone();
        while !matches!(run["status"].as_str(), Some("succeeded" | "failed" | "canceled")) {
            std::thread::sleep(Duration::from_millis(20));
            run = connection.fetch(&Request::get(path.as_str(), &bootstrap.token))?;
        }
        let events = run["results"]["eventsEvaluated"].as_u64().unwrap_or(0);
        if run["status"] != "succeeded" || events == 0 {
            return Err(Failure::new(format!("a backtest that judged nothing: {run}")));
        }
        judged += events;
    }
    Ok(judged)
}

/// Returns the question what one more policy would have done, which tells nearly every event apart.
fn backtest(key: &str) -> Value {
    json!({
        "candidate": { "kind": "inline", "family": "content", "definition": {
            "id": "tokens", "name": "Tokens", "action": "block", "evaluateOn": ["pre_tool"],
            "acknowledgeBroadScope": true, "message": "ask the platform team first",
            "conditions": { "all": [{ "field": "llm.input_tokens", "op": "gt", "value": 4_500 }] } } },
        "window": { "from": instant(DAYS, 0), "to": instant(0, 0) },
        "reason": "benchmark", "idempotencyKey": format!("benchmark-backtest-{key}"),
    })
}
