//! What is concluded of the many files that Claude Code reads: which of their values it is that it does not take.

use std::collections::{BTreeMap, BTreeSet};

use super::Client;
use super::catalogue::{Batch, Catalogue};
use super::place::{Place, Verdict};
use crate::failure::{Failure, Outcome};

/// Returns the right documents with which the client does not start here, because it obeys them, as one that asks for a sign-in:
/// that it does not start with a wrong value in one of these says nothing of the value. Such a document has one member alone.
pub fn stopping<'a>(
    client: Client,
    place: impl Fn(usize) -> Outcome<Place<'a>>,
    catalogue: &Catalogue,
) -> Outcome<BTreeSet<usize>> {
    let mut stopping = BTreeSet::new();
    if client == Client::Codex {
        return Ok(stopping);
    }
    let place = place(0)?;
    for (number, document) in catalogue.documents.iter().enumerate() {
        if place.starts(document)? {
            continue;
        }
        let members = document.as_object().map_or(0, serde_json::Map::len);
        if members > 1 {
            let said =
                format!("right document {number} stops the client: give what it obeys a document of its own");
            return Err(Failure::new(said));
        }
        stopping.insert(number);
    }
    Ok(stopping)
}

/// Returns the probes of a batch with which the client does not start, although it does with what is right: those in one member
/// of the top together, because what is wrong in a guard of Claude Code stops it wherever in the guard it lies.
pub fn refusing(place: &Place<'_>, batch: &Batch) -> Outcome<Vec<usize>> {
    if place.starts(&batch.document())? || !place.starts(batch.right())? {
        return Ok(Vec::new());
    }
    let Some(halves) = batch.halves() else {
        return Ok(batch.probes().map(|(probe, _)| probe).collect());
    };
    let mut all = Vec::new();
    for half in &halves {
        all.extend(refusing(place, half)?);
    }
    Ok(all)
}

/// Returns the probes of a batch of which the client says nothing at all.
pub fn silent_ones(place: &Place<'_>, batch: &Batch) -> Outcome<BTreeMap<usize, Verdict>> {
    let mut parts = vec![batch.clone()];
    let mut silent = BTreeMap::new();
    while let Some(part) = parts.pop() {
        if part.is_empty() {
            continue;
        }
        if place.is_silent(&part.document())? {
            silent.extend(part.probes().map(|(probe, _)| (probe, Verdict::Starts)));
        } else if let Some(halves) = part.halves() {
            parts.extend(halves);
        }
    }
    Ok(silent)
}
