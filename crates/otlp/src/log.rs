//! Logs: the events that Claude Code and Codex document, and those of the conventions.
//!
//! Both tell of a tool call when it has ended, with its arguments and its duration; the permission before it
//! (`tool_decision`) has no arguments. So the end gives both events of a call (OT-4), and a permission gives one only
//! where no end follows: Claude Code ends no rejected call, Codex ends every call.
//!
//! Source: Claude Code "Monitoring", events; Codex `session_telemetry`; both read 2026-11.

use crate::attributes::{Attributes, json_of};
use crate::event::{Event, document, short};
use crate::genai::Record;
use crate::message::LogRecord;
use crate::read::{Skipped, millis};
use provost_policy::Occasion;
use serde_json::Value as Json;

/// Returns the events of a log record, or why there are none.
pub fn events(log: &LogRecord, resource: Attributes<'_>, now_ms: i64) -> Result<Vec<Event>, Skipped> {
    let own = Attributes(&log.attributes);
    let at_ms = millis(log.time_unix_nano)
        .or_else(|| millis(log.observed_time_unix_nano))
        .unwrap_or(now_ms);
    let before_ms = own.number("duration_ms").unwrap_or(0.0);
    #[expect(
        clippy::cast_possible_truncation,
        reason = "saturates; a day is far below the limit"
    )]
    let begin_ms = at_ms - before_ms.min(86_400_000.0) as i64;
    let record = Record {
        own,
        resource,
        begin_ms,
        end_ms: at_ms,
    };
    match name(log, own, resource).as_str() {
        "claude_code.tool_result" => Ok(claude_tool(&record)),
        "claude_code.tool_decision" if own.text("decision") == Some("reject") => {
            Ok(claude_tool(&record).into_iter().take(1).collect())
        }
        "codex.tool_result" => Ok(codex_tool(&record)),
        "claude_code.tool_decision" | "codex.tool_decision" => Err(Skipped::Twice),
        "claude_code.user_prompt" => Ok(vec![prompt(&record, &["prompt", "prompt_text"])]),
        "codex.user_prompt" => Ok(vec![prompt(&record, &["prompt"])]),
        "claude_code.api_request" => {
            let output = own.number("output_tokens");
            Ok(vec![response(&record, claude_input_tokens(own), output)])
        }
        "claude_code.assistant_response" => Ok(vec![response(&record, None, None)]),
        "codex.sse_event"
            if own.text("event.kind") == Some("response.completed")
                && own.text("error.message").is_none() =>
        {
            let (input, output) = (own.number("input_token_count"), own.number("output_token_count"));
            Ok(vec![response(&record, input, output)])
        }
        "gen_ai.client.inference.operation.details" => Ok(record.convention_model()),
        "gen_ai.user.message" => Ok(vec![message(&record, log, Occasion::Prompt)]),
        "gen_ai.choice" => Ok(vec![message(&record, log, Occasion::Response)]),
        _ => Err(Skipped::Other),
    }
}

/// Returns the full name of an event: of its field, of the attribute that came before that field, or of the body.
fn name(log: &LogRecord, own: Attributes<'_>, resource: Attributes<'_>) -> String {
    let body = log.body.as_ref().and_then(json_of);
    let names = [
        Some(log.event_name.as_str()),
        own.text("event.name"),
        body.as_ref().and_then(Json::as_str),
    ];
    let mut names = names.into_iter().flatten();
    let is_full = |name: &&str| {
        ["claude_code.", "codex.", "gen_ai."]
            .iter()
            .any(|p| name.starts_with(p))
    };
    if let Some(name) = names.clone().find(is_full) {
        return name.to_owned();
    }
    // Claude Code's attribute has the name without its prefix.
    match names.find(|name| !name.is_empty()) {
        Some(name) if resource.text("service.name") == Some("claude-code") => format!("claude_code.{name}"),
        other => other.unwrap_or_default().to_owned(),
    }
}

