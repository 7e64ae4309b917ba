//! A key acts once, for every operation that changes anything (R10, R13; D4).

use crate::areas;
use crate::areas_beside::every_area;
use crate::samples;
use crate::support::{App, Call, Dice, Reply, each, each_of, each_with, exchange, fresh_key, with_trio};
use provost_kernel::operation::{Access, Entry, Kind};
use provost_server::background;
use serde_json::{Value, json};
use std::sync::Arc;
use tokio::task::JoinSet;

/// One request that can be repeated.
#[derive(Clone, Debug)]
pub struct RepeatableRequest {
    pub method: &'static str,
    pub path: String,
    /// Without the mutation metadata.
    pub body: Value,
    /// The event that its effect emits.
    pub event: Option<&'static str>,
    /// Content that is not JSON; the mutation metadata travels in headers then.
    pub content: Option<(&'static str, Vec<u8>)>,
    pub token: String,
    pub key: String,
    /// The mutation metadata travels in headers.
    pub in_headers: bool,
}

impl RepeatableRequest {
    /// The mutation metadata travels in headers, because it has no place in a body.
    fn has_headers_only(&self) -> bool {
        self.in_headers || self.method == "DELETE" || self.content.is_some() || self.body.is_null()
    }

    /// There is a body although the mutation metadata has no place in it.
    fn has_body(&self) -> bool {
        self.in_headers && self.method != "DELETE" && !self.body.is_null()
    }

    pub async fn send(&self, app: &App) -> Reply {
        self.call(app).send().await
    }

    pub fn call<'a>(&self, app: &'a App) -> Call<'a> {
        let call = app.request(self.method, &self.path).token(&self.token);
        if self.has_headers_only() {
            let call = call
                .header("idempotency-key", &self.key)
                .header("x-reason", "a test")
                .header("x-confirm", "true");
            return match &self.content {
                Some((media_type, bytes)) => call.content(media_type, bytes.clone()),
                None if self.has_body() => call.json(self.body.clone()),
                None => call,
            };
        }
        call.json(with_trio(self.body.clone(), &self.key))
    }
}

/// Makes what an operation needs and returns a request that has an effect. An operation that changes anything
/// and stands not here fails the test.
pub async fn fixture(app: &App, operation: &str) -> RepeatableRequest {
    let unique = fresh_key();
    if let Some(made) = areas::fixture(app, operation, &unique).await {
        let entry = app.kernel.registry.find(operation).unwrap();
        let token = match entry.meta.access {
            Access::OfKind { kind, parameter } => {
                let id = samples::named(entry.meta, &made.path, parameter);
                areas::fleet::caller(app, kind, id.as_deref()).await
            }
            _ if samples::needs_a_person(entry.meta) => app.person().await,
            _ if samples::needs_a_name(entry.meta) => app.machine().await,
            _ => app.admin.clone(),
        };
        return RepeatableRequest {
            in_headers: entry.meta.trio_in_headers(),
            method: made.method,
            path: made.path,
            body: made.body,
            event: made.event,
            content: made.content,
            token,
            key: unique,
        };
    }
    let (id, _) = app
        .account(&format!("for {unique}"), "auditor", &["audit:read"])
        .await;
    let path = format!("/service-accounts/{id}");
    let (method, path, body, event) = match operation {
        "createHeadlessServiceAccount" => (
            "POST",
            "/service-accounts".to_owned(),
            json!({ "name": unique, "permissionRole": "viewer", "allOfRole": true }),
            Some("service_account.created"),
        ),
        "updateHeadlessServiceAccount" => {
            let body = json!({ "description": unique });
            ("PATCH", path, body, Some("service_account.updated"))
        }
        "deleteHeadlessServiceAccount" => ("DELETE", path, json!({}), Some("service_account.deleted")),
        "disableHeadlessServiceAccount" => {
            let path = format!("{path}/disable");
            ("POST", path, json!({}), Some("service_account.disabled"))
        }
        "enableHeadlessServiceAccount" => {
            app.write("POST", &format!("{path}/disable"), json!({}))
                .await
                .ok();
            let path = format!("{path}/enable");
            ("POST", path, json!({}), Some("service_account.enabled"))
        }
        "rotateHeadlessServiceAccountToken" => {
            let path = format!("{path}/tokens");
            ("POST", path, json!({}), Some("service_account.token.rotated"))
        }
        "revokeHeadlessServiceAccountToken" => {
            let token = app.seen(&id).await["tokens"][0]["id"]
                .as_str()
                .unwrap()
                .to_owned();
            let path = format!("{path}/tokens/{token}/revoke");
            let body = json!({ "confirm": true });
            ("POST", path, body, Some("service_account.token.revoked"))
        }
        "updateHeadlessAutomationSettings" => {
            let enrolment = json!({ "selfEnrol": "signed_in" });
            let body =
                json!({ "tokens": { "revokeFamilyOnReuse": true }, "fleet": { "enrolment": enrolment } });
            ("PUT", "/automation/settings".to_owned(), body, None)
        }
        "patchHeadlessAutomationSettings" => {
            let body = json!({ "tokens": { "revokeFamilyOnReuse": true } });
            ("PATCH", "/automation/settings".to_owned(), body, None)
        }
        other => panic!("the operation {other} changes state and has no fixture here"),
    };
    let (token, key) = (app.admin.clone(), fresh_key());
    RepeatableRequest {
        method,
        path,
        body,
        event,
        content: None,
        token,
        key,
        in_headers: false,
    }
}

