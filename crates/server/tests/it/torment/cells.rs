//! Every operation on a record, in every state of the record, by every role: one table (R15).
//!
//! A cell says what is answered and, where the record moves, to which state. Whatever the table does not say leaves the
//! record as it was. Roles that an operation is not declared for are refused alike in every state. The world is closed:
//! an operation that names such a record and stands not in the table fails.
//!
//! Absent on purpose: `running` and `failed` runs, which need a worker that is held or broken (`backtests_worker.rs`).

use super::run;
use crate::areas::{self, mcp_sessions};
use crate::areas_beside::every_area;
use crate::policy::backtests_worker::{Worker, ended};
use crate::samples::{self, Target};
use crate::support::{App, fresh_key, with_trio};
use provost_kernel::auth::Role;
use provost_kernel::operation::{Access, Entry};
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;
use std::sync::Arc;

/// One kind of record: the path parameters that name it, and what an admin is answered in each state.
struct Record {
    kind: &'static str,
    parameters: &'static [&'static str],
    states: &'static [&'static str],
    /// A line for each operation: its id, then the answer of each state, in order. `200>disabled` moves the record.
    table: &'static str,
}

const RECORDS: [Record; 6] = [
    Record {
        kind: "account",
        parameters: &["serviceAccountId"],
        states: &["active", "disabled", "deleted"],
        table: "
            getHeadlessServiceAccount              200            200         404
            updateHeadlessServiceAccount           200            200         404
            disableHeadlessServiceAccount          200>disabled   200         404
            enableHeadlessServiceAccount           200            200>active  404
            deleteHeadlessServiceAccount           204>deleted    204>deleted 404
            rotateHeadlessServiceAccountToken      200            409         404",
    },
    Record {
        kind: "token",
        parameters: &["tokenId"],
        states: &["current", "superseded", "expired", "revoked"],
        table: "
            revokeHeadlessServiceAccountToken      200>revoked    200>revoked 200>revoked 200",
    },
    Record {
        kind: "session",
        parameters: &["sessionId"],
        states: &["active", "revoked", "expired"],
        table: "
            getHeadlessMcpSession                  200            200         200
            revokeHeadlessMcpSession               200>revoked    200         200",
    },
    Record {
        kind: "configuration",
        parameters: &["profileId", "releaseId"],
        states: &["empty", "released", "archived"],
        table: "
            getHeadlessManagedConfigProfile        200            200          200
            updateHeadlessManagedConfigProfile     200            200          409
            archiveHeadlessManagedConfigProfile    200>archived   200>archived 200
            restoreHeadlessManagedConfigProfile    200            200          200>released
            getHeadlessManagedConfigCurrent        404            200          200
            listHeadlessManagedConfigReleases      200            200          200
            publishHeadlessManagedConfigRelease    200>released   200          409
            getHeadlessManagedConfigRelease        404            200          200
            getHeadlessManagedConfigReleaseContent 404            200          200
            diffHeadlessManagedConfigReleases      404            200          200
            reportHeadlessManagedConfigTarget      200            200          200
            rollbackHeadlessManagedConfigProfile   409            200          409
            listHeadlessManagedConfigTargets       200            200          200
            listHeadlessProfileDevices             200            200          200",
    },
    Record {
        kind: "policy",
        parameters: &["policyId"],
        states: &["enabled", "disabled", "claimed", "deleted"],
        table: "
            getHeadlessContentPolicy               200            200         200     404
            updateHeadlessContentPolicy            200            200>enabled 409     404
            deleteHeadlessContentPolicy            204>deleted    204>deleted 409     404
            getHeadlessAccessPolicy                200            200         200     404
            updateHeadlessAccessPolicy             200            200>enabled 409     404
            deleteHeadlessAccessPolicy             204>deleted    204>deleted 409     404
            getHeadlessResourcePolicy              200            200         200     404
            updateHeadlessResourcePolicy           200            200>enabled 409     404
            deleteHeadlessResourcePolicy           204>deleted    204>deleted 409     404
            getHeadlessSkillAcl                    200            200         200     404
            updateHeadlessSkillAcl                 200            200>enabled 409     404
            deleteHeadlessSkillAcl                 204>deleted    204>deleted 409     404
            getHeadlessPolicyAuthority             200            200         200     404
            claimHeadlessPolicyAuthority           200>claimed    200>claimed 409     404
            releaseHeadlessPolicyAuthority         409            409         409     404
            listHeadlessPolicyRevisions            200            200         200     404",
    },
    Record {
        kind: "backtest",
        parameters: &["runId"],
        states: &["queued", "succeeded", "canceled"],
        table: "
            getHeadlessPolicyBacktest              200            200         200
            cancelHeadlessPolicyBacktest           200>canceled   409         200
            getHeadlessPolicyBacktestDefinitions   200            200         200
            listHeadlessPolicyBacktestSamples      200            200         200",
    },
];

impl Record {
    /// The operations of the table with what each state answers.
    fn rows(&self) -> BTreeMap<&'static str, Vec<&'static str>> {
        let lines = self.table.lines().filter(|line| !line.trim().is_empty());
        let rows = lines.map(|line| {
            let mut words = line.split_whitespace();
            (words.next().unwrap(), words.collect())
        });
        rows.collect()
    }

