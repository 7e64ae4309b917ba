//! Deletes a user, with its memberships and assignments. Who comes back within 90 days gets no more than its id back.

use super::super::model::UserPath;
use super::super::returning;
use super::super::store::{imports, users};
use crate::directory::{deciders, fences};
use crate::subjects::{DeletionAnswer, losing, weighed};
use crate::words;
use provost_kernel::auth::Role::Admin;
use provost_kernel::operation::{Empty, Input, Meta, Method, Operation};
use provost_kernel::{OperationContext, Result, params};
use serde_json::Value;

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
    .of_two(&["removals"])
    .of_deciders()
    .says(
        "Delete a user",
        "It leaves every group and is no longer assigned to anything. Service accounts that it answers for keep \
         working and are reported as orphaned. An open import of its directory does not bring it back. Without confirm the refusal names as lostReferences which policies, ACLs, drafts and \
         credentials name it; so does the answer, which is then 200.",
    );
    type Path = UserPath;
    type Query = Empty;
    type Body = Empty;
    type Output = DeletionAnswer;

    /// For good: no role, link or membership of theirs comes back. In a hurry one person suspends.
    fn touches_deciders(ctx: &mut OperationContext<'_>, input: &Input<Self>) -> Result<bool> {
        deciders::is_one(ctx, &input.path.user_id)
    }

    fn standing(ctx: &mut OperationContext<'_>, input: &Input<Self>) -> Result<Value> {
        deciders::standing(ctx, &input.path.user_id)
    }

    fn call(ctx: &mut OperationContext<'_>, input: &Input<Self>) -> Result<DeletionAnswer> {
        let id = &input.path.user_id;
        ctx.target(&fences::USER, id.as_str());
        let versions = users::versions(ctx, id)?;
        let user = &versions[0];
        let named = versions
            .iter()
            .map(|v| (v.login_name.as_str(), v.external_id.as_deref()));
        imports::note_deletion(ctx, ["user", "user id"], &user.directory_id, named)?;
        let deleted = losing(ctx, returning::user_record(user))?;
        let org = ctx.org();
        words::end_user(ctx, id.as_str())?;
        ctx.queue(&users::DELETE, params![org, id.as_str()])?;
        returning::note(ctx, user)?;
        ctx.change("/loginName", user.login_name.as_str(), Value::Null);
        returning::user_gone(ctx, id)?;
        Ok(deleted)
    }

    fn weigh(ctx: &mut OperationContext<'_>, input: &Input<Self>) -> Result<Option<(&'static str, Value)>> {
        let user = users::get(ctx, &input.path.user_id)?;
        weighed(ctx, returning::user_record(&user))
    }
}
