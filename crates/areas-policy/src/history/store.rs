//! All SQL of the area.
//!
//! Keeps HS-2, HS-6.

use super::model::{ChunkId, SegmentId};
use super::seen_values::SeenValue;
use super::sources::{SourceKind, SourceRow};
use provost_areas_platform::removal::Removal;
use provost_kernel::auth::OrganizationId;
use provost_kernel::context::PRUNED_ROWS;
use provost_kernel::db::{Row, Tx};
use provost_kernel::{OperationContext, Result, SureTime, Timestamp, params};

provost_kernel::statements! {
    /// Adds a chunk behind the newest one; one that a lost commit left is there already.
    ADD_CHUNK = "INSERT INTO history_chunks (organization_id, sequence, id, schema_version, event_count, min_at, \
        max_at, size_bytes, created_at, content) \
        SELECT ?1, COALESCE((SELECT h.sequence FROM history_heads h WHERE h.organization_id = ?1), 0) + 1, \
        ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9 \
        WHERE TRUE \
        ON CONFLICT (organization_id, id) DO NOTHING";
    /// Says which chunk is the newest.
    SET_HEAD = "INSERT INTO history_heads (organization_id, sequence, event_number) \
        SELECT c.organization_id, c.sequence, ?3 \
        FROM history_chunks c \
        WHERE c.organization_id = ?1 AND c.id = ?2 \
        ON CONFLICT (organization_id) DO UPDATE \
        SET sequence = CASE WHEN history_heads.sequence < excluded.sequence THEN excluded.sequence \
        ELSE history_heads.sequence END, event_number = CASE \
        WHEN history_heads.event_number < excluded.event_number THEN excluded.event_number \
        ELSE history_heads.event_number END";
    /// The chunks and segments that overlap a window.
    SOURCES = "SELECT 'chunk', c.id, c.id, c.schema_version, c.event_count, c.min_at, c.max_at, c.size_bytes, '' \
        FROM history_chunks c \
        WHERE c.organization_id = ?1 AND c.segment_id IS NULL AND c.max_at >= ?2 AND c.min_at < ?3 \
        UNION ALL \
        SELECT 'segment', s.id, s.name, 0, s.event_count, s.min_at, s.max_at, s.size_bytes, s.digest \
        FROM history_segments s \
        WHERE s.organization_id = ?1 AND s.state = 'sealed' AND s.max_at >= ?2 AND s.min_at < ?3";
    /// The contents of chunks after a number.
    AFTER = "SELECT sequence, event_count, content FROM history_chunks WHERE organization_id = ?1 AND sequence > ?2 ORDER BY sequence LIMIT 64";
    /// The number of the newest chunk.
    HEAD = "SELECT sequence FROM history_heads WHERE organization_id = ?1";
    /// The greatest number under which an event was accepted (HS-9).
    NUMBER = "SELECT event_number FROM history_heads WHERE organization_id = ?1";
    /// The content of a chunk.
    CONTENT = "SELECT content FROM history_chunks WHERE organization_id = ?1 AND id = ?2";
    /// Sums of what counts.
    STATUS = "SELECT COUNT(*), CAST(COALESCE(SUM(event_count), 0) AS BIGINT), MIN(min_at), MAX(max_at), \
        CAST(COALESCE(SUM(size_bytes), 0) AS BIGINT) \
        FROM history_chunks \
        WHERE organization_id = ?1 AND segment_id IS NULL \
        UNION ALL \
        SELECT COUNT(*), CAST(COALESCE(SUM(event_count), 0) AS BIGINT), MIN(min_at), MAX(max_at), \
        CAST(COALESCE(SUM(size_bytes), 0) AS BIGINT) \
        FROM history_segments \
        WHERE organization_id = ?1 AND state = 'sealed'";
    /// The number of the last chunk whose values were counted.
    COUNTED = "SELECT sequence, since_day FROM history_value_heads WHERE organization_id = ?1";
    /// Notes that number.
    SET_COUNTED = "INSERT INTO history_value_heads (organization_id, sequence, since_day) VALUES (?1, ?2, ?3) ON CONFLICT (organization_id) DO UPDATE SET sequence = excluded.sequence";
    /// How many values of an attribute a day has.
    VALUES_OF_DAY = "SELECT COUNT(*) FROM history_values WHERE organization_id = ?1 AND day = ?2 AND field = ?3";
    /// Adds to what a day has.
    RAISE_VALUE = "UPDATE history_values SET event_count = event_count + ?5 WHERE organization_id = ?1 AND day = ?2 AND field = ?3 AND value_key = ?4";
    /// Adds a value that a day does not have yet.
    ADD_VALUE = "INSERT INTO history_values (organization_id, day, field, value_key, value, event_count) VALUES (?1, ?2, ?3, ?4, ?5, ?6)";
    /// Forgets old days.
    FORGET_VALUES = "DELETE FROM history_values WHERE organization_id = ?1 AND (day, field, value_key) IN (SELECT v.day, v.field, v.value_key FROM history_values v WHERE v.organization_id = ?1 AND v.day < ?2 ORDER BY v.day, v.field, v.value_key LIMIT ?3)";
    /// The sums of the days since.
    SEEN_SINCE = "SELECT field, value_key, MIN(value), CAST(SUM(event_count) AS BIGINT) FROM history_values WHERE organization_id = ?1 AND day >= ?2 GROUP BY field, value_key ORDER BY CAST(SUM(event_count) AS BIGINT) DESC, field, value_key LIMIT 8000";
    /// What came of an import.
    IMPORT = "SELECT outcome FROM history_imports WHERE organization_id = ?1 AND source = ?2 AND sha256 = ?3";
    /// Remembers an import, unless it is known.
    ADD_IMPORT = "INSERT INTO history_imports (organization_id, source, sha256, outcome, created_at, principal_id, line_count, event_count, refused_count) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9) ON CONFLICT DO NOTHING";
    /// Whose imports from where, in which hours that are over, no audit entry names yet.
    UNTOLD = unscoped("the audit log is told of every organization's imports") "\
        SELECT organization_id, principal_id, source, created_at / 3600000 \
        FROM history_imports \
        WHERE told_at IS NULL AND created_at < ?1 \
        GROUP BY organization_id, principal_id, source, created_at / 3600000 \
        ORDER BY organization_id, principal_id, source, created_at / 3600000 LIMIT 100";
    /// Those imports.
    UNTOLD_BODIES = "SELECT sha256, line_count, event_count, refused_count FROM history_imports WHERE organization_id = ?1 AND principal_id = ?2 AND source = ?3 AND created_at >= ?4 AND created_at < ?5 AND told_at IS NULL ORDER BY created_at, sha256";
    /// Notes that an audit entry names them.
    TELL = "UPDATE history_imports SET told_at = ?6 WHERE organization_id = ?1 AND principal_id = ?2 AND source = ?3 AND created_at >= ?4 AND created_at < ?5 AND told_at IS NULL";
    /// How much waits to be sealed, by organization.
    WAITING = unscoped("the sealer works for every organization") "SELECT organization_id, COUNT(*), CAST(SUM(event_count) AS BIGINT), MIN(created_at) FROM history_chunks WHERE segment_id IS NULL GROUP BY organization_id ORDER BY organization_id";
    /// The oldest chunks that are not sealed.
    UNSEALED = "SELECT sequence, id FROM history_chunks WHERE organization_id = ?1 AND segment_id IS NULL ORDER BY sequence LIMIT ?2";
    /// Claims the right to seal for an organization; nobody else has it.
    CLAIM = "INSERT INTO history_segments (organization_id, id, name, state, event_count, min_at, max_at, size_bytes, created_at, updated_at) SELECT ?1, ?2, ?3, 'writing', 0, 0, 0, 0, ?4, ?4 WHERE NOT EXISTS (SELECT 1 FROM history_segments s WHERE s.organization_id = ?1 AND s.state = 'writing')";
    /// Makes a segment count, if its writer still has the claim.
    SEALED = "UPDATE history_segments SET state = 'sealed', event_count = ?3, min_at = ?4, max_at = ?5, size_bytes = ?6, digest = ?7, updated_at = ?8 WHERE organization_id = ?1 AND id = ?2 AND state = 'writing'";
    /// Makes chunks count no more.
    COVER = "UPDATE history_chunks SET segment_id = ?4, sealed_at = ?5 WHERE organization_id = ?1 AND sequence >= ?2 AND sequence <= ?3 AND segment_id IS NULL";
    /// Gives up a segment that is being written.
    ABANDON = "UPDATE history_segments SET state = 'removing', updated_at = ?3 WHERE organization_id = ?1 AND id = ?2 AND state = 'writing'";
    /// Gives up segments whose writers are overdue.
    ABANDON_OVERDUE = "UPDATE history_segments SET state = 'removing', updated_at = ?3 WHERE organization_id = ?1 AND state = 'writing' AND updated_at < ?2";
    /// Organizations that have history.
    ORGANIZATIONS = unscoped("upkeep works for every organization") "SELECT organization_id FROM history_heads ORDER BY organization_id";
    /// How many events are too old and newer than what was released, and how many are not too old.
    OLD = "SELECT CAST(COALESCE(SUM(CASE WHEN h.max_at < ?2 AND h.max_at >= ?3 THEN h.event_count ELSE 0 END), \
        0) AS BIGINT), CAST(COALESCE(SUM(CASE WHEN h.max_at >= ?2 THEN h.event_count ELSE 0 END), \
        0) AS BIGINT) \
        FROM (SELECT c.max_at, c.event_count FROM history_chunks c WHERE c.organization_id = ?1 \
        AND c.segment_id IS NULL UNION ALL SELECT s.max_at, s.event_count FROM history_segments s \
        WHERE s.organization_id = ?1 AND s.state = 'sealed') AS h";
    /// Gives up segments whose newest event is too old.
    EXPIRE_SEGMENTS = "UPDATE history_segments SET state = 'removing', updated_at = ?3 WHERE organization_id = ?1 AND id IN (SELECT s.id FROM history_segments s WHERE s.organization_id = ?1 AND s.state = 'sealed' AND s.max_at < ?2 ORDER BY s.max_at, s.id LIMIT ?4)";
    /// Segments whose files are to be removed.
    REMOVABLE = "SELECT id, name FROM history_segments WHERE organization_id = ?1 AND state = 'removing' AND updated_at < ?2 ORDER BY id LIMIT 100";
    /// Forgets a segment whose file is gone.
    FORGET_SEGMENT = "DELETE FROM history_segments WHERE organization_id = ?1 AND id = ?2 AND state = 'removing'";
    /// Segments that have stood for chunks long enough, while the chunks are still there.
    STANDING = "SELECT DISTINCT s.id, s.name, s.size_bytes, s.digest FROM history_chunks c JOIN history_segments s ON s.organization_id = c.organization_id AND s.id = c.segment_id WHERE c.organization_id = ?1 AND c.segment_id IS NOT NULL AND c.sealed_at < ?2 AND s.state = 'sealed' ORDER BY s.id";
    /// Chunks of a segment.
    CHUNKS_OF = "SELECT sequence FROM history_chunks WHERE organization_id = ?1 AND segment_id = ?2 ORDER BY sequence LIMIT 200";
    /// Chunks whose newest event is too old, and chunks of segments that are given up.
    GONE_CHUNKS = "SELECT c.sequence \
        FROM history_chunks c \
        WHERE c.organization_id = ?1 \
        AND ((c.segment_id IS NULL AND c.max_at < ?3) \
        OR (c.segment_id IS NOT NULL AND c.sealed_at < ?2 AND NOT \
        EXISTS (SELECT 1 FROM history_segments s WHERE s.organization_id = ?1 AND s.id = c.segment_id \
        AND s.state = 'sealed'))) \
        ORDER BY c.sequence LIMIT 200";
    /// Removes a chunk that does not wait to be sealed while somebody seals.
    DELETE_CHUNK = "DELETE FROM history_chunks WHERE organization_id = ?1 AND sequence = ?2 AND (segment_id IS NOT NULL OR NOT EXISTS (SELECT 1 FROM history_segments s WHERE s.organization_id = ?1 AND s.state = 'writing'))";
    /// Forgets imports.
    DELETE_IMPORTS = "DELETE FROM history_imports WHERE organization_id = ?1 AND (source, sha256) IN (SELECT i.source, i.sha256 FROM history_imports i WHERE i.organization_id = ?1 AND i.created_at < ?2 AND i.told_at IS NOT NULL ORDER BY i.created_at, i.source, i.sha256 LIMIT ?3)";
    /// The names of every segment, whatever its state.
    NAMES = unscoped("a place holds every organization's") "SELECT name FROM history_segments ORDER BY organization_id, id";
    /// The chunks of a segment that are still there.
    KEPT = "SELECT id, schema_version, event_count, min_at, max_at, size_bytes FROM history_chunks WHERE organization_id = ?1 AND segment_id = ?2 ORDER BY sequence";
    /// Every file that a backup takes along.
    FILES = unscoped("a backup takes every organization") "SELECT organization_id, name, size_bytes, digest FROM history_segments WHERE state = 'sealed' ORDER BY organization_id, id";
}

