//! Whether a tool is one of an MCP server, and what server and tool are called there: one answer for logs and spans.
//!
//! An exporter that hides the name, or tells something that cannot be read, does not say that it is none: then everything of
//! MCP is missing (OT-5).
//!
//! Keeps OT-5.

use crate::attributes::AttributeValue;
use crate::event::Event;
use provost_policy::Field;

/// What stands for every tool of a server whose name Claude Code hides.
const HIDDEN: &str = "mcp_tool";

/// What a record tells of a tool.
#[derive(Clone, Copy)]
pub struct Tool<'a> {
    /// Its full name, for example `mcp__server__tool`.
    pub name: AttributeValue<&'a str>,
    /// The server, where it is told apart.
    pub server: AttributeValue<&'a str>,
    /// The tool's name at its server, where it is told apart.
    pub at_server: AttributeValue<&'a str>,
    /// Something that only calls over MCP have.
    pub sign: AttributeValue<&'a str>,
}

impl<'a> Tool<'a> {
    /// Returns a tool of which nothing but the name is told.
    pub fn named(name: AttributeValue<&'a str>) -> Self {
        Self {
            name,
            server: AttributeValue::Nothing,
            at_server: AttributeValue::Nothing,
            sign: AttributeValue::Nothing,
        }
    }

    /// Returns its name, unless it is hidden.
    pub fn id(self) -> AttributeValue<&'a str> {
        match self.name {
            AttributeValue::Value(HIDDEN) => AttributeValue::Nothing,
            name => name,
        }
    }

    /// Gives an event the tool's name, its server and its name there; missing where they are not told (OT-5). Returns
    /// whether it is a call over MCP for sure.
    pub fn tell(self, event: &mut Event) -> bool {
        let split = self.name.value().and_then(split);
        let signs = [self.server, self.at_server, self.sign];
        let is_told = signs.iter().any(|sign| matches!(sign, AttributeValue::Value(_)));
        if split.is_some() || is_told || self.name == AttributeValue::Value(HIDDEN) {
            let (server, tool) = match split {
                Some((server, tool)) => (AttributeValue::Value(server), AttributeValue::Value(tool)),
                None => (AttributeValue::Nothing, self.id()),
            };
            let (server, tool) = (self.server.or(server), self.at_server.or(tool));
            event.must("mcp.server_id", server);
            event.must("mcp.tool_id", tool);
            match (split, server, tool) {
                (None, AttributeValue::Value(server), AttributeValue::Value(tool)) => {
                    event.must("tool.id", AttributeValue::Value(&full(server, tool)));
                }
                _ => event.must("tool.id", self.id()),
            }
            return true;
        }
        event.must("tool.id", self.id());
        let is_unreadable = signs.contains(&AttributeValue::Unreadable);
        if is_unreadable || !matches!(self.name, AttributeValue::Value(_)) {
            let of_mcp = Field::all()
                .map(Field::name)
                .filter(|name| name.starts_with("mcp."));
            of_mcp.for_each(|name| event.must(name, AttributeValue::Unreadable));
        }
        false
    }
}

/// Returns the name by which clients and their hooks call a tool of a server: they replace what such a name cannot have.
fn full(server: &str, tool: &str) -> String {
    let named = |text: &str| -> String {
        let allowed = |c: char| {
            if c.is_ascii_alphanumeric() || c == '-' {
                c
            } else {
                '_'
            }
        };
        text.chars().map(allowed).collect()
    };
    format!("mcp__{}__{}", named(server), named(tool))
}

/// Returns the server and the tool of `mcp__server__tool`.
fn split(name: &str) -> Option<(&str, &str)> {
    name.strip_prefix("mcp__")?.split_once("__")
}
