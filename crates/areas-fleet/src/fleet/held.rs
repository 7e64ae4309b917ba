//! Devices that a restore holds back (RH-1): none of their tokens works until somebody releases them.

use super::model::Status;
use provost_kernel::error::{Code, Error};
use provost_kernel::held::{Held, HeldKind};
use provost_kernel::{OperationContext, Result, params, statements};

statements! {
    /// Holds back every device that could act.
    HOLD_EVERY = "UPDATE devices SET held_at = ?2 WHERE organization_id = ?1 AND status <> ?3 AND held_at IS NULL";
    /// A page of those that are held.
    HELD = "SELECT id, name, updated_at FROM devices WHERE organization_id = ?1 AND status <> ?2 AND held_at IS NOT NULL ORDER BY id LIMIT ?3 OFFSET ?4";
    /// How many are held.
    COUNT_HELD = "SELECT COUNT(*) FROM devices WHERE organization_id = ?1 AND status <> ?2 AND held_at IS NOT NULL";
    /// Those that are held, or one of them.
    HELD_IDS = "SELECT id FROM devices WHERE organization_id = ?1 AND status <> ?2 AND held_at IS NOT NULL AND (CAST(?3 AS TEXT) IS NULL OR id = CAST(?3 AS TEXT)) ORDER BY id";
    /// Lets one that is held act again.
    RELEASE = "UPDATE devices SET held_at = NULL, updated_at = CASE WHEN updated_at < ?2 THEN ?2 ELSE updated_at + 1 END WHERE organization_id = ?1 AND status <> ?3 AND held_at IS NOT NULL AND (CAST(?4 AS TEXT) IS NULL OR id = CAST(?4 AS TEXT))";
}

/// With it, people look after devices.
const SCOPE: &str = "fleet:write";
const RETIRED: &str = Status::Retired.as_str();

/// Devices, as a restore holds them back. They have no role, so that nobody lets anything act that could do more than they.
pub const KIND: HeldKind = HeldKind {
    word: "device",
    hold: hold_every,
    count: count_held,
    page: held,
    release,
};

fn hold_every(ctx: &mut OperationContext<'_>) -> Result<()> {
    let (org, now) = (ctx.org(), ctx.now());
    ctx.queue(&HOLD_EVERY, params![org, now, RETIRED])
}

fn count_held(ctx: &mut OperationContext<'_>) -> Result<i64> {
    let org = ctx.org();
    let count = ctx.query_opt(&COUNT_HELD, params![org, RETIRED], |row| row.get(0))?;
    Ok(count.unwrap_or(0))
}

fn held(ctx: &mut OperationContext<'_>, limit: i64, offset: i64) -> Result<Vec<Held>> {
    let org = ctx.org();
    ctx.query(&HELD, params![org, RETIRED, limit, offset], |row| {
        Ok(Held {
            id: row.get(0)?,
            name: row.get(1)?,
            role: None,
            last_changed_at: row.get(2)?,
        })
    })
}

/// Refuses who could not let a device work by the ordinary operations.
fn may_release(ctx: &OperationContext<'_>) -> Result<()> {
    if ctx.actor().permission.scopes.has(SCOPE) {
        return Ok(());
    }
    let message = "devices are held back: letting them act needs the scope fleet:write; without it, release the others by their ids";
    Err(Error::new(Code::InsufficientScope, message).with("scope", SCOPE))
}

fn release(ctx: &mut OperationContext<'_>, id: Option<&str>) -> Result<Vec<String>> {
    let (org, now) = (ctx.org(), ctx.now());
    let found = ctx.query(&HELD_IDS, params![org, RETIRED, id], |row| row.get::<String>(0))?;
    if !found.is_empty() {
        may_release(ctx)?;
        ctx.queue(&RELEASE, params![org, now, RETIRED, id])?;
        ctx.invalidate_cached_credentials();
    }
    Ok(found)
}
