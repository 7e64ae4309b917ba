//! Shows the content of a release to people; machines get theirs from `current`.

use super::content::Content;
use super::model::ReleasePath;
use super::redact::shown_content;
use super::views::ReleaseRef;
use super::{READERS, store};
use provost_kernel::operation::{Empty, Input, Meta, Operation};
use provost_kernel::{OperationContext, Result};
use schemars::JsonSchema;
use serde::Serialize;

pub struct GetContent;

/// A release and what it says.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(inline)]
pub struct ShownContent {
    release: ReleaseRef,
    /// Values that may be secret are replaced by a mark, which cannot be published.
    content: Content,
}

impl Operation for GetContent {
    const META: Meta = Meta::read(
        "getHeadlessManagedConfigReleaseContent",
        "/managed-config/profiles/{profileId}/releases/{releaseId}/content",
        "managed_config",
    )
    .access("managed_config:read", READERS)
    .command("managed-config", "content")
    .says(
        "Read what a release says",
        "Values that may be secret are shown as [redacted].",
    );
    type Path = ReleasePath;
    type Query = Empty;
    type Body = Empty;
    type Output = ShownContent;

    fn call(ctx: &mut OperationContext<'_>, input: &Input<Self>) -> Result<ShownContent> {
        let profile = store::get(ctx, &input.path.profile_id)?.profile;
        let release = store::release_of(ctx, &profile.id, &input.path.release_id)?;
        let content = store::content(ctx, &release.content_digest)?;
        Ok(ShownContent {
            release: ReleaseRef::of(ctx, &release),
            content: shown_content(&content),
        })
    }
}
