//! Operations on groups and their members.

mod create;
mod delete;
mod get;
mod list;
mod members;
pub(super) mod opened;
mod update;

use provost_kernel::operation::Entry;

/// Returns the operations on groups.
pub fn operations() -> Vec<Entry> {
    vec![
        Entry::of::<list::ListGroups>(),
        Entry::of::<create::CreateGroup>(),
        Entry::of::<get::GetGroup>(),
        Entry::of::<update::UpdateGroup>(),
        Entry::of::<delete::DeleteGroup>(),
        Entry::of::<members::ListGroupMembers>(),
        Entry::of::<members::AddGroupMember>(),
        Entry::of::<members::RemoveGroupMember>(),
    ]
}
