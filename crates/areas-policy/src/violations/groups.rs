//! Counts of violations by policy, subject, tool or day, from the numbers that are kept.
//!
//! Keeps VI-3.

use super::list::ListQuery;
use super::model::{DAY_MS, DAYS, Dimension, Outcome};
use super::store::{self, Sums, Wanted};
use super::view::{Names, Sight, SubjectView};
use provost_backtest::record;
use provost_kernel::error::Error;
use provost_kernel::text::LongName;
use provost_kernel::{OperationContext, Result, Timestamp};
use schemars::JsonSchema;
use serde::Serialize;
use std::collections::BTreeSet;

/// How far back counts go where nobody says. Units: days, today among them.
const USUAL_DAYS: i64 = 30;

provost_kernel::word! {
    /// By what violations are counted.
    pub enum GroupBy {
        Policy = "policy",
        Subject = "subject",
        Tool = "tool",
        Day = "day",
    }
}

impl GroupBy {
    /// Returns what those are called together that have no policy, subject or tool; every one has a day.
    const fn rest(self) -> Option<&'static str> {
        match self {
            Self::Policy => Some("no_policy"),
            Self::Subject => Some("no_subject"),
            Self::Tool => Some("no_tool"),
            Self::Day => None,
        }
    }
}

/// Violations that are counted together.
#[derive(Debug, Default, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(inline)]
pub struct Group {
    #[serde(skip_serializing_if = "Option::is_none")]
    policy_id: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    subject: Option<SubjectView>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tool: Option<String>,
    /// In their place, of the group of those that have none: `no_policy`, such as refusals by the standing of an MCP server, `no_subject` or
    /// `no_tool`.
    #[serde(skip_serializing_if = "Option::is_none")]
    rest: Option<&'static str>,
    /// When the day began, UTC.
    #[serde(skip_serializing_if = "Option::is_none")]
    day: Option<Timestamp>,
    /// How many there are.
    events: i64,
    outcomes: OutcomeCounts,
    /// Of how many decisions of the policy somebody said that they were wrong, as far as they are kept; of policies alone.
    #[serde(skip_serializing_if = "Option::is_none")]
    feedback: Option<i64>,
}

/// How many of each outcome.
#[derive(Debug, Default, Serialize, JsonSchema)]
#[schemars(inline)]
struct OutcomeCounts {
    blocked: i64,
    approved: i64,
    asked: i64,
    redacted: i64,
    flagged: i64,
    monitored: i64,
    bypassed: i64,
}

/// What counts are of.
#[derive(Debug, Default, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(inline)]
pub struct CountsView {
    /// How many groups, or days that have something, there are.
    groups: i64,
    /// How many events are in no group by name, because their days have no room for more names.
    unnamed_events: i64,
    /// How many events of the time have a source that is not told apart, because their days have no room for more: no `source` finds them.
    unsourced_events: i64,
    /// When counting began: of decisions that were recorded before nothing is counted. Absent before the first count.
    #[serde(skip_serializing_if = "Option::is_none")]
    counted_since: Option<Timestamp>,
    /// How many parts of the history were gone before they were counted, could not be read, or held too much for one count.
    uncounted_chunks: i64,
}

impl From<&Sums> for OutcomeCounts {
    fn from(sums: &Sums) -> Self {
        let of = |wanted: Outcome| {
            let all = Outcome::ALL.iter().zip(sums.outcomes);
            all.filter(|(outcome, _)| **outcome == wanted)
                .map(|(_, count)| count)
                .sum()
        };
        Self {
            blocked: of(Outcome::Blocked),
            approved: of(Outcome::Approved),
            asked: of(Outcome::Asked),
            redacted: of(Outcome::Redacted),
            flagged: of(Outcome::Flagged),
            monitored: of(Outcome::Monitored),
            bypassed: of(Outcome::Bypassed),
        }
    }
}

/// Returns groups and what they are of.
///
/// Errors: `InvalidRequest` for what the numbers cannot answer.
pub fn counted(
    ctx: &mut OperationContext<'_>,
    query: &ListQuery,
    by: GroupBy,
) -> Result<(Vec<Group>, CountsView)> {
    let (dimension, name) = place(query, by)?;
    let today = ctx.now().as_ms().div_euclid(DAY_MS);
    let from = day_of("/query/from", query.from)?.unwrap_or(today - USUAL_DAYS + 1);
    let to = day_of("/query/to", query.to)?.unwrap_or(today + 2);
    if from >= to {
        return Err(Error::unfit("/query/from", "must be before to"));
    }
    if from < today - DAYS {
        return Err(Error::unfit("/query/from", "counts are kept for 90 days"));
    }
    let wanted = Wanted {
        dimension,
        first_day: from,
        last_day: to - 1,
        name,
        action: query.action.map(super::list::ActionWord::as_str),
        mode: query.mode.map(super::list::ModeWord::as_str),
        source: query.source.as_ref().map(LongName::as_str),
        outcome: query.outcome,
    };
    let limit = query.limit.get();
    let unsourced = Wanted {
        dimension: Dimension::All,
        name: None,
        source: Some(""),
        ..wanted
    };
    let unsourced_events = store::events(ctx, &unsourced)?;
    let (names, days, unnamed_events) = store::size(ctx, &wanted)?;
    let groups = match by {
        GroupBy::Day => of_days(&store::days(ctx, &wanted, limit)?),
        GroupBy::Policy | GroupBy::Subject | GroupBy::Tool => {
            let found = store::groups(ctx, &wanted, limit)?;
            named(ctx, by, found)?
        }
    };
    let org = ctx.org();
    let head = store::head(&mut ctx.tx(), org)?;
    let counts = CountsView {
        groups: match by {
            GroupBy::Day => days,
            GroupBy::Policy | GroupBy::Subject | GroupBy::Tool => names,
        },
        unnamed_events,
        unsourced_events,
        counted_since: head.map(|head| Timestamp::from_ms(head.since_day * DAY_MS)),
        uncounted_chunks: head.map_or(0, |head| head.uncounted),
    };
    Ok((groups, counts))
}

