//! Who one is, whether the server is ready, and how a token comes into a profile.

use crate::http::{Answer, Server, empty, json, refusal};
use crate::provost::{Provost, TOKEN, folder, mode};
use serde_json::{Value, json};
use std::fs;
use std::path::{Path, PathBuf};

fn file(home: &Path) -> PathBuf {
    home.join(".config/provost/profiles.toml")
}

/// Returns what a server says of a token.
pub fn capabilities() -> Value {
    json!({
        "organizationId": "acme",
        "principal": { "type": "service_account", "id": "sa_01kaf9q2m4x7t8v3c5d6e0g1h2", "name": "deploy" },
        "permissionRole": "operator",
        "scopes": ["policies:read", "service_accounts:rotate_self"],
        "allOfRole": false,
        "token": {
            "id": "sat_01kaf9q2m4x7t8v3c5d6e0g1h2", "tokenPrefix": "prov_sat_test", "isOwn": true,
            "issuedAt": "2026-11-01T12:00:00.000Z", "expiresAt": "2027-01-25T12:00:00.000Z",
        },
        "toolsets": [], "limits": {}, "serverVersion": env!("CARGO_PKG_VERSION"),
    })
}

fn ready() -> Answer {
    json(200, &json!({ "status": "ready" }))
}

fn other_organization() -> Answer {
    let body = json!({
        "message": "this token does not belong to the organization of the path", "code": "organization_forbidden",
        "requestId": "req_1", "retryable": false, "tokenOrganizationId": "acme",
    });
    json(403, &body)
}

#[tokio::test]
async fn whoami_says_whose_the_token_is_and_when_it_ends() {
    let server = Server::playing([json(200, &capabilities()), json(200, &capabilities())]).await;
    let outcome = Provost::person(&[]).does(&server, &["whoami"]).await;
    assert_eq!((outcome.code, outcome.err.as_str()), (0, ""), "{outcome:?}");
    for words in [
        " who           deploy (service account)\n",
        " role          operator\n",
        " organization  acme\n",
        " scopes        policies:read, service_accounts:rotate_self\n",
        "sat_01kaf9q2m4x7t8v3c5d6e0g1h2, expires in 60 d\n",
        " from          PROVOST_TOKEN\n",
        "from --url\n",
    ] {
        assert!(outcome.out.contains(words), "{words}\n{}", outcome.out);
    }
    let asked = &server.asked()[0];
    assert_eq!(asked.target, "/api/headless/v1/organizations/acme/capabilities");
    let outcome = Provost::script().does(&server, &["whoami"]).await;
    let said: Value = serde_json::from_str(&outcome.out).expect("JSON");
    assert_eq!(
        (&said["principal"]["name"], &said["toolsets"]),
        (&json!("deploy"), &Value::Null)
    );
}

#[tokio::test]
async fn a_token_of_another_organization_is_told_with_both_names() {
    let server = Server::playing([other_organization(), other_organization()]).await;
    for command in [&["whoami"][..], &["users", "list"]] {
        let to = ["--url", &server.url, "--organization", "acne"];
        let outcome = Provost::script().says(&[command, &to].concat()).await;
        assert_eq!(outcome.code, 3, "{outcome:?}");
        assert!(
            outcome.err.contains(
                "the token, from PROVOST_TOKEN, belongs to the organization acme; the request named acne, from \
                 --organization\nsay --organization acme, or use a token of acne\n"
            ),
            "{}",
            outcome.err
        );
    }
}

#[tokio::test]
async fn status_needs_no_token_and_its_exit_code_is_the_health() {
    let server = Server::playing([ready()]).await;
    let to = ["status", "--url", &server.url];
    let outcome = Provost::script().token(None).says(&to).await;
    assert_eq!((outcome.code, outcome.err.as_str()), (0, ""), "{outcome:?}");
    let said: Value = serde_json::from_str(&outcome.out).expect("JSON");
    assert_eq!(said["status"], "ready");
    let asked = server.asked();
    assert_eq!((asked.len(), asked[0].target.as_str()), (1, "/readyz"));
    assert_eq!(
        asked[0].header("authorization"),
        "",
        "the question is asked without a token"
    );

    let server = Server::playing([refusal(503, "unavailable", "the store does not take changes")]).await;
    let to = ["status", "--url", &server.url, "--quiet"];
    let outcome = Provost::script().says(&to).await;
    assert_eq!(
        (outcome.code, server.asked().len(), outcome.out.as_str()),
        (6, 1, ""),
        "{outcome:?}"
    );
    assert!(
        outcome
            .err
            .starts_with("error: the store does not take changes\n"),
        "{}",
        outcome.err
    );

    let server = Server::playing([json(200, &json!({ "hello": 1 }))]).await;
    let outcome = Provost::script().says(&["status", "--url", &server.url]).await;
    assert_eq!(outcome.code, 8, "{outcome:?}");
    let outcome = Provost::script()
        .says(&["status", "--url", "http://127.0.0.1:1"])
        .await;
    assert_eq!(outcome.code, 7, "{outcome:?}");
    assert!(outcome.err.contains("is the server running"), "{}", outcome.err);
}

