//! The worker of jobs: it takes what is due, a share of each organization and kind at a time, and lets it run side by side.
//!
//! ```text
//! due ── one of each organization and kind, then the second of each … ── as many as the pool has room for ── run
//!        at most a share of each at a time                               inside | outside
//! ```
//!
//! INVARIANT JB-2: one organization's jobs of a kind never hold up another's: they take no more than their share of a
//! pool, what waits for the outside world has a pool of its own, and a job that ends makes room at once.
//!
//! Shares are counted in this process: each server of an installation has as many places.

use super::{ClaimedJob, Handler, LEASE_SECS, Work, run_one};
use crate::auth::OrganizationId;
use crate::error::{Error, Result};
use crate::kernel::Kernel;
use crate::params;
use crate::supervisor::catch_panic;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

crate::statements! {
    /// The next jobs that are due, of the kinds that reach outside or of all others: the first of each organization and kind, then the second of each, and so on.
    NEXT = unscoped("the worker serves every organization") "SELECT organization_id, kind, id \
        FROM (SELECT organization_id, kind, id, run_at, \
        ROW_NUMBER() OVER (PARTITION BY organization_id, kind ORDER BY run_at, id) AS place FROM jobs \
        WHERE state = 'queued' AND run_at <= ?1 AND (lease_until IS NULL OR lease_until <= ?1) \
        AND (?2 LIKE '%|' || kind || '|%') = ?3) due \
        WHERE place <= ?4 ORDER BY place, run_at, organization_id, id LIMIT ?5";
    /// Takes the lease of a job, unless somebody else has it.
    TAKE = {
        sqlite: "UPDATE jobs SET lease_until = ?4, lease_epoch = lease_epoch + 1, attempts = attempts + 1 WHERE organization_id = ?1 AND id = ?2 AND state = 'queued' AND run_at <= ?3 AND (lease_until IS NULL OR lease_until <= ?3) RETURNING kind, payload, attempts, lease_epoch",
        postgres: "UPDATE jobs \
            SET lease_until = ?4, lease_epoch = lease_epoch + 1, attempts = attempts + 1 \
            WHERE organization_id = ?1 \
            AND id IN (SELECT id FROM jobs WHERE organization_id = ?1 AND id = ?2 AND state = 'queued' \
            AND run_at <= ?3 AND (lease_until IS NULL OR lease_until <= ?3) FOR UPDATE SKIP LOCKED) \
            RETURNING kind, payload, attempts, lease_epoch",
    };
}

/// LIMIT: jobs of one organization and kind that run at a time.
const SHARE: usize = 4;
/// LIMIT: jobs that change the store alone and run at a time; each waits for its organization's writer.
const INSIDE: usize = 32;
/// LIMIT: jobs that reach outside and run at a time. They cost a socket and wait, 30 s at most.
const OUTSIDE: usize = 128;
/// How often jobs of other servers, and those that were put off, are looked for.
const LOOK: Duration = Duration::from_secs(5);

/// Where jobs run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Pool {
    Inside,
    Outside,
}

impl Pool {
    const fn size(self) -> usize {
        match self {
            Self::Inside => INSIDE,
            Self::Outside => OUTSIDE,
        }
    }
}

/// What runs: how many of each pool, and of each organization and kind.
#[derive(Default)]
struct RunningJobs {
    pools: HashMap<Pool, usize>,
    shares: HashMap<(String, String), usize>,
}

/// A place in a pool and in a share. Dropping it makes room.
struct Slot {
    running: Arc<Mutex<RunningJobs>>,
    pool: Pool,
    share: (String, String),
}

impl Slot {
    /// Takes a place, if the pool and the share have one.
    fn take(running: &Arc<Mutex<RunningJobs>>, pool: Pool, share: (String, String)) -> Option<Self> {
        let mut known = running.lock().unwrap_or_else(PoisonError::into_inner);
        let in_pool = known.pools.get(&pool).copied().unwrap_or(0);
        let of_share = known.shares.get(&share).copied().unwrap_or(0);
        if in_pool >= pool.size() || of_share >= SHARE {
            return None;
        }
        known.pools.insert(pool, in_pool + 1);
        known.shares.insert(share.clone(), of_share + 1);
        Some(Self {
            running: running.clone(),
            pool,
            share,
        })
    }
}

impl Drop for Slot {
    fn drop(&mut self) {
        let mut known = self.running.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(count) = known.pools.get_mut(&self.pool) {
            *count = count.saturating_sub(1);
        }
        if let Some(count) = known.shares.get_mut(&self.share) {
            *count = count.saturating_sub(1);
            if *count == 0 {
                known.shares.remove(&self.share);
            }
        }
    }
}

/// See the module's text.
pub(super) struct Worker {
    kernel: Arc<Kernel>,
    handlers: Arc<Vec<Handler>>,
    /// The kinds that reach outside, each between two bars.
    outside: Arc<str>,
    running: Arc<Mutex<RunningJobs>>,
    tasks: JoinSet<Result<()>>,
}

impl Worker {
    /// Returns a worker that runs nothing yet.
    pub(super) fn new(kernel: &Arc<Kernel>, handlers: &Arc<Vec<Handler>>) -> Self {
        let outside = handlers
            .iter()
            .filter(|handler| matches!(handler.work, Work::Outside { .. }))
            .fold(String::from("|"), |kinds, handler| kinds + handler.kind + "|");
        Self {
            kernel: kernel.clone(),
            handlers: handlers.clone(),
            outside: outside.into(),
            running: Arc::default(),
            tasks: JoinSet::new(),
        }
    }

