//! Tells the audit log of imports: one entry for each principal, source and hour, once the hour is over (HS-11).
//!
//! An entry for each event or body would drown the log (D9.11); none at all would let somebody write a past that nobody
//! answers for. The rows of imports know what was not told yet, so a server that was stopped tells it later.
//!
//! Keeps HS-11.

use super::store::{self, HOUR_MS, UnreportedImports, UntoldBody};
use crate::history::fences;
use provost_kernel::{Kernel, OperationContext, Result, Timestamp};
use serde_json::Value;
use std::sync::Arc;

/// LIMIT: how many digests stand in an entry; the digest of all of them stands beside.
const LISTED: usize = 500;

/// Leaves the entries of the hours that are over.
pub async fn tell_of_imports(kernel: &Arc<Kernel>) -> Result<()> {
    let now = kernel.clock.now().as_ms();
    let hour = Timestamp::from_ms(now - now.rem_euclid(HOUR_MS));
    loop {
        let untold = kernel.read_system(move |tx| store::untold(tx, hour)).await?;
        if untold.is_empty() {
            return Ok(());
        }
        for one in untold {
            let organization = one.organization.clone();
            let run = move |ctx: &mut OperationContext<'_>| {
                let bodies = store::tell(ctx, &one)?;
                // Another server may have told of them.
                if !bodies.is_empty() {
                    say(ctx, &one, &bodies);
                }
                Ok(())
            };
            kernel.system(organization, None, run).await?;
        }
    }
}

fn say(ctx: &mut OperationContext<'_>, untold: &UnreportedImports, bodies: &[UntoldBody]) {
    let sum = |of: fn(&UntoldBody) -> i64| bodies.iter().map(of).sum::<i64>();
    let all: Vec<&str> = bodies.iter().map(|body| body.sha256.as_str()).collect();
    let digest = provost_policy::sha256_hex(all.join("\n").as_bytes());
    let listed: Vec<&str> = all.into_iter().take(LISTED).collect();
    let hour = Timestamp::from_ms(untold.hour * HOUR_MS).to_rfc3339();
    ctx.action("policy.history.imported");
    ctx.target(&fences::SOURCE, untold.source.as_str());
    ctx.change("/principalId", Value::Null, untold.principal.as_str());
    ctx.change("/hour", Value::Null, hour);
    ctx.change("/bodies", Value::Null, bodies.len());
    ctx.change("/lines", Value::Null, sum(|body| body.lines));
    ctx.change("/events", Value::Null, sum(|body| body.events));
    ctx.change("/refused", Value::Null, sum(|body| body.refused));
    ctx.change("/sha256", Value::Null, listed);
    ctx.change("/sha256OfAll", Value::Null, digest);
}
