//! Users whom a restore holds back: suspended by `restore` (RH-1).

use super::model::SuspendedBy;
use super::store::{live, visible};
use provost_kernel::auth::{Permission, Role, may_mint};
use provost_kernel::db::Row;
use provost_kernel::held::{Held, HeldKind};
use provost_kernel::{Error, OperationContext, Result, params, statements};

statements! {
    /// Suspends every user who has a role and is active, staged versions included (DI-4).
    HOLD_EVERY = concat!("UPDATE directory_users AS u SET status = 'suspended', suspended_at = ?2, suspended_by = ?3 WHERE u.organization_id = ?1 AND u.status = 'active' AND u.permission_role IS NOT NULL AND ", live!("u"));
    /// A page of those who are held.
    HELD = concat!("SELECT u.id, u.login_name, u.permission_role, u.updated_at FROM directory_users u WHERE u.organization_id = ?1 AND u.suspended_by = ?2 AND ", visible!("u"), " ORDER BY u.id LIMIT ?3 OFFSET ?4");
    /// One of those who are held.
    HELD_ONE = concat!("SELECT u.id, u.login_name, u.permission_role, u.updated_at FROM directory_users u WHERE u.organization_id = ?1 AND u.suspended_by = ?2 AND u.id = ?3 AND ", visible!("u"));
    /// How many are held.
    COUNT_HELD = concat!("SELECT COUNT(*) FROM directory_users u WHERE u.organization_id = ?1 AND u.suspended_by = ?2 AND ", visible!("u"));
    /// What those who are held could do, in every version.
    HELD_RIGHTS = concat!("SELECT u.id, u.permission_role FROM directory_users u WHERE u.organization_id = ?1 AND u.suspended_by = ?2 AND (CAST(?3 AS TEXT) IS NULL OR u.id = CAST(?3 AS TEXT)) AND ", live!("u"), " ORDER BY u.id");
    /// Reactivates those who are held.
    RELEASE = concat!("UPDATE directory_users AS u SET status = 'active', suspended_at = NULL, suspended_by = NULL, updated_at = CASE WHEN u.updated_at < ?3 THEN ?3 ELSE u.updated_at + 1 END WHERE u.organization_id = ?1 AND u.suspended_by = ?2 AND (CAST(?4 AS TEXT) IS NULL OR u.id = CAST(?4 AS TEXT)) AND ", live!("u"));
}

const HERE: &str = SuspendedBy::Restore.as_str();

fn role(text: Option<&str>) -> Result<Option<Role>> {
    let damaged = || Error::internal("directory_users.permission_role is not a role");
    text.map(|text| Role::parse(text).ok_or_else(damaged)).transpose()
}

/// Users who have a role, as a restore holds them back.
pub const KIND: HeldKind = HeldKind {
    word: "user",
    hold: hold_every,
    count: count_held,
    page: held,
    of_id: held_one,
    release,
};

/// Suspends every user who has a role, in the unit that restores the organization.
fn hold_every(ctx: &mut OperationContext<'_>) -> Result<()> {
    let (org, now) = (ctx.org(), ctx.now());
    ctx.queue(&HOLD_EVERY, params![org, now, HERE])
}

/// Returns how many users are held.
fn count_held(ctx: &mut OperationContext<'_>) -> Result<i64> {
    let org = ctx.org();
    let count = ctx.query_opt(&COUNT_HELD, params![org, HERE], |row| row.get(0))?;
    Ok(count.unwrap_or(0))
}

/// Returns a page of the users who are held, by id.
fn held(ctx: &mut OperationContext<'_>, limit: i64, offset: i64) -> Result<Vec<Held>> {
    let org = ctx.org();
    ctx.query(&HELD, params![org, HERE, limit, offset], one)
}

/// Returns the user of an id who is held.
fn held_one(ctx: &mut OperationContext<'_>, id: &str) -> Result<Vec<Held>> {
    let org = ctx.org();
    ctx.query(&HELD_ONE, params![org, HERE, id], one)
}

fn one(row: &Row<'_>) -> Result<Held> {
    let id = row.get::<String>(0)?;
    Ok(Held {
        acting: vec![id.clone()],
        id,
        name: row.get(1)?,
        role: role(row.get::<Option<String>>(2)?.as_deref())?,
        last_changed_at: row.get(3)?,
    })
}

/// Reactivates the user of an id who is held, or everybody, and returns their ids.
///
/// Errors: `EscalationForbidden` when one of them could do more than the caller (RH-2).
// INVARIANT RH-2: what each could do is compared before one of them acts.
fn release(ctx: &mut OperationContext<'_>, id: Option<&str>) -> Result<Vec<String>> {
    let (org, now) = (ctx.org(), ctx.now());
    let found = ctx.query(&HELD_RIGHTS, params![org, HERE, id], |row| {
        Ok((
            row.get::<String>(0)?,
            role(row.get::<Option<String>>(1)?.as_deref())?,
        ))
    })?;
    for role in found.iter().filter_map(|(_, role)| *role) {
        may_mint(ctx.actor().permission, Permission::effective(role, None, None))?;
    }
    let mut ids: Vec<String> = found.into_iter().map(|(id, _)| id).collect();
    ids.dedup();
    if !ids.is_empty() {
        let org = ctx.org();
        ctx.queue(&RELEASE, params![org, HERE, now, id])?;
    }
    Ok(ids)
}
