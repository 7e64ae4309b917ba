//! The forms of a record: as it is, in the Open Cybersecurity Schema Framework, the Elastic Common Schema, or the Common Event Format.
//!
//! Whatever the form, what it has no member for stands in it whole: `unmapped` (OCSF), `provost` (ECS), `msg` (CEF).

use provost_words::time::Timestamp;
use serde_json::{Map, Value, json};

/// What a record is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// An entry of the audit log.
    Audit,
    /// A recorded decision, or an event that was imported.
    Decision,
}

impl Kind {
    fn word(self) -> &'static str {
        match self {
            Self::Audit => "audit",
            Self::Decision => "decision",
        }
    }
}

/// The form of lines.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    JsonLines,
    Ocsf,
    Ecs,
    Cef,
}

impl Form {
    /// The words of the flag.
    pub const WORDS: [&str; 4] = ["jsonl", "ocsf", "ecs", "cef"];

    /// Returns the form of a word.
    pub fn of(word: &str) -> Self {
        match word {
            "ocsf" => Self::Ocsf,
            "ecs" => Self::Ecs,
            "cef" => Self::Cef,
            _ => Self::JsonLines,
        }
    }

    /// Returns the line of a record, without its end.
    pub fn line(self, kind: Kind, organization: &str, record: &Value) -> String {
        let facts = Facts::of(kind, organization, record);
        match self {
            Self::JsonLines => json!({ "kind": kind.word(), "record": record }).to_string(),
            Self::Ocsf => ocsf(&facts).to_string(),
            Self::Ecs => ecs(&facts).to_string(),
            Self::Cef => cef(&facts),
        }
    }
}

/// What every form says of a record.
struct Facts<'a> {
    kind: Kind,
    record: &'a Value,
    id: &'a str,
    time: &'a str,
    organization: &'a str,
    /// An operation, or what was decided.
    action: &'a str,
    /// Whether it came about: the act was allowed and succeeded, the call was let through.
    is_allowed: bool,
    actor_id: &'a str,
    actor_name: &'a str,
    actor_kind: &'a str,
    source_ip: &'a str,
    target_kind: &'a str,
    target_id: &'a str,
    reason: &'a str,
    policies: Vec<&'a str>,
}

fn text<'a>(value: &'a Value, path: &str) -> &'a str {
    value.pointer(path).and_then(Value::as_str).unwrap_or_default()
}

impl<'a> Facts<'a> {
    fn of(kind: Kind, organization: &'a str, record: &'a Value) -> Self {
        let facts = Self {
            kind,
            record,
            id: text(record, "/id"),
            time: text(record, "/time"),
            organization,
            action: text(record, "/action"),
            is_allowed: text(record, "/outcome/decision") == "allow"
                && record
                    .pointer("/outcome/status")
                    .and_then(Value::as_i64)
                    .is_none_or(|status| status < 400),
            actor_id: text(record, "/actor/id"),
            actor_name: text(record, "/actor/display"),
            actor_kind: text(record, "/actor/type"),
            source_ip: text(record, "/sourceIp"),
            target_kind: text(record, "/target/type"),
            target_id: text(record, "/target/id"),
            reason: text(record, "/reason"),
            policies: Vec::new(),
        };
        if kind == Kind::Audit {
            return facts;
        }
        let action = text(record, "/decision/action");
        let is_enforced = !matches!(text(record, "/decision/mode"), "monitor" | "bypass");
        let policies = record["decision"]["policyIds"].as_array();
        Self {
            id: text(record, "/eventId"),
            time: text(record, "/at"),
            action,
            // What is only reported stops nobody, whether whoever asked only looked on or a bypass let it pass.
            is_allowed: !is_enforced || !matches!(action, "block" | "require_approval"),
            actor_id: text(record, "/subject/id"),
            actor_name: text(record, "/subject/id"),
            actor_kind: text(record, "/subject/kind"),
            target_kind: if record["tool"].is_string() { "tool" } else { "" },
            target_id: text(record, "/tool"),
            reason: "",
            policies: policies.into_iter().flatten().filter_map(Value::as_str).collect(),
            ..facts
        }
    }

    fn ms(&self) -> i64 {
        Timestamp::parse(self.time).map_or(0, Timestamp::as_ms)
    }

    /// From 1 to 10: what was refused is worth a look.
    fn severity(&self) -> u8 {
        match (self.is_allowed, self.kind) {
            (true, _) => 2,
            (false, Kind::Audit) => 5,
            (false, Kind::Decision) => 6,
        }
    }
}

/// Puts a member unless it is empty.
fn put(to: &mut Map<String, Value>, name: &str, value: &str) {
    if !value.is_empty() {
        to.insert(name.to_owned(), value.into());
    }
}

