//! What a restore of a backup gives up of what the keys folder proves, and whose place it takes (D12.9).

use super::model::CheckpointLine;
use super::register::{Event, Register};
use super::store;
use super::tree::StoredTree;
use super::verify_start::signed;
use crate::identity::{self, Identity, State};
use provost_kernel::db::Tx;
use provost_kernel::entropy::Entropy;
use provost_kernel::keys::Keys;
use provost_kernel::{Result, Timestamp, merkle};
use std::collections::BTreeSet;

/// A chain of which the keys know more than a backup holds.
#[derive(Debug, PartialEq, Eq)]
pub struct Forfeit {
    /// The store that has it, as id and epoch; nothing where the lines name none.
    pub store: Option<(String, i64)>,
    /// Whose chain.
    pub organization: String,
    /// How many entries the backup has.
    pub held: i64,
    /// How many the checkpoint covers.
    pub reached: u64,
    /// When it was signed.
    pub time: String,
}

/// Returns what a restore of a backup gives up: the chains of its store, and of those that were restored from it, that are
/// known to hold more than the backup, or something else.
///
/// Errors: `AuditUnavailable` for a line that nobody signed.
pub fn given_up(tx: &mut Tx<'_>, keys: &Keys, register: &Register) -> Result<Vec<Forfeit>> {
    let backup = identity::read(tx, keys)?;
    let mut lines: Vec<(Option<(String, i64)>, CheckpointLine)> = Vec::new();
    if backup.is_none() {
        let unclaimed = register.unclaimed().into_iter().flat_map(|of| of.values());
        lines.extend(unclaimed.map(|line| (None, line.clone())));
    }
    for (id, epoch) in register.relatives(backup.as_ref().map(|known| known.id.as_str())) {
        let relative = Identity {
            id,
            epoch,
            state: State::Live,
        };
        let newest = register.newest(Some(&relative)).into_values();
        lines.extend(newest.map(|line| (Some((relative.id.clone(), epoch)), line)));
    }
    let mut given_up: Vec<Forfeit> = Vec::new();
    for (store_of_line, line) in lines {
        let signed = signed(keys, &line)?;
        let organization = line.organization_id.as_str();
        let held = store::length(tx, organization)?;
        let is_held = held.unsigned_abs() >= line.size
            && merkle::root(line.size, &mut StoredTree::new(tx, organization, line.size))? == signed;
        if is_held {
            continue;
        }
        given_up.push(Forfeit {
            store: store_of_line,
            organization: organization.to_owned(),
            held,
            reached: line.size,
            time: line.time.to_rfc3339(),
        });
    }
    Ok(given_up)
}

/// Returns the lines that retire the stores whose place a restore of this backup takes: those of its descent, and whatever has
/// what is given up.
pub fn retirement(
    register: &Register,
    backup: Option<&str>,
    given_up: &[Forfeit],
    entropy: &dyn Entropy,
    now: Timestamp,
) -> Vec<String> {
    let mut replaced: BTreeSet<(String, i64)> = given_up.iter().filter_map(|one| one.store.clone()).collect();
    if backup.is_some_and(|id| register.epoch_of(id).is_some()) {
        replaced.extend(register.relatives(backup));
    }
    let mut lines = Vec::new();
    if given_up.iter().any(|one| one.store.is_none()) {
        // The store that would adopt them has no id yet. They are adopted by one that is nowhere.
        let nobody = Identity::new(entropy, 0, State::Live);
        lines.push(Event::Adopted.line(&nobody.id, 0, now));
        replaced.insert((nobody.id, 0));
    }
    let retired = replaced
        .iter()
        .map(|(id, epoch)| Event::Retired.line(id, *epoch, now));
    lines.extend(retired);
    lines
}
