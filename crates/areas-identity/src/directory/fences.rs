//! Who reads the details of what the area does, and what its events say.
//!
//! Operators read users and groups. The credentials that a group opens are not theirs to read.

use super::imports::model::{Counts, ImportId};
use super::model::{GroupId, UserId};
use provost_kernel::fence::Readers;
use provost_kernel::proofs::{Form, Testimony, Word};

provost_kernel::event_data! {
    /// A group.
    OfGroup {
        /// The group.
        group_id: GroupId,
    } like r#"{"groupId":"grp_01kaf9q2m4x7t8v3c5d6e0g1h2"}"#;

    /// A user in a group.
    OfMembership {
        /// The group.
        group_id: GroupId,
        /// The user.
        user_id: UserId,
    } like r#"{"groupId":"grp_01kaf9q2m4x7t8v3c5d6e0g1h2","userId":"usr_01kaf9q2m4x7t8v3c5d6e0g1h3"}"#;

    /// A user.
    OfUser {
        /// The user.
        user_id: UserId,
    } like r#"{"userId":"usr_01kaf9q2m4x7t8v3c5d6e0g1h2"}"#;

    /// Changes that wait for an administrator.
    HeldChanges {
        /// The import that holds them.
        import_id: ImportId,
        /// The directory that it is of.
        directory_id: String,
        /// How many there are.
        held: i64,
    } like r#"{"importId":"imp_01kaf9q2m4x7t8v3c5d6e0g1h2","directoryId":"hr","held":2}"#;

    /// An import that is visible.
    AppliedImport {
        /// The import.
        import_id: ImportId,
        /// The directory that it is of.
        directory_id: String,
        /// What it did.
        counts: Counts,
    } like r#"{"importId":"imp_01kaf9q2m4x7t8v3c5d6e0g1h2","directoryId":"hr","counts":{"lines":20,"refused":0,"held":0,"warnings":0,"superseded":0,"users":{"created":12,"updated":3,"unchanged":5,"removed":0},"groups":{"created":2,"updated":0,"unchanged":4,"removed":0},"memberships":{"added":14,"removed":1}}}"#;
}

impl OfGroup {
    /// Returns the data about a group.
    pub fn of(id: &GroupId) -> Self {
        Self { group_id: id.clone() }
    }
}

impl OfMembership {
    /// Returns the data about a user in a group.
    pub fn of(group: &GroupId, user: &UserId) -> Self {
        Self {
            group_id: group.clone(),
            user_id: user.clone(),
        }
    }
}

impl OfUser {
    /// Returns the data about a user.
    pub fn of(id: &UserId) -> Self {
        Self { user_id: id.clone() }
    }
}

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
        /// A group was made.
        GROUP_CREATED: OfGroup = "directory.group.created" => Readers::Everybody;
        /// A user was put into a group.
        GROUP_MEMBER_ADDED: OfMembership = "directory.group.member_added" => Readers::Everybody;
        /// A user was taken out of a group.
        GROUP_MEMBER_REMOVED: OfMembership = "directory.group.member_removed" => Readers::Everybody;
        /// A group was changed.
        GROUP_UPDATED: OfGroup = "directory.group.updated" => Readers::Everybody;
        /// A group was deleted.
        GROUP_DELETED: OfGroup = "directory.group.deleted" => Readers::Everybody;
        /// A user was made.
        USER_CREATED: OfUser = "directory.user.created" => Readers::Everybody;
        /// A user was changed.
        USER_UPDATED: OfUser = "directory.user.updated" => Readers::Everybody;
        /// A user was suspended; the sessions of the user ended.
        USER_SUSPENDED: OfUser = "directory.user.suspended" => Readers::Everybody;
        /// A suspended user is active again.
        USER_REACTIVATED: OfUser = "directory.user.reactivated" => Readers::Everybody;
        /// A user was deleted; the sessions of the user ended.
        USER_DELETED: OfUser = "directory.user.deleted" => Readers::Everybody;
        /// An import holds changes that would give more than its caller may give.
        CHANGE_HELD: HeldChanges = "directory.change.held" => Readers::Everybody;
        /// An import of a directory was applied.
        IMPORT_APPLIED: AppliedImport = "directory.import.applied" => Readers::Everybody;
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