pub fn writes(app: &App) -> Vec<&'static str> {
    let is_write = |e: &&Entry| e.meta.kind == Kind::Write;
    app.kernel
        .registry
        .entries()
        .iter()
        .filter(is_write)
        .map(|e| e.meta.id)
        .collect()
}

/// Where the log and the events of the first organization end now.
pub async fn ends(app: &App) -> (i64, i64) {
    let organization = app.organization.clone();
    let read = move |tx: &mut provost_kernel::db::Tx<'_>| {
        let mut end = |statement| -> provost_kernel::Result<i64> {
            let found = tx.query(statement, provost_kernel::params![organization.as_str()], |row| {
                row.get::<i64>(0)
            })?;
            Ok(found[0])
        };
        Ok((end(&LAST_ENTRY)?, end(&LAST_EVENT)?))
    };
    app.kernel.read_system(read).await.unwrap()
}

provost_kernel::statements! {
    /// The last place of a chain.
    LAST_ENTRY = "SELECT COALESCE(MAX(seq), 0) FROM audit_entries WHERE organization_id = ?1";
    /// The last place of the events.
    LAST_EVENT = "SELECT COALESCE(MAX(sequence), 0) FROM outbox WHERE organization_id = ?1";
}

/// Asserts that one entry is "allowed", the others are replays of it, and the event went out once.
pub async fn assert_one_effect(
    app: &App,
    operation: &str,
    wanted: &RepeatableRequest,
    from: (i64, i64),
    answered: usize,
) {
    app.settle().await;
    let entries = app.entries(&app.organization, from.0).await;
    let of = |decision: &str| -> Vec<&Value> {
        let fits = |e: &&Value| e["action"] == operation && e["outcome"]["decision"] == decision;
        entries.iter().filter(fits).collect()
    };
    let (allowed, replays) = (of("allowed"), of("idempotent_replay"));
    assert_eq!(allowed.len(), 1, "{operation}: {entries:?}");
    assert!(
        replays.len() + 1 >= answered,
        "{operation}: {} replays for {answered} answers",
        replays.len()
    );
    for replay in replays {
        assert_eq!(replay["replayOf"], allowed[0]["id"]);
        assert_eq!(replay["idempotencyKeyHash"], allowed[0]["idempotencyKeyHash"]);
        assert!(replay.get("changes").is_none());
    }
    let events = app.events(from.1).await;
    assert_eq!(
        events.len(),
        usize::from(wanted.event.is_some()),
        "{operation}: {events:?}"
    );
    assert_eq!(events.first().map(|(kind, _)| kind.as_str()), wanted.event);
}

/// Proves ID-1.
#[test]
fn a_storm_of_one_request_has_one_effect_and_one_answer() {
    crate::torment::storms::rage();
}

