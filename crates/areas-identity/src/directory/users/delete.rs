//! Deletes a user, with its memberships and assignments. Who comes back within 90 days gets no more than its id back.

use super::super::model::UserPath;
use super::super::returning;
use super::super::store::{imports, users};
use crate::directory::fences;
use crate::subjects::{Deleted, losing, weighed};
use crate::words;
use provost_kernel::auth::Role::Admin;
use provost_kernel::operation::{Empty, Input, Meta, Method, Operation};
use provost_kernel::{Cx, Result, params};
use serde_json::Value;

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
    .also(200)
    .weighed()
    .says(
        "Delete a user",
        "It leaves every group and is no longer assigned to anything. Service accounts that it answers for keep \
         working and are reported as orphaned. An open import of its directory does not bring it back. Without confirm the refusal names as lostReferences which policies, ACLs, drafts and \
         credentials name it; so does the answer, which is then 200.",
    );
    type Path = UserPath;
    type Query = Empty;
    type Body = Empty;
    type Output = Deleted;

    fn call(cx: &mut Cx<'_>, input: &Input<Self>) -> Result<Deleted> {
        let id = &input.path.user_id;
        cx.target(&fences::USER, id.as_str());
        let versions = users::versions(cx, id)?;
        let user = &versions[0];
        let named = versions
            .iter()
            .map(|v| (v.login_name.as_str(), v.external_id.as_deref()));
        imports::note_deletion(cx, ["user", "user id"], &user.directory_id, named)?;
        let deleted = losing(cx, returning::user_record(user))?;
        let org = cx.org();
        words::end_user(cx, id.as_str())?;
        cx.queue(&users::DELETE, params![org, id.as_str()])?;
        returning::note(cx, user)?;
        cx.change("/loginName", user.login_name.as_str(), Value::Null);
        returning::user_gone(cx, id)?;
        Ok(deleted)
    }

    fn weigh(cx: &mut Cx<'_>, input: &Input<Self>) -> Result<Option<(&'static str, Value)>> {
        let user = users::get(cx, &input.path.user_id)?;
        weighed(cx, returning::user_record(&user))
    }
}
