//! Rotation: a lost answer can always be repaired, and the old token ends when it should (R11, D5.2 to D5.5).

use crate::support::{App, Call, RawReply, Reply, each, each_with, exchange, fresh_key, with_trio, workload};
use crate::torment::run;
use provost_kernel::kernel::Settings;
use provost_kernel::time::Clock;
use serde_json::{Value, json};
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;

/// Sends a request through a proxy that passes only the first bytes of the answer and then hangs up.
/// Returns what came through, and how long the whole answer was.
async fn through_cutting_proxy(server: SocketAddr, request: &[u8], cut_at: usize) -> (RawReply, usize) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let mut proxy = JoinSet::new();
    proxy.spawn(async move {
        let (mut client, _) = listener.accept().await.unwrap();
        let upstream = TcpStream::connect(server).await.unwrap();
        let (mut from_server, mut to_server) = upstream.into_split();
        let (mut from_client, mut to_client) = client.split();
        let forward = async {
            let _ = tokio::io::copy(&mut from_client, &mut to_server).await;
        };
        let mut answer = Vec::new();
        let back = async {
            // The server has answered completely: what is cut is cut on the way.
            let _ = from_server.read_to_end(&mut answer).await;
        };
        tokio::select! {
            () = back => {}
            () = async { forward.await; std::future::pending::<()>().await } => {}
        }
        let cut = cut_at.min(answer.len());
        let _ = to_client.write_all(&answer[..cut]).await;
        answer.len()
    });
    let reply = exchange(address, request).await;
    (reply, proxy.join_next().await.unwrap().unwrap())
}

fn token_of(body: &Value) -> String {
    body["token"]["token"].as_str().unwrap().to_owned()
}

/// Cuts the answer at every offset of a step and repairs it; `next` returns the request of a round and takes
/// the token that the repair gave. Returns how often that was, and how long the longest answer is.
async fn repair_at_every_offset(
    app: &Arc<App>,
    step: u64,
    mut next: impl AsyncFnMut(Option<String>) -> Vec<u8>,
) -> Value {
    let served = app.serve().await;
    let (mut offset, mut length) = (0, usize::MAX);
    let (mut cuts, mut longest) = (0, 0);
    let mut token = None;
    while offset <= length {
        let request = next(token.take()).await;
        let (cut, whole) = through_cutting_proxy(served.address, &request, offset).await;
        length = whole;
        longest = longest.max(whole);
        assert_eq!(cut.bytes.len(), offset.min(whole));
        let repaired = exchange(served.address, &request).await;
        let (status, body) = repaired.json();
        assert!(status < 300, "offset {offset}: {body}");
        let whole = repaired.whole().unwrap().1;
        assert!(
            whole.starts_with(cut.body()),
            "offset {offset}: the repair gives another answer"
        );
        let issued = token_of(&body);
        assert_eq!(app.used(&issued).await.0, 200, "offset {offset}");
        token = Some(issued);
        offset += usize::try_from(step).unwrap();
        cuts += 1;
    }
    assert!(offset > 500, "an answer has more bytes than {offset}");
    served.stop().await;
    json!({ "cuts": cuts, "bytes": longest })
}

fn unlimited() -> Settings {
    Settings {
        rate_limits: false,
        ..Settings::default()
    }
}

#[test]
fn a_cut_answer_of_a_rotation_is_repaired_at_every_offset() {
    run::each("cut_rotation", &unlimited(), |app: Arc<App>| async move {
        let step = workload("PROVOST_TEST_OFFSET_STEP", 17, 1);
        repair_at_every_offset(&app, step, async |_| {
            // A new account each time: its answer is short, and so is the test.
            let (id, _) = app.account(&fresh_key(), "auditor", &["audit:read"]).await;
            let path = format!("/service-accounts/{id}/tokens");
            app.on_the_wire("POST", &path, &app.admin, &with_trio(json!({}), &fresh_key()))
        })
        .await
    });
}

