//! The reconcilers and the job worker: periodic, without input, harmless when they run twice.
//!
//! Keeps CK-1.

use crate::areas::{
    audit, backtests, decisions, directory, history, managed_config, mcp_sessions, oauth,
    resource_credentials, service_accounts, words,
};
use crate::proofs;
use crate::removal::{self, Removal};
use crate::rotation;
use provost_kernel::auth::OrganizationId;
use provost_kernel::error::Error;
use provost_kernel::jobs::{self, Handler};
use provost_kernel::supervisor::Supervisor;
use provost_kernel::{Kernel, Result, idempotency, ledger, outbox, params};
use std::sync::Arc;
use std::time::Duration;

/// Every job handler of the program.
pub fn handlers() -> Vec<Handler> {
    vec![
        service_accounts::HANDLER,
        resource_credentials::handler(),
        directory::HANDLER,
        mcp_sessions::HANDLER,
    ]
}

/// Starts every reconciler under a supervisor.
///
/// Errors: `Internal` when the system has no thread left.
pub fn start(kernel: &Arc<Kernel>, supervisor: &Supervisor) -> Result<()> {
    backtests::start(kernel, supervisor).map_err(Error::internal)?;
    let handlers = Arc::new(handlers());
    run_jobs(supervisor, kernel, handlers);
    now_and_every(supervisor, "clock", 60, kernel, |kernel, _| async move {
        kernel.keep_time().await
    });
    rotation::start(kernel, supervisor);
    every(supervisor, "counts", 60, kernel, |kernel| async move {
        kernel.flush_counts();
        Ok(())
    });
    every(supervisor, "unresolved", 60, kernel, |kernel| async move {
        words::flush(&kernel).await
    });
    every(
        supervisor,
        "uses",
        ledger::USE_FLUSH_SECS,
        kernel,
        |kernel| async move { kernel.flush_uses().await },
    );
    every(supervisor, "checkpoints", 15, kernel, |kernel| async move {
        audit::make_checkpoints(&kernel).await.map(drop)
    });
    every(supervisor, "proofs", 3600, kernel, |kernel| async move {
        proofs::round::verify(&kernel).await.map(drop)
    });
    now_and_every(supervisor, "ends", 3_600, kernel, |kernel, _| async move {
        crate::ends::trim(&kernel).await
    });
    every(supervisor, "expiry", 60, kernel, |kernel| async move {
        service_accounts::warn_of_expiry(&kernel).await.map(drop)
    });
    every(supervisor, "sessions", 30, kernel, |kernel| async move {
        mcp_sessions::sweep(&kernel).await.map(drop)
    });
    every(supervisor, "targets", 60, kernel, |kernel| async move {
        managed_config::watch_targets(&kernel).await.map(drop)
    });
    every(supervisor, "rewrap", 60, kernel, |kernel| async move {
        resource_credentials::secrets::rewrap(&kernel).await.map(drop)
    });
    // Decisions may come with the first request.
    now_and_every(supervisor, "pasts", 5, kernel, |kernel, _| async move {
        decisions::remember(&kernel).await
    });
    every(supervisor, "imports", 60, kernel, |kernel| async move {
        directory::tidy(&kernel).await.map(drop)
    });
    every(supervisor, "history-sealing", 5, kernel, |kernel| async move {
        history::seal(&kernel).await
    });
    now_and_every(
        supervisor,
        "history-place",
        3_600,
        kernel,
        |kernel, is_start| async move { history::watch(&kernel, is_start).await },
    );
    every(supervisor, "history-imports", 60, kernel, |kernel| async move {
        history::tell_of_imports(&kernel).await
    });
    every(
        supervisor,
        "history-retention",
        300,
        kernel,
        |kernel| async move { history::retain(&kernel).await },
    );
    every(supervisor, "retention", 300, kernel, |kernel| async move {
        mcp_sessions::retain(&kernel).await?;
        retain(&kernel).await
    });
    Ok(())
}

