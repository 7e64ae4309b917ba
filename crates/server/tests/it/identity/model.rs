//! Accounts and tokens against a small model of what they should be (R15; D5).
//!
//! The number of cases is `PROVOST_TEST_MODEL_CASES`; a failure prints its seed and the shortest sequence.

use crate::support::{App, Reply, each, fresh_key, number, with_trio};
use proptest::prelude::*;
use proptest::test_runner::{Config, RngSeed, TestRunner};
use provost_kernel::db::Location;
use serde_json::{Value, json};
use std::sync::Arc;

/// An act. Accounts are named by their place in the order of creation; places wrap around.
#[derive(Clone, Debug)]
enum Act {
    Create {
        admin: bool,
        hours: i64,
    },
    Update(usize),
    Disable(usize),
    Enable(usize),
    Delete(usize),
    Rotate {
        account: usize,
        grace: Option<i64>,
        hours: Option<i64>,
        by_itself: bool,
    },
    /// The token's place among those of its account.
    Revoke(usize, usize),
    Advance(i64),
}

fn act() -> impl Strategy<Value = Act> {
    let account = || 0_usize..4;
    prop_oneof![
        2 => (any::<bool>(), 1_i64..50).prop_map(|(admin, hours)| Act::Create { admin, hours }),
        1 => account().prop_map(Act::Update),
        2 => account().prop_map(Act::Disable),
        3 => account().prop_map(Act::Enable),
        1 => account().prop_map(Act::Delete),
        6 => (account(), prop::option::of(0_i64..20_000), prop::option::of(1_i64..50), any::<bool>())
            .prop_map(|(account, grace, hours, by_itself)| Act::Rotate { account, grace, hours, by_itself }),
        2 => (account(), 0_usize..4).prop_map(|(a, t)| Act::Revoke(a, t)),
        3 => prop_oneof![Just(1), Just(3_600_000), 1_i64..20_000_000].prop_map(Act::Advance),
    ]
}

#[derive(Clone, Debug)]
struct Token {
    id: String,
    secret: String,
    created: i64,
    expires: i64,
    /// The life that it was given.
    life: i64,
    /// The longest life that it gives its successor by itself.
    ceiling: i64,
    revoked: bool,
    superseded: bool,
}

impl Token {
    fn usable(&self, now: i64) -> bool {
        !self.revoked && now < self.expires
    }

    fn is_current(&self, now: i64) -> bool {
        self.usable(now) && !self.superseded
    }
}

#[derive(Clone, Debug)]
struct Account {
    id: String,
    admin: bool,
    enabled: bool,
    deleted: bool,
    updated: i64,
    description: Option<String>,
    tokens: Vec<Token>,
}

/// What should be.
struct Model {
    accounts: Vec<Account>,
    now: i64,
    /// The scenario's own admin, who is always a second governor.
    acts: usize,
}

