//! The reconcilers and the job worker: periodic, without input, harmless when they run twice.
//!
//! Keeps CK-1.

use provost_areas_platform::removal::{self, Removal};
use provost_kernel::area::Timer;
use provost_kernel::auth::OrganizationId;
use provost_kernel::context::PRUNED_ROWS;
use provost_kernel::db::Statement;
use provost_kernel::supervisor::Supervisor;
use provost_kernel::{Kernel, OperationContext, Result, SureTime, idempotency, outbox, params};
use std::sync::Arc;
use std::time::Duration;

/// Starts what every area does without being asked, under a supervisor.
///
/// Errors: `Internal` when the system has no thread left.
pub fn start(kernel: &Arc<Kernel>, supervisor: &Supervisor) -> Result<()> {
    for area in kernel.areas().iter() {
        if let Some(start) = area.start {
            start(kernel, supervisor)?;
        }
        for timer in area.timers {
            run(supervisor, kernel, *timer);
        }
    }
    Ok(())
}

fn run(supervisor: &Supervisor, kernel: &Arc<Kernel>, timer: Timer) {
    let (kernel, stop) = (kernel.clone(), supervisor.token());
    supervisor.spawn(timer.name, async move {
        let mut is_now = timer.begins_now;
        loop {
            if !is_now {
                tokio::select! {
                    biased;
                    () = stop.cancelled() => return,
                    () = tokio::time::sleep(Duration::from_secs(timer.secs)) => {}
                }
            }
            if let Err(error) = (timer.run)(kernel.clone(), is_now).await {
                tracing::warn!(reconciler = timer.name, cause = ?error.private(), "{error}");
            }
            is_now = false;
        }
    });
}

/// Writes what is buffered, before the kernel stops: the areas that stand on others first.
pub async fn finish(kernel: &Arc<Kernel>) {
    for area in kernel.areas().iter().rev() {
        if let Some(finish) = area.finish {
            finish(kernel.clone()).await;
        }
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
    let mut round = Ok(());
    let mut goes = |what: &str, outcome: Result<()>| {
        // What cannot be removed of one kind keeps no other kind (ADR 0067).
        if let Err(error) = outcome {
            tracing::warn!(what, cause = ?error.private(), "what is old could not be removed: {error}");
            if round.is_ok() {
                round = Err(error);
            }
        }
    };
    goes(
        "replay cells",
        remove(kernel, &idempotency::ERASE_EXPIRED_CELLS, now).await,
    );
    if keys_go {
        goes("keys", remove(kernel, &idempotency::PRUNE, old_keys).await);
    }
    for area in kernel.areas().iter() {
        if let Some(prune) = area.prune {
            let run = move |ctx: &mut OperationContext<'_>| prune(ctx, now);
            goes(
                area.name,
                kernel.prune(&OrganizationId::installation(), run).await,
            );
        }
    }
    if events_go {
        goes("events", remove(kernel, &outbox::PRUNE, old_events).await);
    }
    // Whoever lost a cell's day has lost the cell, also where its row could not be changed.
    kernel.keys.destroy_day_keys(now)?;
    round
}

/// Removes by a statement what ended before an instant.
async fn remove(kernel: &Arc<Kernel>, statement: &'static Statement, before: SureTime) -> Result<()> {
    let run =
        move |ctx: &mut OperationContext<'_>| ctx.prune(statement, params![before.instant(), PRUNED_ROWS]);
    kernel.prune(&OrganizationId::installation(), run).await
}
