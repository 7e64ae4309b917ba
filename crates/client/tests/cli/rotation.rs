//! A token that replaces itself where it lies.

use crate::access::capabilities;
use crate::http::{Answer, Server, json, refusal};
use crate::provost::{Outcome, Provost, TOKEN, folder, mode};
use provost_client::cli::Surroundings;
use serde_json::json;
use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

const NEW: &str = "prov_sat_newnewnewnewn_thisIsTheNewSecret";
const ROTATE: [&str; 3] = ["token", "rotate", "--in-place"];

fn rotated() -> Answer {
    let token = json!({
        "id": "sat_01kaf9q2m4x7t8v3c5d6e0g1h3", "name": "default", "token": NEW,
        "tokenPrefix": "prov_sat_newn", "expiresAt": "2027-02-24T12:00:00.000Z",
    });
    json(
        200,
        &json!({ "serviceAccount": { "id": "sa_01kaf9q2m4x7t8v3c5d6e0g1h2" }, "token": token }),
    )
}

fn token_file(folder: &Path) -> PathBuf {
    let path = folder.join("token");
    fs::write(&path, format!("{TOKEN}\n")).expect("a file");
    fs::set_permissions(&path, Permissions::from_mode(0o600)).expect("the file");
    path
}

fn note(path: &Path) -> PathBuf {
    path.with_file_name(".token.rotation.json")
}

async fn rotate(server: &Server, path: &Path, flags: &[&str]) -> Outcome {
    let surroundings = Surroundings {
        token_file: Some(path.to_owned()),
        ..Surroundings::default()
    };
    let provost = Provost::script().token(None).surroundings(surroundings);
    provost
        .does(server, &[&ROTATE[..], &["--retries", "0"], flags].concat())
        .await
}

/// Proves CL-6.
#[tokio::test]
async fn a_token_is_replaced_in_its_file() {
    let folder = folder();
    let path = token_file(&folder);
    let server = Server::playing([json(200, &capabilities()), rotated()]).await;
    let outcome = rotate(
        &server,
        &path,
        &["--reason", "monthly", "--grace-period-seconds", "60"],
    )
    .await;
    assert_eq!((outcome.code, outcome.out.as_str()), (0, ""), "{outcome:?}");
    assert_eq!(fs::read_to_string(&path).expect("the file"), format!("{NEW}\n"));
    assert_eq!((mode(&path), note(&path).exists()), (0o600, false));
    assert!(
        outcome
            .err
            .contains("rotated: the token sat_01kaf9q2m4x7t8v3c5d6e0g1h3 is in the file "),
        "{}",
        outcome.err
    );
    assert!(!format!("{outcome:?}").contains("Secret"), "{outcome:?}");
    let asked = &server.asked()[1];
    assert_eq!(
        asked.target,
        "/api/headless/v1/organizations/acme/service-accounts/sa_01kaf9q2m4x7t8v3c5d6e0g1h2/tokens"
    );
    let body = asked.json();
    assert_eq!(
        (&body["reason"], &body["gracePeriodSeconds"]),
        (&json!("monthly"), &json!(60))
    );
    assert!(
        body["idempotencyKey"].as_str().expect("a key").len() >= 22,
        "{body}"
    );
}

/// Whatever comes between, the same key asks for the same token.
///
/// Proves CL-2, CL-6.
#[tokio::test]
async fn a_lost_answer_is_asked_for_again_by_the_next_run_under_the_same_key() {
    let folder = folder();
    let path = token_file(&folder);
    let server = Server::playing([json(200, &capabilities()), Answer::Lost]).await;
    let lost = rotate(&server, &path, &[]).await;
    assert_eq!(lost.code, 7, "{lost:?}");
    assert!(lost.err.contains("it acts at most once"), "{}", lost.err);
    assert_eq!(fs::read_to_string(&path).expect("the file"), format!("{TOKEN}\n"));
    assert_eq!(mode(&note(&path)), 0o600);
    let kept = fs::read_to_string(note(&path)).expect("the note");
    assert!(!kept.contains(TOKEN), "{kept}");
    let first = server.asked()[1].json();

    // The old token may be dead by now: nothing is asked before the lost answer.
    let again = Server::playing([rotated()]).await;
    let moved = kept.replace(&server.url, &again.url);
    fs::write(note(&path), moved).expect("the note");
    let outcome = rotate(&again, &path, &["--if-older-than", "20d", "--reason", "another"]).await;
    assert_eq!(outcome.code, 0, "{outcome:?}");
    assert_eq!((again.asked().len(), again.asked()[0].json()), (1, first));
    assert_eq!(fs::read_to_string(&path).expect("the file"), format!("{NEW}\n"));
    assert!(!note(&path).exists());
}

