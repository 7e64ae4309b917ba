//! What other areas ask of a device.

use super::model::{DeviceId, Status};
use super::store;
use provost_kernel::{OperationContext, Result};

/// Whether a device may say something.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Standing {
    /// It was not heard of yet, or an admin has yet to approve it.
    Waits,
    /// It is active, or quarantined: what it says is kept and trusted no more than before.
    Works,
    /// It is retired, or a restore holds it back.
    Ended,
}

/// Returns whether a device may say something.
///
/// Errors: `NotFound` for an unknown and another organization's device alike.
pub fn standing(ctx: &mut OperationContext<'_>, id: &DeviceId) -> Result<Standing> {
    let device = store::get(ctx, id)?;
    Ok(match device.status {
        _ if device.held_at.is_some() => Standing::Ended,
        Status::Retired => Standing::Ended,
        Status::Pending => Standing::Waits,
        Status::Active | Status::Quarantined => Standing::Works,
    })
}

/// Says whether a device is quarantined.
///
/// Errors: `NotFound` for an unknown and another organization's device alike.
pub fn is_quarantined(ctx: &mut OperationContext<'_>, id: &DeviceId) -> Result<bool> {
    Ok(store::get(ctx, id)?.status == Status::Quarantined)
}
