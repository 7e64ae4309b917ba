//! Who says no yes because they get something by the request, by whatever it is theirs; and what is tried before anybody is asked.

use super::approvals_operations::{Request, able, admin, all, approve, lift, name, refused, shown, vote};
use super::approvals_people::Person;
use super::decisions::content;
use crate::access::oauth::granted::Confidential;
use crate::areas::directory::{self, chunk, group, import, narrow};
use crate::areas::fleet::Machine;
use crate::areas::inventory::one;
use crate::areas::workload_trusts;
use crate::mechanisms::statements::sources;
use crate::support::{App, each, each_with, fresh_key, with_trio};
use provost_kernel::kernel::Settings;
use provost_kernel::{OperationContext, params, statements};
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::Arc;

statements! {
    /// Has an account be as a restore leaves it.
    HOLD_ACCOUNT = "UPDATE service_accounts SET status = 'disabled', disabled_at = ?3, disabled_reason = 'restored' WHERE organization_id = ?1 AND id = ?2";
    /// Has a machine be as a restore leaves it.
    HOLD_DEVICE = "UPDATE devices SET held_at = ?3 WHERE organization_id = ?1 AND id = ?2";
}

/// Operations that say nothing of the store to who says yes, and why the request is enough.
const WITHOUT_STANDING: &[(&str, &[&str])] = &[
    (
        "it makes something, and the request says all of it",
        &["createHeadlessDirectoryUser", "createHeadlessServiceAccount"],
    ),
    (
        "the request says what it sets, and what it does not name stays",
        &[
            "patchHeadlessAutomationSettings",
            "updateHeadlessAutomationSettings",
        ],
    ),
    (
        "the revision that it expects is the one that was looked at: another one refuses it",
        &[
            "putHeadlessApprovalRoutes",
            "claimHeadlessPolicyAuthority",
            "releaseHeadlessPolicyAuthority",
            "POLICIES",
        ],
    ),
];

/// Operations that say nobody who gets something by them, and why nobody does or the request names them.
const WITHOUT_GAINS: &[(&str, &[&str])] = &[
    (
        "the path or the body names who gets something",
        &[
            "addHeadlessDirectoryGroupMember",
            "createHeadlessIdentityLink",
            "createHeadlessMcpClient",
            "createHeadlessServiceAccount",
            "createHeadlessWorkloadTrust",
            "enableHeadlessServiceAccount",
            "reactivateHeadlessDirectoryUser",
            "rotateHeadlessServiceAccountToken",
            "updateHeadlessDevice",
            "updateHeadlessDirectoryUser",
            "updateHeadlessServiceAccount",
        ],
    ),
    (
        "the body names them, and what everybody gets nobody gets before others",
        &["allowHeadlessIdentityRelinking"],
    ),
    ("nobody has it yet", &["createHeadlessDirectoryUser"]),
    (
        "it takes away",
        &[
            "deleteHeadlessDirectoryUser",
            "deleteHeadlessMcpClient",
            "deleteHeadlessServiceAccount",
            "deleteHeadlessWorkloadTrust",
            "eraseHeadlessDeviceInventory",
            "removeHeadlessIdentityLinks",
            "retireHeadlessDevice",
        ],
    ),
    (
        "it is a rule for everybody",
        &[
            "claimHeadlessPolicyAuthority",
            "patchHeadlessAutomationSettings",
            "putHeadlessApprovalRoutes",
            "releaseHeadlessPolicyAuthority",
            "updateHeadlessAutomationSettings",
        ],
    ),
];

/// Returns the operations that make, change and delete policies: three implementations for all collections.
fn of_policies() -> Vec<&'static str> {
    let registry = provost_server::app::registry().unwrap();
    let policies = registry.entries().iter().map(|entry| entry.meta);
    let policies: Vec<&str> = policies
        .filter(|meta| {
            meta.toolset == "policies"
                && meta.second_person.is_some()
                && !meta.id.ends_with("PolicyAuthority")
        })
        .map(|meta| meta.id)
        .collect();
    assert!(policies.len() >= 12, "{policies:?}");
    policies
}

