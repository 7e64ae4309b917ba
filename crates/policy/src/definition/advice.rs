//! What the author of a definition should change although it is taken.

use super::{Definition, Logic, reach};
use crate::catalogue::Field;
use crate::condition::{Check, Condition, Predicate};
use crate::rego::Diagnostic;

/// The beginning of the name that `tool.id` has where a call goes to an MCP server: `mcp__SERVER__TOOL`.
const OF_A_SERVER: &str = "mcp__";

/// Something that the author should change.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Advice {
    /// `text_compared_with_id`, `bare_tool_name` or `never_matches`.
    pub code: &'static str,
    /// A JSON Pointer below the definition to the member that is meant.
    pub path: &'static str,
    /// The sentence; with a place where a module is meant.
    pub diagnostic: Diagnostic,
}

/// Returns what the author of a definition should change.
pub(super) fn advice(definition: &Definition) -> Vec<Advice> {
    match &definition.rule.logic {
        Logic::Rego(module) => {
            let found = module.warnings().into_iter();
            found
                .map(|diagnostic| Advice {
                    code: "text_compared_with_id",
                    path: "/logic/module",
                    diagnostic,
                })
                .collect()
        }
        Logic::Native(condition) => {
            let mut found = bare_tool_names(condition);
            found.extend(reach::never(definition).map(|message| Advice {
                code: "never_matches",
                path: "/conditions",
                diagnostic: Diagnostic {
                    line: 0,
                    column: 0,
                    message: format!("this policy can never match: {message}"),
                },
            }));
            found
        }
    }
}

/// A condition that asks for an MCP server and compares `tool.id` with a name that no call of a server has guards nothing.
fn bare_tool_names(condition: &Condition) -> Vec<Advice> {
    let mut is_of_servers = false;
    condition.each_operand(&mut |operand| {
        is_of_servers |= [Field::MCP_SERVER, Field::MCP_TOOL].contains(&operand.field());
    });
    if !is_of_servers {
        return Vec::new();
    }
    let mut found: Vec<Advice> = Vec::new();
    condition.each_predicate(&mut |predicate| {
        for name in bare(predicate) {
            let message = format!(
                "{name:?} is no name that tool.id has where a call goes to an MCP server: there it is mcp__SERVER__TOOL; compare mcp.tool_id \
                 with the tool's own name, or tool.id with the whole one"
            );
            let advice = Advice {
                code: "bare_tool_name",
                path: "/conditions",
                diagnostic: Diagnostic {
                    line: 0,
                    column: 0,
                    message,
                },
            };
            if !found.contains(&advice) {
                found.push(advice);
            }
        }
    });
    found
}

/// Returns the names that a predicate on `tool.id` asks for and that no tool of a server can have.
fn bare(predicate: &Predicate) -> Vec<&str> {
    if predicate.operand.as_field() != Some(Field::TOOL) {
        return Vec::new();
    }
    match &predicate.check {
        Check::Text { is, .. } => [&**is]
            .into_iter()
            .filter(|name| !name.starts_with(OF_A_SERVER))
            .collect(),
        Check::TextIn { list, .. } => {
            let names = list.iter().map(|name| &**name);
            names.filter(|name| !name.starts_with(OF_A_SERVER)).collect()
        }
        Check::StartsWith(text) if !text.starts_with(OF_A_SERVER) && !OF_A_SERVER.starts_with(&**text) => {
            vec![text]
        }
        _ => Vec::new(),
    }
}
