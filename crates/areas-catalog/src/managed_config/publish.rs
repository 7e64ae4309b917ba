//! Publishes a release.

use super::content::{Content, refusal};
use super::digest::ContentDigest;
use super::model::{AutoPublish, ProfilePath};
use super::store::{self, ProfileWithRelease};
use super::views::ReleaseView;
use super::{difference, machines, manifest, redact};
use crate::managed_config::fences;
use provost_kernel::auth::Role::Admin;
use provost_kernel::error::{Code, Error};
use provost_kernel::operation::{Empty, Input, Meta, Method, Operation};
use provost_kernel::text::Reason;
use provost_kernel::{OperationContext, Result};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

pub struct Publish;

/// What is released.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[schemars(inline)]
pub struct PublishBody {
    /// The whole content; nothing of the release before is kept.
    content: Content,
    /// A program publishes on its own, for example at every commit: taken only while the profile's autoPublish is
    /// `on`.
    #[serde(default)]
    automatic: bool,
}

/// The release that is current now.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(inline)]
pub struct PublishedRelease {
    /// A release was made; `false` when the current one says the same already.
    created: bool,
    release: ReleaseView,
}

impl Operation for Publish {
    const META: Meta = Meta::write(
        "publishHeadlessManagedConfigRelease",
        Method::Post,
        "/managed-config/profiles/{profileId}/releases",
        "managed_config",
    )
    .access("managed_config:write", &[Admin])
    .command("managed-config", "publish")
    .example(
        r#"{"content": {"enforced": {"permissions": {"deny": ["Read(./.env)"]}},
               "defaults": {"model": "opus"}}}"#,
    )
    .answers(&["Location"])
    .reads_up_to(2 << 20, 32)
    .says(
        "Publish a release of managed configuration",
        "The content is checked against the target's schema. Publishing what is current already makes no \
         release and answers created false.",
    );
    type Path = ProfilePath;
    type Query = Empty;
    type Body = PublishBody;
    type Output = PublishedRelease;

    fn call(ctx: &mut OperationContext<'_>, input: &Input<Self>) -> Result<PublishedRelease> {
        let (id, body) = (&input.path.profile_id, &input.body);
        ctx.target(&fences::PROFILE, id.as_str());
        let ProfileWithRelease { mut profile, current } = store::get(ctx, id)?;
        profile.must_be_active()?;
        if body.automatic && profile.auto_publish != AutoPublish::On {
            let state = profile.auto_publish.as_str();
            let message = format!("automatic publishing of this profile is {state}; set autoPublish to on");
            return Err(Error::new(Code::Conflict, message));
        }
        let mut faults = profile.target.faults(&body.content);
        faults.extend(redact::marks(&body.content));
        if !faults.is_empty() {
            let message = "the content is not what the target's program takes";
            return Err(refusal(Code::InvalidDefinition, message, "/content", &faults));
        }
        let canonical = body.content.canonical();
        let digest = ContentDigest::of(&canonical);
        let (org, epoch) = (ctx.org(), store::epoch(ctx)?);
        if let Some(current) = current
            .as_ref()
            .filter(|c| c.content_digest == digest && c.store_epoch == epoch)
        {
            let tally = machines::tally(ctx, &profile, Some(current))?;
            let release = ReleaseView::of(ctx, &profile, current, tally);
            return Ok(PublishedRelease {
                created: false,
                release,
            });
        }
        let before = match &current {
            Some(current) => Some((
                &current.content_digest,
                store::content(ctx, &current.content_digest)?,
            )),
            None => None,
        };
        let content = Content::from_store(&canonical)?;
        let reason = input.reason.as_ref().map_or("", Reason::as_str);
        difference::note(ctx, before.as_ref().map(|(d, c)| (*d, c)), (&digest, &content));
        let release = manifest::release(ctx, &mut profile, current.as_ref(), &content, None, reason)?;
        let place = format!(
            "/api/headless/v1/organizations/{org}/managed-config/profiles/{id}/releases/{}",
            release.id
        );
        ctx.header("location", place);
        ctx.emit(
            &fences::RELEASE_PUBLISHED,
            &fences::NewRelease {
                profile_id: id.clone(),
                release_id: release.id.clone(),
                version: release.version,
            },
        );
        let tally = machines::tally(ctx, &profile, Some(&release))?;
        Ok(PublishedRelease {
            created: true,
            release: ReleaseView::of(ctx, &profile, &release, tally),
        })
    }
}