/// Returns the reasons by operation.
fn reasons(of: &[(&'static str, &[&'static str])]) -> BTreeMap<String, &'static str> {
    let policies = of_policies();
    let mut found = BTreeMap::new();
    for (reason, ids) in of {
        for id in *ids {
            let ids = if *id == "POLICIES" {
                policies.clone()
            } else {
                vec![*id]
            };
            for id in ids {
                assert!(found.insert(id.to_owned(), *reason).is_none(), "{id} twice");
            }
        }
    }
    found
}

/// Returns the ids of the operations whose implementation has a function of its own.
fn implementing(function: &str) -> BTreeSet<String> {
    let crates = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let mut files = Vec::new();
    for entry in std::fs::read_dir(&crates).unwrap() {
        let name = entry.unwrap().file_name().into_string().unwrap();
        if name.starts_with("areas-") || name == "server" {
            sources(&crates.join(name).join("src"), &mut files);
        }
    }
    let registry = provost_server::app::registry().unwrap();
    let (mut found, mut collections) = (BTreeSet::new(), 0);
    for file in files {
        let text = std::fs::read_to_string(file).unwrap();
        // Each ends in the first line that is a brace alone.
        for part in text.split(" Operation for ").skip(1) {
            let part = part.split("\n}\n").next().unwrap();
            if !part.contains(&format!("fn {function}(")) {
                continue;
            }
            if part.contains("C::IDS[") {
                collections += 1;
                continue;
            }
            let named = registry.entries().iter().map(|entry| entry.meta.id);
            let named: Vec<&str> = named.filter(|id| part.contains(&format!("\"{id}\""))).collect();
            assert_eq!(named.len(), 1, "{named:?} of {part}");
            found.insert(named[0].to_owned());
        }
    }
    if collections > 0 {
        assert_eq!(collections, 3, "of making, changing and deleting");
        found.extend(of_policies().into_iter().map(str::to_owned));
    }
    found
}

/// Proves AP-15.
#[test]
fn each_operation_of_two_says_what_it_is_about_and_who_gets_something_or_why_not() {
    let registry = provost_server::app::registry().unwrap();
    let of_two = registry.entries().iter().map(|entry| entry.meta);
    let of_two: Vec<&str> = of_two
        .filter(|meta| meta.second_person.is_some())
        .map(|meta| meta.id)
        .collect();
    assert!(of_two.len() >= 50, "{}", of_two.len());
    for (function, table) in [("standing", WITHOUT_STANDING), ("gains", WITHOUT_GAINS)] {
        let (does, reasons) = (implementing(function), reasons(table));
        assert!(does.len() >= 10, "{does:?}");
        for id in &of_two {
            assert!(
                does.contains(*id) != reasons.contains_key(*id),
                "{id}: {function}, or why it has none, and not both"
            );
        }
        for id in does.iter().chain(reasons.keys()) {
            assert!(of_two.contains(&id.as_str()), "{id} needs no second person");
        }
    }
}

fn put(path: &str, body: Value) -> Request {
    Request::json("PUT", path, body)
}

pub(super) fn post(path: &str, body: Value) -> Request {
    Request::json("POST", path, body)
}

/// Makes an account that somebody owns.
async fn account_of(app: &App, owner: &Person) -> String {
    let scopes = ["policies:read"];
    let (id, _) = app.account(&fresh_key(), "auditor", &scopes).await;
    let body = json!({ "ownerConsoleUserId": owner.id });
    app.write("PATCH", &format!("/service-accounts/{id}"), body)
        .await
        .ok();
    id
}

/// Makes a machine that somebody owns.
pub(super) async fn machine_of(app: &App, owner: &Person) -> String {
    let id = Machine::new(app).await.id;
    let body = json!({ "ownerUserId": owner.id });
    app.write("PATCH", &format!("/devices/{id}"), body).await.ok();
    id
}

