//! Clients and identity links that a restore holds back (RH-1), and links that were held because their users got roles (IL-5).
//!
//! A held client is blocked, with the reason `restored`. A held link is not followed, and nobody is linked in its place by
//! themself.

use super::clients::may_be_known;
use super::links::{Reach, may_be_role};
use provost_areas_identity::visible;
use provost_kernel::auth::Role;
use provost_kernel::db::Row;
use provost_kernel::held::{Held, HeldKind};
use provost_kernel::{Error, OperationContext, Result, params, statements};

/// Why a client is blocked that a restore holds back.
const RESTORED: &str = "restored";

statements! {
    /// Blocks every client that is not.
    HOLD_CLIENTS = "UPDATE oauth_clients SET blocked_at = ?2, blocked_reason = ?3 WHERE organization_id = ?1 AND blocked_at IS NULL";
    /// Holds every identity link.
    HOLD_LINKS = "UPDATE oauth_identities SET held_at = ?2 WHERE organization_id = ?1";
    /// Forgets what was allowed: what was used since the backup would serve again.
    FORGET_ALLOWED = "DELETE FROM oauth_relinkings WHERE organization_id = ?1";
    /// A page of the clients that are held.
    HELD_CLIENTS = "SELECT id, name, updated_at, service_account_id FROM oauth_clients WHERE organization_id = ?1 AND blocked_at IS NOT NULL AND blocked_reason = ?2 ORDER BY id LIMIT ?3 OFFSET ?4";
    /// One of the clients that are held.
    HELD_CLIENT = "SELECT id, name, updated_at, service_account_id FROM oauth_clients WHERE organization_id = ?1 AND blocked_at IS NOT NULL AND blocked_reason = ?2 AND id = ?3";
    /// How many clients are held.
    COUNT_CLIENTS = "SELECT COUNT(*) FROM oauth_clients WHERE organization_id = ?1 AND blocked_at IS NOT NULL AND blocked_reason = ?2";
    /// The ids of the clients that are held.
    CLIENTS = "SELECT id FROM oauth_clients WHERE organization_id = ?1 AND blocked_at IS NOT NULL AND blocked_reason = ?2 AND (CAST(?3 AS TEXT) IS NULL OR id = CAST(?3 AS TEXT)) ORDER BY id";
    /// Lets clients in again.
    RELEASE_CLIENTS = "UPDATE oauth_clients SET blocked_at = NULL, blocked_reason = NULL, updated_at = CASE WHEN updated_at < ?3 THEN ?3 ELSE updated_at + 1 END WHERE organization_id = ?1 AND blocked_reason = ?2 AND (CAST(?4 AS TEXT) IS NULL OR id = CAST(?4 AS TEXT))";
    /// A page of the links that are held.
    HELD_LINKS = "SELECT user_id, issuer || ' ' || subject, created_at FROM oauth_identities WHERE organization_id = ?1 AND held_at IS NOT NULL ORDER BY user_id, issuer, subject LIMIT ?2 OFFSET ?3";
    /// The links of a user that are held. The order is no prefix of the key: SQLite would walk every link of the organization in it.
    HELD_LINKS_OF = "SELECT user_id, issuer || ' ' || subject, created_at FROM oauth_identities WHERE organization_id = ?1 AND user_id = ?2 AND held_at IS NOT NULL ORDER BY issuer || '', subject";
    /// How many links are held.
    COUNT_LINKS = "SELECT COUNT(*) FROM oauth_identities WHERE organization_id = ?1 AND held_at IS NOT NULL";
    /// Whose links are held.
    LINKED = "SELECT DISTINCT user_id FROM oauth_identities WHERE organization_id = ?1 AND held_at IS NOT NULL AND (CAST(?2 AS TEXT) IS NULL OR user_id = CAST(?2 AS TEXT)) ORDER BY user_id";
    /// What those could do whose links are held.
    LINKED_ROLES = concat!("SELECT DISTINCT u.permission_role FROM oauth_identities i JOIN directory_users u ON u.organization_id = i.organization_id AND u.id = i.user_id WHERE i.organization_id = ?1 AND i.held_at IS NOT NULL AND u.permission_role IS NOT NULL AND (CAST(?2 AS TEXT) IS NULL OR i.user_id = CAST(?2 AS TEXT)) AND ", visible!("u"));
    /// Follows links again. Of a user with a role the link reaches what who releases it can give, who was judged by that role.
    RELEASE_LINKS = concat!("UPDATE oauth_identities SET held_at = NULL, maker_roles = CASE WHEN maker_roles IS NOT NULL AND EXISTS (SELECT 1 FROM directory_users u WHERE u.organization_id = oauth_identities.organization_id AND u.id = oauth_identities.user_id AND u.permission_role IS NOT NULL AND ", visible!("u"), ") THEN CAST(?3 AS TEXT) ELSE maker_roles END WHERE organization_id = ?1 AND held_at IS NOT NULL AND (CAST(?2 AS TEXT) IS NULL OR user_id = CAST(?2 AS TEXT))");
}

/// Clients, as a restore holds them back.
pub const CLIENTS_KIND: HeldKind = HeldKind {
    word: "mcp_client",
    hold: hold_clients,
    count: count_clients,
    page: held_clients,
    of_id: held_client,
    release: release_clients,
};

