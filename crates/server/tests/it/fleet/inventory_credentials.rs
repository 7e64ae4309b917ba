//! Credentials in files: what is told when they come and go, and that a retired device's places can be erased.

use super::inventory::{held, of_key};
use crate::areas::fleet::Machine;
use crate::areas::inventory::{PATH, SERVERS, report, section, server, skill};
use crate::support::{App, Call, each, fresh_key};
use serde_json::{Value, json};
use std::sync::Arc;

fn credential(member: &str, fingerprint: &str, mode: &str) -> Value {
    json!({
        "kind": "credential", "place": { "class": "~/.claude.json", "path": PATH }, "pattern": "github_token", "memberName": member,
        "fingerprint": fingerprint, "fileMode": mode, "worldReadable": false,
    })
}

/// Returns what events tell of credentials: what happened, and the fingerprint.
async fn told(app: &App) -> Vec<(String, String)> {
    let all = app.events(0).await.into_iter();
    let of_credentials = all.filter_map(|(kind, data)| {
        let what = kind.strip_prefix("inventory.credential.")?.to_owned();
        Some((what, data["fingerprint"].as_str()?.to_owned()))
    });
    of_credentials.collect()
}

/// Proves IN-2, IN-11.
#[test]
fn a_credential_is_told_when_it_is_found_and_when_it_is_gone_by_its_fingerprint() {
    each("inventory_credentials", |app: Arc<App>| async move {
        let laptop = Machine::new(&app).await;
        let (one, other) = ("1".repeat(32), "2".repeat(32));
        let both = json!([
            credential("TOKEN", &one, "600"),
            credential("KEY", &other, "600"),
            server("files", "npm:files", false),
        ]);
        laptop.has(&app, "ada", &both).await.ok();
        let pair = |what: &str, print: &str| (what.to_owned(), print.to_owned());
        let mut first = told(&app).await;
        first.sort_unstable();
        assert_eq!(first, [pair("found", &one), pair("found", &other)]);
        // The same once more, and one whose file others may read now, are the same credentials.
        laptop.has(&app, "ada", &both).await.ok();
        let open = json!([
            credential("TOKEN", &one, "644"),
            credential("KEY", &other, "600"),
            server("files", "npm:files", false),
        ]);
        laptop.has(&app, "ada", &open).await.ok();
        // A look that could not read everything takes nothing away.
        let nothing = section("ada", &json!([]), false);
        laptop.report(&app, report(&app, 0, &json!([nothing]))).await.ok();
        assert_eq!(told(&app).await.len(), 2);
        laptop
            .has(&app, "ada", &json!([credential("KEY", &other, "600")]))
            .await
            .ok();
        assert_eq!(told(&app).await[2..], [pair("gone", &one)]);
        laptop.has(&app, "ada", &both).await.ok();
        assert_eq!(told(&app).await[3..], [pair("found", &one)]);
        let entries = app.entries(&app.organization, 0).await;
        let of_reports: Vec<&Value> = entries
            .iter()
            .filter(|entry| entry["changes"].to_string().contains("/credentials"))
            .collect();
        let actions: Vec<&str> = of_reports
            .iter()
            .map(|entry| entry["action"].as_str().unwrap())
            .collect();
        assert_eq!(
            actions,
            [
                "inventory.mcp_server.discovered",
                "inventory.credentials.changed",
                "inventory.credentials.changed",
            ]
        );
        assert_eq!(of_reports[0]["actor"]["type"], "device");
        assert_eq!(of_reports[0]["target"]["id"], json!(laptop.id));
        assert!(of_reports[1]["changes"].to_string().contains(&one));
        app.kernel.stop().await;
    });
}

/// A call that erases what a device reported.
fn erasing<'a>(app: &'a App, inventory: &str) -> Call<'a> {
    let call = app.request("DELETE", inventory);
    let call = call.header("idempotency-key", &fresh_key());
    call.header("x-reason", "a test").header("x-confirm", "true")
}

#[test]
fn what_a_retired_device_reported_is_erased_and_of_an_active_one_nothing_is() {
    each("inventory_erased", |app: Arc<App>| async move {
        let (laptop, other) = (Machine::new(&app).await, Machine::new(&app).await);
        let found = json!([
            server("files", "npm:files", false),
            credential("KEY", &"1".repeat(32), "600")
        ]);
        laptop.has(&app, "ada", &found).await.ok();
        other.has(&app, "bob", &found).await.ok();
        let inventory = format!("/devices/{}/inventory", laptop.id);
        let erased = erasing(&app, &inventory).send().await;
        erased.refused(409, "conflict");
        let retire = format!("/devices/{}/retire", laptop.id);
        app.write("POST", &retire, json!({ "confirm": true })).await.ok();
        let files = of_key(&app, "npm:files").await;
        let instances = format!("{SERVERS}/{}/instances", files["id"].as_str().unwrap());
        let devices = async || -> Vec<Value> {
            let all = app.get(&instances).await.ok()["instances"].clone();
            all.as_array()
                .unwrap()
                .iter()
                .map(|one| one["deviceId"].clone())
                .collect()
        };
        assert_eq!(devices().await.len(), 2);
        let erased = erasing(&app, &inventory).send().await;
        assert_eq!(erased.status.as_u16(), 204, "{}", erased.text());
        assert_eq!(devices().await, [json!(other.id)]);
        assert_eq!(of_key(&app, "npm:files").await["standing"], "shadow");
        assert_eq!(
            held(&app, &other).await["observations"].as_array().unwrap().len(),
            2
        );
        let again = erasing(&app, &inventory).send().await;
        assert_eq!(again.status.as_u16(), 204, "{}", again.text());
        let (_, operator) = app.account("operator", "operator", &[]).await;
        let refused = erasing(&app, &inventory).token(&operator).send().await;
        refused.refused(403, "role_forbidden");
        app.kernel.stop().await;
    });
}

/// A table of a device's inventory has a name in every row.
#[test]
fn whatever_kind_was_found_has_a_name() {
    each("inventory_names", |app: Arc<App>| async move {
        let laptop = Machine::new(&app).await;
        let place = json!({ "class": "~/.claude/settings.json", "path": PATH });
        let all = json!([
            server("files", "npm:files", false),
            skill("pdf", "a"),
            { "kind": "extension", "place": place, "name": "good@market", "enabled": true },
            { "kind": "hook", "place": place, "event": "PreToolUse", "commands": 2 },
            { "kind": "setting", "place": place, "name": "approval_policy", "value": "never" },
            { "kind": "environment", "place": place, "names": ["HTTP_PROXY"] },
            credential("GH_TOKEN", &"1".repeat(32), "600"),
            { "kind": "sessions", "place": place, "files": 7 },
        ]);
        laptop.has(&app, "ada", &all).await.ok();
        let held = held(&app, &laptop).await;
        let mut names: Vec<&str> = held["observations"]
            .as_array()
            .unwrap()
            .iter()
            .map(|found| found["name"].as_str().unwrap())
            .collect();
        names.sort_unstable();
        assert_eq!(
            names,
            [
                "7 conversations",
                "HTTP_PROXY",
                "PreToolUse, 2 commands",
                "approval_policy: never",
                "files",
                "github_token in GH_TOKEN",
                "good@market",
                "pdf",
            ]
        );
        app.kernel.stop().await;
    });
}