pub(super) async fn hold(app: &App, statement: &'static provost_kernel::db::Statement, id: &str) {
    let id = id.to_owned();
    let run = move |ctx: &mut OperationContext<'_>| {
        let (org, now) = (ctx.org(), ctx.now());
        ctx.queue(statement, params![org, id.as_str(), now])
    };
    app.kernel
        .system(app.org(), Some("test.held"), run)
        .await
        .unwrap();
}

/// Makes a held change of an address of somebody, and returns its id.
async fn held_of(app: &App, person: &Person) -> String {
    let narrow = narrow(app).await;
    let id = import(app, json!({ "format": "jsonl", "mode": "merge" })).await;
    let line = json!({ "type": "user", "loginName": person.login, "email": format!("{}@elsewhere.test", fresh_key().to_lowercase()) });
    chunk(&narrow, &id, 1, &line.to_string()).await.ok();
    directory::end(&narrow, &id, "apply").await.ok();
    let page = app.get("/directory/held-changes?limit=100").await;
    let held = page.ok()["heldChanges"].as_array().unwrap();
    let mine = held.iter().find(|one| one["userId"] == json!(person.id));
    mine.unwrap()["id"].as_str().unwrap().to_owned()
}

/// Opens an import with these lines; returns the request that applies it.
async fn applying(app: &App, lines: &[Value]) -> Request {
    let id = import(app, json!({ "format": "jsonl", "mode": "merge" })).await;
    let lines: Vec<String> = lines.iter().map(Value::to_string).collect();
    chunk(app, &id, 1, &lines.join("\n")).await.ok();
    post(&format!("/directory/imports/{id}/apply"), json!({})).confirmed()
}

/// Maps a word to somebody, and returns the mapping's id.
async fn mapping_of(app: &App, word: &str, person: &Person) -> String {
    let body = json!({ "word": word, "userId": person.id });
    let made = app.write("POST", "/directory/identities", body).await;
    made.ok()["mapping"]["id"].as_str().unwrap().to_owned()
}

/// A release of all that is held back.
const WHATEVER: &str = "whatever a restore holds back";

/// What gives somebody something without naming them: what it is, the request, and where their id stands in what is shown, if it does.
type Giving = (&'static str, Request, &'static str);

async fn giving(app: &App, bob: &Person, other: &Person) -> Vec<Giving> {
    let (nobodys, _) = app.account("nobody's", "auditor", &["policies:read"]).await;
    let body = json!({ "serviceAccountId": nobodys });
    let identity = |machine: &str| format!("/devices/{machine}/gateway-identity");
    let (plain, taken) = (machine_of(app, bob).await, machine_of(app, bob).await);
    app.write("PUT", &identity(&taken), body.clone()).await.ok();
    let caught = machine_of(app, bob).await;
    app.write("POST", &format!("/devices/{caught}/quarantine"), json!({}))
        .await
        .ok();
    let trust = workload_trusts::one_of(app, &account_of(app, bob).await).await;
    let client =
        Confidential::register(app, &["client_credentials"], Some(&account_of(app, bob).await)).await;
    let settled = json!({ "apply": [held_of(app, bob).await] });
    let word = fresh_key();
    let mapped = mapping_of(app, &fresh_key(), bob).await;
    mapping_of(app, &word, bob).await;
    let [whatever, account, machine] = releasing(app, bob).await;
    vec![
        whatever,
        (
            "an account for the machine",
            put(&identity(&plain), body),
            "/ownerUserId",
        ),
        (
            "the machine without its account",
            Request::bare("DELETE", &identity(&taken)),
            "/ownerUserId",
        ),
        (
            "the machine acts again",
            post(&format!("/devices/{caught}/release"), json!({})),
            "/ownerUserId",
        ),
        (
            "a machine that works without enforcement",
            post(
                &format!("/devices/{}/bypass", machine_of(app, bob).await),
                json!({ "minutes": 60 }),
            ),
            "/ownerUserId",
        ),
        (
            "a door to the account",
            Request::json(
                "PATCH",
                &format!("/workload-trusts/{trust}"),
                json!({ "audience": "https://elsewhere.example" }),
            ),
            "/serviceAccount/ownerConsoleUserId",
        ),
        (
            "a client that is the account",
            Request::json(
                "PATCH",
                &format!("/mcp/clients/{}", client.id),
                json!({ "scopes": ["policies:read"] }),
            ),
            "/serviceAccount/ownerConsoleUserId",
        ),
        (
            "a held change",
            post("/directory/held-changes/settle", settled),
            "/apply/0/userId",
        ),
        (
            "a word that means nobody",
            Request::bare("DELETE", &format!("/directory/identities/{mapped}")).confirmed(),
            "/userId",
        ),
        (
            "a word that means somebody else",
            post(
                "/directory/identities",
                json!({ "word": word, "userId": other.id }),
            )
            .confirmed(),
            "/mappedTo",
        ),
        account,
        machine,
    ]
}

