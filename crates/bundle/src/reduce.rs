//! A policy as one device gets it: with its own people's names alone, and without what is not evaluated there.
//!
//! ```text
//!   scope, and conditions that compare with names   only the names of the device's people; one that nobody has for all others
//!   conditions that look for a part of a name        left out, asked about
//!   exceptions, modules of Rego                      left out, asked about (client contract §3.5: not compiled down to an agent)
//!   conditions on the past                           kept, asked about
//!   whom it is about, and nobody of the device is    the whole is left out, but for lists that let their subjects in: these
//!                                                    block whom they do not name
//! ```
//!
//! What is left out of a policy only ever makes it match more, and then the server is asked.
//!
//! Keeps LJ-3.

use crate::document::BundlePolicy;
use crate::judge::is_judged;
use crate::known::KnownNames;
use provost_policy::{Definition, Family, Field, FieldType, Occasion, SCOPE_LISTS, canonical};
use serde_json::{Map, Value, json};

/// A name that nobody has: nothing is left of it when it is compared, and what has no such key is missing (NW-3).
const NOBODY: &str = "\u{200b}";

/// The attributes whose names are of people and machines.
const NAMING: [Field; 4] = [Field::USER, Field::GROUPS, Field::SERVICE_ACCOUNT, Field::DEVICE];
/// Those of which one has to be named.
const WHO: [Field; 3] = [Field::USER, Field::GROUPS, Field::SERVICE_ACCOUNT];

/// Members of definitions that decide nothing and may say more than a device is to know.
const TOLD: [&str; 9] = [
    "description",
    "rationale",
    "useCases",
    "complianceFrameworks",
    "labels",
    "severity",
    "enforcedBy",
    "notification",
    "remediation",
];

/// What becomes of a policy.
pub enum Reduced {
    /// The device gets it.
    Kept(BundlePolicy),
    /// It concerns nobody of the device, or nothing that a device judges.
    OfOthers,
    /// It cannot be said in a bundle.
    Unsayable,
}

/// Returns what a device gets of a policy.
pub fn reduce(policy: &Definition, known: &KnownNames) -> Reduced {
    let is_judged = Occasion::ALL
        .into_iter()
        .any(|occasion| is_judged(occasion) && policy.judges_at(occasion));
    let lets_in = policy.acl().is_some_and(|acl| acl.allows);
    if !is_judged || (!lets_in && !concerns(policy, known)) {
        return Reduced::OfOthers;
    }
    let Value::Object(mut document) = policy.authored().clone() else {
        return Reduced::Unsayable;
    };
    for name in TOLD {
        document.remove(name);
    }
    if document.contains_key("name") {
        document.insert("name".to_owned(), policy.id().into());
    }
    for scope in ["appliesTo", "subjects"] {
        if let Some(Value::Object(lists)) = document.get_mut(scope) {
            keep_own(lists, known);
        }
    }
    let mut needs_server = policy.has_history() || policy.has_exceptions() || policy.is_rego();
    document.remove("except");
    document.remove("exceptions");
    let is_said = document
        .get_mut("conditions")
        .is_none_or(|node| names_own(node, known));
    if policy.is_rego() || !is_said {
        needs_server = true;
        open_conditions(&mut document);
    }
    // One that would be read otherwise at the other end, for a number that no canonical text has, is asked about.
    if !is_read_alike(policy.family(), &document) {
        needs_server = true;
        open_conditions(&mut document);
        if !is_read_alike(policy.family(), &document) {
            return Reduced::Unsayable;
        }
    }
    Reduced::Kept(BundlePolicy {
        id: policy.id().to_owned(),
        family: policy.family(),
        definition: Value::Object(document),
        needs_server,
    })
}

/// Returns whether a policy can be about somebody of the device, or the device.
fn concerns(policy: &Definition, known: &KnownNames) -> bool {
    let scope = policy.scope();
    let has = |field: Field| {
        let mut named = scope.named(field).iter();
        named.any(|reference| known.has(field, &reference.name))
    };
    let is_of_all = WHO.into_iter().all(|field| scope.named(field).is_empty());
    // Whose groups nobody knows may be in each.
    let is_open = known.has_open_groups && !scope.named(Field::GROUPS).is_empty();
    let who = is_of_all || !known.has_people() || is_open || WHO.into_iter().any(has);
    who && (scope.named(Field::DEVICE).is_empty() || has(Field::DEVICE))
}

