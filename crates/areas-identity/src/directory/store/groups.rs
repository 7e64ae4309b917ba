//! Groups.

use super::super::model::{FOR_GOOD, Group, GroupId, Validity};
use super::{generation, live, visible};
use provost_kernel::db::{Row, Tx};
use provost_kernel::error::{Code, Error};
use provost_kernel::text::name_key;
use provost_kernel::{OperationContext, Result, params, statements};
use provost_policy::match_key;

/// The columns of a version, in the order that [`read`] expects.
macro_rules! columns {
    () => {
        "g.id, g.valid_from, g.valid_to, g.seq, g.organization_id, g.directory_id, g.name, g.description, g.external_id, g.created_at, g.updated_at"
    };
}
pub(super) use columns;

// What other areas may ask of this table, as parts of their own statements.

/// The groups of these names: kind, id, directory, folded name.
macro_rules! groups_of_names {
    ($list:expr) => {
        concat!(
            "SELECT 'group', g.id, g.directory_id, g.name_key FROM directory_groups g WHERE g.organization_id = ?1 AND g.name_key IN (",
            $list,
            ") AND ",
            $crate::directory::store::visible!("g")
        )
    };
}
pub(crate) use groups_of_names;

/// Those of these ids that groups have.
macro_rules! groups_of_ids {
    ($list:expr) => {
        concat!(
            "SELECT g.id FROM directory_groups g WHERE g.organization_id = ?1 AND g.id IN (",
            $list,
            ") AND ",
            $crate::directory::store::visible!("g")
        )
    };
}
pub(crate) use groups_of_ids;

/// The groups of the folded name `?2`: kind, id, directory.
macro_rules! groups_of_name {
    () => {
        concat!(
            "SELECT 'group', g.id, g.directory_id FROM directory_groups g WHERE g.organization_id = ?1 AND g.name_key = ?2 AND ",
            $crate::directory::store::visible!("g")
        )
    };
}
pub(crate) use groups_of_name;

statements! {
    /// The visible version of a group.
    GET = concat!("SELECT ", columns!(), " FROM directory_groups g WHERE g.organization_id = ?1 AND g.id = ?2 AND ", visible!("g"));
    /// The live versions of a group, the visible one first, if there is one.
    VERSIONS = concat!("SELECT ", columns!(), ", CASE WHEN g.valid_from <= ", generation!(), " THEN 1 ELSE 0 END FROM directory_groups g WHERE g.organization_id = ?1 AND g.id = ?2 AND ", live!("g"), " ORDER BY g.valid_from, g.id");
    /// A group that is merely staged under a name in a directory.
    STAGED = concat!("SELECT g.id, g.seq FROM directory_groups g WHERE g.organization_id = ?1 AND g.name_key = ?2 AND g.directory_id = ?3 AND g.valid_from > ", generation!(), " AND NOT EXISTS (SELECT 1 FROM directory_groups o WHERE o.organization_id = ?1 AND o.id = g.id AND ", visible!("o"), ") ORDER BY g.id");
    /// Makes a group that is visible at once.
    INSERT = concat!("INSERT INTO directory_groups (organization_id, id, valid_from, valid_to, seq, directory_id, name, name_key, description, external_id, created_at, updated_at, name_match) VALUES (?1, ?2, ", generation!(), ", 9007199254740991, COALESCE(CAST(?3 AS BIGINT), (SELECT MAX(seq) FROM directory_groups WHERE organization_id = ?1) + 1, 1), ?4, ?5, ?6, ?7, ?8, ?9, ?9, ?10)");
    /// Replaces what can change of a version.
    SAVE = "UPDATE directory_groups SET name = ?4, name_key = ?5, description = ?6, external_id = ?7, updated_at = ?8, name_match = ?9 WHERE organization_id = ?1 AND id = ?2 AND valid_from = ?3";
    /// Removes every version of a group, those that await removal included.
    DELETE = "DELETE FROM directory_groups WHERE organization_id = ?1 AND id = ?2";
    /// One page of groups in the order of their making.
    LIST = concat!("SELECT ", columns!(), " FROM directory_groups g WHERE g.organization_id = ?1 AND g.seq > ?2 AND ", visible!("g"), " AND (CAST(?3 AS TEXT) IS NULL OR g.directory_id = CAST(?3 AS TEXT)) ORDER BY g.seq, g.id LIMIT ?4");
    /// One page of the groups of a name, in every directory.
    LIST_NAMED = concat!("SELECT ", columns!(), " FROM directory_groups g WHERE g.organization_id = ?1 AND g.seq > ?2 AND ", visible!("g"), " AND (CAST(?3 AS TEXT) IS NULL OR g.directory_id = CAST(?3 AS TEXT)) AND g.name_key = ?5 ORDER BY g.seq, g.id LIMIT ?4");
    /// One page of the groups of a user in the order of their making.
    LIST_OF_USER = concat!("SELECT ", columns!(), " FROM directory_memberships m JOIN directory_groups g ON g.organization_id = m.organization_id AND g.id = m.group_id WHERE m.organization_id = ?1 AND m.user_id = ?3 AND g.seq > ?2 AND ", visible!("m"), " AND ", visible!("g"), " ORDER BY g.seq, g.id LIMIT ?4");
}

