//! The work of a run in which decisions depend on earlier events: all of them, the oldest first, on one thread.
//!
//! ```text
//!   30 days, or as far as answers reach │ events that count
//!   ────────── past only ───────────────┼──────────────────────►
//!                                 a resumed run begins in the middle: its past is as far as answers reach
//! ```
//!
//! The past of a run begins 30 days before its first instant: the longest time that one history condition looks back.

use super::checkpoint::Progress;
use super::judge::{Judge, Origin, TranslatedBatch};
use super::run_context::RunContext;
use super::totals::Totals;
use super::work::is_lost;
use super::{Control, Engine, Part};
use provost_history::scan::{Projection, ordered_or};
use provost_history::{Batch, Error, EventPosition, MAX_EVENTS, Plan, Question, Result, Source, Unit};
use provost_policy::WITHIN_LIMIT_MS;
use std::cell::RefCell;
use std::collections::HashMap;
use std::ops::Range;
use std::sync::Arc;

/// Judges the events that are not done yet; returns what was counted, and whether all are done.
pub(super) fn run(
    engine: &Engine<'_>,
    plan: &Plan,
    sources: Vec<Source>,
    frame: &RunContext<'_>,
    progress: Progress,
    control: &Control<'_>,
) -> Result<(Totals, bool)> {
    let from = if plan.is_truncated() {
        plan.units()
            .iter()
            .map(|unit| unit.span().0)
            .min()
            .unwrap_or(engine.question.from_ms)
    } else {
        engine.question.from_ms
    };
    let mut start = from.saturating_sub(WITHIN_LIMIT_MS);
    if let Some(at_ms) = progress.at_ms {
        let reach = frame.baseline.reach_ms().max(frame.candidate.reach_ms());
        start = start.max(at_ms.saturating_sub(reach));
    }
    let whole = Plan::new(
        Arc::clone(plan.schema()),
        sources,
        Question {
            from: start,
            to: engine.question.to_ms,
            max_events: MAX_EVENTS,
        },
    )?;
    let counted: HashMap<(usize, usize), u64> = plan
        .units()
        .iter()
        .map(|unit| ((unit.source, unit.group), unit.rows.len() as u64))
        .collect();
    // The last ones count: the cut of the plan goes by the same order.
    let left = plan.events().saturating_sub(progress.totals.read);
    let stop = || control.is_over();
    let walk = RefCell::new(Walk {
        engine,
        plan,
        control,
        judge: Judge::new(frame, &stop),
        views: HashMap::new(),
        places: Vec::new(),
        limit: engine.tuning.symbol_bytes,
        past: whole.events().saturating_sub(left),
        since: 0,
        read: 0,
        at_ms: progress.at_ms,
        progress,
    });
    let watch = control.watch.beside();
    let projection = Projection {
        columns: frame.lens.positions(),
        with_ids: false,
    };
    let end = ordered_or(
        &whole,
        projection,
        &watch,
        |unit, batch, range| walk.borrow_mut().take(unit, batch, range),
        |unit, cause| walk.borrow_mut().lose(unit, &counted, cause),
    );
    let mut walk = walk.into_inner();
    let end = end.and_then(|()| walk.judge());
    let is_whole = match end {
        Ok(()) => true,
        Err(Error::Canceled) => false,
        Err(cause) => return Err(cause),
    };
    walk.settle()?;
    Ok((walk.progress.totals, is_whole))
}

struct Walk<'a> {
    engine: &'a Engine<'a>,
    plan: &'a Plan,
    control: &'a Control<'a>,
    judge: Judge<'a>,
    /// The batches that are being read, by their first dictionaries.
    views: HashMap<usize, TranslatedBatch>,
    /// Where the waiting events are.
    places: Vec<EventPosition>,
    limit: usize,
    /// How many of the next events are past only.
    past: u64,
    /// How many events were counted since the last checkpoint.
    since: u64,
    /// How many of the waiting events count.
    read: u64,
    /// The instant of the newest event that was counted.
    at_ms: Option<i64>,
    progress: Progress,
}

