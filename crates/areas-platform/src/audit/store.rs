//! All SQL of the area. The tables are the kernel's; nothing here changes an entry.

use super::model::{CHECKPOINT_CREATED, Record};
use provost_kernel::audit::Head;
use provost_kernel::auth::OrganizationId;
use provost_kernel::db::{Param, Row, Statement, Tx};
use provost_kernel::merkle::Hash;
use provost_kernel::{Error, OperationContext, Result, Timestamp, params};

provost_kernel::statements! {
    /// Returns how many entries a chain has.
    LENGTH = "SELECT seq FROM chain_heads WHERE organization_id = ?1";
    /// Lists entries of a stretch of the chain, the newest first.
    LIST = "SELECT e.seq, e.entry, e.hash, (SELECT p.hash FROM audit_entries p \
        WHERE p.organization_id = e.organization_id AND p.seq = e.seq - 1) \
        FROM audit_entries e \
        WHERE e.organization_id = ?1 AND e.seq < ?2 AND e.seq >= ?3 \
        AND (CAST(?4 AS BIGINT) IS NULL OR e.time >= ?4) AND (CAST(?5 AS BIGINT) IS NULL OR e.time < ?5) \
        AND (CAST(?6 AS TEXT) IS NULL OR e.actor_id = ?6) AND (CAST(?7 AS TEXT) IS NULL OR e.action = ?7) \
        AND (CAST(?8 AS TEXT) IS NULL OR e.target_id = ?8) AND (CAST(?9 AS TEXT) IS NULL OR e.decision = ?9) \
        ORDER BY e.seq DESC LIMIT ?10";
    /// Lists entries after a place, in order.
    AFTER = "SELECT e.seq, e.entry, e.hash, (SELECT p.hash FROM audit_entries p WHERE p.organization_id = e.organization_id AND p.seq = e.seq - 1) FROM audit_entries e WHERE e.organization_id = ?1 AND e.seq > ?2 ORDER BY e.seq LIMIT ?3";
    /// Lists the hashes of entries, in order.
    HASHES = "SELECT seq, hash FROM audit_entries WHERE organization_id = ?1 AND seq > ?2 AND seq <= ?3 ORDER BY seq";
    /// Returns the last entry's place and hash.
    TAIL = "SELECT seq, hash FROM audit_entries WHERE organization_id = ?1 ORDER BY seq DESC LIMIT 1";
    /// Returns the time of the oldest open entry that is not a checkpoint's own.
    OLDEST_OPEN = "SELECT time FROM audit_entries WHERE organization_id = ?1 AND seq > ?2 AND action <> ?3 ORDER BY seq LIMIT 1";
    /// Lists stored nodes of one level of the tree.
    NODES = "SELECT position, hash FROM audit_nodes WHERE organization_id = ?1 AND level = ?2 AND position >= ?3 AND position < ?4 ORDER BY position";
    /// Returns how many nodes of a level are stored; they have no gap.
    NODE_COUNT = "SELECT COALESCE(MAX(position) + 1, 0) FROM audit_nodes WHERE organization_id = ?1 AND level = ?2";
    /// Stores a node. Two servers may compute the same one.
    ADD_NODE = "INSERT INTO audit_nodes (organization_id, level, position, hash) VALUES (?1, ?2, ?3, ?4) ON CONFLICT DO NOTHING";
    /// Returns the newest checkpoint.
    NEWEST_CHECKPOINT = "SELECT size, note, created_at FROM audit_checkpoints WHERE organization_id = ?1 ORDER BY size DESC LIMIT 1";
    /// Returns the checkpoint of a size.
    CHECKPOINT_AT = "SELECT size, note, created_at FROM audit_checkpoints WHERE organization_id = ?1 AND size = ?2";
    /// Stores a checkpoint.
    ADD_CHECKPOINT = "INSERT INTO audit_checkpoints (organization_id, size, note, created_at) VALUES (?1, ?2, ?3, ?4)";
    /// Lists the chains with their length and what their newest checkpoint covers.
    CHAINS = unscoped("checkpoints are made for every chain") "SELECT h.organization_id, h.seq, COALESCE((SELECT MAX(c.size) FROM audit_checkpoints c WHERE c.organization_id = h.organization_id), 0) FROM chain_heads h ORDER BY h.organization_id";
    /// Lists the heads of all chains, in the columns of [`Head::read`].
    HEADS = unscoped("start-up checks every chain") "SELECT seq, hash, mac, event_sequence, created_at, rights_changes, rights_rows, rights_sum, rights_key, organization_id FROM chain_heads ORDER BY organization_id";
}

