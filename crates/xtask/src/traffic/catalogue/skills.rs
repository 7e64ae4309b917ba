//! The registry of skills.

use serde_json::{Value, json};

use super::{Operation, keyed};
use crate::failure::{Context, Outcome};
use crate::traffic::maker::Maker;

pub const OPERATIONS: &[Operation] = &[
    keyed("publishHeadlessSkillRegistryItem", |maker| {
        Ok(maker.content(
            "skill-registry",
            "application/gzip",
            (maker.archive)(maker.unique, 0)?,
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

/// The commit with which SQLite's log becomes long, so that it is copied into the file.
///
/// The log is long from 4 000 pages on, and a commit of this size has at least 250.
pub const CHECKPOINT: Operation = keyed("checkpoint", |maker| {
    const ALMOST: u64 = 3_760 * 4_120;
    const BYTES: usize = 2 << 20;
    let mut number = 0;
    while (maker.log_bytes)() < ALMOST {
        number += 1;
        maker.skill_named(&format!("for-{}-{number}", maker.unique), BYTES / 4)?;
    }
    let content = (maker.archive)(maker.unique, BYTES)?;
    Ok(maker.content("skill-registry", "application/gzip", content))
});

fn installed(maker: &mut Maker<'_>) -> Outcome<(String, Value)> {
    let item = maker.skill()?;
    let body = json!({ "client": "claude-code", "device": "laptop", "path": "/a" });
    let answer = maker.write("POST", &format!("skill-registry/{item}/cli-install"), body)?;
    Ok((item, answer))
}
