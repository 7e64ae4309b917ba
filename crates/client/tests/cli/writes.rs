//! What is asked of a person, and what is sent.

use crate::http::{Answer, Server, empty, json};
use crate::provost::{Provost, TOKEN};
use serde_json::json;

#[tokio::test]
async fn a_delete_carries_the_trio_in_headers_and_no_body() {
    let server = Server::playing([empty(204)]).await;
    let command = [
        "widgets",
        "delete",
        "w/1 ü",
        "--reason",
        "tidy ü",
        "--confirm",
        "--idempotency-key",
        "k1",
    ];
    let outcome = Provost::script().asks(&server, &command).await;
    assert_eq!(
        (outcome.code, outcome.out.as_str(), outcome.err.as_str()),
        (0, "", "done\n")
    );
    let asked = &server.asked()[0];
    assert_eq!(asked.method, "DELETE");
    assert_eq!(
        asked.target,
        "/api/headless/v1/organizations/acme/widgets/w%2F1%20%C3%BC"
    );
    assert_eq!(asked.headers["x-reason"].as_bytes(), "tidy ü".as_bytes());
    assert_eq!(
        (asked.header("idempotency-key"), asked.header("x-confirm")),
        ("k1", "true")
    );
    assert_eq!(asked.header("authorization"), format!("Bearer {TOKEN}"));
    assert!(asked.header("user-agent").starts_with("provost/"));
    assert!(asked.body.is_empty());
}

#[tokio::test]
async fn what_cannot_be_undone_is_not_done_unconfirmed() {
    let server = Server::playing([]).await;
    let outcome = Provost::script()
        .asks(&server, &["widgets", "delete", "w_1", "--reason", "tidy"])
        .await;
    assert_eq!(outcome.code, 2);
    assert!(outcome.err.contains("--confirm"), "{}", outcome.err);
    assert!(server.asked().is_empty());
    // Whatever is missing is said at once.
    let outcome = Provost::script()
        .asks(&server, &["widgets", "delete", "w_1"])
        .await;
    assert_eq!(
        (outcome.code, outcome.err.as_str()),
        (
            2,
            "error: this command needs --reason TEXT and --confirm: nothing can undo it\n"
        )
    );
}

#[tokio::test]
async fn a_person_confirms_by_typing_the_id() {
    let server = Server::playing([empty(204)]).await;
    let refused = Provost::person(&["tidy", "y"])
        .asks(&server, &["widgets", "delete", "w_1"])
        .await;
    assert_eq!((refused.code, server.asked().len()), (2, 0));
    assert!(refused.err.contains("nothing was sent"), "{}", refused.err);
    let done = Provost::person(&["tidy", "w_1"])
        .asks(&server, &["widgets", "delete", "w_1"])
        .await;
    assert_eq!((done.code, server.asked().len()), (0, 1));
    assert!(done.questions[1].contains("type w_1"), "{:?}", done.questions);
    assert_eq!(server.asked()[0].header("x-reason"), "tidy");
}

/// The refusal of what is not confirmed, with what would be lost.
fn weighed() -> Answer {
    let guard = json!({
        "by": "policy", "policyId": "guard", "family": "content", "action": "block", "enabled": false,
        "places": ["/appliesTo/users/0"], "kind": "user", "id": "usr_1",
    });
    json(
        400,
        &json!({ "code": "confirmation_required", "message": "say so", "lostReferences": [guard] }),
    )
}

#[tokio::test]
async fn a_person_sees_what_would_lose_its_guard_before_she_confirms() {
    let server = Server::playing([weighed(), weighed(), empty(204)]).await;
    let scrap = ["widgets", "scrap", "w_1", "--idempotency-key", "k"];
    let refused = Provost::person(&["tidy", "y"]).asks(&server, &scrap).await;
    assert_eq!((refused.code, server.asked().len()), (2, 1), "{refused:?}");
    assert!(refused.err.contains("nothing was done"), "{}", refused.err);
    let done = Provost::person(&["tidy", "w_1"]).asks(&server, &scrap).await;
    assert_eq!((done.code, server.asked().len()), (0, 3), "{done:?}");
    let line = "draft policy guard (content, block) names usr_1 at /appliesTo/users/0";
    assert!(done.err.contains(line), "{}", done.err);
    let asked = server.asked();
    let said: Vec<_> = asked[1..]
        .iter()
        .map(|call| (call.header("idempotency-key"), call.header("x-confirm")))
        .collect();
    assert_eq!(said, [("k.weigh", ""), ("k", "true")]);
}

