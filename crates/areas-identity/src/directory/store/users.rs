//! Users.

use super::super::model::{FOR_GOOD, Status, SuspendedBy, User, UserId, Validity};
use super::{generation, live, visible};
use provost_kernel::auth::Role;
use provost_kernel::db::{Row, Tx};
use provost_kernel::error::{Code, Error};
use provost_kernel::text::name_key;
use provost_kernel::{OperationContext, Result, params, statements};
use provost_policy::match_key;

/// The columns of a version, in the order that [`read`] expects.
macro_rules! columns {
    () => {
        "u.id, u.valid_from, u.valid_to, u.seq, u.organization_id, u.directory_id, u.login_name, u.display_name, u.email, u.external_id, u.permission_role, u.status, u.suspended_at, u.suspended_by, u.created_at, u.updated_at"
    };
}
pub(super) use columns;

/// What a list narrows by: `?3` is a status, `?4` a directory.
macro_rules! narrowed {
    () => {
        " AND (CAST(?3 AS TEXT) IS NULL OR u.status = CAST(?3 AS TEXT)) AND (CAST(?4 AS TEXT) IS NULL OR u.directory_id = CAST(?4 AS TEXT))"
    };
}

// What other areas may ask of this table, as parts of their own statements.

/// The active users of these names: kind, id, directory, folded name.
macro_rules! users_of_names {
    ($list:expr) => {
        concat!(
            "SELECT 'user', u.id, u.directory_id, u.name_key FROM directory_users u WHERE u.organization_id = ?1 AND u.name_key IN (",
            $list,
            ") AND u.status = 'active' AND ",
            $crate::directory::store::visible!("u")
        )
    };
}
pub(crate) use users_of_names;

/// Those of these ids that users have, suspended ones included.
macro_rules! users_of_ids {
    ($list:expr) => {
        concat!(
            "SELECT u.id FROM directory_users u WHERE u.organization_id = ?1 AND u.id IN (",
            $list,
            ") AND ",
            $crate::directory::store::visible!("u")
        )
    };
}
pub(crate) use users_of_ids;

/// The users of the folded name `?2`, suspended ones included: kind, id, directory.
macro_rules! users_of_name {
    () => {
        concat!(
            "SELECT 'user', u.id, u.directory_id FROM directory_users u WHERE u.organization_id = ?1 AND u.name_key = ?2 AND ",
            $crate::directory::store::visible!("u")
        )
    };
}
pub(crate) use users_of_name;

/// Joins the visible version of the user that a row of another table names, as `u`.
#[macro_export]
macro_rules! joined_user {
    ($organization:literal, $id:literal) => {
        concat!(
            "LEFT JOIN directory_users u ON u.organization_id = ",
            $organization,
            " AND u.id = ",
            $id,
            " AND u.valid_from + 0 <= COALESCE((SELECT generation FROM directory_state WHERE organization_id = ",
            $organization,
            "), 0) AND u.valid_to > COALESCE((SELECT generation FROM directory_state WHERE organization_id = ",
            $organization,
            "), 0) "
        )
    };
}

