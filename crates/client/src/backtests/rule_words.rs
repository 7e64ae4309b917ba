//! A policy's definition as a sentence, for people who do not read JSON.
//!
//! What is not understood is not guessed: then there is no sentence, and the JSON beside it says it.

use super::words::action;
use serde_json::Value;

/// Longer texts are cut: the JSON has the whole.
const MAX_TEXT: usize = 160;
const MAX_VALUES: usize = 8;
/// LIMIT: levels of a condition that the server takes, and some more.
const MAX_DEPTH: usize = 20;

/// Attributes that have a word of everyday language.
const FIELDS: [(&str, &str); 12] = [
    ("identity.group_ids", "the list of the user's groups"),
    ("identity.user_id", "the user"),
    ("llm.model", "the model"),
    ("mcp.server_id", "the MCP server"),
    ("mcp.tool_id", "the MCP tool"),
    ("product.id", "the product"),
    ("request.prompt", "the prompt"),
    ("resource.id", "the resource"),
    ("response.content", "the response"),
    ("tool.id", "the tool"),
    ("tool.input.command", "its command"),
    ("tool.input.file_path", "its file"),
];

/// Returns what a policy does, and what it does not apply to.
pub fn sentences(definition: &Value) -> Vec<String> {
    let mut all = Vec::new();
    let Some(rule) = rule(definition) else { return all };
    all.push(rule);
    if definition["enforcement"] == "monitor" {
        all.push("It is only watched: it decides nothing.".to_owned());
    }
    if let Some(condition) = definition.get("except").and_then(|value| condition(value, 0)) {
        all.push(format!("Not if {condition}."));
    }
    for exception in definition["exceptions"].as_array().into_iter().flatten() {
        let until = exception["expiresAt"].as_str();
        let until = until.map(|at| format!(", until {}", cut(at))).unwrap_or_default();
        let reason = exception["reason"].as_str().map(cut).unwrap_or_default();
        all.push(match condition(&exception["conditions"], 0) {
            Some(condition) => format!("Not if {condition}{until} ({reason})."),
            None => format!("There is an exception, which the JSON says{until} ({reason})."),
        });
    }
    all
}

fn rule(definition: &Value) -> Option<String> {
    let done = done(definition["action"].as_str()?)?;
    let what = what(definition)?;
    let who = who(&definition["appliesTo"]);
    let enabled = if definition["enabled"] == false {
        "Switched off: "
    } else {
        ""
    };
    if definition.get("logic").is_some() {
        return Some(format!(
            "{enabled}{what}{who} {done} if the module in the JSON says so."
        ));
    }
    let condition = match definition.get("conditions") {
        Some(conditions) => format!(" if {}", condition(conditions, 0)?),
        None => String::new(),
    };
    Some(format!("{enabled}{what}{who} {done}{condition}."))
}

fn done(word: &str) -> Option<&'static str> {
    Some(match word {
        "allow" => "passes",
        "flag_for_review" => "is flagged for review",
        "nudge" => "comes with a nudge",
        "redact" => "is redacted",
        "filter" => "is filtered",
        "require_approval" => "needs approval",
        "block" => "is blocked",
        _ => return None,
    })
}

/// Returns what is judged: `A prompt or a tool call`.
fn what(definition: &Value) -> Option<String> {
    let words = ["evaluateOn", "enforcementSurfaces"]
        .iter()
        .find_map(|member| definition[*member].as_array());
    let Some(words) = words else {
        return Some("A request".to_owned());
    };
    let named: Vec<&str> = words
        .iter()
        .map(|word| match word.as_str()? {
            "prompt" => Some("a prompt"),
            "pre_tool" => Some("a tool call"),
            "post_tool" => Some("the result of a tool call"),
            "response" => Some("a response"),
            "inline_hook" => Some("the use of a product in its hook"),
            "endpoint_route" => Some("the use of a product on a device"),
            "provider" => Some("the use of a provider"),
            _ => None,
        })
        .collect::<Option<_>>()?;
    let mut text = named.join(" or ");
    text.get_mut(..1)?.make_ascii_uppercase();
    Some(text)
}

