//! How far clients are guarded, by the word of the devices: what is kept, as what it counts, and who is told of a drop.

use super::act;
use crate::areas::device_judging::set;
use crate::areas::fleet::{Machine, enrol, enrolment_token, send, waiting};
use crate::areas::inventory::server;
use crate::support::{App, Reply, each};
use serde_json::{Value, json};
use std::sync::Arc;

async fn of_mode(app: &App, mode: &str) -> Machine {
    let (_, secret) = enrolment_token(app, json!({ "mode": mode })).await;
    let machine = enrol(app, &secret).await;
    machine.beat(app).await.ok();
    machine
}

fn client(client: &str, level: &str, reasons: &[&str]) -> Value {
    json!({ "client": client, "clientVersion": "2.1.331", "level": level, "basis": "measured", "reasons": reasons })
}

async fn say(app: &App, machine: &Machine, clients: &[Value]) -> Reply {
    let path = format!("/devices/{}/coverage", machine.id);
    let body = json!({ "clients": clients });
    send(app, &machine.key, &machine.token, &path, body).await
}

async fn says(app: &App, machine: &Machine, level: &str, reasons: &[&str]) {
    say(app, machine, &[client("claude_code", level, reasons)])
        .await
        .ok();
}

/// What is shown of the one client of a device: its level, and as what it counts.
async fn shown(app: &App, machine: &Machine) -> (String, String) {
    let found = app.get(&format!("/devices/{}", machine.id)).await.ok()["device"].clone();
    let one = &found["coverage"][0];
    let text = |member: &str| one[member].as_str().unwrap().to_owned();
    (text("level"), text("countsAs"))
}

async fn counts(app: &App) -> Value {
    app.get("/devices/coverage").await.ok().clone()
}

/// Returns the counts of one client in the order enforced, bypassable, observed, none, unknown.
async fn counted(app: &App, client: &str) -> [i64; 5] {
    let counts = counts(app).await;
    let clients = counts["clients"].as_array().unwrap();
    let found = clients.iter().find(|one| one["client"] == client);
    ["enforced", "bypassable", "observed", "none", "unknown"]
        .map(|level| found.map_or(0, |one| one[level].as_i64().unwrap()))
}

async fn listed(app: &App, query: &str) -> Vec<String> {
    let page = app.get(&format!("/devices?limit=100&{query}")).await.ok().clone();
    let mut ids: Vec<String> = page["devices"]
        .as_array()
        .unwrap()
        .iter()
        .map(|device| device["id"].as_str().unwrap().to_owned())
        .collect();
    ids.sort();
    ids
}

async fn told(app: &App) -> Vec<Value> {
    let events = app.events(0).await.into_iter();
    let told = events.filter(|(kind, _)| kind == "fleet.device.hooks_not_effective");
    told.map(|(_, data)| data).collect()
}

async fn entries(app: &App) -> usize {
    let entries = app.entries(&app.organization, 0).await;
    let of_drops = entries
        .iter()
        .filter(|entry| entry["action"] == "fleet.device.hooks_not_effective");
    of_drops.count()
}

