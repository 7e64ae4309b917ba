//! Reading JSON members with their bounds, collecting every violation on the way.
//!
//! An optional member that is `null` counts as not sent, because clients send both.
//!
//! Absent on purpose: serde's derive. It stops at the first fault, and its sentences name Rust types.

use crate::violation::{Violations, member};
use serde_json::{Map, Value};
use std::collections::BTreeSet;

/// A JSON object, and where it stands.
#[derive(Clone, Copy)]
pub(crate) struct Object<'a> {
    pub members: &'a Map<String, Value>,
    pub path: &'a str,
}

/// How many characters a text has.
pub(crate) type Length = std::ops::RangeInclusive<usize>;

impl<'a> Object<'a> {
    /// Returns the object that `value` is.
    pub fn of(value: &'a Value, path: &'a str, faults: &mut Violations) -> Option<Self> {
        let members = value.as_object();
        if members.is_none() {
            faults.add(path, "must be an object");
        }
        Some(Self {
            members: members?,
            path,
        })
    }

    /// Refuses every member that is not listed.
    pub fn only(&self, names: &[&str], faults: &mut Violations) {
        for name in self.members.keys().filter(|name| !names.contains(&name.as_str())) {
            let clipped: String = name.chars().take(64).collect();
            faults.add(self.at(&clipped), "is not a member of this object");
        }
    }

    /// Returns where a member stands.
    pub fn at(&self, name: &str) -> String {
        member(self.path, name)
    }

    /// Returns a member that was sent.
    pub fn get(&self, name: &str) -> Option<&'a Value> {
        self.members.get(name).filter(|value| !value.is_null())
    }

    /// Returns whether a member was sent.
    pub fn has(&self, name: &str) -> bool {
        self.get(name).is_some()
    }

    /// Returns a member, or says that it is required.
    pub fn required(&self, name: &str, faults: &mut Violations) -> Option<&'a Value> {
        let found = self.get(name);
        if found.is_none() {
            faults.add(self.at(name), "is required");
        }
        found
    }

    /// Returns a text whose length is within `length`.
    pub fn text(&self, name: &str, length: Length, faults: &mut Violations) -> Option<&'a str> {
        text(self.get(name)?, &self.at(name), &length, faults)
    }

    /// Returns a text that must be there.
    pub fn required_text(&self, name: &str, length: Length, faults: &mut Violations) -> Option<&'a str> {
        self.required(name, faults)?;
        self.text(name, length, faults)
    }

    /// Returns a boolean.
    pub fn boolean(&self, name: &str, faults: &mut Violations) -> Option<bool> {
        let found = self.get(name)?.as_bool();
        if found.is_none() {
            faults.add(self.at(name), "must be true or false");
        }
        found
    }

    /// Returns a whole number within `range`.
    pub fn whole(
        &self,
        name: &str,
        range: std::ops::RangeInclusive<u64>,
        faults: &mut Violations,
    ) -> Option<u64> {
        let found = self.get(name)?;
        let whole = as_whole(found).filter(|n| range.contains(n));
        if whole.is_none() {
            let (from, to) = (range.start(), range.end());
            faults.add(
                self.at(name),
                format!("must be a whole number from {from} to {to}"),
            );
        }
        whole
    }

    /// Returns the place of a word among `words`.
    pub fn word(&self, name: &str, words: &[&'static str], faults: &mut Violations) -> Option<&'static str> {
        let found = self.get(name)?;
        let word = found.as_str().and_then(|s| words.iter().find(|w| **w == s));
        if word.is_none() {
            faults.add(self.at(name), format!("must be one of {}", words.join(", ")));
        }
        word.copied()
    }

    /// Returns a list with its length within `length`.
    pub fn list(&self, name: &str, length: Length, faults: &mut Violations) -> Option<&'a [Value]> {
        list(self.get(name)?, &self.at(name), &length, faults)
    }

    /// Returns a list of different texts.
    pub fn texts(
        &self,
        name: &str,
        length: Length,
        each: &Length,
        faults: &mut Violations,
    ) -> Option<Vec<&'a str>> {
        let items = self.list(name, length, faults)?;
        let path = self.at(name);
        let mut seen = BTreeSet::new();
        let mut all = Vec::new();
        for (at, item) in items.iter().enumerate() {
            let place = format!("{path}/{at}");
            let Some(item) = text(item, &place, each, faults) else {
                continue;
            };
            if !seen.insert(item) {
                faults.add(place, "stands here twice");
            }
            all.push(item);
        }
        Some(all)
    }

    /// Returns a list of different words.
    pub fn words(
        &self,
        name: &str,
        length: Length,
        words: &[&'static str],
        faults: &mut Violations,
    ) -> Option<Vec<&'static str>> {
        let found = self.texts(name, length, &(0..=usize::MAX), faults)?;
        let mut all = Vec::new();
        for (at, item) in found.iter().enumerate() {
            match words.iter().find(|w| *w == item) {
                Some(word) => all.push(*word),
                None => faults.add(
                    format!("{}/{at}", self.at(name)),
                    format!("must be one of {}", words.join(", ")),
                ),
            }
        }
        Some(all)
    }
}

/// Returns the text that `value` is, if its length fits.
pub(crate) fn text<'a>(
    value: &'a Value,
    path: &str,
    length: &Length,
    faults: &mut Violations,
) -> Option<&'a str> {
    let Some(text) = value.as_str() else {
        faults.add(path, "must be a string");
        return None;
    };
    // A character has at most four bytes: most texts need no count.
    let fits = *length.start() <= 1 && text.len() >= *length.start() && text.len() <= *length.end();
    if !fits && !length.contains(&text.chars().count()) {
        let (from, to) = (length.start(), length.end());
        faults.add(path, format!("must have {from} to {to} characters"));
        return None;
    }
    Some(text)
}

/// Returns the list that `value` is, if its length fits.
pub(crate) fn list<'a>(
    value: &'a Value,
    path: &str,
    length: &Length,
    faults: &mut Violations,
) -> Option<&'a [Value]> {
    let Some(items) = value.as_array() else {
        faults.add(path, "must be an array");
        return None;
    };
    if !length.contains(&items.len()) {
        let (from, to) = (length.start(), length.end());
        faults.add(path, format!("must have {from} to {to} items"));
        return None;
    }
    Some(items)
}

/// Returns the whole number that a JSON number is; `2.0` is 2.
pub(crate) fn as_whole(value: &Value) -> Option<u64> {
    if let Some(whole) = value.as_u64() {
        return Some(whole);
    }
    let number = value.as_f64()?;
    // Above 2^53 not every whole number can be said.
    let is_whole = number.fract() == 0.0 && (0.0..9_007_199_254_740_992.0).contains(&number);
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "whole and in range, as just tested"
    )]
    is_whole.then_some(number as u64)
}