#[test]
fn a_cut_answer_of_a_self_rotation_is_repaired_with_the_dead_token() {
    run::each("cut_self_rotation", &unlimited(), |app: Arc<App>| async move {
        let scopes = ["service_accounts:rotate_self"];
        let (id, mut own) = app.account("deploy", "viewer", &scopes).await;
        let path = format!("/service-accounts/{id}/tokens");
        let step = workload("PROVOST_TEST_OFFSET_STEP", 53, 13);
        repair_at_every_offset(&app, step, async |issued: Option<String>| {
            own = issued.unwrap_or_else(|| own.clone());
            app.on_the_wire("POST", &path, &own, &with_trio(json!({}), &fresh_key()))
        })
        .await
    });
}

#[test]
fn a_cut_answer_of_a_creation_is_repaired() {
    run::each("cut_creation", &unlimited(), |app: Arc<App>| async move {
        let step = workload("PROVOST_TEST_OFFSET_STEP", 53, 13);
        repair_at_every_offset(&app, step, async |_| {
            let key = fresh_key();
            let body = json!({ "name": key, "permissionRole": "viewer", "allOfRole": true });
            app.on_the_wire("POST", "/service-accounts", &app.admin, &with_trio(body, &key))
        })
        .await
    });
}

/// An account that rotated itself and lost the answer.
struct LostRotation {
    id: String,
    old: String,
    new: String,
    key: String,
}

impl LostRotation {
    async fn make(app: &App, name: &str, role: &str, scopes: &[&str]) -> Self {
        let (id, old) = app.account(name, role, scopes).await;
        let key = fresh_key();
        let lost = Self {
            id,
            old,
            new: String::new(),
            key,
        };
        let reply = lost.retry(app, &lost.key).await;
        Self {
            new: token_of(reply.ok()),
            ..lost
        }
    }

    fn path(&self) -> String {
        format!("/service-accounts/{}/tokens", self.id)
    }

    async fn retry(&self, app: &App, key: &str) -> Reply {
        let call = app.request("POST", &self.path()).token(&self.old);
        call.json(with_trio(json!({}), key)).send().await
    }
}

const SELF: &[&str] = &["service_accounts:rotate_self"];

#[test]
fn the_dead_token_fetches_its_own_lost_answer_and_nothing_else() {
    each("lost", |app: Arc<App>| async move {
        for (role, scopes) in [("viewer", SELF), ("admin", &[] as &[&str])] {
            let lost = LostRotation::make(&app, &format!("lost {role}"), role, scopes).await;
            assert_eq!(token_of(lost.retry(&app, &lost.key).await.ok()), lost.new);
            let dead = async |call: Call<'_>| {
                call.token(&lost.old).send().await.refused(401, "token_revoked");
            };
            let body = || with_trio(json!({}), &lost.key);
            lost.retry(&app, &fresh_key()).await.refused(401, "token_revoked");
            dead(app.request("GET", "/capabilities")).await;
            dead(app.request("GET", "/service-accounts")).await;
            dead(app.request("GET", "/service-accounts?limit=nonsense")).await;
            dead(app.request("POST", "/service-accounts").json(body())).await;
            dead(
                app.request("POST", &format!("/service-accounts/{}/disable", lost.id))
                    .json(body()),
            )
            .await;
            dead(
                app.request("POST", &format!("/service-accounts/{}/tokens", app.admin_id))
                    .json(body()),
            )
            .await;
            // Wrongly asked is not served either, and learns nothing.
            dead(
                app.request("POST", &lost.path())
                    .json(with_trio(json!({ "gracePeriodSeconds": 5 }), &lost.key)),
            )
            .await;
            dead(app.request("POST", &lost.path()).json(json!({ "unknown": 1 }))).await;
            dead(
                app.request("POST", &lost.path())
                    .header("content-type", "text/plain")
                    .bytes("{}"),
            )
            .await;
            let foreign = "/api/headless/v1/organizations/globex/service-accounts";
            dead(app.request("GET", "").at(foreign)).await;
            // To the last millisecond of the ten minutes, and no longer.
            app.clock.advance(Duration::from_millis(599_999));
            assert_eq!(token_of(lost.retry(&app, &lost.key).await.ok()), lost.new);
            app.clock.advance(Duration::from_millis(1));
            lost.retry(&app, &lost.key).await.refused(401, "token_revoked");
            assert_eq!(app.used(&lost.new).await.0, 200);
        }
    });
}

