//! Who may say yes for a second person: users with the one role that may (F8.8).
//!
//! Whether somebody is suspended makes no difference here: who is re-pointed while they are, is somebody else once they are back.

use super::imports::model::{Import, Mode};
use super::model::{GroupId, UserId};
use super::store::{self, visible};
use provost_kernel::announcement::{Announcement, Question};
use provost_kernel::auth::Role;
use provost_kernel::error::{Code, Error};
use provost_kernel::{OperationContext, Result, params, statements};
use serde_json::{Value, json};
use std::collections::BTreeSet;

statements! {
    /// The users with a role whom an import makes somebody else when it is made visible, or puts into a group or takes out of one: one of
    /// them. Those with a role are few, whatever the import brings.
    CHANGED_BY = concat!(
        "SELECT u.id FROM directory_users u WHERE u.organization_id = ?1 AND u.permission_role IS NOT NULL AND u.permission_role = ?3 AND ",
        visible!("u"),
        " AND (EXISTS (SELECT 1 FROM directory_users s WHERE s.organization_id = u.organization_id AND s.id = u.id AND s.valid_from + 0 = ?2 AND \
         (s.login_name <> u.login_name OR COALESCE(s.email, '') <> COALESCE(u.email, '') OR COALESCE(s.external_id, '') <> COALESCE(u.external_id, '') OR \
         (s.status <> u.status AND s.status = 'active'))) OR EXISTS (SELECT 1 FROM directory_memberships m WHERE m.organization_id = u.organization_id AND \
         m.user_id = u.id AND (m.valid_from + 0 = ?2 OR m.valid_to + 0 = ?2))) ORDER BY u.id LIMIT 1"
    );
    /// One of those with a role who are in a group, suspended or not: with the group they are out of it for good. Who has a role is looked at first.
    IN_GROUP = concat!(
        "SELECT u.id FROM directory_users u CROSS JOIN directory_memberships m WHERE u.organization_id = ?1 AND u.permission_role IS NOT NULL AND \
         u.permission_role = ?2 AND ",
        visible!("u"),
        " AND m.organization_id = u.organization_id AND m.group_id = ?3 AND m.user_id = u.id AND ",
        visible!("m"),
        " ORDER BY u.id LIMIT 1"
    );
    /// The memberships of users with a role that the lines of an import begin or end: whose, in which group, and whether it begins.
    MEMBERSHIPS = concat!(
        "SELECT u.id, m.group_id, CASE WHEN m.valid_from + 0 = ?2 THEN 1 ELSE 0 END, u.permission_role FROM directory_users u CROSS JOIN directory_memberships m WHERE \
         u.organization_id = ?1 AND u.permission_role IS NOT NULL AND ",
        visible!("u"),
        " AND m.organization_id = u.organization_id AND m.user_id = u.id AND (m.valid_from + 0 = ?2 OR m.valid_to + 0 = ?2) ORDER BY u.id, m.group_id LIMIT ?3"
    );
    /// The users with a role whom an import makes somebody else, or lets act again: who they are and who they will be.
    MADE_OTHERS = concat!(
        "SELECT u.id, u.permission_role, u.login_name, u.email, u.external_id, u.status, s.login_name, s.email, s.external_id, s.status FROM directory_users u \
         JOIN directory_users s ON s.organization_id = u.organization_id AND s.id = u.id AND s.valid_from + 0 = ?2 WHERE u.organization_id = ?1 AND \
         u.permission_role IS NOT NULL AND ",
        visible!("u"),
        " AND (s.login_name <> u.login_name OR COALESCE(s.email, '') <> COALESCE(u.email, '') OR COALESCE(s.external_id, '') <> \
         COALESCE(u.external_id, '') OR s.status <> u.status) ORDER BY u.id LIMIT ?3"
    );
}

/// LIMIT: users with a role whom an import makes somebody else, as a yes to it shows them. Ours: nobody reads more.
const MOST_SHOWN: usize = 100;

/// Says whether a user has the role of those who may say yes.
pub fn is_one(ctx: &mut OperationContext<'_>, user: &UserId) -> Result<bool> {
    let org = ctx.org();
    let principal = store::users::principal(&mut ctx.tx(), org, user.as_str())?;
    Ok(principal.is_some_and(|principal| principal.role == Some(Role::Admin)))
}

/// Asks by which subjects of issuers somebody signs in as a user; each answer shows one.
pub struct SignInsAsked {
    /// The user's id.
    pub user_id: String,
}

impl Announcement for SignInsAsked {
    const IS_DECISIVE: bool = true;
}
impl Question for SignInsAsked {
    type Answer = Value;
}

/// Returns who a user is, for who says yes to something about them: behind an id is whoever has these words, and whoever signs in as it.
pub fn standing(ctx: &mut OperationContext<'_>, user: &UserId) -> Result<Value> {
    let user_id = user.as_str().to_owned();
    let user = store::users::get(ctx, user)?;
    let links = ctx.ask(&SignInsAsked { user_id })?;
    Ok(json!({
        "loginName": user.login_name, "email": user.email, "externalId": user.external_id, "permissionRole": user.role,
        "status": user.status, "identityLinks": links,
    }))
}

