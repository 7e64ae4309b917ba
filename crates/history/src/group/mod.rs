//! Grouping: how often each distinct projection of the events occurs, when last, and on which days.
//!
//! A backtest pays for distinct behaviour: it judges each group once and multiplies. Where a segment knows the
//! behaviours of its events, one column of codes is read and the projection is taken of the table of behaviours;
//! otherwise the codes of the projected columns are combined, row group by row group.
//!
//! INVARIANT HI-7: a grouping depends on the events alone, not on threads, nor on how they lie in chunks and
//! segments: counts are sums, the newest event is a maximum by (instant, event id), and groups are sorted by their
//! values.
//!
//! Memory is bounded by `Limits`. When there are more distinct projections than that, grouping does not pay and the
//! answer is `Error::TooDistinct`; the caller judges event by event then.

mod local;
mod partial;

use crate::batch::{Column, Dictionary};
use crate::error::{Error, Result, invalid};
use crate::plan::{EventPosition, Plan, Unit};
use crate::scan::{Watch, share};
use crate::schema::Schema;
use crate::segment::{DAY_MS, Segment};
use crate::source::Source;
use partial::{Partial, Run, SourceProjections};
use std::sync::Arc;

/// How much memory a grouping takes at most.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// How many groups.
    pub groups: usize,
    /// How many groups times days of the window; four bytes each and thread.
    pub cells: usize,
    /// How many bytes for the distinct values of the projected columns, approximately and for each thread.
    pub value_bytes: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            groups: 262_144,
            cells: 16_777_216,
            value_bytes: 64 * 1024 * 1024,
        }
    }
}

/// Every distinct projection of the events of a plan.
#[derive(Clone, Debug, PartialEq)]
pub struct Groups {
    /// The projected columns, one row for each group, sorted by value column by column, missing first.
    pub columns: Vec<Column>,
    /// How many events each group has. Their sum is the number of events of the plan.
    pub counts: Vec<u64>,
    /// The instant of the newest event of each group. Units: milliseconds since the Unix epoch.
    pub newest_at: Vec<i64>,
    /// Where the newest event of each group is; of several at its instant that with the highest event id.
    pub newest: Vec<EventPosition>,
    /// The day of the first of `days`: days since the Unix epoch, UTC.
    pub first_day: i64,
    /// For each day from `first_day` on, how many events of each group happened on it, UTC.
    pub days: Vec<Vec<u32>>,
}

impl Groups {
    /// Returns how many groups there are.
    pub fn len(&self) -> usize {
        self.counts.len()
    }

    /// Returns whether there is none.
    pub fn is_empty(&self) -> bool {
        self.counts.is_empty()
    }
}

/// Groups the events of the plan by these columns, with this many threads.
///
/// Errors: `TooDistinct` when a limit is passed, `Invalid` without columns, `Canceled`, those of reading.
pub fn group(
    plan: &Plan,
    columns: &[usize],
    limits: Limits,
    threads: usize,
    watch: &Watch,
) -> Result<Groups> {
    if columns.is_empty() {
        return invalid("a projection has at least one column");
    }
    let days = Days::of(plan);
    if days.count > limits.cells {
        return Err(Error::TooDistinct);
    }
    let frame = GroupingContext {
        schema: plan.schema(),
        columns,
        days,
        limits,
    };
    // One piece of work is what the plan has of one source: its table of behaviours is translated once.
    let mut pieces: Vec<std::ops::Range<usize>> = Vec::new();
    for (index, unit) in plan.units().iter().enumerate() {
        match pieces.last_mut() {
            Some(piece) if plan.units()[piece.start].source == unit.source => piece.end = index + 1,
            _ => pieces.push(index..index + 1),
        }
    }
    let read = share(
        pieces.len(),
        threads,
        watch,
        || Partial::new(&frame),
        |partial, index| read_source(plan, &frame, pieces[index].clone(), partial, watch),
    );
    let mut partials = read?.into_iter();
    let mut all = partials.next().unwrap_or_else(|| Partial::new(&frame));
    partials.try_for_each(|partial| all.join(&partial, &frame))?;
    all.finish(plan, &frame)
}

/// What all threads know.
struct GroupingContext<'a> {
    schema: &'a Arc<Schema>,
    columns: &'a [usize],
    days: Days,
    limits: Limits,
}

/// The days on which events of a plan may have happened.
#[derive(Clone, Copy)]
struct Days {
    first: i64,
    count: usize,
}