    /// Says whether an operation is about this kind: its path ends in a record of it. What a device calls for itself no role may.
    fn is_named_by(&self, entry: &Entry) -> bool {
        if matches!(entry.meta.access, Access::OfKind { .. }) {
            return false;
        }
        let parameters = entry.meta.path_parameters();
        parameters
            .last()
            .is_some_and(|last| self.parameters.contains(last))
    }
}

#[test]
fn every_operation_on_a_record_stands_in_the_table() {
    let registry = provost_server::app::registry().unwrap();
    for record in &RECORDS {
        let rows = record.rows();
        let of_kind = registry
            .entries()
            .iter()
            .filter(|entry| record.is_named_by(entry));
        let declared: BTreeSet<&str> = of_kind.map(|entry| entry.meta.id).collect();
        let stated: BTreeSet<&str> = rows.keys().copied().collect();
        assert_eq!(declared, stated, "{}", record.kind);
        for (id, cells) in rows {
            assert_eq!(cells.len(), record.states.len(), "{id}");
        }
    }
}

#[test]
fn every_cell_is_as_the_table_says() {
    run::each_of(every_area(), "cells", &run::roomy(), |app: Arc<App>| async move {
        let mut actors = Vec::new();
        for role in Role::ALL {
            // By name, because some scopes are granted to nobody else.
            let scopes = role.grants().to_list();
            actors.push((role, app.account(role.as_str(), role.as_str(), &scopes).await.1));
        }
        let (mut cells, mut moves, mut wrong) = (0, 0, String::new());
        for record in &RECORDS {
            for (id, row) in record.rows() {
                let entry = app.kernel.registry.find(id).unwrap();
                for (place, answer) in row.iter().enumerate() {
                    let state = record.states[place];
                    let (status, next) = answer.split_once('>').unwrap_or((answer, state));
                    for (role, token) in &actors {
                        cells += 1;
                        let allowed = may(entry, *role);
                        let (status, next) = if allowed { (status, next) } else { ("403", state) };
                        moves += usize::from(next != state);
                        let target = bring(&app, record.kind, entry, state).await;
                        let seen = observe(&app, record.kind, entry, &target).await;
                        assert_eq!(seen, state, "{id}: the record of this cell");
                        let reply = samples::call(&app, entry, &target).token(token).send().await;
                        let after = observe(&app, record.kind, entry, &target).await;
                        if reply.status.as_str() != status || after != next {
                            let _ = writeln!(
                                wrong,
                                "{} {id} {state} {}: {}>{after}, expected {status}>{next} {}",
                                record.kind,
                                role.as_str(),
                                reply.status.as_str(),
                                if reply.status.is_success() {
                                    String::new()
                                } else {
                                    reply.text()
                                },
                            );
                        }
                    }
                }
            }
        }
        assert!(wrong.is_empty(), "\n{wrong}");
        json!({ "cells": cells, "transitions": moves })
    });
}

/// Whether a role with all its scopes may call; what the declaration says, as in `permissions.rs`.
fn may(entry: &Entry, role: Role) -> bool {
    match entry.meta.access {
        Access::Authenticated => true,
        Access::OfKind { .. } => false,
        Access::Scoped { roles, .. }
        | Access::ScopedEither { roles, .. }
        | Access::ScopedBoth { roles, .. }
        | Access::ScopedOrSelf { roles, .. } => roles.contains(&role),
    }
}

/// Makes a record in a state.
async fn bring(app: &App, kind: &str, entry: &Entry, state: &str) -> Target {
    let mut target = Target::absent();
    match kind {
        "account" => {
            target = samples::fresh_target(app).await;
            let path = format!("/service-accounts/{}", target.account);
            match state {
                "disabled" => drop(
                    app.write("POST", &format!("{path}/disable"), json!({}))
                        .await
                        .ok()
                        .clone(),
                ),
                "deleted" => assert_eq!(app.delete(&path).await.status.as_u16(), 204),
                _ => {}
            }
        }
        "token" => target = token(app, state).await,
        "session" => {
            let mut session = mcp_sessions::new_session(app, "client of the cells");
            session.expires_at = app.now().plus_secs(if state == "expired" { 60 } else { 86_400 });
            let id = mcp_sessions::open(app, vec![session]).await.remove(0);
            match state {
                "revoked" => drop(
                    app.write("POST", &format!("/mcp/sessions/{id}/revoke"), json!({}))
                        .await
                        .ok()
                        .clone(),
                ),
                "expired" => app.advance(60),
                _ => {}
            }
            target.others.insert("sessionId", id);
        }
        "configuration" => configuration(app, entry, state, &mut target).await,
        "policy" => policy(app, entry, state, &mut target).await,
        "backtest" => {
            let made = areas::make(app, entry.meta, &mut target.others);
            made.await;
            let id = target.others["runId"].clone();
            match state {
                "succeeded" => {
                    let worker = Worker::start(app);
                    ended(app, &id).await;
                    worker.stop().await;
                }
                "canceled" => {
                    let body = json!({ "confirm": true });
                    let path = format!("/policies/backtests/{id}/cancel");
                    app.write("POST", &path, body).await.ok();
                }
                _ => {}
            }
        }
        other => panic!("no way to make a {other}"),
    }
    target
}

