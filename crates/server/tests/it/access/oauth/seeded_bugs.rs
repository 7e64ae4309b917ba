//! Who takes a role away, plants a link, and waits until the role is given back (IL-5); what a restore makes of it (RH-1).

use super::identity::{revoke, sessions};
use super::*;
use crate::areas::directory::{chunk, end, import, run_jobs};
use crate::support::{each, fresh_key, with_trio};

const LINKS: &str = "/directory/identity-links";
const BOB: &str = "bob@acme.example";

/// A server that trusts an issuer, and the token of a synchronization: `directory:write` and nothing else.
async fn scene(app: &App) -> (Workshop, Arc<App>, String) {
    let workshop = workshop(app);
    let app = trusting(app, &workshop);
    let (_, sync) = app.account("sync", "admin", &["directory:write"]).await;
    (workshop, app, sync)
}

async fn send(app: &App, token: &str, method: &str, path: &str, body: Value) -> Reply {
    let call = app.request(method, path).token(token);
    call.json(with_trio(body, &fresh_key())).send().await
}

/// A token of a subject whose address the issuer vouches for, in a new session.
fn vouched(workshop: &Workshop, subject: &str, email: &str) -> String {
    token(workshop, |claims| {
        claims["sub"] = subject.into();
        claims["email"] = email.into();
        claims["sid"] = fresh_key().into();
        claims["jti"] = fresh_key().into();
    })
}

fn link(user: &str, subject: &str) -> Value {
    json!({ "issuer": ISSUER, "subject": subject, "userId": user, "replace": true })
}

fn allowing(users: &[&str]) -> Value {
    json!({ "issuer": ISSUER, "userIds": users, "expiresInSeconds": 3600 })
}

async fn give(app: &App, user: &str, role: Value) -> Reply {
    let body = json!({ "permissionRole": role });
    app.write("PATCH", &format!("/directory/users/{user}"), body)
        .await
}

/// The subjects that an answer says are held.
fn held(reply: &Reply) -> Vec<&str> {
    let held = reply.ok()["heldIdentityLinks"].as_array();
    held.into_iter()
        .flatten()
        .map(|link| link["subject"].as_str().unwrap())
        .collect()
}

async fn subjects(app: &App, user: &str) -> Vec<String> {
    let page = app.get(&format!("{LINKS}?userId={user}")).await;
    let links = page.ok()["identityLinks"].as_array().unwrap().iter();
    links
        .map(|link| link["subject"].as_str().unwrap().to_owned())
        .collect()
}

/// Proves IL-5.
#[test]
fn who_plants_a_link_waits_for_a_role_in_vain() {
    each("planted_link", |app| async move {
        let (workshop, app, sync) = scene(&app).await;
        let bob = user(&app, BOB, Some("admin")).await;
        read(&app, &vouched(&workshop, "bob", BOB)).await.ok();
        let path = format!("/directory/users/{bob}");
        send(&app, &sync, "PATCH", &path, json!({ "permissionRole": null }))
            .await
            .ok();
        send(&app, &sync, "POST", LINKS, link(&bob, "eve")).await.ok();
        let eve = || vouched(&workshop, "eve", "eve@acme.example");
        read(&app, &eve()).await.refused(403, "role_forbidden");
        let given = give(&app, &bob, json!("admin")).await;
        assert_eq!(held(&given), ["eve"]);
        read(&app, &eve()).await.refused(401, "unauthenticated");
        let entries = app.entries(&app.organization, 0).await;
        let entry = entries.iter().rev().find(|entry| {
            entry["action"] == "updateHeadlessDirectoryUser" && entry["outcome"]["status"] == 200
        });
        let entry = entry.unwrap().to_string();
        assert!(
            entry.contains("heldIdentityLinks") && entry.contains("eve"),
            "{entry}"
        );
        let page = app.get(&format!("{LINKS}?userId={bob}")).await;
        assert!(
            page.ok()["identityLinks"][0]["heldAt"].is_string(),
            "{}",
            page.text()
        );
        // Nobody takes its place by themself, not even the one who was linked before and where an admin allows it.
        app.advance(1);
        app.write("POST", &format!("{LINKS}/allow"), allowing(&[&bob]))
            .await
            .ok();
        app.advance(1);
        read(&app, &vouched(&workshop, "bob", BOB))
            .await
            .refused(401, "unauthenticated");
        assert_eq!(subjects(&app, &bob).await, ["eve"]);
        // It is released as after a restore, by somebody who could give the role; then it stays followed.
        let waiting = app.get("/restore/held?kind=identity_link").await;
        assert_eq!(waiting.ok()["held"][0]["id"], bob.as_str());
        let (_, narrow) = app.account("narrow", "admin", &["service_accounts:write"]).await;
        let release = json!({ "ids": [bob], "confirm": true });
        send(&app, &narrow, "POST", "/restore/release", release.clone())
            .await
            .refused(403, "escalation_forbidden");
        app.write("POST", "/restore/release", release).await.ok();
        read(&app, &eve()).await.ok();
        for act in ["suspend", "reactivate"] {
            let done = app.write("POST", &format!("{path}/{act}"), json!({})).await;
            assert_eq!(held(&done), [""; 0]);
        }
        read(&app, &eve()).await.ok();
        // What an admin linked is followed with every role.
        app.write("POST", LINKS, link(&bob, "bob")).await.ok();
        for role in [Value::Null, json!("viewer"), json!("admin")] {
            assert_eq!(held(&give(&app, &bob, role).await), [""; 0]);
        }
        read(&app, &vouched(&workshop, "bob", "")).await.ok();
        app.kernel.stop().await;
    });
}

