//! What is known of a store, what a server on it answers, and what a difference means.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use crate::failure::{Context, Failure, Outcome};
use crate::http::{Connection, Request};
use crate::product::Bootstrap;

const ROLES: [&str; 4] = ["viewer", "auditor", "operator", "admin"];
/// How many accounts of each role.
const EACH: usize = 6;

/// What a token is good for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum TokenStanding {
    Living,
    Dead,
}

/// The tokens of a store, and how each stands.
pub struct KnownTokens {
    tokens: Vec<(String, TokenStanding)>,
}

impl KnownTokens {
    /// Makes accounts of every role; some are disabled, deleted, rotated or revoked.
    pub fn make(connection: &mut Connection, bootstrap: &Bootstrap) -> Outcome<Self> {
        let mut tokens = vec![(bootstrap.token.clone(), TokenStanding::Living)];
        let mut count = 0;
        let mut ask = |method: &'static str, path: &str, body: Option<Value>| -> Outcome<Value> {
            count += 1;
            let key = format!("the-key-of-change-{count}");
            let mut request = bootstrap.act(method, path, &key, "a store to be spoilt");
            request.body = body;
            let answer = connection.send(&request).map_err(|lost| lost.why).context(path)?;
            if !answer.is_success() {
                return Err(Failure::new(format!("{method} {path}: {}", answer.summary())));
            }
            Ok(if answer.body.is_empty() {
                Value::Null
            } else {
                answer.json()?
            })
        };
        let text = |value: &Value| {
            value
                .as_str()
                .map(str::to_owned)
                .context("an answer without a text")
        };
        for role in ROLES {
            for number in 0..EACH {
                let name = format!("{role}-{number}");
                let mut body = json!({ "name": name, "permissionRole": role });
                match number {
                    3 => body["scopes"] = json!(["capabilities:read", "policies:read"]),
                    _ => body["allOfRole"] = json!(true),
                }
                let made = ask("POST", "service-accounts", Some(body))?;
                let id = text(&made["serviceAccount"]["id"])?;
                let token = text(&made["token"]["token"])?;
                let account = format!("service-accounts/{id}");
                for change in 0..4 {
                    let body = json!({ "description": format!("change {change} of {name}") });
                    ask("PATCH", &account, Some(body))?;
                }
                match number {
                    0 => {
                        let rotated = ask(
                            "POST",
                            &format!("{account}/tokens"),
                            Some(json!({ "gracePeriodSeconds": 0 })),
                        )?;
                        tokens.push((token, TokenStanding::Dead));
                        tokens.push((text(&rotated["token"]["token"])?, TokenStanding::Living));
                    }
                    1 => {
                        ask("POST", &format!("{account}/disable"), Some(json!({})))?;
                        tokens.push((token, TokenStanding::Dead));
                    }
                    2 => {
                        ask("DELETE", &account, None)?;
                        tokens.push((token, TokenStanding::Dead));
                    }
                    _ => tokens.push((token, TokenStanding::Living)),
                }
            }
        }
        Ok(Self { tokens })
    }
}

/// One answer: `None` is a 5xx or none at all.
type OneAnswer = Option<(u16, Value)>;

/// What a server said of every token, of all accounts and of the log.
pub struct Answers {
    tokens: Vec<OneAnswer>,
    accounts: OneAnswer,
    entries: Option<BTreeMap<String, Value>>,
}

/// How answers differ from those of before.
pub enum Difference {
    None,
    /// Something got no answer; nothing is wrong.
    Refused,
    /// Somebody who may was refused as if they might not.
    ShutOut(String),
    /// An answer is another.
    Wrong(String),
    /// Somebody may more than before.
    Allowed(String),
}

impl Answers {
    pub fn ask(connection: &mut Connection, known: &KnownTokens, bootstrap: &Bootstrap) -> Self {
        let mut get = |path: &str, token: &str| -> OneAnswer {
            let answer = connection.send(&Request::get(bootstrap.path(path), token)).ok()?;
            (answer.status < 500).then(|| (answer.status, answer.json().unwrap_or_default()))
        };
        // The log first: that a dead token is presented is written there.
        let mut entries = Some(BTreeMap::new());
        let mut cursor = String::new();
        // As many pages as the log of the driver can have, and some.
        for _ in 0..50 {
            let page = get(&format!("audit/events?limit=100{cursor}"), &bootstrap.token);
            let Some((200, body)) = page else {
                entries = None;
                break;
            };
            for event in body["events"].as_array().into_iter().flatten() {
                let id = event["id"].as_str().unwrap_or_default().to_owned();
                if let Some(entries) = &mut entries {
                    entries.insert(id, event.clone());
                }
            }
            match body["nextCursor"].as_str() {
                Some(next) => cursor = format!("&cursor={next}"),
                None => break,
            }
        }
        let tokens = known.tokens.iter().map(|(token, _)| {
            let (status, body) = get("capabilities", token)?;
            let of = ["principal", "permissionRole", "scopes", "token", "code"];
            let kept = of.map(|member| (member.to_owned(), body[member].clone()));
            Some((status, Value::Object(kept.into_iter().collect())))
        });
        let tokens = tokens.collect();
        let accounts = get("service-accounts?limit=100", &bootstrap.token).map(|(status, mut body)| {
            // When a token was last used changes by asking.
            strip(&mut body, "lastUsedAt");
            strip(&mut body, "lastUsedIp");
            strip(&mut body, "requestId");
            (status, body)
        });
        Self {
            tokens,
            accounts,
            entries,
        }
    }

