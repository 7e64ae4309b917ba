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

/// What other areas are told of a device.
#[derive(Clone, Debug)]
pub struct Described {
    /// What people call it.
    pub name: String,
    /// Whether it is quarantined.
    pub is_quarantined: bool,
}

/// Returns what other areas are told of a device.
///
/// Errors: `NotFound` for an unknown and another organization's device alike.
pub fn described(ctx: &mut OperationContext<'_>, id: &DeviceId) -> Result<Described> {
    let device = store::get(ctx, id)?;
    Ok(Described {
        name: device.name,
        is_quarantined: device.status == Status::Quarantined,
    })
}
