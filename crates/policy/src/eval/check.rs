//! Whether a value passes a predicate; the table of `truth` for absent and missing ones.
//!
//! Keeps BY-4.

use super::name::{self, NameChoice};
use crate::catalogue::{Field, FieldType};
use crate::condition::{Check, CustomField, Operand, Place};
use crate::digest::exact_text;
use crate::document::{self, DocumentReading, Item, Meaning};
use crate::event::{Event, Value};
use crate::set::Test;
use crate::symbols::{Symbol, Symbols};
use crate::truth::Truth;
use std::borrow::Cow;

/// A value that is there, ready to be looked at.
enum CheckedValue<'a> {
    Text(Cow<'a, str>),
    /// A document, or a text of an attribute that can be one.
    Content(Content<'a>),
    /// The whole of a line, and its words.
    Line(&'a str, Members<'a>),
    Set(Members<'a>),
    Number(f64),
    Boolean(bool),
    Object,
}

/// A text that may be a document, as it stands and as what it says.
struct Content<'a> {
    text: &'a str,
    reading: &'a DocumentReading,
    meaning: Option<&'a Meaning>,
    /// Free text is expected: what is no document is a text like any other.
    is_free: bool,
}

enum Members<'a> {
    Symbols(&'a [Symbol], &'a Symbols),
    Texts(Vec<Cow<'a, str>>),
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
    /// Returns whether an event passes, with these records chosen where a name means several.
    pub fn judge<'a>(&self, event: &Event, symbols: &'a Symbols, chosen: Option<&NameChoice<'a>>) -> Truth {
        let field = self.operand.field();
        match &self.keyed {
            Some(keyed) => name::judge(keyed, field, event.get(field), symbols, chosen),
            None => self.judge_value(event.get(field), symbols),
        }
    }

    /// Returns whether an event passes whose attribute, that of the operand, has this value.
    pub fn judge_value(&self, value: Value, symbols: &Symbols) -> Truth {
        if let Some(keyed) = &self.keyed {
            return name::judge(keyed, self.operand.field(), value, symbols, None);
        }
        let seen = match value {
            Value::Absent => return Truth::False,
            Value::Missing => return Truth::Unknown,
            value => match &self.operand {
                Operand::Field(field) => match value {
                    Value::Text(symbol) if field.is_document() => CheckedValue::Content(Content {
                        text: symbols.text(symbol),
                        reading: symbols.reading(symbol),
                        meaning: symbols.meaning(symbol),
                        is_free: field.kind() == FieldType::Text,
                    }),
                    Value::Text(symbol) => CheckedValue::Text(symbols.text(symbol).into()),
                    Value::Line { whole, words } => {
                        let words = Members::Symbols(symbols.set(words), symbols);
                        CheckedValue::Line(symbols.text(whole), words)
                    }
                    Value::Set(set) => CheckedValue::Set(Members::Symbols(symbols.set(set), symbols)),
                    Value::Number(number) => CheckedValue::Number(number),
                    Value::Boolean(is) => CheckedValue::Boolean(is),
                    Value::Absent | Value::Missing => return Truth::Unknown,
                },
                Operand::Custom(custom) => match at(custom, value, symbols) {
                    Place::Absent => return Truth::False,
                    Place::Missing => return Truth::Unknown,
                    Place::Value(item) => match seen(custom.kind, item) {
                        Some(CheckedValue::Text(text)) if custom.kind == FieldType::Content => {
                            return self.check.passes_text_of_content(&text);
                        }
                        Some(seen) => seen,
                        None => return Truth::Unknown,
                    },
                },
            },
        };
        match &seen {
            CheckedValue::Content(content) => self.check.passes_content(content),
            seen => self.check.passes(seen).map_or(Truth::Unknown, Truth::from),
        }
    }
}

/// Returns what stands at a custom field's path.
fn at<'a>(custom: &CustomField, value: Value, symbols: &'a Symbols) -> Place<'a> {
    match value {
        Value::Text(symbol) => custom.path.of(symbols.reading(symbol), symbols.text(symbol)),
        Value::Absent => Place::Absent,
        // An input is a text.
        _ => Place::Missing,
    }
}

