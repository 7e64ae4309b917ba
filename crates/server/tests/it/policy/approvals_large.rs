//! What two people do where there is much of it.

use super::approvals_gains::{HOLD_DEVICE, hold, machine_of, post};
use super::approvals_operations::{Request, able, admin, approve, lift, name, shown};
use super::approvals_people::Person;
use crate::areas::fleet::Machine;
use crate::support::{App, each, fresh_key, with_trio};
use provost_kernel::statements;
use serde_json::{Value, json};
use std::sync::Arc;

statements! {
    /// Has an organization have 20 000 machines more as a restore leaves them, made as one that there is.
    HOLD_MANY = "INSERT INTO devices (organization_id, id, seq, name, status, needs_approval, mode, platform, arch, key_thumbprint, key_protection, enrolment_token_id, created_at, updated_at, held_at) WITH RECURSIVE n(i) AS (SELECT CAST(1 AS BIGINT) UNION ALL SELECT i + 1 FROM n WHERE i < 20000) SELECT d.organization_id, SUBSTR(d.id, 1, LENGTH(d.id) - 5) || CAST(10000 + n.i AS TEXT), d.seq + n.i, d.name, 'active', n.i < 0, d.mode, d.platform, d.arch, d.key_thumbprint || CAST(n.i AS TEXT), d.key_protection, d.enrolment_token_id, d.created_at, d.updated_at, CAST(?3 AS BIGINT) FROM devices d CROSS JOIN n WHERE d.organization_id = ?1 AND d.id = ?2";
    /// Links somebody to an issuer by 200 subjects of 120 letters.
    LINK_MANY = "INSERT INTO oauth_identities (organization_id, issuer, subject, user_id, created_at) WITH RECURSIVE n(i) AS (SELECT CAST(1 AS BIGINT) UNION ALL SELECT i + 1 FROM n WHERE i < 200) SELECT CAST(?1 AS TEXT), 'https://login.example', 'a-subject-of-some-length-as-directories-make-them-with-a-tenant-and-an-object-0000000000000000000000000000-' || CAST(n.i AS TEXT), CAST(?2 AS TEXT), CAST(?3 AS BIGINT) FROM n";
}

/// Proves TW-2.
#[test]
fn what_a_restore_holds_back_is_read_by_its_ids() {
    each("approvals_large_held", |app: Arc<App>| async move {
        let (asker, bob) = (admin(&app, "ada").await, admin(&app, "bob").await);
        let machine = machine_of(&app, &asker).await;
        hold(&app, &HOLD_DEVICE, &machine).await;
        hold(&app, &HOLD_MANY, &machine).await;
        app.advance(120);
        name(&app, &["devices"]).await.ok();
        let ada = able(&app, &asker).await;
        let releasing = |last: &str| {
            let stem = &machine[..machine.len() - 5];
            let mut ids: Vec<String> = (10_001..10_100).map(|i| format!("{stem}{i}")).collect();
            ids.push(last.to_owned());
            post("/restore/release", json!({ "ids": ids })).confirmed()
        };
        // An id that is nothing's is not found before anybody is asked.
        let (nobody, key) = (releasing("dev_nobody"), fresh_key());
        let reply = nobody
            .send(&app, &ada, "requestApproval=true", "held", &key)
            .await;
        reply.refused(404, "not_found");
        let request = releasing(&machine);
        let approval = request.ask(&app, &ada, "held", &fresh_key()).await;
        let standing = shown(&app, &approval).await["preview"]["operation"]["request"]["standing"].clone();
        assert_eq!(standing["held"].as_array().unwrap().len(), 100);
        approve(&app, &bob, &approval).await;
        let done = request.with(&app, &ada, &approval, "held").await;
        assert_eq!(done.ok()["deviceIds"].as_array().unwrap().len(), 100);
        let left = app.get("/restore/held?limit=1").await;
        assert_eq!(left.ok()["total"], json!(20_001 - 100), "{}", left.text());
    });
}

/// Proves TW-2.
#[test]
fn the_links_of_an_issuer_are_removed_by_two_however_many_they_are() {
    each("approvals_large_links", |app: Arc<App>| async move {
        let (asker, bob) = (admin(&app, "ada").await, admin(&app, "bob").await);
        let (plain, vera) = (
            Person::of(&app, "plain", "viewer").await,
            Person::of(&app, "vera", "viewer").await,
        );
        let nobody = json!({ "loginName": fresh_key() });
        let nobody = app.write("POST", "/directory/users", nobody).await;
        let nobody = nobody.ok()["user"]["id"].as_str().unwrap().to_owned();
        hold(&app, &LINK_MANY, &plain.id).await;
        let link = async |user: &str| {
            let link = json!({ "issuer": "https://login.example", "subject": fresh_key(), "userId": user });
            app.write("POST", "/directory/identity-links", link).await.ok();
        };
        app.advance(120);
        name(&app, &["removals"]).await.ok();
        let ada = able(&app, &asker).await;
        let all = json!({ "issuer": "https://login.example", "all": true });
        let request = post("/directory/identity-links/remove", all).confirmed();
        let approval = request.ask(&app, &ada, "taken over", &fresh_key()).await;
        let standing = shown(&app, &approval).await["preview"]["operation"]["request"]["standing"].clone();
        let who = json!({ "id": plain.id, "loginName": plain.login, "permissionRole": "viewer" });
        assert_eq!(
            standing,
            json!({ "identityLinks": { "atLeast": 100 }, "users": [who] })
        );
        // Who has no role and signs in meanwhile changes nothing; who has one makes it another act.
        link(&nobody).await;
        approve(&app, &bob, &approval).await;
        let done = request.with(&app, &ada, &approval, "taken over").await;
        let removed: &Vec<Value> = done.ok()["removed"].as_array().unwrap();
        assert_eq!((removed.len(), &done.json["remaining"]), (200, &json!(1)));
        let approval = request.ask(&app, &ada, "the rest", &fresh_key()).await;
        link(&vera.id).await;
        approve(&app, &bob, &approval).await;
        request
            .with(&app, &ada, &approval, "the rest")
            .await
            .refused(409, "approval_mismatch");
    });
}

