//! Reads a run (specification §4.9; D9.3, D9.9).

use super::READERS;
use super::model::{BacktestId, Run};
use super::question::Question;
use super::results::Results;
use super::sight::RunVisibility;
use super::store;
use super::view::RunView;
use provost_kernel::operation::{Empty, Input, Meta, Operation, Precondition};
use provost_kernel::{OperationContext, Result};
use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::{Deserialize, Serialize};
use std::borrow::Cow;

/// How soon a run that has not ended is worth another look. Units: seconds (D9.9).
const RETRY_SECS: &str = "2";

pub struct GetBacktest;

/// Names a run.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(inline)]
pub struct RunPath {
    /// The run.
    pub run_id: BacktestId,
}

/// The run; nothing where the caller has it already.
#[derive(Debug, Serialize)]
#[serde(transparent)]
pub struct RunAnswer(Option<RunView>);

impl JsonSchema for RunAnswer {
    fn inline_schema() -> bool {
        true
    }
    fn schema_name() -> Cow<'static, str> {
        RunView::schema_name()
    }
    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        RunView::json_schema(generator)
    }
}

impl Operation for GetBacktest {
    const META: Meta = Meta::read(
        "getHeadlessPolicyBacktest",
        "/policies/backtests/{runId}",
        "policies",
    )
    .access("policies:read", READERS)
    .command("backtests", "get")
    .also(304)
    .precondition(Precondition::NoneMatch)
    .answers(&["ETag", "Retry-After"])
    .errors(&[401, 403, 404])
    .says(
        "Read a backtest",
        "While it is queued or running the answer has Retry-After; with If-None-Match an unchanged record is answered \
         with 304. Results appear when it has succeeded, or for the part that was evaluated when it failed or was \
         canceled. Of a run that reads content whoever lacks the scope policies:inspect sees totals alone, without \
         digests and filters, and those only where none of them is small (results.restricted). The record goes away 30 \
         days after its end; what it asked stays.",
    );
    type Path = RunPath;
    type Query = Empty;
    type Body = Empty;
    type Output = RunAnswer;

    fn call(ctx: &mut OperationContext<'_>, input: &Input<Self>) -> Result<RunAnswer> {
        let run = store::get(ctx, &input.path.run_id)?;
        let sight = RunVisibility::of_caller(ctx);
        let etag = run.etag(ctx.org(), sight);
        ctx.header("etag", etag.clone());
        if !run.status().is_terminal() {
            ctx.header("retry-after", RETRY_SECS.to_owned());
        }
        // The caller has this record already: its content need not be read, and no body is sent.
        if input
            .if_none_match
            .as_deref()
            .is_some_and(|list| names(list, &etag))
        {
            ctx.status(304);
            return Ok(RunAnswer(None));
        }
        view(ctx, sight, run).map(|run| RunAnswer(Some(run)))
    }
}

/// Returns a run as it is shown, with all of its results that may be seen.
pub fn view(ctx: &mut OperationContext<'_>, sight: RunVisibility, run: Run) -> Result<RunView> {
    let content = store::content(ctx, &run.id)?;
    let results = match (content.results, content.samples) {
        (Some(results), Some(samples)) if run.shows_results() => {
            Some(Results::from_store(&results, Some(&samples))?)
        }
        _ => None,
    };
    let question = Question::from_store(&content.question)?;
    Ok(RunView::of(ctx.org(), sight, run, question, results))
}

/// Says whether a list of entity tags names this one. A weak tag compares equal to a strong one when a body is asked
/// for (RFC 9110 §13.1.2).
fn names(list: &str, etag: &str) -> bool {
    let mut tags = list.split(',').map(str::trim);
    tags.any(|tag| tag == "*" || tag.strip_prefix("W/").unwrap_or(tag) == etag)
}