/// Proves IL-5.
#[test]
fn what_was_allowed_for_somebody_without_a_role_ends_with_the_role() {
    each("planted_allowance", |app| async move {
        let (workshop, app, sync) = scene(&app).await;
        let (cat, dan) = (
            user(&app, "cat@acme.example", None).await,
            user(&app, "dan@acme.example", None).await,
        );
        let other = |subject: &str, name: &str| vouched(&workshop, subject, &format!("{name}@acme.example"));
        for (subject, name) in [("cat", "cat"), ("dan", "dan")] {
            read(&app, &other(subject, name))
                .await
                .refused(403, "role_forbidden");
        }
        app.advance(1);
        send(
            &app,
            &sync,
            "POST",
            &format!("{LINKS}/allow"),
            allowing(&[&cat, &dan]),
        )
        .await
        .ok();
        app.advance(1);
        assert_eq!(held(&give(&app, &cat, json!("viewer")).await), [""; 0]);
        read(&app, &other("cat-2", "cat"))
            .await
            .refused(401, "unauthenticated");
        read(&app, &other("cat", "cat")).await.ok();
        // Used before the role was given, it made a link that reaches no further than who allowed it.
        read(&app, &other("dan-2", "dan"))
            .await
            .refused(403, "role_forbidden");
        assert_eq!(held(&give(&app, &dan, json!("viewer")).await), ["dan-2"]);
        read(&app, &other("dan-2", "dan"))
            .await
            .refused(401, "unauthenticated");
        // What an admin allows after it serves, once the held link is taken away.
        let removal = json!({ "issuer": ISSUER, "subject": "dan-2", "confirm": true });
        app.write("POST", &format!("{LINKS}/remove"), removal).await.ok();
        app.advance(1);
        app.write("POST", &format!("{LINKS}/allow"), allowing(&[&dan]))
            .await
            .ok();
        app.advance(1);
        read(&app, &other("dan-3", "dan")).await.ok();
        app.kernel.stop().await;
    });
}