/// Milliseconds in an hour.
pub(super) const HOUR_MS: i64 = 3_600_000;

/// A chunk that is ready to be stored.
#[derive(Debug)]
pub(super) struct NewChunk {
    pub id: ChunkId,
    pub summary: provost_history::chunk::Summary,
    /// The greatest number under which one of its events was accepted (HS-9).
    pub last_number: i64,
    pub content: Vec<u8>,
}

/// Stores a chunk behind the newest one (HS-6).
pub(super) fn add_chunk(ctx: &mut OperationContext<'_>, chunk: &NewChunk) -> Result<()> {
    let (org, now, summary) = (ctx.org(), ctx.now(), &chunk.summary);
    ctx.queue(
        &ADD_CHUNK,
        params![
            org,
            chunk.id.as_str(),
            summary.schema_version,
            summary.rows,
            summary.min_at,
            summary.max_at,
            size(chunk.content.len()),
            now,
            &chunk.content,
        ],
    )?;
    ctx.queue(&SET_HEAD, params![org, chunk.id.as_str(), chunk.last_number])
}

/// Returns the number for a column.
pub(super) fn size(bytes: usize) -> i64 {
    i64::try_from(bytes).unwrap_or(i64::MAX)
}

/// Returns the chunks and segments whose events lie in `from <= instant < to`, or some of them, from the database alone.
///
/// Units: milliseconds since the Unix epoch.
pub fn sources(tx: &mut Tx<'_>, org: &str, from: i64, to: i64) -> Result<Vec<SourceRow>> {
    tx.query(&SOURCES, params![org, from, to], |row| {
        Ok(SourceRow {
            kind: if row.str(0)? == "chunk" {
                SourceKind::Chunk
            } else {
                SourceKind::Segment
            },
            id: row.get(1)?,
            name: row.get(2)?,
            schema_version: count(row, 3)?,
            rows: count(row, 4)?,
            min_at: row.get(5)?,
            max_at: row.get(6)?,
            size_bytes: row.get(7)?,
            digest: row.get(8)?,
        })
    })
}

