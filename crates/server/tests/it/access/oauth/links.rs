//! Identity links: who is who, on whose word, and until when.

use super::identity::{of, sessions};
use super::*;
use crate::support::{each, fresh_key, with_trio};

const LINKS: &str = "/directory/identity-links";

async fn links(app: &App) -> Vec<(String, String)> {
    let page = app.get(LINKS).await;
    let text = |link: &Value, member: &str| link[member].as_str().unwrap().to_owned();
    let mut all: Vec<_> = page.ok()["identityLinks"]
        .as_array()
        .unwrap()
        .iter()
        .map(|link| (text(link, "subject"), text(link, "userId")))
        .collect();
    all.sort();
    all
}

async fn allow(app: &App, users: &[&str]) {
    let body = json!({ "issuer": ISSUER, "userIds": users, "expiresInSeconds": 3600 });
    app.write("POST", &format!("{LINKS}/allow"), body).await.ok();
    app.advance(1);
}

/// A token of a subject whose address the issuer vouches for.
fn vouched(workshop: &Workshop, subject: &str, email: &str, sid: &str) -> String {
    token(workshop, |claims| {
        claims["sub"] = subject.into();
        claims["email"] = email.into();
        claims["sid"] = sid.into();
    })
}

/// Proves IL-1.
#[test]
fn a_user_who_was_renamed_is_not_signed_in_by_somebody_new() {
    each("links_renamed", |app| async move {
        let workshop = workshop(&app);
        let app = trusting(&app, &workshop);
        let boss = user(&app, "boss@acme.example", Some("admin")).await;
        let known = user(&app, "known@acme.example", Some("viewer")).await;
        read(&app, &of(&workshop, "known", "client-1", "0")).await.ok();
        app.advance(1);
        for (id, name) in [(&boss, "eve@acme.example"), (&known, "renamed@acme.example")] {
            let body = json!({ "loginName": name });
            app.write("PATCH", &format!("/directory/users/{id}"), body)
                .await
                .ok();
        }
        let eve = |sid: &str| vouched(&workshop, "eve", "eve@acme.example", sid);
        read(&app, &eve("1")).await.refused(401, "unauthenticated");
        // In another case it is the same name, and was not changed.
        let fresh = user(&app, "fresh@acme.example", Some("viewer")).await;
        let body = json!({ "loginName": "Fresh@acme.example" });
        app.write("PATCH", &format!("/directory/users/{fresh}"), body)
            .await
            .ok();
        read(&app, &of(&workshop, "fresh", "client-1", "1")).await.ok();
        // Who was linked before stays who it is.
        read(&app, &of(&workshop, "known", "client-1", "2")).await.ok();
        // Put back, the name is still one that was changed.
        let body = json!({ "loginName": "boss@acme.example" });
        app.write("PATCH", &format!("/directory/users/{boss}"), body)
            .await
            .ok();
        read(&app, &vouched(&workshop, "boss", "boss@acme.example", "1"))
            .await
            .refused(401, "unauthenticated");
        app.advance(1);
        allow(&app, &[&boss]).await;
        read(&app, &vouched(&workshop, "boss", "boss@acme.example", "2"))
            .await
            .ok();
        assert_eq!(links(&app).await.len(), 3);
        app.kernel.stop().await;
    });
}

