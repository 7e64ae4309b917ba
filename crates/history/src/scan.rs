//! Reading the events of a plan: by several threads in any order, or by one in the order of time.
//!
//! Memory is bounded by what is read at once, never by the window: a unit for each thread, or, in the order of time,
//! the units that overlap at one instant.

use crate::batch::Batch;
use crate::error::{Error, Result};
use crate::plan::{Plan, Unit};
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};

/// How a long reading is watched and stopped from another thread.
#[derive(Debug, Default)]
pub struct Watch {
    /// Set to stop the reading: nothing is read after the unit, or the run of events, that is at work.
    pub cancel: Arc<AtomicBool>,
    /// How many events were read so far; never decreases.
    pub processed: AtomicU64,
}

impl Watch {
    /// Returns a watch that is stopped with this one and counts for itself.
    #[must_use]
    pub fn beside(&self) -> Self {
        Self {
            cancel: Arc::clone(&self.cancel),
            processed: AtomicU64::new(0),
        }
    }

    /// Refuses to go on once the cancel flag is set.
    ///
    /// Errors: `Canceled`.
    pub fn check(&self) -> Result<()> {
        if self.cancel.load(Ordering::Relaxed) {
            Err(Error::Canceled)
        } else {
            Ok(())
        }
    }

    /// Counts events that were read.
    pub fn add(&self, events: usize) {
        self.processed.fetch_add(events as u64, Ordering::Relaxed);
    }
}

/// What is read of each event.
#[derive(Clone, Copy, Debug)]
pub struct Projection<'a> {
    /// The columns, by their positions in the schema.
    pub columns: &'a [usize],
    /// Whether the id is read too.
    pub with_ids: bool,
}

/// Reads the units of the plan with this many threads and returns what each thread made of its own.
///
/// Which thread reads which unit is chance: `each` must make something that can be joined in any order. A batch is
/// one row group or chunk; `Batch::pieces` gives smaller ranges of it.
///
/// Errors: `Canceled`, those of reading and of `each`; then the others stop as well.
pub fn fold<S: Send>(
    plan: &Plan,
    projection: Projection<'_>,
    threads: usize,
    watch: &Watch,
    init: impl Fn() -> S + Sync,
    each: impl Fn(&mut S, &Unit, &Batch) -> Result<()> + Sync,
) -> Result<Vec<S>> {
    share(plan.units().len(), threads, watch, init, |state, index| {
        let unit = &plan.units()[index];
        let batch = plan.read(unit, projection.columns, projection.with_ids)?;
        each(state, unit, &batch)?;
        watch.add(unit.rows.len());
        Ok(())
    })
}

/// Does `count` pieces of work with this many threads and returns the state of each thread.
pub(crate) fn share<S: Send>(
    count: usize,
    threads: usize,
    watch: &Watch,
    init: impl Fn() -> S + Sync,
    work: impl Fn(&mut S, usize) -> Result<()> + Sync,
) -> Result<Vec<S>> {
    let (next, has_failed) = (AtomicUsize::new(0), AtomicBool::new(false));
    let run = || {
        let mut state = init();
        while !has_failed.load(Ordering::Relaxed) {
            let index = next.fetch_add(1, Ordering::Relaxed);
            if index >= count {
                break;
            }
            if let Err(cause) = watch.check().and_then(|()| work(&mut state, index)) {
                has_failed.store(true, Ordering::Relaxed);
                return Err(cause);
            }
        }
        Ok(state)
    };
    if threads <= 1 {
        return Ok(vec![run()?]);
    }
    std::thread::scope(|scope| {
        let handles: Vec<_> = (0..threads).map(|_| scope.spawn(run)).collect();
        handles
            .into_iter()
            .map(|handle| {
                handle
                    .join()
                    .unwrap_or_else(|panic| std::panic::resume_unwind(panic))
            })
            .collect()
    })
}

/// Reads the events of the plan in the order of (instant, event id): `each` gets runs of rows of a batch, one after
/// the other.
///
/// Events that agree in both come in the order of their sources. Where sources do not overlap in time a run is a
/// whole batch; where they do, runs end where another source goes on.
///
/// Errors: `Canceled`, those of reading and of `each`.
pub fn ordered(
    plan: &Plan,
    columns: &[usize],
    watch: &Watch,
    mut each: impl FnMut(&Batch, Range<usize>) -> Result<()>,
) -> Result<()> {
    let projection = Projection {
        columns,
        with_ids: true,
    };
    let each = |_: &Unit, batch: &Batch, range| each(batch, range);
    ordered_or(plan, projection, watch, each, |_, cause| Err(cause))
}

