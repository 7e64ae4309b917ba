//! To be written.

use provost_kernel::db::Statement;
use provost_kernel::operation::Entry;

/// Every statement of the area.
pub const STATEMENTS: &[&Statement] = &[];

/// Returns the operations of the area.
pub fn operations() -> Vec<Entry> {
    vec![]
}

/// Removes a deleted subject from every assignment (D13).
pub fn forget_subject(
    _cx: &mut provost_kernel::Cx<'_>,
    _kind: crate::areas::subjects::SubjectKind,
    _id: &str,
) -> provost_kernel::Result<()> {
    Ok(())
}
