//! Spans: tool calls and model calls have a begin and an end, which are two events.
//!
//! Keeps OT-4.

use crate::attributes::{AttributeValue, Attributes};
use crate::event::{Event, SpanName};
use crate::flat;
use crate::genai::Record;
use crate::mcp::Tool;
use crate::message::{SERVER, Span};
use crate::read::{SkipReason, millis};
use provost_policy::Occasion;

/// Returns the events of a span of the resource at a place of the payload, or why there are none.
pub fn events(
    span: &Span,
    resource: Attributes<'_>,
    place: usize,
    now_ms: i64,
) -> Result<Vec<Event>, SkipReason> {
    let own = Attributes(&span.attributes);
    let end_ms = millis(span.end_time_unix_nano).unwrap_or(now_ms);
    let record = Record {
        own,
        resource,
        begin_ms: millis(span.start_time_unix_nano).unwrap_or(end_ms),
        end_ms,
    };
    let method = own.told("mcp.method.name");
    let mut events = match (span.name.as_str(), own.told("gen_ai.operation.name")) {
        ("claude_code.tool", _) => claude_tool(&record),
        ("claude_code.llm_request", _) => vec![claude_response(&record)],
        ("claude_code.interaction", _) => vec![claude_prompt(&record)],
        (name, _) if name.starts_with("claude_code.") => return Err(SkipReason::Other),
        _ if method == AttributeValue::Value("tools/call") && span.kind == SERVER => {
            return Err(SkipReason::Twice);
        }
        (_, AttributeValue::Value("execute_tool")) if own.is("traceloop.span.kind", "tool") => {
            flat::traceloop_tool(&record)
        }
        (_, AttributeValue::Value("execute_tool")) => record.convention_tool(),
        _ if method == AttributeValue::Value("tools/call") => record.convention_tool(),
        (_, AttributeValue::Value("chat" | "generate_content" | "text_completion")) => {
            if record.has_flat_messages() {
                flat::traceloop_model(&record)?
            } else {
                record.convention_model()?
            }
        }
        // It may tell of a call, and nobody can say of which.
        (_, AttributeValue::Unreadable) => return Err(SkipReason::Unreadable),
        (_, AttributeValue::Nothing) if method == AttributeValue::Unreadable => {
            return Err(SkipReason::Unreadable);
        }
        (_, AttributeValue::Value(_)) => return Err(SkipReason::Other),
        (_, AttributeValue::Nothing) => other(&record)?,
    };
    // An identifier of any other length is invalid.
    let whole = |id: &[u8]| <[u8; 8]>::try_from(id).ok().map(u64::from_be_bytes);
    let (id, parent) = (whole(&span.id), whole(&span.parent));
    let trace = <[u8; 16]>::try_from(&span.trace[..]).map_or(0, u128::from_be_bytes);
    let named = |id| SpanName {
        resource: place,
        trace,
        id,
    };
    for (number, event) in events.iter_mut().enumerate() {
        event.id = id.map(|id| {
            // One span tells of several.
            let of_several = if event.is_asked {
                format!(".{number}")
            } else {
                String::new()
            };
            format!("{id:016x}{of_several}")
        });
        event.span = id.map(named);
        event.parent = parent.filter(|parent| *parent != 0).map(named);
    }
    Ok(events)
}

/// Returns the events of a span that names no operation of the conventions.
fn other(record: &Record<'_>) -> Result<Vec<Event>, SkipReason> {
    let own = record.own;
    match own.told("openinference.span.kind") {
        AttributeValue::Value(kind) => return flat::openinference(record, kind),
        AttributeValue::Unreadable => return Err(SkipReason::Unreadable),
        AttributeValue::Nothing => {}
    }
    match own.told("traceloop.span.kind") {
        AttributeValue::Value("tool") => return Ok(flat::traceloop_tool(record)),
        AttributeValue::Value(_) => return Err(SkipReason::Other),
        AttributeValue::Unreadable => return Err(SkipReason::Unreadable),
        AttributeValue::Nothing => {}
    }
    match own.told("llm.request.type") {
        AttributeValue::Value("chat" | "completion") => return flat::traceloop_model(record),
        AttributeValue::Value(_) => return Err(SkipReason::Other),
        AttributeValue::Unreadable => return Err(SkipReason::Unreadable),
        AttributeValue::Nothing => {}
    }
    if own.is("logfire.msg_template", "Function: {name}") {
        return Ok(flat::logfire_function(record));
    }
    // Logfire's agents, in their form before the conventions had an operation for tools.
    if own.json("tool_arguments") != AttributeValue::Nothing
        && own.told("gen_ai.tool.name") != AttributeValue::Nothing
    {
        return Ok(record.convention_tool());
    }
    Err(SkipReason::Foreign)
}

fn claude_tool(record: &Record<'_>) -> Vec<Event> {
    let own = record.own;
    let tool = Tool {
        server: own.first(&["mcp_server_name", "mcp.server.name"]),
        at_server: own.told("mcp_tool_name"),
        sign: own.told("mcp.method.name"),
        ..Tool::named(own.first(&["tool_name", "gen_ai.tool.name"]))
    };
    let call = own.first(&["gen_ai.tool.call.id", "tool_use_id"]);
    let input = own.json("tool_input");
    record.tool(call, &AttributeValue::Nothing, |event| {
        tool.tell(event);
        event.content("tool.input", &input);
        event.may("tool.input.command", own.told("full_command"));
        event.may("tool.input.file_path", own.told("file_path"));
    })
}

fn claude_prompt(record: &Record<'_>) -> Event {
    let mut event = record.event(Occasion::Prompt, record.begin_ms);
    event.content("request.prompt", &record.own.json("user_prompt"));
    record.model(&mut event, "model");
    event
}

fn claude_response(record: &Record<'_>) -> Event {
    let own = record.own;
    let mut event = record.event(Occasion::Response, record.end_ms);
    record.model(&mut event, "model");
    event.call_id = own.told("request_id").value().and_then(crate::event::short);
    event.count("llm.input_tokens", crate::log::claude_input_tokens(own));
    event.count("llm.output_tokens", own.number("output_tokens"));
    event.content("response.content", &own.json("response.model_output"));
    event
}
