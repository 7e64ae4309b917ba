//! Attributes that follow from a tool's input (`tool.input.command`, …).
//!
//! ```text
//!   tool.input                   a member of it                     the attribute
//!   absent, empty, blank                                            absent
//!   missing                                                         missing
//!   exactly one object           none, or null                      absent
//!                                a text, a number, a truth value    its text
//!                                a list of texts (command alone)    a line: the texts with blanks between, and each
//!                                anything else                      missing
//!   text, a list, unreadable                                        missing
//! ```
//!
//! An attribute that the caller gave beside the input stands: it is the caller's reading of what it called. It does not
//! where nothing of it can be seen, nor where the input names a member twice, nor where it is but the former reading of a
//! member that is now missing.
//! They are followed again whenever an event is judged, so that an event that was recorded by a former version means
//! what its input says today.
//!
//! INVARIANT BY-2: what a tool's input says and cannot be read is missing and never absent, live, in rows, in
//! columns, and of what was recorded before.

use crate::catalogue::{Field, FieldType};
use crate::digest::{canonical, exact_text};
use crate::document::{self, DocumentReading, Item};
use crate::event::Value;
use crate::symbols::{Symbol, Symbols};
use serde_json::Value as Json;

/// What an attribute is by the tool's input.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Follow {
    value: Value,
    instead_of: InsteadOf,
}

/// Which values beside the input give way to what follows from it.
#[derive(Clone, Copy, Debug, PartialEq)]
enum InsteadOf {
    /// None.
    Nothing,
    /// This one, which is only the form in which it was kept.
    Text(Symbol),
    /// Every one: the input says several things at once.
    Anything,
}

/// What stands for an attribute in an input.
#[derive(Debug)]
pub(crate) enum PathTarget {
    /// Nothing.
    Absent,
    /// Something that cannot be read; with the text as which a former version read it.
    Missing(Option<String>),
    /// A text.
    Text(String),
    /// A list of texts.
    Line(Vec<String>),
}

impl Follow {
    /// Nothing follows.
    pub const ABSENT: Self = Self {
        value: Value::Absent,
        instead_of: InsteadOf::Nothing,
    };
    /// There is an input, and nobody can say which.
    pub const MISSING: Self = Self {
        value: Value::Missing,
        instead_of: InsteadOf::Nothing,
    };

    /// Returns the value of an attribute that was given, or kept, beside the input.
    #[must_use]
    pub fn beside(self, given: Value) -> Value {
        match (given, self.instead_of) {
            (Value::Absent, _) | (Value::Text(_), InsteadOf::Anything) => self.value,
            (Value::Text(symbol), InsteadOf::Text(kept)) if symbol == kept => self.value,
            _ => given,
        }
    }
}

/// Returns what these attributes are by the tool's input, in their order.
///
/// Cost: one walk over the input's text.
pub fn follow(input: Value, fields: &[Field], symbols: &mut Symbols) -> Vec<Follow> {
    let all = |one: Follow| vec![one; fields.len()];
    let Value::Text(symbol) = input else {
        return all(match input {
            Value::Absent => Follow::ABSENT,
            _ => Follow::MISSING,
        });
    };
    let text = symbols.text(symbol);
    match document::read(text) {
        DocumentReading::None => all(Follow::ABSENT),
        DocumentReading::List(_) | DocumentReading::Text | DocumentReading::Unreadable { repeats: false } => {
            all(Follow::MISSING)
        }
        DocumentReading::Unreadable { repeats: true } => all(Follow {
            value: Value::Missing,
            instead_of: InsteadOf::Anything,
        }),
        DocumentReading::Object(document) => {
            let root = document.root(text);
            let found: Vec<PathTarget> = fields.iter().map(|field| found(root, *field)).collect();
            found.into_iter().map(|found| kept(found, symbols)).collect()
        }
    }
}

/// Returns what stands for an attribute in an input that is an object.
pub(crate) fn found(root: Item<'_>, field: Field) -> PathTarget {
    let member = field.member_of_input().and_then(|name| root.member(name));
    let Some(item) = member.filter(|item| !item.is_null()) else {
        return PathTarget::Absent;
    };
    let texts = || {
        item.items()
            .map(|one| one.text().map(String::from))
            .collect::<Option<Vec<String>>>()
    };
    let found = match field.kind() {
        _ if item.is_text() => item.text().map(|text| PathTarget::Text(text.into_owned())),
        FieldType::Content => item.json().map(|json| PathTarget::Text(exact_text(&json))),
        // Of any other attribute several texts are several values, of which a negative operator would see one.
        _ if field == Field::TOOL_COMMAND && item.is_list() => texts().map(PathTarget::Line),
        _ if item.is_object() || item.is_list() => None,
        _ => item.json().map(|json| PathTarget::Text(exact_text(&json))),
    };
    found.unwrap_or_else(|| PathTarget::Missing(former(item)))
}

/// Returns how a former version read what is now missing; nothing where it did not either.
fn former(item: Item<'_>) -> Option<String> {
    // Nothing is lost by `ok`: what that parser refuses was kept as absent, which gives way to missing anyway.
    let json: Json = serde_json::from_str(item.written()).ok()?;
    let texts: Option<Vec<&str>> = json
        .as_array()
        .and_then(|items| items.iter().map(Json::as_str).collect());
    Some(texts.map_or_else(|| canonical(&json), |texts| texts.join(" ")))
}

fn kept(found: PathTarget, symbols: &mut Symbols) -> Follow {
    match found {
        PathTarget::Absent => Follow::ABSENT,
        PathTarget::Missing(former) => Follow {
            value: Value::Missing,
            instead_of: former.map_or(InsteadOf::Nothing, |text| InsteadOf::Text(symbols.intern(&text))),
        },
        PathTarget::Text(text) => Follow {
            value: Value::Text(symbols.intern(&text)),
            instead_of: InsteadOf::Nothing,
        },
        PathTarget::Line(words) => {
            let whole = symbols.intern(&words.join(" "));
            let words = symbols.intern_set(words.iter().map(String::as_str));
            Follow {
                value: Value::Line { whole, words },
                instead_of: InsteadOf::Text(whole),
            }
        }
    }
}
