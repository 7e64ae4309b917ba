//! All SQL of bypasses.

use super::bypass::{Bypass, BypassId, MOST_MS};
use super::model::DeviceId;
use provost_kernel::context::PRUNED_ROWS;
use provost_kernel::db::{Row, Tx};
use provost_kernel::error::{Error, Result};
use provost_kernel::{OperationContext, SureTime, Timestamp, params, statements};

/// The columns of a bypass, in the order that [`read`] expects.
macro_rules! columns {
    () => {
        "id, device_id, clients, created_by, created_at, expires_at, ended_at, end_reason"
    };
}

statements! {
    /// One bypass.
    GET = concat!("SELECT ", columns!(), " FROM device_bypasses WHERE organization_id = ?1 AND id = ?2");
    /// A page of bypasses, the newest first: their ids say when they were made.
    LIST = concat!("SELECT ", columns!(), " FROM device_bypasses WHERE organization_id = ?1 AND id < ?2 ORDER BY id DESC LIMIT ?3");
    /// A page of those of one device.
    OF_DEVICE = concat!("SELECT ", columns!(), " FROM device_bypasses WHERE organization_id = ?1 AND device_id = ?4 AND id < ?2 ORDER BY id DESC LIMIT ?3");
    /// For how long those of a device were given whose time ends after an instant, whenever they were ended: a machine that is away may not have heard, and how many of a device were begun since.
    USED = "SELECT CAST(COALESCE(SUM(CASE WHEN expires_at > ?3 THEN expires_at - created_at ELSE 0 END), 0) AS BIGINT), CAST(COALESCE(SUM(CASE WHEN created_at > ?3 THEN 1 ELSE 0 END), 0) AS BIGINT) FROM device_bypasses WHERE organization_id = ?1 AND device_id = ?2 AND created_at > ?4";
    /// The open ones.
    OPEN = concat!("SELECT ", columns!(), " FROM device_bypasses WHERE organization_id = ?1 AND ended_at IS NULL ORDER BY id");
    /// The open ones that somebody began.
    OF_MAKER = concat!("SELECT ", columns!(), " FROM device_bypasses WHERE organization_id = ?1 AND created_by = ?2 AND ended_at IS NULL ORDER BY id");
    /// The open ones of the machines of a user.
    OF_OWNER = "SELECT b.id, b.device_id, b.clients, b.created_by, b.created_at, b.expires_at, b.ended_at, b.end_reason FROM devices d JOIN device_bypasses b ON b.organization_id = d.organization_id AND b.device_id = d.id AND b.ended_at IS NULL WHERE d.organization_id = ?1 AND d.owner_user_id = ?2 ORDER BY b.id || ''";
    /// Adds one.
    INSERT = "INSERT INTO device_bypasses (organization_id, id, device_id, clients, created_by, created_at, expires_at) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)";
    /// Ends one that is open.
    END = "UPDATE device_bypasses SET ended_at = ?3, end_reason = ?4 WHERE organization_id = ?1 AND id = ?2 AND ended_at IS NULL";
    /// Those behind a place that are open and end until an instant, of every organization.
    OPEN_OF_ALL = unscoped("the sweep works for every organization") "SELECT organization_id, id FROM device_bypasses WHERE ended_at IS NULL AND expires_at <= ?3 AND (organization_id, id) > (?1, ?2) ORDER BY organization_id, id LIMIT 1000";
    /// Forgets what ended long ago.
    FORGET = unscoped("retention is the same for every organization") "DELETE FROM device_bypasses WHERE (organization_id, id) IN (SELECT organization_id, id FROM device_bypasses WHERE ended_at < ?1 ORDER BY ended_at LIMIT ?2)";
}

fn read(row: &Row<'_>) -> Result<Bypass> {
    Ok(Bypass {
        id: BypassId::from_store(row.get(0)?),
        device_id: DeviceId::from_store(row.get(1)?),
        clients: serde_json::from_str(row.str(2)?).map_err(Error::internal)?,
        created_by: row.get(3)?,
        created_at: row.get(4)?,
        expires_at: row.get(5)?,
        ended_at: row.get(6)?,
        end_reason: row.get(7)?,
    })
}