fn count(row: &Row<'_>, place: usize) -> Result<u32> {
    u32::try_from(row.get::<i64>(place)?).map_err(provost_kernel::Error::internal)
}

/// A chunk as it was committed.
#[derive(Clone, Debug)]
pub struct LiveChunk {
    /// Its number.
    pub sequence: i64,
    /// How many events it holds.
    pub rows: u32,
    /// The bytes of `provost_history::chunk`.
    pub content: Vec<u8>,
}

/// Returns the next chunks after this number, sealed or not, in the order of their commits; none when there is no
/// newer one. LIMIT: 64 at once; ask again with the last one's number.
pub fn chunks_after(tx: &mut Tx<'_>, org: &str, sequence: i64) -> Result<Vec<LiveChunk>> {
    tx.query(&AFTER, params![org, sequence], |row| {
        Ok(LiveChunk {
            sequence: row.get(0)?,
            rows: count(row, 1)?,
            content: row.get(2)?,
        })
    })
}

/// Returns the number of the last chunk whose values were counted and the day of the first count, if there was one.
pub(super) fn counted(tx: &mut Tx<'_>, org: &str) -> Result<Option<(i64, i64)>> {
    tx.query_opt(&COUNTED, params![org], |row| Ok((row.get(0)?, row.get(1)?)))
}

