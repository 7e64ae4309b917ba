//! Which profiles a device gets, by whose word, and what it does with them.

use crate::areas::fleet::Machine;
use crate::catalog::managed_config::{profile, publish};
use crate::support::{App, Reply, each, fresh_key, with_trio};
use serde_json::{Value, json};
use std::sync::Arc;

/// What hides nothing.
fn plain() -> Value {
    json!({ "permissions": { "deny": ["Read(./.env)"] } })
}

/// What has a hidden value.
fn hiding() -> Value {
    json!({ "env": { "API_KEY": "canary-4711" } })
}

fn id_of(path: &str) -> &str {
    path.rsplit('/').next().unwrap()
}

/// A call of a machine for a device.
async fn asks(app: &App, machine: &Machine, device: &str, rest: &str) -> Reply {
    let path = format!("/devices/{device}/profiles{rest}");
    app.request("GET", &path).token(&machine.token).send().await
}

async fn assign(app: &App, path: &str, device: &str) -> Reply {
    app.write("PUT", &format!("{path}/devices/{device}"), json!({}))
        .await
}

/// Assigns as somebody who holds `managed_config:pull` too.
async fn assign_in_clear(app: &App, path: &str, device: &str) -> Reply {
    let scopes = ["managed_config:write", "managed_config:pull"];
    let (_, token) = app.account(&fresh_key(), "admin", &scopes).await;
    let call = app.request("PUT", &format!("{path}/devices/{device}"));
    call.token(&token)
        .json(with_trio(json!({}), &fresh_key()))
        .send()
        .await
}

async fn reports(app: &App, machine: &Machine, path: &str, release: &Value, state: &str) -> Reply {
    let rest = format!("/devices/{}/profiles/{}/reports", machine.id, id_of(path));
    let body =
        json!({ "releaseId": release["id"], "contentDigest": release["contentDigest"], "state": state });
    app.request("POST", &rest)
        .token(&machine.token)
        .json(body)
        .send()
        .await
}

async fn targets(app: &App, path: &str) -> Vec<Value> {
    let page = app.get(&format!("{path}/targets")).await.ok().clone();
    page["targets"].as_array().unwrap().clone()
}

/// Proves DC-1.
#[test]
fn a_device_gets_what_people_gave_it_and_nothing_else() {
    each("dp_given", |app: Arc<App>| async move {
        let (laptop, other) = (Machine::new(&app).await, Machine::new(&app).await);
        let path = profile(&app, "claude_code").await;
        let release = publish(&app, &path, plain()).await;
        let one = format!("/{}", id_of(&path));
        // No name and no label of a device opens anything.
        let body = json!({ "name": id_of(&path), "labels": [id_of(&path)] });
        app.write("PATCH", &format!("/devices/{}", laptop.id), body)
            .await
            .ok();
        let nothing = asks(&app, &laptop, &laptop.id, "").await.ok().clone();
        assert_eq!(nothing, json!({ "profiles": [] }));
        asks(&app, &laptop, &laptop.id, &one)
            .await
            .refused(404, "not_found");

        let given = assign(&app, &path, &laptop.id).await.ok().clone();
        assert_eq!(given["assignment"]["inClear"], false);
        assert_eq!(
            assign(&app, &path, &laptop.id).await.ok()["assignment"],
            given["assignment"]
        );
        let listed = app.get(&format!("{path}/devices")).await.ok().clone();
        assert_eq!(listed["devices"], json!([given["assignment"]]));
        let seen = asks(&app, &laptop, &laptop.id, "").await.ok().clone();
        let seen = &seen["profiles"][0];
        assert_eq!(
            (&seen["profileId"], &seen["target"], &seen["release"]["version"]),
            (&json!(id_of(&path)), &json!("claude_code"), &json!(1))
        );
        assert_eq!(seen["withheld"], Value::Null);
        let got = asks(&app, &laptop, &laptop.id, &one).await.ok().clone();
        assert_eq!(
            (&got["redacted"], &got["release"]["id"]),
            (&json!(false), &release["id"])
        );
        assert!(got["envelope"].is_object());
        assert!(got["files"].to_string().contains("Read(./.env)"));

        // Another device gets nothing of it, neither for itself nor for this one.
        asks(&app, &other, &other.id, &one)
            .await
            .refused(404, "not_found");
        asks(&app, &other, &laptop.id, &one)
            .await
            .refused(403, "role_forbidden");
        reports(&app, &other, &path, &release, "verified")
            .await
            .refused(404, "not_found");

        // A new release is another revision, and so is another word of the profile.
        let before = seen["revision"].clone();
        publish(&app, &path, json!({ "permissions": { "deny": ["WebFetch"] } })).await;
        let after = asks(&app, &laptop, &laptop.id, "").await.ok()["profiles"][0]["revision"].clone();
        assert_ne!(before, after);
        app.advance(1);
        app.write("PATCH", &path, json!({ "onUnavailable": "fail_closed" }))
            .await
            .ok();
        let later = asks(&app, &laptop, &laptop.id, "").await.ok()["profiles"][0]["revision"].clone();
        assert_ne!(after, later);

        let device = format!("{path}/devices/{}", laptop.id);
        assert_eq!(app.delete(&device).await.status.as_u16(), 204);
        asks(&app, &laptop, &laptop.id, &one)
            .await
            .refused(404, "not_found");
        app.delete(&device).await.refused(404, "not_found");
        app.kernel.stop().await;
    });
}