#[test]
fn the_first_use_of_the_new_token_ends_the_retry() {
    each("first_use", |app: Arc<App>| async move {
        let lost = LostRotation::make(&app, "lost", "viewer", SELF).await;
        assert_eq!(app.used(&lost.new).await.0, 200);
        lost.retry(&app, &lost.key).await.refused(401, "token_revoked");
        // The new token finds the record of the same principal, but ends the replay by arriving.
        let other = LostRotation::make(&app, "other", "viewer", SELF).await;
        let call = app.request("POST", &other.path()).token(&other.new);
        let late = call.json(with_trio(json!({}), &other.key)).send().await;
        late.refused(409, "secret_no_longer_retrievable");
        assert!(late.json["tokenId"].as_str().unwrap().starts_with("sat_"));
    });
}

#[test]
fn a_guessable_key_fetches_nothing() {
    each("guessable", |app: Arc<App>| async move {
        for (key, served) in [("x".repeat(21), false), ("y".repeat(22), true)] {
            let (id, old) = app.account(&key, "viewer", SELF).await;
            let lost = LostRotation {
                id,
                old,
                new: String::new(),
                key,
            };
            let new = token_of(lost.retry(&app, &lost.key).await.ok());
            let again = lost.retry(&app, &lost.key).await;
            if served {
                assert_eq!(token_of(again.ok()), new);
            } else {
                again.refused(401, "token_revoked");
            }
        }
    });
}

#[test]
fn only_the_token_that_rotated_itself_may_fetch() {
    each("not_itself", |app: Arc<App>| async move {
        let (id, old) = app.account("deploy", "viewer", SELF).await;
        let path = format!("/service-accounts/{id}/tokens");
        let body = with_trio(json!({}), &fresh_key());
        let first = app.request("POST", &path).json(body.clone()).send().await;
        first.ok();
        app.request("POST", &path)
            .token(&old)
            .json(body.clone())
            .send()
            .await
            .refused(401, "token_revoked");
        assert_eq!(
            app.request("POST", &path).json(body).send().await.bytes,
            first.bytes
        );
        // Disabling and enabling between does not bring the secret back.
        let lost = LostRotation::make(&app, "lost", "viewer", SELF).await;
        for act in ["disable", "enable"] {
            app.write("POST", &format!("/service-accounts/{}/{act}", lost.id), json!({}))
                .await
                .ok();
        }
        lost.retry(&app, &lost.key).await.refused(401, "token_revoked");
        assert_eq!(app.used(&lost.new).await.0, 200);
    });
}

#[test]
fn what_the_dead_token_is_refused_is_a_detected_reuse() {
    each("lost_reuse", |app: Arc<App>| async move {
        let lost = LostRotation::make(&app, "lost", "viewer", SELF).await;
        let seen = app.events(0).await.len().try_into().unwrap();
        lost.retry(&app, &lost.key).await.ok();
        app.settle().await;
        assert!(app.events(seen).await.is_empty(), "a served retry is no reuse");
        lost.retry(&app, &fresh_key()).await.refused(401, "token_revoked");
        app.settle().await;
        let events = app.events(seen).await;
        assert_eq!(events.len(), 1);
        assert_eq!(events[0].0, "service_account.token.reuse_detected");
    });
}

