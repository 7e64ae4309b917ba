//! All SQL of commands to devices.

use super::command::{Command, CommandId, CommandKind, CommandState, MOST_KEPT};
use super::model::DeviceId;
use provost_kernel::db::Row;
use provost_kernel::error::{Error, Result};
use provost_kernel::{OperationContext, params, statements};

/// The columns of a command, in the order that [`command`] expects.
macro_rules! commands {
    () => {
        "SELECT id, device_id, seq, kind, state, created_by, created_at, expires_at, delivered_at, finished_at, code, \
         key_thumbprint \
         FROM device_commands "
    };
}

statements! {
    /// One command to a device.
    GET = concat!(commands!(), "WHERE organization_id = ?1 AND device_id = ?2 AND id = ?3");
    /// A page of the commands to a device, the newest first.
    LIST = concat!(commands!(), "WHERE organization_id = ?1 AND device_id = ?2 AND seq < ?3 ORDER BY seq DESC, id LIMIT ?4");
    /// The commands that wait for a device, the oldest first.
    WAITING = concat!(commands!(), "WHERE organization_id = ?1 AND device_id = ?2 AND state IN ('queued', 'delivered') AND expires_at > ?3 ORDER BY seq, id");
    /// Gives a command.
    INSERT = "INSERT INTO device_commands (organization_id, id, device_id, seq, kind, state, created_by, created_at, expires_at, key_thumbprint) VALUES (?1, ?2, ?3, (SELECT COALESCE(MAX(seq), 0) + 1 FROM device_commands WHERE organization_id = ?1 AND device_id = ?3), ?4, ?5, ?6, ?7, ?8, ?9)";
    /// Forgets all but the newest commands of a device; those that wait stay.
    FORGET = "DELETE FROM device_commands WHERE organization_id = ?1 AND device_id = ?2 AND seq <= (SELECT COALESCE(MAX(seq), 0) - ?3 FROM device_commands WHERE organization_id = ?1 AND device_id = ?2) AND state NOT IN ('queued', 'delivered')";
    /// Notes that a device is told of what waits for it.
    DELIVER = "UPDATE device_commands SET state = 'delivered', delivered_at = ?3 WHERE organization_id = ?1 AND device_id = ?2 AND state = 'queued' AND expires_at > ?3";
    /// Notes what came of a command.
    FINISH = "UPDATE device_commands SET state = ?4, finished_at = ?5, code = ?6 WHERE organization_id = ?1 AND device_id = ?2 AND id = ?3";
}

fn command(row: &Row<'_>) -> Result<Command> {
    Ok(Command {
        id: CommandId::from_store(row.get(0)?),
        device_id: DeviceId::from_store(row.get(1)?),
        seq: row.get(2)?,
        kind: CommandKind::from_store(row.str(3)?)?,
        state: CommandState::from_store(row.str(4)?)?,
        created_by: row.get(5)?,
        created_at: row.get(6)?,
        expires_at: row.get(7)?,
        delivered_at: row.get(8)?,
        finished_at: row.get(9)?,
        code: row.get(10)?,
        key_thumbprint: row.get(11)?,
    })
}

/// Returns a command to a device.
///
/// Errors: `NotFound` for an unknown one and for another device's alike.
pub fn get(ctx: &mut OperationContext<'_>, device: &DeviceId, id: &CommandId) -> Result<Command> {
    let org = ctx.org();
    ctx.query_opt(&GET, params![org, device.as_str(), id.as_str()], command)?
        .ok_or_else(|| Error::not_found("command"))
}

/// Returns commands to a device before a place, the newest first.
pub fn list(
    ctx: &mut OperationContext<'_>,
    device: &DeviceId,
    before: i64,
    limit: i64,
) -> Result<Vec<Command>> {
    let org = ctx.org();
    ctx.query(&LIST, params![org, device.as_str(), before, limit], command)
}

/// Returns what waits for a device, the oldest first; at most [`super::command::MOST_WAITING`].
pub fn waiting(ctx: &mut OperationContext<'_>, device: &DeviceId) -> Result<Vec<Command>> {
    let (org, now) = (ctx.org(), ctx.now());
    ctx.query(&WAITING, params![org, device.as_str(), now], command)
}

/// Gives a command, and forgets the oldest ones.
pub fn insert(ctx: &mut OperationContext<'_>, command: &Command) -> Result<()> {
    let org = ctx.org();
    ctx.queue(
        &INSERT,
        params![
            org,
            command.id.as_str(),
            command.device_id.as_str(),
            command.kind.as_str(),
            command.state.as_str(),
            command.created_by.as_str(),
            command.created_at,
            command.expires_at,
            command.key_thumbprint.as_deref(),
        ],
    )?;
    ctx.queue(&FORGET, params![org, command.device_id.as_str(), MOST_KEPT])
}

/// Notes that a device is told of what waits for it.
pub fn deliver(ctx: &mut OperationContext<'_>, device: &DeviceId) -> Result<()> {
    let (org, now) = (ctx.org(), ctx.now());
    ctx.queue(&DELIVER, params![org, device.as_str(), now])
}

/// Notes what came of a command.
pub fn finish(ctx: &mut OperationContext<'_>, command: &Command) -> Result<()> {
    let org = ctx.org();
    ctx.queue(
        &FINISH,
        params![
            org,
            command.device_id.as_str(),
            command.id.as_str(),
            command.state.as_str(),
            command.finished_at,
            command.code.as_deref(),
        ],
    )
}
