//! Changes a group: absent members stay, `null` clears (D13).

use super::super::model::{Group, GroupPath, OneGroup};
use super::super::store::groups;
use crate::directory::fences;
use crate::subjects;
use provost_kernel::auth::Role::Admin;
use provost_kernel::operation::{Empty, Input, Meta, Method, Operation};
use provost_kernel::patch::{Patch, RequiredChange};
use provost_kernel::text::{Description, LongName, Name, name_key};
use provost_kernel::{OperationContext, Result};
use schemars::JsonSchema;
use serde::Deserialize;

pub struct UpdateGroup;

/// What can change.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[schemars(inline)]
pub struct UpdateBody {
    /// The new name.
    #[serde(default)]
    name: RequiredChange<Name>,
    /// The new description; `null` clears it.
    #[serde(default)]
    description: Patch<Description>,
    /// The new id in the group's directory; `null` clears it.
    #[serde(default)]
    external_id: Patch<LongName>,
}

impl Operation for UpdateGroup {
    const META: Meta = Meta::write(
        "updateHeadlessDirectoryGroup",
        Method::Patch,
        "/directory/groups/{groupId}",
        "directory",
    )
    .access("directory:write", &[Admin])
    .command("groups", "update")
    .example(r#"{"description": "Everybody who writes code"}"#)
    .says(
        "Change a group",
        "Members that are absent stay as they are. A new name must be free among all groups, service accounts and \
         login names.",
    );
    type Path = GroupPath;
    type Query = Empty;
    type Body = UpdateBody;
    type Output = OneGroup;

    fn call(ctx: &mut OperationContext<'_>, input: &Input<Self>) -> Result<OneGroup> {
        let (id, body) = (&input.path.group_id, &input.body);
        ctx.target(&fences::GROUP, id.as_str());
        let versions = groups::versions(ctx, id)?;
        if let Some(name) = body.name.get() {
            let differs = |v: &Group| name_key(&v.name) != name_key(name.as_str());
            if versions.iter().any(differs) {
                keep_name_free(ctx, &versions[0], name.as_str())?;
            }
        }
        let mut shown = versions[0].clone();
        for (place, before) in versions.into_iter().enumerate() {
            let mut after = before.clone();
            if let Some(name) = body.name.get() {
                name.as_str().clone_into(&mut after.name);
            }
            body.description
                .apply(&mut after.description, |d| d.as_str().to_owned());
            body.external_id
                .apply(&mut after.external_id, |id| id.as_str().to_owned());
            if after != before {
                after.touch(ctx.now());
                groups::save(ctx, &after)?;
            }
            if place == 0 {
                ctx.change("/name", before.name.as_str(), after.name.as_str());
                ctx.change(
                    "/description",
                    before.description.clone(),
                    after.description.clone(),
                );
                ctx.change(
                    "/externalId",
                    before.external_id.clone(),
                    after.external_id.clone(),
                );
                shown = after;
            }
        }
        if ctx.has_changes() {
            ctx.emit(&fences::GROUP_UPDATED, &fences::OfGroup::of(id));
        }
        Ok(OneGroup { group: shown.into() })
    }
}

fn keep_name_free(ctx: &mut OperationContext<'_>, group: &Group, name: &str) -> Result<()> {
    if let Some(kind) = subjects::name_taken(ctx, name, group.id.as_str())? {
        return Err(groups::taken_name(kind.as_str()));
    }
    if groups::is_staged(ctx, name, &group.directory_id)? {
        return Err(groups::taken_name("group of the open import"));
    }
    Ok(())
}