fn run_jobs(supervisor: &Supervisor, kernel: &Arc<Kernel>, handlers: Arc<Vec<Handler>>) {
    let (kernel, stop) = (kernel.clone(), supervisor.token());
    supervisor.spawn("jobs", async move { jobs::serve(&kernel, &handlers, stop).await });
}

/// Runs again and again, for the first time after so many seconds.
fn every<F>(
    supervisor: &Supervisor,
    name: &'static str,
    secs: u64,
    kernel: &Arc<Kernel>,
    run: impl Fn(Arc<Kernel>) -> F + Send + Sync + 'static,
) where
    F: Future<Output = Result<()>> + Send,
{
    rounds(supervisor, name, secs, kernel, false, move |kernel, _| {
        run(kernel)
    });
}

/// Runs now, which it is told, and again and again.
fn now_and_every<F>(
    supervisor: &Supervisor,
    name: &'static str,
    secs: u64,
    kernel: &Arc<Kernel>,
    run: impl Fn(Arc<Kernel>, bool) -> F + Send + Sync + 'static,
) where
    F: Future<Output = Result<()>> + Send,
{
    rounds(supervisor, name, secs, kernel, true, run);
}

fn rounds<F>(
    supervisor: &Supervisor,
    name: &'static str,
    secs: u64,
    kernel: &Arc<Kernel>,
    begins_now: bool,
    run: impl Fn(Arc<Kernel>, bool) -> F + Send + Sync + 'static,
) where
    F: Future<Output = Result<()>> + Send,
{
    let (kernel, stop) = (kernel.clone(), supervisor.token());
    supervisor.spawn(name, async move {
        let mut is_now = begins_now;
        loop {
            if !is_now {
                tokio::select! {
                    biased;
                    () = stop.cancelled() => return,
                    () = tokio::time::sleep(Duration::from_secs(secs)) => {}
                }
            }
            if let Err(error) = run(kernel.clone(), is_now).await {
                tracing::warn!(reconciler = name, cause = ?error.private(), "{error}");
            }
            is_now = false;
        }
    });
}

/// Writes what is buffered, before the kernel stops.
pub async fn finish(kernel: &Arc<Kernel>) {
    history::recorder(kernel).close().await;
    if let Err(error) = words::flush(kernel).await {
        tracing::warn!(cause = ?error.private(), "some counts of unresolved events were not written: {error}");
    }
    kernel.flush_counts();
    if let Err(error) = kernel.flush_uses().await {
        tracing::warn!(cause = ?error.private(), "the last uses of some tokens were not written: {error}");
    }
}

/// Ends replay cells that have run out, forgets old keys and events, destroys old day keys (D4.8, D4.9, D13), unless the clock
/// is doubted (CK-1).
pub async fn retain(kernel: &Arc<Kernel>) -> Result<()> {
    let Some(now) = kernel.undoubted().await? else {
        return Ok(());
    };
    let old_keys = now.earlier_by(idempotency::RETENTION_SECS);
    let old_events = now.earlier_by(outbox::RETENTION_SECS);
    let (keys, events) = kernel
        .read_system(move |tx| {
            let keys = Removal::count(tx, &idempotency::DUE, &idempotency::LEFT, old_keys)?;
            let events = Removal::count(tx, &outbox::DUE, &outbox::LEFT, old_events)?;
            Ok((keys, events))
        })
        .await?;
    let keys_go = removal::may_go(kernel, "idempotency".to_owned(), keys, now).await?;
    let events_go = removal::may_go(kernel, "events".to_owned(), events, now).await?;
    kernel
        .system(OrganizationId::installation(), None, move |cx| {
            cx.queue(&idempotency::ERASE_EXPIRED_CELLS, params![now.instant()])?;
            if keys_go {
                cx.queue(&idempotency::PRUNE, params![old_keys.instant()])?;
            }
            resource_credentials::prune_checks(cx, now)?;
            backtests::prune(cx, now)?;
            oauth::tidy(cx, now)?;
            words::prune(cx, now)?;
            if events_go {
                cx.queue(&outbox::PRUNE, params![old_events.instant()])?;
            }
            Ok(())
        })
        .await?;
    kernel.keys.destroy_day_keys(now)?;
    Ok(())
}
