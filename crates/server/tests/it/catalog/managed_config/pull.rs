//! Who gets values in the clear, what remembers it, and whose machines are whose (ADR 0048).

use super::{PROFILES, profile, publish, publish_all};
use crate::access::oauth;
use crate::areas::oauth::{public_client, register};
use crate::support::{App, Reply, each, fresh_key, with_trio};
use provost_kernel::kernel::Extras;
use serde_json::{Value, json};
use std::sync::Arc;
use tokio::task::JoinSet;

const PULL: &str = "managed_config:pull";
const READ: &str = "managed_config:read";
const CANARY: &str = "canary-in-the-clear";

/// A release in which a secret stands beside what everybody may read.
fn content() -> Value {
    json!({
        "enforced": { "cleanupPeriodDays": 7, "env": { "API_TOKEN": CANARY } },
        "defaults": { "model": "opus", "env": { "OTHER": CANARY } },
    })
}

async fn fetch(app: &App, path: &str, token: &str) -> Reply {
    let call = app.request("GET", &format!("{path}/current"));
    call.token(token).send().await
}

/// An account whose one token has a narrower list of its own.
async fn narrowed(app: &App, role: &str, account: &[&str], token: &[&str]) -> String {
    let body = json!({
        "name": fresh_key(), "permissionRole": role, "scopes": account, "tokenScopes": token,
    });
    let made = app.write("POST", "/service-accounts", body).await;
    made.ok()["token"]["token"].as_str().unwrap().to_owned()
}

/// The scope that a refusal names.
fn missing(reply: &Reply) -> &str {
    let challenge = reply.header("www-authenticate");
    let scope = challenge
        .split_once("scope=\"")
        .and_then(|(_, rest)| rest.split_once('"'));
    scope.map_or("", |(scope, _)| scope)
}

#[track_caller]
fn is_clear(reply: &Reply) {
    let text = reply.text();
    assert_eq!(reply.ok()["redacted"], false, "{text}");
    assert!(text.contains(CANARY) && !text.contains("[redacted]"), "{text}");
    assert!(reply.json["envelope"]["payload"].is_string(), "{text}");
}

#[track_caller]
fn is_redacted(reply: &Reply) {
    let text = reply.text();
    assert_eq!(reply.ok()["redacted"], true, "{text}");
    assert!(!text.contains(CANARY) && text.contains("[redacted]"), "{text}");
    assert_eq!(
        reply.json.get("envelope"),
        None,
        "hashes of other files would be no use: {text}"
    );
}

/// Proves MC-9.
#[test]
fn values_in_the_clear_are_for_accounts_that_name_the_scope() {
    each("mc_pull", |app: Arc<App>| async move {
        let path = profile(&app, "claude_code").await;
        let release = publish_all(&app, &path, content()).await;
        let mut clear = Vec::new();
        let mut redacted = vec![app.admin.clone()];
        for role in ["admin", "operator", "auditor"] {
            clear.push(app.account(&fresh_key(), role, &[PULL]).await.1);
            clear.push(app.account(&fresh_key(), role, &[PULL, READ]).await.1);
            clear.push(narrowed(&app, role, &[PULL, READ], &[PULL]).await);
            redacted.push(app.account(&fresh_key(), role, &[]).await.1);
            redacted.push(app.account(&fresh_key(), role, &[READ]).await.1);
            redacted.push(narrowed(&app, role, &[PULL, READ], &[READ]).await);
        }
        redacted.push(
            app.account(&fresh_key(), "admin", &["managed_config:write"])
                .await
                .1,
        );
        // A token does not name the scope for an account that does not.
        let body = json!({
            "name": fresh_key(), "permissionRole": "admin", "allOfRole": true, "tokenScopes": [PULL, READ],
        });
        let lent = app.write("POST", "/service-accounts", body).await;
        lent.refused(422, "invalid_definition");
        for token in &clear {
            is_clear(&fetch(&app, &path, token).await);
        }
        for token in &redacted {
            is_redacted(&fetch(&app, &path, token).await);
        }
        // What is shown is what `content` shows, in the form of the files.
        let shown = format!("{path}/releases/{}/content", release["id"].as_str().unwrap());
        let shown = app.get(&shown).await;
        let current = app.get(&format!("{path}/current")).await;
        for file in current.ok()["files"].as_array().unwrap() {
            let text: Value = serde_json::from_str(file["content"].as_str().unwrap()).unwrap();
            assert_eq!(text, shown.ok()["content"][file["role"].as_str().unwrap()]);
        }
        let [one, other] = [&clear[0], &clear[1]].map(|token| fetch(&app, &path, token));
        let (one, other) = (one.await, other.await);
        assert_eq!(one.header("etag"), other.header("etag"));
        assert_ne!(one.header("etag"), current.header("etag"));

        let (_, viewer) = app.account("looks", "viewer", &[]).await;
        fetch(&app, &path, &viewer).await.refused(403, "role_forbidden");
        let (_, viewer) = app.account("named", "viewer", &[PULL]).await;
        fetch(&app, &path, &viewer).await.refused(403, "role_forbidden");
        let (_, other) = app.account("reads the log", "auditor", &["audit:read"]).await;
        let refused = fetch(&app, &path, &other).await;
        refused.refused(403, "insufficient_scope");
        assert_eq!(missing(&refused), READ);
    });
}