/// What a release after a restore gives somebody, as [`giving`] has it: of all, of an account, and of a machine.
async fn releasing(app: &App, bob: &Person) -> [Giving; 3] {
    let held = account_of(app, bob).await;
    hold(app, &HOLD_ACCOUNT, &held).await;
    let kept_back = machine_of(app, bob).await;
    hold(app, &HOLD_DEVICE, &kept_back).await;
    let release = |body: Value| post("/restore/release", body).confirmed();
    [
        (WHATEVER, release(json!({ "all": true })), ""),
        (
            "an account that a restore holds back",
            release(json!({ "ids": [held] })),
            "",
        ),
        (
            "a machine that a restore holds back",
            release(json!({ "ids": [kept_back] })),
            "",
        ),
    ]
}

/// The same of groups that somebody is in no longer, and of a machine that is yet to come.
async fn leaving(app: &App, bob: &Person) -> Vec<(&'static str, Request, &'static str)> {
    let (left, ended) = (group(app, &fresh_key()).await, group(app, &fresh_key()).await);
    let member = |group: &str| format!("/directory/groups/{group}/members/{}", bob.id);
    for group in [&left, &ended] {
        app.write("PUT", &member(group), json!({})).await.ok();
    }
    vec![
        (
            "a group that is left",
            Request::bare("DELETE", &member(&left)),
            "",
        ),
        (
            "a group that ends",
            Request::bare("DELETE", &format!("/directory/groups/{ended}")).confirmed(),
            "",
        ),
        (
            "a token for a machine",
            post(
                "/devices/enrolment-tokens",
                json!({ "name": fresh_key(), "ownerUserId": bob.id }),
            ),
            "/0/id",
        ),
    ]
}

