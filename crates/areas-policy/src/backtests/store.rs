//! Every statement of the area.
//!
//! Keeps BT-9.

use super::model::{BacktestId, CutReason, Failure, Principal, Progress, Run, State, Status};
use provost_kernel::context::PRUNED_ROWS;
use provost_kernel::db::{Row, Tx};
use provost_kernel::error::{Error, Result};
use provost_kernel::{OperationContext, SureTime, Timestamp, params, statements};

statements! {
    /// A run, unless its time is over.
    GET = "SELECT id, seq, name, reason, status, created_at, created_by_type, created_by_id, updated_at, \
        started_at, finished_at, canceled_by_type, canceled_by_id, cancel_reason, failure_code, \
        failure_message, events_processed, events_total, events_evaluated, truncated_by, engine_version, \
        dataset_digest, result_digest, attempt, worked_ms, epoch, lease_until, revision \
        FROM backtests \
        WHERE organization_id = ?1 AND id = ?2 AND (expires_at IS NULL OR expires_at > ?3)";
    /// One page of runs, the newest first, each with its question and, if it shows them, its results.
    LIST = "SELECT b.id, b.seq, b.name, b.reason, b.status, b.created_at, b.created_by_type, b.created_by_id, \
        b.updated_at, b.started_at, b.finished_at, b.canceled_by_type, b.canceled_by_id, b.cancel_reason, \
        b.failure_code, b.failure_message, b.events_processed, b.events_total, b.events_evaluated, \
        b.truncated_by, b.engine_version, b.dataset_digest, b.result_digest, b.attempt, b.worked_ms, b.epoch, \
        b.lease_until, b.revision, q.question, r.results \
        FROM backtests b JOIN backtest_questions q ON q.organization_id = b.organization_id \
        AND q.backtest_id = b.id \
        LEFT JOIN backtest_results r ON r.organization_id = b.organization_id AND r.backtest_id = b.id \
        WHERE b.organization_id = ?1 AND (CAST(?2 AS TEXT) IS NULL OR b.status = CAST(?2 AS TEXT)) \
        AND b.seq < ?3 AND (b.expires_at IS NULL OR b.expires_at > ?4) ORDER BY b.seq DESC, b.id LIMIT ?5";
    /// What was asked, and what came of it.
    CONTENT = "SELECT q.question, r.results, r.samples FROM backtest_questions q LEFT JOIN backtest_results r ON r.organization_id = q.organization_id AND r.backtest_id = q.backtest_id WHERE q.organization_id = ?1 AND q.backtest_id = ?2";
    /// What was asked, and by whom, also of a run whose time is over.
    KEPT = "SELECT b.name, b.reason, b.created_at, b.created_by_type, b.created_by_id, q.question, q.changes FROM backtests b JOIN backtest_questions q ON q.organization_id = b.organization_id AND q.backtest_id = b.id WHERE b.organization_id = ?1 AND b.id = ?2";
    /// How many runs of a status there are.
    COUNT = "SELECT COUNT(*) FROM backtests WHERE organization_id = ?1 AND status = ?2";
    /// Stores a run that waits.
    INSERT = "\
        INSERT INTO backtests (organization_id, id, seq, name, reason, status, created_at, created_by_type, \
        created_by_id, updated_at, events_processed, events_total, events_evaluated, engine_version, attempt, \
        worked_ms, epoch, revision) \
        SELECT ?1, ?2, COALESCE(MAX(seq), 0) + 1, ?3, ?4, ?5, ?6, ?7, ?8, ?9, 0, 0, 0, ?10, 0, 0, 0, ?11 \
        FROM backtests \
        WHERE organization_id = ?1";
    /// Stores what is asked.
    INSERT_QUESTION = "INSERT INTO backtest_questions (organization_id, backtest_id, question, changes) VALUES (?1, ?2, ?3, ?4)";
    /// Replaces what can change of a run, if nobody changed it meanwhile.
    SAVE = "UPDATE backtests \
        SET status = ?4, updated_at = ?5, started_at = ?6, finished_at = ?7, canceled_by_type = ?8, \
        canceled_by_id = ?9, cancel_reason = ?10, failure_code = ?11, failure_message = ?12, \
        events_processed = ?13, events_total = ?14, events_evaluated = ?15, truncated_by = ?16, \
        dataset_digest = ?17, result_digest = ?18, attempt = ?19, worked_ms = ?20, epoch = ?21, \
        lease_until = ?22, expires_at = ?23, revision = ?24 \
        WHERE organization_id = ?1 AND id = ?2 AND revision = ?3 AND status IN ('queued', 'running')";
    /// Replaces the results of a run.
    SAVE_RESULTS = "INSERT INTO backtest_results (organization_id, backtest_id, results, samples) VALUES (?1, ?2, ?3, ?4) ON CONFLICT (organization_id, backtest_id) DO UPDATE SET results = excluded.results, samples = excluded.samples";
    /// Replaces the checkpoint of a run.
    SAVE_CHECKPOINT = "INSERT INTO backtest_checkpoints (organization_id, backtest_id, sources, checkpoint) VALUES (?1, ?2, ?3, ?4) ON CONFLICT (organization_id, backtest_id) DO UPDATE SET sources = excluded.sources, checkpoint = excluded.checkpoint";
    /// Forgets the checkpoint of a run.
    DROP_CHECKPOINT = "DELETE FROM backtest_checkpoints WHERE organization_id = ?1 AND backtest_id = ?2";
    /// What a worker needs of a run.
    WORK = "SELECT q.question, q.changes, c.sources, c.checkpoint FROM backtest_questions q LEFT JOIN backtest_checkpoints c ON c.organization_id = q.organization_id AND c.backtest_id = q.backtest_id WHERE q.organization_id = ?1 AND q.backtest_id = ?2";
    /// Whether a worker still counts.
    HELD = "SELECT COUNT(*) FROM backtests WHERE organization_id = ?1 AND id = ?2 AND status = 'running' AND epoch = ?3";
    /// The organizations with runs to do: how many wait, how many are worked on, how many were left, and since when.
    DUE = unscoped("the worker serves every organization") "\
        SELECT organization_id, COUNT(CASE WHEN status = 'queued' THEN 1 END), \
        COUNT(CASE WHEN status = 'running' AND lease_until > ?1 THEN 1 END), \
        COUNT(CASE WHEN status = 'running' AND lease_until <= ?1 THEN 1 END), MIN(created_at) \
        FROM backtests \
        WHERE status IN ('queued', 'running') GROUP BY organization_id";
    /// The oldest run that its worker left.
    LEFT_BEHIND = "SELECT id FROM backtests WHERE organization_id = ?1 AND status = 'running' AND lease_until <= ?2 ORDER BY seq, id LIMIT 8";
    /// The oldest run that waits.
    WAITING = "SELECT id FROM backtests WHERE organization_id = ?1 AND status = 'queued' ORDER BY seq, id LIMIT 1";
    /// Forgets the results of runs whose time is over. It looks at results alone, which are few, and not at all runs.
    PRUNE_RESULTS = unscoped("retention is the same for every organization") "DELETE FROM backtest_results WHERE (organization_id, backtest_id) IN (SELECT r.organization_id, r.backtest_id FROM backtest_results r CROSS JOIN backtests b WHERE b.organization_id = r.organization_id AND b.id = r.backtest_id AND b.expires_at <= ?1 ORDER BY r.organization_id, r.backtest_id LIMIT ?2)";
}

