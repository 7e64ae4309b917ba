//! The command line of this program, which is a client without being registered.

use super::liar::{LyingProvider, challenge};
use super::visitor::{PageView, Visitor};
use super::*;
use crate::access::oauth::{API, MCP, post, read, refused, token, trusting, workshop};
use crate::support::each;
use axum::body::Body;
use http::Request;
use provost_areas_access::oauth::settings::Settings;
use std::sync::Arc;

const ID: &str = "provost-cli";
const BACK: &str = "http://127.0.0.1:4711/callback";
const VERIFIER: &str = "the-verifier-of-a-command-line-that-waits-at-a-port";

struct Stage {
    app: App,
    liar: LyingProvider,
    ada: String,
}

/// One more server of the same store at which people sign in, to the command line or not.
fn server(first: &App, liar: &LyingProvider, command_line: bool) -> App {
    let settings = Settings {
        interactive: true,
        command_line,
        ..Settings::default()
    };
    let extras = Extras::default()
        .with(segments(&first.keys_dir))
        .with(settings)
        .with(Providers::new(vec![declared(first, &liar.issuer, "provost")]));
    first.restarted(extras).unwrap()
}

async fn stage(first: &App, role: &str) -> Stage {
    let liar = LyingProvider::start().await;
    let app = server(first, &liar, true);
    let ada = user(&app, "ada@acme.example", Some(role)).await;
    Stage { app, liar, ada }
}

fn asking(changes: &[(&str, Option<&str>)]) -> String {
    let challenge = challenge(VERIFIER);
    let mut all = vec![
        ("redirect_uri", Some(BACK)),
        ("code_challenge", Some(challenge.as_str())),
        ("scope", None),
    ];
    all.extend(changes);
    authorize(ID, &all)
}

impl Stage {
    /// Signs Ada in; returns the page that asks her.
    async fn asked(&self, visitor: &mut Visitor, changes: &[(&str, Option<&str>)]) -> PageView {
        let seen = visitor.get(&self.app, &asking(changes)).await;
        let asked = seen.to(&self.liar.issuer).to_owned();
        let target = self.liar.answers(&self.app, &asked, "ada");
        let target = visitor.return_to(&self.app, &target).await;
        let page = visitor.get(&self.app, &target).await;
        page.page(200, "Allow access");
        page
    }

    /// Signs Ada in and has her allow it; returns what the token endpoint gave.
    async fn signed_in(&self, changes: &[(&str, Option<&str>)]) -> Value {
        let mut visitor = Visitor::default();
        let page = self.asked(&mut visitor, changes).await;
        let answered = visitor.answer(&self.app, &page, "allow").await;
        let code = parameter(answered.to(BACK), "code").unwrap();
        let redeems = async |verifier: &str| {
            let form = [
                ("grant_type", "authorization_code"),
                ("client_id", ID),
                ("code", &code),
                ("redirect_uri", BACK),
                ("code_verifier", verifier),
            ];
            post(&self.app, "/oauth/token", &form).await
        };
        let reply = redeems(VERIFIER).await;
        assert_eq!(reply.status.as_u16(), 200, "{}", reply.text());
        // Who saw the code in the history of the browser ends nothing with it.
        refused(&redeems(&VERIFIER.replace('t', "u")).await, 400, "invalid_grant");
        read(&self.app, text(&reply.json, "access_token")).await.ok();
        reply.json
    }
}

fn text<'a>(given: &'a Value, member: &str) -> &'a str {
    given[member]
        .as_str()
        .unwrap_or_else(|| panic!("{member}: {given}"))
}

fn refreshing<'a>(given: &'a Value, more: &[(&'a str, &'a str)]) -> Vec<(&'a str, &'a str)> {
    let mut form = vec![
        ("grant_type", "refresh_token"),
        ("client_id", ID),
        ("refresh_token", text(given, "refresh_token")),
    ];
    form.extend(more);
    form
}

