//! To be written.

use provost_kernel::db::Statement;
use provost_kernel::operation::Entry;
use provost_kernel::{Cx, Result};

/// Every statement of the area.
pub const STATEMENTS: &[&Statement] = &[];

/// Who can be named as somebody that something is assigned to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum SubjectKind {
    /// A person of the directory.
    User,
    /// A group of the directory.
    Group,
    /// A service account.
    ServiceAccount,
}

/// Returns those ids that name no subject of this kind; deleted ones are none, suspended and disabled ones are.
pub fn missing(_cx: &mut Cx<'_>, _kind: SubjectKind, _ids: &[&str]) -> Result<Vec<String>> {
    Ok(vec![])
}

/// Returns the operations of the area.
pub fn operations() -> Vec<Entry> {
    vec![]
}
