//! What a person sees of their machines: what was found on them, and how long what is kept.

use crate::access::oauth::{token, trusting, user, workshop};
use crate::areas::device_judging;
use crate::areas::fleet::{Machine, own_of, send};
use crate::areas::inventory::{server, skill};
use crate::support::{App, Reply, each};
use provost_bundle::CHAIN_START;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::sync::Arc;

const ANN: &str = "ann@acme.example";
const INVENTORY: &str = "/devices/own/inventory";

async fn get(app: &App, by: &str, path: &str) -> Reply {
    app.request("GET", path).token(by).send().await
}

/// Returns for how many days, and from when on, what is kept.
async fn retention(app: &App, by: &str) -> BTreeMap<String, (Option<i64>, Option<String>)> {
    let own = get(app, by, "/devices/own").await.ok().clone();
    let of = |kept: &Value| {
        let from = kept["from"].as_str().map(str::to_owned);
        (
            kept["kind"].as_str().unwrap().to_owned(),
            (kept["days"].as_i64(), from),
        )
    };
    own["retention"].as_array().unwrap().iter().map(of).collect()
}

/// Has a machine tell that something passed.
async fn tell(app: &App, machine: &Machine) {
    let passed = json!({ "kind": "count", "user": ANN, "client": "codex", "tool": "Read", "minute": app.now().to_rfc3339(), "count": 3 });
    let told = device_judging::report(1, CHAIN_START, &[passed]);
    let path = format!("/devices/{}/decisions", machine.id);
    send(app, &machine.key, &machine.token, &path, told).await.ok();
}

/// Proves PV-1, IN-14.
#[test]
fn a_person_reads_what_her_machines_reported_and_nobody_else_does() {
    each("own_inventory", |app: Arc<App>| async move {
        let workshop = workshop(&app);
        let app = trusting(&app, &workshop);
        let ann = user(&app, ANN, None).await;
        user(&app, "bob@acme.example", None).await;
        let members = json!({ "directory": { "defaultRole": "member" },
            "fleet": { "privacy": { "people": "pseudonymous", "hostNames": "hide" } } });
        app.write("PATCH", "/automation/settings", members).await.ok();
        let signed = |mail: &'static str| {
            token(&workshop, |claims| {
                claims["scope"] = "fleet:enrol_self".into();
                claims["email"] = mail.into();
                claims["sub"] = mail.into();
            })
        };
        let (hers, his) = (signed(ANN), signed("bob@acme.example"));
        let laptop = own_of(&app, &hers).await.unwrap();
        laptop.beat(&app).await.ok();
        let found = json!([
            server("files", "npm:files", false),
            server("web", "npm:web", false),
            skill("reading", "a")
        ]);
        laptop.has(&app, "ann-account", &found).await.ok();
        device_judging::set(&app, "on").await;
        tell(&app, &laptop).await;
        let other = Machine::new(&app).await;
        other
            .has(&app, "eve", &json!([server("other", "npm:other", false)]))
            .await
            .ok();

        let read = get(&app, &hers, INVENTORY).await.ok().clone();
        let all = read["observations"].as_array().unwrap().clone();
        assert_eq!(all.len(), 3, "{read}");
        for one in &all {
            assert_eq!(
                (&one["account"], &one["deviceId"]),
                (&json!("ann-account"), &json!(laptop.id))
            );
            let standing = if one["found"]["kind"] == "skill" {
                Value::Null
            } else {
                json!("shadow")
            };
            assert_eq!(one["standing"], standing, "members read no registry");
        }
        assert_eq!(read.get("dataAge"), None);
        let held = &read["devices"][0];
        assert_eq!(
            (
                &held["deviceId"],
                &held["decisions"]["passed"],
                &held["decisions"]["events"]
            ),
            (&json!(laptop.id), &json!(3), &json!(0))
        );
        assert!(held["reportedAt"].is_string());
        let named = format!("{INVENTORY}?deviceId={}", laptop.id);
        let one = get(&app, &hers, &named).await.ok().clone();
        assert_eq!(one["observations"], read["observations"]);
        // Page by page it is the same, and a page of hers is none of his.
        let first = get(&app, &hers, &format!("{INVENTORY}?limit=2"))
            .await
            .ok()
            .clone();
        let cursor = first["nextCursor"].as_str().unwrap();
        let next = format!("{INVENTORY}?limit=2&cursor={cursor}");
        let second = get(&app, &hers, &next).await.ok().clone();
        assert_eq!(second["observations"], json!([all[2]]));
        get(&app, &his, &next).await.refused(400, "invalid_request");

        // Others have none of it, and hear of no machine.
        for by in [&his, &app.admin] {
            let nothing = get(&app, by, INVENTORY).await.ok().clone();
            assert_eq!(
                (&nothing["observations"], &nothing["devices"]),
                (&json!([]), &Value::Null)
            );
            let foreign = get(&app, by, &named).await;
            foreign.refused(404, "not_found");
            let absent = format!("{INVENTORY}?deviceId=dev_01kadh5j9v0000000000000000");
            let absent = get(&app, by, &absent).await;
            assert_eq!(
                (absent.status, &absent.json["message"]),
                (foreign.status, &foreign.json["message"])
            );
        }
        let foreign = format!("{INVENTORY}?deviceId={}", other.id);
        get(&app, &hers, &foreign).await.refused(404, "not_found");
        let entries = "/audit/events?action=listHeadlessOwnInventory&limit=100";
        let noted = app.get(entries).await.ok()["events"].as_array().unwrap().clone();
        let of_hers =
            |entry: &&Value| entry["actor"]["id"] == json!(ann) && entry["outcome"]["decision"] == "allowed";
        assert!(noted.iter().filter(of_hers).count() >= 4, "{noted:?}");

        // What is no longer hers she reads no longer.
        let path = format!("/devices/{}", laptop.id);
        app.write("PATCH", &path, json!({ "ownerUserId": null }))
            .await
            .ok();
        assert_eq!(get(&app, &hers, INVENTORY).await.ok()["observations"], json!([]));
        get(&app, &hers, &named).await.refused(404, "not_found");
        app.kernel.stop().await;
    });
}

#[test]
fn how_long_what_is_kept_follows_what_it_is_forgotten_by() {
    each("own_retention", |app: Arc<App>| async move {
        let ended = |days| (Some(days), Some("ended".to_owned()));
        let happened = |days| (Some(days), Some("happened".to_owned()));
        let expected = |history| {
            let all = [
                ("record", (None, None)),
                ("coverage", (None, None)),
                ("tokens", ended(400)),
                ("commands", ended(30)),
                ("inventory", ended(90)),
                ("uses", happened(90)),
                ("decisions", happened(history)),
                ("decision_counts", happened(30)),
                ("audit", (None, None)),
            ];
            all.map(|(kind, kept)| (kind.to_owned(), kept)).into()
        };
        let set = async |days: i64| {
            let body = json!({ "retention": { "historyDays": days }, "confirm": true });
            app.write("PATCH", "/automation/settings", body).await.ok();
        };
        set(500).await;
        assert_eq!(retention(&app, &app.admin).await, expected(500));
        // A shorter one acts after a week, and until then the longer one is what is true.
        set(100).await;
        assert_eq!(retention(&app, &app.admin).await, expected(500));
        app.advance(8 * 86_400);
        assert_eq!(retention(&app, &app.admin).await, expected(100));
        app.kernel.stop().await;
    });
}
