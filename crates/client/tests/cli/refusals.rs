//! Exit codes, words and hints.

use crate::http::{Answer, Server, json, refusal};
use crate::provost::{Provost, TOKEN};
use serde_json::json;

#[tokio::test]
async fn every_status_has_its_exit_code() {
    let codes = [
        (400, 1),
        (401, 3),
        (403, 3),
        (404, 4),
        (405, 1),
        (409, 5),
        (412, 5),
        (413, 1),
        (422, 5),
        (500, 8),
    ];
    for (status, code) in codes {
        let server = Server::playing([refusal(status, "some_code", "no")]).await;
        let outcome = Provost::script()
            .asks(&server, &["widgets", "list", "--retries", "0"])
            .await;
        assert_eq!(outcome.code, code, "{status}");
        assert_eq!(outcome.out, "", "{status}");
        assert!(outcome.err.starts_with("error: no\n"), "{}", outcome.err);
        assert!(
            outcome
                .err
                .contains(&format!("{status} some_code, request req_1")),
            "{}",
            outcome.err
        );
        assert!(!outcome.err.contains(TOKEN), "{}", outcome.err);
    }
}

#[tokio::test]
async fn a_refusal_names_each_broken_member() {
    let envelope = json!({
        "message": "the body is wrong", "code": "invalid_request", "requestId": "req_2", "retryable": false,
        "errors": [{ "path": "/name", "message": "must have 1 to 128 characters" }, { "path": "/scopes", "message": "x" }],
    });
    let server = Server::playing([json(400, &envelope)]).await;
    let command = [
        "widgets", "create", "--name", "a", "--scopes", "b", "--reason", "r",
    ];
    let outcome = Provost::script().asks(&server, &command).await;
    let expected = "error: the body is wrong\n  --name: must have 1 to 128 characters\n  --scopes: x\n\
                    400 invalid_request, request req_2\n";
    assert_eq!(outcome.err, expected);
    // In a document the pointer leads to the member.
    let server = Server::playing([json(400, &envelope)]).await;
    let body = [
        "widgets",
        "create",
        "--body",
        r#"{"name":"a"}"#,
        "--scopes",
        "b",
        "--reason",
        "r",
    ];
    let outcome = Provost::script().asks(&server, &body).await;
    assert!(
        outcome.err.contains("\n  /name: must have") && outcome.err.contains("\n  --scopes: x\n"),
        "{}",
        outcome.err
    );
}

#[tokio::test]
async fn a_refusal_of_one_value_is_said_once_and_of_its_flag() {
    let envelope = json!({
        "message": "/query/limit: must be a whole number", "code": "invalid_request", "requestId": "req_2", "retryable": false,
        "errors": [{ "path": "/query/limit", "message": "must be a whole number" }],
    });
    let server = Server::playing([json(400, &envelope)]).await;
    let outcome = Provost::script().asks(&server, &["widgets", "list"]).await;
    assert_eq!(
        outcome.err,
        "error: --limit: must be a whole number\n400 invalid_request, request req_2\n"
    );
}

#[tokio::test]
async fn a_token_that_is_refused_is_named_by_its_source() {
    let server = Server::playing([refusal(401, "unauthenticated", "no")]).await;
    let outcome = Provost::script().asks(&server, &["widgets", "list"]).await;
    assert!(
        outcome.err.contains("the token came from PROVOST_TOKEN"),
        "{}",
        outcome.err
    );
}

#[tokio::test]
async fn a_missing_right_is_named_with_its_scope_and_roles() {
    let server = Server::playing([refusal(403, "insufficient_scope", "no")]).await;
    let outcome = Provost::script().asks(&server, &["widgets", "list"]).await;
    assert!(
        outcome
            .err
            .contains("the scope widgets:read and one of the roles admin, operator"),
        "{}",
        outcome.err
    );
}

/// Who has what an operation needs of everybody is refused for another reason, which the server says.
#[tokio::test]
async fn no_right_is_named_as_missing_that_the_caller_has() {
    for (code, message, is_named) in [
        ("role_forbidden", "the role viewer may not do this", true),
        (
            "role_forbidden",
            "who may not read the directory does not find devices by their owners",
            false,
        ),
        (
            "role_forbidden",
            "this user has no role; an administrator gives it one (permissionRole)",
            false,
        ),
        (
            "escalation_forbidden",
            "people approve calls, and no service account does",
            false,
        ),
        ("approval_required", "a second person has to say yes", false),
    ] {
        let server = Server::playing([refusal(403, code, message)]).await;
        let outcome = Provost::script().asks(&server, &["widgets", "list"]).await;
        assert!(outcome.err.contains(message), "{}", outcome.err);
        assert_eq!(
            outcome.err.contains("one of the roles"),
            is_named,
            "{}",
            outcome.err
        );
    }
    for (scope, is_named) in [("widgets:read", true), ("directory:read", false)] {
        let body = json!({ "message": "this needs a scope", "code": "insufficient_scope", "scope": scope });
        let server = Server::playing([super::http::json(403, &body)]).await;
        let outcome = Provost::script().asks(&server, &["widgets", "list"]).await;
        assert_eq!(
            outcome.err.contains("one of the roles"),
            is_named,
            "{}",
            outcome.err
        );
    }
}

