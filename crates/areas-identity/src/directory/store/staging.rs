//! What staging a chunk asks and writes: names and records by the list, versions one by one.

use super::super::model::{FOR_GOOD, Group, User};
use super::{groups, list_256, live, padded, users};
use provost_kernel::auth::Role;
use provost_kernel::db::{Param, Row, Statement};
use provost_kernel::text::name_key;
use provost_kernel::{OperationContext, Result, params, statements};
use provost_policy::match_key;

const LIST: usize = 256;

statements! {
    /// Which of these names the file has named, and on which line.
    SEEN = concat!("SELECT n.name_key, n.line FROM directory_import_names n WHERE n.organization_id = ?1 AND n.name_key IN (", list_256!(), ") AND n.import_id = ?258 AND n.kind = ?259");
    /// Notes that a line names a record.
    NOTE = "INSERT INTO directory_import_names (organization_id, import_id, kind, name_key, line) VALUES (?1, ?2, ?3, ?4, ?5)";
    /// The users of these names in a directory, as the import leaves them.
    USERS = concat!("SELECT ", users::columns!(), ", u.name_key FROM directory_users u WHERE u.organization_id = ?1 AND u.name_key IN (", list_256!(), ") AND u.directory_id = ?258 AND u.valid_to = 9007199254740991");
    /// The users of a directory that have these ids there, as the import leaves them.
    USERS_BY_EXTERNAL = concat!("SELECT ", users::columns!(), ", u.external_id FROM directory_users u WHERE u.organization_id = ?1 AND u.external_id IN (", list_256!(), ") AND u.directory_id = ?258 AND u.valid_to = 9007199254740991");
    /// The groups of these names in a directory, as the import leaves them.
    GROUPS = concat!("SELECT ", groups::columns!(), ", g.name_key FROM directory_groups g WHERE g.organization_id = ?1 AND g.name_key IN (", list_256!(), ") AND g.directory_id = ?258 AND g.valid_to = 9007199254740991");
    /// The groups of a directory that have these ids there, as the import leaves them.
    GROUPS_BY_EXTERNAL = concat!("SELECT ", groups::columns!(), ", g.external_id FROM directory_groups g WHERE g.organization_id = ?1 AND g.external_id IN (", list_256!(), ") AND g.directory_id = ?258 AND g.valid_to = 9007199254740991");
    /// The live memberships of these users in groups of a directory.
    MEMBERSHIPS = concat!("SELECT m.user_id, m.group_id, m.valid_from, m.valid_to FROM directory_memberships m WHERE m.organization_id = ?1 AND m.user_id IN (", list_256!(), ") AND ", live!("m"), " AND EXISTS (SELECT 1 FROM directory_groups g WHERE g.organization_id = m.organization_id AND g.id = m.group_id AND g.directory_id = ?258 AND ", live!("g"), ")");
    /// Those of these users who came back and whose groups nobody has set since they were deleted.
    UNSETTLED = concat!("SELECT DISTINCT e.record_id FROM ended_words e WHERE e.organization_id = ?1 AND e.kind = 'membership' AND e.record_id IN (", list_256!(), ") ORDER BY e.record_id");
    /// The last places in the lists of users and groups.
    LAST = "SELECT COALESCE((SELECT MAX(seq) FROM directory_users WHERE organization_id = ?1), 0), COALESCE((SELECT MAX(seq) FROM directory_groups WHERE organization_id = ?1), 0)";
    /// Lets a user's visible version end with the swap.
    END_USER = "UPDATE directory_users SET valid_to = ?4 WHERE organization_id = ?1 AND id = ?2 AND valid_from = ?3";
    /// Stages a version of a user.
    STAGE_USER = "INSERT INTO directory_users (organization_id, id, valid_from, valid_to, seq, directory_id, \
        login_name, name_key, display_name, email, external_id, permission_role, status, suspended_at, \
        suspended_by, created_at, updated_at, login_match, email_match) \
        VALUES (?1, ?2, ?3, 9007199254740991, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16, ?17, \
        ?18)";
    /// Lets a group's visible version end with the swap.
    END_GROUP = "UPDATE directory_groups SET valid_to = ?4 WHERE organization_id = ?1 AND id = ?2 AND valid_from = ?3";
    /// Stages a version of a group.
    STAGE_GROUP = "INSERT INTO directory_groups (organization_id, id, valid_from, valid_to, seq, directory_id, name, name_key, description, external_id, created_at, updated_at, name_match) VALUES (?1, ?2, ?3, 9007199254740991, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12)";
    /// Sets the end of a membership's version.
    END_MEMBERSHIP = "UPDATE directory_memberships SET valid_to = ?5 WHERE organization_id = ?1 AND group_id = ?2 AND user_id = ?3 AND valid_from = ?4";
    /// Stages a membership.
    STAGE_MEMBERSHIP = "INSERT INTO directory_memberships (organization_id, group_id, user_id, valid_from, valid_to, user_seq) VALUES (?1, ?2, ?3, ?4, 9007199254740991, ?5)";
    /// Takes a staged membership back.
    UNSTAGE_MEMBERSHIP = "DELETE FROM directory_memberships WHERE organization_id = ?1 AND group_id = ?2 AND user_id = ?3 AND valid_from = ?4";
}

