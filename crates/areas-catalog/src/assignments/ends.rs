//! What takes profiles away from devices, and how they are taken away again (EN-3).

use super::store;
use crate::managed_config::fences;
use crate::managed_config::model::ProfileId;
use provost_areas_fleet::fleet::DeviceId;
use provost_areas_platform::ends::unclear;
use provost_kernel::area::{Again, RepeatedRevocation, Right};
use provost_kernel::db::Tx;
use provost_kernel::ends::{Revocation, RowChange};
use provost_kernel::{OperationContext, Result, Timestamp};
use serde_json::Value;

const DEVICE_PROFILE: &str = "device_profile";

/// The tables that decide what somebody may do.
pub const RIGHTS: &[Right] = &[Right::ending("device_profiles", unassigned)];

/// The ways back.
pub const RETAKINGS: &[RepeatedRevocation] = &[RepeatedRevocation {
    what: DEVICE_PROFILE,
    again: unassigned_again,
}];

/// A row never loses a word: what takes away is its removal alone.
fn unassigned(_: &mut Tx<'_>, change: &RowChange, _: Timestamp) -> Result<Vec<Revocation>> {
    match (&change.was, &change.is) {
        (Some(was), None) => Ok(vec![Revocation {
            what: DEVICE_PROFILE,
            how: "unassigned",
            ids: was.ids(&["device_id", "profile_id"])?,
        }]),
        _ => Ok(Vec::new()),
    }
}

fn unassigned_again(ctx: &mut OperationContext<'_>, _: &str, ids: &[String]) -> Result<Again> {
    let [device, profile] = ids else {
        return Ok(unclear());
    };
    let (device, profile) = (
        DeviceId::from_store(device.clone()),
        ProfileId::from_store(profile.clone()),
    );
    ctx.target(&fences::PROFILE, profile.as_str());
    if !store::remove(ctx, &device, &profile)? {
        return Ok(Again::Already);
    }
    ctx.change("/deviceId", device.as_str(), Value::Null);
    Ok(Again::Done("unassigned"))
}
