//! Acts that one person alone does not do: each operation that can be named, by each way in which it could be done without a second person.

use super::approvals_people::Person;
use crate::areas;
use crate::areas::directory::{self, chunk, group, import, user};
use crate::areas::oauth::public_client;
use crate::samples;
use crate::support::{App, Reply, each, fresh_key, with_trio};
use provost_areas_platform::settings::{self, ActOfTwo};
use provost_kernel::OperationContext;
use provost_kernel::auth::Role;
use provost_kernel::operation::Entry;
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::sync::Arc;
use tokio::task::JoinSet;

const SETTINGS: &str = "/automation/settings";

/// One request, as it can be sent again and again.
pub struct Request {
    method: &'static str,
    path: String,
    /// Where its mutation metadata has no place in the body.
    in_headers: bool,
    confirm: bool,
    body: Option<Value>,
}

impl Request {
    fn of(entry: &Entry, target: &samples::Target) -> Self {
        let meta = entry.meta;
        let in_headers = meta.trio_in_headers();
        let has_body = entry.has_body && !areas::takes_no_member(meta.id);
        Self {
            method: meta.method.as_str(),
            path: samples::path(meta, target),
            in_headers,
            confirm: meta.confirm,
            body: (!in_headers || has_body).then(|| samples::body(meta, target)),
        }
        .naming_all(meta.id)
    }

    /// A whole of the settings names what is set.
    fn naming_all(mut self, operation: &str) -> Self {
        if operation == "updateHeadlessAutomationSettings"
            && let Some(body) = &mut self.body
        {
            body["approvals"] = json!({ "requireFor": all() });
        }
        self
    }

    pub fn json(method: &'static str, path: &str, body: Value) -> Self {
        Self {
            method,
            path: path.to_owned(),
            in_headers: false,
            confirm: false,
            body: Some(body),
        }
    }

    pub fn bare(method: &'static str, path: &str) -> Self {
        Self {
            method,
            path: path.to_owned(),
            in_headers: true,
            confirm: false,
            body: None,
        }
    }

    pub fn confirmed(mut self) -> Self {
        self.confirm = true;
        self
    }

    pub async fn send(&self, app: &App, token: &str, query: &str, reason: &str, key: &str) -> Reply {
        let mut path = self.path.clone();
        if !query.is_empty() {
            path.push(if path.contains('?') { '&' } else { '?' });
            path.push_str(query);
        }
        let mut call = app.request(self.method, &path).token(token);
        if self.in_headers {
            call = call.header("idempotency-key", key).header("x-reason", reason);
            if self.confirm {
                call = call.header("x-confirm", "true");
            }
            if let Some(body) = &self.body {
                call = call.json(body.clone());
            }
            return call.send().await;
        }
        let mut body = self.body.clone().unwrap_or_default();
        body["reason"] = reason.into();
        body["idempotencyKey"] = key.into();
        if self.confirm {
            body["confirm"] = true.into();
        }
        call.json(body).send().await
    }

    /// Asks for a second person, and returns the id of what waits.
    pub async fn ask(&self, app: &App, token: &str, reason: &str, key: &str) -> String {
        let reply = self.send(app, token, "requestApproval=true", reason, key).await;
        assert_eq!(
            reply.status.as_u16(),
            202,
            "{} {}: {}",
            self.method,
            self.path,
            reply.text()
        );
        assert_eq!(reply.json["state"], "pending");
        reply.json["approvalId"].as_str().unwrap().to_owned()
    }

    pub async fn with(&self, app: &App, token: &str, id: &str, reason: &str) -> Reply {
        let query = format!("approvalId={id}");
        self.send(app, token, &query, reason, &fresh_key()).await
    }
}

/// Names acts for two people, or none, as the first admin.
pub async fn name(app: &App, acts: &[&str]) -> Reply {
    let body = json!({ "approvals": { "requireFor": acts } });
    app.write("PATCH", SETTINGS, body).await
}

/// What the operator does where nobody is left who could say yes.
pub async fn lift(app: &App) {
    let run = |ctx: &mut OperationContext<'_>| settings::lift_acts_of_two(ctx);
    app.kernel
        .system(app.org(), Some("organization.recovered"), run)
        .await
        .unwrap();
}

/// An admin who can do all that admins can.
pub async fn admin(app: &App, name: &str) -> Person {
    Person::with(app, name, "admin", &scopes()).await
}

/// Signs somebody in for all of it.
pub async fn able(app: &App, person: &Person) -> String {
    person.token_for(app, &scopes()).await
}

fn scopes() -> Vec<&'static str> {
    Role::Admin.all_scopes().to_list()
}

pub fn all() -> Vec<&'static str> {
    ActOfTwo::ALL.iter().map(|act| act.as_str()).collect()
}

pub async fn shown(app: &App, id: &str) -> Value {
    app.get(&format!("/approvals/{id}")).await.ok()["approval"].clone()
}

pub async fn vote(app: &App, token: &str, id: &str) -> Reply {
    let digest = shown(app, id).await["preview"]["bindingDigest"].clone();
    let body = with_trio(
        json!({ "decision": "approve", "bindingDigest": digest }),
        &fresh_key(),
    );
    let path = format!("/approvals/{id}/decision");
    app.request("POST", &path).token(token).json(body).send().await
}

