//! Rolls a profile back, or shows what that would do (specification §4.4; D8.3 to D8.11).

use super::difference::{self, Difference};
use super::model::{AutoPublish, NamedRelease, PreviewToken, ProfileId, ProfilePath, ReleaseKind};
use super::plan::{self, Plan};
use super::targets::{SCHEMA_VERSION, weakening};
use super::views::{ReleaseRef, ReleaseView, Warning};
use super::{READERS, machines, manifest};
use crate::managed_config::fences;
use provost_areas_platform::settings;
use provost_kernel::auth::Role::{Admin, Operator};
use provost_kernel::error::Error;
use provost_kernel::operation::{Empty, Input, Meta, Method, Operation, Precondition};
use provost_kernel::text::Reason;
use provost_kernel::{OperationContext, Result, Timestamp};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

pub struct Rollback;

/// What is restored.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[schemars(inline, extend(
    "if" = { "required": ["confirm"], "properties": { "confirm": { "const": true } } },
    "then" = {
        "required": ["sourceReleaseId", "reason", "idempotencyKey"],
        "properties": { "sourceReleaseId": { "type": "string" } },
    },
))]
pub struct RollbackBody {
    /// Whose content is restored. A preview takes the newest earlier one that differs; a performance must name it.
    source_release_id: Option<NamedRelease>,
    /// What a preview returned.
    preview_token: Option<PreviewToken>,
}

/// Either what would be done or what was done.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(tag = "mode", rename_all = "snake_case")]
#[schemars(inline, extend("type" = "object"))]
pub enum RollbackOutcome {
    /// Nothing was done.
    Preview(Box<Preview>),
    /// It was done, or there was nothing to do.
    Completed(Box<RollbackResult>),
}

/// What a rollback would do (D8.6).
#[expect(
    clippy::struct_field_names,
    reason = "`previewToken` is the member's name on the wire"
)]
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(inline)]
pub struct Preview {
    profile_id: ProfileId,
    current_release: ReleaseRef,
    source_release: ReleaseRef,
    #[serde(flatten)]
    difference: Difference,
    affected: AffectedMachines,
    warnings: Vec<Warning>,
    /// Absent when there is nothing to do.
    #[serde(skip_serializing_if = "Option::is_none")]
    would_create: Option<WouldCreate>,
    preview_token: String,
    etag: String,
    /// When the preview token ends.
    expires_at: Timestamp,
}

/// What was done (D8.8).
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(inline)]
pub struct RollbackResult {
    /// A release was made; `false` when the current one says the same already (D8.9).
    created: bool,
    profile_id: ProfileId,
    release: Box<ReleaseView>,
    previous_release: ReleaseRef,
    source_release: ReleaseRef,
    changes_total: usize,
    affected: AffectedMachines,
    auto_publish_paused: bool,
}

#[derive(Debug, Serialize, JsonSchema)]
#[schemars(inline)]
struct AffectedMachines {
    /// Machines of the profile.
    targets: i64,
    /// Groups of machines; there are none yet.
    groups: i64,
    /// Machines that reported within two of their intervals.
    online: i64,
}

#[derive(Debug, Serialize, JsonSchema)]
#[schemars(inline)]
struct WouldCreate {
    version: i64,
    kind: ReleaseKind,
}

