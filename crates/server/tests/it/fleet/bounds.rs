//! Which machines an enrolment token enrols, and what they are called by it.

use super::seen;
use crate::areas::fleet::{Machine, TOKENS, enrolment_token, laptop, new_key, send};
use crate::support::{App, Reply, each, fresh_key};
use serde_json::{Value, json};
use std::sync::Arc;

async fn enrols(app: &App, secret: &str, body: Value) -> Reply {
    send(app, &new_key(), secret, "/devices/enrol", body).await
}

/// Proves FL-12.
#[test]
fn a_machine_enrols_within_the_bounds_of_its_token_and_gets_its_labels() {
    each("fleet_bounds", |app: Arc<App>| async move {
        let members = json!({
            "labels": ["team:web", "site:berlin"], "platforms": ["linux", "macos"], "networks": ["127.0.0.0/8", "::/0", "0.0.0.0/0"],
            "namePrefix": "berlin-",
        });
        let (id, secret) = enrolment_token(&app, members.clone()).await;
        let shown = app.get(TOKENS).await.ok()["enrolmentTokens"][0].clone();
        assert_eq!(shown["id"], json!(id));
        assert_eq!(shown["labels"], json!(["site:berlin", "team:web"]));
        for member in ["platforms", "networks", "namePrefix"] {
            assert_eq!(shown[member], members[member], "{member}");
        }
        let mut windows = laptop("berlin-7");
        windows["platform"] = json!("windows");
        for wrong in [windows, laptop("paris-7")] {
            enrols(&app, &secret, wrong).await.refused(409, "conflict");
        }
        assert_eq!(app.get(TOKENS).await.ok()["enrolmentTokens"][0]["uses"], 0);
        let key = new_key();
        let enrolled = send(&app, &key, &secret, "/devices/enrol", laptop("berlin-7")).await;
        let device = enrolled.ok()["device"].clone();
        assert_eq!(device["labels"], json!(["site:berlin", "team:web"]));
        let machine = Machine::of(&app, key, &enrolled);
        machine.beat(&app).await.ok();
        let found = app.get("/devices?label=site:berlin").await.ok()["devices"].clone();
        assert_eq!(found[0]["id"], json!(machine.id));
        // Whoever may change the device changes them: the token says nothing of it any more.
        let path = format!("/devices/{}", machine.id);
        app.write("PATCH", &path, json!({ "labels": [] })).await.ok();
        assert_eq!(seen(&app, &machine.id).await["labels"], json!([]));
        // From elsewhere nobody enrols, whatever the machine says of itself.
        let elsewhere = json!({ "networks": ["192.0.2.0/24"] });
        let (_, secret) = enrolment_token(&app, elsewhere).await;
        enrols(&app, &secret, laptop("berlin-8"))
            .await
            .refused(409, "conflict");
        app.kernel.stop().await;
    });
}

#[test]
fn bounds_that_mean_nothing_are_refused() {
    each("fleet_bounds_refused", |app: Arc<App>| async move {
        let many = |count: usize| (0..count).map(|n| format!("10.0.0.{n}")).collect::<Vec<_>>();
        for (member, value, status) in [
            ("platforms", json!([]), 400),
            ("platforms", json!(["beos"]), 400),
            ("networks", json!([]), 400),
            ("networks", json!(many(17)), 400),
            ("networks", json!(["10.0.0.0/33"]), 422),
            ("networks", json!(["10.0.0.0/8", "the office"]), 422),
            ("namePrefix", json!(""), 400),
            ("labels", json!(["Site"]), 400),
        ] {
            let mut body = json!({ "name": fresh_key() });
            body[member] = value.clone();
            let reply = app.write("POST", TOKENS, body).await;
            assert_eq!(
                reply.status.as_u16(),
                status,
                "{member} {value}: {}",
                reply.text()
            );
        }
        let body = json!({ "name": fresh_key(), "networks": many(16) });
        app.write("POST", TOKENS, body).await.ok();
        app.kernel.stop().await;
    });
}
