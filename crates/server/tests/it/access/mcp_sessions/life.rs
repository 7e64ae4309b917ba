//! How sessions begin, are used and end, and what a token may do afterwards.

use super::*;
use crate::access::oauth::{self, code, post, redeeming};
use crate::areas::directory::user;
use crate::areas::mcp_sessions::{new_session, open};
use crate::areas::oauth::{public_client, register};
use crate::mechanisms::same_commit::make_by_mcp;
use crate::support::{each, fresh_key, with_trio};
use provost_areas_platform::announcements::TokenRevoked;
use provost_kernel::credential::{Admission, McpClient, Use};

/// Proves MS-2.
#[test]
fn a_revocation_keeps_its_reason_and_is_said_once() {
    each("sessions_revoke", |app: Arc<App>| async move {
        let new = new_session(&app, "a client");
        let id = open(&app, vec![new.clone()]).await.remove(0);
        let before = seen(&app, &id).await;
        assert_eq!(before["status"], "active");
        assert_eq!(before["lastUsedAt"], before["issuedAt"]);
        assert!(before.get("revokedAt").is_none() && before.get("revokeReason").is_none());
        app.advance(5);
        let path = format!("{SESSIONS}/{id}/revoke");
        let call = |reason: &str| {
            let body = json!({ "reason": reason, "idempotencyKey": fresh_key() });
            app.request("POST", &path).json(body).send()
        };
        for word in [
            "expired",
            "user_suspended",
            "Superseded",
            "service_account_disabled",
        ] {
            call(word).await.refused(400, "invalid_request");
        }
        // What is malformed is counted, not written (D12.4).
        let entries = app.entries(&app.organization, 0).await;
        assert!(
            entries
                .iter()
                .all(|entry| entry["outcome"]["code"] != "invalid_request"),
            "{entries:?}"
        );
        let first = call("laptop lost").await;
        let after = first.ok()["session"].clone();
        assert_eq!(after["status"], "revoked");
        assert_eq!(after["revokeReason"], "laptop lost");
        assert_eq!(after["revokedAt"], json!(app.now()));
        assert_eq!(refusal(&app, &new.grant_key).await, Some(Code::TokenRevoked));
        app.advance(5);
        assert_eq!(call("once more").await.ok()["session"], after);
        let events = app.events(0).await;
        let kinds: Vec<&str> = events.iter().map(|(kind, _)| kind.as_str()).collect();
        assert_eq!(
            kinds.iter().filter(|kind| **kind == "mcp.session.issued").count(),
            1
        );
        assert_eq!(
            kinds
                .iter()
                .filter(|kind| **kind == "mcp.session.revoked")
                .count(),
            1
        );
        // Ended is ended, whatever the clock says.
        app.clock.step_ms(-3_000_000);
        assert_eq!(seen(&app, &id).await, after);
        assert_eq!(refusal(&app, &new.grant_key).await, Some(Code::TokenRevoked));
        // The same grant has this session for good.
        assert_eq!(open(&app, vec![new]).await, [id]);
    });
}