/// Notes that number; the day is kept of the first time.
pub(super) fn set_counted(ctx: &mut OperationContext<'_>, sequence: i64, today: i64) -> Result<()> {
    let org = ctx.org();
    ctx.execute(&SET_COUNTED, params![org, sequence, today]).map(drop)
}

/// Returns how many values of an attribute a day has.
pub(super) fn values_of_day(ctx: &mut OperationContext<'_>, day: i64, field: &str) -> Result<usize> {
    let org = ctx.org();
    let count = ctx
        .tx()
        .query_opt(&VALUES_OF_DAY, params![org, day, field], |row| row.get::<i64>(0))?;
    usize::try_from(count.unwrap_or(0)).map_err(provost_kernel::Error::internal)
}

/// Adds to how many events of a day had a value; a day that is full takes no new one. Says whether the value is new.
pub(super) fn add_value(
    ctx: &mut OperationContext<'_>,
    day: i64,
    field: &str,
    (key, value): (&str, &str),
    events: i64,
    is_full: bool,
) -> Result<bool> {
    let org = ctx.org();
    if ctx.execute(&RAISE_VALUE, params![org, day, field, key, events])? > 0 || is_full {
        return Ok(false);
    }
    ctx.execute(&ADD_VALUE, params![org, day, field, key, value, events])?;
    Ok(true)
}

