//! What an approval binds: the call, its subject, who asks, and the policies that want it.
//!
//! INVARIANT AP-2: an approval answers the one call that it was made for: of the same organization, asked about by the same
//! principal, for the same subject, with every attribute as it was. Two calls that any reader of JSON could tell apart, but
//! for the order of members, are two: numbers and texts are compared as they are written, a text is not the document that
//! it spells, and what is absent, missing or null are three things.
//! INVARIANT AP-6: what a call says stands in no row, entry, event or log line in the clear; a row has a keyed hash of it, and
//! a sealed view in which what looks like a credential is hidden.

use super::model::{BoundPolicy, Party};
use crate::history::IncomingEvent;
use provost_kernel::hex::hex;
use provost_kernel::keys::{Keys, MacPurpose};
use provost_policy::{Field, Occasion, Outcome, sha256_hex};
use serde_json::{Map, Value, json};

/// LIMIT: bytes of a call that is shown to who decides. Ours: nobody approves what nobody reads.
const MAX_CALL: usize = 32 * 1024;
/// The hash of calls, under a key of the installation.
const CALL: MacPurpose = MacPurpose::Own("provost/mac/approval-call/v1");
const TOOL: &str = "tool.id";
const INPUT: &str = "tool.input";

/// A call that can be bound.
#[derive(Clone, Debug)]
pub struct Call {
    /// Whose call it is.
    pub subject: Party,
    /// The tool.
    pub tool: String,
    /// The call, spelled so that two that differ have different bytes.
    spelled: Vec<u8>,
    /// What people are shown.
    shown: Value,
}

provost_kernel::word! {
    /// Why a call has no approval. More may come.
    #[schemars(extend("x-open" = true))]
    pub enum Unbound {
        /// Approvals are of calls of tools, before they run.
        NotACall = "not_a_tool_call",
        /// It does not say whose it is, or names nobody who acts now.
        NoSubject = "subject_unknown",
        /// It has no arguments, or something of it is missing, so that another call could look the same.
        Uncertain = "call_not_certain",
        /// It is too large to be shown to who decides.
        TooLarge = "call_too_large",
        /// As many requests wait as may.
        TooMany = "too_many_open",
    }
}

impl Call {
    /// Returns the call of an event whose words are resolved, if it can be bound.
    pub fn of(event: &IncomingEvent) -> Result<Self, Unbound> {
        if event.occasion != Occasion::PreTool {
            return Err(Unbound::NotACall);
        }
        let text = |name: &str| event.attributes.get(name).and_then(Value::as_str);
        let is_given = |name: &str| event.attributes.get(name).is_some_and(|value| !value.is_null());
        let Some(tool) = text(TOOL).filter(|tool| !tool.is_empty()) else {
            return Err(Unbound::NotACall);
        };
        if !event.missing.is_empty() || !is_given(INPUT) {
            return Err(Unbound::Uncertain);
        }
        let (user, account) = (Field::USER.name(), Field::SERVICE_ACCOUNT.name());
        // One who acts: of a call in two names nobody can say whose it is.
        let (kind, name) = match (is_given(user), is_given(account)) {
            (true, false) => ("user", user),
            (false, true) => ("service_account", account),
            _ => return Err(Unbound::NoSubject),
        };
        let subject = Party {
            kind: kind.to_owned(),
            id: text(name).ok_or(Unbound::NoSubject)?.to_owned(),
        };
        let mut spelled = Vec::new();
        spell(&Value::Object(event.attributes.clone()), &mut spelled);
        if spelled.len() > MAX_CALL {
            return Err(Unbound::TooLarge);
        }
        Ok(Self {
            subject,
            tool: tool.to_owned(),
            spelled,
            shown: event
                .attributes
                .iter()
                .map(|(name, value)| (name.clone(), shown(name, value)))
                .collect::<Map<_, _>>()
                .into(),
        })
    }

    /// Returns the hash by which the call is found again: of an organization, asked about by a principal.
    pub fn mac(&self, keys: &Keys, organization: &str, asker: &Party) -> String {
        let parts: [&[u8]; 6] = [
            organization.as_bytes(),
            asker.kind.as_bytes(),
            asker.id.as_bytes(),
            self.subject.kind.as_bytes(),
            self.subject.id.as_bytes(),
            &self.spelled,
        ];
        hex(&keys.mac(CALL, &parts))
    }

    /// Returns what is sealed for who decides: the call, and the digest of all that is bound, which a vote repeats.
    pub fn view(&self, asker: &Party, policies: &[BoundPolicy]) -> Value {
        let mut bound = Vec::new();
        spell(&json!([asker, self.subject, policies]), &mut bound);
        bound.extend_from_slice(&self.spelled);
        json!({ "bindingDigest": sha256_hex(&bound), "call": self.shown })
    }
}

