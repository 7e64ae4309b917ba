//! Publishes a release.

use super::content::{Content, Fault, refusal};
use super::difference::{self, Difference};
use super::digest::ContentDigest;
use super::model::{AutoPublish, Profile, ProfilePath, Release};
use super::plan::{self, PREVIEW_TOKEN};
use super::store::{self, ProfileWithRelease};
use super::targets::{Findings, Weakening, weakening};
use super::views::{ReleaseRef, ReleaseView, Warning};
use super::{PULL, machines, manifest, redact};
use crate::managed_config::fences;
use provost_kernel::audit::hex;
use provost_kernel::auth::Role::Admin;
use provost_kernel::error::{Code, Error};
use provost_kernel::operation::{Input, Meta, Method, Operation, Precondition};
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
    /// A program publishes on its own: taken only while autoPublish is `on`.
    #[serde(default)]
    automatic: bool,
    /// Refuses what is otherwise only warned of.
    #[serde(default)]
    strict: bool,
}

/// Whether anything is done.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[schemars(inline)]
pub struct PublishQuery {
    /// `true` shows what would change and what is weaker, and publishes nothing.
    #[serde(default)]
    preview: bool,
}

/// What was published, or what would be.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(untagged)]
#[schemars(inline, extend("type" = "object"))]
pub enum PublishOutcome {
    /// It is current now.
    Published(Box<PublishedRelease>),
    /// Nothing was done.
    Preview(#[schemars(with = "PreviewForm")] Box<PublishPreview>),
}

/// A preview, with the members of a rollback's preview and `weakensEnforcement`.
#[derive(JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(inline)]
#[expect(
    dead_code,
    reason = "the form alone: a client lists all tools, and knows the members from the rollback"
)]
struct PreviewForm {
    /// `preview`.
    mode: String,
    /// A release would be made.
    would_create: bool,
}

/// What publishing the content would do.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct PublishPreview {
    /// `preview`.
    mode: &'static str,
    /// A release would be made; `false` when the current one says the same already. Always `true` for a caller without
    /// `managed_config:pull` where a hidden value is on either side.
    would_create: bool,
    /// The release that would be replaced; absent before the first one.
    #[serde(skip_serializing_if = "Option::is_none")]
    current_release: Option<ReleaseRef>,
    #[serde(flatten)]
    difference: Difference,
    /// What would guard less than now.
    weakens_enforcement: Vec<Weakening>,
    warnings: Vec<Warning>,
}

/// The release that is current now.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(inline)]
pub struct PublishedRelease {
    /// A release was made; `false` when the current one says the same already.
    created: bool,
    release: ReleaseView,
    /// What the program takes although it has no effect, and what anybody can change again.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schemars(default)]
    warnings: Vec<Warning>,
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
    .precondition(Precondition::Match)
    .answers(&["Location", "ETag"])
    .reads_up_to(2 << 20, 32)
    .says(
        "Publish a release of managed configuration",
        "What is current already makes no release: created is false. preview=true shows what would change, publishes \
         nothing, and answers an ETag: sent as If-Match, it refuses (412) another content than was previewed, and one that \
         another release came before.",
    )
    .previews_where_asked();
    type Path = ProfilePath;
    type Query = PublishQuery;
    type Body = PublishBody;
    type Output = PublishOutcome;

