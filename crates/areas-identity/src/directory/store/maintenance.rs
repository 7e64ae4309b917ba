//! What prepares a swap, undoes a staging and clears away what is dead: each in small steps.

use super::super::imports::model::{Import, ImportId};
use super::super::model::{GroupId, UserId};
use super::{clashes, ended, generation, held};
use crate::words;
use provost_kernel::auth::OrganizationId;
use provost_kernel::db::Tx;
use provost_kernel::error::Error;
use provost_kernel::{OperationContext, Result, SureTime, Timestamp, params, statements};

/// How many places of a list one step of [`mark`] looks at.
const WINDOW: i64 = 1_000;
/// How many rows one step of [`undo`] or [`clear`] removes of each kind.
const STEP: i64 = 500;
/// How many dead users and groups one step of [`clear`] looks after: each can have events and assignments.
const DEAD_STEP: usize = 100;

statements! {
    /// Tells the planner how large the tables have become. PostgreSQL does so by itself only minutes later, and until
    /// then takes them for empty: it would read all of them for every list of names.
    COUNT_AFRESH = unscoped("statistics belong to no organization") {
        sqlite: "SELECT 1",
        postgres: "ANALYZE directory_users, directory_groups, directory_memberships, directory_import_names",
    };
    /// Lets users end with the swap that the file does not name and the API left alone since.
    MARK_USERS = "UPDATE directory_users \
        SET valid_to = ?2 \
        WHERE organization_id = ?1 AND directory_id = ?3 AND seq > ?4 AND seq <= ?5 \
        AND valid_to = 9007199254740991 AND valid_from + 0 < ?2 AND updated_at < ?6 \
        AND NOT EXISTS (SELECT 1 FROM directory_import_names n WHERE n.organization_id = ?1 \
        AND n.import_id = ?7 AND n.kind = 'user' AND n.name_key = directory_users.name_key)";
    /// Lets the memberships of those users end as well.
    MARK_USERS_MEMBERSHIPS = "UPDATE directory_memberships \
        SET valid_to = ?2 \
        WHERE organization_id = ?1 AND valid_to > ?2 \
        AND user_id IN (SELECT u.id FROM directory_users u WHERE u.organization_id = ?1 \
        AND u.directory_id = ?3 AND u.seq > ?4 AND u.seq <= ?5 AND u.valid_to = ?2 AND NOT \
        EXISTS (SELECT 1 FROM directory_users s WHERE s.organization_id = ?1 AND s.id = u.id \
        AND s.valid_from = ?2))";
    /// Lets groups end with the swap that the file does not name and the API left alone since.
    MARK_GROUPS = "UPDATE directory_groups \
        SET valid_to = ?2 \
        WHERE organization_id = ?1 AND directory_id = ?3 AND seq > ?4 AND seq <= ?5 \
        AND valid_to = 9007199254740991 AND valid_from + 0 < ?2 AND updated_at < ?6 \
        AND NOT EXISTS (SELECT 1 FROM directory_import_names n WHERE n.organization_id = ?1 \
        AND n.import_id = ?7 AND n.kind = 'group' AND n.name_key = directory_groups.name_key)";
    /// The groups among these places that end with the swap.
    MARKED_GROUPS = "SELECT g.id FROM directory_groups g WHERE g.organization_id = ?1 AND g.directory_id = ?3 AND g.seq > ?4 AND g.seq <= ?5 AND g.valid_to = ?2 AND NOT EXISTS (SELECT 1 FROM directory_groups s WHERE s.organization_id = ?1 AND s.id = g.id AND s.valid_from = ?2) ORDER BY g.id";
    /// Lets some memberships of a group end as well.
    MARK_MEMBERSHIPS = "UPDATE directory_memberships SET valid_to = ?3 WHERE organization_id = ?1 AND group_id = ?2 AND valid_to > ?3 AND user_id IN (SELECT m.user_id FROM directory_memberships m WHERE m.organization_id = ?1 AND m.group_id = ?2 AND m.valid_to > ?3 ORDER BY m.user_id LIMIT ?4)";
    /// The last places in the lists of users and groups.
    LAST = "SELECT COALESCE((SELECT MAX(seq) FROM directory_users WHERE organization_id = ?1), 0), COALESCE((SELECT MAX(seq) FROM directory_groups WHERE organization_id = ?1), 0)";
    /// Removes staged users.
    UNDO_USERS = "DELETE FROM directory_users WHERE organization_id = ?1 AND valid_from = ?2 AND id IN (SELECT u.id FROM directory_users u WHERE u.organization_id = ?1 AND u.valid_from = ?2 LIMIT ?3)";
    /// Lets users stay that were about to end.
    KEEP_USERS = "UPDATE directory_users SET valid_to = 9007199254740991 WHERE organization_id = ?1 AND valid_to = ?2 AND id IN (SELECT u.id FROM directory_users u WHERE u.organization_id = ?1 AND u.valid_to = ?2 AND u.valid_to < 9007199254740991 LIMIT ?3)";
    /// Removes staged groups.
    UNDO_GROUPS = "DELETE FROM directory_groups WHERE organization_id = ?1 AND valid_from = ?2 AND id IN (SELECT g.id FROM directory_groups g WHERE g.organization_id = ?1 AND g.valid_from = ?2 LIMIT ?3)";
    /// Lets groups stay that were about to end.
    KEEP_GROUPS = "UPDATE directory_groups SET valid_to = 9007199254740991 WHERE organization_id = ?1 AND valid_to = ?2 AND id IN (SELECT g.id FROM directory_groups g WHERE g.organization_id = ?1 AND g.valid_to = ?2 AND g.valid_to < 9007199254740991 LIMIT ?3)";
    /// Removes staged memberships.
    UNDO_MEMBERSHIPS = "DELETE FROM directory_memberships WHERE organization_id = ?1 AND valid_from = ?2 AND (group_id, user_id) IN (SELECT m.group_id, m.user_id FROM directory_memberships m WHERE m.organization_id = ?1 AND m.valid_from = ?2 LIMIT ?3)";
    /// Lets memberships stay that were about to end.
    KEEP_MEMBERSHIPS = "UPDATE directory_memberships \
        SET valid_to = 9007199254740991 \
        WHERE organization_id = ?1 AND valid_to = ?2 \
        AND (group_id, user_id) IN (SELECT m.group_id, m.user_id FROM directory_memberships m \
        WHERE m.organization_id = ?1 AND m.valid_to = ?2 AND m.valid_to < 9007199254740991 LIMIT ?3)";
    /// Forgets which names a finished import named.
    FORGET_NAMES = "DELETE FROM directory_import_names WHERE organization_id = ?1 AND import_id = ?2 AND (kind, name_key) IN (SELECT n.kind, n.name_key FROM directory_import_names n WHERE n.organization_id = ?1 AND n.import_id = ?2 LIMIT ?3)";
    /// Dead versions of users, and what came after them.
    DEAD_USERS = concat!("SELECT u.id, u.valid_from, u.status, n.status, n.suspended_by, u.login_name, u.email FROM directory_users u LEFT JOIN directory_users n ON n.organization_id = u.organization_id AND n.id = u.id AND n.valid_from = u.valid_to WHERE u.organization_id = ?1 AND u.valid_to <= ", generation!(), " AND u.valid_to < 9007199254740991 ORDER BY u.valid_to, u.id LIMIT ?2");
    /// Removes a dead version of a user.
    BURY_USER = "DELETE FROM directory_users WHERE organization_id = ?1 AND id = ?2 AND valid_from = ?3";
    /// Dead versions of groups, and whether any came after them.
    DEAD_GROUPS = concat!("SELECT g.id, g.valid_from, n.id, g.name FROM directory_groups g LEFT JOIN directory_groups n ON n.organization_id = g.organization_id AND n.id = g.id AND n.valid_from = g.valid_to WHERE g.organization_id = ?1 AND g.valid_to <= ", generation!(), " AND g.valid_to < 9007199254740991 ORDER BY g.valid_to, g.id LIMIT ?2");
    /// Removes a dead version of a group.
    BURY_GROUP = "DELETE FROM directory_groups WHERE organization_id = ?1 AND id = ?2 AND valid_from = ?3";
    /// Removes dead memberships.
    BURY_MEMBERSHIPS = concat!("DELETE FROM directory_memberships WHERE organization_id = ?1 AND (group_id, user_id, valid_from) IN (SELECT m.group_id, m.user_id, m.valid_from FROM directory_memberships m WHERE m.organization_id = ?1 AND m.valid_to <= ", generation!(), " AND m.valid_to < 9007199254740991 LIMIT ?2)");
    /// Imports into which nothing arrived since an instant.
    ABANDONED = unscoped("the reconciler serves every organization") "SELECT organization_id, id FROM directory_imports WHERE state = 'open' AND updated_at < ?1 ORDER BY organization_id, id LIMIT 100";
    /// Finished imports that nobody asks about any more.
    OLD = unscoped("the reconciler serves every organization") "SELECT organization_id, id FROM directory_imports WHERE state IN ('applied', 'aborted') AND updated_at < ?1 ORDER BY organization_id, id LIMIT 20";
    /// Forgets the refused lines of an import.
    FORGET_REFUSALS = "DELETE FROM directory_import_refusals WHERE organization_id = ?1 AND import_id = ?2";
    /// Forgets an import whose names are forgotten.
    FORGET = "DELETE FROM directory_imports WHERE organization_id = ?1 AND id = ?2 AND NOT EXISTS (SELECT 1 FROM directory_import_names n WHERE n.organization_id = ?1 AND n.import_id = ?2)";
}