pub async fn approve(app: &App, by: &Person, id: &str) {
    let reply = vote(app, &by.token(app).await, id).await;
    assert_eq!(reply.ok()["approval"]["state"], "approved");
}

/// Refuses where a second person is missing, and says where what was named stands.
#[track_caller]
pub fn refused(reply: &Reply, status: Option<&str>, what: &str) {
    assert_eq!(
        (reply.status.as_u16(), reply.code(), reply.json["status"].as_str()),
        (403, "approval_required", status),
        "{what}: {}",
        reply.text()
    );
}

/// Proves TW-1, AP-1, AP-5, AP-15.
#[test]
fn what_gives_rights_is_done_once_by_who_asked_when_a_second_person_has_said_yes() {
    each("approvals_operations_rights", |app: Arc<App>| {
        all_of(app, "rights", 16)
    });
}

/// Proves TW-1, AP-15.
#[test]
fn what_deletes_is_done_once_by_who_asked_when_a_second_person_has_said_yes() {
    each("approvals_operations_removals", |app: Arc<App>| {
        all_of(app, "removals", 6)
    });
}

/// Proves TW-1, AP-15.
#[test]
fn what_changes_policies_is_done_once_by_who_asked_when_a_second_person_has_said_yes() {
    each("approvals_operations_policies", |app: Arc<App>| {
        all_of(app, "policies", 14)
    });
}

/// Proves TW-1, AP-15.
#[test]
fn what_is_about_machines_or_the_rule_is_done_once_by_who_asked_when_a_second_person_has_said_yes() {
    each("approvals_operations_devices", |app: Arc<App>| async move {
        all_of(app.clone(), "devices", 4).await;
        all_of(app, "", 3).await;
    });
}

