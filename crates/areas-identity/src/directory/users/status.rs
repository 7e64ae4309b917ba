//! Suspends and reactivates a user. Both are idempotent.

use super::super::model::{ChangedUser, OneUser, Status, SuspendedBy, User, UserId, UserPath};
use super::super::rights::may_change;
use super::super::store::users;
use super::update::follow;
use crate::directory::fences;
use crate::service_accounts;
use crate::subjects::SubjectKind;
use provost_areas_platform::announcements::{Departure, PrincipalEnded};
use provost_kernel::auth::Role::Admin;
use provost_kernel::operation::{Empty, Input, Meta, Method, Operation};
use provost_kernel::{Cx, Result};
use serde_json::Value;

/// See [`Operation::META`].
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

    fn call(cx: &mut Cx<'_>, input: &Input<Self>) -> Result<OneUser> {
        let id = &input.path.user_id;
        cx.target(&fences::USER, id.as_str());
        let mut versions = users::versions(cx, id)?;
        let was = versions[0].status;
        let now = cx.now();
        for version in &mut versions {
            if version.suspend(now, SuspendedBy::Api) {
                users::save(cx, version)?;
            }
        }
        if was == Status::Active {
            suspended(cx, id)?;
        }
        Ok(first(versions))
    }
}

/// See [`Operation::META`].
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
    .says(
        "Reactivate a user",
        "It counts as a subject again. Nobody reactivates a user whose role could do more than they can. What was allowed of \
         its identity links ends, and a link is held whose maker could not give the role.",
    );
    type Path = UserPath;
    type Query = Empty;
    type Body = Empty;
    type Output = ChangedUser;

    fn call(cx: &mut Cx<'_>, input: &Input<Self>) -> Result<ChangedUser> {
        let id = &input.path.user_id;
        cx.target(&fences::USER, id.as_str());
        let mut versions = users::versions(cx, id)?;
        let before = versions[0].clone();
        let was = before.status;
        let now = cx.now();
        for version in &mut versions {
            let before = version.clone();
            if version.reactivate(now) {
                // A role works again: nobody gives it back for more than they hold (DI-5).
                may_change(cx.actor().permission, &before, version)?;
                users::save(cx, version)?;
            }
        }
        if was == Status::Suspended {
            cx.change("/status", Status::Suspended.as_str(), Status::Active.as_str());
            cx.emit(&fences::USER_REACTIVATED, &fences::OfUser::of(id));
        }
        let held_identity_links = follow(cx, &before, &versions[0])?;
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
pub fn suspended(cx: &mut Cx<'_>, id: &UserId) -> Result<()> {
    cx.change("/status", Status::Active.as_str(), Status::Suspended.as_str());
    cx.emit(&fences::USER_SUSPENDED, &fences::OfUser::of(id));
    cx.announce(&PrincipalEnded {
        kind: SubjectKind::User,
        id: id.as_str().to_owned(),
        how: Departure::Stopped,
    })?;
    orphans(cx, id)
}

/// Reports the service accounts that nobody answers for any more; they keep working (D5.10).
pub fn orphans(cx: &mut Cx<'_>, id: &UserId) -> Result<()> {
    let accounts = service_accounts::owned_by(cx, id.as_str())?;
    for account in &accounts {
        cx.emit(
            &service_accounts::fences::ORPHANED,
            &service_accounts::fences::OrphanedAccount {
                service_account_id: account.clone(),
                owner_console_user_id: id.as_str().to_owned(),
            },
        );
    }
    if !accounts.is_empty() {
        cx.change("/orphaned_service_account", Value::Null, accounts);
    }
    Ok(())
}