/// Forgets some of the days before one; the next count forgets more.
pub(super) fn forget_values(ctx: &mut OperationContext<'_>, day: i64) -> Result<()> {
    let org = ctx.org();
    ctx.prune(&FORGET_VALUES, params![org, day, PRUNED_ROWS])
}

/// Returns the values of the days since, with their attributes, the most frequent first.
pub(super) fn seen_since(tx: &mut Tx<'_>, org: &str, day: i64) -> Result<Vec<(String, SeenValue)>> {
    tx.query(&SEEN_SINCE, params![org, day], |row| {
        let seen = SeenValue {
            key: row.get(1)?,
            value: row.get(2)?,
            events: row.get(3)?,
        };
        Ok((row.get(0)?, seen))
    })
}

/// Returns the number of the newest chunk; 0 before the first one.
pub fn last_chunk(tx: &mut Tx<'_>, org: &str) -> Result<i64> {
    let last = tx.query_opt(&HEAD, params![org], |row| row.get(0))?;
    Ok(last.unwrap_or(0))
}

/// Returns the greatest number under which an event was accepted; 0 before the first.
pub(super) fn last_number(tx: &mut Tx<'_>, org: &str) -> Result<i64> {
    let last = tx.query_opt(&NUMBER, params![org], |row| row.get(0))?;
    Ok(last.unwrap_or(0))
}

/// Returns the bytes of a chunk, if it is there.
pub(super) fn content(tx: &mut Tx<'_>, org: &str, id: &str) -> Result<Option<Vec<u8>>> {
    tx.query_opt(&CONTENT, params![org, id], |row| row.get(0))
}

