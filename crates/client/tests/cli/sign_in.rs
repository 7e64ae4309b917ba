//! Signing in with a browser, against a server that plays its part: what is refused, and how a sign-in is renewed.

use crate::access::capabilities;
use crate::complete::offered;
use crate::http::{Answer, Server, empty, json};
use crate::provost::{Provost, TOKEN, folder, mode};
use provost_client::cli::Surroundings;
use provost_kernel::Secret;
use serde_json::{Value, json};
use std::fs;
use std::io::Write;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::Duration;

fn file(home: &Path) -> PathBuf {
    home.join(".config/provost/profiles.toml")
}

/// Writes a profile in which somebody signed in, until `ends`.
fn signed_in(home: &Path, url: &str, ends: &str) {
    fs::create_dir_all(file(home).parent().expect("a folder")).expect("a folder");
    let text = format!(
        "current = \"one\"\n\n[profiles.one]\nurl = \"{url}\"\norganization = \"acme\"\ntoken = \"access-one\"\n\
         refresh_token = \"refresh-one\"\ntoken_expires_at = \"{ends}\"\n"
    );
    fs::write(file(home), text).expect("a file");
    fs::set_permissions(file(home), fs::Permissions::from_mode(0o600)).expect("permissions");
}

fn tokens() -> Answer {
    json(
        200,
        &json!({ "access_token": "access-two", "refresh_token": "refresh-two", "token_type": "Bearer", "expires_in": 3600 }),
    )
}

fn accounts() -> Answer {
    json(200, &json!({ "serviceAccounts": [], "total": 0 }))
}

const LIST: [&str; 2] = ["service-accounts", "list"];
/// More drafts than all tests of one process make.
const DRAFTS: u32 = 2000;
/// The tests happen at noon.
const LONG_AGO: &str = "2026-11-26T11:00:00.000Z";
const LATER: &str = "2026-11-26T12:30:00.000Z";
/// Further away than any token lives: the clock was ahead when it was written.
const TOO_LATE: &str = "2026-11-27T12:30:00.000Z";

async fn lists(home: &Path) -> crate::provost::Outcome {
    Provost::script()
        .token(None)
        .home(home.to_owned())
        .says(&[&LIST[..], &["--retries", "1"]].concat())
        .await
}

/// Proves CL-8.
#[tokio::test]
async fn a_server_that_signs_nobody_in_or_calls_itself_otherwise_is_told_so() {
    let home = folder();
    let says = async |answer: Answer, flags: &[&str]| {
        let server = Server::playing([answer]).await;
        let to = [&["login", "--url", &server.url][..], flags].concat();
        let outcome = Provost::script().token(None).home(home.clone()).says(&to).await;
        assert!(!file(&home).exists());
        (outcome, server.asked().len())
    };
    for (flags, answer) in [
        (&["--browser"][..], empty(404)),
        (&["--scope", "read"], json(200, &json!({ "issuer": "x" }))),
    ] {
        let (outcome, asked) = says(answer, flags).await;
        assert_eq!((outcome.code, asked), (1, 1), "{outcome:?}");
        assert!(outcome.err.contains("--with-token"), "{}", outcome.err);
    }
    let other = json!({
        "issuer": "https://provost.example", "authorization_endpoint": "https://provost.example/oauth/authorize",
        "command_line_client_id": "provost-cli", "scopes_supported": ["policies:read"],
    });
    let (outcome, _) = says(json(200, &other), &["--no-browser"]).await;
    assert_eq!(outcome.code, 2, "{outcome:?}");
    assert!(
        outcome
            .err
            .contains("provost login --url https://provost.example\n"),
        "{}",
        outcome.err
    );
}

