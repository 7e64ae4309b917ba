//! A predicate on one attribute: `{field, op, value?}`, with the rule of each operator and type.

use super::pattern::in_any_case;
use super::{Operand, Order, pattern};
use crate::catalogue::{Field, FieldType};
use crate::digest::{canonical, exact_text, inexact_number};
use crate::document::exact_document;
use crate::matching;
use crate::read::Object;
use crate::register::name_key;
use crate::violation::Violations;
use regex::Regex;
use serde_json::Value;

/// A predicate that keeps every rule.
#[derive(Clone, Debug)]
pub(crate) struct Predicate {
    pub operand: Operand,
    pub check: Check,
    /// The same for two predicates that mean the same.
    pub key: String,
}

/// What an operator asks of a value that is there. Lists are sorted and free of repetitions.
#[derive(Clone, Debug)]
pub(crate) enum Check {
    Exists,
    Text {
        is: Box<str>,
        negated: bool,
    },
    TextIn {
        list: Vec<Box<str>>,
        negated: bool,
    },
    Contains(Box<str>),
    StartsWith(Box<str>),
    EndsWith(Box<str>),
    Matches(Regex),
    /// A pattern on names, in any case.
    MatchesAnyCase(Regex),
    Number {
        order: Order,
        value: f64,
        negated: bool,
    },
    NumberIn {
        list: Vec<f64>,
        negated: bool,
    },
    Boolean {
        is: bool,
        negated: bool,
    },
    Set {
        is: Vec<Box<str>>,
        negated: bool,
    },
    Member(Box<str>),
    AnyOf(Vec<Box<str>>),
    AllOf(Vec<Box<str>>),
    /// A part of a name of which nothing can be seen: nobody can say.
    Unseen,
}

impl Check {
    /// Returns the same question with each text that is a document spelt as documents are compared.
    pub fn of_documents(self) -> Self {
        let canonical = |text: Box<str>| match exact_document(&text) {
            Some(document) => exact_text(&document).into(),
            None => text,
        };
        match self {
            Self::Text { is, negated } => Self::Text {
                is: canonical(is),
                negated,
            },
            Self::TextIn { list, negated } => {
                let mut list: Vec<Box<str>> = list.into_iter().map(canonical).collect();
                list.sort_unstable();
                list.dedup();
                Self::TextIn { list, negated }
            }
            check => check,
        }
    }

    /// Returns what the operator asks of the match keys of an attribute's names.
    pub fn keyed(&self, field: Field) -> Self {
        let key = |text: &str| -> Box<str> { name_key(field, text).into() };
        let keys = |list: &[Box<str>]| {
            let mut keys: Vec<Box<str>> = list.iter().map(|text| key(text)).collect();
            keys.sort_unstable();
            keys.dedup();
            keys
        };
        // A part keeps the blanks that stand inside of a name.
        let part = |text: &str, trim: fn(&str) -> &str, check: fn(Box<str>) -> Self| {
            let part = matching::part(text, trim);
            if part.is_empty() && !text.is_empty() {
                return Self::Unseen;
            }
            check(part.into())
        };
        match self {
            Self::Text { is, negated } => Self::Text {
                is: key(is),
                negated: *negated,
            },
            Self::TextIn { list, negated } => Self::TextIn {
                list: keys(list),
                negated: *negated,
            },
            Self::Contains(text) => part(text, |text| text, Self::Contains),
            Self::StartsWith(text) => part(text, str::trim_start, Self::StartsWith),
            // A key of a domain has no final dot.
            Self::EndsWith(text) if field.is_domain() && text.len() > 1 => {
                let text = text.trim_end();
                part(
                    text.strip_suffix('.').unwrap_or(text),
                    str::trim_end,
                    Self::EndsWith,
                )
            }
            Self::EndsWith(text) => part(text, str::trim_end, Self::EndsWith),
            Self::Set { is, negated } => Self::Set {
                is: keys(is),
                negated: *negated,
            },
            // One that is too large in any case is asked of nobody, and no event passes it by.
            Self::Matches(pattern) => in_any_case(pattern).map_or(Self::Unseen, Self::MatchesAnyCase),
            Self::Member(text) => Self::Member(key(text)),
            Self::AnyOf(list) => Self::AnyOf(keys(list)),
            Self::AllOf(list) => Self::AllOf(keys(list)),
            check => check.clone(),
        }
    }
}

/// Returns the predicate on `operand` that an object spells.
pub(crate) fn parse(node: Object<'_>, operand: Operand, faults: &mut Violations) -> Option<Predicate> {
    let operators = operand.kind().operators();
    node.required("op", faults)?;
    let op = node.word("op", operators, faults)?;
    if op == "exists" {
        if node.has("value") {
            faults.add(node.at("value"), "must be absent with exists");
        }
        return Some(predicate(op, operand, Check::Exists, &Value::Null));
    }
    let value = node.required("value", faults)?;
    let before = faults.found();
    let check = match operand.kind() {
        FieldType::Text => on_text(node, op, value, &operand, faults),
        FieldType::Content => on_content(node, op, value, faults),
        FieldType::Number => on_number(node, op, value, faults),
        FieldType::Boolean => value.as_bool().map(|is| Check::Boolean {
            is,
            negated: op == "neq",
        }),
        FieldType::Set => on_set(node, op, value, faults),
        FieldType::Object => None,
    };
    if check.is_none() && faults.found() == before {
        faults.add(node.at("value"), "must be of the field's type");
    }
    Some(predicate(op, operand, check?, value))
}

