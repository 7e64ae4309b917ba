//! How a device comes to another token.

use crate::areas::fleet::{Machine, beat, send};
use crate::support::{App, each};
use std::sync::Arc;

const DAY: u64 = 86_400;

/// Returns the machine with the token of an answer.
fn with(app: &App, machine: &Machine, reply: &crate::support::Reply) -> Machine {
    let token = reply.ok()["token"]["token"].as_str().unwrap().to_owned();
    app.machines.bind(&token, &machine.key);
    Machine {
        token,
        ..machine.clone()
    }
}

/// Proves FL-1, FL-2.
#[test]
fn a_token_is_renewed_from_the_fifteenth_day_on_and_the_earlier_one_lives_ten_minutes() {
    each("fleet_renewal", |app: Arc<App>| async move {
        let laptop = Machine::new(&app).await;
        app.advance(15 * DAY - 1);
        let early = laptop.renew(&app).await;
        early.refused(409, "conflict");
        assert!(early.json["renewableFrom"].is_string() || early.text().contains("renewableFrom"));
        app.advance(1);
        let reply = laptop.renew(&app).await;
        let renewed = with(&app, &laptop, &reply);
        renewed.beat(&app).await.ok();
        app.settle().await;
        // The answer was lost: the earlier token asks again, and takes nothing from whoever has the first answer.
        app.advance(599);
        laptop.beat(&app).await.ok();
        let lost = with(&app, &laptop, &laptop.renew(&app).await);
        let again = with(&app, &laptop, &laptop.renew(&app).await);
        // Nobody used the one whose answer was lost: the next one is in its place.
        lost.beat(&app).await.refused(401, "token_revoked");
        assert_ne!(again.token, renewed.token);
        renewed.beat(&app).await.ok();
        again.beat(&app).await.ok();
        app.settle().await;
        // Three at a time, whoever asks.
        laptop.renew(&app).await.refused(409, "conflict");
        app.advance(1);
        laptop.beat(&app).await.refused(401, "token_expired");
        laptop.renew(&app).await.refused(401, "token_expired");
        renewed.renew(&app).await.refused(409, "conflict");
        // Without the key the new one opens nothing, like the earlier one.
        let stranger = Machine::new(&app).await;
        let path = format!("/devices/{}/heartbeat", laptop.id);
        let reply = send(&app, &stranger.key, &renewed.token, &path, beat()).await;
        reply.refused(401, "unauthenticated");
        let path = format!("/devices/{}/token", laptop.id);
        let reply = app.request("POST", &path).token(&stranger.token).send().await;
        reply.refused(403, "role_forbidden");
        let body = serde_json::json!({ "confirm": true });
        let path = format!("/devices/{}/retire", laptop.id);
        let retired = app.write("POST", &path, body).await;
        assert_eq!(retired.ok()["revoked"]["tokens"], 3);
        for dead in [&renewed, &again] {
            dead.beat(&app).await.refused(401, "token_revoked");
        }
        app.kernel.stop().await;
    });
}

#[test]
fn a_token_that_expired_renews_nothing() {
    each("fleet_expiry", |app: Arc<App>| async move {
        let laptop = Machine::new(&app).await;
        app.advance(30 * DAY);
        laptop.renew(&app).await.refused(401, "token_expired");
        laptop.beat(&app).await.refused(401, "token_expired");
        app.kernel.stop().await;
    });
}
