//! Files of users and groups on their way into a directory.
//!
//! ```text
//! open ── chunk … chunk ── apply ──────────────► applied       (one row changes)
//!   │                        └► applying ──────► applied       (what is not named is marked first, clashes are judged)
//!   └── abort, or an hour of silence ─► aborting ─► aborted
//! ```

mod abort;
mod apply;
mod clashes;
mod csv;
mod get;
mod lines;
pub mod model;
mod open;
mod refused_lines;
mod removals;
mod send_chunk;
mod stage;
mod warnings;
mod worker;

pub use worker::{HANDLER, tidy};

use provost_kernel::operation::Entry;

/// Returns the operations on imports.
pub fn operations() -> Vec<Entry> {
    vec![
        Entry::of::<open::OpenImport>(),
        Entry::of::<send_chunk::SendChunk>(),
        Entry::of::<apply::ApplyImport>(),
        Entry::of::<abort::AbortImport>(),
        Entry::of::<get::GetImport>(),
        Entry::of::<refused_lines::ListRefusedLines>(),
        Entry::of::<removals::GetRemovals>(),
        Entry::of::<warnings::ListWarnings>(),
    ]
}