/// Proves MC-9.
#[test]
fn a_person_gets_no_value_in_the_clear() {
    each("mc_pull_person", |app: Arc<App>| async move {
        let path = profile(&app, "claude_code").await;
        let release = publish_all(&app, &path, content()).await;
        let asked = [PULL, READ, "managed_config:write"];
        let mut client = public_client("console");
        client["scopes"] = json!(asked);
        let client = register(&app, client).await;
        let user = oauth::user(&app, "ann@acme.example", Some("admin")).await;
        let code = oauth::code(&app, &client, &user, &asked, None).await;
        let answer = oauth::post(&app, "/oauth/token", &oauth::redeeming(&client, &code)).await;
        let token = answer.ok()["access_token"].as_str().unwrap();
        assert!(!answer.json["scope"].as_str().unwrap().contains(PULL));
        is_redacted(&fetch(&app, &path, token).await);
        let refused = report(&app, &path, token, "laptop", &release).await;
        refused.refused(403, "insufficient_scope");
    });
}

#[test]
fn a_release_without_a_secret_is_redacted_alike() {
    each("mc_pull_plain", |app: Arc<App>| async move {
        let path = profile(&app, "generic_json").await;
        publish(&app, &path, json!({ "x": 1 })).await;
        let reply = app.get(&format!("{path}/current")).await;
        assert_eq!(reply.ok()["redacted"], true);
        assert_eq!(reply.json.get("envelope"), None);
    });
}

/// The audit entries of fetches: principal and profile of each.
async fn fetches(app: &App) -> Vec<(String, String)> {
    app.settle().await;
    let page = app
        .get("/audit/events?action=getHeadlessManagedConfigCurrent&limit=100")
        .await;
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    let entries = page.ok()["events"].as_array().unwrap().clone();
    for entry in &entries {
        assert_eq!(entry["outcome"]["decision"], "allowed");
        assert!(
            entry["sourceIp"].is_string() && entry["requestId"].is_string(),
            "where from: {entry}"
        );
        assert!(!entry.to_string().contains(CANARY));
    }
    let said = entries
        .iter()
        .map(|entry| (text(&entry["actor"]["id"]), text(&entry["target"]["id"])));
    said.collect()
}