/// Sums over the chunks, or over the segments, that count.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Sums {
    pub count: i64,
    pub events: i64,
    pub min_at: Option<i64>,
    pub max_at: Option<i64>,
    pub bytes: i64,
}

/// Returns the sums over chunks and over segments.
pub(super) fn status(tx: &mut Tx<'_>, org: &str) -> Result<[Sums; 2]> {
    let found = tx.query(&STATUS, params![org], |row| {
        Ok(Sums {
            count: row.get(0)?,
            events: row.get(1)?,
            min_at: row.get(2)?,
            max_at: row.get(3)?,
            bytes: row.get(4)?,
        })
    })?;
    let mut sums = [Sums::default(); 2];
    sums.iter_mut().zip(found).for_each(|(to, from)| *to = from);
    Ok(sums)
}

/// Returns what came of an import, if there was one.
pub(super) fn import(tx: &mut Tx<'_>, org: &str, source: &str, sha256: &str) -> Result<Option<String>> {
    tx.query_opt(&IMPORT, params![org, source, sha256], |row| row.get(0))
}

/// Remembers what came of an import; says whether it was not known (HS-5).
pub(super) fn add_import(
    ctx: &mut OperationContext<'_>,
    source: &str,
    sha256: &str,
    outcome: &str,
    principal: &str,
    [lines, events, refused]: [i64; 3],
) -> Result<bool> {
    let (org, now) = (ctx.org(), ctx.now());
    let added = ctx.execute(
        &ADD_IMPORT,
        params![
            org, source, sha256, outcome, now, principal, lines, events, refused
        ],
    )?;
    Ok(added == 1)
}

/// Imports of one principal from one source within one hour, which no audit entry names yet.
#[derive(Clone, Debug)]
pub(super) struct UnreportedImports {
    pub organization: OrganizationId,
    pub principal: String,
    pub source: String,
    /// Hours since the Unix epoch.
    pub hour: i64,
}

impl UnreportedImports {
    fn span(&self) -> (i64, i64) {
        (self.hour * HOUR_MS, (self.hour + 1) * HOUR_MS)
    }
}

/// An import as the audit log names it.
pub(super) struct UntoldBody {
    pub sha256: String,
    pub lines: i64,
    pub events: i64,
    pub refused: i64,
}

/// Returns some of the imports before this instant that no audit entry names yet, by whom, from where and in which hour.
pub(super) fn untold(tx: &mut Tx<'_>, before: Timestamp) -> Result<Vec<UnreportedImports>> {
    tx.query(&UNTOLD, params![before], |row| {
        Ok(UnreportedImports {
            organization: OrganizationId::from_store(row.get(0)?),
            principal: row.get(1)?,
            source: row.get(2)?,
            hour: row.get(3)?,
        })
    })
}

/// Returns the bodies of these imports that no audit entry names yet, in the order in which they came, and notes that
/// one does now.
pub(super) fn tell(ctx: &mut OperationContext<'_>, untold: &UnreportedImports) -> Result<Vec<UntoldBody>> {
    let (org, now, (from, to)) = (ctx.org(), ctx.now(), untold.span());
    let (principal, source) = (untold.principal.as_str(), untold.source.as_str());
    let bodies = ctx.query(&UNTOLD_BODIES, params![org, principal, source, from, to], |row| {
        Ok(UntoldBody {
            sha256: row.get(0)?,
            lines: row.get(1)?,
            events: row.get(2)?,
            refused: row.get(3)?,
        })
    })?;
    ctx.execute(&TELL, params![org, principal, source, from, to, now])?;
    Ok(bodies)
}

/// What of an organization waits to be sealed.
#[derive(Clone, Debug)]
pub(super) struct SealBacklog {
    pub organization: OrganizationId,
    pub chunks: i64,
    pub events: i64,
    pub oldest: Timestamp,
}

