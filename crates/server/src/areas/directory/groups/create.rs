//! Creates a group.

use super::super::model::{DirectoryId, FOR_GOOD, Group, OneGroup, Validity};
use super::super::store::groups;
use crate::areas::subjects;
use provost_kernel::auth::Role::Admin;
use provost_kernel::operation::{Empty, Input, Meta, Method, Operation};
use provost_kernel::text::{Description, Name};
use provost_kernel::{Cx, Result};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};

/// See [`Operation::META`].
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
    .status(201)
    .says(
        "Create a group",
        "Its name must be free among all groups, service accounts and login names: whoever resolves it must find one \
         subject.",
    );
    type Path = Empty;
    type Query = Empty;
    type Body = CreateBody;
    type Output = OneGroup;

    fn call(cx: &mut Cx<'_>, input: &Input<Self>) -> Result<OneGroup> {
        let body = &input.body;
        if let Some(kind) = subjects::name_taken(cx, body.name.as_str(), "")? {
            return Err(groups::taken_name(kind.as_str()));
        }
        let group = Group {
            id: cx.new_id(),
            validity: Validity {
                from: 0,
                to: FOR_GOOD,
            },
            seq: 0,
            organization_id: cx.org().to_owned(),
            directory_id: body.directory_id.clone().unwrap_or_default().as_str().to_owned(),
            name: body.name.as_str().to_owned(),
            description: body.description.as_ref().map(|d| d.as_str().to_owned()),
            created_at: cx.now(),
            updated_at: cx.now(),
        };
        let group = groups::insert(cx, group)?;
        cx.target("group", group.id.as_str());
        cx.header(
            "location",
            format!(
                "/api/headless/v1/organizations/{}/directory/groups/{}",
                cx.org(),
                group.id
            ),
        );
        cx.change("/name", Value::Null, group.name.as_str());
        cx.change("/directoryId", Value::Null, group.directory_id.as_str());
        cx.emit("directory.group.created", json!({ "groupId": group.id }));
        Ok(OneGroup { group: group.into() })
    }
}