/// Identity links, as a restore holds them back; their ids are those of their users.
pub const LINKS_KIND: HeldKind = HeldKind {
    word: "identity_link",
    hold: hold_links,
    count: count_links,
    page: held_links,
    of_id: held_links_of,
    release: release_links,
};

/// Blocks every client, in the unit that restores the organization.
fn hold_clients(ctx: &mut OperationContext<'_>) -> Result<()> {
    let (org, now) = (ctx.org(), ctx.now());
    ctx.queue(&HOLD_CLIENTS, params![org, now, RESTORED])
}

/// Holds every link, in the unit that restores the organization.
fn hold_links(ctx: &mut OperationContext<'_>) -> Result<()> {
    let (org, now) = (ctx.org(), ctx.now());
    ctx.queue(&HOLD_LINKS, params![org, now])?;
    forget_allowed(ctx)
}

/// Forgets what was allowed of links, in the unit that restores the organization: an allowance that was used since the backup
/// would serve again.
pub fn forget_allowed(ctx: &mut OperationContext<'_>) -> Result<()> {
    let org = ctx.org();
    ctx.queue(&FORGET_ALLOWED, params![org])
}

/// Returns how many clients are held.
fn count_clients(ctx: &mut OperationContext<'_>) -> Result<i64> {
    let org = ctx.org();
    let count = ctx.query_opt(&COUNT_CLIENTS, params![org, RESTORED], |row| row.get(0))?;
    Ok(count.unwrap_or(0))
}

/// Returns how many links are held.
fn count_links(ctx: &mut OperationContext<'_>) -> Result<i64> {
    let org = ctx.org();
    let count = ctx.query_opt(&COUNT_LINKS, params![org], |row| row.get(0))?;
    Ok(count.unwrap_or(0))
}

/// Returns a page of the clients that are held, by id.
fn held_clients(ctx: &mut OperationContext<'_>, limit: i64, offset: i64) -> Result<Vec<Held>> {
    let org = ctx.org();
    ctx.query(&HELD_CLIENTS, params![org, RESTORED, limit, offset], client)
}

/// Returns the client of an id where it is held.
fn held_client(ctx: &mut OperationContext<'_>, id: &str) -> Result<Vec<Held>> {
    let org = ctx.org();
    ctx.query(&HELD_CLIENT, params![org, RESTORED, id], client)
}

fn client(row: &Row<'_>) -> Result<Held> {
    Ok(Held {
        id: row.get(0)?,
        name: row.get(1)?,
        role: None,
        last_changed_at: row.get(2)?,
        acting: row.get::<Option<String>>(3)?.into_iter().collect(),
    })
}

/// Returns a page of the links that are held, by user.
fn held_links(ctx: &mut OperationContext<'_>, limit: i64, offset: i64) -> Result<Vec<Held>> {
    let org = ctx.org();
    ctx.query(&HELD_LINKS, params![org, limit, offset], link)
}

/// Returns the links of a user that are held.
fn held_links_of(ctx: &mut OperationContext<'_>, user: &str) -> Result<Vec<Held>> {
    let org = ctx.org();
    ctx.query(&HELD_LINKS_OF, params![org, user], link)
}

fn link(row: &Row<'_>) -> Result<Held> {
    let id = row.get::<String>(0)?;
    Ok(Held {
        acting: vec![id.clone()],
        id,
        name: row.get(1)?,
        role: None,
        last_changed_at: row.get(2)?,
    })
}

/// Lets the client of an id in again that is held, or every one, and returns their ids.
///
/// Errors: `EscalationForbidden` when one of them is an account that could do more than the caller (RH-2).
fn release_clients(ctx: &mut OperationContext<'_>, id: Option<&str>) -> Result<Vec<String>> {
    let (org, now) = (ctx.org(), ctx.now());
    let ids = ctx.query(&CLIENTS, params![org, RESTORED, id], |row| row.get::<String>(0))?;
    for id in &ids {
        may_be_known(ctx, id)?;
    }
    if !ids.is_empty() {
        let org = ctx.org();
        ctx.queue(&RELEASE_CLIENTS, params![org, RESTORED, now, id])?;
    }
    Ok(ids)
}

/// Follows the links of a user again, or every one that is held, and returns whose they are.
///
/// Errors: `EscalationForbidden` when one of the users could do more than the caller (RH-2).
// INVARIANT RH-2: a user may have been reactivated by her name, with her links held still: who signs in by one of them is
// the user again, so that the links are judged by themselves.
fn release_links(ctx: &mut OperationContext<'_>, user: Option<&str>) -> Result<Vec<String>> {
    let org = ctx.org();
    let users = ctx.query(&LINKED, params![org, user], |row| row.get::<String>(0))?;
    let roles = ctx.query(&LINKED_ROLES, params![org, user], |row| {
        let role = Role::parse(row.str(0)?);
        role.ok_or_else(|| Error::internal("directory_users.permission_role is not a role"))
    })?;
    for role in roles {
        may_be_role(ctx, Some(role))?;
    }
    if !users.is_empty() {
        let org = ctx.org();
        let words = Reach::of(ctx.actor().permission).words();
        ctx.queue(&RELEASE_LINKS, params![org, user, words.as_deref()])?;
    }
    Ok(users)
}
