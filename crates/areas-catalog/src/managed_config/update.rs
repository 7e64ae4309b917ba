//! Changes a profile: absent members stay (D13).

use super::manifest;
use super::model::{AutoPublish, ClientVersion, OnUnavailable, PollIntervalSecs, ProfilePath};
use super::store::{self, ProfileWithRelease};
use super::views::{OneProfile, ProfileView};
use crate::managed_config::fences;
use provost_kernel::auth::Role::Admin;
use provost_kernel::operation::{Empty, Input, Meta, Method, Operation};
use provost_kernel::patch::{Patch, RequiredChange};
use provost_kernel::text::Name;
use provost_kernel::{OperationContext, Result};
use schemars::JsonSchema;
use serde::Deserialize;

pub struct UpdateProfile;

/// What can change.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[schemars(inline)]
pub struct UpdateBody {
    /// The new name.
    #[serde(default)]
    name: RequiredChange<Name>,
    /// Whose rules hold; null: the newest version.
    #[serde(default)]
    client_version: Patch<ClientVersion>,
    /// Whether automatic publications are taken; `on` ends a pause.
    #[serde(default)]
    auto_publish: RequiredChange<AutoPublish>,
    /// What a machine does without the server.
    #[serde(default)]
    on_unavailable: RequiredChange<OnUnavailable>,
    /// How often a machine asks, in seconds.
    #[serde(default)]
    poll_interval_seconds: RequiredChange<PollIntervalSecs>,
}

impl Operation for UpdateProfile {
    const META: Meta = Meta::write(
        "updateHeadlessManagedConfigProfile",
        Method::Patch,
        "/managed-config/profiles/{profileId}",
        "managed_config",
    )
    .access("managed_config:write", &[Admin])
    .command("managed-config", "update")
    .example(r#"{"pollIntervalSeconds": 600}"#)
    .says(
        "Change a profile of managed configuration",
        "A new onUnavailable reaches the machines with their next question.",
    );
    type Path = ProfilePath;
    type Query = Empty;
    type Body = UpdateBody;
    type Output = OneProfile;

    fn call(ctx: &mut OperationContext<'_>, input: &Input<Self>) -> Result<OneProfile> {
        let (id, body) = (&input.path.profile_id, &input.body);
        ctx.target(&fences::PROFILE, id.as_str());
        let ProfileWithRelease {
            profile: before,
            current,
        } = store::get(ctx, id)?;
        before.must_be_active()?;
        let mut after = before.clone();
        if let Some(name) = body.name.get() {
            name.as_str().clone_into(&mut after.name);
        }
        body.client_version
            .apply(&mut after.client_version, |version| version.as_str().to_owned());
        if after.client_version != before.client_version {
            after.target.must_know(after.client_version.as_deref())?;
        }
        after.auto_publish = body.auto_publish.get().copied().unwrap_or(before.auto_publish);
        after.on_unavailable = body
            .on_unavailable
            .get()
            .copied()
            .unwrap_or(before.on_unavailable);
        after.poll_interval_secs = body
            .poll_interval_seconds
            .get()
            .map_or(before.poll_interval_secs, |secs| secs.get());
        ctx.change("/name", before.name.as_str(), after.name.as_str());
        ctx.change(
            "/clientVersion",
            before.client_version.as_deref(),
            after.client_version.as_deref(),
        );
        ctx.change(
            "/autoPublish",
            before.auto_publish.as_str(),
            after.auto_publish.as_str(),
        );
        ctx.change(
            "/onUnavailable",
            before.on_unavailable.as_str(),
            after.on_unavailable.as_str(),
        );
        ctx.change(
            "/pollIntervalSeconds",
            before.poll_interval_secs,
            after.poll_interval_secs,
        );
        if ctx.has_changes() {
            after.updated_at = before.changed_at(ctx.now());
            store::save(ctx, &after, after.name != before.name)?;
        }
        if let Some(release) = current.filter(|_| after.on_unavailable != before.on_unavailable) {
            let content = store::content(ctx, &release.content_digest)?;
            let envelope = manifest::sign(ctx, &after, &release, &content);
            store::set_envelope(ctx, &release.id, &envelope)?;
        }
        Ok(OneProfile {
            profile: ProfileView::of(ctx.org(), &after),
        })
    }
}
