//! What is remembered of one subject's events for one history condition, and the answer that follows.
//!
//! Nothing here grows with the past: a time, a time for each pattern, or as many newest times or values as are needed to
//! tell whether a count is above the number it is compared with. Answers are exact all the same:
//!
//! ```text
//!   prior      the newest time of a match
//!   sequence   for each k, the latest possible start of a chain that matched the first k patterns
//!   count      the newest n + 1 times of a match, where n is the number of the comparison
//!   distinct   the newest n + 1 values, each by the last time it was seen
//! ```
//!
//! Each is kept twice: for events that match for sure, and for those that may match. The true answer lies between
//! the two, and is given where both agree.

use super::check::{Key, each_value};
use crate::catalogue::FieldType;
use crate::condition::{Compare, Operand, WITHIN_LIMIT_MS};
use crate::event::Value;
use crate::set::Question;
use crate::symbols::Symbols;
use crate::truth::Truth;
use std::collections::{BTreeSet, HashMap, VecDeque};

/// Before every event.
const NEVER: i64 = i64::MIN;

/// What is remembered: for sure, and perhaps.
#[derive(Clone, Debug)]
pub(super) enum Memory {
    Prior {
        sure: i64,
        may: i64,
    },
    Sequence {
        sure: Vec<i64>,
        may: Vec<i64>,
        /// For each pattern, the newest event that may match it.
        newest: Vec<i64>,
    },
    Count {
        sure: VecDeque<i64>,
        may: VecDeque<i64>,
    },
    Distinct(Box<Values>),
}

#[derive(Clone, Debug, Default)]
pub(super) struct Values {
    sure: Newest,
    may: Newest,
    /// Times of events whose value nobody can say.
    blank: VecDeque<i64>,
}

/// Values by the last time they were seen.
#[derive(Clone, Debug, Default)]
struct Newest {
    times: HashMap<Key, i64>,
    order: BTreeSet<(i64, Key)>,
}

impl Memory {
    /// Returns the memory of somebody without a past.
    pub fn new(question: &Question) -> Self {
        match question {
            Question::Prior(_) => Self::Prior {
                sure: NEVER,
                may: NEVER,
            },
            Question::Sequence { events, .. } => Self::Sequence {
                sure: vec![NEVER; events.len()],
                may: vec![NEVER; events.len()],
                newest: vec![NEVER; events.len()],
            },
            Question::Count { .. } => Self::Count {
                sure: VecDeque::new(),
                may: VecDeque::new(),
            },
            Question::Distinct { .. } => Self::Distinct(Box::default()),
        }
    }

    /// Returns whether it answers like the memory of somebody without a past.
    pub fn is_blank(&self) -> bool {
        match self {
            Self::Prior { may, .. } => *may == NEVER,
            Self::Sequence { newest, .. } => newest.iter().all(|at| *at == NEVER),
            Self::Count { may, .. } => may.is_empty(),
            Self::Distinct(values) => values.may.order.is_empty() && values.blank.is_empty(),
        }
    }

