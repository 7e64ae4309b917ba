//! To be written.

use provost_kernel::db::Statement;
use provost_kernel::operation::Entry;

/// Every statement of the area.
pub const STATEMENTS: &[&Statement] = &[];

/// Returns the operations of the area.
pub fn operations() -> Vec<Entry> {
    vec![]
}

/// Returns the ids of the groups that a user is in, sorted.
pub fn groups_of(_cx: &mut provost_kernel::Cx<'_>, _user_id: &str) -> provost_kernel::Result<Vec<String>> {
    Ok(vec![])
}