/// Proves IL-1.
#[test]
fn a_second_subject_is_linked_by_an_admin_or_once_where_one_allowed_it() {
    each("links_second", |app| async move {
        let workshop = workshop(&app);
        let app = trusting(&app, &workshop);
        let alice = user(&app, "alice@acme.example", Some("viewer")).await;
        let bob = user(&app, "bob@acme.example", Some("viewer")).await;
        let first = of(&workshop, "alice", "client-1", "1");
        let bobs = of(&workshop, "bob", "client-1", "1");
        read(&app, &first).await.ok();
        read(&app, &bobs).await.ok();
        let second = |sid: &str| vouched(&workshop, "alice-2", "alice@acme.example", sid);
        read(&app, &second("2")).await.refused(401, "unauthenticated");
        app.advance(1);
        // What is allowed for somebody else is not for her.
        allow(&app, &[&bob]).await;
        read(&app, &second("3")).await.refused(401, "unauthenticated");
        allow(&app, &[&alice]).await;
        read(&app, &second("4")).await.ok();
        let expected = [
            ("alice-2".to_owned(), alice.clone()),
            ("bob".to_owned(), bob.clone()),
        ];
        assert_eq!(links(&app).await, expected);
        // What the first one began has ended, and it is nobody now; nor is a third one anybody: it was once.
        read(&app, &first).await.refused(401, "token_revoked");
        read(&app, &of(&workshop, "alice", "client-1", "5"))
            .await
            .refused(401, "unauthenticated");
        let third = |sid: &str| vouched(&workshop, "alice-3", "alice@acme.example", sid);
        read(&app, &third("6")).await.refused(401, "unauthenticated");
        read(&app, &bobs).await.ok();
        // An admin links whom it likes: in place of the one before only if it says so.
        let body = json!({ "issuer": ISSUER, "subject": "alice-3", "userId": alice });
        app.write("POST", LINKS, body.clone())
            .await
            .refused(409, "already_exists");
        let mut replacing = body;
        replacing["replace"] = true.into();
        app.write("POST", LINKS, replacing).await.ok();
        read(&app, &third("7")).await.ok();
        let taken = json!({ "issuer": ISSUER, "subject": "bob", "userId": alice });
        app.write("POST", LINKS, taken)
            .await
            .refused(409, "already_exists");
        // Everybody, for as long as was said.
        app.advance(1);
        let all = json!({ "issuer": ISSUER, "all": true, "expiresInSeconds": 60 });
        app.write("POST", &format!("{LINKS}/allow"), all).await.ok();
        app.advance(1);
        read(&app, &second("8")).await.ok();
        app.advance(60);
        read(&app, &third("9")).await.refused(401, "unauthenticated");
        let eight = json!({ "issuer": ISSUER, "all": true, "expiresInSeconds": 7 * 86_400 + 1 });
        app.write("POST", &format!("{LINKS}/allow"), eight)
            .await
            .refused(400, "invalid_request");
        app.kernel.stop().await;
    });
}

/// Proves IL-2.
#[test]
fn what_came_by_a_link_that_was_taken_away_has_ended() {
    each("links_removed", |app| async move {
        let workshop = workshop(&app);
        let app = trusting(&app, &workshop);
        let alice = user(&app, "alice@acme.example", Some("viewer")).await;
        let bob = user(&app, "bob@acme.example", Some("viewer")).await;
        let client = register(&app, public_client("one")).await;
        let alices = of(&workshop, "alice", "client-1", "1");
        let bobs = of(&workshop, "bob", "client-1", "1");
        read(&app, &alices).await.ok();
        read(&app, &bobs).await.ok();
        let waiting = code(&app, &client, &alice, &["policies:read"], None).await;
        let remove = |body: Value| app.write("POST", "/directory/identity-links/remove", body);
        let one = json!({ "issuer": ISSUER, "subject": "alice" });
        remove(one.clone()).await.refused(400, "confirmation_required");
        let mut confirmed = one;
        confirmed["confirm"] = true.into();
        let removed = remove(confirmed.clone()).await;
        assert_eq!(removed.ok()["removed"][0]["subject"], "alice");
        read(&app, &alices).await.refused(401, "token_revoked");
        refused(
            &post(&app, "/oauth/token", &redeeming(&client, &waiting)).await,
            400,
            "invalid_grant",
        );
        read(&app, &bobs).await.ok();
        // The issuer's word alone does not bring it back.
        read(&app, &of(&workshop, "alice", "client-1", "2"))
            .await
            .refused(401, "unauthenticated");
        remove(confirmed).await.refused(404, "not_found");
        let entries = app.entries(&app.organization, 0).await;
        let entry = entries.iter().find(|entry| {
            entry["action"] == "removeHeadlessIdentityLinks" && entry["outcome"]["status"] == 200
        });
        assert!(
            entry.unwrap().to_string().contains("\"subject\":\"alice\""),
            "{entry:?}"
        );
        // All of an issuer; another issuer's are others.
        let elsewhere = json!({ "issuer": "https://other.example", "subject": "bob", "userId": bob });
        app.write("POST", LINKS, elsewhere).await.ok();
        let all = json!({ "issuer": ISSUER, "all": true, "confirm": true });
        let removed = remove(all).await;
        assert_eq!(
            (
                removed.ok()["removed"].as_array().unwrap().len(),
                &removed.json["remaining"]
            ),
            (1, &json!(0))
        );
        assert_eq!(links(&app).await, [("bob".to_owned(), bob.clone())]);
        read(&app, &bobs).await.refused(401, "token_revoked");
        for wrong in [
            json!({ "issuer": ISSUER, "confirm": true }),
            json!({ "issuer": ISSUER, "subject": "x", "all": true, "confirm": true }),
        ] {
            remove(wrong).await.refused(400, "invalid_request");
        }
        app.kernel.stop().await;
    });
}