statements! {
    /// The visible version of a user.
    GET = concat!("SELECT ", columns!(), " FROM directory_users u WHERE u.organization_id = ?1 AND u.id = ?2 AND ", visible!("u"));
    /// Who a user is now, for tokens that act for it.
    PRINCIPAL = concat!("SELECT u.login_name, u.permission_role, u.status FROM directory_users u WHERE u.organization_id = ?1 AND u.id = ?2 AND ", visible!("u"));
    /// Who has a role and acts. Those are few, whatever the directory holds.
    WITH_ROLE = concat!("SELECT u.id FROM directory_users u WHERE u.organization_id = ?1 AND u.permission_role IS NOT NULL AND u.permission_role = ?2 AND u.status = 'active' AND ", visible!("u"), " ORDER BY u.id LIMIT 1000");
    /// The same of those who are in a group. Who has a role is looked at first, whatever the group holds.
    WITH_ROLE_IN = concat!("SELECT u.id FROM directory_users u CROSS JOIN directory_memberships m WHERE u.organization_id = ?1 AND u.permission_role IS NOT NULL AND u.permission_role = ?2 AND u.status = 'active' AND ", visible!("u"), " AND m.organization_id = u.organization_id AND m.group_id = ?3 AND m.user_id = u.id AND ", visible!("m"), " ORDER BY u.id LIMIT 1000");
    /// The live versions of a user, the visible one first, if there is one.
    VERSIONS = concat!("SELECT ", columns!(), ", CASE WHEN u.valid_from <= ", generation!(), " THEN 1 ELSE 0 END FROM directory_users u WHERE u.organization_id = ?1 AND u.id = ?2 AND ", live!("u"), " ORDER BY u.valid_from, u.id");
    /// The live versions of a name in a directory.
    NAMED = concat!("SELECT u.id, u.valid_from, u.seq, CASE WHEN u.valid_from <= ", generation!(), " THEN 1 ELSE 0 END FROM directory_users u WHERE u.organization_id = ?1 AND u.name_key = ?2 AND u.directory_id = ?3 AND ", live!("u"), " ORDER BY u.valid_from, u.id");
    /// Whether another user of the directory `?3` has the login name of this match key, visible or staged.
    IS_LOGIN_NAME = concat!("SELECT 1 FROM directory_users u WHERE u.organization_id = ?1 AND u.login_match = ?2 AND u.directory_id = ?3 AND u.id <> ?4 AND ", live!("u"), " ORDER BY u.id || '' LIMIT 1");
    /// Whether another user of the directory `?3` has the e-mail address of this match key, visible or staged.
    IS_ADDRESS = concat!("SELECT 1 FROM directory_users u WHERE u.organization_id = ?1 AND u.email_match = ?2 AND u.directory_id = ?3 AND u.id <> ?4 AND ", live!("u"), " ORDER BY u.id || '' LIMIT 1");
    /// Makes a user that is visible at once.
    INSERT = concat!("INSERT INTO directory_users (organization_id, id, valid_from, valid_to, seq, directory_id, login_name, name_key, display_name, email, external_id, permission_role, status, created_at, updated_at, login_match, email_match) VALUES (?1, ?2, ", generation!(), ", 9007199254740991, COALESCE(CAST(?3 AS BIGINT), (SELECT MAX(seq) FROM directory_users WHERE organization_id = ?1) + 1, 1), ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?12, ?13, ?14)");
    /// Replaces what can change of a version.
    SAVE = "UPDATE directory_users \
        SET login_name = ?4, name_key = ?5, display_name = ?6, email = ?7, external_id = ?8, \
        permission_role = ?9, status = ?10, suspended_at = ?11, suspended_by = ?12, updated_at = ?13, \
        login_match = ?14, email_match = ?15 \
        WHERE organization_id = ?1 AND id = ?2 AND valid_from = ?3";
    /// Removes every version of a user, those that await removal included.
    DELETE = "DELETE FROM directory_users WHERE organization_id = ?1 AND id = ?2";
    /// One page of users in the order of their making.
    LIST = concat!("SELECT ", columns!(), " FROM directory_users u WHERE u.organization_id = ?1 AND u.seq > ?2 AND ", visible!("u"), narrowed!(), " ORDER BY u.seq, u.id LIMIT ?5");
    /// One page of a group's users in the order of their making.
    LIST_MEMBERS = concat!("SELECT ", columns!(), " FROM directory_memberships m JOIN directory_users u ON u.organization_id = m.organization_id AND u.id = m.user_id WHERE m.organization_id = ?1 AND m.group_id = ?6 AND m.user_seq > ?2 AND ", visible!("m"), " AND ", visible!("u"), narrowed!(), " ORDER BY m.user_seq, u.id LIMIT ?5");
    /// One page of the users of a login name, in every directory.
    LIST_NAMED = concat!("SELECT ", columns!(), " FROM directory_users u WHERE u.organization_id = ?1 AND u.seq > ?2 AND u.name_key = ?6 AND ", visible!("u"), narrowed!(), " AND (CAST(?7 AS TEXT) IS NULL OR EXISTS (SELECT 1 FROM directory_memberships m WHERE m.organization_id = ?1 AND m.group_id = CAST(?7 AS TEXT) AND m.user_id = u.id AND ", visible!("m"), ")) ORDER BY u.seq, u.id LIMIT ?5");
}

