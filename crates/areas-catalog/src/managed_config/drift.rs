//! Tells of machines that hold something else than they should, and forgets those that are gone (D8.12).
//!
//! Keeps MC-8.

use super::model::TargetState;
use super::{machines, pulls, store};
use crate::managed_config::fences;
use provost_kernel::auth::OrganizationId;
use provost_kernel::{Kernel, Result};
use std::sync::Arc;

/// After so long without a report a machine is no longer counted. Units: seconds.
const FORGOTTEN_AFTER_SECS: i64 = 90 * 86_400;

/// Emits `managed_config.target.drifted` for every machine that drifted, once until it heals (MC-8), and returns
/// how many these were. A reconciler: harmless when it runs twice, or on two servers.
pub async fn watch_targets(kernel: &Arc<Kernel>) -> Result<usize> {
    let now = kernel.clock.now();
    let mut count = 0;
    for place in kernel.read_system(move |tx| machines::drifted(tx, now)).await? {
        let organization = place.organization.clone();
        let tell = move |ctx: &mut provost_kernel::OperationContext<'_>| {
            let found = store::get(ctx, &place.profile)?;
            let machine = machines::get(ctx, &place.profile, &place.target_id)?;
            let drifted = machine.filter(|machine| {
                machine.state(&found.profile, found.current.as_ref(), ctx.now()) == TargetState::Drifted
            });
            // Named only here: another server may have told, or the machine may have healed since.
            let Some(machine) = drifted else { return Ok(()) };
            if machines::tell(ctx, &place.profile, &place.target_id)? {
                ctx.action("managed_config.target.drifted");
                ctx.target(&fences::PROFILE, place.profile.as_str());
                let data = fences::DriftedTarget {
                    profile_id: place.profile.clone(),
                    target_id: machine.target_id,
                    release_id: machine.release_id,
                    content_digest: machine.content_digest.keyed(ctx),
                    expected_digest: found.current.map(|current| current.content_digest.keyed(ctx)),
                };
                ctx.emit(&fences::TARGET_DRIFTED, &data);
            }
            Ok(())
        };
        kernel.system(organization, None, tell).await?;
        count += 1;
    }
    let Some(now) = kernel.undoubted().await? else {
        return Ok(count);
    };
    let forget = move |ctx: &mut provost_kernel::OperationContext<'_>| {
        machines::forget(ctx, now.earlier_by(FORGOTTEN_AFTER_SECS))?;
        pulls::forget(ctx, now)
    };
    kernel.prune(&OrganizationId::installation(), forget).await?;
    Ok(count)
}
