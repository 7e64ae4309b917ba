//! Importing the settings that a machine has for a client.

use crate::http::{Answer, Server, json};
use crate::provost::{Outcome, Provost, folder};
use serde_json::{Value, json};
use std::fs::{self, Permissions};
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;
use std::process::Command;

const PROFILE: &str = "prof_01m7vv9kh2kev1h5hjrtv1gvsk";

fn profile_of(target: &str) -> Answer {
    json(200, &json!({ "profile": { "id": PROFILE, "target": target } }))
}

fn published() -> Answer {
    json(200, &json!({ "created": true, "release": { "version": 1 } }))
}

fn put(root: &Path, place: &str, text: &str) {
    let path = root.join(place);
    fs::create_dir_all(path.parent().expect("a folder")).expect("a folder");
    fs::write(path, text).expect("a file");
}

async fn imports(root: &Path, server: &Server, more: &[&str]) -> Outcome {
    let root = root.to_str().expect("UTF-8");
    let import = ["managed-config", "import", "--root", root, "--client"];
    let done = Provost::script()
        .does(server, &[&import[..], more].concat())
        .await;
    assert!(done.code == 0 || done.out.is_empty(), "{done:?}");
    done
}

/// Imports to print and to publish, both in vain: nothing is printed or sent.
async fn refuses(root: &Path, more: &[&str], code: u8, said: &[&str]) {
    let publish = ["--publish", PROFILE, "--reason", "a test"];
    for flags in [more.to_vec(), [more, &publish].concat()] {
        let server = Server::playing([]).await;
        let outcome = imports(root, &server, &flags).await;
        assert_eq!((outcome.code, server.asked().len()), (code, 0), "{outcome:?}");
        for said in said {
            assert!(outcome.err.contains(said), "{said}: {}", outcome.err);
        }
    }
}

#[tokio::test]
async fn what_a_machine_has_is_printed_or_published() {
    let root = folder();
    put(
        &root,
        "etc/codex/requirements.toml",
        "allow_login_shell = false\n",
    );
    put(&root, "etc/codex/config.toml", "model = \"x\"\n");
    let server = Server::playing([]).await;
    let printed = imports(&root, &server, &["codex"]).await;
    assert_eq!(printed.code, 0, "{printed:?}");
    let content: Value = serde_json::from_str(&printed.out).expect("JSON");
    assert_eq!(
        content,
        json!({ "content": { "enforced": { "allow_login_shell": false } } })
    );
    let nothing = imports(&root, &server, &["claude_code"]).await;
    assert!(
        nothing.err.contains("no settings of claude_code"),
        "{}",
        nothing.err
    );
    assert_eq!(server.asked().len(), 0);

    let server = Server::playing([profile_of("codex"), published()]).await;
    let more = [
        "codex",
        "--with-defaults",
        "--publish",
        PROFILE,
        "--reason",
        "a test",
    ];
    assert_eq!(imports(&root, &server, &more).await.code, 0);
    let sent = server.asked()[1].json();
    assert_eq!(sent["content"]["defaults"], json!({ "model": "x" }));
    let other = Server::playing([profile_of("claude_code")]).await;
    assert_ne!(
        imports(&root, &other, &more).await.code,
        0,
        "settings of one client are no other's"
    );
}

#[tokio::test]
async fn a_part_is_not_taken_for_the_whole() {
    let more = "etc/claude-code/managed-settings.d/10.json";
    for base in [Some("{}"), None] {
        let root = folder();
        put(&root, more, "{}");
        if let Some(text) = base {
            put(&root, "etc/claude-code/managed-settings.json", text);
        }
        refuses(
            &root,
            &["claude_code"],
            5,
            &["holds 1 more files", "managed-settings.d"],
        )
        .await;
        fs::remove_file(root.join(more)).expect("it was there");
        let outcome = imports(&root, &Server::playing([]).await, &["claude_code"]).await;
        let code = if base.is_some() { 0 } else { 4 };
        assert_eq!(outcome.code, code, "an empty folder adds nothing: {outcome:?}");
    }
}

