//! Who reads the details of audit entries and events (FE-1, FE-2; D3.1).
//!
//! What is expected is written anew here, kind by kind, and shares no line with the declarations of the areas.

use crate::access::oauth;
use crate::areas::directory::{group, user};
use crate::areas::mcp_sessions::{new_session, open};
use crate::areas::oauth::{public_client, register};
use crate::areas::resources::{credential_body, make_resource};
use crate::areas_beside::every_area;
use crate::support::{App, each, each_of};
use provost_kernel::event::{EventData, EventKind, EventOf};
use provost_kernel::fence::{Readers, TargetKind};
use provost_kernel::operation::Kind;
use provost_server::app;
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::sync::Arc;

/// Records whose details an operator does not read.
const HIDDEN_TARGETS: [&str; 14] = [
    "service_account",
    "token",
    "mcp_session",
    "mcp_client",
    "workload_trust",
    "identity_issuer",
    "automation_settings",
    "approval_routes",
    "organization_key",
    // They name accounts, clients and identity links.
    "restore",
    "store",
    "operation",
    "network",
    // It is about the person who says something of it.
    "policy_violation",
];

/// Records whose details an operator reads if they are assigned to it.
const ASSIGNED_TARGETS: [&str; 1] = ["resource_credential"];

/// What the types of events begin with whose data an operator does not read.
const HIDDEN_EVENTS: [&str; 8] = [
    "service_account.",
    "gateway_token.",
    "mcp.",
    "workload_trust.",
    "oauth.identity.",
    "restore.",
    // They name rows that decide rights.
    "rights.",
    // It names two accounts.
    "managed_config.target.contested",
];

/// Says whether an act is about what an operator does not read, by the path of its operation.
fn is_hidden_path(path: &str) -> bool {
    let parts = [
        "/service-accounts",
        "/automation/settings",
        "/mcp/",
        "/workload-trusts",
        "/directory/identity-links",
        "/restore/",
        "/credentials",
        "/violations",
    ];
    parts.iter().any(|part| path.contains(part))
}

/// Every page of a list, the oldest first.
async fn all(app: &App, token: &str, list: &str, filter: &str) -> Vec<Value> {
    let (mut found, mut rest) = (Vec::new(), String::new());
    loop {
        let path = format!("{list}?limit=100{filter}{rest}");
        let reply = app.request("GET", &path).token(token).send().await;
        let page = reply.ok();
        found.extend(page["events"].as_array().unwrap().iter().cloned());
        rest = match (page["nextCursor"].as_str(), page["nextAfter"].as_i64()) {
            (Some(cursor), _) => format!("&cursor={cursor}"),
            (None, Some(after)) => format!("&after={after}"),
            (None, None) => break,
        };
    }
    found.sort_by_key(|entry| entry["seq"].as_i64().or(entry["data"]["sequence"].as_i64()));
    found
}

async fn entries(app: &App, token: &str, filter: &str) -> Vec<Value> {
    all(app, token, "/audit/events", filter).await
}

async fn events(app: &App, token: &str) -> Vec<Value> {
    all(app, token, "/events", "").await
}

/// Tokens of an operator that can do all of its role, of one with the two scopes alone, and of those who read everything.
async fn readers(app: &App) -> ([String; 2], [String; 3]) {
    let both = ["audit:read", "events:read"];
    let operator = app.account("operator", "operator", &[]).await.1;
    let narrow = app.account("narrow operator", "operator", &both).await.1;
    let auditor = app.account("auditor", "auditor", &[]).await.1;
    let admin = app.account("narrow admin", "admin", &both).await.1;
    ([operator, narrow], [auditor, admin, app.admin.clone()])
}

fn withheld_entry(whole: &Value) -> Value {
    let mut kept = json!({ "withheld": true });
    let members = [
        "id",
        "seq",
        "time",
        "organizationId",
        "action",
        "outcome",
        "previousHash",
        "hash",
    ];
    for member in members {
        kept[member] = whole[member].clone();
    }
    kept
}