/// Returns what waits to be sealed, of every organization.
pub(super) fn waiting(tx: &mut Tx<'_>) -> Result<Vec<SealBacklog>> {
    tx.query(&WAITING, params![], |row| {
        Ok(SealBacklog {
            organization: OrganizationId::from_store(row.get(0)?),
            chunks: row.get(1)?,
            events: row.get(2)?,
            oldest: row.get(3)?,
        })
    })
}

/// A chunk that waits to be sealed.
#[derive(Clone, Debug)]
pub(super) struct UnsealedChunk {
    pub sequence: i64,
    pub id: String,
}

/// Returns the oldest chunks that are not sealed.
pub(super) fn unsealed(tx: &mut Tx<'_>, org: &str, limit: i64) -> Result<Vec<UnsealedChunk>> {
    tx.query(&UNSEALED, params![org, limit], |row| {
        Ok(UnsealedChunk {
            sequence: row.get(0)?,
            id: row.get(1)?,
        })
    })
}

/// Claims the right to seal; says whether nobody has it (HS-3).
pub(super) fn claim(ctx: &mut OperationContext<'_>, id: &SegmentId, name: &str) -> Result<bool> {
    let (org, now) = (ctx.org(), ctx.now());
    Ok(ctx.execute(&CLAIM, params![org, id.as_str(), name, now])? == 1)
}

/// Makes the segment count in place of the chunks of these numbers; says whether its writer still had the claim and
/// every chunk still counted (HS-2, HS-3). When it says no, the unit must not be kept.
pub(super) fn sealed(
    ctx: &mut OperationContext<'_>,
    id: &SegmentId,
    sealed: &provost_history::SegmentSummary,
    chunks: &[UnsealedChunk],
) -> Result<bool> {
    let (org, now) = (ctx.org(), ctx.now());
    let (Some(first), Some(last)) = (chunks.first(), chunks.last()) else {
        return Ok(false);
    };
    let size_bytes = i64::try_from(sealed.size_bytes).unwrap_or(i64::MAX);
    let claimed = ctx.execute(
        &SEALED,
        params![
            org,
            id.as_str(),
            sealed.rows,
            sealed.min_at,
            sealed.max_at,
            size_bytes,
            sealed.digest.as_str(),
            now,
        ],
    )?;
    let covered = ctx.execute(
        &COVER,
        params![org, first.sequence, last.sequence, id.as_str(), now],
    )?;
    Ok(claimed == 1 && covered == chunks.len() as u64)
}

/// Gives up a segment that this process was writing.
pub(super) fn abandon(ctx: &mut OperationContext<'_>, id: &SegmentId) -> Result<()> {
    let (org, now) = (ctx.org(), ctx.now());
    ctx.execute(&ABANDON, params![org, id.as_str(), now]).map(drop)
}

/// Gives up what overdue writers were writing.
pub(super) fn abandon_overdue(ctx: &mut OperationContext<'_>, before: Timestamp) -> Result<u64> {
    let (org, now) = (ctx.org(), ctx.now());
    ctx.execute(&ABANDON_OVERDUE, params![org, before, now])
}

/// Returns the organizations that have a history.
pub(crate) fn organizations(tx: &mut Tx<'_>) -> Result<Vec<OrganizationId>> {
    tx.query(&ORGANIZATIONS, params![], |row| {
        Ok(OrganizationId::from_store(row.get(0)?))
    })
}

/// Returns what a round would remove of what is older than the retention, without what was released.
pub(super) fn old(tx: &mut Tx<'_>, org: &str, before: SureTime, released: Timestamp) -> Result<Removal> {
    let old = tx.query_opt(&OLD, params![org, before.instant(), released], |row| {
        Ok(Removal {
            due: row.get(0)?,
            left: row.get(1)?,
        })
    })?;
    Ok(old.unwrap_or(Removal { due: 0, left: 0 }))
}

