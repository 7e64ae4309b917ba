//! Deletes a group, with its memberships and assignments. What comes back within 90 days gets no more than its id back.

use super::super::model::GroupPath;
use super::super::returning;
use super::super::store::{groups, imports, users};
use crate::directory::{deciders, fences};
use crate::subjects::{DeletionAnswer, losing, weighed};
use crate::words;
use provost_kernel::auth::Role::Admin;
use provost_kernel::operation::{Empty, Input, Meta, Method, Operation};
use provost_kernel::{OperationContext, Result, params};
use serde_json::{Value, json};

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
    .also(200)
    .weighed()
    .of_two(&["removals"])
    .of_deciders()
    .says(
        "Delete a group",
        "Its members leave it and it is no longer assigned to anything. An open import of its directory does not bring \
         it back. Without confirm the refusal names as lostReferences which policies, ACLs, drafts and credentials name \
         it; so does the answer, which is then 200.",
    );
    type Path = GroupPath;
    type Query = Empty;
    type Body = Empty;
    type Output = DeletionAnswer;

    fn touches_deciders(ctx: &mut OperationContext<'_>, input: &Input<Self>) -> Result<bool> {
        deciders::are_in(ctx, &input.path.group_id)
    }

    fn standing(ctx: &mut OperationContext<'_>, input: &Input<Self>) -> Result<Value> {
        let versions = groups::versions(ctx, &input.path.group_id)?;
        Ok(json!({ "name": versions[0].name, "externalId": versions[0].external_id }))
    }

    /// What is said of the group holds for nobody in it any longer; of them those may say yes who have the role.
    fn gains(ctx: &mut OperationContext<'_>, input: &Input<Self>) -> Result<Vec<String>> {
        let org = ctx.org();
        users::with_role_in(&mut ctx.tx(), org, Admin, input.path.group_id.as_str())
    }

    fn call(ctx: &mut OperationContext<'_>, input: &Input<Self>) -> Result<DeletionAnswer> {
        let id = &input.path.group_id;
        ctx.target(&fences::GROUP, id.as_str());
        let versions = groups::versions(ctx, id)?;
        let group = &versions[0];
        let named = versions
            .iter()
            .map(|v| (v.name.as_str(), v.external_id.as_deref()));
        imports::note_deletion(ctx, ["group", "group id"], &group.directory_id, named)?;
        let deleted = losing(ctx, returning::group_record(group))?;
        let org = ctx.org();
        words::end_group(ctx, id.as_str())?;
        ctx.queue(&groups::DELETE, params![org, id.as_str()])?;
        returning::note(ctx, group)?;
        ctx.change("/name", group.name.as_str(), Value::Null);
        returning::group_gone(ctx, id)?;
        Ok(deleted)
    }

    fn weigh(ctx: &mut OperationContext<'_>, input: &Input<Self>) -> Result<Option<(&'static str, Value)>> {
        let group = groups::get(ctx, &input.path.group_id)?;
        weighed(ctx, returning::group_record(&group))
    }
}