    /// Returns the memory of somebody whose events were remembered under several names, apart from each other.
    ///
    /// What is remembered of an ordered sequence does not say how events of two names follow each other: it is sure where
    /// one name has all of them, and may be wherever each of its patterns was seen in time.
    pub fn joined<'m>(question: &Question, memories: impl Iterator<Item = &'m Self>) -> Self {
        let mut some = memories.filter(|memory| !memory.is_blank());
        let Some(mut joined) = some.next().cloned() else {
            return Self::new(question);
        };
        let mut is_one = true;
        for memory in some {
            is_one = false;
            joined.join(question, memory);
        }
        if let (Self::Sequence { may, newest, .. }, Question::Sequence { ordered: true, .. }, false) =
            (&mut joined, question, is_one)
        {
            let start = newest.iter().min().copied().unwrap_or(NEVER);
            may.fill(start);
        }
        joined
    }

    fn join(&mut self, question: &Question, other: &Self) {
        match (self, other, question) {
            (Self::Prior { sure, may }, Self::Prior { sure: s, may: m }, _) => {
                *sure = (*sure).max(*s);
                *may = (*may).max(*m);
            }
            (
                Self::Sequence { sure, may, newest },
                Self::Sequence {
                    sure: s,
                    may: m,
                    newest: n,
                },
                _,
            ) => {
                latest(sure, s);
                latest(may, m);
                latest(newest, n);
            }
            (Self::Count { sure, may }, Self::Count { sure: s, may: m }, Question::Count { compare, .. }) => {
                merge(sure, s, *compare);
                merge(may, m, *compare);
            }
            (Self::Distinct(values), Self::Distinct(others), Question::Distinct { compare, .. }) => {
                values.sure.join(&others.sure, *compare);
                values.may.join(&others.may, *compare);
                merge(&mut values.blank, &others.blank, *compare);
            }
            _ => {}
        }
    }

    /// Returns the same memory in another table.
    pub fn carried(&self, from: &Symbols, to: &mut Symbols) -> Self {
        match self {
            Self::Distinct(values) => Self::Distinct(Box::new(Values {
                sure: values.sure.carried(from, to),
                may: values.may.carried(from, to),
                blank: values.blank.clone(),
            })),
            memory => memory.clone(),
        }
    }

    /// Returns the answer at an instant.
    pub fn answer(&self, question: &Question, at_ms: i64) -> Truth {
        match (self, question) {
            (Self::Prior { sure, may }, Question::Prior(_)) => either(*sure, *may, at_ms, WITHIN_LIMIT_MS),
            (
                Self::Sequence { sure, may, .. },
                Question::Sequence {
                    within_ms, ordered, ..
                },
            ) => {
                let time = |times: &Vec<i64>| match ordered {
                    true => times.last().copied().unwrap_or(NEVER),
                    false => times.iter().copied().min().unwrap_or(NEVER),
                };
                either(time(sure), time(may), at_ms, *within_ms)
            }
            (
                Self::Count { sure, may },
                Question::Count {
                    within_ms, compare, ..
                },
            ) => {
                let start = at_ms.saturating_sub(*within_ms);
                between(newer(sure, start), newer(may, start), *compare)
            }
            (
                Self::Distinct(values),
                Question::Distinct {
                    within_ms,
                    operand,
                    compare,
                    ..
                },
            ) => {
                let start = at_ms.saturating_sub(*within_ms);
                let blank = match (newer(&values.blank, start), operand.kind()) {
                    // A set that nobody can say may hold any number of values.
                    (1.., FieldType::Set) => u64::MAX,
                    (blank, _) => blank,
                };
                let most = values.may.newer(start).saturating_add(blank);
                between(values.sure.newer(start), most, *compare)
            }
            _ => Truth::Unknown,
        }
    }

    /// Remembers an event for each of whose patterns `matches` has the answer.
    ///
    /// `value` is that of the attribute whose values are counted.
    pub fn observe(
        &mut self,
        question: &Question,
        at_ms: i64,
        matches: &[Truth],
        value: Value,
        symbols: &Symbols,
    ) {
        match (self, question) {
            (Self::Prior { sure, may }, _) => {
                if matches[0] == Truth::True {
                    *sure = at_ms;
                }
                if matches[0] != Truth::False {
                    *may = at_ms;
                }
            }
            (Self::Sequence { sure, may, newest }, Question::Sequence { ordered, .. }) => {
                chain(sure, *ordered, at_ms, |at| matches[at] == Truth::True);
                chain(may, *ordered, at_ms, |at| matches[at] != Truth::False);
                chain(newest, false, at_ms, |at| matches[at] != Truth::False);
            }
            (Self::Count { sure, may }, Question::Count { compare, .. }) => {
                if matches[0] == Truth::True {
                    push(sure, at_ms, *compare);
                }
                if matches[0] != Truth::False {
                    push(may, at_ms, *compare);
                }
            }
            (Self::Distinct(values), Question::Distinct { operand, compare, .. }) => {
                values.observe(operand, *compare, at_ms, matches[0], value, symbols);
            }
            _ => {}
        }
    }
}

