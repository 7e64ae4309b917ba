//! Whether a name passes a predicate: in any spelling, and by every word of the record that it means.
//!
//! ```text
//!   means     a positive operator holds              and is unknown
//!   no record for the word's key
//!   one       for its id or some word of its own     where it holds only for a word that another record has too
//!   several   where it holds for each of them        where it holds for some of them
//!   a claim   never                                  where it holds for what is claimed
//! ```
//!
//! A negative operator is the negation of its positive one. Patterns are asked of words as they stand and of their keys, in
//! any case; everything else is asked of keys.
//!
//! Keeps NW-1.

use crate::catalogue::Field;
use crate::condition::Check;
use crate::event::{Event, Value};
use crate::register::NamedRecord;
use crate::symbols::{Symbol, Symbols};
use crate::truth::Truth;
use std::slice;
use std::sync::Arc;

/// LIMIT: ways in which the names of one event can be meant; with more of them nobody can say.
const WAYS_LIMIT: usize = 32;

/// One way in which the names of an event can be meant.
#[derive(Debug, Default)]
pub(crate) struct NameChoice<'a> {
    picks: Vec<(Field, &'a str, &'a Arc<NamedRecord>)>,
}

/// The ways in which the names of an event can be meant.
pub(super) enum Ways<'a> {
    /// Each name has one meaning.
    One,
    Several(Vec<NameChoice<'a>>),
    TooMany,
}

impl<'a> Ways<'a> {
    pub fn of(event: &Event, symbols: &'a Symbols) -> Self {
        let mut open: Vec<(Field, &str, &[Arc<NamedRecord>])> = Vec::new();
        for (field, value) in event.values() {
            let mut add = |symbol: Symbol| {
                let meant = symbols.meant(*field, symbol);
                let key = symbols.name_key(*field, symbol);
                if meant.len() > 1 && !open.iter().any(|(of, known, _)| of == field && *known == key) {
                    open.push((*field, key, meant));
                }
            };
            match value {
                _ if !field.has_register() => {}
                Value::Text(symbol) => add(*symbol),
                Value::Set(set) => symbols.set(*set).iter().for_each(|symbol| add(*symbol)),
                _ => {}
            }
        }
        if open.is_empty() {
            return Self::One;
        }
        let mut ways = vec![NameChoice::default()];
        for (field, key, meant) in open {
            if ways.len() * meant.len() > WAYS_LIMIT {
                return Self::TooMany;
            }
            let with = |way: &NameChoice<'a>, named: &'a Arc<NamedRecord>| NameChoice {
                picks: way.picks.iter().copied().chain([(field, key, named)]).collect(),
            };
            ways = ways
                .iter()
                .flat_map(|way| meant.iter().map(move |named| with(way, named)))
                .collect();
        }
        Self::Several(ways)
    }
}

impl<'a> NameChoice<'a> {
    /// Returns the record as which a name is meant.
    pub fn pick(&self, field: Field, key: &str) -> Option<&'a Arc<NamedRecord>> {
        let found = self
            .picks
            .iter()
            .find(|(of, known, _)| *of == field && *known == key);
        found.map(|(_, _, named)| *named)
    }

    /// Returns the groups of the chosen user.
    fn groups(&self) -> Option<&'a [String]> {
        let user = self.picks.iter().find(|(of, _, _)| *of == Field::USER)?;
        user.2.record().groups.as_deref()
    }
}

/// What a name means.
#[derive(Clone, Copy)]
enum Name<'a> {
    Word {
        text: &'a str,
        key: &'a str,
    },
    Records(&'a [Arc<NamedRecord>]),
    /// Nobody sees it.
    Blank,
}

impl<'a> Name<'a> {
    fn of(field: Field, symbol: Symbol, symbols: &'a Symbols, chosen: Option<&NameChoice<'a>>) -> Self {
        if symbols.state(field, Value::Text(symbol)) == Value::Missing {
            return Self::Blank;
        }
        let key = symbols.name_key(field, symbol);
        match symbols.meant(field, symbol) {
            [] => Self::Word {
                text: symbols.text(symbol),
                key,
            },
            meant => match chosen.and_then(|chosen| chosen.pick(field, key)) {
                Some(named) => Self::Records(slice::from_ref(named)),
                None => Self::Records(meant),
            },
        }
    }

    /// Returns whether nobody knows that it is there at all.
    fn is_claim(self) -> bool {
        matches!(self, Self::Records(meant) if meant.iter().all(|named| named.is_claim()))
    }

