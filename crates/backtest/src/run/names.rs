//! The subjects and tools of the rows at hand, by small numbers, and what is counted of each.

use super::checkpoint_state::CheckpointState;
use super::fingerprints;
use super::totals::{Name, SubjectKind, add_name};
use provost_policy::{Symbol, Symbols, Value};
use std::collections::{HashMap, HashSet};

/// Numbers of names; 0 is nobody's.
#[derive(Debug)]
pub(super) struct Names<'a> {
    wanted: Option<&'a HashSet<&'a str>>,
    places: HashMap<(Option<SubjectKind>, Symbol), u32>,
    all: Vec<NameState>,
    /// By number, how many events; every event is counted, and so nothing else lies beside.
    evaluated: Vec<u64>,
    changed: Vec<u64>,
}

#[derive(Debug)]
struct NameState {
    name: Option<(Option<SubjectKind>, Symbol)>,
    is_wanted: bool,
    mark: Option<u128>,
}

impl<'a> Names<'a> {
    /// Returns no names; those that are `wanted` are counted, all where nothing is said.
    pub fn new(wanted: Option<&'a HashSet<&'a str>>) -> Self {
        Self {
            wanted,
            places: HashMap::new(),
            all: vec![NameState {
                name: None,
                is_wanted: wanted.is_none(),
                mark: None,
            }],
            evaluated: vec![0],
            changed: vec![0],
        }
    }

    /// Returns the numbers of a column's values, by code.
    pub fn numbers(&mut self, kind: Option<SubjectKind>, values: &[Value], symbols: &Symbols) -> Vec<u32> {
        let mut number = |value: &Value| match value {
            Value::Text(symbol) => *self.places.entry((kind, *symbol)).or_insert_with(|| {
                self.all.push(NameState {
                    name: Some((kind, *symbol)),
                    is_wanted: self.wanted.is_none_or(|all| all.contains(symbols.text(*symbol))),
                    mark: None,
                });
                self.evaluated.push(0);
                self.changed.push(0);
                u32::try_from(self.all.len() - 1).unwrap_or(0)
            }),
            _ => 0,
        };
        values.iter().map(&mut number).collect()
    }

    /// Returns whether every name is counted.
    pub fn wants_all(&self) -> bool {
        self.wanted.is_none()
    }

    pub fn is_wanted(&self, number: u32) -> bool {
        self.all[number as usize].is_wanted
    }

    /// Counts rows of these names, each for as many events as it stands for.
    pub fn evaluate(&mut self, numbers: &[u32], weights: &[u64]) {
        for (number, weight) in numbers.iter().zip(weights) {
            self.evaluated[*number as usize] += weight;
        }
    }

    /// Counts changed events.
    pub fn change(&mut self, number: u32, weight: u64) {
        self.changed[number as usize] += weight;
    }

    /// Returns the name.
    pub fn name<'s>(&self, number: u32, symbols: &'s Symbols) -> Option<(Option<SubjectKind>, &'s str)> {
        let (kind, symbol) = self.all[number as usize].name?;
        Some((kind, symbols.text(symbol)))
    }

    /// Returns the digest of the name.
    pub fn mark(&mut self, number: u32, symbols: &Symbols) -> u128 {
        let known = &mut self.all[number as usize];
        let name = known.name;
        *known.mark.get_or_insert_with(|| mark_of(name, symbols))
    }

    /// Moves the counts.
    pub fn settle(&mut self, into: &mut CheckpointState<Name>, symbols: &Symbols) {
        for at in 1..self.all.len() {
            if self.evaluated[at] == 0 {
                continue;
            }
            let mark = self.mark(u32::try_from(at).unwrap_or(0), symbols);
            let Some((kind, symbol)) = self.all[at].name else {
                continue;
            };
            let name = Name {
                kind,
                text: symbols.text(symbol).into(),
                evaluated: std::mem::take(&mut self.evaluated[at]),
                changed: std::mem::take(&mut self.changed[at]),
            };
            add_name(into, mark, name);
            into.trim();
        }
    }
}

fn mark_of(name: Option<(Option<SubjectKind>, Symbol)>, symbols: &Symbols) -> u128 {
    match name {
        None => 0,
        Some((kind, symbol)) => {
            let kind: &[u8] = match kind {
                None => b"tool",
                Some(SubjectKind::User) => b"user",
                Some(SubjectKind::ServiceAccount) => b"service_account",
                Some(SubjectKind::Device) => b"device",
            };
            fingerprints::of(kind, [symbols.text(symbol)])
        }
    }
}
