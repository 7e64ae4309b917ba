//! The descriptions of MCP tools, derived from the registry. The crate `provost-mcp` serves them.
//!
//! A tool is an operation: its name is the operation's id, its arguments are one flat object of everything that a
//! caller can say. The organization is no argument: a token has one.
//!
//! INVARIANT MT-1: whatever stands in `inputSchema` can be said by a caller of the tool, and nothing else can.
//! INVARIANT MT-2: every answer fits the `outputSchema` of its tool, which clients check. The schema is the answer's
//! shape; words and limits stand in the OpenAPI document, because a list of all tools is read by models (ADR 0021).
//! Proof: every answer of the tests is judged.

use super::openapi::{flat_input, for_strangers, opened, portable, without_null};
use crate::operation::{Access, Entry, Kind, Meta, Method, Registry};
use schemars::generate::SchemaSettings;
use serde_json::{Value, json};

/// What models are told of the arguments that every change has.
const TRIO: [(&str, &str); 2] = [
    ("reason", "why, in a line; it is audited"),
    ("idempotencyKey", "one for each change; repeated only to retry"),
];

/// The keywords of a shape.
const SHAPE: [&str; 11] = [
    "type",
    "properties",
    "required",
    "additionalProperties",
    "items",
    "prefixItems",
    "enum",
    "const",
    "oneOf",
    "anyOf",
    "allOf",
];

/// How a tool takes a body that is not JSON.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Content {
    /// Its argument `content` is the text itself.
    Text,
    /// Its argument `content` is base64.
    Base64,
}

/// Returns how a tool takes its content; `None` where its arguments are the body.
pub fn content(meta: &Meta) -> Option<Content> {
    let media_types = meta.consumes?.media_types;
    let is_text = media_types.iter().all(|media_type| is_text(media_type));
    Some(if is_text { Content::Text } else { Content::Base64 })
}

/// Says whether a media type is text that a model reads and writes as it is.
pub fn is_text(media_type: &str) -> bool {
    media_type.starts_with("text/")
        || ["json", "jsonl", "x-ndjson"]
            .iter()
            .any(|kind| media_type.strip_prefix("application/") == Some(kind))
        || media_type.ends_with("+json")
}

/// Says whether an operation is offered as a tool. Left out is what takes recorded events in a binary form: that is
/// the protocol of exporters, whose form no model writes. And what machines call for themselves alone, and what people say themselves.
pub fn is_offered(meta: &Meta) -> bool {
    !meta.of_people
        && !matches!(meta.access, Access::OfKind { .. })
        && (!meta.ingests || content(meta) != Some(Content::Base64))
}

/// Says whether a tool changes nothing: neither state nor history.
pub fn is_read_only(meta: &Meta) -> bool {
    meta.kind == Kind::Read && !meta.ingests
}

/// Returns the scopes that an operation needs in full: to call it, and to perform what it otherwise previews.
pub fn scopes(meta: &Meta) -> Vec<&'static str> {
    let called = match meta.access {
        Access::Authenticated | Access::OfKind { .. } => Vec::new(),
        Access::ScopedBoth { scope, other, .. } => vec![scope, other],
        Access::Scoped { scope, .. }
        | Access::ScopedEither { scope, .. }
        | Access::ScopedOrSelf { scope, .. } => vec![scope],
    };
    let mut scopes: Vec<&str> = called
        .into_iter()
        .chain(meta.performance.map(|p| p.scope))
        .collect();
    scopes.dedup();
    scopes
}

/// Returns the description of every operation as an MCP tool, in declared order; also of those that are not
/// [offered](is_offered).
pub fn tools(registry: &Registry) -> Vec<Value> {
    registry.entries().iter().map(tool).collect()
}

