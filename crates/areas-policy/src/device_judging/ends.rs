//! What goes with a device that is retired, and with a person who is deleted.
//!
//! Keeps DJ-9. What a device told stands in the history, to the end of its retention.

use super::store;
use provost_areas_fleet::fleet::DeviceRetired;
use provost_areas_platform::announcements::{Departure, PrincipalEnded, SubjectKind};
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
