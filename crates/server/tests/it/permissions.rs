//! Who may call what: every operation of the registry × every caller × every kind of object (R29, R31).
//!
//! What is expected follows from the declarations by the rules below, which are written anew from D3.1 to D3.4
//! and share no line with the program.

use crate::areas;
use crate::areas::fleet::Machine;
use crate::areas_beside::every_area;
use crate::samples::{self, Target, assert_golden, masked};
use crate::support::{App, Reply, each_of, every_scope};
use crate::torment::run;
use provost_kernel::auth::Role;
use provost_kernel::fence::Readers;
use provost_kernel::kernel::Settings;
use provost_kernel::operation::{Access, Entry, Kind, Meta, Registry};
use provost_server::app;
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::fmt::Write;
use std::sync::Arc;

/// What a role can use only where an account's own list names it (ADR 0046).
fn is_by_name(role: Role, scope: &str) -> bool {
    match scope {
        "managed_config:pull" => ![Role::Viewer, Role::Member].contains(&role),
        "policies:inspect" => role == Role::Operator,
        _ => false,
    }
}

/// What a role can use at all (D3.1).
fn role_holds(role: Role, scope: &str) -> bool {
    if is_by_name(role, scope) {
        return true;
    }
    let for_itself = [
        "policies:feedback",
        "registry:install",
        "service_accounts:rotate_self",
        "fleet:enrol_self",
        "mcp_approvals:request",
    ]
    .contains(&scope);
    let reads = scope.ends_with(":read");
    match role {
        Role::Admin => true,
        Role::Auditor => {
            for_itself
                || ["audit:export", "policies:history"].contains(&scope)
                || (reads && scope != "mcp:read")
        }
        Role::Operator => {
            for_itself
                || (reads && !["mcp:read", "service_accounts:read", "workload_trusts:read"].contains(&scope))
                || [
                    "fleet:write",
                    "managed_config:rollback",
                    "policies:backtest",
                    "policies:decide",
                    "policies:history",
                    "llm_gateway:resolve",
                    "resources:connect",
                ]
                .contains(&scope)
        }
        Role::Viewer => for_itself || ["inventory:read", "policies:read", "fleet:read"].contains(&scope),
        Role::Member => ["fleet:enrol_self", "mcp_approvals:request", "policies:feedback"].contains(&scope),
    }
}

/// What a list of scopes holds: `write` implies `read` of the same toolset (D3.2).
fn list_holds(list: &[&str], scope: &str) -> bool {
    let writing = scope.replace(":read", ":write");
    list.contains(&scope) || (scope.ends_with(":read") && list.contains(&writing.as_str()))
}

/// A caller whose token works.
#[derive(Clone)]
struct Caller {
    name: String,
    id: String,
    token: String,
    role: Role,
    /// `None` is all of the role.
    scopes: Option<Vec<&'static str>>,
}

impl Caller {
    fn holds(&self, scope: &str) -> bool {
        let is_held = match &self.scopes {
            None => !is_by_name(self.role, scope),
            Some(list) => list_holds(list, scope),
        };
        is_held && role_holds(self.role, scope)
    }

    /// Returns the code of the refusal, if the declaration refuses this caller.
    fn refusal(&self, access: Access, is_self: bool) -> Option<&'static str> {
        let (scope, roles) = match access {
            Access::Authenticated => return None,
            Access::OfKind { .. } => return Some("role_forbidden"),
            Access::Scoped { scope, roles } => (scope, roles),
            Access::ScopedBoth { scope, other, roles } => {
                let has_other = roles.contains(&self.role) && self.holds(other);
                (if has_other { scope } else { other }, roles)
            }
            Access::ScopedEither { scope, other, roles } => {
                if roles.contains(&self.role) && self.holds(other) {
                    return None;
                }
                (scope, roles)
            }
            Access::ScopedOrSelf {
                scope,
                roles,
                self_scope,
                ..
            } => {
                if is_self && self.holds(self_scope) {
                    return None;
                }
                (scope, roles)
            }
        };
        if !roles.contains(&self.role) {
            return Some("role_forbidden");
        }
        (!self.holds(scope)).then_some("insufficient_scope")
    }
}