/// Proves DC-2, MC-9, MC-10.
#[test]
fn hidden_values_go_only_where_a_holder_of_their_scope_gave_the_profile() {
    each("dp_hidden", |app: Arc<App>| async move {
        let laptop = Machine::new(&app).await;
        let path = profile(&app, "claude_code").await;
        let one = format!("/{}", id_of(&path));
        publish(&app, &path, plain()).await;
        assign(&app, &path, &laptop.id).await.ok();
        asks(&app, &laptop, &laptop.id, &one).await.ok();
        // The next release hides something: who wrote the assignment could not have read it.
        publish(&app, &path, hiding()).await;
        let seen = asks(&app, &laptop, &laptop.id, "").await.ok().clone();
        assert_eq!(seen["profiles"][0]["withheld"], "hidden_values");
        let refused = asks(&app, &laptop, &laptop.id, &one).await;
        refused.refused(409, "conflict");
        assert!(!refused.text().contains("canary"), "{}", refused.text());

        let given = assign_in_clear(&app, &path, &laptop.id).await.ok().clone();
        assert_eq!(given["assignment"]["inClear"], true);
        let got = asks(&app, &laptop, &laptop.id, &one).await.ok().clone();
        assert!(got["files"].to_string().contains("canary-4711"));
        // The log names the device, once an hour.
        asks(&app, &laptop, &laptop.id, &one).await.ok();
        app.settle().await;
        let entries = app.entries(&app.organization, 0).await;
        let fetched = |entry: &&Value| {
            entry["action"] == "getHeadlessManagedConfigCurrent" && entry["actor"]["id"] == json!(laptop.id)
        };
        assert_eq!(entries.iter().filter(fetched).count(), 1);
        // Who assigns again without the scope takes no word back.
        assert_eq!(
            assign(&app, &path, &laptop.id).await.ok()["assignment"]["inClear"],
            true
        );

        let quarantine = format!("/devices/{}/quarantine", laptop.id);
        app.write("POST", &quarantine, json!({})).await.ok();
        let seen = asks(&app, &laptop, &laptop.id, "").await.ok().clone();
        assert_eq!(seen["profiles"][0]["withheld"], "quarantined");
        asks(&app, &laptop, &laptop.id, &one)
            .await
            .refused(409, "conflict");
        app.kernel.stop().await;
    });
}