/// How far the marking of a replacing import has come.
#[derive(Clone, Copy, Debug, Default, serde::Serialize, serde::Deserialize)]
pub struct MarkProgress {
    /// Users up to this place are done.
    pub users: i64,
    /// Groups up to this place are done.
    pub groups: i64,
}

/// What one step of marking did.
#[derive(Default)]
pub struct MarkStep {
    /// Users that will go.
    pub users: u64,
    /// Groups that will go.
    pub groups: u64,
    /// Memberships that will go.
    pub memberships: u64,
    /// Nothing is left to do.
    pub is_done: bool,
}

/// Marks the next part of what the file does not name, so that it goes with the swap.
pub fn mark(ctx: &mut OperationContext<'_>, import: &Import, marked: &mut MarkProgress) -> Result<MarkStep> {
    let (org, generation) = (ctx.org(), import.generation);
    let (directory, opened, id) = (
        import.directory_id.as_str(),
        import.created_at,
        import.id.as_str(),
    );
    let last = ctx.query_opt(&LAST, params![org], |row| Ok((row.get(0)?, row.get(1)?)))?;
    let (last_user, last_group): (i64, i64) = last.unwrap_or((0, 0));
    let mut step = MarkStep::default();
    if marked.users < last_user {
        let (from, to) = (marked.users, marked.users + WINDOW);
        step.users = ctx.execute(
            &MARK_USERS,
            params![org, generation, directory, from, to, opened, id],
        )?;
        if step.users > 0 {
            step.memberships = ctx.execute(
                &MARK_USERS_MEMBERSHIPS,
                params![org, generation, directory, from, to],
            )?;
            ended::note_marked(ctx, "user", generation, directory, (from, to))?;
        }
        marked.users = to;
        return Ok(step);
    }
    if marked.groups < last_group {
        // Fewer at once: a group can have many memberships.
        let (from, to) = (marked.groups, marked.groups + WINDOW / 10);
        step.groups = ctx.execute(
            &MARK_GROUPS,
            params![org, generation, directory, from, to, opened, id],
        )?;
        if step.groups > 0 {
            ended::note_marked(ctx, "group", generation, directory, (from, to))?;
        }
        let ending = ctx.query(
            &MARKED_GROUPS,
            params![org, generation, directory, from, to],
            |row| row.get::<String>(0),
        )?;
        for group in ending {
            let ended = ctx.execute(
                &MARK_MEMBERSHIPS,
                params![org, group.as_str(), generation, WINDOW],
            )?;
            step.memberships += ended;
            if ended.cast_signed() >= WINDOW || step.memberships.cast_signed() >= WINDOW {
                // The same groups again in the next step, which finds fewer memberships.
                return Ok(step);
            }
        }
        marked.groups = to;
        return Ok(step);
    }
    step.is_done = true;
    Ok(step)
}

