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
fn a_token_is_renewed_from_the_fifteenth_day_on_and_the_earlier_one_lives_to_its_own_end() {
    each("fleet_renewal", |app: Arc<App>| async move {
        let laptop = Machine::new(&app).await;
        app.advance(15 * DAY - 1);
        let early = laptop.renew(&app).await;
        early.refused(409, "conflict");
        assert!(early.json["renewableFrom"].is_string() || early.text().contains("renewableFrom"));
        app.advance(1);
        let reply = laptop.renew(&app).await;
        let lost = with(&app, &laptop, &reply);
        // The answer was lost: the earlier token asks again, and nobody is suspected.
        app.advance(700);
        laptop.beat(&app).await.ok();
        let renewed = with(&app, &laptop, &laptop.renew(&app).await);
        assert_ne!(renewed.token, lost.token);
        renewed.beat(&app).await.ok();
        app.settle().await;
        let seen = app.get(&format!("/devices/{}", laptop.id)).await;
        assert_eq!(seen.ok()["device"]["tamper"]["state"], "none");
        // Without the key the new one opens nothing, like the earlier one.
        let stranger = Machine::new(&app).await;
        let path = format!("/devices/{}/heartbeat", laptop.id);
        let reply = send(&app, &stranger.key, &renewed.token, &path, beat()).await;
        reply.refused(401, "unauthenticated");
        let path = format!("/devices/{}/token", laptop.id);
        let reply = app.request("POST", &path).token(&stranger.token).send().await;
        reply.refused(403, "role_forbidden");
        renewed.renew(&app).await.refused(409, "conflict");
        app.advance(15 * DAY - 700);
        laptop.renew(&app).await.refused(401, "token_expired");
        renewed.beat(&app).await.ok();
        let body = serde_json::json!({ "confirm": true });
        let path = format!("/devices/{}/retire", laptop.id);
        app.write("POST", &path, body).await.ok();
        for dead in [&renewed, &lost] {
            dead.beat(&app).await.refused(401, "token_revoked");
        }
        app.kernel.stop().await;
    });
}

/// Proves FL-5.
#[test]
fn a_token_has_eight_successors_and_those_that_nobody_used_for_a_day_give_way() {
    each("fleet_successors", |app: Arc<App>| async move {
        let laptop = Machine::new(&app).await;
        app.advance(15 * DAY);
        let first = with(&app, &laptop, &laptop.renew(&app).await);
        for _ in 1..8 {
            laptop.renew(&app).await.ok();
        }
        laptop.renew(&app).await.refused(409, "conflict");
        // A machine that sleeps over it has what it asked for first, as long as a machine sleeps.
        app.advance(DAY - 1);
        laptop.renew(&app).await.refused(409, "conflict");
        app.advance(1);
        let last = with(&app, &laptop, &laptop.renew(&app).await);
        first.beat(&app).await.refused(401, "token_revoked");
        last.beat(&app).await.ok();
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
