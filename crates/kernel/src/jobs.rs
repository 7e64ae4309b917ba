//! Work that is not an answer: durable jobs and reconcilers.
//!
//! A *durable job* is a row enqueued inside a unit of work. It is claimed with a lease, runs as a unit of its
//! own, and its row goes away in that same unit: a handler that only changes the store acts exactly once, one
//! that reaches outside acts at least once. A failed run is tried again with growing pauses; after
//! [`MAX_ATTEMPTS`] it is dead and stays for people to look at. A *reconciler* is periodic, takes no input
//! and is idempotent; the composition root runs it.
//!
//! The worker decides which of them run, and where (`worker.rs`).
//!
//! INVARIANT JB-1: a job whose lease passed to another worker has no effect (fencing by `lease_epoch`).

use crate::auth::OrganizationId;
use crate::context::OperationContext;
use crate::error::{Error, Result};
use crate::kernel::Kernel;
use serde_json::Value;
use std::pin::Pin;
use std::sync::Arc;

mod worker;

pub use crate::job::NewJob;
pub use worker::{STATEMENTS as WORKER_STATEMENTS, serve};

/// A boxed future.
pub type BoxFuture<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

crate::statements! {
    /// Removes a job that is done, if the lease is still ours.
    FINISH = "DELETE FROM jobs WHERE organization_id = ?1 AND id = ?2 AND lease_epoch = ?3";
    /// Puts a failed job back, or aside.
    FAIL = "UPDATE jobs SET lease_until = NULL, run_at = ?4, state = ?5, last_error = ?6 WHERE organization_id = ?1 AND id = ?2 AND lease_epoch = ?3";
}

/// After so many runs a job is dead.
pub const MAX_ATTEMPTS: i64 = 8;
const LEASE_SECS: i64 = 60;
/// Within the lease, so that a slow answer is not asked for twice at a time.
const ASK_SECS: u64 = 30;

/// Runs the jobs of one kind.
pub struct Handler {
    /// The kind.
    pub kind: &'static str,
    /// The action in the audit log.
    pub action: &'static str,
    /// What is done.
    pub work: Work,
}

/// Does a job's part in its own unit of work; sees the job's payload.
pub type Inside = fn(&mut OperationContext<'_>, &Value) -> Result<()>;

/// Asks the outside world about a job's payload, outside of any transaction. What it returns holds no secret.
pub type OutsideQuestion =
    Box<dyn Fn(Arc<Kernel>, OrganizationId, Value) -> BoxFuture<'static, Result<Value>> + Send + Sync>;

/// What a job does.
pub enum Work {
    /// Changes the store, in one unit of work of the job's organization, exactly once.
    Inside(Inside),
    /// Reaches outside, at least once, and then settles what came of it, exactly once.
    Outside {
        /// Reaches outside.
        ask: OutsideQuestion,
        /// Sees the payload and what `ask` returned.
        settle: fn(&mut OperationContext<'_>, &Value, &Value) -> Result<()>,
    },
}

struct ClaimedJob {
    organization: OrganizationId,
    id: String,
    kind: String,
    payload: Value,
    attempts: i64,
    epoch: i64,
}

/// Runs what is due as far as there is room ([`worker`]), and returns how many jobs ran.
///
/// Errors: those of noting what became of a job; the others end all the same.
pub async fn run_due(kernel: &Arc<Kernel>, handlers: &Arc<Vec<Handler>>) -> Result<usize> {
    let mut worker = worker::Worker::new(kernel, handlers);
    let begun = worker.begin().await?;
    worker.end().await?;
    Ok(begun)
}

async fn run_one(kernel: &Arc<Kernel>, handlers: &Arc<Vec<Handler>>, job: ClaimedJob) -> Result<()> {
    let result = match handlers.iter().position(|h| h.kind == job.kind) {
        None => Err(Error::internal(format!(
            "no handler for jobs of kind {}",
            job.kind
        ))),
        Some(place) => work(kernel, handlers, place, &job).await,
    };
    let Err(error) = result else { return Ok(()) };
    tracing::warn!(job = %job.id, kind = %job.kind, attempt = job.attempts, cause = ?error.private(), "a job failed: {error}");
    let state = if job.attempts >= MAX_ATTEMPTS {
        "dead"
    } else {
        "queued"
    };
    let pause_secs = 10_i64 << job.attempts.clamp(0, 12);
    let message = error.message().to_owned();
    kernel
        .system(job.organization.clone(), None, move |ctx| {
            let (org, run_at) = (ctx.org(), ctx.now().plus_secs(pause_secs));
            ctx.queue(
                &FAIL,
                crate::params![org, &job.id, job.epoch, run_at, state, &message],
            )
        })
        .await
}

async fn work(
    kernel: &Arc<Kernel>,
    handlers: &Arc<Vec<Handler>>,
    place: usize,
    job: &ClaimedJob,
) -> Result<()> {
    let handler = &handlers[place];
    let found = match &handler.work {
        Work::Inside(_) => Value::Null,
        Work::Outside { ask, .. } => {
            let asked = ask(kernel.clone(), job.organization.clone(), job.payload.clone());
            let patience = std::time::Duration::from_secs(ASK_SECS);
            let asked = tokio::time::timeout(patience, asked).await;
            asked.map_err(|_| Error::unavailable("the outside world did not answer in time"))??
        }
    };
    let (id, epoch, payload) = (job.id.clone(), job.epoch, job.payload.clone());
    let shared = handlers.clone();
    kernel
        .system(job.organization.clone(), Some(handler.action), move |ctx| {
            let org = ctx.org();
            if ctx.execute(&FINISH, crate::params![org, &id, epoch])? == 0 {
                return Err(Error::new(
                    crate::Code::Conflict,
                    "the job's lease passed to another worker",
                ));
            }
            match &shared[place].work {
                Work::Inside(run) => run(ctx, &payload),
                Work::Outside { settle, .. } => settle(ctx, &payload, &found),
            }
        })
        .await
}