fn withheld_event(whole: &Value) -> Value {
    json!({
        "id": whole["id"], "type": whole["type"], "timestamp": whole["timestamp"],
        "data": { "sequence": whole["data"]["sequence"] }, "withheld": true,
    })
}

/// One entry of the program's own about a record.
async fn note(app: &App, action: &'static str, target: Option<&'static TargetKind>) {
    let run = move |ctx: &mut provost_kernel::OperationContext<'_>| {
        if let Some(kind) = target {
            ctx.target(kind, "a record of the test");
        }
        ctx.change("/name", Value::Null, "a name of the test");
        Ok(())
    };
    app.kernel.system(app.org(), Some(action), run).await.unwrap();
}

/// Proves FE-2.
#[test]
fn each_kind_of_record_shows_its_details_to_its_readers_alone() {
    each("fences_targets", |app: Arc<App>| async move {
        let (operators, overseers) = readers(&app).await;
        let kinds: Vec<&TargetKind> = app.kernel.registry.fences().targets().collect();
        assert!(kinds.len() >= 25, "{}", kinds.len());
        for kind in &kinds {
            // An act whose own details are for everybody.
            note(&app, "directory.import.expired", Some(*kind)).await;
        }
        let first = overseers.first().unwrap();
        let whole = entries(&app, first, "&action=directory.import.expired").await;
        assert_eq!(whole.len(), kinds.len());
        for token in &overseers {
            let seen = entries(&app, token, "&action=directory.import.expired").await;
            assert_eq!(seen, whole);
        }
        for token in &operators {
            let seen = entries(&app, token, "&action=directory.import.expired").await;
            for ((seen, whole), kind) in seen.iter().zip(&whole).zip(&kinds) {
                assert_eq!(whole["target"]["type"], kind.word());
                assert!(whole["changes"].is_array());
                let is_hidden =
                    HIDDEN_TARGETS.contains(&kind.word()) || ASSIGNED_TARGETS.contains(&kind.word());
                let expected = if is_hidden {
                    withheld_entry(whole)
                } else {
                    whole.clone()
                };
                assert_eq!(*seen, expected, "{}", kind.word());
                // One by one it is as in the list.
                let path = format!("/audit/events/{}", whole["id"].as_str().unwrap());
                let one = app.request("GET", &path).token(token).send().await;
                assert_eq!(*one.ok(), expected, "{}", kind.word());
            }
        }
        // Exports are for those who read everything, or they could not be verified.
        let export = app
            .request("GET", "/audit/export")
            .token(&operators[0])
            .send()
            .await;
        export.refused(403, "role_forbidden");
        let viewer = app.account("viewer", "viewer", &[]).await.1;
        for path in ["/audit/events", "/events", "/audit/export"] {
            let reply = app.request("GET", path).token(&viewer).send().await;
            reply.refused(403, "role_forbidden");
        }
    });
}

/// The data of a kind's example.
#[derive(Serialize, JsonSchema)]
#[serde(transparent)]
struct Example(Value);

impl EventData for Example {
    const EXAMPLE: &'static str = "{}";
}

