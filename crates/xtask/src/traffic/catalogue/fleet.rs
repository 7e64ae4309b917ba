//! Enrolment tokens, machines that enrol, and what is done to devices.

use serde_json::json;

use super::{Operation, keyed};
use crate::failure::Outcome;
use crate::traffic::machine::{self, Machine};
use crate::traffic::maker::{Maker, Ready};

const TOKENS: &str = "devices/enrolment-tokens";

pub const OPERATIONS: &[Operation] = &[
    keyed("createHeadlessEnrolmentToken", |maker| {
        Ok(maker
            .call("POST", TOKENS, json!({ "name": maker.unique }))
            .showing(format!("{TOKENS}?limit=100")))
    }),
    keyed("createHeadlessOwnEnrolmentToken", |maker| {
        let people = json!({ "fleet": { "enrolment": { "selfEnrol": "signed_in" } } });
        maker.write("PATCH", "automation/settings", people)?;
        Ok(maker
            .call(
                "POST",
                "devices/own/enrolment-tokens",
                json!({ "name": maker.unique }),
            )
            .showing(format!("{TOKENS}?limit=100")))
    }),
    keyed("retireHeadlessOwnDevice", |maker| {
        let people = json!({ "fleet": { "enrolment": { "selfEnrol": "signed_in" } } });
        maker.write("PATCH", "automation/settings", people)?;
        let machine = Machine::enrol_own(maker)?;
        let path = machine.path();
        let own = path.replace("devices/", "devices/own/");
        Ok(maker.bare("POST", &format!("{own}/retire")).showing(path))
    }),
    keyed("revokeHeadlessEnrolmentToken", |maker| {
        let id = maker.make(TOKENS, json!({ "name": format!("for {}", maker.unique) }))?;
        Ok(maker
            .bare("POST", &format!("{TOKENS}/{id}/revoke"))
            .showing(format!("{TOKENS}?limit=100")))
    }),
    keyed("enrolHeadlessDevice", |maker| {
        Ok(machine::enrolment(maker)?.showing("devices?limit=100"))
    }),
    keyed("updateHeadlessDevice", |maker| {
        let path = active(maker)?;
        let body = json!({ "name": maker.unique, "labels": ["site:berlin"] });
        Ok(maker.call("PATCH", &path, body).showing(path))
    }),
    keyed("approveHeadlessDevice", |maker| {
        let machine = Machine::enrol(maker, true)?;
        machine.call(maker)?;
        Ok(on(maker, &machine.path(), "approve"))
    }),
    keyed("quarantineHeadlessDevice", |maker| {
        let path = active(maker)?;
        Ok(on(maker, &path, "quarantine"))
    }),
    keyed("releaseHeadlessDevice", |maker| {
        let path = active(maker)?;
        maker.write("POST", &format!("{path}/quarantine"), json!({}))?;
        Ok(on(maker, &path, "release"))
    }),
    keyed("beginHeadlessDeviceBypass", |maker| {
        let path = active(maker)?;
        let body = json!({ "minutes": 1 });
        Ok(maker.call("POST", &format!("{path}/bypass"), body).showing(path))
    }),
    keyed("endHeadlessDeviceBypass", |maker| {
        let path = active(maker)?;
        let bypass = format!("{path}/bypass");
        maker.write("POST", &bypass, json!({ "minutes": 1 }))?;
        Ok(maker.bare("DELETE", &bypass).showing(path))
    }),
    keyed("createHeadlessDeviceCommand", |maker| {
        let path = format!("{}/commands", active(maker)?);
        let body = json!({ "kind": "rescan" });
        Ok(maker.call("POST", &path, body).showing(path))
    }),
    keyed("reportHeadlessDeviceCommandResult", |maker| {
        let machine = Machine::enrol(maker, false)?;
        machine.call(maker)?;
        machine.result(maker)
    }),
    keyed("retireHeadlessDevice", |maker| {
        let path = active(maker)?;
        Ok(on(maker, &path, "retire"))
    }),
    keyed("putHeadlessDeviceGatewayIdentity", |maker| {
        let path = format!("{}/gateway-identity", active(maker)?);
        let body = json!({ "serviceAccountId": maker.account()? });
        Ok(maker.call("PUT", &path, body).showing(path))
    }),
    keyed("deleteHeadlessDeviceGatewayIdentity", |maker| {
        let device = active(maker)?;
        let path = format!("{device}/gateway-identity");
        let body = json!({ "serviceAccountId": maker.account()? });
        maker.write("PUT", &path, body)?;
        Ok(maker.bare("DELETE", &path).showing(device))
    }),
    keyed("assignHeadlessDeviceProfile", |maker| {
        let (list, device) = profile_and_device(maker)?;
        Ok(maker
            .call("PUT", &format!("{list}/{device}"), json!({}))
            .showing(list))
    }),
    keyed("unassignHeadlessDeviceProfile", |maker| {
        let (list, device) = profile_and_device(maker)?;
        let path = format!("{list}/{device}");
        maker.write("PUT", &path, json!({}))?;
        Ok(maker.bare("DELETE", &path).showing(list))
    }),
    keyed("assignHeadlessDeviceSkill", |maker| {
        let (list, device) = skill_and_device(maker)?;
        Ok(maker
            .call("PUT", &format!("{list}/{device}"), json!({}))
            .showing(list))
    }),
    keyed("unassignHeadlessDeviceSkill", |maker| {
        let (list, device) = skill_and_device(maker)?;
        let path = format!("{list}/{device}");
        maker.write("PUT", &path, json!({}))?;
        Ok(maker.bare("DELETE", &path).showing(list))
    }),
];

/// The path of the devices of a profile, and the id of a device that called.
fn profile_and_device(maker: &mut Maker<'_>) -> Outcome<(String, String)> {
    let device = active(maker)?;
    let id = device.trim_start_matches("devices/").to_owned();
    let body = json!({ "name": format!("of {}", maker.unique), "target": "codex" });
    let profile = maker.make("managed-config/profiles", body)?;
    Ok((format!("managed-config/profiles/{profile}/devices"), id))
}

/// The path of the devices of a skill, and the id of a device that called.
fn skill_and_device(maker: &mut Maker<'_>) -> Outcome<(String, String)> {
    let device = active(maker)?;
    let id = device.trim_start_matches("devices/").to_owned();
    let item = maker.skill()?;
    Ok((format!("skill-registry/{item}/devices"), id))
}

/// What is done to a device, and the device as it shows it.
fn on(maker: &Maker<'_>, path: &str, verb: &str) -> Ready {
    maker.bare("POST", &format!("{path}/{verb}")).showing(path)
}

/// The path of a device that called.
fn active(maker: &mut Maker<'_>) -> Outcome<String> {
    let machine = Machine::enrol(maker, false)?;
    machine.call(maker)?;
    Ok(machine.path())
}
