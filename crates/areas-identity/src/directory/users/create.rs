//! Creates a user.

use super::super::model::{CreatedUser, DirectoryId, FOR_GOOD, Status, User, UserId, UserWarning, Validity};
use super::super::returning;
use super::super::store::users;
use crate::directory::fences;
use crate::words;
use provost_kernel::auth::Role::{self, Admin};
use provost_kernel::auth::{Permission, may_mint};
use provost_kernel::operation::{Empty, Input, Meta, Method, Operation};
use provost_kernel::text::LongName;
use provost_kernel::{OperationContext, Result};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Value;

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
    .example(
        r#"{"loginName": "ada@acme.example", "displayName": "Ada Lovelace", "email": "ada@acme.example"}"#,
    )
    .status(201)
    .answers(&["Location"])
    .of_two(&["rights"])
    .of_deciders()
    .says(
        "Create a user",
        "Nobody gives a user a role that could do more than they can. An e-mail address that is another user's login name or \
         address in the directory is 409, in any spelling, and so is a login name that is another user's address. A user who was deleted within 90 days and comes back \
         under its externalId, or under its login name where neither has one, gets its id back, and with it what policies say \
         of it; role, sessions, memberships and assignments do not come back. A warning (groups_unset) names its former groups; policies about groups count as matched until somebody sets them.",
    );
    type Path = Empty;
    type Query = Empty;
    type Body = CreateBody;
    type Output = CreatedUser;

    fn touches_deciders(_cx: &mut OperationContext<'_>, input: &Input<Self>) -> Result<bool> {
        Ok(input.body.permission_role == Some(Role::Admin))
    }

    fn call(ctx: &mut OperationContext<'_>, input: &Input<Self>) -> Result<CreatedUser> {
        let body = &input.body;
        may_hand_out(ctx, body.permission_role)?;
        let text = |value: &Option<LongName>| value.as_ref().map(|v| v.as_str().to_owned());
        let directory = body.directory_id.clone().unwrap_or_default();
        let (name, external) = (body.login_name.as_str(), body.external_id.as_ref());
        let ended = returning::find(
            ctx,
            "user",
            directory.as_str(),
            name,
            external.map(LongName::as_str),
        )?;
        let user = User {
            id: match &ended {
                Some(ended) => UserId::from_store(ended.id.clone()),
                None => ctx.new_id(),
            },
            validity: Validity {
                from: 0,
                to: FOR_GOOD,
            },
            seq: 0,
            organization_id: ctx.org().to_owned(),
            directory_id: directory.as_str().to_owned(),
            login_name: body.login_name.as_str().to_owned(),
            display_name: text(&body.display_name),
            email: text(&body.email),
            external_id: text(&body.external_id),
            role: body.permission_role,
            status: Status::Active,
            suspended: None,
            created_at: ctx.now(),
            updated_at: ctx.now(),
        };
        let user = users::insert(ctx, user)?;
        ctx.target(&fences::USER, user.id.as_str());
        ctx.header(
            "location",
            format!(
                "/api/headless/v1/organizations/{}/directory/users/{}",
                ctx.org(),
                user.id
            ),
        );
        ctx.change("/loginName", Value::Null, user.login_name.as_str());
        ctx.change("/directoryId", Value::Null, user.directory_id.as_str());
        ctx.change("/permissionRole", Value::Null, user.role.map(Role::as_str));
        ctx.change("/email", Value::Null, user.email.clone());
        ctx.change("/externalId", Value::Null, user.external_id.clone());
        let mut warnings = Vec::new();
        if let Some(ended) = ended.filter(|ended| ended.id == user.id.as_str()) {
            ctx.change("/returned", Value::Null, ended.ended_at.to_rfc3339());
            let groups = words::former_groups(ctx, user.id.as_str())?;
            if !groups.is_empty() {
                warnings.push(UserWarning::of_return(&groups));
            }
        }
        ctx.emit(&fences::USER_CREATED, &fences::OfUser::of(&user.id));
        Ok(CreatedUser {
            user: user.into(),
            warnings,
        })
    }

    fn recheck(ctx: &mut OperationContext<'_>, input: &Input<Self>) -> Result<()> {
        may_hand_out(ctx, input.body.permission_role)
    }
}

/// Refuses to give a user more than the caller holds (DI-5).
///
/// Errors: `EscalationForbidden`.
pub(super) fn may_hand_out(ctx: &OperationContext<'_>, role: Option<Role>) -> Result<()> {
    match role {
        Some(role) => may_mint(ctx.actor().permission, Permission::effective(role, None, None)),
        None => Ok(()),
    }
}
