//! What makes a session of another issuer's the one: organization, issuer, subject, client and `sid` or `jti`.

use super::*;
use crate::areas::mcp_sessions::open;
use crate::support::{each, fresh_key};
use aws_lc_rs::digest::{SHA256, digest};
use provost_areas_access::mcp_sessions::{self, NewSession, SessionActor};
use provost_kernel::credential::Use;
use std::fmt::Write;

const DAY_MS: i64 = 86_400 * 1000;
const SESSIONS: &str = "/mcp/sessions";

/// The key of a grant as programs before 0016 made it: issuer and `sid` alone.
pub fn former_key(sid: &str) -> String {
    let mut key = "ext-sid|".to_owned();
    for byte in digest(&SHA256, format!("{ISSUER}\0{sid}").as_bytes()).as_ref() {
        write!(key, "{byte:02x}").unwrap();
    }
    key
}

/// A session as an earlier program opened it.
pub fn former(app: &App, sid: &str, user: &str, client: &str) -> NewSession {
    NewSession {
        grant_key: former_key(sid),
        actor: SessionActor::ConsoleUser {
            id: user.to_owned(),
            display: "somebody".into(),
        },
        client_id: Some(client.to_owned()),
        client_display: None,
        scopes: ScopeSet::all(),
        token_id: None,
        expires_at: app.now().plus_secs(90 * 86_400),
    }
}

/// A token of a subject, a client and a session of the issuer.
pub fn of(workshop: &Workshop, subject: &str, client: &str, sid: &str) -> String {
    token(workshop, |claims| {
        claims["sub"] = subject.into();
        claims["jti"] = fresh_key().into();
        claims["email"] = format!("{subject}@acme.example").into();
        claims["client_id"] = client.into();
        claims["sid"] = sid.into();
    })
}

pub async fn revoke(app: &App, id: &str) {
    app.write("POST", &format!("{SESSIONS}/{id}/revoke"), json!({}))
        .await
        .ok();
}

pub async fn sessions(app: &App, query: &str) -> Vec<Value> {
    let page = app.get(&format!("{SESSIONS}{query}")).await;
    page.ok()["sessions"].as_array().unwrap().clone()
}

/// Proves CR-3, OC-11.
#[test]
fn a_token_with_the_session_of_somebody_else_acts_for_its_own_subject() {
    each("oauth_same_sid", |app| async move {
        let workshop = workshop(&app);
        let app = trusting(&app, &workshop);
        let alice = user(&app, "alice@acme.example", Some("admin")).await;
        let bob = user(&app, "bob@acme.example", Some("viewer")).await;
        let people = async |token: &str| {
            let call = app.request("GET", "/directory/users").token(token);
            call.send().await.status.as_u16()
        };
        let alices = of(&workshop, "alice", "client-1", "s");
        assert_eq!(people(&alices).await, 200);
        // Alice may see people, and Bob may not: whoever's name stands in his session.
        let bobs = of(&workshop, "bob", "client-1", "s");
        assert_eq!(people(&bobs).await, 403);
        read(&app, &bobs).await.ok();
        let other = of(&workshop, "alice", "client-2", "s");
        assert_eq!(people(&other).await, 200);
        let all = sessions(&app, "").await;
        let named: std::collections::BTreeSet<(&str, &str)> = all
            .iter()
            .map(|session| {
                let text = |member: &str| session[member].as_str().unwrap();
                (text("consoleUserId"), text("mcpClientId"))
            })
            .collect();
        let expected = [
            (alice.as_str(), "client-1"),
            (alice.as_str(), "client-2"),
            (bob.as_str(), "client-1"),
        ];
        assert_eq!(named, expected.into_iter().collect());
        // The end of one is not the end of the others.
        let one = sessions(&app, "?clientId=client-2").await;
        revoke(&app, one[0]["id"].as_str().unwrap()).await;
        read(&app, &other).await.refused(401, "token_revoked");
        read(&app, &alices).await.ok();
        read(&app, &bobs).await.ok();
        app.kernel.stop().await;
    });
}

