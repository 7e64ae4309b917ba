//! Secrets that are shown once.

use crate::http::{Server, empty, json};
use crate::provost::{Provost, folder, mode};
use serde_json::{Value, json};

const CREATE: [&str; 8] = [
    "widgets", "create", "--name", "Wheel", "--scopes", "a", "--reason", "new",
];
const MINTED: &str = "prov_sat_minted_secret";

fn created() -> Value {
    json!({ "widget": { "id": "w_1", "name": "Wheel" }, "token": { "id": "sat_1", "token": MINTED } })
}

#[tokio::test]
async fn a_table_ends_with_the_secret_on_its_own_line() {
    let server = Server::playing([json(201, &created())]).await;
    let outcome = Provost::person(&[]).asks(&server, &CREATE).await;
    assert_eq!(outcome.code, 0, "{outcome:?}");
    assert_eq!(outcome.out.lines().last(), Some(MINTED));
    assert_eq!(outcome.out.matches(MINTED).count(), 1);
    assert!(outcome.err.contains("shown once"), "{}", outcome.err);
}

#[tokio::test]
async fn json_holds_the_secret_where_the_server_put_it() {
    let server = Server::playing([json(201, &created())]).await;
    let outcome = Provost::script().asks(&server, &CREATE).await;
    assert_eq!(
        serde_json::from_str::<Value>(&outcome.out).expect("JSON"),
        created()
    );
    assert!(!outcome.err.contains(MINTED), "{}", outcome.err);
}

#[tokio::test]
async fn a_secret_for_a_file_stands_nowhere_else() {
    let path = folder().join("token");
    let out = path.to_str().expect("UTF-8");
    for form in ["table", "json", "jsonl"] {
        let _ = std::fs::remove_file(&path);
        let server = Server::playing([json(201, &created())]).await;
        let command = [&CREATE[..], &["--token-out", out, "--output", form]].concat();
        let outcome = Provost::script().asks(&server, &command).await;
        assert_eq!(outcome.code, 0, "{outcome:?}");
        assert_eq!(
            std::fs::read_to_string(&path).expect("the file"),
            format!("{MINTED}\n")
        );
        assert_eq!(mode(&path), 0o600);
        assert!(!format!("{outcome:?}").contains(MINTED), "{outcome:?}");
        assert!(outcome.out.contains("sat_1"), "{}", outcome.out);
    }
}

#[tokio::test]
async fn a_secret_never_replaces_a_file_and_is_not_minted_for_one() {
    let path = folder().join("token");
    std::fs::write(&path, "mine").expect("a file");
    let server = Server::playing([]).await;
    let command = [&CREATE[..], &["--token-out", path.to_str().expect("UTF-8")]].concat();
    let outcome = Provost::script().asks(&server, &command).await;
    assert_eq!((outcome.code, server.asked().len()), (2, 0));
    assert_eq!(std::fs::read_to_string(&path).expect("the file"), "mine");
}

#[tokio::test]
async fn a_refused_command_leaves_no_file() {
    let path = folder().join("token");
    let server = Server::playing([empty(403)]).await;
    let command = [&CREATE[..], &["--token-out", path.to_str().expect("UTF-8")]].concat();
    assert_eq!(Provost::script().asks(&server, &command).await.code, 3);
    assert!(!path.exists());
}

#[tokio::test]
async fn a_secret_that_nobody_reads_can_be_fetched_again() {
    let server = Server::playing([json(201, &created())]).await;
    let outcome = Provost::script().unread().asks(&server, &CREATE).await;
    assert_eq!(outcome.code, 9, "{outcome:?}");
    let body = server.asked()[0].json();
    let key = body["idempotencyKey"].as_str().expect("a key");
    assert!(
        outcome
            .err
            .contains(&format!("--idempotency-key {key} --reason new")),
        "{}",
        outcome.err
    );
    assert!(!outcome.err.contains(MINTED), "{}", outcome.err);
}

#[tokio::test]
async fn a_list_that_nobody_reads_ends_without_words() {
    let server = Server::playing([json(200, &json!({ "widgets": [{ "id": "w_1" }], "total": 1 }))]).await;
    let outcome = Provost::script()
        .unread()
        .asks(&server, &["widgets", "list"])
        .await;
    assert_eq!((outcome.code, outcome.err.as_str()), (0, ""));
}
