//! Suspends and reactivates a user. Both are idempotent.

use super::super::model::{ChangedUser, OneUser, Status, SuspendedBy, User, UserId, UserPath};
use super::super::rights::may_change;
use super::super::store::users;
use super::update::follow;
use crate::directory::{deciders, fences};
use crate::service_accounts;
use crate::subjects::SubjectKind;
use provost_areas_platform::announcements::{Departure, PrincipalEnded};
use provost_kernel::auth::Role::Admin;
use provost_kernel::operation::{Empty, Input, Meta, Method, Operation};
use provost_kernel::{OperationContext, Result};
use serde_json::Value;

pub struct SuspendUser;

impl Operation for SuspendUser {
    const META: Meta = Meta::write(
        "suspendHeadlessDirectoryUser",
        Method::Post,
        "/directory/users/{userId}/suspend",
        "directory",
    )
    .access("directory:write", &[Admin])
    .command("users", "suspend")
    .says(
        "Suspend a user",
        "It counts as absent from the next request on. No import lifts the suspension; reactivate does. Service \
         accounts that it answers for keep working and are reported as orphaned.",
    );
    type Path = UserPath;
    type Query = Empty;
    type Body = Empty;
    type Output = OneUser;

    fn call(ctx: &mut OperationContext<'_>, input: &Input<Self>) -> Result<OneUser> {
        let id = &input.path.user_id;
        ctx.target(&fences::USER, id.as_str());
        let mut versions = users::versions(ctx, id)?;
        let was = versions[0].status;
        let now = ctx.now();
        for version in &mut versions {
            if version.suspend(now, SuspendedBy::Api) {
                users::save(ctx, version)?;
            }
        }
        if was == Status::Active {
            suspended(ctx, id)?;
        }
        Ok(first(versions))
    }
}

pub struct ReactivateUser;

impl Operation for ReactivateUser {
    const META: Meta = Meta::write(
        "reactivateHeadlessDirectoryUser",
        Method::Post,
        "/directory/users/{userId}/reactivate",
        "directory",
    )
    .access("directory:write", &[Admin])
    .command("users", "reactivate")
    .of_two(&["rights"])
    .of_deciders()
    .says(
        "Reactivate a user",
        "It counts as a subject again. Nobody reactivates a user whose role could do more than they can. What was allowed of \
         its identity links ends, and a link is held whose maker could not give the role.",
    );
    type Path = UserPath;
    type Query = Empty;
    type Body = Empty;
    type Output = ChangedUser;

    fn touches_deciders(ctx: &mut OperationContext<'_>, input: &Input<Self>) -> Result<bool> {
        deciders::is_one(ctx, &input.path.user_id)
    }

    fn standing(ctx: &mut OperationContext<'_>, input: &Input<Self>) -> Result<Value> {
        deciders::standing(ctx, &input.path.user_id)
    }

    fn call(ctx: &mut OperationContext<'_>, input: &Input<Self>) -> Result<ChangedUser> {
        let id = &input.path.user_id;
        ctx.target(&fences::USER, id.as_str());
        let mut versions = users::versions(ctx, id)?;
        let before = versions[0].clone();
        let was = before.status;
        let now = ctx.now();
        for version in &mut versions {
            let before = version.clone();
            if version.reactivate(now) {
                // A role works again: nobody gives it back for more than they hold (DI-5).
                may_change(ctx.actor().permission, &before, version)?;
                users::save(ctx, version)?;
            }
        }
        if was == Status::Suspended {
            ctx.change("/status", Status::Suspended.as_str(), Status::Active.as_str());
            ctx.emit(&fences::USER_REACTIVATED, &fences::OfUser::of(id));
        }
        let held_identity_links = follow(ctx, &before, &versions[0])?;
        Ok(ChangedUser {
            user: first(versions).user,
            held_identity_links,
        })
    }
}

fn first(versions: Vec<User>) -> OneUser {
    let mut versions = versions;
    versions.swap_remove(0).into()
}

/// Notes and tells that a user was suspended.
pub fn suspended(ctx: &mut OperationContext<'_>, id: &UserId) -> Result<()> {
    ctx.change("/status", Status::Active.as_str(), Status::Suspended.as_str());
    ctx.emit(&fences::USER_SUSPENDED, &fences::OfUser::of(id));
    ctx.announce(&PrincipalEnded {
        kind: SubjectKind::User,
        id: id.as_str().to_owned(),
        how: Departure::Stopped,
    })?;
    orphans(ctx, id)
}

/// Reports the service accounts that nobody answers for any more; they keep working (D5.10).
pub fn orphans(ctx: &mut OperationContext<'_>, id: &UserId) -> Result<()> {
    let accounts = service_accounts::owned_by(ctx, id.as_str())?;
    for account in &accounts {
        ctx.emit(
            &service_accounts::fences::ORPHANED,
            &service_accounts::fences::OrphanedAccount {
                service_account_id: account.clone(),
                owner_console_user_id: id.as_str().to_owned(),
            },
        );
    }
    if !accounts.is_empty() {
        ctx.change("/orphaned_service_account", Value::Null, accounts);
    }
    Ok(())
}
