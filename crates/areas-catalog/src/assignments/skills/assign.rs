//! `PUT` and `DELETE …/skill-registry/{itemRef}/devices/{deviceId}`, and `GET …/skill-registry/{itemRef}/devices`

use super::store::{self, SkillAssignment};
use crate::managed_config::model::Principal;
use crate::skill_registry::find;
use crate::skill_registry::reference::{ItemPath, ItemRef};
use provost_areas_fleet::fleet::{self, DeviceId, Standing};
use provost_kernel::auth::Role::{Admin, Auditor, Operator};
use provost_kernel::error::{Code, Error};
use provost_kernel::operation::{Empty, Input, Meta, Method, NoContent, Operation};
use provost_kernel::page::{self, Cursor, Limit};
use provost_kernel::{OperationContext, Result};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

pub struct AssignSkill;
pub struct UnassignSkill;
pub struct ListSkillDevices;

const PATH: &str = "/skill-registry/{itemRef}/devices/{deviceId}";

/// The path of operations on a skill and a device.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[schemars(inline)]
pub struct SkillDevicePath {
    /// The skill.
    item_ref: ItemRef,
    /// The device.
    device_id: DeviceId,
}

/// What the device gets.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(inline)]
pub struct OneSkillAssignment {
    assignment: SkillAssignment,
}

impl Operation for AssignSkill {
    const META: Meta = Meta::write("assignHeadlessDeviceSkill", Method::Put, PATH, "registry")
        .access("registry:write", &[Admin])
        .command("skills", "assign")
        .says(
            "Have a device get a skill",
            "The agent of its person installs the latest version that is not withdrawn, and each later one, and removes it when the \
             skill is withdrawn or taken away.",
        );
    type Path = SkillDevicePath;
    type Query = Empty;
    type Body = Empty;
    type Output = OneSkillAssignment;

    fn call(ctx: &mut OperationContext<'_>, input: &Input<Self>) -> Result<OneSkillAssignment> {
        let device_id = &input.path.device_id;
        let (item, reference) = find::item(ctx, &input.path.item_ref)?;
        if reference.version().is_some() {
            let message = "a device gets the latest version; name the skill without one";
            return Err(Error::new(Code::Conflict, message));
        }
        let standing = fleet::standing(ctx, device_id)?;
        if let Some(assignment) = store::get(ctx, device_id, &item.id)? {
            return Ok(OneSkillAssignment { assignment });
        }
        find::installable(ctx, &input.path.item_ref)?;
        if standing == Standing::Ended {
            return Err(Error::new(
                Code::Conflict,
                "the device is retired, or a restore of the store holds it back; it gets nothing",
            ));
        }
        let actor = ctx.actor();
        let assignment = SkillAssignment {
            device_id: device_id.clone(),
            item_id: item.id,
            seq: 0,
            assigned_at: ctx.now(),
            assigned_by: Principal {
                kind: actor.kind.to_owned(),
                id: actor.id.clone(),
            },
        };
        store::insert(ctx, &assignment)?;
        ctx.change("/deviceId", Value::Null, device_id.as_str());
        Ok(OneSkillAssignment { assignment })
    }
}

impl Operation for UnassignSkill {
    const META: Meta = Meta::write("unassignHeadlessDeviceSkill", Method::Delete, PATH, "registry")
        .access("registry:write", &[Admin])
        .command("skills", "unassign")
        .status(204)
        .says(
            "Have a device get a skill no longer",
            "Its agent removes what it installed; files that a person changed or put there stay.",
        );
    type Path = SkillDevicePath;
    type Query = Empty;
    type Body = Empty;
    type Output = NoContent;

    fn call(ctx: &mut OperationContext<'_>, input: &Input<Self>) -> Result<NoContent> {
        let device_id = &input.path.device_id;
        let (item, _) = find::item(ctx, &input.path.item_ref)?;
        fleet::standing(ctx, device_id)?;
        if !store::remove(ctx, device_id, &item.id)? {
            return Err(Error::not_found("device of this skill"));
        }
        ctx.change("/deviceId", device_id.as_str(), Value::Null);
        Ok(NoContent {})
    }
}

/// What can be asked.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[schemars(inline)]
pub struct ListQuery {
    /// How many at most.
    #[serde(default)]
    limit: Limit,
    /// Where an earlier page ended.
    cursor: Option<Cursor>,
}

provost_kernel::page! {
    /// One page.
    pub struct SkillAssignmentPage {
        /// The devices, in the order in which they got the skill.
        devices: SkillAssignment,
    }
}

impl Operation for ListSkillDevices {
    const META: Meta = Meta::read(
        "listHeadlessSkillDevices",
        "/skill-registry/{itemRef}/devices",
        "registry",
    )
    .access("registry:read", &[Admin, Operator, Auditor])
    .command("skills", "devices")
    .columns(&["deviceId as device", "assignedAt as since", "assignedBy.id as by"])
    .says(
        "List the devices that get a skill",
        "What lies on each, the inventory says, by the digest of the skill.",
    );
    type Path = ItemPath;
    type Query = ListQuery;
    type Body = Empty;
    type Output = SkillAssignmentPage;

    fn call(ctx: &mut OperationContext<'_>, input: &Input<Self>) -> Result<SkillAssignmentPage> {
        let query = &input.query;
        let (item, _) = find::item(ctx, &input.path.item_ref)?;
        // A cursor of another skill would be a place in another list.
        let list = format!("{} {}", Self::META.id, item.id);
        let after = page::start(ctx, &list, query.cursor.as_ref(), 0)?;
        let mut devices = store::of_item(ctx, &item.id, after, query.limit.get() + 1)?;
        let next_cursor = page::end(ctx, &list, query.limit, &mut devices, |last| last.seq);
        Ok(SkillAssignmentPage { devices, next_cursor })
    }
}
