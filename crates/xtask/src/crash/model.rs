//! What one connection believes about its accounts, and how every answer changes that belief.
//!
//! A connection has accounts of its own and one request at a time, so that its belief is exact: after
//! a crash the server must say the same, apart from the one request whose answer was lost.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use crate::failure::{Context, Failure, Outcome};
use crate::http::{Answer, Request};
use crate::product::Bootstrap;
use crate::traffic;

/// How a token came to its end, if it has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TokenState {
    Current,
    Ended,
}

#[derive(Clone, Debug)]
pub struct Token {
    pub id: String,
    pub secret: String,
    pub state: TokenState,
}

#[derive(Clone, Debug)]
pub struct Account {
    pub name: String,
    pub role: String,
    /// Null when there is none.
    pub description: Value,
    pub disabled: bool,
    /// In the order of their creation.
    pub tokens: Vec<Token>,
}

impl Account {
    pub fn current(&self) -> Option<&Token> {
        self.tokens
            .iter()
            .find(|token| token.state == TokenState::Current)
    }
}

/// The accounts of one connection, by id.
#[derive(Default)]
pub struct Model {
    pub accounts: BTreeMap<String, Account>,
    /// Each with the secret that it had last.
    pub deleted: BTreeMap<String, Option<String>>,
    /// The lifetime limit that this connection set last.
    pub lifetime: Option<u64>,
}

/// What a request is meant to do.
#[derive(Clone, Debug)]
pub enum Intent {
    Create {
        name: String,
        role: &'static str,
    },
    /// With `by_itself` the caller is the rotated account (D5.5).
    Rotate {
        account: String,
        by_itself: bool,
    },
    /// Every connection rotates this one: only invariants can be checked.
    RotateShared {
        account: String,
    },
    Update {
        account: String,
        name: Option<String>,
        description: Option<Value>,
    },
    Disable {
        account: String,
    },
    Enable {
        account: String,
    },
    Revoke {
        account: String,
        token: String,
    },
    Delete {
        account: String,
    },
    LimitLifetime {
        seconds: u64,
        settings: Value,
    },
}

const REASON: &str = "crash driver";

impl Intent {
    /// The request that asks for it, with an idempotency key.
    pub fn request(&self, bootstrap: &Bootstrap, model: &Model, key: &str) -> Request {
        let token = match self {
            Self::Rotate {
                account,
                by_itself: true,
            } => model
                .accounts
                .get(account)
                .and_then(Account::current)
                .map_or("", |token| token.secret.as_str()),
            _ => &bootstrap.token,
        };
        let body = |method, rest: &str, body: Value| Request {
            token: Some(token.to_owned()),
            ..bootstrap.change(method, rest, body, key, REASON)
        };
        let plain = |method, rest: &str| body(method, rest, json!({}));
        match self {
            Self::Create { name, role } => body("POST", "service-accounts", traffic::account(name, role)),
            Self::Rotate { account, .. } | Self::RotateShared { account } => {
                plain("POST", &format!("service-accounts/{account}/tokens"))
            }
            Self::Update {
                account,
                name,
                description,
            } => {
                let mut changes = json!({});
                if let Some(name) = name {
                    changes["name"] = json!(name);
                }
                if let Some(description) = description {
                    changes["description"].clone_from(description);
                }
                body("PATCH", &format!("service-accounts/{account}"), changes)
            }
            Self::Disable { account } => plain("POST", &format!("service-accounts/{account}/disable")),
            Self::Enable { account } => plain("POST", &format!("service-accounts/{account}/enable")),
            Self::Revoke { account, token } => {
                let path = format!("service-accounts/{account}/tokens/{token}/revoke");
                body("POST", &path, json!({ "confirm": true }))
            }
            Self::Delete { account } => {
                bootstrap.act("DELETE", &format!("service-accounts/{account}"), key, REASON)
            }
            Self::LimitLifetime { settings, .. } => body("PUT", "automation/settings", settings.clone()),
        }
    }

    fn success(&self) -> u16 {
        match self {
            Self::Create { .. } => 201,
            Self::Delete { .. } => 204,
            _ => 200,
        }
    }
}

impl Model {
    /// Takes an answer for what it says; fails when it says anything but the intended effect.
    pub fn apply(&mut self, intent: &Intent, answer: &Answer) -> Outcome {
        if answer.status != intent.success() {
            return Err(Failure::new(format!(
                "{intent:?} was answered {}",
                answer.summary()
            )));
        }
        self.believe(intent, answer)
            .context(format_args!("{intent:?} was answered {}", answer.summary()))
    }