    fn call(ctx: &mut OperationContext<'_>, input: &Input<Self>) -> Result<PublishOutcome> {
        let (id, body) = (&input.path.profile_id, &input.body);
        ctx.target(&fences::PROFILE, id.as_str());
        let ProfileWithRelease { mut profile, current } = store::get(ctx, id)?;
        profile.must_be_active()?;
        if body.automatic && profile.auto_publish != AutoPublish::On {
            let state = profile.auto_publish.as_str();
            let message = format!("automatic publishing of this profile is {state}; set autoPublish to on");
            return Err(Error::new(Code::Conflict, message));
        }
        let warnings = taken(&profile, body)?;
        let canonical = body.content.canonical();
        let digest = ContentDigest::of(&canonical);
        let etag = tag(ctx, &profile, current.as_ref(), &digest);
        if !plan::is_named(input.if_match.as_deref(), &etag) {
            return Err(plan::moved(etag));
        }
        let epoch = store::epoch(ctx)?;
        let is_same = |current: &&Release| current.content_digest == digest && current.store_epoch == epoch;
        let same = current.as_ref().filter(is_same);
        let before = match &current {
            Some(current) if same.is_none() || input.query.preview => Some((
                &current.content_digest,
                store::content(ctx, &current.content_digest)?,
            )),
            _ => None,
        };
        if input.query.preview {
            let content = before.map_or_else(Content::default, |(_, content)| content);
            let wanted = Content::from_store(&canonical)?;
            let target = profile.target;
            let (weakened, difference, is_same) = if ctx.actor().permission.scopes.has(PULL) {
                let weakened = target.weakened(&content, &wanted);
                (
                    weakened,
                    Difference::of(target, &content, &wanted),
                    same.is_some(),
                )
            } else {
                // Nobody keeps a record of a look: what it says of hidden values must not depend on a guess at them.
                let (shown, guessed) = redact::uncompared(&content, &wanted);
                let is_of_now = current
                    .as_ref()
                    .is_some_and(|current| current.store_epoch == epoch);
                let weakened = target.weakened(&shown, &wanted);
                let difference = Difference::uncompared(target, &content, &wanted);
                (weakened, difference, is_of_now && shown == guessed)
            };
            let preview = PublishPreview {
                mode: "preview",
                would_create: !is_same,
                current_release: current.as_ref().map(|current| ReleaseRef::of(ctx, current)),
                difference,
                warnings: warnings
                    .into_iter()
                    .chain(weakening::warning(&weakened))
                    .collect(),
                weakens_enforcement: weakened,
            };
            ctx.header("etag", etag);
            return Ok(PublishOutcome::Preview(Box::new(preview)));
        }
        if let Some(current) = same {
            let tally = machines::tally(ctx, &profile, Some(current))?;
            let release = ReleaseView::of(ctx, &profile, current, tally);
            return Ok(PublishOutcome::Published(Box::new(PublishedRelease {
                created: false,
                release,
                warnings,
            })));
        }
        let org = ctx.org();
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
        Ok(PublishOutcome::Published(Box::new(PublishedRelease {
            created: true,
            release: ReleaseView::of(ctx, &profile, &release, tally),
            warnings,
        })))
    }
}

/// Returns the name of what a preview shows: another one as soon as another release is current, and for another content (D1.9).
/// It is keyed, so that it says nothing of hidden values.
fn tag(
    ctx: &OperationContext<'_>,
    profile: &Profile,
    current: Option<&Release>,
    wanted: &ContentDigest,
) -> String {
    let words = [
        "publication",
        ctx.org(),
        profile.id.as_str(),
        current.map_or("", |release| release.id.as_str()),
        current.map_or("", |release| release.content_digest.clear()),
        wanted.clear(),
    ];
    let mac = ctx.services().keys.mac(PREVIEW_TOKEN, &words.map(str::as_bytes));
    format!("\"{}\"", hex(&mac[..16]))
}

/// Returns what the program takes of a content although it has no effect.
///
/// Errors: `InvalidDefinition` for what it does not take; where that was asked for, also for what is only warned of.
fn taken(profile: &Profile, body: &PublishBody) -> Result<Vec<Warning>> {
    let Findings {
        mut faults, warnings, ..
    } = profile.findings(&body.content);
    faults.extend(redact::marks(&body.content));
    if body.strict {
        faults.extend(warnings.iter().flat_map(Fault::of_warning));
    }
    if faults.is_empty() {
        return Ok(warnings);
    }
    let message = "the content is not what the target's program takes";
    Err(refusal(Code::InvalidDefinition, message, "/content", &faults))
}