/// Proves CV-1, CV-2.
#[test]
fn a_level_is_a_devices_own_word_and_counts_while_it_is_at_work_and_says_it() {
    each("coverage_counts", |app: Arc<App>| async move {
        let (machine, other) = (of_mode(&app, "system").await, of_mode(&app, "system").await);
        assert_eq!(
            (
                counts(&app).await["devices"].clone(),
                counts(&app).await["unreported"].clone()
            ),
            (json!(2), json!(2))
        );
        says(&app, &machine, "enforced", &[]).await;
        assert_eq!(
            shown(&app, &machine).await,
            ("enforced".into(), "enforced".into())
        );
        assert_eq!(counted(&app, "claude_code").await, [1, 0, 0, 0, 0]);
        assert_eq!(counts(&app).await["unreported"], 1);
        assert_eq!(listed(&app, "coverage=enforced").await, [machine.id.as_str()]);
        assert_eq!(listed(&app, "coverage=unknown").await, [other.id.as_str()]);
        assert_eq!(listed(&app, "client=claude_code").await, [machine.id.as_str()]);
        assert_eq!(listed(&app, "coverage=enforced&client=codex").await, [""; 0]);
        // Nobody says anything of another one.
        let path = format!("/devices/{}/coverage", machine.id);
        let body = json!({ "clients": [client("claude_code", "none", &["not_registered"])] });
        let reply = send(&app, &other.key, &other.token, &path, body.clone()).await;
        reply.refused(403, "role_forbidden");
        app.write("POST", &path, body)
            .await
            .refused(403, "role_forbidden");
        assert_eq!(shown(&app, &machine).await.0, "enforced");
        // Quarantined it counts as unknown, and released as what it said.
        act(&app, &machine.id, "quarantine").await.ok();
        assert_eq!(counted(&app, "claude_code").await, [0, 0, 0, 0, 1]);
        assert_eq!(shown(&app, &machine).await, ("enforced".into(), "unknown".into()));
        assert_eq!(listed(&app, "coverage=enforced").await, [""; 0]);
        assert_eq!(listed(&app, "coverage=unknown").await.len(), 2);
        says(&app, &machine, "enforced", &[]).await;
        assert_eq!(counted(&app, "claude_code").await, [0, 0, 0, 0, 1]);
        act(&app, &machine.id, "release").await.ok();
        assert_eq!(counted(&app, "claude_code").await, [1, 0, 0, 0, 0]);
        // One that calls and does not say it any more, as an earlier agent in its place, is unknown after a day.
        app.advance(86_400);
        machine.beat(&app).await.ok();
        assert_eq!(counted(&app, "claude_code").await, [1, 0, 0, 0, 0]);
        app.advance(60);
        machine.beat(&app).await.ok();
        assert_eq!(counted(&app, "claude_code").await, [0, 0, 0, 0, 1]);
        assert_eq!(listed(&app, "coverage=enforced").await, [""; 0]);
        says(&app, &machine, "enforced", &[]).await;
        // A laptop that is closed over a weekend counts on; one that is silent does not.
        app.advance(3 * 86_400);
        assert_eq!(counted(&app, "claude_code").await, [1, 0, 0, 0, 0]);
        app.advance(61);
        assert_eq!(counted(&app, "claude_code").await, [0, 0, 0, 0, 1]);
        assert_eq!(shown(&app, &machine).await, ("enforced".into(), "unknown".into()));
        // Retired it is nothing, and what it said is forgotten.
        act(&app, &machine.id, "retire").await.ok();
        assert_eq!(counts(&app).await["clients"], json!([]));
        let gone = app.get(&format!("/devices/{}", machine.id)).await.ok()["device"].clone();
        assert!(gone.get("coverage").is_none() && gone.get("coverageAt").is_none());
        assert_eq!(listed(&app, "coverage=unknown").await, [other.id.as_str()]);
        says_is_refused(&app, &machine).await;
        app.kernel.stop().await;
    });
}

async fn says_is_refused(app: &App, machine: &Machine) {
    say(app, machine, &[client("claude_code", "enforced", &[])])
        .await
        .refused(401, "token_revoked");
}