/// Undoes the next part of a staging; says whether nothing is left of it.
pub fn undo(ctx: &mut OperationContext<'_>, generation: i64) -> Result<bool> {
    let (org, mut is_done) = (ctx.org(), true);
    for statement in [
        &UNDO_MEMBERSHIPS,
        &KEEP_MEMBERSHIPS,
        &UNDO_USERS,
        &KEEP_USERS,
        &UNDO_GROUPS,
        &KEEP_GROUPS,
    ] {
        is_done &= ctx
            .execute(statement, params![org, generation, STEP])?
            .cast_signed()
            < STEP;
    }
    Ok(is_done)
}

/// A record that a swap ended or suspended.
pub enum SwappedRecord {
    /// A user that is no longer there, with its words.
    User(UserId, Vec<String>),
    /// A user that a file suspended.
    Suspended(UserId),
    /// A group that is no longer there, with its name.
    Group(GroupId, String),
}

/// See [`COUNT_AFRESH`]. The last statement of a unit: it may take as long as the unit has.
pub fn count_afresh(ctx: &mut OperationContext<'_>) -> Result<()> {
    ctx.query_opt(&COUNT_AFRESH, params![], |_| Ok(())).map(drop)
}

/// Removes the next part of what is dead, and the names of a finished import. Returns what became of records, and
/// whether nothing is left.
pub fn clear(ctx: &mut OperationContext<'_>, import: &ImportId) -> Result<(Vec<SwappedRecord>, bool)> {
    let (org, mut ended) = (ctx.org(), Vec::new());
    let limit = i64::try_from(DEAD_STEP).map_err(Error::internal)?;
    let names = ctx.execute(&FORGET_NAMES, params![org, import.as_str(), STEP])?;
    let users = ctx.query(&DEAD_USERS, params![org, limit], |row| {
        let id = UserId::from_store(row.get(0)?);
        let (was, is) = (row.get::<String>(2)?, row.get::<Option<String>>(3)?);
        let by_import = row.get::<Option<String>>(4)?.as_deref() == Some("import");
        match is.as_deref() {
            None => {
                let words = [Some(row.get(5)?), row.get(6)?];
                ended.push(SwappedRecord::User(
                    id.clone(),
                    words.into_iter().flatten().collect(),
                ));
            }
            Some("suspended") if was == "active" && by_import => {
                ended.push(SwappedRecord::Suspended(id.clone()));
            }
            Some(_) => {}
        }
        Ok((id, row.get::<i64>(1)?))
    })?;
    for record in &ended {
        if let SwappedRecord::User(id, _) = record {
            words::end_user(ctx, id.as_str())?;
        }
    }
    for (id, from) in &users {
        ctx.queue(&BURY_USER, params![org, id.as_str(), *from])?;
    }
    let groups = ctx.query(&DEAD_GROUPS, params![org, limit], |row| {
        let id = GroupId::from_store(row.get(0)?);
        if row.get::<Option<String>>(2)?.is_none() {
            ended.push(SwappedRecord::Group(id.clone(), row.get(3)?));
        }
        Ok((id, row.get::<i64>(1)?))
    })?;
    for record in &ended {
        if let SwappedRecord::Group(id, _) = record {
            words::end_group(ctx, id.as_str())?;
        }
    }
    for (id, from) in &groups {
        ctx.queue(&BURY_GROUP, params![org, id.as_str(), *from])?;
    }
    // Behind the users: what those were in who go is noted when they go (WD-6).
    let memberships = if users.is_empty() {
        ctx.execute(&BURY_MEMBERSHIPS, params![org, STEP])?
    } else {
        STEP.cast_unsigned()
    };
    let rows = [names.cast_signed(), memberships.cast_signed()];
    let dead = [users.len(), groups.len()];
    let is_done = rows.iter().all(|count| *count < STEP) && dead.iter().all(|count| *count < DEAD_STEP);
    Ok((ended, is_done))
}

