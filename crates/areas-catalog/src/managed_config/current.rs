//! Delivers the current release to a machine.

use super::content::{Class, Content};
use super::model::{OnUnavailable, ProfileId, ProfilePath, ProfileStatus, Release};
use super::redact::shown_content;
use super::store::{self, ProfileWithRelease};
use super::targets::Target;
use super::views::ReleaseRef;
use super::{PULL, READERS, pulls};
use provost_kernel::dsse::Envelope;
use provost_kernel::operation::{Access, Empty, Input, Meta, Operation};
use provost_kernel::{Error, Kernel, OperationContext, Result};
use schemars::JsonSchema;
use serde::Serialize;

pub struct GetCurrent;

#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(inline)]
struct DeliveredProfile {
    id: ProfileId,
    name: String,
    target: Target,
    status: ProfileStatus,
    on_unavailable: OnUnavailable,
    poll_interval_seconds: i64,
}

#[derive(Debug, Serialize, JsonSchema)]
#[schemars(inline)]
struct FileView {
    name: &'static str,
    role: Class,
    /// The whole file.
    content: String,
}

/// What a machine checks and writes. Nothing outside the envelope is to be trusted.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(inline)]
pub struct Current {
    profile: DeliveredProfile,
    release: ReleaseRef,
    /// The files are for reading only: values that may be secret are replaced by a mark, because the caller does not hold
    /// `managed_config:pull`.
    redacted: bool,
    /// The manifest and its signature: names, hashes and sizes of the files, version and epoch. Absent from a redacted
    /// answer, whose files have other hashes.
    #[serde(skip_serializing_if = "Option::is_none")]
    envelope: Option<Envelope>,
    files: Vec<FileView>,
}

impl Operation for GetCurrent {
    const META: Meta = Meta::read(
        "getHeadlessManagedConfigCurrent",
        "/managed-config/profiles/{profileId}/current",
        "managed_config",
    )
    .rule(Access::ScopedEither {
        scope: "managed_config:read",
        other: PULL,
        roles: READERS,
    })
    .command("managed-config", "current")
    .answers(&["ETag"])
    .says(
        "Read the current release as machines get it",
        "With managed_config:pull the signed manifest and its files as published, and the audit log names the caller; without \
         it the files with hidden values replaced. Archived profiles deliver too.",
    );
    type Path = ProfilePath;
    type Query = Empty;
    type Body = Empty;
    type Output = Current;

    fn call(ctx: &mut OperationContext<'_>, input: &Input<Self>) -> Result<Current> {
        let found = store::get(ctx, &input.path.profile_id)?;
        let release = found.must_have_release()?;
        let content = store::content(ctx, &release.content_digest)?;
        let profile = &found.profile;
        let etag = format!("{}-{}", release.id, profile.updated_at.as_ms());
        // INVARIANT MC-9.
        let is_clear = ctx.actor().permission.scopes.has(PULL);
        let (content, envelope, etag) = if is_clear {
            (content, Some(store::envelope(ctx, &release.id)?), etag)
        } else {
            (shown_content(&content), None, format!("{etag}-redacted"))
        };
        ctx.header("etag", format!("\"{etag}\""));
        let current = Current::of(ctx, &found, release, &content, envelope);
        if is_clear {
            send_told(ctx, profile.id.clone(), &current)?;
        }
        Ok(current)
    }
}

impl Current {
    /// Returns a release of a profile as machines get it; without a signed manifest it is for reading only.
    fn of(
        ctx: &OperationContext<'_>,
        found: &ProfileWithRelease,
        release: &Release,
        content: &Content,
        envelope: Option<Envelope>,
    ) -> Self {
        let profile = &found.profile;
        let files = profile.target.files(content).into_iter().map(|file| FileView {
            name: file.name,
            role: file.role,
            content: file.text,
        });
        Self {
            release: ReleaseRef::of(ctx, release),
            redacted: envelope.is_none(),
            envelope,
            files: files.collect(),
            profile: DeliveredProfile {
                id: profile.id.clone(),
                name: profile.name.clone(),
                target: profile.target,
                status: profile.status,
                on_unavailable: profile.on_unavailable,
                poll_interval_seconds: profile.poll_interval_secs,
            },
        }
    }
}

/// Returns a release with its values in the clear. Whoever calls this has found that the caller may have them.
pub(crate) fn deliver(
    ctx: &mut OperationContext<'_>,
    found: &ProfileWithRelease,
    release: &Release,
) -> Result<Current> {
    let content = store::content(ctx, &release.content_digest)?;
    let envelope = store::envelope(ctx, &release.id)?;
    let current = Current::of(ctx, found, release, &content, Some(envelope));
    send_told(ctx, found.profile.id.clone(), &current)?;
    Ok(current)
}

/// Sends values in the clear when the audit log knows of it (MC-10).
fn send_told(ctx: &mut OperationContext<'_>, profile: ProfileId, current: &Current) -> Result<()> {
    if pulls::is_told(ctx, &profile)? {
        return Ok(());
    }
    send_once_told(ctx, profile, current)
}

/// Sends the answer when the audit log knows of it.
fn send_once_told(ctx: &mut OperationContext<'_>, profile: ProfileId, current: &Current) -> Result<()> {
    let (kernel, organization) = (Kernel::behind(ctx.services())?, ctx.organization().clone());
    let caller = pulls::Caller::of(ctx);
    let bytes = serde_json::to_vec(current).map_err(Error::internal)?;
    ctx.send_later("application/json", async move {
        let tell = move |ctx: &mut OperationContext<'_>| pulls::tell(ctx, &profile, &caller);
        kernel.system(organization, None, tell).await?;
        Ok(bytes.into())
    });
    Ok(())
}