/// Reads a version.
pub fn read(row: &Row<'_>) -> Result<User> {
    let damaged = |column: &str| Error::internal(format!("directory_users.{column} is not one of its words"));
    let role = row.get::<Option<String>>(10)?;
    let role = role.map(|word| Role::parse(&word).ok_or_else(|| damaged("permission_role")));
    let by = row.get::<Option<String>>(13)?;
    let by = by.map(|word| SuspendedBy::parse(&word).ok_or_else(|| damaged("suspended_by")));
    let suspended = row
        .get::<Option<provost_kernel::Timestamp>>(12)?
        .zip(by.transpose()?);
    Ok(User {
        id: UserId::from_store(row.get(0)?),
        validity: Validity {
            from: row.get(1)?,
            to: row.get(2)?,
        },
        seq: row.get(3)?,
        organization_id: row.get(4)?,
        directory_id: row.get(5)?,
        login_name: row.get(6)?,
        display_name: row.get(7)?,
        email: row.get(8)?,
        external_id: row.get(9)?,
        role: role.transpose()?,
        status: Status::parse(row.str(11)?).ok_or_else(|| damaged("status"))?,
        suspended,
        created_at: row.get(14)?,
        updated_at: row.get(15)?,
    })
}

/// Returns the visible version of a user.
///
/// Errors: `NotFound` for an unknown, a deleted, a merely staged and another organization's user alike.
pub fn get(ctx: &mut OperationContext<'_>, id: &UserId) -> Result<User> {
    let org = ctx.org();
    ctx.query_opt(&GET, params![org, id.as_str()], read)?
        .ok_or_else(|| Error::not_found("user"))
}

/// What a token that acts for a user must know of it.
pub struct Principal {
    /// The user's login name.
    pub display: String,
    /// Its role, if it has one.
    pub role: Option<Role>,
    /// Whether it is active.
    pub enabled: bool,
}

/// Returns what a user is now, in the snapshot of `tx`; `None` for an unknown and a deleted one.
///
/// For credentials of other areas that act for a user: they name organization and user from their own rows.
pub fn principal(tx: &mut Tx<'_>, organization: &str, id: &str) -> Result<Option<Principal>> {
    tx.query_opt(&PRINCIPAL, params![organization, id], |row| {
        let role = row.get::<Option<String>>(1)?;
        let role = role.map(|word| {
            Role::parse(&word)
                .ok_or_else(|| Error::internal("directory_users.permission_role is not one of its words"))
        });
        Ok(Principal {
            display: row.get(0)?,
            role: role.transpose()?,
            enabled: row.str(2)? == Status::Active.as_str(),
        })
    })
}

/// Returns the ids of the users who act in a role, sorted; 1 000 at most.
pub fn with_role(tx: &mut Tx<'_>, organization: &str, role: Role) -> Result<Vec<String>> {
    tx.query(&WITH_ROLE, params![organization, role.as_str()], |row| row.get(0))
}

/// Returns the same of those who are in a group.
pub fn with_role_in(tx: &mut Tx<'_>, organization: &str, role: Role, group: &str) -> Result<Vec<String>> {
    tx.query(
        &WITH_ROLE_IN,
        params![organization, role.as_str(), group],
        |row| row.get(0),
    )
}

/// Returns the versions of a user that a change must reach, the visible one first (DI-4).
///
/// Errors: as [`get`].
pub fn versions(ctx: &mut OperationContext<'_>, id: &UserId) -> Result<Vec<User>> {
    let org = ctx.org();
    let mut has_visible = false;
    let found = ctx.query(&VERSIONS, params![org, id.as_str()], |row| {
        has_visible |= row.get::<i64>(16)? == 1;
        read(row)
    })?;
    if has_visible {
        Ok(found)
    } else {
        Err(Error::not_found("user"))
    }
}

/// Refuses a login name that another user of the directory has, or will have when the open import is applied.
///
/// Errors: `AlreadyExists`.
pub fn keep_name_free(
    ctx: &mut OperationContext<'_>,
    directory: &str,
    login_name: &str,
    except: &UserId,
) -> Result<()> {
    let (org, key) = (ctx.org(), name_key(login_name));
    let taken = ctx.query(&NAMED, params![org, key, directory], |row| {
        Ok(row.str(0)? != except.as_str())
    })?;
    if taken.contains(&true) {
        return Err(taken_name());
    }
    Ok(())
}

