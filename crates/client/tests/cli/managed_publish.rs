//! Publishing and importing the settings files of clients.

use crate::http::{Answer, Server, json};
use crate::provost::{Outcome, Provost, folder};
use serde_json::json;
use std::fs;
use std::path::PathBuf;

const PROFILE: &str = "prof_01m7vv9kh2kev1h5hjrtv1gvsk";

fn profile_of(target: &str) -> Answer {
    json(200, &json!({ "profile": { "id": PROFILE, "target": target } }))
}

fn published() -> Answer {
    json(
        200,
        &json!({ "created": true, "release": { "version": 1 }, "warnings": [
            { "code": "unknown_member", "message": "did you mean permissions?", "paths": ["/enforced/permisions"] },
        ] }),
    )
}

const SHOWN: &str = "\"6f1d0d5e\"";

fn preview() -> Answer {
    let answer = json(
        200,
        &json!({
            "mode": "preview", "wouldCreate": true, "renderedDiff": { "lines": ["-old line", "+new line"], "truncated": false },
            "weakensEnforcement": [{ "path": "/enforced/permissions/deny", "message": "no longer forbids all that it forbade" }],
            "warnings": [],
        }),
    );
    match answer {
        Answer::Says {
            status,
            mut headers,
            body,
        } => {
            headers.push(("etag", SHOWN.to_owned()));
            Answer::Says {
                status,
                headers,
                body,
            }
        }
        other => other,
    }
}

fn file(name: &str, text: &str) -> PathBuf {
    let path = folder().join(name);
    fs::write(&path, text).expect("a file");
    path
}

async fn publishes(provost: Provost, server: &Server, more: &[&str]) -> Outcome {
    let command = ["managed-config", "publish", PROFILE, "--reason", "a test"];
    provost.does(server, &[&command[..], more].concat()).await
}

#[tokio::test]
async fn files_of_a_client_are_sent_as_they_are() {
    let json_file = file(
        "managed-settings.json",
        "{ \"permissions\": { \"deny\": [\"Bash\"] }, \"x\": 1.5 }\n",
    );
    let server = Server::playing([profile_of("claude_code"), published()]).await;
    let path = json_file.to_str().expect("UTF-8");
    let outcome = publishes(Provost::script(), &server, &["--enforced-file", path]).await;
    assert_eq!(outcome.code, 0, "{outcome:?}");
    assert!(
        outcome.err.contains("warning: /enforced/permisions did you mean"),
        "{}",
        outcome.err
    );
    let asked = server.asked();
    assert_eq!(asked.len(), 2, "nobody looks at a preview");
    assert!(asked[1].target.ends_with("/releases"), "{}", asked[1].target);
    assert_eq!(
        asked[1].json()["content"],
        json!({ "enforced": { "permissions": { "deny": ["Bash"] }, "x": 1.5 } })
    );

    let enforced = file(
        "requirements.toml",
        "allow_login_shell = false\n[features]\nx = true\n",
    );
    let defaults = file("config.toml", "model = \"x\"\nlimits = [1, 2.5]\n");
    let server = Server::playing([profile_of("codex"), published()]).await;
    let files = [
        "--enforced-file",
        enforced.to_str().expect("UTF-8"),
        "--defaults-file",
        defaults.to_str().expect("UTF-8"),
    ];
    assert_eq!(
        publishes(Provost::script(), &server, &[&files[..], &["--strict"]].concat())
            .await
            .code,
        0
    );
    let sent = server.asked()[1].json();
    assert_eq!(
        sent["content"],
        json!({ "enforced": { "allow_login_shell": false, "features": { "x": true } }, "defaults": { "model": "x", "limits": [1, 2.5] } })
    );
    assert_eq!(sent["strict"], true);
}

#[tokio::test]
async fn a_file_that_is_not_well_formed_is_named_with_its_place_and_nothing_is_sent() {
    let secret = "hunter2";
    for (target, text, why) in [
        (
            "claude_code",
            "{\n  \"a\": hunter2\n}",
            "is not JSON: line 2, column 8",
        ),
        ("claude_code", "{ \"a\": 1 } { \"b\": 2 }", "is not JSON: line 1"),
        (
            "claude_code",
            "{ \"deny\": \"hunter2\", \"deny\": 2 }",
            "is not taken: it has the member `deny` twice",
        ),
        ("claude_code", "[\"hunter2\"]", "is no JSON object"),
        ("claude_code", "a = \"hunter2\"", "is not JSON: line 1, column 1"),
        (
            "codex",
            "a = 1\nb = = \"hunter2\"\n",
            "is not TOML: line 2, column 5",
        ),
        ("codex", "a = 1\na = \"hunter2\"\n", "is not TOML: line 2"),
        ("codex", "a = 2026-11-26\n", "has a date at /a"),
        ("codex", "a = nan\n", "has a number at /a"),
        ("codex", "{ \"a\": \"hunter2\" }", "is not TOML: line 1, column 1"),
    ] {
        let file = file("settings", text);
        let server = Server::playing([profile_of(target)]).await;
        let outcome = publishes(
            Provost::script(),
            &server,
            &["--enforced-file", file.to_str().expect("UTF-8")],
        )
        .await;
        assert_ne!(outcome.code, 0, "{text}");
        assert!(outcome.err.contains(why), "{text}: {}", outcome.err);
        assert!(!outcome.err.contains(secret), "{}", outcome.err);
        assert_eq!(server.asked().len(), 1, "{text}");
    }
}