impl Model {
    /// Does an act on both sides and compares the answers.
    #[expect(
        clippy::too_many_lines,
        reason = "one arm for every act: the model is read as a table"
    )]
    async fn step(&mut self, app: &App, act: &Act) {
        self.acts += 1;
        let name = format!("account {}", self.acts);
        let (count, now) = (self.accounts.len(), self.now);
        let place = match act {
            Act::Create { .. } | Act::Advance(_) => 0,
            Act::Update(a) | Act::Disable(a) | Act::Enable(a) | Act::Delete(a) | Act::Revoke(a, _) => *a,
            Act::Rotate { account, .. } => *account,
        };
        if let Act::Advance(ms) = act {
            self.now += ms;
            app.clock
                .advance(std::time::Duration::from_millis(u64::try_from(*ms).unwrap()));
            return;
        }
        if let Act::Create { admin, hours } = act {
            let role = if *admin { "admin" } else { "viewer" };
            let body = json!({ "name": name, "permissionRole": role, "allOfRole": true, "expiresInSeconds": hours * 3600 });
            let reply = app.write("POST", "/service-accounts", body).await;
            let id = reply.ok()["serviceAccount"]["id"].as_str().unwrap().to_owned();
            let life = hours * 3_600_000;
            let token = issued(&reply, now, life, life);
            let (description, tokens) = (None, vec![token]);
            self.accounts.push(Account {
                id,
                admin: *admin,
                enabled: true,
                deleted: false,
                updated: now,
                description,
                tokens,
            });
            return;
        }
        if count == 0 {
            return;
        }
        let account = &mut self.accounts[place % count];
        let path = format!("/service-accounts/{}", account.id);
        if account.deleted {
            app.write("POST", &format!("{path}/enable"), json!({}))
                .await
                .refused(404, "not_found");
            return;
        }
        let moved = now.max(account.updated + 1);
        match act {
            Act::Update(_) => {
                app.write("PATCH", &path, json!({ "description": name }))
                    .await
                    .ok();
                account.description = Some(name);
                account.updated = moved;
            }
            Act::Disable(_) => {
                app.write("POST", &format!("{path}/disable"), json!({}))
                    .await
                    .ok();
                if std::mem::replace(&mut account.enabled, false) {
                    account.updated = moved;
                }
            }
            Act::Enable(_) => {
                app.write("POST", &format!("{path}/enable"), json!({})).await.ok();
                if !std::mem::replace(&mut account.enabled, true) {
                    account.updated = moved;
                }
            }
            Act::Delete(_) => {
                assert_eq!(app.delete(&path).await.status.as_u16(), 204);
                account.deleted = true;
            }
            Act::Revoke(_, token) => {
                let count = account.tokens.len();
                let token = &mut account.tokens[token % count];
                let revoke = format!("{path}/tokens/{}/revoke", token.id);
                app.write("POST", &revoke, json!({ "confirm": true })).await.ok();
                if !std::mem::replace(&mut token.revoked, true) {
                    account.updated = moved;
                }
            }
            Act::Rotate {
                grace,
                hours,
                by_itself,
                ..
            } => {
                let mut body = json!({});
                if let Some(grace) = grace {
                    body["gracePeriodSeconds"] = (*grace).into();
                }
                if let Some(hours) = hours {
                    body["expiresInSeconds"] = (hours * 3600).into();
                }
                let current = account.tokens.iter().rev().find(|t| t.usable(now));
                let own = current.filter(|_| *by_itself && account.enabled);
                let caller = own.map_or_else(|| app.admin.clone(), |token| token.secret.clone());
                let last = account.tokens.iter().rev().find(|t| !t.superseded);
                // A viewer rotates nobody but itself.
                let bound = own.filter(|_| !account.admin).map(|token| {
                    let of_last = last.map_or(token.ceiling, |last| last.ceiling);
                    token.ceiling.min(of_last)
                });
                let call = app.request("POST", &format!("{path}/tokens")).token(&caller);
                let reply = call.json(with_trio(body, &fresh_key())).send().await;
                // Of tokens that were made in one millisecond and have all ended nobody can say which was last.
                self.now += 1;
                app.clock.advance(std::time::Duration::from_millis(1));
                let asked = hours.map(|h| h * 3_600_000);
                if bound.zip(asked).is_some_and(|(bound, asked)| asked > bound) {
                    return reply.refused(403, "escalation_forbidden");
                }
                if !account.enabled {
                    return reply.refused(409, "disabled");
                }
                let kept = last.map_or(90 * 86_400_000, |t| t.life);
                let life = asked.unwrap_or(kept).min(bound.unwrap_or(i64::MAX));
                let ceiling = bound
                    .or(asked)
                    .or_else(|| last.map(|t| t.ceiling))
                    .unwrap_or(life);
                for token in account.tokens.iter_mut().filter(|t| t.usable(now)) {
                    if token.superseded || grace.unwrap_or(0) == 0 {
                        token.revoked = true;
                    } else {
                        token.expires = token.expires.min(now + grace.unwrap_or(0) * 1000);
                    }
                    token.superseded = true;
                }
                account.tokens.push(issued(&reply, now, life, ceiling));
                account.updated = moved;
            }
            Act::Create { .. } | Act::Advance(_) => {}
        }
    }

    /// Compares everything that can be seen.
    async fn compare(&self, app: &App) {
        let list = app.get("/service-accounts?limit=100").await;
        let alive: Vec<_> = self.accounts.iter().filter(|a| !a.deleted).collect();
        assert_eq!(list.ok()["total"], alive.len() + 1);
        for account in &self.accounts {
            if account.deleted {
                app.get(&format!("/service-accounts/{}", account.id))
                    .await
                    .refused(404, "not_found");
            }
            for token in &account.tokens {
                let expected = if account.deleted {
                    (401, "unauthenticated")
                } else if token.revoked {
                    (401, "token_revoked")
                } else if self.now >= token.expires {
                    (401, "token_expired")
                } else if account.enabled {
                    (200, "")
                } else {
                    (401, "unauthenticated")
                };
                let (status, code) = app.used(&token.secret).await;
                assert_eq!((status, code.as_str()), expected, "{token:?}");
            }
        }
        for account in alive {
            let seen = app.seen(&account.id).await;
            let listed = list.json["serviceAccounts"].as_array().unwrap();
            assert!(listed.contains(&seen), "list and get say the same");
            assert_eq!(
                seen["status"],
                if account.enabled { "active" } else { "disabled" }
            );
            assert_eq!(seen.get("disabledAt").is_some(), !account.enabled);
            assert_eq!(
                seen["permissionRole"],
                if account.admin { "admin" } else { "viewer" }
            );
            assert_eq!(seen["description"].as_str(), account.description.as_deref());
            assert_eq!(instant(&seen["updatedAt"]), account.updated);
            self.compare_tokens(account, seen["tokens"].as_array().unwrap());
        }
    }

    fn compare_tokens(&self, account: &Account, seen: &[Value]) {
        let current = account.tokens.iter().filter(|t| t.is_current(self.now));
        let graced = account
            .tokens
            .iter()
            .filter(|t| t.usable(self.now) && t.superseded);
        assert!(current.count() <= 1 && graced.count() <= 1, "SA-1");
        let mut expected: Vec<&Token> = account.tokens.iter().collect();
        expected.sort_by_key(|t| (!t.is_current(self.now), -t.created));
        let ended = |t: &&&Token| !t.usable(self.now);
        let dropped = expected.iter().filter(ended).count().saturating_sub(20);
        assert_eq!(seen.len(), expected.len() - dropped);
        for view in seen {
            let token = account
                .tokens
                .iter()
                .find(|t| view["id"] == t.id.as_str())
                .unwrap();
            assert_eq!(instant(&view["expiresAt"]), token.expires);
            assert_eq!(instant(&view["createdAt"]), token.created);
            assert_eq!(view.get("revokedAt").is_some(), token.revoked);
            assert_eq!(view.get("supersededById").is_some(), token.superseded);
        }
        let times: Vec<_> = seen.iter().map(|v| instant(&v["createdAt"])).collect();
        let wanted: Vec<_> = expected.iter().map(|t| t.created).take(seen.len()).collect();
        assert_eq!(times, wanted, "current first, then the newest");
    }
}

