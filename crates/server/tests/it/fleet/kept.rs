//! What is taken away again in a store that went back, what is removed by time, and what comes too late.

use super::{act, laptop_body, seen};
use crate::access::oauth::unit;
use crate::areas::directory;
use crate::areas::dpop::thumbprint;
use crate::areas::fleet::{Machine, enrol, enrolment_token, new_key, send};
use crate::support::{App, each};
use provost_kernel::area::Again;
use provost_kernel::{OperationContext, params, statements};
use provost_server::areas::restore;
use serde_json::json;
use std::sync::{Arc, mpsc};
use tokio::task::JoinSet;

statements! {
    /// Has an organization have as many devices as it may have, but for some.
    FILL = "INSERT INTO devices (organization_id, id, seq, name, status, needs_approval, mode, platform, arch, key_thumbprint, key_protection, enrolment_token_id, created_at, updated_at) WITH RECURSIVE n(i) AS (SELECT CAST(1 AS BIGINT) UNION ALL SELECT i + 1 FROM n WHERE i < CAST(?3 AS BIGINT)) SELECT CAST(?1 AS TEXT), 'dev_' || CAST(?5 AS TEXT) || '_' || CAST(i AS TEXT), CAST(?6 AS BIGINT) + i, 'laptop', 'active', i < 0, 'system', 'linux', 'x86_64', 'k' || CAST(?5 AS TEXT) || '_' || CAST(i AS TEXT), 'file', CAST(?2 AS TEXT), CAST(?4 AS BIGINT), CAST(?4 AS BIGINT) FROM n";
    /// Has tokens of devices have ended.
    AGE_TOKENS = "UPDATE device_tokens SET expires_at = ?2 WHERE organization_id = ?1";
    /// Has tokens have ended by which devices enrol.
    AGE_ENROLMENT_TOKENS = "UPDATE enrolment_tokens SET expires_at = ?2 WHERE organization_id = ?1";
    /// How many tokens there are of devices, and by which they enrol.
    COUNT = "SELECT (SELECT COUNT(*) FROM device_tokens WHERE organization_id = ?1), (SELECT COUNT(*) FROM enrolment_tokens WHERE organization_id = ?1)";
}

/// Takes something away again, as `provost store accept --lost` does.
async fn again(app: &App, what: &'static str, how: &'static str, ids: &[&str]) -> Again {
    let ids: Vec<String> = ids.iter().map(|id| (*id).to_owned()).collect();
    let (sink, shared) = mpsc::channel();
    let run = move |ctx: &mut OperationContext<'_>| {
        ctx.target(&restore::fences::STORE, "1");
        ctx.invalidate_cached_credentials();
        let _ = sink.send(provost_areas_platform::ends::take_again(ctx, what, how, &ids)?);
        Ok(())
    };
    let unit = app.kernel.system(app.org(), Some("store.loss_accepted"), run);
    unit.await.unwrap();
    shared.recv().unwrap()
}

