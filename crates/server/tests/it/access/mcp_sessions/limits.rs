//! How many sessions there may be, whose they are, and what is left of those that are forgotten.

use super::*;
use crate::access::oauth;
use crate::areas::directory::{chunk, end, import, run_jobs, user};
use crate::areas::mcp_sessions::{new_session, open};
use crate::support::each;
use provost_oauth::corpus::Workshop;

/// Opens sessions of an actor until one is refused; returns how many.
async fn fill(app: &App, actor: &SessionActor) -> usize {
    for _ in 0..39 {
        let one = || NewSession {
            actor: actor.clone(),
            ..new_session(app, "a client that connects in a loop")
        };
        open(app, (0..50).map(|_| one()).collect()).await;
    }
    for count in 39 * 50.. {
        if let Err(error) = one_more(app, actor).await {
            assert_eq!(error.code(), Code::RateLimited, "{error}");
            assert!(error.message().contains("2000 sessions"), "{error}");
            return count;
        }
    }
    unreachable!("it is never refused")
}

async fn one_more(app: &App, actor: &SessionActor) -> Result<()> {
    let new = NewSession {
        actor: actor.clone(),
        ..new_session(app, "a client")
    };
    unit(app, move |ctx| mcp_sessions::open(ctx, new.clone()).map(drop)).await
}

/// Proves MS-7.
#[test]
fn who_connects_in_a_loop_is_stopped_for_a_day_and_nobody_else_is() {
    each("sessions_loop", |app: Arc<App>| async move {
        let workshop = oauth::workshop(&app);
        let app = oauth::trusting(&app, &workshop);
        let ann = oauth::user(&app, "ann@acme.example", Some("viewer")).await;
        let (account, _) = app.account("bot", "viewer", &[]).await;
        let display = || "somebody".to_owned();
        let user = SessionActor::ConsoleUser {
            id: ann.clone(),
            display: display(),
        };
        let bot = SessionActor::ServiceAccount {
            id: account.clone(),
            display: display(),
        };
        // What is there already goes on.
        let first = oauth::token(&workshop, |claims| claims["sid"] = "first".into());
        oauth::read(&app, &first).await.ok();
        let (client, code) = {
            let client = crate::areas::oauth::register(&app, crate::areas::oauth::public_client("c")).await;
            let code = oauth::code(&app, &client, &ann, &["policies:read"], None).await;
            (client, code)
        };
        app.advance(1);
        assert_eq!((fill(&app, &user).await, fill(&app, &bot).await), (1999, 2000));
        oauth::read(&app, &first).await.ok();
        // An agent acts for one of them, and is counted with it.
        let agent = SessionActor::Agent {
            console_user: Some(ann),
            service_account: None,
            display: display(),
        };
        assert_eq!(
            one_more(&app, &agent).await.unwrap_err().code(),
            Code::RateLimited
        );
        let other = SessionActor::ServiceAccount {
            id: "sa_other".into(),
            display: display(),
        };
        one_more(&app, &other).await.unwrap();
        // The token endpoint says so, the code is not spent, and the log tells.
        let form = oauth::redeeming(&client, &code);
        let reply = oauth::post(&app, "/oauth/token", &form).await;
        oauth::refused(&reply, 429, "slow_down");
        assert_eq!(reply.header("retry-after"), "3600");
        let log = app.get("/audit/events?limit=5&action=oauth.token.refused").await;
        assert!(
            log.ok()["events"].to_string().contains("slow_down"),
            "{}",
            log.text()
        );
        // So does an operation, to a token of another issuer that it sees for the first time.
        let second = oauth::token(&workshop, |claims| claims["sid"] = "second".into());
        let reply = oauth::read(&app, &second).await;
        reply.refused(429, "rate_limited");
        assert_eq!(reply.header("retry-after"), "3600");
        app.kernel.flush_counts();
        app.settle().await;
        let log = app
            .get("/audit/events?limit=5&action=authentication.failed")
            .await;
        let log = log.ok()["events"].to_string();
        assert!(log.contains("rate_limited") && log.contains("429"), "{log}");
        // A day later it goes on.
        app.advance(86_400);
        for actor in [&user, &bot, &agent] {
            one_more(&app, actor).await.unwrap();
        }
        app.kernel.stop().await;
    });
}