/// Proves MC-10.
#[test]
fn a_fetch_in_the_clear_leaves_one_entry_for_an_account_a_profile_and_an_hour() {
    each("mc_pull_audit", |app: Arc<App>| async move {
        let (one, other) = (
            profile(&app, "claude_code").await,
            profile(&app, "claude_code").await,
        );
        for path in [&one, &other] {
            publish_all(&app, path, content()).await;
        }
        let id = |path: &str| path.rsplit('/').next().unwrap().to_owned();
        let (first, token) = app.account("first", "auditor", &[PULL]).await;
        let (second, elsewhere) = app.account("second", "auditor", &[PULL]).await;
        for _ in 0..3 {
            is_redacted(&fetch(&app, &one, &app.admin).await);
        }
        assert_eq!(fetches(&app).await, [], "a redacted answer is a plain read");

        // Many at once, here and at another server of the store.
        let beside = Arc::new(app.restarted(Extras::default()).unwrap());
        let mut storm = JoinSet::new();
        for server in [&app, &beside].repeat(8) {
            let (server, path, token) = (server.clone(), one.clone(), token.clone());
            storm.spawn(async move { fetch(&server, &path, &token).await });
        }
        for reply in storm.join_all().await {
            is_clear(&reply);
        }
        let mut expected = vec![(first.clone(), id(&one))];
        assert_eq!(fetches(&app).await, expected);
        is_clear(&fetch(&app, &other, &token).await);
        expected.insert(0, (first.clone(), id(&other)));
        is_clear(&fetch(&beside, &one, &elsewhere).await);
        expected.insert(0, (second, id(&one)));
        assert_eq!(
            fetches(&app).await,
            expected,
            "each principal and profile for itself"
        );
        is_clear(&fetch(&app, &one, &token).await);
        assert_eq!(fetches(&app).await.len(), 3);

        app.advance(3600);
        for _ in 0..2 {
            is_clear(&fetch(&app, &one, &token).await);
        }
        expected.insert(0, (first.clone(), id(&one)));
        assert_eq!(fetches(&app).await, expected, "the next hour");
        beside.kernel.stop().await;
        // What is forgotten of the hours that are over changes nothing in the log.
        app.advance(3 * 86_400);
        provost_areas_catalog::managed_config::watch_targets(&app.kernel)
            .await
            .unwrap();
        is_clear(&fetch(&app, &one, &token).await);
        assert_eq!(fetches(&app).await.len(), 5);
    });
}

/// INVARIANT MC-12. The digest of a content with one short secret tells whether a guess at it is right.
/// Proves MC-12.
#[test]
#[expect(clippy::too_many_lines, reason = "one story from its beginning to its end")]
fn nobody_without_the_scope_tries_out_a_hidden_value() {
    each("mc_digest", |app: Arc<App>| async move {
        let path = profile(&app, "generic_json").await;
        let content = |pin: &str| json!({ "enforced": { "apiKey": pin, "port": 8080 } });
        let (machine, (_, operator)) = (app.machine().await, app.account("looks", "operator", &[]).await);
        let publish = async |pin: &str| {
            app.advance(1);
            let body = json!({ "content": content(pin) });
            let published = app.write("POST", &format!("{path}/releases"), body).await;
            published.ok()["release"].clone()
        };
        let first = publish("4711").await;
        let second = publish("4712").await;
        report(
            &app,
            &path,
            &machine,
            "laptop",
            &json!({
                "id": second["id"], "contentDigest": super::digest(&content("4712")),
            }),
        )
        .await
        .ok();
        report(
            &app,
            &path,
            &machine,
            "edited",
            &json!({
                "id": second["id"], "contentDigest": super::digest(&content("0000")),
            }),
        )
        .await
        .ok();
        app.advance(30 * 86_400);
        assert_eq!(
            provost_areas_catalog::managed_config::watch_targets(&app.kernel)
                .await
                .unwrap(),
            1
        );
        let rolled = super::perform(&app, &path, json!({ "sourceReleaseId": first["id"] })).await;
        let third = rolled.ok()["release"].clone();
        // The same content has the same digest for everybody who compares, and another one has another.
        assert_eq!(first["contentDigest"], third["contentDigest"]);
        assert_ne!(first["contentDigest"], second["contentDigest"]);
        let digests = ["4711", "4712", "0000"].map(|pin| super::digest(&content(pin)));
        let first_id = first["id"].as_str().unwrap();
        let places = [
            "/current".to_owned(),
            "/releases".to_owned(),
            "/targets".to_owned(),
            format!("/releases/{first_id}"),
            format!("/releases/{first_id}/content"),
            format!("/releases/{first_id}/diff"),
        ];
        let mut seen = vec![rolled.text(), first.to_string(), second.to_string()];
        for place in &places {
            for token in [&operator, &app.admin] {
                let call = app.request("GET", &format!("{path}{place}"));
                let reply = call.token(token).send().await;
                assert!(reply.ok().to_string().contains("hmac-sha256:"), "{place}");
                seen.push(reply.text());
            }
        }
        seen.push(
            super::preview(&app, &path, json!({ "sourceReleaseId": second["id"] }))
                .await
                .text(),
        );
        // A look at a publication leaves no trace: it answers a right guess and a wrong one alike.
        let look = async |token: &str, pin: &str| {
            let call = app.request("POST", &format!("{path}/releases?preview=true"));
            let body = with_trio(json!({ "content": content(pin) }), &fresh_key());
            call.token(token).json(body).send().await
        };
        let [right, wrong] = [look(&app.admin, "4711").await, look(&app.admin, "4712").await];
        assert_eq!(right.ok(), wrong.ok());
        assert_eq!(
            (&right.json["wouldCreate"], &right.json["changesTotal"]),
            (&json!(true), &json!(1))
        );
        seen.extend([right.text(), wrong.text()]);
        app.settle().await;
        seen.push(json!(app.entries(&app.organization, 0).await).to_string());
        seen.push(json!(app.events(0).await).to_string());
        for text in &seen {
            for digest in &digests {
                let hash = digest.trim_start_matches("sha256:");
                assert!(!text.contains(hash), "{text}");
            }
            assert!(!text.contains("4711") && !text.contains("4712"), "{text}");
        }
        // Whoever reads the values reads the digest, and it is that of the signed manifest.
        let clear = fetch(&app, &path, &machine).await;
        assert_eq!(clear.ok()["release"]["contentDigest"], digests[0]);
        let scopes = [
            "managed_config:read",
            "managed_config:write",
            "managed_config:pull",
        ];
        let (_, reader) = app.account("reads", "admin", &scopes).await;
        assert_eq!(look(&reader, "4711").await.ok()["wouldCreate"], false);
        assert_eq!(look(&reader, "4712").await.ok()["wouldCreate"], true);
        let targets = app.request("GET", &format!("{path}/targets")).token(&machine);
        assert!(targets.send().await.text().contains(&digests[1]));
    });
}