/// Proves EN-3.
#[test]
fn what_a_lost_answer_took_away_is_taken_away_again() {
    each("fleet_retakings", |app: Arc<App>| async move {
        let (by, secret) = enrolment_token(&app, json!({})).await;
        let key = new_key();
        let first = send(&app, &key, &secret, "/devices/enrol", laptop_body()).await;
        let laptop = Machine::of(&app, key, &first);
        laptop.beat(&app).await.ok();
        // The token of an enrolment whose answer was lost.
        let token = first.json["token"]["id"].as_str().unwrap();
        let ids = [token, laptop.id.as_str()];
        let revoked = Again::Done("revoked");
        assert_eq!(again(&app, "device_token", "revoked", &ids).await, revoked);
        laptop.beat(&app).await.refused(401, "token_revoked");
        assert_eq!(again(&app, "device_token", "revoked", &ids).await, Again::Already);
        assert_eq!(again(&app, "enrolment_token", "revoked", &[&by]).await, revoked);
        send(&app, &new_key(), &secret, "/devices/enrol", laptop_body())
            .await
            .refused(401, "token_revoked");
        // Whose it is, and whom it is taken for.
        let other = Machine::new(&app).await;
        let anna = directory::user(&app, "anna@acme.test").await;
        let robot = app.account("robot", "viewer", &["registry:install"]).await.0;
        let (path, identity) = (
            format!("/devices/{}", other.id),
            format!("/devices/{}/gateway-identity", other.id),
        );
        let body = json!({ "ownerUserId": anna });
        app.write("PATCH", &path, body).await.ok();
        let body = json!({ "serviceAccountId": robot });
        app.write("PUT", &identity, body).await.ok();
        let (assigned, owned) = ([other.id.as_str(), &robot], [other.id.as_str(), &anna]);
        let unassigned = ("device_gateway_identity", "unassigned");
        let done = again(&app, unassigned.0, unassigned.1, &assigned).await;
        assert_eq!(done, Again::Done("unassigned"));
        assert_eq!(app.get(&identity).await.ok()["subjectId"], json!(anna));
        let done = again(&app, "device_owner", "disowned", &owned).await;
        assert_eq!(done, Again::Done("disowned"));
        app.get(&identity).await.refused(404, "not_found");
        for (what, how, ids) in [
            (unassigned.0, unassigned.1, &assigned),
            ("device_owner", "disowned", &owned),
        ] {
            assert_eq!(again(&app, what, how, ids).await, Again::Already);
        }
        for (how, status) in [("quarantined", "quarantined"), ("retired", "retired")] {
            let done = again(&app, "device", how, &[&other.id]).await;
            assert_eq!(done, Again::Done(how));
            assert_eq!(seen(&app, &other.id).await["status"], status);
            assert_eq!(again(&app, "device", how, &[&other.id]).await, Again::Already);
        }
        // A store that went back behind a rotation has the former key.
        let back = Machine::new(&app).await;
        let former = thumbprint(&back.key);
        let ids = [back.id.as_str(), former.as_str()];
        let of_another = [back.id.as_str(), "another"];
        assert_eq!(
            again(&app, "device_key", "given_up", &of_another).await,
            Again::Already
        );
        let done = again(&app, "device_key", "given_up", &ids).await;
        assert_eq!(done, Again::Done("quarantined"));
        let device = seen(&app, &back.id).await;
        let standing = (&device["status"], &device["tamper"]["reason"]);
        assert_eq!(standing, (&json!("quarantined"), &json!("former_key")));
        assert_eq!(again(&app, "device_key", "given_up", &ids).await, Again::Already);
        // And one that went back behind the first heartbeat as well: whoever has that key would be at work with the next one.
        let (_, secret) = enrolment_token(&app, json!({})).await;
        let unheard = enrol(&app, &secret).await;
        assert_eq!(seen(&app, &unheard.id).await["status"], "pending");
        let ids = [unheard.id.clone(), thumbprint(&unheard.key)];
        let ids = [ids[0].as_str(), ids[1].as_str()];
        let done = again(&app, "device_key", "given_up", &ids).await;
        assert_eq!(done, Again::Done("quarantined"));
        unheard.beat(&app).await;
        assert_eq!(seen(&app, &unheard.id).await["status"], "quarantined");
        // A bypass that ended is not live again.
        let freed = Machine::new(&app).await;
        let begun = super::bypass::begin(&app, &freed.id, 60).await;
        let bypass = begun.json["bypass"]["id"].as_str().unwrap();
        let done = again(&app, "device_bypass", "ended", &[bypass]).await;
        assert_eq!(done, Again::Done("ended; whoever needs it asks again"));
        assert!(seen(&app, &freed.id).await.get("bypass").is_none());
        assert_eq!(
            again(&app, "device_bypass", "ended", &[bypass]).await,
            Again::Already
        );
        let nothing = "dev_01kadh5j9v0000000000000000";
        for (what, how) in [("device", "retired"), ("device_owner", "disowned")] {
            let ids: &[&str] = if what == "device" {
                &[nothing]
            } else {
                &[nothing, &anna]
            };
            assert_eq!(again(&app, what, how, ids).await, Again::Gone);
        }
        app.kernel.stop().await;
    });
}