async fn at_mcp(app: &App, token: &str) -> u16 {
    let call = json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/list" });
    let request = Request::post("/mcp")
        .header("host", "127.0.0.1")
        .header("authorization", format!("Bearer {token}"))
        .header("content-type", "application/json")
        .header("accept", "application/json, text/event-stream");
    let request = request.body(Body::from(call.to_string())).unwrap();
    app.answer(request).await.status.as_u16()
}

/// Proves OC-19, OC-2, SI-5.
#[test]
fn the_command_line_is_given_what_the_page_shows_and_for_the_api_alone() {
    each("command_line", |first: Arc<App>| async move {
        let stage = stage(&first, "operator").await;
        let metadata = "/.well-known/oauth-authorization-server";
        let said = first.request("GET", "").at(metadata).anonymous().send().await;
        assert_eq!(said.json.get("command_line_client_id"), None);
        let said = stage.app.request("GET", "").at(metadata).anonymous().send().await;
        assert_eq!(said.json["command_line_client_id"], ID);

        let mut visitor = Visitor::default();
        let page = stage.asked(&mut visitor, &[]).await;
        for words in [
            "Provost command line",
            "the command line of this server",
            "typed provost login yourself",
            "a program on this computer",
            "(operator)",
        ] {
            assert!(page.body.contains(words), "{words}: {}", page.body);
        }
        assert!(!page.body.contains("Registered by"), "{}", page.body);

        // Who asks for nothing is given what reads, as far as the role has it; who asks for more, no more than the role.
        let given = stage.signed_in(&[]).await;
        let scopes: Vec<&str> = text(&given, "scope").split(' ').collect();
        assert!(scopes.contains(&"policies:read"), "{given}");
        assert!(scopes.iter().all(|scope| scope.ends_with(":read")), "{given}");
        let every = every_scope().join(" ");
        let all = stage.signed_in(&[("scope", Some(&every))]).await;
        let all: Vec<&str> = text(&all, "scope").split(' ').collect();
        assert!(all.contains(&"policies:backtest"), "{all:?}");
        assert!(!all.contains(&"service_accounts:write"), "{all:?}");

        let access = text(&given, "access_token");
        read(&stage.app, access).await.ok();
        assert_eq!(at_mcp(&stage.app, access).await, 401);
        let sessions = stage.app.get("/mcp/sessions?clientId=provost-cli").await;
        let sessions = sessions.ok()["sessions"].as_array().unwrap().clone();
        assert_eq!(sessions.len(), 2);
        assert_eq!(sessions[0]["consoleUserId"], *stage.ada);

        // No other door: neither another resource, nor another grant, nor another place for the answer.
        for resources in [vec![MCP], vec![API, MCP]] {
            let mut target = asking(&[]);
            for resource in &resources {
                target = format!("{target}&{}", query(&[("resource", resource)]));
            }
            let seen = Visitor::default().get(&stage.app, &target).await;
            assert_eq!(
                parameter(seen.to(BACK), "error").as_deref(),
                Some("invalid_target")
            );
        }
        let reply = post(
            &stage.app,
            "/oauth/token",
            &refreshing(&given, &[("resource", MCP)]),
        )
        .await;
        refused(&reply, 400, "invalid_target");
        for grant in [
            "client_credentials",
            "urn:ietf:params:oauth:grant-type:token-exchange",
            "urn:ietf:params:oauth:grant-type:jwt-bearer",
        ] {
            let form = [
                ("grant_type", grant),
                ("client_id", ID),
                ("subject_token", access),
                (
                    "subject_token_type",
                    "urn:ietf:params:oauth:token-type:access_token",
                ),
                ("assertion", access),
            ];
            refused(
                &post(&stage.app, "/oauth/token", &form).await,
                400,
                "unauthorized_client",
            );
        }
        for elsewhere in [
            REDIRECT,
            "http://localhost:4711/callback",
            "http://127.0.0.1:4711/other",
        ] {
            let seen = Visitor::default()
                .get(&stage.app, &asking(&[("redirect_uri", Some(elsewhere))]))
                .await;
            seen.page(400, "The way back is not a known one");
        }
        stage.app.kernel.stop().await;
    });
}

