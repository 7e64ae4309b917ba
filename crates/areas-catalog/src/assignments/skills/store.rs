//! Every statement about the skills of devices.

use crate::managed_config::model::Principal;
use crate::skill_registry::model::SkillItemId;
use provost_areas_fleet::fleet::DeviceId;
use provost_kernel::db::Row;
use provost_kernel::error::{Code, Error};
use provost_kernel::{OperationContext, Result, Timestamp, params, statements};
use schemars::JsonSchema;
use serde::Serialize;

statements! {
    /// One skill of a device.
    GET = "SELECT device_id, item_id, seq, created_at, created_by_type, created_by_id FROM device_skills WHERE organization_id = ?1 AND device_id = ?2 AND item_id = ?3";
    /// The skills of a device.
    OF_DEVICE = "SELECT device_id, item_id, seq, created_at, created_by_type, created_by_id FROM device_skills WHERE organization_id = ?1 AND device_id = ?2 ORDER BY item_id";
    /// One page of the devices of a skill, in the order in which they got it.
    OF_ITEM = "SELECT device_id, item_id, seq, created_at, created_by_type, created_by_id FROM device_skills WHERE organization_id = ?1 AND item_id = ?2 AND seq > ?3 ORDER BY seq, device_id LIMIT ?4";
    /// Gives a device a skill.
    INSERT = "INSERT INTO device_skills (organization_id, device_id, item_id, seq, created_at, created_by_type, created_by_id) SELECT ?1, ?2, ?3, COALESCE(MAX(seq), 0) + 1, ?4, ?5, ?6 FROM device_skills WHERE organization_id = ?1 AND item_id = ?3";
    /// Takes a skill away from a device.
    REMOVE = "DELETE FROM device_skills WHERE organization_id = ?1 AND device_id = ?2 AND item_id = ?3";
    /// Takes every skill away from a device.
    REMOVE_ALL = "DELETE FROM device_skills WHERE organization_id = ?1 AND device_id = ?2";
}

/// LIMIT: skills of a device. Ours: a client reads the first lines of each at every start.
const MOST: usize = 200;

/// That a device gets a skill.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(rename = "DeviceSkillAssignment")]
pub struct SkillAssignment {
    /// The device.
    pub device_id: DeviceId,
    /// The skill.
    pub item_id: SkillItemId,
    /// Its place in the list of the skill.
    #[serde(skip)]
    pub seq: i64,
    /// Since when.
    pub assigned_at: Timestamp,
    /// Who did it.
    pub assigned_by: Principal,
}

fn assignment(row: &Row<'_>) -> Result<SkillAssignment> {
    Ok(SkillAssignment {
        device_id: DeviceId::from_store(row.get(0)?),
        item_id: SkillItemId::from_store(row.get(1)?),
        seq: row.get(2)?,
        assigned_at: row.get(3)?,
        assigned_by: Principal {
            kind: row.get(4)?,
            id: row.get(5)?,
        },
    })
}

/// Returns whether a device gets a skill, and by whose word.
pub fn get(
    ctx: &mut OperationContext<'_>,
    device: &DeviceId,
    item: &SkillItemId,
) -> Result<Option<SkillAssignment>> {
    let org = ctx.org();
    ctx.query_opt(&GET, params![org, device.as_str(), item.as_str()], assignment)
}

/// Returns the skills that a device gets.
pub fn of_device(ctx: &mut OperationContext<'_>, device: &DeviceId) -> Result<Vec<SkillAssignment>> {
    let org = ctx.org();
    ctx.query(&OF_DEVICE, params![org, device.as_str()], assignment)
}

/// Returns the devices of a skill behind a place.
pub fn of_item(
    ctx: &mut OperationContext<'_>,
    item: &SkillItemId,
    after: i64,
    limit: i64,
) -> Result<Vec<SkillAssignment>> {
    let org = ctx.org();
    ctx.query(&OF_ITEM, params![org, item.as_str(), after, limit], assignment)
}

/// Gives a device a skill. The organization's chain head is locked, so nobody else does.
///
/// Errors: `Conflict` when it has too many.
pub fn insert(ctx: &mut OperationContext<'_>, given: &SkillAssignment) -> Result<()> {
    if of_device(ctx, &given.device_id)?.len() >= MOST {
        let message = format!("the device has {MOST} skills already; take one away first");
        return Err(Error::new(Code::Conflict, message));
    }
    let org = ctx.org();
    ctx.queue(
        &INSERT,
        params![
            org,
            given.device_id.as_str(),
            given.item_id.as_str(),
            given.assigned_at,
            given.assigned_by.kind.as_str(),
            given.assigned_by.id.as_str(),
        ],
    )
}

/// Takes a skill away from a device; says whether it had it.
pub fn remove(ctx: &mut OperationContext<'_>, device: &DeviceId, item: &SkillItemId) -> Result<bool> {
    let org = ctx.org();
    Ok(ctx.execute(&REMOVE, params![org, device.as_str(), item.as_str()])? == 1)
}

/// Takes every skill away from a device.
pub fn remove_all(ctx: &mut OperationContext<'_>, device: &DeviceId) -> Result<()> {
    let org = ctx.org();
    ctx.queue(&REMOVE_ALL, params![org, device.as_str()])
}
