//! Which stored policies name a record: as they decide, enabled or not.
//!
//! A record is named by its id, wherever in a definition it stands, a module's text included; and by its words in the places
//! that name records (see the references), where no id has taken their place.

use super::references::names_in;
use super::store;
use provost_areas_identity::subjects::{LostReference, LostWith, Mention, Record};
use provost_areas_identity::words::{Kind, key_of};
use provost_areas_platform::announcements::{OpenedTo, Opening};
use provost_kernel::{Error, OperationContext, Result};
use provost_policy::{Action, Family};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet, HashMap};

/// Characters of an id behind its prefix.
const ULID_CHARACTERS: usize = 26;

/// The records that are looked for, by their ids and by the match keys of the words of their kinds.
struct MentionQuery<'a> {
    records: &'a [Record],
    by_id: HashMap<&'a str, usize>,
    by_word: HashMap<(Kind, String), Vec<usize>>,
}

impl<'a> MentionQuery<'a> {
    fn of(records: &'a [Record]) -> Self {
        let mut by_word: HashMap<(Kind, String), Vec<usize>> = HashMap::new();
        for (at, record) in records.iter().enumerate() {
            for word in &record.words {
                by_word
                    .entry((record.kind, key_of(record.kind, word)))
                    .or_default()
                    .push(at);
            }
        }
        Self {
            records,
            by_id: records
                .iter()
                .enumerate()
                .map(|(at, record)| (record.id.as_str(), at))
                .collect(),
            by_word,
        }
    }

    /// Returns the places of a definition that name records, by record.
    fn places(&self, family: Family, definition: &Value) -> BTreeMap<usize, BTreeSet<String>> {
        let mut found: BTreeMap<usize, BTreeSet<String>> = BTreeMap::new();
        for named in names_in(family, definition) {
            let by_id = self.by_id.get(named.name).copied();
            let by_id = by_id.filter(|at| self.records[*at].kind == named.kind);
            let by_word = self.by_word.get(&(named.kind, key_of(named.kind, named.name)));
            for at in by_id.into_iter().chain(by_word.into_iter().flatten().copied()) {
                found.entry(at).or_default().insert(named.pointer.clone());
            }
        }
        texts(definition, "", &mut |pointer, text| {
            for at in ids_in(text).filter_map(|id| self.by_id.get(id)) {
                found.entry(*at).or_default().insert(pointer.to_owned());
            }
        });
        found
    }
}

/// Returns what looks like an id in a text.
fn ids_in(text: &str) -> impl Iterator<Item = &str> {
    text.match_indices('_').filter_map(move |(at, _)| {
        let before = text[..at]
            .bytes()
            .rev()
            .take_while(u8::is_ascii_lowercase)
            .count();
        text.get(at - before..at + 1 + ULID_CHARACTERS)
    })
}

/// Returns the policies that name these records, in the order of their making.
///
/// Cost: one read of every definition, whatever the number of records; none without records.
fn mentions(ctx: &mut OperationContext<'_>, records: &[Record]) -> Result<Vec<Mention>> {
    let mut found = Vec::new();
    if records.is_empty() {
        return Ok(found);
    }
    let wanted = MentionQuery::of(records);
    for stored in store::newest(ctx)? {
        let definition: Value = serde_json::from_str(&stored.definition).map_err(Error::internal)?;
        for (at, places) in wanted.places(stored.family, &definition) {
            found.push(Mention {
                policy_id: stored.id.clone(),
                family: stored.family,
                action: stored.action.clone(),
                enabled: stored.enabled,
                record_id: records[at].id.clone(),
                kind: records[at].kind,
                places: outermost(&places),
            });
        }
    }
    Ok(found)
}

/// Leaves out the places below others: a record that stands in a list as an object has two.
fn outermost(places: &BTreeSet<String>) -> Vec<String> {
    let is_below = |place: &String, other: &String| {
        place
            .strip_prefix(other.as_str())
            .is_some_and(|rest| rest.starts_with('/'))
    };
    let outer = places
        .iter()
        .filter(|place| !places.iter().any(|other| is_below(place, other)));
    outer.cloned().collect()
}

/// Returns the policies that name the records that go.
pub fn lost(ctx: &mut OperationContext<'_>, question: &LostWith) -> Result<Vec<LostReference>> {
    let mentions = mentions(ctx, &question.records)?;
    Ok(mentions.into_iter().map(LostReference::from).collect())
}

/// Returns the policies that open something to a subject, with the places: those that take part in decisions and name it
/// in what they allow, or in an exception of what they do not.
pub fn opened_to(ctx: &mut OperationContext<'_>, subject: &OpenedTo) -> Result<Vec<Opening>> {
    let record = Record {
        kind: subject.kind.into(),
        id: subject.id.clone(),
        words: Vec::new(),
    };
    let mut opened = Vec::new();
    for mention in mentions(ctx, &[record])? {
        let opens = |place: &String| place.starts_with("/except") || mention.action == Action::Allow.word();
        let places: Vec<String> = mention
            .places
            .iter()
            .filter(|place| opens(place))
            .cloned()
            .collect();
        if mention.enabled && !places.is_empty() {
            opened.push(Opening::Policy {
                id: mention.policy_id,
                places,
            });
        }
    }
    Ok(opened)
}

/// Calls `each` with every text of a value and its place. The walk is as deep as the engine lets definitions be.
fn texts(value: &Value, pointer: &str, each: &mut impl FnMut(&str, &str)) {
    match value {
        Value::String(text) => each(pointer, text),
        Value::Array(items) => {
            for (at, item) in items.iter().enumerate() {
                texts(item, &format!("{pointer}/{at}"), each);
            }
        }
        Value::Object(members) => {
            for (name, member) in members {
                let name = name.replace('~', "~0").replace('/', "~1");
                texts(member, &format!("{pointer}/{name}"), each);
            }
        }
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_record_is_named_by_its_id_anywhere_and_by_its_words_where_records_are_named() {
        let id = "usr_01m7w5ws2557r5efywan1hf0t3";
        let records = [Record {
            kind: Kind::User,
            id: id.into(),
            words: vec!["Ada@acme.test".into()],
        }];
        let wanted = MentionQuery::of(&records);
        let places = |definition: Value| -> Vec<String> {
            let found = wanted.places(Family::Content, &definition);
            found.values().flat_map(outermost).collect()
        };
        let compared = |value: Value| json!({ "field": "identity.user_id", "op": "in", "value": value });
        for (definition, expected) in [
            (
                json!({ "appliesTo": { "users": ["x", id] } }),
                "/appliesTo/users/1",
            ),
            (
                json!({ "conditions": { "all": [compared(json!(["ada@ACME.test"]))] } }),
                "/conditions/all/0/value/0",
            ),
            (json!({ "except": compared(json!([id])) }), "/except/value/0"),
            (
                json!({ "module": format!("input.identity.user_id == \"{id}\"") }),
                "/module",
            ),
        ] {
            assert_eq!(places(definition.clone()), [expected], "{definition}");
        }
        for definition in [
            json!({ "name": "ada@acme.test" }),
            json!({ "appliesTo": { "groups": ["ada@acme.test"] } }),
            json!({ "message": "usr_01m7w5ws2557r5efywan1hf0t4 _ é_ usr_" }),
        ] {
            assert_eq!(places(definition.clone()), [""; 0], "{definition}");
        }
    }
}
