//! What an organization shows of itself: the oracle of "entirely there or entirely absent".

use serde_json::{Value, json};

use crate::failure::{Context, Failure, Outcome};
use crate::http::{Connection, Request};
use crate::product::Bootstrap;

/// Every list of records. Each has room for all that a copy of the base gathers.
const LISTS: [&str; 14] = [
    "service-accounts?limit=100",
    "automation/settings",
    "directory/users?limit=100",
    "directory/groups?limit=100",
    "managed-config/profiles?limit=100",
    "mcp/clients?limit=100",
    "mcp/sessions?limit=100",
    "policies?limit=100",
    "policies/versions?limit=5",
    "resources?limit=100",
    "resource-gateways?limit=100",
    "skill-registry?limit=100",
    "skill-installs?limit=100",
    "policies/backtests?limit=100",
];

/// Members that change without a mutation: uses are noted later, targets report, workers run backtests, and data grow old.
const MOVING: [&str; 3] = ["lastUsedAt", "rollout", "dataAge"];

/// Everything that is shown, or `None` when a list is answered 503.
pub fn read(connection: &mut Connection, bootstrap: &Bootstrap, more: &[String]) -> Outcome<Option<Value>> {
    let mut state = Vec::new();
    for path in LISTS.into_iter().chain(more.iter().map(String::as_str)) {
        let request = Request::get(bootstrap.path(path), &bootstrap.token);
        let answer = connection
            .send(&request)
            .map_err(|lost| lost.why)
            .context(format_args!("GET {path}"))?;
        let mut shown = match answer.status {
            200 => answer.json()?,
            // A record that the operation makes or deletes.
            404 if more.iter().any(|one| one == path) => Value::Null,
            503 => return Ok(None),
            _ => return Err(Failure::new(format!("GET {path}: {}", answer.summary()))),
        };
        if path.starts_with("policies/backtests") {
            shown = names_of_runs(&shown);
        }
        forget(&mut shown);
        state.push(json!([path, shown]));
    }
    Ok(Some(state.into()))
}

fn names_of_runs(shown: &Value) -> Value {
    let runs = shown["backtests"].as_array().into_iter().flatten();
    runs.map(|run| run["name"].clone()).collect()
}

fn forget(value: &mut Value) {
    match value {
        Value::Array(items) => items.iter_mut().for_each(forget),
        Value::Object(members) => {
            members.retain(|name, _| !MOVING.contains(&name.as_str()));
            members.values_mut().for_each(forget);
        }
        _ => {}
    }
}

/// The lists in which two states differ, with the beginning of both.
pub fn difference(one: &Value, other: &Value) -> String {
    let pairs = one
        .as_array()
        .into_iter()
        .flatten()
        .zip(other.as_array().into_iter().flatten());
    let differing = pairs.filter(|(one, other)| one != other).map(|(one, other)| {
        let (one, other) = (one.to_string(), other.to_string());
        let at = one
            .bytes()
            .zip(other.bytes())
            .position(|(a, b)| a != b)
            .unwrap_or(0);
        let excerpt = |text: &str| {
            text.chars()
                .skip(at.saturating_sub(80))
                .take(240)
                .collect::<String>()
        };
        format!("…{}… instead of …{}…", excerpt(&one), excerpt(&other))
    });
    differing.collect::<Vec<_>>().join("; ")
}

/// How many audit entries of an operation carry this reason: effects, and repetitions of them.
pub fn entries(connection: &mut Connection, bootstrap: &Bootstrap, reason: &str) -> Outcome<(usize, usize)> {
    let path = bootstrap.path("audit/events?limit=100");
    let shown = connection.fetch(&Request::get(path, &bootstrap.token))?;
    let entries = shown["events"]
        .as_array()
        .context("an audit log without events")?;
    let mine = entries.iter().filter(|entry| entry["reason"] == reason);
    let of = |decision: &str| {
        let is_such = |entry: &&Value| {
            entry
                .pointer("/outcome/decision")
                .is_some_and(|one| one == decision)
        };
        mine.clone().filter(is_such).count()
    };
    Ok((of("allowed"), of("idempotent_replay")))
}
