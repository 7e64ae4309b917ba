//! Which store a store is: its id, its epoch, and whether it is the live one.
//!
//! Lines of `checkpoints.jsonl` name the store that they are about, and each store is measured against its own. The id lies
//! in one row of the installation's table and travels with every copy; what makes another store of a copy gives it another
//! id (`store restore`), or says that it is no longer served (`store move`). The epoch counts what gives something up: a
//! line of an earlier epoch no longer binds.
//!
//! INVARIANT WS-1: what a store says of its identity carries a MAC under a key that is not in the store: whoever can
//! write to the database cannot make it another store, or one that is measured against nothing.

use crate::store::{self, SET_FACT};
use provost_kernel::audit::hex;
use provost_kernel::db::{Call, Conn, Param, Tx};
use provost_kernel::entropy::Entropy;
use provost_kernel::keys::{Keys, MacPurpose};
use provost_kernel::{Code, Error, Kernel, OperationContext, Result};
use std::sync::atomic::{AtomicBool, Ordering};

provost_kernel::statements! {
    /// Sets a fact that nobody has set: of two servers that start together one gives the store its id.
    ADD_FACT = "INSERT INTO installation (name, value) VALUES (?1, ?2) ON CONFLICT DO NOTHING";
}

/// The name of the fact.
const IDENTITY: &str = "store_identity";
/// The name of the fact that counts restores; releases of managed configuration name it.
pub const EPOCH: &str = "store_epoch";

provost_kernel::word! {
    /// Whether a store is served.
    pub enum State {
        /// It is, and measured against its lines.
        Live = "live",
        /// It is, as a rehearsal: it has no lines, and says so.
        Rehearsal = "rehearsal",
        /// It is not: it was moved elsewhere.
        Moved = "moved",
    }
}

/// See the module's text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Identity {
    /// The store's id.
    pub id: String,
    /// How often something of it was given up.
    pub epoch: i64,
    /// Whether it is served.
    pub state: State,
}

impl Identity {
    /// Returns the identity of a store that was none before.
    pub fn new(entropy: &dyn Entropy, epoch: i64, state: State) -> Self {
        Self {
            id: format!("store_{}", hex(&entropy.seed()[..16])),
            epoch,
            state,
        }
    }

    /// Returns the same store in another state.
    #[must_use]
    pub fn with(self, state: State) -> Self {
        Self { state, ..self }
    }

    fn said(&self) -> String {
        format!("{} {} {}", self.id, self.epoch, self.state.as_str())
    }

    fn value(&self, keys: &Keys) -> String {
        let said = self.said();
        let mac = keys.mac(MacPurpose::StoreIdentity, &[said.as_bytes()]);
        format!("{said} {}", hex(&mac))
    }

    /// Writes it into the store, in a unit of work.
    pub fn set(&self, ctx: &mut OperationContext<'_>) -> Result<()> {
        let value = self.value(&ctx.services().keys);
        store::set_fact(ctx, IDENTITY, &value)?;
        store::set_fact(ctx, EPOCH, &self.epoch.to_string())
    }

    /// Writes it into a store that has none, in a unit of work. Another server may be first.
    pub fn add(&self, ctx: &mut OperationContext<'_>) -> Result<()> {
        let value = self.value(&ctx.services().keys);
        ctx.queue(&ADD_FACT, provost_kernel::params![IDENTITY, value])
    }

    /// Writes it into a store that no server uses.
    ///
    /// Errors: those of the store, which is as it was then.
    pub fn write(&self, conn: &mut Conn, keys: &Keys) -> Result<()> {
        let fact = |name: &str, value: String| Call {
            statement: &SET_FACT,
            params: vec![Param::from(name.to_owned()), Param::from(value)],
        };
        let calls = [
            fact(IDENTITY, self.value(keys)),
            fact(EPOCH, self.epoch.to_string()),
        ];
        conn.change(&calls)
    }
}

/// Returns the epoch of a store, also of one of an earlier build.
pub fn epoch(tx: &mut Tx<'_>) -> Result<i64> {
    let known = store::fact(tx, EPOCH)?;
    Ok(known.and_then(|text| text.parse().ok()).unwrap_or(0))
}

/// Returns what a store says that it is, or nothing when no server of this build has opened it yet.
///
/// Errors: `AuditUnavailable` when somebody changed it from outside.
pub fn read(tx: &mut Tx<'_>, keys: &Keys) -> Result<Option<Identity>> {
    let Some(value) = store::fact(tx, IDENTITY)? else {
        return Ok(None);
    };
    let epoch = epoch(tx)?;
    let identity = parse(&value, keys).filter(|known| known.epoch == epoch);
    identity.map(Some).ok_or_else(|| {
        Error::new(
            Code::AuditUnavailable,
            "what the store says of its identity does not carry this installation's MAC: the store was changed from \
             outside, or it belongs to other keys; restore a backup with provost store restore",
        )
    })
}

fn parse(value: &str, keys: &Keys) -> Option<Identity> {
    let (said, mac) = value.rsplit_once(' ')?;
    let mac: Vec<u8> = (0..mac.len())
        .step_by(2)
        .map(|at| u8::from_str_radix(mac.get(at..at + 2)?, 16).ok())
        .collect::<Option<_>>()?;
    if !keys.mac_matches(MacPurpose::StoreIdentity, &[said.as_bytes()], &mac) {
        return None;
    }
    let mut words = said.split(' ');
    let (id, epoch, state) = (words.next()?, words.next()?, words.next()?);
    Some(Identity {
        id: id.to_owned(),
        epoch: epoch.parse().ok()?,
        state: *State::ALL.iter().find(|known| known.as_str() == state)?,
    })
}

/// What a server found out about its store when it started.
#[derive(Default)]
struct Rehearses(AtomicBool);

/// Notes that the store that is served is a rehearsal.
pub fn note_rehearsal(kernel: &Kernel) {
    kernel.own(Rehearses::default).0.store(true, Ordering::Relaxed);
}

/// Says whether the store that is served is a rehearsal.
pub fn is_rehearsal(kernel: &Kernel) -> bool {
    kernel.own(Rehearses::default).0.load(Ordering::Relaxed)
}

/// What is said of a rehearsal, at start and hourly.
pub const REHEARSAL: &str = "this store is a rehearsal of a restore: nothing proves beside the keys how far it came; restore \
                             again without --rehearse before anybody relies on it";
