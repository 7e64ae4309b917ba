//! Creates a group.

use super::super::model::{DirectoryId, FOR_GOOD, Group, GroupId, OneGroup, Validity};
use super::super::returning;
use super::super::store::groups;
use crate::directory::fences;
use crate::subjects;
use provost_kernel::auth::Role::Admin;
use provost_kernel::operation::{Empty, Input, Meta, Method, Operation};
use provost_kernel::text::{Description, LongName, Name};
use provost_kernel::{OperationContext, Result};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Value;

pub struct CreateGroup;

/// What a group is made of.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[schemars(inline)]
pub struct CreateBody {
    /// Unique among groups, service accounts and login names, upper and lower case alike.
    name: Name,
    /// The directory; `default` when absent.
    directory_id: Option<DirectoryId>,
    /// What the group is for.
    description: Option<Description>,
    /// The group's id in the directory that it comes from.
    external_id: Option<LongName>,
}

impl Operation for CreateGroup {
    const META: Meta = Meta::write(
        "createHeadlessDirectoryGroup",
        Method::Post,
        "/directory/groups",
        "directory",
    )
    .access("directory:write", &[Admin])
    .command("groups", "create")
    .example(r#"{"name": "Engineering"}"#)
    .status(201)
    .answers(&["Location"])
    .says(
        "Create a group",
        "Its name must be free among all groups, service accounts and login names: whoever resolves it must find one \
         subject.",
    );
    type Path = Empty;
    type Query = Empty;
    type Body = CreateBody;
    type Output = OneGroup;

    fn call(ctx: &mut OperationContext<'_>, input: &Input<Self>) -> Result<OneGroup> {
        let body = &input.body;
        if let Some(kind) = subjects::name_taken(ctx, body.name.as_str(), "")? {
            return Err(groups::taken_name(kind.as_str()));
        }
        let directory = body.directory_id.clone().unwrap_or_default();
        let external = body.external_id.as_ref().map(LongName::as_str);
        let ended = returning::find(ctx, "group", directory.as_str(), body.name.as_str(), external)?;
        let group = Group {
            id: match &ended {
                Some(ended) => GroupId::from_store(ended.id.clone()),
                None => ctx.new_id(),
            },
            validity: Validity {
                from: 0,
                to: FOR_GOOD,
            },
            seq: 0,
            organization_id: ctx.org().to_owned(),
            directory_id: directory.as_str().to_owned(),
            name: body.name.as_str().to_owned(),
            description: body.description.as_ref().map(|d| d.as_str().to_owned()),
            external_id: external.map(str::to_owned),
            created_at: ctx.now(),
            updated_at: ctx.now(),
        };
        let group = groups::insert(ctx, group)?;
        ctx.target(&fences::GROUP, group.id.as_str());
        ctx.header(
            "location",
            format!(
                "/api/headless/v1/organizations/{}/directory/groups/{}",
                ctx.org(),
                group.id
            ),
        );
        ctx.change("/name", Value::Null, group.name.as_str());
        ctx.change("/directoryId", Value::Null, group.directory_id.as_str());
        ctx.change("/externalId", Value::Null, group.external_id.clone());
        if let Some(ended) = ended.filter(|ended| ended.id == group.id.as_str()) {
            ctx.change("/returned", Value::Null, ended.ended_at.to_rfc3339());
        }
        ctx.emit(&fences::GROUP_CREATED, &fences::OfGroup::of(&group.id));
        Ok(OneGroup { group: group.into() })
    }
}
