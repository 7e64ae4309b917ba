//! Model and tool calls whose messages are attributes of their own: `OpenInference` (Arize Phoenix and its instrumentations) and
//! `OpenLLMetry` (Traceloop).
//!
//! Source: the specification of `OpenInference` (`spec/semantic_conventions.md`), `opentelemetry-semantic-conventions-ai` of `OpenLLMetry`;
//! both read 2026-11.
//!
//! Keeps OT-4 and OT-6.

use crate::attributes::{AttributeValue, Attributes};
use crate::event::{Event, document};
use crate::genai::{ModelCall, Record};
use crate::mcp::Tool;
use crate::read::SkipReason;
use serde_json::{Map, Value as Json, json};

/// Returns the events of a span of `OpenInference`, by its kind.
pub fn openinference(record: &Record<'_>, kind: &str) -> Result<Vec<Event>, SkipReason> {
    let own = record.own;
    match kind {
        "TOOL" => {
            let tool = Tool {
                server: own.told("mcp.server.name"),
                sign: own.told("mcp.method.name"),
                ..Tool::named(own.told("tool.name"))
            };
            let (result, of_result) = result_of(own.json("output.value"));
            let call = own.first(&["tool_call.id", "tool.id"]);
            Ok(record.tool(
                call.or(of_result.as_ref().map(String::as_str)),
                &result,
                |event| {
                    tool.tell(event);
                    event.input(tool.name.value(), &own.json("input.value"));
                },
            ))
        }
        "LLM" => record.model_call(&ModelCall {
            input: messages(own, "llm.input_messages"),
            output: messages(own, "llm.output_messages"),
            request_model: "llm.model_name",
            response_model: "llm.model_name",
            id: own.told("llm.response.id"),
            input_tokens: own.number("llm.token_count.prompt"),
            output_tokens: own.number("llm.token_count.completion"),
        }),
        "CHAIN" | "AGENT" | "RETRIEVER" | "EMBEDDING" | "RERANKER" | "GUARDRAIL" | "EVALUATOR" | "PROMPT" => {
            Err(SkipReason::Other)
        }
        // It may tell of a call, and nobody can say of which.
        _ => Err(SkipReason::Unreadable),
    }
}

/// Returns the messages below a prefix; nothing where there are none.
fn messages(own: Attributes<'_>, prefix: &str) -> Option<Vec<Json>> {
    let places = own.places(prefix);
    let message = |place| {
        let name = |member: &str| format!("{prefix}.{place}.message.{member}");
        let mut parts = Vec::new();
        let contents = own.places(&name("contents"));
        // Where the contents are told one by one, the text is told again as one.
        if contents.is_empty() {
            push_text(&mut parts, &own.json(&name("content")));
        }
        for part in contents {
            let name = |member: &str| format!("{}.{part}.message_content.{member}", name("contents"));
            match own.told(&name("type")) {
                AttributeValue::Value("text") => push_text(&mut parts, &own.json(&name("text"))),
                // It is told again among the calls.
                AttributeValue::Value("tool_use") => {}
                AttributeValue::Value(kind) => parts.push(json!({ "type": kind })),
                // A part without a kind makes the text of the message missing.
                _ => parts.push(json!({})),
            }
        }
        for call in own.places(&name("tool_calls")) {
            let name = |member: &str| format!("{}.{call}.tool_call.{member}", name("tool_calls"));
            parts.push(tool_call(
                own,
                &name("id"),
                &name("function.name"),
                &name("function.arguments"),
            ));
        }
        said(own, &name("role"), &parts)
    };
    (!places.is_empty()).then(|| places.into_iter().map(message).collect())
}

/// Returns what was said to a model and what it said, where a span tells both as one list of events (Logfire, of agents of `OpenAI`):
/// the answer is what the assistant says last.
pub fn told_as_events(own: Attributes<'_>) -> Option<(Vec<Json>, Vec<Json>)> {
    let AttributeValue::Value(Json::Array(events)) = own.json("events").map(crate::genai::parsed) else {
        return None;
    };
    let is_answer = |event: &Json| {
        event["event.name"] == "gen_ai.assistant.message" || event["event.name"] == "gen_ai.choice"
    };
    let answers = events.iter().rev().take_while(|event| is_answer(event)).count();
    let mut input = events;
    let output = input.split_off(input.len() - answers);
    let message = |event: Json| match &event["message"] {
        Json::Object(message) => Json::Object(message.clone()),
        _ => event,
    };
    Some((input, output.into_iter().map(message).collect()))
}

/// Returns the events of a tool's span of `OpenLLMetry`.
pub fn traceloop_tool(record: &Record<'_>) -> Vec<Event> {
    let own = record.own;
    let tool = Tool::named(own.first(&["gen_ai.tool.name", "traceloop.entity.name"]));
    let input = own.first_json(&["gen_ai.tool.call.arguments", "traceloop.entity.input"]);
    let output = own.first_json(&["gen_ai.tool.call.result", "traceloop.entity.output"]);
    let input = input.map(lifted);
    let (output, of_result) = result_of(output);
    let call = own.told("gen_ai.tool.call.id");
    record.tool(
        call.or(of_result.as_ref().map(String::as_str)),
        &output,
        |event| {
            tool.tell(event);
            event.input(tool.name.value(), &input);
        },
    )
}