#[tokio::test]
async fn what_cannot_be_looked_at_is_not_absent() {
    // A file where a folder belongs is an error for everybody, the superuser too.
    let root = folder();
    put(&root, "etc/claude-code", "no folder");
    let said = ["cannot read", "etc/claude-code/managed-settings.json: "];
    refuses(&root, &["claude_code"], 2, &said).await;
    let root = folder();
    put(&root, "etc/claude-code/managed-settings.json", "{}");
    put(&root, "etc/claude-code/managed-settings.d", "no folder");
    refuses(
        &root,
        &["claude_code"],
        2,
        &["cannot read", "managed-settings.d: "],
    )
    .await;

    for closed in ["etc/codex", "etc/codex/requirements.d"] {
        let root = folder();
        put(&root, "etc/codex/requirements.toml", "a = 1\n");
        put(&root, "etc/codex/config.toml", "model = \"x\"\n");
        let path = root.join(closed);
        fs::create_dir_all(&path).expect("a folder");
        fs::set_permissions(&path, Permissions::from_mode(0o000)).expect("it is ours");
        // The superuser may read it nevertheless.
        if fs::read_dir(&path).is_err() {
            refuses(&root, &["codex"], 2, &["cannot read", closed]).await;
        }
        fs::set_permissions(&path, Permissions::from_mode(0o700)).expect("it is ours");
    }
}

#[tokio::test]
async fn starting_values_alone_are_printed_without_an_enforced_part_and_not_published() {
    let root = folder();
    put(&root, "etc/codex/config.toml", "model = \"x\"\n");
    let server = Server::playing([]).await;
    let printed = imports(&root, &server, &["codex", "--with-defaults"]).await;
    assert_eq!(printed.code, 0, "{printed:?}");
    let content: Value = serde_json::from_str(&printed.out).expect("JSON");
    assert_eq!(content, json!({ "content": { "defaults": { "model": "x" } } }));
    let flags = [
        "codex",
        "--with-defaults",
        "--publish",
        PROFILE,
        "--reason",
        "a test",
    ];
    let outcome = imports(&root, &server, &flags).await;
    assert_eq!((outcome.code, server.asked().len()), (4, 0), "{outcome:?}");
    assert!(
        outcome.err.contains("no enforced settings of codex"),
        "{}",
        outcome.err
    );
}

#[tokio::test]
async fn another_root_has_its_own_files_alone() {
    let away = folder();
    put(&away, "requirements.toml", "secret = \"hunter2\"\n");
    put(&away, "codex/requirements.toml", "secret = \"hunter2\"\n");
    for (link, to) in [
        ("etc/codex/requirements.toml", away.join("requirements.toml")),
        ("etc/codex/requirements.toml", away.join("nothing")),
        ("etc/codex", away.join("codex")),
        ("etc", away.clone()),
    ] {
        let root = folder();
        let path = root.join(link);
        fs::create_dir_all(path.parent().expect("a folder")).expect("a folder");
        symlink(to, &path).expect("a link");
        refuses(&root, &["codex"], 5, &[&format!("{link} is a link")]).await;
    }
    let root = folder();
    put(&root, "etc/codex/requirements.toml", "a = 1\n");
    symlink(&away, root.join("etc/codex/requirements.d")).expect("a link");
    refuses(&root, &["codex"], 5, &["requirements.d is a link"]).await;
    // The root itself may be reached through one.
    let (through, root) = (folder().join("link"), folder());
    put(&root, "etc/codex/requirements.toml", "a = 1\n");
    symlink(&root, &through).expect("a link");
    let outcome = imports(&through, &Server::playing([]).await, &["codex"]).await;
    assert_eq!(outcome.code, 0, "{outcome:?}");

    put(&root, "etc/claude-code/managed-settings.json", "{}");
    let said = ["--with-defaults reads the settings.json of this user", "--root"];
    refuses(&root, &["claude_code", "--with-defaults"], 2, &said).await;
}

#[tokio::test]
async fn a_pipe_is_refused_and_not_waited_for() {
    let root = folder();
    let pipe = root.join("etc/codex/requirements.toml");
    fs::create_dir_all(root.join("etc/codex")).expect("a folder");
    let made = Command::new("mkfifo").arg(&pipe).status().expect("mkfifo");
    assert!(made.success());
    // Nobody writes into it: whoever opens it waits for ever.
    refuses(&root, &["codex"], 5, &["is no regular file"]).await;
    fs::remove_file(&pipe).expect("it was there");
    fs::create_dir(&pipe).expect("a folder");
    refuses(&root, &["codex"], 5, &["is no regular file"]).await;
}