/// Returns the open imports into which nothing arrived since an instant.
pub fn abandoned(tx: &mut Tx<'_>, before: Timestamp) -> Result<Vec<(OrganizationId, ImportId)>> {
    tx.query(&ABANDONED, params![before], |row| {
        Ok((
            OrganizationId::from_store(row.get(0)?),
            ImportId::from_store(row.get(1)?),
        ))
    })
}

/// Returns finished imports that nobody asks about any more.
pub fn old(tx: &mut Tx<'_>, before: Timestamp) -> Result<Vec<(OrganizationId, ImportId)>> {
    tx.query(&OLD, params![before], |row| {
        Ok((
            OrganizationId::from_store(row.get(0)?),
            ImportId::from_store(row.get(1)?),
        ))
    })
}

/// Forgets a finished import that ended before an undoubted instant.
pub fn forget(ctx: &mut OperationContext<'_>, import: &ImportId, _before: SureTime) -> Result<()> {
    let org = ctx.org();
    ctx.queue(&FORGET_NAMES, params![org, import.as_str(), STEP])?;
    ctx.queue(&FORGET_REFUSALS, params![org, import.as_str()])?;
    held::delete_of_import(ctx, import)?;
    clashes::forget_warnings(ctx, import)?;
    ctx.queue(&FORGET, params![org, import.as_str()])
}