/// Gives up segments and forgets imports that are older than the retention.
pub(super) fn expire(ctx: &mut OperationContext<'_>, before: SureTime) -> Result<()> {
    let (org, now, before) = (ctx.org(), ctx.now(), before.instant());
    ctx.prune(&EXPIRE_SEGMENTS, params![org, before, now, PRUNED_ROWS])?;
    ctx.prune(&DELETE_IMPORTS, params![org, before, PRUNED_ROWS])
}

/// Returns segments whose files are to be removed: id and name.
pub(super) fn removable(tx: &mut Tx<'_>, org: &str, before: SureTime) -> Result<Vec<(String, String)>> {
    tx.query(&REMOVABLE, params![org, before.instant()], |row| {
        Ok((row.get(0)?, row.get(1)?))
    })
}

/// Forgets a segment whose file is gone.
pub(super) fn forget_segment(ctx: &mut OperationContext<'_>, id: &str) -> Result<()> {
    let org = ctx.org();
    ctx.queue(&FORGET_SEGMENT, params![org, id])
}

/// Returns the files of segments that have stood for chunks long enough, while the chunks are still there, with their ids.
pub(super) fn standing(tx: &mut Tx<'_>, org: &str, sealed: SureTime) -> Result<Vec<(String, File)>> {
    tx.query(&STANDING, params![org, sealed.instant()], |row| {
        let file = File {
            organization: org.to_owned(),
            name: row.get(1)?,
            size_bytes: row.get(2)?,
            digest: row.get(3)?,
        };
        Ok((row.get(0)?, file))
    })
}

/// Returns the numbers of some of the chunks of a segment.
pub(super) fn chunks_of(tx: &mut Tx<'_>, org: &str, segment: &str) -> Result<Vec<i64>> {
    tx.query(&CHUNKS_OF, params![org, segment], |row| row.get(0))
}

/// Returns the numbers of chunks that are needed no more, whatever a segment holds.
pub(super) fn gone_chunks(
    tx: &mut Tx<'_>,
    org: &str,
    sealed: SureTime,
    newest: SureTime,
) -> Result<Vec<i64>> {
    let (sealed, newest) = (sealed.instant(), newest.instant());
    tx.query(&GONE_CHUNKS, params![org, sealed, newest], |row| row.get(0))
}

/// Removes a chunk; a chunk that waits to be sealed stays while somebody seals.
pub(super) fn delete_chunk(ctx: &mut OperationContext<'_>, sequence: i64) -> Result<()> {
    let org = ctx.org();
    ctx.queue(&DELETE_CHUNK, params![org, sequence])
}

/// Returns the names of every segment, whatever its state.
pub(super) fn names(tx: &mut Tx<'_>) -> Result<Vec<String>> {
    tx.query(&NAMES, params![], |row| row.get(0))
}

/// Returns the chunks of a segment that are still there, as sources.
pub(super) fn kept(tx: &mut Tx<'_>, org: &str, segment: &str) -> Result<Vec<SourceRow>> {
    tx.query(&KEPT, params![org, segment], |row| {
        let id: String = row.get(0)?;
        Ok(SourceRow {
            kind: SourceKind::Chunk,
            name: id.clone(),
            id,
            schema_version: count(row, 1)?,
            rows: count(row, 2)?,
            min_at: row.get(3)?,
            max_at: row.get(4)?,
            size_bytes: row.get(5)?,
            digest: String::new(),
        })
    })
}

/// A sealed segment's file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct File {
    /// Whose it is.
    pub organization: String,
    /// Its name.
    pub name: String,
    /// Its size.
    pub size_bytes: i64,
    /// SHA-256 of its content, in hexadecimal.
    pub digest: String,
}

/// Returns the files of every organization's sealed segments.
pub(super) fn files(tx: &mut Tx<'_>) -> Result<Vec<File>> {
    tx.query(&FILES, params![], |row| {
        Ok(File {
            organization: row.get(0)?,
            name: row.get(1)?,
            size_bytes: row.get(2)?,
            digest: row.get(3)?,
        })
    })
}