fn predicate(op: &str, operand: Operand, check: Check, value: &Value) -> Predicate {
    let (name, kind) = match &operand {
        Operand::Field(field) => (field.name(), field.kind()),
        Operand::Custom(custom) => (custom.name.as_str(), custom.kind),
    };
    let is_custom = matches!(operand, Operand::Custom(_));
    let key = format!("{name} {is_custom} {kind:?} {op} {}", canonical(value));
    Predicate { operand, check, key }
}

fn on_text(
    node: Object<'_>,
    op: &str,
    value: &Value,
    operand: &Operand,
    faults: &mut Violations,
) -> Option<Check> {
    let path = node.at("value");
    match op {
        "eq" | "neq" => {
            let is = text(node, value, faults)?;
            closed(is, &path, operand, faults)?;
            Some(Check::Text {
                is: is.into(),
                negated: op == "neq",
            })
        }
        "in" | "not_in" => {
            let list = texts(node, value, 1, faults)?;
            for (at, item) in value.as_array().into_iter().flatten().enumerate() {
                closed(item.as_str()?, &format!("{path}/{at}"), operand, faults)?;
            }
            Some(Check::TextIn {
                list,
                negated: op == "not_in",
            })
        }
        _ => on_content(node, op, value, faults),
    }
}

/// Refuses a text that a closed field never has.
fn closed(text: &str, path: &str, operand: &Operand, faults: &mut Violations) -> Option<()> {
    let Operand::Field(field) = operand else {
        return Some(());
    };
    let words = field.words();
    if words.is_empty() || words.contains(&text) {
        return Some(());
    }
    faults.add(path, format!("must be one of {}", words.join(", ")));
    None
}

fn on_content(node: Object<'_>, op: &str, value: &Value, faults: &mut Violations) -> Option<Check> {
    let is = text(node, value, faults)?;
    Some(match op {
        "eq" | "neq" => Check::Text {
            is: is.into(),
            negated: op == "neq",
        },
        "contains" => Check::Contains(is.into()),
        "starts_with" => Check::StartsWith(is.into()),
        "ends_with" => Check::EndsWith(is.into()),
        _ => match pattern(is) {
            Ok(pattern) => Check::Matches(pattern),
            Err(why) => {
                faults.add(node.at("value"), why);
                return None;
            }
        },
    })
}

fn on_number(node: Object<'_>, op: &str, value: &Value, faults: &mut Violations) -> Option<Check> {
    let path = node.at("value");
    if matches!(op, "in" | "not_in") {
        let items = crate::read::list(value, &path, &(1..=usize::MAX), faults)?;
        let mut list = Vec::new();
        for (at, item) in items.iter().enumerate() {
            list.push(number(item, &format!("{path}/{at}"), faults)?);
        }
        list.sort_by(f64::total_cmp);
        list.dedup();
        return Some(Check::NumberIn {
            list,
            negated: op == "not_in",
        });
    }
    let value = number(value, &path, faults)?;
    let order = Order::named(op).unwrap_or(Order::Equal);
    Some(Check::Number {
        order,
        value,
        negated: op == "neq",
    })
}

fn number(value: &Value, path: &str, faults: &mut Violations) -> Option<f64> {
    let number = value.as_f64();
    if number.is_none() {
        let message = match inexact_number(value) {
            Some(_) => {
                "must be a number that 64-bit floating point has: rounded, it would be compared with events as another one"
            }
            None => "must be a number",
        };
        faults.add(path, message);
    }
    // Adding zero turns minus zero into zero.
    number.map(|n| n + 0.0)
}

fn on_set(node: Object<'_>, op: &str, value: &Value, faults: &mut Violations) -> Option<Check> {
    Some(match op {
        "contains" => Check::Member(text(node, value, faults)?.into()),
        "contains_any" => Check::AnyOf(texts(node, value, 1, faults)?),
        "contains_all" => Check::AllOf(texts(node, value, 1, faults)?),
        _ => Check::Set {
            is: texts(node, value, 0, faults)?,
            negated: op == "neq",
        },
    })
}

fn text<'a>(node: Object<'a>, value: &'a Value, faults: &mut Violations) -> Option<&'a str> {
    crate::read::text(value, &node.at("value"), &(0..=usize::MAX), faults)
}

fn texts(node: Object<'_>, value: &Value, least: usize, faults: &mut Violations) -> Option<Vec<Box<str>>> {
    let path = node.at("value");
    let items = crate::read::list(value, &path, &(least..=usize::MAX), faults)?;
    let mut list: Vec<Box<str>> = Vec::new();
    for (at, item) in items.iter().enumerate() {
        list.push(crate::read::text(item, &format!("{path}/{at}"), &(0..=usize::MAX), faults)?.into());
    }
    list.sort_unstable();
    list.dedup();
    Some(list)
}