/// Proves AP-3, AP-15.
#[test]
fn who_gets_something_says_no_yes_by_whatever_it_is_theirs() {
    each("approvals_gains", |app: Arc<App>| async move {
        let (asker, bob, eve) = (
            admin(&app, "ada").await,
            admin(&app, "bob").await,
            admin(&app, "eve").await,
        );
        let plain = Person::of(&app, "plain", "viewer").await;
        let mut cases = giving(&app, &bob, &plain).await;
        cases.append(&mut leaving(&app, &bob).await);
        let team = group(&app, "team").await;
        app.advance(120);
        name(&app, &all()).await.ok();
        let ada = able(&app, &asker).await;
        for (what, request, place) in &cases {
            let approval = request.ask(&app, &ada, what, &fresh_key()).await;
            let standing =
                shown(&app, &approval).await["preview"]["operation"]["request"]["standing"].clone();
            if !place.is_empty() {
                assert_eq!(
                    standing.pointer(place),
                    Some(&json!(bob.id)),
                    "{what}: {standing}"
                );
            }
            let reply = vote(&app, &bob.token(&app).await, &approval).await;
            assert_eq!(
                (*what, reply.code()),
                (*what, "escalation_forbidden"),
                "{}",
                reply.text()
            );
            approve(&app, &eve, &approval).await;
            // What it would do is done by its parts, one after the other.
            if *what != WHATEVER {
                let done = request.with(&app, &ada, &approval, what).await;
                assert!(done.status.is_success(), "{what}: {}", done.text());
            }
        }
        // A file that puts somebody into a group names nobody in the request.
        let lines = [
            json!({ "type": "group", "name": "team" }),
            json!({ "type": "user", "loginName": bob.login, "groups": ["team"] }),
        ];
        let request = applying(&app, &lines).await;
        let approval = request.ask(&app, &ada, "a group", &fresh_key()).await;
        let standing = shown(&app, &approval).await["preview"]["operation"]["request"]["standing"].clone();
        assert_eq!(
            standing["membershipsOfUsersWithRole"],
            json!([{ "userId": bob.id, "groupId": team, "begins": true, "permissionRole": "admin" }])
        );
        vote(&app, &bob.token(&app).await, &approval)
            .await
            .refused(403, "escalation_forbidden");
        approve(&app, &eve, &approval).await;
    });
}

/// Proves AP-15.
#[test]
fn a_yes_to_a_door_is_a_yes_to_the_whole_of_it() {
    each("approvals_gains_whole", |app: Arc<App>| async move {
        let (asker, bob) = (admin(&app, "ada").await, admin(&app, "bob").await);
        let (account, _) = app.account("deploys", "auditor", &["policies:read"]).await;
        let trust = workload_trusts::one_of(&app, &account).await;
        let path = format!("/workload-trusts/{trust}");
        let held = account.clone();
        app.advance(120);
        for (what, other) in [
            ("audience", json!({ "audience": fresh_key() })),
            ("suspended", json!({ "suspended": true })),
            ("lifetimeSeconds", json!({ "lifetimeSeconds": 60 })),
        ] {
            lift(&app).await;
            name(&app, &["rights"]).await.ok();
            let ada = able(&app, &asker).await;
            let request = Request::json("PATCH", &path, json!({ "name": fresh_key() }));
            let approval = request.ask(&app, &ada, what, &fresh_key()).await;
            approve(&app, &bob, &approval).await;
            lift(&app).await;
            app.write("PATCH", &path, other).await.ok();
            name(&app, &["rights"]).await.ok();
            let reply = request.with(&app, &ada, &approval, what).await;
            assert_eq!(
                (what, reply.code()),
                (what, "approval_mismatch"),
                "{}",
                reply.text()
            );
        }
        lift(&app).await;
        // Whose machine it is that a restore holds back is shown to nobody, and is another one all the same.
        let machine = machine_of(&app, &asker).await;
        hold(&app, &HOLD_DEVICE, &machine).await;
        hold(&app, &HOLD_ACCOUNT, &held).await;
        name(&app, &["rights"]).await.ok();
        let ada = able(&app, &asker).await;
        let request = post("/restore/release", json!({ "ids": [machine, held] })).confirmed();
        let approval = request.ask(&app, &ada, "again", &fresh_key()).await;
        let standing = shown(&app, &approval).await["preview"]["operation"]["request"]["standing"].clone();
        let kinds: Vec<&str> = standing["held"]
            .as_array()
            .unwrap()
            .iter()
            .map(|one| one["kind"].as_str().unwrap())
            .collect();
        assert_eq!(kinds.len(), 2, "{standing}");
        assert!(
            kinds.contains(&"device") && kinds.contains(&"service_account"),
            "{standing}"
        );
        assert!(!standing.to_string().contains(&asker.id), "{standing}");
        approve(&app, &bob, &approval).await;
        lift(&app).await;
        app.write(
            "PATCH",
            &format!("/devices/{machine}"),
            json!({ "ownerUserId": bob.id }),
        )
        .await
        .ok();
        name(&app, &["rights"]).await.ok();
        request
            .with(&app, &ada, &approval, "again")
            .await
            .refused(409, "approval_mismatch");
    });
}