/// Returns a bypass.
///
/// Errors: `NotFound` for an unknown one and one of another organization alike.
pub fn get(ctx: &mut OperationContext<'_>, id: &BypassId) -> Result<Bypass> {
    let org = ctx.org();
    ctx.query_opt(&GET, params![org, id.as_str()], read)?
        .ok_or_else(|| Error::not_found("bypass"))
}

/// Returns bypasses before a place of the list, the newest first; those of one device where it is named.
pub fn list(
    ctx: &mut OperationContext<'_>,
    device: Option<&DeviceId>,
    before: &str,
    limit: i64,
) -> Result<Vec<Bypass>> {
    let org = ctx.org();
    match device {
        Some(device) => ctx.query(&OF_DEVICE, params![org, before, limit, device.as_str()], read),
        None => ctx.query(&LIST, params![org, before, limit], read),
    }
}

/// Returns how long the bypasses of a device were that end or ended within the last 24 hours, and how many were begun in them. Units:
/// milliseconds.
pub fn used(ctx: &mut OperationContext<'_>, device: &DeviceId, now: Timestamp) -> Result<(i64, i64)> {
    let org = ctx.org();
    // One that ended since began no earlier than its longest before.
    let (since, begun) = (now.plus_ms(-MOST_MS), now.plus_ms(-2 * MOST_MS - 1));
    let found = ctx.query_opt(&USED, params![org, device.as_str(), since, begun], |row| {
        Ok((row.get(0)?, row.get(1)?))
    })?;
    Ok(found.unwrap_or_default())
}

/// Returns the open bypasses.
pub fn open(ctx: &mut OperationContext<'_>) -> Result<Vec<Bypass>> {
    let org = ctx.org();
    ctx.query(&OPEN, params![org], read)
}

/// Returns the open bypasses that somebody began.
pub fn open_of_maker(ctx: &mut OperationContext<'_>, maker: &str) -> Result<Vec<Bypass>> {
    let org = ctx.org();
    ctx.query(&OF_MAKER, params![org, maker], read)
}

/// Returns the open bypasses of the machines that a user owns.
pub fn open_of_owner(ctx: &mut OperationContext<'_>, user: &str) -> Result<Vec<Bypass>> {
    let org = ctx.org();
    ctx.query(&OF_OWNER, params![org, user], read)
}

/// Adds a bypass.
pub fn insert(ctx: &mut OperationContext<'_>, bypass: &Bypass) -> Result<()> {
    let org = ctx.org();
    let clients = serde_json::to_string(&bypass.clients).map_err(Error::internal)?;
    let values = params![
        org,
        bypass.id.as_str(),
        bypass.device_id.as_str(),
        clients,
        bypass.created_by.as_str(),
        bypass.created_at,
        bypass.expires_at,
    ];
    ctx.execute(&INSERT, values).map(drop)
}

/// Stores the end of a bypass, and says whether it was open.
pub fn end(ctx: &mut OperationContext<'_>, id: &BypassId, at: Timestamp, reason: &str) -> Result<bool> {
    let org = ctx.org();
    Ok(ctx.execute(&END, params![org, id.as_str(), at, reason])? == 1)
}

/// A place in the list of bypasses of every organization: the organization, and the id there.
pub type Place = (String, String);

/// Returns the place before all of them.
pub fn first_place() -> Place {
    (String::new(), String::new())
}

/// Returns the next open bypasses behind a place that end until an instant, a thousand at most; none once there are no more.
pub fn open_of_all(tx: &mut Tx<'_>, (organization, id): &Place, until: Timestamp) -> Result<Vec<Place>> {
    let values = params![organization.as_str(), id.as_str(), until];
    tx.query(&OPEN_OF_ALL, values, |row| Ok((row.get(0)?, row.get(1)?)))
}

/// Forgets bypasses of every organization that ended before.
pub fn forget(ctx: &mut OperationContext<'_>, before: SureTime) -> Result<()> {
    ctx.prune(&FORGET, params![before.instant(), PRUNED_ROWS])
}
