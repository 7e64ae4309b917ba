//! Custom fields: paths into a tool's input that a content policy declares for its own conditions.
//!
//! The value is taken from `tool.input` whichever tool it is of; `toolName` and `schemaVersionId` say where the
//! author found the path and are kept as written.
//!
//! A path that leads nowhere, or to null or a blank text where there would be more of it, is an absent attribute. A value
//! of another type than declared is a missing one, and so is one below a value of another type than the path needs: an
//! amount sent as a text must not slip past a policy on amounts, nor an order whose JSON is sent as a text.
//!
//! INVARIANT BY-3: what stands at the path of a declared field and cannot be read as the declared type is missing and
//! never absent.

use crate::catalogue::FieldType;
use crate::document::{DocumentReading, Item};
use crate::read::Object;
use crate::violation::Violations;
use std::collections::BTreeMap;
use std::sync::Arc;

/// LIMIT: custom fields of a policy. Source: client contract §3.5.
const CUSTOM_LIMIT: usize = 256;
/// What a custom field can be. Source: client contract §3.5.
pub(crate) const TYPES: [&str; 6] = ["string", "string_set", "number", "boolean", "object", "content"];
/// What a custom field's name must not contain. Source: client contract §3.5.
const SECRET_WORDS: [&str; 8] = [
    "secret",
    "password",
    "passwd",
    "token",
    "credential",
    "api_key",
    "apikey",
    "private_key",
];

/// The members of a declaration.
pub(crate) const MEMBERS: [&str; 6] = [
    "field",
    "label",
    "valueType",
    "sourceType",
    "toolName",
    "schemaVersionId",
];

/// One declared field.
#[derive(Debug)]
pub(crate) struct CustomField {
    pub name: String,
    pub kind: FieldType,
    pub path: CustomPath,
}

/// Steps into a JSON document.
#[derive(Debug)]
pub(crate) struct CustomPath(Vec<Step>);

#[derive(Debug)]
enum Step {
    Member(String),
    Item(usize),
}

impl CustomPath {
    /// Returns the steps of `tool.input.name[0].name…`.
    pub fn parse(name: &str) -> Option<Self> {
        let mut steps = Vec::new();
        for part in name.strip_prefix("tool.input.")?.split('.') {
            let (word, index) = match part.split_once('[') {
                Some((word, rest)) => (word, Some(rest.strip_suffix(']')?)),
                None => (part, None),
            };
            let mut letters = word.chars();
            let starts_well = letters
                .next()
                .is_some_and(|c| c.is_ascii_alphabetic() || c == '_');
            if !starts_well || !letters.all(|c| c.is_ascii_alphanumeric() || c == '_' || c == '-') {
                return None;
            }
            steps.push(Step::Member(word.to_owned()));
            if let Some(index) = index {
                let is_number = !index.is_empty() && index.bytes().all(|b| b.is_ascii_digit());
                steps.push(Step::Item(is_number.then(|| index.parse().ok())??));
            }
        }
        Some(Self(steps))
    }

    /// Returns what stands at the path of a text that was read.
    pub fn of<'a>(&self, reading: &'a DocumentReading, text: &'a str) -> Place<'a> {
        let mut item = match reading {
            DocumentReading::None => return Place::Absent,
            DocumentReading::Object(document) => document.root(text),
            DocumentReading::List(_) | DocumentReading::Text | DocumentReading::Unreadable { .. } => {
                return Place::Missing;
            }
        };
        for step in &self.0 {
            let next = match step {
                Step::Member(name) if item.is_object() => item.member(name),
                Step::Item(at) if item.is_list() => item.at(*at),
                _ if item.is_null() || item.is_blank() => None,
                _ => return Place::Missing,
            };
            match next {
                Some(next) => item = next,
                None => return Place::Absent,
            }
        }
        if item.is_null() {
            Place::Absent
        } else {
            Place::Value(item)
        }
    }
}

/// What stands at a path.
#[derive(Debug)]
pub(crate) enum Place<'a> {
    /// Nothing.
    Absent,
    /// Nobody can say.
    Missing,
    /// This, which may be of another type than declared.
    Value(Item<'a>),
}

