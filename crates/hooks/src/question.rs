//! What a client's event asks: the moment, and the events that policies judge.
//!
//! Keeps HK-5.
//!
//! A tool call is two events: its content, and the use of the product (access policies). Session and call id are those that the client's
//! telemetry has, so that both can be told to be one call.

use crate::client::{Client, Mode};
use crate::payload::{Payload, Purpose, text};
use provost_words::free_text::free_text;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use serde_json::{Map, Value, json};

/// LIMIT: bytes of an event that is read at all; a client that writes more is not understood.
pub const MAX_EVENT: usize = 16 << 20;
/// LIMIT: bytes of the contents of one event. The server records events of up to 250 KiB; content beyond is missing.
pub const MAX_CONTENT: usize = 192 << 10;
/// LIMIT: characters of a session and of a call id at the server.
const MAX_NAME: usize = 256;
/// LIMIT: bytes of the key and of the address of a server. Ours; a longer one is missing.
const MAX_ADDRESS: usize = 512;
/// LIMIT: characters of a folder at the server.
const MAX_FOLDER: usize = 4_096;

/// What nobody knows of the server of a call who does not look into the configuration of its client.
const PACKAGE: &str = "mcp.package_id";
const VERSION: &str = "mcp.package_version";
const ADDRESS: &str = "mcp.remote_url";

/// Attributes of the use of a product that a client has and whose values a hook cannot know.
const OF_THE_USE: [&str; 9] = [
    "account.access_state",
    "account.posture",
    "account.profile_id",
    "device.id",
    "process.entrypoint_id",
    "process.id",
    "process.name",
    "process.path",
    "provider.id",
];

/// Events of the clients that say what happens and ask for nothing that a policy judges. An event of another name is not passed over:
/// it might be a new way to ask before a tool.
const REMARKS: [&str; 25] = [
    "AfterAgent",
    "AfterModel",
    "BeforeModel",
    "BeforeToolSelection",
    "ConfigChange",
    "CwdChanged",
    "FileChanged",
    "InstructionsLoaded",
    "Notification",
    "PermissionRequest",
    "PostCompact",
    "PostToolUseFailure",
    "PreCompact",
    "PreCompress",
    "SessionEnd",
    "SessionStart",
    "Setup",
    "Stop",
    "StopFailure",
    "SubagentStart",
    "SubagentStop",
    "TaskCompleted",
    "TeammateIdle",
    "WorktreeCreate",
    "WorktreeRemove",
];

/// When a client asks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Moment {
    /// Before the model sees a prompt.
    Prompt,
    /// Before a tool runs.
    PreTool,
    /// Before the model sees what came of a tool.
    PostTool,
}

impl Moment {
    fn of(client: Client, name: &str) -> Option<Self> {
        match (client, name) {
            (Client::ClaudeCode | Client::Codex, "PreToolUse") | (Client::Gemini, "BeforeTool") => {
                Some(Self::PreTool)
            }
            (Client::ClaudeCode | Client::Codex, "PostToolUse") | (Client::Gemini, "AfterTool") => {
                Some(Self::PostTool)
            }
            (Client::ClaudeCode | Client::Codex, "UserPromptSubmit") | (Client::Gemini, "BeforeAgent") => {
                Some(Self::Prompt)
            }
            _ => None,
        }
    }

    /// Returns the name of the event at which this client asks.
    pub fn event_name(self, client: Client) -> &'static str {
        match (client, self) {
            (Client::Gemini, Self::Prompt) => "BeforeAgent",
            (Client::Gemini, Self::PreTool) => "BeforeTool",
            (Client::Gemini, Self::PostTool) => "AfterTool",
            (_, Self::Prompt) => "UserPromptSubmit",
            (_, Self::PreTool) => "PreToolUse",
            (_, Self::PostTool) => "PostToolUse",
        }
    }

    fn occasion(self) -> &'static str {
        match self {
            Self::Prompt => "prompt",
            Self::PreTool => "pre_tool",
            Self::PostTool => "post_tool",
        }
    }
}

/// The form in which a client takes another result of a tool.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shape {
    /// The members that Claude Code's shell answers with.
    Shell,
    /// A list of contents, as every server of MCP answers with.
    Contents,
    /// Nobody knows.
    Unknown,
}

/// A question, ready to be asked.
#[derive(Clone, Debug)]
pub struct Question {
    /// Who asks.
    pub client: Client,
    /// When.
    pub moment: Moment,
    /// The folder in which the agent works, as the client says.
    pub folder: Option<String>,
    /// The server of MCP that is asked, as the client calls it; none of a tool that asks no server.
    pub server: Option<CalledServer>,
    pub(crate) shape: Shape,
    events: Vec<Event>,
}

