//! Deletes a user, with its memberships and assignments. Nothing undoes it.

use super::super::model::UserPath;
use super::super::store::{imports, memberships, users};
use super::orphans;
use crate::areas::subjects::SubjectKind;
use crate::areas::{mcp_sessions, resource_credentials};
use provost_kernel::auth::Role::Admin;
use provost_kernel::operation::{Empty, Input, Meta, Method, NoContent, Operation};
use provost_kernel::{Cx, Result, params};
use serde_json::{Value, json};

/// See [`Operation::META`].
pub struct DeleteUser;

impl Operation for DeleteUser {
    const META: Meta = Meta::write(
        "deleteHeadlessDirectoryUser",
        Method::Delete,
        "/directory/users/{userId}",
        "directory",
    )
    .access("directory:write", &[Admin])
    .command("users", "delete")
    .status(204)
    .confirmed()
    .says(
        "Delete a user",
        "It leaves every group and is no longer assigned to anything. Service accounts that it answers for keep \
         working and are reported as orphaned. An open import of its directory does not bring it back.",
    );
    type Path = UserPath;
    type Query = Empty;
    type Body = Empty;
    type Output = NoContent;

    fn call(cx: &mut Cx<'_>, input: &Input<Self>) -> Result<NoContent> {
        let id = &input.path.user_id;
        cx.target("user", id.as_str());
        let versions = users::versions(cx, id)?;
        let user = &versions[0];
        imports::note_deletion(cx, "user", &user.directory_id, &user.login_name)?;
        let org = cx.org();
        cx.queue(&memberships::DELETE_OF_USER, params![org, id.as_str()])?;
        cx.queue(&users::DELETE, params![org, id.as_str()])?;
        resource_credentials::forget_subject(cx, SubjectKind::User, id.as_str())?;
        cx.change("/loginName", user.login_name.as_str(), Value::Null);
        mcp_sessions::user_left(cx, id.as_str())?;
        orphans(cx, id)?;
        cx.emit("directory.user.deleted", json!({ "userId": id }));
        Ok(NoContent {})
    }
}
