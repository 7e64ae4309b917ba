//! Trusts that a restore holds back: suspended, with the reason `restored` (RH-1).

use super::{TRUSTING, store};
use provost_areas_identity::service_accounts;
use provost_kernel::db::Row;
use provost_kernel::error::{Code, Error};
use provost_kernel::held::{Held, HeldKind};
use provost_kernel::operation::Access;
use provost_kernel::{OperationContext, Result, params, statements};
use std::collections::BTreeSet;

/// Why a trust is suspended that a restore holds back.
const RESTORED: &str = "restored";

statements! {
    /// Suspends every trust that is not. When it last changed stays, for whoever decides about it.
    HOLD_EVERY = "UPDATE workload_trusts SET suspended_at = ?2, suspended_reason = ?3 WHERE organization_id = ?1 AND suspended_at IS NULL";
    /// A page of those that are held.
    HELD = "SELECT id, name, updated_at, service_account_id FROM workload_trusts WHERE organization_id = ?1 AND suspended_reason = ?2 ORDER BY id LIMIT ?3 OFFSET ?4";
    /// One of those that are held.
    HELD_ONE = "SELECT id, name, updated_at, service_account_id FROM workload_trusts WHERE organization_id = ?1 AND suspended_reason = ?2 AND id = ?3";
    /// How many are held.
    COUNT_HELD = "SELECT COUNT(*) FROM workload_trusts WHERE organization_id = ?1 AND suspended_reason = ?2";
    /// Those that are held, and their accounts.
    HELD_ACCOUNTS = "SELECT id, service_account_id FROM workload_trusts WHERE organization_id = ?1 AND suspended_reason = ?2 AND (CAST(?3 AS TEXT) IS NULL OR id = CAST(?3 AS TEXT)) ORDER BY id";
    /// Lets in again. What was issued while nothing was to be exchanged is not exchanged later.
    RELEASE = "UPDATE workload_trusts SET suspended_at = NULL, suspended_reason = NULL, \
        tokens_from = CASE WHEN tokens_from > ?3 THEN tokens_from ELSE ?3 END, \
        updated_at = CASE WHEN updated_at < ?3 THEN ?3 ELSE updated_at + 1 END \
        WHERE organization_id = ?1 AND suspended_reason = ?2 AND (CAST(?4 AS TEXT) IS NULL OR id = CAST(?4 AS TEXT))";
}

/// Trusts, as a restore holds them back.
pub const KIND: HeldKind = HeldKind {
    word: "workload_trust",
    hold: hold_every,
    count: count_held,
    page: held,
    of_id: held_one,
    release,
};

/// Suspends every trust of the organization, in the unit that restores it: what was taken away since the backup is not known.
fn hold_every(ctx: &mut OperationContext<'_>) -> Result<()> {
    let (org, now) = (ctx.org(), ctx.now());
    ctx.queue(&HOLD_EVERY, params![org, now, RESTORED])
}

/// Returns how many trusts are held.
fn count_held(ctx: &mut OperationContext<'_>) -> Result<i64> {
    let org = ctx.org();
    let count = ctx.query_opt(&COUNT_HELD, params![org, RESTORED], |row| row.get(0))?;
    Ok(count.unwrap_or(0))
}

/// Returns a page of the trusts that are held, by id.
fn held(ctx: &mut OperationContext<'_>, limit: i64, offset: i64) -> Result<Vec<Held>> {
    let org = ctx.org();
    ctx.query(&HELD, params![org, RESTORED, limit, offset], one)
}

/// Returns the trust of an id where it is held.
fn held_one(ctx: &mut OperationContext<'_>, id: &str) -> Result<Vec<Held>> {
    let org = ctx.org();
    ctx.query(&HELD_ONE, params![org, RESTORED, id], one)
}

fn one(row: &Row<'_>) -> Result<Held> {
    Ok(Held {
        id: row.get(0)?,
        name: row.get(1)?,
        // What its account may do is said of the account.
        role: None,
        last_changed_at: row.get(2)?,
        acting: vec![row.get(3)?],
    })
}

/// Lets the trust of an id in again that is held, or every one, and returns their ids. What ended their sessions was the
/// restore, and none began since.
///
/// Errors: `RoleForbidden` and `InsufficientScope` for whoever may not write a trust, `Conflict` while the account of one is
/// held back, `EscalationForbidden` when an account could do more than the caller (RH-2).
// Keeps WO-2: whoever lets a workload in, by whichever door, could mint a token of the account that it acts as.
fn release(ctx: &mut OperationContext<'_>, id: Option<&str>) -> Result<Vec<String>> {
    let (org, now) = (ctx.org(), ctx.now());
    let found = ctx.query(&HELD_ACCOUNTS, params![org, RESTORED, id], |row| {
        Ok((row.get::<String>(0)?, row.get::<String>(1)?))
    })?;
    if found.is_empty() {
        return Ok(Vec::new());
    }
    may_trust(ctx)?;
    let accounts: BTreeSet<&str> = found.iter().map(|(_, account)| account.as_str()).collect();
    for account in accounts {
        store::held_account(ctx, account)?;
        if service_accounts::is_held(ctx, account)? {
            let message = format!(
                "the account {account} of a workload trust is held back itself; release it before the trust, or with it"
            );
            return Err(Error::new(Code::Conflict, message));
        }
    }
    let org = ctx.org();
    ctx.queue(&RELEASE, params![org, RESTORED, now, id])?;
    Ok(found.into_iter().map(|(id, _)| id).collect())
}

/// Refuses who could not let a trust in by the ordinary operation.
fn may_trust(ctx: &OperationContext<'_>) -> Result<()> {
    let Access::ScopedBoth { scope, other, roles } = TRUSTING else {
        return Err(Error::internal("a trust is written with two scopes"));
    };
    let permission = ctx.actor().permission;
    if !roles.contains(&permission.role) {
        let message = format!(
            "the role {} may let no workload trust in",
            permission.role.as_str()
        );
        return Err(Error::new(Code::RoleForbidden, message));
    }
    if permission.scopes.has(scope) && permission.scopes.has(other) {
        return Ok(());
    }
    let message = format!(
        "workload trusts are held back: letting them in needs the scopes {scope} and {other}; without them, release the \
         others by their ids"
    );
    Err(Error::new(Code::InsufficientScope, message).with("scope", format!("{scope} {other}")))
}