/// Proves OC-19, OC-9, MS-6.
#[test]
fn the_command_line_is_out_with_its_session_its_person_and_the_operators_word() {
    each("command_line_ends", |first: Arc<App>| async move {
        let stage = stage(&first, "admin").await;
        let app = &stage.app;
        // Nobody is asked where the operator does not let it in, and what was given is refused.
        let given = stage.signed_in(&[]).await;
        let strict = server(&first, &stage.liar, false);
        let seen = Visitor::default().get(&strict, &asking(&[])).await;
        seen.page(400, "This application cannot be used");
        read(&strict, text(&given, "access_token"))
            .await
            .refused(401, "unauthenticated");
        let reply = post(&strict, "/oauth/token", &refreshing(&given, &[])).await;
        refused(&reply, 401, "invalid_client");
        read(app, text(&given, "access_token")).await.ok();
        // What is given back meanwhile cannot come to life again.
        let back = stage.signed_in(&[]).await;
        let form = [("client_id", ID), ("token", text(&back, "refresh_token"))];
        assert_eq!(post(&strict, "/oauth/revoke", &form).await.status.as_u16(), 200);
        read(app, text(&back, "access_token"))
            .await
            .refused(401, "token_revoked");

        // Its own renewal, and its own end.
        let renewed = post(app, "/oauth/token", &refreshing(&given, &[])).await;
        let renewed = renewed.json.clone();
        read(app, text(&renewed, "access_token")).await.ok();
        let form = [("client_id", ID), ("token", text(&renewed, "refresh_token"))];
        assert_eq!(post(app, "/oauth/revoke", &form).await.status.as_u16(), 200);
        for token in [text(&given, "access_token"), text(&renewed, "access_token")] {
            read(app, token).await.refused(401, "token_revoked");
        }
        let reply = post(app, "/oauth/token", &refreshing(&renewed, &[])).await;
        refused(&reply, 400, "invalid_grant");

        // An admin's word about the session.
        let given = stage.signed_in(&[]).await;
        let listed = app.get("/mcp/sessions?clientId=provost-cli&status=active").await;
        let id = listed.ok()["sessions"][0]["id"].as_str().unwrap().to_owned();
        let path = format!("/mcp/sessions/{id}/revoke");
        app.write("POST", &path, json!({})).await.ok();
        read(app, text(&given, "access_token"))
            .await
            .refused(401, "token_revoked");
        let reply = post(app, "/oauth/token", &refreshing(&given, &[])).await;
        refused(&reply, 400, "invalid_grant");

        // The end of the person. All of it stands in the audit log, and no token.
        let given = stage.signed_in(&[]).await;
        suspend(app, &stage.ada).await;
        let reply = read(app, text(&given, "access_token")).await;
        assert_eq!(reply.status.as_u16(), 401);
        let issued = audited(app, "oauth.token.issued").await;
        assert_eq!(issued.len(), 4);
        for entry in issued {
            let entry = entry.to_string();
            assert!(entry.contains(ID) && !entry.contains("eyJ"), "{entry}");
        }
        stage.app.kernel.stop().await;
    });
}

#[test]
fn what_another_issuer_calls_its_client_is_its_own_business() {
    each("command_line_foreign", |first: Arc<App>| async move {
        let workshop = workshop(&first);
        let app = trusting(&first, &workshop);
        user(&app, "ada@acme.example", Some("viewer")).await;
        let foreign = token(&workshop, |claims| {
            claims["client_id"] = ID.into();
            claims["email"] = "ada@acme.example".into();
        });
        read(&app, &foreign).await.ok();
        app.kernel.stop().await;
    });
}