/// Returns the policies whose answer an approval is, sorted; none where one of them wants something else than an approval.
pub fn policies(outcome: &Outcome) -> Vec<BoundPolicy> {
    let deciding = outcome.findings.iter().filter(|finding| finding.decides);
    let mut policies: Vec<BoundPolicy> = deciding
        .map(|finding| BoundPolicy {
            family: finding.policy.family().word().to_owned(),
            policy_id: finding.policy.id().to_owned(),
            definition_sha256: finding.policy.sha256().to_owned(),
        })
        .collect();
    policies.sort_unstable();
    policies.dedup();
    policies
}

/// Spells a document so that two have the same bytes only where they are the same but for the order of members: each value
/// behind its type, each text and number behind its length.
fn spell(value: &Value, to: &mut Vec<u8>) {
    let mut piece = |mark: u8, bytes: &[u8]| {
        to.push(mark);
        to.extend_from_slice(&(bytes.len() as u64).to_be_bytes());
        to.extend_from_slice(bytes);
    };
    match value {
        Value::Null => piece(b'0', &[]),
        Value::Bool(is) => piece(b'?', &[u8::from(*is)]),
        Value::Number(number) => piece(b'#', number.to_string().as_bytes()),
        Value::String(text) => piece(b'"', text.as_bytes()),
        Value::Array(items) => {
            piece(b'[', &(items.len() as u64).to_be_bytes());
            for item in items {
                spell(item, to);
            }
        }
        Value::Object(members) => {
            if let Some(written) = provost_words::digest::inexact_number(value) {
                return piece(b'~', written.as_bytes());
            }
            piece(b'{', &(members.len() as u64).to_be_bytes());
            let mut sorted: Vec<(&String, &Value)> = members.iter().collect();
            sorted.sort_unstable_by_key(|(name, _)| *name);
            for (name, member) in sorted {
                spell(&Value::String(name.clone()), to);
                spell(member, to);
            }
        }
    }
}

/// What stands in place of what looks like a credential.
const HIDDEN: &str = "[hidden]";
/// Parts of the names of members, variables and flags whose values are hidden.
const SECRET_NAMES: [&str; 10] = [
    "password",
    "passwd",
    "passphrase",
    "secret",
    "token",
    "apikey",
    "api_key",
    "api-key",
    "authorization",
    "credential",
];
/// LIMIT: a run of letters and digits, both among them, is hidden from this length on. Ours.
const LONG_RUN: usize = 20;

fn is_secret_name(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    SECRET_NAMES.iter().any(|part| name.contains(part))
}

/// Returns an attribute as people are shown it: who it is and what is called is no credential.
fn shown(name: &str, value: &Value) -> Value {
    let names_something =
        name.starts_with("identity.") || matches!(name.rsplit(['.', '_']).next(), Some("id" | "ids"));
    if names_something {
        value.clone()
    } else {
        hidden(value, false)
    }
}

/// Returns a document without what looks like a credential.
fn hidden(value: &Value, is_secret: bool) -> Value {
    match value {
        Value::Object(members) => {
            let member = |(name, member): (&String, &Value)| {
                (name.clone(), hidden(member, is_secret || is_secret_name(name)))
            };
            Value::Object(members.iter().map(member).collect::<Map<_, _>>())
        }
        Value::Array(items) => items.iter().map(|item| hidden(item, is_secret)).collect(),
        Value::Null | Value::Bool(_) => value.clone(),
        _ if is_secret => HIDDEN.into(),
        Value::String(text) => hidden_words(text).into(),
        Value::Number(_) => value.clone(),
    }
}

/// Returns a text in which the words that look like credentials, and those behind a name of one, are hidden.
fn hidden_words(text: &str) -> String {
    let mut shown = String::with_capacity(text.len());
    let mut is_behind_name = false;
    for word in text.split_inclusive(|c: char| c.is_whitespace()) {
        let bare = word.trim_end();
        let (name, value) = match bare.find(['=', ':']) {
            Some(at) if at + 1 < bare.len() => (&bare[..=at], &bare[at + 1..]),
            _ => (bare, ""),
        };
        let is_named = is_secret_name(name);
        if is_behind_name && !bare.is_empty() {
            shown.push_str(HIDDEN);
        } else if is_named && !value.is_empty() {
            shown.push_str(name);
            shown.push_str(HIDDEN);
        } else if looks_secret(bare) {
            shown.push_str(HIDDEN);
        } else {
            shown.push_str(bare);
        }
        shown.push_str(&word[bare.len()..]);
        if !bare.is_empty() {
            // `--password hunter2`, `Authorization: Bearer …`: two words behind a name that ends so.
            let goes_on = is_behind_name && bare.eq_ignore_ascii_case("bearer");
            is_behind_name = (is_named && value.is_empty()) || bare.eq_ignore_ascii_case("bearer") || goes_on;
        }
    }
    shown
}

