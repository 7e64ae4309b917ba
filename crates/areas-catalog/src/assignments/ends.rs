//! What takes profiles and skills away from devices, and how they are taken away again (EN-3).

use super::{skills, store};
use crate::managed_config::fences;
use crate::managed_config::model::ProfileId;
use crate::skill_registry::fences::SKILL;
use crate::skill_registry::model::SkillItemId;
use provost_areas_fleet::fleet::DeviceId;
use provost_areas_platform::ends::unclear;
use provost_kernel::area::{Again, RepeatedRevocation, Right};
use provost_kernel::db::Tx;
use provost_kernel::ends::{Revocation, RowChange};
use provost_kernel::{OperationContext, Result, Timestamp};
use serde_json::Value;

const DEVICE_PROFILE: &str = "device_profile";
const DEVICE_SKILL: &str = "device_skill";

/// The tables that decide what somebody may do.
pub const RIGHTS: &[Right] = &[
    Right::ending("device_profiles", unassigned),
    Right::ending("device_skills", skill_unassigned),
];

/// The ways back.
pub const RETAKINGS: &[RepeatedRevocation] = &[
    RepeatedRevocation {
        what: DEVICE_PROFILE,
        again: unassigned_again,
    },
    RepeatedRevocation {
        what: DEVICE_SKILL,
        again: skill_unassigned_again,
    },
];

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

fn skill_unassigned(_: &mut Tx<'_>, change: &RowChange, _: Timestamp) -> Result<Vec<Revocation>> {
    match (&change.was, &change.is) {
        (Some(was), None) => Ok(vec![Revocation {
            what: DEVICE_SKILL,
            how: "unassigned",
            ids: was.ids(&["device_id", "item_id"])?,
        }]),
        _ => Ok(Vec::new()),
    }
}

fn skill_unassigned_again(ctx: &mut OperationContext<'_>, _: &str, ids: &[String]) -> Result<Again> {
    let [device, item] = ids else {
        return Ok(unclear());
    };
    let (device, item) = (
        DeviceId::from_store(device.clone()),
        SkillItemId::from_store(item.clone()),
    );
    ctx.target(&SKILL, item.as_str());
    if !skills::store::remove(ctx, &device, &item)? {
        return Ok(Again::Already);
    }
    ctx.change("/deviceId", device.as_str(), Value::Null);
    Ok(Again::Done("unassigned"))
}
