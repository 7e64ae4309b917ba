//! See the module above.

use super::{Fixture, Ids, Samples};
use crate::samples::Target;
use crate::support::App;
use serde_json::{Value, json};

/// What the nets must know of the area.
pub const SAMPLES: Samples = Samples {
    absent,
    make: |app, meta| Box::pin(async move { make(app, meta.id, &meta.path_parameters()).await }),
    body,
    fixture: |app, operation, unique| Box::pin(fixture(app, operation, unique)),
    varied,
    state: |app| Box::pin(state(app)),
    ..Samples::NONE
};

const RUNS: &str = "/policies/backtests";

pub fn absent(ulid: &str) -> Ids {
    vec![("runId", format!("btr_{ulid}"))]
}

/// What asks for little: no policies against the live ones, over a week without events.
pub fn question() -> Value {
    json!({
        "candidate": { "kind": "set", "policies": [] },
        "window": { "from": "2026-11-13T00:00:00.000Z", "to": "2026-11-20T00:00:00.000Z" },
    })
}

/// Cancels what waits: an organization has few places, and no worker takes runs in these tests.
async fn make_room(app: &App) {
    let waiting = app.get(&format!("{RUNS}?status=queued&limit=100")).await;
    for run in waiting.ok()["backtests"].as_array().unwrap() {
        let id = run["id"].as_str().unwrap();
        let path = format!("{RUNS}/{id}/cancel");
        app.write("POST", &path, json!({ "confirm": true })).await.ok();
    }
}

async fn queued(app: &App) -> String {
    make_room(app).await;
    let made = app.write("POST", RUNS, question()).await;
    made.ok()["id"].as_str().unwrap().to_owned()
}

pub async fn make(app: &App, operation: &str, parameters: &[&str]) -> Ids {
    if parameters.contains(&"runId") {
        return vec![("runId", queued(app).await)];
    }
    if operation == "createHeadlessPolicyBacktest" {
        make_room(app).await;
    }
    vec![]
}

pub fn body(operation: &str, _target: &Target) -> Option<Value> {
    (operation == "createHeadlessPolicyBacktest").then(question)
}

pub async fn fixture(app: &App, operation: &str, unique: &str) -> Option<Fixture> {
    match operation {
        "createHeadlessPolicyBacktest" => {
            make_room(app).await;
            let mut body = question();
            body["name"] = format!("asked by {unique}").into();
            body["baseline"] = json!({ "kind": "live" });
            body["filters"] = json!({ "tools": ["send_email"] });
            body["limits"] = json!({ "maxEvents": 1000 });
            Some(Fixture::json("POST", RUNS, body, Some("policy.backtest.queued")))
        }
        "cancelHeadlessPolicyBacktest" => {
            let path = format!("{RUNS}/{}/cancel", queued(app).await);
            let event = Some("policy.backtest.canceled");
            Some(Fixture::json("POST", path, json!({ "confirm": true }), event))
        }
        _ => None,
    }
}

pub fn varied(operation: &str, member: &str, body: &Value) -> Option<Value> {
    if operation != "createHeadlessPolicyBacktest" {
        return None;
    }
    let mut body = body.clone();
    body[member] = match member {
        "candidate" => json!({ "kind": "draft", "policyId": "another" }),
        "baseline" => json!({ "kind": "version", "versionId": "psv_00000000000000000000000000" }),
        "window" => json!({ "from": "2026-11-14T00:00:00.000Z", "to": "2026-11-20T00:00:00.000Z" }),
        "filters" => json!({ "tools": ["another"] }),
        "limits" => json!({ "maxEvents": 1001 }),
        _ => return None,
    };
    Some(body)
}

pub async fn state(app: &App) -> Value {
    let mut state = Vec::new();
    let mut path = format!("{RUNS}?limit=100");
    loop {
        let page = app.get(&path).await;
        state.extend(page.ok()["backtests"].as_array().unwrap().clone());
        match page.json["nextCursor"].as_str() {
            Some(cursor) => path = format!("{RUNS}?limit=100&cursor={cursor}"),
            None => return state.into(),
        }
    }
}
