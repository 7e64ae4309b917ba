//! Words that a file gives to users while others of the directory have them.
//!
//! A chunk notes the staged versions of which another live version has a word: those alone can clash in the end, because two
//! versions that clash then are both live when the later one is staged. Which of them do is judged when the file is applied,
//! over what is visible behind the swap.

use super::super::imports::model::{Import, ImportId, MAX_KEPT_REFUSALS, WarnedLine};
use super::super::model::{FOR_GOOD, User, UserId};
use super::{list_256, live, padded, users};
use provost_kernel::db::{Param, Row};
use provost_kernel::{OperationContext, Result, params, statements};
use provost_policy::match_key;

const LIST: usize = 256;

/// Whether another user of the directory has, in its column `$column`, the word that the row has in `$word`; `$when` says of
/// which versions.
macro_rules! others {
    ($column:literal, $word:literal, $when:expr) => {
        concat!(
            "EXISTS (SELECT 1 FROM directory_users o WHERE o.organization_id = ?1 AND o.",
            $column,
            " = directory_users.",
            $word,
            " AND o.directory_id = directory_users.directory_id AND o.id <> directory_users.id AND ",
            $when,
            ")"
        )
    };
}

/// Visible behind the swap of the generation `?2`, of the row `o`.
macro_rules! behind {
    () => {
        "o.valid_from + 0 <= ?2 AND o.valid_to > ?2"
    };
}

/// The user had the word of the column `$word` before the generation `?2` as well.
macro_rules! had {
    ($word:literal) => {
        concat!(
            "EXISTS (SELECT 1 FROM directory_users v WHERE v.organization_id = ?1 AND v.id = directory_users.id AND v.valid_from + 0 < ?2 AND ",
            live!("v"),
            " AND v.",
            $word,
            " = directory_users.",
            $word,
            ")"
        )
    };
}

/// The line of the import `?3` that named the user of the row, under its name or under its external id.
macro_rules! line {
    () => {
        "COALESCE((SELECT n.line FROM directory_import_names n WHERE n.organization_id = ?1 AND n.import_id = ?3 AND n.kind = 'user' AND n.name_key = directory_users.name_key), (SELECT n.line FROM directory_import_names n WHERE n.organization_id = ?1 AND n.import_id = ?3 AND n.kind = 'user id' AND n.name_key = directory_users.external_id))"
    };
}

