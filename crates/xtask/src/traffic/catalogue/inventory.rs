//! What is decided about what devices have.

use serde_json::json;

use super::{Operation, keyed};
use crate::traffic::machine::Machine;

pub const OPERATIONS: &[Operation] = &[keyed("setHeadlessInventoryMcpServerStanding", |maker| {
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
})];
