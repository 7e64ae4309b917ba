//! How a device comes to another token.

use crate::areas::directory::run_jobs;
use crate::areas::fleet::{Machine, beat, send};
use crate::support::{App, each};
use provost_kernel::time::SystemClock;
use provost_kernel::{OperationContext, params, statements};
use std::sync::Arc;

statements! {
    /// Has a device have many tokens that somebody used.
    FILL = "INSERT INTO device_tokens (organization_id, id, device_id, key_thumbprint, lookup_id, token_prefix, mac, pepper_id, created_at, expires_at, replay_pending) WITH RECURSIVE n(i) AS (SELECT CAST(1 AS BIGINT) UNION ALL SELECT i + 1 FROM n WHERE i < CAST(?3 AS BIGINT)) SELECT t.organization_id, 'dvt_' || CAST(?5 AS TEXT) || CAST(n.i AS TEXT), t.device_id, t.key_thumbprint, CAST(?5 AS TEXT) || CAST(n.i AS TEXT), t.token_prefix, t.mac, t.pepper_id, CAST(?4 AS BIGINT), CAST(?6 AS BIGINT), n.i < 0 FROM device_tokens t CROSS JOIN n WHERE t.organization_id = ?1 AND t.device_id = ?2";
    /// How many tokens of a device are not revoked.
    LIVING = "SELECT COUNT(*) FROM device_tokens WHERE organization_id = ?1 AND device_id = ?2 AND revoked_at IS NULL";
}

const DAY: u64 = 86_400;

/// Has a machine that has one token have so many more, which serve for as many seconds.
async fn fill(app: &App, machine: &Machine, named: &'static str, count: i64, secs: i64) {
    let id = machine.id.clone();
    let run = move |ctx: &mut OperationContext<'_>| {
        let (org, now) = (ctx.org(), ctx.now());
        let until = now.plus_secs(secs);
        ctx.execute(&FILL, params![org, id.as_str(), count, now, named, until])
            .map(drop)
    };
    app.kernel.system(app.org(), None, run).await.unwrap();
}

async fn living(app: &App, machine: &Machine) -> i64 {
    let (org, id) = (app.org(), machine.id.clone());
    let read = app.kernel.read_system(move |tx| {
        tx.query_opt(&LIVING, params![org.as_str(), id.as_str()], |row| {
            row.get::<i64>(0)
        })
    });
    read.await.unwrap().unwrap()
}

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

/// Copies that renew the tokens of each other make thousands otherwise, and whoever retires the device waits for each of them.
///
/// Proves FL-5.
#[test]
fn a_device_has_32_tokens_that_work() {
    each("fleet_living", |app: Arc<App>| async move {
        let laptop = Machine::new(&app).await;
        app.advance(15 * DAY);
        laptop.beat(&app).await.ok();
        fill(&app, &laptop, "a", 30, 10 * 86_400).await;
        // The 32nd, which nobody uses for a day.
        let unused = with(&app, &laptop, &laptop.renew(&app).await);
        laptop.renew(&app).await.refused(409, "conflict");
        app.advance(DAY);
        laptop.renew(&app).await.ok();
        unused.beat(&app).await.refused(401, "token_revoked");
        laptop.renew(&app).await.refused(409, "conflict");
        laptop.beat(&app).await.ok();
        // Those that ran out count no more.
        app.advance(9 * DAY);
        laptop.renew(&app).await.ok();
        app.kernel.stop().await;
    });
}

/// Proves FL-2.
#[test]
fn a_device_with_thousands_of_tokens_is_retired_at_once_and_the_tokens_go_after_it() {
    each("fleet_many_tokens", |app: Arc<App>| async move {
        let laptop = Machine::new(&app).await;
        fill(&app, &laptop, "a", 5_000, 20_000 * 86_400).await;
        // The limit is one of time: this server has a clock that goes.
        let server = app.beside(
            Vec::new(),
            Arc::new(SystemClock::new()),
            app.kernel.settings.clone(),
            app.location(),
        );
        let path = format!("/devices/{}/retire", laptop.id);
        let body = serde_json::json!({ "confirm": true });
        // A machine that does much else may need another try; thousands of tokens would need another one for ever.
        let mut reply = server.write("POST", &path, body.clone()).await;
        for _ in 0..3 {
            if reply.status.as_u16() == 503 {
                reply = server.write("POST", &path, body.clone()).await;
            }
        }
        let retired = reply.ok();
        assert!(retired["revoked"]["tokens"].as_u64() >= Some(5_000), "{retired}");
        server.kernel.stop().await;
        assert_eq!(laptop.beat(&app).await.status.as_u16(), 401);
        let left = living(&app, &laptop).await;
        assert!(left >= 4_800, "{left}");
        // Behind every clock that goes.
        app.advance(4_000 * DAY);
        run_jobs(&app).await;
        assert!(living(&app, &laptop).await <= 1);
        app.kernel.stop().await;
    });
}