async fn rotate(app: &App, id: &str, body: Value) -> Value {
    app.write("POST", &format!("/service-accounts/{id}/tokens"), body)
        .await
        .ok()
        .clone()
}

fn instant(view: &Value) -> i64 {
    provost_kernel::Timestamp::parse(view.as_str().unwrap())
        .unwrap()
        .as_ms()
}

/// Proves SA-1.
#[test]
fn grace_lets_one_old_token_live_and_a_second_rotation_ends_it() {
    each("grace", |app: Arc<App>| async move {
        let (id, first) = app.account("deploy", "auditor", &["audit:read"]).await;
        let second = token_of(&rotate(&app, &id, json!({ "gracePeriodSeconds": 600 })).await);
        assert_eq!((app.used(&first).await.0, app.used(&second).await.0), (200, 200));
        let account = app.seen(&id).await;
        let tokens = account["tokens"].as_array().unwrap();
        assert_eq!(tokens.len(), 2);
        assert_eq!(tokens[1]["supersededById"], tokens[0]["id"]);
        assert!(tokens[1].get("revokedAt").is_none());
        assert_eq!(instant(&tokens[1]["expiresAt"]), app.now().as_ms() + 600_000);

        let third = token_of(&rotate(&app, &id, json!({ "gracePeriodSeconds": 600 })).await);
        assert_eq!(app.used(&first).await, (401, "token_revoked".into()));
        assert_eq!((app.used(&second).await.0, app.used(&third).await.0), (200, 200));
        app.clock.advance(Duration::from_millis(599_999));
        assert_eq!(app.used(&second).await.0, 200);
        app.clock.advance(Duration::from_millis(1));
        assert_eq!(app.used(&second).await, (401, "token_expired".into()));
        // A grace never prolongs a life.
        let short = token_of(&rotate(&app, &id, json!({ "expiresInSeconds": 3600 })).await);
        rotate(&app, &id, json!({ "gracePeriodSeconds": 604_800 })).await;
        app.advance(3600);
        assert_eq!(app.used(&short).await, (401, "token_expired".into()));
    });
}

#[test]
fn lifetimes_are_kept_asked_for_and_capped() {
    each("lifetimes", |app: Arc<App>| async move {
        let (id, _) = app.account("deploy", "auditor", &["audit:read"]).await;
        let life = |answer: &Value| instant(&answer["token"]["expiresAt"]) - app.now().as_ms();
        let days = |n: i64| n * 86_400_000;
        assert_eq!(life(&rotate(&app, &id, json!({})).await), days(90));
        assert_eq!(
            life(&rotate(&app, &id, json!({ "expiresInSeconds": 604_800 })).await),
            days(7)
        );
        app.advance(86_400);
        assert_eq!(
            life(&rotate(&app, &id, json!({})).await),
            days(7),
            "the life stays as it was given"
        );
        // Also when a grace cut the old one short, or an admin revoked it.
        rotate(&app, &id, json!({ "gracePeriodSeconds": 60 })).await;
        assert_eq!(life(&rotate(&app, &id, json!({})).await), days(7));
        let token = app.seen(&id).await["tokens"][0]["id"]
            .as_str()
            .unwrap()
            .to_owned();
        let revoke = format!("/service-accounts/{id}/tokens/{token}/revoke");
        app.write("POST", &revoke, json!({ "confirm": true })).await.ok();
        let issued = rotate(&app, &id, json!({})).await;
        assert_eq!(life(&issued), days(7));
        assert_eq!(issued["token"]["name"], "default");
        assert_eq!(app.used(&token_of(&issued)).await.0, 200);

        app.token_settings(json!({ "maxLifetimeSeconds": 7200, "defaultGraceSeconds": 30 }))
            .await;
        let path = format!("/service-accounts/{id}/tokens");
        let long = app
            .write("POST", &path, json!({ "expiresInSeconds": 7201 }))
            .await;
        long.refused(400, "invalid_request");
        let capped = rotate(&app, &id, json!({})).await;
        assert_eq!(life(&capped), 7_200_000);
        assert_eq!(
            app.used(&token_of(&issued)).await.0,
            200,
            "the default grace acts"
        );
        app.advance(30);
        assert_eq!(app.used(&token_of(&issued)).await, (401, "token_expired".into()));
        let body = json!({ "name": "new", "permissionRole": "viewer", "allOfRole": true });
        let created = app.write("POST", "/service-accounts", body).await;
        assert_eq!(life(created.ok()), 7_200_000);
        for (member, values) in [
            ("gracePeriodSeconds", [-1, 604_801]),
            ("expiresInSeconds", [3599, 31_536_001]),
        ] {
            for value in values {
                let reply = app.write("POST", &path, json!({ member: value })).await;
                reply.refused(400, "invalid_request");
            }
        }
    });
}

