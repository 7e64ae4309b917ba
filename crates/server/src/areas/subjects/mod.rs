//! To be written.

use provost_kernel::db::Statement;
use provost_kernel::operation::Entry;

/// Every statement of the area.
pub const STATEMENTS: &[&Statement] = &[];

/// Returns the operations of the area.
pub fn operations() -> Vec<Entry> {
    vec![]
}
