//! Who a restore holds back, and letting them act again (D12.9).
//!
//! ```text
//! provost store restore   everybody who can act is held: accounts disabled, users with a role suspended, clients blocked,
//!                         identity links held, workload trusts suspended; tokens revoked, sessions ended
//! held → acts again       released here, or enabled, reactivated, unblocked one at a time by the ordinary operations
//! ```
//!
//! A backup knows nothing of what was taken away after it was made. Somebody looks at the list, takes away again what must
//! stay away, and releases the rest. No record gets a new status word: each says in its own area why it is held.
//!
//! INVARIANT RH-1: after a restore nobody acts but the administrators that it printed, until somebody releases them.
//! INVARIANT RH-2: nobody releases what could do more than they can.
//! INVARIANT RH-3: a release is one audit entry that names everybody whom it let act.
//!
//! Absent on purpose: a table of its own (who is held is a fact of each record, so that the two cannot disagree), and
//! tokens, which stay revoked: whoever acts again gets a new one.

pub mod fences;
mod list;
mod model;
mod release;

use crate::proofs::entries;
use provost_kernel::area::{Area, Check};
use provost_kernel::migrations;
use provost_kernel::operation::Entry;
use provost_kernel::{OperationContext, Result};

/// The area.
pub static AREA: Area = Area {
    operations,
    fences: Some(&fences::FENCES),
    migrations: &migrations!["0017_restore_held"],
    check: Check::Nothing("it owns no table"),
    floor: 6,
    ..Area::named("restore", "Who a restore holds back, and letting them act again")
};

fn operations() -> Vec<Entry> {
    vec![Entry::of::<list::ListHeld>(), Entry::of::<release::ReleaseHeld>()]
}

/// Holds back everybody of the organization who can act, in the unit that restores it (RH-1).
pub fn hold_everybody(ctx: &mut OperationContext<'_>) -> Result<()> {
    // What is held back now is no contradiction of what entries said before (PF-7).
    entries::note_hold(ctx)?;
    for (_, held) in model::kinds(ctx)? {
        (held.hold)(ctx)?;
    }
    Ok(())
}