/// Proves CV-3.
#[test]
fn a_drop_is_told_by_one_entry_and_one_event_and_not_again_while_it_stays() {
    each("coverage_drops", |app: Arc<App>| async move {
        let machine = of_mode(&app, "system").await;
        // The first word is no drop, whatever it is, and neither is a rise.
        says(&app, &machine, "none", &["not_registered"]).await;
        says(&app, &machine, "enforced", &[]).await;
        assert_eq!((told(&app).await.len(), entries(&app).await), (0, 0));
        for _ in 0..3 {
            app.advance(300);
            says(&app, &machine, "observed", &["session_without_events"]).await;
        }
        let wanted = json!({
            "deviceId": machine.id, "client": "claude_code", "was": "enforced", "level": "observed", "reasons": ["session_without_events"],
        });
        assert_eq!(told(&app).await, [wanted]);
        assert_eq!(entries(&app).await, 1);
        // One that flutters is told once an hour.
        for _ in 0..3 {
            app.advance(150);
            says(&app, &machine, "enforced", &[]).await;
            app.advance(150);
            says(&app, &machine, "none", &["hooks_disabled"]).await;
        }
        assert_eq!(told(&app).await.len(), 1);
        app.advance(3_600);
        says(&app, &machine, "none", &["hooks_disabled"]).await;
        assert_eq!((told(&app).await.len(), entries(&app).await), (2, 2));
        // Of what is not said any more it is not known; where somebody thought that it is guarded, that is a drop.
        app.advance(3_600);
        let both = [
            client("claude_code", "enforced", &[]),
            client("codex", "bypassable", &["sessions_unseen"]),
        ];
        say(&app, &machine, &both).await.ok();
        app.advance(3_600);
        say(&app, &machine, &[]).await.ok();
        let all = told(&app).await;
        let last: Vec<(&Value, &Value, &Value)> = all[2..]
            .iter()
            .map(|one| (&one["client"], &one["level"], &one["reasons"]))
            .collect();
        let gone = json!(["not_reported"]);
        assert_eq!(
            last,
            [
                (&json!("claude_code"), &json!("none"), &gone),
                (&json!("codex"), &json!("none"), &gone)
            ]
        );
        assert_eq!(entries(&app).await, 3, "one entry for both");
        app.advance(3_600);
        say(&app, &machine, &[]).await.ok();
        assert_eq!(told(&app).await.len(), 4);
        assert_eq!(counts(&app).await["clients"], json!([]));
        app.kernel.stop().await;
    });
}

/// Proves CV-2.
#[test]
fn a_report_that_contradicts_itself_is_refused_by_name_and_a_persons_agent_proves_no_more_than_observed() {
    each("coverage_refused", |app: Arc<App>| async move {
        let (machine, own) = (of_mode(&app, "system").await, of_mode(&app, "user").await);
        let mut by_documents = client("cursor", "enforced", &[]);
        by_documents["basis"] = "documents".into();
        for (clients, path) in [
            (
                vec![client("codex", "enforced", &["monitor_mode"])],
                "/clients/0/reasons",
            ),
            (vec![client("codex", "observed", &[])], "/clients/0/reasons"),
            (vec![by_documents], "/clients/0/level"),
            (
                vec![client("codex", "enforced", &[]), client("codex", "enforced", &[])],
                "/clients/1/client",
            ),
        ] {
            let reply = say(&app, &machine, &clients).await;
            reply.refused(422, "invalid_definition");
            assert!(reply.json.to_string().contains(path), "{}", reply.json);
        }
        let many: Vec<Value> = (0..17)
            .map(|number| client(&format!("client_{number}"), "none", &["not_registered"]))
            .collect();
        for clients in [
            many,
            vec![client("Ada's laptop", "none", &["not_registered"])],
            vec![client("codex", "none", &["/home/ada"])],
            vec![client("codex", "unheard", &["x"])],
        ] {
            let status = say(&app, &machine, &clients).await.status.as_u16();
            assert_eq!(status, 400, "{clients:?}");
        }
        assert_eq!(counts(&app).await["unreported"], 2);
        says(&app, &own, "enforced", &[]).await;
        assert_eq!(shown(&app, &own).await, ("observed".into(), "observed".into()));
        assert_eq!(counted(&app, "claude_code").await, [0, 0, 1, 0, 0]);
        // One that waits says nothing yet.
        let id = waiting(&app).await;
        let found = app.get(&format!("/devices/{id}")).await.ok()["device"].clone();
        assert!(found.get("coverage").is_none());
        app.kernel.stop().await;
    });
}