impl Walk<'_> {
    /// Adds a run of rows.
    fn take(&mut self, unit: &Unit, batch: &Batch, mut range: Range<usize>) -> Result<()> {
        let key = self.open(batch)?;
        while !range.is_empty() {
            let end = range.end.min(range.start + self.judge.room());
            let past = range.start
                + usize::try_from(self.past)
                    .unwrap_or(usize::MAX)
                    .min(end - range.start);
            // A checkpoint lies where it is due, and not only where a piece is full.
            let end = end.min(past.saturating_add(self.due()).max(range.start + 1));
            let Some(opened) = self.views.get_mut(&key) else {
                return Err(Error::Corrupt("view"));
            };
            self.judge
                .push(opened, batch, range.start..end, |row| u64::from(row >= past));
            // The sources of both plans are the same, and so are places in them.
            self.places.extend((range.start..end).map(|row| unit.place(row)));
            self.past -= (past - range.start) as u64;
            if past < end {
                self.read += (end - past) as u64;
                self.at_ms = batch.at.get(end - 1).copied();
                self.judge.totals().saw((batch.at[past], batch.at[end - 1]));
            }
            range.start = end;
            if self.judge.room() == 0 || self.due() == 0 {
                self.judge()?;
            }
        }
        Ok(())
    }

    /// Returns how many more events are counted before a checkpoint is due.
    fn due(&self) -> usize {
        let since = usize::try_from(self.since + self.read).unwrap_or(usize::MAX);
        self.engine.tuning.stripe_events.max(1).saturating_sub(since)
    }

    fn judge(&mut self) -> Result<()> {
        if self.judge.waiting() == 0 {
            return Ok(());
        }
        self.judge.judge(&Origin::Places(&self.places))?;
        self.places.clear();
        let read = std::mem::take(&mut self.read);
        self.judge.totals().read += read;
        self.control.watch.add(usize::try_from(read).unwrap_or(0));
        self.since += read;
        if self.due() == 0 {
            self.since = 0;
            self.settle()?;
            (self.control.checkpoint)(&Part {
                engine: self.engine,
                plan: self.plan,
                progress: &self.progress,
            });
        }
        Ok(())
    }

    /// Moves what was counted.
    fn settle(&mut self) -> Result<()> {
        let part = self.judge.part();
        self.progress.totals.add(part, self.plan)?;
        self.judge.follow(&self.progress.totals);
        self.progress.at_ms = self.at_ms;
        Ok(())
    }

    /// Counts a unit that cannot be read.
    fn lose(&mut self, unit: &Unit, counted: &HashMap<(usize, usize), u64>, cause: Error) -> Result<()> {
        if !is_lost(&cause) {
            return Err(cause);
        }
        let rows = unit.rows.len() as u64;
        let name = self.plan.name(unit);
        let unit = (unit.source, unit.group);
        let lost = if self.progress.lost.contains(&unit) {
            0
        } else {
            self.progress.lost.push(unit);
            counted.get(&unit).map_or(0, |counted| (*counted).min(rows))
        };
        self.past = self.past.saturating_sub(rows - lost);
        self.judge.totals().lose(name, lost);
        self.control.watch.add(usize::try_from(lost).unwrap_or(0));
        Ok(())
    }

    /// Translates the dictionaries of a batch, unless that was done; returns where they are.
    fn open(&mut self, batch: &Batch) -> Result<usize> {
        let key = batch
            .columns
            .first()
            .map_or(0, |column| Arc::as_ptr(&column.dictionary) as usize);
        if self
            .views
            .get(&key)
            .is_some_and(|opened| opened.view.is_of(batch))
        {
            return Ok(key);
        }
        // A batch that only its view remembers was read to its end.
        self.views.retain(|_, opened| opened.view.is_read());
        if self.judge.bytes() > self.limit {
            self.judge()?;
            self.views.clear();
            self.judge.renew();
            self.limit = self.engine.tuning.symbol_bytes.max(2 * self.judge.bytes());
        }
        let opened = self.judge.open(batch)?;
        self.views.insert(key, opened);
        Ok(key)
    }
}
