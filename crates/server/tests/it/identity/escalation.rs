//! Nobody hands out more than they hold (R35, SA-3), and the last governor stays (SA-4).

use crate::support::{App, Dice, Reply, each, every_scope, workload};
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::sync::Arc;

const ROLES: [&str; 5] = ["admin", "operator", "auditor", "viewer", "member"];

/// What an account is allowed, in the oracle's own words.
#[derive(Clone, Debug)]
struct Rights {
    role: &'static str,
    /// `None`: everything that the role can, now and later.
    scopes: Option<Vec<&'static str>>,
}

/// What a role can use only where a list names it (ADR 0046).
fn by_name(role: &str, scope: &str) -> bool {
    (scope == "managed_config:pull" && !["viewer", "member"].contains(&role))
        || (scope == "policies:inspect" && role == "operator")
}

/// What a role can use at all, from the decisions' text rather than from the product's code.
fn granted(role: &str, scope: &str) -> bool {
    if by_name(role, scope) {
        return true;
    }
    let reads = scope.ends_with(":read");
    let own = ["registry:install", "service_accounts:rotate_self"].contains(&scope);
    let everybody = ["fleet:enrol_self", "mcp_approvals:request", "policies:feedback"].contains(&scope);
    everybody
        || (own && role != "member")
        || match role {
            "admin" => true,
            "operator" => {
                let acts = [
                    "fleet:write",
                    "managed_config:rollback",
                    "policies:backtest",
                    "policies:decide",
                    "policies:history",
                    "llm_gateway:resolve",
                    "resources:connect",
                ];
                (reads && !["service_accounts:read", "mcp:read", "workload_trusts:read"].contains(&scope))
                    || acts.contains(&scope)
            }
            "auditor" => {
                (reads && scope != "mcp:read") || ["audit:export", "policies:history"].contains(&scope)
            }
            "viewer" => ["inventory:read", "policies:read", "fleet:read"].contains(&scope),
            _ => false,
        }
}

impl Rights {
    fn effective(&self) -> BTreeSet<&'static str> {
        let holds = |scope: &&str| {
            let Some(list) = &self.scopes else {
                return !by_name(self.role, scope);
            };
            let write = scope
                .strip_suffix(":read")
                .map(|toolset| format!("{toolset}:write"));
            list.contains(scope) || write.is_some_and(|w| list.contains(&w.as_str()))
        };
        every_scope()
            .into_iter()
            .filter(|s| granted(self.role, s) && holds(s))
            .collect()
    }

    fn may_make(&self, target: &Rights) -> bool {
        let role = match target.role {
            "member" => true,
            "viewer" => self.role != "member",
            other => self.role == other || self.role == "admin",
        };
        let future = target.scopes.is_some() || self.scopes.is_none();
        role && future && target.effective().is_subset(&self.gives())
    }

    /// Who writes a list holds all that stands in it, also what the role does not grant yet.
    fn may_write(&self, target: &Rights, known: &[&str]) -> bool {
        let gives = self.gives();
        let mut list = target.scopes.iter().flatten();
        self.may_make(target) && list.all(|scope| known.contains(scope) || gives.contains(scope))
    }

    fn gives(&self) -> BTreeSet<&'static str> {
        let mut gives = self.effective();
        if self.scopes.is_none() {
            // Who has all of a role gives what the role holds by name alone.
            gives.extend(
                every_scope()
                    .into_iter()
                    .filter(|scope| by_name(self.role, scope)),
            );
        }
        gives
    }

    fn random(dice: &mut Dice, role: Option<&'static str>, must: &[&'static str]) -> Self {
        let role = role.unwrap_or_else(|| dice.pick::<&str>(&ROLES));
        if dice.chance(6) {
            return Self { role, scopes: None };
        }
        // Few scopes, many, and nearly all: subsets in both directions come up often enough.
        let (among, from) = *dice.pick(&[(2, 8), (8, 9), (20, 21)]);
        let mut scopes: Vec<_> = every_scope()
            .into_iter()
            .filter(|_| dice.below(from) < among)
            .collect();
        scopes.extend(must);
        scopes.sort_unstable();
        scopes.dedup();
        if scopes.is_empty() {
            scopes.push("policies:read");
        }
        Self {
            role,
            scopes: Some(scopes),
        }
    }

    /// A part of these rights.
    fn part(&self, dice: &mut Dice) -> Self {
        let scopes: Vec<_> = self.effective().into_iter().filter(|_| !dice.chance(3)).collect();
        let scopes = if scopes.is_empty() {
            vec!["policies:read"]
        } else {
            scopes
        };
        Self {
            role: if dice.chance(3) { "viewer" } else { self.role },
            scopes: Some(scopes),
        }
    }

    fn body(&self) -> Value {
        match &self.scopes {
            Some(scopes) => json!({ "permissionRole": self.role, "scopes": scopes }),
            None => json!({ "permissionRole": self.role, "allOfRole": true }),
        }
    }
}

