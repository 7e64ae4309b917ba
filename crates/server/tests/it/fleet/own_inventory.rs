//! What a person sees of their machines: what was found on them, and how long what is kept.

use crate::access::oauth::{token, trusting, user, workshop};
use crate::areas::device_judging;
use crate::areas::fleet::{Machine, own_of, send};
use crate::areas::inventory::{report, section, server, skill};
use crate::support::{App, Reply, each};
use provost_bundle::CHAIN_START;
use provost_oauth::corpus::Workshop;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::sync::Arc;

const ANN: &str = "ann@acme.example";
const INVENTORY: &str = "/devices/own/inventory";

/// A person who signed in by an application that may enrol.
fn signed(workshop: &Workshop, mail: &'static str) -> String {
    token(workshop, |claims| {
        claims["scope"] = "fleet:enrol_self".into();
        claims["email"] = mail.into();
        claims["sub"] = mail.into();
    })
}

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
        let signed = |mail: &'static str| signed(&workshop, mail);
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

/// Reports sections of accounts, with whether each is whole, by a look that began so many seconds ago.
async fn look(app: &App, machine: &Machine, ago: i64, sections: &[(&str, Value, bool)]) {
    let sections = sections
        .iter()
        .map(|(account, found, is_whole)| section(account, found, *is_whole));
    let sections = json!(sections.collect::<Vec<Value>>());
    machine.report(app, report(app, ago, &sections)).await.ok();
}

/// What somebody reads of a machine: what it is called there and since when, what is kept of it, and the names of accounts.
async fn reads(app: &App, by: &str) -> (Vec<(String, Value)>, Value) {
    let read = get(app, by, INVENTORY).await.ok().clone();
    let of = |one: &Value| {
        let name = one["found"]["configuredName"].as_str().unwrap().to_owned();
        (name, one["firstSeenAt"].clone())
    };
    let mut found: Vec<_> = read["observations"].as_array().unwrap().iter().map(of).collect();
    found.sort_by(|one, other| one.0.cmp(&other.0));
    (found, read["devices"][0].clone())
}

fn names(found: &[(String, Value)]) -> Vec<&str> {
    found.iter().map(|(name, _)| name.as_str()).collect()
}

fn one_server(name: &str) -> Value {
    json!([server(name, &format!("npm:{name}"), false)])
}

/// Proves FL-15.
#[test]
fn a_new_owner_reads_nothing_that_was_found_or_told_before() {
    each("own_since", |app: Arc<App>| async move {
        let workshop = workshop(&app);
        let app = trusting(&app, &workshop);
        let ann = user(&app, ANN, None).await;
        let bob = user(&app, "bob@acme.example", None).await;
        let members = json!({ "directory": { "defaultRole": "member" } });
        app.write("PATCH", "/automation/settings", members).await.ok();
        let signed = |mail: &'static str| signed(&workshop, mail);
        let (hers, his) = (signed(ANN), signed("bob@acme.example"));
        let laptop = own_of(&app, &hers).await.unwrap();
        laptop.beat(&app).await.ok();
        // Of before the clock of the machine was right, and all hers: nobody had it before.
        look(
            &app,
            &laptop,
            9_999,
            &[
                ("ann", one_server("ann-tool"), true),
                ("shared", one_server("kept"), true),
                ("torn", one_server("torn"), true),
            ],
        )
        .await;
        device_judging::set(&app, "on").await;
        tell(&app, &laptop).await;
        let (found, held) = reads(&app, &hers).await;
        assert_eq!(names(&found), ["ann-tool", "kept", "torn"]);
        assert_eq!(
            (&held["decisions"]["passed"], held.get("earlierWithheld")),
            (&json!(3), None)
        );

        app.advance(60);
        let path = format!("/devices/{}", laptop.id);
        app.write("PATCH", &path, json!({ "ownerUserId": bob }))
            .await
            .ok();
        let handed_over = app.now();
        let nothing_of_before = async |why: &str| {
            let (found, held) = reads(&app, &his).await;
            assert_eq!(names(&found), [""; 0], "{why}");
            assert_eq!(held["ownedSince"], json!(handed_over.to_rfc3339()), "{why}");
            assert_eq!(held["earlierWithheld"], json!(true), "{why}");
            assert_eq!(held.get("decisions"), None, "{why}");
            held.get("reportedAt").is_some()
        };
        assert!(!nothing_of_before("nothing was reported since").await);
        // What else is said of the machine gives it to nobody anew, and takes it from nobody.
        app.write("PATCH", &path, json!({ "labels": ["site:berlin"] }))
            .await
            .ok();
        nothing_of_before("labels are no owner").await;
        // What waited on the machine since before, the same and something else, is of before whenever it comes.
        app.advance(60);
        let waited = [
            ("ann", one_server("ann-tool"), true),
            ("late", one_server("late"), true),
            ("shared", one_server("kept"), true),
        ];
        look(&app, &laptop, 90, &waited).await;
        assert!(!nothing_of_before("a look of before").await);
        // A machine whose clock is ahead may have looked at any time.
        look(&app, &laptop, -3_600, &waited).await;
        assert!(!nothing_of_before("a look of nobody knows when").await);
        assert_eq!(get(&app, &hers, INVENTORY).await.ok()["observations"], json!([]));

        // A look since then: what is there still is seen since then, and what a torn look says nothing of is not his.
        app.advance(60);
        let torn = json!([server("torn-new", "npm:torn-new", false)]);
        let since = [
            ("bob", one_server("bob-tool"), true),
            ("shared", one_server("kept"), true),
            ("torn", torn, false),
        ];
        look(&app, &laptop, 1, &since).await;
        let (found, held) = reads(&app, &his).await;
        assert_eq!(names(&found), ["bob-tool", "kept", "torn-new"]);
        assert_eq!(found[1].1, json!(handed_over.to_rfc3339()));
        assert_eq!(
            held["earlierWithheld"],
            json!(true),
            "of the accounts that no look named since"
        );
        assert_eq!(held["reportedAt"], json!(app.now().to_rfc3339()));
        // A section that is as it was is looked at as well.
        app.advance(60);
        let unchanged = section("shared", &one_server("kept"), true);
        let mut body = report(&app, 0, &json!([]));
        body["unchanged"] =
            json!([{ "client": "claude_code", "user": "shared", "digest": unchanged["digest"] }]);
        laptop.report(&app, body).await.ok();
        assert_eq!(
            names(&reads(&app, &his).await.0),
            ["bob-tool", "kept", "torn-new"]
        );
        // An admin reads all of it.
        let all = app.get(&format!("{path}/inventory")).await.ok()["observations"].clone();
        assert_eq!(all.as_array().map(Vec::len), Some(6), "{all}");

        // She who gets it back reads nothing of before either, not of her own time.
        app.write("PATCH", &path, json!({ "ownerUserId": ann }))
            .await
            .ok();
        assert_eq!(names(&reads(&app, &hers).await.0), [""; 0]);
        app.kernel.stop().await;
    });
}