async fn report(app: &App, path: &str, token: &str, machine: &str, release: &Value) -> Reply {
    let body = json!({
        "targetId": machine, "releaseId": release["id"], "contentDigest": release["contentDigest"], "state": "applied",
    });
    let call = app.request("POST", &format!("{path}/reports")).token(token);
    call.json(with_trio(body, &fresh_key())).send().await
}

/// Proves MC-11.
#[test]
fn a_report_takes_the_scope() {
    each("mc_report_scope", |app: Arc<App>| async move {
        let path = profile(&app, "generic_json").await;
        let release = publish(&app, &path, json!({ "x": 1 })).await;
        let mut refused = vec![app.admin.clone()];
        for role in ["admin", "operator", "auditor"] {
            refused.push(app.account(&fresh_key(), role, &[]).await.1);
            refused.push(
                app.account(&fresh_key(), role, &[READ, "managed_config:write"])
                    .await
                    .1,
            );
            refused.push(narrowed(&app, role, &[PULL, READ], &[READ]).await);
        }
        for token in &refused {
            let reply = report(&app, &path, token, "laptop", &release).await;
            reply.refused(403, "insufficient_scope");
            assert_eq!(missing(&reply), PULL);
        }
        let (_, viewer) = app.account("named", "viewer", &[PULL]).await;
        let reply = report(&app, &path, &viewer, "laptop", &release).await;
        reply.refused(403, "role_forbidden");
        let targets = app.get(&format!("{path}/targets")).await;
        assert_eq!(targets.ok()["targets"], json!([]));
        let (_, machine) = app.account("machines", "operator", &[PULL]).await;
        report(&app, &path, &machine, "laptop", &release).await.ok();
    });
}

/// The account that a machine belongs to.
async fn owner(app: &App, path: &str) -> Value {
    let targets = app.get(&format!("{path}/targets")).await;
    targets.ok()["targets"][0]["reportedBy"]["id"].clone()
}

