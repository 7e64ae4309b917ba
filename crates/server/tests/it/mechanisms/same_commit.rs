//! What one unit takes away, the units behind it in the same commit lack (invariant WK-4).
//!
//! ```text
//! writer    [ held … ] [ the act that takes away │ what its victim asked for ]  one commit
//! readers     ↑ judge both: the victim may still do it
//! ```

use crate::access::oauth::{answer, code, post, redeeming, user};
use crate::areas::directory::{chunk, import};
use crate::areas::oauth::{public_client, register};
use crate::support::{App, Reply, each, fresh_key, with_trio};
use provost_kernel::auth::OrganizationId;
use provost_kernel::{OperationContext, Result, params};
use serde_json::{Value, json};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, mpsc};
use std::time::Duration;
use tokio::task::JoinSet;

provost_kernel::statements! {
    /// What an act of the program does to some account.
    DISABLE = "UPDATE service_accounts SET status = 'disabled' WHERE organization_id = ?1 AND id = ?2";
}

/// Waits for a fact that another thread makes.
async fn until(fact: impl Fn() -> bool) {
    while !fact() {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
}

/// Keeps the organization's writer until the sender is gone.
async fn hold(app: &App, busy: &mut JoinSet<Result<()>>) -> mpsc::Sender<()> {
    let (release, gate) = mpsc::channel::<()>();
    let has_begun = Arc::new(AtomicBool::new(false));
    let (kernel, org, begun) = (app.kernel.clone(), app.org(), has_begun.clone());
    busy.spawn(async move {
        let held = move |_: &mut OperationContext<'_>| {
            begun.store(true, Ordering::SeqCst);
            let _ = gate.recv();
            Ok(())
        };
        kernel.system(org, None, held).await
    });
    until(|| has_begun.load(Ordering::SeqCst)).await;
    release
}

/// Has an act of an admin and one of somebody else committed together, in this order.
async fn in_one_commit(
    app: &Arc<App>,
    first: (String, Value),
    second: (String, String, Value),
) -> [Reply; 2] {
    let asked = app.clone();
    let second = async move {
        let (path, token, body) = second;
        asked.request("POST", &path).token(&token).json(body).send().await
    };
    in_this_order(app, first, second).await
}

async fn in_this_order(
    app: &Arc<App>,
    first: (String, Value),
    second: impl Future<Output = Reply> + Send + 'static,
) -> [Reply; 2] {
    let (mut busy, mut acts) = (JoinSet::new(), JoinSet::new());
    let release = hold(app, &mut busy).await;
    let asked = app.clone();
    acts.spawn(async move { (0, asked.write("POST", &first.0, first.1).await) });
    until(|| app.kernel.waiting_units() == 1).await;
    acts.spawn(async move { (1, second.await) });
    until(|| app.kernel.waiting_units() == 2).await;
    drop(release);
    let mut replies = acts.join_all().await;
    busy.join_next().await.unwrap().unwrap().unwrap();
    replies.sort_by_key(|(place, _)| *place);
    let [(_, first), (_, second)] = <[_; 2]>::try_from(replies).ok().unwrap();
    [first, second]
}

/// Makes an account by way of the MCP endpoint.
/// Makes an account by MCP.
pub async fn make_by_mcp(app: Arc<App>, token: String, name: &'static str) -> Reply {
    let arguments = new_account(name);
    let call = json!({
        "jsonrpc": "2.0", "id": 1, "method": "tools/call",
        "params": { "name": "createHeadlessServiceAccount", "arguments": arguments },
    });
    let request = http::Request::post("/mcp?toolsets=all")
        .header("host", "127.0.0.1")
        .header("authorization", format!("Bearer {token}"))
        .header("content-type", "application/json")
        .header("accept", "application/json, text/event-stream")
        .header("mcp-protocol-version", "2025-11-25");
    answer(&app, request.body(call.to_string().into()).unwrap()).await
}

fn new_account(name: &str) -> Value {
    let body = json!({ "name": name, "permissionRole": "viewer", "allOfRole": true });
    with_trio(body, &fresh_key())
}