/// What is stored of a run beside its record, as it is stored.
pub struct Content {
    /// What was asked.
    pub question: String,
    /// What came of it, without samples.
    pub results: Option<String>,
    /// The samples.
    pub samples: Option<String>,
}

/// What is kept of a run as long as its audit entry.
pub struct RunRecord {
    /// Its name for people.
    pub name: Option<String>,
    /// Why it was asked for.
    pub reason: String,
    /// When it was asked for.
    pub created_at: Timestamp,
    /// Who asked.
    pub created_by: Principal,
    /// What was asked.
    pub question: String,
    /// The bound changes of the candidate.
    pub changes: String,
}

/// What a worker needs of a run.
pub struct Work {
    /// What was asked.
    pub question: String,
    /// The bound changes of the candidate.
    pub changes: String,
    /// The sources that it began with, and from where it goes on.
    pub pinned: Option<(String, Vec<u8>)>,
}

/// An organization with runs to do.
pub struct Due {
    /// Its key.
    pub organization: String,
    /// How many wait.
    pub waiting: i64,
    /// How many are worked on.
    pub running: i64,
    /// How many were left by their workers.
    pub left: i64,
    /// When the oldest of them was made.
    pub since: Timestamp,
}

fn run(row: &Row<'_>) -> Result<Run> {
    let lacks = |column: &str| Error::internal(format!("backtests.{column} is absent"));
    let state = match Status::from_store(row.str(4)?)? {
        Status::Queued => State::Queued,
        Status::Running => State::Running,
        Status::Succeeded => State::Succeeded,
        Status::Failed => State::Failed(Failure {
            code: row
                .get::<Option<String>>(14)?
                .ok_or_else(|| lacks("failure_code"))?,
            message: row.get::<Option<String>>(15)?.unwrap_or_default(),
        }),
        Status::Canceled => State::Canceled {
            by: Principal {
                kind: row
                    .get::<Option<String>>(11)?
                    .ok_or_else(|| lacks("canceled_by_type"))?,
                id: row
                    .get::<Option<String>>(12)?
                    .ok_or_else(|| lacks("canceled_by_id"))?,
            },
            reason: row.get::<Option<String>>(13)?.unwrap_or_default(),
        },
    };
    Ok(Run {
        id: BacktestId::from_store(row.get(0)?),
        seq: row.get(1)?,
        name: row.get(2)?,
        reason: row.get(3)?,
        created_at: row.get(5)?,
        created_by: Principal {
            kind: row.get(6)?,
            id: row.get(7)?,
        },
        updated_at: row.get(8)?,
        started_at: row.get(9)?,
        finished_at: row.get(10)?,
        state,
        progress: Progress {
            processed: row.get(16)?,
            total: row.get(17)?,
            evaluated: row.get(18)?,
        },
        cut: row
            .get::<Option<String>>(19)?
            .map(|word| CutReason::from_store(&word))
            .transpose()?,
        engine_version: row.get(20)?,
        dataset_digest: row.get(21)?,
        result_digest: row.get(22)?,
        attempt: row.get(23)?,
        worked_ms: row.get(24)?,
        epoch: row.get(25)?,
        lease_until: row.get(26)?,
        revision: row.get(27)?,
    })
}