/// Proves MS-8.
#[test]
fn what_ended_before_the_upgrade_does_not_open_again() {
    each("oauth_former_keys", |app| async move {
        let workshop = workshop(&app);
        let app = trusting(&app, &workshop);
        let alice = user(&app, "alice@acme.example", Some("viewer")).await;
        let bob = user(&app, "bob@acme.example", Some("viewer")).await;
        // A session that goes on stays the one that it is.
        let kept = open(&app, vec![former(&app, "kept", &alice, "client-1")])
            .await
            .remove(0);
        let token = of(&workshop, "alice", "client-1", "kept");
        read(&app, &token).await.ok();
        let active = sessions(&app, "?status=active").await;
        assert_eq!((active.len(), active[0]["id"].as_str()), (1, Some(kept.as_str())));
        revoke(&app, &kept).await;
        read(&app, &token).await.refused(401, "token_revoked");
        // One that is another's is not taken over, and stays.
        let others = open(&app, vec![former(&app, "others", &bob, "client-1")])
            .await
            .remove(0);
        read(&app, &of(&workshop, "alice", "client-1", "others"))
            .await
            .ok();
        assert_eq!(sessions(&app, "?status=active").await.len(), 2);
        // What was revoked is refused under any subject and client: who it was for is not known for certain.
        revoke(&app, &others).await;
        for (subject, client) in [("bob", "client-1"), ("bob", "client-2"), ("alice", "client-2")] {
            read(&app, &of(&workshop, subject, client, "others"))
                .await
                .refused(401, "unauthenticated");
        }
        // An end of all sessions of a client, and one by time.
        open(&app, vec![former(&app, "many", &alice, "client-3")]).await;
        let all = json!({ "clientId": "client-3", "confirm": true });
        app.write("POST", &format!("{SESSIONS}/revoke"), all).await.ok();
        read(&app, &of(&workshop, "alice", "client-3", "many"))
            .await
            .refused(401, "unauthenticated");
        let short = NewSession {
            expires_at: app.now().plus_secs(10),
            ..former(&app, "short", &alice, "client-1")
        };
        open(&app, vec![short]).await;
        app.advance(11);
        read(&app, &of(&workshop, "alice", "client-1", "short"))
            .await
            .refused(401, "unauthenticated");
        // Forgotten is ended as well.
        app.advance_ms(91 * 86_400 * 1000);
        mcp_sessions::sweep(&app.kernel).await.unwrap();
        mcp_sessions::retain(&app.kernel).await.unwrap();
        let late = self::workshop(&app);
        let again = trusting(&app, &late);
        read(&again, &of(&late, "bob", "client-1", "others"))
            .await
            .refused(401, "unauthenticated");
        read(&again, &of(&late, "bob", "client-1", "fresh")).await.ok();
        again.kernel.stop().await;
        app.kernel.stop().await;
    });
}

#[test]
fn a_clients_id_is_kept_whole_and_a_longer_one_refused() {
    each("oauth_long_clients", |app| async move {
        let workshop = workshop(&app);
        let app = trusting(&app, &workshop);
        user(&app, "alice@acme.example", Some("viewer")).await;
        let begin = format!("https://client.example/{}", "x".repeat(200));
        let (one, two) = (format!("{begin}/one"), format!("{begin}/two"));
        let longest = format!("{begin}{}", "y".repeat(2048 - begin.len()));
        for client in [&one, &two, &longest] {
            read(&app, &of(&workshop, "alice", client, "s")).await.ok();
        }
        read(&app, &of(&workshop, "alice", &format!("{longest}y"), "s"))
            .await
            .refused(401, "unauthenticated");
        for client in [&one, &two, &longest] {
            let found = sessions(&app, &format!("?{}", encoded(&[("clientId", client)]))).await;
            assert_eq!(found.len(), 1);
            assert_eq!(found[0]["mcpClientId"], **client);
        }
        let end = async |client: &str| {
            let body = json!({ "clientId": client, "confirm": true });
            let reply = app.write("POST", &format!("{SESSIONS}/revoke"), body).await;
            reply.ok().clone()
        };
        let ended = end(&one).await;
        assert_eq!((&ended["count"], ended.get("warnings")), (&json!(1), None));
        read(&app, &of(&workshop, "alice", &one, "s"))
            .await
            .refused(401, "token_revoked");
        read(&app, &of(&workshop, "alice", &two, "s")).await.ok();
        // A revocation that ends nothing says so.
        let nothing = end(&begin).await;
        assert_eq!(nothing["count"], 0);
        assert_eq!(nothing["warnings"][0]["code"], "nothing_to_revoke");
        // A session whose client's id an earlier program cut makes way for the whole one.
        let cut: String = two.chars().take(128).collect();
        let alice = sessions(&app, "").await[0]["consoleUserId"]
            .as_str()
            .unwrap()
            .to_owned();
        let old = open(&app, vec![former(&app, "cut", &alice, &cut)])
            .await
            .remove(0);
        for client in [&two, &longest] {
            read(&app, &of(&workshop, "alice", client, "cut")).await.ok();
        }
        let old = app.get(&format!("{SESSIONS}/{old}")).await.ok()["session"].clone();
        assert_eq!(old["revokeReason"], "superseded");
        app.kernel.stop().await;
    });
}