/// Returns the description of an operation as an MCP tool.
pub fn tool(entry: &Entry) -> Value {
    let meta = entry.meta;
    let mut tool = json!({
        "name": meta.id,
        "title": meta.summary,
        "description": description(meta),
        "inputSchema": input(entry),
        "annotations": {
            "readOnlyHint": is_read_only(meta),
            "destructiveHint": meta.kind == Kind::Write && (meta.confirm || meta.method == Method::Delete),
            // Every write carries a key under which it acts once; an event that is sent twice happened twice.
            "idempotentHint": !meta.ingests,
            "openWorldHint": false,
        },
        "_meta": { "toolset": meta.toolset },
    });
    if meta.status != 204 && meta.produces == "application/json" {
        let mut generator = SchemaSettings::draft2020_12()
            .with(|s| s.inline_subschemas = true)
            .into_generator();
        let mut output = (entry.schemas[3])(&mut generator).to_value();
        without_null(&mut output);
        opened(&mut output);
        shape(&mut output);
        tool["outputSchema"] = output;
    }
    portable(&mut tool);
    for_strangers(&mut tool);
    tool
}

fn description(meta: &Meta) -> String {
    let mut parts = vec![meta.summary, meta.description];
    if meta.performance.is_some() {
        parts.push("Without confirm: true it changes nothing and shows what it would do.");
    }
    if meta.confirm {
        parts.push("Nothing can undo it: confirm must be true.");
    }
    parts.retain(|part| !part.is_empty());
    parts.join("\n\n")
}

fn input(entry: &Entry) -> Value {
    let mut input = flat_input(entry);
    // Only of what is there can `null` take something away; elsewhere it says no more than leaving the argument out, and
    // there are clients whose models take one type for each argument.
    if entry.meta.method != Method::Patch {
        without_null(&mut input);
    }
    if content(entry.meta) == Some(Content::Text) {
        input["properties"]["content"] = json!({ "type": "string" });
    }
    for (name, description) in TRIO {
        if let Some(argument) = input["properties"].get_mut(name).and_then(Value::as_object_mut) {
            argument.insert("description".into(), description.into());
        }
    }
    without_characters(&mut input);
    input
}

/// Takes away the patterns that only say which control characters and blanks a text has not: a model writes none, and does
/// not read 200 bytes about them at every text. The operation refuses them all the same.
fn without_characters(schema: &mut Value) {
    match schema {
        Value::Object(members) => {
            let is_of_characters =
                |pattern: &Value| pattern.as_str().is_some_and(|text| text.contains(r"\u0000-"));
            if members.get("pattern").is_some_and(is_of_characters) {
                members.remove("pattern");
            }
            members.values_mut().for_each(without_characters);
        }
        Value::Array(items) => items.iter_mut().for_each(without_characters),
        _ => {}
    }
}

/// Leaves of an answer's schema what a client needs to judge an answer: its shape. The words and the limits of each
/// member stand in the OpenAPI document; in every list they would be most of its bytes.
fn shape(schema: &mut Value) {
    let Some(members) = schema.as_object_mut() else {
        return;
    };
    members.retain(|keyword, _| SHAPE.contains(&keyword.as_str()));
    // Without limits two alternatives can fit.
    if let Some(alternatives) = members.remove("oneOf") {
        members.insert("anyOf".into(), alternatives);
    }
    for (keyword, value) in members.iter_mut() {
        match (keyword.as_str(), value) {
            ("items" | "additionalProperties", inner) => shape(inner),
            ("properties", Value::Object(inner)) => inner.values_mut().for_each(shape),
            ("anyOf" | "allOf" | "prefixItems", Value::Array(inner)) => inner.iter_mut().for_each(shape),
            _ => {}
        }
    }
    if let Some(words) = members.get("anyOf").and_then(words) {
        *schema = json!({ "type": "string", "enum": words });
    }
}

/// Returns the words of alternatives that are a word each.
fn words(alternatives: &Value) -> Option<Vec<Value>> {
    let word = |alternative: &Value| alternative.get("const").filter(|word| word.is_string()).cloned();
    alternatives.as_array()?.iter().map(word).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_is_what_a_model_reads() {
        for media_type in [
            "text/csv",
            "application/x-ndjson",
            "application/jsonl",
            "application/json",
            "a/b+json",
        ] {
            assert!(is_text(media_type), "{media_type}");
        }
        for media_type in [
            "application/gzip",
            "application/x-protobuf",
            "application/zip",
            "image/json",
        ] {
            assert!(!is_text(media_type), "{media_type}");
        }
    }
}