/// Proves MS-2.
#[test]
fn a_session_ends_with_its_time_and_stays_ended() {
    each("sessions_expiry", |app: Arc<App>| async move {
        let new = new_session(&app, "a client");
        let id = open(&app, vec![new.clone()]).await.remove(0);
        let session_id = mcp_sessions::SessionId::from_text(&id);
        app.advance_ms(3_600_000 - 1);
        assert_eq!(seen(&app, &id).await["status"], "active");
        // A refresh lets it live longer, never shorter.
        let (extended, until) = (session_id.clone(), app.now().plus_secs(60));
        unit(&app, move |ctx| mcp_sessions::extend(ctx, &extended, until))
            .await
            .unwrap();
        let (extended, sooner) = (session_id.clone(), app.now().plus_secs(1));
        unit(&app, move |ctx| mcp_sessions::extend(ctx, &extended, sooner))
            .await
            .unwrap();
        app.advance_ms(60_000 - 1);
        assert_eq!(seen(&app, &id).await["status"], "active");
        app.advance_ms(1);
        let ended = seen(&app, &id).await;
        assert_eq!(
            (&ended["status"], &ended["revokeReason"], &ended["revokedAt"]),
            (&json!("revoked"), &json!("expired"), &json!(until))
        );
        let late = session_id.clone();
        let error = unit(&app, move |ctx| {
            mcp_sessions::extend(ctx, &late, until.plus_secs(60))
        })
        .await;
        assert_eq!(error.unwrap_err().code(), Code::AlreadyTerminal);
        let late = session_id.clone();
        assert!(
            !unit(&app, move |ctx| mcp_sessions::end(ctx, &late, "token_reuse"))
                .await
                .unwrap()
        );
        app.advance(30);
        assert_eq!(mcp_sessions::sweep(&app.kernel).await.unwrap(), 1);
        assert_eq!(mcp_sessions::sweep(&app.kernel).await.unwrap(), 0);
        assert_eq!(seen(&app, &id).await, ended);
        app.clock.step_ms(-200_000);
        assert_eq!(seen(&app, &id).await, ended);
        assert_eq!(refusal(&app, &new.grant_key).await, Some(Code::TokenExpired));
        let expired = app.events(0).await;
        let expired: Vec<&Value> = expired
            .iter()
            .filter(|(kind, _)| kind == "mcp.session.expired")
            .map(|(_, data)| data)
            .collect();
        assert_eq!(expired.len(), 1);
        // Kept for 90 days behind its end.
        app.clock.step_ms(200_000 - 30_000);
        app.advance_ms(90 * 86_400 * 1000);
        assert_eq!(mcp_sessions::retain(&app.kernel).await.unwrap(), 0);
        app.advance_ms(1);
        assert_eq!(named(&app).await, (1, 1));
        assert_eq!(mcp_sessions::retain(&app.kernel).await.unwrap(), 1);
        assert_eq!(named(&app).await, (0, 0), "what it named is forgotten with it");
        assert!(presented(&app, &new.grant_key).await.is_none());
    });
}

#[test]
fn the_latest_use_is_noted() {
    each("sessions_use", |app: Arc<App>| async move {
        let id = open(&app, vec![new_session(&app, "a client")]).await.remove(0);
        let issued = app.now();
        let used_at = |secs: i64| {
            let used = Use {
                organization: app.org(),
                token_id: id.clone(),
                at: issued.plus_secs(secs),
                source_ip: "192.0.2.7".parse().unwrap(),
            };
            unit(&app, move |ctx| mcp_sessions::touch(ctx, &used))
        };
        for (secs, shown) in [(59, 59), (60, 60), (100, 100), (30, 100), (120, 120), (90, 120)] {
            used_at(secs).await.unwrap();
            assert_eq!(
                seen(&app, &id).await["lastUsedAt"],
                json!(issued.plus_secs(shown)),
                "{secs}"
            );
        }
    });
}