fn looks_secret(word: &str) -> bool {
    let runs = word.split(|c: char| !(c.is_ascii_alphanumeric() || "_-+=".contains(c)));
    runs.filter(|run| run.len() >= LONG_RUN).any(|run| {
        run.bytes().any(|byte| byte.is_ascii_digit()) && run.bytes().any(|byte| byte.is_ascii_alphabetic())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn event(input: &Value) -> IncomingEvent {
        let mut event = IncomingEvent::new(Occasion::PreTool);
        let attributes = json!({ "identity.user_id": "usr_1", "tool.id": "Bash", "tool.input": input });
        event.attributes = attributes.as_object().unwrap().clone();
        event
    }

    fn spelled(json: &str) -> Vec<u8> {
        // As a request's body is read: numbers that no double is keep their digits.
        let value = provost_kernel::json::parse(json.as_bytes(), 32).unwrap();
        Call::of(&event(&value)).unwrap().spelled
    }

    /// Proves AP-2.
    #[test]
    fn calls_that_differ_in_anything_but_the_order_of_members_are_two() {
        let all = [
            r#"{"a":1,"b":2}"#,
            r#"{"a":1,"b":"2"}"#,
            r#"{"a":1,"b":2.0}"#,
            r#"{"a":1,"b":2,"c":null}"#,
            r#"{"a":12,"b":null}"#,
            r#"{"a":9007199254740993}"#,
            r#"{"a":9007199254740992}"#,
            r#"{"a":9007199254740994.0}"#,
            r#"{"a":0.1}"#,
            r#"{"a":0.1000000000000000000001}"#,
            r#"{"a":0}"#,
            r#"{"a":-0.0}"#,
            "{\"a\":\"\u{e9}\"}",
            "{\"a\":\"e\u{301}\"}",
            r#"{"a":"x "}"#,
            r#"{"a":"x"}"#,
            r#"{"a":"X"}"#,
            r#"{"a":["x","y"]}"#,
            r#"{"a":["xy"]}"#,
            r#"{"a":[["x"],"y"]}"#,
            r#"{"a":{"b":"c"}}"#,
            r#"{"a":"{\"b\":\"c\"}"}"#,
            r#""{\"a\":\"x\"}""#,
            "[]",
            "{}",
        ];
        for (at, one) in all.iter().enumerate() {
            for other in &all[..at] {
                assert_ne!(spelled(one), spelled(other), "{one} and {other}");
            }
        }
        assert_eq!(spelled(r#"{"b":2,"a":1}"#), spelled(all[0]));
    }

    /// Proves AP-2.
    #[test]
    fn what_could_be_another_call_is_not_bound() {
        let refused = |change: &dyn Fn(&mut IncomingEvent)| {
            let mut event = event(&json!({ "command": "ls" }));
            change(&mut event);
            Call::of(&event).map(drop).unwrap_err()
        };
        assert_eq!(
            refused(&|event| event.occasion = Occasion::Prompt),
            Unbound::NotACall
        );
        assert_eq!(
            refused(&|event| drop(event.attributes.remove(TOOL))),
            Unbound::NotACall
        );
        assert_eq!(
            refused(&|event| drop(event.attributes.remove(INPUT))),
            Unbound::Uncertain
        );
        assert_eq!(
            refused(&|event| drop(event.attributes.insert(INPUT.into(), Value::Null))),
            Unbound::Uncertain
        );
        assert_eq!(
            refused(&|event| event.missing.push("tool.name".into())),
            Unbound::Uncertain
        );
        assert_eq!(
            refused(&|event| drop(event.attributes.remove("identity.user_id"))),
            Unbound::NoSubject
        );
        let both = |event: &mut IncomingEvent| {
            event
                .attributes
                .insert("identity.service_account_id".into(), "sa_1".into());
        };
        assert_eq!(refused(&both), Unbound::NoSubject);
        let long = |event: &mut IncomingEvent| {
            event.attributes.insert(INPUT.into(), "x".repeat(MAX_CALL).into());
        };
        assert_eq!(refused(&long), Unbound::TooLarge);
    }

    /// Proves AP-6.
    #[test]
    fn who_decides_sees_the_call_and_no_credential() {
        for (text, shown) in [
            ("rm -rf /srv/data", "rm -rf /srv/data"),
            ("mysql --password hunter2 -e x", "mysql --password [hidden] -e x"),
            ("PGPASSWORD=hunter2 psql", "PGPASSWORD=[hidden] psql"),
            (
                "curl -H Authorization: Bearer abc x",
                "curl -H Authorization: [hidden] [hidden] x",
            ),
            ("echo qW7eRt5yU1iOp9aSd3fG", "echo [hidden]"),
        ] {
            assert_eq!(hidden_words(text), shown);
        }
        let shown = hidden(
            &json!({ "headers": { "Authorization": "abc", "Accept": "x" }, "apiKey": [1, "k"] }),
            false,
        );
        let expected =
            json!({ "headers": { "Authorization": HIDDEN, "Accept": "x" }, "apiKey": [HIDDEN, HIDDEN] });
        assert_eq!(shown, expected);
    }
}
