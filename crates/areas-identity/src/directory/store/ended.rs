//! Who deleted users and groups were, so that they get their ids back when they come back (DI-11).

use super::list_256;
use super::padded;
use super::{generation, live};
use provost_kernel::auth::OrganizationId;
use provost_kernel::context::PRUNED_ROWS;
use provost_kernel::db::{Param, Row, Tx};
use provost_kernel::{OperationContext, Result, SureTime, Timestamp, params, statements};

/// How long a deleted record has its id for it. Units: seconds.
pub const KEPT_SECS: i64 = 90 * 86_400;
const LIST: usize = 256;

/// The ended records of a kind `?259` and a directory `?258` whose `$column` is in the list, which ended at `?260` or later
/// and are not there.
macro_rules! ended {
    ($column:literal) => {
        concat!(
            "SELECT e.kind, e.id, e.directory_id, e.name, e.name_key, e.external_id, e.suspended_at, e.ended_at FROM directory_ended e WHERE e.organization_id = ?1 AND e.",
            $column,
            " IN (",
            list_256!(),
            ") AND e.directory_id = ?258 AND e.kind = ?259 AND e.ended_at >= ?260 AND NOT EXISTS (SELECT 1 FROM directory_users u WHERE u.organization_id = ?1 AND u.id = e.id AND ",
            live!("u"),
            ") AND NOT EXISTS (SELECT 1 FROM directory_groups g WHERE g.organization_id = ?1 AND g.id = e.id AND ",
            live!("g"),
            ") ORDER BY e.ended_at, e.id"
        )
    };
}

statements! {
    /// Notes who a record was that ends now.
    NOTE = "INSERT INTO directory_ended (organization_id, kind, id, directory_id, name, name_key, external_id, \
        suspended_at, ended_at) \
        VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9) \
        ON CONFLICT (organization_id, kind, id) DO UPDATE \
        SET directory_id = excluded.directory_id, name = excluded.name, name_key = excluded.name_key, \
        external_id = excluded.external_id, suspended_at = excluded.suspended_at, ended_at = excluded.ended_at";
    /// Notes who the users among these places were that end with the swap.
    NOTE_MARKED_USERS = "\
        INSERT INTO directory_ended (organization_id, kind, id, directory_id, name, name_key, external_id, \
        suspended_at, ended_at) \
        SELECT u.organization_id, 'user', u.id, u.directory_id, u.login_name, u.name_key, u.external_id, CASE \
        WHEN u.suspended_by = 'api' THEN u.suspended_at ELSE CAST(NULL AS BIGINT) END, CAST(?6 AS BIGINT) \
        FROM directory_users u \
        WHERE u.organization_id = ?1 AND u.directory_id = ?3 AND u.seq > ?4 AND u.seq <= ?5 \
        AND u.valid_to = ?2 \
        AND NOT EXISTS (SELECT 1 FROM directory_users s WHERE s.organization_id = ?1 AND s.id = u.id \
        AND s.valid_from = ?2) \
        ON CONFLICT (organization_id, kind, id) DO UPDATE \
        SET directory_id = excluded.directory_id, name = excluded.name, name_key = excluded.name_key, \
        external_id = excluded.external_id, suspended_at = excluded.suspended_at, ended_at = excluded.ended_at";
    /// Notes who the groups among these places were that end with the swap.
    NOTE_MARKED_GROUPS = "\
        INSERT INTO directory_ended (organization_id, kind, id, directory_id, name, name_key, external_id, \
        suspended_at, ended_at) \
        SELECT g.organization_id, 'group', g.id, g.directory_id, g.name, g.name_key, g.external_id, \
        CAST(NULL AS BIGINT), CAST(?6 AS BIGINT) \
        FROM directory_groups g \
        WHERE g.organization_id = ?1 AND g.directory_id = ?3 AND g.seq > ?4 AND g.seq <= ?5 \
        AND g.valid_to = ?2 \
        AND NOT EXISTS (SELECT 1 FROM directory_groups s WHERE s.organization_id = ?1 AND s.id = g.id \
        AND s.valid_from = ?2) \
        ON CONFLICT (organization_id, kind, id) DO UPDATE \
        SET directory_id = excluded.directory_id, name = excluded.name, name_key = excluded.name_key, \
        external_id = excluded.external_id, suspended_at = excluded.suspended_at, ended_at = excluded.ended_at";
    /// The ended records of these names.
    NAMED = ended!("name_key");
    /// The ended records of these ids in their directory.
    EXTERNAL = ended!("external_id");
    /// Whether versions of a user await removal.
    DEAD_USER = concat!("SELECT u.id FROM directory_users u WHERE u.organization_id = ?1 AND u.id = ?2 AND u.valid_to <= ", generation!(), " ORDER BY u.id LIMIT 1");
    /// Whether versions of a group await removal.
    DEAD_GROUP = concat!("SELECT g.id FROM directory_groups g WHERE g.organization_id = ?1 AND g.id = ?2 AND g.valid_to <= ", generation!(), " ORDER BY g.id LIMIT 1");
    /// Organizations with records that ended too long ago.
    OLD = unscoped("the reconciler serves every organization") "SELECT DISTINCT organization_id FROM directory_ended WHERE ended_at < ?1 ORDER BY organization_id LIMIT 20";
    /// Forgets records that ended too long ago.
    FORGET = "DELETE FROM directory_ended WHERE organization_id = ?1 AND (kind, id) IN (SELECT e.kind, e.id FROM directory_ended e WHERE e.organization_id = ?1 AND e.ended_at < ?2 ORDER BY e.ended_at, e.kind, e.id LIMIT ?3)";
}

