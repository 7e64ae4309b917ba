//! Records of one payload that tell of one call are one event.
//!
//! Keeps OT-4. The tools that a model asks for stand in its answer and in the tools' own records; Claude Code tells of the tokens and of
//! the text of an answer apart; libraries of providers tell of calls of which instrumentations tell as well.

use crate::event::{Event, SpanName, document};
use provost_policy::Occasion;
use serde_json::Value as Json;
use std::collections::{HashMap, HashSet};

/// What tells one call of a model from another.
const TOKENS: [&str; 2] = ["llm.input_tokens", "llm.output_tokens"];

/// How far apart two records of one call of a model are. Units: milliseconds.
const APART_MS: u64 = 1_000;

/// Puts events of one call together, as far as they do not contradict each other: those of a model with the same call id, an answer
/// with the one of a span around it that tells the messages, and a tool that a model asks for with the record of the tool. What is told
/// in one of them is not missing.
///
/// Cost: linear; each event is compared with at most two others.
pub fn joined(events: Vec<Event>) -> Vec<Event> {
    let mut joined: Vec<Event> = Vec::with_capacity(events.len());
    let mut waiting: HashMap<Key, usize> = HashMap::new();
    let mut nests = Nests::default();
    let mut better = Better::default();
    for event in events {
        let place = joined.len();
        let keys = keys(&event);
        let mut partners = keys.iter().filter_map(|key| Some((*waiting.get(key)?, false)));
        let partner = partners
            .next()
            .into_iter()
            .chain(nests.partner(&event).map(|place| (place, true)))
            .find_map(|(place, is_nested)| {
                Some((place, one_of(&joined[place], &event, is_nested)?, is_nested))
            });
        let at = if let Some((before, one, is_nested)) = partner {
            better.note(&joined[before], &event, &one);
            if is_nested {
                nests.end(&event);
            } else {
                nests.note(&event, before);
            }
            joined[before] = one;
            before
        } else {
            nests.note(&event, place);
            joined.push(event);
            place
        };
        // What comes next is compared with the newest.
        for key in keys {
            waiting.insert(key, at);
        }
    }
    joined.retain_mut(|event| better.keeps(event));
    joined
}

/// Answers by the spans that tell of them: one span may lie in another that tells of the same call.
#[derive(Default)]
struct Nests {
    by_span: HashMap<SpanName, usize>,
    by_parent: HashMap<SpanName, usize>,
}

impl Nests {
    /// Returns the answer of the span around this one's, or of the last one inside.
    fn partner(&self, event: &Event) -> Option<usize> {
        if event.occasion != Occasion::Response {
            return None;
        }
        let around = event.parent.and_then(|parent| self.by_span.get(&parent));
        let inside = || event.span.and_then(|span| self.by_parent.get(&span));
        around.or_else(inside).copied()
    }

    fn note(&mut self, event: &Event, place: usize) {
        if event.occasion == Occasion::Response {
            self.by_span.extend(event.span.map(|span| (span, place)));
            self.by_parent.extend(event.parent.map(|parent| (parent, place)));
        }
    }

    /// One call has one span inside: another would be another call.
    fn end(&mut self, event: &Event) {
        if let Some(parent) = event.parent {
            self.by_span.remove(&parent);
        }
        if let Some(span) = event.span {
            self.by_parent.remove(&span);
        }
    }
}

/// What one record knows better than another of the same call, by the span of the other.
#[derive(Default)]
struct Better {
    /// Spans without a message, of calls whose messages are told by others.
    silent: HashSet<SpanName>,
    /// Inputs of tools that a model wrote with names, and those without.
    inputs: HashMap<SpanName, (Json, Json)>,
}

impl Better {
    fn note(&mut self, one: &Event, other: &Event, kept: &Event) {
        for (event, partner) in [(one, other), (other, one)] {
            let Some(span) = event.span else { continue };
            if event.occasion == Occasion::Response && !event.tells_messages && partner.tells_messages {
                self.silent.insert(span);
            }
            let inputs = event
                .attributes
                .get("tool.input")
                .zip(kept.attributes.get("tool.input"));
            if let Some((own, kept)) = inputs.filter(|(own, kept)| own != kept) {
                self.inputs.insert(span, (own.clone(), kept.clone()));
            }
        }
    }

    /// Says whether an event stays: a prompt without a text does not where another record of the call says what was said, and so whether
    /// there was one. The end of a call has the input of its begin.
    fn keeps(&self, event: &mut Event) -> bool {
        let Some(span) = event.span else { return true };
        if event.occasion == Occasion::PostTool
            && let Some((own, better)) = self.inputs.get(&span)
            && event.attributes.get("tool.input") == Some(own)
        {
            event.attributes.insert("tool.input".to_owned(), better.clone());
        }
        event.occasion != Occasion::Prompt
            || event.attributes.contains_key("request.prompt")
            || !self.silent.contains(&span)
    }
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

/// Returns two events of one call as one; nothing where they contradict each other or are two calls. Of two spans of which one lies
/// in the other, one says nothing of the messages: else an agent's answer would be taken for that of a model that it asked.
fn one_of(one: &Event, other: &Event, is_nested: bool) -> Option<Event> {
    let is_told = |event: &Event| TOKENS.iter().all(|name| event.attributes.contains_key(*name));
    let may_nest = one.tells_messages != other.tells_messages && one.session == other.session;
    // Without the counts of both nothing tells the call from another one inside.
    if is_nested && !(may_nest && is_told(one) && is_told(other)) {
        return None;
    }
    let is_tool = one.occasion == Occasion::PreTool;
    // Two records of tools are two calls, and so are two answers that ask for one.
    if is_tool && one.is_asked == other.is_asked {
        return None;
    }
    let is_close = one.at_ms.abs_diff(other.at_ms) <= APART_MS;
    let is_one = is_tool || is_nested || is_close || halves(one, other) || halves(other, one);
    if !is_one {
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
    kept.tells_messages |= more.tells_messages;
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
