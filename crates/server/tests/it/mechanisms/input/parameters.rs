//! What stands beside the body: the mutation metadata in headers, confirm, keys, the query.

use super::{ACCOUNTS, effects};
use crate::areas_beside::every_area;
use crate::samples::{self, Target};
use crate::support::{App, Call, each, each_of, fresh_key, with_trio};
use provost_kernel::operation::{Access, Entry, Method};
use serde_json::{Value, json};
use std::sync::Arc;

#[test]
#[expect(clippy::too_many_lines, reason = "a table")]
fn the_trio_is_taken_from_the_body_or_from_headers() {
    each("trio", |app: Arc<App>| async move {
        let path = format!("{ACCOUNTS}/{}/enable", samples::fresh_target(&app).await.account);
        let before = effects(&app).await;
        let call = || app.request("POST", &path);
        let key = || fresh_key();
        let refusals: Vec<(&str, Call<'_>)> = vec![
            (
                "/reason",
                call().header("idempotency-key", &key()).json(json!({})),
            ),
            ("/idempotencyKey", call().header("x-reason", "x").json(json!({}))),
            (
                "/reason",
                call().header("x-reason", "x").json(with_trio(json!({}), &key())),
            ),
            (
                "/idempotencyKey",
                call()
                    .header("idempotency-key", &key())
                    .json(with_trio(json!({}), &key())),
            ),
            (
                "/idempotencyKey",
                call()
                    .header("idempotency-key", "\"other\"")
                    .json(with_trio(json!({}), &key())),
            ),
            (
                "/confirm",
                call()
                    .header("x-confirm", "false")
                    .json(with_trio(json!({ "confirm": true }), &key())),
            ),
            (
                "x-reason",
                call()
                    .header("x-reason", "x")
                    .header("x-reason", "y")
                    .json(json!({})),
            ),
            (
                "x-forge-reason",
                call()
                    .header("x-reason", "x")
                    .header("x-forge-reason", "y")
                    .json(json!({})),
            ),
            (
                "idempotency-key",
                call()
                    .header("idempotency-key", "x")
                    .header("idempotency-key", "y")
                    .json(json!({})),
            ),
            (
                "x-confirm",
                call()
                    .header("x-confirm", "yes")
                    .json(with_trio(json!({}), &key())),
            ),
            (
                "x-confirm",
                call()
                    .header("x-forge-confirm", "True")
                    .json(with_trio(json!({}), &key())),
            ),
            (
                "/idempotencyKey",
                call()
                    .header("idempotency-key", "")
                    .header("x-reason", "x")
                    .json(json!({})),
            ),
            (
                "/idempotencyKey",
                call()
                    .header("idempotency-key", "a b")
                    .header("x-reason", "x")
                    .json(json!({})),
            ),
            (
                "/reason",
                call()
                    .header("idempotency-key", &key())
                    .header("x-reason", "  ")
                    .json(json!({})),
            ),
        ];
        for (word, call) in refusals {
            let reply = call.send().await;
            reply.refused(400, "invalid_request");
            assert!(reply.text().contains(word), "{word}: {}", reply.text());
        }
        assert_eq!(effects(&app).await, before);
        let taken: Vec<Call<'_>> = vec![
            call().header("idempotency-key", &key()).header("x-reason", "x"),
            call()
                .header("idempotency-key", &key())
                .header("x-forge-reason", "x"),
            call()
                .header("idempotency-key", &key())
                .header("x-reason", "x")
                .header("x-forge-reason", "x"),
            call()
                .header("x-reason", "a test")
                .json(with_trio(json!({}), &key())),
            call()
                .header("x-confirm", "true")
                .json(with_trio(json!({ "confirm": true }), &key())),
            call()
                .header("x-confirm", "false")
                .json(with_trio(json!({}), &key())),
        ];
        for call in taken {
            let reply = call.send().await;
            assert_eq!(
                (reply.status.as_u16(), reply.header("idempotent-replayed")),
                (200, ""),
                "{}",
                reply.text()
            );
        }
        // A key is the same key in every spelling.
        let key = fresh_key();
        let first = call().json(with_trio(json!({}), &key)).send().await;
        for spelling in [key.clone(), format!("\"{key}\"")] {
            let again = call()
                .header("idempotency-key", &spelling)
                .header("x-reason", "a test")
                .send()
                .await;
            assert_eq!(again.bytes, first.bytes, "{spelling}");
            assert_eq!(again.header("idempotent-replayed"), "true", "{spelling}");
        }
    });
}

#[test]
fn what_cannot_be_undone_needs_confirm() {
    each_of(every_area(), "confirm", |app: Arc<App>| async move {
        let target = samples::fresh_target(&app).await;
        let mut confirmed = Vec::new();
        for entry in app.kernel.registry.entries().iter().filter(|e| e.meta.confirm) {
            // What the act would take from others is said of a record that is there.
            confirmed.push((entry.meta, samples::fresh_target_of(&app, entry).await));
        }
        let before = effects(&app).await;
        for (meta, target) in &confirmed {
            for said in [None, Some("false")] {
                let call = app.request(meta.method.as_str(), &samples::path(meta, target));
                let call = call
                    .header("x-reason", "a test")
                    .header("idempotency-key", &fresh_key());
                let call = if meta.method == Method::Delete {
                    call
                } else {
                    call.json(samples::body(meta, target))
                };
                let call = match said {
                    Some(word) => call.header("x-confirm", word),
                    None => call,
                };
                call.send().await.refused(400, "confirmation_required");
            }
        }
        assert!(confirmed.len() >= 2);
        assert_eq!(effects(&app).await, before);
        let path = format!("{ACCOUNTS}/{}", target.account);
        let call = app
            .request("DELETE", &path)
            .header("x-forge-reason", "x")
            .header("x-forge-confirm", "true");
        let gone = call.header("idempotency-key", &fresh_key()).send().await;
        assert_eq!(gone.status.as_u16(), 204, "{}", gone.text());
    });
}