async fn make(app: &App, name: &str, rights: &Rights) -> (String, String) {
    let mut body = rights.body();
    body["name"] = name.into();
    let made = app.write("POST", "/service-accounts", body).await;
    let id = made.ok()["serviceAccount"]["id"].as_str().unwrap().to_owned();
    (id, made.json["token"]["token"].as_str().unwrap().to_owned())
}

#[track_caller]
fn judge(act: &str, allowed: bool, reply: &Reply, caller: &Rights, target: &Rights) {
    if allowed {
        assert!(
            reply.status.is_success(),
            "{act} {caller:?} {target:?}: {}",
            reply.text()
        );
    } else {
        let told = (reply.status.as_u16(), reply.code());
        assert_eq!(told, (403, "escalation_forbidden"), "{act} {caller:?} {target:?}");
    }
}

/// Proves AU-2, SA-3, SA-11.
#[test]
fn an_act_that_hands_out_rights_is_allowed_iff_the_caller_holds_them() {
    each("escalation", |app: Arc<App>| async move {
        let mut dice = Dice::new("escalation");
        let (mut allowed_count, mut refused_count) = (0, 0);
        for round in 0..workload("PROVOST_TEST_PAIRS", 30, 60) {
            let must = ["service_accounts:write", "service_accounts:rotate"];
            let caller = Rights::random(&mut dice, Some("admin"), &must);
            let target = if dice.chance(2) {
                caller.part(&mut dice)
            } else {
                Rights::random(&mut dice, None, &[])
            };
            let (_, token) = make(&app, &format!("caller {round}"), &caller).await;
            let (id, _) = make(&app, &format!("target {round}"), &target).await;
            let (blank, _) = make(
                &app,
                &format!("blank {round}"),
                &Rights {
                    role: "viewer",
                    scopes: Some(vec!["policies:read"]),
                },
            )
            .await;
            let path = format!("/service-accounts/{id}");
            let act = async |method: &str, path: &str, body: Value| {
                let body = crate::support::with_trio(body, &crate::support::fresh_key());
                app.request(method, path).token(&token).json(body).send().await
            };
            let allowed = caller.may_make(&target);
            let any = caller.effective().contains("service_accounts:rotate_any");
            let rotated = act("POST", &format!("{path}/tokens"), json!({})).await;
            judge("rotate", allowed || any, &rotated, &caller, &target);
            let mut body = target.body();
            body["name"] = format!("made {round}").into();
            let created = act("POST", "/service-accounts", body).await;
            judge(
                "create",
                caller.may_write(&target, &[]),
                &created,
                &caller,
                &target,
            );
            let updated = act("PATCH", &format!("/service-accounts/{blank}"), target.body()).await;
            let same = target.role == "viewer" && target.scopes.as_deref() == Some(&["policies:read"]);
            let may_write = caller.may_write(&target, &["policies:read"]);
            judge("update", may_write || same, &updated, &caller, &target);
            app.write("POST", &format!("{path}/disable"), json!({}))
                .await
                .ok();
            let enabled = act("POST", &format!("{path}/enable"), json!({})).await;
            judge("enable", allowed, &enabled, &caller, &target);
            let count = if allowed {
                &mut allowed_count
            } else {
                &mut refused_count
            };
            *count += 1;
        }
        assert!(
            // Of thirty pairs that chance picks, few may be of one kind.
            allowed_count > 1 && refused_count > 1,
            "{allowed_count} allowed, {refused_count} refused"
        );
    });
}