statements! {
    /// Notes the staged versions with one of these addresses, if it is a word of somebody else's live version.
    NOTE_ADDRESSES = concat!("UPDATE directory_users SET word_clash = 1 WHERE organization_id = ?1 AND email_match IN (", list_256!(), ") AND valid_from + 0 = ?258 AND word_clash IS NULL AND email_match <> '' AND (", others!("login_match", "email_match", live!("o")), " OR ", others!("email_match", "email_match", live!("o")), ")");
    /// Notes the staged versions with one of these login names, if it is the address of somebody else's live version.
    NOTE_LOGIN_NAMES = concat!("UPDATE directory_users SET word_clash = 1 WHERE organization_id = ?1 AND login_match IN (", list_256!(), ") AND valid_from + 0 = ?258 AND word_clash IS NULL AND login_match <> '' AND ", others!("email_match", "login_match", live!("o")));
    /// The next noted versions.
    NOTED = "SELECT u.id FROM directory_users u WHERE u.organization_id = ?1 AND u.word_clash = 1 AND u.id > ?2 ORDER BY u.id LIMIT ?3";
    /// Decides which of the noted versions lose their address: it is new, and a word of somebody else behind the swap.
    JUDGE = concat!("UPDATE directory_users SET word_clash = 2 WHERE organization_id = ?1 AND word_clash = 1 AND id > ?3 AND id <= ?4 AND valid_from + 0 = ?2 AND email_match <> '' AND NOT ", had!("email_match"), " AND (", others!("login_match", "email_match", behind!()), " OR ", others!("email_match", "email_match", behind!()), ")");
    /// The next versions that lose their address, and their lines.
    LOSING = concat!("SELECT id, valid_from, valid_to, seq, organization_id, directory_id, login_name, display_name, email, external_id, permission_role, status, suspended_at, suspended_by, created_at, updated_at, ", line!(), " FROM directory_users WHERE organization_id = ?1 AND word_clash = 2 AND valid_from + 0 = ?2 ORDER BY id LIMIT ?4");
    /// The version of a user that the swap ends.
    BEFORE = concat!("SELECT ", users::columns!(), " FROM directory_users u WHERE u.organization_id = ?1 AND u.id = ?2 AND u.valid_from + 0 < ?3 AND ", live!("u"));
    /// Lets the other staged versions lose an address that is new to them, because its former owner keeps it.
    LOSE_TOO = concat!("UPDATE directory_users SET word_clash = 2 WHERE organization_id = ?1 AND email_match = ?3 AND id <> ?4 AND directory_id = ?5 AND valid_from + 0 = ?2 AND email_match <> '' AND NOT ", had!("email_match"));
    /// Takes a staged version out of those that lose their address.
    SETTLE = "UPDATE directory_users SET word_clash = 1 WHERE organization_id = ?1 AND id = ?2 AND valid_from = ?3";
    /// Removes a staged version that says nothing new.
    UNSTAGE = "DELETE FROM directory_users WHERE organization_id = ?1 AND id = ?2 AND valid_from = ?3";
    /// Lets a version stay that was about to end.
    KEEP = "UPDATE directory_users SET valid_to = ?4 WHERE organization_id = ?1 AND id = ?2 AND valid_from = ?3";
    /// The noted versions whose login name is new, and an address that somebody else keeps.
    NAMESAKES = concat!("SELECT id, ", line!(), " FROM directory_users WHERE organization_id = ?1 AND word_clash = 1 AND id > ?4 AND id <= ?5 AND valid_from + 0 = ?2 AND login_match <> '' AND NOT ", had!("login_match"), " AND ", others!("email_match", "login_match", behind!()), " ORDER BY id");
    /// Forgets that versions were noted.
    FORGET = "UPDATE directory_users SET word_clash = NULL WHERE organization_id = ?1 AND word_clash = 1 AND id > ?2 AND id <= ?3";
    /// Keeps a warning.
    WARN = "INSERT INTO directory_import_warnings (organization_id, import_id, position, line, user_id, path, message) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)";
    /// One page of an import's warnings.
    WARNED = "SELECT position, line, user_id, path, message FROM directory_import_warnings WHERE organization_id = ?1 AND import_id = ?2 AND position > ?3 ORDER BY position, import_id LIMIT ?4";
    /// Forgets the warnings of an import.
    FORGET_WARNINGS = "DELETE FROM directory_import_warnings WHERE organization_id = ?1 AND import_id = ?2";
}

/// Notes those of an import's staged versions that have one of these match keys and may clash because of it.
///
/// Cost: two statements for 256 words.
pub fn note(ctx: &mut OperationContext<'_>, generation: i64, keys: &[&str]) -> Result<()> {
    let org = ctx.org();
    for part in keys.chunks(LIST) {
        let params = padded(org, part, LIST, &[Param::from(generation)]);
        ctx.execute(&NOTE_ADDRESSES, &params)?;
        ctx.execute(&NOTE_LOGIN_NAMES, &params)?;
    }
    Ok(())
}

/// Returns the ids of noted versions behind an id.
pub fn noted(ctx: &mut OperationContext<'_>, after: &str, limit: i64) -> Result<Vec<String>> {
    let org = ctx.org();
    ctx.query(&NOTED, params![org, after, limit], |row| row.get(0))
}

/// Decides which of the noted versions between two ids lose their address.
pub fn judge(ctx: &mut OperationContext<'_>, import: &Import, (after, last): (&str, &str)) -> Result<()> {
    let org = ctx.org();
    ctx.execute(&JUDGE, params![org, import.generation, after, last])
        .map(drop)
}

