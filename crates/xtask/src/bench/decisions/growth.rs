//! How the cost of judging grows: with the policies that can match an event, or with all that there are.

use std::path::Path;
use std::time::Duration;

use serde_json::json;

use super::{histogram, material};
use crate::Engine;
use crate::bench::bench_store::BenchStore;
use crate::bench::load::{self, Script};
use crate::bench::report::{Goal, Row};
use crate::failure::{Context, Outcome};
use crate::product::Server;

/// What is added, and what is measured then: a name for the tool of the events, and how many policies are about it.
const STEPS: [(usize, &[(&str, usize)]); 2] = [
    (100, &[("tool-0", 1)]),
    (1_000, &[("tool-0", 1), ("ten", 10), ("hundred", 100)]),
];

/// Measures an installation of its own, of this binary.
pub fn measure(binary: &Path, rounds: u32, duration: Duration) -> Outcome<Vec<Row>> {
    let place = BenchStore::create("decisions-growth", Engine::Sqlite, binary, None)?;
    let bootstrap = place.installation.initialize()?;
    let server = place.installation.serve()?;
    let (mut rows, mut made) = (Vec::new(), 0);
    for (all, measured) in STEPS {
        let tool = |number: usize| match number {
            890..900 => "ten".to_owned(),
            900.. => "hundred".to_owned(),
            _ => format!("tool-{number}"),
        };
        material::add_definitions(&server, &bootstrap, made..all, |number| {
            json!({
                "id": format!("growth-{number}"), "name": format!("Growth {number}"), "action": "nudge",
                "evaluateOn": ["pre_tool"], "acknowledgeBroadScope": true, "message": "ask the platform team first",
                "conditions": { "all": [
                    { "field": "tool.id", "op": "eq", "value": tool(number) },
                    { "field": "llm.input_tokens", "op": "gt", "value": 1_000 + number },
                ] },
            })
        })?;
        made = all;
        for (tool, matching) in measured {
            let requests = material::requests_about(&bootstrap, tool);
            let script = Script::new(requests);
            let values: Outcome<Vec<f64>> = (0..rounds).map(|_| mean(&server, &script, duration)).collect();
            let measure = format!("judging one event, mean: {all} policies, {matching} can match");
            rows.push(Row::new(&measure, "SQLite", " µs", Goal::None, values?));
        }
    }
    server.stop()?;
    place.remove()?;
    Ok(rows)
}

/// Returns how long the server judged an event on average. Units: microseconds.
fn mean(server: &Server, script: &Script, duration: Duration) -> Outcome<f64> {
    let before = histogram::read(server)?;
    load::send(server.address, 4, duration, script)?;
    let judged = histogram::read(server)?.since(&before);
    Ok(judged.mean().context("no event was judged")? * 1e6)
}