/// Over a connection that others can read the health is asked, and no token is sent.
///
/// Proves CL-1.
#[tokio::test]
async fn status_tells_the_version_to_who_has_a_token() {
    let server = Server::playing([
        ready(),
        json(200, &capabilities()),
        ready(),
        refusal(401, "unauthenticated", "no"),
    ])
    .await;
    let outcome = Provost::person(&[]).does(&server, &["status"]).await;
    assert_eq!(outcome.code, 0, "{outcome:?}");
    assert!(outcome.out.contains("server version"), "{}", outcome.out);
    // A token that is refused is no matter of the server's health.
    let outcome = Provost::person(&[]).does(&server, &["status"]).await;
    assert_eq!((outcome.code, outcome.err.as_str()), (0, ""), "{outcome:?}");
    assert!(!outcome.out.contains("server version"), "{}", outcome.out);
}

/// Proves CL-6.
#[tokio::test]
async fn login_keeps_a_token_that_the_server_knows_with_the_organization_that_it_belongs_to() {
    let server = Server::playing([
        empty(404),
        other_organization(),
        json(200, &capabilities()),
        json(200, &capabilities()),
    ])
    .await;
    let home = folder();
    let provost = Provost::person(&[TOKEN]).token(None).home(home.clone());
    let outcome = provost.says(&["login", "--url", &server.url]).await;
    assert_eq!(outcome.code, 0, "{outcome:?}");
    assert_eq!(outcome.questions, ["token"]);
    let expected = format!(
        "logged in to {} as deploy (service account), role operator, organization acme, expires in 60 d\n",
        server.url
    );
    assert!(outcome.err.starts_with(&expected), "{}", outcome.err);
    assert!(!format!("{outcome:?}").contains(TOKEN), "{outcome:?}");
    assert_eq!(mode(&file(&home)), 0o600);
    let targets: Vec<String> = server.asked().into_iter().map(|asked| asked.target).collect();
    assert_eq!(
        targets,
        [
            "/.well-known/oauth-authorization-server",
            "/api/headless/v1/organizations/-/capabilities",
            "/api/headless/v1/organizations/acme/capabilities"
        ]
    );
    // From now on no flag is needed.
    let whoami = Provost::person(&[])
        .token(None)
        .home(home.clone())
        .says(&["whoami"])
        .await;
    assert_eq!(whoami.code, 0, "{whoami:?}");
    assert!(whoami.out.contains("the profile 127.0.0.1"), "{}", whoami.out);

    let out = Provost::script()
        .token(None)
        .home(home.clone())
        .says(&["logout"])
        .await;
    assert_eq!(out.code, 0, "{out:?}");
    assert!(out.err.contains("still works until it expires"), "{}", out.err);
    let kept = fs::read_to_string(file(&home)).expect("the file");
    assert!(!kept.contains(TOKEN) && kept.contains("acme"), "{kept}");
    let whoami = Provost::script().token(None).home(home).says(&["whoami"]).await;
    assert_eq!(whoami.code, 3, "{whoami:?}");
    assert!(whoami.err.contains("provost login"), "{}", whoami.err);
}

/// Proves CL-6.
#[tokio::test]
async fn a_token_that_the_server_refuses_is_not_kept() {
    let home = folder();
    for answer in [
        json(
            401,
            &json!({ "message": "the token has expired", "code": "token_expired", "expiredAt": "2026-11-20 or \u{1b}[2J" }),
        ),
        empty(500),
        json(200, &json!({})),
    ] {
        let server = Server::playing([answer]).await;
        let provost = Provost::script()
            .token(None)
            .home(home.clone())
            .stdin(&format!("{TOKEN}\n"));
        let to = [
            "login",
            "--url",
            &server.url,
            "--organization",
            "acme",
            "--retries",
            "0",
        ];
        let outcome = provost.says(&to).await;
        assert_ne!(outcome.code, 0);
        assert!(outcome.err.contains("nothing was kept"), "{}", outcome.err);
        assert!(!file(&home).exists());
    }
    let plain = ["login", "--url", "http://provost.example"];
    let outcome = Provost::script()
        .token(None)
        .home(home)
        .stdin(TOKEN)
        .says(&plain)
        .await;
    assert_eq!(outcome.code, 2, "{outcome:?}");
}

