//! Acts that need a second person: what asks for one, what performs, and what is said when nobody was asked.

use crate::http::{Server, empty, json, refusal};
use crate::provost::{Provost, folder};
use serde_json::json;

const ACCOUNT: &str = "sa_01kaf9q2m4x7t8v3c5d6e0g1h2";

/// What asked for a second person says so, keeps no secret that there is not, and shows how to go on; whatever the operation answers otherwise.
#[tokio::test]
async fn who_asks_for_a_second_person_is_told_that_nothing_was_done() {
    let asked = json!({ "approvalId": "apr_1", "state": "pending", "deadlineAt": "2026-11-27T12:00:00.000Z", "message": "wait" });
    let out = folder().join("token");
    for command in [
        vec!["service-accounts", "rotate", ACCOUNT],
        vec![
            "service-accounts",
            "rotate",
            ACCOUNT,
            "--token-out",
            out.to_str().expect("UTF-8"),
        ],
        // Its own answer has no body.
        vec![
            "groups",
            "remove-member",
            "grp_01kaf9q2m4x7t8v3c5d6e0g1h2",
            "usr_01kaf9q2m4x7t8v3c5d6e0g1h2",
        ],
    ] {
        let server = Server::playing([json(202, &asked)]).await;
        let command = [
            &command[..],
            &["--request-approval", "--reason", "why", "-o", "json"],
        ]
        .concat();
        let outcome = Provost::script().does(&server, &command).await;
        assert_eq!(outcome.code, 0, "{outcome:?}");
        assert!(outcome.out.contains("apr_1"), "{outcome:?}");
        assert!(
            outcome.err.contains("nothing was done") && outcome.err.contains("--approval-id"),
            "{outcome:?}"
        );
        assert!(!outcome.err.contains("it was done"), "{outcome:?}");
        let request = &server.asked()[0];
        assert!(
            request.target.contains("requestApproval=true"),
            "{}",
            request.target
        );
        assert!(!out.exists());
    }
}

#[tokio::test]
async fn the_approval_is_sent_with_the_request_that_it_is_of() {
    let server = Server::playing([empty(204)]).await;
    let command = [
        "groups",
        "remove-member",
        "grp_01kaf9q2m4x7t8v3c5d6e0g1h2",
        "usr_01kaf9q2m4x7t8v3c5d6e0g1h2",
        "--approval-id",
        "apr_1",
        "--reason",
        "why",
    ];
    let outcome = Provost::script().does(&server, &command).await;
    assert_eq!(outcome.code, 0, "{outcome:?}");
    assert!(server.asked()[0].target.contains("approvalId=apr_1"));
}

/// Nothing is missing of the caller, so no scope or role is named.
#[tokio::test]
async fn where_a_second_person_is_missing_no_right_is() {
    let server = Server::playing([refusal(
        403,
        "approval_required",
        "a second person has to say yes",
    )])
    .await;
    let command = ["service-accounts", "rotate", ACCOUNT, "--reason", "why"];
    let outcome = Provost::script().does(&server, &command).await;
    assert_eq!(outcome.code, 3, "{outcome:?}");
    assert!(
        outcome.err.contains("a second person has to say yes"),
        "{outcome:?}"
    );
    assert!(!outcome.err.contains("this needs"), "{outcome:?}");
}
