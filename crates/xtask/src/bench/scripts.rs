//! The requests that the loads are made of.

use serde_json::json;

use super::load::{SERIAL, Script};
use crate::failure::{Context, Outcome};
use crate::http::{Connection, Request};
use crate::product::Bootstrap;

/// The requests of each load.
pub struct Scripts {
    pub read: Script,
    pub capabilities: Script,
    pub list: Script,
    pub mutate: Script,
}

impl Scripts {
    pub fn new(bootstrap: &Bootstrap, ids: &[String]) -> Self {
        let get = |rest: &str| Request::get(bootstrap.path(rest), &bootstrap.token).bytes();
        let body = json!({
            "description": format!("benchmark {SERIAL}"), "reason": "benchmark",
            "idempotencyKey": format!("benchmark-{SERIAL}"),
        });
        let patch = |id: &String| {
            let path = bootstrap.path(&format!("service-accounts/{id}"));
            Request::new("PATCH", path, &bootstrap.token)
                .with_body(body.clone())
                .bytes()
        };
        Self {
            read: Script::new(ids.iter().map(|id| get(&format!("service-accounts/{id}")))),
            capabilities: Script::new([get("capabilities")]),
            list: Script::new([get("service-accounts?limit=100")]),
            mutate: Script::new(ids.iter().map(patch)),
        }
    }
}

/// Creates an account for each number and returns their ids.
pub fn create_accounts(
    connection: &mut Connection,
    bootstrap: &Bootstrap,
    numbers: &[u32],
) -> Outcome<Vec<String>> {
    let create = |number: &u32| {
        let body = json!({
            "name": format!("Account {number}"), "description": "Seeded for a benchmark",
            "permissionRole": "viewer", "allOfRole": true,
            "reason": "benchmark", "idempotencyKey": format!("benchmark-seed-{number:08}"),
        });
        let request =
            Request::new("POST", bootstrap.path("service-accounts"), &bootstrap.token).with_body(body);
        let created = connection.fetch(&request)?;
        created["serviceAccount"]["id"]
            .as_str()
            .map(str::to_owned)
            .context("an account without an id")
    };
    numbers.iter().map(create).collect()
}