/// How a client calls the server of a tool.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CalledServer {
    /// The name of the tool, in which that of the server may be; empty where the client's name of it says nothing for certain.
    pub tool: String,
    /// The name of the server, where the client says it apart. Without it, and where the tool's name has none, any of them may be asked.
    pub name: Option<String>,
    /// Whose configuration it is of, where the client says it, in its word.
    pub source: Option<String>,
    /// What the client says that it starts, or where it asks, where it says so beside the call.
    pub said: Option<SaidServer>,
}

/// What a client says beside a call of what it starts. It is the client's word: it makes a verdict stronger, and takes no server away that may be
/// meant besides.
#[derive(Clone, PartialEq, Eq)]
pub enum SaidServer {
    /// As an entry of its configuration would say it.
    Entry(Value),
    /// Nobody can read it, or it says nothing of what is started: any server may be.
    Unreadable,
}

/// A client puts in what variables hold: no debug print has it.
impl std::fmt::Debug for SaidServer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Entry(_) => "Entry(…)",
            Self::Unreadable => "Unreadable",
        })
    }
}

/// Which server it is, for whoever looked into the configuration of its client.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct KnownServer {
    /// Its key in the inventory.
    pub package_id: String,
    /// The one version that is configured; absent where nobody can say which one runs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub package_version: Option<String>,
    /// Its address; absent of one that is started as a program.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub remote_url: Option<String>,
}

/// What was heard.
#[derive(Clone, Debug)]
pub enum Message {
    /// Something that policies judge.
    Question(Box<Question>),
    /// Something that no policy judges: the client goes on.
    Remark,
}

/// Why an event was not understood; the sentence quotes nothing of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnreadableEvent(pub String);

#[derive(Clone, Debug)]
struct Event {
    occasion: &'static str,
    session: Option<String>,
    call_id: Option<String>,
    attributes: Map<String, Value>,
    missing: Vec<&'static str>,
}

/// Returns what a client says in these bytes.
///
/// Errors: they are not one event of this client.
pub fn hear(client: Client, bytes: &[u8]) -> Result<Message, UnreadableEvent> {
    let unheard = |why: &str| UnreadableEvent(format!("the event of {} {why}", client.name()));
    if bytes.len() > MAX_EVENT {
        return Err(unheard("has more than 16 MiB"));
    }
    if bytes.iter().all(u8::is_ascii_whitespace) {
        return Err(unheard("is empty: a client writes it to standard input"));
    }
    // Not the reader's own sentence: it may quote a name that somebody wrote.
    let payload: Payload<'_> = serde_json::from_slice(bytes).map_err(|error| {
        unheard(&format!(
            "cannot be read: line {}, column {}",
            error.line(),
            error.column()
        ))
    })?;
    let name = payload.hook_event_name.as_str();
    let Some(moment) = Moment::of(client, name) else {
        if REMARKS.contains(&name) {
            return Ok(Message::Remark);
        }
        return Err(unheard("has a name that this version of provost does not know"));
    };
    if moment != Moment::Prompt && text(&payload.tool_name).is_none() {
        return Err(unheard("names no tool"));
    }
    Ok(Message::Question(Box::new(Question {
        client,
        moment,
        folder: text(&payload.cwd).map(str::to_owned),
        server: (moment != Moment::Prompt)
            .then(|| payload.called(client))
            .flatten(),
        shape: shape(client, &payload),
        events: events(client, moment, &payload),
    })))
}

fn shape(client: Client, payload: &Payload<'_>) -> Shape {
    let begins = |sign: char| {
        payload
            .tool_response
            .is_some_and(|response| response.get().starts_with(sign))
    };
    match payload.tool_name.as_str() {
        _ if client != Client::ClaudeCode => Shape::Unknown,
        Some("Bash") if begins('{') => Shape::Shell,
        Some(name) if name.starts_with("mcp__") && begins('[') => Shape::Contents,
        _ => Shape::Unknown,
    }
}

fn events(client: Client, moment: Moment, payload: &Payload<'_>) -> Vec<Event> {
    let mut content = Event::new(moment.occasion(), payload);
    let mut room = MAX_CONTENT;
    match moment {
        Moment::Prompt => content.content("request.prompt", payload.prompt, &mut room),
        Moment::PreTool | Moment::PostTool => {
            content.tool((client, payload), &mut room);
            if moment == Moment::PostTool {
                content.content("tool.result", payload.tool_response, &mut room);
            }
        }
    }
    content.must("llm.model", text(&payload.model));
    // Gateways and clouds serve the same models; the client does not say which one does.
    content.must("llm.provider", None);
    let mut events = vec![content];
    // The end of a call is no further use of the product.
    if moment != Moment::PostTool {
        let mut access = Event::new("inline_hook", payload);
        access.must("product.id", Some(client.product()));
        access.must("device.platform", Some(std::env::consts::OS));
        access.missing.extend(OF_THE_USE);
        events.push(access);
    }
    events
}

