//! What people say of devices, and how they find them.

use crate::areas::fleet::{Machine, beat_of, enrol, enrolment_token};
use crate::support::{App, each};
use serde_json::{Value, json};
use std::sync::Arc;

async fn update(app: &App, id: &str, body: Value) -> crate::support::Reply {
    app.write("PATCH", &format!("/devices/{id}"), body).await
}

async fn found(app: &App, query: &str) -> Vec<String> {
    let reply = app.get(&format!("/devices?{query}")).await;
    let devices = reply.ok()["devices"].as_array().unwrap();
    devices
        .iter()
        .map(|device| device["id"].as_str().unwrap().to_owned())
        .collect()
}

#[test]
fn a_device_has_a_name_and_labels() {
    each("fleet_described", |app: Arc<App>| async move {
        let laptop = Machine::new(&app).await;
        let body = json!({ "name": "Anna's laptop", "labels": ["team:web", "site:berlin"] });
        let device = update(&app, &laptop.id, body.clone()).await.ok()["device"].clone();
        assert_eq!(device["name"], "Anna's laptop");
        assert_eq!(device["labels"], json!(["site:berlin", "team:web"]));
        // Again, it is no news; nor does the machine itself undo it.
        let before = app.events(0).await.len();
        update(&app, &laptop.id, body).await.ok();
        laptop.beat(&app).await.ok();
        assert_eq!(app.events(0).await.len(), before);
        assert_eq!(
            app.get(&format!("/devices/{}", laptop.id)).await.ok()["device"]["labels"],
            device["labels"]
        );
        let (_, operator) = app.account("operator", "operator", &[]).await;
        let call = app
            .request("PATCH", &format!("/devices/{}", laptop.id))
            .token(&operator);
        let body = crate::support::with_trio(json!({ "name": "mine" }), "a key of an operator");
        call.json(body).send().await.refused(403, "role_forbidden");
        for (wrong, status) in [
            (json!({ "labels": ["Site"] }), 400),
            (json!({ "labels": ["a", "a"] }), 400),
            (json!({ "labels": [""] }), 400),
            (
                json!({ "labels": (0..33).map(|n| format!("l{n}")).collect::<Vec<_>>() }),
                400,
            ),
            (json!({ "name": null }), 400),
        ] {
            assert_eq!(
                update(&app, &laptop.id, wrong.clone()).await.status.as_u16(),
                status,
                "{wrong}"
            );
        }
        let device = update(&app, &laptop.id, json!({ "labels": [] })).await;
        assert_eq!(device.ok()["device"]["labels"], json!([]));
        app.kernel.stop().await;
    });
}

#[test]
fn devices_are_found_by_what_is_known_of_them() {
    each("fleet_found", |app: Arc<App>| async move {
        let old = Machine::new(&app).await;
        app.advance(2_592_001);
        let away = Machine::new(&app).await;
        app.advance(901);
        let near = Machine::new(&app).await;
        let (_, secret) = enrolment_token(&app, json!({})).await;
        let silent = enrol(&app, &secret).await;
        let body = json!({ "name": "Build-Server 7", "labels": ["site:berlin"] });
        update(&app, &near.id, body).await.ok();
        update(&app, &away.id, json!({ "labels": ["site:berlin-2", "berlin"] }))
            .await
            .ok();
        assert_eq!(found(&app, "presence=online").await, [near.id.as_str()]);
        assert_eq!(found(&app, "presence=away").await, [away.id.as_str()]);
        assert_eq!(found(&app, "presence=silent").await, Vec::<String>::new());
        assert_eq!(
            found(&app, "presence=lost").await,
            [silent.id.as_str(), old.id.as_str()]
        );
        assert_eq!(found(&app, "label=site:berlin").await, [near.id.as_str()]);
        assert_eq!(found(&app, "label=berlin").await, [away.id.as_str()]);
        assert_eq!(found(&app, "query=d-server").await, [near.id.as_str()]);
        assert_eq!(found(&app, "query=%25").await, Vec::<String>::new());
        assert_eq!(
            found(&app, "label=site:berlin&presence=away").await,
            Vec::<String>::new()
        );
        let first = app.get("/devices?presence=lost&limit=1").await;
        let cursor = first.ok()["nextCursor"].as_str().unwrap();
        assert_eq!(
            found(&app, &format!("presence=lost&limit=1&cursor={cursor}")).await,
            [old.id.as_str()]
        );
        app.get(&format!("/devices?presence=away&limit=1&cursor={cursor}"))
            .await
            .refused(400, "invalid_request");
        app.get("/devices?label=A").await.refused(400, "invalid_request");
        // The same run of the system counts on, and another count comes behind it.
        assert_eq!(found(&app, "tamper=suspected").await, Vec::<String>::new());
        for counter in [900, 3] {
            app.advance(10);
            let path = format!("/devices/{}/heartbeat", near.id);
            let call = app.request("POST", &path).token(&near.token);
            call.json(beat_of(counter, "one")).send().await.ok();
        }
        assert_eq!(found(&app, "tamper=suspected").await, [near.id.as_str()]);
        let others = [silent.id.as_str(), away.id.as_str(), old.id.as_str()];
        assert_eq!(found(&app, "tamper=none").await, others);
        assert_eq!(
            found(&app, "tamper=suspected&platform=macos").await,
            Vec::<String>::new()
        );
        let first = app.get("/devices?tamper=none&limit=1").await;
        let cursor = first.ok()["nextCursor"].as_str().unwrap();
        app.get(&format!("/devices?tamper=suspected&limit=1&cursor={cursor}"))
            .await
            .refused(400, "invalid_request");
        app.get("/devices?tamper=confirmed")
            .await
            .refused(400, "invalid_request");
        app.kernel.stop().await;
    });
}

#[test]
fn a_retired_device_is_lost_whenever_it_was_heard_of() {
    each("fleet_retired_lost", |app: Arc<App>| async move {
        let (gone, near) = (Machine::new(&app).await, Machine::new(&app).await);
        let presence = async |id: &str| {
            let device = app.get(&format!("/devices/{id}")).await;
            device.ok()["device"]["presence"].clone()
        };
        assert_eq!(presence(&gone.id).await, "online");
        let retire = format!("/devices/{}/retire", gone.id);
        let retired = app.write("POST", &retire, json!({ "confirm": true })).await;
        assert_eq!(retired.ok()["device"]["presence"], "lost");
        assert_eq!(presence(&gone.id).await, "lost");
        assert_eq!(presence(&near.id).await, "online");
        let listed = app.get("/devices?status=retired").await.ok().clone();
        assert_eq!(listed["devices"][0]["presence"], "lost");
        assert!(listed["devices"][0]["lastHeartbeatAt"].is_string());
        // A filter finds what the list shows.
        assert_eq!(found(&app, "presence=online").await, [near.id.as_str()]);
        assert_eq!(found(&app, "presence=lost").await, [gone.id.as_str()]);
        assert_eq!(found(&app, "").await.len(), 2);
        app.kernel.stop().await;
    });
}
