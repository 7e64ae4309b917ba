//! Creates a user.

use super::super::model::{DirectoryId, FOR_GOOD, OneUser, Status, User, Validity};
use super::super::store::users;
use provost_kernel::auth::Role::{self, Admin};
use provost_kernel::auth::{Permission, may_mint};
use provost_kernel::operation::{Empty, Input, Meta, Method, Operation};
use provost_kernel::text::LongName;
use provost_kernel::{Cx, Result};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};

/// See [`Operation::META`].
pub struct CreateUser;

/// What a user is made of.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[schemars(inline)]
pub struct CreateBody {
    /// E-mail address or UPN; unique in the directory, upper and lower case alike.
    login_name: LongName,
    /// The directory; `default` when absent.
    directory_id: Option<DirectoryId>,
    /// The name for people.
    display_name: Option<LongName>,
    /// The address for mail.
    email: Option<LongName>,
    /// The user's id in the directory that it comes from.
    external_id: Option<LongName>,
    /// What the user may do here when it signs in; nothing when absent.
    permission_role: Option<Role>,
}

impl Operation for CreateUser {
    const META: Meta = Meta::write(
        "createHeadlessDirectoryUser",
        Method::Post,
        "/directory/users",
        "directory",
    )
    .access("directory:write", &[Admin])
    .command("users", "create")
    .status(201)
    .says(
        "Create a user",
        "Nobody gives a user a role that could do more than they can.",
    );
    type Path = Empty;
    type Query = Empty;
    type Body = CreateBody;
    type Output = OneUser;

    fn call(cx: &mut Cx<'_>, input: &Input<Self>) -> Result<OneUser> {
        let body = &input.body;
        may_hand_out(cx, body.permission_role)?;
        let text = |value: &Option<LongName>| value.as_ref().map(|v| v.as_str().to_owned());
        let user = User {
            id: cx.new_id(),
            validity: Validity {
                from: 0,
                to: FOR_GOOD,
            },
            seq: 0,
            organization_id: cx.org().to_owned(),
            directory_id: body.directory_id.clone().unwrap_or_default().as_str().to_owned(),
            login_name: body.login_name.as_str().to_owned(),
            display_name: text(&body.display_name),
            email: text(&body.email),
            external_id: text(&body.external_id),
            role: body.permission_role,
            status: Status::Active,
            suspended: None,
            created_at: cx.now(),
            updated_at: cx.now(),
        };
        let user = users::insert(cx, user)?;
        cx.target("user", user.id.as_str());
        cx.header(
            "location",
            format!(
                "/api/headless/v1/organizations/{}/directory/users/{}",
                cx.org(),
                user.id
            ),
        );
        cx.change("/loginName", Value::Null, user.login_name.as_str());
        cx.change("/directoryId", Value::Null, user.directory_id.as_str());
        cx.change("/permissionRole", Value::Null, user.role.map(Role::as_str));
        cx.emit("directory.user.created", json!({ "userId": user.id }));
        Ok(OneUser { user: user.into() })
    }

    fn recheck(cx: &mut Cx<'_>, input: &Input<Self>) -> Result<()> {
        may_hand_out(cx, input.body.permission_role)
    }
}

/// Refuses to give a user more than the caller holds (DI-5).
///
/// Errors: `EscalationForbidden`.
pub(super) fn may_hand_out(cx: &Cx<'_>, role: Option<Role>) -> Result<()> {
    match role {
        Some(role) => may_mint(cx.actor().permission, Permission::effective(role, None, None)),
        None => Ok(()),
    }
}