    /// Returns whether something that is asked of a word and its key holds.
    fn is(self, holds: impl Fn(&str, &str) -> bool) -> Truth {
        match self {
            Self::Blank => Truth::Unknown,
            Self::Word { text, key } => holds(text, key).into(),
            Self::Records(meant) => {
                let mut answers = meant.iter().map(|named| of_record(named, &holds));
                let first = answers.next().unwrap_or(Truth::Unknown);
                if answers.all(|answer| answer == first) {
                    first
                } else {
                    Truth::Unknown
                }
            }
        }
    }
}

fn of_record(named: &NamedRecord, holds: &impl Fn(&str, &str) -> bool) -> Truth {
    let mut truth = Truth::False;
    for face in named.faces() {
        if holds(&face.text, &face.key) {
            if !face.is_shared {
                return Truth::True;
            }
            truth = Truth::Unknown;
        }
    }
    truth
}

/// Returns whether an attribute with this value passes what is asked of its keys.
pub(super) fn judge<'a>(
    keyed: &Check,
    field: Field,
    value: Value,
    symbols: &'a Symbols,
    chosen: Option<&NameChoice<'a>>,
) -> Truth {
    match value {
        Value::Absent => Truth::False,
        Value::Text(symbol) => text(keyed, Name::of(field, symbol, symbols, chosen)),
        Value::Set(list) => {
            let members = symbols.set(list).iter();
            set(
                keyed,
                members.map(|symbol| Name::of(field, *symbol, symbols, chosen)),
            )
        }
        // The directory knows the groups of each user who may be meant.
        Value::Missing if field == Field::GROUPS => match chosen.and_then(NameChoice::groups) {
            Some(groups) => {
                let member = |id: &'a String| match symbols.register().meant(field, id) {
                    [] => Name::Word { text: id, key: id },
                    meant => Name::Records(meant),
                };
                set(keyed, groups.iter().map(member))
            }
            None => Truth::Unknown,
        },
        _ => Truth::Unknown,
    }
}

fn has(list: &[Box<str>], key: &str) -> bool {
    list.binary_search_by(|item| (**item).cmp(key)).is_ok()
}

fn negated(truth: Truth, negated: bool) -> Truth {
    if negated { !truth } else { truth }
}

fn text(keyed: &Check, name: Name<'_>) -> Truth {
    match keyed {
        Check::Exists => match name {
            Name::Blank => Truth::Unknown,
            _ => Truth::True,
        },
        Check::Text { is, negated: not } => negated(name.is(|_, key| *key == **is), *not),
        Check::TextIn { list, negated: not } => negated(name.is(|_, key| has(list, key)), *not),
        Check::Contains(part) => name.is(|_, key| key.contains(&**part)),
        Check::StartsWith(part) => name.is(|_, key| key.starts_with(&**part)),
        Check::EndsWith(part) => name.is(|_, key| key.ends_with(&**part)),
        Check::MatchesAnyCase(pattern) => {
            name.is(|text, key| pattern.is_match(text) || pattern.is_match(key))
        }
        _ => Truth::Unknown,
    }
}

#[expect(
    clippy::needless_pass_by_value,
    reason = "gone through once for each question"
)]
fn set<'a>(keyed: &Check, members: impl Iterator<Item = Name<'a>> + Clone) -> Truth {
    let any = |holds: &dyn Fn(&str) -> bool| {
        let mut truth = Truth::False;
        for member in members.clone() {
            truth = truth.or(member.is(|_, key| holds(key)));
            if truth == Truth::True {
                break;
            }
        }
        truth
    };
    let has_all = |list: &[Box<str>]| {
        let each = list.iter().map(|wanted| any(&|key| *key == **wanted));
        each.fold(Truth::True, Truth::and)
    };
    match keyed {
        // Whose every group is claimed may be in none.
        Check::Exists if members.clone().next().is_some() && members.clone().all(Name::is_claim) => {
            Truth::Unknown
        }
        Check::Exists => Truth::True,
        Check::Member(wanted) => any(&|key| *key == **wanted),
        Check::AnyOf(list) => any(&|key| has(list, key)),
        Check::AllOf(list) => has_all(list),
        Check::Set { is, negated: not } => {
            let within = members.clone().map(|member| member.is(|_, key| has(is, key)));
            negated(within.fold(has_all(is), Truth::and), *not)
        }
        _ => Truth::Unknown,
    }
}
