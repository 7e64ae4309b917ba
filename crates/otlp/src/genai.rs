//! OpenTelemetry's conventions for generative AI and MCP, and whom a record is about.
//!
//! Source: `semantic-conventions-genai` (tool execution, inference, events, MCP), read 2026-11; the names `gen_ai.system`
//! and `enduser.id` are their former ones.

use crate::attributes::Attributes;
use crate::event::{Event, document, short};
use provost_policy::Occasion;
use serde_json::Value as Json;

/// A record with its resource, and when it began and ended. Units: milliseconds since the Unix epoch, UTC.
#[derive(Clone, Copy)]
pub struct Record<'a> {
    pub own: Attributes<'a>,
    pub resource: Attributes<'a>,
    pub begin_ms: i64,
    pub end_ms: i64,
}

/// Who it was. The address comes first: Claude Code's `user.id` is made up for an installation, and a directory knows
/// addresses.
const USER: [&str; 5] = [
    "user.email",
    "enduser.id",
    "user.id",
    "user.account_id",
    "user.name",
];

const SESSION: [&str; 3] = ["gen_ai.conversation.id", "session.id", "conversation.id"];

impl<'a> Record<'a> {
    /// Returns the first of these of the record itself, else of its resource, name by name.
    fn told(&self, names: &[&str]) -> Option<&'a str> {
        let mut each = names.iter();
        each.find_map(|name| self.own.text(name).or_else(|| self.resource.text(name)))
    }

    /// Returns an event of this record, with whom it is about.
    pub fn event(&self, occasion: Occasion, at_ms: i64) -> Event {
        let mut event = Event::new(occasion, at_ms);
        event.may("identity.user_id", self.told(&USER));
        event.may("device.id", self.told(&["device.id", "host.id"]));
        event.may("agent.id", self.told(&["gen_ai.agent.id", "gen_ai.agent.name"]));
        event.session = self.told(&SESSION).and_then(short);
        event
    }

    /// Returns the call of a tool and its end (OT-4); `fill` gives what both have.
    pub fn tool(
        &self,
        call_id: Option<&str>,
        result: Option<&Json>,
        fill: impl Fn(&mut Event),
    ) -> Vec<Event> {
        let times = [
            (Occasion::PreTool, self.begin_ms),
            (Occasion::PostTool, self.end_ms),
        ];
        let mut events = times.map(|(occasion, at_ms)| {
            let mut event = self.event(occasion, at_ms);
            event.call_id = call_id.and_then(short);
            fill(&mut event);
            event
        });
        events[1].content("tool.result", result);
        events.into()
    }

    /// Returns the events of a tool call that follows the conventions.
    pub fn convention_tool(&self) -> Vec<Event> {
        let own = self.own;
        let result = own.json("gen_ai.tool.call.result");
        let arguments = own.json("gen_ai.tool.call.arguments");
        let name = own.text("gen_ai.tool.name");
        let call = own.text("gen_ai.tool.call.id");
        let is_mcp = own.text("mcp.method.name").is_some();
        self.tool(call, result.as_ref(), |event| {
            event.must("tool.id", name);
            event.content("tool.input", arguments.as_ref());
            if is_mcp {
                event.must("mcp.tool_id", name);
                // The conventions have no name for the server.
                event.must("mcp.server_id", own.text("mcp.server.name"));
            }
        })
    }

    /// Returns the events of a model call that follows the conventions: its prompt, if it continues no tool's call,
    /// and its response.
    pub fn convention_model(&self) -> Vec<Event> {
        let own = self.own;
        let input = own.json("gen_ai.input.messages").map(parsed);
        let output = own.json("gen_ai.output.messages").map(parsed);
        let mut events = Vec::new();
        let last = input.as_ref().and_then(Json::as_array).and_then(|all| all.last());
        if input.is_none() || last.is_some_and(|message| message["role"] == "user") {
            let mut event = self.event(Occasion::Prompt, self.begin_ms);
            self.model(&mut event, "gen_ai.request.model");
            event.content("request.prompt", last.and_then(message_text).as_ref());
            events.push(event);
        }
        let mut event = self.event(Occasion::Response, self.end_ms);
        self.model(&mut event, "gen_ai.response.model");
        event.call_id = own.text("gen_ai.response.id").and_then(short);
        event.count("llm.input_tokens", own.number("gen_ai.usage.input_tokens"));
        event.count("llm.output_tokens", own.number("gen_ai.usage.output_tokens"));
        let texts = output.as_ref().and_then(Json::as_array).and_then(|all| {
            let texts: Option<Vec<Json>> = all.iter().map(message_text).collect();
            Some(joined(texts?.iter().filter_map(Json::as_str)))
        });
        event.content("response.content", texts.as_ref());
        events.push(event);
        events
    }

    /// Gives the model and its provider; either model's name will do where this one is not told.
    pub fn model(&self, event: &mut Event, name: &str) {
        let own = self.own;
        let names = [name, "gen_ai.request.model", "gen_ai.response.model", "model"];
        event.must("llm.model", own.first(&names));
        event.must(
            "llm.provider",
            own.first(&["gen_ai.provider.name", "gen_ai.system"]),
        );
    }
}

/// Returns the document of an attribute that may be its text.
fn parsed(json: Json) -> Json {
    match &json {
        Json::String(text) => document(text).unwrap_or(json),
        _ => json,
    }
}

/// Returns the texts of a message, its other parts left out; nothing when it is of no known form.
fn message_text(message: &Json) -> Option<Json> {
    if let Some(parts) = message["parts"].as_array() {
        let texts = parts.iter().filter(|part| part["type"] == "text");
        return Some(joined(texts.filter_map(|part| part["content"].as_str())));
    }
    // The form before parts: the content is the text.
    message["content"].as_str().map(Json::from)
}

fn joined<'t>(texts: impl Iterator<Item = &'t str>) -> Json {
    texts.collect::<Vec<_>>().join("\n").into()
}
