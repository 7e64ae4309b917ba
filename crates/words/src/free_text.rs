//! Tools whose input is a free text by design, as programs that call tools name them.
//!
//! Such a text names no members, so that whoever receives it as it is cannot tell it from a document that was damaged:
//! every attribute below `tool.input` is missing. An adapter that knows the tool hands it over as `{"input": TEXT}`.
//!
//! Absent on purpose: tools whose text is run (`exec` and `js_repl` of Codex, shells that take a line): a policy on commands
//! must not be passed by because the command stands under another name. And tools of one organization.

use serde_json::{Value as Json, json};

/// Source: Codex, freeform tools (their input has a grammar of its own and is no JSON), read 2026-11.
const TOOLS: [&str; 1] = ["apply_patch"];

/// Returns a tool's input as adapters hand it over: free text of a tool of the table as an object, everything else as
/// it is.
pub fn free_text(tool: Option<&str>, input: Json) -> Json {
    let is_free = tool.is_some_and(|tool| TOOLS.contains(&tool));
    match &input {
        Json::String(text) if is_free && is_no_document(text) => json!({ "input": text }),
        _ => input,
    }
}

/// Returns whether a text does not even begin like a document: one that was damaged stays unreadable.
fn is_no_document(text: &str) -> bool {
    matches!(
        crate::document::read(text),
        crate::document::DocumentReading::Text
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn free_text_of_a_known_tool_is_a_member_and_everything_else_stays() {
        let patch = json!("*** Begin Patch\n*** End Patch");
        let wrapped = json!({ "input": patch });
        for tool in TOOLS {
            assert_eq!(free_text(Some(tool), patch.clone()), wrapped);
        }
        for tool in [None, Some("exec"), Some("apply_patch2"), Some("Apply_Patch")] {
            assert_eq!(free_text(tool, patch.clone()), patch);
        }
        for input in [
            json!({ "input": "x" }),
            json!("{\"input\":\"x\"}"),
            json!("{\"input\":\"x\",}"),
            json!("[\"x\"]"),
            json!(" "),
            json!(7),
            Json::Null,
        ] {
            assert_eq!(free_text(Some("apply_patch"), input.clone()), input);
        }
    }
}