/// Proves TW-2.
#[test]
fn what_nobody_could_say_yes_to_is_not_asked_for() {
    each("approvals_gains_nobody", |app: Arc<App>| async move {
        let (asker, bob) = (admin(&app, "ada").await, admin(&app, "bob").await);
        let vera = Person::of(&app, "vera", "viewer").await;
        app.advance(120);
        name(&app, &["rights"]).await.ok();
        let ada = able(&app, &asker).await;
        let owned = json!({ "name": "bob's", "permissionRole": "viewer", "scopes": ["policies:read"], "ownerConsoleUserId": bob.id });
        let making = post("/service-accounts", owned);
        let query = "requestApproval=true";
        let reply = making.send(&app, &ada, query, "now", &fresh_key()).await;
        reply.refused(409, "conflict");
        assert!(reply.text().contains("nobody could say yes"), "{}", reply.text());
        // An import that makes each of those who may say yes somebody else.
        let everybody = applying(
            &app,
            &[
                json!({ "type": "user", "loginName": asker.login, "email": "ada@new.test" }),
                json!({ "type": "user", "loginName": bob.login, "email": "bob@new.test" }),
            ],
        )
        .await;
        let reply = everybody.send(&app, &ada, query, "now", &fresh_key()).await;
        reply.refused(409, "conflict");
        assert!(reply.text().contains("several imports"), "{}", reply.text());
        let waiting = app.get("/approvals").await.ok()["approvals"].clone();
        assert_eq!(waiting, json!([]));
        // The next step that it says: who gets something asks.
        let approval = making
            .ask(&app, &able(&app, &bob).await, "now", &fresh_key())
            .await;
        approve(&app, &asker, &approval).await;
        // Of an import it is one for a part.
        let part = applying(
            &app,
            &[json!({ "type": "user", "loginName": asker.login, "email": "ada@new.test" })],
        )
        .await;
        let approval = part.ask(&app, &ada, "a part", &fresh_key()).await;
        approve(&app, &bob, &approval).await;
        // Who may not say yes gets nothing that counts, where the import is an act for the sake of those who may.
        for (word, may) in [("rights", false), ("deciders", true)] {
            lift(&app).await;
            let role = |role: &str| json!({ "permissionRole": role });
            let path = format!("/directory/users/{}", vera.id);
            app.write("PATCH", &path, role("viewer")).await.ok();
            app.advance(120);
            name(&app, &[word]).await.ok();
            let both = applying(
                &app,
                &[
                    json!({ "type": "user", "loginName": asker.login, "email": "ada@newer.test" }),
                    json!({ "type": "user", "loginName": vera.login, "email": "vera@newer.test" }),
                ],
            )
            .await;
            let ada = able(&app, &asker).await;
            let approval = both.ask(&app, &ada, word, &fresh_key()).await;
            lift(&app).await;
            // Of what waits nothing is lost with the import; it could not be performed any more.
            directory::finish_imports(&app).await;
            app.write("PATCH", &path, role("admin")).await.ok();
            let reply = vote(&app, &app.admin, &approval).await;
            reply.refused(403, "escalation_forbidden");
            let reply = vote(&app, &vera.token(&app).await, &approval).await;
            assert_eq!(reply.status == 200, may, "{word}: {}", reply.text());
        }
    });
}