/// Proves MC-11.
#[test]
fn a_machine_belongs_to_the_account_that_reported_it_first() {
    each("mc_owner", |app: Arc<App>| async move {
        let path = profile(&app, "generic_json").await;
        let release = publish(&app, &path, json!({ "x": 1 })).await;
        let (one, ones) = app.account("one", "auditor", &[PULL]).await;
        let (other, others) = app
            .account("other", "admin", &[PULL, "managed_config:write"])
            .await;
        report(&app, &path, &ones, "laptop", &release).await.ok();
        let before = app.get(&format!("{path}/targets")).await.ok().clone();
        let from: i64 = app.events(0).await.len().try_into().unwrap();

        let mut lie = release.clone();
        lie["contentDigest"] = json!(format!("sha256:{}", "e".repeat(64)));
        report(&app, &path, &others, "laptop", &lie)
            .await
            .refused(409, "conflict");
        assert_eq!(app.get(&format!("{path}/targets")).await.ok(), &before);
        let contested = json!({
            "profileId": path.rsplit('/').next().unwrap(), "targetId": "laptop",
            "belongsTo": { "type": "service_account", "id": one },
            "reportedBy": { "type": "service_account", "id": other },
        });
        let events = app.events(from).await;
        assert_eq!(
            events,
            [("managed_config.target.contested".to_owned(), contested)]
        );
        let log = app
            .get("/audit/events?action=reportHeadlessManagedConfigTarget&limit=1")
            .await;
        assert_eq!(log.ok()["events"][0]["actor"]["id"], other.as_str());
        assert_eq!(log.json["events"][0]["outcome"]["status"], 409);
        report(&app, &path, &ones, "laptop", &release).await.ok();
        // Another profile's machine of the same name is another machine.
        let second = profile(&app, "generic_json").await;
        report(&app, &second, &others, "laptop", &release).await.ok();
        assert_eq!(owner(&app, &second).await, other.as_str());

        // An account that is disabled keeps its machines; it may come back.
        app.write("POST", &format!("/service-accounts/{one}/disable"), json!({}))
            .await
            .ok();
        report(&app, &path, &others, "laptop", &release)
            .await
            .refused(409, "conflict");
        app.write("POST", &format!("/service-accounts/{one}/enable"), json!({}))
            .await
            .ok();

        // Only an admin who may write forgets a machine.
        let target = format!("{path}/targets/laptop");
        let forget = |token: &str| {
            let call = app.request("DELETE", &target).token(token);
            let call = call.header("idempotency-key", &fresh_key());
            call.header("x-reason", "a test").send()
        };
        forget(&ones).await.refused(403, "role_forbidden");
        let (_, operator) = app.account("acts", "operator", &[]).await;
        forget(&operator).await.refused(403, "role_forbidden");
        let (_, reader) = app.account("reads", "admin", &[PULL, READ]).await;
        forget(&reader).await.refused(403, "insufficient_scope");
        assert_eq!(owner(&app, &path).await, one.as_str());
        assert_eq!(forget(&app.admin).await.status.as_u16(), 204);
        forget(&app.admin).await.refused(404, "not_found");
        report(&app, &path, &others, "laptop", &release).await.ok();
        report(&app, &path, &ones, "laptop", &release)
            .await
            .refused(409, "conflict");

        // A deleted account does not come back: its machines are nobody's.
        assert_eq!(
            app.delete(&format!("/service-accounts/{other}"))
                .await
                .status
                .as_u16(),
            204
        );
        let taken = report(&app, &path, &ones, "laptop", &release).await;
        assert_eq!(taken.ok()["target"]["reportedBy"]["id"], one.as_str());
        assert!(taken.json["target"]["firstReportedAt"].is_string());
        let log = app
            .get("/audit/events?action=reportHeadlessManagedConfigTarget&limit=1")
            .await;
        let changes = log.ok()["events"][0]["changes"].to_string();
        assert!(
            changes.contains("/reportedBy") && changes.contains(&other),
            "{changes}"
        );
        assert!(path.starts_with(PROFILES));
    });
}