/// Proves IL-5.
#[test]
fn a_link_reaches_no_further_than_who_renamed_its_user() {
    each("planted_name", |app| async move {
        let (workshop, app, sync) = scene(&app).await;
        // By the API: she links herself under her own name, and then he is called what somebody else is.
        let user_of = |reply: &Reply| reply.ok()["user"]["id"].as_str().unwrap().to_owned();
        let made = send(
            &app,
            &sync,
            "POST",
            "/directory/users",
            json!({ "loginName": "eve@acme.example" }),
        )
        .await;
        let bob = user_of(&made);
        read(&app, &vouched(&workshop, "eve", "eve@acme.example"))
            .await
            .refused(403, "role_forbidden");
        let path = format!("/directory/users/{bob}");
        send(&app, &sync, "PATCH", &path, json!({ "loginName": BOB }))
            .await
            .ok();
        assert_eq!(held(&give(&app, &bob, json!("admin")).await), ["eve"]);
        read(&app, &vouched(&workshop, "eve", "eve@acme.example"))
            .await
            .refused(401, "unauthenticated");
        // By a file; and whom a file renamed is not linked by the name alone.
        let body = json!({ "loginName": "mallory@acme.example", "externalId": "x1" });
        let dan = user_of(&app.write("POST", "/directory/users", body).await);
        let body = json!({ "loginName": "old@acme.example", "externalId": "x2" });
        let ann = user_of(&app.write("POST", "/directory/users", body).await);
        read(&app, &vouched(&workshop, "mallory", "mallory@acme.example"))
            .await
            .refused(403, "role_forbidden");
        let file = import(&app, json!({ "format": "jsonl", "mode": "merge" })).await;
        let lines = "{\"type\":\"user\",\"loginName\":\"dan@acme.example\",\"externalId\":\"x1\"}\n\
                     {\"type\":\"user\",\"loginName\":\"new@acme.example\",\"externalId\":\"x2\"}";
        chunk(&app, &file, 1, lines).await.ok();
        end(&app, &file, "apply").await.ok();
        run_jobs(&app).await;
        assert_eq!(held(&give(&app, &dan, json!("viewer")).await), ["mallory"]);
        read(&app, &vouched(&workshop, "new", "new@acme.example"))
            .await
            .refused(401, "unauthenticated");
        assert_eq!(subjects(&app, &ann).await, [""; 0]);
        app.kernel.stop().await;
    });
}

/// Proves RH-1.
#[test]
fn a_restore_leaves_no_allowance_and_lets_nobody_take_the_place_of_a_held_link() {
    each("planted_restore", |app| async move {
        let (workshop, app, _) = scene(&app).await;
        let ann = user(&app, "ann@acme.example", None).await;
        let under = |subject: &str| vouched(&workshop, subject, "ann@acme.example");
        read(&app, &under("ann-1")).await.refused(403, "role_forbidden");
        app.advance(1);
        for body in [
            allowing(&[&ann]),
            json!({ "issuer": ISSUER, "all": true, "expiresInSeconds": 86_400 }),
        ] {
            app.write("POST", &format!("{LINKS}/allow"), body).await.ok();
        }
        app.advance(1);
        let restored = super::hold_every;
        app.kernel
            .system(app.org(), Some("test.restored"), restored)
            .await
            .unwrap();
        read(&app, &under("ann-2")).await.refused(401, "unauthenticated");
        assert_eq!(subjects(&app, &ann).await, ["ann-1"]);
        // What is allowed anew helps nobody while the link is held, and serves when it is released.
        app.write("POST", &format!("{LINKS}/allow"), allowing(&[&ann]))
            .await
            .ok();
        app.advance(1);
        read(&app, &under("ann-2")).await.refused(401, "unauthenticated");
        let total = app.get("/restore/held?kind=identity_link").await.ok()["total"].clone();
        assert_eq!(total, 1);
        let release = json!({ "ids": [ann], "confirm": true });
        app.write("POST", "/restore/release", release).await.ok();
        read(&app, &under("ann-2")).await.refused(403, "role_forbidden");
        app.kernel.stop().await;
    });
}

mod ends {
    //! What came by a session ends with it (SK-8).

    use super::*;
    use provost_kernel::{params, statements};

    statements! {
        CUT = "INSERT INTO mcp_session_cuts (organization_id, subject, cut_seq, ended_at, revoke_reason) VALUES (?1, ?2, 9223372036854775807, ?3, 'admin_revoked')";
    }

    const RIGHTS: [&str; 2] = ["registry:install", "policies:read"];

    async fn gateway(app: &App, token: &str) -> String {
        let receipt = app.install(token, "reading", &fresh_key()).await;
        receipt.ok()["gatewayToken"]["token"].as_str().unwrap().to_owned()
    }

    async fn fetch(app: &App, token: &str) -> Reply {
        let call = app.request("GET", "/skill-registry/reading/content");
        call.token(token).send().await
    }

    async fn linked(app: &App, workshop: &Workshop, name: &str) -> (String, String) {
        let id = user(app, &format!("{name}@acme.example"), Some("viewer")).await;
        let of_name = token(workshop, |claims| {
            claims["sub"] = name.into();
            claims["email"] = format!("{name}@acme.example").into();
            claims["sid"] = fresh_key().into();
            claims["scope"] = RIGHTS.join(" ").into();
        });
        (id, gateway(app, &of_name).await)
    }

