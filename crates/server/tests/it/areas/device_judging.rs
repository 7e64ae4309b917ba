//! See the module above.

use super::Samples;
use crate::samples::Target;
use crate::support::{App, Reply};
use provost_bundle::{CHAIN_START, entry_hash};
use serde_json::{Value, json};

/// What the nets must know of the area. Its devices are the fleet's.
pub const SAMPLES: Samples = Samples {
    body,
    missed: |app, operation| Box::pin(missed(app, operation)),
    ..Samples::NONE
};

/// Calls as a device where no device judges.
async fn missed(app: &App, operation: &str) -> Option<Reply> {
    let (method, below) = match operation {
        "getHeadlessDevicePolicyBundle" => ("GET", "policy-bundle"),
        "reportHeadlessDeviceDecisions" => ("POST", "decisions"),
        _ => return None,
    };
    let machine = super::fleet::Machine::new(app).await;
    set(app, "off").await;
    let path = format!("/devices/{}/{below}", machine.id);
    let call = app.request(method, &path).token(&machine.token);
    let entry = json!({ "kind": "dropped", "events": 1, "why": "queue_full" });
    let call = if method == "GET" {
        call
    } else {
        call.json(report(1, CHAIN_START, &[entry]))
    };
    let reply = call.send().await;
    set(app, "on").await;
    Some(reply)
}

fn body(operation: &str, _: &Target) -> Option<Value> {
    let entry = json!({ "kind": "dropped", "events": 1, "why": "queue_full" });
    (operation == "reportHeadlessDeviceDecisions").then(|| report(1, CHAIN_START, &[entry]))
}

/// Returns what a device tells: entries from a number on, behind a hash.
pub fn report(from: usize, previous: &str, entries: &[Value]) -> Value {
    let texts: Vec<String> = entries.iter().map(Value::to_string).collect();
    let head = texts
        .iter()
        .fold(previous.to_owned(), |previous, text| entry_hash(&previous, text));
    json!({ "from": from, "previous": previous, "head": head, "entries": texts })
}

/// Has devices judge, or not.
pub async fn set(app: &App, judging: &str) {
    let body = json!({ "fleet": { "hooks": { "judging": judging } }, "confirm": true });
    app.write("PATCH", "/automation/settings", body).await.ok();
}
