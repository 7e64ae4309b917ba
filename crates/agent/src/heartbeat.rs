//! A machine says that it is there.

use crate::caller::Caller;
use crate::commands::{self, Command};
use crate::quarantine::QuarantineWord;
use crate::trouble::Trouble;
use crate::{Agent, State, counter, machine, sent};
use serde_json::{Value, json};
use std::time::Duration;

/// How often a machine calls where the server does not say it.
const INTERVAL: Duration = Duration::from_mins(5);

/// What a heartbeat was answered.
pub(crate) struct Beat {
    /// When the next one is wanted.
    pub next: Duration,
    /// What the server asks for.
    pub commands: Vec<Command>,
    /// Whether the machine is held apart.
    pub quarantine: QuarantineWord,
}

/// Sends a heartbeat, and returns what it was answered.
///
/// Errors: refused, gone, unreachable.
pub(crate) async fn beat(agent: &Agent, caller: &Caller<'_>, state: &mut State) -> Result<Beat, Trouble> {
    let (body, answer) = send(agent, caller).await?;
    let next = answer.get("nextHeartbeatSeconds").and_then(Value::as_u64);
    let next = next.map_or(INTERVAL, Duration::from_secs);
    state.last_heartbeat_at = Some(caller.clock.now());
    state.next_heartbeat_seconds = Some(next.as_secs());
    state.hear_privacy(&answer, caller.clock.now());
    // What `explain` shows of it is worth no failure.
    let _ = sent::keep_heartbeat(&agent.folder, body.as_bytes());
    Ok(Beat {
        next,
        commands: commands::told(&answer),
        quarantine: QuarantineWord::heard(&answer),
    })
}

/// Sends a heartbeat, and returns what was sent and what was answered. Whoever calls has the lock of the folder.
///
/// Errors: refused, gone, unreachable, folder, disk.
pub(crate) async fn send(agent: &Agent, caller: &Caller<'_>) -> Result<(String, Value), Trouble> {
    let below = format!("devices/{}/heartbeat", agent.device.device_id);
    let said = json!({
        "agentVersion": env!("CARGO_PKG_VERSION"), "osVersion": machine::os_version(),
        "counter": counter::call(agent, caller.now())?, "bootId": machine::boot_id(),
    });
    let body = said.to_string();
    let (_, answer) = caller.post(&below, body.as_bytes()).await?;
    Ok((body, answer))
}
