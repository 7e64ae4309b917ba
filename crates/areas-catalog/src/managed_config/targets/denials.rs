//! Rules of Claude Code, and hooks of Codex, that look as if they denied something and deny nothing.

use super::probed::Probed;
use super::suggestion::nearest;
use crate::managed_config::content::{Class, Content, step};
use crate::managed_config::views::Warning;
use serde_json::Value;

/// The lists whose rules take something away. A rule of `allow` that matches nothing gives nothing.
const LISTS: [&str; 2] = ["deny", "ask"];

/// Tools whose rules a slip of the pen is looked for in.
const TOOLS: [&str; 12] = [
    "Agent",
    "Bash",
    "Edit",
    "Glob",
    "Grep",
    "NotebookEdit",
    "PowerShell",
    "Read",
    "Skill",
    "WebFetch",
    "WebSearch",
    "Write",
];

/// Returns the rules that this version was seen to complain of in the same form, and those that name no tool by a slip.
pub fn warnings(probed: &Probed, content: &Content) -> Vec<Warning> {
    let mut warnings = Vec::new();
    for class in [Class::Enforced, Class::Defaults] {
        let document = content.of(class);
        for list in LISTS {
            let rules = document.pointer(&format!("/permissions/{list}"));
            let rules = rules.and_then(|rules| rules.as_array()).into_iter().flatten();
            for (place, rule) in rules.enumerate() {
                if let Some(message) = rule.as_str().and_then(|rule| why(probed, rule)) {
                    let path = format!("/{}/permissions/{list}/{place}", class.as_str());
                    warnings.push(Warning::at("denies_nothing", &path, message));
                }
            }
        }
    }
    warnings
}

/// Returns the hooks that Codex reads and skips.
pub fn skipped_hooks(content: &Content) -> Vec<Warning> {
    let mut warnings = Vec::new();
    for class in [Class::Enforced, Class::Defaults] {
        let document = content.of(class);
        let events = document.get("hooks").and_then(|hooks| hooks.as_object());
        for (event, groups) in events.into_iter().flatten() {
            let path = step(&format!("/{}/hooks", class.as_str()), event);
            for (group, hooks) in groups.as_array().into_iter().flatten().enumerate() {
                let hooks = hooks.get("hooks").and_then(|hooks| hooks.as_array());
                for (place, hook) in hooks.into_iter().flatten().enumerate() {
                    if let Some((member, why)) = why_skipped(hook) {
                        let path = format!("{path}/{group}/hooks/{place}/{member}");
                        let message = format!("denies nothing: Codex skips {why}");
                        warnings.push(Warning::at("denies_nothing", &path, message));
                    }
                }
            }
        }
    }
    warnings
}

/// Says at which member it is seen that a hook is skipped, and what is skipped.
fn why_skipped(hook: &Value) -> Option<(&'static str, &'static str)> {
    let kind = hook.get("type").and_then(Value::as_str);
    if kind.is_some_and(|kind| ["prompt", "agent"].contains(&kind)) {
        return Some(("type", "hooks of the types prompt and agent"));
    }
    let is_async = hook.get("async") == Some(&Value::Bool(true));
    is_async.then_some(("async", "hooks that it would not wait for"))
}

/// Says why a rule denies nothing. No sentence quotes it.
fn why(probed: &Probed, rule: &str) -> Option<String> {
    let (tool, argument) = match rule.split_once('(') {
        Some((tool, argument)) => (tool, Some(argument)),
        None => (rule, None),
    };
    let is_of_server = |tool: &str| tool.starts_with("mcp__");
    if !is_of_server(tool)
        && !TOOLS.contains(&tool)
        && let Some(near) = nearest(tool, TOOLS.into_iter())
    {
        return Some(format!(
            "denies nothing unless there is a tool of this name; did you mean {near}?"
        ));
    }
    let argument = argument?;
    if tool == "WebFetch" && !argument.starts_with("domain:") {
        return Some("denies nothing: hosts are named as WebFetch(domain:…)".to_owned());
    }
    let is_same = |form: &str| {
        let other = form.split_once('(').map(|(other, _)| other);
        other.is_some_and(|other| other == tool || (is_of_server(tool) && is_of_server(other)))
    };
    if !probed.complains_of(&["permissions", "deny"], is_same) {
        return None;
    }
    let why = if is_of_server(tool) {
        "rules of tools of MCP servers have no parentheses"
    } else {
        "paths are matched by the rules Edit(…) and Read(…) alone"
    };
    Some(format!("denies nothing: {why}"))
}
