//! The members of a client's event that are read; every other one is passed over.
//!
//! A member that is there twice is refused with the whole event: another reader would take the other one. Contents are kept as they
//! were written, so that the server reads their bytes and not what a parser here made of numbers and repeated members.

use crate::question::CalledServer;
use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;

/// LIMIT: bytes of the name of a conversation that is noted. Ours: clients have 36.
const MAX_SESSION: usize = 256;

/// An event as a client writes it.
#[derive(Debug, Deserialize)]
pub struct Payload<'a> {
    pub hook_event_name: String,
    #[serde(default)]
    pub session_id: Value,
    #[serde(default)]
    pub cwd: Value,
    #[serde(default)]
    pub tool_name: Value,
    #[serde(default)]
    pub tool_use_id: Value,
    #[serde(default)]
    pub model: Value,
    /// Claude Code names the server of a tool.
    #[serde(default)]
    pub mcp_server: Value,
    /// Gemini CLI names server and tool.
    #[serde(default)]
    pub mcp_context: Value,
    #[serde(borrow, default)]
    pub tool_input: Option<&'a RawValue>,
    #[serde(borrow, default)]
    pub tool_response: Option<&'a RawValue>,
    #[serde(borrow, default)]
    pub prompt: Option<&'a RawValue>,
}

impl Payload<'_> {
    /// Returns the server and the tool at it as the event or the tool's name has them; `None` for a tool that is of no server.
    pub fn mcp(&self) -> Option<(Option<&str>, Option<&str>)> {
        let name = self.tool_name.as_str().unwrap_or_default();
        let prefixed = name.strip_prefix("mcp__");
        if prefixed.is_none() && self.mcp_server.is_null() && self.mcp_context.is_null() {
            return None;
        }
        let split = prefixed.and_then(|rest| rest.split_once("__"));
        let server = text(&self.mcp_server["name"])
            .or(text(&self.mcp_context["server_name"]))
            .or(split.map(|(server, _)| server));
        let tool = split
            .map(|(_, tool)| tool)
            .or(text(&self.mcp_context["tool_name"]));
        Some((server, tool))
    }
}

impl Payload<'_> {
    /// Returns how the client calls the server of the tool; `None` for a tool that is of no server.
    pub fn called(&self) -> Option<CalledServer> {
        self.mcp()?;
        let told = text(&self.mcp_server["name"]).or(text(&self.mcp_context["server_name"]));
        // A source that is no word is none that anybody knows, and not one that was not said.
        let source = match &self.mcp_server["source"] {
            Value::Null => None,
            source => Some(text(source).unwrap_or_default().to_owned()),
        };
        Some(CalledServer {
            tool: self.tool_name.as_str().unwrap_or_default().to_owned(),
            name: told.map(str::to_owned),
            source,
        })
    }
}

/// The members that say in which conversation an event is, and where that is kept; every other one is passed over without being kept.
#[derive(Debug, Deserialize)]
struct Named {
    #[serde(default)]
    session_id: Value,
    #[serde(default)]
    transcript_path: Value,
}

/// The conversation in which an event is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Conversation {
    /// Its name.
    pub session: String,
    /// The path of the file in which its client keeps it; absent where the event names none.
    pub path: Option<String>,
}

/// Returns the conversation that an event names, whatever event it is; `None` where it names none, or its name is longer than a name is.
pub fn session_of(bytes: &[u8]) -> Option<Conversation> {
    let read: Named = serde_json::from_slice(bytes).ok()?;
    let session = text(&read.session_id).filter(|session| session.len() <= MAX_SESSION)?;
    Some(Conversation {
        session: session.to_owned(),
        path: text(&read.transcript_path).map(str::to_owned),
    })
}

/// Returns a text that says something.
pub fn text(value: &Value) -> Option<&str> {
    value.as_str().filter(|text| !text.is_empty())
}