fn who(scope: &Value) -> String {
    let mut parts = Vec::new();
    for (member, one, several) in [
        ("users", "the user", "the users"),
        ("groups", "the group", "the groups"),
        ("serviceAccounts", "the service account", "the service accounts"),
        ("agents", "the agent", "the agents"),
        ("products", "the product", "the products"),
        ("devices", "the device", "the devices"),
        ("resources", "the resource", "the resources"),
    ] {
        let names = scope[member].as_array().filter(|names| !names.is_empty());
        let Some(names) = names else { continue };
        let kind = if names.len() == 1 { one } else { several };
        parts.push(format!("{kind} {}", listed(names)));
    }
    if parts.is_empty() {
        return String::new();
    }
    let at = scope["resources"]
        .as_array()
        .is_some_and(|names| !names.is_empty());
    let word = if at && parts.len() == 1 { "to" } else { "of" };
    format!(" {word} {}", parts.join(", "))
}

fn condition(value: &Value, depth: usize) -> Option<String> {
    if depth > MAX_DEPTH {
        return None;
    }
    for (member, word) in [("all", " and "), ("any", " or ")] {
        let Some(parts) = value[member].as_array() else {
            continue;
        };
        let parts: Vec<String> = parts
            .iter()
            .map(|part| {
                let said = condition(part, depth + 1)?;
                let is_simple = parts.len() == 1 || !(part["all"].is_array() || part["any"].is_array());
                Some(if is_simple { said } else { format!("({said})") })
            })
            .collect::<Option<_>>()?;
        return Some(parts.join(word));
    }
    if let Some(inner) = value.get("not") {
        return Some(format!("not ({})", condition(inner, depth + 1)?));
    }
    if let Some(count) = value.get("eventCount") {
        let of = condition(count.get("where")?, depth + 1)?;
        let compare = compare(count["op"].as_str()?)?;
        let within = count["within"].as_str()?;
        return Some(format!(
            "the number of the subject's events of the {} before in which {of} {compare} {}",
            cut(within),
            shown(&count["value"])
        ));
    }
    predicate(value)
}

fn predicate(value: &Value) -> Option<String> {
    let name = value["field"].as_str()?;
    let field = FIELDS.iter().find(|(known, _)| *known == name);
    let field = field.map_or_else(|| cut(name), |(_, words)| (*words).to_owned());
    let op = value["op"].as_str()?;
    Some(match op {
        "exists" => format!("{field} is known"),
        "in" => format!("{field} is {}", any_of(&value["value"])),
        "contains_any" => format!("{field} contains {}", any_of(&value["value"])),
        "contains_all" => format!("{field} contains {}", listed(value["value"].as_array()?)),
        "not_in" => format!("{field} is not {}", any_of(&value["value"])),
        other => format!("{field} {} {}", compare(other)?, shown(&value["value"])),
    })
}

fn compare(op: &str) -> Option<&'static str> {
    Some(match op {
        "eq" => "is",
        "neq" => "is not",
        "gt" => "is more than",
        "gte" => "is at least",
        "lt" => "is less than",
        "lte" => "is at most",
        "contains" => "contains",
        "starts_with" => "begins with",
        "ends_with" => "ends with",
        "matches" => "matches",
        _ => return None,
    })
}

fn any_of(value: &Value) -> String {
    let Some(values) = value.as_array() else {
        return shown(value);
    };
    if let [only] = values.as_slice() {
        return shown(only);
    }
    format!("one of {}", listed(values))
}

fn listed(values: &[Value]) -> String {
    let mut shown: Vec<String> = values.iter().take(MAX_VALUES).map(shown).collect();
    if values.len() > MAX_VALUES {
        shown.push(format!("{} more", values.len() - MAX_VALUES));
    }
    shown.join(", ")
}