    fn believe(&mut self, intent: &Intent, answer: &Answer) -> Outcome {
        match intent {
            Intent::Create { name, role } => {
                let body = answer.json()?;
                let (shown, token) = issued(&body)?;
                let id = word(shown, "id")?;
                expect(shown["name"] == json!(name), "another name")?;
                expect(shown["permissionRole"] == json!(role), "another role")?;
                expect(
                    shown["tokens"].as_array().is_some_and(|tokens| tokens.len() == 1),
                    "not one token",
                )?;
                let (name, role) = (name.clone(), (*role).to_owned());
                let account = Account {
                    name,
                    role,
                    description: Value::Null,
                    disabled: false,
                    tokens: vec![token],
                };
                expect(self.accounts.insert(id, account).is_none(), "an id given twice")
            }
            Intent::Rotate { account, .. } => {
                let body = answer.json()?;
                let (shown, token) = issued(&body)?;
                expect(shown["id"] == json!(account), "another account")?;
                let account = self.account(account)?;
                expect(
                    account.tokens.iter().all(|known| known.id != token.id),
                    "a known token as the new one",
                )?;
                account
                    .tokens
                    .iter_mut()
                    .for_each(|token| token.state = TokenState::Ended);
                account.tokens.push(token);
                Ok(())
            }
            Intent::RotateShared { .. } => Ok(()),
            Intent::Update {
                account: id,
                name,
                description,
            } => {
                let account = self.account(id)?;
                if let Some(name) = name {
                    account.name.clone_from(name);
                }
                if let Some(description) = description {
                    account.description.clone_from(description);
                }
                self.expect_shown(id, answer)
            }
            Intent::Disable { account } => {
                self.account(account)?.disabled = true;
                self.expect_shown(account, answer)
            }
            Intent::Enable { account } => {
                self.account(account)?.disabled = false;
                self.expect_shown(account, answer)
            }
            Intent::Revoke { account, token } => {
                let tokens = &mut self.account(account)?.tokens;
                tokens
                    .iter_mut()
                    .filter(|known| known.id == *token)
                    .for_each(|token| token.state = TokenState::Ended);
                self.expect_shown(account, answer)
            }
            Intent::Delete { account } => {
                expect(answer.body.is_empty(), "a body with 204")?;
                let deleted = self
                    .accounts
                    .remove(account)
                    .context("an account deleted twice")?;
                let secret = deleted.current().map(|token| token.secret.clone());
                self.deleted.insert(account.clone(), secret);
                Ok(())
            }
            Intent::LimitLifetime { seconds, .. } => {
                self.lifetime = Some(*seconds);
                Ok(())
            }
        }
    }

    fn account(&mut self, id: &str) -> Outcome<&mut Account> {
        self.accounts
            .get_mut(id)
            .context("an account of which nothing is known")
    }

    fn expect_shown(&mut self, id: &str, answer: &Answer) -> Outcome {
        let body = answer.json()?;
        let differences = self.account(id)?.differences(account_in(&body));
        expect(differences.is_empty(), &differences.join(", "))
    }
}

impl Account {
    /// In what the server's record differs from this belief; empty when in nothing.
    pub fn differences(&self, shown: &Value) -> Vec<String> {
        let mut found = Vec::new();
        let mut compare = |what: &str, shown: &Value, believed: Value| {
            if *shown != believed {
                found.push(format!("{what} is {shown} instead of {believed}"));
            }
        };
        compare("name", &shown["name"], json!(self.name));
        compare("role", &shown["permissionRole"], json!(self.role));
        compare("description", &shown["description"], self.description.clone());
        compare(
            "status",
            &shown["status"],
            json!(if self.disabled { "disabled" } else { "active" }),
        );
        compare(
            "having disabledAt",
            &json!(shown["disabledAt"].is_string()),
            json!(self.disabled),
        );
        let tokens = shown["tokens"].as_array().map(Vec::as_slice).unwrap_or_default();
        let shown_id = |token: &Value| token["id"].as_str().unwrap_or_default().to_owned();
        for token in &self.tokens {
            let same: Vec<_> = tokens
                .iter()
                .filter(|shown| shown_id(shown) == token.id)
                .collect();
            compare("the number of tokens with one id", &json!(same.len()), json!(1));
            let current = same.first().is_some_and(|shown| is_current(shown));
            compare(
                "a token's being current",
                &json!(current),
                json!(token.state == TokenState::Current),
            );
        }
        for shown in tokens {
            let known = self.tokens.iter().any(|token| token.id == shown_id(shown));
            compare("a token's being asked for", &json!(known), json!(true));
        }
        found
    }
}

