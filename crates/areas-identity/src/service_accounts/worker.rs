//! What happens to accounts and tokens as time goes by.
//!
//! Keeps CK-1.

use super::model::ServiceAccountId;
use super::store;
use crate::service_accounts::fences;
use provost_kernel::auth::OrganizationId;
use provost_kernel::error::Error;
use provost_kernel::event::EventOf;
use provost_kernel::jobs::{Handler, NewJob, Work};
use provost_kernel::{Kernel, OperationContext, Result, SureTime, Timestamp, params};
use serde_json::Value;
use std::sync::Arc;

/// The job that removes a deleted account's rows.
pub const PURGE: &str = "service_account.purge";

/// Runs it.
pub const HANDLER: Handler = Handler {
    kind: PURGE,
    action: "service_account.purged",
    work: Work::Inside(purge),
};

/// When a purge is tried again while the clock is doubted. Units: seconds.
const POSTPONED_SECS: i64 = 3_600;

/// Days before the end of a token's life at which its owner is warned (D2.4).
const WARNINGS_DAYS: [i64; 3] = [14, 7, 1];

fn purge(ctx: &mut OperationContext<'_>, payload: &Value) -> Result<()> {
    let id = payload["serviceAccountId"]
        .as_str()
        .ok_or_else(|| Error::internal("a purge names no account"))?;
    let id = ServiceAccountId::from_text(id);
    ctx.target(&fences::ACCOUNT, id.as_str());
    // Whether its time has come, only an undoubted clock can say (CK-1).
    if ctx.services().doubt().is_some() {
        ctx.action("service_account.purge_postponed");
        ctx.enqueue(NewJob {
            kind: PURGE,
            payload: payload.clone(),
            run_at: ctx.now().plus_secs(POSTPONED_SECS),
        });
        return Ok(());
    }
    let org = ctx.org();
    ctx.execute(&store::PURGE_TOKENS, params![org, id.as_str()])?;
    ctx.execute(&store::PURGE, params![org, id.as_str()])?;
    Ok(())
}

struct RotationEnd {
    organization: OrganizationId,
    token_id: String,
    account_id: String,
    expires_at: Timestamp,
}

/// Emits `service_account.token.expiring` 14, 7 and 1 days before a token ends, and `expired` at the end.
/// A reconciler: a warning is remembered in its own transaction, so that it goes out once.
pub async fn warn_of_expiry(kernel: &Arc<Kernel>) -> Result<usize> {
    let Some(now) = kernel.undoubted().await?.map(SureTime::instant) else {
        return Ok(0);
    };
    let mut count = 0;
    for days in WARNINGS_DAYS.into_iter().rev() {
        let until = now.plus_secs(days * 86_400);
        let ending = kernel
            .read_system(move |tx| tx.query(&store::EXPIRING, params![now, until, days], read))
            .await?;
        for token in ending {
            warn(kernel, token, days, &fences::TOKEN_EXPIRING).await?;
            count += 1;
        }
    }
    for token in kernel
        .read_system(move |tx| tx.query(&store::EXPIRED, params![now], read))
        .await?
    {
        warn(kernel, token, 0, &fences::TOKEN_EXPIRED).await?;
        count += 1;
    }
    Ok(count)
}

fn read(row: &provost_kernel::db::Row<'_>) -> Result<RotationEnd> {
    Ok(RotationEnd {
        organization: OrganizationId::from_store(row.get(0)?),
        token_id: row.get(1)?,
        account_id: row.get(2)?,
        expires_at: row.get(3)?,
    })
}

async fn warn(
    kernel: &Arc<Kernel>,
    token: RotationEnd,
    days: i64,
    event: &'static EventOf<fences::TokenExpiry>,
) -> Result<()> {
    let organization = token.organization.clone();
    kernel
        .system(organization, None, move |ctx| {
            let (org, token) = (ctx.org(), &token);
            if ctx.execute(&store::WARNED, params![org, token.token_id.as_str(), days])? == 1 {
                // Named only here: another server may have warned, or the token may have been revoked since.
                ctx.action(event.word());
                ctx.target(&provost_kernel::fence::TOKEN, token.token_id.as_str());
                let data = fences::TokenExpiry {
                    service_account_id: token.account_id.clone(),
                    token_id: token.token_id.clone(),
                    expires_at: token.expires_at,
                };
                ctx.emit(event, &data);
            }
            Ok(())
        })
        .await
}