fn members<const N: usize>(pairs: [(&str, &str); N]) -> Map<String, Value> {
    let mut map = Map::new();
    for (name, value) in pairs {
        put(&mut map, name, value);
    }
    map
}

/// API Activity (6003) of version 1.3, with the profile `security_control`.
fn ocsf(facts: &Facts<'_>) -> Value {
    // 1 create, 2 read, 3 update, 4 delete, 99 other: what an operation does stands in its name only.
    let activity = if facts.kind == Kind::Audit {
        activity(facts.action)
    } else {
        99
    };
    let mut event = json!({
        "category_uid": 6, "class_uid": 6003, "activity_id": activity, "type_uid": 600_300 + activity,
        "time": facts.ms(),
        "severity_id": if facts.is_allowed { 1 } else { 3 },
        "status_id": if facts.is_allowed { 1 } else { 2 },
        "action_id": if facts.is_allowed { 1 } else { 2 },
        "disposition_id": if facts.is_allowed { 1 } else { 2 },
        "metadata": {
            "version": "1.3.0", "uid": facts.id, "log_name": facts.kind.word(), "profiles": ["security_control"],
            "product": { "name": "Provost", "vendor_name": "Provost", "version": env!("CARGO_PKG_VERSION") },
        },
        "api": { "operation": facts.action, "service": { "name": "provost" } },
        "actor": { "user": members([("uid", facts.actor_id), ("name", facts.actor_name), ("type", facts.actor_kind)]) },
        "src_endpoint": members([("ip", facts.source_ip)]),
        "unmapped": facts.record,
    });
    event["actor"]["user"]["org"] = json!({ "uid": facts.organization });
    if !facts.target_id.is_empty() {
        event["resources"] = json!([members([("uid", facts.target_id), ("type", facts.target_kind)])]);
    }
    if let Some(policy) = facts.policies.first() {
        event["policy"] = json!({ "uid": policy });
    }
    if !facts.reason.is_empty() {
        event["message"] = facts.reason.into();
    }
    event
}

fn activity(action: &str) -> i64 {
    let begins = |words: &[&str]| words.iter().any(|word| action.starts_with(word));
    if begins(&["create", "issue", "install", "import", "publish"]) {
        1
    } else if begins(&[
        "get", "list", "export", "read", "resolve", "search", "verify", "download",
    ]) {
        2
    } else if begins(&["delete", "revoke", "remove"]) {
        4
    } else if begins(&[
        "update", "disable", "enable", "rotate", "set", "replace", "archive", "rename",
    ]) {
        3
    } else {
        99
    }
}

/// Version 8.11.
fn ecs(facts: &Facts<'_>) -> Value {
    let mut kinds = vec!["access"];
    if facts.kind == Kind::Decision || !facts.is_allowed {
        kinds.push(if facts.is_allowed { "allowed" } else { "denied" });
    }
    let mut event = json!({
        "@timestamp": facts.time,
        "ecs": { "version": "8.11.0" },
        "event": {
            "kind": "event", "category": ["api"], "type": kinds, "id": facts.id, "action": facts.action,
            "outcome": if facts.is_allowed { "success" } else { "failure" },
            "module": "provost", "dataset": format!("provost.{}", facts.kind.word()), "severity": facts.severity(),
        },
        "organization": { "id": facts.organization },
        "user": members([("id", facts.actor_id), ("name", facts.actor_name)]),
        "provost": facts.record,
    });
    if !facts.source_ip.is_empty() {
        event["source"] = json!({ "ip": facts.source_ip });
    }
    if let Some(policy) = facts.policies.first() {
        event["rule"] = json!({ "id": policy });
    }
    if !facts.reason.is_empty() {
        event["event"]["reason"] = facts.reason.into();
    }
    event
}

/// Version 0, on one line whatever the record holds.
fn cef(facts: &Facts<'_>) -> String {
    let name = match facts.kind {
        Kind::Audit => "Audit entry",
        Kind::Decision => "Decision",
    };
    let head = [
        "Provost",
        "Provost",
        env!("CARGO_PKG_VERSION"),
        facts.action,
        name,
        &facts.severity().to_string(),
    ]
    .map(in_head)
    .join("|");
    let policies = facts.policies.join(" ");
    let time = facts.ms().to_string();
    let whole = facts.record.to_string();
    let fields = [
        ("rt", time.as_str()),
        ("externalId", facts.id),
        ("act", facts.action),
        ("outcome", if facts.is_allowed { "success" } else { "failure" }),
        ("suid", facts.actor_id),
        ("suser", facts.actor_name),
        ("src", facts.source_ip),
        ("reason", facts.reason),
        ("cs1Label", "organization"),
        ("cs1", facts.organization),
        ("cs2Label", if facts.target_id.is_empty() { "" } else { "target" }),
        ("cs2", facts.target_id),
        ("cs3Label", if policies.is_empty() { "" } else { "policies" }),
        ("cs3", policies.as_str()),
        ("msg", whole.as_str()),
    ];
    let fields = fields.into_iter().filter(|(_, value)| !value.is_empty());
    let said: Vec<String> = fields
        .map(|(name, value)| format!("{name}={}", in_field(value)))
        .collect();
    format!("CEF:0|{head}|{}", said.join(" "))
}

