//! `PATCH …/workload-trusts/{workloadTrustId}`: absent members stay (D13). Kind, issuer and account do not change: with
//! another one of these it is another trust.

use super::model::{
    LifetimeSecs, OneTrust, TokenAgeSecs, TrustPath, WorkloadTrust, check_audience, check_keys, granted,
};
use super::rules::{ClaimInputs, ClaimRule, Named, check, named};
use super::{TRUSTING, end_sessions, fences, store};
use crate::jwks::Jwks;
use crate::resources::definition::SingleLine;
use provost_areas_identity::service_accounts::ScopeList;
use provost_kernel::operation::{Empty, Input, Meta, Method, Operation};
use provost_kernel::patch::{Patch, RequiredChange};
use provost_kernel::text::Name;
use provost_kernel::{OperationContext, Result, Timestamp};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};

pub struct UpdateWorkloadTrust;

/// What can change.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[schemars(inline)]
pub struct UpdateBody {
    /// The new name.
    #[serde(default)]
    name: RequiredChange<Name>,
    /// The new audience; `null` is this server's URL.
    #[serde(default)]
    audience: Patch<SingleLine<1, 512>>,
    /// The new rules, in place of all that there are.
    #[serde(default)]
    claims: RequiredChange<ClaimInputs>,
    /// Whether the new rules mean all of an owner.
    #[serde(default)]
    whole_owner: RequiredChange<bool>,
    /// The new scopes.
    #[serde(default)]
    scopes: RequiredChange<ScopeList>,
    /// The new life of sessions, in seconds.
    #[serde(default)]
    lifetime_seconds: RequiredChange<LifetimeSecs>,
    /// The new age of tokens, in seconds.
    #[serde(default)]
    max_token_age_seconds: RequiredChange<TokenAgeSecs>,
    /// The new keys; `null`: they are fetched.
    #[serde(default)]
    jwks: Patch<Jwks>,
    /// `true` exchanges nothing until it is `false`.
    #[serde(default)]
    suspended: RequiredChange<bool>,
}

impl Operation for UpdateWorkloadTrust {
    const META: Meta = Meta::write(
        "updateHeadlessWorkloadTrust",
        Method::Patch,
        "/workload-trusts/{workloadTrustId}",
        "workload_trusts",
    )
    .rule(TRUSTING)
    .command("workload-trusts", "update")
    .example(r#"{"suspended": true}"#)
    .of_two(&["rights"])
    .says(
        "Change or suspend a workload trust",
        "Members that are absent stay. Every change but that of the name ends its sessions. Who gives something must be able \
         to hand out all that the account can do.",
    );
    type Path = TrustPath;
    type Query = Empty;
    type Body = UpdateBody;
    type Output = OneTrust;

    fn standing(ctx: &mut OperationContext<'_>, input: &Input<Self>) -> Result<Value> {
        store::standing(ctx, &input.path.workload_trust_id)
    }

    /// Whoever it lets in acts as the account.
    fn gains(ctx: &mut OperationContext<'_>, input: &Input<Self>) -> Result<Vec<String>> {
        Ok(vec![
            store::get(ctx, &input.path.workload_trust_id)?.service_account_id,
        ])
    }

    fn call(ctx: &mut OperationContext<'_>, input: &Input<Self>) -> Result<OneTrust> {
        let (id, body) = (&input.path.workload_trust_id, &input.body);
        ctx.target(&fences::TRUST, id.as_str());
        let before = store::get(ctx, id)?;
        let mut after = apply(&before, body, ctx.now());
        if body.claims.get().is_some() || body.whole_owner.get().is_some() {
            let was_whole = named(before.kind, &before.claims) == Named::Owner;
            let whole = body
                .whole_owner
                .get()
                .copied()
                .unwrap_or(was_whole && body.claims.get().is_none());
            check(after.kind, &after.claims, whole)?;
        }
        check_audience(after.audience.as_deref())?;
        check_keys(after.jwks.as_ref())?;
        if let Some(asked) = body.scopes.get() {
            let account = store::account(ctx, &after.service_account_id)?;
            after.scopes = granted(&account, Some(asked))?;
        }
        if after.gives_beyond(&before) {
            store::held_account(ctx, &after.service_account_id)?;
        }
        note_changes(ctx, &before, &after);
        if ctx.has_changes() {
            after.updated_at = ctx.now().max(before.updated_at.plus_ms(1));
            store::save(ctx, &after)?;
            if is_other(&before, &after) {
                end_sessions(ctx, id)?;
            }
            ctx.emit(&fences::UPDATED, &fences::OfTrust::of(&after));
        }
        Ok(after.into())
    }
}

/// Says whether more than the name changed.
fn is_other(before: &WorkloadTrust, after: &WorkloadTrust) -> bool {
    after.gives_beyond(before) || before.gives_beyond(after)
}

fn apply(before: &WorkloadTrust, body: &UpdateBody, now: Timestamp) -> WorkloadTrust {
    let mut after = before.clone();
    if let Some(name) = body.name.get() {
        name.as_str().clone_into(&mut after.name);
    }
    body.audience
        .apply(&mut after.audience, |text| text.as_str().to_owned());
    if let Some(claims) = body.claims.get() {
        after.claims = ClaimRule::of(claims);
    }
    if let Some(secs) = body.lifetime_seconds.get() {
        after.lifetime_secs = secs.get();
    }
    if let Some(secs) = body.max_token_age_seconds.get() {
        after.max_token_age_secs = secs.get();
    }
    body.jwks.apply(&mut after.jwks, Clone::clone);
    match body.suspended.get() {
        Some(true) => {
            after.suspended_at = before.suspended_at.or(Some(now));
            // Somebody decided: it is no longer a restore that holds it.
            after.suspended_reason = None;
        }
        Some(false) => {
            (after.suspended_at, after.suspended_reason) = (None, None);
            // What was issued while nothing was to be exchanged is not exchanged later.
            if before.suspended_at.is_some() {
                after.tokens_from = before.tokens_from.max(Some(now));
            }
        }
        None => {}
    }
    after
}

fn note_changes(ctx: &mut OperationContext<'_>, before: &WorkloadTrust, after: &WorkloadTrust) {
    ctx.change("/name", before.name.as_str(), after.name.as_str());
    ctx.change("/audience", before.audience.clone(), after.audience.clone());
    ctx.change("/claims", json!(before.claims), json!(after.claims));
    ctx.change(
        "/scopes",
        json!(before.scopes.to_list()),
        json!(after.scopes.to_list()),
    );
    ctx.change("/lifetimeSeconds", before.lifetime_secs, after.lifetime_secs);
    ctx.change(
        "/maxTokenAgeSeconds",
        before.max_token_age_secs,
        after.max_token_age_secs,
    );
    ctx.change("/jwks", json!(before.jwks), json!(after.jwks));
    ctx.change(
        "/suspended",
        before.suspended_at.is_some(),
        after.suspended_at.is_some(),
    );
    ctx.change(
        "/suspendedReason",
        before.suspended_reason.clone(),
        after.suspended_reason.clone(),
    );
}