/// Refuses words by which somebody else of the directory is meant, or will be when the open import is applied: an e-mail
/// address that is another user's login name or address, and a login name that is another user's address. `None` is a word
/// that does not change: what was there before stays, and means both.
///
/// INVARIANT DI-14: by the API no user gets an address that is a word of another user of the directory, nor the other way
/// round.
///
/// Errors: `AlreadyExists`.
pub fn keep_words_free(
    ctx: &mut OperationContext<'_>,
    (directory, except): (&str, &UserId),
    login_name: Option<&str>,
    email: Option<&str>,
) -> Result<()> {
    let org = ctx.org();
    let mut is_taken = |statement, word: &str| -> Result<bool> {
        let key = match_key(word);
        if key.is_empty() {
            // Nobody is meant by it.
            return Ok(false);
        }
        let found = ctx.query_opt(statement, params![org, key, directory, except.as_str()], |_| {
            Ok(())
        })?;
        Ok(found.is_some())
    };
    if let Some(word) = email
        && (is_taken(&IS_LOGIN_NAME, word)? || is_taken(&IS_ADDRESS, word)?)
    {
        return Err(Error::new(
            Code::AlreadyExists,
            "another user of this directory has this e-mail address as its login name or e-mail address; an event that says it \
             would mean both",
        ));
    }
    if let Some(word) = login_name
        && is_taken(&IS_ADDRESS, word)?
    {
        return Err(Error::new(
            Code::AlreadyExists,
            "another user of this directory has this login name as its e-mail address; an event that says it would mean both",
        ));
    }
    Ok(())
}

fn taken_name() -> Error {
    Error::new(
        Code::AlreadyExists,
        "a user of this login name exists already in this directory",
    )
}

/// Stores a new user and returns it. A user of that name that is merely staged becomes this one (DI-4).
///
/// Errors: `AlreadyExists` when the name is taken, or a word is another user's (DI-14).
pub fn insert(ctx: &mut OperationContext<'_>, mut user: User) -> Result<User> {
    let (org, key) = (ctx.org(), name_key(&user.login_name));
    let named = ctx.query(
        &NAMED,
        params![org, key.as_str(), user.directory_id.as_str()],
        |row| Ok((row.get::<String>(0)?, row.get::<i64>(2)?, row.get::<i64>(3)? == 1)),
    )?;
    if named.iter().any(|(.., is_visible)| *is_visible) {
        return Err(taken_name());
    }
    let staged = named.into_iter().next();
    if let Some((id, ..)) = &staged {
        user.id = UserId::from_store(id.clone());
        ctx.queue(&DELETE, params![org, user.id.as_str()])?;
    }
    let whose = (user.directory_id.as_str(), &user.id);
    keep_words_free(ctx, whose, Some(&user.login_name), user.email.as_deref())?;
    user.validity.to = FOR_GOOD;
    ctx.queue(
        &INSERT,
        params![
            org,
            user.id.as_str(),
            staged.map(|(_, seq, _)| seq),
            user.directory_id.as_str(),
            user.login_name.as_str(),
            key,
            user.display_name.as_deref(),
            user.email.as_deref(),
            user.external_id.as_deref(),
            user.role.map(Role::as_str),
            user.status.as_str(),
            user.created_at,
            match_key(&user.login_name),
            user.email.as_deref().map(match_key),
        ],
    )?;
    Ok(user)
}

/// Stores what changed of a version.
pub fn save(ctx: &mut OperationContext<'_>, user: &User) -> Result<()> {
    let org = ctx.org();
    ctx.queue(
        &SAVE,
        params![
            org,
            user.id.as_str(),
            user.validity.from,
            user.login_name.as_str(),
            name_key(&user.login_name),
            user.display_name.as_deref(),
            user.email.as_deref(),
            user.external_id.as_deref(),
            user.role.map(Role::as_str),
            user.status.as_str(),
            user.suspended.map(|(at, _)| at),
            user.suspended.map(|(_, by)| by.as_str()),
            user.updated_at,
            match_key(&user.login_name),
            user.email.as_deref().map(match_key),
        ],
    )
}

/// Which users a list shows.
#[derive(Default)]
pub struct Filter<'a> {
    /// Those in this state.
    pub status: Option<Status>,
    /// Those of this directory.
    pub directory_id: Option<&'a str>,
    /// Those of this login name.
    pub login_name: Option<&'a str>,
    /// Those in this group.
    pub group_id: Option<&'a str>,
}

/// Returns a page of users behind a place, in the order of their making.
pub fn list(
    ctx: &mut OperationContext<'_>,
    filter: &Filter<'_>,
    after: i64,
    limit: i64,
) -> Result<Vec<User>> {
    let (org, status) = (ctx.org(), filter.status.map(Status::as_str));
    let directory = filter.directory_id;
    match (filter.login_name, filter.group_id) {
        (Some(name), group) => ctx.query(
            &LIST_NAMED,
            params![org, after, status, directory, limit, name_key(name), group],
            read,
        ),
        (None, Some(group)) => ctx.query(
            &LIST_MEMBERS,
            params![org, after, status, directory, limit, group],
            read,
        ),
        (None, None) => ctx.query(&LIST, params![org, after, status, directory, limit], read),
    }
}
