//! Devices that a restore holds back (RH-1): none of their tokens works until somebody releases them.

use super::model::{DeviceId, Reach, Status};
use super::sight::Sight;
use super::{store, taken};
use provost_areas_identity::visible;
use provost_kernel::auth::{Permission, Role, may_mint};
use provost_kernel::db::Row;
use provost_kernel::error::{Code, Error};
use provost_kernel::held::{Held, HeldKind};
use provost_kernel::{OperationContext, Result, params, statements};

statements! {
    /// Holds back every device that could act.
    HOLD_EVERY = "UPDATE devices SET held_at = ?2 WHERE organization_id = ?1 AND status <> ?3 AND held_at IS NULL";
    /// A page of those that are held, with whose they are and whom gateways take them for.
    HELD = "SELECT d.id, d.name, d.updated_at, d.owner_user_id, g.service_account_id FROM devices d LEFT JOIN device_gateway_identities g ON g.organization_id = d.organization_id AND g.device_id = d.id WHERE d.organization_id = ?1 AND d.status <> ?2 AND d.held_at IS NOT NULL ORDER BY d.id LIMIT ?3 OFFSET ?4";
    /// One of those that are held.
    HELD_ONE = "SELECT d.id, d.name, d.updated_at, d.owner_user_id, g.service_account_id FROM devices d LEFT JOIN device_gateway_identities g ON g.organization_id = d.organization_id AND g.device_id = d.id WHERE d.organization_id = ?1 AND d.status <> ?2 AND d.held_at IS NOT NULL AND d.id = ?3";
    /// How many are held.
    COUNT_HELD = "SELECT COUNT(*) FROM devices WHERE organization_id = ?1 AND status <> ?2 AND held_at IS NOT NULL";
    /// Those that are held.
    HELD_IDS = "SELECT id FROM devices WHERE organization_id = ?1 AND status <> ?2 AND held_at IS NOT NULL ORDER BY id";
    /// What owners of those can do.
    OWNERS_ROLES = concat!("SELECT DISTINCT u.permission_role FROM devices d JOIN directory_users u ON u.organization_id = d.organization_id AND u.id = d.owner_user_id WHERE d.organization_id = ?1 AND d.status <> ?2 AND d.held_at IS NOT NULL AND u.permission_role IS NOT NULL AND ", visible!("u"), " ORDER BY u.permission_role");
    /// The accounts that are assigned to them.
    ACCOUNTS = "SELECT DISTINCT g.service_account_id FROM devices d JOIN device_gateway_identities g ON g.organization_id = d.organization_id AND g.device_id = d.id WHERE d.organization_id = ?1 AND d.status <> ?2 AND d.held_at IS NOT NULL AND g.service_account_id IS NOT NULL ORDER BY g.service_account_id";
    /// Lets those that are held act again.
    RELEASE = "UPDATE devices SET held_at = NULL, updated_at = CASE WHEN updated_at < ?2 THEN ?2 ELSE updated_at + 1 END WHERE organization_id = ?1 AND status <> ?3 AND held_at IS NOT NULL";
    /// Lets one act again.
    RELEASE_ONE = "UPDATE devices SET held_at = NULL, updated_at = CASE WHEN updated_at < ?2 THEN ?2 ELSE updated_at + 1 END WHERE organization_id = ?1 AND id = ?3";
}

/// With it, people look after devices.
const SCOPE: &str = "fleet:write";
const RETIRED: &str = Status::Retired.as_str();

/// Devices, as a restore holds them back.
pub const KIND: HeldKind = HeldKind {
    word: "device",
    hold: hold_every,
    count: count_held,
    page: held,
    of_id: held_one,
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
    let sight = Sight::load(ctx)?;
    let org = ctx.org();
    ctx.query(&HELD, params![org, RETIRED, limit, offset], |row| {
        one(&sight, row)
    })
}

fn held_one(ctx: &mut OperationContext<'_>, id: &str) -> Result<Vec<Held>> {
    let sight = Sight::load(ctx)?;
    let org = ctx.org();
    ctx.query(&HELD_ONE, params![org, RETIRED, id], |row| one(&sight, row))
}

fn one(sight: &Sight, row: &Row<'_>) -> Result<Held> {
    let id = row.get::<String>(0)?;
    Ok(Held {
        name: sight.name(false, ("device", &id), row.get(1)?),
        id,
        role: None,
        last_changed_at: row.get(2)?,
        acting: [row.get::<Option<String>>(3)?, row.get(4)?]
            .into_iter()
            .flatten()
            .collect(),
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

/// Refuses who can do less than somebody for whom gateways would take one of the devices that are held.
///
/// Keeps FL-7.
///
/// Errors: `EscalationForbidden` (RH-2).
fn may_release_every(ctx: &mut OperationContext<'_>) -> Result<()> {
    let (org, caller) = (ctx.org(), Reach(ctx.actor().permission));
    let words = ctx.query(&OWNERS_ROLES, params![org, RETIRED], |row| row.get::<String>(0))?;
    for word in words {
        let role = Role::parse(&word).ok_or_else(|| Error::internal("a user has a role that is none"))?;
        may_mint(caller.0, Permission::effective(role, None, None)).map_err(|_| taken::beyond())?;
    }
    let accounts = ctx.query(&ACCOUNTS, params![org, RETIRED], |row| row.get::<String>(0))?;
    for account in accounts {
        if !taken::account_is_within(ctx, &account, caller)? {
            return Err(taken::beyond());
        }
    }
    Ok(())
}

fn release(ctx: &mut OperationContext<'_>, id: Option<&str>) -> Result<Vec<String>> {
    // By its id one is found by its key: among a hundred ids each would read every device else.
    if let Some(id) = id {
        return release_one(ctx, &DeviceId::from_text(id));
    }
    let (org, now) = (ctx.org(), ctx.now());
    let found = ctx.query(&HELD_IDS, params![org, RETIRED], |row| row.get::<String>(0))?;
    if !found.is_empty() {
        may_release(ctx)?;
        may_release_every(ctx)?;
        ctx.queue(&RELEASE, params![org, now, RETIRED])?;
        ctx.invalidate_cached_credentials();
    }
    Ok(found)
}

fn release_one(ctx: &mut OperationContext<'_>, id: &DeviceId) -> Result<Vec<String>> {
    let device = match store::get(ctx, id) {
        Ok(device) if device.held_at.is_some() && device.status != Status::Retired => device,
        Ok(_) => return Ok(Vec::new()),
        Err(error) if error.code() == Code::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(error),
    };
    may_release(ctx)?;
    taken::may_let_act(ctx, &device)?;
    let (org, now) = (ctx.org(), ctx.now());
    ctx.queue(&RELEASE_ONE, params![org, now, id.as_str()])?;
    ctx.invalidate_cached_credentials();
    Ok(vec![id.as_str().to_owned()])
}
