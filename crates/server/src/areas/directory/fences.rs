//! Who reads the details of what the area does.
//!
//! Operators read users and groups. The credentials that a group opens are not theirs to read.

use provost_kernel::fence::Readers;
use provost_kernel::proofs::{Form, Testimony, Word};

provost_kernel::fences! {
    acts Readers::Everybody, ["directory.import.continued", "directory.import.expired"];
    targets {
        /// A user.
        USER = "user" => Readers::Everybody;
        /// A group.
        GROUP = "group" => Readers::Everybody;
        /// An import.
        IMPORT = "import" => Readers::Everybody;
        /// The changes that an import holds; its id is the organization.
        DIRECTORY = "directory" => Readers::Everybody;
    }
    events {
        GROUP_CREATED = "directory.group.created" => Readers::Everybody;
        GROUP_MEMBER_ADDED = "directory.group.member_added" => Readers::Everybody;
        GROUP_MEMBER_REMOVED = "directory.group.member_removed" => Readers::Everybody;
        GROUP_UPDATED = "directory.group.updated" => Readers::Everybody;
        GROUP_DELETED = "directory.group.deleted" => Readers::Everybody;
        USER_CREATED = "directory.user.created" => Readers::Everybody;
        USER_UPDATED = "directory.user.updated" => Readers::Everybody;
        USER_SUSPENDED = "directory.user.suspended" => Readers::Everybody;
        USER_REACTIVATED = "directory.user.reactivated" => Readers::Everybody;
        USER_DELETED = "directory.user.deleted" => Readers::Everybody;
        CHANGE_HELD = "directory.change.held" => Readers::Everybody;
        IMPORT_APPLIED = "directory.import.applied" => Readers::Everybody;
    }
    members {
        "/opens" => Readers::Overseers;
    }
}

/// What entries say of users: the role alone, since no file gives one. A user who comes back with an import has none.
pub static USERS: Testimony = Testimony {
    table: "directory_users",
    kind: &USER,
    // What has ended keeps what it was.
    among: Some(("valid_to", 9_007_199_254_740_991)),
    words: &[Word::of("permission_role", "/permissionRole", Form::Given)],
};