    /// Takes what is due as far as there is room, lets it run, and returns how many jobs that are.
    pub(super) async fn begin(&mut self) -> Result<usize> {
        Ok(self.begin_in(Pool::Inside).await? + self.begin_in(Pool::Outside).await?)
    }

    async fn begin_in(&mut self, pool: Pool) -> Result<usize> {
        let now = self.kernel.clock.now();
        let kinds = self.outside.clone();
        // Of what is found at most as many cannot begin as are running: so many more are asked for.
        let (share, limit) = (count(SHARE), count(2 * pool.size()));
        let next = self
            .kernel
            .read_system(move |tx| {
                let is_outside = pool == Pool::Outside;
                tx.query(&NEXT, params![now, &*kinds, is_outside, share, limit], |row| {
                    Ok(((row.get(0)?, row.get(1)?), row.get(2)?))
                })
            })
            .await?;
        let wanted: Vec<(Slot, String)> = next
            .into_iter()
            .filter_map(|(share, id)| Some((Slot::take(&self.running, pool, share)?, id)))
            .collect();
        if wanted.is_empty() {
            return Ok(0);
        }
        let ids = wanted.iter().map(|(slot, id)| (slot.share.0.clone(), id.clone()));
        let mut claimed = claim(&self.kernel, ids.collect()).await?;
        let mut begun = 0;
        for (slot, id) in wanted {
            let place = claimed
                .iter()
                .position(|job| job.organization.as_str() == slot.share.0 && job.id == id);
            // Without a place another server has it.
            if let Some(place) = place {
                self.spawn(slot, claimed.swap_remove(place));
                begun += 1;
            }
        }
        Ok(begun)
    }

    fn spawn(&mut self, slot: Slot, job: ClaimedJob) {
        let (kernel, handlers) = (self.kernel.clone(), self.handlers.clone());
        self.tasks.spawn(async move {
            let slot = slot;
            let ended = catch_panic(run_one(&kernel, &handlers, job)).await;
            drop(slot);
            // The lease of a job that panicked runs out.
            ended.unwrap_or_else(|panic| Err(Error::internal(format!("a job panicked: {panic}"))))
        });
    }

    /// Waits until a job has ended; for ever when none runs.
    async fn one_ended(&mut self) {
        match self.tasks.join_next().await {
            Some(ended) => log(ended.unwrap_or_else(|error| Err(Error::internal(error)))),
            None => std::future::pending().await,
        }
    }

    /// Waits until every job has ended that runs.
    ///
    /// Errors: those of noting what became of a job; the others end all the same.
    pub(super) async fn end(mut self) -> Result<()> {
        let mut all = Ok(());
        while let Some(ended) = self.tasks.join_next().await {
            let ended = ended.unwrap_or_else(|error| Err(Error::internal(error)));
            if all.is_ok() {
                all = ended;
            } else {
                log(ended);
            }
        }
        all
    }
}

/// Runs jobs when one is enqueued here, when one has ended, and every few seconds those of other servers and those that were put
/// off, until the token is cancelled; then it waits for those that run.
pub async fn serve(kernel: &Arc<Kernel>, handlers: &Arc<Vec<Handler>>, stop: CancellationToken) {
    let mut worker = Worker::new(kernel, handlers);
    loop {
        if let Err(error) = worker.begin().await {
            tracing::warn!(reconciler = "jobs", cause = ?error.private(), "{error}");
        }
        tokio::select! {
            biased;
            () = stop.cancelled() => break,
            () = kernel.job_due() => {}
            () = worker.one_ended() => {}
            () = tokio::time::sleep(LOOK) => {}
        }
    }
    log(worker.end().await);
}

fn log(ended: Result<()>) {
    if let Err(error) = ended {
        tracing::warn!(reconciler = "jobs", cause = ?error.private(), "{error}");
    }
}

fn count(number: usize) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

/// Takes the leases of these jobs, as far as nobody else has them.
async fn claim(kernel: &Arc<Kernel>, wanted: Vec<(String, String)>) -> Result<Vec<ClaimedJob>> {
    let found = Arc::new(Mutex::new(Vec::new()));
    let sink = found.clone();
    kernel
        .system(OrganizationId::installation(), None, move |ctx| {
            let now = ctx.now();
            let mut claimed = Vec::with_capacity(wanted.len());
            for (organization, id) in &wanted {
                let params = params![organization.as_str(), id.as_str(), now, now.plus_secs(LEASE_SECS)];
                claimed.extend(ctx.query_opt(&TAKE, params, |row| {
                    Ok(ClaimedJob {
                        organization: OrganizationId::from_store(organization.clone()),
                        id: id.clone(),
                        kind: row.get(0)?,
                        payload: serde_json::from_str(&row.get::<String>(1)?).map_err(Error::internal)?,
                        attempts: row.get(2)?,
                        epoch: row.get(3)?,
                    })
                })?);
            }
            *sink.lock().unwrap_or_else(PoisonError::into_inner) = claimed;
            Ok(())
        })
        .await?;
    Ok(std::mem::take(
        &mut *found.lock().unwrap_or_else(PoisonError::into_inner),
    ))
}
