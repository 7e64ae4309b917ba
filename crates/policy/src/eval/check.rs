//! Whether a value passes a predicate; the table of `truth` for absent and missing ones.

use crate::catalogue::FieldType;
use crate::condition::{Check, CustomField, Operand};
use crate::event::{Event, Value};
use crate::set::Test;
use crate::symbols::{Symbol, Symbols};
use crate::truth::Truth;
use serde_json::Value as Json;
use std::borrow::Cow;

/// A value that is there, ready to be looked at.
enum Seen<'a> {
    Text(Cow<'a, str>),
    Set(Members<'a>),
    Number(f64),
    Boolean(bool),
    Object,
}

enum Members<'a> {
    Symbols(&'a [Symbol], &'a Symbols),
    Texts(Vec<&'a str>),
}

impl Members<'_> {
    fn any(&self, mut is: impl FnMut(&str) -> bool) -> bool {
        match self {
            Self::Symbols(set, symbols) => set.iter().any(|symbol| is(symbols.text(*symbol))),
            Self::Texts(texts) => texts.iter().any(|text| is(text)),
        }
    }

    fn len(&self) -> usize {
        match self {
            Self::Symbols(set, _) => set.len(),
            Self::Texts(texts) => texts.len(),
        }
    }
}

impl Test {
    /// Returns whether an event passes.
    pub fn judge(&self, event: &Event, symbols: &Symbols) -> Truth {
        self.judge_value(event.get(self.operand.field()), symbols)
    }

    /// Returns whether an event passes whose attribute, that of the operand, has this value.
    pub fn judge_value(&self, value: Value, symbols: &Symbols) -> Truth {
        let seen = match value {
            Value::Absent => return Truth::False,
            Value::Missing => return Truth::Unknown,
            value => match &self.operand {
                Operand::Field(_) => match value {
                    Value::Text(symbol) => Seen::Text(symbols.text(symbol).into()),
                    Value::Set(set) => Seen::Set(Members::Symbols(symbols.set(set), symbols)),
                    Value::Number(number) => Seen::Number(number),
                    Value::Boolean(is) => Seen::Boolean(is),
                    Value::Absent | Value::Missing => return Truth::Unknown,
                },
                Operand::Custom(custom) => match json_at(custom, value, symbols) {
                    None => return Truth::False,
                    Some(json) => match seen(custom.kind, json) {
                        Some(seen) => seen,
                        None => return Truth::Unknown,
                    },
                },
            },
        };
        self.check.passes(&seen).map_or(Truth::Unknown, Truth::from)
    }
}

/// Returns what stands at a custom field's path.
fn json_at<'a>(custom: &CustomField, value: Value, symbols: &'a Symbols) -> Option<&'a Json> {
    match value {
        Value::Text(symbol) => custom.path.of(symbols.document(symbol)?),
        _ => None,
    }
}

/// Returns a JSON value as one of a type.
fn seen(kind: FieldType, json: &Json) -> Option<Seen<'_>> {
    Some(match (kind, json) {
        (FieldType::Text | FieldType::Content, Json::String(text)) => Seen::Text(text.as_str().into()),
        (FieldType::Content, json) => Seen::Text(crate::digest::canonical(json).into()),
        (FieldType::Set, Json::Array(items)) => {
            let texts: Option<Vec<&str>> = items.iter().map(Json::as_str).collect();
            let mut texts = texts?;
            texts.sort_unstable();
            texts.dedup();
            Seen::Set(Members::Texts(texts))
        }
        (FieldType::Number, json) => Seen::Number(json.as_f64()?),
        (FieldType::Boolean, json) => Seen::Boolean(json.as_bool()?),
        (FieldType::Object, Json::Object(_)) => Seen::Object,
        _ => return None,
    })
}

/// A value that can be told apart from others, within one table of symbols.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) enum Key {
    Value(u8, u64),
    Text(Box<str>),
}

impl Key {
    /// Returns the same value in another table.
    pub fn carried(&self, from: &Symbols, to: &mut Symbols) -> Self {
        match self {
            Self::Value(Value::TEXT_KEY, bits) => {
                let symbol = u32::try_from(*bits).map_or(Symbol(u32::MAX), Symbol);
                Value::Text(symbol).carried(from, to).into()
            }
            key => key.clone(),
        }
    }
}

impl From<Value> for Key {
    fn from(value: Value) -> Self {
        let (kind, bits) = value.key();
        Self::Value(kind, bits)
    }
}

/// Calls `take` with each value that an operand has, its attribute having this one.
///
/// Returns false when there is a value and nobody can say it.
pub(super) fn each_value(
    operand: &Operand,
    value: Value,
    symbols: &Symbols,
    take: &mut dyn FnMut(Key),
) -> bool {
    let custom = match (operand, value) {
        (_, Value::Absent) => return true,
        (_, Value::Missing) => return false,
        (Operand::Field(_), Value::Set(set)) => {
            symbols
                .set(set)
                .iter()
                .for_each(|symbol| take(Value::Text(*symbol).into()));
            return true;
        }
        (Operand::Field(_), value) => {
            take(value.into());
            return true;
        }
        (Operand::Custom(custom), _) => custom,
    };
    let Some(json) = json_at(custom, value, symbols) else {
        return true;
    };
    match seen(custom.kind, json) {
        Some(Seen::Text(text)) => take(Key::Text(text.into())),
        Some(Seen::Number(number)) => take(Value::Number(number + 0.0).into()),
        Some(Seen::Boolean(is)) => take(Value::Boolean(is).into()),
        Some(Seen::Set(Members::Texts(texts))) => {
            for text in texts {
                take(Key::Text(text.into()));
            }
        }
        _ => return false,
    }
    true
}

impl Check {
    /// Returns whether the value passes, or nothing when it is of another type.
    fn passes(&self, value: &Seen<'_>) -> Option<bool> {
        let has = |list: &[Box<str>], text: &str| list.binary_search_by(|item| (**item).cmp(text)).is_ok();
        Some(match (self, value) {
            (Self::Exists, _) => true,
            (Self::Text { is, negated }, Seen::Text(text)) => (**is == **text) != *negated,
            (Self::TextIn { list, negated }, Seen::Text(text)) => has(list, text) != *negated,
            (Self::Contains(part), Seen::Text(text)) => text.contains(&**part),
            (Self::StartsWith(part), Seen::Text(text)) => text.starts_with(&**part),
            (Self::EndsWith(part), Seen::Text(text)) => text.ends_with(&**part),
            (Self::Matches(pattern), Seen::Text(text)) => pattern.is_match(text),
            (
                Self::Number {
                    order,
                    value,
                    negated,
                },
                Seen::Number(number),
            ) => order.holds(number, value) != *negated,
            (Self::NumberIn { list, negated }, Seen::Number(number)) => list.contains(number) != *negated,
            (Self::Boolean { is, negated }, Seen::Boolean(value)) => (is == value) != *negated,
            (Self::Set { is, negated }, Seen::Set(set)) => {
                // Both are free of repetitions.
                let is_same = set.len() == is.len() && !set.any(|text| !has(is, text));
                is_same != *negated
            }
            (Self::Member(text), Seen::Set(set)) => set.any(|member| member == &**text),
            (Self::AnyOf(list), Seen::Set(set)) => set.any(|member| has(list, member)),
            (Self::AllOf(list), Seen::Set(set)) => {
                list.iter().all(|text| set.any(|member| member == &**text))
            }
            _ => return None,
        })
    }
}
