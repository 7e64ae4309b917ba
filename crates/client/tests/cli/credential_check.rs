//! Checking a credential and waiting for the outcome.

use crate::http::{Answer, Server, json};
use crate::provost::Provost;
use serde_json::json;

const VERIFY: [&str; 6] = [
    "resource-credentials",
    "verify",
    "res_1",
    "cred_1",
    "--reason",
    "r",
];

fn begun() -> Answer {
    json(202, &json!({ "checkId": "chk_1", "state": "pending" }))
}

fn check(state: &str, reason: &str) -> Answer {
    let mut check = json!({ "checkId": "chk_1", "credentialId": "cred_1", "state": state });
    if !reason.is_empty() {
        check["reason"] = reason.into();
    }
    json(200, &check)
}

#[tokio::test]
async fn the_outcome_decides_the_exit_code() {
    for (state, reason, code, words) in [
        ("succeeded", "", 0, "can be fetched"),
        ("failed", "denied", 1, "does not let the server read it"),
    ] {
        let server = Server::playing([begun(), check("pending", ""), check(state, reason)]).await;
        let outcome = Provost::script()
            .does(&server, &[&VERIFY[..], &["--wait"]].concat())
            .await;
        assert_eq!(outcome.code, code, "{outcome:?}");
        assert!(outcome.err.contains(words), "{}", outcome.err);
        let asked = server.asked();
        let base = "/api/headless/v1/organizations/acme/resources/res_1/credentials/cred_1";
        assert_eq!(asked[0].target, format!("{base}/verify"));
        assert_eq!(asked[2].target, format!("{base}/checks/chk_1"));
    }
}

#[tokio::test]
async fn nobody_waits_unasked_or_for_ever() {
    let server = Server::playing([begun()]).await;
    let outcome = Provost::script().does(&server, &VERIFY).await;
    assert!(outcome.code == 0 && outcome.out.contains("chk_1"), "{outcome:?}");
    let server = Server::playing([
        begun(),
        check("pending", ""),
        check("pending", ""),
        check("pending", ""),
    ])
    .await;
    let outcome = Provost::script()
        .does(
            &server,
            &[&VERIFY[..], &["--wait", "--wait-seconds", "1"]].concat(),
        )
        .await;
    assert_eq!(outcome.code, 6, "{outcome:?}");
    assert!(
        outcome
            .err
            .contains("resource-credentials check res_1 cred_1 chk_1"),
        "{}",
        outcome.err
    );
}