/// Returns a run.
///
/// Errors: `NotFound` for an unknown, an expired and another organization's run alike.
pub fn get(ctx: &mut OperationContext<'_>, id: &BacktestId) -> Result<Run> {
    let (org, now) = (ctx.org(), ctx.now());
    let found = ctx.query_opt(&GET, params![org, id.as_str(), now], run)?;
    found.ok_or_else(|| Error::not_found("backtest"))
}

/// Returns runs before a place, the newest first, with what was asked and what came of it.
pub fn list(
    ctx: &mut OperationContext<'_>,
    status: Option<Status>,
    before: i64,
    limit: i64,
) -> Result<Vec<(Run, Content)>> {
    let (org, now, status) = (ctx.org(), ctx.now(), status.map(Status::as_str));
    ctx.query(&LIST, params![org, status, before, now, limit], |row| {
        let content = Content {
            question: row.get(28)?,
            results: row.get(29)?,
            samples: None,
        };
        Ok((run(row)?, content))
    })
}

/// Returns what was asked and what came of it.
pub fn content(ctx: &mut OperationContext<'_>, id: &BacktestId) -> Result<Content> {
    let org = ctx.org();
    let found = ctx.query_opt(&CONTENT, params![org, id.as_str()], |row| {
        Ok(Content {
            question: row.get(0)?,
            results: row.get(1)?,
            samples: row.get(2)?,
        })
    })?;
    found.ok_or_else(|| Error::internal("a backtest has no question"))
}

/// Returns what was asked, also of a run whose time is over.
///
/// Errors: `NotFound` for an unknown and another organization's run alike.
pub fn kept(ctx: &mut OperationContext<'_>, id: &BacktestId) -> Result<RunRecord> {
    let org = ctx.org();
    let found = ctx.query_opt(&KEPT, params![org, id.as_str()], |row| {
        Ok(RunRecord {
            name: row.get(0)?,
            reason: row.get(1)?,
            created_at: row.get(2)?,
            created_by: Principal {
                kind: row.get(3)?,
                id: row.get(4)?,
            },
            question: row.get(5)?,
            changes: row.get(6)?,
        })
    })?;
    found.ok_or_else(|| Error::not_found("backtest"))
}

/// Returns how many runs have a status.
pub fn count(ctx: &mut OperationContext<'_>, status: Status) -> Result<i64> {
    let org = ctx.org();
    let count = ctx.query_opt(&COUNT, params![org, status.as_str()], |row| row.get(0))?;
    Ok(count.unwrap_or(0))
}

/// Stores a run that waits, and what it asks.
pub fn insert(ctx: &mut OperationContext<'_>, run: &Run, question: &str, changes: &str) -> Result<()> {
    let (org, id) = (ctx.org(), run.id.as_str());
    ctx.queue(
        &INSERT,
        params![
            org,
            id,
            run.name.as_deref(),
            run.reason.as_str(),
            run.status().as_str(),
            run.created_at,
            run.created_by.kind.as_str(),
            run.created_by.id.as_str(),
            run.updated_at,
            run.engine_version.as_str(),
            run.revision,
        ],
    )?;
    ctx.queue(&INSERT_QUESTION, params![org, id, question, changes])
}