fn instant(view: &Value) -> i64 {
    provost_kernel::Timestamp::parse(view.as_str().unwrap())
        .unwrap()
        .as_ms()
}

fn issued(reply: &Reply, now: i64, life: i64, ceiling: i64) -> Token {
    let token = &reply.ok()["token"];
    assert_eq!(instant(&token["expiresAt"]), now + life);
    Token {
        id: token["id"].as_str().unwrap().to_owned(),
        secret: token["token"].as_str().unwrap().to_owned(),
        created: now,
        expires: now + life,
        life,
        ceiling,
        revoked: false,
        superseded: false,
    }
}

#[test]
fn accounts_and_tokens_are_what_the_model_says() {
    each("model", |app: Arc<App>| async move {
        let default = if matches!(app.location(), Location::Sqlite(_)) {
            64
        } else {
            16
        };
        let cases = u32::try_from(number("PROVOST_TEST_MODEL_CASES", default)).unwrap();
        let mut fresh = crate::support::Dice::new("model");
        let seed = u64::try_from(fresh.below(usize::MAX)).unwrap();
        let config = Config {
            cases,
            rng_seed: RngSeed::Fixed(seed),
            failure_persistence: None,
            max_shrink_iters: 200,
            ..Config::default()
        };
        let handle = tokio::runtime::Handle::current();
        // Cases wait for answers: they run beside the runtime's own threads.
        let cases = tokio::task::spawn_blocking(move || {
            TestRunner::new(config).run(&prop::collection::vec(act(), 1..25), |acts| {
                let case = std::panic::AssertUnwindSafe(|| {
                    handle.block_on(async {
                        let app = in_own_organization(&app).await;
                        let mut model = Model {
                            accounts: Vec::new(),
                            now: app.now().as_ms(),
                            acts: 0,
                        };
                        for act in &acts {
                            model.step(&app, act).await;
                            model.compare(&app).await;
                        }
                    });
                });
                std::panic::catch_unwind(case)
                    .map_err(|_| TestCaseError::fail("the product differs from the model"))
            })
        });
        if let Err(error) = cases.await.unwrap() {
            panic!("{error}");
        }
    });
}

