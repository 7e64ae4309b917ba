//! The members of a client's event that are read; every other one is passed over.
//!
//! A member that is there twice is refused with the whole event: another reader would take the other one. Contents are kept as they
//! were written, so that the server reads their bytes and not what a parser here made of numbers and repeated members.

use crate::client::Client;
use crate::question::{CalledServer, SaidServer};
use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;
use std::borrow::Cow;

/// How clients call the server in the input of a tool of their own.
const SERVER_MEMBERS: [&str; 3] = ["server", "serverName", "server_name"];
/// How Gemini CLI calls the tools of servers, in front of the server's name and one more of these lines.
const OF_GEMINI: &str = "mcp_";
/// LIMIT: bytes of the name of a conversation that is noted. Ours: clients have 36.
const MAX_SESSION: usize = 256;
/// What Gemini CLI calls server and tool beside a call, in front of what it says that it starts for it.
const NAMES_OF_GEMINI: [&str; 2] = ["server_name", "tool_name"];
/// Of which it says one at least.
const STARTED_BY_GEMINI: [&str; 3] = ["command", "url", "tcp"];
/// LIMIT: bytes of what a client says that it starts. Ours: of an entry of a configuration as much is read.
const MAX_SAID: usize = 64 * 1024;

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
    /// Gemini CLI names server and tool, and what it starts.
    #[serde(default)]
    pub mcp_context: Value,
    #[serde(borrow, default)]
    pub tool_input: Option<&'a RawValue>,
    #[serde(borrow, default)]
    pub tool_response: Option<&'a RawValue>,
    #[serde(borrow, default)]
    pub prompt: Option<&'a RawValue>,
}

/// For what a call asks a server of MCP.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Purpose<'a> {
    /// To run a tool; absent where nobody says which one.
    Tool(Option<&'a str>),
    /// Its resources, by a tool of the client's own.
    Resources,
}

impl Payload<'_> {
    /// Returns the server as the event, the tool's name or its input has it, and what it is asked for; `None` for a tool that asks no server.
    ///
    /// Keeps HK-8.
    pub fn mcp(&self, client: Client) -> Option<(Option<Cow<'_, str>>, Purpose<'_>)> {
        let name = self.tool_name.as_str().unwrap_or_default();
        let prefixed = name.strip_prefix("mcp__");
        let told = self.told().map(Cow::Borrowed);
        // Gemini CLI says the server beside the tool, and in the tool's name where that of the server ends nobody can say.
        if client == Client::Gemini && name.starts_with(OF_GEMINI) {
            return Some((told, Purpose::Tool(text(&self.mcp_context["tool_name"]))));
        }
        if prefixed.is_none() && self.mcp_server.is_null() && self.mcp_context.is_null() {
            return asks_for_resources(name)
                .then(|| (self.server_of_input(client).map(Cow::Owned), Purpose::Resources));
        }
        let split = prefixed.and_then(|rest| rest.split_once("__"));
        let server = told.or(split.map(|(server, _)| Cow::Borrowed(server)));
        let tool = split
            .map(|(_, tool)| tool)
            .or(text(&self.mcp_context["tool_name"]));
        Some((server, Purpose::Tool(tool)))
    }

    /// Returns the server as the event names it beside the tool.
    fn told(&self) -> Option<&str> {
        text(&self.mcp_server["name"]).or(text(&self.mcp_context["server_name"]))
    }

    /// Returns the one server that the input of a client's own tool names, by the member that this client reads; `None` for none, which means all
    /// of them, and where a member of another client says something: nobody measured what becomes of it. Gemini CLI names it within the
    /// address of what it reads, so that any may be meant.
    fn server_of_input(&self, client: Client) -> Option<String> {
        let own = match client {
            Client::ClaudeCode | Client::Codex => "server",
            Client::Gemini => "serverName",
        };
        let input: Value = serde_json::from_str(self.tool_input?.get()).ok()?;
        let is_own_alone = SERVER_MEMBERS
            .iter()
            .all(|member| *member == own || input[*member].is_null());
        let named = text(&input[own]).map(str::trim).filter(|name| !name.is_empty());
        named.filter(|_| is_own_alone).map(str::to_owned)
    }
}

/// Says whether a tool of a client's own reads the resources of servers: `ReadMcpResourceTool` and `ListMcpResourcesTool` of Claude Code,
/// `read_mcp_resource`, `list_mcp_resources` and `list_mcp_resource_templates` of Codex and Gemini CLI, and what may be called like them.
fn asks_for_resources(tool: &str) -> bool {
    let signs = tool.chars().filter(char::is_ascii_alphanumeric);
    let folded: String = signs.map(|sign| sign.to_ascii_lowercase()).collect();
    folded.contains("mcpresource")
}

impl Payload<'_> {
    /// Returns how the client calls the server of the tool; `None` for a tool that is of no server.
    pub fn called(&self, client: Client) -> Option<CalledServer> {
        let (server, asked) = self.mcp(client)?;
        let told = match &asked {
            Purpose::Tool(_) => self.told().map(str::to_owned),
            Purpose::Resources => server.map(Cow::into_owned),
        };
        // A source that is no word is none that anybody knows, and not one that was not said.
        let source = match &self.mcp_server["source"] {
            Value::Null => None,
            source => Some(text(source).unwrap_or_default().to_owned()),
        };
        // Of a tool's name that says nothing for certain no server is read: where none is told, any may be meant.
        let is_open = client == Client::Gemini && matches!(asked, Purpose::Tool(_));
        let tool = self.tool_name.as_str().filter(|_| !is_open);
        Some(CalledServer {
            tool: tool.unwrap_or_default().to_owned(),
            name: told,
            source,
            said: (client == Client::Gemini).then(|| self.said()).flatten(),
        })
    }

    /// Returns what Gemini CLI says that it starts for a server, or where it asks: `command`, `args`, `cwd`, `url` and `tcp` beside the names, and
    /// what a later one may say besides. Of every server that it runs 0.61.0 has a command or an address, so that names alone say that an entry lies
    /// over the one by which it was started.
    fn said(&self) -> Option<SaidServer> {
        let entry = match &self.mcp_context {
            Value::Null => return None,
            Value::Object(members) => {
                let is_said = |(name, value): &(&String, &Value)| {
                    !NAMES_OF_GEMINI.contains(&name.as_str()) && !value.is_null()
                };
                let said = members.iter().filter(is_said);
                Value::Object(said.map(|(name, value)| (name.clone(), value.clone())).collect())
            }
            _ => return Some(SaidServer::Unreadable),
        };
        let is_started = STARTED_BY_GEMINI.iter().any(|name| text(&entry[*name]).is_some());
        let is_read = is_started && entry.to_string().len() <= MAX_SAID;
        Some(if is_read {
            SaidServer::Entry(entry)
        } else {
            SaidServer::Unreadable
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
