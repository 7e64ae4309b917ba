//! Accounts that a restore holds back: disabled, with the reason `restored` (RH-1).

use super::model::{Rights, may_be_held};
use super::store::{former, role, scopes};
use provost_kernel::db::Row;
use provost_kernel::held::{Held, HeldKind};
use provost_kernel::{OperationContext, Result, params, statements};

/// Why an account is disabled that a restore holds back.
pub const RESTORED: &str = "restored";

statements! {
    /// Disables every account that works. When it last changed stays, for whoever decides about it.
    HOLD_EVERY = "UPDATE service_accounts SET status = 'disabled', disabled_at = ?2, disabled_reason = ?3 WHERE organization_id = ?1 AND deleted_at IS NULL AND status = 'active'";
    /// A page of those that are held.
    HELD = "SELECT id, name, permission_role, updated_at FROM service_accounts WHERE organization_id = ?1 AND deleted_at IS NULL AND disabled_reason = ?2 ORDER BY id LIMIT ?3 OFFSET ?4";
    /// One of those that are held.
    HELD_ONE = "SELECT id, name, permission_role, updated_at FROM service_accounts WHERE organization_id = ?1 AND deleted_at IS NULL AND disabled_reason = ?2 AND id = ?3";
    /// How many are held.
    COUNT_HELD = "SELECT COUNT(*) FROM service_accounts WHERE organization_id = ?1 AND deleted_at IS NULL AND disabled_reason = ?2";
    /// What those that are held could do.
    HELD_RIGHTS = "SELECT id, permission_role, scopes, former_role, former_scopes FROM service_accounts WHERE organization_id = ?1 AND deleted_at IS NULL AND disabled_reason = ?2 AND (CAST(?3 AS TEXT) IS NULL OR id = CAST(?3 AS TEXT)) ORDER BY id";
    /// An account that is held.
    IS_HELD = "SELECT id FROM service_accounts WHERE organization_id = ?1 AND id = ?2 AND deleted_at IS NULL AND disabled_reason = ?3";
    /// Enables one that is held.
    RELEASE = "UPDATE service_accounts \
        SET status = 'active', disabled_at = NULL, disabled_reason = NULL, updated_at = CASE \
        WHEN updated_at < ?3 THEN ?3 ELSE updated_at + 1 END \
        WHERE organization_id = ?1 AND deleted_at IS NULL AND disabled_reason = ?2 \
        AND (CAST(?4 AS TEXT) IS NULL OR id = CAST(?4 AS TEXT))";
}

/// Accounts, as a restore holds them back.
pub const KIND: HeldKind = HeldKind {
    word: "service_account",
    hold: hold_every,
    count: count_held,
    page: held,
    of_id: held_one,
    release,
};

/// Disables every account, in the unit that restores the organization.
fn hold_every(ctx: &mut OperationContext<'_>) -> Result<()> {
    let (org, now) = (ctx.org(), ctx.now());
    ctx.queue(&HOLD_EVERY, params![org, now, RESTORED])
}

/// Returns how many accounts are held.
fn count_held(ctx: &mut OperationContext<'_>) -> Result<i64> {
    let org = ctx.org();
    let count = ctx.query_opt(&COUNT_HELD, params![org, RESTORED], |row| row.get(0))?;
    Ok(count.unwrap_or(0))
}

/// Says whether a restore holds an account back.
pub fn is_held(ctx: &mut OperationContext<'_>, id: &str) -> Result<bool> {
    let org = ctx.org();
    let held = ctx.query_opt(&IS_HELD, params![org, id, RESTORED], |_| Ok(()))?;
    Ok(held.is_some())
}

/// Returns a page of the accounts that are held, by id.
fn held(ctx: &mut OperationContext<'_>, limit: i64, offset: i64) -> Result<Vec<Held>> {
    let org = ctx.org();
    ctx.query(&HELD, params![org, RESTORED, limit, offset], one)
}

/// Returns the account of an id where it is held.
fn held_one(ctx: &mut OperationContext<'_>, id: &str) -> Result<Vec<Held>> {
    let org = ctx.org();
    ctx.query(&HELD_ONE, params![org, RESTORED, id], one)
}

fn one(row: &Row<'_>) -> Result<Held> {
    let id = row.get::<String>(0)?;
    Ok(Held {
        acting: vec![id.clone()],
        id,
        name: row.get(1)?,
        role: Some(role(row, 2)?),
        last_changed_at: row.get(3)?,
    })
}

/// Enables the account of an id that is held, or every one, and returns their ids.
///
/// Errors: `EscalationForbidden` when one of them could do more than the caller (RH-2).
// INVARIANT RH-2: what each could do is compared before one of them acts.
fn release(ctx: &mut OperationContext<'_>, id: Option<&str>) -> Result<Vec<String>> {
    let (org, now) = (ctx.org(), ctx.now());
    let found = ctx.query(&HELD_RIGHTS, params![org, RESTORED, id], |row| {
        let rights = Rights {
            role: role(row, 1)?,
            scopes: scopes(row, 2)?,
        };
        Ok((row.get::<String>(0)?, rights, former(row, 3)?))
    })?;
    for (_, rights, former) in &found {
        may_be_held(*rights, *former, ctx.actor().permission)?;
    }
    if !found.is_empty() {
        let org = ctx.org();
        ctx.queue(&RELEASE, params![org, RESTORED, now, id])?;
    }
    Ok(found.into_iter().map(|(id, ..)| id).collect())
}