/// Proves SA-4.
#[test]
fn the_last_governor_stays() {
    each("governors", |app: Arc<App>| async move {
        let me = app.admin_id.clone();
        let path = format!("/service-accounts/{me}");
        let shown = app.seen(&me).await;
        let token = shown["tokens"][0]["id"].as_str().unwrap();
        let revoke = format!("{path}/tokens/{token}/revoke");
        let confirm = json!({ "confirm": true });
        // Nobody disables, deletes or re-roles themselves; the last one does not revoke its last token either.
        app.write("POST", &format!("{path}/disable"), json!({}))
            .await
            .refused(409, "conflict");
        app.delete(&path).await.refused(409, "conflict");
        app.write("PATCH", &path, json!({ "permissionRole": "viewer" }))
            .await
            .refused(409, "conflict");
        app.write("PATCH", &path, json!({ "scopes": ["service_accounts:write"] }))
            .await
            .refused(409, "conflict");
        app.write("POST", &revoke, confirm.clone())
            .await
            .refused(409, "conflict");

        // An admin who may not write accounts, one whose token may not, one that is disabled and one whose
        // token has expired repair nothing: they do not count.
        make(
            &app,
            "weak",
            &Rights {
                role: "admin",
                scopes: Some(vec!["audit:read"]),
            },
        )
        .await;
        let narrow = ["service_accounts:read"];
        let body = json!({
            "name": "widened later", "permissionRole": "admin", "scopes": narrow, "tokenScopes": narrow,
        });
        let made = app.write("POST", "/service-accounts", body).await.ok().clone();
        let widened = made["serviceAccount"]["id"].as_str().unwrap();
        app.write(
            "PATCH",
            &format!("/service-accounts/{widened}"),
            json!({ "allOfRole": true }),
        )
        .await
        .ok();
        let (off, _) = make(
            &app,
            "off",
            &Rights {
                role: "admin",
                scopes: None,
            },
        )
        .await;
        app.write("POST", &format!("/service-accounts/{off}/disable"), json!({}))
            .await
            .ok();
        let body = json!({ "name": "short", "permissionRole": "admin", "allOfRole": true, "expiresInSeconds": 3600 });
        app.write("POST", "/service-accounts", body).await.ok();
        app.advance(3600);
        app.write("POST", &revoke, confirm.clone())
            .await
            .refused(409, "conflict");

        // A second one counts, and then each may end the other but the last.
        let (other, other_token) = make(
            &app,
            "other",
            &Rights {
                role: "admin",
                scopes: None,
            },
        )
        .await;
        let by_other = async |method: &str, path: &str, body: Value| {
            let body = crate::support::with_trio(body, &crate::support::fresh_key());
            app.request(method, path)
                .token(&other_token)
                .json(body)
                .send()
                .await
        };
        by_other("POST", &format!("{path}/disable"), json!({})).await.ok();
        by_other("POST", &format!("/service-accounts/{other}/disable"), json!({}))
            .await
            .refused(409, "conflict");
        let last = app
            .request("GET", &format!("/service-accounts/{other}"))
            .token(&other_token)
            .send()
            .await;
        let last = last.ok()["serviceAccount"]["tokens"][0]["id"].as_str().unwrap();
        let revoke_last = format!("/service-accounts/{other}/tokens/{last}/revoke");
        by_other("POST", &revoke_last, confirm.clone())
            .await
            .refused(409, "conflict");
        by_other("POST", &format!("{path}/enable"), json!({})).await.ok();
        by_other("POST", &revoke_last, confirm).await.ok();
        assert_eq!(app.used(&other_token).await, (401, "token_revoked".into()));
        // Rotation is always possible: it leaves a usable token.
        let grace = json!({ "gracePeriodSeconds": 600 });
        app.write("POST", &format!("{path}/tokens"), grace).await.ok();
        // So the one before, which lives on for its grace, may go.
        app.write("POST", &revoke, json!({ "confirm": true })).await.ok();
        assert_eq!(app.used(&app.admin).await, (401, "token_revoked".into()));
    });
}

/// Proves SA-4.
#[test]
fn two_governors_do_not_end_each_other_at_once() {
    each("governors_race", |app: Arc<App>| async move {
        let mut tokens = Vec::new();
        for n in 0..2 {
            tokens.push(
                make(
                    &app,
                    &format!("governor {n}"),
                    &Rights {
                        role: "admin",
                        scopes: None,
                    },
                )
                .await,
            );
        }
        let first = format!("/service-accounts/{}/disable", app.admin_id);
        let end = async |by: usize, path: String| {
            let body = crate::support::with_trio(json!({}), &crate::support::fresh_key());
            app.request("POST", &path)
                .token(&tokens[by].1)
                .json(body)
                .send()
                .await
        };
        end(0, first).await.ok();
        let path = |of: usize| format!("/service-accounts/{}/disable", tokens[of].0);
        let (one, other) = tokio::join!(end(0, path(1)), end(1, path(0)));
        let done = [&one, &other].iter().filter(|r| r.status.is_success()).count();
        assert_eq!(done, 1, "{} {}", one.text(), other.text());
    });
}
