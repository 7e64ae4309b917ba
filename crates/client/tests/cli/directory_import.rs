//! Importing a file of users and groups.

use crate::http::{Answer, Server, json, refusal};
use crate::provost::{Provost, folder, mode, program};
use serde_json::{Value, json};
use std::fs;
use std::io::Write;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::Duration;

const BASE: &str = "/api/headless/v1/organizations/acme/directory/imports";

fn import(state: &str) -> Value {
    json!({ "import": { "id": "imp_1", "state": state, "counts": { "lines": 2 } } })
}

fn opened() -> Answer {
    json(201, &import("open"))
}

fn staged(refused: &Value) -> Answer {
    let mut answer = import("open");
    answer["refusedLines"] = refused.clone();
    json(200, &answer)
}

fn good() -> Answer {
    staged(&json!([]))
}

fn is(state: &str) -> Answer {
    json(200, &import(state))
}

fn file(name: &str, text: &str) -> PathBuf {
    let path = folder().join(name);
    fs::write(&path, text).expect("a file");
    path
}

fn command<'a>(path: &'a str, more: &[&'a str]) -> Vec<&'a str> {
    let command = [
        "directory",
        "import",
        path,
        "--reason",
        "new year",
        "--idempotency-key",
        "k",
        "--retries",
        "1",
    ];
    [&command, more].concat()
}

#[tokio::test]
async fn a_file_is_opened_sent_and_applied_under_keys_of_one_command() {
    let path = file("people.jsonl", "{\"a\":1}\n{\"a\":2}\n");
    let server = Server::playing([opened(), good(), is("applying"), is("applied")]).await;
    let path = path.to_str().expect("UTF-8");
    let outcome = Provost::script()
        .does(&server, &command(path, &["--directory-id", "hr"]))
        .await;
    assert_eq!(outcome.code, 0, "{outcome:?}");
    assert_eq!(
        serde_json::from_str::<Value>(&outcome.out).expect("JSON"),
        import("applied")
    );
    assert!(outcome.err.starts_with("2 records, "), "{}", outcome.err);
    let asked = server.asked();
    assert_eq!(
        asked[0].json(),
        json!({ "format": "jsonl", "mode": "merge", "partial": false, "directoryId": "hr",
        "reason": "new year", "idempotencyKey": "k.open" })
    );
    assert_eq!(asked[1].target, format!("{BASE}/imp_1/chunks?sequence=1"));
    assert_eq!(
        (
            asked[1].header("content-type"),
            asked[1].header("idempotency-key")
        ),
        ("application/x-ndjson", "k.chunk-1")
    );
    assert_eq!(asked[1].body, b"{\"a\":1}\n{\"a\":2}\n");
    assert_eq!(asked[2].target, format!("{BASE}/imp_1/apply"));
    assert_eq!(
        asked[2].json(),
        json!({ "reason": "new year", "idempotencyKey": "k.apply", "confirm": true })
    );
    assert_eq!(
        (asked[3].method.as_str(), asked[3].target.as_str()),
        ("GET", format!("{BASE}/imp_1").as_str())
    );
}

#[tokio::test]
async fn a_refused_line_is_shown_and_nothing_is_imported() {
    let path = file("people.csv", "type,loginName\nuser,a\nuser,\n");
    let refused = staged(&json!([{ "line": 3, "path": "/loginName", "message": "too short\u{1b}[2J" }]));
    let server = Server::playing([opened(), refused, is("aborted")]).await;
    let outcome = Provost::script()
        .does(&server, &command(path.to_str().expect("UTF-8"), &[]))
        .await;
    assert_eq!((outcome.code, outcome.out.as_str()), (1, ""), "{outcome:?}");
    assert!(
        outcome.err.contains("line 3 /loginName: too short\\u001b[2J\n"),
        "{}",
        outcome.err
    );
    assert!(
        outcome
            .err
            .contains("1 of 2 records were refused; nothing was imported"),
        "{}",
        outcome.err
    );
    let asked = server.asked();
    assert_eq!(asked[1].header("content-type"), "text/csv");
    assert_eq!(asked[2].target, format!("{BASE}/imp_1/abort"));
    assert_eq!(asked[2].json()["idempotencyKey"], "k.abort");
}

#[tokio::test]
async fn refused_lines_go_to_a_new_file_and_partial_imports_the_rest() {
    let path = file("people.jsonl", "{}\n{}\n");
    let line = json!({ "line": 2, "message": "no" });
    let refused = staged(&json!([line]));
    let server = Server::playing([opened(), refused, is("applied")]).await;
    let out = path.with_file_name("refused");
    let more = ["--partial", "--refused", out.to_str().expect("UTF-8"), "--json"];
    let whole = command(path.to_str().expect("UTF-8"), &more);
    let outcome = Provost::person(&[]).does(&server, &whole).await;
    assert_eq!(outcome.code, 0, "{outcome:?}");
    assert!(
        outcome.out.starts_with('{') && outcome.err.contains("1 refused"),
        "{outcome:?}"
    );
    assert_eq!(fs::read_to_string(&out).expect("the file"), format!("{line}\n"));
    assert_eq!(mode(&out), 0o600);
    assert_eq!(server.asked()[0].json()["partial"], true);
    let again = Server::playing([]).await;
    assert_eq!(Provost::script().does(&again, &whole).await.code, 2);
    assert!(again.asked().is_empty());
}

#[tokio::test]
async fn standard_input_is_read_and_its_format_must_be_said() {
    let server = Server::playing([opened(), good(), is("applied")]).await;
    let provost = || Provost::script().stdin("{}\n");
    assert_eq!(provost().does(&server, &command("-", &[])).await.code, 2);
    let outcome = provost()
        .does(&server, &command("-", &["--format", "jsonl"]))
        .await;
    assert_eq!(outcome.code, 0, "{outcome:?}");
    assert_eq!(server.asked().len(), 3);
}

#[tokio::test]
async fn many_lines_are_sent_in_order_and_a_lost_answer_is_asked_for_again() {
    let text = "{\"a\":1}\n".repeat(251);
    let path = file("people.jsonl", &text);
    let server = Server::playing([opened(), good(), Answer::Lost, good(), is("applied")]).await;
    let outcome = Provost::script()
        .does(&server, &command(path.to_str().expect("UTF-8"), &[]))
        .await;
    assert_eq!(outcome.code, 0, "{outcome:?}");
    let asked = server.asked();
    assert_eq!(asked[2], asked[3]);
    assert_eq!(asked[3].target, format!("{BASE}/imp_1/chunks?sequence=2"));
    assert_eq!(
        [asked[1].body.clone(), asked[2].body.clone()].concat(),
        text.as_bytes()
    );
}

#[tokio::test]
async fn an_import_that_lost_its_server_stays_open_and_can_be_gone_on_with() {
    let path = file("people.jsonl", "{}\n");
    let server = Server::playing([opened(), Answer::Lost, Answer::Lost]).await;
    let outcome = Provost::script()
        .does(&server, &command(path.to_str().expect("UTF-8"), &[]))
        .await;
    assert_eq!((outcome.code, server.asked().len()), (7, 3), "{outcome:?}");
    assert!(
        outcome
            .err
            .contains("to go on, repeat the same command with --idempotency-key k --reason 'new year'"),
        "{}",
        outcome.err
    );
}

#[tokio::test]
async fn what_the_server_refuses_is_aborted() {
    let path = file("people.jsonl", "{}\n");
    let refused = refusal(409, "conflict", "the import is not open");
    let server = Server::playing([opened(), refused, is("aborted")]).await;
    let outcome = Provost::script()
        .does(&server, &command(path.to_str().expect("UTF-8"), &[]))
        .await;
    assert_eq!((outcome.code, server.asked().len()), (5, 3), "{outcome:?}");
    assert!(outcome.err.contains("imp_1 was aborted"), "{}", outcome.err);
}

#[tokio::test]
async fn a_file_without_records_or_that_is_none_imports_nothing() {
    let empty = file("people.csv", "type,loginName\n");
    let server = Server::playing([opened(), is("aborted")]).await;
    let outcome = Provost::script()
        .does(&server, &command(empty.to_str().expect("UTF-8"), &[]))
        .await;
    assert_eq!((outcome.code, server.asked().len()), (2, 2), "{outcome:?}");
    let none = folder().join("none.csv");
    let outcome = Provost::script()
        .does(&server, &command(none.to_str().expect("UTF-8"), &[]))
        .await;
    assert_eq!((outcome.code, server.asked().len()), (2, 2), "{outcome:?}");
}

#[tokio::test]
async fn exports_of_directories_are_sent_in_the_server_s_columns() {
    let okta = "login,firstName,lastName,email,mobilePhone,status\n\
                ann@x.test,Ann,Li,ann@x.test,+47 1,ACTIVE\n\
                bo@x.test,Bo,Li,bo@x.test,+47 2,DEPROVISIONED\n";
    let entra = "\u{feff}userPrincipalName;displayName;mail;objectId;accountEnabled\r\n\
                 ann@x.test;\"Li; Ann\";;3f25;True\r\ng#EXT#@x.test;Guest;g@y.test;3f26;False\r\n";
    let google = "Email Address [Required]\tPassword [Required]\tStatus [READ ONLY]\n\
                  ann@x.test\t****\tSuspended\n";
    for (format, text, sent) in [
        (
            "okta",
            okta,
            "loginName,displayName,email,status\nann@x.test,Ann Li,ann@x.test,active\n\
             bo@x.test,Bo Li,bo@x.test,suspended\n",
        ),
        (
            "entra",
            entra,
            "loginName,displayName,email,externalId,status\nann@x.test,Li; Ann,,3f25,active\n\
             g#EXT#@x.test,Guest,g@y.test,3f26,suspended\n",
        ),
        (
            "google",
            google,
            "loginName,email,status\nann@x.test,ann@x.test,suspended\n",
        ),
    ] {
        let path = file("export.csv", text);
        let server = Server::playing([opened(), good(), is("applied")]).await;
        let outcome = Provost::script()
            .does(
                &server,
                &command(path.to_str().expect("UTF-8"), &["--format", format]),
            )
            .await;
        assert_eq!(outcome.code, 0, "{outcome:?}");
        assert!(outcome.err.contains("is loginName"), "{}", outcome.err);
        let asked = server.asked();
        assert_eq!(asked[0].json()["format"], "csv");
        assert_eq!(String::from_utf8_lossy(&asked[1].body), sent, "{format}");
        assert!(!String::from_utf8_lossy(&asked[1].body).contains("****"));
    }
}

#[tokio::test]
async fn a_row_that_means_nothing_stops_the_file_and_columns_are_named() {
    let path = file("people.csv", "E-Mail,state,shoes\na@x.test,active,42\nb@x.test\n");
    let path = path.to_str().expect("UTF-8");
    let map = ["--map", "e-mail=loginName", "--map", "state=status"];
    let server = Server::playing([opened(), is("aborted")]).await;
    let outcome = Provost::script().does(&server, &command(path, &map)).await;
    assert_eq!((outcome.code, server.asked().len()), (2, 2), "{outcome:?}");
    assert!(outcome.err.contains("\"shoes\""), "{}", outcome.err);

    let server = Server::playing([opened(), good(), is("aborted")]).await;
    let more = [&map[..], &["--ignore-columns"]].concat();
    let outcome = Provost::script().does(&server, &command(path, &more)).await;
    assert_eq!(outcome.code, 1, "{outcome:?}");
    assert!(outcome.err.contains("left out: shoes"), "{}", outcome.err);
    assert!(
        outcome
            .err
            .contains("line 3: must have as many cells as the header"),
        "{}",
        outcome.err
    );
    assert_eq!(server.asked()[1].body, b"loginName,status\na@x.test,active\n\n");

    let server = Server::playing([]).await;
    let outcome = Provost::script()
        .does(&server, &command(path, &["--map", "state=shoe"]))
        .await;
    assert_eq!((outcome.code, server.asked().len()), (2, 0), "{outcome:?}");
}

#[tokio::test]
async fn ctrl_c_aborts_although_the_pipe_says_nothing() {
    let server = Server::playing([opened(), good(), is("aborted")]).await;
    let to = ["--url", &server.url, "--organization", "acme"];
    let mut child = program(&command("-", &[&["--format", "jsonl"][..], &to].concat()))
        .env("PROVOST_TOKEN", crate::provost::TOKEN)
        .stdin(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the program");
    let mut pipe = child.stdin.take().expect("a pipe");
    pipe.write_all("{\"a\":1}\n".repeat(251).as_bytes())
        .expect("lines");
    let is_open = async {
        while server.asked().len() < 2 {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(30), is_open)
        .await
        .expect("an open import");
    let status = Command::new("kill")
        .args(["-INT", &child.id().to_string()])
        .status();
    assert!(status.expect("kill").success());
    // The server of this test answers on this thread, so waiting must not block it.
    let ended = tokio::task::spawn_blocking(move || child.wait_with_output());
    let output = ended.await.expect("no panic").expect("its end");
    drop(pipe);
    let said = String::from_utf8(output.stderr).expect("UTF-8");
    assert_eq!(output.status.code(), Some(1), "{said}");
    assert!(
        said.contains("interrupted") && said.contains("imp_1 was aborted"),
        "{said}"
    );
    assert_eq!(server.asked()[2].target, format!("{BASE}/imp_1/abort"));
}

fn removals() -> Answer {
    let lost = json!([
        { "by": "policy", "policyId": "guard", "family": "content", "action": "block", "enabled": true, "places": ["/appliesTo/users/0"],
          "kind": "user", "id": "usr_1" },
        { "by": "credential", "credentialId": "cred_1", "kind": "group", "id": "grp_1" },
    ]);
    json(
        200,
        &json!({ "removals": { "users": { "removed": 7, "of": 9 } }, "sum": 7, "needsConfirmation": true, "lostReferences": lost }),
    )
}

#[tokio::test]
async fn a_dry_run_shows_what_would_go_and_imports_nothing() {
    let path = file("people.jsonl", "{}\n");
    let server = Server::playing([opened(), good(), is("open"), removals(), is("aborted")]).await;
    let whole = command(path.to_str().expect("UTF-8"), &["--mode", "replace", "--dry-run"]);
    let outcome = Provost::script().does(&server, &whole).await;
    assert_eq!(outcome.code, 0, "{outcome:?}");
    let shown: Value = serde_json::from_str(&outcome.out).expect("JSON");
    assert_eq!(
        (&shown["sum"], &shown["import"]["counts"]["lines"]),
        (&json!(7), &json!(2))
    );
    for line in [
        "enabled policy guard (content, block) names usr_1 at /appliesTo/users/0: it guards nothing there any more",
        "credential cred_1 is assigned to grp_1",
        "nothing was imported",
    ] {
        assert!(outcome.err.contains(line), "{}", outcome.err);
    }
    let asked = server.asked();
    let targets: Vec<&str> = asked.iter().map(|call| call.target.as_str()).collect();
    assert_eq!(
        targets[2..],
        [
            format!("{BASE}/imp_1"),
            format!("{BASE}/imp_1/removals"),
            format!("{BASE}/imp_1/abort")
        ]
    );
    assert_eq!(
        asked[0].json()["idempotencyKey"],
        "k.dry-run-open",
        "the import behind it is another"
    );
}

#[tokio::test]
async fn a_file_that_would_remove_much_needs_the_number() {
    let path = file("people.jsonl", "{}\n");
    let refused = || refusal(409, "too_many_removals", "7 users would go");
    let server = Server::playing([opened(), good(), refused(), is("aborted")]).await;
    let path = path.to_str().expect("UTF-8");
    let outcome = Provost::script()
        .does(&server, &command(path, &["--mode", "replace"]))
        .await;
    assert_eq!(outcome.code, 5, "{outcome:?}");
    assert!(
        outcome.err.contains("say --confirm-removals with that sum"),
        "{}",
        outcome.err
    );
    assert_eq!(server.asked()[2].json().get("confirmRemovals"), None);
    let server = Server::playing([opened(), good(), is("applied")]).await;
    let more = ["--mode", "replace", "--confirm-removals", "7"];
    assert_eq!(
        Provost::script().does(&server, &command(path, &more)).await.code,
        0
    );
    assert_eq!(server.asked()[2].json()["confirmRemovals"], 7);
}

#[tokio::test]
async fn lines_that_were_taken_with_a_warning_are_shown() {
    let path = file("people.jsonl", "{}\n{}\n");
    let applied =
        json!({ "import": { "id": "imp_1", "state": "applied", "counts": { "lines": 2, "warnings": 3 } } });
    let first = json!({ "warnings": [{ "line": 2, "userId": "usr_1", "path": "/email", "message": "taken\u{1b}[2J" }],
        "nextCursor": "c" });
    let second = json!({ "warnings": [{ "userId": "usr_2", "path": "/loginName", "message": "both" }] });
    let server = Server::playing([
        opened(),
        good(),
        json(200, &applied),
        json(200, &first),
        json(200, &second),
    ])
    .await;
    let outcome = Provost::script()
        .does(&server, &command(path.to_str().expect("UTF-8"), &[]))
        .await;
    assert_eq!(outcome.code, 0, "{outcome:?}");
    for line in [
        "warning: line 2 /email: taken\\u001b[2J\n",
        "warning: user usr_2 /loginName: both\n",
        "warning: 1 more are not listed\n",
    ] {
        assert!(outcome.err.contains(line), "{line} {}", outcome.err);
    }
    let asked = server.asked();
    assert_eq!(asked[3].target, format!("{BASE}/imp_1/warnings?limit=100"));
    assert_eq!(
        asked[4].target,
        format!("{BASE}/imp_1/warnings?limit=100&cursor=c")
    );
}