#[test]
fn two_long_names_at_mcp_are_two_clients() {
    each("oauth_long_names", |app| async move {
        let (_, token) = app.account("robot", "viewer", &["policies:read"]).await;
        let say = async |name: &str| {
            let call = json!({
                "jsonrpc": "2.0", "id": 1, "method": "initialize",
                "params": { "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": { "name": name, "version": "1" } },
            });
            let request = Request::post("/mcp")
                .header("host", "127.0.0.1")
                .header("authorization", format!("Bearer {token}"))
                .header("content-type", "application/json")
                .header("accept", "application/json, text/event-stream");
            let reply = answer(&app, request.body(Body::from(call.to_string())).unwrap()).await;
            reply.status.as_u16()
        };
        let begin = "n".repeat(300);
        let names = [format!("{begin}-one"), format!("{begin}-two"), "n".repeat(2048)];
        for name in &names {
            assert_eq!(say(name).await, 200);
        }
        assert_eq!(say(&"n".repeat(2049)).await, 400);
        for name in &names {
            let found = sessions(&app, &format!("?clientId={name}")).await;
            assert_eq!(found.len(), 1, "{name}");
            assert_eq!(found[0]["mcpClientId"], **name);
        }
        assert_eq!(sessions(&app, "").await.len(), 3);
    });
}

#[test]
fn a_session_lists_the_scopes_that_its_tokens_had() {
    each("oauth_listed_scopes", |app| async move {
        let workshop = workshop(&app);
        let app = trusting(&app, &workshop);
        user(&app, "alice@acme.example", Some("viewer")).await;
        let with = |scope: &str| {
            token(&workshop, |claims| {
                claims["sub"] = "alice".into();
                claims["email"] = "alice@acme.example".into();
                claims["sid"] = "s".into();
                claims["scope"] = scope.into();
            })
        };
        let listed = async || sessions(&app, "").await[0]["scopes"].clone();
        let found = async |scope: &str| sessions(&app, &format!("?scope={scope}")).await.len();
        read(&app, &with("policies:read directory:read")).await.ok();
        assert_eq!(listed().await, json!(["directory:read", "policies:read"]));
        assert_eq!(found("service_accounts:rotate_any").await, 0);
        assert_eq!(found("fleet:read").await, 0);
        // A later token may say more, and an earlier one does not become more by it.
        read(&app, &with("policies:read fleet:read")).await.ok();
        let all = json!(["directory:read", "fleet:read", "policies:read"]);
        assert_eq!(listed().await, all);
        assert_eq!(found("fleet:read").await, 1);
        let narrow = with("fleet:read");
        assert_eq!(read(&app, &narrow).await.status.as_u16(), 403);
        assert_eq!(listed().await, all);
        app.kernel.stop().await;
    });
}

