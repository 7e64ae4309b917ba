//! Bodies and answers that are not JSON, previews, questions with a body, consent that need not be said.

use crate::http::{Answer, Server, json, refusal};
use crate::provost::{Provost, folder, mode};
use serde_json::json;
use std::fs;

fn archive() -> Answer {
    Answer::Says {
        status: 200,
        headers: vec![("content-type", "application/gzip".into())],
        body: b"\x1f\x8b\0\xff".to_vec(),
    }
}

#[tokio::test]
async fn content_is_sent_with_its_media_type_and_the_trio_in_headers() {
    let server = Server::playing([json(201, &json!({}))]).await;
    let path = folder().join("skill.TGZ");
    fs::write(&path, b"\x1f\x8b\0\xff").expect("a file");
    let command = [
        "packages",
        "upload",
        "--file",
        path.to_str().expect("UTF-8"),
        "--version",
        "1.0.0",
        "--reason",
        "new",
        "--idempotency-key",
        "k",
    ];
    let outcome = Provost::script().asks(&server, &command).await;
    assert_eq!(outcome.code, 0, "{outcome:?}");
    let asked = &server.asked()[0];
    assert_eq!(
        asked.target,
        "/api/headless/v1/organizations/acme/packages?version=1.0.0"
    );
    assert_eq!(asked.body, b"\x1f\x8b\0\xff");
    assert_eq!(
        (
            asked.header("content-type"),
            asked.header("x-reason"),
            asked.header("idempotency-key")
        ),
        ("application/gzip", "new", "k")
    );
}

#[tokio::test]
async fn content_from_standard_input_needs_its_type_and_fits_the_limit() {
    let upload = ["packages", "upload", "--file", "-", "--reason", "new"];
    let typed = [&upload[..], &["--content-type", "application/zip"]].concat();
    let server = Server::playing([json(201, &json!({}))]).await;
    let said = Provost::script().stdin("PK").asks(&server, &upload).await;
    assert!(said.code == 2 && said.err.contains("--content-type"), "{said:?}");
    let large = Provost::script()
        .stdin(&"x".repeat(1025))
        .asks(&server, &typed)
        .await;
    assert_eq!((large.code, server.asked().len()), (2, 0), "{large:?}");
    assert_eq!(Provost::script().stdin("PK").asks(&server, &typed).await.code, 0);
    assert_eq!(server.asked()[0].header("content-type"), "application/zip");
}

#[tokio::test]
async fn bytes_are_written_to_a_new_file_and_never_to_a_terminal() {
    let path = folder().join("out.tar.gz");
    let download = ["packages", "download", "p_1"];
    let to = [&download[..], &["--to-file", path.to_str().expect("UTF-8")]].concat();
    let server = Server::playing([refusal(404, "not_found", "no such package"), archive()]).await;
    let shown = Provost::person(&[]).asks(&server, &download).await;
    assert_eq!((shown.code, server.asked().len()), (2, 0), "{shown:?}");
    assert_eq!(Provost::person(&[]).asks(&server, &to).await.code, 4);
    assert!(!path.exists());
    assert_eq!(Provost::person(&[]).asks(&server, &to).await.code, 0);
    assert_eq!(
        (fs::read(&path).expect("the file"), mode(&path)),
        (b"\x1f\x8b\0\xff".to_vec(), 0o600)
    );
    assert_eq!(Provost::person(&[]).asks(&server, &to).await.code, 2);
}

#[tokio::test]
async fn a_preview_asks_for_no_reason_and_carries_no_key() {
    let server = Server::playing([json(200, &json!({ "mode": "preview" }))]).await;
    let outcome = Provost::person(&[])
        .asks(&server, &["widgets", "revert", "w_1", "--source-id", "s"])
        .await;
    assert_eq!(outcome.code, 0, "{outcome:?}");
    assert!(
        outcome.questions.is_empty() && outcome.err.contains("preview"),
        "{outcome:?}"
    );
    assert_eq!(server.asked()[0].json(), json!({ "sourceId": "s" }));
}

#[tokio::test]
async fn a_confirmed_performance_carries_the_trio_and_names_its_own_right() {
    let forbidden = refusal(403, "insufficient_scope", "no");
    let server = Server::playing([json(200, &json!({ "mode": "completed" })), forbidden]).await;
    let revert = [
        "widgets",
        "revert",
        "w_1",
        "--confirm",
        "--reason",
        "r",
        "--idempotency-key",
        "k",
    ];
    assert_eq!(Provost::script().asks(&server, &revert[..4]).await.code, 2);
    assert_eq!(Provost::script().asks(&server, &revert).await.code, 0);
    assert_eq!(
        server.asked()[0].json(),
        json!({ "confirm": true, "reason": "r", "idempotencyKey": "k" })
    );
    let refused = Provost::script().asks(&server, &revert).await;
    assert!(
        refused.err.contains("widgets:revert and one of the roles admin"),
        "{}",
        refused.err
    );
}

#[tokio::test]
async fn consent_that_is_optional_is_not_asked_for_and_still_has_one_key() {
    let forget = ["packages", "forget", "p_1"];
    let server = Server::playing([Answer::Lost, json(200, &json!({})), json(200, &json!({}))]).await;
    let outcome = Provost::person(&[]).asks(&server, &forget).await;
    assert_eq!(outcome.code, 0, "{outcome:?}");
    assert!(outcome.questions.is_empty());
    let asked = server.asked();
    assert_eq!(asked[0].header("idempotency-key").len(), 32);
    assert_eq!(
        asked[0].header("idempotency-key"),
        asked[1].header("idempotency-key")
    );
    assert_eq!(asked[0].header("x-reason"), "");
    assert!(asked[0].body.is_empty() || asked[0].body == b"{}");
    let said = [&forget[..], &["--reason", "tidy"]].concat();
    assert_eq!(Provost::script().asks(&server, &said).await.code, 0);
    assert_eq!(server.asked()[2].header("x-reason"), "tidy");
}

#[tokio::test]
async fn a_question_with_a_body_is_a_read() {
    let server = Server::playing([Answer::Lost, json(200, &json!({ "items": [] }))]).await;
    let outcome = Provost::script()
        .asks(&server, &["widgets", "resolve", "--names", "a,b"])
        .await;
    assert_eq!(outcome.code, 0, "{outcome:?}");
    let asked = server.asked();
    assert_eq!(
        (asked[1].method.as_str(), asked[1].json()),
        ("POST", json!({ "names": ["a", "b"] }))
    );
    assert_eq!(asked[1].header("idempotency-key"), "");
}