async fn token(app: &App, state: &str) -> Target {
    let mut target = samples::fresh_target(app).await;
    let path = format!("/service-accounts/{}", target.account);
    match state {
        "superseded" => {
            let body = json!({ "gracePeriodSeconds": 3600 });
            app.write("POST", &format!("{path}/tokens"), body).await.ok();
        }
        "expired" => {
            let body = json!({
                "name": fresh_key(), "permissionRole": "viewer", "allOfRole": true, "expiresInSeconds": 3600,
            });
            let made = app.write("POST", "/service-accounts", body).await;
            let id = |value: &Value| value["id"].as_str().unwrap().to_owned();
            target.account = id(&made.ok()["serviceAccount"]);
            target.token = id(&made.json["token"]);
            app.advance(3600);
        }
        "revoked" => {
            let path = format!("{path}/tokens/{}/revoke", target.token);
            app.write("POST", &path, json!({ "confirm": true })).await.ok();
        }
        _ => {}
    }
    target
}

async fn configuration(app: &App, entry: &Entry, state: &str, target: &mut Target) {
    if state == "empty" {
        let body = json!({ "name": fresh_key(), "target": "generic_json" });
        let made = app.write("POST", "/managed-config/profiles", body).await;
        let id = made.ok()["profile"]["id"].as_str().unwrap().to_owned();
        target.others.insert("profileId", id);
        return;
    }
    areas::make(app, entry.meta, &mut target.others).await;
    if state == "archived" {
        let path = format!("/managed-config/profiles/{}/archive", target.others["profileId"]);
        app.write("POST", &path, json!({})).await.ok();
    }
}

/// The collection of the policies that an operation is about.
fn collection(entry: &Entry) -> &'static str {
    let found = [
        "content-policies",
        "access-policies",
        "resource-policies",
        "skill-acls",
    ]
    .into_iter()
    .find(|collection| entry.meta.path.contains(collection));
    found.unwrap_or("content-policies")
}

async fn policy(app: &App, entry: &Entry, state: &str, target: &mut Target) {
    let collection = collection(entry);
    let id = if state == "disabled" {
        app.draft(collection).await
    } else {
        app.policy(collection).await
    };
    match state {
        "claimed" => {
            // By somebody else who is still there.
            let (_, token) = app.account(&fresh_key(), "admin", &["policies:write"]).await;
            let body = json!({ "expectedRevision": 1, "managerId": "platform", "managerInstance": "one" });
            let path = format!("/policy-authority/{id}/claim");
            let call = app.request("POST", &path).token(&token);
            call.json(with_trio(body, &fresh_key())).send().await.ok();
        }
        "deleted" => {
            let path = format!("/{collection}/{id}?expectedRevision=1");
            assert_eq!(app.delete(&path).await.status.as_u16(), 204);
        }
        _ => {}
    }
    target.others.insert("policyId", id);
}

/// Reads in which state a record is.
async fn observe(app: &App, kind: &str, entry: &Entry, target: &Target) -> String {
    let of = |name: &str| target.others[name].clone();
    let path = match kind {
        "account" | "token" => format!("/service-accounts/{}", target.account),
        "session" => format!("/mcp/sessions/{}", of("sessionId")),
        "configuration" => format!("/managed-config/profiles/{}", of("profileId")),
        "policy" => format!("/{}/{}", collection(entry), of("policyId")),
        _ => format!("/policies/backtests/{}", of("runId")),
    };
    let reply = app.get(&path).await;
    if reply.status.as_u16() == 404 {
        return "deleted".to_owned();
    }
    let seen = reply.ok();
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    match kind {
        "account" => text(&seen["serviceAccount"]["status"]),
        "token" => {
            let tokens = seen["serviceAccount"]["tokens"].as_array().unwrap();
            let token = tokens
                .iter()
                .find(|token| token["id"] == target.token.as_str())
                .unwrap();
            let expires = provost_kernel::Timestamp::parse(token["expiresAt"].as_str().unwrap()).unwrap();
            let state = if token["revokedAt"].is_string() {
                "revoked"
            } else if expires <= app.now() {
                "expired"
            } else if token["supersededById"].is_string() {
                "superseded"
            } else {
                "current"
            };
            state.to_owned()
        }
        "session" if seen["session"]["revokeReason"] == "expired" => "expired".to_owned(),
        "session" => text(&seen["session"]["status"]),
        "configuration" if seen["profile"]["status"] == "archived" => "archived".to_owned(),
        "configuration" if seen["profile"]["currentReleaseId"].is_string() => "released".to_owned(),
        "configuration" => "empty".to_owned(),
        "policy" if seen["item"]["managerId"].is_string() => "claimed".to_owned(),
        "policy" if seen["item"]["definition"]["enabled"] == true => "enabled".to_owned(),
        "policy" => "disabled".to_owned(),
        _ => text(&seen["status"]),
    }
}
