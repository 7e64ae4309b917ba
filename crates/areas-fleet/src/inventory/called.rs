//! What a person calls something that was found: one line for every kind, made of what its device sent and of nothing else, so that it
//! holds no value that the observation does not hold.

use serde_json::{Map, Value};

/// LIMIT: names of variables that stand in a name. Ours: a line of a table.
const MOST_NAMES: usize = 3;

/// Returns what an observation of a report is called. A kind that is not known has its kind for a name.
pub fn called(found: &Map<String, Value>) -> String {
    let text = |member: &str| found.get(member).and_then(Value::as_str).unwrap_or_default();
    let count = |member: &str| found.get(member).and_then(Value::as_u64).unwrap_or_default();
    let name = match text("kind") {
        "mcp_server" => text("configuredName").to_owned(),
        "hook" => format!("{}, {}", text("event"), counted(count("commands"), "command")),
        "setting" => format!("{}: {}", text("name"), text("value")),
        "environment" => listed(found.get("names")),
        "credential" => match text("memberName") {
            "" => text("pattern").to_owned(),
            member => format!("{} in {member}", text("pattern")),
        },
        "sessions" => counted(count("files"), "conversation"),
        _ => text("name").to_owned(),
    };
    if name.is_empty() {
        return text("kind").to_owned();
    }
    name
}

fn counted(count: u64, thing: &str) -> String {
    format!("{count} {thing}{}", if count == 1 { "" } else { "s" })
}

fn listed(names: Option<&Value>) -> String {
    let names = names.and_then(Value::as_array).map(Vec::as_slice);
    let names: Vec<&str> = names
        .unwrap_or_default()
        .iter()
        .filter_map(Value::as_str)
        .collect();
    let shown = names[..names.len().min(MOST_NAMES)].join(", ");
    match names.len().checked_sub(MOST_NAMES) {
        None | Some(0) => shown,
        Some(more) => format!("{shown} and {more} more"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn every_kind_has_a_name() {
        for (found, name) in [
            (
                json!({ "kind": "mcp_server", "configuredName": "files", "key": "npm:@acme/files" }),
                "files",
            ),
            (json!({ "kind": "skill", "name": "pdf" }), "pdf"),
            (
                json!({ "kind": "extension", "name": "good@market" }),
                "good@market",
            ),
            (
                json!({ "kind": "hook", "event": "PreToolUse", "commands": 1 }),
                "PreToolUse, 1 command",
            ),
            (
                json!({ "kind": "hook", "event": "Stop", "commands": 2 }),
                "Stop, 2 commands",
            ),
            (
                json!({ "kind": "setting", "name": "permissions.defaultMode", "value": "set" }),
                "permissions.defaultMode: set",
            ),
            (
                json!({ "kind": "environment", "names": ["A", "B", "C"] }),
                "A, B, C",
            ),
            (
                json!({ "kind": "environment", "names": ["A", "B", "C", "D", "E"] }),
                "A, B, C and 2 more",
            ),
            (
                json!({ "kind": "credential", "pattern": "github_token", "memberName": "GH_TOKEN" }),
                "github_token in GH_TOKEN",
            ),
            (
                json!({ "kind": "credential", "pattern": "jwt", "memberName": "" }),
                "jwt",
            ),
            (json!({ "kind": "sessions", "files": 12 }), "12 conversations"),
            (json!({ "kind": "of_tomorrow", "name": "x" }), "x"),
            (json!({ "kind": "of_tomorrow" }), "of_tomorrow"),
            (json!({ "kind": "environment" }), "environment"),
        ] {
            assert_eq!(called(found.as_object().unwrap()), name, "{found}");
        }
    }
}