/// Proves CL-9.
#[tokio::test]
async fn a_token_that_ends_is_renewed_once_and_kept() {
    let home = folder();
    let server = Server::playing([accounts(), tokens(), accounts(), accounts()]).await;
    // One that lasts is used as it is.
    signed_in(&home, &server.url, LATER);
    assert_eq!(lists(&home).await.code, 0);
    signed_in(&home, &server.url, LONG_AGO);
    for _ in 0..2 {
        let outcome = lists(&home).await;
        assert_eq!((outcome.code, outcome.err.as_str()), (0, ""), "{outcome:?}");
    }
    let asked = server.asked();
    let sent: Vec<(&str, &str)> = asked
        .iter()
        .map(|asked| {
            (
                asked.target.split('?').next().expect("a path"),
                asked.header("authorization"),
            )
        })
        .collect();
    let path = "/api/headless/v1/organizations/acme/service-accounts";
    assert_eq!(
        sent,
        [
            (path, "Bearer access-one"),
            ("/oauth/token", ""),
            (path, "Bearer access-two"),
            (path, "Bearer access-two")
        ]
    );
    assert_eq!(
        String::from_utf8_lossy(&asked[1].body),
        "grant_type=refresh_token&client_id=provost-cli&refresh_token=refresh-one"
    );
    let kept = fs::read_to_string(file(&home)).expect("the file");
    assert!(
        kept.contains("refresh-two") && kept.contains("2026-11-26T13:00:00.000Z"),
        "{kept}"
    );
    assert!(!kept.contains("-one"), "{kept}");
    assert_eq!(mode(&file(&home)), 0o600);
}

#[tokio::test]
async fn a_renewal_whose_answer_is_lost_is_asked_for_again_and_one_that_is_refused_is_not() {
    let home = folder();
    let server = Server::playing([Answer::Lost, tokens(), accounts()]).await;
    signed_in(&home, &server.url, LONG_AGO);
    let outcome = lists(&home).await;
    assert_eq!(outcome.code, 0, "{outcome:?}");
    assert_eq!(server.asked()[0].body, server.asked()[1].body);

    let ended = json!({ "error": "invalid_grant", "error_description": "the session has ended" });
    let server = Server::playing([json(400, &ended)]).await;
    signed_in(&home, &server.url, LONG_AGO);
    let outcome = lists(&home).await;
    assert_eq!((outcome.code, server.asked().len()), (3, 1), "{outcome:?}");
    assert!(
        outcome
            .err
            .starts_with("error: the session has ended\nsign in again: provost login --profile one\n"),
        "{}",
        outcome.err
    );
    let kept = fs::read_to_string(file(&home)).expect("the file");
    assert!(kept.contains("refresh-one"), "{kept}");
}

