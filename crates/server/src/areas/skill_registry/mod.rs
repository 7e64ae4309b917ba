//! To be written.

use provost_kernel::db::Statement;
use provost_kernel::operation::Entry;

/// Every statement of the area.
pub const STATEMENTS: &[&Statement] = &[];

/// Returns the operations of the area.
pub fn operations() -> Vec<Entry> {
    vec![]
}

/// Returns the ids and full names of the items that a name, reference or id names exactly (client contract §6).
pub fn find_exact(
    _cx: &mut provost_kernel::Cx<'_>,
    _selector: &str,
) -> provost_kernel::Result<Vec<(String, String)>> {
    Ok(vec![])
}
