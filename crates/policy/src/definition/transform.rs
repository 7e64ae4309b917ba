//! How a request that passes is changed: parts replaced, or items left out. Source: client contract §3.8.
//!
//! Absent on purpose: doing it; gateways do, with what the author wrote.

use crate::condition::pattern;
use crate::read::Object;
use crate::violation::Violations;
use serde_json::Value;

/// What a gateway has to do before a request passes.
#[derive(Clone, Debug, PartialEq)]
pub enum Transform {
    /// Replace parts: the definition's `redaction`.
    Redaction(Value),
    /// Leave items out: the definition's `filter`.
    Filter(Value),
}

/// Which members each strategy has, and which of them it needs.
pub(crate) const STRATEGIES: [(&str, &[&str], &[&str]); 5] = [
    ("constant", &["replacement"], &["replacement"]),
    ("partial", &["keepStart", "keepEnd", "maskCharacter"], &[]),
    ("hash", &["saltRef"], &[]),
    ("nullify", &[], &[]),
    ("fake", &["subtype"], &["subtype"]),
];
pub(crate) const OPTIONS: [&str; 6] = [
    "replacement",
    "maskCharacter",
    "saltRef",
    "subtype",
    "keepStart",
    "keepEnd",
];
const WORDS: [&str; 5] = ["constant", "partial", "hash", "nullify", "fake"];
/// What a fake looks like.
pub(crate) const SUBTYPES: [&str; 5] = ["string", "email", "phone", "ipv4", "payment_card"];
/// How a filter compares.
pub(crate) const FILTER_OPERATORS: [&str; 9] = [
    "eq",
    "neq",
    "contains",
    "starts_with",
    "ends_with",
    "gt",
    "gte",
    "lt",
    "lte",
];

/// Returns what the definition's action needs; refuses what belongs to another action.
pub(super) fn read(
    definition: Object<'_>,
    action: Option<&str>,
    faults: &mut Violations,
) -> Option<Transform> {
    let mut found = None;
    for (name, of) in [("redaction", "redact"), ("filter", "filter")] {
        let Some(value) = definition.get(name) else {
            if action == Some(of) {
                faults.add(definition.at(name), format!("is required with the action {of}"));
            }
            continue;
        };
        if action.is_some_and(|action| action != of) {
            faults.add(definition.at(name), format!("needs the action {of}"));
        }
        let path = definition.at(name);
        let Some(object) = Object::of(value, &path, faults) else {
            continue;
        };
        if of == "redact" {
            redaction(object, faults);
            found = Some(Transform::Redaction(value.clone()));
        } else {
            filter(object, faults);
            found = Some(Transform::Filter(value.clone()));
        }
    }
    found
}

fn redaction(object: Object<'_>, faults: &mut Violations) {
    let members = ["strategy", "paths", "applyTo", "pattern"];
    let names: Vec<&str> = members.into_iter().chain(OPTIONS).collect();
    object.only(&names, faults);
    let before = faults.found();
    let strategy = object.word("strategy", &WORDS, faults);
    if faults.found() == before {
        options(object, strategy.unwrap_or("constant"), faults);
    }
    object.text("replacement", 0..=4096, faults);
    object.text("maskCharacter", 1..=1, faults);
    object.text("saltRef", 1..=4096, faults);
    object.word("subtype", &SUBTYPES, faults);
    object.whole("keepStart", 0..=256, faults);
    object.whole("keepEnd", 0..=256, faults);
    if let Some(paths) = object.texts("paths", 1..=64, &(1..=4096), faults) {
        for (at, text) in paths.iter().enumerate() {
            path(text, &format!("{}/{at}", object.at("paths")), faults);
        }
    }
    object.word("applyTo", &["matches"], faults);
    if let Some(Err(why)) = object.text("pattern", 1..=512, faults).map(pattern) {
        faults.add(object.at("pattern"), why);
    }
    if object.has("applyTo") != object.has("pattern") {
        faults.add(object.path, "must have both of applyTo and pattern, or none");
    }
    if strategy == Some("nullify") && object.has("applyTo") {
        faults.add(object.at("applyTo"), "does not go with the strategy nullify");
    }
}

fn options(object: Object<'_>, strategy: &str, faults: &mut Violations) {
    let Some((_, allowed, needed)) = STRATEGIES.iter().find(|(name, _, _)| *name == strategy) else {
        return;
    };
    for name in OPTIONS
        .iter()
        .filter(|name| object.has(name) && !allowed.contains(*name))
    {
        faults.add(
            object.at(name),
            format!("does not go with the strategy {strategy}"),
        );
    }
    for name in *needed {
        object.required(name, faults);
    }
    if strategy == "partial" && !object.has("keepStart") && !object.has("keepEnd") {
        faults.add(
            object.path,
            "must have keepStart or keepEnd with the strategy partial",
        );
    }
}

fn filter(object: Object<'_>, faults: &mut Violations) {
    object.only(&["collectionPath", "removeWhere", "onUnavailable"], faults);
    one_path(object, "collectionPath", faults);
    object.required("onUnavailable", faults);
    object.word("onUnavailable", &["allow", "block"], faults);
    let place = object.at("removeWhere");
    let rule = object
        .required("removeWhere", faults)
        .and_then(|value| Object::of(value, &place, faults));
    if let Some(rule) = rule {
        rule.only(&["path", "op", "value"], faults);
        one_path(rule, "path", faults);
        rule.required("op", faults);
        rule.word("op", &FILTER_OPERATORS, faults);
        // A null is a value here: "remove where it is null".
        if !rule.members.contains_key("value") {
            faults.add(rule.at("value"), "is required");
        }
    }
}

fn one_path(object: Object<'_>, name: &str, faults: &mut Violations) {
    if let Some(text) = object.required_text(name, 1..=4096, faults) {
        path(text, &object.at(name), faults);
    }
}

/// Checks `^\$(?:\.[A-Za-z_][A-Za-z0-9_-]*|\[[0-9]+\])+$`.
fn path(text: &str, place: &str, faults: &mut Violations) {
    if !is_path(text) {
        faults.add(place, "must be a path like $.rows[0].name");
    }
}

fn is_path(text: &str) -> bool {
    let Some(mut rest) = text.strip_prefix('$').filter(|rest| !rest.is_empty()) else {
        return false;
    };
    while !rest.is_empty() {
        let after = if let Some(name) = rest.strip_prefix('.') {
            let end = name.find(|c: char| !(c.is_ascii_alphanumeric() || c == '_' || c == '-'));
            let (word, after) = name.split_at(end.unwrap_or(name.len()));
            if !word.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_') {
                return false;
            }
            after
        } else {
            let index = rest.strip_prefix('[').and_then(|rest| rest.split_once(']'));
            match index {
                Some((digits, after)) if !digits.is_empty() && digits.bytes().all(|b| b.is_ascii_digit()) => {
                    after
                }
                _ => return false,
            }
        };
        rest = after;
    }
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_follow_the_grammar() {
        for good in ["$.rows", "$[0]", "$.a-b[12].c_d", "$._x"] {
            assert!(is_path(good), "{good}");
        }
        for bad in [
            "", "$", "rows", "$.", "$.1", "$[]", "$[x]", "$.a[", "$.a b", "$..a", "$.a]",
        ] {
            assert!(!is_path(bad), "{bad}");
        }
    }
}