/// Who could do more than anybody may have meant is not behind the device by a store that went back.
///
/// Proves FL-7.
#[test]
fn an_account_that_is_taken_away_again_leaves_no_owner_who_can_do_something() {
    each("fleet_again_owner", |app: Arc<App>| async move {
        let laptop = Machine::new(&app).await;
        let boss = directory::user(&app, "boss@acme.test").await;
        let body = json!({ "permissionRole": "admin" });
        app.write("PATCH", &format!("/directory/users/{boss}"), body)
            .await
            .ok();
        let (path, identity) = (
            format!("/devices/{}", laptop.id),
            format!("/devices/{}/gateway-identity", laptop.id),
        );
        let body = json!({ "ownerUserId": boss });
        app.write("PATCH", &path, body.clone()).await.ok();
        let robot = app.account("robot", "viewer", &["registry:install"]).await.0;
        let account = json!({ "serviceAccountId": robot });
        app.write("PUT", &identity, account).await.ok();
        let ids = [laptop.id.as_str(), &robot];
        let done = again(&app, "device_gateway_identity", "unassigned", &ids).await;
        assert_eq!(done, Again::Done("unassigned"));
        app.get(&identity).await.refused(404, "not_found");
        app.write("PATCH", &path, body).await.ok();
        assert_eq!(app.get(&identity).await.ok()["subjectId"], json!(boss));
        app.kernel.stop().await;
    });
}

/// Proves FL-2.
#[test]
fn a_heartbeat_that_is_kept_after_the_retirement_is_refused() {
    each("fleet_late", |app: Arc<App>| async move {
        let laptop = Machine::new(&app).await;
        app.advance(60);
        let before = seen(&app, &laptop.id).await["lastHeartbeatAt"].clone();
        // The writer is busy: the retirement waits behind it, and the heartbeat, which was let in before, behind that.
        let (release, end) = mpsc::channel::<()>();
        let (began, start) = mpsc::channel::<()>();
        let (kernel, org) = (app.kernel.clone(), app.org());
        let mut busy = JoinSet::new();
        busy.spawn(async move {
            let wait = move |_: &mut OperationContext<'_>| {
                began.send(()).unwrap();
                end.recv().unwrap();
                Ok(())
            };
            kernel.system(org, None, wait).await
        });
        while start.try_recv().is_err() {
            tokio::task::yield_now().await;
        }
        let waiting = async |count| {
            while app.kernel.waiting_units() < count {
                tokio::task::yield_now().await;
            }
        };
        let (retired, late, ()) = tokio::join!(
            async { act(&app, &laptop.id, "retire").await },
            async {
                waiting(1).await;
                laptop.beat(&app).await
            },
            async {
                waiting(2).await;
                release.send(()).unwrap();
            }
        );
        busy.join_next().await.unwrap().unwrap().unwrap();
        retired.ok();
        late.refused(401, "unauthenticated");
        assert_eq!(seen(&app, &laptop.id).await["lastHeartbeatAt"], before);
        app.kernel.stop().await;
    });
}

/// LIMIT: devices of an organization (F2.15).
#[test]
fn an_organization_has_as_many_devices_as_it_may() {
    each("fleet_most", |app: Arc<App>| async move {
        let (by, one) = enrolment_token(&app, json!({})).await;
        let (_, other) = enrolment_token(&app, json!({})).await;
        let (_, third) = enrolment_token(&app, json!({})).await;
        let first = enrol(&app, &one).await;
        // A unit has a quarter of a second.
        for part in 0..100_i64 {
            let by = by.clone();
            let run = move |ctx: &mut OperationContext<'_>| {
                let (org, now) = (ctx.org(), ctx.now());
                let count = if part == 0 { 998_i64 } else { 1_000 };
                let (named, from) = (part.to_string(), 1_000 * part + 10);
                ctx.queue(&FILL, params![org, by.as_str(), count, now, named.as_str(), from])
            };
            app.kernel
                .system(app.org(), Some("test.filled"), run)
                .await
                .unwrap();
        }
        enrol(&app, &other).await;
        let one_more = async || send(&app, &new_key(), &third, "/devices/enrol", laptop_body()).await;
        one_more().await.refused(409, "conflict");
        act(&app, &first.id, "retire").await.ok();
        one_more().await.ok();
        app.kernel.stop().await;
    });
}