/// Proves CL-1, CL-6.
#[tokio::test]
async fn what_a_sign_in_left_goes_to_its_own_server_alone_and_lies_open_to_nobody() {
    let home = folder();
    let (own, other) = (Server::playing([]).await, Server::playing([]).await);
    signed_in(&home, &own.url, LONG_AGO);
    let to = [&LIST[..], &["--url", &other.url]].concat();
    let outcome = Provost::script().token(None).home(home.clone()).says(&to).await;
    assert_eq!((outcome.code, other.asked().len()), (2, 0), "{outcome:?}");
    let to = ["logout", "--url", &other.url, "--retries", "0"];
    let outcome = Provost::script().token(None).home(home.clone()).says(&to).await;
    assert_eq!((other.asked().len(), own.asked().len()), (0, 1), "{outcome:?}");
    // Nor through a proxy that is meant for another server.
    let proxied = Surroundings {
        https_proxy: Some(Secret::new(other.url.clone())),
        ..Surroundings::default()
    };
    let to = ["logout", "--url", "https://provost.example", "--retries", "0"];
    let out = Provost::script()
        .token(None)
        .surroundings(proxied)
        .home(home.clone());
    assert_ne!(out.says(&to).await.code, 0);
    assert_eq!((other.asked().len(), own.asked().len()), (0, 2));
    // The server did not end it, so nothing is forgotten.
    assert_ne!(outcome.code, 0);
    assert!(
        fs::read_to_string(file(&home))
            .expect("the file")
            .contains("refresh-one")
    );
    assert!(outcome.err.contains("nothing was forgotten"), "{}", outcome.err);

    let set = ["profile", "set", "one", "--url", &own.url];
    let outcome = Provost::script()
        .token(None)
        .home(home.clone())
        .stdin(TOKEN)
        .says(&set)
        .await;
    assert_eq!(outcome.code, 0, "{outcome:?}");
    assert!(outcome.err.contains("goes on until it ends"), "{}", outcome.err);
    let kept = fs::read_to_string(file(&home)).expect("the file");
    assert!(kept.contains(TOKEN) && !kept.contains("refresh"), "{kept}");

    let server = Server::playing([empty(200)]).await;
    signed_in(&home, &server.url, LATER);
    let outcome = Provost::script()
        .token(None)
        .home(home.clone())
        .says(&["logout"])
        .await;
    assert_eq!(outcome.code, 0, "{outcome:?}");
    let asked: Vec<Value> = server
        .asked()
        .iter()
        .map(|asked| asked.target.as_str().into())
        .collect();
    assert_eq!(asked, ["/oauth/revoke"]);
    assert!(
        !fs::read_to_string(file(&home))
            .expect("the file")
            .contains("-one")
    );

    signed_in(&home, &server.url, LATER);
    fs::set_permissions(file(&home), fs::Permissions::from_mode(0o640)).expect("permissions");
    let outcome = lists(&home).await;
    assert_eq!(outcome.code, 2, "{outcome:?}");
}

/// Proves CL-9.
#[tokio::test]
async fn nothing_is_renewed_that_cannot_be_written() {
    let home = folder();
    let server = Server::playing([tokens(), accounts()]).await;
    signed_in(&home, &server.url, LONG_AGO);
    // A folder that is not empty stands where each draft of the file would.
    let draft = |number: u32| {
        let name = format!(".profiles.toml.{}-{number}.new/x", std::process::id());
        file(&home).with_file_name(name)
    };
    for number in 0..DRAFTS {
        fs::create_dir_all(draft(number)).expect("a folder");
    }
    let outcome = lists(&home).await;
    assert_eq!((outcome.code, server.asked().len()), (9, 0), "{outcome:?}");
    assert!(outcome.err.contains("nothing was sent"), "{}", outcome.err);
    for number in 0..DRAFTS {
        fs::remove_dir_all(draft(number).parent().expect("a folder")).expect("it goes");
    }
    assert_eq!(lists(&home).await.code, 0);
}

#[tokio::test]
async fn a_time_that_no_token_has_is_not_believed() {
    let home = folder();
    let server = Server::playing([tokens(), accounts()]).await;
    signed_in(&home, &server.url, TOO_LATE);
    assert_eq!(lists(&home).await.code, 0);
    assert_eq!(server.asked()[0].target, "/oauth/token");
}

#[tokio::test]
async fn a_login_takes_no_profile_of_another_organization_at_the_same_server() {
    let home = folder();
    let refused = json(
        403,
        &json!({ "message": "no", "code": "organization_forbidden", "requestId": "req_1", "retryable": false,
            "tokenOrganizationId": "acme" }),
    );
    let server = Server::playing([refused, json(200, &capabilities())]).await;
    signed_in(&home, &server.url, LATER);
    let text = fs::read_to_string(file(&home)).expect("the file");
    let text = text.replace("\"acme\"", "\"beta\"").replace(
        "current = \"one\"",
        "current = \"lab\"\n\n[profiles.lab]\nurl = \"https://lab.example\"",
    );
    fs::write(file(&home), text).expect("a file");
    let to = ["login", "--url", &server.url];
    let provost = Provost::script().token(None).home(home.clone()).stdin(TOKEN);
    let outcome = provost.says(&to).await;
    assert_eq!(outcome.code, 0, "{outcome:?}");
    assert!(
        outcome.err.contains("in the profile 127.0.0.1 "),
        "{}",
        outcome.err
    );
    let kept = fs::read_to_string(file(&home)).expect("the file");
    assert!(
        kept.contains("refresh-one") && kept.contains("beta") && kept.contains(TOKEN),
        "{kept}"
    );
}