/// A user or group that was deleted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeletedRecord {
    /// `user` or `group`.
    pub kind: &'static str,
    /// Its id.
    pub id: String,
    /// Where it came from.
    pub directory_id: String,
    /// Its name.
    pub name: String,
    /// Its folded name.
    pub name_key: String,
    /// Its id in the directory.
    pub external_id: Option<String>,
    /// When the API suspended it, if it did and nothing lifted that.
    pub suspended_at: Option<Timestamp>,
    /// When it ended.
    pub ended_at: Timestamp,
}

fn read(kind: &'static str) -> impl FnMut(&Row<'_>) -> Result<DeletedRecord> {
    move |row| {
        Ok(DeletedRecord {
            kind,
            id: row.get(1)?,
            directory_id: row.get(2)?,
            name: row.get(3)?,
            name_key: row.get(4)?,
            external_id: row.get(5)?,
            suspended_at: row.get(6)?,
            ended_at: row.get(7)?,
        })
    }
}

/// Notes who a record was that ends now.
pub fn note(ctx: &mut OperationContext<'_>, ended: &DeletedRecord) -> Result<()> {
    let org = ctx.org();
    ctx.queue(
        &NOTE,
        params![
            org,
            ended.kind,
            ended.id.as_str(),
            ended.directory_id.as_str(),
            ended.name.as_str(),
            ended.name_key.as_str(),
            ended.external_id.as_deref(),
            ended.suspended_at,
            ended.ended_at,
        ],
    )
}

/// The records of a kind that ended in a directory within [`KEPT_SECS`], for what is asked for.
#[derive(Debug, Default)]
pub struct EndedRecords(Vec<DeletedRecord>);

impl EndedRecords {
    /// Returns the records that could come back under these folded names and ids of the directory.
    pub fn load(
        ctx: &mut OperationContext<'_>,
        kind: &'static str,
        directory: &str,
        names: &[&str],
        external: &[&str],
    ) -> Result<Self> {
        let (org, since) = (ctx.org(), ctx.now().plus_secs(-KEPT_SECS));
        let behind = [Param::from(directory), Param::from(kind), Param::from(since)];
        let mut found = Vec::new();
        for (statement, list) in [(&NAMED, names), (&EXTERNAL, external)] {
            for part in list.chunks(LIST) {
                found.extend(ctx.query(statement, &padded(org, part, LIST, &behind), read(kind))?);
            }
        }
        Ok(Self(found))
    }

    /// Takes out the record that comes back under a folded name and an id of its directory: the one of that id, or the
    /// one of the name where neither has an id; of several the one that ended last.
    ///
    /// INVARIANT DI-11: where both have an id and the ids differ, it is somebody else.
    pub fn take(&mut self, name_key: &str, external_id: Option<&str>) -> Option<DeletedRecord> {
        let comes_back = |ended: &DeletedRecord| match external_id {
            Some(_) => ended.external_id.as_deref() == external_id,
            None => ended.external_id.is_none() && ended.name_key == name_key,
        };
        let fitting = self.0.iter().filter(|ended| comes_back(ended));
        let latest = fitting.max_by_key(|ended| ended.ended_at)?.clone();
        self.0.retain(|ended| ended.id != latest.id);
        Some(latest)
    }
}

/// Says whether an ended record has versions that await removal.
pub fn awaits_removal(ctx: &mut OperationContext<'_>, ended: &DeletedRecord) -> Result<bool> {
    let (org, id) = (ctx.org(), ended.id.as_str());
    let statement = if ended.kind == "user" {
        &DEAD_USER
    } else {
        &DEAD_GROUP
    };
    Ok(ctx.query_opt(statement, params![org, id], |_| Ok(()))?.is_some())
}

/// Notes who the users, or the groups, among these places of a list were that end with the swap.
pub fn note_marked(
    ctx: &mut OperationContext<'_>,
    kind: &'static str,
    generation: i64,
    directory: &str,
    (from, to): (i64, i64),
) -> Result<()> {
    let (org, now) = (ctx.org(), ctx.now());
    let statement = if kind == "user" {
        &NOTE_MARKED_USERS
    } else {
        &NOTE_MARKED_GROUPS
    };
    ctx.queue(statement, params![org, generation, directory, from, to, now])
}

/// Returns organizations with records that ended before an instant.
pub fn old(tx: &mut Tx<'_>, before: Timestamp) -> Result<Vec<OrganizationId>> {
    tx.query(&OLD, params![before], |row| {
        Ok(OrganizationId::from_store(row.get(0)?))
    })
}

/// Forgets the records that ended before an instant.
pub fn forget(ctx: &mut OperationContext<'_>, before: SureTime) -> Result<()> {
    let org = ctx.org();
    ctx.prune(&FORGET, params![org, before.instant(), PRUNED_ROWS])
}
