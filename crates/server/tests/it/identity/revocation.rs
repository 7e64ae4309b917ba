//! A token that ended is refused from the next request on, on whatever connection it comes (R34).

use crate::support::{App, Dice, each, exchange, workload};
use serde_json::json;
use std::sync::Arc;

/// Proves CR-1, WK-4.
#[test]
fn no_dead_token_is_accepted_after_the_answer() {
    each("revocation", |app: Arc<App>| async move {
        let mut dice = Dice::new("revocation");
        let served = app.serve().await;
        let (id, mut token) = app.account("deploy", "auditor", &["audit:read"]).await;
        let path = format!("/service-accounts/{id}");
        for round in 0..workload("PROVOST_TEST_REVOCATIONS", 100, 500) {
            let (act, body) = match dice.below(3) {
                0 => (format!("{path}/tokens"), json!({})),
                1 => {
                    let current = app.seen(&id).await["tokens"][0]["id"]
                        .as_str()
                        .unwrap()
                        .to_owned();
                    (
                        format!("{path}/tokens/{current}/revoke"),
                        json!({ "confirm": true }),
                    )
                }
                _ => (format!("{path}/disable"), json!({})),
            };
            let probe = app.on_the_wire("GET", "/capabilities", &token, &json!(null));
            let probe = String::from_utf8(probe)
                .unwrap()
                .replace("content-length: 4\r\n\r\nnull", "\r\n");
            let probe = probe.replace("content-type: application/json\r\n", "");
            if dice.chance(2) {
                assert_eq!(
                    exchange(served.address, probe.as_bytes()).await.json().0,
                    200,
                    "round {round}"
                );
            }
            let acted = app.write("POST", &act, body).await;
            let (status, answer) = exchange(served.address, probe.as_bytes()).await.json();
            assert_eq!(status, 401, "round {round} {act}: {answer}");
            if act.ends_with("/disable") {
                app.write("POST", &format!("{path}/enable"), json!({})).await.ok();
                assert_eq!(exchange(served.address, probe.as_bytes()).await.json().0, 200);
            } else {
                let issued = if acted.json.get("token").is_some() {
                    acted
                } else {
                    app.write("POST", &format!("{path}/tokens"), json!({})).await
                };
                token = issued.ok()["token"]["token"].as_str().unwrap().to_owned();
            }
        }
        served.stop().await;
    });
}

/// Acts of the same moment: what an account does behind its own end in one commit is not done.
#[test]
fn an_account_that_was_disabled_does_not_enable_itself() {
    each("self_enable", |app: Arc<App>| async move {
        for round in 0..workload("PROVOST_TEST_RACES", 30, 100) {
            let (id, token) = app.account(&format!("admin {round}"), "admin", &[]).await;
            assert_eq!(app.used(&token).await.0, 200);
            let (disable, enable) = (
                format!("/service-accounts/{id}/disable"),
                format!("/service-accounts/{id}/enable"),
            );
            let by_itself = |path: &str| {
                let body = crate::support::with_trio(json!({}), &crate::support::fresh_key());
                app.request("POST", path).token(&token).json(body)
            };
            let (disabled, enabled, seen) = tokio::join!(
                app.write("POST", &disable, json!({})),
                by_itself(&enable).send(),
                by_itself(&enable).send(),
            );
            disabled.ok();
            for reply in [enabled, seen] {
                assert!(matches!(reply.status.as_u16(), 200 | 401), "{}", reply.text());
            }
            assert_eq!(app.seen(&id).await["status"], "disabled", "round {round}");
        }
    });
}
