//! Records of one payload that tell of one call are one event.
//!
//! Keeps OT-4. The tools that a model asks for stand in its answer and in the tools' own records; Claude Code tells of the tokens and of
//! the text of an answer apart; libraries of providers tell of calls of which instrumentations tell as well.

use crate::event::{Event, document};
use provost_policy::Occasion;
use serde_json::Value as Json;
use std::collections::HashMap;

/// How far apart two records of one call of a model are. Units: milliseconds.
const APART_MS: u64 = 1_000;

/// Puts events of one call together, as far as they do not contradict each other: those of a model with the same call id, and a tool
/// that a model asks for with the record of the tool. What is told in one of them is not missing.
///
/// Cost: linear; each event is compared with one other.
pub fn joined(events: Vec<Event>) -> Vec<Event> {
    let mut joined: Vec<Event> = Vec::with_capacity(events.len());
    let mut waiting: HashMap<Key, usize> = HashMap::new();
    for event in events {
        let place = joined.len();
        let keys = keys(&event);
        let partner = keys.iter().find_map(|key| {
            let place = *waiting.get(key)?;
            one_of(&joined[place], &event).map(|one| (place, one))
        });
        let at = if let Some((before, one)) = partner {
            joined[before] = one;
            before
        } else {
            joined.push(event);
            place
        };
        // What comes next is compared with the newest.
        for key in keys {
            waiting.insert(key, at);
        }
    }
    joined
}

/// By what an event is found: its call, and for a tool also what is called with what, for whoever tells no call's id.
#[derive(PartialEq, Eq, Hash)]
enum Key {
    Call(Occasion, String, String),
    Tool(String, String, String),
}

fn keys(event: &Event) -> Vec<Key> {
    let Some(session) = &event.session else {
        return Vec::new();
    };
    if !matches!(
        event.occasion,
        Occasion::PreTool | Occasion::Response | Occasion::Prompt
    ) {
        return Vec::new();
    }
    let call = event.call_id.iter();
    let mut keys: Vec<Key> = call
        .map(|call| Key::Call(event.occasion, session.clone(), call.clone()))
        .collect();
    let text = |name: &str| {
        event
            .attributes
            .get(name)
            .and_then(Json::as_str)
            .map(str::to_owned)
    };
    if let (Occasion::PreTool, Some(tool), Some(input)) =
        (event.occasion, text("tool.id"), text("tool.input"))
    {
        keys.push(Key::Tool(session.clone(), tool, input));
    }
    keys
}

/// Returns two events of one call as one; nothing where they contradict each other or are two calls.
fn one_of(one: &Event, other: &Event) -> Option<Event> {
    let is_tool = one.occasion == Occasion::PreTool;
    // Two records of tools are two calls, and so are two answers that ask for one.
    if is_tool && one.is_asked == other.is_asked {
        return None;
    }
    if !is_tool && one.at_ms.abs_diff(other.at_ms) > APART_MS && !(halves(one, other) || halves(other, one)) {
        return None;
    }
    // Of one call two names are no contradiction where one has none.
    let (one_call, other_call) = (&one.call_id, &other.call_id);
    if one_call.is_some() && other_call.is_some() && one_call != other_call {
        return None;
    }
    // The tool's own record says when it began.
    let (own, more) = if one.is_asked { (other, one) } else { (one, other) };
    let mut kept = own.clone();
    if is_tool && is_only_argument(own, more) {
        kept.attributes.remove("tool.input");
    }
    let agree = more
        .attributes
        .iter()
        .all(|(name, value)| kept.attributes.get(name).is_none_or(|own| own == value));
    if !agree {
        return None;
    }
    kept.is_asked = false;
    kept.call_id = kept.call_id.or_else(|| more.call_id.clone());
    for (name, value) in &more.attributes {
        kept.attributes
            .entry(name.clone())
            .or_insert_with(|| value.clone());
    }
    kept.missing.extend(&more.missing);
    kept.missing.sort_unstable();
    kept.missing.dedup();
    kept.missing.retain(|name| !kept.attributes.contains_key(*name));
    Some(kept)
}

/// Says whether a tool's own record has as its input the one argument that a model wrote, without its name: so `LangChain` hands it on.
/// Any other input of its own is what the tool was called with, whatever the model asked for.
fn is_only_argument(own: &Event, asked: &Event) -> bool {
    let input = |event: &'_ Event| {
        event
            .attributes
            .get("tool.input")
            .and_then(Json::as_str)
            .map(str::to_owned)
    };
    let (Some(own), Some(asked)) = (input(own), input(asked).and_then(|text| document(&text))) else {
        return false;
    };
    let arguments = asked.as_object().filter(|arguments| arguments.len() == 1);
    arguments.is_some_and(|arguments| arguments.values().all(|argument| *argument == own))
}

/// Says whether one record of an answer tells of its tokens alone and the other of its text alone.
fn halves(tokens: &Event, text: &Event) -> bool {
    let lacks = |event: &Event, names: &[&str]| names.iter().all(|name| event.missing.contains(name));
    lacks(tokens, &["response.content"]) && lacks(text, &["llm.input_tokens", "llm.output_tokens"])
}