#[tokio::test]
async fn a_note_about_another_token_counts_for_nothing() {
    let folder = folder();
    let path = token_file(&folder);
    let server = Server::playing([
        json(200, &capabilities()),
        Answer::Lost,
        json(200, &capabilities()),
        rotated(),
    ])
    .await;
    assert_eq!(rotate(&server, &path, &[]).await.code, 7);
    fs::write(&path, "prov_sat_another_token\n").expect("the file");
    assert_eq!(rotate(&server, &path, &[]).await.code, 0);
    let asked = server.asked();
    assert_ne!(
        asked[1].json()["idempotencyKey"],
        asked[3].json()["idempotencyKey"]
    );
}

#[tokio::test]
async fn a_young_token_stays_and_an_old_one_goes() {
    let folder = folder();
    let path = token_file(&folder);
    // It is 25 days old.
    let server = Server::playing([json(200, &capabilities()), json(200, &capabilities()), rotated()]).await;
    let young = rotate(&server, &path, &["--if-older-than", "26d"]).await;
    assert_eq!((young.code, server.asked().len()), (0, 1), "{young:?}");
    assert!(young.err.contains("nothing to do"), "{}", young.err);
    assert!(!note(&path).exists());
    let old = rotate(&server, &path, &["--if-older-than", "24d"]).await;
    assert_eq!((old.code, server.asked().len()), (0, 3), "{old:?}");
    assert_eq!(rotate(&server, &path, &["--if-older-than", "20"]).await.code, 2);
}

#[tokio::test]
async fn a_refused_rotation_leaves_the_token_and_no_note() {
    let folder = folder();
    let path = token_file(&folder);
    let server = Server::playing([
        json(200, &capabilities()),
        refusal(403, "insufficient_scope", "no"),
    ])
    .await;
    let outcome = rotate(&server, &path, &[]).await;
    assert_eq!((outcome.code, note(&path).exists()), (3, false), "{outcome:?}");
    assert_eq!(fs::read_to_string(&path).expect("the file"), format!("{TOKEN}\n"));
    let mut session = capabilities();
    session["token"]["isOwn"] = false.into();
    let server = Server::playing([json(200, &session)]).await;
    let outcome = rotate(&server, &path, &[]).await;
    assert_eq!((outcome.code, server.asked().len()), (2, 1), "{outcome:?}");
}

#[tokio::test]
async fn a_token_that_no_file_holds_is_not_rotated() {
    let server = Server::playing([]).await;
    let outcome = Provost::script().does(&server, &ROTATE).await;
    assert_eq!((outcome.code, server.asked().len()), (2, 0), "{outcome:?}");
    assert!(outcome.err.contains("PROVOST_TOKEN_FILE"), "{}", outcome.err);
    // Nor is one that could not be written afterwards.
    let folder = folder();
    let path = token_file(&folder);
    fs::set_permissions(&folder, Permissions::from_mode(0o500)).expect("the folder");
    let can_write_anyway = fs::write(folder.join("probe"), "").is_ok();
    if !can_write_anyway {
        let server = Server::playing([json(200, &capabilities())]).await;
        let outcome = rotate(&server, &path, &[]).await;
        assert_eq!((outcome.code, server.asked().len()), (9, 1), "{outcome:?}");
    }
    fs::set_permissions(&folder, Permissions::from_mode(0o700)).expect("the folder");
}

#[tokio::test]
async fn a_token_is_replaced_in_its_profile_and_the_others_stay() {
    let (home, server) = (
        folder(),
        Server::playing([json(200, &capabilities()), rotated()]).await,
    );
    let at = |stdin: &str| Provost::script().token(None).home(home.clone()).stdin(stdin);
    let one = [
        "profile",
        "set",
        "one",
        "--url",
        &server.url,
        "--organization",
        "acme",
    ];
    assert_eq!(at(TOKEN).says(&one).await.code, 0);
    let two = ["profile", "set", "two", "--url", "https://two.example"];
    assert_eq!(at("prov_sat_of_two").says(&two).await.code, 0);
    let outcome = at("").says(&ROTATE).await;
    assert_eq!(outcome.code, 0, "{outcome:?}");
    let kept = fs::read_to_string(home.join(".config/provost/profiles.toml")).expect("the file");
    assert!(
        kept.contains(NEW) && kept.contains("prov_sat_of_two") && !kept.contains(TOKEN),
        "{kept}"
    );
    let mut rest: Vec<String> = fs::read_dir(home.join(".config/provost"))
        .expect("the folder")
        .map(|entry| {
            entry
                .expect("an entry")
                .file_name()
                .to_string_lossy()
                .into_owned()
        })
        .collect();
    rest.sort();
    assert_eq!(rest, ["profiles.toml", "profiles.toml.lock"]);
}