    /// Proves SK-8.
    #[test]
    fn a_gateway_token_ends_with_the_session_that_made_it() {
        each("gateway_session", |app| async move {
            let (workshop, app, _) = scene(&app).await;
            app.skill("reading").await;
            let (ann, anns) = linked(&app, &workshop, "ann").await;
            let (bob, bobs) = linked(&app, &workshop, "bob").await;
            let (_, cats) = linked(&app, &workshop, "cat").await;
            let (_, dans) = linked(&app, &workshop, "dan").await;
            let (eve, eves) = linked(&app, &workshop, "eve").await;
            for token in [&anns, &bobs, &cats, &dans, &eves] {
                fetch(&app, token).await.ok();
            }
            // One session, all of a user, the link, all of a client.
            let own = sessions(&app, "?status=active").await;
            let own = own
                .iter()
                .find(|session| session["consoleUserId"] == ann.as_str());
            revoke(&app, own.unwrap()["id"].as_str().unwrap()).await;
            fetch(&app, &anns).await.refused(401, "token_revoked");
            let all = json!({ "consoleUserId": bob, "confirm": true });
            app.write("POST", "/mcp/sessions/revoke", all).await.ok();
            fetch(&app, &bobs).await.refused(401, "token_revoked");
            let removal = json!({ "issuer": ISSUER, "subject": "cat", "confirm": true });
            app.write("POST", &format!("{LINKS}/remove"), removal).await.ok();
            fetch(&app, &cats).await.refused(401, "token_revoked");
            fetch(&app, &dans).await.ok();
            let mut client = public_client("installer");
            client["scopes"] = json!(RIGHTS);
            let client = register(&app, client).await;
            let flo = user(&app, "flo@acme.example", Some("viewer")).await;
            let code = code(&app, &client, &flo, &RIGHTS, None).await;
            let answer = post(&app, "/oauth/token", &redeeming(&client, &code)).await;
            let token = answer.ok()["access_token"].as_str().unwrap().to_owned();
            let fifth = gateway(&app, &token).await;
            fetch(&app, &fifth).await.ok();
            let path = format!("/mcp/clients/{client}");
            app.write("PATCH", &path, json!({ "blocked": true })).await.ok();
            fetch(&app, &fifth).await.refused(401, "token_revoked");
            app.write("PATCH", &path, json!({ "blocked": false })).await.ok();
            fetch(&app, &fifth).await.refused(401, "token_revoked");
            // An end that a job is still to write down.
            let subject = format!("user:{eve}");
            let cut = move |ctx: &mut OperationContext<'_>| {
                let (org, now) = (ctx.org(), ctx.now());
                ctx.queue(&CUT, params![org, subject.as_str(), now])
            };
            app.kernel.system(app.org(), Some("test.cut"), cut).await.unwrap();
            fetch(&app, &eves).await.refused(401, "token_revoked");
            // Sessions run out; what they made lives on until its own end, and its principal's.
            app.advance(40 * 86_400);
            app.settle().await;
            fetch(&app, &dans).await.ok();
            app.kernel.stop().await;
        });
    }

    /// Proves SK-8.
    #[test]
    fn a_gateway_token_ends_with_the_accounts_token_that_made_it_but_not_by_a_rotation() {
        each("gateway_token", |app| async move {
            app.skill("reading").await;
            for (how, goes_on) in [("rotate", true), ("revoke", false)] {
                let (account, token) = app.account(how, "operator", &RIGHTS).await;
                let own = gateway(&app, &token).await;
                fetch(&app, &own).await.ok();
                let tokens = format!("/service-accounts/{account}/tokens");
                let done = if goes_on {
                    app.write("POST", &tokens, json!({})).await
                } else {
                    let shown = app.get(&format!("/service-accounts/{account}")).await;
                    let id = shown.ok()["serviceAccount"]["tokens"][0]["id"]
                        .as_str()
                        .unwrap()
                        .to_owned();
                    let path = format!("{tokens}/{id}/revoke");
                    app.write("POST", &path, json!({ "confirm": true })).await
                };
                assert!(done.status.is_success(), "{}", done.text());
                let fetched = fetch(&app, &own).await;
                if goes_on {
                    fetched.ok();
                } else {
                    fetched.refused(401, "token_revoked");
                }
            }
            app.kernel.stop().await;
        });
    }
}