/// Stores what changed of a run since it had this revision. INVARIANT BT-1: what has ended is never written again;
/// the statement itself says so.
///
/// Errors: `Internal` when somebody changed it meanwhile; the organization's chain head is locked, so nobody can.
pub fn save(ctx: &mut OperationContext<'_>, run: &Run, revision: i64) -> Result<()> {
    let org = ctx.org();
    let (canceled_by, cancel_reason) = match &run.state {
        State::Canceled { by, reason } => (Some(by), Some(reason.as_str())),
        _ => (None, None),
    };
    let failure = match &run.state {
        State::Failed(failure) => Some(failure),
        _ => None,
    };
    let saved = ctx.execute(
        &SAVE,
        params![
            org,
            run.id.as_str(),
            revision,
            run.status().as_str(),
            run.updated_at,
            run.started_at,
            run.finished_at,
            canceled_by.map(|by| by.kind.as_str()),
            canceled_by.map(|by| by.id.as_str()),
            cancel_reason,
            failure.map(|failure| failure.code.as_str()),
            failure.map(|failure| failure.message.as_str()),
            run.progress.processed,
            run.progress.total,
            run.progress.evaluated,
            run.cut.map(CutReason::as_str),
            run.dataset_digest.as_deref(),
            run.result_digest.as_deref(),
            run.attempt,
            run.worked_ms,
            run.epoch,
            run.lease_until,
            run.expires_at(),
            run.revision,
        ],
    )?;
    if saved != 1 {
        return Err(Error::internal(
            "a backtest changed under its organization's lock",
        ));
    }
    if run.status().is_terminal() {
        ctx.queue(&DROP_CHECKPOINT, params![org, run.id.as_str()])?;
    }
    Ok(())
}

/// Replaces the results of a run.
pub fn save_results(
    ctx: &mut OperationContext<'_>,
    id: &BacktestId,
    results: &str,
    samples: &str,
) -> Result<()> {
    let org = ctx.org();
    ctx.queue(&SAVE_RESULTS, params![org, id.as_str(), results, samples])
}

/// Replaces the checkpoint of a run.
pub fn save_checkpoint(
    ctx: &mut OperationContext<'_>,
    id: &BacktestId,
    sources: &str,
    checkpoint: &[u8],
) -> Result<()> {
    let org = ctx.org();
    ctx.queue(&SAVE_CHECKPOINT, params![org, id.as_str(), sources, checkpoint])
}

/// Returns the run that is to be claimed next: the oldest that its worker left, else the oldest that waits.
///
/// `mine` are those that this very server works on: a lease that is late to be renewed is no reason to begin again.
pub fn next(
    ctx: &mut OperationContext<'_>,
    mine: &[BacktestId],
    may_start: bool,
) -> Result<Option<BacktestId>> {
    let (org, now) = (ctx.org(), ctx.now());
    let id = |row: &Row<'_>| Ok(BacktestId::from_store(row.get(0)?));
    let left = ctx.query(&LEFT_BEHIND, params![org, now], id)?;
    if let Some(left) = left.into_iter().find(|left| !mine.contains(left)) {
        return Ok(Some(left));
    }
    if !may_start {
        return Ok(None);
    }
    ctx.query_opt(&WAITING, params![org], id)
}

/// Returns the organizations with runs to do.
pub fn due(tx: &mut Tx<'_>, now: Timestamp) -> Result<Vec<Due>> {
    tx.query(&DUE, params![now], |row| {
        Ok(Due {
            organization: row.get(0)?,
            waiting: row.get(1)?,
            running: row.get(2)?,
            left: row.get(3)?,
            since: row.get(4)?,
        })
    })
}

/// Says whether a worker of this epoch still counts.
pub fn is_held(tx: &mut Tx<'_>, org: &str, id: &BacktestId, epoch: i64) -> Result<bool> {
    let count = tx.query_opt(&HELD, params![org, id.as_str(), epoch], |row| row.get::<i64>(0))?;
    Ok(count == Some(1))
}

/// Returns what a worker needs of a run.
pub fn work(tx: &mut Tx<'_>, org: &str, id: &BacktestId) -> Result<Work> {
    let found = tx.query_opt(&WORK, params![org, id.as_str()], |row| {
        Ok(Work {
            question: row.get(0)?,
            changes: row.get(1)?,
            pinned: row.get::<Option<String>>(2)?.zip(row.get(3)?),
        })
    })?;
    found.ok_or_else(|| Error::internal("a backtest has no question"))
}

/// Forgets the results of what has expired, of every organization; a run that has ended has no checkpoint. INVARIANT
/// BT-9: what was asked stays as long as its audit entry, and entries are not pruned.
pub fn prune(ctx: &mut OperationContext<'_>, now: SureTime) -> Result<()> {
    ctx.prune(&PRUNE_RESULTS, params![now.instant(), PRUNED_ROWS])
}