/// Proves DC-3.
#[test]
fn a_device_has_one_profile_for_each_program() {
    each("dp_one", |app: Arc<App>| async move {
        let laptop = Machine::new(&app).await;
        let (claude, second) = (
            profile(&app, "claude_code").await,
            profile(&app, "claude_code").await,
        );
        let codex = profile(&app, "codex").await;
        assign(&app, &claude, &laptop.id).await.ok();
        assign(&app, &second, &laptop.id).await.refused(409, "conflict");
        assign(&app, &codex, &laptop.id).await.ok();
        let any = profile(&app, "generic_json").await;
        assign(&app, &any, &laptop.id).await.refused(409, "conflict");
        // Before the first publication there is nothing to fetch, and that is said.
        let seen = asks(&app, &laptop, &laptop.id, "").await.ok().clone();
        assert_eq!(seen["profiles"].as_array().unwrap().len(), 2);
        assert_eq!(seen["profiles"][0]["release"], Value::Null);
        let path = format!("/{}", id_of(&codex));
        asks(&app, &laptop, &laptop.id, &path)
            .await
            .refused(404, "not_found");
        // A retired device gets nothing, and is given nothing any more.
        let body = json!({ "confirm": true });
        app.write("POST", &format!("/devices/{}/retire", laptop.id), body)
            .await
            .ok();
        for path in [&claude, &codex] {
            let left = app.get(&format!("{path}/devices")).await.ok().clone();
            assert_eq!(left["devices"], json!([]));
            assign(&app, path, &laptop.id).await.refused(409, "conflict");
        }
        app.kernel.stop().await;
    });
}

/// Proves DC-4, MC-11.
#[test]
fn a_device_alone_reports_for_itself() {
    each("dp_reports", |app: Arc<App>| async move {
        let laptop = Machine::new(&app).await;
        let path = profile(&app, "claude_code").await;
        let release = publish(&app, &path, plain()).await;
        let account = async |state: &str| {
            let body = json!({ "targetId": laptop.id, "releaseId": release["id"],
                "contentDigest": release["contentDigest"], "state": state });
            let call = app.request("POST", &format!("{path}/reports"));
            call.json(with_trio(body, &fresh_key())).by_machine().send().await
        };
        // An account was first to use the device's id: the id is the device's nevertheless.
        account("applied").await.ok();
        assign(&app, &path, &laptop.id).await.ok();
        let answer = reports(&app, &laptop, &path, &release, "verified")
            .await
            .ok()
            .clone();
        assert_eq!(answer, json!({ "state": "verified" }));
        account("failed").await.refused(409, "conflict");
        let known = targets(&app, &path).await;
        // Machines are called after people: who lists those of a profile need not be allowed to see devices.
        assert_eq!(known[0]["targetName"], Value::Null);
        assert_eq!(known.len(), 1);
        assert_eq!(
            (
                &known[0]["state"],
                &known[0]["reportedBy"]["type"],
                &known[0]["reportedBy"]["id"]
            ),
            (&json!("verified"), &json!("device"), &json!(laptop.id))
        );
        // That all is well is said every hour, and is no entry; that it is not is one.
        app.settle().await;
        let count = async || {
            app.settle().await;
            let entries = app.entries(&app.organization, 0).await;
            let reported = |entry: &&Value| entry["action"] == "managed_config.device.reported";
            entries.iter().filter(reported).count()
        };
        let before = count().await;
        app.advance(3_600);
        reports(&app, &laptop, &path, &release, "verified").await.ok();
        assert_eq!(count().await, before);
        reports(&app, &laptop, &path, &release, "failed").await.ok();
        assert_eq!(count().await, before + 1);
        assert_eq!(targets(&app, &path).await[0]["state"], "failed");
        // With the profile the machine is gone from its list.
        app.delete(&format!("{path}/devices/{}", laptop.id)).await.ok();
        assert!(targets(&app, &path).await.is_empty());
        reports(&app, &laptop, &path, &release, "verified")
            .await
            .refused(404, "not_found");
        app.kernel.stop().await;
    });
}

