//! OpenTelemetry's conventions for generative AI and MCP, and whom a record is about.
//!
//! Source: `semantic-conventions-genai` (tool execution, inference, events, MCP), read 2026-11; the names `gen_ai.system`
//! and `enduser.id` are their former ones.
//!
//! INVARIANT OT-6: of a record and its resource only the named attributes are read; nothing else is kept.

use crate::attributes::{AttributeValue, Attributes};
use crate::event::{Event, document, short};
use crate::mcp::Tool;
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

/// Who says something to a model and is no user.
const OTHERS: [&str; 5] = ["system", "developer", "assistant", "tool", "function"];

/// Parts of messages that have no text of the prompt or the response.
const TEXTLESS: [&str; 8] = [
    "tool_call",
    "tool_call_response",
    "server_tool_call",
    "server_tool_call_response",
    "reasoning",
    "blob",
    "file",
    "uri",
];

const SESSION: [&str; 3] = ["gen_ai.conversation.id", "session.id", "conversation.id"];

impl<'a> Record<'a> {
    /// Returns the first of these of the record itself, else of its resource, name by name. One that is told and cannot
    /// be read is not passed over for the next: that may be somebody else.
    fn told(&self, names: &[&str]) -> AttributeValue<&'a str> {
        let each = names
            .iter()
            .flat_map(|name| [self.own.told(name), self.resource.told(name)]);
        each.fold(AttributeValue::Nothing, AttributeValue::or)
    }

    /// Returns an event of this record, with whom it is about.
    pub fn event(&self, occasion: Occasion, at_ms: i64) -> Event {
        let mut event = Event::new(occasion, at_ms);
        event.may("identity.user_id", self.told(&USER));
        event.may("device.id", self.told(&["device.id", "host.id"]));
        event.may("agent.id", self.told(&["gen_ai.agent.id", "gen_ai.agent.name"]));
        event.session = self.told(&SESSION).value().and_then(short);
        event
    }

    /// Returns the call of a tool and its end (OT-4); `fill` gives what both have.
    pub fn tool(
        &self,
        call_id: AttributeValue<&str>,
        result: &AttributeValue<Json>,
        fill: impl Fn(&mut Event),
    ) -> Vec<Event> {
        let times = [
            (Occasion::PreTool, self.begin_ms),
            (Occasion::PostTool, self.end_ms),
        ];
        let mut events = times.map(|(occasion, at_ms)| {
            let mut event = self.event(occasion, at_ms);
            event.call_id = call_id.value().and_then(short);
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
        let tool = Tool {
            // The conventions have no name for the server.
            server: own.told("mcp.server.name"),
            sign: own.told("mcp.method.name"),
            ..Tool::named(own.told("gen_ai.tool.name"))
        };
        self.tool(own.told("gen_ai.tool.call.id"), &result, |event| {
            tool.tell(event);
            event.input(tool.name.value(), &arguments);
        })
    }

    /// Returns the events of a model call that follows the conventions: its prompt, if it continues no tool's call,
    /// and its response.
    pub fn convention_model(&self) -> Vec<Event> {
        let own = self.own;
        let input = own.json("gen_ai.input.messages").value().map(parsed);
        let output = own.json("gen_ai.output.messages").value().map(parsed);
        let mut events = Vec::new();
        let messages = input.as_ref().and_then(Json::as_array);
        let last = messages.and_then(|all| all.last());
        // What is told and cannot be read may be a prompt, and so may what somebody said of whom nobody knows who that is.
        let may_be_prompt = |message: &Json| {
            !message["role"]
                .as_str()
                .is_some_and(|role| OTHERS.contains(&role))
        };
        if messages.is_none() || last.is_some_and(may_be_prompt) {
            let mut event = self.event(Occasion::Prompt, self.begin_ms);
            self.model(&mut event, "gen_ai.request.model");
            event.content(
                "request.prompt",
                &last.map_or(AttributeValue::Nothing, message_text),
            );
            events.push(event);
        }
        let mut event = self.event(Occasion::Response, self.end_ms);
        self.model(&mut event, "gen_ai.response.model");
        event.call_id = own.told("gen_ai.response.id").value().and_then(short);
        event.count("llm.input_tokens", own.number("gen_ai.usage.input_tokens"));
        event.count("llm.output_tokens", own.number("gen_ai.usage.output_tokens"));
        let texts = match output.as_ref().and_then(Json::as_array) {
            Some(all) => all_of(all.iter().map(text_of)),
            None => AttributeValue::Unreadable,
        };
        event.content("response.content", &texts);
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
        // What is no document is no list of messages either, and so is missing.
        Json::String(text) => document(text).unwrap_or(json),
        _ => json,
    }
}

/// Returns the texts of a message.
fn message_text(message: &Json) -> AttributeValue<Json> {
    all_of(std::iter::once(text_of(message)))
}

/// Returns the texts of a message, without the parts that are known to have none; nothing when some part may have a text
/// that is not found.
fn text_of(message: &Json) -> Option<String> {
    match &message["parts"] {
        Json::Array(parts) => {
            let texts = parts
                .iter()
                .filter(|part| !part["type"].as_str().is_some_and(|kind| TEXTLESS.contains(&kind)));
            let texts: Option<Vec<&str>> = texts
                .map(|part| {
                    let is_text = part["type"] == "text";
                    part["content"].as_str().filter(|_| is_text)
                })
                .collect();
            Some(texts?.join("\n"))
        }
        // The form before parts: the content is the text.
        Json::Null => message["content"].as_str().map(str::to_owned),
        _ => None,
    }
}

/// Returns texts as one content, if all of them are known.
fn all_of(texts: impl Iterator<Item = Option<String>>) -> AttributeValue<Json> {
    match texts.collect::<Option<Vec<String>>>() {
        Some(texts) => AttributeValue::Value(texts.join("\n").into()),
        None => AttributeValue::Unreadable,
    }
}