/// Proves IL-3.
#[test]
fn a_link_ends_with_its_user() {
    each("links_users", |app| async move {
        let workshop = workshop(&app);
        let app = trusting(&app, &workshop);
        let alice = user(&app, "alice@acme.example", Some("viewer")).await;
        user(&app, "bob@acme.example", Some("viewer")).await;
        for subject in ["alice", "bob"] {
            read(&app, &of(&workshop, subject, "client-1", "1")).await.ok();
        }
        // Suspended is not gone.
        app.write("POST", &format!("/directory/users/{alice}/suspend"), json!({}))
            .await
            .ok();
        assert_eq!(links(&app).await.len(), 2);
        app.delete(&format!("/directory/users/{alice}")).await.ok();
        assert_eq!(links(&app).await.len(), 1);
        assert_eq!(sessions(&app, "?status=active").await.len(), 1);
        app.kernel.stop().await;
    });
}

/// Proves IL-4.
#[test]
fn who_links_a_user_holds_what_the_user_may_do() {
    each("links_rights", |app| async move {
        let admin = user(&app, "admin@acme.example", Some("admin")).await;
        let nobody = user(&app, "nobody@acme.example", None).await;
        let (_, narrow) = app.account("robot", "admin", &["directory:write"]).await;
        let (_, auditor) = app.account("auditor", "auditor", &["directory:read"]).await;
        let (_, operator) = app.account("operator", "operator", &["directory:read"]).await;
        let send = async |path: &str, body: Value| {
            let call = app.request("POST", &format!("{LINKS}{path}")).token(&narrow);
            call.json(with_trio(body, &fresh_key())).send().await
        };
        let link =
            |user: &str, subject: &str| json!({ "issuer": ISSUER, "subject": subject, "userId": user });
        send("", link(&admin, "a"))
            .await
            .refused(403, "escalation_forbidden");
        send("", link("usr_01kadh5j9v0000000000000001", "a"))
            .await
            .refused(404, "not_found");
        send("", link(&nobody, "b")).await.ok();
        let allowed = |users: Value| json!({ "issuer": ISSUER, "userIds": users, "expiresInSeconds": 60 });
        send("/allow", allowed(json!([admin])))
            .await
            .refused(403, "escalation_forbidden");
        send("/allow", allowed(json!([nobody, admin])))
            .await
            .refused(403, "escalation_forbidden");
        send(
            "/allow",
            json!({ "issuer": ISSUER, "all": true, "expiresInSeconds": 60 }),
        )
        .await
        .refused(403, "escalation_forbidden");
        send("/allow", allowed(json!([nobody]))).await.ok();
        // Taking away needs no more than the scope.
        app.write("POST", LINKS, link(&admin, "a")).await.ok();
        let taken = json!({ "issuer": ISSUER, "subject": "a", "confirm": true });
        send("/remove", taken).await.ok();
        app.request("GET", LINKS).token(&auditor).send().await.ok();
        app.request("GET", LINKS)
            .token(&operator)
            .send()
            .await
            .refused(403, "role_forbidden");
    });
}

// RH-2: found by the graph of rights.
/// Proves RH-2.
#[test]
fn nobody_releases_the_link_of_a_user_who_could_do_more() {
    each("links_released", |app| async move {
        let boss = user(&app, "boss@acme.example", Some("admin")).await;
        let nobody = user(&app, "nobody@acme.example", None).await;
        for id in [&boss, &nobody] {
            let body = json!({ "issuer": ISSUER, "subject": fresh_key(), "userId": id });
            app.write("POST", LINKS, body).await.ok();
        }
        // As after a restore, behind which somebody reactivated the users by their names.
        app.kernel
            .system(app.org(), Some("test.restored"), super::hold_every)
            .await
            .unwrap();
        let (_, narrow) = app.account("narrow", "admin", &["service_accounts:write"]).await;
        let release = async |token: &str, mut body: Value| {
            body["confirm"] = true.into();
            let call = app.request("POST", "/restore/release").token(token);
            call.json(with_trio(body, &fresh_key())).send().await
        };
        let held = async || {
            let held = app.get("/restore/held?kind=identity_link").await;
            held.ok()["total"].as_i64().unwrap()
        };
        for body in [json!({ "ids": [boss] }), json!({ "all": true })] {
            release(&narrow, body).await.refused(403, "escalation_forbidden");
            assert_eq!(held().await, 2);
        }
        // Who can do nothing is released by whoever has the scope.
        release(&narrow, json!({ "ids": [nobody] })).await.ok();
        release(&app.admin, json!({ "ids": [boss] })).await.ok();
        assert_eq!(held().await, 0);
    });
}
