//! Keys that change under several servers of one store and one folder of keys (KY-1).

use crate::support::{App, each};
use provost_kernel::db::{Access, Conn};
use provost_kernel::entropy::{SystemEntropy, UnitRng};
use provost_kernel::kernel::Extras;
use provost_kernel::keys::Keys;
use provost_kernel::time::Timestamp;
use provost_server::rotation::{self, Rotation};
use serde_json::json;
use std::sync::Arc;

const PURPOSES: [&str; 5] = ["pepper", "audit", "signing", "checkpoint", "sealing"];

/// Does something beside the server, as whoever runs the database could.
fn beside(app: &App, sql: &str) {
    let location = app.location();
    std::thread::scope(|scope| {
        let run = scope.spawn(|| Conn::open(&location, Access::Write).unwrap().batch(sql));
        let done = run.join().unwrap();
        done.unwrap_or_else(|error| panic!("{sql}: {:?}", error.private()));
    });
}

/// Makes the keys of every purpose that wait.
fn prepared(app: &App) {
    for purpose in PURPOSES {
        Keys::prepare_next(&app.keys_dir, purpose, app.now(), &SystemEntropy).unwrap();
    }
}

fn activated(app: &App) {
    for purpose in PURPOSES {
        app.kernel.keys.activate(&format!("{purpose}-2")).unwrap();
    }
}

fn current(app: &App) -> Vec<String> {
    let keys = app.kernel.keys.ids().into_iter();
    let current = keys.filter(|key| key.current && key.purpose != "request");
    current.map(|key| key.id).collect()
}

fn first_of_each() -> Vec<String> {
    ["pepper-1", "sealing-1", "audit-1", "checkpoint-1", "signing-1"]
        .map(str::to_owned)
        .to_vec()
}

fn second_of_each() -> Vec<String> {
    first_of_each().iter().map(|id| id.replace("-1", "-2")).collect()
}

/// Has each server make what the other accepts.
async fn work_together(servers: [&App; 2], name: &str) {
    for (place, [maker, reader]) in [servers, [servers[1], servers[0]]].into_iter().enumerate() {
        let (id, token) = maker
            .account(&format!("{name} {place}"), "auditor", &["audit:read"])
            .await;
        assert_eq!(reader.used(&token).await, (200, String::new()));
        let path = format!("/service-accounts/{id}/disable");
        reader.write("POST", &path, json!({})).await.ok();
        assert_eq!(maker.used(&token).await.0, 401);
        let (key, sealed) = maker
            .kernel
            .keys
            .seal(&[b"place"], b"secret", &mut UnitRng::new([7; 32]))
            .unwrap();
        let opened = reader
            .kernel
            .keys
            .open_sealed(&key, &[b"place"], &sealed)
            .unwrap();
        assert_eq!(opened.expose(), b"secret");
        assert!(!maker.kernel.is_broken() && !reader.kernel.is_broken());
    }
    for app in servers {
        provost_areas_platform::audit::make_checkpoints(&app.kernel)
            .await
            .unwrap();
        assert_eq!(
            provost_server::proofs::round::verify(&app.kernel).await.unwrap(),
            []
        );
    }
}

/// Proves KY-2.
#[test]
fn keys_that_wait_make_nothing_and_come_into_use_while_servers_work() {
    each("keys_activated", |app: Arc<App>| async move {
        let other = app.restarted(Extras::default()).unwrap();
        let (one, two) = (Rotation::new(&app.kernel), Rotation::new(&other.kernel));
        prepared(&app);
        // The second has not read them yet.
        one.round(&app.kernel).await.unwrap();
        work_together([&app, &other], "waiting").await;
        two.round(&other.kernel).await.unwrap();
        let third = app.restarted(Extras::default()).unwrap();
        for server in [&*app, &other, &third] {
            assert_eq!(current(server), first_of_each());
            assert_eq!(server.kernel.keys.ids().len(), 11);
        }
        third.kernel.stop().await;
        // The store knows none of them before it is used, so that one which is given up is missed by nobody.
        let known = || app.kernel.read_system(provost_areas_platform::store::known);
        assert_eq!(known().await.unwrap().len(), 6);
        activated(&app);
        two.round(&other.kernel).await.unwrap();
        assert_eq!(
            (current(&app), current(&other)),
            (first_of_each(), second_of_each())
        );
        assert_eq!(known().await.unwrap().len(), 11);
        work_together([&app, &other], "one of two").await;
        one.round(&app.kernel).await.unwrap();
        assert_eq!(current(&app), second_of_each());
        work_together([&app, &other], "both").await;
        let fresh = app.restarted(Extras::default()).unwrap();
        assert_eq!(current(&fresh), second_of_each());
        work_together([&app, &fresh], "and a new one").await;
        fresh.kernel.stop().await;
        other.kernel.stop().await;
    });
}