/// Returns a value of a document as one of a type; nothing where it is none of it, or cannot be represented.
fn seen(kind: FieldType, item: Item<'_>) -> Option<CheckedValue<'_>> {
    Some(match kind {
        FieldType::Text => CheckedValue::Text(item.text()?),
        FieldType::Content if item.is_text() => CheckedValue::Text(item.text()?),
        FieldType::Content => CheckedValue::Text(exact_text(&item.json()?).into()),
        FieldType::Set if item.is_list() => {
            let texts: Option<Vec<Cow<'_, str>>> = item.items().map(Item::text).collect();
            let mut texts = texts?;
            texts.sort_unstable();
            texts.dedup();
            CheckedValue::Set(Members::Texts(texts))
        }
        FieldType::Number => CheckedValue::Number(item.number()?),
        FieldType::Boolean => CheckedValue::Boolean(item.boolean()?),
        FieldType::Object if item.is_object() => CheckedValue::Object,
        FieldType::Set | FieldType::Object => return None,
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
    if let Operand::Field(field) = operand
        && field.is_name()
    {
        return each_name(*field, value, symbols, take);
    }
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
        (Operand::Field(_), Value::Line { whole, .. }) => {
            take(Value::Text(whole).into());
            return true;
        }
        (Operand::Field(field), Value::Text(symbol)) if field.is_document() => {
            // Two spellings of one document are one value.
            let meaning = symbols.meaning(symbol);
            take(match meaning.and_then(|meaning| meaning.canonical.as_deref()) {
                Some(canonical) => Key::Text(canonical.into()),
                None => value.into(),
            });
            return true;
        }
        (Operand::Field(_), value) => {
            take(value.into());
            return true;
        }
        (Operand::Custom(custom), _) => custom,
    };
    let item = match at(custom, value, symbols) {
        Place::Absent => return true,
        Place::Missing => return false,
        Place::Value(item) => item,
    };
    match seen(custom.kind, item) {
        Some(CheckedValue::Text(text)) => take(Key::Text(text.into())),
        Some(CheckedValue::Number(number)) => take(Value::Number(number + 0.0).into()),
        Some(CheckedValue::Boolean(is)) => take(Value::Boolean(is).into()),
        Some(CheckedValue::Set(Members::Texts(texts))) => {
            for text in texts {
                take(Key::Text(text.into_owned().into()));
            }
        }
        _ => return false,
    }
    true
}

/// Names are told apart by the records that they mean, else by their match keys.
fn each_name(field: Field, value: Value, symbols: &Symbols, take: &mut dyn FnMut(Key)) -> bool {
    let single;
    let names = match value {
        Value::Text(symbol) => {
            single = [symbol];
            &single[..]
        }
        Value::Set(set) => symbols.set(set),
        value => return value == Value::Absent,
    };
    let mut are_known = true;
    for symbol in names {
        let is_there = symbols.state(field, Value::Text(*symbol)) != Value::Missing;
        match symbols.meant(field, *symbol) {
            _ if !is_there => are_known = false,
            [] => take(Key::Text(symbols.name_key(field, *symbol).into())),
            // It may not be there at all.
            [one] if one.is_claim() => are_known = false,
            [one] => take(Key::Text((*one.id.key).into())),
            // It may be one that was seen already.
            _ => are_known = false,
        }
    }
    are_known
}

impl Check {
    /// Returns whether the value passes, or nothing when it is of another type.
    fn passes(&self, value: &CheckedValue<'_>) -> Option<bool> {
        let has = |list: &[Box<str>], text: &str| list.binary_search_by(|item| (**item).cmp(text)).is_ok();
        if let CheckedValue::Line(whole, words) = value {
            return self.passes_line(whole, words);
        }
        Some(match (self, value) {
            (Self::Exists, _) => true,
            (Self::Text { is, negated }, CheckedValue::Text(text)) => (**is == **text) != *negated,
            (Self::TextIn { list, negated }, CheckedValue::Text(text)) => has(list, text) != *negated,
            (Self::Contains(part), CheckedValue::Text(text)) => text.contains(&**part),
            (Self::StartsWith(part), CheckedValue::Text(text)) => text.starts_with(&**part),
            (Self::EndsWith(part), CheckedValue::Text(text)) => text.ends_with(&**part),
            (Self::Matches(pattern), CheckedValue::Text(text)) => pattern.is_match(text),
            (
                Self::Number {
                    order,
                    value,
                    negated,
                },
                CheckedValue::Number(number),
            ) => order.holds(number, value) != *negated,
            (Self::NumberIn { list, negated }, CheckedValue::Number(number)) => {
                list.contains(number) != *negated
            }
            (Self::Boolean { is, negated }, CheckedValue::Boolean(value)) => (is == value) != *negated,
            (Self::Set { is, negated }, CheckedValue::Set(set)) => {
                // Both are free of repetitions.
                let is_same = set.len() == is.len() && !set.any(|text| !has(is, text));
                is_same != *negated
            }
            (Self::Member(text), CheckedValue::Set(set)) => set.any(|member| member == &**text),
            (Self::AnyOf(list), CheckedValue::Set(set)) => set.any(|member| has(list, member)),
            (Self::AllOf(list), CheckedValue::Set(set)) => {
                list.iter().all(|text| set.any(|member| member == &**text))
            }
            // What is asked of names alone is asked elsewhere.
            _ => return None,
        })
    }

    /// As `passes_content`, of a text that stands in no table of symbols.
    fn passes_text_of_content(&self, text: &str) -> Truth {
        let reading = document::read(text);
        self.passes_content(&Content {
            meaning: reading.meaning(text).as_ref(),
            reading: &reading,
            text,
            is_free: false,
        })
    }

    /// Returns whether a text that may be a document passes, as what it says (BY-4).
    ///
    /// ```text
    ///   as it stands, by its canonical text, or in one of its texts as it reads without escapes    true
    ///   of one of its texts only if that stood alone (`^rm`, starts_with), or in an unread part      unknown
    /// ```
    ///
    /// What holds of a part taken for the whole is unknown and not true, because the negation of such a condition must not
    /// be met by a member that somebody adds.
    fn passes_content(&self, content: &Content<'_>) -> Truth {
        let Content {
            text,
            reading,
            meaning,
            is_free,
        } = *content;
        let canonical = meaning.and_then(|meaning| meaning.canonical.as_deref());
        // Whether something may stand in the document that nobody can read.
        let is_unread = match reading {
            DocumentReading::None | DocumentReading::Text => false,
            DocumentReading::Object(_) | DocumentReading::List(_) => canonical.is_none(),
            DocumentReading::Unreadable { .. } => !is_free,
        };
        let doubt = |is: bool| if is { Truth::Unknown } else { Truth::False };
        let negation = |truth: Truth, negated: bool| if negated { !truth } else { truth };
        let is = |wanted: &str| wanted == canonical.unwrap_or(text);
        // Only a text that begins like the document that is asked for may be meant for it.
        let bracket = |text: &str| {
            let mut letters = text.chars().filter(|c| !c.is_whitespace() && *c != '\u{feff}');
            letters.next().filter(|c| matches!(c, '{' | '['))
        };
        let may_be =
            |wanted: &str| is_unread && bracket(wanted).is_some() && bracket(wanted) == bracket(text);
        match self {
            Self::Exists => return Truth::True,
            Self::Text { is: wanted, negated } => {
                let truth = if is(wanted) {
                    Truth::True
                } else {
                    doubt(may_be(wanted))
                };
                return negation(truth, *negated);
            }
            Self::TextIn { list, negated } => {
                let truth = if list.iter().any(|wanted| is(wanted)) {
                    Truth::True
                } else {
                    doubt(list.iter().any(|wanted| may_be(wanted)))
                };
                return negation(truth, *negated);
            }
            Self::Contains(_) | Self::StartsWith(_) | Self::EndsWith(_) | Self::Matches(_) => {}
            _ => return Truth::Unknown,
        }
        let holds = |text: &str| match self {
            Self::Contains(part) => text.contains(&**part),
            Self::StartsWith(part) => text.starts_with(&**part),
            Self::EndsWith(part) => text.ends_with(&**part),
            Self::Matches(pattern) => pattern.is_match(text),
            _ => false,
        };
        // What does not ask for an end of the text holds of a part only where it holds of the whole, which has the part in it.
        let asks_for_ends = match self {
            Self::StartsWith(_) | Self::EndsWith(_) => true,
            Self::Matches(pattern) => ["^", "$", "\\A", "\\z"]
                .into_iter()
                .any(|end| pattern.as_str().contains(end)),
            _ => false,
        };
        // In quotes nothing begins or ends with a text.
        let escaped = meaning.filter(|_| !asks_for_ends);
        let escaped = escaped.map_or(&[][..], |meaning| &meaning.escaped);
        if holds(text) || canonical.is_some_and(holds) || escaped.iter().any(|text| holds(text)) {
            return Truth::True;
        }
        match reading {
            DocumentReading::Object(document) | DocumentReading::List(document) => {
                doubt(is_unread || asks_for_ends && document.any_part(text, holds))
            }
            DocumentReading::Unreadable { .. } if is_unread => doubt(match self {
                // Without an escape, each part of it stands in it as it is.
                _ if text.contains('\\') => true,
                Self::StartsWith(part) | Self::EndsWith(part) => text.contains(&**part),
                _ => asks_for_ends,
            }),
            _ => Truth::False,
        }
    }

    /// Returns whether a line passes: the whole of it or one of its words; a negative operator denies just that.
    fn passes_line(&self, whole: &str, words: &Members<'_>) -> Option<bool> {
        let negated = matches!(
            self,
            Self::Text { negated: true, .. } | Self::TextIn { negated: true, .. }
        );
        let mut is_typed = true;
        let mut is = |text: &str| {
            let passes = self.passes(&CheckedValue::Text(text.into()));
            is_typed &= passes.is_some();
            passes.is_some_and(|passes| passes != negated)
        };
        let any = is(whole) || words.any(is);
        is_typed.then_some(any != negated)
    }
}
