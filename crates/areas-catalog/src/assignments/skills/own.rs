//! `GET …/devices/{deviceId}/skills`, and below it the signed listing and the archive of one: what a device gets, asked by itself.

use super::store;
use crate::assignments::own::{ITSELF, must_work};
use crate::skill_registry::model::{Item, SkillItemId, VersionSummary, latest};
use crate::skill_registry::store as skills;
use provost_areas_fleet::fleet::{DeviceId, DevicePath};
use provost_kernel::dsse::Envelope;
use provost_kernel::error::Error;
use provost_kernel::operation::{Empty, Input, Meta, NoContent, Operation, RateClass};
use provost_kernel::{OperationContext, Result};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

pub struct ListDeviceSkills;
pub struct GetDeviceSkill;
pub struct GetDeviceSkillContent;

/// The path of a skill of a device.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[schemars(inline)]
pub struct DeviceSkillPath {
    /// The device.
    device_id: DeviceId,
    /// The skill.
    skill_item_id: SkillItemId,
}

/// A skill as the device that gets it sees it.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(rename = "DeviceSkill")]
pub struct DeviceSkill {
    item_id: SkillItemId,
    /// `[namespace/]name`.
    #[serde(rename = "ref")]
    item_ref: String,
    version: String,
    digest: String,
}

/// What a device gets.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(inline)]
pub struct DeviceSkills {
    /// Those that are not withdrawn. What is not here is to be removed.
    skills: Vec<DeviceSkill>,
}

/// A version with its signed listing.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(inline)]
pub struct SignedDeviceSkill {
    skill: DeviceSkill,
    /// The manifest under a signature of a key in `/.well-known/provost-keys.json`.
    envelope: Envelope,
}

/// Returns a skill and its latest version; nothing where it is withdrawn (SK-2).
fn offered(ctx: &mut OperationContext<'_>, id: &SkillItemId) -> Result<Option<(Item, VersionSummary)>> {
    let item = skills::item_by_id(ctx, id)?;
    let Some(item) = item.filter(|item| item.withdrawn_at.is_none()) else {
        return Ok(None);
    };
    let known = skills::known(ctx, &item.id)?;
    Ok(latest(&known).cloned().map(|version| (item, version)))
}

/// Returns a skill that a device gets.
///
/// Keeps DC-1.
///
/// Errors: `NotFound`, for what it does not get, what is withdrawn and what is not there alike.
fn given(ctx: &mut OperationContext<'_>, path: &DeviceSkillPath) -> Result<(Item, VersionSummary)> {
    must_work(ctx, &path.device_id)?;
    let absent = || Error::not_found("skill of this device");
    store::get(ctx, &path.device_id, &path.skill_item_id)?.ok_or_else(absent)?;
    offered(ctx, &path.skill_item_id)?.ok_or_else(absent)
}

fn view(item: &Item, version: &VersionSummary) -> DeviceSkill {
    DeviceSkill {
        item_id: item.id.clone(),
        item_ref: item.full_name(),
        version: version.version.to_string(),
        digest: version.digest.clone(),
    }
}

impl Operation for ListDeviceSkills {
    const META: Meta = Meta::read(
        "listHeadlessDeviceSkills",
        "/devices/{deviceId}/skills",
        "registry",
    )
    .rule(ITSELF)
    .rate(RateClass::Machine)
    .errors(&[401, 403])
    .says(
        "List the skills that a device gets",
        "A device calls this for itself, with its token and a proof of its key. Which they are people say, of this device.",
    );
    type Path = DevicePath;
    type Query = Empty;
    type Body = Empty;
    type Output = DeviceSkills;

    fn call(ctx: &mut OperationContext<'_>, input: &Input<Self>) -> Result<DeviceSkills> {
        let device = &input.path.device_id;
        must_work(ctx, device)?;
        let mut found = Vec::new();
        for given in store::of_device(ctx, device)? {
            if let Some((item, version)) = offered(ctx, &given.item_id)? {
                found.push(view(&item, &version));
            }
        }
        Ok(DeviceSkills { skills: found })
    }
}

impl Operation for GetDeviceSkill {
    const META: Meta = Meta::read(
        "getHeadlessDeviceSkill",
        "/devices/{deviceId}/skills/{skillItemId}",
        "registry",
    )
    .rule(ITSELF)
    .rate(RateClass::Machine)
    .errors(&[401, 403])
    .says(
        "Read the signed listing of a skill that a device gets",
        "A device calls this for itself. The latest version that is not withdrawn.",
    );
    type Path = DeviceSkillPath;
    type Query = Empty;
    type Body = Empty;
    type Output = SignedDeviceSkill;

    fn call(ctx: &mut OperationContext<'_>, input: &Input<Self>) -> Result<SignedDeviceSkill> {
        let (item, version) = given(ctx, &input.path)?;
        let envelope = skills::envelope(ctx, &item.id, &version.version.to_string())?;
        Ok(SignedDeviceSkill {
            skill: view(&item, &version),
            envelope,
        })
    }
}

impl Operation for GetDeviceSkillContent {
    const META: Meta = Meta::read(
        "getHeadlessDeviceSkillContent",
        "/devices/{deviceId}/skills/{skillItemId}/content",
        "registry",
    )
    .rule(ITSELF)
    .rate(RateClass::Machine)
    .errors(&[401, 403])
    .answers(&["ETag"])
    .produces("application/gzip")
    .says(
        "Download the archive of a skill that a device gets",
        "A device calls this for itself. The latest version that is not withdrawn; ETag is the digest of the content.",
    );
    type Path = DeviceSkillPath;
    type Query = Empty;
    type Body = Empty;
    type Output = NoContent;

    fn call(ctx: &mut OperationContext<'_>, input: &Input<Self>) -> Result<NoContent> {
        let (_, version) = given(ctx, &input.path)?;
        let content = skills::content(ctx, &version.digest)?;
        ctx.header("etag", format!("\"{}\"", version.digest));
        ctx.send(content.into());
        Ok(NoContent {})
    }
}