/// Proves KY-3.
#[test]
fn a_key_is_used_by_itself_ten_minutes_after_every_running_server_has_read_it() {
    each("keys_by_itself", |app: Arc<App>| async move {
        let here = Rotation::new(&app.kernel);
        let other = |ids: &[&str], since: i64, seen: i64| {
            let read = Keys::open(&app.keys_dir).unwrap();
            let keys: Vec<_> = ids
                .iter()
                .map(|id| read.fingerprint(id).unwrap_or((*id).to_owned()))
                .collect();
            let keys = serde_json::json!(keys);
            let (since, seen) = (
                app.now().plus_secs(since).as_ms(),
                app.now().plus_secs(seen).as_ms(),
            );
            beside(
                &app,
                &format!(
                    "DELETE FROM key_readers WHERE server_id = 'other'; INSERT INTO key_readers (server_id, keys, since, seen_at) \
                     VALUES ('other', '{keys}', {since}, {seen})"
                ),
            );
        };
        let peppers = async || {
            // What was activated is used in the round after.
            here.round(&app.kernel).await.unwrap();
            here.round(&app.kernel).await.unwrap();
            app.kernel.keys.token_mac_current("t").0
        };
        here.round(&app.kernel).await.unwrap();
        Keys::prepare_next(&app.keys_dir, "pepper", app.now(), &SystemEntropy).unwrap();
        assert_eq!(peppers().await, "pepper-1");
        app.advance(700);
        // One that runs lacks it, or has it for less than ten minutes.
        other(&["pepper-1"], -700, -299);
        assert_eq!(peppers().await, "pepper-1");
        other(&["pepper-1", "pepper-2"], -599, 0);
        assert_eq!(peppers().await, "pepper-1");
        // It has read another key of this name, which was given up.
        other(&["pepper-1", "pepper-2 0123456789abcdef"], -600, 0);
        assert_eq!(peppers().await, "pepper-1");
        other(&["pepper-1", "pepper-2"], -600, 0);
        assert_eq!(peppers().await, "pepper-2");
        // One that is silent does not run.
        Keys::prepare_next(&app.keys_dir, "pepper", app.now(), &SystemEntropy).unwrap();
        other(&["pepper-1", "pepper-2"], -700, -301);
        assert_eq!(peppers().await, "pepper-2");
        app.advance(600);
        assert_eq!(peppers().await, "pepper-3");
        // One that stops says so.
        here.leave(&app.kernel).await.unwrap();
        let left = app
            .kernel
            .read_system(|tx| rotation::readers(tx, Timestamp::EPOCH).map(|readers| readers.len()));
        assert_eq!(left.await.unwrap(), 1);
    });
}

/// Proves KY-2.
#[test]
fn a_key_of_another_server_by_the_same_name_is_not_used() {
    each("keys_of_two", |app: Arc<App>| async move {
        let rotation = Rotation::new(&app.kernel);
        Keys::prepare_next(&app.keys_dir, "pepper", app.now(), &SystemEntropy).unwrap();
        let sql = "INSERT INTO key_checks SELECT 'pepper/pepper-2', check_value, created_at FROM key_checks WHERE key_id = 'pepper/pepper-1'";
        beside(&app, sql);
        app.kernel.keys.news().unwrap();
        app.kernel.keys.activate("pepper-2").unwrap();
        let error = rotation.round(&app.kernel).await.unwrap_err();
        let cause = error.private().unwrap_or_default();
        assert!(cause.contains("pepper/pepper-2"), "{error} {cause}");
        assert_eq!(app.kernel.keys.token_mac_current("t").0, "pepper-1");
    });
}

