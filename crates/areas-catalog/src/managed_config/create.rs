//! Makes a profile.

use super::model::{
    AutoPublish, ClientVersion, DEFAULT_POLL_SECS, OnUnavailable, PollIntervalSecs, Profile, ProfileStatus,
};
use super::store;
use super::targets::Target;
use super::views::{OneProfile, ProfileView};
use crate::managed_config::fences;
use provost_kernel::auth::Role::Admin;
use provost_kernel::operation::{Empty, Input, Meta, Method, Operation};
use provost_kernel::text::Name;
use provost_kernel::{OperationContext, Result};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Value;

pub struct CreateProfile;

/// What a profile is made of.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[schemars(inline)]
pub struct CreateBody {
    /// Unique, upper and lower case alike, archived profiles included.
    name: Name,
    /// The program that it is for; it cannot be changed.
    target: Target,
    /// Whose rules hold; the newest version when absent.
    client_version: Option<ClientVersion>,
    /// Whether automatic publications are taken; `off` when absent.
    auto_publish: Option<AutoPublish>,
    /// What a machine does without the server; `last_known` when absent.
    on_unavailable: Option<OnUnavailable>,
    /// How often a machine asks, in seconds; 3600 when absent.
    poll_interval_seconds: Option<PollIntervalSecs>,
}

impl Operation for CreateProfile {
    const META: Meta = Meta::write(
        "createHeadlessManagedConfigProfile",
        Method::Post,
        "/managed-config/profiles",
        "managed_config",
    )
    .access("managed_config:write", &[Admin])
    .command("managed-config", "create")
    .example(r#"{"name": "Developers", "target": "claude_code"}"#)
    .status(201)
    .answers(&["Location"])
    .says(
        "Create a profile of managed configuration",
        "Nothing is delivered before the first release is published.",
    );
    type Path = Empty;
    type Query = Empty;
    type Body = CreateBody;
    type Output = OneProfile;

    fn call(ctx: &mut OperationContext<'_>, input: &Input<Self>) -> Result<OneProfile> {
        let body = &input.body;
        let client_version = body.client_version.as_ref().map(ClientVersion::as_str);
        body.target.must_know(client_version)?;
        let profile = Profile {
            id: ctx.new_id(),
            seq: 0,
            name: body.name.as_str().to_owned(),
            target: body.target,
            client_version: client_version.map(str::to_owned),
            auto_publish: body.auto_publish.unwrap_or(AutoPublish::Off),
            on_unavailable: body.on_unavailable.unwrap_or(OnUnavailable::LastKnown),
            poll_interval_secs: body
                .poll_interval_seconds
                .map_or(DEFAULT_POLL_SECS, PollIntervalSecs::get),
            status: ProfileStatus::Active,
            current_release_id: None,
            created_at: ctx.now(),
            updated_at: ctx.now(),
        };
        ctx.target(&fences::PROFILE, profile.id.as_str());
        store::insert(ctx, &profile)?;
        let org = ctx.org();
        let place = format!(
            "/api/headless/v1/organizations/{org}/managed-config/profiles/{}",
            profile.id
        );
        ctx.header("location", place);
        ctx.change("/name", Value::Null, profile.name.as_str());
        ctx.change("/target", Value::Null, profile.target.as_str());
        if let Some(version) = client_version {
            ctx.change("/clientVersion", Value::Null, version);
        }
        Ok(OneProfile {
            profile: ProfileView::of(org, &profile),
        })
    }
}
