//! Names where ids are taken.

use crate::http::{Answer, Server, empty, json, refusal};
use crate::provost::{Outcome, Provost};
use serde_json::{Value, json};

const DEPLOY: &str = "sa_01kaf9q2m4x7t8v3c5d6e0g1h2";
const OTHER: &str = "sa_01kaf9q2m4x7t8v3c5d6e0g1h3";
const SAID: [&str; 2] = ["--reason", "tidy"];

fn account(id: &str, name: &str) -> Value {
    json!({ "id": id, "name": name, "status": "active", "tokens": [] })
}

fn page(accounts: &[Value]) -> Answer {
    json(
        200,
        &json!({ "serviceAccounts": accounts, "total": accounts.len() }),
    )
}

fn both() -> Answer {
    page(&[account(DEPLOY, "deploy"), account(OTHER, "Deploy")])
}

async fn asks(answers: Vec<Answer>, provost: Provost, words: &[&str]) -> (Outcome, Vec<String>) {
    let server = Server::playing(answers).await;
    let outcome = provost.does(&server, words).await;
    let base = "/api/headless/v1/organizations/acme";
    let asked = server.asked().into_iter();
    (
        outcome,
        asked
            .map(|asked| format!("{} {}", asked.method, asked.target.replace(base, "")))
            .collect(),
    )
}

/// Proves CL-7.
#[tokio::test]
async fn a_name_is_looked_up_exactly() {
    let words = ["service-accounts", "get", "deploy"];
    let answers = vec![
        both(),
        json(200, &json!({ "serviceAccount": account(DEPLOY, "deploy") })),
    ];
    let (outcome, asked) = asks(answers, Provost::script(), &words).await;
    assert_eq!(outcome.code, 0, "{outcome:?}");
    let expected = [
        "GET /service-accounts?limit=100",
        &format!("GET /service-accounts/{DEPLOY}"),
    ];
    assert_eq!(asked, expected);
    // Neither a part of a name nor another case is one.
    for word in ["depl", "DEPLOY"] {
        let answers = vec![
            both(),
            refusal(404, "not_found", "there is no such service account"),
        ];
        let (outcome, asked) = asks(answers, Provost::script(), &["service-accounts", "get", word]).await;
        assert_eq!(
            (outcome.code, asked[1].clone()),
            (4, format!("GET /service-accounts/{word}")),
            "{outcome:?}"
        );
        let said = format!("no service account has the id or the name {word}; did you mean ");
        assert!(outcome.err.contains(&said), "{}", outcome.err);
    }
}

/// Proves CL-7.
#[tokio::test]
async fn a_word_of_the_shape_of_an_id_is_never_a_name() {
    let answers = vec![json(200, &json!({ "serviceAccount": account(DEPLOY, OTHER) }))];
    let (outcome, asked) = asks(answers, Provost::script(), &["service-accounts", "get", DEPLOY]).await;
    assert_eq!((outcome.code, asked.len()), (0, 1), "{outcome:?}");
}

/// Proves CL-7.
#[tokio::test]
async fn a_name_of_several_sends_nothing_and_says_their_ids() {
    let twice = page(&[account(DEPLOY, "deploy"), account(OTHER, "deploy")]);
    let words = [&["service-accounts", "disable", "deploy"][..], &SAID].concat();
    let (outcome, asked) = asks(vec![twice], Provost::script(), &words).await;
    assert_eq!((outcome.code, asked.len()), (2, 1), "{outcome:?}");
    let said = format!("error: 2 service accounts are called deploy; say the id\n  {DEPLOY}\n  {OTHER}\n");
    assert_eq!(outcome.err, said);
}

#[tokio::test]
async fn every_page_is_looked_through() {
    let first = json(
        200,
        &json!({ "serviceAccounts": [account(OTHER, "other")], "total": 2, "nextCursor": "c" }),
    );
    let second = json(
        200,
        &json!({ "serviceAccounts": [account(DEPLOY, "deploy")], "total": 2 }),
    );
    let done = json(200, &json!({ "serviceAccount": account(DEPLOY, "deploy") }));
    let words = [&["service-accounts", "disable", "deploy"][..], &SAID].concat();
    let (outcome, asked) = asks(vec![first, second, done], Provost::script(), &words).await;
    assert_eq!((outcome.code, asked.len()), (0, 3), "{outcome:?}");
    assert_eq!(asked[1], "GET /service-accounts?limit=100&cursor=c");
    assert_eq!(asked[2], format!("POST /service-accounts/{DEPLOY}/disable"));
}

