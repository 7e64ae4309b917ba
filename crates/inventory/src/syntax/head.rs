//! The YAML head of a text, as subagents, skills and commands of Claude Code have one.
//!
//! Such heads are written by hand and by models, and many are no YAML: a client takes those line by line. Of a head that is none nothing is
//! known; where it cannot say what is looked for that is no fault, and where it may, it is one.

use super::yaml;
use crate::disk::Fault;
use serde_json::{Map, Value};

/// The line before and the line behind it.
const FENCE: &str = "---";
/// The members for whose sake heads are read.
const SOUGHT: [&str; 3] = ["mcpservers", "mcp_servers", "hooks"];

/// Returns what the head of a text says; an empty object where there is none.
///
/// Errors: as of [`super::value`].
pub(super) fn value(text: &str, is_over: &dyn Fn() -> bool) -> Result<Value, Fault> {
    let nothing = || Ok(Value::Object(Map::new()));
    let Some(head) = head(text) else {
        return nothing();
    };
    match yaml(head, is_over) {
        Ok(value) if value.is_object() => Ok(value),
        Ok(_) | Err(Fault::Malformed) if !may_say(head) => nothing(),
        Ok(_) => Err(Fault::Malformed),
        Err(fault) => Err(fault),
    }
}

/// Returns the text between the fences. Some clients end it at the first three hyphens, wherever they stand: where no line is a fence, so
/// does this.
fn head(text: &str) -> Option<&str> {
    let (first, rest) = text.split_once('\n')?;
    if first.trim_end() != FENCE {
        return None;
    }
    let mut at = 0;
    for line in rest.split_inclusive('\n') {
        if line.trim_end() == FENCE {
            return Some(&rest[..at]);
        }
        at += line.len();
    }
    rest.find(FENCE).map(|end| &rest[..end])
}

/// Says whether a head that is no YAML may name what is looked for, also by escapes or by a part that stands for another.
fn may_say(head: &str) -> bool {
    let text = head.to_lowercase();
    let is_sought = |name: &str| {
        text.match_indices(name).any(|(at, _)| {
            let behind = text[at + name.len()..]
                .trim_start_matches(['"', '\''])
                .trim_start();
            behind.starts_with([':', '='])
        })
    };
    SOUGHT.iter().any(|name| is_sought(name)) || ["\\x", "\\u"].iter().any(|escape| text.contains(escape))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn read(text: &str) -> Result<Value, Fault> {
        value(text, &|| false)
    }

    #[test]
    fn a_head_stands_between_two_fences_at_the_beginning() {
        let said = Ok(json!({"a": "1", "hooks": {}}));
        for text in [
            "---\na: 1\nhooks: {}\n---\nbody: [",
            "---  \r\na: 1\r\nhooks: {}\r\n--- \r\n",
            "---\na: 1\nhooks: {}\n---",
            "---\na: 1\nhooks: {} ---\nbody",
        ] {
            assert_eq!(read(text), said, "{text}");
        }
        for text in [
            "",
            "---",
            "text\n---\nhooks: {}\n---\n",
            "\n---\nhooks: {}\n---\n",
            "---\nhooks: {}\n",
            "----\nhooks: {}\n----\n",
            "---\n---\n",
        ] {
            assert_eq!(read(text), Ok(json!({})), "{text}");
        }
    }

    #[test]
    fn what_is_no_yaml_is_a_fault_where_it_may_say_what_is_looked_for() {
        for text in [
            "description: Use when: the tests fail",
            "description: say hooks and mcpServers, [ and more",
            "just words",
            "a: &x 1\nb: *x",
        ] {
            assert!(read(&format!("---\n{text}\n---\n")).is_ok(), "{text}");
        }
        for text in [
            "description: Use when: x\nmcpServers:\n  - a: {command: evil}",
            "description: Use when: x\nMCPServers : []",
            "description: Use when: x\n\"hooks\": {}",
            "description: Use when: x\n? hooks\n: {}",
            "description: Use when: x\n\"mcp\\u0053ervers\": []",
            "mcpServers: &x []\nb: *x",
            "hooks: {}\nhooks: {}",
        ] {
            let read = read(&format!("---\n{text}\n---\n"));
            assert_eq!(read, Err(Fault::Malformed), "{text}");
        }
    }
}