/// Proves FL-15.
#[test]
fn a_new_owner_reads_how_much_was_told_since() {
    each("own_since_told", |app: Arc<App>| async move {
        let workshop = workshop(&app);
        let app = trusting(&app, &workshop);
        user(&app, ANN, None).await;
        let bob = user(&app, "bob@acme.example", Some("member")).await;
        let signed = |mail: &'static str| signed(&workshop, mail);
        let members = json!({ "directory": { "defaultRole": "member" } });
        app.write("PATCH", "/automation/settings", members).await.ok();
        let laptop = own_of(&app, &signed(ANN)).await.unwrap();
        laptop.beat(&app).await.ok();
        device_judging::set(&app, "on").await;
        let passed = |count: i64| json!({ "kind": "count", "user": ANN, "client": "codex", "tool": "Read", "minute": app.now().to_rfc3339(), "count": count });
        let first = device_judging::report(1, CHAIN_START, &[passed(3)]);
        let decisions = format!("/devices/{}/decisions", laptop.id);
        send(&app, &laptop.key, &laptop.token, &decisions, first.clone())
            .await
            .ok();
        app.advance(60);
        let path = format!("/devices/{}", laptop.id);
        app.write("PATCH", &path, json!({ "ownerUserId": bob }))
            .await
            .ok();
        let his = signed("bob@acme.example");
        assert_eq!(reads(&app, &his).await.1.get("decisions"), None);
        app.advance(60);
        let second = device_judging::report(2, first["head"].as_str().unwrap(), &[passed(2)]);
        send(&app, &laptop.key, &laptop.token, &decisions, second)
            .await
            .ok();
        assert_eq!(reads(&app, &his).await.1["decisions"]["passed"], json!(2));
        app.kernel.stop().await;
    });
}

/// Proves FL-15, PV-1.
#[test]
fn a_new_owner_does_not_read_accounts_of_before_where_people_are_pseudonyms() {
    each("own_since_accounts", |app: Arc<App>| async move {
        let workshop = workshop(&app);
        let app = trusting(&app, &workshop);
        let boss = user(&app, ANN, Some("admin")).await;
        let privacy = json!({ "fleet": { "privacy": { "people": "pseudonymous", "hostNames": "hide" } } });
        app.write("PATCH", "/automation/settings", privacy).await.ok();
        let her = token(&workshop, |claims| {
            claims["scope"] = "inventory:read fleet:enrol_self".into();
            claims["email"] = ANN.into();
            claims["sub"] = ANN.into();
        });
        let laptop = Machine::new(&app).await;
        look(&app, &laptop, 0, &[("bob-account", one_server("files"), true)]).await;
        app.advance(60);
        let path = format!("/devices/{}", laptop.id);
        app.write("PATCH", &path, json!({ "ownerUserId": boss }))
            .await
            .ok();
        let accounts = async || {
            let read = get(&app, &her, &format!("{path}/inventory")).await.ok().clone();
            [&read["sections"][0], &read["observations"][0]].map(|one| one["account"].clone())
        };
        for account in accounts().await {
            assert!(account.as_str().unwrap().starts_with("psn_"), "{account}");
        }
        app.advance(60);
        look(&app, &laptop, 1, &[("bob-account", one_server("files"), true)]).await;
        assert_eq!(accounts().await, [json!("bob-account"), json!("bob-account")]);
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
