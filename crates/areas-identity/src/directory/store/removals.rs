//! How much a replacing import would remove.

use super::super::imports::model::{FEW, Import, Removal, Removals};
use super::visible;
use crate::subjects::Record;
use crate::words::Kind;
use provost_kernel::auth::Role;
use provost_kernel::db::Row;
use provost_kernel::{OperationContext, Result, params, statements};
use serde_json::{Value, json};

/// A user of the directory `?3` that goes with the generation `?2` of the import `?5`, which was opened at `?4`: as marking
/// decides it.
macro_rules! going_users {
    ($what:literal) => {
        concat!(
            "SELECT ",
            $what,
            " FROM directory_users u WHERE u.organization_id = ?1 AND u.directory_id = ?3 AND u.valid_to = 9007199254740991 AND u.valid_from + 0 < ?2 AND u.updated_at < ?4 AND NOT EXISTS (SELECT 1 FROM directory_import_names n WHERE n.organization_id = ?1 AND n.import_id = ?5 AND n.kind = 'user' AND n.name_key = u.name_key)"
        )
    };
}

/// A group, likewise.
macro_rules! going_groups {
    ($what:literal) => {
        concat!(
            "SELECT ",
            $what,
            " FROM directory_groups g WHERE g.organization_id = ?1 AND g.directory_id = ?3 AND g.valid_to = 9007199254740991 AND g.valid_from + 0 < ?2 AND g.updated_at < ?4 AND NOT EXISTS (SELECT 1 FROM directory_import_names n WHERE n.organization_id = ?1 AND n.import_id = ?5 AND n.kind = 'group' AND n.name_key = g.name_key)"
        )
    };
}

statements! {
    /// How many users would go.
    GOING_USERS = going_users!("COUNT(*)");
    /// How many groups would go.
    GOING_GROUPS = going_groups!("COUNT(*)");
    /// One of the users with the role `?6` who would go, or whose group would. Those with a role are few.
    GOING_WITH_ROLE = concat!(going_users!("u.id"), " AND u.permission_role IS NOT NULL AND u.permission_role = ?6 UNION ALL SELECT m.user_id FROM directory_memberships m JOIN (", going_groups!("g.id"), ") gone ON gone.id = m.group_id JOIN directory_users u ON u.organization_id = m.organization_id AND u.id = m.user_id WHERE m.organization_id = ?1 AND ", visible!("m"), " AND ", visible!("u"), " AND u.permission_role IS NOT NULL AND u.permission_role = ?6 LIMIT 1");
    /// Those with any role who would go, or whose group would, `?6` of them at most.
    GOING_SHOWN = concat!(going_users!("u.id, u.login_name, u.permission_role, CAST(NULL AS TEXT)"), " AND u.permission_role IS NOT NULL UNION ALL SELECT u.id, u.login_name, u.permission_role, gone.name FROM directory_memberships m JOIN (", going_groups!("g.id, g.name"), ") gone ON gone.id = m.group_id JOIN directory_users u ON u.organization_id = m.organization_id AND u.id = m.user_id WHERE m.organization_id = ?1 AND ", visible!("m"), " AND ", visible!("u"), " AND u.permission_role IS NOT NULL ORDER BY 1, 4 LIMIT ?6");
    /// How many memberships lines end already.
    LEAVING = "SELECT COUNT(*) FROM directory_memberships m WHERE m.organization_id = ?1 AND m.valid_to = ?2";
    /// How many memberships would go with users and groups.
    GOING_MEMBERSHIPS = concat!("SELECT COUNT(*) FROM (SELECT m.group_id, m.user_id FROM directory_memberships m JOIN (", going_users!("u.id"), ") gone ON gone.id = m.user_id WHERE m.organization_id = ?1 AND m.valid_to = 9007199254740991 AND m.valid_from + 0 < ?2 UNION SELECT m.group_id, m.user_id FROM directory_memberships m JOIN (", going_groups!("g.id"), ") gone ON gone.id = m.group_id WHERE m.organization_id = ?1 AND m.valid_to = 9007199254740991 AND m.valid_from + 0 < ?2) going");
    /// How many users the directory has.
    USERS = concat!("SELECT COUNT(*) FROM directory_users u WHERE u.organization_id = ?1 AND u.directory_id = ?2 AND ", visible!("u"));
    /// How many groups the directory has.
    GROUPS = concat!("SELECT COUNT(*) FROM directory_groups g WHERE g.organization_id = ?1 AND g.directory_id = ?2 AND ", visible!("g"));
    /// How many memberships the directory's groups have.
    MEMBERSHIPS = concat!("SELECT COUNT(*) FROM directory_memberships m WHERE m.organization_id = ?1 AND ", visible!("m"), " AND m.group_id IN (SELECT g.id FROM directory_groups g WHERE g.organization_id = ?1 AND g.directory_id = ?2 AND ", visible!("g"), ")");
    /// The ids of users that would go.
    GOING_USER_IDS = going_users!("u.id, u.login_name, u.email");
    /// The ids of groups that would go.
    GOING_GROUP_IDS = going_groups!("g.id, g.name, CAST(NULL AS TEXT)");
}

