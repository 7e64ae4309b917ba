//! Profiles, and where tokens may come from and go to.

use crate::http::{Server, json};
use crate::provost::{Outcome, Provost, TOKEN, folder, mode};
use serde_json::{Value, json};
use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

fn file(home: &Path) -> PathBuf {
    home.join(".config/provost/profiles.toml")
}

fn at(home: &Path) -> Provost {
    Provost::script().token(None).home(home.to_owned())
}

async fn list_of(server: &Server, home: &Path) -> Outcome {
    let outcome = at(home).runs(&["widgets", "list"]).await;
    assert_eq!(outcome.code, 0, "{outcome:?} {:?}", server.asked());
    outcome
}

fn none() -> crate::http::Answer {
    json(200, &json!({ "widgets": [], "total": 0 }))
}

#[tokio::test]
async fn a_profile_replaces_every_flag() {
    let (server, home) = (Server::playing([none()]).await, folder());
    let set = [
        "profile",
        "set",
        "home",
        "--url",
        &server.url,
        "--organization",
        "acme",
    ];
    let outcome = at(&home).stdin(&format!("{TOKEN}\r\n")).runs(&set).await;
    assert_eq!(outcome.code, 0, "{outcome:?}");
    assert_eq!(
        (mode(&file(&home)), mode(file(&home).parent().expect("a folder"))),
        (0o600, 0o700)
    );
    list_of(&server, &home).await;
    let asked = &server.asked()[0];
    assert_eq!(asked.header("authorization"), format!("Bearer {TOKEN}"));
    assert!(
        asked.target.starts_with("/api/headless/v1/organizations/acme/"),
        "{}",
        asked.target
    );
    let listed = at(&home).runs(&["profile", "list"]).await;
    assert!(
        !listed.out.contains(TOKEN) && listed.out.contains(&server.url),
        "{}",
        listed.out
    );
}

#[tokio::test]
async fn a_person_types_the_token_unseen() {
    let home = folder();
    let outcome = Provost::person(&[TOKEN])
        .home(home.clone())
        .runs(&["profile", "set", "home"])
        .await;
    assert_eq!(outcome.code, 0, "{outcome:?}");
    assert!(fs::read_to_string(file(&home)).expect("the file").contains(TOKEN));
    assert!(!format!("{outcome:?}").contains(TOKEN), "{outcome:?}");
}

#[tokio::test]
async fn a_token_that_others_can_read_is_refused() {
    let home = folder();
    at(&home).stdin(TOKEN).runs(&["profile", "set", "home"]).await;
    for bits in [0o640, 0o604, 0o660] {
        fs::set_permissions(file(&home), Permissions::from_mode(bits)).expect("the file");
        let outcome = at(&home)
            .runs(&["widgets", "list", "--organization", "acme"])
            .await;
        assert_eq!(outcome.code, 2, "{bits:o}");
        assert!(outcome.err.contains("chmod 600"), "{}", outcome.err);
    }
}

/// Proves CL-1.
#[tokio::test]
async fn the_token_of_a_profile_is_not_sent_to_another_server() {
    let (server, home) = (Server::playing([]).await, folder());
    at(&home)
        .stdin(TOKEN)
        .runs(&["profile", "set", "home", "--url", "https://provost.example"])
        .await;
    let outcome = at(&home).asks(&server, &["widgets", "list"]).await;
    assert_eq!((outcome.code, server.asked().len()), (2, 0));
    assert!(outcome.err.contains("https://provost.example"), "{}", outcome.err);
    let moved = [
        "profile",
        "set",
        "home",
        "--url",
        "https://other.example",
        "--no-token",
    ];
    assert!(at(&home).runs(&moved).await.err.contains("forgotten"));
    assert!(!fs::read_to_string(file(&home)).expect("the file").contains(TOKEN));
}

#[tokio::test]
async fn the_profile_that_is_used_is_the_one_that_was_chosen() {
    let (one, two, home) = (
        Server::playing([none()]).await,
        Server::playing([none(), none()]).await,
        folder(),
    );
    for (name, server) in [("one", &one), ("two", &two)] {
        let set = [
            "profile",
            "set",
            name,
            "--url",
            &server.url,
            "--organization",
            name,
        ];
        at(&home).stdin(TOKEN).runs(&set).await;
    }
    list_of(&one, &home).await;
    let named = at(&home).runs(&["widgets", "list", "--profile", "two"]).await;
    assert_eq!(named.code, 0, "{named:?}");
    assert_eq!(at(&home).runs(&["profile", "use", "two"]).await.code, 0);
    list_of(&two, &home).await;
    assert_eq!((one.asked().len(), two.asked().len()), (1, 2));
    assert_eq!(at(&home).runs(&["profile", "remove", "two"]).await.code, 0);
    let listed: Value = serde_json::from_str(&at(&home).runs(&["profile", "list"]).await.out).expect("JSON");
    assert_eq!(listed["profiles"][0]["name"], "one");
    assert_eq!(listed["profiles"].as_array().map(Vec::len), Some(1));
    assert_eq!(
        at(&home)
            .runs(&["widgets", "list", "--profile", "two"])
            .await
            .code,
        2
    );
}

#[tokio::test]
async fn a_token_file_goes_before_the_environment_and_warns_when_it_is_open() {
    let (server, path) = (Server::playing([none(), none()]).await, folder().join("token"));
    fs::write(&path, "prov_sat_from_file\n").expect("a file");
    fs::set_permissions(&path, Permissions::from_mode(0o644)).expect("the file");
    let command = ["widgets", "list", "--token-file", path.to_str().expect("UTF-8")];
    let open = Provost::script().asks(&server, &command).await;
    assert!(open.code == 0 && open.err.contains("chmod 600"), "{open:?}");
    fs::set_permissions(&path, Permissions::from_mode(0o600)).expect("the file");
    let closed = Provost::script().asks(&server, &command).await;
    assert_eq!((closed.code, closed.err.as_str()), (0, ""));
    assert_eq!(
        server.asked()[1].header("authorization"),
        "Bearer prov_sat_from_file"
    );
}

#[tokio::test]
async fn without_a_token_or_an_organization_nothing_is_sent() {
    let server = Server::playing([]).await;
    let no_token = Provost::script()
        .token(None)
        .asks(&server, &["widgets", "list"])
        .await;
    assert_eq!(no_token.code, 3, "{no_token:?}");
    let no_organization = Provost::script()
        .runs(&["widgets", "list", "--url", &server.url])
        .await;
    assert_eq!(no_organization.code, 2, "{no_organization:?}");
    let two_lines = Provost::script()
        .token(Some("a\nb"))
        .asks(&server, &["widgets", "list"])
        .await;
    assert_eq!(two_lines.code, 2, "{two_lines:?}");
    assert!(server.asked().is_empty());
}

#[tokio::test]
async fn a_broken_profile_file_is_refused_without_its_lines() {
    let home = folder();
    fs::create_dir_all(file(&home).parent().expect("a folder")).expect("a folder");
    fs::write(file(&home), format!("[profiles.home]\ntoken = \"{TOKEN}\n")).expect("a file");
    let outcome = at(&home).runs(&["widgets", "list"]).await;
    assert_eq!(outcome.code, 2);
    assert!(
        outcome.err.contains("line 2") && !outcome.err.contains(TOKEN),
        "{}",
        outcome.err
    );
}