/// Proves DC-5.
#[test]
fn a_device_that_says_another_thing_at_each_report_fills_no_log() {
    // No limit of requests is on.
    each("dp_flaps", |app: Arc<App>| async move {
        let (laptop, other) = (Machine::new(&app).await, Machine::new(&app).await);
        let path = profile(&app, "claude_code").await;
        let release = publish(&app, &path, plain()).await;
        for machine in [&laptop, &other] {
            assign(&app, &path, &machine.id).await.ok();
        }
        let told = async || {
            app.settle().await;
            let entries = app.entries(&app.organization, 0).await.into_iter();
            let entries = entries.filter(|entry| entry["action"] == "managed_config.device.reported");
            let entries: Vec<Value> = entries.collect();
            let events = app.events(0).await;
            let failed = events
                .iter()
                .filter(|(kind, _)| kind == "managed_config.target.failed");
            (entries, failed.count())
        };
        for turn in 0..100 {
            let state = if turn % 2 == 0 { "applied" } else { "failed" };
            reports(&app, &laptop, &path, &release, state).await.ok();
        }
        let (entries, failed) = told().await;
        assert_eq!((entries.len(), failed), (12, 6));
        // What it said last is known, and another machine is heard.
        assert_eq!(targets(&app, &path).await[0]["state"], "failed");
        reports(&app, &other, &path, &release, "failed").await.ok();
        let (entries, failed) = told().await;
        assert_eq!((entries.len(), failed), (13, 7));
        // The state that was not told is told as soon as there is room, and how many there were.
        app.advance(300);
        reports(&app, &laptop, &path, &release, "failed").await.ok();
        let (entries, failed) = told().await;
        assert_eq!((entries.len(), failed), (14, 8));
        let changes = entries[13]["changes"].as_array().unwrap();
        let untold = changes.iter().find(|change| change["path"] == "/statesUntold");
        assert_eq!(untold.unwrap()["after"], 88);
        // And then it is told.
        app.advance(300);
        reports(&app, &laptop, &path, &release, "failed").await.ok();
        assert_eq!(told().await.0.len(), 14);
        app.kernel.stop().await;
    });
}

/// Proves DC-1.
#[test]
fn a_device_gets_the_skills_that_people_gave_it_until_they_are_withdrawn() {
    each("dp_skills", |app: Arc<App>| async move {
        let (laptop, other) = (Machine::new(&app).await, Machine::new(&app).await);
        let item = app.skill("reading").await;
        let list = format!("/skill-registry/{item}/devices");
        let path = format!("{list}/{}", laptop.id);
        let asks = async |machine: &Machine, rest: &str| {
            let path = format!("/devices/{}/skills{rest}", machine.id);
            app.request("GET", &path).token(&machine.token).send().await
        };
        let one = format!("/{item}");
        assert_eq!(asks(&laptop, "").await.ok(), &json!({ "skills": [] }));
        asks(&laptop, &one).await.refused(404, "not_found");
        let pinned = format!("/skill-registry/reading@1.0.0/devices/{}", laptop.id);
        app.write("PUT", &pinned, json!({}))
            .await
            .refused(409, "conflict");
        let given = app.write("PUT", &path, json!({})).await.ok().clone();
        assert_eq!(app.write("PUT", &path, json!({})).await.ok(), &given);
        assert_eq!(app.get(&list).await.ok()["devices"], json!([given["assignment"]]));
        let seen = asks(&laptop, "").await.ok()["skills"].clone();
        assert_eq!(
            (&seen[0]["ref"], &seen[0]["version"]),
            (&json!("reading"), &json!("1.0.0"))
        );
        assert!(asks(&laptop, &one).await.ok()["envelope"].is_object());
        let content = asks(&laptop, &format!("{one}/content")).await;
        assert_eq!(content.header("content-type"), "application/gzip");
        for rest in [one.clone(), format!("{one}/content")] {
            asks(&other, &rest).await.refused(404, "not_found");
        }
        // A withdrawn skill is offered to nobody, and its assignment ends with the device.
        let withdraw = format!("/skill-registry/{item}/withdraw");
        app.write("POST", &withdraw, json!({ "confirm": true }))
            .await
            .ok();
        assert_eq!(asks(&laptop, "").await.ok(), &json!({ "skills": [] }));
        asks(&laptop, &format!("{one}/content"))
            .await
            .refused(404, "not_found");
        let another = format!("/skill-registry/{item}/devices/{}", other.id);
        app.write("PUT", &another, json!({}))
            .await
            .refused(409, "conflict");
        let body = json!({ "confirm": true });
        app.write("POST", &format!("/devices/{}/retire", laptop.id), body)
            .await
            .ok();
        assert_eq!(app.get(&list).await.ok()["devices"], json!([]));
        app.kernel.stop().await;
    });
}
