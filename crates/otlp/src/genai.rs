//! OpenTelemetry's conventions for generative AI and MCP, and whom a record is about.
//!
//! Source: `semantic-conventions-genai` (tool execution, inference, events, MCP), read 2026-11; the names `gen_ai.system`
//! and `enduser.id` are their former ones.
//!
//! INVARIANT OT-6: of a record and its resource only the named attributes are read; nothing else is kept.

use crate::attributes::{AttributeValue, Attributes};
use crate::event::{Event, document, short};
use crate::flat;
use crate::mcp::Tool;
use crate::messages::{self, ToolCall};
use crate::read::SkipReason;
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

/// LIMIT: tools that one answer of a model asks for; each is an event, however small it is written.
const MAX_CALLS: usize = 128;

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
        let result = own.first_json(&["gen_ai.tool.call.result", "tool_response"]);
        let arguments = own.first_json(&["gen_ai.tool.call.arguments", "tool_arguments"]);
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

    /// Says whether the messages are attributes of their own, as `OpenLLMetry` wrote them, and not one.
    pub fn has_flat_messages(&self) -> bool {
        let own = self.own;
        own.json("gen_ai.input.messages") == AttributeValue::Nothing
            && own.json("gen_ai.output.messages") == AttributeValue::Nothing
            && !own.places("gen_ai.prompt").is_empty()
    }

    /// Returns the events of a model call that follows the conventions: its prompt, if it continues no tool's call,
    /// its response, and the tools that it asks for.
    pub fn convention_model(&self) -> Result<Vec<Event>, SkipReason> {
        let own = self.own;
        let list = |name: &str| own.json(name).value().map(parsed).and_then(listed);
        let mut messages = (list("gen_ai.input.messages"), list("gen_ai.output.messages"));
        if messages == (None, None)
            && let Some((input, output)) = flat::told_as_events(own)
        {
            messages = (Some(input), Some(output));
        }
        self.model_call(&ModelCall {
            input: messages.0,
            output: messages.1,
            request_model: "gen_ai.request.model",
            response_model: "gen_ai.response.model",
            id: own.told("gen_ai.response.id"),
            input_tokens: own.number("gen_ai.usage.input_tokens"),
            output_tokens: own.number("gen_ai.usage.output_tokens"),
        })
    }

    /// Returns the events of a model call.
    ///
    /// Errors: `Unreadable` where it asks for more tools than are read.
    pub fn model_call(&self, call: &ModelCall<'_>) -> Result<Vec<Event>, SkipReason> {
        let mut events = Vec::new();
        let tells_messages = call.input.is_some() || call.output.is_some();
        let last = call.input.as_ref().and_then(|all| all.last());
        // What is told and cannot be read may be a prompt, and so may what somebody said of whom nobody knows who that is.
        if call.input.is_none() || last.is_some_and(messages::may_be_prompt) {
            let mut event = self.event(Occasion::Prompt, self.begin_ms);
            self.model(&mut event, call.request_model);
            event.call_id = call.id.value().and_then(short);
            event.content("request.prompt", &messages::text(last));
            events.push(event);
        }
        let mut event = self.event(Occasion::Response, self.end_ms);
        self.model(&mut event, call.response_model);
        event.call_id = call.id.value().and_then(short);
        event.count("llm.input_tokens", call.input_tokens);
        event.count("llm.output_tokens", call.output_tokens);
        let content = call
            .output
            .as_ref()
            .map_or(AttributeValue::Unreadable, messages::text);
        event.content("response.content", &content);
        event.tells_messages = tells_messages;
        events.push(event);
        let asked = messages::calls(call.output.as_deref().unwrap_or_default());
        if asked.len() > MAX_CALLS {
            return Err(SkipReason::Unreadable);
        }
        events.extend(asked.iter().map(|asked| self.asked(asked)));
        Ok(events)
    }

    /// Returns the call of a tool that a model asks for; where the tool's own record tells of it as well, both are one event.
    fn asked(&self, call: &ToolCall) -> Event {
        let mut event = self.event(Occasion::PreTool, self.end_ms);
        event.call_id = call.id.as_deref().and_then(short);
        let tool = Tool::named(call.name.as_ref().map(String::as_str));
        tool.tell(&mut event);
        // A model writes its arguments as a text, which is read as any other content.
        event.input(tool.name.value(), &call.arguments);
        event.is_asked = true;
        event
    }

    /// Gives the model and its provider; either model's name will do where this one is not told.
    pub fn model(&self, event: &mut Event, name: &str) {
        let own = self.own;
        let names = [
            name,
            "gen_ai.request.model",
            "gen_ai.response.model",
            "model",
            "llm.model_name",
        ];
        let model = own.first(&names);
        event.must("llm.model", model);
        let told = own.first(&[
            "gen_ai.provider.name",
            "llm.provider",
            "gen_ai.system",
            "llm.system",
        ]);
        event.must("llm.provider", told.or(self.provider_of(model)));
    }

    /// Returns the provider that client and model say together: a client of one provider, with a model under the name that this
    /// provider gives it. Clouds that serve the same models have other names for them.
    fn provider_of(&self, model: AttributeValue<&str>) -> AttributeValue<&'static str> {
        let (Some(client), Some(model)) = (self.resource.told("service.name").value(), model.value()) else {
            return AttributeValue::Nothing;
        };
        let begins = |names: &[&str]| {
            names.iter().any(|name| model.starts_with(name)) && !model.contains(['@', ':', '/'])
        };
        match client {
            "claude-code" if begins(&["claude-"]) => AttributeValue::Value("anthropic"),
            client if client.starts_with("codex") && begins(&["gpt-", "codex-", "o3", "o4"]) => {
                AttributeValue::Value("openai")
            }
            _ => AttributeValue::Nothing,
        }
    }
}

/// What a record tells of a call of a model.
pub struct ModelCall<'a> {
    /// What was said to it; nothing where that is not told or no list.
    pub input: Option<Vec<Json>>,
    /// What it said.
    pub output: Option<Vec<Json>>,
    /// The attribute with the model that was asked for.
    pub request_model: &'static str,
    /// The attribute with the model that answered.
    pub response_model: &'static str,
    /// The call's id.
    pub id: AttributeValue<&'a str>,
    /// Tokens that went in.
    pub input_tokens: AttributeValue<f64>,
    /// Tokens that came out.
    pub output_tokens: AttributeValue<f64>,
}

fn listed(json: Json) -> Option<Vec<Json>> {
    match json {
        Json::Array(all) => Some(all),
        _ => None,
    }
}

/// Returns the document of an attribute that may be its text.
pub fn parsed(json: Json) -> Json {
    match &json {
        // What is no document is no list of messages either, and so is missing.
        Json::String(text) => document(text).unwrap_or(json),
        _ => json,
    }
}