/// Proves AP-8.
#[test]
fn what_accounts_ask_for_that_somebody_named_theirs_leaves_people_their_share() {
    each("approvals_gains_share", |app: Arc<App>| async move {
        let server = one(&app).await;
        let (asker, _, eve) = (
            admin(&app, "ada").await,
            admin(&app, "bob").await,
            admin(&app, "eve").await,
        );
        let (account, _) = app.account("mover", "viewer", &["policies:read"]).await;
        let (agent, token) = app
            .account("agent", "viewer", &["mcp_approvals:request", "inventory:read"])
            .await;
        let owner = json!({ "ownerConsoleUserId": asker.id });
        app.write("PATCH", &format!("/service-accounts/{agent}"), owner)
            .await
            .ok();
        app.advance(120);
        let ask = async |token: &str, more: usize| {
            let mut body = crate::areas::approvals::wish(&server);
            body["expiresInSeconds"] = (3_600 + more).into();
            let call = app.request("POST", "/approvals").token(token);
            call.json(with_trio(body, &fresh_key())).send().await
        };
        for more in 0..100 {
            ask(&token, more).await.ok();
        }
        ask(&asker.token(&app).await, 100)
            .await
            .refused(429, "rate_limited");
        name(&app, &["rights"]).await.ok();
        let ada = able(&app, &asker).await;
        let request = post(&format!("/service-accounts/{account}/tokens"), json!({}));
        let first = request.ask(&app, &ada, "0", &fresh_key()).await;
        // What she asks for herself is hers to wait for, and has an end.
        for n in 1..100 {
            request.ask(&app, &ada, &n.to_string(), &fresh_key()).await;
        }
        request
            .send(&app, &ada, "requestApproval=true", "100", &fresh_key())
            .await
            .refused(429, "rate_limited");
        // What waits is joined all the same, and what somebody else asks for has another share.
        assert_eq!(request.ask(&app, &ada, "0", &fresh_key()).await, first);
        request
            .ask(&app, &able(&app, &eve).await, "hers", &fresh_key())
            .await;
    });
}

/// Proves TW-2.
#[test]
fn what_is_tried_before_somebody_is_asked_spends_nothing() {
    each_with(
        "approvals_gains_tried",
        &Settings::default(),
        |app: Arc<App>| async move {
            let (asker, bob) = (admin(&app, "ada").await, admin(&app, "bob").await);
            let (account, _) = app.account("mover", "viewer", &["policies:read"]).await;
            app.advance(120);
            name(&app, &["rights"]).await.ok();
            let ada = able(&app, &asker).await;
            let path = format!("/service-accounts/{account}");
            let request = post(&format!("{path}/tokens"), json!({}));
            // More often than an account is rotated within an hour: the same again, and others.
            let first = request.ask(&app, &ada, "0", &fresh_key()).await;
            for n in 0..35 {
                request.ask(&app, &ada, &n.to_string(), &fresh_key()).await;
                app.clock.advance(std::time::Duration::from_millis(500));
            }
            approve(&app, &bob, &first).await;
            request.with(&app, &ada, &first, "0").await.ok();
            // What the limit would refuse is not asked for.
            lift(&app).await;
            for _ in 0..29 {
                app.write("POST", &format!("{path}/tokens"), json!({})).await.ok();
            }
            name(&app, &["rights"]).await.ok();
            request
                .send(&app, &ada, "requestApproval=true", "more", &fresh_key())
                .await
                .refused(429, "rate_limited");
        },
    );
}