#[test]
fn a_key_is_used_for_one_request() {
    each("keys", |app: Arc<App>| async move {
        let (one, other) = (
            samples::fresh_target(&app).await.account,
            samples::fresh_target(&app).await.account,
        );
        let key = fresh_key();
        let patch = async |id: &str, body: Value| {
            let call = app.request("PATCH", &format!("{ACCOUNTS}/{id}"));
            call.json(with_trio(body, &key)).send().await
        };
        let first = patch(&one, json!({ "description": "x" })).await;
        first.ok();
        let before = effects(&app).await;
        patch(&one, json!({ "description": "y" }))
            .await
            .refused(422, "idempotency_mismatch");
        patch(&one, json!({ "description": null }))
            .await
            .refused(422, "idempotency_mismatch");
        patch(&one, json!({})).await.refused(422, "idempotency_mismatch");
        let foreign = patch(&other, json!({ "description": "x" })).await;
        foreign.refused(422, "idempotency_mismatch");
        assert!(!foreign.text().contains(&one), "{}", foreign.text());
        let body = json!({ "description": "x", "reason": "another reason", "idempotencyKey": key });
        let call = app.request("PATCH", &format!("{ACCOUNTS}/{one}")).json(body);
        call.send().await.refused(422, "idempotency_mismatch");
        assert_eq!(effects(&app).await, before);
        assert_eq!(
            patch(&one, json!({ "description": "x" })).await.bytes,
            first.bytes
        );
    });
}

/// Returns every operation with what to call it about, and by whom where no admin may.
async fn callers(app: &App) -> Vec<(&Entry, Target, Option<String>)> {
    let mut calls = Vec::new();
    for entry in app.kernel.registry.entries() {
        let Access::OfKind { kind, parameter } = entry.meta.access else {
            calls.push((entry, Target::absent(), None));
            continue;
        };
        // Who calls for itself has to be there.
        let target = samples::fresh_target_of(app, entry).await;
        let id = samples::named(entry.meta, &samples::path(entry.meta, &target), parameter);
        let token = crate::areas::fleet::caller(app, kind, id.as_deref()).await;
        calls.push((entry, target, Some(token)));
    }
    // So has the person for what people alone do.
    app.person().await;
    calls
}

#[test]
fn a_query_is_read_strictly() {
    each_of(every_area(), "query", |app: Arc<App>| async move {
        let invalid = [
            "limit=0",
            "limit=101",
            "limit=-1",
            "limit=+5",
            "limit=1e1",
            "limit=",
            "limit",
            "limit=5.0",
            "limit=0x5",
            "limit=%205",
            "limit=5%20",
            "limit=five",
            "limit=99999999999999999999",
            "limit=5;offset=1",
            "limit=5&limit=5",
            "limit=%35&limit=5",
            "offset=-1",
            "offset=9007199254740992",
            "offset=9223372036854775808",
            "offset=",
            "status=ACTIVE",
            "status=",
            "status=deleted",
            "status=active&status=disabled",
            "status=active%00",
            "status=active,disabled",
            "limit=%zz",
            "limit=%f",
            "limit=%ff",
            "limit=%D9%A5",
        ];
        for query in invalid {
            let reply = app.get(&format!("{ACCOUNTS}?{query}")).await;
            assert_eq!(
                (reply.status.as_u16(), reply.code()),
                (400, "invalid_request"),
                "{query}: {}",
                reply.text()
            );
            assert!(reply.text().contains("/query"), "{query}: {}", reply.text());
        }
        for query in [
            "page=1",
            "Limit=5",
            "limit%00=5",
            "limit[]=5",
            "statuss=active",
            "=5",
            "access_token=x",
            "limit=5&x",
            "%6Cimi=5",
        ] {
            let reply = app.get(&format!("{ACCOUNTS}?{query}")).await;
            assert_eq!(
                (reply.status.as_u16(), reply.code()),
                (400, "unknown_parameter"),
                "{query}: {}",
                reply.text()
            );
            assert!(
                reply.text().contains("limit"),
                "{query} does not name what there is: {}",
                reply.text()
            );
        }
        for query in [
            "",
            "limit=1",
            "limit=100",
            "offset=0",
            "offset=9007199254740991",
            "%6Cimit=%35",
            "limit=5&&offset=1",
            "status=active",
        ] {
            app.get(&format!("{ACCOUNTS}?{query}")).await.ok();
        }
        let calls = callers(&app).await;
        let before = effects(&app).await;
        for (entry, target, token) in calls {
            let path = samples::path(entry.meta, &target);
            let mark = if path.contains('?') { '&' } else { '?' };
            let call = samples::call(&app, entry, &target);
            let call = match &token {
                Some(token) => call.token(token),
                None => call,
            };
            let reply = call
                .at(&app.path(&format!("{path}{mark}dryRun=true")))
                .send()
                .await;
            reply.refused(400, "unknown_parameter");
        }
        assert_eq!(effects(&app).await, before);
    });
}
