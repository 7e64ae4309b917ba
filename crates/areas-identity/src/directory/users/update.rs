//! Changes a user: absent members stay, `null` clears (D13).

use super::super::model::{ChangedUser, User, UserPath};
use super::super::rights::{HeldLink, RoleGiven, may_change};
use super::super::store::users;
use super::create::may_hand_out;
use crate::directory::{deciders, fences};
use crate::service_accounts::model::is_narrower;
use crate::subjects::SubjectKind;
use provost_areas_platform::announcements::{LoginNameChanged, PrincipalRenamed, UserNarrowed};
use provost_kernel::auth::Role::{self, Admin};
use provost_kernel::error::{Code, Error};
use provost_kernel::operation::{Empty, Input, Meta, Method, Operation};
use provost_kernel::patch::{Patch, RequiredChange};
use provost_kernel::text::{LongName, name_key};
use provost_kernel::{OperationContext, Result};
use schemars::JsonSchema;
use serde::Deserialize;

pub struct UpdateUser;

/// What can change.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[schemars(inline)]
pub struct UpdateBody {
    /// The new login name.
    #[serde(default)]
    login_name: RequiredChange<LongName>,
    /// The new name for people; `null` clears it.
    #[serde(default)]
    display_name: Patch<LongName>,
    /// The new address; `null` clears it.
    #[serde(default)]
    email: Patch<LongName>,
    /// The new id in the user's directory; `null` clears it.
    #[serde(default)]
    external_id: Patch<LongName>,
    /// The new role; `null` takes every right away.
    #[serde(default)]
    permission_role: Patch<Role>,
}

