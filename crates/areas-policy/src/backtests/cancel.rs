//! Cancels a run (specification §4.5; D9.8).
//!
//! ```text
//! worker   … judges ─────────────── row says canceled ─▶ stops (≤ 250 ms)      its late writes are refused (BT-4)
//! caller            cancel ─ commit ─ 200
//! ```

use super::RUNNERS;
use super::create::principal;
use super::get::{RunPath, view};
use super::model::Run;
use super::sight::RunVisibility;
use super::view::RunView;
use super::{store, worker};
use crate::backtests::fences;
use provost_kernel::error::{Code, Error};
use provost_kernel::operation::{Empty, Input, Meta, Method, Operation, Precondition};
use provost_kernel::text::Reason;
use provost_kernel::{OperationContext, Result};

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
    .precondition(Precondition::Match)
    .answers(&["ETag"])
    .says(
        "Cancel a backtest that waits or runs",
        "The run is canceled when this answers; live enforcement is not touched. A canceled run stays as it is. One \
         that has succeeded or failed is refused with 409. What was evaluated so far stays as partial results. \
         If-Match refuses a record that has changed (412). Of a run that reads content this answers what is seen \
         without the scope policies:inspect, whoever asks: a repeat of the request is answered like the first one, also \
         after the scope was taken away.",
    );
    type Path = RunPath;
    type Query = Empty;
    type Body = Empty;
    type Output = RunView;

    fn call(ctx: &mut OperationContext<'_>, input: &Input<Self>) -> Result<RunView> {
        let id = &input.path.run_id;
        ctx.target(&fences::RUN, id.as_str());
        let mut run = store::get(ctx, id)?;
        must_match(input.if_match.as_deref(), ctx, &run)?;
        let (before, revision) = (run.status(), run.revision);
        let reason = input.reason.as_ref().map_or("", Reason::as_str);
        // INVARIANT BT-2: in every state that is not terminal.
        if run.cancel(principal(ctx), reason, ctx.now())? {
            store::save(ctx, &run, revision)?;
            ctx.notify_worker(worker::NAME);
            ctx.change("/status", before.as_str(), run.status().as_str());
            ctx.emit(
                &fences::CANCELED,
                &fences::CanceledRun {
                    run_id: run.id.clone(),
                    status: run.status(),
                    partial: run.is_partial(),
                },
            );
        }
        let (own, etags) = (RunVisibility::of_caller(ctx), etags(ctx, &run));
        // The answer is kept for repeats of the request, which may come after a scope was taken away.
        let shown = view(ctx, RunVisibility::Restricted, run)?;
        let [whole, restricted] = etags;
        let is_whole = own == RunVisibility::Whole && !shown.reads_content();
        ctx.header("etag", if is_whole { whole } else { restricted });
        Ok(shown)
    }
}

/// Returns the tags of both forms of a record; each tells the same state of it.
fn etags(ctx: &OperationContext<'_>, run: &Run) -> [String; 2] {
    [RunVisibility::Whole, RunVisibility::Restricted].map(|sight| run.etag(ctx.org(), sight))
}

/// Errors: `PreconditionFailed` with the caller's `ETag` of now (D1.9).
fn must_match(if_match: Option<&str>, ctx: &OperationContext<'_>, run: &Run) -> Result<()> {
    let etags = etags(ctx, run);
    let matches = if_match.is_none_or(|list| {
        let mut tags = list.split(',').map(str::trim);
        tags.any(|tag| tag == "*" || etags.iter().any(|etag| etag == tag))
    });
    if matches {
        return Ok(());
    }
    let message = "the backtest has changed since; read it again";
    let etag = run.etag(ctx.org(), RunVisibility::of_caller(ctx));
    Err(Error::new(Code::PreconditionFailed, message).with_header("etag", etag))
}