/// The same, with the unit that a batch is of; without ids those that tell the order are read all the same.
///
/// `lost` decides what becomes of a unit that cannot be read, before any later event is given: the error, or going on
/// without it.
///
/// Errors: `Canceled`, those of `each` and of `lost`.
pub fn ordered_or(
    plan: &Plan,
    projection: Projection<'_>,
    watch: &Watch,
    mut each: impl FnMut(&Unit, &Batch, Range<usize>) -> Result<()>,
    mut lost: impl FnMut(&Unit, Error) -> Result<()>,
) -> Result<()> {
    let mut waiting: Vec<&Unit> = plan.units().iter().collect();
    waiting.sort_by_key(|unit| (unit.span.0, unit.source, unit.group));
    let mut waiting: Vec<(&Unit, bool)> = waiting.iter().copied().zip(mixed(&waiting)).collect();
    waiting.reverse();
    let mut open: Vec<Open> = Vec::new();
    loop {
        watch.check()?;
        // A unit that may begin at or before the next event must be open before that event is chosen.
        while let Some((unit, is_mixed)) = waiting.last() {
            if open
                .iter()
                .map(|open| open.key().0)
                .min()
                .is_some_and(|at| at < unit.span.0)
            {
                break;
            }
            match plan.read(unit, projection.columns, projection.with_ids || *is_mixed) {
                Ok(batch) => open.push(Open { unit, batch, row: 0 }),
                Err(cause) => lost(unit, cause)?,
            }
            waiting.pop();
        }
        let Some(first) = (0..open.len()).min_by(|a, b| open[*a].key().cmp(&open[*b].key())) else {
            return Ok(());
        };
        let others = open.iter().enumerate().filter(|(index, _)| *index != first);
        let limit = others.map(|(_, other)| other.key()).min();
        let begins = waiting.last().map(|(unit, _)| unit.span.0);
        let run = &open[first];
        let end = run.end(limit, begins);
        each(run.unit, &run.batch, run.row..end)?;
        watch.add(end - run.row);
        open[first].row = end;
        if end == open[first].batch.rows() {
            open.swap_remove(first);
        }
    }
}

/// Returns for each unit, which are sorted by their beginnings, whether it meets units of another source in time.
///
/// Where all events of some time are of one source, they lie in the order of (instant, event id): no id has to tell it.
fn mixed(units: &[&Unit]) -> Vec<bool> {
    let mut is_mixed = vec![false; units.len()];
    let mut start = 0;
    while let Some(first) = units.get(start) {
        // Units that touch, if only through others.
        let (mut end, mut last) = (start + 1, first.span.1);
        while let Some(next) = units.get(end).filter(|next| next.span.0 <= last) {
            last = last.max(next.span.1);
            end += 1;
        }
        let is_one = units[start..end].iter().all(|unit| unit.source == first.source);
        is_mixed[start..end].fill(!is_one);
        start = end;
    }
    is_mixed
}

/// A batch that is being read in the order of time.
struct Open<'a> {
    unit: &'a Unit,
    batch: Batch,
    row: usize,
}

type Key<'a> = (i64, &'a str, (usize, usize));

impl Open<'_> {
    fn key(&self) -> Key<'_> {
        self.key_of(self.row)
    }

    fn key_of(&self, row: usize) -> Key<'_> {
        let rank = (self.unit.source, self.unit.group);
        (self.batch.at[row], self.batch.ids.get(row), rank)
    }

    /// Returns the end of the rows that come before `limit` and before the instant `begins`; at least one does.
    fn end(&self, limit: Option<Key<'_>>, begins: Option<i64>) -> usize {
        let is_before = |row: usize| {
            begins.is_none_or(|at| self.batch.at[row] < at) && limit.is_none_or(|key| self.key_of(row) < key)
        };
        let (mut low, mut high) = (self.row + 1, self.batch.rows());
        while low < high {
            let middle = low.midpoint(high);
            if is_before(middle) {
                low = middle + 1;
            } else {
                high = middle;
            }
        }
        low
    }
}