impl Values {
    fn observe(
        &mut self,
        operand: &Operand,
        compare: Compare,
        at_ms: i64,
        matches: Truth,
        value: Value,
        symbols: &Symbols,
    ) {
        if matches == Truth::False {
            return;
        }
        let mut seen = Vec::new();
        if !each_value(operand, value, symbols, &mut |key| seen.push(key)) {
            push(&mut self.blank, at_ms, compare);
            return;
        }
        for key in seen {
            if matches == Truth::True {
                self.sure.touch(key.clone(), at_ms, compare);
            }
            self.may.touch(key, at_ms, compare);
        }
    }
}

impl Newest {
    fn carried(&self, from: &Symbols, to: &mut Symbols) -> Self {
        let mut carried = |(at, key): &(i64, Key)| (*at, key.carried(from, to));
        let order: BTreeSet<(i64, Key)> = self.order.iter().map(&mut carried).collect();
        Self {
            times: order.iter().map(|(at, key)| (key.clone(), *at)).collect(),
            order,
        }
    }

    fn join(&mut self, other: &Self, compare: Compare) {
        for (at_ms, key) in &other.order {
            if self.times.get(key).is_none_or(|known| known < at_ms) {
                self.touch(key.clone(), *at_ms, compare);
            }
        }
    }

    fn touch(&mut self, key: Key, at_ms: i64, compare: Compare) {
        if let Some(before) = self.times.insert(key.clone(), at_ms) {
            self.order.remove(&(before, key.clone()));
        }
        self.order.insert((at_ms, key));
        // What is forgotten is older than n + 1 others: whenever it would count, they do.
        while self.order.len() as u64 > compare.value + 1
            && let Some((_, oldest)) = self.order.pop_first()
        {
            self.times.remove(&oldest);
        }
    }

    fn newer(&self, start: i64) -> u64 {
        self.order.iter().rev().take_while(|(at, _)| *at >= start).count() as u64
    }
}

fn push(times: &mut VecDeque<i64>, at_ms: i64, compare: Compare) {
    times.push_back(at_ms);
    if times.len() as u64 > compare.value + 1 {
        times.pop_front();
    }
}

/// Adds the times of others, and keeps as many of the newest as are needed.
fn merge(times: &mut VecDeque<i64>, others: &VecDeque<i64>, compare: Compare) {
    times.extend(others);
    times.make_contiguous().sort_unstable();
    while times.len() as u64 > compare.value + 1 {
        times.pop_front();
    }
}

fn latest(times: &mut [i64], others: &[i64]) {
    for (at, other) in times.iter_mut().zip(others) {
        *at = (*at).max(*other);
    }
}

fn newer(times: &VecDeque<i64>, start: i64) -> u64 {
    (times.len() - times.partition_point(|at| *at < start)) as u64
}

/// Notes, for each pattern, the latest start of a chain that ends with it; unordered, its newest match.
fn chain(times: &mut [i64], ordered: bool, at_ms: i64, is: impl Fn(usize) -> bool) {
    // From the last to the first: one event continues a chain once.
    for at in (0..times.len()).rev().filter(|at| is(*at)) {
        let start = if at == 0 || !ordered { at_ms } else { times[at - 1] };
        times[at] = times[at].max(start);
    }
}

fn either(sure: i64, may: i64, at_ms: i64, within_ms: i64) -> Truth {
    let start = at_ms.saturating_sub(within_ms);
    if sure != NEVER && sure >= start {
        Truth::True
    } else if may != NEVER && may >= start {
        Truth::Unknown
    } else {
        Truth::False
    }
}

/// Returns what a comparison says of a count that is somewhere from `least` to `most`.
fn between(least: u64, most: u64, compare: Compare) -> Truth {
    let holds = |count: u64| compare.op.holds(&count, &compare.value);
    let (value, first) = (compare.value, holds(least));
    // A comparison changes its answer at its number only.
    let turns = [value.saturating_sub(1), value, value + 1, most];
    let is_constant = turns
        .into_iter()
        .filter(|count| (least..=most).contains(count))
        .all(|count| holds(count) == first);
    if is_constant { first.into() } else { Truth::Unknown }
}
