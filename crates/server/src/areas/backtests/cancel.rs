//! Cancels a run (specification §4.5; D9.8).
//!
//! ```text
//! worker   … judges ─────────────── row says canceled ─▶ stops (≤ 250 ms)      its late writes are refused (BT-4)
//! caller            cancel ─ commit ─ 200
//! ```

use super::RUNNERS;
use super::create::principal;
use super::get::{RunPath, view};
use super::view::RunView;
use super::{store, worker};
use provost_kernel::error::{Code, Error};
use provost_kernel::operation::{Empty, Input, Meta, Method, Operation};
use provost_kernel::text::Reason;
use provost_kernel::{Cx, Result};
use serde_json::json;

/// See [`Operation::META`].
pub struct CancelBacktest;

impl Operation for CancelBacktest {
    const META: Meta = Meta::write(
        "cancelHeadlessPolicyBacktest",
        Method::Post,
        "/policies/backtests/{runId}/cancel",
        "policies",
    )
    .access("policies:backtest", RUNNERS)
    .command("backtests", "cancel")
    .confirmed()
    .says(
        "Cancel a backtest that waits or runs",
        "The run is canceled when this answers; live enforcement is not touched. A canceled run stays as it is. One \
         that has succeeded or failed is refused with 409. What was evaluated so far stays as partial results. \
         If-Match refuses a record that has changed (412).",
    );
    type Path = RunPath;
    type Query = Empty;
    type Body = Empty;
    type Output = RunView;

    fn call(cx: &mut Cx<'_>, input: &Input<Self>) -> Result<RunView> {
        let id = &input.path.run_id;
        cx.target("policy_backtest", id.as_str());
        let mut run = store::get(cx, id)?;
        must_match(input.if_match.as_deref(), &run.etag(cx.org()))?;
        let (before, revision) = (run.status(), run.revision);
        let reason = input.reason.as_ref().map_or("", Reason::as_str);
        // INVARIANT BT-2: in every state that is not terminal.
        if run.cancel(principal(cx), reason, cx.now())? {
            store::save(cx, &run, revision)?;
            cx.wake(worker::NAME);
            cx.change("/status", before.as_str(), run.status().as_str());
            cx.emit(
                "policy.backtest.canceled",
                json!({ "runId": run.id, "status": run.status(), "partial": run.is_partial() }),
            );
        }
        cx.header("etag", run.etag(cx.org()));
        view(cx, run)
    }
}

/// Errors: `PreconditionFailed` with the `ETag` of now (D1.9).
fn must_match(if_match: Option<&str>, etag: &str) -> Result<()> {
    let matches = if_match.is_none_or(|list| {
        let mut tags = list.split(',').map(str::trim);
        tags.any(|tag| tag == "*" || tag == etag)
    });
    if matches {
        return Ok(());
    }
    let message = "the backtest has changed since; read it again";
    Err(Error::new(Code::PreconditionFailed, message).with_header("etag", etag))
}
