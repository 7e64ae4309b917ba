//! The audit log, read: what happened, who did it, and the proof that nobody changed the record (D12.4, D12.5).
//!
//! The kernel writes the chain; this area reads it, signs checkpoints over it and verifies it. An entry is
//! *open* until a signed checkpoint covers it, *checkpointed* from then on.
//!
//! ```text
//! entry 1 ── entry 2 ── … ── entry n        hash chain, written with every commit (kernel::audit)
//!     └──────── Merkle root ───────┘        signed every 1000 entries or 60 s, also kept beside the keys
//! ```
//!
//! INVARIANT AL-1: a checkpoint is signed only if its tree extends the tree of the one before, and that of the
//! store's last line in `checkpoints.jsonl`.
//! INVARIANT AL-2: a checkpoint's own entry causes no further checkpoint: an idle chain stays idle.
//! INVARIANT AL-3: every checkpoint of the store is also a line of `checkpoints.jsonl` or about to become one; a
//! store that is behind that file, or disagrees with it, does not start.
//! INVARIANT AL-4: what is shown and exported is the stored entry, member for member, with its two hashes.
//! INVARIANT FE-2: of an entry or event whose details are not for its reader, place, sequence, time, action and
//! outcome are shown, and no filter finds it by the rest.
//! INVARIANT AL-5: no call looks at more than a fixed number of entries, however long the log is.
//!
//! Specification §6; D12.4 to D12.7, D13.
//!
//! Absent on purpose: writing, changing or deleting entries (the kernel appends, retention is not built yet);
//! an entry for each read of the log (they are counted, or a collector would feed itself); witnesses outside
//! this machine.

mod export;
pub mod fences;
mod get;
mod get_checkpoint;
mod given_up;
mod hands;
mod list;
mod lost;
mod make_checkpoints;
mod model;
mod prove;
mod register;
mod show;
mod store;
#[cfg(test)]
pub(crate) mod testing;
mod tree;
mod unknown;
mod verify_entries;
mod verify_start;

pub use given_up::{Forfeit, given_up, retirement};
pub use hands::{ACTS, hands_on, hands_since};
pub use lost::{Remainder, is_lost, last_act, remainders};
pub use make_checkpoints::{make_checkpoints, oldest_unsigned};
pub use model::origin;
pub use register::{Event, Register};
pub use verify_entries::{Finding, Report, Verifier};
pub use verify_start::{EMPTY, ForeignStorePolicy, StoreStanding, served, verify_start, verify_store};

use provost_kernel::area::{Area, Check, every};
use provost_kernel::auth::{Role, Toolset, scope};
use provost_kernel::migrations;
use provost_kernel::operation::Entry;

/// The area.
pub static AREA: Area = Area {
    toolsets: &[Toolset {
        place: 1,
        name: "audit",
        says: "What happened, entry by entry, with proofs that nothing of it was changed.",
        title: "Audit log",
        holds: "the audit log",
    }],
    scopes: &[
        scope("audit:read").readers(),
        scope("audit:write"),
        scope("audit:export")
            .says("Export the whole audit log")
            .held_by(&[Role::Auditor]),
    ],
    operations,
    fences: Some(&fences::FENCES),
    migrations: &migrations!["0026_entries_of_targets", "0050_hands"],
    statements: &[store::STATEMENTS, lost::STATEMENTS, hands::STATEMENTS],
    records: &[
        (
            "audit_checkpoints",
            "signed, and measured against the lines beside the keys",
        ),
        ("audit_entries", "a chain of hashes whose head has a MAC"),
        ("audit_nodes", "follow from the entries"),
    ],
    timers: &[every(15, "checkpoints", |kernel, _| {
        Box::pin(async move { make_checkpoints(&kernel).await.map(drop) })
    })],
    check: Check::Nothing("the command reads the chains and their checkpoints itself"),
    guides: &[provost_kernel::guide!("audit", "The audit log")],
    floor: 1,
    ..Area::named(
        "audit",
        "The audit log, read: what happened, and the proof that nobody changed the record",
    )
};

fn operations() -> Vec<Entry> {
    vec![
        Entry::of::<list::List>(),
        Entry::of::<get::Get>(),
        Entry::of::<get_checkpoint::GetCheckpoint>(),
        Entry::of::<prove::Prove>(),
        Entry::of::<export::Export>(),
    ]
}
