//! Records that two servers are asked about: each holds one value, which requests write and read.

use serde_json::{Value, json};

use super::order::Act;
use crate::failure::{Context, Failure, Outcome};
use crate::http::{Answer, Request};
use crate::product::Bootstrap;
use crate::random::Random;

/// The actions of a policy, from the weakest; a value is a place in this list.
const ACTIONS: [&str; 4] = ["flag_for_review", "nudge", "require_approval", "block"];

/// What a record is about.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Subject {
    /// What is said about an account: every write says something new.
    Description,
    /// Whether an account may act: 1 when it is enabled, read by its token.
    Standing { token: String },
    /// Whether a token lives: 1 until it is revoked, read by the token itself.
    Token { id: String, token: String },
    /// What a policy does, read by a decision.
    Verdict { revision: u64 },
}

#[derive(Clone, Debug)]
pub struct Register {
    pub subject: Subject,
    /// Of the account or of the policy.
    pub id: String,
}

/// What an answer says.
pub enum ServerAnswer {
    /// It counts, as this.
    Answer(Act),
    /// Nothing was done, because of what the record holds.
    Refusal,
    /// It cannot be said yet: to be sent again.
    Unavailable,
}

impl Register {
    /// The name in a report.
    pub fn name(&self) -> String {
        let subject = match self.subject {
            Subject::Description => "the description of",
            Subject::Standing { .. } => "whether somebody may act as",
            Subject::Token { .. } => "whether a token lives of",
            Subject::Verdict { .. } => "the verdict of",
        };
        format!("{subject} {}", self.id)
    }

    /// A value to write; `count` is one that no earlier write had.
    pub fn choose(&self, random: &mut Random, count: u64) -> u64 {
        match self.subject {
            Subject::Description => count,
            Subject::Standing { .. } => random.between(0, 1),
            Subject::Token { .. } => 0,
            Subject::Verdict { .. } => random.between(0, ACTIONS.len() as u64 - 1),
        }
    }

    /// The request that writes this value.
    pub fn write(&self, bootstrap: &Bootstrap, value: u64, key: &str) -> Request {
        let account = format!("service-accounts/{}", self.id);
        let (method, path, body) = match &self.subject {
            Subject::Description => ("PATCH", account, json!({ "description": value.to_string() })),
            Subject::Standing { .. } => {
                let verb = if value == 1 { "enable" } else { "disable" };
                ("POST", format!("{account}/{verb}"), json!({}))
            }
            Subject::Token { id, .. } => (
                "POST",
                format!("{account}/tokens/{id}/revoke"),
                json!({ "confirm": true }),
            ),
            Subject::Verdict { revision } => (
                "PUT",
                format!("content-policies/{}", self.id),
                json!({ "definition": definition(&self.id, value), "expectedRevision": revision }),
            ),
        };
        bootstrap.change(method, &path, body, key, "two servers")
    }

    /// The request that reads it.
    pub fn read(&self, bootstrap: &Bootstrap) -> Request {
        match &self.subject {
            Subject::Description => bootstrap.get(&format!("service-accounts/{}", self.id)),
            Subject::Standing { token } | Subject::Token { token, .. } => {
                Request::get(bootstrap.path("capabilities"), token)
            }
            Subject::Verdict { .. } => {
                let event = json!({ "occasion": "pre_tool", "attributes": { "tool.id": self.id } });
                Request::new("POST", bootstrap.path("policies/decisions"), &bootstrap.token)
                    .with_body(json!({ "events": [event], "record": "buffered" }))
            }
        }
    }

    /// What the answer to a write of this value says.
    pub fn hear_write(&self, value: u64, answer: &Answer) -> Outcome<ServerAnswer> {
        match answer.status {
            200..300 => Ok(ServerAnswer::Answer(Act::Write(value))),
            503 => Ok(ServerAnswer::Unavailable),
            // It is as it should become, or somebody else was faster.
            409 | 412 => Ok(ServerAnswer::Refusal),
            _ => Err(self.unexpected(answer)),
        }
    }

    /// What the answer to a read says.
    pub fn hear_read(&self, answer: &Answer) -> Outcome<ServerAnswer> {
        let value = match (&self.subject, answer.status) {
            (_, 503) => return Ok(ServerAnswer::Unavailable),
            (Subject::Standing { .. } | Subject::Token { .. }, 200) => 1,
            (Subject::Standing { .. } | Subject::Token { .. }, 401 | 403) => 0,
            (Subject::Description, 200) => {
                let body = answer.json()?;
                let text = body
                    .pointer("/serviceAccount/description")
                    .and_then(Value::as_str);
                let text = text.context(format_args!("no description in {}", answer.summary()))?;
                text.parse().context(format_args!("no number in {text}"))?
            }
            (Subject::Verdict { .. }, 200) => {
                let body = answer.json()?;
                let action = body
                    .pointer("/decisions/0/action")
                    .and_then(Value::as_str)
                    .unwrap_or_default();
                let at = ACTIONS.iter().position(|known| *known == action);
                at.context(format_args!("an unknown action in {}", answer.summary()))? as u64
            }
            _ => return Err(self.unexpected(answer)),
        };
        Ok(ServerAnswer::Answer(Act::Read(value)))
    }

    fn unexpected(&self, answer: &Answer) -> Failure {
        Failure::new(format!("{}: unexpected {}", self.name(), answer.summary()))
    }
}

/// A policy about a tool of its own, so that no other one has a say.
pub fn definition(id: &str, value: u64) -> Value {
    let action = usize::try_from(value).ok().and_then(|at| ACTIONS.get(at));
    json!({
        "id": id, "name": id, "enabled": true, "action": action, "evaluateOn": ["pre_tool"],
        "message": "ask the platform team first", "acknowledgeBroadScope": true,
        "conditions": { "field": "tool.id", "op": "eq", "value": id },
    })
}