/// Tries each operation whose first word this is, or that has none.
async fn all_of(app: Arc<App>, word: &'static str, at_least: usize) {
    // The acts that were named for the words before this one would keep the first admin from making people.
    lift(&app).await;
    let people = Arc::new([
        admin(&app, "ada").await,
        admin(&app, "bob").await,
        admin(&app, "eve").await,
    ]);
    // Whom somebody made just now does not vote on what they ask for.
    app.advance(120);
    let (mut tried, mut wrong) = (0, Vec::new());
    let entries: Vec<Entry> = app.kernel.registry.entries().to_vec();
    for entry in entries {
        let id = entry.meta.id;
        let is_of_word = |named: &[&'static str]| named.first().copied().unwrap_or_default() == word;
        if !entry
            .meta
            .second_person
            .is_some_and(|declared| is_of_word(declared.named))
        {
            continue;
        }
        tried += 1;
        let (app, people) = (app.clone(), people.clone());
        let mut alone = JoinSet::new();
        alone.spawn(async move { every_way(&app, &entry, &people).await });
        if alone.join_next().await.is_none_or(|joined| joined.is_err()) {
            wrong.push(id);
        }
    }
    assert!(wrong.is_empty(), "{wrong:?}");
    assert!(tried >= at_least, "{tried}");
}

async fn every_way(app: &App, entry: &Entry, [asker, bob, eve]: &[Person; 3]) {
    let id = entry.meta.id;
    let (ada, other) = (&able(app, asker).await, &able(app, eve).await);
    lift(app).await;
    let target = samples::fresh_target_of(app, entry).await;
    let mut request = Request::of(entry, &target);
    if id == "updateHeadlessDevice" {
        // A name and labels are no act of two.
        request.body.as_mut().unwrap()["ownerUserId"] = eve.id.as_str().into();
    }
    // Where the sample is about nobody who may say yes, the act is named by its word.
    name(app, &all()).await.ok();
    let key = fresh_key();
    refused(&request.send(app, ada, "", "now", &fresh_key()).await, None, id);
    let approval = request.ask(app, ada, "now", &key).await;
    // The same joins it, whatever its key.
    assert_eq!(request.ask(app, ada, "now", &fresh_key()).await, approval, "{id}");
    refused(
        &request.with(app, ada, &approval, "now").await,
        Some("pending"),
        id,
    );
    refused(&request.with(app, ada, "apr_nothing", "now").await, None, id);
    let canceled = request.ask(app, ada, "another reason", &fresh_key()).await;
    assert_ne!(canceled, approval, "{id}");
    let path = format!("/approvals/{canceled}/cancel");
    app.write("POST", &path, json!({})).await.ok();
    let reply = request.with(app, ada, &canceled, "another reason").await;
    refused(&reply, Some("canceled"), id);
    approve(app, bob, &approval).await;
    // Somebody else, another request, and both questions at once.
    refused(&request.with(app, other, &approval, "now").await, None, id);
    // An account has no part in it, whatever it may do otherwise.
    for query in ["", "requestApproval=true", &format!("approvalId={approval}")] {
        refused(
            &request.send(app, &app.admin, query, "now", &fresh_key()).await,
            None,
            id,
        );
    }
    let reply = request.with(app, ada, &approval, "another reason").await;
    reply.refused(409, "approval_mismatch");
    let both = format!("approvalId={approval}&requestApproval=true");
    let reply = request.send(app, ada, &both, "now", &fresh_key()).await;
    reply.refused(422, "invalid_definition");
    // What was refused used nothing, and no key: the one that asked performs.
    assert_eq!(shown(app, &approval).await["grant"]["uses"], json!([]), "{id}");
    let done = request
        .send(app, ada, &format!("approvalId={approval}"), "now", &key)
        .await;
    assert!(done.status.is_success(), "{id}: {} {}", done.status, done.text());
    assert_eq!(done.header("idempotent-replayed"), "", "{id}");
    let used = shown(app, &approval).await;
    assert_eq!(
        (&used["state"], used["grant"]["uses"].as_array().unwrap().len()),
        (&json!("used"), 1),
        "{id}"
    );
    // The same key answers what it answered, with and without the approval; another one performs nothing again.
    for query in ["", &format!("approvalId={approval}")] {
        let again = request.send(app, ada, query, "now", &key).await;
        assert_eq!((again.status, &again.bytes), (done.status, &done.bytes), "{id}");
        assert_eq!(again.header("idempotent-replayed"), "true", "{id}");
    }
    let again = request.with(app, ada, &approval, "now").await;
    // What it was about may be another by now, which makes it another request, or gone.
    let is_other = ["approval_mismatch", "not_found"].contains(&again.code());
    assert!(
        is_other || (again.code(), again.json["status"].as_str()) == ("approval_required", Some("used")),
        "{id}: {}",
        again.text()
    );
    // One that nobody used in time. What would be refused now, because it is done, is not asked for.
    let ada = &able(app, asker).await;
    let late = request
        .send(app, ada, "requestApproval=true", "later", &fresh_key())
        .await;
    if !is_other && late.status == 202 {
        let late = late.json["approvalId"].as_str().unwrap().to_owned();
        approve(app, bob, &late).await;
        app.advance(3_601);
        let ada = &able(app, asker).await;
        let reply = request.with(app, ada, &late, "later").await;
        assert!(
            matches!(reply.json["status"].as_str(), Some("expired")) || reply.code() == "approval_mismatch",
            "{id}: {}",
            reply.text()
        );
    }
}

/// Proves AP-15, AD-1.
#[test]
fn the_log_says_by_whose_approval_something_was_done_and_that_it_was_asked_for() {
    each("approvals_operations_log", |app: Arc<App>| async move {
        let (asker, bob) = (admin(&app, "ada").await, admin(&app, "bob").await);
        let (account, _) = app.account("mover", "viewer", &["policies:read"]).await;
        app.advance(120);
        name(&app, &["rights"]).await.ok();
        let ada = able(&app, &asker).await;
        let request = Request::json("POST", &format!("/service-accounts/{account}/tokens"), json!({}));
        request.send(&app, &ada, "", "now", &fresh_key()).await;
        let approval = request.ask(&app, &ada, "now", &fresh_key()).await;
        let preview = shown(&app, &approval).await["preview"]["operation"].clone();
        assert_eq!(preview["operationId"], "rotateHeadlessServiceAccountToken");
        assert_eq!(preview["request"]["path"]["serviceAccountId"], json!(account));
        assert_eq!(preview["request"]["body"]["reason"], "now");
        assert_eq!(preview["request"]["standing"]["permissionRole"], "viewer");
        approve(&app, &bob, &approval).await;
        request.with(&app, &ada, &approval, "now").await.ok();
        let entries = app.entries(&app.organization, 0).await;
        let of = |action: &str| -> Vec<&Value> {
            entries.iter().filter(|entry| entry["action"] == action).collect()
        };
        let asking = of("approvals.requested");
        assert_eq!(asking.len(), 1);
        assert_eq!(
            (&asking[0]["target"]["id"], &asking[0]["outcome"]["status"]),
            (&json!(approval), &json!(202))
        );
        let rotated = of("rotateHeadlessServiceAccountToken");
        let outcomes: Vec<&Value> = rotated
            .iter()
            .map(|entry| &entry["outcome"]["decision"])
            .collect();
        assert_eq!(outcomes, ["denied", "allowed"], "{rotated:?}");
        let changes = rotated[1]["changes"].as_array().unwrap();
        let named = changes
            .iter()
            .find(|change| change["path"] == "/approvalId")
            .unwrap();
        assert_eq!(named["after"], json!(approval));
    });
}

/// Proves AP-15.
#[test]
fn an_approval_that_nothing_came_of_stays_and_one_of_somebody_who_changed_does_not() {
    each("approvals_operations_kept", |app: Arc<App>| async move {
        let (asker, bob, eve) = (
            admin(&app, "ada").await,
            admin(&app, "bob").await,
            admin(&app, "eve").await,
        );
        let (account, _) = app.account("mover", "viewer", &["policies:read"]).await;
        app.advance(120);
        name(&app, &["rights"]).await.ok();
        let ada = able(&app, &asker).await;
        let path = format!("/service-accounts/{account}");
        let request = Request::json("POST", &format!("{path}/tokens"), json!({}));
        let first = request.ask(&app, &ada, "now", &fresh_key()).await;
        approve(&app, &bob, &first).await;
        // The operation refuses: neither happens.
        app.write("POST", &format!("{path}/disable"), json!({}))
            .await
            .ok();
        request
            .with(&app, &ada, &first, "now")
            .await
            .refused(409, "disabled");
        let kept = shown(&app, &first).await;
        assert_eq!(
            (&kept["state"], &kept["grant"]["uses"]),
            (&json!("approved"), &json!([]))
        );
        // It is about the account as it was: what changes of it makes it another request.
        lift(&app).await;
        app.write("POST", &format!("{path}/enable"), json!({})).await.ok();
        app.write(
            "PATCH",
            &path,
            json!({ "scopes": ["policies:read", "audit:read"] }),
        )
        .await
        .ok();
        name(&app, &["rights"]).await.ok();
        request
            .with(&app, &ada, &first, "now")
            .await
            .refused(409, "approval_mismatch");
        // Who said yes lost the right, or who asked can do something else.
        let second = request.ask(&app, &ada, "now", &fresh_key()).await;
        approve(&app, &eve, &second).await;
        app.write("POST", &format!("/directory/users/{}/suspend", eve.id), json!({}))
            .await
            .ok();
        refused(
            &request.with(&app, &ada, &second, "now").await,
            Some("void"),
            "the voter is suspended",
        );
        // Asking again makes room for another.
        let third = request.ask(&app, &ada, "now", &fresh_key()).await;
        assert_ne!(third, second);
        assert_eq!(shown(&app, &second).await["state"], "void");
        approve(&app, &bob, &third).await;
        request.with(&app, &ada, &third, "now").await.ok();
        // An asker who lost the role performs nothing, and one who has it again has to ask anew.
        let fourth = request.ask(&app, &ada, "again", &fresh_key()).await;
        approve(&app, &bob, &fourth).await;
        lift(&app).await;
        let role = async |role: &str| {
            let body = json!({ "permissionRole": role });
            app.write("PATCH", &format!("/directory/users/{}", asker.id), body)
                .await
                .ok();
        };
        role("operator").await;
        let reply = request.with(&app, &ada, &fourth, "again").await;
        assert!(matches!(reply.status.as_u16(), 401 | 403), "{}", reply.text());
        assert_eq!(shown(&app, &fourth).await["grant"]["uses"], json!([]));
    });
}

/// Proves AP-3.
#[test]
fn nobody_says_yes_to_what_they_ask_for_or_get() {
    each("approvals_operations_own", |app: Arc<App>| async move {
        let (asker, bob, eve) = (
            admin(&app, "ada").await,
            admin(&app, "bob").await,
            admin(&app, "eve").await,
        );
        let (account, _) = app.account("nobody's", "viewer", &["policies:read"]).await;
        let body = json!({ "name": "bob's", "permissionRole": "viewer", "scopes": ["policies:read"], "ownerConsoleUserId": bob.id });
        let made = app.write("POST", "/service-accounts", body).await;
        let bare = made.ok()["serviceAccount"]["id"].as_str().unwrap().to_owned();
        app.advance(120);
        name(&app, &["rights"]).await.ok();
        let rotate = Request::json("POST", &format!("/service-accounts/{account}/tokens"), json!({}));
        let ada = able(&app, &asker).await;
        let owned = json!({ "name": fresh_key(), "permissionRole": "viewer", "scopes": ["policies:read"], "ownerConsoleUserId": bob.id });
        let making = Request::json("POST", "/service-accounts", owned);
        let of_bob = app
            .write(
                "PATCH",
                &format!("/service-accounts/{bare}"),
                json!({ "description": "x" }),
            )
            .await;
        refused(&of_bob, None, "an account");
        let other = Request::json("POST", &format!("/service-accounts/{bare}/tokens"), json!({}));
        let cases = [
            (
                "who asked",
                rotate.ask(&app, &ada, "one", &fresh_key()).await,
                &asker,
            ),
            (
                "who gets it",
                making.ask(&app, &ada, "two", &fresh_key()).await,
                &bob,
            ),
            (
                "who owns what gets it",
                other.ask(&app, &ada, "three", &fresh_key()).await,
                &bob,
            ),
        ];
        for (what, approval, person) in cases {
            let reply = vote(&app, &person.token(&app).await, &approval).await;
            assert_eq!(
                (what, reply.code()),
                (what, "escalation_forbidden"),
                "{}",
                reply.text()
            );
            approve(&app, &eve, &approval).await;
        }
        // A service account says no yes.
        let waits = rotate.ask(&app, &ada, "four", &fresh_key()).await;
        vote(&app, &app.admin, &waits)
            .await
            .refused(403, "escalation_forbidden");
    });
}

/// Proves AP-16, SE-10.
#[test]
fn one_person_alone_takes_nothing_away_from_the_rule() {
    each("approvals_operations_rule", |app: Arc<App>| async move {
        let (asker, bob, eve) = (
            admin(&app, "ada").await,
            admin(&app, "bob").await,
            admin(&app, "eve").await,
        );
        let plain = user(&app, "plain@acme.test").await;
        let asleep = crate::access::oauth::user(&app, "asleep@acme.test", Some("admin")).await;
        app.write("POST", &format!("/directory/users/{asleep}/suspend"), json!({}))
            .await
            .ok();
        let (full, empty) = (group(&app, "deciders").await, group(&app, "others").await);
        app.request("PUT", &format!("/directory/groups/{full}/members/{}", eve.id))
            .json(with_trio(json!({}), &fresh_key()))
            .send()
            .await
            .ok();
        app.advance(120);
        // Naming one word is enough, and the weakest of them.
        name(&app, &["deciders"]).await.ok();
        let ada = able(&app, &asker).await;
        for attempt in attempts(&eve.id, &plain, &asleep, (&full, &empty))
            .as_array()
            .unwrap()
        {
            let text = |place: usize| attempt[place].as_str().unwrap();
            let (method, path) = (text(1), text(2));
            let request = if method == "DELETE" {
                Request::bare("DELETE", path)
            } else {
                let method = ["POST", "PUT", "PATCH"]
                    .into_iter()
                    .find(|known| *known == method);
                Request::json(method.unwrap(), path, attempt[3].clone())
            };
            let reply = request
                .confirmed()
                .send(&app, &ada, "", "now", &fresh_key())
                .await;
            refused(&reply, None, text(0));
        }
        touches_nobody(&app, &plain, &empty).await;
        imports(&app, &ada, &bob, &eve).await;
        let suspend = format!("/directory/users/{}/suspend", eve.id);
        app.write("POST", &suspend, json!({})).await.ok();
        // Two people do it.
        let off = Request::json("PATCH", SETTINGS, json!({ "approvals": { "requireFor": [] } }));
        let approval = off.ask(&app, &ada, "enough", &fresh_key()).await;
        approve(&app, &bob, &approval).await;
        off.with(&app, &ada, &approval, "enough").await.ok();
        app.write(
            "PATCH",
            SETTINGS,
            json!({ "tokens": { "defaultGraceSeconds": 5 } }),
        )
        .await
        .ok();
    });
}

/// What one admin would do to be two, or to take the rule away: what it is, method, path and body.
fn attempts(admin: &str, plain: &str, asleep: &str, (full, empty): (&str, &str)) -> Value {
    let of_user = |id: &str| format!("/directory/users/{id}");
    let member = |group: &str| format!("/directory/groups/{group}/members/{admin}");
    let links = "/directory/identity-links";
    let issuer = "https://login.example";
    let route = json!({ "name": "all", "match": {}, "approvers": { "roles": ["admin"] }, "quorum": 1, "deadlineSeconds": 60,
        "onDeadline": "deny" });
    json!([
        ["naming nothing", "PATCH", SETTINGS, { "approvals": { "requireFor": [] } }],
        ["naming nothing in a whole", "PUT", SETTINGS, { "approvals": { "requireFor": [] } }],
        ["naming something else", "PATCH", SETTINGS, { "approvals": { "requireFor": ["rights"] } }],
        ["another setting", "PATCH", SETTINGS, { "tokens": { "defaultGraceSeconds": 5 } }],
        ["a route", "PUT", "/approval-routes", { "routes": [route], "expectedRevision": 0 }],
        ["a new admin", "POST", "/directory/users", { "loginName": "puppet", "permissionRole": "admin" }],
        ["a role", "PATCH", of_user(plain), { "permissionRole": "admin" }],
        ["another name of an admin", "PATCH", of_user(admin), { "loginName": "mine@acme.test" }],
        ["an admin again", "POST", format!("{}/reactivate", of_user(asleep)), {}],
        ["a sign-in of an admin", "POST", links, { "issuer": issuer, "subject": "x", "userId": admin }],
        ["a new sign-in", "POST", format!("{links}/allow"), { "issuer": issuer, "userIds": [admin], "expiresInSeconds": 3600 }],
        ["no sign-in", "POST", format!("{links}/remove"), { "issuer": issuer, "subject": "x" }],
        ["an admin in a group", "PUT", member(empty), {}],
        ["an admin out of a group", "DELETE", member(full)],
        ["an admin who goes", "DELETE", of_user(admin)],
        ["a group of an admin", "DELETE", format!("/directory/groups/{full}")],
        ["a program with another address", "POST", "/mcp/clients", public_client("mine")],
        ["held changes", "POST", "/directory/held-changes/settle", { "drop": [] }],
        ["those who are held back", "POST", "/restore/release", { "all": true }],
    ])
}

/// What touches nobody who may say yes, one person still does; no word names it.
async fn touches_nobody(app: &App, plain: &str, group: &str) {
    let (account, _) = app.account("mover", "viewer", &["policies:read"]).await;
    for (method, path, body) in [
        (
            "PATCH",
            format!("/directory/users/{plain}"),
            json!({ "permissionRole": "viewer" }),
        ),
        (
            "POST",
            "/directory/users".to_owned(),
            json!({ "loginName": "new@acme.test", "permissionRole": "operator" }),
        ),
        (
            "PUT",
            format!("/directory/groups/{group}/members/{plain}"),
            json!({}),
        ),
        ("POST", format!("/service-accounts/{account}/tokens"), json!({})),
    ] {
        let request = Request::json(method, &path, body);
        request.send(app, &app.admin, "", "now", &fresh_key()).await.ok();
    }
}

/// An import that makes an admin somebody else needs a second person, and one that does not needs none.
async fn imports(app: &App, ada: &str, bob: &Person, eve: &Person) {
    // An import that makes an admin somebody else, and one that does not.
    let of_import =
        |id: &str| Request::json("POST", &format!("/directory/imports/{id}/apply"), json!({})).confirmed();
    let open = import(app, json!({ "format": "jsonl", "mode": "merge" })).await;
    let change = json!({ "type": "user", "loginName": eve.login, "email": "mine@elsewhere.test" });
    chunk(app, &open, 1, &change.to_string()).await.ok();
    let apply = of_import(&open);
    refused(
        &apply.send(app, ada, "", "now", &fresh_key()).await,
        None,
        "an import",
    );
    // What comes behind the yes is none of what it was to.
    let approval = apply.ask(app, ada, "now", &fresh_key()).await;
    approve(app, bob, &approval).await;
    app.advance(1);
    chunk(
        app,
        &open,
        2,
        &json!({ "type": "user", "loginName": "plain@acme.test", "displayName": "P" }).to_string(),
    )
    .await
    .ok();
    apply
        .with(app, ada, &approval, "now")
        .await
        .refused(409, "approval_mismatch");
    let open = import(app, json!({ "format": "jsonl", "mode": "merge" })).await;
    let change = json!({ "type": "user", "loginName": eve.login, "displayName": "Ada" });
    chunk(app, &open, 1, &change.to_string()).await.ok();
    of_import(&open)
        .send(app, ada, "", "now", &fresh_key())
        .await
        .ok();
    directory::run_jobs(app).await;
    // What a file does not name goes with it: an admin, and a group of one.
    let page = app.get("/directory/users?limit=100").await.ok().clone();
    let everybody: Vec<&str> = page["users"]
        .as_array()
        .unwrap()
        .iter()
        .map(|user| user["loginName"].as_str().unwrap())
        .collect();
    assert!(everybody.contains(&eve.login.as_str()), "{everybody:?}");
    for (left_out, what) in [
        (eve.login.as_str(), "an import without an admin"),
        ("", "an import without her group"),
    ] {
        let open = import(app, json!({ "format": "jsonl", "mode": "replace" })).await;
        let named = everybody.iter().filter(|login| **login != left_out);
        let lines: Vec<String> = named
            .map(|login| json!({ "type": "user", "loginName": login }).to_string())
            .collect();
        chunk(app, &open, 1, &lines.join("\n")).await.ok();
        let reply = of_import(&open).send(app, ada, "", "now", &fresh_key()).await;
        refused(&reply, None, what);
        let mut wish = of_import(&open);
        wish.body.as_mut().unwrap()["confirmRemovals"] =
            app.get(&format!("/directory/imports/{open}/removals")).await.ok()["sum"].clone();
        let asked = wish.ask(app, ada, what, &fresh_key()).await;
        let standing = shown(app, &asked).await["preview"]["operation"]["request"]["standing"].clone();
        let going = standing["usersWithRoleWhoGo"].as_array().unwrap();
        assert!(going.iter().any(|one| one["id"] == eve.id), "{what}: {standing}");
        app.write("POST", &format!("/directory/imports/{open}/abort"), json!({}))
            .await
            .ok();
    }
}

/// Proves TW-2, TW-3.
#[test]
fn two_people_make_a_third_who_decides_and_nobody_asks_for_what_would_be_refused() {
    each("approvals_operations_third", |app: Arc<App>| async move {
        let (asker, bob) = (admin(&app, "ada").await, admin(&app, "bob").await);
        let narrow = asker
            .token_for(&app, &["directory:write", "mcp_approvals:request"])
            .await;
        app.advance(120);
        for word in all() {
            lift(&app).await;
            let plain = user(&app, &format!("plain-{word}@acme.test")).await;
            name(&app, &[word]).await.ok();
            let ada = able(&app, &asker).await;
            let made = json!({ "loginName": format!("third-{word}@acme.test"), "permissionRole": "admin" });
            for request in [
                Request::json("POST", "/directory/users", made),
                Request::json(
                    "PATCH",
                    &format!("/directory/users/{plain}"),
                    json!({ "permissionRole": "admin" }),
                ),
            ] {
                // By a list that lacks some of the role nothing of it is given, by two people neither.
                let reply = request
                    .send(&app, &narrow, "requestApproval=true", "now", &fresh_key())
                    .await;
                reply.refused(403, "escalation_forbidden");
                let approval = request.ask(&app, &ada, "now", &fresh_key()).await;
                let wish = shown(&app, &approval).await["preview"]["operation"].clone();
                assert_eq!(wish["request"]["body"]["permissionRole"], "admin", "{wish}");
                approve(&app, &bob, &approval).await;
                let (query, key) = (format!("approvalId={approval}"), fresh_key());
                let done = request.send(&app, &ada, &query, "now", &key).await;
                assert_eq!(
                    done.ok()["user"]["permissionRole"],
                    "admin",
                    "{word}: {}",
                    done.text()
                );
                // An answer that was lost is had again.
                let again = request.send(&app, &ada, &query, "now", &key).await;
                assert_eq!((again.status, &again.bytes), (done.status, &done.bytes), "{word}");
            }
            // What was asked for and rolled back left nothing: it is refused as what is there already.
            let again = json!({ "loginName": format!("third-{word}@acme.test"), "permissionRole": "admin" });
            let again = Request::json("POST", "/directory/users", again);
            let reply = again
                .send(&app, &ada, "requestApproval=true", "now", &fresh_key())
                .await;
            reply.refused(409, "already_exists");
        }
    });
}

/// Proves SA-14.
#[test]
fn where_rights_are_named_an_account_gives_itself_no_more_than_its_token_has() {
    each("approvals_operations_itself", |app: Arc<App>| async move {
        admin(&app, "ada").await;
        admin(&app, "bob").await;
        app.advance(120);
        let scopes = [
            "service_accounts:read",
            "service_accounts:rotate",
            "service_accounts:rotate_any",
            "service_accounts:rotate_self",
        ];
        let body = json!({ "name": "ops", "permissionRole": "admin", "allOfRole": true });
        let made = app.write("POST", "/service-accounts", body).await.ok().clone();
        let id = made["serviceAccount"]["id"].as_str().unwrap().to_owned();
        let path = format!("/service-accounts/{id}/tokens");
        let narrow = json!({ "scopes": scopes, "expiresInSeconds": 3_600 });
        let narrow = app.write("POST", &path, narrow).await.ok().clone();
        let mut token = narrow["token"]["token"].as_str().unwrap().to_owned();
        let rotate = |token: String, body: Value| {
            let (app, path) = (app.clone(), path.clone());
            async move {
                let body = with_trio(body, &fresh_key());
                app.request("POST", &path).token(&token).json(body).send().await
            }
        };
        name(&app, &["rights"]).await.ok();
        for more in [
            json!({ "allOfAccount": true }),
            json!({ "scopes": ["directory:read"] }),
            json!({ "expiresInSeconds": 31_536_000 }),
        ] {
            rotate(token.clone(), more)
                .await
                .refused(403, "escalation_forbidden");
        }
        let same = rotate(token.clone(), json!({})).await.ok().clone();
        same["token"]["token"].as_str().unwrap().clone_into(&mut token);
        app.request("GET", "/directory/users")
            .token(&token)
            .send()
            .await
            .refused(403, "insufficient_scope");
        // Where nothing is named, one person's yes to the scope is enough.
        lift(&app).await;
        rotate(token, json!({ "allOfAccount": true })).await.ok();
    });
}

/// Proves AP-15.
#[test]
fn a_yes_to_an_act_on_a_machine_is_a_yes_to_what_it_was_then() {
    each("approvals_operations_machine", |app: Arc<App>| async move {
        let (asker, bob, eve) = (
            admin(&app, "ada").await,
            admin(&app, "bob").await,
            admin(&app, "eve").await,
        );
        app.advance(120);
        let machine = areas::fleet::Machine::new(&app).await;
        let path = format!("/devices/{}", machine.id);
        app.write("POST", &format!("{path}/quarantine"), json!({}))
            .await
            .ok();
        name(&app, &["devices"]).await.ok();
        let ada = able(&app, &asker).await;
        let release = Request::json("POST", &format!("{path}/release"), json!({}));
        let approval = release.ask(&app, &ada, "now", &fresh_key()).await;
        let standing = &shown(&app, &approval).await["preview"]["operation"]["request"]["standing"];
        assert_eq!(standing["status"], "quarantined", "{standing}");
        approve(&app, &bob, &approval).await;
        app.write("PATCH", &path, json!({ "ownerUserId": eve.id }))
            .await
            .ok();
        let reply = release.with(&app, &ada, &approval, "now").await;
        reply.refused(409, "approval_mismatch");
        // A token that lets nobody in by itself is no act of two, and one that does is.
        let token = |requires: bool| json!({ "name": fresh_key(), "requireApproval": requires });
        let reply = app.write("POST", "/devices/enrolment-tokens", token(false)).await;
        refused(&reply, None, "a token");
        app.write("POST", "/devices/enrolment-tokens", token(true))
            .await
            .ok();
        // Whose machine it is, is an act of two where rights are named; what it is called is none.
        lift(&app).await;
        name(&app, &["rights"]).await.ok();
        let reply = app.write("PATCH", &path, json!({ "ownerUserId": bob.id })).await;
        refused(&reply, None, "an owner");
        let mut named = token(true);
        named["ownerUserId"] = bob.id.as_str().into();
        let reply = app.write("POST", "/devices/enrolment-tokens", named).await;
        refused(&reply, None, "a token that names an owner");
        app.write("POST", "/devices/enrolment-tokens", token(false))
            .await
            .ok();
        app.write("PATCH", &path, json!({ "labels": ["site:berlin"] }))
            .await
            .ok();
        app.write("PATCH", &path, json!({ "ownerUserId": null }))
            .await
            .ok();
    });
}

/// Proves AP-16, SE-10.
#[test]
fn nothing_is_named_by_which_everybody_would_be_locked_out() {
    each("approvals_operations_locked", |app: Arc<App>| async move {
        name(&app, &["rights"]).await.refused(422, "invalid_definition");
        let bob = admin(&app, "bob").await;
        // One is not two, whoever names it.
        name(&app, &["rights"]).await.refused(422, "invalid_definition");
        let body = with_trio(json!({ "approvals": { "requireFor": ["rights"] } }), &fresh_key());
        let token = able(&app, &bob).await;
        let reply = app
            .request("PATCH", SETTINGS)
            .token(&token)
            .json(body)
            .send()
            .await;
        reply.refused(422, "invalid_definition");
        let asker = admin(&app, "ada").await;
        // A route that wants more than there are.
        let route = json!({ "name": "two", "match": { "kind": "operation" }, "approvers": { "roles": ["admin"] }, "quorum": 2,
            "deadlineSeconds": 3600, "onDeadline": "deny" });
        let routes = json!({ "routes": [route], "expectedRevision": 0, "confirm": true });
        app.write("PUT", "/approval-routes", routes).await.ok();
        name(&app, &["rights"]).await.refused(422, "invalid_definition");
        let none = json!({ "routes": [], "expectedRevision": 1, "confirm": true });
        app.write("PUT", "/approval-routes", none).await.ok();
        name(&app, &["rights"]).await.ok();
        app.advance(120);
        let ada = able(&app, &asker).await;
        // The same the other way round, and nobody is asked for a yes to it.
        let routes = json!({ "routes": [{ "name": "two", "match": {}, "approvers": { "roles": ["admin"] }, "quorum": 2,
            "deadlineSeconds": 3600, "onDeadline": "deny" }], "expectedRevision": 2 });
        let request = Request::json("PUT", "/approval-routes", routes).confirmed();
        request
            .send(&app, &ada, "requestApproval=true", "now", &fresh_key())
            .await
            .refused(422, "invalid_definition");
        let waiting = app.get("/approvals?state=pending").await.ok()["approvals"].clone();
        assert_eq!(waiting, json!([]), "TW-2");
        // Twice is once, and a word that there is not is none.
        lift(&app).await;
        name(&app, &["rights", "rights"])
            .await
            .refused(400, "invalid_request");
        name(&app, &["everything"]).await.refused(400, "invalid_request");
        // With nobody left an operator lifts it, and makes an account.
        name(&app, &["rights"]).await.ok();
        app.write("POST", &format!("/directory/users/{}/suspend", bob.id), json!({}))
            .await
            .ok();
        let made = provost_server::app::recover(&app.kernel, &app.organization, true)
            .await
            .unwrap();
        let settings = app
            .request("GET", SETTINGS)
            .token(made.token.expose())
            .send()
            .await;
        assert_eq!(settings.ok()["approvals"]["requireFor"], json!([]));
    });
}

/// Each word has operations, and each operation the words that there are.
#[test]
fn the_words_of_the_settings_are_those_of_the_operations() {
    let registry = provost_server::app::registry().unwrap();
    let declared = registry
        .entries()
        .iter()
        .filter_map(|entry| entry.meta.second_person);
    let mut words: BTreeSet<&str> = declared
        .clone()
        .flat_map(|declared| declared.named)
        .copied()
        .collect();
    // What decides who may say yes has no word: it needs a second person whatever is named.
    assert!(
        declared
            .clone()
            .any(|declared| declared.of_deciders && declared.named.is_empty())
    );
    words.insert(ActOfTwo::Deciders.as_str());
    assert_eq!(words, all().into_iter().collect());
    for entry in registry.entries() {
        let meta = entry.meta;
        if meta.second_person.is_none() {
            continue;
        }
        assert_eq!(meta.kind, provost_kernel::operation::Kind::Write, "{}", meta.id);
        // What is not shown whole is not approved: no content beside JSON.
        assert!(meta.consumes.is_none(), "{}", meta.id);
    }
}

/// Proves TW-1, MT-2.
#[test]
fn a_tool_of_mcp_needs_the_second_person_as_well() {
    each("approvals_operations_mcp", |app: Arc<App>| async move {
        let (asker, bob) = (admin(&app, "ada").await, admin(&app, "bob").await);
        let (account, _) = app.account("mover", "viewer", &["policies:read"]).await;
        app.advance(120);
        name(&app, &["rights", "removals"]).await.ok();
        let ada = able(&app, &asker).await;
        for (tool, confirm) in [
            ("rotateHeadlessServiceAccountToken", false),
            ("deleteHeadlessServiceAccount", true),
        ] {
            let call = async |more: Value| {
                let mut arguments =
                    json!({ "serviceAccountId": account, "reason": "now", "idempotencyKey": fresh_key() });
                if confirm {
                    arguments["confirm"] = true.into();
                }
                arguments
                    .as_object_mut()
                    .unwrap()
                    .extend(more.as_object().unwrap().clone());
                tool_call(&app, &ada, tool, &arguments).await
            };
            let reply = call(json!({})).await;
            assert_eq!(reply["isError"], true, "{reply}");
            let refusal = |reply: &Value| reply["_meta"]["dev.provost/error"].clone();
            assert_eq!(refusal(&reply)["code"], "approval_required");
            let waits = call(json!({ "requestApproval": true })).await;
            assert_eq!(
                (&waits["isError"], waits.get("structuredContent")),
                (&json!(true), None),
                "{waits}"
            );
            let approval = refusal(&waits)["approvalId"].as_str().unwrap().to_owned();
            assert_eq!(refusal(&waits)["status"], "pending");
            approve(&app, &bob, &approval).await;
            let done = call(json!({ "approvalId": approval })).await;
            assert_ne!(done["isError"], true, "{done}");
            let again = call(json!({ "approvalId": approval })).await;
            assert_eq!(again["isError"], true, "{again}");
        }
    });
}

async fn tool_call(app: &App, token: &str, tool: &str, arguments: &Value) -> Value {
    let body = json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": { "name": tool, "arguments": arguments } });
    let request = http::Request::post("/mcp?toolsets=all")
        .header("host", "127.0.0.1")
        .header("authorization", format!("Bearer {token}"))
        .header("content-type", "application/json")
        .header("accept", "application/json, text/event-stream")
        .header("mcp-protocol-version", "2025-11-25");
    let request = request.body(axum::body::Body::from(body.to_string())).unwrap();
    let reply = crate::access::oauth::answer(app, request).await;
    let text = reply.text();
    let json = text
        .lines()
        .find_map(|line| line.strip_prefix("data: "))
        .unwrap_or(&text);
    let answer: Value = serde_json::from_str(json).unwrap_or_else(|error| panic!("{error}: {text}"));
    answer["result"].clone()
}