fn needed_scope(access: Access) -> Option<&'static str> {
    match access {
        Access::Authenticated | Access::OfKind { .. } => None,
        Access::Scoped { scope, .. }
        | Access::ScopedEither { scope, .. }
        | Access::ScopedBoth { scope, .. }
        | Access::ScopedOrSelf { scope, .. } => Some(scope),
    }
}

async fn caller(app: &App, name: &str, role: Role, scopes: Option<Vec<&'static str>>) -> Caller {
    let (id, token) = app
        .account(name, role.as_str(), scopes.as_deref().unwrap_or(&[]))
        .await;
    Caller {
        name: name.to_owned(),
        id,
        token,
        role,
        scopes,
    }
}

/// Tokens that no operation takes, with the code of their refusal.
async fn strangers(app: &App) -> Vec<(&'static str, Option<String>, &'static str)> {
    let (id, revoked) = app.account("is rotated", "admin", &[]).await;
    app.write("POST", &format!("/service-accounts/{id}/tokens"), json!({}))
        .await
        .ok();
    let (id, disabled) = app.account("is disabled", "admin", &[]).await;
    app.write("POST", &format!("/service-accounts/{id}/disable"), json!({}))
        .await
        .ok();
    let (id, deleted) = app.account("is deleted", "admin", &[]).await;
    let call = app.request("DELETE", &format!("/service-accounts/{id}"));
    let call = call
        .header("x-reason", "a test")
        .header("idempotency-key", &crate::support::fresh_key());
    call.header("x-confirm", "true").send().await.ok();
    let body =
        json!({ "name": "expires", "permissionRole": "admin", "allOfRole": true, "expiresInSeconds": 3600 });
    let made = app.write("POST", "/service-accounts", body).await;
    let expired = made.ok()["token"]["token"].as_str().unwrap().to_owned();
    app.advance(3600);
    let last = |token: &str| if token.ends_with('0') { "1" } else { "0" };
    let mut checksum = app.admin.clone();
    checksum.replace_range(checksum.len() - 1.., last(&app.admin));
    vec![
        ("none", None, "unauthenticated"),
        ("garbage", Some("prov_sat_garbage".to_owned()), "unauthenticated"),
        ("wrong checksum", Some(checksum), "unauthenticated"),
        ("expired", Some(expired), "token_expired"),
        ("revoked", Some(revoked), "token_revoked"),
        ("disabled account", Some(disabled), "unauthenticated"),
        ("deleted account", Some(deleted), "unauthenticated"),
    ]
}

/// The objects that a call can be aimed at, and whether they are the organization's own and alive.
struct Objects {
    deleted: Target,
    foreign: Target,
}

impl Objects {
    async fn of(app: &App) -> Self {
        let deleted = samples::fresh_target(app).await;
        let registry = &app.kernel.registry;
        let delete = registry.find("deleteHeadlessServiceAccount").unwrap();
        samples::call(app, delete, &deleted).send().await.ok();
        // Entries of the log are not deleted; this one has the place of an entry and another random half.
        let mut entry = deleted.entry.clone();
        let last = if entry.ends_with('0') { "1" } else { "0" };
        entry.replace_range(entry.len() - 1.., last);
        let foreign = foreign_target(app).await;
        Self {
            deleted: Target {
                entry,
                others: areas::deleted(app).await,
                ..deleted
            },
            foreign,
        }
    }