impl Days {
    fn of(plan: &Plan) -> Self {
        let spans = plan.units().iter().map(|unit| unit.span);
        let Some((from, to)) = spans.reduce(|all, span| (all.0.min(span.0), all.1.max(span.1))) else {
            return Self { first: 0, count: 0 };
        };
        let (first, last) = (from.div_euclid(DAY_MS), to.div_euclid(DAY_MS));
        Self {
            first,
            count: usize::try_from(last - first + 1).unwrap_or(usize::MAX),
        }
    }
}

/// Adds what the plan has of one source.
fn read_source(
    plan: &Plan,
    frame: &GroupingContext<'_>,
    units: std::ops::Range<usize>,
    partial: &mut Partial,
    watch: &Watch,
) -> Result<()> {
    let source = plan.source(plan.units()[units.start].source);
    let behaviours = match source {
        Source::Segment(segment) => segment
            .behaviours(frame.columns, frame.schema)?
            .map(|table| (segment, table)),
        Source::Chunk(_) => None,
    };
    let units = &plan.units()[units];
    let Some((segment, table)) = behaviours else {
        return units
            .iter()
            .try_for_each(|unit| read_unit(plan, frame, unit, partial, watch));
    };
    let keys = partial.keys(&table.columns, frame)?;
    let mut known = vec![SourceProjections::default(); table.rows];
    for unit in units {
        watch.check()?;
        let (places, codes, at) = behaviour_codes(segment, unit)?;
        let run = Run {
            unit,
            at: &at,
            codes: &codes,
            places: &places,
        };
        partial.add(frame, &run, &keys, None, &mut known)?;
        watch.add(codes.len());
    }
    partial.settle(&known);
    Ok(())
}

/// Adds a unit of which no table of behaviours is known.
fn read_unit(
    plan: &Plan,
    frame: &GroupingContext<'_>,
    unit: &Unit,
    partial: &mut Partial,
    watch: &Watch,
) -> Result<()> {
    watch.check()?;
    let batch = plan.read(unit, frame.columns, false)?;
    let local = local::combine(&batch.columns, batch.rows());
    // Before any value is translated: that of the others would be for nothing.
    if local.first_rows.len() > frame.limits.groups {
        return Err(Error::TooDistinct);
    }
    let keys = partial.keys(&batch.columns, frame)?;
    let mut known = vec![SourceProjections::default(); local.first_rows.len()];
    let places: Vec<u32> = (0..).take(known.len()).collect();
    let run = Run {
        unit,
        at: &batch.at,
        codes: &local.codes,
        places: &places,
    };
    partial.add(frame, &run, &keys, Some(&local.first_rows), &mut known)?;
    partial.settle(&known);
    watch.add(batch.rows());
    Ok(())
}

/// Returns for the rows of a unit a dictionary of behaviours, for each row its place there, and the instants.
fn behaviour_codes(segment: &Segment, unit: &Unit) -> Result<(Vec<u32>, Vec<u32>, Vec<i64>)> {
    let (dictionary, mut codes) = segment.behaviour_codes(unit.group)?;
    codes.truncate(unit.rows.end);
    codes.drain(..unit.rows.start);
    // The file's reader counts codes from 1 on, and no row lacks one.
    for code in &mut codes {
        *code = code.saturating_sub(1);
    }
    let mut at = segment.instants(unit.group)?;
    at.truncate(unit.rows.end);
    at.drain(..unit.rows.start);
    Ok((dictionary, codes, at))
}

/// Returns the order of the values of a dictionary by value: for each code its rank, 0 for missing.
fn ranks(dictionary: &Dictionary) -> Vec<u32> {
    use crate::batch::Values;
    let mut codes: Vec<usize> = (0..dictionary.len()).collect();
    match &dictionary.values {
        Values::Texts(texts) => codes.sort_unstable_by(|a, b| texts.get(*a).cmp(texts.get(*b))),
        Values::Numbers(all) => codes.sort_unstable_by(|a, b| all[*a].total_cmp(&all[*b])),
        Values::Instants(all) => codes.sort_unstable_by_key(|index| all[*index]),
        Values::Booleans => {}
    }
    let mut ranks = vec![0; dictionary.len() + 1];
    for (rank, index) in (1..).zip(codes) {
        ranks[index + 1] = rank;
    }
    ranks
}