/// Reads a version.
pub fn read(row: &Row<'_>) -> Result<Group> {
    Ok(Group {
        id: GroupId::from_store(row.get(0)?),
        validity: Validity {
            from: row.get(1)?,
            to: row.get(2)?,
        },
        seq: row.get(3)?,
        organization_id: row.get(4)?,
        directory_id: row.get(5)?,
        name: row.get(6)?,
        description: row.get(7)?,
        external_id: row.get(8)?,
        created_at: row.get(9)?,
        updated_at: row.get(10)?,
    })
}

/// Returns the visible version of a group.
///
/// Errors: `NotFound` for an unknown, a deleted, a merely staged and another organization's group alike.
pub fn get(ctx: &mut OperationContext<'_>, id: &GroupId) -> Result<Group> {
    let org = ctx.org();
    ctx.query_opt(&GET, params![org, id.as_str()], read)?
        .ok_or_else(|| Error::not_found("group"))
}

/// Says whether there is a group of an id.
pub fn is_there(tx: &mut Tx<'_>, organization: &str, id: &str) -> Result<bool> {
    let found = tx.query_opt(&GET, params![organization, id], |_| Ok(()))?;
    Ok(found.is_some())
}

/// Returns the versions of a group that a change must reach, the visible one first (DI-4).
///
/// Errors: as [`get`].
pub fn versions(ctx: &mut OperationContext<'_>, id: &GroupId) -> Result<Vec<Group>> {
    let org = ctx.org();
    let mut has_visible = false;
    let found = ctx.query(&VERSIONS, params![org, id.as_str()], |row| {
        has_visible |= row.get::<i64>(11)? == 1;
        read(row)
    })?;
    if has_visible {
        Ok(found)
    } else {
        Err(Error::not_found("group"))
    }
}

/// Returns the refusal of a group's name that somebody has.
pub fn taken_name(kind: &str) -> Error {
    Error::new(
        Code::AlreadyExists,
        format!("a {kind} of this name exists already; names of groups and service accounts are unique"),
    )
}

/// Says whether the open import makes a group of this name in this directory.
pub fn is_staged(ctx: &mut OperationContext<'_>, name: &str, directory: &str) -> Result<bool> {
    let org = ctx.org();
    let found = ctx.query_opt(&STAGED, params![org, name_key(name), directory], |_| Ok(()))?;
    Ok(found.is_some())
}

/// Stores a new group, whose name is free among what is visible, and returns it. A group of that name that is
/// merely staged becomes this one (DI-4).
pub fn insert(ctx: &mut OperationContext<'_>, mut group: Group) -> Result<Group> {
    let (org, key) = (ctx.org(), name_key(&group.name));
    let staged = ctx.query_opt(
        &STAGED,
        params![org, key.as_str(), group.directory_id.as_str()],
        |row| Ok((row.get::<String>(0)?, row.get::<i64>(1)?)),
    )?;
    if let Some((id, _)) = &staged {
        group.id = GroupId::from_store(id.clone());
        ctx.queue(&DELETE, params![org, group.id.as_str()])?;
    }
    group.validity.to = FOR_GOOD;
    ctx.queue(
        &INSERT,
        params![
            org,
            group.id.as_str(),
            staged.map(|(_, seq)| seq),
            group.directory_id.as_str(),
            group.name.as_str(),
            key,
            group.description.as_deref(),
            group.external_id.as_deref(),
            group.created_at,
            match_key(&group.name),
        ],
    )?;
    Ok(group)
}

/// Stores what changed of a version.
pub fn save(ctx: &mut OperationContext<'_>, group: &Group) -> Result<()> {
    let org = ctx.org();
    ctx.queue(
        &SAVE,
        params![
            org,
            group.id.as_str(),
            group.validity.from,
            group.name.as_str(),
            name_key(&group.name),
            group.description.as_deref(),
            group.external_id.as_deref(),
            group.updated_at,
            match_key(&group.name),
        ],
    )
}

/// Returns a page of groups behind a place, in the order of their making.
pub fn list(
    ctx: &mut OperationContext<'_>,
    directory: Option<&str>,
    name: Option<&str>,
    after: i64,
    limit: i64,
) -> Result<Vec<Group>> {
    let org = ctx.org();
    match name {
        Some(name) => ctx.query(
            &LIST_NAMED,
            params![org, after, directory, limit, name_key(name)],
            read,
        ),
        None => ctx.query(&LIST, params![org, after, directory, limit], read),
    }
}

/// Returns a page of a user's groups behind a place, in the order of their making.
pub fn list_of_user(
    ctx: &mut OperationContext<'_>,
    user: &str,
    after: i64,
    limit: i64,
) -> Result<Vec<Group>> {
    let org = ctx.org();
    ctx.query(&LIST_OF_USER, params![org, after, user, limit], read)
}
