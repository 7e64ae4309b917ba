//! Logs: the events that Claude Code and Codex document, and those of the conventions.
//!
//! Both tell of a tool call when it has ended, with its arguments and its duration; the permission before it
//! (`tool_decision`) has no arguments. So the end gives both events of a call (OT-4), and a permission gives one only
//! where no end follows: Claude Code ends no rejected call, Codex ends every call.
//!
//! Source: Claude Code "Monitoring", events; Codex `session_telemetry`; both read 2026-11.
//!
//! INVARIANT OT-4: one tool call is one `pre_tool` and one `post_tool`, one model call at most one `prompt` and one
//! `response`, whichever exporter tells of it; records of one call that come in two payloads are two events, but for a call that a hook
//! asked about (HS-16).

use crate::attributes::{AttributeValue, Attributes, json_of};
use crate::event::{Event, document, short};
use crate::genai::Record;
use crate::mcp::Tool;
use crate::message::LogRecord;
use crate::read::{SkipReason, millis};
use provost_policy::Occasion;
use serde_json::Value as Json;

/// Returns the events of a log record, or why there are none.
pub fn events(log: &LogRecord, resource: Attributes<'_>, now_ms: i64) -> Result<Vec<Event>, SkipReason> {
    let own = Attributes(&log.attributes);
    let at_ms = millis(log.time_unix_nano)
        .or_else(|| millis(log.observed_time_unix_nano))
        .unwrap_or(now_ms);
    // Of an end without a duration, the beginning is the end: an instant, which no verdict reads.
    let before_ms = own.number("duration_ms").value().unwrap_or(0.0);
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
        // One that cannot be read may be a rejection, and then no end follows.
        "claude_code.tool_decision"
            if matches!(
                own.told("decision"),
                AttributeValue::Value("reject") | AttributeValue::Unreadable
            ) =>
        {
            Ok(claude_tool(&record).into_iter().take(1).collect())
        }
        "codex.tool_result" => Ok(codex_tool(&record)),
        "claude_code.tool_decision" | "codex.tool_decision" => Err(SkipReason::Twice),
        "claude_code.user_prompt" => Ok(vec![prompt(&record, &["prompt", "prompt_text"])]),
        "codex.user_prompt" => Ok(vec![prompt(&record, &["prompt"])]),
        "claude_code.api_request" => {
            let output = own.number("output_tokens");
            Ok(vec![response(&record, claude_input_tokens(own), output)])
        }
        "claude_code.assistant_response" => Ok(vec![response(
            &record,
            AttributeValue::Nothing,
            AttributeValue::Nothing,
        )]),
        "codex.sse_event"
            if own.is("event.kind", "response.completed")
                && !matches!(own.told("error.message"), AttributeValue::Value(_)) =>
        {
            let (input, output) = (own.number("input_token_count"), own.number("output_token_count"));
            // Codex tells of the end of an answer twice: as what came over the wire, and with its tokens.
            if (input, output) == (AttributeValue::Nothing, AttributeValue::Nothing) {
                return Err(SkipReason::Twice);
            }
            Ok(vec![response(&record, input, output)])
        }
        "codex.sse_event" if own.told("event.kind") == AttributeValue::Unreadable => {
            Err(SkipReason::Unreadable)
        }
        "gen_ai.client.inference.operation.details" => record.convention_model(),
        "gen_ai.user.message" => Ok(vec![message(&record, log, Occasion::Prompt)]),
        "gen_ai.choice" => Ok(vec![message(&record, log, Occasion::Response)]),
        "" if own.told("event.name") == AttributeValue::Unreadable => Err(SkipReason::Unreadable),
        name if KNOWN.iter().any(|prefix| name.starts_with(prefix)) => Err(SkipReason::Other),
        _ => Err(SkipReason::Foreign),
    }
}

/// How the names of known events begin.
const KNOWN: [&str; 3] = ["claude_code.", "codex.", "gen_ai."];

/// Returns the full name of an event: of its field, of the attribute that came before that field, or of the body.
fn name(log: &LogRecord, own: Attributes<'_>, resource: Attributes<'_>) -> String {
    let body = log.body.as_ref().and_then(json_of);
    let names = [
        Some(log.event_name.as_str()),
        own.told("event.name").value(),
        body.as_ref().and_then(Json::as_str),
    ];
    let mut names = names.into_iter().flatten();
    let is_full = |name: &&str| KNOWN.iter().any(|prefix| name.starts_with(prefix));
    if let Some(name) = names.clone().find(is_full) {
        return name.to_owned();
    }
    // Claude Code's attribute has the name without its prefix.
    match names.find(|name| !name.is_empty()) {
        Some(name) if resource.is("service.name", "claude-code") => format!("claude_code.{name}"),
        other => other.unwrap_or_default().to_owned(),
    }
}

fn claude_tool(record: &Record<'_>) -> Vec<Event> {
    let own = record.own;
    let parameters = match own.told("tool_parameters") {
        AttributeValue::Nothing => AttributeValue::Value(Json::Null),
        AttributeValue::Value(text) => {
            document(text).map_or(AttributeValue::Unreadable, AttributeValue::Value)
        }
        AttributeValue::Unreadable => AttributeValue::Unreadable,
    };
    let told = |name: &str| match &parameters {
        AttributeValue::Value(parameters) => match &parameters[name] {
            Json::Null => AttributeValue::Nothing,
            Json::String(text) => AttributeValue::Value(text.as_str()),
            _ => AttributeValue::Unreadable,
        },
        _ => AttributeValue::Unreadable,
    };
    let tool = Tool {
        server: told("mcp_server_name"),
        at_server: told("mcp_tool_name"),
        ..Tool::named(own.told("tool_name"))
    };
    let input = match own.json("tool_input") {
        AttributeValue::Value(input) if !is_whole(own, &input) => AttributeValue::Unreadable,
        input => input,
    };
    record.tool(own.told("tool_use_id"), &AttributeValue::Nothing, |event| {
        tool.tell(event);
        event.content("tool.input", &input);
        event.may("tool.input.command", told("full_command"));
    })
}