/// Proves WK-4.
#[test]
fn an_account_that_was_disabled_does_nothing_more() {
    each("commit_disabled", |app: Arc<App>| async move {
        let (id, token) = app.account("victim", "admin", &[]).await;
        assert_eq!(app.used(&token).await.0, 200);
        let disable = (format!("/service-accounts/{id}/disable"), json!({}));
        let make = ("/service-accounts".to_owned(), token, new_account("late"));
        let [disabled, late] = in_one_commit(&app, disable, make).await;
        disabled.ok();
        late.refused(401, "unauthenticated");
    });
}

/// Proves WK-4.
#[test]
fn a_session_that_ended_with_its_client_does_nothing_more() {
    each("commit_client", |app: Arc<App>| async move {
        let ann = user(&app, "ann@acme.example", Some("admin")).await;
        let client = register(&app, public_client("client")).await;
        let signed_in = || async {
            let code = code(&app, &client, &ann, &["policies:read", "mcp:write"], None).await;
            let reply = post(&app, "/oauth/token", &redeeming(&client, &code)).await;
            reply.json["access_token"].as_str().unwrap().to_owned()
        };
        let register_as = |token: &str, name: &str| {
            let body = with_trio(public_client(name), &fresh_key());
            ("/mcp/clients".to_owned(), token.to_owned(), body)
        };
        for (subject, id) in [("clientId", &client), ("consoleUserId", &ann)] {
            let token = signed_in().await;
            let (path, token, body) = register_as(&token, &format!("before {subject}"));
            app.request("POST", &path)
                .token(&token)
                .json(body)
                .send()
                .await
                .ok();
            let revoke = (
                "/mcp/sessions/revoke".to_owned(),
                json!({ subject: id, "confirm": true }),
            );
            let late = register_as(&token, &format!("late {subject}"));
            let [revoked, late] = in_one_commit(&app, revoke, late).await;
            revoked.ok();
            late.refused(401, "token_revoked");
        }
    });
}

/// Proves WK-4.
#[test]
fn a_user_whom_an_import_removed_or_suspended_does_nothing_more() {
    each("commit_import", |app: Arc<App>| async move {
        let client = register(&app, public_client("client")).await;
        for (mode, login, line) in [
            (
                "merge",
                "ann@acme.example",
                json!({ "type": "user", "loginName": "ann@acme.example", "status": "suspended" }),
            ),
            (
                "replace",
                "bob@acme.example",
                json!({ "type": "user", "loginName": "cy@acme.example" }),
            ),
        ] {
            let id = user(&app, login, Some("admin")).await;
            let code = code(&app, &client, &id, &["policies:read", "mcp:write"], None).await;
            let reply = post(&app, "/oauth/token", &redeeming(&client, &code)).await;
            let token = reply.json["access_token"].as_str().unwrap().to_owned();
            // An import leaves alone whoever was made since it was opened.
            app.clock.step_ms(10);
            let import = import(&app, json!({ "format": "jsonl", "mode": mode })).await;
            chunk(&app, &import, 1, &line.to_string()).await.ok();
            let before = with_trio(public_client(&format!("before {mode}")), &fresh_key());
            let request = app.request("POST", "/mcp/clients").token(&token);
            request.json(before).send().await.ok();
            let apply = (
                format!("/directory/imports/{import}/apply"),
                json!({ "confirm": true }),
            );
            let late = with_trio(public_client(&format!("late {mode}")), &fresh_key());
            let [applied, late] = in_one_commit(&app, apply, ("/mcp/clients".to_owned(), token, late)).await;
            applied.ok();
            late.refused(401, "unauthenticated");
        }
    });
}