#[test]
fn rotations_have_their_own_limits() {
    let settings = Settings::default();
    each_with("rotation_limits", &settings, |app: Arc<App>| async move {
        let (other, _) = app.account("other", "auditor", &["audit:read"]).await;
        let (id, _) = app.account("deploy", "auditor", &["audit:read"]).await;
        let path = format!("/service-accounts/{id}/tokens");
        let body = with_trio(json!({}), &fresh_key());
        let first = app.request("POST", &path).json(body.clone()).send().await;
        first.ok();
        for _ in 1..30 {
            app.write("POST", &path, json!({})).await.ok();
        }
        let refused = app.write("POST", &path, json!({})).await;
        refused.refused(429, "rate_limited");
        assert_eq!(refused.header("retry-after"), "120");
        // A replay of an answer that ended costs no rotation; another account has its own bucket.
        app.request("POST", &path)
            .json(body)
            .send()
            .await
            .refused(409, "secret_no_longer_retrievable");
        rotate(&app, &other, json!({})).await;
        app.clock.advance(Duration::from_millis(120_000 - 1));
        app.write("POST", &path, json!({}))
            .await
            .refused(429, "rate_limited");
        app.clock.advance(Duration::from_millis(1));
        app.write("POST", &path, json!({})).await.ok();
        app.write("POST", &path, json!({}))
            .await
            .refused(429, "rate_limited");
        assert!(app.clock.monotonic() < Duration::from_hours(1));
    });
}

#[test]
fn retries_of_a_lost_answer_are_limited() {
    each_with("retry_limits", &Settings::default(), |app: Arc<App>| async move {
        let lost = LostRotation::make(&app, "lost", "viewer", SELF).await;
        for _ in 0..10 {
            lost.retry(&app, &lost.key).await.ok();
        }
        let refused = lost.retry(&app, &lost.key).await;
        refused.refused(429, "rate_limited");
        assert_eq!(refused.header("retry-after"), "6");
    });
}

/// Proves SA-3.
#[test]
fn a_viewer_rotates_itself_and_nobody_else() {
    each("viewer", |app: Arc<App>| async move {
        let (id, token) = app.account("viewer", "viewer", SELF).await;
        let (other, _) = app.account("other", "viewer", SELF).await;
        let (bare_id, bare) = app.account("bare", "viewer", &["policies:read"]).await;
        let post = |id: &str, token: &str| {
            let path = format!("/service-accounts/{id}/tokens");
            let call = app
                .request("POST", &path)
                .token(token)
                .json(with_trio(json!({}), &fresh_key()));
            call.send()
        };
        post(&other, &token).await.refused(403, "role_forbidden");
        post(&bare_id, &bare).await.refused(403, "role_forbidden");
        let rotated = post(&id, &token).await;
        assert_eq!(rotated.ok()["serviceAccount"]["id"], id.as_str());
        assert_eq!(app.used(&token_of(&rotated.json)).await.0, 200);
    });
}
