//! The registry of skills.

use serde_json::{Value, json};

use super::{Operation, keyed};
use crate::failure::{Context, Outcome};
use crate::faults::maker::Maker;

pub const OPERATIONS: &[Operation] = &[
    keyed("publishHeadlessSkillRegistryItem", |maker| {
        Ok(maker.content(
            "skill-registry",
            "application/gzip",
            (maker.archive)(maker.unique)?,
        ))
    }),
    keyed("withdrawHeadlessSkillRegistryItem", |maker| {
        let item = maker.skill()?;
        Ok(maker.bare("POST", &format!("skill-registry/{item}/withdraw")))
    }),
    keyed("installHeadlessSkillRegistryItem", |maker| {
        let item = maker.skill()?;
        let body =
            json!({ "client": "claude-code", "clientVersion": "2.1", "device": "laptop", "path": "/a" });
        Ok(maker.call("POST", &format!("skill-registry/{item}/cli-install"), body))
    }),
    keyed("uninstallHeadlessSkillRegistryItem", |maker| {
        let (item, _) = installed(maker)?;
        Ok(maker.bare("POST", &format!("skill-registry/{item}/cli-uninstall")))
    }),
    keyed("reportHeadlessSkillInstallRemoved", |maker| {
        let (item, _) = installed(maker)?;
        let request = maker.mutation("POST", &format!("skill-registry/{item}/cli-uninstall"));
        let gone = maker.send(&request)?;
        let install = gone.pointer("/installs/0/installId").and_then(Value::as_str);
        let install = install.context("an uninstall without an install")?;
        Ok(maker.bare("POST", &format!("skill-installs/{install}/removed")))
    }),
];

fn installed(maker: &mut Maker<'_>) -> Outcome<(String, Value)> {
    let item = maker.skill()?;
    let body = json!({ "client": "claude-code", "device": "laptop", "path": "/a" });
    let answer = maker.write("POST", &format!("skill-registry/{item}/cli-install"), body)?;
    Ok((item, answer))
}
