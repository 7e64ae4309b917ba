//! Which machines an enrolment token enrols, and what they are called by it.

use super::seen;
use crate::areas::dpop::proof_of;
use crate::areas::fleet::{Machine, TOKENS, enrolment_token, laptop, new_key, send};
use crate::support::{App, Reply, each, fresh_key};
use aws_lc_rs::signature::Ed25519KeyPair;
use serde_json::{Value, json};
use std::sync::Arc;

/// From where machines call here, unless a test says another place.
const HERE: &str = "192.0.2.7";

/// Enrols a machine of a key that calls from an address, with what it or somebody on the way says of that.
async fn enrols_from(
    app: &App,
    (key, secret): (&Ed25519KeyPair, &str),
    body: Value,
    address: &str,
    says: Option<(&'static str, &str)>,
) -> Reply {
    let path = app.path("/devices/enrol");
    let url = format!("{}{path}", app.kernel.settings.public_url);
    let now = app.now().as_ms() / 1000;
    let proof = proof_of("POST", key, secret, now, &fresh_key(), &url);
    let mut call = app.request("POST", "/devices/enrol").token(secret).from(address);
    call = call.header("dpop", &proof);
    if let Some((name, value)) = says {
        call = call.header(name, value);
    }
    call.json(body).send().await
}

async fn enrols(app: &App, secret: &str, body: Value) -> Reply {
    enrols_from(app, (&new_key(), secret), body, HERE, None).await
}

/// Proves FL-12.
#[test]
fn a_machine_enrols_within_the_bounds_of_its_token_and_gets_its_labels() {
    each("fleet_bounds", |app: Arc<App>| async move {
        let members = json!({
            "labels": ["team:web", "site:berlin"], "platforms": ["linux", "macos"], "networks": ["127.0.0.0/8", "192.0.2.0/24"],
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
        let enrolled = enrols_from(&app, (&key, &secret), laptop("berlin-7"), HERE, None).await;
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
        let elsewhere = json!({ "networks": ["198.51.100.0/24"] });
        let (_, secret) = enrolment_token(&app, elsewhere).await;
        enrols(&app, &secret, laptop("berlin-8"))
            .await
            .refused(409, "conflict");
        app.kernel.stop().await;
    });
}

/// A proxy that nobody named has one address for everybody: that lies in no network, or each machine of the world would be of the office.
/// Proves FL-12.
#[test]
fn an_address_that_may_be_an_unknown_proxys_lies_in_no_network() {
    each("fleet_bounds_proxy", |app: Arc<App>| async move {
        let (_, bounded) = enrolment_token(&app, json!({ "networks": ["0.0.0.0/0", "::/0"] })).await;
        let body = || laptop("berlin-7");
        for header in ["x-forwarded-for", "forwarded", "x-real-ip"] {
            let says = Some((header, "192.0.2.9"));
            let reply = enrols_from(&app, (&new_key(), &bounded), body(), "10.0.0.1", says).await;
            reply.refused(409, "conflict");
            assert!(reply.text().contains("http.trusted_proxies"), "{}", reply.text());
        }
        // Nobody knows from where this one calls.
        let unknown = send(&app, &new_key(), &bounded, "/devices/enrol", body()).await;
        unknown.refused(409, "conflict");
        // Where nothing is narrowed by it nobody asks.
        let (_, open) = enrolment_token(&app, json!({})).await;
        let says = Some(("x-forwarded-for", "192.0.2.9"));
        enrols_from(&app, (&new_key(), &open), body(), "10.0.0.1", says)
            .await
            .ok();
        enrols_from(&app, (&new_key(), &bounded), body(), "10.0.0.1", None)
            .await
            .ok();
        app.kernel.stop().await;
    });
}

/// Each answer is asked anew, not the first one alone.
/// Proves FL-12.
#[test]
fn a_machine_that_lost_the_answer_is_within_the_bounds_still() {
    each("fleet_bounds_again", |app: Arc<App>| async move {
        let members =
            json!({ "networks": ["192.0.2.0/24"], "namePrefix": "berlin-", "platforms": ["linux"] });
        let (_, secret) = enrolment_token(&app, members).await;
        let key = new_key();
        let asks =
            async |address: &str, body: Value| enrols_from(&app, (&key, &secret), body, address, None).await;
        let first = asks(HERE, laptop("berlin-7")).await;
        let mut windows = laptop("berlin-7");
        windows["platform"] = json!("windows");
        for (address, body) in [
            ("198.51.100.7", laptop("berlin-7")),
            (HERE, laptop("paris-7")),
            (HERE, windows),
        ] {
            asks(address, body).await.refused(409, "conflict");
        }
        assert_eq!(first.status.as_u16(), 201);
        let again = asks(HERE, laptop("berlin-7")).await;
        assert_eq!(again.status.as_u16(), 200);
        Machine::of(&app, key.clone(), &again).beat(&app).await.ok();
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
