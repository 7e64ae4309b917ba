//! The work of a run whose decisions depend on no other event: stripes, the newest first, on several threads.
//!
//! A stripe is a part of the plan between two ends of exceptions, mostly some segments. Its events are
//! grouped and each group judged once; where they are too distinct for it, each event is judged.

use super::checkpoint::Progress;
use super::judge::{Judge, Origin};
use super::run_context::RunContext;
use super::totals::Totals;
use super::{Control, Engine, Part};
use provost_history::group::{Groups, Limits, group};
use provost_history::{Batch, Error, Plan, Result, Unit};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};

/// How many rows a stripe has at least where there are more, a row group; and at most where modules have to judge.
const LEAST_ROWS: u64 = 131_072;
const MODULE_ROWS: usize = 16_384;
/// How many stripes are judged event by event after one whose events were too distinct to group.
const PAUSE: usize = 4;

/// Returns whether an error says that some events cannot be read, now or ever.
pub(super) fn is_lost(cause: &Error) -> bool {
    match cause {
        Error::Corrupt(_) | Error::Newer => true,
        Error::Storage(cause) => matches!(
            cause.kind(),
            std::io::ErrorKind::NotFound | std::io::ErrorKind::UnexpectedEof
        ),
        _ => false,
    }
}

/// Returns the stripes of a plan, the newest first; the same for the same plan and sets.
pub(super) fn stripes(plan: &Plan, frame: &RunContext<'_>, stripe_events: usize) -> Result<Vec<Vec<Unit>>> {
    // What several sources have is grouped together and judged once; yet several threads shall have work. Modules are
    // too slow for large stripes.
    let share = usize::try_from((plan.events() / 8).max(LEAST_ROWS)).unwrap_or(usize::MAX);
    let most_rows = if frame.has_rego { MODULE_ROWS } else { share };
    let most_rows = most_rows.min(stripe_events.max(1));
    let mut stripes: Vec<(usize, Vec<Unit>)> = Vec::new();
    for unit in plan.units() {
        for (window, unit) in windows(plan, unit, frame.projection.instants())? {
            for part in cut(&unit, most_rows) {
                // Stripes of different windows alternate where a source is cut.
                let open = stripes.iter_mut().rev().take(8).find(|(of, units)| {
                    let rows: usize = units.iter().map(|unit| unit.rows.len()).sum();
                    *of == window && rows + part.rows.len() <= most_rows
                });
                match open {
                    Some((_, units)) => units.push(part),
                    None => stripes.push((window, vec![part])),
                }
            }
        }
    }
    stripes.sort_by_key(|(_, units)| std::cmp::Reverse(units.iter().map(|unit| unit.span().1).max()));
    Ok(stripes.into_iter().map(|(_, units)| units).collect())
}

/// Cuts a unit at the instants that tell events apart; gives the number of those that are past.
fn windows(plan: &Plan, unit: &Unit, instants: &[i64]) -> Result<Vec<(usize, Unit)>> {
    let (first, last) = unit.span();
    let mut number = instants.partition_point(|instant| *instant <= first);
    let mut parts = Vec::new();
    let mut rest = Some(unit.clone());
    while let Some(unit) = rest.take() {
        match instants.get(number) {
            Some(instant) if *instant <= last => match plan.split(&unit, *instant) {
                Ok((older, newer)) => {
                    parts.extend(older.map(|older| (number, older)));
                    rest = newer;
                }
                // Reading it will fail as well, and its events will count as errors.
                Err(cause) if is_lost(&cause) => parts.push((number, unit)),
                Err(cause) => return Err(cause),
            },
            _ => parts.push((number, unit)),
        }
        number += 1;
    }
    Ok(parts)
}

fn cut(unit: &Unit, rows: usize) -> Vec<Unit> {
    let range = unit.rows.clone();
    let part = |start: usize| {
        let mut part = unit.clone();
        part.rows = start..range.end.min(start + rows);
        part
    };
    range.clone().step_by(rows).map(part).collect()
}

/// Judges every stripe that is not done yet; returns what was counted, and whether all are done.
pub(super) fn run(
    engine: &Engine<'_>,
    plan: &Plan,
    frame: &RunContext<'_>,
    progress: Progress,
    control: &Control<'_>,
) -> Result<(Totals, bool)> {
    let stripes = stripes(plan, frame, engine.tuning.stripe_events)?;
    let mut progress = progress;
    progress.done.resize(stripes.len(), false);
    let open: Vec<usize> = (0..stripes.len()).filter(|at| !progress.done[*at]).collect();
    let (next, pause) = (AtomicUsize::new(0), AtomicUsize::new(0));
    let shared = Mutex::new(progress);
    let stop = || control.is_over();
    let one = || -> Result<()> {
        let mut judge = Judge::new(frame, &stop);
        loop {
            let Some(at) = open.get(next.fetch_add(1, Ordering::Relaxed)) else {
                return Ok(());
            };
            if stop() {
                return Ok(());
            }
            let stripe = &stripes[*at];
            let (part, is_whole) = stripe_totals(engine, plan, &mut judge, stripe, &pause, control)?;
            let mut progress = shared.lock().unwrap_or_else(PoisonError::into_inner);
            progress.totals.add(part, plan)?;
            judge.follow(&progress.totals);
            if !is_whole {
                return Ok(());
            }
            progress.done[*at] = true;
            (control.checkpoint)(&Part {
                engine,
                plan,
                progress: &progress,
            });
        }
    };
    if engine.threads <= 1 {
        one()?;
    } else {
        std::thread::scope(|scope| -> Result<()> {
            let handles: Vec<_> = (0..engine.threads).map(|_| scope.spawn(one)).collect();
            let mut result = Ok(());
            for handle in handles {
                let one = handle
                    .join()
                    .unwrap_or_else(|panic| std::panic::resume_unwind(panic));
                result = result.and(one);
            }
            result
        })?;
    }
    let progress = shared.into_inner().unwrap_or_else(PoisonError::into_inner);
    let is_whole = progress.done.iter().all(|done| *done);
    Ok((progress.totals, is_whole))
}

