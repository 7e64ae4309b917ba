//! Bad input gets a clear envelope and has no effect (R22, R25; D1.3 to D1.8, D2.1, D3.3, D4.1, D5.7, D5.9).

mod accounts;
mod bodies;
mod credentials;
mod parameters;
mod rates;
mod routes;

use crate::samples;
use crate::support::{App, with_trio};
use provost_kernel::operation::Kind;
use serde_json::{Value, json};
use std::collections::BTreeMap;

/// What a refusal must not change: the state, and how many changes the log allowed.
pub async fn effects(app: &App) -> Value {
    // Made now, so that a call of a machine makes no account in between.
    app.machine().await;
    let mut allowed = BTreeMap::new();
    for entry in app.kernel.registry.entries() {
        if entry.meta.kind == Kind::Write {
            let rest = format!("/audit/events?limit=100&outcome=allowed&action={}", entry.meta.id);
            let found = app.get(&rest).await;
            allowed.insert(entry.meta.id, found.ok()["events"].as_array().unwrap().len());
        }
    }
    json!({ "state": samples::state(app).await, "allowed": allowed })
}

pub const ACCOUNTS: &str = "/service-accounts";

/// A body that makes an account, with one member set to something else; `None` takes it away.
pub fn account_with(member: &str, value: Option<Value>, key: &str) -> Value {
    let body = json!({ "name": "someone", "permissionRole": "viewer", "scopes": ["fleet:read"] });
    let mut body = with_trio(body, key);
    match value {
        Some(value) => body[member] = value,
        None => drop(body.as_object_mut().unwrap().remove(member)),
    }
    body
}
