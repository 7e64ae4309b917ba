//! What machines report, and what becomes of it (D8.1, D8.12).

use super::{perform, preview, profile, publish};
use crate::support::{App, Reply, each, fresh_key, with_trio};
use provost_areas_catalog::managed_config::watch_targets;
use serde_json::{Value, json};
use std::sync::Arc;

async fn report(app: &App, path: &str, machine: &str, release: &Value, digest: &Value, state: &str) -> Reply {
    let body = json!({ "targetId": machine, "releaseId": release, "contentDigest": digest, "state": state });
    let call = app.request("POST", &format!("{path}/reports"));
    call.json(with_trio(body, &fresh_key())).by_machine().send().await
}

async fn states(app: &App, path: &str) -> Vec<(String, String)> {
    let page = app.get(&format!("{path}/targets?limit=100")).await;
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    let targets = page.ok()["targets"].as_array().unwrap().clone();
    for (_, state) in targets.iter().map(|t| (0, text(&t["state"]))) {
        let some = app.get(&format!("{path}/targets?state={state}")).await;
        let expected: Vec<&Value> = targets.iter().filter(|t| t["state"] == state.as_str()).collect();
        assert_eq!(
            some.ok()["targets"]
                .as_array()
                .unwrap()
                .iter()
                .collect::<Vec<_>>(),
            expected
        );
    }
    targets
        .iter()
        .map(|t| (text(&t["targetId"]), text(&t["state"])))
        .collect()
}

async fn tally(app: &App, path: &str, release: &Value) -> (String, Value) {
    let reply = app
        .get(&format!("{path}/releases/{}", release["id"].as_str().unwrap()))
        .await;
    let rollout = &reply.ok()["release"]["rollout"];
    let targets = &rollout["targets"];
    let sum: i64 = ["pending", "applied", "verified", "failed", "drifted"]
        .iter()
        .map(|n| targets[n].as_i64().unwrap())
        .sum();
    assert_eq!(targets["total"], sum);
    let page = app.get(&format!("{path}/releases?limit=100")).await;
    let listed = page.ok()["releases"]
        .as_array()
        .unwrap()
        .iter()
        .find(|r| r["id"] == release["id"])
        .unwrap()
        .clone();
    assert_eq!(&listed["rollout"], rollout);
    (rollout["state"].as_str().unwrap().to_owned(), targets.clone())
}

fn kinds(events: &[(String, Value)]) -> Vec<&str> {
    events
        .iter()
        .map(|(kind, _)| kind.as_str())
        .filter(|kind| kind.contains("target"))
        .collect()
}

