//! Custom fields: paths into a tool's input that a content policy declares for its own conditions.
//!
//! The value is taken from `tool.input` whichever tool it is of; `toolName` and `schemaVersionId` say where the
//! author found the path and are kept as written.
//!
//! A path that leads nowhere, or to null, is an absent attribute. A value of another type than declared is a
//! missing one: an amount sent as a text must not slip past a policy on amounts.

use crate::catalogue::FieldType;
use crate::read::Object;
use crate::violation::Violations;
use serde_json::Value;
use std::collections::BTreeMap;
use std::sync::Arc;

/// LIMIT: custom fields of a policy. Source: client contract §3.5.
const CUSTOM_LIMIT: usize = 256;
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

    /// Returns what stands at the path.
    pub fn of<'a>(&self, document: &'a Value) -> Option<&'a Value> {
        let found = self.0.iter().try_fold(document, |value, step| match step {
            Step::Member(name) => value.as_object()?.get(name),
            Step::Item(at) => value.as_array()?.get(*at),
        });
        found.filter(|value| !value.is_null())
    }
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
    item.only(
        &[
            "field",
            "label",
            "valueType",
            "sourceType",
            "toolName",
            "schemaVersionId",
        ],
        faults,
    );
    for name in ["label", "toolName", "schemaVersionId"] {
        item.required_text(name, 1..=4096, faults);
    }
    item.required("sourceType", faults);
    item.word("sourceType", &["known_schema"], faults);
    item.required("valueType", faults);
    let types = ["string", "string_set", "number", "boolean", "object", "content"];
    let kind = item.word("valueType", &types, faults).and_then(FieldType::named);
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
    use serde_json::json;

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

    #[test]
    fn a_path_leads_into_a_document() {
        let document = json!({"a": [{"b": 7, "n": null}]});
        let at = |path| CustomPath::parse(path).unwrap().of(&document);
        assert_eq!(at("tool.input.a[0].b"), Some(&json!(7)));
        assert_eq!(at("tool.input.a[0].n"), None);
        assert_eq!(at("tool.input.a[1].b"), None);
        assert_eq!(at("tool.input.b"), None);
    }
}