/// Proves TW-2.
#[test]
fn nothing_is_tried_for_who_may_not_ask_or_has_asked() {
    each("approvals_gains_order", |app: Arc<App>| async move {
        let (asker, bob) = (admin(&app, "ada").await, admin(&app, "bob").await);
        let (account, _) = app.account("mover", "viewer", &["policies:read"]).await;
        app.advance(120);
        name(&app, &["rights"]).await.ok();
        let ada = able(&app, &asker).await;
        let path = format!("/service-accounts/{account}");
        let request = post(&format!("{path}/tokens"), json!({}));
        let approval = request.ask(&app, &ada, "now", &fresh_key()).await;
        // It would be refused by now.
        app.write("POST", &format!("{path}/disable"), json!({}))
            .await
            .ok();
        let query = "requestApproval=true";
        request
            .send(&app, &ada, query, "another", &fresh_key())
            .await
            .refused(409, "disabled");
        let blind = asker
            .token_for(&app, &["service_accounts:rotate", "service_accounts:write"])
            .await;
        let reply = request.send(&app, &blind, query, "another", &fresh_key()).await;
        reply.refused(403, "insufficient_scope");
        assert!(reply.text().contains("mcp_approvals:request"), "{}", reply.text());
        // What waits was tried when it was asked for, and is tried again when it is performed.
        assert_eq!(request.ask(&app, &ada, "now", &fresh_key()).await, approval);
        approve(&app, &bob, &approval).await;
        request
            .with(&app, &ada, &approval, "now")
            .await
            .refused(409, "disabled");
        refused(
            &request.send(&app, &ada, "", "now", &fresh_key()).await,
            None,
            "without query",
        );
    });
}

/// Proves AP-3.
#[test]
fn whom_a_policy_names_says_no_yes_to_it() {
    each("approvals_gains_policies", |app: Arc<App>| async move {
        let (asker, bob, eve) = (
            admin(&app, "ada").await,
            admin(&app, "bob").await,
            admin(&app, "eve").await,
        );
        let agent = account_of(&app, &bob).await;
        let (his, everybodys) = (fresh_key(), fresh_key());
        let group_of = async |group: &str, person: &Person| {
            let path = format!("/directory/groups/{group}/members/{}", person.id);
            app.write("PUT", &path, json!({})).await.ok();
        };
        group_of(&group(&app, &his).await, &bob).await;
        let everybody = group(&app, &everybodys).await;
        for person in [&asker, &bob, &eve] {
            group_of(&everybody, person).await;
        }
        app.advance(120);
        name(&app, &["policies"]).await.ok();
        let ada = able(&app, &asker).await;
        let block = |exceptions: Value| content("no-tools", "block", &json!({ "exceptions": exceptions }));
        let but = |field: &str, value: &str| {
            let op = if field.ends_with("ids") { "contains" } else { "eq" };
            json!([{ "id": "e", "reason": "r", "conditions": { "field": field, "op": op, "value": value } }])
        };
        let write = |revision: i64, definition: Value| {
            let body = json!({ "definition": definition, "expectedRevision": revision });
            if revision == 0 {
                post("/content-policies", body)
            } else {
                put("/content-policies/no-tools", body)
            }
        };
        // By the name and by the id, by the account, and by what it said before; and once more without anybody.
        for (what, request, is_his) in [
            ("nobody", write(0, block(json!([]))), false),
            (
                "his name",
                write(1, block(but("identity.user_id", &bob.login))),
                true,
            ),
            ("his name before", write(2, block(json!([]))), true),
            (
                "his account",
                write(3, block(but("identity.service_account_id", &agent))),
                true,
            ),
            (
                "his account before",
                write(4, block(but("identity.group_ids", &his))),
                true,
            ),
            ("his group before", write(5, block(json!([]))), true),
            (
                "a group that everybody is in",
                write(6, block(but("identity.group_ids", &everybodys))),
                false,
            ),
            (
                "everybody's before",
                Request::bare("DELETE", "/content-policies/no-tools?expectedRevision=7"),
                false,
            ),
        ] {
            let approval = request.ask(&app, &ada, what, &fresh_key()).await;
            let reply = vote(&app, &bob.token(&app).await, &approval).await;
            if is_his {
                assert_eq!(
                    (what, reply.code()),
                    (what, "escalation_forbidden"),
                    "{}",
                    reply.text()
                );
                approve(&app, &eve, &approval).await;
            } else {
                reply.ok();
            }
            let done = request.with(&app, &ada, &approval, what).await;
            assert!(done.status.is_success(), "{what}: {}", done.text());
        }
    });
}
