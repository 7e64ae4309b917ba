//! What an approval binds: the call, where it runs, its subject, who asks, and the policies that want it.
//!
//! INVARIANT AP-2: an approval answers the one call that it was made for: of the same organization, asked about by the same
//! principal, for the same subject, in the same session, folder and machine where they are said, with every attribute as it was and
//! the same ones missing. Two calls that any reader of JSON could tell apart, but for the order of members, are two: numbers and
//! texts are compared as they are written, a text is not the document that it spells, and what is absent, missing or null are three
//! things.
//! INVARIANT AP-6: what a call says stands in no row, entry, event or log line in the clear, but for the tool's name; a row has keyed
//! hashes of it, and a sealed view without the values of credentials (AP-9).

use super::model::{ApprovalId, BoundPolicy, Party};
use super::preview;
use crate::history::IncomingEvent;
use provost_kernel::Result;
use provost_kernel::error::Error;
use provost_kernel::hex::hex;
use provost_kernel::keys::{Keys, MacPurpose};
use provost_policy::{Field, Occasion, sha256_hex};
use serde_json::{Value, json};

/// LIMIT: bytes of a call that is shown to who decides. Ours: nobody approves what nobody reads.
const MAX_CALL: usize = 32 * 1024;
/// LIMIT: bytes of a tool's name, which stands in lists. Ours.
const MAX_TOOL: usize = 128;
/// The hash of calls, under a key of the installation.
const CALL: MacPurpose = MacPurpose::Own("provost/mac/approval-call/v1");
/// The hash of what one request binds, which votes repeat. With a key: whoever reads it cannot try which call it is of.
const BINDING: MacPurpose = MacPurpose::Own("provost/mac/approval-binding/v1");
const TOOL: &str = "tool.id";
const INPUT: &str = "tool.input";

/// A call that can be bound.
#[derive(Clone, Debug)]
pub struct Call {
    /// Whose call it is.
    pub subject: Party,
    /// The tool.
    pub tool: String,
    /// The device that it names.
    pub(super) device: Option<String>,
    /// The call, spelled so that two that differ have different bytes.
    spelled: Vec<u8>,
    /// What people are shown.
    pub(super) shown: Value,
}

provost_kernel::word! {
    /// Why a call has no approval. More may come.
    #[schemars(extend("x-open" = true))]
    pub enum Unbound {
        /// Approvals are of calls of tools, before they run.
        NotACall = "not_a_tool_call",
        /// It does not say whose it is, or names nobody who acts now.
        NoSubject = "subject_unknown",
        /// It has no arguments, or they or the tool's name cannot be said for certain, so that another call could look the same.
        Uncertain = "call_not_certain",
        /// Something of it looks like a credential that cannot be hidden without hiding more.
        Secret = "call_holds_credential",
        /// It is too large to be shown to who decides.
        TooLarge = "call_too_large",
        /// Another policy blocks the same call.
        Blocked = "call_is_blocked",
        /// As many requests wait, or were made within an hour, as may.
        TooMany = "too_many_open",
        /// The clock of the server was set back: nobody can say how long an approval lasts.
        SetBack = "clock_set_back",
    }
}

