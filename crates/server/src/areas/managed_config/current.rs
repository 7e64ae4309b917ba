//! Delivers the current release to a machine.

use super::content::Class;
use super::model::{OnUnavailable, ProfileId, ProfilePath, ProfileStatus};
use super::targets::Target;
use super::views::ReleaseRef;
use super::{READERS, store};
use provost_kernel::dsse::Envelope;
use provost_kernel::operation::{Empty, Input, Meta, Operation};
use provost_kernel::{Cx, Result};
use schemars::JsonSchema;
use serde::Serialize;

/// See [`Operation::META`].
pub struct GetCurrent;

#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(inline)]
struct Delivered {
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
    profile: Delivered,
    release: ReleaseRef,
    /// The manifest and its signature: names, hashes and sizes of the files, version and epoch.
    envelope: Envelope,
    files: Vec<FileView>,
}

impl Operation for GetCurrent {
    const META: Meta = Meta::read(
        "getHeadlessManagedConfigCurrent",
        "/managed-config/profiles/{profileId}/current",
        "managed_config",
    )
    .access("managed_config:read", READERS)
    .command("managed-config", "current")
    .says(
        "Read the current release as machines get it",
        "The signed manifest and the files that it names, with every value as it was published. An archived profile \
         still delivers its last release.",
    );
    type Path = ProfilePath;
    type Query = Empty;
    type Body = Empty;
    type Output = Current;

    fn call(cx: &mut Cx<'_>, input: &Input<Self>) -> Result<Current> {
        let found = store::get(cx, &input.path.profile_id)?;
        let release = found.must_have_release()?;
        let content = store::content(cx, &release.content_digest)?;
        let envelope = store::envelope(cx, &release.id)?;
        let profile = &found.profile;
        cx.header(
            "etag",
            format!("\"{}-{}\"", release.id, profile.updated_at.as_ms()),
        );
        let files = profile.target.files(&content).into_iter().map(|file| FileView {
            name: file.name,
            role: file.role,
            content: file.text,
        });
        Ok(Current {
            release: ReleaseRef::of(release),
            envelope,
            files: files.collect(),
            profile: Delivered {
                id: profile.id.clone(),
                name: profile.name.clone(),
                target: profile.target,
                status: profile.status,
                on_unavailable: profile.on_unavailable,
                poll_interval_seconds: profile.poll_interval_secs,
            },
        })
    }
}