#[tokio::test]
async fn a_person_sees_what_would_change_and_is_asked() {
    let body = ["--body", r#"{"content": {"enforced": {}}}"#];
    let server = Server::playing([preview()]).await;
    let outcome = publishes(Provost::person(&["no"]), &server, &body).await;
    assert_ne!(outcome.code, 0);
    for shown in [
        "-old line",
        "weaker: /enforced/permissions/deny no longer forbids",
        "nothing was published",
    ] {
        assert!(outcome.err.contains(shown), "{}", outcome.err);
    }
    assert!(server.asked()[0].target.ends_with("/releases?preview=true"));

    let server = Server::playing([preview(), published()]).await;
    assert_eq!(publishes(Provost::person(&["yes"]), &server, &body).await.code, 0);
    let asked = server.asked();
    assert!(asked[1].target.ends_with("/releases"));
    let key = |place: usize| asked[place].json()["idempotencyKey"].clone();
    assert_eq!(key(0), key(1), "a preview leaves the key unused");
    let named = [asked[0].header("if-match"), asked[1].header("if-match")];
    assert_eq!(named, ["", SHOWN], "what was shown is what is published");

    let moved = json!({ "code": "precondition_failed", "message": "this is not what was previewed" });
    let server = Server::playing([preview(), json(412, &moved)]).await;
    let outcome = publishes(Provost::person(&["yes"]), &server, &body).await;
    assert_eq!(outcome.code, 5, "{outcome:?}");
    assert!(outcome.err.contains("not what was previewed"), "{}", outcome.err);

    let server = Server::playing([published()]).await;
    let outcome = publishes(Provost::person(&[]), &server, &[&body[..], &["--yes"]].concat()).await;
    assert_eq!((outcome.code, server.asked().len()), (0, 1), "{outcome:?}");
    assert_eq!(server.asked()[0].header("if-match"), "", "nothing was shown");
}

#[tokio::test]
async fn what_changes_nothing_is_not_published_and_what_is_cut_is_said() {
    let body = ["--body", r#"{"content": {"enforced": {}}}"#];
    let same = json!({
        "mode": "preview", "wouldCreate": false, "renderedDiff": { "lines": [], "truncated": false },
        "weakensEnforcement": [], "warnings": [],
    });
    let server = Server::playing([json(200, &same)]).await;
    let outcome = publishes(Provost::person(&[]), &server, &body).await;
    assert_eq!((outcome.code, server.asked().len()), (0, 1), "{outcome:?}");
    assert!(outcome.err.contains("nothing changes"), "{}", outcome.err);
    assert!(outcome.questions.is_empty());

    for (pointer, total, said) in [
        (
            "/truncated",
            Some(700),
            "more lines are not shown: 700 members change in all\n",
        ),
        ("/renderedDiff/truncated", None, "more lines are not shown\n"),
    ] {
        let mut cut = json!({
            "mode": "preview", "wouldCreate": true, "truncated": false, "changesTotal": total,
            "renderedDiff": { "lines": ["+a line"], "truncated": false },
        });
        *cut.pointer_mut(pointer).expect("the member") = true.into();
        let server = Server::playing([json(200, &cut)]).await;
        let outcome = publishes(Provost::person(&["no"]), &server, &body).await;
        assert!(outcome.err.contains(said), "{}", outcome.err);
    }

    // A server that does not say whether anything changes is no reason to publish unasked.
    let server = Server::playing([json(200, &json!({ "mode": "preview" }))]).await;
    let outcome = publishes(Provost::person(&["no"]), &server, &body).await;
    assert_eq!((outcome.code, server.asked().len()), (2, 1), "{outcome:?}");
}

#[tokio::test]
async fn starting_values_alone_are_no_release() {
    let defaults = file("config.toml", "model = \"x\"\n");
    let path = defaults.to_str().expect("UTF-8");
    for more in [&[][..], &["--preview"]] {
        let server = Server::playing([]).await;
        let flags = [&["--defaults-file", path][..], more].concat();
        let outcome = publishes(Provost::script(), &server, &flags).await;
        assert_eq!((outcome.code, server.asked().len()), (2, 0), "{outcome:?}");
        for said in [
            "--defaults-file needs --enforced-file",
            "to keep the enforced part, pass its file",
        ] {
            assert!(outcome.err.contains(said), "{}", outcome.err);
        }
    }
}