/// Proves FE-2.
#[test]
fn each_kind_of_event_shows_its_data_to_its_readers_alone() {
    each("fences_events", |app: Arc<App>| async move {
        let (operators, overseers) = readers(&app).await;
        let kinds: Vec<&EventKind> = app.kernel.registry.fences().events().collect();
        assert!(kinds.len() >= 50, "{}", kinds.len());
        let examples = kinds.iter().map(|kind| {
            let of_any_shape = EventOf::new(kind.word(), kind.readers(), kind.says());
            let of_any_shape: &'static EventOf<Example> = Box::leak(Box::new(of_any_shape));
            (of_any_shape, Example(kind.example()["data"].take()))
        });
        let examples: Vec<_> = examples.collect();
        let run = move |ctx: &mut provost_kernel::OperationContext<'_>| {
            for (kind, data) in &examples {
                ctx.emit(kind, data);
            }
            Ok(())
        };
        app.kernel
            .system(app.org(), Some("test.emitted"), run)
            .await
            .unwrap();
        let whole = events(&app, &overseers[0]).await;
        let before = whole.len() - kinds.len();
        for token in &overseers {
            assert_eq!(events(&app, token).await, whole);
        }
        for token in &operators {
            let seen = events(&app, token).await;
            assert_eq!(seen.len(), whole.len());
            for ((seen, whole), kind) in seen[before..].iter().zip(&whole[before..]).zip(&kinds) {
                let word = kind.word();
                assert_eq!(whole["type"], word);
                let is_hidden = HIDDEN_EVENTS.iter().any(|start| word.starts_with(start))
                    || word.starts_with("credential.");
                let expected = if is_hidden {
                    withheld_event(whole)
                } else {
                    whole.clone()
                };
                assert_eq!(*seen, expected, "{word}");
            }
        }
    });
}

/// Proves FE-2.
#[test]
fn an_act_withholds_its_details_whatever_it_was_about() {
    each_of(every_area(), "fences_acts", |app: Arc<App>| async move {
        let (operators, overseers) = readers(&app).await;
        let registry = &app.kernel.registry;
        for entry in registry.entries() {
            note(&app, entry.meta.id, None).await;
        }
        note(&app, "test.undeclared", None).await;
        let whole = entries(&app, &overseers[0], "").await;
        let seen = entries(&app, &operators[0], "").await;
        let last = whole.len() - registry.entries().len() - 1;
        let mut hidden = 0;
        for ((seen, whole), entry) in seen[last..].iter().zip(&whole[last..]).zip(registry.entries()) {
            assert_eq!(whole["action"], entry.meta.id);
            let is_hidden = is_hidden_path(entry.meta.path);
            let expected = if is_hidden {
                withheld_entry(whole)
            } else {
                whole.clone()
            };
            assert_eq!(*seen, expected, "{}", entry.meta.id);
            hidden += usize::from(is_hidden);
        }
        assert!(hidden > 30, "{hidden}");
        // What nobody declared is withheld.
        let (seen, whole) = (seen.last().unwrap(), whole.last().unwrap());
        assert_eq!(whole["action"], "test.undeclared");
        assert_eq!(*seen, withheld_entry(whole));
    });
}

/// Proves FE-1.
#[test]
fn every_kind_is_declared_once_and_every_operation_has_its_readers() {
    let registry = app::registry().unwrap();
    let fences = registry.fences();
    let once = |words: Vec<&str>| {
        let distinct: BTreeSet<&str> = words.iter().copied().collect();
        assert_eq!(distinct.len(), words.len(), "{words:?}");
    };
    once(fences.targets().map(TargetKind::word).collect());
    once(fences.events().map(EventKind::word).collect());
    once(fences.members().map(|(path, _)| path).collect());
    let acts: BTreeSet<&str> = fences.acts().map(|(act, _)| act).collect();
    for entry in registry.entries() {
        let id = entry.meta.id;
        assert!(
            acts.contains(id),
            "the area of {id} does not say who reads what it does"
        );
        // Whoever may read a record by its own operation reads it in the log as well, and the other way round; the
        // settings are read as they are, and not who changed them.
        let is_open = matches!(fences.act(id), Readers::Everybody);
        assert_eq!(is_open, !is_hidden_path(entry.meta.path), "{id}");
        assert!(!id.is_empty() && matches!(entry.meta.kind, Kind::Read | Kind::Write));
    }
}

async fn made(app: &App, path: &str, body: Value) -> String {
    let reply = app.write("POST", path, body).await;
    reply.ok()["id"].as_str().unwrap().to_owned()
}

