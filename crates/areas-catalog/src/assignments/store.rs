//! Every statement of the area.

use crate::managed_config::machines;
use crate::managed_config::model::{Principal, ProfileId};
use provost_areas_fleet::fleet::DeviceId;
use provost_kernel::db::Row;
use provost_kernel::{OperationContext, Result, Timestamp, params, statements};
use schemars::JsonSchema;
use serde::Serialize;

statements! {
    /// One profile of a device.
    GET = "SELECT device_id, profile_id, seq, in_clear, created_at, created_by_type, created_by_id FROM device_profiles WHERE organization_id = ?1 AND device_id = ?2 AND profile_id = ?3";
    /// The profiles of a device.
    OF_DEVICE = "SELECT device_id, profile_id, seq, in_clear, created_at, created_by_type, created_by_id FROM device_profiles WHERE organization_id = ?1 AND device_id = ?2 ORDER BY profile_id";
    /// One page of the devices of a profile, in the order in which they got it.
    OF_PROFILE = "SELECT device_id, profile_id, seq, in_clear, created_at, created_by_type, created_by_id FROM device_profiles WHERE organization_id = ?1 AND profile_id = ?2 AND seq > ?3 ORDER BY seq, device_id LIMIT ?4";
    /// Gives a device a profile.
    INSERT = "INSERT INTO device_profiles (organization_id, device_id, profile_id, seq, in_clear, created_at, created_by_type, created_by_id) SELECT ?1, ?2, ?3, COALESCE(MAX(seq), 0) + 1, ?4, ?5, ?6, ?7 FROM device_profiles WHERE organization_id = ?1 AND profile_id = ?3";
    /// Keeps that somebody who may fetch values in the clear gave it.
    CLEAR = "UPDATE device_profiles SET in_clear = ?4 WHERE organization_id = ?1 AND device_id = ?2 AND profile_id = ?3";
    /// Takes a profile away from a device.
    REMOVE = "DELETE FROM device_profiles WHERE organization_id = ?1 AND device_id = ?2 AND profile_id = ?3";
}

/// That a device gets a profile.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(rename = "DeviceProfileAssignment")]
pub struct Assignment {
    /// The device.
    pub device_id: DeviceId,
    /// The profile.
    pub profile_id: ProfileId,
    /// Its place in the list of the profile.
    #[serde(skip)]
    pub seq: i64,
    /// Whether releases with hidden values are delivered: whoever gave the device the profile held `managed_config:pull`.
    pub in_clear: bool,
    /// Since when.
    pub assigned_at: Timestamp,
    /// Who did it.
    pub assigned_by: Principal,
}

fn assignment(row: &Row<'_>) -> Result<Assignment> {
    Ok(Assignment {
        device_id: DeviceId::from_store(row.get(0)?),
        profile_id: ProfileId::from_store(row.get(1)?),
        seq: row.get(2)?,
        in_clear: row.get(3)?,
        assigned_at: row.get(4)?,
        assigned_by: Principal {
            kind: row.get(5)?,
            id: row.get(6)?,
        },
    })
}

/// Returns whether a device gets a profile, and by whose word.
pub fn get(
    ctx: &mut OperationContext<'_>,
    device: &DeviceId,
    profile: &ProfileId,
) -> Result<Option<Assignment>> {
    let org = ctx.org();
    ctx.query_opt(&GET, params![org, device.as_str(), profile.as_str()], assignment)
}

/// Returns what a device gets: at most one profile for each program (DC-3).
pub fn of_device(ctx: &mut OperationContext<'_>, device: &DeviceId) -> Result<Vec<Assignment>> {
    let org = ctx.org();
    ctx.query(&OF_DEVICE, params![org, device.as_str()], assignment)
}

/// Returns the devices of a profile behind a place.
pub fn of_profile(
    ctx: &mut OperationContext<'_>,
    profile: &ProfileId,
    after: i64,
    limit: i64,
) -> Result<Vec<Assignment>> {
    let org = ctx.org();
    ctx.query(
        &OF_PROFILE,
        params![org, profile.as_str(), after, limit],
        assignment,
    )
}

/// Gives a device a profile. The organization's chain head is locked, so nobody else does.
pub fn insert(ctx: &mut OperationContext<'_>, given: &Assignment) -> Result<()> {
    let org = ctx.org();
    ctx.queue(
        &INSERT,
        params![
            org,
            given.device_id.as_str(),
            given.profile_id.as_str(),
            given.in_clear,
            given.assigned_at,
            given.assigned_by.kind.as_str(),
            given.assigned_by.id.as_str(),
        ],
    )
}

/// Keeps that somebody who may fetch values in the clear gave it.
pub fn clear(ctx: &mut OperationContext<'_>, device: &DeviceId, profile: &ProfileId) -> Result<()> {
    let org = ctx.org();
    ctx.queue(&CLEAR, params![org, device.as_str(), profile.as_str(), true])
}

/// Takes a profile away from a device, with what the device reported of it; says whether it had it.
pub fn remove(ctx: &mut OperationContext<'_>, device: &DeviceId, profile: &ProfileId) -> Result<bool> {
    let org = ctx.org();
    let removed = ctx.execute(&REMOVE, params![org, device.as_str(), profile.as_str()])? == 1;
    machines::remove(ctx, profile, device.as_str())?;
    Ok(removed)
}