fn of_session(workshop: &Workshop, app: &App, session: &'static str) -> String {
    let now = app.now().as_ms() / 1000;
    oauth::token(workshop, move |claims| {
        claims["sid"] = session.into();
        claims["jti"] = format!("{session} {now}").into();
        (claims["iat"], claims["nbf"], claims["exp"]) = (now.into(), now.into(), (now + 300).into());
    })
}

/// Proves MS-8.
#[test]
fn a_session_that_was_forgotten_is_not_opened_again_by_its_issuer() {
    each("sessions_forgotten", |app: Arc<App>| async move {
        let workshop = oauth::workshop(&app);
        let app = oauth::trusting(&app, &workshop);
        oauth::user(&app, "ann@acme.example", Some("viewer")).await;
        let token = of_session(&workshop, &app, "long-lived");
        oauth::read(&app, &token).await.ok();
        let page = app.get(SESSIONS).await;
        let id = page.ok()["sessions"][0]["id"].as_str().unwrap().to_owned();
        app.write("POST", &format!("{SESSIONS}/{id}/revoke"), json!({}))
            .await
            .ok();
        oauth::read(&app, &token).await.refused(401, "token_revoked");
        app.advance_ms(89 * 86_400 * 1000);
        let (_, late) = app.account("late", "admin", &[]).await;
        let total = async || {
            let page = app.request("GET", SESSIONS).token(&late).send().await;
            page.ok()["total"].clone()
        };
        app.advance_ms(86_400 * 1000);
        let token = of_session(&workshop, &app, "long-lived");
        oauth::read(&app, &token).await.refused(401, "token_revoked");
        app.advance_ms(1000);
        assert_eq!(mcp_sessions::retain(&app.kernel).await.unwrap(), 1);
        assert_eq!(total().await, 0);
        // Its issuer still says that it goes on.
        let token = of_session(&workshop, &app, "long-lived");
        oauth::read(&app, &token).await.refused(401, "unauthenticated");
        assert_eq!(total().await, 0);
        let token = of_session(&workshop, &app, "another");
        oauth::read(&app, &token).await.ok();
        assert_eq!(total().await, 1);
        app.kernel.stop().await;
    });
}

/// Proves MS-6.
#[test]
fn a_user_that_an_import_takes_away_leaves_no_active_session() {
    each("sessions_import", |app: Arc<App>| async move {
        let (ann, bob) = (
            user(&app, "ann@acme.example").await,
            user(&app, "bob@acme.example").await,
        );
        let of = |id: &str| NewSession {
            actor: SessionActor::ConsoleUser {
                id: id.to_owned(),
                display: "somebody".into(),
            },
            ..new_session(&app, "a client")
        };
        let news = vec![of(&ann), of(&bob)];
        let ids = open(&app, news.clone()).await;
        app.advance(1);
        let id = import(&app, json!({ "format": "jsonl", "mode": "replace" })).await;
        let line = json!({ "type": "user", "loginName": "ann@acme.example" });
        chunk(&app, &id, 1, &line.to_string()).await.ok();
        end(&app, &id, "apply").await.ok();
        // Refused from the swap on; written down and told when it is cleared away.
        assert!(refusal(&app, &news[1].grant_key).await.is_some());
        assert_eq!(refusal(&app, &news[0].grant_key).await, None);
        run_jobs(&app).await;
        let gone = seen(&app, &ids[1]).await;
        assert_eq!(
            (&gone["status"], &gone["revokeReason"]),
            (&json!("revoked"), &json!("user_suspended"))
        );
        assert_eq!(seen(&app, &ids[0]).await["status"], "active");
        let active = app.get(&format!("{SESSIONS}?status=active")).await;
        assert_eq!(active.ok()["total"], 1);
        let events = app.events(0).await;
        let told = events.iter().filter(|(kind, _)| kind == "mcp.session.revoked");
        assert_eq!(told.count(), 1);
    });
}