fn claude_tool(record: &Record<'_>) -> Vec<Event> {
    let own = record.own;
    let parameters = own.text("tool_parameters").and_then(document).unwrap_or_default();
    let given = |name: &str| parameters[name].as_str();
    let name = own.text("tool_name");
    let split = name.and_then(mcp_name);
    let input = own.json("tool_input").filter(|input| is_whole(own, input));
    record.tool(own.text("tool_use_id"), None, |event| {
        // `mcp_tool` stands for every tool of a server whose name is hidden.
        event.must("tool.id", name.filter(|name| *name != "mcp_tool"));
        event.content("tool.input", input.as_ref());
        event.may("tool.input.command", given("full_command"));
        if split.is_some() || name == Some("mcp_tool") || given("mcp_server_name").is_some() {
            event.must(
                "mcp.server_id",
                given("mcp_server_name").or(split.map(|pair| pair.0)),
            );
            event.must("mcp.tool_id", given("mcp_tool_name").or(split.map(|pair| pair.1)));
        }
    })
}

/// Claude Code cuts long values; the size of the whole input stands beside them.
fn is_whole(own: Attributes<'_>, input: &Json) -> bool {
    let (Some(size), Some(text)) = (own.number("tool_input_size_bytes"), input.as_str()) else {
        return true;
    };
    #[expect(clippy::cast_precision_loss, reason = "a record is at most 1 MiB")]
    let have = text.len() as f64;
    have >= size
}

fn codex_tool(record: &Record<'_>) -> Vec<Event> {
    let own = record.own;
    let name = own.text("tool_name");
    let split = name.and_then(mcp_name);
    let server = own.text("mcp_server").or(split.map(|pair| pair.0));
    let (input, output) = (own.json("arguments"), own.json("output"));
    let origin = own
        .text("mcp_server_origin")
        .filter(|origin| origin.contains("://"));
    record.tool(own.text("call_id"), output.as_ref(), |event| {
        event.must("tool.id", name);
        event.content("tool.input", input.as_ref());
        if server.is_some() {
            event.must("mcp.server_id", server);
            event.must("mcp.tool_id", split.map_or(name, |pair| Some(pair.1)));
            event.may("mcp.remote_url", origin);
        }
    })
}

/// Returns the server and the tool of `mcp__server__tool`.
fn mcp_name(name: &str) -> Option<(&str, &str)> {
    name.strip_prefix("mcp__")?.split_once("__")
}

fn prompt(record: &Record<'_>, names: &[&str]) -> Event {
    let mut event = record.event(Occasion::Prompt, record.end_ms);
    let text = names.iter().find_map(|name| record.own.json(name));
    event.content("request.prompt", text.as_ref());
    record.model(&mut event, "model");
    event
}

fn response(record: &Record<'_>, input: Option<f64>, output: Option<f64>) -> Event {
    let mut event = record.event(Occasion::Response, record.end_ms);
    record.model(&mut event, "model");
    event.call_id = record.own.text("request_id").and_then(short);
    event.count("llm.input_tokens", input);
    event.count("llm.output_tokens", output);
    event.content("response.content", record.own.json("response").as_ref());
    event
}

/// Returns all tokens that went in: Claude Code counts those of its cache apart.
pub fn claude_input_tokens(own: Attributes<'_>) -> Option<f64> {
    let cached = ["cache_read_tokens", "cache_creation_tokens"];
    let cached: f64 = cached.iter().filter_map(|name| own.number(name)).sum();
    Some(own.number("input_tokens")? + cached)
}

/// Returns the event of a message in the form before 2025: its text is in the body.
fn message(record: &Record<'_>, log: &LogRecord, occasion: Occasion) -> Event {
    let mut event = record.event(occasion, record.end_ms);
    let body = log.body.as_ref().and_then(json_of).unwrap_or_default();
    let (field, content) = match occasion {
        Occasion::Prompt => ("request.prompt", &body["content"]),
        _ => ("response.content", &body["message"]["content"]),
    };
    event.content(field, Some(content));
    record.model(&mut event, "model");
    if occasion == Occasion::Response {
        event.count("llm.input_tokens", None);
        event.count("llm.output_tokens", None);
    }
    event
}
