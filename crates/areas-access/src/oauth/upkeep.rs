//! Forgetting what has run out.

use super::{links, store};
use provost_kernel::{Cx, Result, SureTime, params};

/// How long what has run out is kept, so that a clock that was set back finds it. Units: seconds.
const KEPT_SECS: i64 = 600;

/// Forgets codes, refresh tokens and assertions that have run out.
pub fn tidy(cx: &mut Cx<'_>, now: SureTime) -> Result<()> {
    let before = now.earlier_by(KEPT_SECS).instant();
    cx.queue(&store::PRUNE_CODES, params![before])?;
    cx.queue(&store::PRUNE_EXCHANGES, params![before])?;
    cx.queue(&store::PRUNE_REFRESH, params![before])?;
    links::tidy(cx, now)?;
    cx.queue(&store::PRUNE_ASSERTIONS, params![before])
}