impl Operation for UpdateUser {
    const META: Meta = Meta::write(
        "updateHeadlessDirectoryUser",
        Method::Patch,
        "/directory/users/{userId}",
        "directory",
    )
    .access("directory:write", &[Admin])
    .command("users", "update")
    .example(r#"{"displayName": "Ada King"}"#)
    .of_two(&["rights"])
    .of_deciders()
    .says(
        "Change a user",
        "Members that are absent stay as they are. A new e-mail address that is another user's login name or address in the \
         directory is 409, in any spelling, and so is a new login name that is another user's address. Nobody gives a user a role that could do more than they can, or gives a \
         user who has such a role another login name, address or external id. With a new role, what was allowed of identity links ends, and a link is held whose maker could not \
         give that role: the answer names it. Taking a role away needs no more than the scope. An open import keeps the change, unless a later line \
         of its file says otherwise; a user whom it is about to re-point gets no role before it is applied or aborted (409).",
    );
    type Path = UserPath;
    type Query = Empty;
    type Body = UpdateBody;
    type Output = ChangedUser;

    fn touches_deciders(ctx: &mut OperationContext<'_>, input: &Input<Self>) -> Result<bool> {
        let gives = matches!(input.body.permission_role, Patch::Set(Role::Admin));
        Ok(gives || deciders::is_one(ctx, &input.path.user_id)?)
    }

    fn standing(ctx: &mut OperationContext<'_>, input: &Input<Self>) -> Result<serde_json::Value> {
        deciders::standing(ctx, &input.path.user_id)
    }

    fn call(ctx: &mut OperationContext<'_>, input: &Input<Self>) -> Result<ChangedUser> {
        let (id, body) = (&input.path.user_id, &input.body);
        ctx.target(&fences::USER, id.as_str());
        let versions = users::versions(ctx, id)?;
        if let Patch::Set(role) = &body.permission_role {
            may_hand_out(ctx, Some(*role))?;
        }
        if let Some(name) = body.login_name.get() {
            let differs = |v: &User| name_key(&v.login_name) != name_key(name.as_str());
            if versions.iter().any(differs) {
                users::keep_name_free(ctx, &versions[0].directory_id, name.as_str(), id)?;
            }
        }
        let changed: Vec<User> = versions.iter().map(|before| apply(before, body)).collect();
        for (before, after) in versions.iter().zip(&changed) {
            may_change(ctx.actor().permission, before, after)?;
        }
        must_not_be_repointed(&versions, &changed)?;
        keep_words_free(ctx, &versions, &changed)?;
        let mut shown = versions[0].clone();
        let mut held_identity_links = Vec::new();
        for (place, (before, mut after)) in versions.into_iter().zip(changed).enumerate() {
            if after != before {
                after.touch(ctx.now());
                users::save(ctx, &after)?;
            }
            if place == 0 {
                note_changes(ctx, &before, &after);
                held_identity_links = follow(ctx, &before, &after)?;
                shown = after;
            }
        }
        if ctx.has_changes() {
            ctx.emit(&fences::USER_UPDATED, &fences::OfUser::of(id));
        }
        Ok(ChangedUser {
            user: shown.into(),
            held_identity_links,
        })
    }

    fn recheck(ctx: &mut OperationContext<'_>, input: &Input<Self>) -> Result<()> {
        match &input.body.permission_role {
            Patch::Set(role) => may_hand_out(ctx, Some(*role)),
            _ => Ok(()),
        }
    }
}

/// Refuses to give a role to a user whom the open import is about to re-point: its line was judged when there was no role.
///
/// Errors: `Conflict`.
fn must_not_be_repointed(before: &[User], after: &[User]) -> Result<()> {
    let gives = before
        .iter()
        .zip(after)
        .any(|(before, after)| after.role.is_some() && after.role != before.role);
    match after {
        [visible, staged] if gives && (visible.is_repointed(staged) || visible.is_revived(staged)) => {
            Err(Error::new(
                Code::Conflict,
                "the open import gives this user another login name, address, external id or status; apply or abort it first",
            ))
        }
        _ => Ok(()),
    }
}

/// Refuses new words of a user that are another user's (DI-14). Versions that differ from one another are both looked at.
///
/// Errors: `AlreadyExists`.
fn keep_words_free(ctx: &mut OperationContext<'_>, before: &[User], after: &[User]) -> Result<()> {
    for (before, after) in before.iter().zip(after) {
        let (login_name, email) = before.new_words(after);
        users::keep_words_free(ctx, (&before.directory_id, &before.id), login_name, email)?;
    }
    Ok(())
}

/// Tells those who know the user by name that it is another one, those who keep what it made that it can do less, and those who
/// vouch for it that it can do more. Returns the
/// identity links that are held from now on (IL-5).
pub fn follow(ctx: &mut OperationContext<'_>, before: &User, after: &User) -> Result<Vec<HeldLink>> {
    if name_key(&before.login_name) != name_key(&after.login_name) {
        ctx.announce(&LoginNameChanged {
            user_id: before.id.as_str().to_owned(),
        })?;
    }
    let shown = |user: &User| user.display_name.as_ref().unwrap_or(&user.login_name).clone();
    if shown(before) != shown(after) {
        ctx.announce(&PrincipalRenamed {
            kind: SubjectKind::User,
            id: before.id.as_str().to_owned(),
            before: shown(before),
            after: shown(after),
        })?;
    }
    if lost_something(before, after) {
        ctx.announce(&UserNarrowed {
            id: before.id.as_str().to_owned(),
        })?;
    }
    match after.role {
        Some(role) if before.role != after.role || before.is_revived(after) => ctx.ask(&RoleGiven {
            user_id: after.id.as_str().to_owned(),
            role,
        }),
        _ => Ok(Vec::new()),
    }
}

/// Says whether a user can do less than before.
fn lost_something(before: &User, after: &User) -> bool {
    match (before.permission(), after.permission()) {
        (Some(before), Some(after)) => is_narrower(after, before),
        (before, after) => before.is_some() && after.is_none(),
    }
}

fn apply(before: &User, body: &UpdateBody) -> User {
    let mut after = before.clone();
    if let Some(name) = body.login_name.get() {
        name.as_str().clone_into(&mut after.login_name);
    }
    let text = |value: &LongName| value.as_str().to_owned();
    body.display_name.apply(&mut after.display_name, text);
    body.email.apply(&mut after.email, text);
    body.external_id.apply(&mut after.external_id, text);
    body.permission_role.apply(&mut after.role, |role| *role);
    after
}

fn note_changes(ctx: &mut OperationContext<'_>, before: &User, after: &User) {
    ctx.change(
        "/loginName",
        before.login_name.as_str(),
        after.login_name.as_str(),
    );
    ctx.change(
        "/displayName",
        before.display_name.clone(),
        after.display_name.clone(),
    );
    ctx.change("/email", before.email.clone(), after.email.clone());
    ctx.change(
        "/externalId",
        before.external_id.clone(),
        after.external_id.clone(),
    );
    ctx.change(
        "/permissionRole",
        before.role.map(Role::as_str),
        after.role.map(Role::as_str),
    );
}
