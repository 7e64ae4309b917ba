//! Forgetting what has run out.

use super::{links, store};
use provost_kernel::context::PRUNED_ROWS;
use provost_kernel::{OperationContext, Result, SureTime, params};

/// How long what has run out is kept, so that a clock that was set back finds it. Units: seconds.
const KEPT_SECS: i64 = 600;

/// Forgets codes, refresh tokens and assertions that have run out.
pub fn tidy(ctx: &mut OperationContext<'_>, now: SureTime) -> Result<()> {
    let before = now.earlier_by(KEPT_SECS).instant();
    ctx.prune(&store::PRUNE_CODES, params![before, PRUNED_ROWS])?;
    ctx.prune(&store::PRUNE_EXCHANGES, params![before, PRUNED_ROWS])?;
    ctx.prune(&store::PRUNE_REFRESH, params![before, PRUNED_ROWS])?;
    links::tidy(ctx, now)?;
    ctx.prune(&store::PRUNE_ASSERTIONS, params![before, PRUNED_ROWS])
}