#[test]
fn connections_that_break_change_nothing_about_it() {
    each_with(
        "broken_connections",
        &crate::torment::run::roomy(),
        |app: Arc<App>| async move {
            let mut dice = Dice::new("broken connections");
            let served = app.serve().await;
            for operation in writes(&app) {
                let wanted = fixture(&app, operation).await;
                if wanted.has_headers_only() {
                    continue; // its mutation metadata travels in headers; the in-process storm has it
                }
                let from = ends(&app).await;
                let body = with_trio(wanted.body.clone(), &wanted.key);
                let request = app.on_the_wire(wanted.method, &wanted.path, &wanted.token, &body);
                let mut storm = JoinSet::new();
                for _ in 0..16 {
                    let (address, request) = (served.address, request.clone());
                    let (sent, wait) = (dice.below(request.len() + 1), dice.below(4) as u64);
                    let cut = dice.chance(2);
                    storm.spawn(async move {
                        use tokio::io::AsyncWriteExt;
                        if !cut {
                            return Some(exchange(address, &request).await);
                        }
                        // Half of the cut ones have sent everything and do not wait for the answer.
                        let sent = if wait < 2 { request.len() } else { sent };
                        let mut stream = tokio::net::TcpStream::connect(address).await.unwrap();
                        stream.write_all(&request[..sent]).await.unwrap();
                        tokio::time::sleep(std::time::Duration::from_millis(wait)).await;
                        None
                    });
                }
                let mut answers: Vec<_> = storm.join_all().await.into_iter().flatten().collect();
                answers.push(exchange(served.address, &request).await);
                let bodies: Vec<_> = answers.iter().map(|a| a.whole().unwrap()).collect();
                for body in &bodies {
                    assert!(body.0 < 300, "{}", String::from_utf8_lossy(body.1));
                    assert_eq!(body, &bodies[0]);
                }
                assert_one_effect(&app, operation, &wanted, from, bodies.len()).await;
            }
            served.stop().await;
        },
    );
}

#[test]
fn every_field_of_the_fingerprint_makes_another_request() {
    each_of(every_area(), "fingerprint", |app: Arc<App>| async move {
        let (id, _) = app.account("deploy", "auditor", &["audit:read"]).await;
        let (other, _) = app.account("other", "auditor", &["audit:read"]).await;
        let path = format!("/service-accounts/{id}/tokens");
        let base = with_trio(
            json!({ "gracePeriodSeconds": 60, "expiresInSeconds": 7200 }),
            &fresh_key(),
        );
        let first = app.request("POST", &path).json(base.clone()).send().await;
        let token = first.ok()["token"]["token"].as_str().unwrap().to_owned();
        let with = |member: &str, value: Value| {
            let mut body = base.clone();
            body[member] = value;
            body
        };
        let without = |member: &str| {
            let mut body = base.clone();
            body.as_object_mut().unwrap().remove(member);
            body
        };
        let variants = [
            with("gracePeriodSeconds", json!(61)),
            without("gracePeriodSeconds"),
            with("expiresInSeconds", json!(7201)),
            without("expiresInSeconds"),
            with("reason", json!("another reason")),
            with("confirm", json!(true)),
        ];
        let mut calls: Vec<_> = variants
            .into_iter()
            .map(|b| app.request("POST", &path).json(b))
            .collect();
        for manager in ["x-forge-terraform-manager", "x-forge-terraform-instance"] {
            calls.push(app.request("POST", &path).header(manager, "m").json(base.clone()));
        }
        calls.push(
            app.request("POST", &format!("/service-accounts/{other}/tokens"))
                .json(base.clone()),
        );
        for call in calls {
            let reply = call.send().await;
            reply.refused(422, "idempotency_mismatch");
            let text = reply.text();
            assert!(
                !text.contains(&token) && !text.contains(&id) && !text.contains("tokenPrefix"),
                "{text}"
            );
        }
        // The same request in other words is the same request.
        let reordered = format!(
            r#"{{ "idempotencyKey": {}, "confirm": false, "expiresInSeconds": 7200, "reason": "a test",
                 "gracePeriodSeconds": 60 }}"#,
            base["idempotencyKey"]
        );
        let again = app.request("POST", &path).bytes(reordered).send().await;
        assert_eq!(again.bytes, first.bytes);
        let moved = json!({ "gracePeriodSeconds": 60, "expiresInSeconds": 7200 });
        let key = base["idempotencyKey"].as_str().unwrap();
        let call = app
            .request("POST", &path)
            .header("idempotency-key", &format!("\"{key}\""));
        let again = call.header("x-reason", "a test").json(moved).send().await;
        assert_eq!(again.bytes, first.bytes);
        // Every member of every other operation counts as well.
        for operation in writes(&app) {
            let wanted = fixture(&app, operation).await;
            wanted.send(&app).await.ok();
            let members: Vec<String> = wanted
                .body
                .as_object()
                .map(|body| body.keys().filter(|m| *m != "confirm").cloned().collect())
                .unwrap_or_default();
            for member in &members {
                let mut other = wanted.clone();
                if let Some(body) = areas::varied(operation, member, &wanted.body) {
                    other.body = body;
                    other.send(&app).await.refused(422, "idempotency_mismatch");
                    continue;
                }
                other.body[member] = match &wanted.body[member] {
                    Value::String(_) if member == "permissionRole" => json!("auditor"),
                    Value::String(_) => json!("another"),
                    Value::Bool(_) => {
                        other.body["scopes"] = json!(["policies:read"]);
                        json!(false)
                    }
                    _ => json!({}),
                };
                other.send(&app).await.refused(422, "idempotency_mismatch");
            }
        }
    });
}

