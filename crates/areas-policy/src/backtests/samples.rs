//! Lists examples of events that the candidate decides differently.

use super::READERS;
use super::body::Word;
use super::get::RunPath;
use super::question::Question;
use super::results::{ChangeName, Sample, samples_from_store};
use super::{sight, store};
use provost_kernel::operation::{Empty, Input, Meta, Operation};
use provost_kernel::page::{Cursor, Limit};
use provost_kernel::{OperationContext, Result};
use provost_policy::sha256_hex;
use schemars::JsonSchema;
use serde::Deserialize;

pub struct ListSamples;

/// What can be asked.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[schemars(inline)]
pub struct SampleQuery {
    /// Samples of one change alone.
    change: Option<ChangeName>,
    /// Samples of one subject alone.
    subject_id: Option<Word>,
    /// Samples of one tool alone.
    tool: Option<Word>,
    /// How many at most.
    #[serde(default)]
    limit: Limit,
    /// Where an earlier page ended.
    cursor: Option<Cursor>,
}

provost_kernel::page! {
    /// One page.
    pub struct SamplePage {
        /// The samples: those that stand for the most events first.
        samples: Sample,
    }
}

impl Operation for ListSamples {
    const META: Meta = Meta::read(
        "listHeadlessPolicyBacktestSamples",
        "/policies/backtests/{runId}/samples",
        "policies",
    )
    .access("policies:read", READERS)
    .command("backtests", "samples").columns(&["at", "subjectId as subject", "tool", "baseline.decision as baseline", "candidate.decision as candidate", "candidate.policyIds as by", "count", "action as occasion", "principalId as caller", "source", "imported", "eventId as id"])
    .says(
        "List examples of events that a backtest decided differently",
        "At most 100 of a run, one for each distinct behaviour that changed: its newest event, and how many events \
         it stands for. Ids and decisions, no prompts and no arguments. Empty before the run shows results. Those of \
         a run that reads content need the scope policies:inspect as well.",
    );
    type Path = RunPath;
    type Query = SampleQuery;
    type Body = Empty;
    type Output = SamplePage;

    fn call(ctx: &mut OperationContext<'_>, input: &Input<Self>) -> Result<SamplePage> {
        let (query, keys, org) = (&input.query, &ctx.services().keys, ctx.org());
        let run = store::get(ctx, &input.path.run_id)?;
        let content = store::content(ctx, &run.id)?;
        if Question::from_store(&content.question)?.reads_content {
            sight::require(ctx, "seeing the samples of a backtest that reads content")?;
        }
        // A cursor of another run or another question would be a place in another list.
        let asked = (query.change, query.subject_id.as_ref(), query.tool.as_ref());
        let asked = sha256_hex(format!("{asked:?}").as_bytes());
        let list = format!("{} {} {asked}", Self::META.id, run.id);
        let cursor = query.cursor.as_ref();
        let start = cursor.map_or(Ok(0), |cursor| cursor.open(keys, org, &list))?;
        let stored = content.samples.filter(|_| run.shows_results());
        let samples = stored.map_or(Ok(Vec::new()), |text| samples_from_store(&text))?;
        let is_asked = |sample: &Sample| {
            query.change.is_none_or(|change| sample.is_change(change))
                && is(query.subject_id.as_ref(), sample.subject_id.as_deref())
                && is(query.tool.as_ref(), sample.tool.as_deref())
        };
        let start = usize::try_from(start).unwrap_or(usize::MAX);
        let limit = usize::try_from(query.limit.get()).unwrap_or(usize::MAX);
        let mut rest = samples.into_iter().filter(is_asked).skip(start);
        let samples: Vec<Sample> = rest.by_ref().take(limit).collect();
        let place = i64::try_from(start + samples.len()).unwrap_or(i64::MAX);
        let next_cursor = rest.next().map(|_| Cursor::issue(keys, org, &list, place));
        Ok(SamplePage { samples, next_cursor })
    }
}

fn is(asked: Option<&Word>, found: Option<&str>) -> bool {
    asked.is_none_or(|word| found == Some(word.as_str()))
}
