//! What takes away from users, groups and memberships, and how it is taken away again (EN-3).
//!
//! A row counts while its version is visible. What an import stages takes nothing away; what it makes visible does, all at
//! once, when the generation moves: then it is read from the versions.

use super::model::{FOR_GOOD, GroupId, Status, SuspendedBy, UserId};
use super::store::{memberships, users};
use super::users::suspended;
use provost_areas_platform::announcements::LoginNameChanged;
use provost_areas_platform::ends::{by_hand, unclear};
use provost_kernel::area::{Again, RepeatedRevocation, Right};
use provost_kernel::auth::{Permission, Role, may_mint};
use provost_kernel::db::Tx;
use provost_kernel::ends::{Revocation, RowChange, Side};
use provost_kernel::{Error, OperationContext, Result, Timestamp, params, statements};

const USER: &str = "user";
const MEMBERSHIP: &str = "membership";
const GROUP: &str = "group";
const DELETED: &str = "deleted";
const SUSPENDED: &str = "suspended";
const NARROWED: &str = "narrowed";
const RENAMED: &str = "renamed";
const REMOVED: &str = "removed";

statements! {
    /// The generation that is visible.
    GENERATION = "SELECT generation FROM directory_state WHERE organization_id = ?1";
    /// The users whom a generation ended, with what they are in it: whether they are there, active, of the same role, and under
    /// the same words.
    USERS = "\
        SELECT a.id, n.id, n.status, CASE WHEN COALESCE(n.permission_role, '') = COALESCE(a.permission_role, \
        '') THEN 1 ELSE 0 END, CASE WHEN n.name_key = a.name_key \
        AND COALESCE(n.email, '') = COALESCE(a.email, '') \
        AND COALESCE(n.external_id, '') = COALESCE(a.external_id, '') THEN 1 ELSE 0 END \
        FROM directory_users a \
        LEFT JOIN directory_users n ON n.organization_id = a.organization_id AND n.id = a.id \
        AND n.valid_from = ?2 \
        WHERE a.organization_id = ?1 AND a.valid_to = ?2 AND a.valid_from < ?2 AND a.status = 'active' \
        ORDER BY a.id";
    /// The memberships that a generation ended.
    MEMBERSHIPS = "SELECT a.group_id, a.user_id \
        FROM directory_memberships a \
        WHERE a.organization_id = ?1 AND a.valid_to = ?2 AND a.valid_from < ?2 \
        AND NOT EXISTS (SELECT 1 FROM directory_memberships n WHERE n.organization_id = a.organization_id \
        AND n.group_id = a.group_id AND n.user_id = a.user_id AND n.valid_from = ?2) \
        ORDER BY a.group_id, a.user_id";
    /// The groups that a generation ended.
    GROUPS = "SELECT a.id FROM directory_groups a WHERE a.organization_id = ?1 AND a.valid_to = ?2 AND a.valid_from < ?2 AND NOT EXISTS (SELECT 1 FROM directory_groups n WHERE n.organization_id = a.organization_id AND n.id = a.id AND n.valid_from = ?2) ORDER BY a.id";
}

/// The tables that decide what somebody may do.
pub const RIGHTS: &[Right] = &[
    Right::lasting(
        "directory_ended",
        "notes who was deleted, whose end is a line of its own",
    ),
    Right::ending("directory_groups", group),
    Right::lasting(
        "directory_held_changes",
        "a change that waits gives nothing until somebody settles it",
    ),
    Right::ending("directory_memberships", membership),
    Right::ending("directory_state", generation),
    Right::ending("directory_users", user),
];

/// The ways back.
pub const RETAKINGS: &[RepeatedRevocation] = &[
    RepeatedRevocation {
        what: USER,
        again: user_again,
    },
    RepeatedRevocation {
        what: MEMBERSHIP,
        again: membership_again,
    },
    RepeatedRevocation {
        what: GROUP,
        again: group_again,
    },
];

fn one(what: &'static str, how: &'static str, ids: Vec<String>) -> Vec<Revocation> {
    vec![Revocation { what, how, ids }]
}

/// Says whether a version could be seen before the commit and for good. One that an import has marked to go is seen until then.
fn was_visible(tx: &mut Tx<'_>, change: &RowChange, was: &Side) -> Result<bool> {
    let now = tx.query_opt(&GENERATION, params![change.organization.as_str()], |row| {
        row.get::<i64>(0)
    })?;
    let now = now.unwrap_or(0);
    let from = was.number("valid_from")?.unwrap_or(0);
    let to = was.number("valid_to")?.unwrap_or(FOR_GOOD);
    Ok(from <= now && to > now)
}

fn role(side: &Side) -> Result<Option<Role>> {
    let damaged = || Error::internal("directory_users.permission_role is not a role");
    let role = side.text("permission_role")?;
    role.map(|word| Role::parse(word).ok_or_else(damaged)).transpose()
}

/// Says whether a role can do something that another one cannot.
fn is_less(was: Option<Role>, is: Option<Role>) -> bool {
    let may = |role| Permission::effective(role, None, None);
    match (was, is) {
        (None, _) => false,
        (Some(_), None) => true,
        (Some(was), Some(is)) => may_mint(may(is), may(was)).is_err(),
    }
}