/// A token where a path belongs, and a password in an address.
#[tokio::test]
async fn no_error_repeats_a_secret_that_was_typed() {
    let secret = "s".repeat(49);
    let token = format!("prov_sat_0123456789AB_{secret}");
    let file = format!("/nowhere/{token}");
    let address = format!("http://adm:{secret}@127.0.0.1:1");
    let bare = format!("adm:{secret}@127.0.0.1:1");
    let server = Server::playing([]).await;
    for words in [
        ["--token-file", &token],
        ["--token-file", &file],
        ["--ca-cert", &token],
        ["--profile-file", &token],
        ["--profile", &token],
        ["--url", &address],
        ["--url", &bare],
        ["--url", &token],
    ] {
        let outcome = Provost::script()
            .asks(&server, &["widgets", "list", words[0], words[1]])
            .await;
        assert_ne!(outcome.code, 0, "{words:?}");
        let said = format!("{}{}", outcome.out, outcome.err);
        assert!(
            said.starts_with("error: ") && !said.contains("sss"),
            "{words:?}: {said}"
        );
    }
}

/// Proves CL-3.
#[tokio::test]
async fn words_of_the_server_cannot_steer_the_terminal() {
    let hostile = "gone\u{1b}[2J\u{9b}31m\u{202e}\r\nerror: fine";
    let page = json!({ "widgets": [{ "id": "w_1", "name": hostile }], "total": 1 });
    for (command, code) in [
        (vec!["widgets", "list"], 0),
        (vec!["widgets", "list", "-o", "json"], 0),
    ] {
        let server = Server::playing([json(200, &page)]).await;
        let outcome = Provost::person(&[]).asks(&server, &command).await;
        assert_eq!(outcome.code, code);
        assert!(
            outcome.out.contains("gone\\u001b[2J\\u009b31m\\u202e"),
            "{}",
            outcome.out
        );
        assert!(
            !outcome.out.contains(['\u{1b}', '\u{9b}', '\u{202e}', '\r']),
            "{:?}",
            outcome.out
        );
    }
    let server = Server::playing([refusal(409, "conflict", hostile)]).await;
    let outcome = Provost::person(&[]).asks(&server, &["widgets", "list"]).await;
    assert!(
        !outcome.err.contains(['\u{1b}', '\u{9b}', '\u{202e}', '\r']),
        "{:?}",
        outcome.err
    );
    assert!(
        outcome.err.starts_with("error: gone\\u001b[2J"),
        "{}",
        outcome.err
    );
}

/// Proves CL-1.
#[tokio::test]
async fn a_redirect_is_not_followed_and_the_token_stays() {
    let elsewhere = Server::playing([]).await;
    let target = format!("{}/stolen", elsewhere.url);
    let answer = Answer::Says {
        status: 307,
        headers: Vec::new(),
        body: Vec::new(),
    }
    .with("location", &target);
    let server = Server::playing([answer]).await;
    let outcome = Provost::script().asks(&server, &["widgets", "list"]).await;
    assert_eq!(outcome.code, 7);
    assert!(outcome.err.contains(&target), "{}", outcome.err);
    assert!(elsewhere.asked().is_empty());
}

#[tokio::test]
async fn a_page_of_something_else_is_no_answer() {
    let answer = Answer::Says {
        status: 200,
        headers: Vec::new(),
        body: b"<html>Log in</html>".to_vec(),
    };
    let server = Server::playing([answer]).await;
    let outcome = Provost::script().asks(&server, &["widgets", "list"]).await;
    assert_eq!((outcome.code, outcome.out.as_str()), (8, ""));
}

/// Proves CL-1.
#[tokio::test]
async fn a_token_does_not_cross_the_network_in_clear() {
    for url in [
        "http://provost.example",
        "http://localhost.example",
        "http://127.0.0.1.example",
        "http://192.0.2.1:8080",
        "http://10.0.0.7",
        "http://0.0.0.0:1",
        "http://[2001:db8::1]",
    ] {
        let command = ["widgets", "list", "--url", url, "--organization", "acme"];
        let outcome = Provost::script().runs(&command).await;
        assert_eq!(outcome.code, 2, "{url} {}", outcome.err);
        assert!(outcome.err.contains("unencrypted"), "{url} {}", outcome.err);
    }
}