/// Proves PV-1.
#[test]
fn whom_a_request_falls_to_says_nobody_whose_a_machine_is() {
    each("approvals_large_falls", |app: Arc<App>| async move {
        let (asker, bob) = (admin(&app, "ada").await, admin(&app, "bob").await);
        admin(&app, "eve").await;
        let (bobs, nobodys) = (machine_of(&app, &bob).await, Machine::new(&app).await.id);
        for machine in [&bobs, &nobodys] {
            let path = format!("/devices/{machine}/quarantine");
            app.write("POST", &path, json!({})).await.ok();
        }
        let route = json!({ "name": "bob", "match": { "kind": "operation" }, "approvers": { "users": [bob.id] }, "quorum": 1,
            "deadlineSeconds": 3600, "onDeadline": "deny" });
        let routes = json!({ "routes": [route], "expectedRevision": 0, "confirm": true });
        app.write("PUT", "/approval-routes", routes).await.ok();
        app.advance(120);
        name(&app, &["devices"]).await.ok();
        let ada = able(&app, &asker).await;
        let falls = async |machine: &str| {
            let request = post(&format!("/devices/{machine}/release"), json!({}));
            let id = request.ask(&app, &ada, "again", &fresh_key()).await;
            let one = shown(&app, &id).await["route"]["fallsToAdmins"].clone();
            let listed = app.get("/approvals?state=pending").await.ok()["approvals"].clone();
            let listed = listed
                .as_array()
                .unwrap()
                .iter()
                .find(|one| one["id"] == json!(id));
            assert_eq!(listed.unwrap()["route"]["fallsToAdmins"], one);
            let path = format!("/approvals/{id}/cancel");
            let call = app.request("POST", &path).token(&ada);
            let canceled = call.json(with_trio(json!({}), &fresh_key())).send().await;
            assert_eq!(canceled.ok()["approval"]["route"]["fallsToAdmins"], one);
            one
        };
        let seen = (falls(&bobs).await, falls(&nobodys).await);
        assert_eq!(seen, (json!(true), json!(false)), "people are shown");
        // Where acts of devices are named, two people set this; the operator lifts them for a moment.
        lift(&app).await;
        let hidden = json!({ "fleet": { "privacy": { "people": "pseudonymous", "hostNames": "hide" } } });
        app.write("PATCH", "/automation/settings", hidden).await.ok();
        name(&app, &["devices"]).await.ok();
        let seen = (falls(&bobs).await, falls(&nobodys).await);
        assert_eq!(seen, (Value::Null, Value::Null));
    });
}

/// Proves TW-2.
#[test]
fn who_asks_learns_nothing_by_it_that_the_session_may_not_read() {
    each("approvals_large_blind", |app: Arc<App>| async move {
        let (asker, bob) = (admin(&app, "ada").await, admin(&app, "bob").await);
        let vera = Person::of(&app, "vera", "viewer").await;
        app.advance(120);
        name(&app, &["removals"]).await.ok();
        let asking = ["mcp_approvals:read", "mcp_approvals:request", "directory:write"];
        let path = format!("/directory/users/{}", vera.id);
        let request = Request::bare("DELETE", &path).confirmed();
        let blind = asker.token_for(&app, &asking).await;
        let id = request.ask(&app, &blind, "gone", &fresh_key()).await;
        let sees = async |person: &Person, more: &[&str]| {
            let scopes: Vec<&str> = asking.iter().chain(more).copied().collect();
            let token = person.token_for(&app, &scopes).await;
            let shown = app.request("GET", &format!("/approvals/{id}")).token(&token);
            let shown = shown.send().await.ok()["approval"]["preview"]["operation"]["request"].clone();
            assert_eq!(shown["path"]["userId"], json!(vera.id), "{shown}");
            shown["standing"].to_string().contains(&vera.login)
        };
        let people = ["directory:read", "service_accounts:read"];
        assert!(!sees(&asker, &[]).await, "who asks");
        assert!(!sees(&asker, &people[..1]).await, "who reads users alone");
        // The scope that the request needs implies that of reading users.
        assert!(sees(&asker, &people[1..]).await, "who reads accounts besides");
        assert!(sees(&asker, &people).await, "who asks and reads people");
        assert!(sees(&bob, &["mcp_approvals:decide"]).await, "who says yes");
    });
}
