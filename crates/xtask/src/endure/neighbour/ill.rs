//! What a hostile organization does, kind by kind.

use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};

use serde_json::{Value, json};

use crate::endure::workload::{days_ago, import};
use crate::failure::{Context, Failure, Outcome};
use crate::http::{Connection, Request};
use crate::product::{Bootstrap, Server};

/// One way to be a burden; the number tells its requests apart.
pub struct Kind {
    make: Box<dyn Fn(u64) -> Request + Send + Sync>,
}

fn kind(make: impl Fn(u64) -> Request + Send + Sync + 'static) -> Kind {
    Kind { make: Box::new(make) }
}

/// Sends until it is over; returns how many successes there were and how many refusals.
pub fn storm(kind: &Kind, server: &Server, number: usize, is_over: &AtomicBool) -> (usize, usize) {
    let mut connection = Connection::new(server.address);
    let (mut successes, mut refused) = (0, 0);
    let mut serial = number as u64 * 1_000_000 + crate::random::fresh_seed() % 1_000 * 1_000_000_000;
    while !is_over.load(Ordering::SeqCst) {
        serial += 1;
        match connection.send(&(kind.make)(serial)) {
            Ok(answer) if answer.is_success() => successes += 1,
            _ => refused += 1,
        }
    }
    (successes, refused)
}

/// A module that does as much as it is let: three loops over two hundred numbers, one in another.
fn loops() -> String {
    let numbers: Vec<String> = (0..200).map(|number| number.to_string()).collect();
    let numbers = numbers.join(", ");
    format!(
        "package forge.content\nimport rego.v1\ndefault match := {{\"matched\": false}}\nall := [{numbers}]\n\
         match := {{\"matched\": true}} if {{\n\tsome a in all\n\tsome b in all\n\tsome c in all\n\ta * b == c - 1000\n}}"
    )
}

/// A module whose values share their parts, so that comparing two of them is far more work than making them.
fn doubling(levels: usize) -> String {
    let mut lines = vec![
        "package forge.content".to_owned(),
        "import rego.v1".to_owned(),
        "default match := {\"matched\": false}".to_owned(),
        "a0 := [1, 2]".to_owned(),
        "b0 := [1, 2]".to_owned(),
    ];
    for level in 1..=levels {
        let below = level - 1;
        lines.push(format!("a{level} := [a{below}, a{below}]"));
        lines.push(format!("b{level} := [b{below}, b{below}]"));
    }
    lines.push(format!(
        "match := {{\"matched\": true}} if a{levels} == b{levels}"
    ));
    lines.join("\n")
}

/// Makes what the neighbour needs, and returns everything that it does.
pub fn kinds(bootstrap: &Bootstrap, server: &Server, seed: u64) -> Outcome<Vec<Kind>> {
    let mut connection = Connection::new(server.address);
    let module = loops();
    let logic = json!({
        "kind": "rego", "languageVersion": "forge.rego.v1", "entrypoint": "data.forge.content.match",
        "module": module, "moduleSha256": sha256(&module)?,
    });
    let body = json!({
        "definition": {
            "id": "loops", "name": "loops", "action": "block", "evaluateOn": ["pre_tool"], "acknowledgeBroadScope": true,
            "message": "ask the platform team first", "conditions": null, "logic": logic,
        },
        "reason": "neighbour", "idempotencyKey": format!("neighbour-{seed:016x}-loops"),
    });
    connection.fetch(&post(bootstrap, "content-policies", body))?;
    for part in 0..4 {
        let key = format!("neighbour-{seed:016x}-{part}");
        connection.fetch(&import(bootstrap, &key, 5_000, 2))?;
    }

    let path = |rest: &str| bootstrap.path(rest);
    let token = bootstrap.token.clone();
    let (validate, decide, backtests, list) = (
        path("policy-code/rego/validate"),
        path("policies/decisions"),
        path("policies/backtests"),
        path("policies/history?limit=1000"),
    );
    let poster = move |path: String, body: Box<dyn Fn(u64) -> Value + Send + Sync>| {
        let token = token.clone();
        kind(move |serial| Request::new("POST", path.clone(), &token).with_body(body(serial)))
    };
    let checked = |module: String| -> Box<dyn Fn(u64) -> Value + Send + Sync> {
        Box::new(move |_| json!({ "family": "content", "module": module, "input": {} }))
    };
    let reader = bootstrap.token.clone();
    let importer = Bootstrap {
        organization: bootstrap.organization.clone(),
        account: bootstrap.account.clone(),
        token: bootstrap.token.clone(),
    };
    Ok(vec![
        poster(validate.clone(), checked(doubling(40))),
        poster(validate, checked(loops())),
        poster(
            decide.clone(),
            Box::new(|serial| {
                let events: Vec<Value> = (0..100).map(|at| event(serial * 100 + at)).collect();
                json!({ "events": events, "record": "buffered" })
            }),
        ),
        poster(
            backtests,
            Box::new(|serial| {
                json!({
                    "name": format!("backtest {serial}"), "candidate": { "kind": "set", "policies": [] },
                    "window": { "from": days_ago(6), "to": days_ago(0) },
                    "reason": "neighbour", "idempotencyKey": format!("neighbour-backtest-{serial:020}"),
                })
            }),
        ),
        kind(move |_| Request::get(list.clone(), &reader)),
        kind(move |serial| import(&importer, &format!("neighbour-import-{serial:020}"), 2_000, 2)),
        poster(
            decide,
            // A body that is as large as may be, and says nothing.
            Box::new(|_| json!({ "events": [], "padding": "x".repeat(1_000_000) })),
        ),
    ])
}

fn event(serial: u64) -> Value {
    json!({ "occasion": "pre_tool", "attributes": { "tool.id": format!("tool-{}", serial % 50) } })
}

fn post(bootstrap: &Bootstrap, rest: &str, body: Value) -> Request {
    Request::new("POST", bootstrap.path(rest), &bootstrap.token).with_body(body)
}

/// The SHA-256 of a text, in hexadecimal digits.
fn sha256(text: &str) -> Outcome<String> {
    let mut command = Command::new("sha256sum");
    let mut child = command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .context("cannot run sha256sum")?;
    let mut input = child.stdin.take().context("sha256sum takes no input")?;
    std::io::Write::write_all(&mut input, text.as_bytes()).context("sha256sum takes no input")?;
    drop(input);
    let output = child.wait_with_output().context("sha256sum does not end")?;
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    said.split_whitespace()
        .next()
        .map(str::to_owned)
        .ok_or_else(|| Failure::new("sha256sum says nothing"))
}
