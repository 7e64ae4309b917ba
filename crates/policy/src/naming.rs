//! Whom and what an event names, put in place in its attributes before it is read: words become ids, and groups are those that a
//! register knows of the user. A server and a device say it by this one function.
//!
//! ```text
//!   the user                                  the groups
//!   one who is there                          the register's
//!   missing, blank, one of several, deleted   missing, whatever was sent: the register knows what each of several is in
//!   unknown                                   claimed, as they were sent; missing where none were sent, and where everybody
//!                                             who may act has a record
//!   none                                      none
//! ```
//!
//! A word that means nothing or several stays as it was sent. A word of which nothing is left when it is compared is missing.

use crate::catalogue::Field;
use crate::event::Event;
use crate::family::Occasion;
use crate::matching::match_key;
use crate::register::{Register, claim};
use crate::symbols::Symbols;
use crate::violation::Violations;
use serde_json::{Map, Value};
use std::borrow::Cow;

/// The attributes of an event as they were sent, by their flat names, and those that exist and whose values nobody can say.
#[derive(Debug)]
pub struct SentAttributes<'a> {
    /// The attributes.
    pub given: &'a mut Map<String, Value>,
    /// The names of those that nobody can say, whatever `given` says.
    pub missing: &'a mut Vec<String>,
}

/// Returns the words by which sent attributes name records: several of groups, one at most of the others.
pub fn sent_words<'a>(
    given: &'a Map<String, Value>,
    missing: &[String],
    field: Field,
) -> impl Iterator<Item = &'a str> {
    let name = field.name();
    let is_missing = missing.iter().any(|missing| missing == name);
    let value = given.get(name).filter(|_| !is_missing);
    let whole = value.and_then(Value::as_str);
    let items = value.and_then(Value::as_array).into_iter().flatten();
    whole.into_iter().chain(items.filter_map(Value::as_str))
}

impl SentAttributes<'_> {
    /// Puts in place what a register says.
    pub fn name(&mut self, register: &Register) {
        // Before the users: theirs replace what is claimed.
        self.name_groups(register);
        for field in [Field::USER, Field::SERVICE_ACCOUNT, Field::SKILL, Field::RESOURCE] {
            self.name_one(field, register);
        }
        let Some(word) = sent_words(self.given, self.missing, Field::USER).next() else {
            self.have_no_user();
            return;
        };
        match register.meant(Field::USER, word) {
            [] if register.misses_strangers(Field::USER) => self.miss(Field::GROUPS),
            [] => self.claim_groups(),
            [user] => match &user.record().groups {
                Some(groups) => self.set_groups(groups),
                None => self.miss(Field::GROUPS),
            },
            _ => self.miss(Field::GROUPS),
        }
    }

    /// Makes an attribute one that exists and whose value nobody can say.
    pub fn miss(&mut self, field: Field) {
        self.given.remove(field.name());
        if !self.misses(field) {
            self.missing.push(field.name().to_owned());
        }
    }

    /// Returns whether an attribute is one whose value nobody can say.
    pub fn misses(&self, field: Field) -> bool {
        self.missing.iter().any(|missing| missing == field.name())
    }

    /// Puts an id in place of a word, where the word means one record. A word of which nothing is left when it is compared is
    /// missing: it was said, and nobody can say what.
    fn name_one(&mut self, field: Field, register: &Register) {
        let Some(word) = sent_words(self.given, self.missing, field).next() else {
            return;
        };
        if match_key(word).is_empty() {
            self.miss(field);
        } else if let Some(id) = one(register, field, word) {
            self.given.insert(field.name().to_owned(), id.into());
        }
    }

    /// As `name_one`, of each of the groups that were sent; one that is empty makes all of them missing.
    fn name_groups(&mut self, register: &Register) {
        let is_empty = |word: &str| match_key(word).is_empty();
        if sent_words(self.given, self.missing, Field::GROUPS).any(is_empty) {
            self.miss(Field::GROUPS);
            return;
        }
        let Some(Value::Array(groups)) = self.given.get_mut(Field::GROUPS.name()) else {
            return;
        };
        for group in groups {
            let id = group.as_str().and_then(|word| one(register, Field::GROUPS, word));
            if let Some(id) = id {
                *group = id.into();
            }
        }
    }

    /// Sets the groups that the register knows of the user.
    fn set_groups(&mut self, groups: &[String]) {
        let name = Field::GROUPS.name();
        self.given.insert(name.to_owned(), groups.into());
        self.missing.retain(|missing| missing != name);
    }

    /// Takes away groups that are nobody's; those of somebody of whom nobody can say who it is are missing, whatever was sent.
    fn have_no_user(&mut self) {
        if self.misses(Field::USER) {
            self.miss(Field::GROUPS);
            return;
        }
        let name = Field::GROUPS.name();
        self.given.remove(name);
        self.missing.retain(|missing| missing != name);
    }

    /// Makes the groups that were sent of somebody unknown a claim, which no exception and no allow list rests on. Where none
    /// were sent they are missing: an empty list says nothing, for who does not know the user cannot know that there are none.
    fn claim_groups(&mut self) {
        if self.misses(Field::GROUPS) {
            return;
        }
        match self.given.get_mut(Field::GROUPS.name()) {
            Some(Value::Array(groups)) if !groups.is_empty() => {
                for group in groups {
                    if let Some(word) = group.as_str() {
                        *group = claim(word).into();
                    }
                }
            }
            _ => self.miss(Field::GROUPS),
        }
    }
}

/// Returns the id of the one record that a word means.
fn one(register: &Register, field: Field, word: &str) -> Option<String> {
    match register.meant(field, word) {
        [record] => Some(record.id().to_owned()),
        _ => None,
    }
}

/// Checks attributes that are not kept, and says nothing of those that are not given.
///
/// Errors: as [`Event::read`], with pointers relative to the attributes.
pub fn check_sent(occasion: Occasion, given: &Map<String, Value>, names: &[&str]) -> Result<(), Violations> {
    let some = names.iter().filter_map(|name| given.get_key_value(*name));
    let some: Map<String, Value> = some.map(|(name, value)| (name.clone(), value.clone())).collect();
    if some.is_empty() {
        return Ok(());
    }
    Event::read(&mut Symbols::new(), 0, occasion, &some, &[]).map(drop)
}

/// Returns the attributes without those that are missing as well: what cannot be relied on is not.
///
/// Errors: as [`check_sent`], of what is left out.
pub fn without_missing<'a>(
    occasion: Occasion,
    given: &'a Map<String, Value>,
    missing: &[&str],
) -> Result<Cow<'a, Map<String, Value>>, Violations> {
    if !missing.iter().any(|name| given.contains_key(*name)) {
        return Ok(Cow::Borrowed(given));
    }
    check_sent(occasion, given, missing)?;
    let kept = given.iter().filter(|(name, _)| !missing.contains(&name.as_str()));
    Ok(Cow::Owned(
        kept.map(|(name, value)| (name.clone(), value.clone())).collect(),
    ))
}