#[test]
fn a_release_is_followed_machine_by_machine() {
    each("mc_rollout", |app: Arc<App>| async move {
        let path = profile(&app, "generic_json").await;
        app.write("PATCH", &path, json!({ "pollIntervalSeconds": 60 }))
            .await
            .ok();
        let early = report(
            &app,
            &path,
            "a",
            &json!("mcr_x"),
            &json!(format!("sha256:{}", "0".repeat(64))),
            "failed",
        )
        .await;
        assert_eq!(
            (&early.ok()["target"]["state"], early.json.get("expected")),
            (&json!("pending"), None)
        );
        let first = publish(&app, &path, json!({ "x": 1 })).await;
        assert_eq!(tally(&app, &path, &first).await.0, "pending");
        let done = report(&app, &path, "a", &first["id"], &first["contentDigest"], "applied").await;
        assert_eq!(done.ok()["expected"]["id"], first["id"]);
        report(
            &app,
            &path,
            "b",
            &first["id"],
            &first["contentDigest"],
            "verified",
        )
        .await
        .ok();
        let (state, counts) = tally(&app, &path, &first).await;
        assert_eq!(
            (state.as_str(), &counts["applied"], &counts["verified"]),
            ("complete", &json!(1), &json!(1))
        );

        let second = publish(&app, &path, json!({ "x": 2 })).await;
        assert_eq!(tally(&app, &path, &second).await.1["pending"], 2);
        report(
            &app,
            &path,
            "a",
            &second["id"],
            &second["contentDigest"],
            "verified",
        )
        .await
        .ok();
        let from = app.events(0).await.len();
        for _ in 0..2 {
            report(&app, &path, "b", &second["id"], &first["contentDigest"], "failed")
                .await
                .ok();
        }
        let events = app.events(from.try_into().unwrap()).await;
        assert_eq!(kinds(&events), ["managed_config.target.failed"], "told once");
        let (state, counts) = tally(&app, &path, &second).await;
        assert_eq!(
            (state.as_str(), &counts["verified"], &counts["failed"]),
            ("rolling_out", &json!(1), &json!(1))
        );
        assert_eq!(
            tally(&app, &path, &first).await.1["total"],
            0,
            "nobody says that this release is in place"
        );

        // A rollback restores the first digest: who still holds it is done already.
        report(
            &app,
            &path,
            "b",
            &first["id"],
            &first["contentDigest"],
            "verified",
        )
        .await
        .ok();
        let shown = preview(&app, &path, json!({})).await;
        assert_eq!(
            shown.ok()["affected"],
            json!({ "targets": 2, "groups": 0, "online": 2 })
        );
        app.advance(121);
        let shown = preview(&app, &path, json!({})).await;
        assert_eq!(shown.ok()["affected"]["online"], 0);
        assert_eq!(
            shown.json["warnings"].as_array().unwrap().last().unwrap()["code"],
            "targets_offline"
        );
        let done = perform(&app, &path, json!({ "sourceReleaseId": first["id"] })).await;
        assert_eq!(done.ok()["release"]["rollout"]["targets"]["verified"], 1);
        assert_eq!(
            states(&app, &path).await[1],
            ("b".to_owned(), "verified".to_owned())
        );
    });
}

/// Proves MC-8.
#[test]
fn drift_is_told_once_until_it_heals() {
    each("mc_drift", |app: Arc<App>| async move {
        let path = profile(&app, "generic_json").await;
        app.write("PATCH", &path, json!({ "pollIntervalSeconds": 60 }))
            .await
            .ok();
        let release = publish(&app, &path, json!({ "x": 1 })).await;
        let edited = json!(format!("sha256:{}", "e".repeat(64)));
        for machine in ["steady", "edited"] {
            report(
                &app,
                &path,
                machine,
                &release["id"],
                &release["contentDigest"],
                "verified",
            )
            .await
            .ok();
        }
        app.advance(1000);
        report(&app, &path, "edited", &release["id"], &edited, "applied")
            .await
            .ok();
        let from: i64 = app.events(0).await.len().try_into().unwrap();
        app.advance(120);
        assert_eq!(watch_targets(&app.kernel).await.unwrap(), 0);
        assert_eq!(states(&app, &path).await[1].1, "pending");
        app.clock.advance(std::time::Duration::from_millis(1));
        assert_eq!(
            states(&app, &path).await[1].1,
            "drifted",
            "what is shown waits for no reconciler"
        );
        assert_eq!(watch_targets(&app.kernel).await.unwrap(), 1);
        assert_eq!(watch_targets(&app.kernel).await.unwrap(), 0);
        report(&app, &path, "edited", &release["id"], &edited, "applied")
            .await
            .ok();
        app.advance(1000);
        assert_eq!(watch_targets(&app.kernel).await.unwrap(), 0);
        let events = app.events(from).await;
        assert_eq!(kinds(&events), ["managed_config.target.drifted"]);
        // Who reads events may not be one who may know the digest: the event has the one that they see.
        let targets = app.get(&format!("{path}/targets")).await;
        let mut seen = targets.ok()["targets"].as_array().unwrap().iter();
        let seen = seen.find(|target| target["targetId"] == "edited");
        assert_ne!(seen.unwrap()["contentDigest"], edited);
        assert_eq!(
            (&events[0].1["targetId"], &events[0].1["contentDigest"]),
            (&json!("edited"), &seen.unwrap()["contentDigest"])
        );
        assert_eq!(tally(&app, &path, &release).await.1["drifted"], 1);

        report(
            &app,
            &path,
            "edited",
            &release["id"],
            &release["contentDigest"],
            "verified",
        )
        .await
        .ok();
        assert_eq!(states(&app, &path).await[1].1, "verified");
        report(&app, &path, "edited", &release["id"], &edited, "applied")
            .await
            .ok();
        app.advance(121);
        assert_eq!(
            watch_targets(&app.kernel).await.unwrap(),
            1,
            "it healed, so the next time is told"
        );

        // Who says nothing of a new release drifts as well; who is silent for long is forgotten.
        publish(&app, &path, json!({ "x": 2 })).await;
        app.advance(121);
        assert_eq!(watch_targets(&app.kernel).await.unwrap(), 1);
        let body = json!({ "name": "later", "permissionRole": "admin", "allOfRole": true, "expiresInSeconds": 31_536_000 });
        let made = app.write("POST", "/service-accounts", body).await;
        let token = made.ok()["token"]["token"].as_str().unwrap().to_owned();
        app.advance(90 * 86_400 + 1);
        watch_targets(&app.kernel).await.unwrap();
        let app = app.view_of(app.organization.clone(), token);
        assert_eq!(states(&app, &path).await, []);
    });
}

