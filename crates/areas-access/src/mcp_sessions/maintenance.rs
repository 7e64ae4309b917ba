//! What happens to sessions as time goes by: expiries are written down, old ones forgotten.

use super::model::KEPT_SECS;
use super::store;
use crate::mcp_sessions::fences;
use provost_kernel::auth::OrganizationId;
use provost_kernel::db::Statement;
use provost_kernel::{Kernel, OperationContext, Result, SureTime, params};
use serde_json::Value;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// How many rows one unit of work writes.
const CHUNK: i64 = 500;

/// Writes down the sessions that have run out and emits `mcp.session.expired` for each. A reconciler.
pub async fn sweep(kernel: &Arc<Kernel>) -> Result<u64> {
    let Some(now) = kernel.undoubted().await? else {
        return Ok(0);
    };
    let mut count = 0;
    for organization in with_any(kernel, &store::HAS_UNSWEPT, now).await? {
        count += in_chunks(kernel, &organization, now, |ctx, now| {
            let swept = store::sweep(ctx, now, CHUNK)?;
            for (id, at) in &swept {
                let data = fences::SessionExpiry {
                    session_id: id.clone(),
                    expired_at: *at,
                };
                ctx.emit(&fences::EXPIRED, &data);
            }
            if !swept.is_empty() {
                ctx.action("mcp.sessions.expired");
                ctx.change("/expired", Value::Null, swept.len());
            }
            Ok(swept.len() as u64)
        })
        .await?;
    }
    Ok(count)
}

/// Forgets the sessions that ended more than 90 days ago (D7.9); the audit log and the events told of their ends.
pub async fn retain(kernel: &Arc<Kernel>) -> Result<u64> {
    let Some(now) = kernel.undoubted().await? else {
        return Ok(0);
    };
    let mut count = 0;
    for organization in with_any(kernel, &store::HAS_OLD, now.earlier_by(KEPT_SECS)).await? {
        count += in_chunks(kernel, &organization, now, |ctx, now| {
            store::prune(ctx, now, CHUNK)
        })
        .await?;
    }
    Ok(count)
}

/// Returns the organizations for which the statement has a row.
async fn with_any(
    kernel: &Arc<Kernel>,
    has_any: &'static Statement,
    at: SureTime,
) -> Result<Vec<OrganizationId>> {
    kernel
        .read_system(move |tx| {
            let mut found = Vec::new();
            for organization in provost_areas_platform::store::organizations(tx)? {
                let any = tx.query_opt(has_any, params![organization.as_str(), at.instant()], |_| Ok(()))?;
                if any.is_some() {
                    found.push(organization);
                }
            }
            Ok(found)
        })
        .await
}

/// Runs units of work of an organization until one has less to do than it could; returns how much they did.
async fn in_chunks(
    kernel: &Arc<Kernel>,
    organization: &OrganizationId,
    now: SureTime,
    run: fn(&mut OperationContext<'_>, SureTime) -> Result<u64>,
) -> Result<u64> {
    let mut count = 0;
    loop {
        let done = Arc::new(AtomicU64::new(0));
        let sink = done.clone();
        kernel
            .system(organization.clone(), None, move |ctx| {
                sink.store(run(ctx, now)?, Ordering::Relaxed);
                Ok(())
            })
            .await?;
        let done = done.load(Ordering::Relaxed);
        count += done;
        if done < CHUNK.unsigned_abs() {
            return Ok(count);
        }
    }
}
