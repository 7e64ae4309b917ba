//! Changes of users that a file said and its caller could not make: held until somebody decides who could (DI-10).
//!
//! ```text
//! staged with an import ── the import is applied ──► held ── settle ──► applied or dropped
//!                       └─ the import is aborted ──► gone       └─ a later import holds another change of the user: gone
//! ```

mod list;
pub mod model;
mod settle;

use provost_kernel::operation::Entry;

/// Returns the operations on held changes.
pub fn operations() -> Vec<Entry> {
    vec![
        Entry::of::<list::ListHeldChanges>(),
        Entry::of::<settle::SettleHeldChanges>(),
    ]
}