async fn count(app: &App) -> (i64, i64) {
    let counted = unit(app, |ctx| {
        let org = ctx.org();
        ctx.query_opt(&COUNT, params![org], |row| {
            Ok((row.get::<i64>(0)?, row.get::<i64>(1)?))
        })
    });
    counted.await.unwrap()
}

/// Runs what the area removes by time.
async fn prune(app: &App) {
    let now = app.kernel.undoubted().await.unwrap().unwrap();
    let run = move |ctx: &mut OperationContext<'_>| {
        for area in ctx.services().areas().iter().filter(|area| area.name == "fleet") {
            area.prune.unwrap()(ctx, now)?;
        }
        Ok(())
    };
    let org = provost_kernel::auth::OrganizationId::installation();
    app.kernel.system(org, None, run).await.unwrap();
}

/// Has all tokens of an organization have ended so long ago.
async fn age(app: &App, secs: i64) {
    let run = move |ctx: &mut OperationContext<'_>| {
        let (org, then) = (ctx.org(), ctx.now().plus_secs(-secs));
        ctx.queue(&AGE_TOKENS, params![org, then])?;
        ctx.queue(&AGE_ENROLMENT_TOKENS, params![org, then])
    };
    app.kernel
        .system(app.org(), Some("test.aged"), run)
        .await
        .unwrap();
}

#[test]
fn tokens_that_ended_are_kept_for_four_hundred_days() {
    each("fleet_pruned", |app: Arc<App>| async move {
        let days = 400 * 86_400;
        let laptop = Machine::new(&app).await;
        enrolment_token(&app, json!({})).await;
        prune(&app).await;
        assert_eq!(count(&app).await, (1, 2));
        age(&app, days).await;
        prune(&app).await;
        assert_eq!(count(&app).await, (1, 2));
        age(&app, days + 1).await;
        prune(&app).await;
        // The enrolment token stays with the device that enrolled by it, and the device for ever.
        assert_eq!(count(&app).await, (0, 1));
        assert_eq!(seen(&app, &laptop.id).await["status"], "active");
        app.kernel.stop().await;
    });
}

/// Proves EN-3.
#[test]
fn what_a_device_was_assigned_and_lost_is_taken_away_again() {
    each("assignment_retakings", |app: Arc<App>| async move {
        let laptop = Machine::new(&app).await;
        let path = crate::catalog::managed_config::profile(&app, "codex").await;
        let (profile, item) = (path.rsplit('/').next().unwrap(), app.skill("reading").await);
        let lists = [
            ("device_profile", profile, format!("{path}/devices")),
            (
                "device_skill",
                item.as_str(),
                format!("/skill-registry/{item}/devices"),
            ),
        ];
        for (what, id, list) in lists {
            let given = format!("{list}/{}", laptop.id);
            app.write("PUT", &given, json!({})).await.ok();
            let ids = [laptop.id.as_str(), id];
            let done = again(&app, what, "unassigned", &ids).await;
            assert_eq!(done, Again::Done("unassigned"));
            assert_eq!(app.get(&list).await.ok()["devices"], json!([]));
            assert_eq!(again(&app, what, "unassigned", &ids).await, Again::Already);
            assert!(matches!(
                again(&app, what, "unassigned", &ids[..1]).await,
                Again::ByHand(_)
            ));
        }
        app.kernel.stop().await;
    });
}