impl Operation for Rollback {
    const META: Meta = Meta::write(
        "rollbackHeadlessManagedConfigProfile",
        Method::Post,
        "/managed-config/profiles/{profileId}/rollback",
        "managed_config",
    )
    .access("managed_config:read", READERS)
    .previews("managed_config:rollback", &[Admin, Operator])
    .precondition(Precondition::Match)
    .answers(&["ETag"])
    .command("managed-config", "rollback")
    .example(r#"{"sourceReleaseId": "mcr_01m7w5fpg4ctwq7mvve86yenbr"}"#)
    .says(
        "Preview or perform a rollback of a managed configuration profile",
        "The content of the source release becomes a new release. previewToken or If-Match: 412 when anything has moved \
         since the preview.",
    );
    type Path = ProfilePath;
    type Query = Empty;
    type Body = RollbackBody;
    type Output = RollbackOutcome;

    fn validate(input: &Input<Self>) -> Result<()> {
        if input.confirm && input.body.source_release_id.is_none() {
            return Err(Error::invalid(
                "/sourceReleaseId",
                "is required when confirm is true",
            ));
        }
        Ok(())
    }

    fn call(ctx: &mut OperationContext<'_>, input: &Input<Self>) -> Result<RollbackOutcome> {
        let body = &input.body;
        let (token, if_match) = (body.preview_token.as_ref(), input.if_match.as_deref());
        ctx.target(&fences::PROFILE, input.path.profile_id.as_str());
        let is_bound = plan::is_bound(token, if_match);
        if input.confirm && !is_bound && settings::load(ctx)?.managed_config.require_preview {
            let message = "is required, or If-Match: this organization wants rollbacks previewed";
            return Err(Error::invalid("/previewToken", message));
        }
        let plan = Plan::of(
            ctx,
            &input.path.profile_id,
            body.source_release_id.as_ref().map(NamedRelease::id),
        )?;
        plan.must_match(ctx, token, if_match)?;
        if input.confirm {
            let reason = input.reason.as_ref().map_or("", Reason::as_str);
            return perform(ctx, plan, reason).map(|done| RollbackOutcome::Completed(Box::new(done)));
        }
        Ok(RollbackOutcome::Preview(Box::new(preview(ctx, &plan))))
    }
}

fn affected(plan: &Plan) -> AffectedMachines {
    AffectedMachines {
        targets: plan.tally.total,
        groups: 0,
        online: plan.tally.online,
    }
}

fn preview(ctx: &mut OperationContext<'_>, plan: &Plan) -> Preview {
    let (etag, (preview_token, expires_at)) = (plan.etag(ctx), plan.token(ctx));
    ctx.header("etag", etag.clone());
    Preview {
        profile_id: plan.profile.id.clone(),
        current_release: ReleaseRef::of(ctx, &plan.current),
        source_release: ReleaseRef::of(ctx, &plan.source),
        difference: Difference::of(plan.profile.target, &plan.current_content, &plan.source_content),
        affected: affected(plan),
        warnings: warnings(plan)
            .into_iter()
            .chain(plan.warnings.iter().cloned())
            .collect(),
        would_create: (!plan.is_no_op).then_some(WouldCreate {
            version: plan.current.version + 1,
            kind: ReleaseKind::Rollback,
        }),
        preview_token,
        etag,
        expires_at,
    }
}

fn warnings(plan: &Plan) -> Vec<Warning> {
    let mut warnings = Vec::new();
    let weakened = plan
        .profile
        .target
        .weakened(&plan.current_content, &plan.source_content);
    warnings.extend(weakening::warning(&weakened));
    if plan.is_no_op {
        return warnings;
    }
    let mut warn = |code, message: String| {
        warnings.push(Warning {
            code,
            message,
            paths: Vec::new(),
        });
    };
    if plan.source.schema_version != SCHEMA_VERSION {
        let message = format!(
            "the release was checked against schema version {}; its content fits version {SCHEMA_VERSION}, which the new one will have",
            plan.source.schema_version
        );
        warn("schema_migrated", message);
    }
    if plan.profile.auto_publish == AutoPublish::On {
        let message =
            "automatic publishing of the profile will be paused, or its next run would undo the rollback";
        warn("auto_publish_will_pause", message.to_owned());
    }
    let offline = plan.tally.total - plan.tally.online;
    if offline > 0 {
        let message = format!("{offline} machines have not reported lately and will follow when they do");
        warn("targets_offline", message);
    }
    warnings
}

fn perform(ctx: &mut OperationContext<'_>, mut plan: Plan, reason: &str) -> Result<RollbackResult> {
    let affected = affected(&plan);
    let (previous, source) = (
        ReleaseRef::of(ctx, &plan.current),
        ReleaseRef::of(ctx, &plan.source),
    );
    if plan.is_no_op {
        let release = Box::new(ReleaseView::of(ctx, &plan.profile, &plan.current, plan.tally));
        return Ok(RollbackResult {
            created: false,
            profile_id: plan.profile.id,
            release,
            previous_release: previous,
            source_release: source,
            changes_total: 0,
            affected,
            auto_publish_paused: false,
        });
    }
    let pauses = plan.profile.auto_publish == AutoPublish::On;
    if pauses {
        ctx.change(
            "/autoPublish",
            AutoPublish::On.as_str(),
            AutoPublish::Paused.as_str(),
        );
        plan.profile.auto_publish = AutoPublish::Paused;
    }
    let before = (&plan.current.content_digest, &plan.current_content);
    difference::note(
        ctx,
        Some(before),
        (&plan.source.content_digest, &plan.source_content),
    );
    let (current, content) = (&plan.current, &plan.source_content);
    let release = manifest::release(
        ctx,
        &mut plan.profile,
        Some(current),
        content,
        Some(&plan.source.id),
        reason,
    )?;
    ctx.emit(
        &fences::RELEASE_ROLLED_BACK,
        &fences::Rollback {
            profile_id: plan.profile.id.clone(),
            release_id: release.id.clone(),
            version: release.version,
            source_release_id: plan.source.id.clone(),
            auto_publish_paused: pauses,
        },
    );
    let tally = machines::tally(ctx, &plan.profile, Some(&release))?;
    Ok(RollbackResult {
        created: true,
        release: Box::new(ReleaseView::of(ctx, &plan.profile, &release, tally)),
        changes_total: Difference::of(plan.profile.target, &plan.current_content, &plan.source_content)
            .total(),
        profile_id: plan.profile.id,
        previous_release: previous,
        source_release: source,
        affected,
        auto_publish_paused: pauses,
    })
}