#[tokio::test]
async fn a_login_at_another_server_takes_nothing_from_the_profile_of_the_first() {
    let home = folder();
    let first = [
        "profile",
        "set",
        "one",
        "--url",
        "https://one.example",
        "--organization",
        "first",
    ];
    let set = Provost::script()
        .token(None)
        .home(home.clone())
        .stdin("prov_sat_of_one");
    assert_eq!(set.says(&first).await.code, 0);
    let server = Server::playing([other_organization(), json(200, &capabilities())]).await;
    let provost = Provost::script().token(None).home(home.clone()).stdin(TOKEN);
    let outcome = provost.says(&["login", "--url", &server.url]).await;
    assert_eq!(outcome.code, 0, "{outcome:?}");
    assert!(
        server.asked()[0].target.contains("/organizations/-/"),
        "{:?}",
        server.asked()
    );
    let kept = fs::read_to_string(file(&home)).expect("the file");
    assert!(
        kept.contains("prov_sat_of_one") && kept.contains("first") && kept.contains(TOKEN),
        "{kept}"
    );
}

#[tokio::test]
async fn doctor_looks_at_everything_and_says_what_mends_it() {
    let alive = json(200, &json!({ "status": "ok" })).with("date", "Thu, 26 Nov 2026 12:00:02 GMT");
    let server = Server::playing([alive, ready(), json(200, &capabilities())]).await;
    let home = folder();
    let outcome = Provost::person(&[])
        .home(home.clone())
        .does(&server, &["doctor"])
        .await;
    assert_eq!((outcome.code, outcome.err.as_str()), (0, ""), "{outcome:?}");
    for words in [
        " clock        as the server's\n",
        " server       ready\n",
        " token        deploy (service account), role operator, organization acme, from PROVOST_TOKEN\n",
        " token's end  expires in 60 d\n",
        " hooks        no agent of this machine asks",
        " backups      ",
    ] {
        assert!(outcome.out.contains(words), "{words}\n{}", outcome.out);
    }
    // A hook that is registered and has no file of its own does not work, and is said to.
    let claude = home.join(".claude");
    std::fs::create_dir_all(&claude).expect("a folder");
    let registered = json!({ "hooks": { "PreToolUse": [{ "hooks": [{ "type": "command",
        "command": "/nowhere/provost hook run claude-code --mode enforce" }] }] } });
    std::fs::write(claude.join("settings.json"), registered.to_string()).expect("a file");
    let alive = json(200, &json!({ "status": "ok" })).with("date", "Thu, 26 Nov 2026 12:00:02 GMT");
    let server = Server::playing([alive, ready(), json(200, &capabilities())]).await;
    let outcome = Provost::script()
        .home(home.clone())
        .does(&server, &["doctor"])
        .await;
    assert_eq!(outcome.code, 1, "{outcome:?}");
    for words in ["lacks onFailure", "no tail that refuses", "provost hook doctor"] {
        assert!(outcome.out.contains(words), "{words}\n{}", outcome.out);
    }
    std::fs::remove_dir_all(&claude).expect("it goes");
    let late = json(200, &json!({ "status": "ok" })).with("date", "Thu, 26 Nov 2026 12:05:00 GMT");
    let revoked = json(
        401,
        &json!({ "message": "the token was revoked", "code": "token_revoked", "requestId": "req_1", "retryable": false,
            "revokedAt": "2026-11-20T03:15:00.000Z" }),
    );
    let server = Server::playing([
        late,
        refusal(503, "unavailable", "the store is not read now"),
        revoked,
    ])
    .await;
    let outcome = Provost::script()
        .home(home.clone())
        .does(&server, &["doctor"])
        .await;
    assert_eq!(outcome.code, 1, "{outcome:?}");
    let said: Value = serde_json::from_str(&outcome.out).expect("JSON");
    let failed: Vec<&str> = said["checks"]
        .as_array()
        .expect("checks")
        .iter()
        .filter(|check| check["status"] == "failed")
        .map(|check| check["check"].as_str().expect("a name"))
        .collect();
    assert_eq!(failed, ["clock", "server", "token"], "{said}");
    assert!(
        outcome.out.contains("timedatectl")
            && outcome.out.contains("it was revoked at 2026-11-20T03:15:00.000Z")
            && outcome.out.contains("audit log"),
        "{}",
        outcome.out
    );
    assert!(!format!("{outcome:?}").contains(TOKEN), "{outcome:?}");
    let gone = ["doctor", "--url", "http://127.0.0.1:1", "--organization", "acme"];
    let outcome = Provost::script().home(home).says(&gone).await;
    assert_eq!(outcome.code, 7, "{outcome:?}");
    assert!(
        outcome.err.contains("1 thing is not as they should be") || outcome.err.contains("not as"),
        "{}",
        outcome.err
    );
}
