//! Who is in which group.

use super::super::model::{GroupId, User};
use super::{generation, live, visible};
use crate::words;
use provost_kernel::db::Tx;
use provost_kernel::{OperationContext, Result, params, statements};

statements! {
    /// The groups that a user is in.
    OF_USER = concat!("SELECT m.group_id FROM directory_memberships m WHERE m.organization_id = ?1 AND m.user_id = ?2 AND ", visible!("m"), " ORDER BY m.group_id || ''");
    /// Says whether a user is in a group now.
    HAS = concat!("SELECT m.valid_to FROM directory_memberships m WHERE m.organization_id = ?1 AND m.group_id = ?2 AND m.user_id = ?3 AND ", visible!("m"));
    /// Makes a live membership visible at once and for good.
    KEEP = concat!("UPDATE directory_memberships SET valid_from = CASE WHEN valid_from > ", generation!(), " THEN ", generation!(), " ELSE valid_from END, valid_to = 9007199254740991 WHERE organization_id = ?1 AND group_id = ?2 AND user_id = ?3 AND valid_to > ", generation!());
    /// Makes a membership that is visible at once.
    INSERT = concat!("INSERT INTO directory_memberships (organization_id, group_id, user_id, valid_from, valid_to, user_seq) VALUES (?1, ?2, ?3, ", generation!(), ", 9007199254740991, ?4)");
    /// Ends a membership, visible or staged.
    DELETE = concat!("DELETE FROM directory_memberships AS m WHERE m.organization_id = ?1 AND m.group_id = ?2 AND m.user_id = ?3 AND ", live!("m"));
    /// Removes every membership of a user.
    DELETE_OF_USER = "DELETE FROM directory_memberships WHERE organization_id = ?1 AND user_id = ?2";
    /// Removes every membership of a group.
    DELETE_OF_GROUP = "DELETE FROM directory_memberships WHERE organization_id = ?1 AND group_id = ?2";
}

/// Returns the ids of the groups that a user is in, sorted.
pub fn of_user(tx: &mut Tx<'_>, org: &str, user: &str) -> Result<Vec<String>> {
    tx.query(&OF_USER, params![org, user], |row| row.get(0))
}

/// Puts a user into a group, now and in what is staged; says whether it was not there. From now on somebody has said which
/// groups the user is in.
pub fn add(ctx: &mut OperationContext<'_>, group: &GroupId, user: &User) -> Result<bool> {
    let (org, group, id) = (ctx.org(), group.as_str(), user.id.as_str());
    let was = ctx.query_opt(&HAS, params![org, group, id], |_| Ok(()))?;
    if ctx.execute(&KEEP, params![org, group, id])? == 0 {
        ctx.queue(&INSERT, params![org, group, id, user.seq])?;
    }
    words::settle_memberships(ctx, id)?;
    Ok(was.is_none())
}

/// Takes a user out of a group, now and in what is staged; says whether it was there. As [`add`], also of one that was not.
pub fn remove(ctx: &mut OperationContext<'_>, group: &GroupId, user: &User) -> Result<bool> {
    let (org, group, id) = (ctx.org(), group.as_str(), user.id.as_str());
    let was = ctx.query_opt(&HAS, params![org, group, id], |_| Ok(()))?;
    ctx.queue(&DELETE, params![org, group, id])?;
    words::settle_memberships(ctx, id)?;
    Ok(was.is_some())
}

/// Ends a membership, now and in what is staged, of whoever it is; says whether it was there. Unlike [`remove`], it does not
/// count as somebody's word on which groups the user is in.
pub fn end(ctx: &mut OperationContext<'_>, group: &GroupId, user: &str) -> Result<bool> {
    let org = ctx.org();
    Ok(ctx.execute(&DELETE, params![org, group.as_str(), user])? > 0)
}
