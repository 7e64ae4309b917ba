//! Exceptions: conditions under which a policy, and no other, does not match.
//!
//! `exceptions` have an id, a reason and perhaps an end; `except` is one without any of these.
//! An exception holds before its end, exclusively, at the time of the judged event: a replayed event is judged as
//! it would have been then.
//!
//! Source: client contract §3.4; D9.10.

use crate::condition::{Condition, CustomField, Parser};
use crate::family::Family;
use crate::read::Object;
use crate::violation::Violations;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// LIMIT: exceptions of a policy.
const EXCEPTION_LIMIT: usize = 256;

/// One exception.
#[derive(Clone, Debug)]
pub(crate) struct Exception {
    /// Units: milliseconds since the Unix epoch, UTC; exclusive.
    pub expires_at_ms: Option<i64>,
    pub condition: Condition,
}

/// Returns the exceptions of a definition.
pub(super) fn read(
    definition: Object<'_>,
    family: Family,
    custom: &BTreeMap<String, Arc<CustomField>>,
    faults: &mut Violations,
) -> Vec<Exception> {
    let mut all = Vec::new();
    if let Some(value) = definition.get("except") {
        let condition = Parser::new(family, custom, faults).condition(value, &definition.at("except"));
        all.extend(condition.map(|condition| Exception {
            expires_at_ms: None,
            condition,
        }));
    }
    let items = definition
        .list("exceptions", 0..=EXCEPTION_LIMIT, faults)
        .unwrap_or_default();
    let mut ids = BTreeSet::new();
    for (at, item) in items.iter().enumerate() {
        let path = format!("{}/{at}", definition.at("exceptions"));
        let Some(item) = Object::of(item, &path, faults) else {
            continue;
        };
        item.only(&["id", "reason", "expiresAt", "conditions"], faults);
        let id = item.required_text("id", 1..=256, faults);
        if id.is_some_and(|id| !ids.insert(id.to_owned())) {
            faults.add(item.at("id"), "stands here twice");
        }
        item.required_text("reason", 1..=4096, faults);
        let expires_at_ms = expiry(item, faults);
        let conditions = item.required("conditions", faults);
        let read =
            conditions.and_then(|c| Parser::new(family, custom, faults).condition(c, &item.at("conditions")));
        all.extend(read.map(|condition| Exception {
            expires_at_ms,
            condition,
        }));
    }
    all
}

fn expiry(item: Object<'_>, faults: &mut Violations) -> Option<i64> {
    let text = item.text("expiresAt", 1..=64, faults)?;
    // The parser knows more forms than RFC 3339.
    let is_rfc3339 = text
        .as_bytes()
        .get(10)
        .is_some_and(|b| b.eq_ignore_ascii_case(&b'T'))
        && !text.contains('[');
    match text.parse::<jiff::Timestamp>() {
        Ok(at) if is_rfc3339 => Some(at.as_millisecond()),
        _ => {
            faults.add(item.at("expiresAt"), "must be a time as RFC 3339 writes it");
            None
        }
    }
}