/// Proves ID-1.
#[test]
fn a_key_belongs_to_one_principal_one_organization_and_one_operation() {
    each("key_scope", |app: Arc<App>| async move {
        let (_, second) = app.account("second admin", "admin", &[]).await;
        let (foreign, stranger) = app.other_organization("Globex").await;
        let key = "one-key-for-everybody-1234";
        let body = |name: &str| {
            with_trio(
                json!({ "name": name, "permissionRole": "viewer", "allOfRole": true }),
                key,
            )
        };
        let first = app
            .request("POST", "/service-accounts")
            .json(body("a"))
            .send()
            .await;
        let other = app
            .request("POST", "/service-accounts")
            .token(&second)
            .json(body("b"))
            .send()
            .await;
        let there = format!("/api/headless/v1/organizations/{foreign}/service-accounts");
        let far = app
            .request("POST", "")
            .at(&there)
            .token(&stranger)
            .json(body("a"))
            .send()
            .await;
        let ids: Vec<_> = [&first, &other, &far]
            .iter()
            .map(|r| r.ok()["serviceAccount"]["id"].clone())
            .collect();
        assert!(ids[0] != ids[1] && ids[1] != ids[2] && ids[0] != ids[2]);
        let id = ids[0].as_str().unwrap();
        for (act, status) in [("disable", "disabled"), ("enable", "active")] {
            let path = format!("/service-accounts/{id}/{act}");
            let reply = app
                .request("POST", &path)
                .json(with_trio(json!({}), key))
                .send()
                .await;
            assert_eq!(reply.ok()["serviceAccount"]["status"], status);
            assert_eq!(reply.header("idempotent-replayed"), "");
        }
    });
}

#[test]
fn a_refusal_is_not_remembered() {
    each("refusals", |app: Arc<App>| async move {
        let (id, _) = app.account("deploy", "auditor", &["audit:read"]).await;
        let path = format!("/service-accounts/{id}");
        let (rotate, create) = (with_trio(json!({}), &fresh_key()), fresh_key());
        app.write("POST", &format!("{path}/disable"), json!({}))
            .await
            .ok();
        let tokens = format!("{path}/tokens");
        app.request("POST", &tokens)
            .json(rotate.clone())
            .send()
            .await
            .refused(409, "disabled");
        app.write("POST", &format!("{path}/enable"), json!({})).await.ok();
        let reply = app.request("POST", &tokens).json(rotate).send().await;
        reply.ok();
        assert_eq!(reply.header("idempotent-replayed"), "");

        let body = with_trio(
            json!({ "name": "DEPLOY", "permissionRole": "viewer", "allOfRole": true }),
            &create,
        );
        let call = || app.request("POST", "/service-accounts").json(body.clone()).send();
        call().await.refused(409, "already_exists");
        assert_eq!(app.delete(&path).await.status.as_u16(), 204);
        assert_eq!(call().await.status.as_u16(), 201);
        let gone = with_trio(json!({}), &fresh_key());
        for _ in 0..2 {
            app.request("POST", &tokens)
                .json(gone.clone())
                .send()
                .await
                .refused(404, "not_found");
        }
    });
}

