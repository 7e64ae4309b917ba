//! Operations on users.

mod create;
mod delete;
mod get;
mod list;
mod list_groups;
mod status;
pub mod update;

pub(super) use status::{orphans, suspended};

use provost_kernel::operation::Entry;

/// Returns the operations on users.
pub fn operations() -> Vec<Entry> {
    vec![
        Entry::of::<list::ListUsers>(),
        Entry::of::<create::CreateUser>(),
        Entry::of::<get::GetUser>(),
        Entry::of::<update::UpdateUser>(),
        Entry::of::<delete::DeleteUser>(),
        Entry::of::<status::SuspendUser>(),
        Entry::of::<status::ReactivateUser>(),
        Entry::of::<list_groups::ListUserGroups>(),
    ]
}