/// What can answer a query: an operation's context, or a snapshot of the program's own.
pub(super) trait Rows {
    /// Returns every row of a statement.
    fn rows<T>(
        &mut self,
        statement: &'static Statement,
        params: &[Param<'_>],
        map: impl FnMut(&Row<'_>) -> Result<T>,
    ) -> Result<Vec<T>>;

    /// Returns the first row of a statement.
    fn row<T>(
        &mut self,
        statement: &'static Statement,
        params: &[Param<'_>],
        map: impl FnMut(&Row<'_>) -> Result<T>,
    ) -> Result<Option<T>> {
        Ok(self.rows(statement, params, map)?.into_iter().next())
    }
}

impl Rows for OperationContext<'_> {
    fn rows<T>(
        &mut self,
        statement: &'static Statement,
        params: &[Param<'_>],
        map: impl FnMut(&Row<'_>) -> Result<T>,
    ) -> Result<Vec<T>> {
        self.query(statement, params, map)
    }
}

impl Rows for Tx<'_> {
    fn rows<T>(
        &mut self,
        statement: &'static Statement,
        params: &[Param<'_>],
        map: impl FnMut(&Row<'_>) -> Result<T>,
    ) -> Result<Vec<T>> {
        self.query(statement, params, map)
    }
}

/// A stored checkpoint.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct StoredCheckpoint {
    pub size: i64,
    pub note: String,
    pub created_at: Timestamp,
}

/// A chain, how long it is, and how much of it a checkpoint covers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Chain {
    pub organization: OrganizationId,
    pub length: i64,
    pub covered: i64,
}

/// What a list of entries is narrowed to; `None` is everything.
#[derive(Clone, Debug, Default)]
pub(super) struct Filter<'a> {
    pub from: Option<Timestamp>,
    pub to: Option<Timestamp>,
    pub actor_id: Option<&'a str>,
    pub action: Option<&'a str>,
    pub target_id: Option<&'a str>,
    pub outcome: Option<&'static str>,
}

/// Returns how many entries the chain has.
pub(super) fn length(rows: &mut impl Rows, organization: &str) -> Result<i64> {
    Ok(rows
        .row(&LENGTH, params![organization], |row| row.get(0))?
        .unwrap_or(0))
}

/// Returns the entries with `lowest ≤ seq < before` that the filter lets through, the newest first.
pub(super) fn list(
    ctx: &mut OperationContext<'_>,
    filter: &Filter<'_>,
    before: i64,
    lowest: i64,
    limit: i64,
) -> Result<Vec<Record>> {
    let org = ctx.org();
    let Filter {
        from,
        to,
        actor_id,
        action,
        target_id,
        outcome,
    } = filter.clone();
    let params = params![
        org, before, lowest, from, to, actor_id, action, target_id, outcome, limit
    ];
    ctx.query(&LIST, params, record)
}

/// Returns the entry at a place.
pub(super) fn get(ctx: &mut OperationContext<'_>, seq: i64) -> Result<Option<Record>> {
    let org = ctx.org();
    let found = ctx.query_opt(&AFTER, params![org, seq - 1, 1_i64], record)?;
    Ok(found.filter(|record| record.seq == seq))
}

/// Returns at most `limit` entries after a place, in order.
pub(super) fn after(ctx: &mut OperationContext<'_>, seq: i64, limit: i64) -> Result<Vec<Record>> {
    let org = ctx.org();
    ctx.query(&AFTER, params![org, seq, limit], record)
}

/// Returns the last entry's place and hash.
pub(super) fn tail(rows: &mut impl Rows, organization: &str) -> Result<Option<(i64, Hash)>> {
    rows.row(&TAIL, params![organization], |row| {
        Ok((row.get(0)?, hash(row, 1)?))
    })
}

/// Returns the time of the oldest entry after `covered` that is not a checkpoint's own.
pub(super) fn oldest_open(rows: &mut impl Rows, chain: &Chain) -> Result<Option<Timestamp>> {
    let params = params![chain.organization.as_str(), chain.covered, CHECKPOINT_CREATED];
    rows.row(&OLDEST_OPEN, params, |row| row.get(0))
}

/// Returns place and hash of the entries with `after < seq ≤ last`.
pub(super) fn hashes(rows: &mut impl Rows, org: &str, after: i64, last: i64) -> Result<Vec<(i64, Hash)>> {
    rows.rows(&HASHES, params![org, after, last], |row| {
        Ok((row.get(0)?, hash(row, 1)?))
    })
}

/// Returns position and hash of the stored nodes of a level with `first ≤ position < end`.
pub(super) fn nodes(
    rows: &mut impl Rows,
    org: &str,
    level: u8,
    first: i64,
    end: i64,
) -> Result<Vec<(i64, Hash)>> {
    rows.rows(&NODES, params![org, i32::from(level), first, end], |row| {
        Ok((row.get(0)?, hash(row, 1)?))
    })
}

/// Returns how many nodes of a level are stored.
pub(super) fn node_count(rows: &mut impl Rows, org: &str, level: u8) -> Result<i64> {
    Ok(rows
        .row(&NODE_COUNT, params![org, i32::from(level)], |row| row.get(0))?
        .unwrap_or(0))
}

/// Stores a node.
pub(super) fn add_node(ctx: &mut OperationContext<'_>, level: u8, position: i64, hash: &Hash) -> Result<()> {
    let org = ctx.org();
    ctx.queue(&ADD_NODE, params![org, i32::from(level), position, hash])
}

/// Returns the newest checkpoint of a chain.
pub(super) fn newest_checkpoint(rows: &mut impl Rows, org: &str) -> Result<Option<StoredCheckpoint>> {
    rows.row(&NEWEST_CHECKPOINT, params![org], checkpoint)
}

/// Returns the checkpoint of a size.
pub(super) fn checkpoint_at(rows: &mut impl Rows, org: &str, size: i64) -> Result<Option<StoredCheckpoint>> {
    rows.row(&CHECKPOINT_AT, params![org, size], checkpoint)
}

/// Stores a checkpoint.
pub(super) fn add_checkpoint(ctx: &mut OperationContext<'_>, size: i64, note: &str) -> Result<()> {
    let (org, now) = (ctx.org(), ctx.now());
    ctx.execute(&ADD_CHECKPOINT, params![org, size, note, now])
        .map(drop)
}

/// Returns every chain.
pub(super) fn chains(tx: &mut Tx<'_>) -> Result<Vec<Chain>> {
    tx.query(&CHAINS, params![], |row| {
        let organization = OrganizationId::from_store(row.get(0)?);
        Ok(Chain {
            organization,
            length: row.get(1)?,
            covered: row.get(2)?,
        })
    })
}

/// Returns every chain's head.
pub(super) fn heads(tx: &mut Tx<'_>) -> Result<Vec<Head>> {
    tx.query(&HEADS, params![], |row| {
        Head::read(&OrganizationId::from_store(row.get(9)?), row)
    })
}

fn record(row: &Row<'_>) -> Result<Record> {
    let previous: Option<Vec<u8>> = row.get(3)?;
    let previous = previous.map_or(Ok([0; 32]), |bytes| to_hash(&bytes))?;
    Ok(Record {
        seq: row.get(0)?,
        entry: row.get(1)?,
        hash: hash(row, 2)?,
        previous,
    })
}

fn checkpoint(row: &Row<'_>) -> Result<StoredCheckpoint> {
    Ok(StoredCheckpoint {
        size: row.get(0)?,
        note: row.get(1)?,
        created_at: row.get(2)?,
    })
}

fn hash(row: &Row<'_>, index: usize) -> Result<Hash> {
    to_hash(&row.get::<Vec<u8>>(index)?)
}

fn to_hash(bytes: &[u8]) -> Result<Hash> {
    Hash::try_from(bytes).map_err(|_| Error::internal("a hash of the audit log has not 32 bytes"))
}