#[test]
fn a_session_of_an_issuer_ends_when_nobody_uses_it() {
    each("oauth_idle", |app| async move {
        let workshop = workshop(&app);
        let app = trusting(&app, &workshop);
        let alice = user(&app, "alice@acme.example", Some("viewer")).await;
        for sid in ["idle", "used"] {
            read(&app, &of(&workshop, "alice", "client-1", sid)).await.ok();
        }
        let both = sessions(&app, "").await;
        let id = |place: usize| both[place]["id"].as_str().unwrap().to_owned();
        let (idle, used) = (id(1), id(0));
        // What is no session of an issuer is not lengthened by uses.
        let other = NewSession {
            grant_key: fresh_key(),
            expires_at: app.now().plus_secs(29 * 86_400 + 1),
            ..former(&app, "x", &alice, "client-1")
        };
        let other = open(&app, vec![other]).await.remove(0);
        let touch = async |id: &str| {
            let used = Use {
                organization: app.org(),
                token_id: id.to_owned(),
                at: app.now(),
                source_ip: "192.0.2.1".parse().unwrap(),
            };
            unit(&app, move |ctx| mcp_sessions::touch(ctx, &used)).await;
        };
        app.clock.step_ms(29 * DAY_MS);
        // Whoever looks needs a token that lasts as long.
        let (_, admin) = app.account("late", "admin", &[]).await;
        let ended = async |id: &str| {
            let path = format!("{SESSIONS}/{id}");
            let reply = app.request("GET", &path).token(&admin).send().await;
            reply.ok()["session"].get("revokeReason").cloned()
        };
        let expired = Some(json!("expired"));
        assert_eq!((ended(&idle).await, ended(&used).await), (None, None));
        for id in [&used, &other] {
            touch(id).await;
        }
        app.clock.step_ms(DAY_MS);
        let seen = (ended(&idle).await, ended(&used).await, ended(&other).await);
        assert_eq!(seen, (expired.clone(), None, expired.clone()));
        // Ended is ended.
        touch(&idle).await;
        assert_eq!(ended(&idle).await, expired);
        // However much it is used, it ends 90 days after it began.
        for _ in 0..2 {
            app.clock.step_ms(28 * DAY_MS);
            touch(&used).await;
        }
        app.clock.step_ms(4 * DAY_MS - 3_600_000);
        assert_eq!(ended(&used).await, None);
        app.clock.step_ms(7_200_000);
        assert_eq!(ended(&used).await, expired);
        app.kernel.stop().await;
    });
}

#[test]
fn the_name_of_an_actor_follows_a_rename() {
    each("oauth_renamed_actor", |app| async move {
        let workshop = workshop(&app);
        let app = trusting(&app, &workshop);
        let alice = user(&app, "alice@acme.example", Some("viewer")).await;
        let bob = user(&app, "bob@acme.example", Some("viewer")).await;
        for subject in ["alice", "bob"] {
            read(&app, &of(&workshop, subject, "client-1", "s")).await.ok();
        }
        let rename = async |id: &str, name: &str| {
            let body = json!({ "displayName": name });
            app.write("PATCH", &format!("/directory/users/{id}"), body)
                .await
                .ok();
        };
        let found = async |query: &str| {
            let found = sessions(&app, &format!("?query={query}")).await;
            let names = found
                .iter()
                .map(|session| session["actorDisplay"].as_str().unwrap().to_owned());
            names.collect::<Vec<_>>()
        };
        rename(&alice, "Alice Liddell").await;
        assert_eq!(found("liddell").await, ["Alice Liddell"]);
        assert_eq!(found("alice@acme").await, Vec::<String>::new());
        assert_eq!(found("bob@acme").await, ["bob@acme.example"]);
        // Two names of one user come to be the same.
        read(&app, &of(&workshop, "alice", "client-2", "s")).await.ok();
        rename(&alice, "Alice").await;
        read(&app, &of(&workshop, "alice", "client-3", "s")).await.ok();
        assert_eq!(found("alice").await, ["Alice", "Alice", "Alice"]);
        rename(&bob, "Alice").await;
        assert_eq!(found("alice").await.len(), 4);
        rename(&alice, "Ada Lovelace").await;
        assert_eq!(found("alice").await, ["Alice"]);
        assert_eq!(found("lovelace").await.len(), 3);
        app.kernel.stop().await;
    });
}
