//! What a restore takes the place of: the stores of the same descent that are served with these keys (D12.9, WS-4).
//!
//! INVARIANT WS-4: a restore gives nothing up that the keys folder proves and the backup lacks, unless it is told to;
//! a rehearsal leaves the live store as it is, its lines included.

use crate::commands::failure::{Failure, Outcome};
use crate::commands::show;
use provost_areas_platform::audit::{self, Forfeit, Register};
use provost_areas_platform::identity::{self, Identity, State};
use provost_kernel::Timestamp;
use provost_kernel::db::Conn;
use provost_kernel::entropy::SystemEntropy;
use provost_kernel::keys::Keys;

/// What a restore finds beside the keys.
pub struct Predecessors {
    /// What lies beside the keys.
    pub register: Register,
    /// The store of the backup, when it has an id.
    pub backup: Option<Identity>,
    given_up: Vec<Forfeit>,
}

impl Predecessors {
    /// Compares a backup with what lies beside the keys.
    ///
    /// Errors: those of reading either.
    pub fn by(backup: &mut Conn, keys: &Keys) -> Result<Self, Failure> {
        let register = Register::of(&keys.checkpoint_lines()?)?;
        let (known, given_up) = backup.read(|tx| {
            let known = identity::read(tx, keys)?;
            Ok((known, audit::given_up(tx, keys, &register)?))
        })?;
        Ok(Self {
            register,
            backup: known,
            given_up,
        })
    }

    /// Returns the id of the backup's store.
    pub fn from(&self) -> Option<&str> {
        self.backup.as_ref().map(|known| known.id.as_str())
    }

    /// Says what would be given up, and stops where anything would.
    ///
    /// Errors: a sentence with the flags that go on.
    pub fn agree(&self, replaces_live: bool) -> Outcome {
        if self
            .backup
            .as_ref()
            .is_some_and(|known| known.state == State::Rehearsal)
        {
            return Err(Failure::new(
                "this is a backup of a rehearsal, which nothing beside the keys is about; restore the backup that was \
                 rehearsed, or rehearse this one with --rehearse",
            ));
        }
        for chain in &self.given_up {
            show::note(&format!(
                "{}: the backup has {} entries of the audit log, and the checkpoint of {} covers {}",
                chain.organization, chain.held, chain.time, chain.reached
            ));
        }
        if self.given_up.is_empty() || replaces_live {
            return Ok(());
        }
        Err(Failure::new(
            "the keys folder knows changes that this backup does not hold, and a restore would give them up, among them what \
             was taken away since: --replace-live does that and retires the store that has them; --rehearse makes a store to \
             look at, which leaves that one as it is",
        ))
    }

    /// Returns the lines that retire the stores whose place the restored one takes.
    pub fn retire(&self, now: Timestamp) -> Vec<String> {
        audit::retirement(&self.register, self.from(), &self.given_up, &SystemEntropy, now)
    }
}