#[test]
fn whoever_may_pull_may_report_and_is_named() {
    each("mc_reporters", |app: Arc<App>| async move {
        let path = profile(&app, "generic_json").await;
        let release = publish(&app, &path, json!({ "x": 1 })).await;
        let (id, machine) = app.account("machines", "auditor", &["managed_config:pull"]).await;
        let body = json!({
            "targetId": "laptop-7", "targetName": "Ada's laptop", "releaseId": release["id"],
            "contentDigest": release["contentDigest"], "state": "applied", "message": "written",
        });
        let call = |token: &str, body: Value| {
            let call = app.request("POST", &format!("{path}/reports")).token(token);
            call.json(with_trio(body, &fresh_key())).send()
        };
        let reply = call(&machine, body.clone()).await;
        assert_eq!(
            reply.ok()["target"]["reportedBy"],
            json!({ "type": "service_account", "id": id })
        );
        assert_eq!(reply.json["target"]["targetName"], "Ada's laptop");
        let (_, viewer) = app.account("looks", "viewer", &[]).await;
        call(&viewer, body.clone()).await.refused(403, "role_forbidden");
        for (member, bad) in [
            ("targetId", json!("a b")),
            ("targetId", json!("x".repeat(129))),
            ("contentDigest", json!("sha256:ABC")),
            ("contentDigest", json!(format!("sha256:{}", "A".repeat(64)))),
            ("state", json!("drifted")),
            ("message", json!("x".repeat(1025))),
        ] {
            let mut body = body.clone();
            body[member] = bad;
            let reply = call(&machine, body).await;
            reply.refused(400, "invalid_request");
            assert_eq!(reply.json["errors"][0]["path"], format!("/{member}"));
        }
        let (mut seen, mut rest) = (Vec::new(), format!("{path}/targets?limit=2"));
        for name in ["a", "b", "c"] {
            let mut body = body.clone();
            body["targetId"] = name.into();
            call(&machine, body).await.ok();
        }
        loop {
            let page = app.get(&rest).await;
            seen.extend(
                page.ok()["targets"]
                    .as_array()
                    .unwrap()
                    .iter()
                    .map(|t| t["targetId"].as_str().unwrap().to_owned()),
            );
            match page.json["nextCursor"].as_str() {
                Some(cursor) => rest = format!("{path}/targets?limit=2&cursor={cursor}"),
                None => break,
            }
        }
        assert_eq!(seen, ["laptop-7", "a", "b", "c"]);
    });
}