fn user(tx: &mut Tx<'_>, change: &RowChange, _: Timestamp) -> Result<Vec<Revocation>> {
    let Some(was) = change.was.as_ref() else {
        return Ok(Vec::new());
    };
    if was.text("status")? != Some("active") || !was_visible(tx, change, was)? {
        return Ok(Vec::new());
    }
    let id = was.ids(&["id"])?;
    let Some(is) = &change.is else {
        return Ok(one(USER, DELETED, id));
    };
    if is.text("status")? != Some("active") {
        return Ok(one(USER, SUSPENDED, id));
    }
    if is_less(role(was)?, role(is)?) {
        return Ok(one(USER, NARROWED, id));
    }
    if !was.agrees(is, &["name_key", "email", "external_id"])? {
        return Ok(one(USER, RENAMED, id));
    }
    Ok(Vec::new())
}

fn membership(tx: &mut Tx<'_>, change: &RowChange, _: Timestamp) -> Result<Vec<Revocation>> {
    match (&change.was, &change.is) {
        (Some(was), None) if was_visible(tx, change, was)? => {
            Ok(one(MEMBERSHIP, REMOVED, was.ids(&["group_id", "user_id"])?))
        }
        _ => Ok(Vec::new()),
    }
}

fn group(tx: &mut Tx<'_>, change: &RowChange, _: Timestamp) -> Result<Vec<Revocation>> {
    match (&change.was, &change.is) {
        (Some(was), None) if was_visible(tx, change, was)? => Ok(one(GROUP, DELETED, was.ids(&["id"])?)),
        _ => Ok(Vec::new()),
    }
}

fn generation(tx: &mut Tx<'_>, change: &RowChange, _: Timestamp) -> Result<Vec<Revocation>> {
    let of = |side: &Option<Side>| side.as_ref().map(|side| side.number("generation")).transpose();
    let (was, is) = (of(&change.was)?.flatten(), of(&change.is)?.flatten());
    let Some(now) = is.filter(|is| was.unwrap_or(0) != *is) else {
        return Ok(Vec::new());
    };
    let of_now = params![change.organization.as_str(), now];
    let mut ended = Vec::new();
    let users = tx.query(&USERS, of_now, |row| {
        let how = match (row.get::<Option<String>>(1)?, row.get::<Option<String>>(2)?) {
            (None, _) => Some(DELETED),
            (Some(_), status) if status.as_deref() != Some("active") => Some(SUSPENDED),
            _ if row.get::<i64>(3)? == 0 => Some(NARROWED),
            _ if row.get::<i64>(4)? == 0 => Some(RENAMED),
            _ => None,
        };
        Ok(how.zip(Some(row.get::<String>(0)?)))
    })?;
    ended.extend(users.into_iter().flatten().map(|(how, id)| Revocation {
        what: USER,
        how,
        ids: vec![id],
    }));
    let memberships = tx.query(&MEMBERSHIPS, of_now, |row| Ok(vec![row.get(0)?, row.get(1)?]))?;
    ended.extend(memberships.into_iter().map(|ids| Revocation {
        what: MEMBERSHIP,
        how: REMOVED,
        ids,
    }));
    let groups = tx.query(&GROUPS, of_now, |row| Ok(vec![row.get(0)?]))?;
    ended.extend(groups.into_iter().map(|ids| Revocation {
        what: GROUP,
        how: DELETED,
        ids,
    }));
    Ok(ended)
}

/// Suspends, whatever became of the user: what is deleted cannot be brought back, and a line may be of a commit that failed.
fn user_again(ctx: &mut OperationContext<'_>, how: &str, ids: &[String]) -> Result<Again> {
    let [id] = ids else { return Ok(unclear()) };
    let id = UserId::from_store(id.clone());
    let mut versions = users::versions(ctx, &id)?;
    if how == RENAMED {
        ctx.announce(&LoginNameChanged {
            user_id: id.as_str().to_owned(),
        })?;
        return Ok(Again::Done(
            "nobody is linked to it by its login name alone; give it its new words by hand",
        ));
    }
    let was = versions[0].status;
    let now = ctx.now();
    let mut is_changed = false;
    for version in &mut versions {
        if version.suspend(now, SuspendedBy::Api) {
            users::save(ctx, version)?;
            is_changed = true;
        }
    }
    if was == Status::Active {
        suspended(ctx, &id)?;
    }
    Ok(match how {
        _ if !is_changed => Again::Already,
        DELETED => Again::Done("suspended; delete it by hand"),
        NARROWED => Again::Done("suspended; take its role by hand before it is reactivated"),
        _ => Again::Done("suspended"),
    })
}

fn membership_again(ctx: &mut OperationContext<'_>, _: &str, ids: &[String]) -> Result<Again> {
    let [group, user] = ids else { return Ok(unclear()) };
    let is_there = memberships::end(ctx, &GroupId::from_store(group.clone()), user)?;
    if is_there {
        ctx.change("/members", user.as_str(), serde_json::Value::Null);
        return Ok(Again::Done("removed"));
    }
    Ok(Again::Already)
}

fn group_again(ctx: &mut OperationContext<'_>, _: &str, ids: &[String]) -> Result<Again> {
    let [id] = ids else { return Ok(unclear()) };
    super::store::groups::versions(ctx, &GroupId::from_store(id.clone()))?;
    by_hand("its members and assignments are taken away one by one; delete it by hand")
}