/// Proves MS-6.
#[test]
fn a_session_acts_for_who_is_there_and_active() {
    each("sessions_actors", |app: Arc<App>| async move {
        let (ann, bob) = (
            user(&app, "ann@acme.example").await,
            user(&app, "bob@acme.example").await,
        );
        let (bot, _) = app
            .account("bot", "operator", &["policies:read", "fleet:read"])
            .await;
        let of = |actor: SessionActor| NewSession {
            actor,
            scopes: ScopeSet::of(&["policies:read", "registry:install"]),
            ..new_session(&app, "a client")
        };
        let display = || "somebody".to_owned();
        let sessions = [
            of(SessionActor::ConsoleUser {
                id: ann.clone(),
                display: display(),
            }),
            of(SessionActor::Agent {
                console_user: Some(ann.clone()),
                service_account: None,
                display: display(),
            }),
            of(SessionActor::ServiceAccount {
                id: bot.clone(),
                display: display(),
            }),
            of(SessionActor::ConsoleUser {
                id: bob.clone(),
                display: display(),
            }),
        ];
        let ids = open(&app, sessions.to_vec()).await;
        // Without a role a user may do nothing.
        let found = presented(&app, &sessions[0].grant_key).await.unwrap();
        assert_eq!(
            (found.kind, found.principal_id.as_str(), found.role),
            ("console_user", ann.as_str(), None)
        );
        assert_eq!(found.token_id, ids[0]);
        let role = json!({ "permissionRole": "operator" });
        app.write("PATCH", &format!("/directory/users/{ann}"), role)
            .await
            .ok();
        let actor = presented(&app, &sessions[1].grant_key)
            .await
            .unwrap()
            .authenticate(app.now())
            .unwrap();
        assert_eq!(actor.kind, "agent");
        assert_eq!(
            actor.permission.scopes.to_list(),
            ["policies:read", "registry:install"]
        );
        let actor = presented(&app, &sessions[2].grant_key)
            .await
            .unwrap()
            .authenticate(app.now())
            .unwrap();
        assert_eq!(
            (actor.id.as_str(), actor.permission.scopes.to_list()),
            (bot.as_str(), vec!["policies:read"])
        );
        assert!(presented(&app, "no grant").await.is_none());
        // Suspended: refused at once, ended for good.
        app.write("POST", &format!("/directory/users/{ann}/suspend"), json!({}))
            .await
            .ok();
        for place in [0, 1] {
            assert!(refusal(&app, &sessions[place].grant_key).await.is_some());
            assert_eq!(seen(&app, &ids[place]).await["revokeReason"], "user_suspended");
        }
        app.write("POST", &format!("/directory/users/{ann}/reactivate"), json!({}))
            .await
            .ok();
        assert_eq!(
            refusal(&app, &sessions[0].grant_key).await,
            Some(Code::TokenRevoked)
        );
        assert_eq!(refusal(&app, &sessions[3].grant_key).await, None);
        let gone = app.request("DELETE", &format!("/directory/users/{bob}"));
        let gone = gone
            .header("x-reason", "a test")
            .header("idempotency-key", &fresh_key());
        gone.header("x-confirm", "true").send().await.ok();
        assert!(refusal(&app, &sessions[3].grant_key).await.is_some());
        app.write("POST", &format!("/service-accounts/{bot}/disable"), json!({}))
            .await
            .ok();
        assert!(refusal(&app, &sessions[2].grant_key).await.is_some());
        assert_eq!(
            seen(&app, &ids[2]).await["revokeReason"],
            "service_account_disabled"
        );
    });
}

/// Proves MS-5.
#[test]
fn a_token_of_which_a_session_was_revoked_stays_out_of_mcp_until_it_is_rotated() {
    each("sessions_mcp", |app: Arc<App>| async move {
        let (bot, _) = app.account("bot", "viewer", &["policies:read"]).await;
        let token_id = |app: Arc<App>| {
            let bot = bot.clone();
            async move {
                app.seen(&bot).await["tokens"][0]["id"]
                    .as_str()
                    .unwrap()
                    .to_owned()
            }
        };
        let credential = |token: String| Credential {
            organization: app.org(),
            kind: "service_account",
            principal_id: bot.clone(),
            display: "bot".into(),
            role: provost_kernel::auth::Role::parse("viewer"),
            account_scopes: Some(ScopeSet::of(&["policies:read"])),
            token_scopes: None,
            enabled: true,
            token_id: token,
            prefix: String::new(),
            is_own: true,
            mac: vec![],
            pepper_id: String::new(),
            issued_at: None,
            expires_at: app.now().plus_secs(86_400),
            revoked_at: None,
            self_rotated: false,
            replay_pending: false,
            last_used_at: None,
            item: None,
            client: None,
            binding: provost_kernel::credential::Binding::Bearer,
        };
        let client = |id: &str| McpClient {
            id: id.to_owned(),
            display: None,
        };
        let admit = |credential: &Credential, id: &str| {
            let (credential, client) = (credential.clone(), client(id));
            unit(&app, move |ctx| {
                mcp_sessions::admit_at_mcp(&mut ctx.tx(), &credential, &client)
            })
        };
        let join = |credential: &Credential, id: &str| {
            let (credential, client) = (credential.clone(), client(id));
            unit(&app, move |ctx| {
                mcp_sessions::open_at_mcp(ctx, &credential, &client)
            })
        };
        let session_of = |admission: Admission| match admission {
            Admission::Known { session_id, .. } => session_id,
            other => panic!("{other:?}"),
        };
        let first = credential(token_id(app.clone()).await);
        assert_eq!(admit(&first, "one").await.unwrap(), Admission::New);
        join(&first, "one").await.unwrap();
        join(&first, "one").await.unwrap();
        let one = session_of(admit(&first, "one").await.unwrap());
        assert_eq!(seen(&app, &one).await["scopes"], json!(["policies:read"]));
        assert_eq!(admit(&first, "two").await.unwrap(), Admission::New);
        // Disabled and enabled: a new session.
        for act in ["disable", "enable"] {
            app.write("POST", &format!("/service-accounts/{bot}/{act}"), json!({}))
                .await
                .ok();
        }
        assert_eq!(seen(&app, &one).await["revokeReason"], "service_account_disabled");
        assert_eq!(admit(&first, "one").await.unwrap(), Admission::New);
        join(&first, "one").await.unwrap();
        let again = session_of(admit(&first, "one").await.unwrap());
        assert_ne!(one, again);
        assert_eq!(seen(&app, &one).await["status"], "revoked");
        join(&first, "two").await.unwrap();
        // Revoked by somebody: no name opens the door.
        app.write("POST", &format!("{SESSIONS}/{again}/revoke"), json!({}))
            .await
            .ok();
        for name in ["one", "two", "three"] {
            assert_eq!(admit(&first, name).await.unwrap(), Admission::Refused, "{name}");
            assert_eq!(
                join(&first, name).await.unwrap_err().code(),
                Code::TokenRevoked,
                "{name}"
            );
        }
        app.write("POST", &format!("/service-accounts/{bot}/tokens"), json!({}))
            .await
            .ok();
        let second = credential(token_id(app.clone()).await);
        assert_ne!(first.token_id, second.token_id);
        assert_eq!(admit(&second, "one").await.unwrap(), Admission::New);
        let page = app
            .get(&format!("{SESSIONS}?serviceAccountId={bot}&clientId=two"))
            .await;
        assert_eq!(page.ok()["sessions"][0]["revokeReason"], "superseded");
    });
}