/// Every case has an organization of its own, so that nothing is left from the one before.
async fn in_own_organization(app: &App) -> App {
    let (organization, admin) = app.other_organization(&fresh_key()).await;
    app.view_of(organization, admin)
}

/// What an operation does to an account in a state: status and code, and the state after.
type Cell = (&'static str, &'static str, u16, &'static str, &'static str);

#[test]
fn every_operation_in_every_state_does_what_the_table_says() {
    const TABLE: &[Cell] = &[
        ("active", "get", 200, "", "active"),
        ("active", "update", 200, "", "active"),
        ("active", "disable", 200, "", "disabled"),
        ("active", "enable", 200, "", "active"),
        ("active", "rotate", 200, "", "active"),
        ("active", "revoke", 200, "", "tokenless"),
        ("active", "delete", 204, "", "deleted"),
        ("disabled", "get", 200, "", "disabled"),
        ("disabled", "update", 200, "", "disabled"),
        ("disabled", "disable", 200, "", "disabled"),
        ("disabled", "enable", 200, "", "active"),
        ("disabled", "rotate", 409, "disabled", "disabled"),
        ("disabled", "revoke", 200, "", "disabled"),
        ("disabled", "delete", 204, "", "deleted"),
        ("tokenless", "get", 200, "", "tokenless"),
        ("tokenless", "update", 200, "", "tokenless"),
        ("tokenless", "disable", 200, "", "disabled"),
        ("tokenless", "enable", 200, "", "tokenless"),
        ("tokenless", "rotate", 200, "", "active"),
        ("tokenless", "revoke", 200, "", "tokenless"),
        ("tokenless", "delete", 204, "", "deleted"),
        ("expired", "rotate", 200, "", "active"),
        ("expired", "revoke", 200, "", "tokenless"),
        ("expired", "enable", 200, "", "tokenless"),
        ("expired", "disable", 200, "", "disabled"),
        ("expired", "delete", 204, "", "deleted"),
        ("deleted", "get", 404, "not_found", "deleted"),
        ("deleted", "update", 404, "not_found", "deleted"),
        ("deleted", "disable", 404, "not_found", "deleted"),
        ("deleted", "enable", 404, "not_found", "deleted"),
        ("deleted", "rotate", 404, "not_found", "deleted"),
        ("deleted", "revoke", 404, "not_found", "deleted"),
        ("deleted", "delete", 404, "not_found", "deleted"),
    ];
    each("cells", |app: Arc<App>| async move {
        for (n, (state, operation, status, code, after)) in TABLE.iter().enumerate() {
            let body = json!({ "name": format!("cell {n}"), "permissionRole": "viewer", "allOfRole": true, "expiresInSeconds": 3600 });
            let made = app.write("POST", "/service-accounts", body).await;
            let id = made.ok()["serviceAccount"]["id"].as_str().unwrap().to_owned();
            let token = made.json["token"]["id"].as_str().unwrap().to_owned();
            let path = format!("/service-accounts/{id}");
            let act = async |operation: &str| match operation {
                "get" => app.get(&path).await,
                "update" => app.write("PATCH", &path, json!({ "description": "x" })).await,
                "rotate" => app.write("POST", &format!("{path}/tokens"), json!({})).await,
                "revoke" => {
                    let path = format!("{path}/tokens/{token}/revoke");
                    app.write("POST", &path, json!({ "confirm": true })).await
                }
                "delete" => app.delete(&path).await,
                act => app.write("POST", &format!("{path}/{act}"), json!({})).await,
            };
            match *state {
                "disabled" => drop(act("disable").await),
                "tokenless" => drop(act("revoke").await),
                "deleted" => drop(act("delete").await),
                "expired" => app.advance(3600),
                _ => {}
            }
            let reply = act(operation).await;
            assert_eq!(
                (reply.status.as_u16(), reply.code()),
                (*status, *code),
                "{state} {operation}"
            );
            let seen = app.get(&path).await;
            let now = app.now();
            let state = if seen.status.as_u16() == 404 {
                "deleted"
            } else if seen.ok()["serviceAccount"]["status"] == "disabled" {
                "disabled"
            } else {
                let tokens = seen.json["serviceAccount"]["tokens"].as_array().unwrap();
                let usable =
                    |t: &&Value| t.get("revokedAt").is_none() && instant(&t["expiresAt"]) > now.as_ms();
                if tokens.iter().any(|t| usable(&t)) {
                    "active"
                } else {
                    "tokenless"
                }
            };
            assert_eq!(state, *after, "{operation}");
        }
    });
}
