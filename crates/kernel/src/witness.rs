//! What this server knows that the store held: of each audit chain the furthest place that a commit confirmed or that a
//! head said. A store that no longer holds it has gone back, and what was answered since is lost.
//!
//! ```text
//! before a transaction   the place that is known
//! its head               not smaller, and at the same place not another hash
//! after a lost connection   each known place still has its hash, before the connection serves
//! ```
//!
//! A database behind a failover, a snapshot or a proxy may go back while servers run. Heads that are merely larger prove
//! nothing, since a chain that went back grows again; therefore each connection that takes the place of a lost one asks for
//! the entries themselves, each for itself: two of them may have reached different databases.
//!
//! INVARIANT WT-1: once a store was seen to have gone back behind what was answered, a server reads and writes
//! nothing of it any more; a connection that takes the place of a lost one serves only where every known entry still
//! has its hash.
//!
//! Absent on purpose: a memory that outlives the process. Checkpoints beside the keys are that (AL-3).

use crate::auth::OrganizationId;
use crate::db::{Call, Conn, Param, Watch};
use crate::error::{Class, Error, Result};
use crate::merkle::Hash;
use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// How many places are asked for in one round trip.
const CHUNK: usize = 256;

crate::statements! {
    /// Returns the hash of the entry at a place.
    HASH_AT = "SELECT hash FROM audit_entries WHERE organization_id = ?1 AND seq = ?2";
    /// Asks whether the store answers.
    ANSWER = unscoped("it reads no row") "SELECT 1";
}

/// A place of a chain: the number of an entry, and its hash.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ChainPosition {
    pub seq: i64,
    pub hash: Hash,
}

/// See the module's text.
#[derive(Default)]
pub(crate) struct Witness {
    known: Mutex<HashMap<OrganizationId, ChainPosition>>,
    went_back: AtomicBool,
    /// How many snapshots the readers have read.
    reads: AtomicU64,
}

impl Witness {
    fn lock(&self) -> MutexGuard<'_, HashMap<OrganizationId, ChainPosition>> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the furthest place of a chain that is known. Asked before a transaction begins: what others commit
    /// meanwhile is then never taken for a loss.
    pub fn known(&self, organization: &OrganizationId) -> Option<ChainPosition> {
        self.lock().get(organization).copied()
    }

    /// Notes a place that a commit confirmed, or that a head said.
    pub fn saw(&self, organization: &OrganizationId, place: ChainPosition) {
        let mut known = self.lock();
        match known.get_mut(organization) {
            Some(before) if before.seq >= place.seq => {}
            Some(before) => *before = place,
            None => drop(known.insert(organization.clone(), place)),
        }
    }

    /// Compares a head with what was known before its transaction began.
    ///
    /// Errors: `Unavailable` of the class `Broken`, when the chain has gone back.
    pub fn compare(
        &self,
        organization: &OrganizationId,
        known: Option<ChainPosition>,
        head: ChainPosition,
    ) -> Result<()> {
        let Some(known) = known else { return Ok(()) };
        if head.seq > known.seq || head == known {
            return Ok(());
        }
        Err(self.tell(organization, known, &format!("its head says {}", head.seq)))
    }

    /// Returns how many snapshots were read.
    pub fn reads(&self) -> u64 {
        self.reads.load(Ordering::Acquire)
    }

    /// Says whether the store was seen to have gone back.
    pub fn has_gone_back(&self) -> bool {
        self.went_back.load(Ordering::SeqCst)
    }

    fn tell(&self, organization: &OrganizationId, known: ChainPosition, found: &str) -> Error {
        let cause = format!(
            "the audit chain {organization} had reached entry {}, and {found}",
            known.seq
        );
        if !self.went_back.swap(true, Ordering::SeqCst) {
            tracing::error!(
                "the store has gone back: {cause}; nothing is served until a restart; bring the newer store back, or stop \
                 every server and run `provost store accept --lost`"
            );
        }
        gone_back().caused_by(cause)
    }
}

/// What every caller is told from then on.
pub(crate) fn gone_back() -> Error {
    Error::unavailable(
        "the store has gone back behind changes that were answered; the server serves nothing until an operator has \
         brought the newer store back, or accepted the loss, and restarted it",
    )
    .class(Class::Broken)
}

impl Watch for Witness {
    fn permit(&self) -> Result<()> {
        if self.has_gone_back() {
            return Err(gone_back());
        }
        Ok(())
    }

    fn look(&self, conn: &mut Conn) -> Result<()> {
        let known: Vec<(OrganizationId, ChainPosition)> = self
            .lock()
            .iter()
            .map(|(organization, place)| (organization.clone(), *place))
            // A chain without entries has nothing that could be lost.
            .filter(|(_, place)| place.seq > 0)
            .collect();
        for chunk in known.chunks(CHUNK) {
            let call = |(organization, place): &(OrganizationId, ChainPosition)| Call {
                statement: &HASH_AT,
                params: vec![
                    Param::from(organization.as_str().to_owned()),
                    Param::from(place.seq),
                ],
            };
            let calls: Vec<Call<'_>> = chunk.iter().map(call).collect();
            for ((organization, place), rows) in chunk.iter().zip(conn.many(&calls)?) {
                let found: Option<Vec<u8>> = rows.first().map(|row| row.get(0)).transpose()?;
                match found {
                    Some(hash) if hash == place.hash => {}
                    Some(_) => return Err(self.tell(organization, *place, "that entry is another one now")),
                    None => return Err(self.tell(organization, *place, "that entry is gone")),
                }
            }
        }
        Ok(())
    }

    fn was_read(&self) {
        self.reads.fetch_add(1, Ordering::AcqRel);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn place(seq: i64, byte: u8) -> ChainPosition {
        ChainPosition {
            seq,
            hash: [byte; 32],
        }
    }

    /// Proves WT-1.
    #[test]
    fn a_head_that_is_smaller_or_another_one_has_gone_back() {
        let acme = OrganizationId::parse("acme").unwrap();
        for (known, head, is_whole) in [
            (None, place(0, 0), true),
            (Some(place(5, 1)), place(5, 1), true),
            (Some(place(5, 1)), place(6, 2), true),
            (Some(place(5, 1)), place(4, 1), false),
            (Some(place(5, 1)), place(5, 2), false),
        ] {
            let witness = Witness::default();
            let outcome = witness.compare(&acme, known, head);
            assert_eq!(outcome.is_ok(), is_whole, "{known:?} {head:?}");
            assert_eq!(witness.has_gone_back(), !is_whole);
            assert_eq!(witness.permit().is_ok(), is_whole);
            if let Err(error) = outcome {
                assert_eq!(error.work_class(), Class::Broken);
                assert!(
                    !error.message().contains("acme"),
                    "one organization is not told of another"
                );
            }
        }
    }

    #[test]
    fn the_furthest_place_is_known_whatever_comes_later() {
        let (acme, globex) = ["acme", "globex"]
            .map(|key| OrganizationId::parse(key).unwrap())
            .into();
        let witness = Witness::default();
        for seen in [place(3, 1), place(7, 2), place(5, 9), place(7, 9)] {
            witness.saw(&acme, seen);
        }
        assert_eq!(witness.known(&acme), Some(place(7, 2)));
        assert_eq!(witness.known(&globex), None);
    }
}