    /// Every object but one of the organization's own.
    fn others(&self) -> [(&'static str, Target); 4] {
        [
            ("own deleted", self.deleted.clone()),
            ("absent", Target::absent()),
            ("another organization's", self.foreign.clone()),
            ("malformed", Target::malformed()),
        ]
    }
}

/// A principal without a role, of a kind that has operations of its own.
struct OfKind {
    name: &'static str,
    kind: &'static str,
    id: String,
    token: String,
    /// With which status and code every operation answers, if not by its declaration.
    always: Option<(u16, &'static str)>,
}

impl OfKind {
    /// Returns the refusal of a call for a record, if there is one.
    fn refusal(&self, entry: &Entry, target: &Target) -> Option<(u16, &'static str)> {
        let Access::OfKind { kind, parameter } = entry.meta.access else {
            // The door is shut before anybody looks who it is.
            return Some((401, "unauthenticated"));
        };
        if self.always.is_some() {
            return self.always;
        }
        let is_own = parameter.is_empty() || target.others.get(parameter) == Some(&self.id);
        (kind != self.kind || !is_own).then_some((403, "role_forbidden"))
    }
}

/// Machines and enrolment tokens in every state, of here and elsewhere.
async fn of_kinds(app: &App) -> Vec<OfKind> {
    let act = async |id: &str, verb: &str| {
        let body = if verb == "retire" {
            json!({ "confirm": true })
        } else {
            json!({})
        };
        app.write("POST", &format!("/devices/{id}/{verb}"), body)
            .await
            .ok();
    };
    let device = |name, machine: &Machine, always| OfKind {
        name,
        kind: "device",
        id: machine.id.clone(),
        token: machine.token.clone(),
        always,
    };
    let enrolment = |name, token, always| OfKind {
        name,
        kind: "enrolment_token",
        id: String::new(),
        token,
        always,
    };
    let (active, apart, retired) = (
        Machine::new(app).await,
        Machine::new(app).await,
        Machine::new(app).await,
    );
    act(&apart.id, "quarantine").await;
    act(&retired.id, "retire").await;
    let (organization, admin) = app.other_organization("Stark").await;
    let there = app.view_of(organization, admin);
    let elsewhere = Some((403, "organization_forbidden"));
    let (id, secret) = areas::fleet::enrolment_token(app, json!({})).await;
    app.machines.bind(&secret, &areas::fleet::new_key());
    let path = format!("/devices/enrolment-tokens/{id}/revoke");
    app.write("POST", &path, json!({})).await.ok();
    let fresh = async |app: &App| areas::fleet::caller(app, "enrolment_token", None).await;
    vec![
        device("a device", &active, None),
        device("a quarantined device", &apart, None),
        device("a retired device", &retired, Some((401, "token_revoked"))),
        device(
            "a device of another organization",
            &Machine::new(&there).await,
            elsewhere,
        ),
        enrolment("an enrolment token", fresh(app).await, None),
        enrolment("a revoked enrolment token", secret, Some((401, "token_revoked"))),
        enrolment(
            "an enrolment token of another organization",
            fresh(&there).await,
            elsewhere,
        ),
    ]
}

async fn foreign_target(app: &App) -> Target {
    // An entry's id is its instant and its place: the first entries of two chains may share one.
    app.advance(1);
    let (organization, token) = app.other_organization("Umbrella").await;
    let base = format!("/api/headless/v1/organizations/{organization}");
    let read = async |rest: &str| {
        let call = app.request("GET", "").at(&format!("{base}{rest}"));
        call.token(&token).send().await
    };
    let accounts = read("/service-accounts").await;
    let account = &accounts.ok()["serviceAccounts"][0];
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    let events = read("/audit/events").await;
    let mut others = Target::absent().others;
    let there = app.view_of(organization.clone(), token.clone());
    for entry in app.kernel.registry.entries() {
        areas::make(&there, entry.meta, &mut others).await;
    }
    Target {
        account: text(&account["id"]),
        token: text(&account["tokens"][0]["id"]),
        entry: text(&events.ok()["events"][0]["id"]),
        others,
    }
}

/// Proves AU-1, CX-1, DP-2.
#[test]
fn every_cell_of_the_matrix_is_as_declared() {
    let settings = Settings {
        rate_limits: false,
        ..Settings::default()
    };
    run::once_of(every_area(), "matrix", &settings, |app: Arc<App>| async move {
        let strangers = strangers(&app).await;
        let objects = Objects::of(&app).await;
        samples::checkpoint(&app).await;
        let (_, umbrella) = app.other_organization("Wayne").await;
        let mut callers = Vec::new();
        for role in Role::ALL {
            callers.push(caller(&app, role.as_str(), role, None).await);
            let named: Vec<&str> = every_scope()
                .into_iter()
                .filter(|s| is_by_name(role, s))
                .collect();
            if !named.is_empty() {
                let name = format!("{} who is named for it", role.as_str());
                callers.push(caller(&app, &name, role, Some(named)).await);
            }
        }
        let needed = app
            .kernel
            .registry
            .entries()
            .iter()
            .filter_map(|e| needed_scope(e.meta.access));
        for scope in needed.collect::<BTreeSet<_>>() {
            let rest = every_scope()
                .into_iter()
                .filter(|s| !list_holds(&[*s], scope))
                .collect();
            callers.push(caller(&app, &format!("admin without {scope}"), Role::Admin, Some(rest)).await);
        }
        callers.push(
            caller(
                &app,
                "viewer without anything",
                Role::Viewer,
                Some(vec!["service_accounts:rotate_self"]),
            )
            .await,
        );
        let of_kinds = of_kinds(&app).await;
        let mut owned = Vec::new();
        for entry in app.kernel.registry.entries() {
            owned.push((entry, samples::fresh_target_of(&app, entry).await));
        }
        // All that is refused, then all that is allowed: reading the state takes as long as a hundred calls.
        let mut cells = 0;
        let before = samples::state(&app).await;
        for (entry, own) in &owned {
            cells += strangers_are_refused(&app, entry, own, &objects, &strangers, &umbrella).await;
            cells += refusals_are_as_declared(&app, entry, own, &objects, &callers).await;
            cells += who_has_no_role_is_refused(&app, entry, own, &objects, &of_kinds).await;
        }
        assert_eq!(
            samples::state(&app).await,
            before,
            "a refused call left an effect"
        );
        for (entry, own) in &owned {
            cells += what_is_declared_is_allowed(&app, entry, own, &callers).await;
            if matches!(entry.meta.access, Access::OfKind { .. }) {
                let reply = samples::call(&app, entry, own).send().await;
                assert_eq!(
                    reply.status.as_u16(),
                    entry.meta.status,
                    "{}: {}",
                    entry.meta.id,
                    reply.text()
                );
                cells += 1;
            }
        }
        let operations = app.kernel.registry.entries().len();
        assert!(
            cells >= operations * 14,
            "{cells} cells of {operations} operations"
        );
        json!({
            "cells": cells,
            "operations": operations,
            "callers": callers.len() + of_kinds.len(),
            // One more is an admin elsewhere.
            "strangers": strangers.len() + 1,
            // One more is the organization's own.
            "objects": objects.others().len() + 1,
        })
    });
}

async fn strangers_are_refused(
    app: &App,
    entry: &Entry,
    own: &Target,
    objects: &Objects,
    strangers: &[(&str, Option<String>, &str)],
    foreign_admin: &str,
) -> usize {
    let mut targets = vec![("own", own.clone())];
    targets.extend(objects.others());
    let mut cells = 0;
    for (object, target) in &targets {
        for (name, token, code) in strangers {
            let call = samples::call(app, entry, target);
            let call = match token {
                Some(token) => call.token(token),
                None => call.anonymous(),
            };
            let reply = call.send().await;
            let place = format!("{} by {name} on {object}", entry.meta.id);
            assert_eq!(
                (reply.status.as_u16(), reply.code()),
                (401, *code),
                "{place}: {}",
                reply.text()
            );
            assert!(
                reply
                    .header("www-authenticate")
                    .starts_with("Bearer realm=\"headless\""),
                "{place}"
            );
            cells += 1;
        }
        let reply = samples::call(app, entry, target)
            .token(foreign_admin)
            .send()
            .await;
        reply.refused(403, "organization_forbidden");
        cells += 1;
    }
    cells
}

fn expect(reply: &Reply, meta: &Meta, caller: &Caller, object: &str, expected: (u16, &str)) {
    let cell = format!("{} by {} on {object}: {}", meta.id, caller.name, reply.text());
    assert_eq!((reply.status.as_u16(), reply.code()), expected, "{cell}");
}

/// Who may not call is told so whatever the object; who may learns nothing of what is not the organization's.
async fn refusals_are_as_declared(
    app: &App,
    entry: &Entry,
    own: &Target,
    objects: &Objects,
    callers: &[Caller],
) -> usize {
    let meta = entry.meta;
    let mut others = objects.others().to_vec();
    others.retain(|_| samples::names_a_record(entry));
    let mut targets = others.clone();
    targets.push(("own", own.clone()));
    let mut cells = 0;
    for caller in callers {
        let refusal = caller.refusal(meta.access, false);
        for (object, target) in if refusal.is_some() { &targets } else { &others } {
            let call = samples::call(app, entry, target).token(&caller.token);
            let reply = call.send().await;
            match refusal {
                Some(code) => {
                    expect(&reply, meta, caller, object, (403, code));
                    challenged(&reply, meta.access, code);
                }
                None => expect(&reply, meta, caller, object, (404, "not_found")),
            }
            cells += 1;
        }
    }
    cells
}

/// Whoever has no role is refused by whatever does not name its kind, and by what does where it names another record.
async fn who_has_no_role_is_refused(
    app: &App,
    entry: &Entry,
    own: &Target,
    objects: &Objects,
    of_kinds: &[OfKind],
) -> usize {
    let mut targets = vec![("own", own.clone())];
    targets.extend(objects.others());
    let mut cells = 0;
    for (object, target) in &targets {
        for caller in of_kinds {
            let Some(expected) = caller.refusal(entry, target) else {
                continue;
            };
            let call = samples::call(app, entry, target).token(&caller.token);
            let reply = call.send().await;
            let place = format!(
                "{} by {} on {object}: {}",
                entry.meta.id,
                caller.name,
                reply.text()
            );
            assert_eq!((reply.status.as_u16(), reply.code()), expected, "{place}");
            cells += 1;
        }
    }
    cells
}

async fn what_is_declared_is_allowed(app: &App, entry: &Entry, own: &Target, callers: &[Caller]) -> usize {
    let meta = entry.meta;
    let mut cells = 0;
    for caller in callers {
        if caller.refusal(meta.access, false).is_none() {
            let mut own = match meta.kind {
                Kind::Read => own.clone(),
                Kind::Write => samples::fresh_target_of(app, entry).await,
            };
            areas::make_own(app, meta, &caller.token, &mut own.others).await;
            let reply = samples::call(app, entry, &own).token(&caller.token).send().await;
            // Accounts do not do what people alone do, whatever they may do otherwise.
            let expected = if samples::needs_a_person(meta) {
                (403, "escalation_forbidden")
            } else {
                (meta.status, "")
            };
            expect(&reply, meta, caller, "own", expected);
            cells += 1;
        }
        if meta.path_parameters().contains(&"serviceAccountId") {
            itself(app, entry, caller).await;
            cells += 1;
        }
    }
    cells
}

/// The record itself calls: an account of the caller's rights that its own path names.
async fn itself(app: &App, entry: &Entry, caller: &Caller) {
    let name = crate::support::fresh_key();
    let twin = self::caller(app, &name, caller.role, caller.scopes.clone()).await;
    let shown = app.get(&format!("/service-accounts/{}", twin.id)).await;
    let token = shown.ok()["serviceAccount"]["tokens"][0]["id"].as_str().unwrap();
    let target = Target {
        account: twin.id.clone(),
        token: token.to_owned(),
        ..Target::absent()
    };
    let reply = samples::call(app, entry, &target).token(&twin.token).send().await;
    let cell = format!("{} by {} on itself: {}", entry.meta.id, caller.name, reply.text());
    match twin.refusal(entry.meta.access, true) {
        Some(code) => assert_eq!((reply.status.as_u16(), reply.code()), (403, code), "{cell}"),
        // The rules about oneself are rules of state (D5.7): an account does not disable or delete itself.
        None if ["disableHeadlessServiceAccount", "deleteHeadlessServiceAccount"]
            .contains(&entry.meta.id) =>
        {
            assert_eq!((reply.status.as_u16(), reply.code()), (409, "conflict"), "{cell}");
        }
        None => assert_eq!(reply.status.as_u16(), entry.meta.status, "{cell}"),
    }
}

/// A missing scope is named, and nothing else is challenged (D1.7).
fn challenged(reply: &Reply, access: Access, code: &str) {
    let challenge = reply.header("www-authenticate");
    if code != "insufficient_scope" {
        assert_eq!(challenge, "");
        return;
    }
    let scope = match access {
        Access::ScopedBoth { scope, other, .. } => format!("{scope} {other}"),
        _ => needed_scope(access).unwrap().to_owned(),
    };
    let expected = format!("Bearer error=\"insufficient_scope\", scope=\"{scope}\", resource_metadata=\"");
    assert!(challenge.starts_with(&expected), "{challenge}");
}

/// Proves AU-1, DP-1.
#[test]
fn a_foreign_and_an_unknown_organization_are_the_same() {
    each_of(every_area(), "foreign_organization", |app: Arc<App>| async move {
        let (umbrella, _) = app.other_organization("Umbrella").await;
        let long = "a".repeat(200);
        for entry in app.kernel.registry.entries() {
            let mut answers = BTreeSet::new();
            for organization in [
                umbrella.as_str(),
                "nowhere",
                "_installation",
                "A%20B",
                "%00",
                "%ff",
                &long,
            ] {
                let target = Target::absent();
                let rest = samples::path(entry.meta, &target);
                let path = format!("/api/headless/v1/organizations/{organization}{rest}");
                let reply = samples::call(&app, entry, &target).at(&path).send().await;
                reply.refused(403, "organization_forbidden");
                answers.insert(masked(&reply));
            }
            assert_eq!(answers.len(), 1, "{}: {answers:#?}", entry.meta.id);
        }
    });
}

/// Proves DP-2.
#[test]
fn a_foreign_a_deleted_and_an_absent_record_are_the_same() {
    each_of(every_area(), "foreign_record", |app: Arc<App>| async move {
        let objects = Objects::of(&app).await;
        samples::checkpoint(&app).await;
        for entry in app.kernel.registry.entries() {
            if !samples::names_a_record(entry) {
                continue;
            }
            let mut answers = BTreeSet::new();
            let mut targets: Vec<Target> = objects.others().into_iter().map(|(_, target)| target).collect();
            if entry.meta.path_parameters().contains(&"tokenId") {
                // A token belongs to its account: with another one it is as good as absent.
                let own = samples::fresh_target(&app).await.account;
                answers.insert(token_answer(&app, entry, &own, &objects.foreign.token).await);
                answers.insert(token_answer(&app, entry, &own, &objects.deleted.token).await);
                answers.insert(token_answer(&app, entry, &own, &Target::absent().token).await);
                assert_eq!(answers.len(), 1, "{}: {answers:#?}", entry.meta.id);
                answers.clear();
                let own = samples::fresh_target(&app).await;
                targets.push(Target {
                    token: own.token,
                    ..Target::absent()
                });
            }
            let is_of_kind = matches!(entry.meta.access, Access::OfKind { .. });
            if is_of_kind {
                // Who calls for itself is refused another record alike, whatever it is.
                targets.push(samples::fresh_target_of(&app, entry).await);
            }
            for target in targets {
                let reply = if is_of_kind {
                    let stranger = Target::absent();
                    let path = app.path(&samples::path(entry.meta, &target));
                    let reply = samples::call(&app, entry, &stranger).at(&path).send().await;
                    reply.refused(403, "role_forbidden");
                    reply
                } else {
                    let reply = samples::call(&app, entry, &target).send().await;
                    reply.refused(404, "not_found");
                    reply
                };
                answers.insert(masked(&reply));
            }
            assert_eq!(answers.len(), 1, "{}: {answers:#?}", entry.meta.id);
        }
    });
}

async fn token_answer(
    app: &App,
    entry: &Entry,
    account: &str,
    token: &str,
) -> (u16, String, Vec<(String, String)>) {
    let target = Target {
        account: account.to_owned(),
        token: token.to_owned(),
        ..Target::absent()
    };
    let reply = samples::call(app, entry, &target).send().await;
    reply.refused(404, "not_found");
    masked(&reply)
}

#[test]
fn the_matrix_is_the_committed_one() {
    let registry = app::registry().unwrap();
    let mut text = String::from(
        "# Operations, the scope that each needs, and the roles that may call it.\n\
         # self: with the scope rotate_self any role may call it on itself. !: needs confirm.\n\
         # named: only who names the scope may; all of the role is not enough.\n\n",
    );
    let _ = writeln!(
        text,
        "{:<36} {:<6} {:<62} {:<28} admin operator auditor viewer member",
        "operation", "", "path", "scope"
    );
    for entry in registry.entries() {
        let meta = entry.meta;
        let (scope, roles, suffix): (&str, &[Role], String) = match meta.access {
            Access::Authenticated => ("-", &Role::ALL, String::new()),
            Access::OfKind { kind, .. } => ("-", &[], format!(" {kind} itself")),
            Access::Scoped { scope, roles } => (scope, roles, String::new()),
            Access::ScopedEither { scope, other, roles } => (scope, roles, format!(" or {other}")),
            Access::ScopedBoth { scope, other, roles } => (scope, roles, format!(" and {other}")),
            Access::ScopedOrSelf { scope, roles, .. } => (scope, roles, " self".into()),
        };
        let mark = |role: Role| match (roles.contains(&role), scope == "-" || role_holds(role, scope)) {
            (true, true) if is_by_name(role, scope) => "named",
            (true, true) => "yes",
            (true, false) => panic!("{}: {} may call it and cannot", meta.id, role.as_str()),
            (false, _) => ".",
        };
        let confirm = if meta.confirm { "!" } else { "" };
        let line = format!(
            "{:<36} {:<6} {:<62} {:<28} {:<5} {:<8} {:<7} {:<6} {}{suffix}",
            meta.id,
            meta.method.as_str(),
            format!("{}{confirm}", meta.shown_path()),
            scope,
            mark(Role::Admin),
            mark(Role::Operator),
            mark(Role::Auditor),
            mark(Role::Viewer),
            mark(Role::Member)
        );
        let _ = writeln!(text, "{line}");
    }
    text += "\n# Scopes that a role can hold at all.\n";
    for role in Role::ALL {
        let held: Vec<&str> = every_scope()
            .into_iter()
            .filter(|s| role_holds(role, s))
            .collect();
        assert_eq!(
            held,
            role.grants().names().collect::<Vec<_>>(),
            "{}",
            role.as_str()
        );
        let _ = writeln!(text, "{:<9} {}", role.as_str(), held.join(" "));
    }
    text += &fences_as_text(&registry);
    assert_golden("crates/server/tests/it/golden/permissions.txt", &text);
}

/// Who reads the details of what, by the kinds of records and events and by the acts (FE-1).
fn fences_as_text(registry: &Registry) -> String {
    let mut text = String::from(
        "\n# Who reads the details of audit entries and events. withheld: place, sequence, time, action and outcome alone;\n\
         # assigned: the details if the record is assigned to the caller. An entry shows its details if both its act and its\n\
         # record do. What is not listed is for admin and auditor.\n\n",
    );
    let _ = writeln!(text, "{:<58} admin operator auditor viewer", "");
    let mut line = |sort: &str, word: &str, readers: Readers| {
        let operator = match readers {
            Readers::Everybody => "yes",
            Readers::Overseers => "withheld",
            Readers::Assignees(_) => "assigned",
        };
        let _ = writeln!(
            text,
            "{sort:<8}{word:<50} {:<5} {operator:<8} {:<7} .",
            "yes", "yes"
        );
    };
    let fences = registry.fences();
    for kind in fences.targets() {
        line("record", kind.word(), kind.readers());
    }
    for kind in fences.events() {
        line("event", kind.word(), kind.readers());
    }
    for (path, readers) in fences.members() {
        line("change", path, readers);
    }
    for (act, readers) in fences.acts() {
        line("act", act, readers);
    }
    text
}
