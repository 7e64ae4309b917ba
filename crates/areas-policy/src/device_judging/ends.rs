//! What goes with a device that is retired, and with a person who is deleted.
//!
//! Keeps DJ-9. What a device told stands in the history, to the end of its retention.

use super::store;
use provost_areas_fleet::fleet::{
    DeviceId, DeviceRetired, Kept, KeptFrom, KeptKind, ToldBy, ToldOfDevice, WhatIsKept,
};
use provost_areas_platform::announcements::{Departure, PrincipalEnded, SubjectKind};
use provost_areas_platform::settings;
use provost_kernel::{OperationContext, Result};

/// Forgets what a device counted that is retired, and how far it told: it tells nothing any more. That it told is known for as long as
/// somebody's past could hold it, which leaves it out.
pub fn device_retired(ctx: &mut OperationContext<'_>, retired: &DeviceRetired) -> Result<()> {
    store::forget_device(ctx, &retired.id)
}

/// Forgets what was counted of a person who is deleted.
pub fn principal_ended(ctx: &mut OperationContext<'_>, ended: &PrincipalEnded) -> Result<()> {
    if ended.kind != SubjectKind::User || ended.how != Departure::Deleted {
        return Ok(());
    }
    store::forget_user(ctx, &ended.id)
}

/// Returns for how long what devices told is kept: events as long as the history, counts for a month.
pub fn kept(ctx: &mut OperationContext<'_>, _: &WhatIsKept) -> Result<Vec<Kept>> {
    let now = ctx.latest();
    let decisions = Kept {
        kind: KeptKind::Decisions,
        days: Some(settings::load(ctx)?.acting_history_days(now)),
        from: Some(KeptFrom::Happened),
    };
    let counts = Kept::for_secs(KeptKind::DecisionCounts, store::KEPT_SECS, KeptFrom::Happened);
    Ok(vec![decisions, counts])
}

/// Returns how much devices told; nothing of those that told nothing.
pub fn told(ctx: &mut OperationContext<'_>, asked: &ToldBy) -> Result<Vec<(DeviceId, ToldOfDevice)>> {
    let mut told = Vec::new();
    for device in &asked.devices {
        if let Some(chain) = store::chain(ctx, device)? {
            let of_device = ToldOfDevice {
                events: chain.sums.events,
                passed: chain.sums.passed,
                taken_at: chain.taken_at,
            };
            told.push((device.clone(), of_device));
        }
    }
    Ok(told)
}
