//! Asks for a backtest (D9.1, D9.5).

use super::RUNNERS;
use super::body::CreateBody;
use super::model::{BacktestId, MAX_QUEUED, Principal, Run, Status};
use super::question::{Question, changes_to_store};
use super::sight::RunVisibility;
use super::view::RunView;
use super::{engine, store, worker};
use crate::backtests::fences;
use provost_kernel::error::{Code, Error};
use provost_kernel::operation::{Empty, Input, Meta, Method, Operation};
use provost_kernel::text::{Name, Reason};
use provost_kernel::{OperationContext, Result};

/// LIMIT: bytes and levels of the body, which may hold a whole policy set (D1.10).
const BODY: (usize, usize) = (2 * 1024 * 1024, 64);
/// How long a caller waits who finds the queue full. Units: seconds.
const QUEUE_RETRY_SECS: u32 = 30;

pub struct CreateBacktest;

impl Operation for CreateBacktest {
    const META: Meta = Meta::write(
        "createHeadlessPolicyBacktest",
        Method::Post,
        "/policies/backtests",
        "policies",
    )
    .access("policies:backtest", RUNNERS)
    .command("backtests", "create")
    .example(
        r#"{"candidate": {"kind": "inline", "family": "content", "definition": {"id": "no-shell",
           "name": "Shells are blocked", "action": "block", "evaluateOn": ["pre_tool"], "acknowledgeBroadScope": true,
           "conditions": {"field": "tool.id", "op": "eq", "value": "Bash"}}},
           "window": {"from": "2026-11-13T00:00:00.000Z", "to": "2026-11-20T00:00:00.000Z"}}"#,
    )
    .status(201)
    .answers(&["Location", "ETag"])
    .reads_up_to(BODY.0, BODY.1)
    .says(
        "Ask what other policies would have decided on recorded events",
        "Both policy sets are pinned when the run is made, and nothing that is live is touched. The candidate is a \
         stored policy or an inline definition (judged as if it were enabled), a list of changes of the live set, or \
         a whole set of up to 1000 policies. The window lies within the retention of the history and spans at most \
         the days of the setting policies.maxBacktestDays; newest events come first when there are more than limits.maxEvents. Two runs of an organization \
         are worked on at a time and 20 wait; a further one is refused with 429. A definition that breaks its \
         contract, and a policy or version that is not there, is refused with 422 and JSON Pointers. Where a policy \
         that differs between the two sets reads content (a tool's input and result, prompts, responses, free text of \
         requests, or by a module), the scope policies:inspect is needed as well.",
    );
    type Path = Empty;
    type Query = Empty;
    type Body = CreateBody;
    type Output = RunView;

    fn validate(input: &Input<Self>) -> Result<()> {
        input.body.check()
    }

    fn call(ctx: &mut OperationContext<'_>, input: &Input<Self>) -> Result<RunView> {
        let (question, changes) = Question::pin(ctx, &input.body)?;
        if store::count(ctx, Status::Queued)? >= MAX_QUEUED {
            let message =
                format!("{MAX_QUEUED} backtests of this organization wait already; try again later");
            return Err(Error::new(Code::RateLimited, message).retry_after(QUEUE_RETRY_SECS));
        }
        let id: BacktestId = ctx.new_id();
        ctx.target(&fences::RUN, id.as_str());
        let reason = input.reason.as_ref().map_or("", Reason::as_str);
        let mut run = Run::queued(id, principal(ctx), reason, ctx.now());
        run.name = input.body.name.as_ref().map(|name| Name::as_str(name).to_owned());
        engine::VERSION.clone_into(&mut run.engine_version);
        store::insert(ctx, &run, &question.to_store()?, &changes_to_store(&changes)?)?;
        let path = if question.seal.is_some() {
            "/policySet/candidate/sealedDigest"
        } else {
            "/policySet/candidate/digest"
        };
        ctx.change(path, serde_json::Value::Null, question.audit_digest());
        ctx.emit(
            &fences::QUEUED,
            &fences::RunStanding {
                run_id: run.id.clone(),
                status: run.status(),
                code: None,
            },
        );
        ctx.notify_worker(worker::NAME);
        let base = format!("/api/headless/v1/organizations/{}", ctx.org());
        ctx.header("location", format!("{base}/policies/backtests/{}", run.id));
        let sight = RunVisibility::of_caller(ctx);
        ctx.header("etag", run.etag(ctx.org(), sight));
        Ok(RunView::of(ctx.org(), sight, run, question, None))
    }
}

/// Returns the caller, as records name who did something.
pub fn principal(ctx: &OperationContext<'_>) -> Principal {
    let actor = ctx.actor();
    Principal {
        kind: actor.kind.to_owned(),
        id: actor.id.clone(),
    }
}
