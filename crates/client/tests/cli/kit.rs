//! What commands written by hand are made of.

use crate::http::{Answer, Server, empty, json};
use crate::provost::{Provost, TOKEN};
use bytes::Bytes;
use clap::Command;
use http::Method;
use provost_client::cli::{
    Client, Confirm, Consent, Failure, Request, Terminal, connection_args, consent_args, report,
};
use provost_kernel::Secret;
use serde_json::json;

fn root() -> Command {
    Command::new("provost").subcommand(Command::new("try").args(connection_args()).args(consent_args()))
}

async fn tries(
    server: &Server,
    flags: &[&str],
    act: impl AsyncFnOnce(&Client<'_>, &Consent) -> Result<(), Failure>,
) -> crate::provost::Outcome {
    let to = ["try", "--url", &server.url, "--organization", "ac me"];
    let said = ["--reason", "r", "--idempotency-key", "k", "--retries", "1"];
    let whole = [&to[..], &said, flags].concat();
    let run = async |matches: &clap::ArgMatches, terminal: &Terminal| {
        let (_, matches) = matches.subcommand().expect("the command");
        let done = async {
            let client = Client::connect(matches, terminal)?;
            let consent = Consent::of(matches, terminal, Confirm::Absent)?;
            act(&client, &consent).await
        };
        report(done.await, terminal)
    };
    Provost::script().played(root(), &whole, run).await
}

#[tokio::test]
async fn segments_and_queries_are_encoded() {
    let server = Server::playing([json(200, &json!({ "a": 1 }))]).await;
    let outcome = tries(&server, &[], async |client, _| {
        let found = client.get_json(&["widgets", "a/b ?"], &[("q", "x&y")]).await?;
        assert_eq!(found, json!({ "a": 1 }));
        Ok(())
    });
    assert_eq!(outcome.await.code, 0);
    let asked = &server.asked()[0];
    assert_eq!(
        asked.target,
        "/api/headless/v1/organizations/ac%20me/widgets/a%2Fb%20%3F?q=x%26y"
    );
    assert_eq!(asked.header("authorization"), format!("Bearer {TOKEN}"));
}

#[tokio::test]
async fn content_carries_the_trio_in_headers_and_the_same_key_on_every_attempt() {
    let server = Server::playing([Answer::Lost, json(201, &json!({}))]).await;
    let outcome = tries(&server, &[], async |client, consent| {
        let bytes = Bytes::from_static(b"\x1f\x8b\0");
        let consent = consent.step("chunk-1");
        let sent = client.send_content(
            Method::POST,
            &["things"],
            &[],
            ("application/gzip", bytes),
            &consent,
        );
        sent.await.map(drop)
    });
    assert_eq!(outcome.await.code, 0);
    let asked = server.asked();
    assert_eq!(asked.len(), 2);
    for attempt in asked {
        assert_eq!(attempt.header("content-type"), "application/gzip");
        assert_eq!(attempt.header("idempotency-key"), "k.chunk-1");
        assert_eq!(attempt.header("x-reason"), "r");
        assert_eq!(attempt.body, b"\x1f\x8b\0");
    }
}

#[tokio::test]
async fn a_write_that_is_given_up_names_the_key_of_the_command() {
    let server = Server::playing([Answer::Lost, Answer::Lost]).await;
    let outcome = tries(&server, &[], async |client, consent| {
        let consent = consent.step("open");
        client
            .send_json(Method::POST, &["things"], &json!({}), &consent)
            .await
            .map(drop)
    });
    let outcome = outcome.await;
    assert_eq!(outcome.code, 7);
    assert!(
        outcome.err.contains("--idempotency-key k --reason r"),
        "{}",
        outcome.err
    );
    let body = server.asked()[0].json();
    assert_eq!(body, json!({ "reason": "r", "idempotencyKey": "k.open" }));
}

#[tokio::test]
async fn a_request_may_carry_another_token() {
    let server = Server::playing([empty(200)]).await;
    let other = Secret::new("prov_gwt_other".to_owned());
    let outcome = tries(&server, &[], async |client, _| {
        let got = client.get_bytes(&["content"], &[], Some(&other)).await?;
        assert!(got.is_empty());
        Ok(())
    });
    assert_eq!(outcome.await.code, 0);
    assert_eq!(server.asked()[0].header("authorization"), "Bearer prov_gwt_other");
}

#[tokio::test]
async fn every_page_is_fetched_and_a_page_named_twice_is_a_fault() {
    let pages = [
        json(200, &json!({ "things": [1, 2], "nextCursor": "c" })),
        json(200, &json!({ "things": [3] })),
        json(200, &json!({ "things": [], "nextCursor": "c" })),
        json(200, &json!({ "things": [], "nextCursor": "c" })),
    ];
    let server = Server::playing(pages).await;
    let outcome = tries(&server, &[], async |client, _| {
        let all = client.get_all(&["things"], &[], "things").await?;
        assert_eq!(all, [json!(1), json!(2), json!(3)]);
        client.get_all(&["things"], &[], "things").await.map(drop)
    });
    assert_eq!(outcome.await.code, 8);
}

#[tokio::test]
async fn what_has_not_changed_is_an_answer_for_who_asks_so() {
    let server = Server::playing([empty(304), empty(304)]).await;
    let outcome = tries(&server, &[], async |client, _| {
        let ask = Request::get(&["thing"]).header("if-none-match", "\"e\"");
        assert_eq!(client.send(&ask.clone().or_unmodified()).await?.status(), 304);
        client.send(&ask).await.map(drop)
    });
    assert_ne!(outcome.await.code, 0);
    assert_eq!(server.asked()[0].header("if-none-match"), "\"e\"");
}

#[tokio::test]
async fn the_program_asks_a_server_with_the_same_terminal() {
    provost_client::command().debug_assert();
    let server = Server::playing([json(200, &json!({ "toolsets": [] }))]).await;
    let outcome = Provost::script().does(&server, &["capabilities", "show"]).await;
    assert_eq!(outcome.code, 0, "{outcome:?}");
    assert_eq!(server.asked().len(), 1);
}