/// Proves WK-4.
#[test]
fn a_token_whose_session_was_revoked_does_nothing_more_by_mcp() {
    each("commit_mcp", |app: Arc<App>| async move {
        let (_, token) = app.account("agent", "admin", &[]).await;
        let before = make_by_mcp(app.clone(), token.clone(), "before").await;
        assert_eq!(before.json["result"]["isError"], false, "{}", before.text());
        let sessions = app.get("/mcp/sessions?status=active").await.ok().clone();
        let session = sessions["sessions"][0]["id"].as_str().unwrap();
        let revoke = (
            format!("/mcp/sessions/{session}/revoke"),
            json!({ "confirm": true }),
        );
        let [revoked, late] = in_this_order(&app, revoke, make_by_mcp(app.clone(), token, "late")).await;
        revoked.ok();
        assert!(late.text().contains("token_revoked"), "{}", late.text());
        let accounts = app.get("/service-accounts?limit=100").await.ok().to_string();
        assert!(accounts.contains("\"before\"") && !accounts.contains("\"late\""));
    });
}

/// Proves MS-5.
#[test]
fn who_was_disabled_or_lost_the_token_opens_no_session() {
    each("commit_join", |app: Arc<App>| async move {
        for (act, code) in [("disable", "unauthenticated"), ("tokens", "token_revoked")] {
            let (id, token) = app.account(act, "admin", &[]).await;
            // What a first use writes would be waiting too.
            assert_eq!(app.used(&token).await.0, 200);
            let act_on = (
                format!("/service-accounts/{id}/{act}"),
                json!({ "confirm": true }),
            );
            let [done, late] = in_this_order(&app, act_on, make_by_mcp(app.clone(), token, "late")).await;
            done.ok();
            late.refused(401, code);
            let sessions = app.get("/mcp/sessions").await.ok().clone();
            assert_eq!(sessions["total"], 0, "{act}: {sessions}");
            app.kernel.flush_counts();
            app.settle().await;
            let entries = app.entries(&app.organization, 0).await;
            let failed = entries.iter().filter(|entry| {
                entry["action"] == "authentication.failed" && entry["outcome"]["code"] == code
            });
            assert_eq!(failed.count(), 1, "{act}: the refusal stands in the log");
        }
    });
}

/// Proves WK-4.
#[test]
fn what_the_program_took_away_is_gone() {
    each("commit_system", |app: Arc<App>| async move {
        let (id, token) = app.account("victim", "admin", &[]).await;
        assert_eq!(app.used(&token).await.0, 200);
        let (mut busy, mut acts) = (JoinSet::new(), JoinSet::new());
        let release = hold(&app, &mut busy).await;
        let (kernel, org): (_, OrganizationId) = (app.kernel.clone(), app.org());
        busy.spawn(async move {
            let disable = move |ctx: &mut OperationContext<'_>| {
                let org = ctx.org();
                ctx.execute(&DISABLE, params![org, id.as_str()]).map(drop)
            };
            kernel.system(org, Some("test.done"), disable).await
        });
        until(|| app.kernel.waiting_units() == 1).await;
        let asked = app.clone();
        acts.spawn(async move {
            let request = asked.request("POST", "/service-accounts").token(&token);
            request.json(new_account("late")).send().await
        });
        until(|| app.kernel.waiting_units() == 2).await;
        drop(release);
        acts.join_next()
            .await
            .unwrap()
            .unwrap()
            .refused(401, "unauthenticated");
        while let Some(done) = busy.join_next().await {
            done.unwrap().unwrap();
        }
    });
}

#[test]
fn a_secret_whose_cell_was_erased_is_not_repeated() {
    each("commit_cell", |app: Arc<App>| async move {
        let (id, _) = app.account("rotated", "auditor", &[]).await;
        let path = format!("/service-accounts/{id}/tokens");
        let body = with_trio(json!({}), &fresh_key());
        let rotated = app.request("POST", &path).json(body.clone()).send().await;
        let secret = rotated.ok()["token"]["token"].as_str().unwrap().to_owned();
        let token_id = rotated.json["token"]["id"].as_str().unwrap().to_owned();
        let revoke = (format!("{path}/{token_id}/revoke"), json!({ "confirm": true }));
        let again = (path, app.admin.clone(), body);
        let [revoked, again] = in_one_commit(&app, revoke, again).await;
        revoked.ok();
        assert!(!again.text().contains(&secret));
        again.refused(409, "secret_no_longer_retrievable");
    });
}
