//! Digests of behaviours that do not depend on tables, layouts or runs.
//!
//! Each distinct text or set is hashed once, by SHA-256; those of an event's values are then mixed.

use super::checkpoint_state::Fingerprint;
use aws_lc_rs::digest::{SHA256, digest};
use provost_policy::{Symbols, Value};

/// The digests of the texts and sets of one table of symbols, made when they are needed.
#[derive(Debug, Default)]
pub(super) struct Fingerprints {
    texts: Vec<Option<Fingerprint>>,
    sets: Vec<Option<Fingerprint>>,
}

impl Fingerprints {
    /// Returns the digest of a value.
    pub fn value(&mut self, value: Value, symbols: &Symbols) -> Fingerprint {
        match value {
            Value::Absent => 1,
            Value::Missing => 2,
            Value::Boolean(is) => 3 + Fingerprint::from(is),
            Value::Number(number) => mix(5, Fingerprint::from(number.to_bits())),
            Value::Text(symbol) => *slot(&mut self.texts, symbol.index())
                .get_or_insert_with(|| of(b"text", [symbols.text(symbol)])),
            Value::Line { whole, words } => {
                let whole = self.value(Value::Text(whole), symbols);
                mix(mix(6, whole), self.value(Value::Set(words), symbols))
            }
            Value::Set(set) => *slot(&mut self.sets, set.index()).get_or_insert_with(|| {
                let mut members: Vec<&str> = symbols.set(set).iter().map(|s| symbols.text(*s)).collect();
                members.sort_unstable();
                of(b"set", members)
            }),
        }
    }
}

fn slot(all: &mut Vec<Option<Fingerprint>>, at: usize) -> &mut Option<Fingerprint> {
    if all.len() <= at {
        all.resize(at + 1, None);
    }
    &mut all[at]
}

/// Returns the digest of a list of texts of some kind.
pub(super) fn of<'a>(kind: &[u8], texts: impl IntoIterator<Item = &'a str>) -> Fingerprint {
    let mut bytes = kind.to_vec();
    for text in texts {
        bytes.extend_from_slice(&(text.len() as u64).to_le_bytes());
        bytes.extend_from_slice(text.as_bytes());
    }
    let hash = digest(&SHA256, &bytes);
    let mut first = [0; 16];
    first
        .iter_mut()
        .zip(hash.as_ref())
        .for_each(|(to, from)| *to = *from);
    Fingerprint::from_be_bytes(first)
}

/// Returns the digest of a digest and one more.
pub(super) fn mix(mark: Fingerprint, next: Fingerprint) -> Fingerprint {
    let mixed = (mark.rotate_left(41) ^ next).wrapping_mul(0x9e37_79b9_7f4a_7c15_f39c_c060_5ced_c835);
    mixed ^ (mixed >> 64)
}
