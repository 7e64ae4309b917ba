//! Words of telemetry that an administrator maps to users, so that one person is one subject.
//!
//! ```text
//! mapping  absent → there (→ of another user, with confirm) → absent, with confirm
//! ```
//!
//! A mapped word is a word of its user like her login name: policies about her hold for events that carry it. It lets nobody
//! in. Whoever maps decides what policies match, so mapping needs `directory:write` and an administrator, and the audit
//! entry names the word and the user.

mod list;
mod map;
pub(super) mod model;
mod store;
mod unmap;

pub use store::STATEMENTS;
pub(super) use store::{delete, get};

use provost_kernel::operation::Entry;

/// Returns the operations.
pub fn operations() -> Vec<Entry> {
    vec![
        Entry::of::<list::ListIdentities>(),
        Entry::of::<map::MapIdentity>(),
        Entry::of::<unmap::UnmapIdentity>(),
    ]
}