impl Call {
    /// Returns the call of an event whose words are resolved, if it can be bound.
    pub fn of(event: &IncomingEvent) -> std::result::Result<Self, Unbound> {
        if event.occasion != Occasion::PreTool {
            return Err(Unbound::NotACall);
        }
        let text = |name: &str| event.attributes.get(name).and_then(Value::as_str);
        let is_given = |name: &str| event.attributes.get(name).is_some_and(|value| !value.is_null());
        let is_missing = |name: &str| event.missing.iter().any(|missing| missing == name);
        let (user, account) = (Field::USER.name(), Field::SERVICE_ACCOUNT.name());
        // Whatever stands in its place as well: nobody can say what it is.
        if [TOOL, INPUT].into_iter().any(is_missing) {
            return Err(Unbound::Uncertain);
        }
        if [user, account].into_iter().any(is_missing) {
            return Err(Unbound::NoSubject);
        }
        let Some(tool) = text(TOOL).filter(|tool| !tool.is_empty()) else {
            return Err(Unbound::NotACall);
        };
        if !is_given(INPUT) || !is_name(tool) {
            return Err(Unbound::Uncertain);
        }
        // One who acts: of a call in two names nobody can say whose it is.
        let (kind, name) = match (is_given(user), is_given(account)) {
            (true, false) => ("user", user),
            (false, true) => ("service_account", account),
            _ => return Err(Unbound::NoSubject),
        };
        let id = text(name).filter(|id| is_id(id));
        let subject = Party {
            kind: kind.to_owned(),
            id: id.ok_or(Unbound::NoSubject)?.to_owned(),
        };
        let mut spelled = Vec::new();
        spell(&Value::Object(event.attributes.clone()), &mut spelled);
        let around = json!([preview::missing(event), event.session, event.folder, event.host]);
        spell(&around, &mut spelled);
        if spelled.len() > MAX_CALL {
            return Err(Unbound::TooLarge);
        }
        Ok(Self {
            subject,
            tool: tool.to_owned(),
            device: text(Field::DEVICE.name())
                .filter(|id| is_id(id))
                .map(str::to_owned),
            spelled,
            shown: preview::shown(event)?,
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
}

/// Returns the hash of all that a request binds, of this request alone.
pub fn digest(
    keys: &Keys,
    organization: &str,
    id: &ApprovalId,
    call_mac: &str,
    policies: &[BoundPolicy],
) -> Result<String> {
    let policies = serde_json::to_vec(policies).map_err(Error::internal)?;
    let parts: [&[u8]; 4] = [
        organization.as_bytes(),
        id.as_str().as_bytes(),
        call_mac.as_bytes(),
        &policies,
    ];
    Ok(hex(&keys.mac(BINDING, &parts)))
}

/// Returns what tells one set of policies from another.
pub fn set_of(policies: &[BoundPolicy]) -> Result<String> {
    let policies = serde_json::to_vec(policies).map_err(Error::internal)?;
    Ok(sha256_hex(&policies))
}

/// Says whether a text can be the id of a record. A word that names nobody stays as it was sent, whatever bytes it has, and no store is
/// asked for it: PostgreSQL takes no NUL.
fn is_id(text: &str) -> bool {
    (1..=128).contains(&text.len())
        && text
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || b"_-".contains(&byte))
}

/// Says whether a tool's name is one: it stands in rows and lists, so that nothing else may hide in it.
fn is_name(tool: &str) -> bool {
    tool.len() <= MAX_TOOL
        && tool
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || b"_-.:/@ ".contains(&byte))
        && !super::secrets::looks_secret(tool)
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
        // Also where something stands in the place of what nobody can say.
        for (name, why) in [
            (TOOL, Unbound::Uncertain),
            (INPUT, Unbound::Uncertain),
            ("identity.user_id", Unbound::NoSubject),
            ("identity.service_account_id", Unbound::NoSubject),
        ] {
            assert_eq!(refused(&|event| event.missing.push(name.into())), why, "{name}");
        }
        for tool in [
            "x".repeat(MAX_TOOL + 1),
            "Bash\nrm".into(),
            "ghp_0123456789abcdefghijABCD".into(),
        ] {
            let named =
                |event: &mut IncomingEvent| drop(event.attributes.insert(TOOL.into(), tool.clone().into()));
            assert_eq!(refused(&named), Unbound::Uncertain, "{tool}");
        }
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

    /// Proves AP-2.
    #[test]
    fn where_a_call_runs_and_what_is_missing_of_it_is_bound() {
        let call = |change: &dyn Fn(&mut IncomingEvent)| {
            let mut event = event(&json!({ "command": "ls" }));
            change(&mut event);
            Call::of(&event).unwrap().spelled
        };
        let all = [
            call(&|_| ()),
            call(&|event| event.session = Some("s-1".into())),
            call(&|event| event.session = Some("s-2".into())),
            call(&|event| event.folder = Some("s-1".into())),
            call(&|event| event.folder = Some("/srv".into())),
            call(&|event| event.host = Some("s-1".into())),
            call(&|event| event.host = Some("laptop".into())),
            call(&|event| event.missing = vec!["llm.model".into()]),
            call(&|event| event.missing = vec!["llm.provider".into()]),
            call(&|event| event.missing = vec!["llm.model".into(), "llm.provider".into()]),
        ];
        for (at, one) in all.iter().enumerate() {
            assert!(!all[..at].contains(one), "{at}");
        }
        let same = call(&|event| {
            event.missing = vec!["llm.provider".into(), "llm.model".into(), "llm.provider".into()];
            // A call id means nothing: another call may have the same one.
            event.call_id = Some("c-9".into());
        });
        assert_eq!(
            same, all[9],
            "the order in which they are said makes no difference"
        );
    }
}
