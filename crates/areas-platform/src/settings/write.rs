//! What both ways to change the settings have in common.
//!
//! Keeps SE-3, SE-4, SE-6, SE-7, SE-8, SE-9, SE-10.

use super::ActsOfTwoChanged;
use super::fleet::QuarantineAction;
use super::model::{AutomationSettings, PendingRetention, Settings};
use super::store::{self, StoredSettings};
use crate::settings::fences;
use provost_kernel::auth::{Permission, may_mint};
use provost_kernel::error::{Code, Error};
use provost_kernel::{OperationContext, Result, Timestamp};
use serde_json::{Value, json};

/// The settings before a change.
pub(super) struct Before {
    settings: Settings,
    /// When they were last set; absent in the factory state.
    updated_at: Option<Timestamp>,
}

impl Before {
    pub(super) fn settings(&self) -> &Settings {
        &self.settings
    }
}

/// Names the settings in the audit entry and returns them.
pub(super) fn before(ctx: &mut OperationContext<'_>) -> Result<Before> {
    let org = ctx.org();
    ctx.target(&fences::SETTINGS, org);
    let (stored, now) = (store::get(&mut ctx.tx(), org)?, ctx.now());
    Ok(match stored {
        Some(stored) => Before {
            settings: stored.settings.at(now),
            updated_at: Some(stored.updated_at),
        },
        None => Before {
            settings: Settings::default(),
            updated_at: None,
        },
    })
}

/// Refuses who would give everybody a role that they could not give to one.
///
/// Keeps SE-6.
///
/// Errors: `EscalationForbidden`.
fn may_give(ctx: &OperationContext<'_>, old: &Settings, after: &Settings) -> Result<()> {
    match after.directory.default_role.role() {
        Some(role) if old.directory.default_role != after.directory.default_role => {
            may_mint(ctx.actor().permission, Permission::effective(role, None, None))
        }
        _ => Ok(()),
    }
}

/// Refuses what guards less than before, or is gone for good, with all of it: what one confirms, one has read.
///
/// Errors: `ConfirmationRequired`.
fn must_guard_as_much(old: &Settings, new: &Settings) -> Result<()> {
    let mut asked: Vec<String> = Vec::new();
    if new.retention_shortening.is_some() && new.retention_shortening != old.retention_shortening {
        asked.push(format!(
            "events that are older than {} days will be gone for good, {} days from now",
            new.retention.history_days,
            super::model::SHORTENING_SECS / 86_400
        ));
    }
    if new.fleet.retires_sooner_than(&old.fleet) {
        asked.push(format!(
            "devices that were not heard of for {} days will be retired for good, within minutes",
            new.fleet.retire_after_days
        ));
    }
    if old.fleet.enrolment.require_approval && !new.fleet.enrolment.require_approval {
        asked.push(
            "devices that enrol by a token that asks for no approval would work without an admin's word"
                .into(),
        );
    }
    if old.fleet.quarantine_action == QuarantineAction::Block
        && new.fleet.quarantine_action == QuarantineAction::Monitor
    {
        asked.push(
            "devices that are quarantined would let pass what policies let pass, on each as soon as it hears of it".into(),
        );
    }
    let weaker = new.fleet.hooks.weaker_than(&old.fleet.hooks);
    asked.extend(weaker.into_iter().map(str::to_owned));
    if asked.is_empty() {
        return Ok(());
    }
    let message = format!("{}; say confirm: true", asked.join("; "));
    Err(Error::new(Code::ConfirmationRequired, message))
}

/// Stores what the settings become (SE-3, SE-4).
///
/// Errors: `EscalationForbidden`; `ConfirmationRequired` for what nobody confirmed; `InvalidDefinition` for pseudonyms beside names of
/// machines or of projects.
pub(super) fn change(
    ctx: &mut OperationContext<'_>,
    before: Before,
    mut after: Settings,
    is_confirmed: bool,
) -> Result<AutomationSettings> {
    let now = ctx.now();
    let old = before.settings;
    may_give(ctx, &old, &after)?;
    after.retention_shortening = old.shortened_to(&after, now);
    if !is_confirmed {
        must_guard_as_much(&old, &after)?;
    }
    after.fleet.privacy.admit(old.fleet.privacy, is_confirmed)?;
    // Time moves on with every change, even when the clock does not (D1.2).
    let updated_at = before.updated_at.map_or(now, |at| now.max(at.plus_ms(1)));
    let after = StoredSettings {
        settings: after,
        updated_at,
    };
    store::put(ctx, &after)?;
    if old.approvals != after.settings.approvals && !after.settings.approvals.require_for.is_empty() {
        ctx.announce(&ActsOfTwoChanged)?;
    }
    for ((path, old), (_, new)) in old.members().into_iter().zip(after.settings.members()) {
        ctx.change(path, old, new);
    }
    let shown =
        |waiting: &Option<PendingRetention>| waiting.as_ref().map_or(Value::Null, |waiting| json!(waiting));
    ctx.change(
        "/retentionShortening",
        shown(&old.retention_shortening),
        shown(&after.settings.retention_shortening),
    );
    Ok(AutomationSettings {
        settings: after.settings,
        updated_at: Some(updated_at),
    })
}