/// Returns how much of its directory an open import removes when it is applied now. One that merges removes only the
/// memberships that its lines end.
///
/// Cost: counts of the directory; of its memberships only where more than a few go.
pub fn count(ctx: &mut OperationContext<'_>, import: &Import, replaces: bool) -> Result<Removals> {
    let (org, generation, directory) = (ctx.org(), import.generation, import.directory_id.as_str());
    let going = params![org, generation, directory, import.created_at, import.id.as_str()];
    let of_directory = params![org, directory];
    let mut removals = Removals::default();
    let mut one = |statement, params: &[_]| -> Result<i64> {
        Ok(ctx.query_opt(statement, params, |row| row.get(0))?.unwrap_or(0))
    };
    if replaces {
        removals.users = Removal {
            removed: one(&GOING_USERS, going)?,
            of: one(&USERS, of_directory)?,
        };
        removals.groups = Removal {
            removed: one(&GOING_GROUPS, going)?,
            of: one(&GROUPS, of_directory)?,
        };
    }
    removals.memberships.removed = one(&LEAVING, params![org, generation])?;
    if removals.users.removed + removals.groups.removed > 0 {
        removals.memberships.removed += one(&GOING_MEMBERSHIPS, going)?;
    }
    if removals.memberships.removed > FEW {
        removals.memberships.of = one(&MEMBERSHIPS, of_directory)?;
    }
    Ok(removals)
}

/// Says whether somebody with a role would go, or a group of theirs.
pub fn end_a_role(ctx: &mut OperationContext<'_>, import: &Import, role: Role) -> Result<bool> {
    let values = params![
        ctx.org(),
        import.generation,
        import.directory_id.as_str(),
        import.created_at,
        import.id.as_str(),
        role.as_str()
    ];
    Ok(ctx
        .query_opt(&GOING_WITH_ROLE, values, |row| row.get::<String>(0))?
        .is_some())
}

/// Returns so many of those with a role who would go, or whose group would, with that group.
pub fn with_a_role(ctx: &mut OperationContext<'_>, import: &Import, most: usize) -> Result<Vec<Value>> {
    let values = params![
        ctx.org(),
        import.generation,
        import.directory_id.as_str(),
        import.created_at,
        import.id.as_str(),
        i64::try_from(most).unwrap_or(i64::MAX)
    ];
    ctx.query(&GOING_SHOWN, values, |row| {
        let group = row.get::<Option<String>>(3)?;
        Ok(json!({
            "id": row.get::<String>(0)?, "loginName": row.get::<String>(1)?, "permissionRole": row.get::<String>(2)?, "leavesWithGroup": group,
        }))
    })
}

/// Returns the users and groups that would go, as policies may name them.
pub fn going(ctx: &mut OperationContext<'_>, import: &Import) -> Result<Vec<Record>> {
    let org = ctx.org();
    let going = params![
        org,
        import.generation,
        import.directory_id.as_str(),
        import.created_at,
        import.id.as_str()
    ];
    let mut found = ctx.query(&GOING_USER_IDS, going, record(Kind::User))?;
    found.extend(ctx.query(&GOING_GROUP_IDS, going, record(Kind::Group))?);
    Ok(found)
}

fn record(kind: Kind) -> impl FnMut(&Row<'_>) -> Result<Record> {
    move |row| {
        let words: [Option<String>; 2] = [row.get(1)?, row.get(2)?];
        Ok(Record {
            kind,
            id: row.get(0)?,
            words: words.into_iter().flatten().collect(),
        })
    }
}