#[test]
fn a_device_shows_the_bundle_that_it_holds_and_whether_it_is_the_newest() {
    each("coverage_bundle", |app: Arc<App>| async move {
        set(&app, "on").await;
        let machine = of_mode(&app, "system").await;
        let path = format!("/devices/{}/policy-bundle", machine.id);
        let fetched = app.request("GET", &path).token(&machine.token).send().await;
        fetched.ok();
        let tag = fetched.headers["etag"]
            .to_str()
            .unwrap()
            .trim_matches('"')
            .to_owned();
        let held = json!({
            "storeEpoch": 0, "sequence": 7, "policySetVersion": "psv_1", "issuedAt": app.now().to_rfc3339(),
            "notAfter": app.now().plus_secs(86_400).to_rfc3339(), "name": tag,
        });
        let body = json!({ "clients": [], "policyBundle": held });
        let path = format!("/devices/{}/coverage", machine.id);
        send(&app, &machine.key, &machine.token, &path, body).await.ok();
        let get = format!("/devices/{}", machine.id);
        let shown = app.get(&get).await.ok()["device"]["policyBundle"].clone();
        assert_eq!(
            (&shown["sequence"], &shown["policySetVersion"], &shown["isNewest"]),
            (&json!(7), &json!("psv_1"), &json!(true))
        );
        assert!(shown.get("name").is_none());
        // A list says nothing of it; another mode is another bundle.
        let listed = app.get("/devices").await.ok()["devices"][0]["policyBundle"].clone();
        assert!(listed.get("isNewest").is_none() && listed["sequence"] == 7);
        let change = json!({ "fleet": { "hooks": { "offlineDays": 9 } }, "confirm": true });
        app.write("PATCH", "/automation/settings", change).await.ok();
        assert_eq!(
            app.get(&get).await.ok()["device"]["policyBundle"]["isNewest"],
            false
        );
        // One that is quarantined is given none, so that there is no newest.
        act(&app, &machine.id, "quarantine").await.ok();
        let apart = app.get(&get).await.ok()["device"]["policyBundle"].clone();
        assert!(apart.get("isNewest").is_none() && apart["sequence"] == 7);
        act(&app, &machine.id, "release").await.ok();
        set(&app, "off").await;
        let off = app.get(&get).await.ok()["device"]["policyBundle"].clone();
        assert!(off.get("isNewest").is_none());
        app.kernel.stop().await;
    });
}

/// Returns a machine that says that it holds a bundle.
async fn judges(app: &App) -> Machine {
    let machine = of_mode(app, "system").await;
    let held = json!({
        "storeEpoch": 0, "sequence": 7, "policySetVersion": "psv_1", "issuedAt": app.now().to_rfc3339(),
        "notAfter": app.now().plus_secs(86_400).to_rfc3339(), "name": "abc123",
    });
    let body = json!({ "clients": [], "policyBundle": held });
    let path = format!("/devices/{}/coverage", machine.id);
    send(app, &machine.key, &machine.token, &path, body).await.ok();
    machine
}

#[test]
fn a_quarantine_and_a_denial_say_what_they_stop() {
    each("coverage_effects", |app: Arc<App>| async move {
        let (judging, plain) = (judges(&app).await, of_mode(&app, "user").await);
        let quarantined = async |machine: &Machine| {
            let effect = act(&app, &machine.id, "quarantine").await.ok()["effect"].clone();
            act(&app, &machine.id, "release").await.ok();
            effect
        };
        let found = json!([server("evil", "npm:evil", false)]);
        plain.has(&app, "ada", &found).await.ok();
        let page = app.get("/inventory/mcp-servers").await.ok().clone();
        let id = page["servers"][0]["id"].as_str().unwrap().to_owned();
        let stands = async |standing: &str| {
            let path = format!("/inventory/mcp-servers/{id}/standing");
            let answer = app.write("POST", &path, json!({ "standing": standing })).await;
            answer.ok().get("effect").cloned()
        };
        let set = async |fleet: Value| {
            let body = json!({ "fleet": fleet, "confirm": true });
            app.write("PATCH", "/automation/settings", body).await.ok();
        };
        let effects = async || {
            [
                quarantined(&judging).await,
                quarantined(&plain).await,
                stands("denied").await.unwrap(),
            ]
        };
        // A machine that does not say that it judges stops nothing, whatever is set.
        set(json!({ "hooks": { "mode": "enforce" } })).await;
        assert_eq!(effects().await, ["blocks", "not_judging", "judging_off"]);
        set(json!({ "hooks": { "judging": "on" } })).await;
        assert_eq!(effects().await, ["blocks", "not_judging", "devices_refuse"]);
        set(json!({ "hooks": { "mode": "monitor" } })).await;
        assert_eq!(effects().await, ["monitoring", "not_judging", "monitoring"]);
        set(json!({ "quarantineAction": "monitor" })).await;
        assert_eq!(effects().await, ["asks_server", "not_judging", "monitoring"]);
        // Another standing refuses nothing, and says nothing.
        assert_eq!(stands("shadow").await, None);
        app.kernel.stop().await;
    });
}