#[tokio::test]
async fn a_script_says_yes_beforehand_or_asks_nothing() {
    let server = Server::playing([empty(204)]).await;
    let scrap = ["widgets", "scrap", "w_1", "--reason", "tidy"];
    let silent = Provost::script().asks(&server, &scrap).await;
    assert_eq!((silent.code, server.asked().len()), (2, 0), "{silent:?}");
    let said = Provost::script()
        .asks(&server, &[&scrap[..], &["--yes"]].concat())
        .await;
    assert_eq!((said.code, server.asked().len()), (0, 1), "{said:?}");
    assert_eq!(server.asked()[0].header("x-confirm"), "true");
}

#[tokio::test]
async fn a_write_without_a_reason_is_refused_when_nobody_can_be_asked() {
    let server = Server::playing([]).await;
    let outcome = Provost::script()
        .asks(&server, &["widgets", "update", "w_1", "--name", "x"])
        .await;
    assert_eq!((outcome.code, server.asked().len()), (2, 0));
    assert!(outcome.err.contains("--reason"), "{}", outcome.err);
}

#[tokio::test]
async fn flags_become_members_of_their_types() {
    let server = Server::playing([json(201, &json!({}))]).await;
    let command = [
        "widgets",
        "create",
        "--name",
        "Wheel",
        "--scopes",
        "a:read,b:read",
        "--scopes",
        "c:read",
        "--weight",
        "7",
        "--tokens-secret-replay-seconds",
        "0",
        "--visible=false",
        "--reason",
        "new",
        "--idempotency-key",
        "k",
    ];
    let outcome = Provost::script().asks(&server, &command).await;
    assert_eq!(outcome.code, 0, "{outcome:?}");
    let expected = json!({
        "name": "Wheel", "scopes": ["a:read", "b:read", "c:read"], "weight": 7,
        "tokens": { "secretReplaySeconds": 0 }, "visible": false, "reason": "new", "idempotencyKey": "k",
    });
    assert_eq!(server.asked()[0].json(), expected);
}

#[tokio::test]
async fn a_cleared_member_is_sent_as_null_and_an_absent_one_is_not_sent() {
    let server = Server::playing([json(200, &json!({}))]).await;
    let command = [
        "widgets",
        "update",
        "w_1",
        "--clear-description",
        "--reason",
        "r",
        "--idempotency-key",
        "k",
    ];
    Provost::script().asks(&server, &command).await;
    assert_eq!(
        server.asked()[0].json(),
        json!({ "description": null, "reason": "r", "idempotencyKey": "k" })
    );
}

#[tokio::test]
async fn a_body_is_read_from_standard_input_and_flags_add_to_it() {
    let server = Server::playing([json(201, &json!({}))]).await;
    let provost = Provost::script().stdin(r#"{"name": "Wheel", "scopes": []}"#);
    let command = [
        "widgets",
        "create",
        "--body",
        "-",
        "--weight",
        "3",
        "--reason",
        "r",
        "--idempotency-key",
        "k",
    ];
    let outcome = provost.asks(&server, &command).await;
    assert_eq!(outcome.code, 0, "{outcome:?}");
    let expected =
        json!({ "name": "Wheel", "scopes": [], "weight": 3, "reason": "r", "idempotencyKey": "k" });
    assert_eq!(server.asked()[0].json(), expected);
}

#[tokio::test]
async fn a_member_named_like_a_flag_of_every_command_is_still_said() {
    let server = Server::playing([json(200, &json!({}))]).await;
    let command = [
        "hooks",
        "create",
        "--body-url",
        "https://a.example",
        "--token",
        "t",
        "--body-output",
        "o",
        "--items",
        r#"[{"widgetId": "w_1"}]"#,
        "--reason",
        "r",
        "--idempotency-key",
        "k",
    ];
    let outcome = Provost::script().asks(&server, &command).await;
    assert_eq!(outcome.code, 0, "{outcome:?}");
    let expected = json!({
        "url": "https://a.example", "token": "t", "output": "o", "items": [{ "widgetId": "w_1" }],
        "reason": "r", "idempotencyKey": "k",
    });
    assert_eq!(server.asked()[0].json(), expected);
}

#[tokio::test]
async fn a_wrong_command_line_sends_nothing() {
    let wrong = [
        vec!["widgets", "list", "--limit", "101"],
        vec!["widgets", "list", "--limit", "ten"],
        vec!["widgets", "list", "--status", "broken"],
        vec!["widgets", "list", "--token", "x"],
        vec!["widgets", "create", "--reason", "r"],
        vec!["widgets", "update", "", "--reason", "r"],
        vec!["widgets", "update", "w_1", "--reason", " "],
        vec![
            "widgets",
            "update",
            "w_1",
            "--reason",
            "r",
            "--idempotency-key",
            "a b",
        ],
        vec!["widgets", "create", "--body", "{", "--reason", "r"],
    ];
    for command in wrong {
        let server = Server::playing([]).await;
        let outcome = Provost::script().asks(&server, &command).await;
        assert_eq!(outcome.code, 2, "{command:?} {outcome:?}");
        assert!(server.asked().is_empty(), "{command:?}");
    }
}