/// Proves KY-1.
#[test]
fn an_unknown_key_that_our_own_row_names_is_a_refusal_for_now() {
    each("keys_planted", |app: Arc<App>| async move {
        let (id, token) = app.account("deploy", "auditor", &["audit:read"]).await;
        let named = |pepper: &str| {
            beside(
                &app,
                &format!(
                    "UPDATE service_account_tokens SET pepper_id = '{pepper}' WHERE service_account_id = '{id}'"
                ),
            );
        };
        for unknown in ["pepper-9", "audit-1", "nothing", ""] {
            named(unknown);
            assert_eq!(app.used(&token).await, (503, "unavailable".into()), "{unknown:?}");
        }
        named("pepper-1");
        assert_eq!(app.used(&token).await.0, 200);
        // A word of the caller's is no such word.
        assert_eq!(app.used(&token.replace("prov_", "prow_")).await.0, 401);
        let proven = |key: &str| {
            beside(
                &app,
                &format!(
                    "UPDATE right_proofs SET key_id = '{key}' WHERE table_name = 'service_accounts' AND row_key LIKE '%{id}%'"
                ),
            );
        };
        let path = format!("/service-accounts/{id}/disable");
        proven("audit-9");
        app.write("POST", &path, json!({}))
            .await
            .refused(503, "unavailable");
        assert!(!app.kernel.is_broken());
        assert_eq!(app.used(&token).await.0, 200);
        proven("audit-1");
        app.write("POST", &path, json!({})).await.ok();
        assert_eq!(app.used(&token).await.0, 401);
    });
}

/// Makes the next keys, and a server that uses them.
fn rotated(app: &App, purposes: &[&str]) -> App {
    for purpose in purposes {
        Keys::rotate(&app.keys_dir, purpose, app.now(), &SystemEntropy).unwrap();
    }
    app.restarted(Extras::default()).unwrap()
}

/// Proves KY-1.
#[test]
fn servers_that_were_started_before_a_rotation_go_on() {
    each("keys_rotated", |app: Arc<App>| async move {
        let (id, first) = app.account("deploy", "auditor", &["audit:read"]).await;
        let newer = rotated(&app, &["pepper", "audit", "signing", "checkpoint", "sealing"]);
        // The newer server moves the chain on under the new audit key, and mints under the new pepper.
        let path = format!("/service-accounts/{id}/tokens");
        let made = newer.write("POST", &path, json!({})).await;
        let second = made.ok()["token"]["token"].as_str().unwrap().to_owned();
        assert_eq!(app.used(&second).await.0, 200);
        assert_eq!(app.used(&first).await.0, 401);
        app.account("written by the older", "auditor", &[]).await;
        newer.account("written by the newer", "auditor", &[]).await;
        app.account("and by the older again", "auditor", &[]).await;
        assert!(!app.kernel.is_broken() && !newer.kernel.is_broken());
        newer.kernel.stop().await;
    });
}

/// Proves KY-1.
#[test]
fn a_key_that_does_not_come_is_a_refusal_for_now_and_no_verdict() {
    each("keys_missing", |app: Arc<App>| async move {
        let (id, _) = app.account("deploy", "auditor", &["audit:read"]).await;
        let newer = rotated(&app, &["pepper", "audit"]);
        let path = format!("/service-accounts/{id}/tokens");
        let made = newer.write("POST", &path, json!({})).await;
        let token = made.ok()["token"]["token"].as_str().unwrap().to_owned();
        let away = |id: &str| app.keys_dir.join(format!("{id}.away"));
        for id in ["pepper-2", "audit-2"] {
            std::fs::rename(app.keys_dir.join(format!("{id}.key")), away(id)).unwrap();
        }
        assert_eq!(app.used(&token).await, (503, "unavailable".into()));
        let body = json!({ "name": "x", "permissionRole": "auditor", "allOfRole": true });
        let refused = app.write("POST", "/service-accounts", body.clone()).await;
        refused.refused(503, "unavailable");
        assert!(!app.kernel.is_broken());
        for id in ["pepper-2", "audit-2"] {
            std::fs::rename(away(id), app.keys_dir.join(format!("{id}.key"))).unwrap();
        }
        app.advance(5);
        assert_eq!(app.used(&token).await.0, 200);
        app.write("POST", "/service-accounts", body).await.ok();
        newer.kernel.stop().await;
    });
}
