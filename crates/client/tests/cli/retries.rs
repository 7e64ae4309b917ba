//! The same request, with the same key, until there is an answer.

use crate::http::{Answer, Server, empty, json, refusal};
use crate::provost::{Provost, folder};
use provost_kernel::time::{Clock, SystemClock};
use serde_json::json;

const UPDATE: [&str; 8] = [
    "widgets", "update", "w_1", "--name", "Wheel", "--reason", "it's new", "--quiet",
];

/// Proves CL-2.
#[tokio::test]
async fn a_write_whose_answer_is_lost_is_sent_again_unchanged() {
    let server = Server::playing([Answer::Lost, json(200, &json!({ "id": "w_1" }))]).await;
    let outcome = Provost::script().asks(&server, &UPDATE).await;
    assert_eq!(outcome.code, 0, "{outcome:?}");
    let asked = server.asked();
    assert_eq!(asked.len(), 2);
    assert_eq!(asked[0].body, asked[1].body);
    let key = asked[0].json()["idempotencyKey"]
        .as_str()
        .expect("a key")
        .to_owned();
    assert!(
        key.len() == 32 && key.bytes().all(|b| b.is_ascii_hexdigit()),
        "{key}"
    );
}

#[tokio::test]
async fn two_commands_never_share_a_key() {
    let server = Server::playing([json(200, &json!({})), json(200, &json!({}))]).await;
    Provost::script().asks(&server, &UPDATE).await;
    Provost::script().asks(&server, &UPDATE).await;
    let asked = server.asked();
    assert_ne!(
        asked[0].json()["idempotencyKey"],
        asked[1].json()["idempotencyKey"]
    );
}

#[tokio::test]
async fn a_read_is_sent_again_after_503_and_429() {
    let answers = [
        refusal(503, "unavailable", "not now"),
        refusal(429, "rate_limited", "slow down").with("retry-after", "0"),
        json(200, &json!({ "widgets": [], "total": 0 })),
    ];
    let server = Server::playing(answers).await;
    let outcome = Provost::script().asks(&server, &["widgets", "list"]).await;
    assert_eq!(outcome.code, 0, "{outcome:?}");
    assert_eq!(server.asked().len(), 3);
    assert!(
        outcome.err.contains("not now; trying again in"),
        "{}",
        outcome.err
    );
}

#[tokio::test]
async fn a_write_that_is_given_up_names_the_flags_that_repeat_it() {
    let server = Server::playing([Answer::Lost, Answer::Lost]).await;
    let outcome = Provost::script()
        .asks(&server, &[&UPDATE[..], &["--retries", "1"]].concat())
        .await;
    assert_eq!(outcome.code, 7);
    let asked = server.asked();
    assert_eq!(asked.len(), 2);
    let body = asked[0].json();
    let key = body["idempotencyKey"].as_str().expect("a key");
    assert!(outcome.err.contains("the outcome is unknown"), "{}", outcome.err);
    assert!(
        outcome
            .err
            .contains(&format!("--idempotency-key {key} --reason 'it'\\''s new'")),
        "{}",
        outcome.err
    );
}

/// Proves CL-5.
#[tokio::test]
async fn a_server_that_is_silent_is_given_up_as_a_whole() {
    let clock = SystemClock::new();
    // The answer that is lost is asked for again, and then there is none.
    let server = Server::playing([Answer::Lost, Answer::Silent, Answer::Silent]).await;
    let outcome = Provost::script()
        .asks(
            &server,
            &[&UPDATE[..], &["--timeout", "2", "--retries", "20"]].concat(),
        )
        .await;
    assert_eq!((outcome.code, server.asked().len()), (7, 2), "{outcome:?}");
    assert!(clock.monotonic() < std::time::Duration::from_secs(6));
    for words in [
        "gave no answer within 2 s; before: the answer of",
        "the outcome is unknown",
        "--timeout SECONDS",
        "repeat the same command with --idempotency-key",
    ] {
        assert!(outcome.err.contains(words), "{words}: {}", outcome.err);
    }
}

/// Proves CL-5.
#[tokio::test]
async fn the_waits_between_attempts_count() {
    let busy = || refusal(503, "unavailable", "not now").with("retry-after", "1");
    let server = Server::playing(std::iter::repeat_with(busy).take(20)).await;
    let outcome = Provost::script()
        .asks(&server, &["widgets", "list", "--timeout", "2", "--retries", "20"])
        .await;
    assert_eq!(outcome.code, 7, "{outcome:?}");
    assert!(
        (2..=3).contains(&server.asked().len()),
        "{}",
        server.asked().len()
    );
    // Nothing was on its way, and nothing was done.
    assert!(outcome.err.contains("before: not now"), "{}", outcome.err);
    assert!(!outcome.err.contains("the outcome is unknown"), "{}", outcome.err);
}

