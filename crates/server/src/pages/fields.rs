//! What a request may say, in rows that a person reads: name, type, whether it has to be there, what it means.

use provost_words::html::Html;
use serde_json::Value;
use std::fmt::Write;

/// Adds the rows of the parameters of a place (`path`, `query`, `header`).
pub fn parameters(html: &mut Html, operation: &Value, place: &str) {
    for parameter in members(operation, "parameters").filter(|parameter| parameter["in"] == place) {
        row(
            html,
            parameter["name"].as_str().unwrap_or_default(),
            parameter["required"] == true,
            &parameter["schema"],
            parameter["description"].as_str(),
        );
    }
}

/// How deep members of members are told; what lies deeper stands in the document.
const DEPTH: usize = 3;

/// Adds the rows of the members of a schema, and of theirs: `serviceAccount.name`, `items[].id`.
pub fn body(html: &mut Html, api: &Value, schema: &Value) {
    within(html, api, schema, "", 1);
}

fn within(html: &mut Html, api: &Value, schema: &Value, before: &str, depth: usize) {
    let schema = resolved(api, schema);
    let required: Vec<&str> = members(schema, "required").filter_map(Value::as_str).collect();
    for (name, member) in schema["properties"].as_object().into_iter().flatten() {
        let path = format!("{before}{name}");
        // What is said of the member goes before what is said of its type.
        let about = member["description"].as_str();
        let member = resolved(api, member);
        row(
            html,
            &path,
            required.contains(&name.as_str()),
            member,
            about.or_else(|| member["description"].as_str()),
        );
        if depth == DEPTH {
            continue;
        }
        if let Some(items) = member.get("items") {
            within(html, api, items, &format!("{path}[]."), depth + 1);
        } else {
            within(html, api, member, &format!("{path}."), depth + 1);
        }
    }
}

/// Returns what a reference leads to.
fn resolved<'a>(api: &'a Value, schema: &'a Value) -> &'a Value {
    let name = schema["$ref"].as_str().and_then(|place| place.strip_prefix('#'));
    name.and_then(|place| api.pointer(place)).unwrap_or(schema)
}

fn row(html: &mut Html, name: &str, is_required: bool, schema: &Value, about: Option<&str>) {
    html.element("div", &[], |html| {
        html.element("dt", &[], |html| {
            html.words("code", "", name);
            if is_required {
                html.text(" ");
                html.words("small", "needed", "needed");
            }
        });
        html.element("dd", &[], |html| {
            html.words("small", "soft", &kind(schema));
            if let Some(about) = about.filter(|about| !about.is_empty()) {
                html.text(" ");
                html.text(&about.replace('\n', " "));
            }
        });
    });
}

/// Returns the elements of a list of a schema.
pub fn members<'a>(value: &'a Value, name: &str) -> impl Iterator<Item = &'a Value> + use<'a> {
    value[name].as_array().into_iter().flatten()
}

/// Says in few words what a value may be.
fn kind(schema: &Value) -> String {
    if let Some(constant) = schema.get("const") {
        return constant.to_string();
    }
    let words: Vec<String> = words_of(schema);
    if !words.is_empty() {
        return words.join(" | ");
    }
    let name = match &schema["type"] {
        Value::String(name) => name.clone(),
        Value::Array(names) => names
            .iter()
            .filter_map(Value::as_str)
            .collect::<Vec<_>>()
            .join(" or "),
        _ if schema.get("properties").is_some() => "object".to_owned(),
        _ => "any of several forms".to_owned(),
    };
    let mut said = if name.starts_with("array") {
        format!("list of {}", kind(&schema["items"]))
    } else {
        name
    };
    for (member, word) in [
        ("format", ""),
        ("minimum", "from "),
        ("maximum", "to "),
        ("minLength", "at least "),
        ("maxLength", "at most "),
        ("maxItems", "at most "),
        ("default", "without it "),
    ] {
        let unit = match member {
            "minLength" | "maxLength" => " characters",
            "maxItems" => " of them",
            _ => "",
        };
        match schema.get(member) {
            None | Some(Value::Null) => {}
            // One character is what every text has that may not be empty.
            Some(value) if member == "minLength" && *value == 1 => {}
            Some(Value::String(text)) => {
                let _ = write!(said, ", {word}{text}{unit}");
            }
            Some(value) => {
                let _ = write!(said, ", {word}{value}{unit}");
            }
        }
    }
    said
}

/// Returns the words of a closed list.
fn words_of(schema: &Value) -> Vec<String> {
    let text = |value: &Value| value.as_str().map_or_else(|| value.to_string(), str::to_owned);
    if schema["enum"].is_array() {
        return members(schema, "enum").map(text).collect();
    }
    let choices = members(schema, "oneOf").filter_map(|choice| choice.get("const"));
    choices.map(text).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_value_is_told_in_few_words() {
        for (schema, said) in [
            (
                json!({ "type": "string", "minLength": 1, "maxLength": 9 }),
                "string, at most 9 characters",
            ),
            (
                json!({ "type": ["integer", "null"], "minimum": 1 }),
                "integer or null, from 1",
            ),
            (json!({ "enum": ["a", "b", null] }), "a | b | null"),
            (json!({ "oneOf": [{ "const": "x" }, { "const": "y" }] }), "x | y"),
            (
                json!({ "type": "array", "items": { "type": "string" }, "maxItems": 3 }),
                "list of string, at most 3 of them",
            ),
            (json!({ "const": true }), "true"),
            (
                json!({ "type": "boolean", "default": false }),
                "boolean, without it false",
            ),
            (json!({ "anyOf": [{}, {}] }), "any of several forms"),
        ] {
            assert_eq!(kind(&schema), said);
        }
    }
}
