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