/// Texts of records that an operator does not read, each made or changed over the wire.
async fn hidden_things(app: &App) -> Vec<(&'static str, String)> {
    let mut texts = Vec::new();
    let (account, _) = app.account("account of nobody's business", "viewer", &[]).await;
    let rotated = app
        .write("POST", &format!("/service-accounts/{account}/tokens"), json!({}))
        .await;
    texts.push(("token", rotated.ok()["token"]["id"].as_str().unwrap().to_owned()));
    texts.push(("name of an account", "account of nobody's business".into()));
    let body =
        json!({ "name": "ACCOUNT of nobody's business", "permissionRole": "viewer", "allOfRole": true });
    app.write("POST", "/service-accounts", body)
        .await
        .refused(409, "already_exists");
    // The owner of an account is suspended: an entry about a user, with an account in it.
    let owner = user(app, "owner").await;
    let body = json!({
        "name": "owned", "permissionRole": "viewer", "allOfRole": true, "ownerConsoleUserId": owner,
    });
    let answer = app.write("POST", "/service-accounts", body).await;
    let account = answer.ok()["serviceAccount"]["id"].as_str().unwrap().to_owned();
    app.write("POST", &format!("/directory/users/{owner}/suspend"), json!({}))
        .await
        .ok();
    texts.push(("orphaned account", account));
    let client = register(app, public_client("client of nobody's business")).await;
    app.write(
        "PATCH",
        &format!("/mcp/clients/{client}"),
        json!({ "name": "another client" }),
    )
    .await
    .ok();
    texts.push(("client", client));
    texts.push(("name of a client", "client of nobody's business".into()));
    let sessions = open(
        app,
        vec![new_session(app, "a client"), new_session(app, "b client")],
    )
    .await;
    let path = format!("/mcp/sessions/{}/revoke", sessions[0]);
    app.write("POST", &path, json!({ "confirm": true })).await.ok();
    texts.extend(sessions.into_iter().map(|id| ("session", id)));
    // Ending the sessions of a user is an entry about a user.
    let body = json!({ "consoleUserId": "usr_01kadh5j9v0000000000000000", "confirm": true });
    app.write("POST", "/mcp/sessions/revoke", body).await.ok();
    texts.push(("whose sessions", "usr_01kadh5j9v0000000000000000".into()));
    // A link, and its end with its user.
    let linked = user(app, "linked").await;
    let body =
        json!({ "issuer": oauth::ISSUER, "subject": "subject of nobody's business", "userId": linked });
    app.write("POST", "/directory/identity-links", body).await.ok();
    app.delete(&format!("/directory/users/{linked}")).await.ok();
    texts.push(("subject", "subject of nobody's business".into()));
    app.token_settings(json!({ "defaultGraceSeconds": 77 })).await;
    texts.push(("setting", "defaultGraceSeconds".into()));
    // A credential of somebody else, and the entries of others that name it.
    let resource = make_resource(app).await;
    let team = group(app, "team").await;
    let mut body = credential_body();
    body["assignedTo"] = json!({ "users": [], "groups": [team], "serviceAccounts": [] });
    let credential = made(app, &format!("/resources/{resource}/credentials"), body).await;
    let member = user(app, "member").await;
    let path = format!("/directory/groups/{team}/members/{member}");
    app.write("PUT", &path, json!({})).await.ok();
    app.delete(&format!("/directory/groups/{team}")).await.ok();
    texts.push(("credential", credential));
    // A token of an installation.
    let item = app.skill("reading").await;
    let admin = app.admin.clone();
    app.install(&admin, &item, "laptop").await.ok();
    let of = |entry: &Value| {
        let changes = entry["changes"].as_array()?;
        let change = changes.iter().find(|change| change["path"] == "/gatewayTokens")?;
        change["after"].as_str().map(str::to_owned)
    };
    let found = entries(app, &admin, "").await;
    // An entry names the token of the installation.
    let token = found.iter().find_map(of).unwrap();
    texts.push(("token of an installation", token));
    texts
}

