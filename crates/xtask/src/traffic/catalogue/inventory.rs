//! What is decided about what devices have, and what is erased of them.

use serde_json::json;

use super::{Operation, keyed};
use crate::traffic::machine::Machine;

pub const OPERATIONS: &[Operation] = &[
    keyed("setHeadlessInventoryMcpServerStanding", |maker| {
        let machine = Machine::enrol(maker, false)?;
        machine.call(maker)?;
        let path = machine.report(maker)?;
        Ok(maker
            .call(
                "POST",
                &format!("{path}/standing"),
                json!({ "standing": "denied" }),
            )
            .showing(path))
    }),
    keyed("importHeadlessInventoryScan", |maker| {
        let key = format!("npm:@acme/{}", maker.unique.to_lowercase());
        let body = json!({ "source": "other", "servers": [{ "key": key, "name": "files" }] });
        let listed = format!("inventory/mcp-servers?query={}", maker.unique);
        Ok(maker.call("POST", "inventory/imports", body).showing(listed))
    }),
    keyed("eraseHeadlessDeviceInventory", |maker| {
        let machine = Machine::enrol(maker, false)?;
        machine.call(maker)?;
        let server = machine.report(maker)?;
        maker.write(
            "POST",
            &format!("{}/retire", machine.path()),
            json!({ "confirm": true }),
        )?;
        Ok(maker
            .bare("DELETE", &format!("{}/inventory", machine.path()))
            .showing(format!("{server}/instances")))
    }),
];