/// A field of the head: a bar would end it, and a line end the event.
fn in_head(text: &str) -> String {
    text.replace('\\', "\\\\")
        .replace('|', "\\|")
        .replace(['\n', '\r'], " ")
}

/// A value behind the head: an equals sign would begin another one.
fn in_field(text: &str) -> String {
    text.replace('\\', "\\\\")
        .replace('=', "\\=")
        .replace('\n', "\\n")
        .replace('\r', "\\r")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry() -> Value {
        json!({
            "id": "aud_1", "seq": 7, "time": "2026-11-26T12:00:00.000Z", "organizationId": "acme",
            "action": "disableHeadlessServiceAccount", "reason": "left | the = company\nyesterday",
            "actor": { "type": "service_account", "id": "sa_1", "display": "deploy", "role": "admin" },
            "target": { "type": "service_account", "id": "sa_2" }, "sourceIp": "192.0.2.7",
            "outcome": { "decision": "allow", "status": 200 }, "previousHash": "00", "hash": "11",
        })
    }

    fn decision(action: &str, mode: &str) -> Value {
        json!({
            "eventId": "evt_1", "at": "2026-11-26T12:00:00.000Z", "occasion": "pre_tool", "imported": false,
            "subject": { "kind": "user", "id": "usr_1" }, "tool": "Bash",
            "decision": { "action": action, "policyIds": ["no-shell"], "mode": mode },
        })
    }

    fn json_of(form: Form, kind: Kind, record: &Value) -> Value {
        let line = form.line(kind, "acme", record);
        assert!(!line.contains('\n'), "{line}");
        serde_json::from_str(&line).unwrap()
    }

    #[test]
    fn a_line_is_the_record_and_its_kind() {
        let line = json_of(Form::JsonLines, Kind::Audit, &entry());
        assert_eq!(line, json!({ "kind": "audit", "record": entry() }));
    }

    #[test]
    fn an_entry_is_api_activity_in_ocsf_and_ecs() {
        let event = json_of(Form::Ocsf, Kind::Audit, &entry());
        assert_eq!(
            (event["class_uid"].as_i64(), event["type_uid"].as_i64()),
            (Some(6003), Some(600_303))
        );
        assert_eq!(event["time"], 1_795_694_400_000_i64);
        assert_eq!(event["actor"]["user"]["uid"], "sa_1");
        assert_eq!(event["resources"][0]["uid"], "sa_2");
        assert_eq!(event["status_id"], 1);
        assert_eq!(event["unmapped"], entry());
        let event = json_of(Form::Ecs, Kind::Audit, &entry());
        assert_eq!(event["@timestamp"], "2026-11-26T12:00:00.000Z");
        assert_eq!(event["event"]["action"], "disableHeadlessServiceAccount");
        assert_eq!(event["source"]["ip"], "192.0.2.7");
        assert_eq!(event["event"]["outcome"], "success");
    }

    #[test]
    fn only_what_was_enforced_is_a_denial() {
        for (action, mode, status) in [
            ("block", "enforce", 2),
            ("require_approval", "enforce", 2),
            ("block", "monitor", 1),
            ("block", "bypass", 1),
            ("require_approval", "bypass", 1),
            ("allow", "enforce", 1),
            ("redact", "enforce", 1),
        ] {
            let event = json_of(Form::Ocsf, Kind::Decision, &decision(action, mode));
            assert_eq!(event["disposition_id"], status, "{action} {mode}");
            assert_eq!(event["policy"]["uid"], "no-shell");
        }
        let event = json_of(Form::Ecs, Kind::Decision, &decision("block", "enforce"));
        assert_eq!(event["event"]["type"], json!(["access", "denied"]));
    }

    #[test]
    fn nothing_in_a_record_begins_another_field_or_line_of_cef() {
        let line = Form::Cef.line(Kind::Audit, "acme", &entry());
        assert!(!line.contains('\n'));
        assert!(line.starts_with("CEF:0|Provost|Provost|"), "{line}");
        assert!(
            line.contains("|disableHeadlessServiceAccount|Audit entry|2|"),
            "{line}"
        );
        assert!(
            line.contains(r" reason=left | the \= company\nyesterday "),
            "{line}"
        );
        let mut hostile = entry();
        hostile["action"] = "a|b\nCEF:0|x".into();
        let line = Form::Cef.line(Kind::Audit, "acme", &hostile);
        assert!(line.contains(r"|a\|b CEF:0\|x|Audit entry|"), "{line}");
    }
}