/// Proves FE-2.
#[test]
fn an_operator_sees_that_accounts_clients_and_settings_changed_and_no_more() {
    each("fences_wire", |app: Arc<App>| async move {
        let (operators, overseers) = readers(&app).await;
        let texts = hidden_things(&app).await;
        app.settle().await;
        let read = async |token: &str| (entries(&app, token, "").await, events(&app, token).await);
        let (whole, all_events) = read(&overseers[0]).await;
        for (what, text) in &texts {
            let holds = |value: &Value| value.to_string().contains(text.as_str());
            assert!(
                whole.iter().any(holds) || all_events.iter().any(holds),
                "nobody sees the {what}: {text}"
            );
        }
        for token in &operators {
            let (seen, seen_events) = read(token).await;
            // Nothing is missing: of each entry and event it is said that it happened.
            assert_eq!(seen.len(), whole.len());
            for (seen, whole) in seen.iter().zip(&whole) {
                for member in ["id", "seq", "time", "action", "outcome"] {
                    assert_eq!(seen[member], whole[member]);
                }
                assert_eq!(seen["withheld"] == true, seen != whole, "{seen}");
            }
            assert_eq!(seen_events.len(), all_events.len());
            for (what, text) in &texts {
                for value in seen.iter().chain(&seen_events) {
                    assert!(
                        !value.to_string().contains(text.as_str()),
                        "the {what} is seen: {value}"
                    );
                }
            }
            // What is theirs to read is whole: the skill, the groups, and of a suspension all but the account.
            let has = |action: &str| seen.iter().find(|entry| entry["action"] == action).unwrap();
            assert_eq!(has("publishHeadlessSkillRegistryItem").get("withheld"), None);
            assert_eq!(has("createHeadlessDirectoryGroup").get("withheld"), None);
            let suspended = has("suspendHeadlessDirectoryUser");
            assert_eq!(suspended["withheld"], true);
            assert_eq!(suspended["target"]["type"], "user");
            assert_eq!(suspended["changes"][0]["path"], "/status");
            let joined = has("addHeadlessDirectoryGroupMember");
            assert_eq!(joined["changes"].as_array().unwrap().len(), 1, "{joined}");
        }
    });
}

