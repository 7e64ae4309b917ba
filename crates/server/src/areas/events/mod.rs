//! Outgoing events, pulled: the complement of webhooks for closed networks (D12.2).
//!
//! Events are rows of the transaction that caused them. A consumer keeps the last `data.sequence` it has
//! dealt with and asks for what came after.
//!
//! INVARIANT EV-1: sequences of an organization are taken under its chain head's lock; a reader that has seen
//! one has seen, or can still ask for, every smaller one.
//!
//! INVARIANT FE-2: an event whose data are not for a caller keeps id, type, time and sequence, and says `withheld`.
//!
//! Specification §6; D12.2, D12.3, D13.
//!
//! Absent on purpose: acknowledging, deleting or filtering events; a cursor (the sequence is one, and lasts).
//! Rows older than seven days are pruned; a consumer that was away for longer reads the audit log.

pub mod fences;
mod list;
mod model;
mod store;
#[cfg(test)]
mod tests;

pub use store::STATEMENTS;

use provost_kernel::operation::Entry;

/// Returns the operations of this area.
pub fn operations() -> Vec<Entry> {
    vec![Entry::of::<list::List>()]
}
