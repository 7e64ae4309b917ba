//! Forgetting what has run out.

use super::{links, store};
use provost_kernel::{OperationContext, Result, SureTime, params};

/// How long what has run out is kept, so that a clock that was set back finds it. Units: seconds.
const KEPT_SECS: i64 = 600;

/// Forgets codes, refresh tokens and assertions that have run out.
pub fn tidy(ctx: &mut OperationContext<'_>, now: SureTime) -> Result<()> {
    let before = now.earlier_by(KEPT_SECS).instant();
    ctx.queue(&store::PRUNE_CODES, params![before])?;
    ctx.queue(&store::PRUNE_EXCHANGES, params![before])?;
    ctx.queue(&store::PRUNE_REFRESH, params![before])?;
    links::tidy(ctx, now)?;
    ctx.queue(&store::PRUNE_ASSERTIONS, params![before])
}