#[test]
fn only_admins_see_and_revoke_sessions() {
    each("sessions_roles", |app: Arc<App>| async move {
        let id = open(&app, vec![new_session(&app, "a client")]).await.remove(0);
        for role in ["operator", "auditor", "viewer"] {
            let (_, token) = app.account(&format!("an {role}"), role, &[]).await;
            app.request("GET", SESSIONS)
                .token(&token)
                .send()
                .await
                .refused(403, "role_forbidden");
        }
        let (_, reader) = app.account("a reader", "admin", &["mcp:read"]).await;
        app.request("GET", SESSIONS).token(&reader).send().await.ok();
        let trio = || json!({ "reason": "a test", "idempotencyKey": fresh_key(), "clientId": "a client", "confirm": true });
        let bulk = app
            .request("POST", &format!("{SESSIONS}/revoke"))
            .token(&reader)
            .json(trio());
        bulk.send().await.refused(403, "insufficient_scope");
        let preview = json!({ "clientId": "a client" });
        let preview = app
            .request("POST", &format!("{SESSIONS}/revoke"))
            .token(&reader)
            .json(preview);
        assert_eq!(preview.send().await.ok()["count"], 1);
        for body in [
            json!({}),
            json!({ "clientId": "a", "consoleUserId": "b" }),
            json!({ "clientId": "" }),
        ] {
            app.write("POST", &format!("{SESSIONS}/revoke"), body)
                .await
                .refused(400, "invalid_request");
        }
        let (other, token) = app.other_organization("Other").await;
        let stranger = app.view_of(other, token);
        stranger
            .get(&format!("{SESSIONS}/{id}"))
            .await
            .refused(404, "not_found");
        let foreign = stranger
            .write("POST", &format!("{SESSIONS}/{id}/revoke"), json!({}))
            .await;
        foreign.refused(404, "not_found");
        assert_eq!(seen(&app, &id).await["status"], "active");
    });
}

#[test]
fn a_token_that_only_repeats_its_rotation_opens_no_session() {
    each("sessions_rotated", |app: Arc<App>| async move {
        let (id, token) = app.account("bot", "admin", &[]).await;
        let path = format!("/service-accounts/{id}/tokens");
        let rotate = app.request("POST", &path).token(&token);
        rotate.json(with_trio(json!({}), &fresh_key())).send().await.ok();
        let late = make_by_mcp(app.clone(), token, "late").await;
        late.refused(401, "token_revoked");
        assert_eq!(app.get(SESSIONS).await.ok()["total"], 0);
    });
}

