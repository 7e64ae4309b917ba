//! Deletes a group, with its memberships and assignments. Nothing undoes it.

use super::super::model::GroupPath;
use super::super::store::{groups, imports, memberships};
use crate::areas::resource_credentials;
use crate::areas::subjects::SubjectKind;
use provost_kernel::auth::Role::Admin;
use provost_kernel::operation::{Empty, Input, Meta, Method, NoContent, Operation};
use provost_kernel::{Cx, Result, params};
use serde_json::{Value, json};

/// See [`Operation::META`].
pub struct DeleteGroup;

impl Operation for DeleteGroup {
    const META: Meta = Meta::write(
        "deleteHeadlessDirectoryGroup",
        Method::Delete,
        "/directory/groups/{groupId}",
        "directory",
    )
    .access("directory:write", &[Admin])
    .command("groups", "delete")
    .status(204)
    .confirmed()
    .says(
        "Delete a group",
        "Its members leave it and it is no longer assigned to anything. An open import of its directory does not bring \
         it back.",
    );
    type Path = GroupPath;
    type Query = Empty;
    type Body = Empty;
    type Output = NoContent;

    fn call(cx: &mut Cx<'_>, input: &Input<Self>) -> Result<NoContent> {
        let id = &input.path.group_id;
        cx.target("group", id.as_str());
        let versions = groups::versions(cx, id)?;
        let group = &versions[0];
        imports::note_deletion(cx, "group", &group.directory_id, &group.name)?;
        let org = cx.org();
        cx.queue(&memberships::DELETE_OF_GROUP, params![org, id.as_str()])?;
        cx.queue(&groups::DELETE, params![org, id.as_str()])?;
        resource_credentials::forget_subject(cx, SubjectKind::Group, id.as_str())?;
        cx.change("/name", group.name.as_str(), Value::Null);
        cx.emit("directory.group.deleted", json!({ "groupId": id }));
        Ok(NoContent {})
    }
}
