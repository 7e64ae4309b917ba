//! How much of a store that went back is left, by what lies beside the keys (D12.9).
//!
//! Keeps EN-4.

use super::model::CheckpointLine;
use super::register::Register;
use super::store;
use super::tree::StoredTree;
use super::verify_start::signed;
use crate::identity::Identity;
use provost_kernel::audit::hex;
use provost_kernel::db::Tx;
use provost_kernel::ends::EndLine;
use provost_kernel::keys::Keys;
use provost_kernel::{Result, Timestamp, merkle, params, statements};
use std::collections::BTreeMap;

statements! {
    /// What is known of an entry by its place.
    ENTRY_AT = "SELECT time, hash, action FROM audit_entries WHERE organization_id = ?1 AND seq = ?2";
    /// The number of the last entry of a chain.
    HEAD_SEQ = "SELECT seq FROM chain_heads WHERE organization_id = ?1";
}

/// How much older than its checkpoint an entry may be: it is signed after a minute, and a round may be late. Units: seconds.
const UNSIGNED_SECS: i64 = 600;

/// A chain of a store that may have gone back.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Remainder {
    /// Whose chain.
    pub organization: String,
    /// How many entries are left.
    pub held: i64,
    /// How many the largest checkpoint covers.
    pub proven: u64,
    /// The largest checkpoint is not one of the chain that is left.
    pub is_behind: bool,
    /// Nothing that is lost of the chain is older than this instant.
    pub lost_after: Timestamp,
}

/// Returns what is left of each chain; `texts` are the lines of `checkpoints.jsonl`, and `alive_at` is when something was taken away
/// last.
///
/// What is lost came after the largest checkpoint that fits. Where there is a larger one, it came at most so long before that one
/// as entries wait for their checkpoint, and otherwise before the last sign of life of the store: a chain may stand still for months.
///
/// Errors: `AuditUnavailable` for a line that nobody signed.
/// Cost: one root for each checkpoint that the chain lacks but is long enough for, and one more.
pub fn remainders(
    tx: &mut Tx<'_>,
    keys: &Keys,
    texts: &[String],
    register: &Register,
    known: &Identity,
    alive_at: Option<Timestamp>,
) -> Result<Vec<Remainder>> {
    let mut alive_at = alive_at.unwrap_or(Timestamp::EPOCH);
    let mut lines: BTreeMap<String, Vec<CheckpointLine>> = BTreeMap::new();
    for head in store::heads(tx)? {
        lines.entry(head.organization.as_str().to_owned()).or_default();
    }
    for text in texts {
        let Ok(line) = serde_json::from_str::<CheckpointLine>(text) else {
            continue;
        };
        let is_own = match &line.store_id {
            Some(id) => *id == known.id && line.store_epoch.unwrap_or(0) >= known.epoch,
            None => register.has_adopted(known),
        };
        if is_own {
            alive_at = alive_at.max(line.time);
            lines.entry(line.organization_id.clone()).or_default().push(line);
        }
    }
    let mut found = Vec::new();
    for (organization, mut lines) in lines {
        let held = store::length(tx, &organization)?;
        lines.sort_by_key(|line| std::cmp::Reverse(line.size));
        let proven = lines.first().map_or(0, |line| line.size);
        let (mut common, mut first_lost) = (None, None);
        for line in &lines {
            if fits(tx, keys, line, held)? {
                common = Some(line);
                break;
            }
            first_lost = Some(line);
        }
        let is_behind = common.map_or(0, |line| line.size) < proven;
        let certain = match common {
            Some(line) => line.time,
            None => first_at(tx, &organization)?,
        };
        let signed_at = first_lost.map_or(alive_at, |line| line.time);
        let lost_after = certain.max(signed_at.plus_secs(-UNSIGNED_SECS));
        found.push(Remainder {
            organization,
            held,
            proven,
            is_behind,
            lost_after,
        });
    }
    Ok(found)
}

fn fits(tx: &mut Tx<'_>, keys: &Keys, line: &CheckpointLine, held: i64) -> Result<bool> {
    if held.unsigned_abs() < line.size {
        return Ok(false);
    }
    let root = signed(keys, line)?;
    Ok(merkle::root(
        line.size,
        &mut StoredTree::new(tx, &line.organization_id, line.size),
    )? == root)
}

fn first_at(tx: &mut Tx<'_>, organization: &str) -> Result<Timestamp> {
    let first = tx.query_opt(&ENTRY_AT, params![organization, 1_i64], |row| row.get(0))?;
    Ok(first.unwrap_or(Timestamp::EPOCH))
}

/// Says whether a store lacks the commit that a line is about. Of a commit without an entry nobody can say: it counts as lost.
pub fn is_lost(tx: &mut Tx<'_>, line: &EndLine) -> Result<bool> {
    let Some(expected) = &line.hash else {
        return Ok(true);
    };
    let found = tx.query_opt(&ENTRY_AT, params![line.chain(), line.sequence], |row| {
        row.get::<Vec<u8>>(1)
    })?;
    Ok(found.is_none_or(|hash| hex(&hash) != *expected))
}

/// Says whether a line is about a commit beyond the end of its chain.
pub(super) fn is_beyond(tx: &mut Tx<'_>, line: &EndLine) -> Result<bool> {
    let head = tx.query_opt(&HEAD_SEQ, params![line.chain()], |row| row.get::<i64>(0))?;
    Ok(line.hash.is_some() && head.unwrap_or(0) < line.sequence)
}

/// Returns the act of the last entry of a chain.
pub fn last_act(tx: &mut Tx<'_>, organization: &str) -> Result<Option<String>> {
    let head = tx.query_opt(&HEAD_SEQ, params![organization], |row| row.get::<i64>(0))?;
    let Some(head) = head else { return Ok(None) };
    tx.query_opt(&ENTRY_AT, params![organization, head], |row| row.get(2))
}