/// Returns by which dimension is counted, and of which name alone.
///
/// Errors: `InvalidRequest` for a filter that stands in another dimension: nobody has counted both together.
fn place(query: &ListQuery, by: GroupBy) -> Result<(Dimension, Option<&str>)> {
    let mut named = [
        ("/query/policyId", Dimension::Policy, &query.policy_id),
        ("/query/subjectId", Dimension::Subject, &query.subject_id),
        ("/query/tool", Dimension::Tool, &query.tool),
    ]
    .into_iter()
    .filter_map(|(path, dimension, name)| Some((path, dimension, name.as_ref()?.as_str())));
    let own = match by {
        GroupBy::Policy => Some(Dimension::Policy),
        GroupBy::Subject => Some(Dimension::Subject),
        GroupBy::Tool => Some(Dimension::Tool),
        GroupBy::Day => None,
    };
    let unanswered = |path: &'static str| {
        let message = "is not counted together with this groupBy; leave one of them out";
        Err(Error::unfit(path, message))
    };
    if query.device_id.is_some() {
        return unanswered("/query/deviceId");
    }
    if query.cursor.is_some() {
        return unanswered("/query/cursor");
    }
    let source = query.source.as_ref().map(LongName::as_str);
    if source.is_some_and(record::is_device) {
        let message = "devices are not told apart in counts; say source=device for what all of them told, or leave groupBy out";
        return Err(Error::unfit("/query/source", message));
    }
    let Some((path, dimension, name)) = named.next() else {
        return Ok((own.unwrap_or(Dimension::All), None));
    };
    if own.is_some_and(|own| own != dimension) {
        return unanswered(path);
    }
    match named.next() {
        Some((path, ..)) => unanswered(path),
        None => Ok((dimension, Some(name))),
    }
}

/// Returns the day that begins at an instant.
///
/// Errors: `InvalidRequest` for an instant within a day: counts are of whole days.
fn day_of(path: &'static str, at: Option<Timestamp>) -> Result<Option<i64>> {
    let Some(at) = at else { return Ok(None) };
    if at.as_ms().rem_euclid(DAY_MS) != 0 {
        let message = "must be the beginning of a day, UTC: counts are of whole days";
        return Err(Error::unfit(path, message));
    }
    Ok(Some(at.as_ms().div_euclid(DAY_MS)))
}

fn of_days(found: &[(i64, Sums)]) -> Vec<Group> {
    let group = |(day, sums): &(i64, Sums)| Group {
        day: Some(Timestamp::from_ms(day * DAY_MS)),
        events: sums.events,
        outcomes: sums.into(),
        ..Group::default()
    };
    found.iter().map(group).collect()
}

fn named(ctx: &mut OperationContext<'_>, by: GroupBy, found: Vec<(String, Sums)>) -> Result<Vec<Group>> {
    let org = ctx.org();
    let ids: BTreeSet<String> = match by {
        GroupBy::Subject => found.iter().map(|(name, _)| name.clone()).collect(),
        GroupBy::Policy | GroupBy::Tool | GroupBy::Day => BTreeSet::new(),
    };
    let sight = Sight::of(ctx);
    let names = Names::of(&mut ctx.tx(), org, &ids, sight)?;
    let mut groups = Vec::with_capacity(found.len());
    for (name, sums) in found {
        let mut group = Group {
            events: sums.events,
            outcomes: (&sums).into(),
            ..Group::default()
        };
        let known = Some(name).filter(|name| !name.is_empty());
        if known.is_none() {
            group.rest = by.rest();
        }
        match by {
            GroupBy::Policy => {
                if let Some(id) = &known {
                    group.feedback = Some(store::said_of(ctx, id)?);
                }
                group.policy_id = known;
            }
            GroupBy::Subject => {
                group.subject = known.map(|id| {
                    let mut subject = SubjectView::of(None, &id);
                    subject.tell(&names);
                    subject
                });
            }
            GroupBy::Tool => group.tool = known,
            GroupBy::Day => {}
        }
        groups.push(group);
    }
    Ok(groups)
}