/// Returns the result that `LangChain` wraps into a message of its own, with the id of the call that the message names.
fn result_of(output: AttributeValue<Json>) -> (AttributeValue<Json>, AttributeValue<String>) {
    let written = match &output {
        AttributeValue::Value(Json::String(text)) => document(text),
        AttributeValue::Value(output) => Some(output.clone()),
        _ => None,
    };
    let message = written.and_then(|output| {
        let wrapped = [output.pointer("/output/kwargs"), output.pointer("/data")];
        let message = wrapped
            .into_iter()
            .flatten()
            .find(|message| message["type"] == "tool")?;
        Some((
            message["content"].clone(),
            message["tool_call_id"].as_str()?.to_owned(),
        ))
    });
    match message {
        Some((content, call)) => (AttributeValue::Value(content), AttributeValue::Value(call)),
        None => (output, AttributeValue::Nothing),
    }
}

/// Returns the events of a tool that an agent of `OpenAI` ran under Logfire.
pub fn logfire_function(record: &Record<'_>) -> Vec<Event> {
    let own = record.own;
    let tool = Tool::named(own.told("name"));
    let (input, output) = (own.json("input"), own.json("output"));
    record.tool(AttributeValue::Nothing, &output, |event| {
        tool.tell(event);
        event.input(tool.name.value(), &input);
    })
}

/// Returns the arguments that `LangChain` and decorated functions put one level deeper, beside what is no argument.
fn lifted(input: Json) -> Json {
    let written = match &input {
        Json::String(text) => document(text),
        _ => None,
    };
    let document = written.as_ref().unwrap_or(&input);
    let Some(members) = document.as_object() else {
        return input;
    };
    let only = |names: &[&str]| members.keys().all(|name| names.contains(&name.as_str()));
    let inner = |name: &str| members.get(name).filter(|inner| inner.is_object()).cloned();
    // A chain's tool: what it was called with as a text, and as members.
    if members.contains_key("input_str") && only(&["input_str", "inputs", "tags", "metadata", "kwargs"]) {
        return inner("inputs").unwrap_or(input);
    }
    // A function: members have names, and what has none is no member.
    let is_named_only = members
        .get("args")
        .and_then(Json::as_array)
        .is_some_and(Vec::is_empty);
    if is_named_only && only(&["args", "kwargs"]) {
        return inner("kwargs").unwrap_or(input);
    }
    input
}

/// Returns the events of a model's span of `OpenLLMetry` in its form before messages were one attribute.
pub fn traceloop_model(record: &Record<'_>) -> Result<Vec<Event>, SkipReason> {
    let own = record.own;
    let tokens = |names: [&str; 2]| {
        let each = names.map(|name| own.number(name));
        each.into_iter().fold(AttributeValue::Nothing, AttributeValue::or)
    };
    record.model_call(&ModelCall {
        input: flat_messages(own, "gen_ai.prompt"),
        output: flat_messages(own, "gen_ai.completion"),
        request_model: "gen_ai.request.model",
        response_model: "gen_ai.response.model",
        id: own.told("gen_ai.response.id"),
        input_tokens: tokens(["gen_ai.usage.input_tokens", "gen_ai.usage.prompt_tokens"]),
        output_tokens: tokens(["gen_ai.usage.output_tokens", "gen_ai.usage.completion_tokens"]),
    })
}

fn flat_messages(own: Attributes<'_>, prefix: &str) -> Option<Vec<Json>> {
    let places = own.places(prefix);
    let message = |place| {
        let name = |member: &str| format!("{prefix}.{place}.{member}");
        let mut parts = Vec::new();
        match own.json(&name("content")).map(crate::genai::parsed) {
            // Blocks of content, as a text.
            AttributeValue::Value(Json::Array(blocks)) => {
                let message = json!({ "content": blocks });
                match crate::messages::text([&message]) {
                    AttributeValue::Value(text) => parts.push(json!({ "type": "text", "content": text })),
                    AttributeValue::Nothing => {}
                    AttributeValue::Unreadable => parts.push(json!({})),
                }
                parts.extend(blocks.into_iter().filter(|block| block["type"] == "tool_result"));
            }
            content => push_text(&mut parts, &content),
        }
        for call in own.places(&name("tool_calls")) {
            let name = |member: &str| format!("{}.{call}.{member}", name("tool_calls"));
            parts.push(tool_call(own, &name("id"), &name("name"), &name("arguments")));
        }
        said(own, &name("role"), &parts)
    };
    (!places.is_empty()).then(|| places.into_iter().map(message).collect())
}

fn push_text(parts: &mut Vec<Json>, content: &AttributeValue<Json>) {
    match content {
        AttributeValue::Nothing => {}
        AttributeValue::Value(Json::String(text)) if text.is_empty() => {}
        AttributeValue::Value(content) => parts.push(json!({ "type": "text", "content": content })),
        AttributeValue::Unreadable => parts.push(json!({})),
    }
}

fn tool_call(own: Attributes<'_>, id: &str, name: &str, arguments: &str) -> Json {
    let mut call = Map::from_iter([("type".to_owned(), "tool_call".into())]);
    for (member, attribute) in [("id", id), ("name", name), ("arguments", arguments)] {
        if let AttributeValue::Value(value) = own.json(attribute) {
            call.insert(member.to_owned(), value);
        }
    }
    call.into()
}

/// Returns a message in the form of the conventions. A role that cannot be read is nobody's.
fn said(own: Attributes<'_>, role: &str, parts: &[Json]) -> Json {
    json!({ "role": own.told(role).value(), "parts": parts })
}
