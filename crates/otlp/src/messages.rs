//! The messages of a model call, in the forms in which exporters write them: parts (the conventions), blocks of content (Anthropic),
//! calls beside the content (`OpenAI`).
//!
//! Keeps OT-5: a part that may have a text which is not found makes the whole text missing.

use crate::attributes::AttributeValue;
use serde_json::Value as Json;

/// Who says something to a model and is no user.
const OTHERS: [&str; 5] = ["system", "developer", "assistant", "tool", "function"];

/// Parts that answer a call of a tool.
const RESULTS: [&str; 3] = ["tool_call_response", "server_tool_call_response", "tool_result"];

/// Parts that ask for a tool.
const CALLS: [&str; 2] = ["tool_call", "tool_use"];

/// Other parts that have no text of the prompt or the response.
const TEXTLESS: [&str; 9] = [
    "server_tool_call",
    "server_tool_use",
    "reasoning",
    "thinking",
    "redacted_thinking",
    "blob",
    "file",
    "uri",
    "image",
];

/// A tool that a model asks for.
#[derive(Debug, PartialEq)]
pub struct ToolCall {
    /// The id by which its result names it.
    pub id: Option<String>,
    /// The tool's name.
    pub name: AttributeValue<String>,
    /// What it is to be called with.
    pub arguments: AttributeValue<Json>,
}

/// Says whether a message may be the prompt of a user: of whoever is not known to be somebody else, and more than results of
/// tools, which some exporters give the role of the user.
pub fn may_be_prompt(message: &Json) -> bool {
    let is_other = message["role"]
        .as_str()
        .is_some_and(|role| OTHERS.contains(&role));
    let only_results = parts(message)
        .is_some_and(|parts| !parts.is_empty() && parts.iter().all(|part| is_one_of(part, &RESULTS)));
    !is_other && !only_results
}

/// Returns the texts of messages as one: nothing where they have none, unreadable where some part may have a text that is not found.
pub fn text<'a>(messages: impl IntoIterator<Item = &'a Json>) -> AttributeValue<Json> {
    let mut texts = Vec::new();
    for message in messages {
        match texts_of(message) {
            Some(found) => texts.extend(found),
            None => return AttributeValue::Unreadable,
        }
    }
    if texts.is_empty() {
        return AttributeValue::Nothing;
    }
    AttributeValue::Value(texts.join("\n").into())
}

/// Returns the tools that a model asks for in its messages.
pub fn calls(messages: &[Json]) -> Vec<ToolCall> {
    let in_parts = |message: &Json| {
        let parts = parts(message).into_iter().flatten();
        let calls = parts.filter(|part| is_one_of(part, &CALLS));
        calls
            .map(|part| called(part, &part["name"], [&part["arguments"], &part["input"]]))
            .collect::<Vec<_>>()
    };
    let beside = |message: &Json| {
        let calls = message["tool_calls"].as_array().into_iter().flatten();
        calls
            .map(|call| {
                let function = &call["function"];
                called(call, &function["name"], [&function["arguments"], &Json::Null])
            })
            .collect::<Vec<_>>()
    };
    messages
        .iter()
        .flat_map(|message| in_parts(message).into_iter().chain(beside(message)))
        .collect()
}

fn called(call: &Json, name: &Json, arguments: [&Json; 2]) -> ToolCall {
    let told = arguments.into_iter().find(|told| !told.is_null());
    ToolCall {
        id: call["id"].as_str().filter(|id| !id.is_empty()).map(str::to_owned),
        name: match name.as_str() {
            Some(name) if !name.is_empty() => AttributeValue::Value(name.to_owned()),
            // A model that asks for a tool names it: another form of it is not known here.
            _ => AttributeValue::Unreadable,
        },
        arguments: told
            .cloned()
            .map_or(AttributeValue::Nothing, AttributeValue::Value),
    }
}

/// Returns the parts or blocks of a message; nothing where it has none of the known forms.
fn parts(message: &Json) -> Option<&[Json]> {
    match (&message["parts"], &message["content"]) {
        (Json::Array(parts), _) | (Json::Null, Json::Array(parts)) => Some(parts),
        _ => None,
    }
}

fn is_one_of(part: &Json, kinds: &[&str]) -> bool {
    part["type"].as_str().is_some_and(|kind| kinds.contains(&kind))
}

/// Returns the texts of a message; nothing when some part may have a text that is not found.
fn texts_of(message: &Json) -> Option<Vec<&str>> {
    if let Some(parts) = parts(message) {
        let in_blocks = message["parts"].is_null();
        let member = if in_blocks { "text" } else { "content" };
        let texts = parts.iter().filter(|part| {
            ![&RESULTS[..], &CALLS, &TEXTLESS]
                .iter()
                .any(|kinds| is_one_of(part, kinds))
        });
        return texts
            .map(|part| part[member].as_str().filter(|_| part["type"] == "text"))
            .collect();
    }
    match (&message["parts"], &message["content"]) {
        // The form before parts: the content is the text. A model that asks for tools may say nothing.
        (Json::Null, Json::String(text)) => Some(vec![text.as_str()]),
        (Json::Null, Json::Null) if message["tool_calls"].is_array() => Some(Vec::new()),
        _ => None,
    }
}