impl Event {
    fn new(occasion: &'static str, payload: &Payload<'_>) -> Self {
        let short = |value: &Value| {
            text(value)
                .filter(|text| text.chars().count() <= MAX_NAME)
                .map(str::to_owned)
        };
        Self {
            occasion,
            session: short(&payload.session_id),
            call_id: short(&payload.tool_use_id),
            attributes: Map::new(),
            missing: Vec::new(),
        }
    }

    /// Gives an attribute that such an event has; missing where nobody says it.
    fn must(&mut self, name: &'static str, value: Option<&str>) {
        match value.filter(|value| value.len() <= MAX_NAME) {
            Some(value) => {
                self.attributes.insert(name.to_owned(), value.into());
            }
            None => self.missing.push(name),
        }
    }

    fn tool(&mut self, (client, payload): (Client, &Payload<'_>), room: &mut usize) {
        let name = text(&payload.tool_name);
        self.must("tool.id", name);
        if let Some((server, asked)) = payload.mcp(client) {
            self.must("mcp.server_id", server.as_deref());
            // Who reads resources runs no tool of the server.
            if let Purpose::Tool(tool) = asked {
                self.must("mcp.tool_id", tool);
            }
            for unknown in [PACKAGE, VERSION, ADDRESS] {
                self.must(unknown, None);
            }
        }
        self.content("tool.input", payload.tool_input, room);
        if let Some(Value::String(written)) = self.attributes.get("tool.input") {
            let read = free_text(name, written.as_str().into());
            self.attributes.insert("tool.input".to_owned(), read);
        }
    }

    /// Gives a content as it was written: the text itself where it is one. Missing where it is not said, is null or is too long.
    fn content(&mut self, name: &'static str, written: Option<&RawValue>, room: &mut usize) {
        let written = written.map(RawValue::get).filter(|text| *text != "null");
        let text = written.and_then(|written| match written.strip_prefix('"') {
            // One that cannot be represented, such as half a surrogate, is missing.
            Some(_) => serde_json::from_str::<String>(written).ok(),
            None => Some(written.to_owned()),
        });
        match text.filter(|text| text.len() <= *room) {
            Some(text) => {
                *room -= text.len();
                self.attributes.insert(name.to_owned(), text.into());
            }
            None => self.missing.push(name),
        }
    }
}

impl Question {
    /// Returns how many events are asked about.
    pub fn count(&self) -> usize {
        self.events.len()
    }

    /// Takes which server it is into the events of a call. What was said already stays.
    ///
    /// Keeps HK-8.
    pub fn know(&mut self, server: &KnownServer) {
        let told = [
            (PACKAGE, Some(&server.package_id)),
            (VERSION, server.package_version.as_ref()),
            (ADDRESS, server.remote_url.as_ref()),
        ];
        for event in &mut self.events {
            for (name, value) in told {
                let is_open = event.missing.contains(&name);
                match value.filter(|value| !value.is_empty() && value.len() <= MAX_ADDRESS) {
                    Some(value) if is_open => {
                        event.missing.retain(|missing| *missing != name);
                        event.attributes.insert(name.to_owned(), value.as_str().into());
                    }
                    // A program has no address: that is known, where the version is what nobody says.
                    None if name == ADDRESS && server.remote_url.is_none() => {
                        event.missing.retain(|missing| *missing != name);
                    }
                    _ => {}
                }
            }
        }
    }

    /// Returns the body of a request for decisions; a user whom nobody can name is missing. With the folder and the machine, what
    /// somebody approves is the call there and nowhere else.
    pub fn request(&self, user: Option<&str>, host: Option<&str>, mode: Mode) -> Value {
        let is_call = self.moment == Moment::PreTool;
        let fits = |text: &&str, most: usize| !text.is_empty() && text.chars().count() <= most;
        let folder = self
            .folder
            .as_deref()
            .filter(|text| is_call && fits(text, MAX_FOLDER));
        let host = host.filter(|text| is_call && fits(text, MAX_NAME));
        let events: Vec<Value> = self
            .events
            .iter()
            .map(|event| {
                let mut attributes = event.attributes.clone();
                let mut missing = event.missing.clone();
                match user {
                    Some(user) => {
                        attributes.insert("identity.user_id".to_owned(), user.into());
                    }
                    None => missing.push("identity.user_id"),
                }
                missing.sort_unstable();
                let mut asked =
                    json!({ "occasion": event.occasion, "attributes": attributes, "missing": missing });
                let of_event = [
                    ("session", event.session.as_deref()),
                    ("callId", event.call_id.as_deref()),
                    ("folder", folder),
                    ("host", host),
                ];
                for (name, value) in of_event {
                    if let Some(value) = value {
                        asked[name] = value.into();
                    }
                }
                asked
            })
            .collect();
        json!({ "events": events, "mode": mode.word() })
    }
}
