//! What clients saw at the same time has an order in which it could have happened one by one (R14).
//!
//! Eight clients call fifty times each, on one account, one setting, one policy and one resource. On PostgreSQL half
//! of them ask another server on the same store. A logical clock notes when a call begins and when its answer is there;
//! `checker.rs` looks for the order, object by object: a history is linearizable if each of its objects is.
//!
//! Absent on purpose: lost answers. The crash driver knows what to expect of them.

mod checker;
mod objects;

use super::run::{self, Progress};
use crate::areas::policies::definition;
use crate::areas::resources::resource_body;
use crate::support::{App, Dice, Reply, fresh_key, seed};
use checker::{Call, is_linearizable};
use objects::{Account, AccountAct, Policy, PolicyAct, Register, RegisterAct};
use provost_kernel::db::Location;
use serde_json::{Map, Value, json};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use tokio::task::JoinSet;

const CLIENTS: u64 = 8;
const CALLS: u64 = 50;
/// Histories of one store.
const EPOCH: u64 = 40;

const SETTINGS: &str = "/automation/settings";

#[derive(Clone, Debug)]
enum Act {
    Account(AccountAct),
    Setting(RegisterAct),
    Policy(PolicyAct),
    Resource(RegisterAct),
}

/// The objects of one history.
struct Objects {
    account: String,
    policy: String,
    resource: String,
}

#[test]
fn what_clients_saw_has_an_order() {
    let (seed, whole) = (seed("histories"), run::count(4));
    let mut figures = Map::new();
    for place in 0..run::stores("histories_engines").len() {
        let progress = Progress::of("histories", whole);
        let (mut done, mut calls, mut refused, mut engine) = (0, 0, 0, "");
        while done < whole {
            let store = run::stores("histories").swap_remove(place);
            let location = store.location();
            engine = run::engine(&location);
            let part = EPOCH.min(whole - done);
            run::runtime().block_on(async {
                let app = Arc::new(App::start(location.clone(), run::roomy()).await);
                let mut servers = vec![app.clone()];
                if matches!(location, Location::Postgres(_)) {
                    let second = app.beside(vec![], app.clock.clone(), run::roomy(), location.clone());
                    servers.push(Arc::new(second));
                }
                for n in done..done + part {
                    let (called, conflicts) = one(&servers, seed.wrapping_add(n)).await;
                    calls += called;
                    refused += conflicts;
                    progress.add(1);
                }
                for server in servers {
                    server.kernel.stop().await;
                }
                let _ = std::fs::remove_dir_all(&app.keys_dir);
            });
            done += part;
        }
        assert!(refused > 0, "no call met another one");
        let found =
            json!({ "seed": seed, "histories": whole, "calls": calls, "conflicts": refused, "rejected": 0 });
        figures.insert(engine.to_owned(), found);
    }
    run::report("histories", &Value::Object(figures));
}

/// Makes one history and judges it; returns how many calls and how many conflicts it holds.
async fn one(servers: &[Arc<App>], seed: u64) -> (u64, u64) {
    let app = &servers[0];
    let (account, _) = app.account(&fresh_key(), "viewer", &["fleet:read"]).await;
    let objects = Arc::new(Objects {
        account,
        policy: app.policy("content-policies").await,
        resource: crate::areas::resources::make_resource(app).await,
    });
    let begin = (
        read_account(app, &objects).await,
        setting(&app.get(SETTINGS).await),
        read_policy(app, &objects).await,
        port(&app.get(&format!("/resources/{}", objects.resource)).await),
    );
    let clock = Arc::new(AtomicU64::new(0));
    let mut clients = JoinSet::new();
    for client in 0..CLIENTS {
        let app = servers[usize::try_from(client).unwrap() % servers.len()].clone();
        let (objects, clock) = (objects.clone(), clock.clone());
        let mut dice = Dice::of(seed ^ (client << 48));
        clients.spawn(async move {
            let mut calls = Vec::new();
            let mut revision = 1;
            for n in 0..CALLS {
                let invoked = clock.fetch_add(1, Ordering::SeqCst);
                // Of a history no object has more calls than the checker takes.
                let act = call(&app, &objects, &mut dice, (client, n), &mut revision).await;
                let returned = clock.fetch_add(1, Ordering::SeqCst);
                calls.push(Call {
                    act,
                    invoked,
                    returned,
                });
            }
            calls
        });
    }
    let calls: Vec<Call<Act>> = clients.join_all().await.into_iter().flatten().collect();
    let conflict = |call: &&Call<Act>| {
        matches!(
            call.act,
            Act::Policy(PolicyAct::Put(_, _, None)) | Act::Account(AccountAct::Rotate(None))
        )
    };
    let conflicts = calls.iter().filter(conflict).count() as u64;
    judge("account", seed, &begin.0, &calls, |act| match act {
        Act::Account(act) => Some(act.clone()),
        _ => None,
    });
    judge("setting", seed, &Register(begin.1), &calls, |act| match act {
        Act::Setting(act) => Some(act.clone()),
        _ => None,
    });
    judge("policy", seed, &begin.2, &calls, |act| match act {
        Act::Policy(act) => Some(act.clone()),
        _ => None,
    });
    judge("resource", seed, &Register(begin.3), &calls, |act| match act {
        Act::Resource(act) => Some(act.clone()),
        _ => None,
    });
    (calls.len() as u64, conflicts)
}