#[test]
fn a_delegated_token_has_its_own_session_at_mcp_and_no_second_one() {
    each("sessions_delegated", |app: Arc<App>| async move {
        let client = register(&app, public_client("client")).await;
        let ann = oauth::user(&app, "ann@acme.example", Some("admin")).await;
        let code = code(&app, &client, &ann, &["mcp:write"], None).await;
        let reply = post(&app, "/oauth/token", &redeeming(&client, &code)).await;
        let token = reply.json["access_token"].as_str().unwrap().to_owned();
        for name in ["one", "two"] {
            // Its scopes do not show it this tool; it is known all the same.
            let said = make_by_mcp(app.clone(), token.clone(), name).await;
            assert!(said.ok().to_string().contains("unknown tool"), "{}", said.text());
        }
        let sessions = app.get(SESSIONS).await.ok().clone();
        assert_eq!(sessions["total"], 1, "{sessions}");
        assert_eq!(
            sessions["sessions"][0]["consoleUserId"],
            ann.as_str(),
            "{sessions}"
        );
    });
}

/// Proves MS-4.
#[test]
fn every_session_of_a_token_ends_with_it_and_says_why() {
    each("sessions_token_ends", |app: Arc<App>| async move {
        let of_token = |token: &str, life_secs: i64| NewSession {
            token_id: Some(token.to_owned()),
            expires_at: app.now().plus_secs(life_secs),
            ..new_session(&app, "client")
        };
        // More than are ended at once, and the newest of them have run out by then without being written down.
        let mut first = String::new();
        for life_secs in [60, 3_600, 60] {
            for _ in 0..12 {
                let news = (0..50).map(|_| of_token("many", life_secs)).collect();
                let ids = open(&app, news).await;
                if life_secs == 3_600 {
                    first.clone_from(&ids[0]);
                }
            }
        }
        app.advance(120);
        for (token, why, said) in [
            ("many", "revoked", "admin_revoked"),
            ("rotated", "rotated", "superseded"),
            ("reused", "token_reuse", "token_reuse"),
            ("deleted", "account_deleted", "service_account_disabled"),
        ] {
            let id = if token == "many" {
                first.clone()
            } else {
                open(&app, vec![of_token(token, 3_600)]).await.remove(0)
            };
            let (id_of_token, reason) = (token.to_owned(), why.to_owned());
            unit(&app, move |ctx| {
                ctx.announce(&TokenRevoked {
                    id: id_of_token.clone(),
                    reason: reason.clone(),
                })
            })
            .await
            .unwrap();
            assert_eq!(seen(&app, &id).await["revokeReason"], said);
        }
        let totals = ["active", "revoked", "expired"].map(|status| {
            let (app, path) = (app.clone(), format!("{SESSIONS}?status={status}"));
            async move { app.get(&path).await.ok()["total"].clone() }
        });
        let mut found = Vec::new();
        for total in totals {
            found.push(total.await);
        }
        // A total is exact to 1 000 (D7.8): 1 200 have expired.
        assert_eq!(found, [json!(0), json!(603), json!(1_000)]);
    });
}

#[test]
fn sessions_live_as_long_as_the_grace_of_their_token_and_end_with_a_restore() {
    each("sessions_grace", |app: Arc<App>| async move {
        let (bot, _) = app.account("bot", "viewer", &[]).await;
        let account = app.seen(&bot).await;
        let token = account["tokens"][0]["id"].as_str().unwrap().to_owned();
        let new = NewSession {
            token_id: Some(token),
            ..new_session(&app, "client")
        };
        let id = open(&app, vec![new]).await.remove(0);
        let path = format!("/service-accounts/{bot}/tokens");
        app.write("POST", &path, json!({ "gracePeriodSeconds": 600 }))
            .await
            .ok();
        app.clock.step_ms(599_999);
        assert_eq!(seen(&app, &id).await["status"], "active");
        app.advance_ms(1);
        assert_eq!(seen(&app, &id).await["revokeReason"], "expired");
        let others = (0..3).map(|_| new_session(&app, "another")).collect();
        let others = open(&app, others).await;
        unit(&app, |ctx| mcp_sessions::end_every(ctx, "restored"))
            .await
            .unwrap();
        for id in others {
            let ended = seen(&app, &id).await;
            assert_eq!(
                (&ended["status"], &ended["revokeReason"]),
                (&json!("revoked"), &json!("restored"))
            );
        }
    });
}
