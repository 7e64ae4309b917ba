//! Archives and restores a profile. Both are idempotent, and each undoes the other.

use super::model::{ProfilePath, ProfileStatus};
use super::store;
use super::views::{OneProfile, ProfileView};
use crate::managed_config::fences;
use provost_kernel::auth::Role::Admin;
use provost_kernel::operation::{Empty, Input, Meta, Method, Operation};
use provost_kernel::{OperationContext, Result};

pub struct ArchiveProfile;

impl Operation for ArchiveProfile {
    const META: Meta = Meta::write(
        "archiveHeadlessManagedConfigProfile",
        Method::Post,
        "/managed-config/profiles/{profileId}/archive",
        "managed_config",
    )
    .access("managed_config:write", &[Admin])
    .command("managed-config", "archive")
    .says(
        "Archive a profile of managed configuration",
        "Nothing of it changes until it is restored. Machines keep getting its last release.",
    );
    type Path = ProfilePath;
    type Query = Empty;
    type Body = Empty;
    type Output = OneProfile;

    fn call(ctx: &mut OperationContext<'_>, input: &Input<Self>) -> Result<OneProfile> {
        set(ctx, &input.path, ProfileStatus::Archived)
    }
}

pub struct RestoreProfile;

impl Operation for RestoreProfile {
    const META: Meta = Meta::write(
        "restoreHeadlessManagedConfigProfile",
        Method::Post,
        "/managed-config/profiles/{profileId}/restore",
        "managed_config",
    )
    .access("managed_config:write", &[Admin])
    .command("managed-config", "restore")
    .says(
        "Restore an archived profile of managed configuration",
        "It can be changed again.",
    );
    type Path = ProfilePath;
    type Query = Empty;
    type Body = Empty;
    type Output = OneProfile;

    fn call(ctx: &mut OperationContext<'_>, input: &Input<Self>) -> Result<OneProfile> {
        set(ctx, &input.path, ProfileStatus::Active)
    }
}

fn set(ctx: &mut OperationContext<'_>, path: &ProfilePath, status: ProfileStatus) -> Result<OneProfile> {
    ctx.target(&fences::PROFILE, path.profile_id.as_str());
    let mut profile = store::get(ctx, &path.profile_id)?.profile;
    if profile.status != status {
        ctx.change("/status", profile.status.as_str(), status.as_str());
        profile.status = status;
        profile.updated_at = profile.changed_at(ctx.now());
        store::save(ctx, &profile, false)?;
    }
    Ok(OneProfile {
        profile: ProfileView::of(ctx.org(), &profile),
    })
}