/// Returns what is counted of a stripe, and whether all of it was judged.
fn stripe_totals(
    engine: &Engine<'_>,
    plan: &Plan,
    judge: &mut Judge<'_>,
    stripe: &[Unit],
    pause: &AtomicUsize,
    control: &Control<'_>,
) -> Result<(Totals, bool)> {
    let rests = |left: usize| left.checked_sub(1);
    let is_paused = pause
        .fetch_update(Ordering::Relaxed, Ordering::Relaxed, rests)
        .is_ok();
    if engine.tuning.may_group && !is_paused {
        let part = plan.part(stripe.to_vec());
        let rows = usize::try_from(part.events()).unwrap_or(usize::MAX);
        match group(
            &part,
            judge.lens().positions(),
            limits(rows),
            1,
            &control.watch.beside(),
        ) {
            Ok(groups) => {
                match judge_groups(judge, groups) {
                    Ok(()) => {}
                    // Half of the groups say nothing about the other half.
                    Err(Error::Canceled) => return Ok((Totals::new(), false)),
                    Err(cause) => return Err(cause),
                }
                for unit in stripe {
                    judge.totals().saw(unit.span());
                }
                judge.totals().read += part.events();
                control.watch.add(rows);
                judge.forget(engine.tuning.symbol_bytes);
                return Ok((judge.part(), true));
            }
            Err(Error::TooDistinct) => pause.store(PAUSE, Ordering::Relaxed),
            Err(Error::Canceled) => return Ok((Totals::new(), false)),
            // Unit by unit it turns out which part it is.
            Err(cause) if is_lost(&cause) => {}
            Err(cause) => return Err(cause),
        }
    }
    let mut all = Totals::new();
    let mut walk = WalkResult::default();
    for unit in stripe {
        if !walk.takes(unit) {
            all.add(judge.part(), plan)?;
            walk = WalkResult::default();
        }
        walk.add(unit);
        match judge_unit(judge, plan, unit, control) {
            Ok(()) => {}
            Err(Error::Canceled) => {
                all.add(judge.part(), plan)?;
                return Ok((all, false));
            }
            Err(cause) if is_lost(&cause) => {
                judge.totals().lose(plan.name(unit), unit.rows.len() as u64);
                control.watch.add(unit.rows.len());
            }
            Err(cause) => return Err(cause),
        }
        judge.forget(engine.tuning.symbol_bytes);
    }
    all.add(judge.part(), plan)?;
    Ok((all, true))
}

/// What one walk has seen. In it rows of one instant come in the order of their ids: so they are of one source.
#[derive(Default)]
struct WalkResult {
    span: Option<(i64, i64)>,
    /// The source, if it was only one.
    source: Option<usize>,
}

impl WalkResult {
    /// Returns whether the walk can go on with this unit.
    fn takes(&self, unit: &Unit) -> bool {
        let (first, last) = unit.span();
        let meets = |(from, to): (i64, i64)| first <= to && from <= last;
        self.source == Some(unit.source) || !self.span.is_some_and(meets)
    }

    fn add(&mut self, unit: &Unit) {
        let (first, last) = unit.span();
        self.source = match self.span {
            None => Some(unit.source),
            Some(_) => self.source.filter(|source| *source == unit.source),
        };
        self.span = Some(
            self.span
                .map_or((first, last), |(from, to)| (from.min(first), to.max(last))),
        );
    }
}

/// Grouping pays where a group stands for several events.
fn limits(rows: usize) -> Limits {
    Limits {
        // Fewer than the rows of a row group: whether events are too distinct turns out after one of them.
        groups: (rows / 2).clamp(1_024, 65_536),
        cells: 4_194_304,
        value_bytes: 24 * 1024 * 1024,
    }
}

fn judge_groups(judge: &mut Judge<'_>, mut groups: Groups) -> Result<()> {
    let batch = Batch {
        at: groups.newest_at.clone(),
        ids: provost_history::Texts::default(),
        columns: std::mem::take(&mut groups.columns),
    };
    let mut opened = judge.open(&batch)?;
    for range in batch.pieces(judge.room()) {
        judge.push(&mut opened, &batch, range, |row| groups.counts[row]);
        judge.judge(&Origin::Groups(&groups))?;
    }
    Ok(())
}

fn judge_unit(judge: &mut Judge<'_>, plan: &Plan, unit: &Unit, control: &Control<'_>) -> Result<()> {
    // All of it is read before any is counted: a unit is lost wholly or not at all.
    let batch = plan.read(unit, judge.lens().positions(), false)?;
    let mut opened = judge.open(&batch)?;
    for range in batch.pieces(judge.room()) {
        let (start, rows) = (range.start, range.len());
        judge.push(&mut opened, &batch, range, |_| 1);
        judge.judge(&Origin::Unit(unit))?;
        let totals = judge.totals();
        totals.read += rows as u64;
        totals.saw((batch.at[start], batch.at[start + rows - 1]));
        control.watch.add(rows);
    }
    Ok(())
}