    /// Keeps of the log what another server on the same store says as well: a start is written down each time.
    pub fn keep_common(&mut self, other: &Self) {
        if let (Some(entries), Some(others)) = (&mut self.entries, &other.entries) {
            entries.retain(|id, entry| others.get(id) == Some(entry));
        }
    }

    /// Fails unless these are the answers that the driver's own list asks for.
    pub fn check(&self, known: &KnownTokens) -> Outcome {
        for ((_, standing), said) in known.tokens.iter().zip(&self.tokens) {
            let status = said.as_ref().map(|(status, _)| *status);
            let wanted = if *standing == TokenStanding::Living {
                200
            } else {
                401
            };
            if status != Some(wanted) {
                return Err(Failure::new(format!(
                    "a token that is {standing:?} was answered {status:?}"
                )));
            }
        }
        let accounts = self
            .accounts
            .as_ref()
            .map(|(_, body)| body["serviceAccounts"].as_array().map_or(0, Vec::len));
        let entries = self.entries.as_ref().map_or(0, BTreeMap::len);
        if accounts < Some(ROLES.len() * (EACH - 1)) || entries < known.tokens.len() {
            return Err(Failure::new(format!(
                "{accounts:?} accounts and {entries} entries are too few"
            )));
        }
        Ok(())
    }

    /// Says how these differ from those of before, the worst first.
    pub fn differ(&self, before: &Self, known: &KnownTokens) -> Difference {
        let (mut shut_out, mut wrong, mut refused) = (None, None, false);
        for (((_, standing), said), old) in known.tokens.iter().zip(&self.tokens).zip(&before.tokens) {
            match (said, old) {
                (None, _) => refused = true,
                (said, old) if said == old => {}
                (Some((200, now)), Some((200, then))) => {
                    let scopes = |body: &Value| -> Vec<String> {
                        let all = body["scopes"].as_array().cloned().unwrap_or_default();
                        all.iter().map(ToString::to_string).collect()
                    };
                    let had = scopes(then);
                    let is_more = scopes(now).iter().any(|scope| !had.contains(scope));
                    let how = format!("a token is {now} and was {then}");
                    if is_more || now["principal"]["id"] != then["principal"]["id"] {
                        return Difference::Allowed(how);
                    }
                    wrong = Some(how);
                }
                (Some((200, now)), _) => {
                    return Difference::Allowed(format!("a token that is {standing:?} was accepted: {now}"));
                }
                (Some((status, now)), Some((200, _))) => {
                    shut_out = Some(format!("a living token was answered {status}: {now}"));
                }
                // Another reason for the same refusal.
                _ => {}
            }
        }
        match (&self.accounts, &before.accounts) {
            (None, _) => refused = true,
            (now, then) if now == then => {}
            (Some((200, now)), _) => wrong = Some(format!("the accounts are {now:.1500}")),
            // The admin's own token was looked at above.
            _ => {}
        }
        match (&self.entries, &before.entries) {
            (None, _) => refused = true,
            (Some(now), Some(then)) => {
                let other = then.iter().find(|(id, entry)| now.get(*id) != Some(entry));
                if let Some((id, entry)) = other {
                    wrong = Some(format!("the entry {id} is {:?} and was {entry}", now.get(id)));
                }
            }
            (Some(_), None) => {}
        }
        match (wrong, shut_out) {
            (Some(how), _) => Difference::Wrong(how),
            (None, Some(how)) => Difference::ShutOut(how),
            (None, None) if refused => Difference::Refused,
            (None, None) => Difference::None,
        }
    }
}

/// Takes a member out wherever it stands.
fn strip(value: &mut Value, member: &str) {
    match value {
        Value::Object(map) => {
            map.remove(member);
            map.values_mut().for_each(|value| strip(value, member));
        }
        Value::Array(items) => items.iter_mut().for_each(|value| strip(value, member)),
        _ => {}
    }
}