fn judge<O: checker::Object>(
    what: &str,
    seed: u64,
    begin: &O,
    calls: &[Call<Act>],
    part: impl Fn(&Act) -> Option<O::Act>,
) {
    let calls: Vec<Call<O::Act>> = calls
        .iter()
        .filter_map(|call| {
            Some(Call {
                act: part(&call.act)?,
                invoked: call.invoked,
                returned: call.returned,
            })
        })
        .collect();
    assert!(!calls.is_empty(), "no call of the {what}");
    if !is_linearizable(begin, &calls) {
        let mut calls: Vec<_> = calls.iter().collect();
        calls.sort_by_key(|call| call.invoked);
        panic!("seed {seed}: the {what} has no order, from {begin:?}: {calls:#?}");
    }
}

async fn call(app: &App, objects: &Objects, dice: &mut Dice, who: (u64, u64), revision: &mut u64) -> Act {
    // One of the four in turn, so that each is called a hundred times; every value is put once.
    let (client, n) = who;
    let value = 1 + client * CALLS + n;
    match (client + n) % 4 {
        0 => Act::Account(call_account(app, objects, dice, value).await),
        1 if dice.chance(2) => {
            let lifetime = 20_000_000 + value;
            let body = json!({ "tokens": { "maxLifetimeSeconds": lifetime } });
            let shown = setting(&app.write("PUT", SETTINGS, body).await);
            Act::Setting(RegisterAct::Put(lifetime, shown))
        }
        1 => Act::Setting(RegisterAct::Get(setting(&app.get(SETTINGS).await))),
        2 if dice.chance(2) => {
            let mut policy = definition("content-policies", &objects.policy, "");
            policy["name"] = format!("name {value}").into();
            let expected = *revision;
            let body = json!({ "definition": policy, "expectedRevision": expected });
            let path = format!("/content-policies/{}", objects.policy);
            let reply = app.write("PUT", &path, body).await;
            let put = if reply.status.as_u16() == 409 {
                None
            } else {
                reply.ok();
                let made = policy_of(&reply).revision;
                *revision = made;
                Some(made)
            };
            Act::Policy(PolicyAct::Put(expected, format!("name {value}"), put))
        }
        2 => {
            let seen = read_policy(app, objects).await;
            *revision = seen.revision;
            Act::Policy(PolicyAct::Get(seen))
        }
        _ => {
            let path = format!("/resources/{}", objects.resource);
            if dice.chance(2) {
                let mut body = resource_body(&objects.resource);
                body["upstreamPort"] = value.into();
                let shown = port(&app.write("PUT", &path, body).await);
                Act::Resource(RegisterAct::Put(value, shown))
            } else {
                Act::Resource(RegisterAct::Get(port(&app.get(&path).await)))
            }
        }
    }
}

async fn call_account(app: &App, objects: &Objects, dice: &mut Dice, value: u64) -> AccountAct {
    let path = format!("/service-accounts/{}", objects.account);
    match dice.below(6) {
        0 => {
            let text = format!("text {value}");
            let reply = app.write("PATCH", &path, json!({ "description": text })).await;
            AccountAct::Describe(text, account_of(&reply))
        }
        1 => AccountAct::Disable(account_of(
            &app.write("POST", &format!("{path}/disable"), json!({})).await,
        )),
        2 => AccountAct::Enable(account_of(
            &app.write("POST", &format!("{path}/enable"), json!({})).await,
        )),
        3 => {
            let reply = app.write("POST", &format!("{path}/tokens"), json!({})).await;
            if reply.status.as_u16() == 409 {
                reply.refused(409, "disabled");
                return AccountAct::Rotate(None);
            }
            AccountAct::Rotate(Some(reply.ok()["token"]["id"].as_str().unwrap().to_owned()))
        }
        _ => AccountAct::Read(read_account(app, objects).await),
    }
}

async fn read_account(app: &App, objects: &Objects) -> Account {
    account_of(&app.get(&format!("/service-accounts/{}", objects.account)).await)
}

#[track_caller]
fn account_of(reply: &Reply) -> Account {
    let view = &reply.ok()["serviceAccount"];
    let tokens = view["tokens"].as_array().unwrap();
    let mut current = tokens
        .iter()
        .filter(|token| token.get("supersededById").is_none());
    Account {
        description: view["description"].as_str().unwrap_or_default().to_owned(),
        active: view["status"] == "active",
        token: current.next().unwrap()["id"].as_str().unwrap().to_owned(),
    }
}

#[track_caller]
fn setting(reply: &Reply) -> u64 {
    let settings = reply.ok();
    let found = settings["tokens"]["maxLifetimeSeconds"].as_u64();
    found
        .or_else(|| settings["settings"]["tokens"]["maxLifetimeSeconds"].as_u64())
        .unwrap_or_else(|| panic!("no lifetime in {settings}"))
}

#[track_caller]
fn port(reply: &Reply) -> u64 {
    reply.ok()["upstreamPort"].as_u64().unwrap()
}

async fn read_policy(app: &App, objects: &Objects) -> Policy {
    policy_of(&app.get(&format!("/content-policies/{}", objects.policy)).await)
}

#[track_caller]
fn policy_of(reply: &Reply) -> Policy {
    let item = &reply.ok()["item"];
    Policy {
        revision: item["currentRevision"].as_u64().unwrap(),
        name: item["definition"]["name"].as_str().unwrap().to_owned(),
    }
}