#[tokio::test]
async fn what_lies_behind_a_link_is_renewed_there() {
    let (home, elsewhere) = (folder(), folder());
    let server = Server::playing([tokens(), accounts()]).await;
    signed_in(&elsewhere, &server.url, LONG_AGO);
    fs::create_dir_all(file(&home).parent().expect("a folder")).expect("a folder");
    std::os::unix::fs::symlink(file(&elsewhere), file(&home)).expect("a link");
    assert_eq!(lists(&home).await.code, 0);
    let kept = fs::read_to_string(file(&elsewhere)).expect("the file");
    assert!(kept.contains("refresh-two"), "{kept}");
    assert!(fs::symlink_metadata(file(&home)).expect("a link").is_symlink());
}

#[tokio::test]
async fn a_draft_that_a_kill_left_goes_with_the_next_change() {
    let home = folder();
    let server = Server::playing([tokens(), accounts()]).await;
    signed_in(&home, &server.url, LONG_AGO);
    // The number of a process that no machine has.
    let left = file(&home).with_file_name(".profiles.toml.4194305-0.new");
    let other = file(&home).with_file_name(".profiles.toml.mine.new");
    for path in [&left, &other] {
        fs::write(path, "refresh_token = \"refresh-zero\"").expect("a file");
    }
    assert_eq!(lists(&home).await.code, 0);
    assert!(!left.exists() && other.exists());
}

#[tokio::test]
async fn a_lock_that_is_a_link_is_not_taken() {
    let (home, elsewhere) = (folder(), folder());
    let server = Server::playing([tokens(), accounts()]).await;
    signed_in(&home, &server.url, LONG_AGO);
    let lock = file(&home).with_file_name("profiles.toml.lock");
    std::os::unix::fs::symlink(elsewhere.join("made"), &lock).expect("a link");
    let outcome = lists(&home).await;
    assert_eq!((outcome.code, server.asked().len()), (9, 0), "{outcome:?}");
    assert!(outcome.err.contains("cannot lock"), "{}", outcome.err);
    assert!(!elsewhere.join("made").exists());
    fs::remove_file(&lock).expect("it goes");
    assert_eq!(lists(&home).await.code, 0);
}

/// A program that answers as the browser of somebody who signs in at this server and allows it.
fn browser(home: &Path, issuer: &str) -> PathBuf {
    let path = home.join("browser");
    let script = format!(
        "#!/bin/bash\nstate=${{1#*state=}}\nstate=${{state%%&*}}\nport=${{1#*127.0.0.1%3A}}\nport=${{port%%\\%2F*}}\n\
         exec 3<>/dev/tcp/127.0.0.1/$port\n\
         printf 'GET /callback?code=c&state=%s&iss={issuer} HTTP/1.1\\r\\nHost: 127.0.0.1:%s\\r\\n\\r\\n' \"$state\" \"$port\" >&3\n\
         cat <&3 >/dev/null\n"
    );
    // Another process writes it: one of this process that is started meanwhile would hold it open, and it could not run.
    let mut writer = Command::new("sh")
        .args(["-c", "cat > \"$0\" && chmod 755 \"$0\""])
        .arg(&path)
        .stdin(Stdio::piped())
        .spawn()
        .expect("a shell");
    let mut input = writer.stdin.take().expect("an input");
    input.write_all(script.as_bytes()).expect("a script");
    drop(input);
    assert!(writer.wait().expect("an end").success());
    path
}