/// Asks for a list of any length, 256 values a statement.
fn ask<T>(
    ctx: &mut OperationContext<'_>,
    statement: &'static Statement,
    list: &[&str],
    behind: &[Param<'_>],
    mut map: impl FnMut(&Row<'_>) -> Result<T>,
) -> Result<Vec<T>> {
    let (org, mut found) = (ctx.org(), Vec::new());
    for part in list.chunks(LIST) {
        found.extend(ctx.query(statement, &padded(org, part, LIST, behind), &mut map)?);
    }
    Ok(found)
}

/// Returns those of these names that were named, each with its line; `None` is a deletion through the API.
pub fn seen(
    ctx: &mut OperationContext<'_>,
    import: &str,
    kind: &str,
    keys: &[&str],
) -> Result<Vec<(String, Option<i64>)>> {
    let behind = [Param::from(import), Param::from(kind)];
    ask(ctx, &SEEN, keys, &behind, |row| Ok((row.get(0)?, row.get(1)?)))
}

/// Notes that a line names a record.
pub fn note(ctx: &mut OperationContext<'_>, import: &str, kind: &str, key: &str, line: i64) -> Result<()> {
    let org = ctx.org();
    ctx.queue(&NOTE, params![org, import, kind, key, line])
}

/// Returns the users of these names by name, as the import leaves them: the staged version where there is one.
pub fn users_named(
    ctx: &mut OperationContext<'_>,
    directory: &str,
    keys: &[&str],
) -> Result<Vec<(String, User)>> {
    ask(ctx, &USERS, keys, &[Param::from(directory)], |row| {
        Ok((row.get(16)?, users::read(row)?))
    })
}

/// Returns the users that have these ids in their directory, by id, as the import leaves them.
pub fn users_external(
    ctx: &mut OperationContext<'_>,
    directory: &str,
    ids: &[&str],
) -> Result<Vec<(String, User)>> {
    ask(ctx, &USERS_BY_EXTERNAL, ids, &[Param::from(directory)], |row| {
        Ok((row.get(16)?, users::read(row)?))
    })
}

/// Returns the groups of these names by name, as the import leaves them: the staged version where there is one.
pub fn groups_named(
    ctx: &mut OperationContext<'_>,
    directory: &str,
    keys: &[&str],
) -> Result<Vec<(String, Group)>> {
    ask(ctx, &GROUPS, keys, &[Param::from(directory)], |row| {
        Ok((row.get(11)?, groups::read(row)?))
    })
}

/// Returns the groups that have these ids in their directory, by id, as the import leaves them.
pub fn groups_external(
    ctx: &mut OperationContext<'_>,
    directory: &str,
    ids: &[&str],
) -> Result<Vec<(String, Group)>> {
    ask(ctx, &GROUPS_BY_EXTERNAL, ids, &[Param::from(directory)], |row| {
        Ok((row.get(11)?, groups::read(row)?))
    })
}

/// Returns those of these users whose groups nobody has set since they came back.
pub fn unsettled(ctx: &mut OperationContext<'_>, users: &[&str]) -> Result<Vec<String>> {
    ask(ctx, &UNSETTLED, users, &[], |row| row.get(0))
}

/// A live version of a membership.
pub struct Membership {
    /// Who.
    pub user_id: String,
    /// In which group.
    pub group_id: String,
    /// The first generation in which it is visible.
    pub from: i64,
    /// The first in which it is not.
    pub to: i64,
}

/// Returns the live memberships of these users in groups of a directory, staged versions last.
pub fn memberships_of(
    ctx: &mut OperationContext<'_>,
    directory: &str,
    users: &[&str],
) -> Result<Vec<Membership>> {
    let mut found = ask(ctx, &MEMBERSHIPS, users, &[Param::from(directory)], |row| {
        Ok(Membership {
            user_id: row.get(0)?,
            group_id: row.get(1)?,
            from: row.get(2)?,
            to: row.get(3)?,
        })
    })?;
    found.sort_by_key(|version| version.from);
    Ok(found)
}

/// Returns the last places in the lists of users and groups.
pub fn last_places(ctx: &mut OperationContext<'_>) -> Result<(i64, i64)> {
    let org = ctx.org();
    let last = ctx.query_opt(&LAST, params![org], |row| Ok((row.get(0)?, row.get(1)?)))?;
    Ok(last.unwrap_or((0, 0)))
}

/// Stages a version of a user. A visible version ends with the swap; a staged one is replaced.
pub fn user(
    ctx: &mut OperationContext<'_>,
    generation: i64,
    before: Option<&User>,
    after: &User,
) -> Result<()> {
    let org = ctx.org();
    if let Some(before) = before {
        if before.validity.from == generation {
            return users::save(ctx, after);
        }
        ctx.queue(
            &END_USER,
            params![org, before.id.as_str(), before.validity.from, generation],
        )?;
    }
    ctx.queue(
        &STAGE_USER,
        params![
            org,
            after.id.as_str(),
            generation,
            after.seq,
            after.directory_id.as_str(),
            after.login_name.as_str(),
            name_key(&after.login_name),
            after.display_name.as_deref(),
            after.email.as_deref(),
            after.external_id.as_deref(),
            after.role.map(Role::as_str),
            after.status.as_str(),
            after.suspended.map(|(at, _)| at),
            after.suspended.map(|(_, by)| by.as_str()),
            after.created_at,
            after.updated_at,
            match_key(&after.login_name),
            after.email.as_deref().map(match_key),
        ],
    )
}

/// Stages a version of a group, as [`user`] does.
pub fn group(
    ctx: &mut OperationContext<'_>,
    generation: i64,
    before: Option<&Group>,
    after: &Group,
) -> Result<()> {
    let org = ctx.org();
    if let Some(before) = before {
        if before.validity.from == generation {
            return groups::save(ctx, after);
        }
        ctx.queue(
            &END_GROUP,
            params![org, before.id.as_str(), before.validity.from, generation],
        )?;
    }
    ctx.queue(
        &STAGE_GROUP,
        params![
            org,
            after.id.as_str(),
            generation,
            after.seq,
            after.directory_id.as_str(),
            after.name.as_str(),
            name_key(&after.name),
            after.description.as_deref(),
            after.external_id.as_deref(),
            after.created_at,
            after.updated_at,
            match_key(&after.name),
        ],
    )
}

/// Stages a membership that is not there, or was about to end.
pub fn join(
    ctx: &mut OperationContext<'_>,
    generation: i64,
    group: &str,
    user: &User,
    ending: Option<&Membership>,
) -> Result<()> {
    let (org, id) = (ctx.org(), user.id.as_str());
    match ending {
        Some(old) => ctx.queue(&END_MEMBERSHIP, params![org, group, id, old.from, FOR_GOOD]),
        None => ctx.queue(&STAGE_MEMBERSHIP, params![org, group, id, generation, user.seq]),
    }
}

/// Lets a membership end with the swap, or takes a staged one back.
pub fn leave(ctx: &mut OperationContext<'_>, generation: i64, old: &Membership) -> Result<()> {
    let (org, group, user) = (ctx.org(), old.group_id.as_str(), old.user_id.as_str());
    if old.from == generation {
        return ctx.queue(&UNSTAGE_MEMBERSHIP, params![org, group, user, old.from]);
    }
    ctx.queue(&END_MEMBERSHIP, params![org, group, user, old.from, generation])
}