fn shown(value: &Value) -> String {
    match value {
        Value::String(text) => format!("“{}”", cut(text)),
        // A selector that says which directory is meant.
        Value::Object(members) => members
            .get("name")
            .or_else(|| members.get("id"))
            .map_or_else(|| cut(&value.to_string()), shown),
        other => cut(&other.to_string()),
    }
}

fn cut(text: &str) -> String {
    if text.chars().count() <= MAX_TEXT {
        return text.to_owned();
    }
    format!("{}…", text.chars().take(MAX_TEXT).collect::<String>())
}

/// Returns the word of a definition's action, for a badge.
pub fn badge(definition: &Value) -> Option<String> {
    let word = definition.get("action").or_else(|| definition.get("effect"))?;
    word.as_str().map(action)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_rule_is_a_sentence_and_so_is_what_it_does_not_apply_to() {
        let said = sentences(&json!({
            "id": "p", "name": "n", "action": "require_approval", "evaluateOn": ["pre_tool", "prompt"],
            "appliesTo": { "groups": ["Engineering", { "name": "Support", "directoryId": "hr" }] },
            "conditions": { "any": [
                { "all": [
                    { "field": "tool.id", "op": "in", "value": ["Bash"] },
                    { "field": "tool.input.command", "op": "matches", "value": "rm.*" } ] },
                { "not": { "field": "llm.input_tokens", "op": "gte", "value": 5 } },
                { "eventCount": { "within": "1d", "op": "gte", "value": 1,
                    "where": { "field": "mcp.server_id", "op": "not_in", "value": ["a", "b"] } } } ] },
            "exceptions": [{ "id": "e", "reason": "on call", "expiresAt": "2027-01-01T00:00:00Z",
                "conditions": { "field": "identity.group_ids", "op": "contains_any", "value": ["Platform", "On call"] } }],
        }));
        assert_eq!(
            said,
            [
                "A tool call or a prompt of the groups “Engineering”, “Support” needs approval if (the tool is “Bash” and its \
                 command matches “rm.*”) or not (llm.input_tokens is at least 5) or the number of the subject's events of the \
                 1d before in which the MCP server is not one of “a”, “b” is at least 1.",
                "Not if the list of the user's groups contains one of “Platform”, “On call”, until 2027-01-01T00:00:00Z (on call).",
            ]
        );
    }

    #[test]
    fn what_is_not_understood_is_not_guessed() {
        for definition in [
            json!({}),
            json!({ "action": "sing", "evaluateOn": ["prompt"] }),
            json!({ "action": "block", "evaluateOn": ["dream"] }),
            json!({ "action": "block", "evaluateOn": ["prompt"], "conditions": { "hasPriorEvent": {} } }),
            json!({ "action": "block", "evaluateOn": ["prompt"], "conditions": { "all": [{ "field": "a", "op": "sings" }] } }),
        ] {
            assert_eq!(sentences(&definition), Vec::<String>::new(), "{definition}");
        }
        let mut deep = json!({ "field": "tool.id", "op": "exists" });
        for _ in 0..200 {
            deep = json!({ "not": deep });
        }
        assert_eq!(condition(&deep, 0), None);
    }

    #[test]
    fn other_families_have_sentences_too() {
        let access = json!({ "action": "flag_for_review", "enforcementSurfaces": ["inline_hook"],
            "conditions": { "field": "product.id", "op": "eq", "value": "openai/codex" } });
        assert_eq!(
            sentences(&access),
            ["The use of a product in its hook is flagged for review if the product is “openai/codex”."]
        );
        let resource =
            json!({ "action": "block", "enforcement": "monitor", "appliesTo": { "resources": ["Orders"] } });
        assert_eq!(
            sentences(&resource),
            [
                "A request to the resource “Orders” is blocked.",
                "It is only watched: it decides nothing."
            ]
        );
        let rego = json!({ "action": "block", "evaluateOn": ["prompt"], "logic": { "module": "package x" } });
        assert!(sentences(&rego)[0].ends_with("if the module in the JSON says so."));
    }
}