/// Proves FE-2.
#[test]
fn no_filter_tells_an_operator_what_is_withheld() {
    each("fences_filters", |app: Arc<App>| async move {
        let (operators, overseers) = readers(&app).await;
        let (quiet, quiet_token) = app.account("quiet", "viewer", &[]).await;
        // The account acts on nothing but itself, and is refused what it may not read.
        let own = format!("/service-accounts/{quiet}/tokens");
        let body = crate::support::with_trio(json!({}), &crate::support::fresh_key());
        let rotated = app
            .request("POST", &own)
            .token(&quiet_token)
            .json(body)
            .send()
            .await;
        rotated.ok();
        let client = register(&app, public_client("a client")).await;
        let person = user(&app, "a person").await;
        let body = json!({ "issuer": oauth::ISSUER, "subject": "a subject", "userId": person });
        app.write("POST", "/directory/identity-links", body).await.ok();
        let resource = make_resource(&app).await;
        let credential = made(
            &app,
            &format!("/resources/{resource}/credentials"),
            credential_body(),
        )
        .await;
        app.token_settings(json!({ "defaultGraceSeconds": 77 })).await;
        app.settle().await;
        let ask = async |token: &str, filter: &str| {
            let path = format!("/audit/events?{filter}");
            app.request("GET", &path).token(token).send().await
        };
        for token in &operators {
            for limit in [1, 2, 100] {
                for (filter, nobody) in [
                    (format!("actorId={quiet}"), "actorId=sa_nobody"),
                    (format!("targetId={quiet}"), "targetId=sa_nobody"),
                    (format!("targetId={client}"), "targetId=ocl_nobody"),
                    (format!("targetId={credential}"), "targetId=cred_nobody"),
                    (format!("targetId={}", app.organization), "targetId=nobody"),
                    (
                        format!("actorId={quiet}&targetId={quiet}"),
                        "actorId=sa_nobody&targetId=sa_nobody",
                    ),
                ] {
                    let hit = ask(token, &format!("{filter}&limit={limit}")).await;
                    let miss = ask(token, &format!("{nobody}&limit={limit}")).await;
                    assert_eq!(hit.ok()["events"], json!([]), "{filter}");
                    assert_eq!(hit.bytes, miss.bytes, "{filter} limit={limit}");
                    assert!(
                        !ask(&overseers[0], &filter).await.ok()["events"]
                            .as_array()
                            .unwrap()
                            .is_empty()
                    );
                }
            }
            // A record that they may read is found, by its own entries alone: not by its identity link.
            let found = entries(&app, token, &format!("&targetId={person}")).await;
            let actions: Vec<&Value> = found.iter().map(|entry| &entry["action"]).collect();
            assert_eq!(actions, ["createHeadlessDirectoryUser"]);
            let all = entries(&app, &overseers[0], &format!("&targetId={person}")).await;
            assert_eq!(all.len(), 2);
            // Their actor finds those entries that show it.
            for entry in entries(&app, token, &format!("&actorId={}", app.admin_id)).await {
                assert_eq!(entry["actor"]["id"], json!(app.admin_id), "{entry}");
            }
            // What is kept of every entry finds every entry.
            for filter in [
                "&action=createHeadlessMcpClient",
                "&outcome=allowed",
                "&from=2020-01-01T00:00:00Z",
            ] {
                let (seen, whole) = (
                    entries(&app, token, filter).await,
                    entries(&app, &overseers[0], filter).await,
                );
                assert_eq!(seen.len(), whole.len(), "{filter}");
                assert!(!seen.is_empty(), "{filter}");
            }
        }
    });
}