#[tokio::test]
async fn a_sign_in_to_another_organization_takes_no_profile_that_was_named() {
    let home = folder();
    let refused = json(
        403,
        &json!({ "message": "no", "code": "organization_forbidden", "requestId": "req_1", "retryable": false,
            "tokenOrganizationId": "beta" }),
    );
    let server = Server::playing_as(|url| {
        let metadata = json!({
            "issuer": url, "authorization_endpoint": format!("{url}/oauth/authorize"),
            "command_line_client_id": "provost-cli", "scopes_supported": ["policies:read"],
        });
        [
            json(200, &metadata),
            tokens(),
            refused,
            json(200, &capabilities()),
            empty(200),
        ]
    })
    .await;
    signed_in(&home, &server.url, LATER);
    let before = fs::read_to_string(file(&home)).expect("the file");
    let surroundings = Surroundings {
        browser: Some(browser(&home, &server.url)),
        ..Surroundings::default()
    };
    let provost = Provost::script().token(None).surroundings(surroundings);
    let to = ["login", "--url", &server.url, "--profile", "one", "--browser"];
    let outcome = provost.home(home.clone()).says(&to).await;
    assert_eq!(outcome.code, 1, "{outcome:?}");
    assert!(
        outcome.err.contains("is of the organization acme") && outcome.err.contains("--organization beta"),
        "{}",
        outcome.err
    );
    let kept = fs::read_to_string(file(&home)).expect("the file");
    assert_eq!(kept, before);
    // What it was given goes back, and what the profile holds stays.
    let asked = server.asked();
    assert_eq!(asked.len(), 5, "{asked:?}");
    assert_eq!(asked[4].target, "/oauth/revoke");
    let given_back = String::from_utf8_lossy(&asked[4].body);
    assert!(given_back.contains("refresh-two"), "{given_back}");
}

/// Proves CL-9.
#[tokio::test]
async fn no_limit_of_a_command_cuts_a_renewal_and_a_completion_makes_none() {
    let home = folder();
    let late = Answer::Late(Duration::from_millis(1_300), Box::new(tokens()));
    let page = json(
        200,
        &json!({ "serviceAccounts": [{ "id": "sa_1", "name": "deploy" }], "total": 1 }),
    );
    let server = Server::playing([page, late, accounts()]).await;
    let words = ["service-accounts", "rotate", "--reason", "x", "de"];
    let completing = || Provost::script().token(None).home(home.clone());
    signed_in(&home, &server.url, LATER);
    assert_eq!(offered(completing(), &words).await, ["deploy"]);
    signed_in(&home, &server.url, LONG_AGO);
    assert!(offered(completing(), &words).await.is_empty());
    assert_eq!(server.asked().len(), 1);
    let provost = Provost::script().token(None).home(home.clone());
    let words = [&LIST[..], &["--timeout", "1", "--retries", "0"]].concat();
    let outcome = provost.says(&words).await;
    assert_eq!(outcome.code, 0, "{outcome:?}");
    let kept = fs::read_to_string(file(&home)).expect("the file");
    assert!(kept.contains("refresh-two"), "{kept}");
}

#[tokio::test]
async fn a_command_does_not_go_on_as_whoever_signed_in_meanwhile() {
    let home = folder();
    let path = file(&home);
    let signs_in = move || {
        let text = fs::read_to_string(&path).expect("the file");
        let text = text.replace("refresh-one", "refresh-of-another");
        fs::write(&path, text + "signed_in_at = \"2026-11-26T11:59:00.000Z\"\n").expect("a file");
    };
    let meanwhile = Answer::After(Arc::new(signs_in), Box::new(Answer::Lost));
    let server = Server::playing([meanwhile]).await;
    signed_in(&home, &server.url, LONG_AGO);
    let outcome = lists(&home).await;
    assert_eq!((outcome.code, server.asked().len()), (3, 1), "{outcome:?}");
    assert!(outcome.err.contains("signed in anew"), "{}", outcome.err);
    let kept = fs::read_to_string(file(&home)).expect("the file");
    assert!(kept.contains("refresh-of-another"), "{kept}");
}