/// Returns the declared fields by name.
pub(crate) fn parse(definition: Object<'_>, faults: &mut Violations) -> BTreeMap<String, Arc<CustomField>> {
    let mut all = BTreeMap::new();
    let items = definition
        .list("customFields", 0..=CUSTOM_LIMIT, faults)
        .unwrap_or_default();
    for (at, item) in items.iter().enumerate() {
        let path = format!("{}/{at}", definition.at("customFields"));
        let Some(item) = Object::of(item, &path, faults) else {
            continue;
        };
        let Some(field) = one(item, faults) else {
            continue;
        };
        let place = item.at("field");
        if all.insert(field.name.clone(), Arc::new(field)).is_some() {
            faults.add(place, "is declared twice");
        }
    }
    all
}

fn one(item: Object<'_>, faults: &mut Violations) -> Option<CustomField> {
    item.only(&MEMBERS, faults);
    for name in ["label", "toolName", "schemaVersionId"] {
        item.required_text(name, 1..=4096, faults);
    }
    item.required("sourceType", faults);
    item.word("sourceType", &["known_schema"], faults);
    item.required("valueType", faults);
    let kind = item.word("valueType", &TYPES, faults).and_then(FieldType::named);
    let name = item.required_text("field", 1..=1024, faults)?;
    let lower = name.to_ascii_lowercase();
    if SECRET_WORDS.iter().any(|word| lower.contains(word)) {
        faults.add(item.at("field"), "must not name a secret");
        return None;
    }
    let Some(path) = CustomPath::parse(name) else {
        faults.add(
            item.at("field"),
            "must be a path like tool.input.name or tool.input.name[0].name",
        );
        return None;
    };
    Some(CustomField {
        name: name.to_owned(),
        kind: kind?,
        path,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_follow_the_grammar() {
        for good in ["tool.input.a", "tool.input.a[0]", "tool.input.a[10].b_c.d-e[1]"] {
            assert!(CustomPath::parse(good).is_some(), "{good}");
        }
        for bad in [
            "tool.input",
            "tool.input.",
            "tool.input.a[]",
            "tool.input.a[x]",
            "tool.input.a[0][1]",
            "tool.result.a",
            "tool.input.a..b",
            "tool.input.1",
            "tool.input.a[0]b",
            "tool.input.a[+1]",
        ] {
            assert!(CustomPath::parse(bad).is_none(), "{bad}");
        }
    }

    /// Proves BY-3.
    #[test]
    fn a_path_leads_into_a_document() {
        let text = r#"{"a": [{"b": 7, "n": null}], "t": "{\"b\":1}", "e": " ", "n": null}"#;
        let reading = crate::document::read(text);
        let at = |path: &str| match CustomPath::parse(path).unwrap().of(&reading, text) {
            Place::Absent => "absent",
            Place::Missing => "missing",
            Place::Value(item) => item.written(),
        };
        assert_eq!(at("tool.input.a[0].b"), "7");
        assert_eq!(at("tool.input.a[0]"), r#"{"b": 7, "n": null}"#);
        for nowhere in [
            "a[0].n",
            "a[1].b",
            "b",
            "n.b",
            "n[0]",
            "e.b",
            "e[0]",
            "a[0].n.more",
        ] {
            assert_eq!(at(&format!("tool.input.{nowhere}")), "absent", "{nowhere}");
        }
        // Something stands where the path would go on, and it is not what the path needs.
        for blocked in ["t.b", "t[0]", "a.b", "a[0].b.c", "a[0].b[0]"] {
            assert_eq!(at(&format!("tool.input.{blocked}")), "missing", "{blocked}");
        }
    }

    /// Proves BY-3.
    #[test]
    fn a_path_into_what_is_no_object_is_missing() {
        let path = CustomPath::parse("tool.input.a").unwrap();
        for text in ["x", "[{\"a\":1}]", "{\"a\":1,}", "{\"a\":1,\"a\":1}", "null"] {
            let reading = crate::document::read(text);
            assert!(matches!(path.of(&reading, text), Place::Missing), "{text}");
        }
        for text in ["", " ", "{}"] {
            let reading = crate::document::read(text);
            assert!(matches!(path.of(&reading, text), Place::Absent), "{text}");
        }
    }
}