/// Returns who users are, each once, for who says yes to something about several of them; who is gone is left out.
///
/// Cost: a statement for each.
pub fn who_they_are(ctx: &mut OperationContext<'_>, users: &[UserId]) -> Result<Value> {
    let ids: BTreeSet<&UserId> = users.iter().collect();
    let mut shown = Vec::with_capacity(ids.len());
    for id in ids {
        match store::users::get(ctx, id) {
            Ok(user) => shown.push(json!({
                "id": id, "loginName": user.login_name, "email": user.email, "permissionRole": user.role, "status": user.status,
            })),
            Err(error) if error.code() == Code::NotFound => {}
            Err(error) => return Err(error),
        }
    }
    Ok(shown.into())
}

/// Says whether somebody in a group has it.
pub fn are_in(ctx: &mut OperationContext<'_>, group: &GroupId) -> Result<bool> {
    let org = ctx.org();
    let found = ctx.query_opt(
        &IN_GROUP,
        params![org, Role::Admin.as_str(), group.as_str()],
        |row| row.get::<String>(0),
    )?;
    Ok(found.is_some())
}

/// Returns the users with a role whom an import makes somebody else: nobody can look at the lines of its file, and a yes to it is a yes to this.
///
/// Errors: `InvalidDefinition` where they are more than anybody would read.
pub fn made_others(ctx: &mut OperationContext<'_>, import: &Import) -> Result<Vec<Value>> {
    let most = i64::try_from(MOST_SHOWN + 1).unwrap_or(i64::MAX);
    let values = params![ctx.org(), import.generation, most];
    let found = ctx.query(&MADE_OTHERS, values, |row| {
        let words = |first: usize| -> Result<Value> {
            Ok(json!({
                "loginName": row.get::<String>(first)?, "email": row.get::<Option<String>>(first + 1)?,
                "externalId": row.get::<Option<String>>(first + 2)?, "status": row.get::<String>(first + 3)?,
            }))
        };
        Ok(json!({
            "id": row.get::<String>(0)?, "permissionRole": row.get::<String>(1)?, "is": words(2)?, "willBe": words(6)?,
        }))
    })?;
    must_be_read(found)
}

/// Returns the memberships of users with a role that the lines of an import begin or end.
///
/// Errors: as [`made_others`].
pub fn moved(ctx: &mut OperationContext<'_>, import: &Import) -> Result<Vec<Value>> {
    let most = i64::try_from(MOST_SHOWN + 1).unwrap_or(i64::MAX);
    let values = params![ctx.org(), import.generation, most];
    let found = ctx.query(&MEMBERSHIPS, values, |row| {
        let begins = row.get::<i64>(2)? == 1;
        Ok(json!({
            "userId": row.get::<String>(0)?, "groupId": row.get::<String>(1)?, "begins": begins, "permissionRole": row.get::<String>(3)?,
        }))
    })?;
    must_be_read(found)
}

/// Returns the ids of the users with a role who get something by an import: whom it makes somebody else, and whom it puts into a group; of
/// everybody with a role, or of those who may say yes.
///
/// Errors: as [`made_others`].
pub fn gains(ctx: &mut OperationContext<'_>, import: &Import, of_everybody: bool) -> Result<Vec<String>> {
    let others = made_others(ctx, import)?;
    let moved = moved(ctx, import)?;
    let counts = |one: &&Value| of_everybody || one["permissionRole"] == Role::Admin.as_str();
    let others = others.iter().filter(counts).map(|one| &one["id"]);
    let moved = moved.iter().filter(|one| one["begins"] == true).filter(counts);
    let ids = others.chain(moved.map(|one| &one["userId"]));
    Ok(ids.filter_map(Value::as_str).map(str::to_owned).collect())
}

/// Returns the users with a role who go with an import because its file does not name them, or a group of theirs.
///
/// Errors: as [`made_others`].
pub fn going(ctx: &mut OperationContext<'_>, import: &Import) -> Result<Vec<Value>> {
    if import.mode != Mode::Replace {
        return Ok(Vec::new());
    }
    must_be_read(store::removals::with_a_role(ctx, import, MOST_SHOWN + 1)?)
}

fn must_be_read(found: Vec<Value>) -> Result<Vec<Value>> {
    if found.len() > MOST_SHOWN {
        let message = "changes more than 100 users with a role: nobody says yes to what nobody reads; make several imports of it";
        return Err(Error::unfit("", message));
    }
    Ok(found)
}

/// Says whether an import makes somebody who has it another one, lets them act again, puts them into a group or takes them out of one, or
/// lets them, or a group with one of them, end because its file does not name it.
pub fn are_changed_by(ctx: &mut OperationContext<'_>, import: &Import) -> Result<bool> {
    let org = ctx.org();
    let values = params![org, import.generation, Role::Admin.as_str()];
    let found = ctx.query_opt(&CHANGED_BY, values, |row| row.get::<String>(0))?;
    Ok(found.is_some()
        || import.mode == Mode::Replace && store::removals::end_a_role(ctx, import, Role::Admin)?)
}