/// Proves FE-2.
#[test]
fn a_credential_shows_its_entries_and_events_to_whom_it_is_assigned() {
    each("fences_assigned", |app: Arc<App>| async move {
        let workshop = oauth::workshop(&app);
        let app = oauth::trusting(&app, &workshop);
        let (id, direct) = app.account("assigned", "operator", &[]).await;
        let (_, other) = app
            .account("not assigned", "operator", &["audit:read", "events:read"])
            .await;
        let person = oauth::user(&app, "ann@acme.example", Some("operator")).await;
        let member = oauth::user(&app, "bob@acme.example", Some("operator")).await;
        let team = group(&app, "team").await;
        let path = format!("/directory/groups/{team}/members/{member}");
        app.write("PUT", &path, json!({})).await.ok();
        let delegated = |email: &str, subject: &str| {
            oauth::token(&workshop, |claims| {
                claims["sub"] = subject.into();
                claims["email"] = email.into();
                claims["scope"] = "audit:read events:read".into();
            })
        };
        let (ann, bob) = (
            delegated("ann@acme.example", "ann"),
            delegated("bob@acme.example", "bob"),
        );
        let resource = make_resource(&app).await;
        let path = format!("/resources/{resource}/credentials");
        let assign = async |users: &[&str], groups: &[&str], accounts: &[&str]| {
            let mut body = credential_body();
            body["assignedTo"] = json!({ "users": users, "groups": groups, "serviceAccounts": accounts });
            let id = made(&app, &path, body.clone()).await;
            // A rotation is an event as well.
            body["secret"] = "another secret".into();
            app.write("PUT", &format!("{path}/{id}"), body).await.ok();
            id
        };
        let of_account = assign(&[], &[], &[&id]).await;
        let of_person = assign(&[&person], &[], &[]).await;
        let of_team = assign(&[], &[&team], &[]).await;
        let of_nobody = assign(&[], &[], &[]).await;
        app.advance(1);
        let cases = [
            (&direct, vec![&of_account]),
            (&ann, vec![&of_person]),
            (&bob, vec![&of_team]),
            (&other, vec![]),
            (&app.admin, vec![&of_account, &of_person, &of_team, &of_nobody]),
        ];
        for (token, own) in &cases {
            let seen = [entries(&app, token, "").await, events(&app, token).await].concat();
            for credential in [&of_account, &of_person, &of_team, &of_nobody] {
                let is_own = own.contains(&credential);
                let named = seen
                    .iter()
                    .filter(|entry| entry.to_string().contains(credential.as_str()));
                // Made and changed, and one event for each of: assigned, rotated.
                let count = named.count();
                assert!(
                    if is_own { count >= 3 } else { count == 0 },
                    "{credential}: {count}"
                );
                let found = entries(&app, token, &format!("&targetId={credential}")).await;
                assert_eq!(found.len(), if is_own { 2 } else { 0 }, "{credential}");
                assert!(found.iter().all(|entry| entry.get("withheld").is_none()));
            }
        }
        // What is taken away is no longer shown, what came before neither.
        let body = credential_body();
        app.write("PUT", &format!("{path}/{of_account}"), body).await.ok();
        let seen = [entries(&app, &direct, "").await, events(&app, &direct).await].concat();
        assert!(seen.iter().all(|entry| !entry.to_string().contains(&of_account)));
        // Who leaves a group reads no more of it.
        app.delete(&format!("/directory/groups/{team}/members/{member}"))
            .await;
        let seen = [entries(&app, &bob, "").await, events(&app, &bob).await].concat();
        assert!(seen.iter().all(|entry| !entry.to_string().contains(&of_team)));
        app.kernel.stop().await;
    });
}

#[test]
fn a_tool_shows_an_operator_no_more_than_the_operation() {
    each("fences_mcp", |app: Arc<App>| async move {
        let (operators, overseers) = readers(&app).await;
        let client = register(&app, public_client("client of nobody's business")).await;
        let call = async |token: &str, tool: &str| {
            let body = json!({
                "jsonrpc": "2.0", "id": 1, "method": "tools/call",
                "params": { "name": tool, "arguments": { "limit": 100 } },
            });
            let request = http::Request::post("/mcp?toolsets=all")
                .header("host", "127.0.0.1")
                .header("authorization", format!("Bearer {token}"))
                .header("content-type", "application/json")
                .header("accept", "application/json, text/event-stream")
                .body(axum::body::Body::from(body.to_string()))
                .unwrap();
            let reply = oauth::answer(&app, request).await;
            assert_eq!(reply.status.as_u16(), 200, "{}", reply.text());
            reply.text()
        };
        for tool in ["listHeadlessAuditEvents", "listHeadlessEvents"] {
            assert!(call(&overseers[0], tool).await.contains(&client), "{tool}");
            let seen = call(&operators[0], tool).await;
            assert!(!seen.contains(&client), "{tool}: {seen}");
            assert!(seen.contains("withheld"), "{tool}: {seen}");
        }
    });
}

/// Proves AD-5.
#[test]
fn an_entry_of_the_programs_own_act_is_salted() {
    each("fences_salt", |app: Arc<App>| async move {
        note(&app, "directory.import.expired", None).await;
        user(&app, "somebody").await;
        let mut salts = BTreeSet::new();
        for entry in entries(&app, &app.admin, "").await {
            let salt = entry["salt"].as_str();
            assert_ne!(salt.is_some(), entry["requestId"].is_string(), "{entry}");
            if let Some(salt) = salt {
                assert!(salt.len() == 32 && salts.insert(salt.to_owned()), "{entry}");
            }
        }
        assert!(salts.len() >= 2);
    });
}
