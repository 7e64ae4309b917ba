//! See the module above.

use super::fleet::{Machine, send};
use super::{Fixture, Ids, Samples};
use crate::samples::Target;
use crate::support::{App, Reply, fresh_key};
use provost_inventory::wire::{SectionFault, Sighting, digest};
use serde_json::{Value, json};

/// What the nets must know of the area.
pub const SAMPLES: Samples = Samples {
    absent: |ulid| vec![("serverId", format!("srv_{ulid}"))],
    make: |app, meta| Box::pin(async move { make(app, &meta.path_parameters()).await }),
    body,
    fixture: |app, operation, unique| Box::pin(fixture(app, operation, unique)),
    varied,
    state: |app| {
        Box::pin(async move {
            let servers = app.get("/inventory/mcp-servers?limit=100").await.ok().clone();
            servers["servers"].clone()
        })
    },
    ..Samples::NONE
};

/// Where servers are.
pub const SERVERS: &str = "/inventory/mcp-servers";
/// The fingerprint of a path.
pub const PATH: &str = "0123456789abcdef0123456789abcdef";

/// A server in a configuration.
pub fn server(name: &str, key: &str, weak: bool) -> Value {
    json!({
        "kind": "mcp_server", "place": { "class": "~/.claude.json", "path": PATH }, "key": key, "configuredName": name,
        "scope": "user", "transport": "stdio", "version": "1.2.3", "versionPin": "exact", "weak": weak,
        "argShapes": ["-y"], "envNames": ["API_KEY"], "headerNames": [], "secretsInline": 1, "enabled": true,
    })
}

/// A skill.
pub fn skill(name: &str, hex: &str) -> Value {
    json!({
        "kind": "skill", "place": { "class": "~/.claude/skills", "path": PATH }, "name": name,
        "digest": format!("sha256:{}", hex.repeat(64)),
    })
}

/// A section of Claude Code in a home.
pub fn section(account: &str, observations: &Value, is_complete: bool) -> Value {
    let faults = if is_complete {
        json!([])
    } else {
        json!([{ "place": { "class": "P/.mcp.json", "path": PATH }, "fault": "malformed" }])
    };
    let found: Vec<Sighting> = serde_json::from_value(observations.clone()).unwrap();
    let missed: Vec<SectionFault> = serde_json::from_value(faults.clone()).unwrap();
    json!({
        "client": "claude_code", "user": account, "digest": digest(&found, &missed), "complete": is_complete,
        "faults": faults, "observations": observations,
    })
}

/// A report of sections, which began so many seconds ago.
pub fn report(app: &App, ago: i64, sections: &Value) -> Value {
    let at = app.now().plus_secs(-ago).to_rfc3339();
    json!({ "scanId": "scan-1", "startedAt": at, "finishedAt": at, "sections": sections })
}

impl Machine {
    /// Reports what a scan found.
    pub async fn report(&self, app: &App, body: Value) -> Reply {
        send(
            app,
            &self.key,
            &self.token,
            &format!("/devices/{}/scans", self.id),
            body,
        )
        .await
    }

    /// Reports one complete section of an account.
    pub async fn has(&self, app: &App, account: &str, observations: &Value) -> Reply {
        let sections = json!([section(account, observations, true)]);
        self.report(app, report(app, 0, &sections)).await
    }
}

/// Makes a server that one machine has, and returns its id.
pub async fn one(app: &App) -> String {
    let key = format!("npm:@acme/{}", fresh_key());
    let machine = Machine::new(app).await;
    let reply = machine
        .has(app, "ada", &json!([server("files", &key, false)]))
        .await;
    assert_eq!(reply.ok()["accepted"], 1);
    let listed = app.get(SERVERS).await.ok().clone();
    listed["servers"][0]["id"].as_str().unwrap().to_owned()
}

/// Makes a retired machine that had a server, and returns its id.
pub async fn retired(app: &App) -> String {
    let machine = Machine::new(app).await;
    let key = format!("npm:@acme/{}", fresh_key());
    machine
        .has(app, "ada", &json!([server("files", &key, false)]))
        .await
        .ok();
    let retire = format!("/devices/{}/retire", machine.id);
    app.write("POST", &retire, json!({ "confirm": true })).await.ok();
    machine.id
}

async fn make(app: &App, parameters: &[&str]) -> Ids {
    if parameters.contains(&"serverId") {
        return vec![("serverId", one(app).await)];
    }
    vec![]
}

fn body(operation: &str, _: &Target) -> Option<Value> {
    match operation {
        "reportHeadlessDeviceScan" => Some(json!({
            "scanId": fresh_key(), "startedAt": "2026-01-01T00:00:00.000Z", "finishedAt": "2026-01-01T00:00:01.000Z",
            "sections": [section("ada", &json!([server("files", "npm:@acme/files", false)]), true)],
        })),
        "setHeadlessInventoryMcpServerStanding" => Some(json!({ "standing": "denied" })),
        "importHeadlessInventoryScan" => Some(imported(&fresh_key())),
        _ => None,
    }
}

/// What another scanner found: one server that nobody else has.
fn imported(unique: &str) -> Value {
    let key = format!("npm:@acme/{}", digest_of(unique));
    json!({ "source": "snyk_agent_scan", "servers": [{ "key": key, "name": "files" }] })
}

/// Returns letters that a package may have in its name.
fn digest_of(unique: &str) -> String {
    let hex = provost_policy::sha256_hex(unique.as_bytes());
    let letter = |c: char| {
        c.to_digit(16)
            .and_then(|digit| char::from_u32(u32::from(b'a') + digit))
    };
    hex.chars().take(12).filter_map(letter).collect()
}

async fn fixture(app: &App, operation: &str, unique: &str) -> Option<Fixture> {
    if operation == "eraseHeadlessDeviceInventory" {
        let path = format!("/devices/{}/inventory", retired(app).await);
        return Some(Fixture::json("DELETE", path, json!({}), None));
    }
    if operation == "importHeadlessInventoryScan" {
        let event = Some("inventory.mcp_server.discovered");
        return Some(Fixture::json(
            "POST",
            "/inventory/imports",
            imported(unique),
            event,
        ));
    }
    if operation != "setHeadlessInventoryMcpServerStanding" {
        return None;
    }
    let path = format!("{SERVERS}/{}/standing", one(app).await);
    let event = Some("inventory.mcp_server.standing_changed");
    Some(Fixture::json(
        "POST",
        path,
        json!({ "standing": "denied" }),
        event,
    ))
}

fn varied(operation: &str, member: &str, body: &Value) -> Option<Value> {
    let mut body = body.clone();
    match (operation, member) {
        ("setHeadlessInventoryMcpServerStanding", "standing") => body[member] = json!("shadow"),
        ("importHeadlessInventoryScan", "source") => body[member] = json!("other"),
        ("importHeadlessInventoryScan", "servers") => body[member][0]["name"] = json!("another"),
        _ => return None,
    }
    Some(body)
}