/// Returns versions that lose their address, each with its line.
pub fn losing(
    ctx: &mut OperationContext<'_>,
    import: &Import,
    limit: i64,
) -> Result<Vec<(User, Option<i64>)>> {
    let org = ctx.org();
    let params = params![org, import.generation, import.id.as_str(), limit];
    ctx.query(&LOSING, params, |row| Ok((users::read(row)?, row.get(16)?)))
}

/// Returns the version of a user that the swap of a generation ends.
pub fn before(ctx: &mut OperationContext<'_>, id: &UserId, generation: i64) -> Result<Option<User>> {
    let org = ctx.org();
    ctx.query_opt(&BEFORE, params![org, id.as_str(), generation], users::read)
}

/// Stores a staged version without the address that it lost. Whoever else was to get the address that the user keeps loses it.
pub fn settle(ctx: &mut OperationContext<'_>, generation: i64, after: &User) -> Result<()> {
    let (org, id) = (ctx.org(), after.id.as_str());
    users::save(ctx, after)?;
    ctx.queue(&SETTLE, params![org, id, generation])?;
    keep(ctx, generation, after)
}

/// Lets a user be as it was: without the address its line says nothing new.
pub fn unstage(ctx: &mut OperationContext<'_>, generation: i64, before: &User) -> Result<()> {
    let (org, id) = (ctx.org(), before.id.as_str());
    ctx.queue(&UNSTAGE, params![org, id, generation])?;
    ctx.queue(&KEEP, params![org, id, before.validity.from, FOR_GOOD])?;
    keep(ctx, generation, before)
}

fn keep(ctx: &mut OperationContext<'_>, generation: i64, user: &User) -> Result<()> {
    let Some(email) = &user.email else {
        return Ok(());
    };
    let org = ctx.org();
    ctx.execute(
        &LOSE_TOO,
        params![
            org,
            generation,
            match_key(email),
            user.id.as_str(),
            user.directory_id.as_str()
        ],
    )
    .map(drop)
}

/// Returns the noted versions between two ids whose login name is new, and somebody else's address; each with its line.
pub fn namesakes(
    ctx: &mut OperationContext<'_>,
    import: &Import,
    (after, last): (&str, &str),
) -> Result<Vec<(String, Option<i64>)>> {
    let org = ctx.org();
    let params = params![org, import.generation, import.id.as_str(), after, last];
    ctx.query(&NAMESAKES, params, |row| Ok((row.get(0)?, row.get(1)?)))
}

/// Forgets that the versions between two ids were noted.
pub fn forget(ctx: &mut OperationContext<'_>, (after, last): (&str, &str)) -> Result<()> {
    let org = ctx.org();
    ctx.queue(&FORGET, params![org, after, last])
}

/// Counts a warning, and keeps it if it is among the first.
pub fn warn(ctx: &mut OperationContext<'_>, import: &mut Import, warned: &WarnedLine) -> Result<()> {
    import.counts.warnings += 1;
    if import.counts.warnings > MAX_KEPT_REFUSALS {
        return Ok(());
    }
    let org = ctx.org();
    ctx.queue(
        &WARN,
        params![
            org,
            import.id.as_str(),
            import.counts.warnings,
            warned.line,
            warned.user_id.as_str(),
            warned.path.as_str(),
            warned.message.as_str(),
        ],
    )
}

fn read(row: &Row<'_>) -> Result<(i64, WarnedLine)> {
    let warned = WarnedLine {
        line: row.get(1)?,
        user_id: UserId::from_store(row.get(2)?),
        path: row.get(3)?,
        message: row.get(4)?,
    };
    Ok((row.get(0)?, warned))
}

/// Returns a page of warnings behind a place, each with its place.
pub fn warned(
    ctx: &mut OperationContext<'_>,
    import: &ImportId,
    after: i64,
    limit: i64,
) -> Result<Vec<(i64, WarnedLine)>> {
    let org = ctx.org();
    ctx.query(&WARNED, params![org, import.as_str(), after, limit], read)
}

/// Forgets the warnings of an import.
pub fn forget_warnings(ctx: &mut OperationContext<'_>, import: &ImportId) -> Result<()> {
    let org = ctx.org();
    ctx.queue(&FORGET_WARNINGS, params![org, import.as_str()])
}