/// Claude Code cuts long values; the size of the whole input stands beside them. Of a size that cannot be read nobody knows
/// whether it is that of the text.
fn is_whole(own: Attributes<'_>, input: &Json) -> bool {
    match (own.number("tool_input_size_bytes"), input.as_str()) {
        (AttributeValue::Nothing, _) | (_, None) => true,
        (AttributeValue::Unreadable, _) => false,
        (AttributeValue::Value(size), Some(text)) => {
            #[expect(clippy::cast_precision_loss, reason = "a record is at most 1 MiB")]
            let have = text.len() as f64;
            have >= size
        }
    }
}

fn codex_tool(record: &Record<'_>) -> Vec<Event> {
    let own = record.own;
    let tool = Tool {
        server: own.told("mcp_server"),
        sign: own.told("mcp_server_origin"),
        ..Tool::named(own.told("tool_name"))
    };
    let (input, output) = (own.json("arguments"), own.json("output"));
    let origin = match own.told("mcp_server_origin") {
        // Anything else is no address: a server that was started as a program.
        AttributeValue::Value(origin) if !origin.contains("://") => AttributeValue::Nothing,
        told => told,
    };
    let command = cmd(&input);
    record.tool(own.told("call_id"), &output, |event| {
        event.input(tool.name.value(), &input);
        if tool.name == AttributeValue::Value("exec_command") {
            event.may("tool.input.command", command.as_ref().map(String::as_str));
        }
        if tool.tell(event) {
            event.may("mcp.remote_url", origin);
        }
    })
}

/// Returns the command line that Codex runs in a terminal, whose member has a name of its own (`cmd`).
fn cmd(input: &AttributeValue<Json>) -> AttributeValue<String> {
    let written = match input {
        AttributeValue::Value(Json::String(text)) => document(text),
        _ => None,
    };
    let arguments = match input {
        AttributeValue::Value(arguments) => written.as_ref().unwrap_or(arguments),
        AttributeValue::Nothing => return AttributeValue::Nothing,
        AttributeValue::Unreadable => return AttributeValue::Unreadable,
    };
    let texts = |list: &Vec<Json>| {
        let texts: Option<Vec<&str>> = list.iter().map(Json::as_str).collect();
        texts.map(|texts| texts.join(" "))
    };
    let found = match &arguments["cmd"] {
        // `command` is what follows from the input itself.
        Json::Null => return AttributeValue::Nothing,
        Json::String(line) => Some(line.clone()),
        Json::Array(words) => texts(words),
        _ => None,
    };
    found.map_or(AttributeValue::Unreadable, AttributeValue::Value)
}

fn prompt(record: &Record<'_>, names: &[&str]) -> Event {
    let mut event = record.event(Occasion::Prompt, record.end_ms);
    event.content("request.prompt", &record.own.first_json(names));
    record.model(&mut event, "model");
    event
}

fn response(record: &Record<'_>, input: AttributeValue<f64>, output: AttributeValue<f64>) -> Event {
    let mut event = record.event(Occasion::Response, record.end_ms);
    record.model(&mut event, "model");
    event.call_id = record.own.told("request_id").value().and_then(short);
    event.count("llm.input_tokens", input);
    event.count("llm.output_tokens", output);
    event.content("response.content", &record.own.json("response"));
    event
}

/// Returns all tokens that went in: Claude Code counts those of its cache apart.
pub fn claude_input_tokens(own: Attributes<'_>) -> AttributeValue<f64> {
    let AttributeValue::Value(mut all) = own.number("input_tokens") else {
        return AttributeValue::Unreadable;
    };
    for name in ["cache_read_tokens", "cache_creation_tokens"] {
        match own.number(name) {
            AttributeValue::Nothing => {}
            AttributeValue::Value(number) => all += number,
            AttributeValue::Unreadable => return AttributeValue::Unreadable,
        }
    }
    AttributeValue::Value(all)
}

/// Returns the event of a message in the form before 2025: its text is in the body.
fn message(record: &Record<'_>, log: &LogRecord, occasion: Occasion) -> Event {
    let mut event = record.event(occasion, record.end_ms);
    let (field, path): (_, &[&str]) = match occasion {
        Occasion::Prompt => ("request.prompt", &["content"]),
        _ => ("response.content", &["message", "content"]),
    };
    // A body that cannot be read has no content, which is missing.
    let content = match log.body.as_ref().and_then(json_of) {
        Some(body) => AttributeValue::Value(path.iter().fold(&body, |json, name| &json[*name]).clone()),
        None => AttributeValue::Unreadable,
    };
    event.content(field, &content);
    record.model(&mut event, "model");
    if occasion == Occasion::Response {
        event.count("llm.input_tokens", AttributeValue::Nothing);
        event.count("llm.output_tokens", AttributeValue::Nothing);
    }
    event
}