/// Proves CL-5.
#[tokio::test]
async fn an_answer_that_is_too_long_is_not_asked_for_again() {
    let long = || Answer::Says {
        status: 200,
        headers: vec![("content-type", "application/json".to_owned())],
        body: vec![b' '; (16 << 20) + 1],
    };
    let server = Server::playing([long(), long()]).await;
    let outcome = Provost::script().asks(&server, &["widgets", "list"]).await;
    assert_eq!((outcome.code, server.asked().len()), (8, 1), "{}", outcome.err);
    assert!(
        outcome.err.contains("the answer is longer than 16 MiB"),
        "{}",
        outcome.err
    );
    let server = Server::playing([long(), long()]).await;
    let outcome = Provost::script().asks(&server, &UPDATE).await;
    assert_eq!((outcome.code, server.asked().len()), (8, 1), "{}", outcome.err);
    assert!(outcome.err.contains("the outcome is unknown"), "{}", outcome.err);
    // As much as is read is shown, and a download may be longer.
    let mut most = br#"{"widgets":[],"total":0}"#.to_vec();
    most.resize(16 << 20, b' ');
    let headers = || vec![("content-type", "application/json".to_owned())];
    let fits = Answer::Says {
        status: 200,
        headers: headers(),
        body: most,
    };
    let server = Server::playing([fits]).await;
    assert_eq!(
        Provost::script().asks(&server, &["widgets", "list"]).await.code,
        0
    );
    let server = Server::playing([long()]).await;
    let file = folder().join("archive");
    let words = [
        "packages",
        "download",
        "p_1",
        "--to-file",
        file.to_str().expect("UTF-8"),
    ];
    let outcome = Provost::script().asks(&server, &words).await;
    assert_eq!(outcome.code, 0, "{}", outcome.err);
    assert_eq!(std::fs::metadata(&file).expect("the file").len(), (16 << 20) + 1);
}

/// Proves CL-2.
#[tokio::test]
async fn a_given_key_is_the_key_that_is_sent() {
    let server = Server::playing([json(200, &json!({}))]).await;
    Provost::script()
        .asks(&server, &[&UPDATE[..], &["--idempotency-key", "my-key"]].concat())
        .await;
    assert_eq!(server.asked()[0].json()["idempotencyKey"], "my-key");
}

#[tokio::test]
async fn a_wait_of_more_than_a_minute_is_not_waited_for() {
    let server = Server::playing([refusal(429, "rate_limited", "slow down").with("retry-after", "61")]).await;
    let outcome = Provost::script().asks(&server, &UPDATE).await;
    assert_eq!((outcome.code, server.asked().len()), (6, 1));
    assert!(
        outcome.err.contains("the server asks to wait 61 s"),
        "{}",
        outcome.err
    );
    assert!(
        !outcome.err.contains("unknown: the server may have acted"),
        "{}",
        outcome.err
    );
}

#[tokio::test]
async fn a_refusal_is_not_sent_again() {
    let server = Server::playing([refusal(409, "conflict", "it has ended")]).await;
    let outcome = Provost::script().asks(&server, &UPDATE).await;
    assert_eq!((outcome.code, server.asked().len()), (5, 1));
}

#[tokio::test]
async fn a_key_that_is_being_worked_on_is_waited_for() {
    let answers = [
        refusal(409, "idempotency_in_progress", "another request").with("retry-after", "0"),
        json(200, &json!({})),
    ];
    let server = Server::playing(answers).await;
    assert_eq!(Provost::script().asks(&server, &UPDATE).await.code, 0);
    assert_eq!(server.asked()[0].body, server.asked()[1].body);
}

#[tokio::test]
async fn a_fault_of_the_server_leaves_a_write_unknown_and_a_read_plain() {
    let server = Server::playing([empty(500), empty(500)]).await;
    let write = Provost::script().asks(&server, &UPDATE).await;
    let read = Provost::script().asks(&server, &["widgets", "list"]).await;
    assert_eq!((write.code, read.code), (8, 8));
    assert!(write.err.contains("--idempotency-key"), "{}", write.err);
    assert!(!read.err.contains("--idempotency-key"), "{}", read.err);
}

#[tokio::test]
async fn a_server_that_is_not_there_has_its_own_code() {
    let gone = Server::playing([]).await.url;
    let command = [
        "widgets",
        "list",
        "--url",
        &gone,
        "--organization",
        "acme",
        "--retries",
        "0",
    ];
    let outcome = Provost::script().runs(&command).await;
    assert_eq!(outcome.code, 7);
    assert!(
        outcome.err.starts_with("error: cannot reach http://127.0.0.1:"),
        "{}",
        outcome.err
    );
}