/// Takes the names of others out of the lists of a scope.
fn keep_own(lists: &mut Map<String, Value>, known: &KnownNames) {
    for (member, field) in SCOPE_LISTS {
        if !NAMING.contains(&field) {
            continue;
        }
        if let Some(Value::Array(names)) = lists.get_mut(member) {
            own_names(names, field, known);
        }
    }
}

/// Puts one name that nobody has in the place of all that are not of the device.
fn own_names(names: &mut Vec<Value>, field: Field, known: &KnownNames) {
    let before = names.len();
    names.retain(|name| {
        let text = name.as_str().or_else(|| name.get("name")?.as_str());
        text.is_some_and(|text| known.has(field, text))
    });
    if names.len() < before {
        names.push(NOBODY.into());
    }
}

/// Takes the names of others out of conditions; false where one looks for a part of a name, which cannot be taken out.
fn names_own(node: &mut Value, known: &KnownNames) -> bool {
    match node {
        Value::Array(nodes) => nodes.iter_mut().all(|node| names_own(node, known)),
        Value::Object(members) => {
            if let Some(field) = members
                .get("field")
                .and_then(Value::as_str)
                .and_then(Field::named)
                && NAMING.contains(&field)
                && !compares_own(members, field, known)
            {
                return false;
            }
            let inner = members.iter_mut().filter(|(name, _)| *name != "value");
            inner.into_iter().all(|(_, node)| names_own(node, known))
        }
        _ => true,
    }
}

fn compares_own(members: &mut Map<String, Value>, field: Field, known: &KnownNames) -> bool {
    let is_whole = match members.get("op").and_then(Value::as_str) {
        Some("contains") => field.kind() == FieldType::Set,
        Some("starts_with" | "ends_with" | "matches") => false,
        _ => true,
    };
    match members.get_mut("value") {
        Some(Value::String(name)) => {
            if is_whole && !known.has(field, name) {
                NOBODY.clone_into(name);
            }
        }
        Some(Value::Array(names)) => own_names(names, field, known),
        // Whether it is there, or how many there are.
        _ => return true,
    }
    is_whole
}

/// Puts conditions that are never false in the place of what is not said.
fn open_conditions(document: &mut Map<String, Value>) {
    let is_there = json!({"field": Field::USER.name(), "op": "exists"});
    document.remove("logic");
    document.remove("customFields");
    document.insert(
        "conditions".to_owned(),
        json!({"any": [is_there, {"not": is_there}]}),
    );
}

fn is_read_alike(family: Family, document: &Map<String, Value>) -> bool {
    let document = Value::Object(document.clone());
    let read: Option<Value> = serde_json::from_str(&canonical(&document)).ok();
    let is_same = read.is_some_and(|read| is_equal(&read, &document));
    is_same && Definition::read(family, &document).is_ok()
}

/// Returns whether two documents are the same to whoever reads them: `2.0` is 2.
fn is_equal(a: &Value, b: &Value) -> bool {
    match (a, b) {
        (Value::Number(a), Value::Number(b)) => {
            a == b || (a.as_f64() == b.as_f64() && is_small(a) && is_small(b))
        }
        (Value::Array(a), Value::Array(b)) => {
            a.len() == b.len() && a.iter().zip(b).all(|(a, b)| is_equal(a, b))
        }
        (Value::Object(a), Value::Object(b)) => {
            a.len() == b.len()
                && a.iter()
                    .all(|(name, a)| b.get(name).is_some_and(|b| is_equal(a, b)))
        }
        (a, b) => a == b,
    }
}

/// Returns whether a number is one that every reader has.
fn is_small(number: &serde_json::Number) -> bool {
    const EXACT: f64 = 9_007_199_254_740_992.0;
    number.as_f64().is_some_and(|number| number.abs() <= EXACT)
}
