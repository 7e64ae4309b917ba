//! Lists runs.

use super::READERS;
use super::model::Status;
use super::question::Question;
use super::results::Results;
use super::sight::RunVisibility;
use super::store;
use super::view::RunView;
use provost_kernel::operation::{Empty, Input, Meta, Operation};
use provost_kernel::page::{self, Cursor, Limit};
use provost_kernel::{OperationContext, Result};
use schemars::JsonSchema;
use serde::Deserialize;

pub struct ListBacktests;

/// What can be asked.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[schemars(inline)]
pub struct ListQuery {
    /// Runs of this status alone.
    status: Option<Status>,
    /// How many at most.
    #[serde(default)]
    limit: Limit,
    /// Where an earlier page ended.
    cursor: Option<Cursor>,
}

provost_kernel::page! {
    /// One page.
    pub struct RunPage {
        /// The runs, the newest first, without `results.samples`.
        backtests: RunView,
    }
}

impl Operation for ListBacktests {
    const META: Meta = Meta::read("listHeadlessPolicyBacktests", "/policies/backtests", "policies")
        .access("policies:read", READERS)
        .command("backtests", "list").columns(&["name", "status", "results.changed as changed events", "createdAt as created", "id", "results.eventsEvaluated as evaluated", "progress.percent as percent", "createdBy.id as by", "window.from as from", "window.to as to", "finishedAt as finished", "reason", "failure.message as failure"])
        .says(
            "List backtests, the newest first",
            "Without the samples of their results; those have a list of their own. Runs that read content are shown as \
             one alone is, to those with the scope policies:inspect and to others.",
        );
    type Path = Empty;
    type Query = ListQuery;
    type Body = Empty;
    type Output = RunPage;

    fn call(ctx: &mut OperationContext<'_>, input: &Input<Self>) -> Result<RunPage> {
        let (query, org) = (&input.query, ctx.org());
        // A cursor of another status would be a place in another list.
        let list = format!("{} {}", Self::META.id, query.status.map_or("", Status::as_str));
        let before = page::start(ctx, &list, query.cursor.as_ref(), i64::MAX)?;
        let mut found = store::list(ctx, query.status, before, query.limit.get() + 1)?;
        let next_cursor = page::end(ctx, &list, query.limit, &mut found, |(last, _)| last.seq);
        let sight = RunVisibility::of_caller(ctx);
        let backtests = found.into_iter().map(|(run, content)| {
            let shown = content.results.filter(|_| run.shows_results());
            let results = shown.map(|text| Results::from_store(&text, None)).transpose()?;
            Ok(RunView::of(
                org,
                sight,
                run,
                Question::from_store(&content.question)?,
                results,
            ))
        });
        Ok(RunPage {
            backtests: backtests.collect::<Result<_>>()?,
            next_cursor,
        })
    }
}
