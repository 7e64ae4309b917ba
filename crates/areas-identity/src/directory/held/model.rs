//! The words of a held change, without storage.

use super::super::imports::model::ImportId;
use super::super::model::{GroupId, Status, SuspendedBy, User, UserId};
use provost_kernel::auth::Role;
use provost_kernel::{Timestamp, id};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

id!(HeldChangeId, "dhc", "Names a held change.");

/// What of a user a line can change, and what decides whether it may.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(inline)]
pub struct Picture {
    /// The login name.
    pub login_name: String,
    /// The name for people.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub display_name: Option<String>,
    /// The address for mail.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub email: Option<String>,
    /// The id in the directory.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub external_id: Option<String>,
    /// What the user may do here.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub permission_role: Option<Role>,
    /// Whether it counts as a subject.
    pub status: Status,
    /// A call of the API suspended it, and not a file.
    pub suspended_by_api: bool,
}

impl From<&User> for Picture {
    fn from(user: &User) -> Self {
        Self {
            login_name: user.login_name.clone(),
            display_name: user.display_name.clone(),
            email: user.email.clone(),
            external_id: user.external_id.clone(),
            permission_role: user.role,
            status: user.status,
            suspended_by_api: user.suspended.is_some_and(|(_, by)| by == SuspendedBy::Api),
        }
    }
}

impl Picture {
    /// Returns a user as the picture shows it. Its role stays: no file gives one.
    pub fn painted_on(&self, user: &User, now: Timestamp) -> User {
        let mut after = User {
            login_name: self.login_name.clone(),
            display_name: self.display_name.clone(),
            email: self.email.clone(),
            external_id: self.external_id.clone(),
            ..user.clone()
        };
        if self.status == Status::Active {
            after.reactivate(now);
        }
        if after != *user {
            after.touch(now);
        }
        after
    }
}

/// A change that waits for somebody who may make it.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(rename = "DirectoryHeldChange")]
pub struct HeldChange {
    /// Its id.
    pub id: HeldChangeId,
    #[serde(skip)]
    pub(in super::super) seq: i64,
    /// The import whose line said it.
    pub import_id: ImportId,
    /// The line's number in the file.
    pub line: i64,
    /// The user.
    pub user_id: UserId,
    /// The user as the line found it.
    pub before: Picture,
    /// The user as the line wants it.
    pub after: Picture,
    /// The groups that the user would join.
    pub joins: Vec<GroupId>,
    /// When the line arrived.
    pub created_at: Timestamp,
}
