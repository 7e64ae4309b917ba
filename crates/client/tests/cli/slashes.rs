//! Ids that hold slashes: what a path carries, what it does not, and whose answer came.

use crate::http::{Answer, Server, empty, json};
use crate::provost::Provost;
use serde_json::json;

const SAID: [&str; 4] = ["--reason", "r", "--idempotency-key", "k"];

fn about(id: &str) -> Answer {
    let headers = vec![("x-policy-id", id.to_owned())];
    Answer::Says {
        status: 204,
        headers,
        body: Vec::new(),
    }
}

async fn target(id: &str) -> String {
    let server = Server::playing([about(id)]).await;
    let words = [&["things", "drop", id, "--version", "2"][..], &SAID].concat();
    let outcome = Provost::script().asks(&server, &words).await;
    assert_eq!(outcome.code, 0, "{}", outcome.err);
    let base = "/api/headless/v1/organizations/acme";
    server.asked()[0].target.replace(base, "")
}

#[tokio::test]
async fn an_id_stands_in_the_path_unless_a_proxy_would_make_another_of_it() {
    assert_eq!(target("a/b").await, "/things/a%2Fb?version=2");
    assert_eq!(target("a/..b").await, "/things/a%2F..b?version=2");
    for (id, said) in [("a//b", "a%2F%2Fb"), ("a/", "a%2F"), ("a/../b", "a%2F..%2Fb")] {
        assert_eq!(target(id).await, format!("/things/-?thingId={said}&version=2"));
    }
}

/// Proves PO-9.
#[tokio::test]
async fn an_answer_about_another_id_is_no_success() {
    let words = [&["things", "drop", "a/b"][..], &SAID].concat();
    let server = Server::playing([about("a")]).await;
    let outcome = Provost::script().asks(&server, &words).await;
    assert_eq!(outcome.code, 8, "{}", outcome.err);
    assert!(
        outcome
            .err
            .contains("the server answered for a, and a/b was asked for"),
        "{}",
        outcome.err
    );
    assert!(!outcome.err.contains("done"), "{}", outcome.err);
    let words = [&["things", "rename", "a/b"][..], &SAID].concat();
    let server = Server::playing([json(200, &json!({ "item": { "id": "b" } }))]).await;
    let outcome = Provost::script().asks(&server, &words).await;
    assert_eq!(outcome.code, 8, "{}", outcome.err);
    // The same one, and a server that does not say.
    for answer in [
        json(200, &json!({ "item": { "id": "a/b" } })),
        json(200, &json!({ "item": {} })),
    ] {
        let server = Server::playing([answer]).await;
        let outcome = Provost::script().asks(&server, &words).await;
        assert_eq!(outcome.code, 0, "{}", outcome.err);
    }
    let words = [&["things", "drop", "a/b"][..], &SAID].concat();
    let server = Server::playing([empty(204)]).await;
    assert_eq!(Provost::script().asks(&server, &words).await.code, 0);
}

#[tokio::test]
async fn the_query_of_an_id_is_no_flag() {
    let server = Server::playing([about("a")]).await;
    let words = [&["things", "drop", "a", "--thing-id", "b"][..], &SAID].concat();
    let outcome = Provost::script().asks(&server, &words).await;
    assert_eq!((outcome.code, server.asked().len()), (2, 0), "{}", outcome.err);
}