/// Whether a token record shows neither end nor successor.
pub fn is_current(token: &Value) -> bool {
    token["revokedAt"].is_null() && token["supersededById"].is_null()
}

/// The account of an answer, which some operations wrap.
pub fn account_in(body: &Value) -> &Value {
    if body["serviceAccount"].is_object() {
        &body["serviceAccount"]
    } else {
        body
    }
}

/// The account and the issued token of an answer that carries a secret.
pub fn issued(body: &Value) -> Outcome<(&Value, Token)> {
    let token = &body["token"];
    let token = Token {
        id: word(token, "id")?,
        secret: word(token, "token")?,
        state: TokenState::Current,
    };
    let shown = account_in(body);
    let current: Vec<_> = shown["tokens"]
        .as_array()
        .into_iter()
        .flatten()
        .filter(|token| is_current(token))
        .collect();
    expect(
        current.len() == 1 && current[0]["id"] == json!(token.id),
        "not the new token as the only current one",
    )?;
    Ok((shown, token))
}

fn word(object: &Value, name: &str) -> Outcome<String> {
    object[name]
        .as_str()
        .map(str::to_owned)
        .context(format_args!("no {name}"))
}

fn expect(fact: bool, otherwise: &str) -> Outcome {
    if fact {
        Ok(())
    } else {
        Err(Failure::new(otherwise))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn account() -> Account {
        let token = |id: &str, state| Token {
            id: id.into(),
            secret: String::new(),
            state,
        };
        Account {
            name: "a".into(),
            role: "viewer".into(),
            description: Value::Null,
            disabled: false,
            tokens: vec![token("1", TokenState::Ended), token("2", TokenState::Current)],
        }
    }

    fn shown() -> Value {
        json!({"name": "a", "permissionRole": "viewer", "status": "active", "tokens": [
            {"id": "2"}, {"id": "1", "revokedAt": "2026-11-20T00:00:00.000Z"},
        ]})
    }

    #[test]
    fn an_equal_record_has_no_differences() {
        assert_eq!(account().differences(&shown()), Vec::<String>::new());
    }

    #[test]
    fn every_kind_of_difference_is_seen() {
        let changes: [(&str, Value); 8] = [
            ("/name", json!("b")),
            ("/permissionRole", json!("admin")),
            ("/status", json!("disabled")),
            ("/tokens/0/id", json!("3")),
            ("/tokens/0", json!({"id": "1"})),
            ("/tokens/1/revokedAt", Value::Null),
            ("/tokens/0", json!({"id": "2", "supersededById": "3"})),
            ("/tokens", json!([])),
        ];
        for (pointer, value) in changes {
            let mut other = shown();
            *other.pointer_mut(pointer).unwrap() = value;
            assert!(!account().differences(&other).is_empty(), "{pointer}");
        }
        let mut other = shown();
        other["description"] = json!("new");
        assert_eq!(account().differences(&other).len(), 1);
    }

    #[test]
    fn an_answer_with_two_current_tokens_is_refused() {
        let mut body = json!({"serviceAccount": shown(), "token": {"id": "2", "token": "secret"}});
        assert!(issued(&body).is_ok());
        body["serviceAccount"]["tokens"][1]["revokedAt"] = Value::Null;
        assert!(issued(&body).is_err());
    }

    #[test]
    fn a_rotation_ends_the_current_token() {
        let mut model = Model::default();
        model.accounts.insert("sa_1".into(), account());
        let mut record = shown();
        record["id"] = json!("sa_1");
        record["tokens"] = json!([{"id": "3"}, {"id": "2", "revokedAt": "2026-11-20T00:00:00.000Z"}]);
        let body = json!({"serviceAccount": record, "token": {"id": "3", "token": "s"}}).to_string();
        let answer = Answer {
            status: 200,
            replayed: false,
            body: body.into_bytes(),
            closes: false,
        };
        model
            .apply(
                &Intent::Rotate {
                    account: "sa_1".into(),
                    by_itself: false,
                },
                &answer,
            )
            .unwrap();
        let account = &model.accounts["sa_1"];
        assert_eq!(account.current().map(|token| token.id.as_str()), Some("3"));
        assert_eq!(account.tokens.len(), 3);
        // The same answer again would be a second effect of one intent.
        assert!(
            model
                .apply(
                    &Intent::Rotate {
                        account: "sa_1".into(),
                        by_itself: false
                    },
                    &answer
                )
                .is_err()
        );
    }
}