/// Proves WK-4.
#[test]
fn rights_are_judged_anew_at_every_replay() {
    each("demoted", |app: Arc<App>| async move {
        let (boss, token) = app.account("boss", "admin", &[]).await;
        let mut wanted = fixture(&app, "createHeadlessServiceAccount").await;
        wanted.body =
            json!({ "name": "made", "permissionRole": "admin", "scopes": ["audit:export", "audit:read"] });
        wanted.token = token;
        wanted.send(&app).await.ok();
        let path = format!("/service-accounts/{boss}");
        let narrow = json!({ "scopes": ["service_accounts:write"] });
        app.write("PATCH", &path, narrow).await.ok();
        // Still somebody who creates accounts, but no longer such a one.
        wanted.send(&app).await.refused(403, "escalation_forbidden");
        app.write("PATCH", &path, json!({ "permissionRole": "auditor" }))
            .await
            .ok();
        wanted.send(&app).await.refused(403, "role_forbidden");
        app.write(
            "PATCH",
            &path,
            json!({ "permissionRole": "admin", "allOfRole": true }),
        )
        .await
        .ok();
        let again = wanted.send(&app).await;
        again.ok();
        assert_eq!(again.header("idempotent-replayed"), "true");
    });
}

/// Whoever could no longer do it does not get its answer either, which may hold a secret (D1.4 step 9).
#[test]
fn what_was_handed_out_is_not_handed_out_again_to_who_holds_less_by_now() {
    each("narrowed", |app: Arc<App>| async move {
        let (boss, token) = app.account("boss", "admin", &[]).await;
        let (other, _) = app.account("other", "admin", &[]).await;
        let acts = [
            (format!("/service-accounts/{other}/tokens"), json!({})),
            (
                "/directory/users".to_owned(),
                json!({ "loginName": "eve", "permissionRole": "admin" }),
            ),
        ];
        let acts = acts.map(|(path, body)| (path, with_trio(body, &fresh_key())));
        let act = async |(path, body): &(String, Value)| {
            let request = app.request("POST", path).token(&token);
            request.json(body.clone()).send().await
        };
        for one in &acts {
            act(one).await.ok();
        }
        let narrow = json!({ "scopes": ["service_accounts:rotate", "directory:write"] });
        app.write("PATCH", &format!("/service-accounts/{boss}"), narrow)
            .await
            .ok();
        for one in &acts {
            act(one).await.refused(403, "escalation_forbidden");
        }
    });
}

#[test]
fn a_key_is_forgotten_after_thirty_days() {
    each("retention", |app: Arc<App>| async move {
        let (id, _) = app.account("deploy", "auditor", &["audit:read"]).await;
        let path = format!("/service-accounts/{id}");
        let body = with_trio(json!({ "description": "first" }), &fresh_key());
        let send = || app.request("PATCH", &path).json(body.clone()).send();
        let first = send().await;
        first.ok();
        app.write("PATCH", &path, json!({ "description": "second" }))
            .await
            .ok();
        app.advance(30 * 86_400);
        background::retain(&app.kernel).await.unwrap();
        assert_eq!(send().await.bytes, first.bytes);
        let seen = app.seen(&id).await;
        assert_eq!(
            seen["description"], "second",
            "a replay changes nothing, updatedAt included"
        );
        app.clock.advance(std::time::Duration::from_millis(1));
        background::retain(&app.kernel).await.unwrap();
        let anew = send().await;
        assert_eq!(anew.header("idempotent-replayed"), "");
        assert_eq!(app.seen(&id).await["description"], "first");
        assert_ne!(anew.ok()["serviceAccount"]["updatedAt"], seen["updatedAt"]);
    });
}
