//! The part of an event that a set can see: events with the same projection get the same decision.
//!
//! A replay groups events by their projection, decides each group once and multiplies. Where the decision depends on
//! the subject's past, or a module reads what it likes, there is no such grouping.
//!
//! INVARIANT PJ-1: two events with the same projection have the same outcome under every set that it was made for,
//! with the register that it knows.

use crate::catalogue::Field;
use crate::condition::Operand;
use crate::digest::sha256_hex;
use crate::event::{Event, Value};
use crate::register::Register;
use crate::set::{Node, PolicySet, Question};
use crate::symbols::{SetSymbol, Symbols};

/// What some sets can see.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Projection {
    fields: Vec<Field>,
    /// Ends of exceptions: an event is before or after each.
    instants: Vec<i64>,
    groupable: bool,
}

impl Projection {
    /// Returns what these sets can see together.
    pub fn of(sets: &[&PolicySet]) -> Self {
        let mut fields = Vec::new();
        let mut instants = Vec::new();
        for set in sets {
            for node in &set.program.nodes {
                match node {
                    Node::Test(test) => fields.push(test.operand.field()),
                    Node::Before(at_ms) => instants.push(*at_ms),
                    _ => {}
                }
            }
            for tracker in &set.program.trackers {
                if let Question::Distinct { operand, .. } = &tracker.question {
                    fields.push(Operand::field(operand));
                }
            }
            if set.has_history() {
                fields.extend([Field::USER, Field::SERVICE_ACCOUNT, Field::DEVICE]);
            }
            if set.has_rego() {
                fields.extend(Field::all());
            }
        }
        fields.sort_unstable();
        fields.dedup();
        instants.sort_unstable();
        instants.dedup();
        Self {
            fields,
            instants,
            groupable: !sets.iter().any(|set| set.has_history() || set.has_rego()),
        }
    }

    /// Adds what tells events apart whose names may mean several records: the groups of a user whom several may be are
    /// those of each of them.
    #[must_use]
    pub fn knowing(mut self, register: &Register) -> Self {
        let reads_groups = self.fields.binary_search(&Field::GROUPS).is_ok();
        if reads_groups
            && register.is_ambiguous(Field::USER)
            && let Err(at) = self.fields.binary_search(&Field::USER)
        {
            self.fields.insert(at, Field::USER);
        }
        self
    }

    /// Returns the attributes that the sets read: the columns that a batch needs.
    pub fn fields(&self) -> &[Field] {
        &self.fields
    }

    /// Returns the instants that tell events apart: one is before each of them, or not. Ascending, in milliseconds
    /// since the Unix epoch, UTC.
    pub fn instants(&self) -> &[i64] {
        &self.instants
    }

    /// Returns whether events with the same projection can be decided once.
    pub fn is_groupable(&self) -> bool {
        self.groupable
    }

    /// Returns numbers that are equal for two events of one table of symbols iff their projections are.
    pub fn key(&self, event: &Event) -> Vec<u64> {
        let mut key = Vec::with_capacity(self.fields.len() + 2);
        key.push(self.place(event));
        for field in &self.fields {
            // Symbols have 32 bits, so that the kind fits beside them; a number, or a line, follows whole.
            match event.get(*field).key() {
                (kind @ (4 | Value::LINE_KEY), bits) => key.extend([u64::from(kind) << 32, bits]),
                (kind, bits) => key.push(u64::from(kind) << 32 | bits),
            }
        }
        key
    }

    /// Returns the digest of an event's projection, the same in every table. Units: 64 hexadecimal digits.
    pub fn digest(&self, event: &Event, symbols: &Symbols) -> String {
        let mut text = self.place(event).to_string();
        for field in &self.fields {
            text.push('\n');
            text.push_str(field.name());
            match event.get(*field) {
                Value::Absent => text.push('-'),
                Value::Missing => text.push('?'),
                Value::Text(symbol) => part(&mut text, symbols.text(symbol)),
                Value::Set(set) => members(&mut text, set, symbols),
                Value::Line { whole, words } => {
                    text.push('>');
                    part(&mut text, symbols.text(whole));
                    members(&mut text, words, symbols);
                }
                Value::Number(number) => {
                    text.push('#');
                    text.push_str(&number.to_bits().to_string());
                }
                Value::Boolean(is) => text.push_str(if is { "+" } else { "!" }),
            }
        }
        sha256_hex(text.as_bytes())
    }

    /// Returns the occasion, and the number of instants that the event is not before.
    fn place(&self, event: &Event) -> u64 {
        let past = self.instants.partition_point(|instant| *instant <= event.at_ms());
        (past as u64) << 8 | event.occasion() as u64
    }
}

/// Adds a set of texts.
fn members(text: &mut String, set: SetSymbol, symbols: &Symbols) {
    let mut members: Vec<&str> = symbols.set(set).iter().map(|s| symbols.text(*s)).collect();
    members.sort_unstable();
    text.push('[');
    text.push_str(&members.len().to_string());
    for member in members {
        part(text, member);
    }
}

/// Adds a text so that no two lists of texts look the same.
fn part(text: &mut String, part: &str) {
    text.push('=');
    text.push_str(&part.len().to_string());
    text.push(':');
    text.push_str(part);
}