#[tokio::test]
async fn who_may_not_list_acts_by_id_as_before() {
    let answers = vec![
        refusal(403, "insufficient_scope", "a scope is missing"),
        refusal(404, "not_found", "there is no such service account"),
    ];
    let words = [&["service-accounts", "disable", "deploy"][..], &SAID].concat();
    let (outcome, asked) = asks(answers, Provost::script(), &words).await;
    assert_eq!((outcome.code, asked.len()), (4, 2), "{outcome:?}");
    assert!(
        outcome.err.contains("could not be looked up: a scope is missing"),
        "{}",
        outcome.err
    );
}

#[tokio::test]
async fn who_destroys_something_reads_its_name_and_its_id_first() {
    let deleted = || empty(204);
    // The server is asked first what would be lost.
    let weighed = || refusal(400, "confirmation_required", "say confirm");
    let named = ["service-accounts", "delete", "deploy"];
    let person = Provost::person(&["tidy", "deploy"]);
    let (outcome, asked) = asks(vec![both(), weighed(), deleted()], person, &named).await;
    assert_eq!((outcome.code, asked.len()), (0, 3), "{outcome:?}");
    assert!(
        outcome
            .err
            .starts_with(&format!("the service account deploy is {DEPLOY}\n")),
        "{}",
        outcome.err
    );
    let by_id = ["service-accounts", "delete", DEPLOY];
    let found = json(200, &json!({ "serviceAccount": account(DEPLOY, "deploy") }));
    let person = Provost::person(&["tidy", DEPLOY]);
    let (outcome, asked) = asks(vec![found, weighed(), deleted()], person, &by_id).await;
    assert_eq!((outcome.code, asked.len()), (0, 3), "{outcome:?}");
    let said = format!("the service account {DEPLOY} is called deploy\n");
    assert!(outcome.err.starts_with(&said), "{}", outcome.err);
    // A script said `--confirm`, and is not told.
    let words = [&by_id[..], &SAID, &["--confirm"]].concat();
    let (outcome, asked) = asks(vec![deleted()], Provost::script(), &words).await;
    assert_eq!((outcome.code, asked.len()), (0, 1), "{outcome:?}");
}

/// The name may be gone when the command is repeated.
///
/// Proves CL-2.
#[tokio::test]
async fn the_line_that_repeats_a_command_names_the_id() {
    let words = [
        &[
            "service-accounts",
            "delete",
            "deploy",
            "--confirm",
            "--retries",
            "0",
            "--idempotency-key",
            "k",
        ][..],
        &SAID,
    ];
    let (outcome, _) = asks(vec![both(), Answer::Lost], Provost::script(), &words.concat()).await;
    assert_eq!(outcome.code, 7, "{outcome:?}");
    let said = format!(
        "repeat the same command with {DEPLOY} in the place of the name, and --idempotency-key k --reason tidy: it acts \
         at most once"
    );
    assert!(outcome.err.contains(&said), "{}", outcome.err);
}

#[tokio::test]
async fn what_must_be_said_is_asked_for_before_anything_is_looked_up() {
    let (outcome, asked) = asks(
        Vec::new(),
        Provost::script(),
        &["service-accounts", "delete", "deploy"],
    )
    .await;
    assert_eq!((outcome.code, asked.len()), (2, 0), "{outcome:?}");
}

/// Proves CL-7.
#[tokio::test]
async fn a_policy_of_a_family_is_looked_up_among_its_own() {
    let policy = |id: &str, family: &str| json!({ "id": id, "name": "guard", "family": family });
    let items = [policy("p-1", "access"), policy("p-2", "content")];
    let list = json(200, &json!({ "policies": items }));
    let found = json(200, &json!({ "item": { "id": "p-2" } }));
    let (outcome, asked) = asks(
        vec![list, found],
        Provost::script(),
        &["content-policies", "get", "guard"],
    )
    .await;
    assert_eq!(outcome.code, 0, "{outcome:?}");
    assert_eq!(
        asked,
        ["GET /policies?limit=100&query=guard", "GET /content-policies/p-2"]
    );
}
