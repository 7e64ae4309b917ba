//! Which events a question is about: a window of time over segments and chunks, cut to the newest.
//!
//! A plan is a list of units, each a range of rows of one row group or chunk. It is made from headers; instants are
//! read only where the window's edge or the cut falls inside a unit. The same sources and question give the same
//! plan, and the same events whether they lie in chunks or segments (INVARIANT HI-6: the cut goes by instant and
//! event id, which sealing does not change).
//!
//! INVARIANT HI-6: a question is about the same events whether they lie in chunks or in segments.

use crate::batch::Batch;
use crate::error::{Error, Result, invalid};
use crate::schema::Schema;
use crate::source::Source;
use crate::texts::Texts;
use std::collections::HashMap;
use std::ops::Range;
use std::sync::Arc;

/// How many events a question is about at most. Source: D9.5.
pub const MAX_EVENTS: u64 = 1_000_000_000;
/// How many units' instants the search for the cut keeps: 64 MiB.
const KEPT_UNITS: usize = 64;

/// What a plan is asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Question {
    /// The first instant that counts. Units: milliseconds since the Unix epoch.
    pub from: i64,
    /// The first instant that counts no more.
    pub to: i64,
    /// How many events count at most, the newest.
    pub max_events: u64,
}

/// Some events of one row group or chunk.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unit {
    /// The place of the source in the plan.
    pub source: usize,
    /// The place of the row group in its segment; 0 for a chunk.
    pub group: usize,
    /// The rows of the row group or chunk that count.
    pub rows: Range<usize>,
    /// The instants of the first and the last event.
    pub(crate) span: (i64, i64),
}

/// Which event of a plan.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct EventPosition {
    /// The place of the source in the plan.
    pub source: u32,
    /// The place of the row group in its segment; 0 for a chunk.
    pub group: u32,
    /// The row of the row group or chunk.
    pub row: u32,
}

/// The events that a question is about.
#[derive(Clone)]
pub struct Plan {
    schema: Arc<Schema>,
    sources: Arc<[Source]>,
    units: Vec<Unit>,
    events: u64,
    is_truncated: bool,
}

impl Plan {
    /// Plans a question over these sources.
    ///
    /// Errors: `Invalid` unless `from < to` and `max_events` is 1 to `MAX_EVENTS`; those of reading.
    pub fn new(schema: Arc<Schema>, mut sources: Vec<Source>, question: Question) -> Result<Self> {
        if question.from >= question.to {
            return invalid("the window ends before it begins");
        }
        if question.max_events == 0 || question.max_events > MAX_EVENTS {
            return invalid(format!("the number of events is 1 to {MAX_EVENTS}"));
        }
        sources.sort_by(|a, b| (a.span(), a.name()).cmp(&(b.span(), b.name())));
        let mut plan = Self {
            schema,
            sources: sources.into(),
            units: Vec::new(),
            events: 0,
            is_truncated: false,
        };
        for source in 0..plan.sources.len() {
            for (group, (rows, span)) in plan.sources[source].groups().into_iter().enumerate() {
                plan.keep(
                    Unit {
                        source,
                        group,
                        rows: 0..rows,
                        span,
                    },
                    &question,
                )?;
            }
        }
        plan.events = plan.units.iter().map(|unit| unit.rows.len() as u64).sum();
        if plan.events > question.max_events {
            plan.cut(question.max_events)?;
        }
        Ok(plan)
    }

    /// Returns the schema of the events.
    pub fn schema(&self) -> &Arc<Schema> {
        &self.schema
    }

    /// Returns how many events count.
    pub fn events(&self) -> u64 {
        self.events
    }

    /// Returns whether older events of the window were left out because there are too many.
    pub fn is_truncated(&self) -> bool {
        self.is_truncated
    }

    /// Returns the units, ordered by source and row group.
    pub fn units(&self) -> &[Unit] {
        &self.units
    }

    /// Returns the plan of these units of it, or of parts of them; places of events stay what they are.
    #[must_use]
    pub fn part(&self, units: Vec<Unit>) -> Self {
        Self {
            schema: Arc::clone(&self.schema),
            sources: Arc::clone(&self.sources),
            events: units.iter().map(|unit| unit.rows.len() as u64).sum(),
            units,
            is_truncated: self.is_truncated,
        }
    }

    /// Returns what of a unit happened before an instant, and what did not.
    ///
    /// Errors: those of reading, where the instant falls inside the unit.
    pub fn split(&self, unit: &Unit, at: i64) -> Result<(Option<Unit>, Option<Unit>)> {
        if unit.span.1 < at {
            return Ok((Some(unit.clone()), None));
        }
        if unit.span.0 >= at {
            return Ok((None, Some(unit.clone())));
        }
        let instants = self.instants(unit)?;
        let first = instants.partition_point(|other| *other < at);
        let (mut older, mut newer) = (unit.clone(), unit.clone());
        older.rows.end = first.clamp(unit.rows.start, unit.rows.end);
        newer.rows.start = older.rows.end;
        older.narrow(&instants);
        newer.narrow(&instants);
        Ok((Some(older), Some(newer)))
    }

    /// Returns the name of the chunk or segment that a unit is a part of.
    pub fn name(&self, unit: &Unit) -> &str {
        self.source(unit.source).name()
    }

    pub(crate) fn source(&self, index: usize) -> &Source {
        &self.sources[index]
    }

    /// Returns the positions of the columns with these names.
    ///
    /// Errors: `Invalid` when there is no such column.
    pub fn columns(&self, names: &[&str]) -> Result<Vec<usize>> {
        let position = |name: &&str| {
            self.schema
                .position(name)
                .ok_or_else(|| Error::Invalid(format!("there is no column {name}")))
        };
        names.iter().map(position).collect()
    }

    /// Returns the events of a unit with these columns, and with ids if asked for.
    ///
    /// Errors: those of reading.
    pub fn read(&self, unit: &Unit, columns: &[usize], with_ids: bool) -> Result<Batch> {
        match &self.sources[unit.source] {
            Source::Segment(segment) => {
                segment.batch(unit.group, &unit.rows, columns, &self.schema, with_ids)
            }
            Source::Chunk(chunk) => {
                let mut batch = chunk.batch(&self.schema)?;
                let mut ids = Texts::default();
                if with_ids {
                    unit.rows
                        .clone()
                        .try_for_each(|row| ids.push(batch.ids.get(row)))?;
                }
                batch.at.truncate(unit.rows.end);
                batch.at.drain(..unit.rows.start);
                let columns = columns.iter().map(|index| {
                    let mut column = batch.columns[*index].clone();
                    column.trim(&unit.rows);
                    column
                });
                Ok(Batch {
                    columns: columns.collect(),
                    at: batch.at,
                    ids,
                })
            }
        }
    }

    /// Returns these columns of some events: for each row group the places of its events, ascending, and the batch from
    /// the first of them to the last.
    ///
    /// Errors: those of reading, for each row group alone.
    pub fn rows<'a>(
        &'a self,
        places: &'a mut [EventPosition],
        columns: &'a [usize],
    ) -> impl Iterator<Item = (&'a [EventPosition], Result<Batch>)> + 'a {
        places.sort_unstable();
        let groups = places.chunk_by(|a, b| (a.source, a.group) == (b.source, b.group));
        groups.filter_map(move |group| {
            let (first, last) = (group.first()?, group.last()?);
            let unit = Unit {
                source: first.source as usize,
                group: first.group as usize,
                rows: first.row as usize..last.row as usize + 1,
                span: self.sources.get(first.source as usize)?.span(),
            };
            Some((group, self.read(&unit, columns, false)))
        })
    }

    /// Returns the ids of these events.
    ///
    /// Errors: those of reading.
    /// Cost: in each row group the pages in which its events are are unpacked, once.
    pub fn ids(&self, places: &[EventPosition]) -> Result<Vec<String>> {
        let mut order: Vec<usize> = (0..places.len()).collect();
        order.sort_unstable_by_key(|index| places[*index]);
        let mut ids = vec![String::new(); places.len()];
        let group = |index: &usize| (places[*index].source, places[*index].group);
        for of_group in order.chunk_by(|a, b| group(a) == group(b)) {
            let Some((source, group)) = of_group.first().map(group) else {
                continue;
            };
            let mut rows: Vec<usize> = of_group.iter().map(|index| places[*index].row as usize).collect();
            rows.dedup();
            let texts = self.ids_of_rows(source as usize, group as usize, rows.iter().copied())?;
            for index in of_group {
                let nth = rows.partition_point(|row| *row < places[*index].row as usize);
                texts.get(nth).clone_into(&mut ids[*index]);
            }
        }
        Ok(ids)
    }

    /// Returns the ids of some events, whose rows ascend.
    fn ids_of_rows(&self, source: usize, group: usize, rows: impl Iterator<Item = usize>) -> Result<Texts> {
        match &self.sources[source] {
            Source::Segment(segment) => segment.ids(group, rows),
            Source::Chunk(chunk) => {
                let batch = chunk.batch(&self.schema)?;
                let mut ids = Texts::default();
                for row in rows {
                    ids.push(batch.ids.get(row))?;
                }
                Ok(ids)
            }
        }
    }

    fn instants(&self, unit: &Unit) -> Result<Vec<i64>> {
        match &self.sources[unit.source] {
            Source::Segment(segment) => segment.instants(unit.group),
            Source::Chunk(chunk) => Ok(chunk.batch(&self.schema)?.at),
        }
    }

    /// Adds what of the unit lies in the window.
    fn keep(&mut self, mut unit: Unit, question: &Question) -> Result<()> {
        let (min_at, max_at) = unit.span;
        if max_at < question.from || min_at >= question.to {
            return Ok(());
        }
        if min_at < question.from || max_at >= question.to {
            let at = self.instants(&unit)?;
            unit.rows =
                at.partition_point(|at| *at < question.from)..at.partition_point(|at| *at < question.to);
            unit.narrow(&at);
        }
        if !unit.rows.is_empty() {
            self.units.push(unit);
        }
        Ok(())
    }

    /// Leaves of each unit the rows from this one on.
    fn start(&mut self, starts: &[usize]) -> Result<()> {
        for (index, start) in starts.iter().enumerate() {
            let is_cut = self.units[index].rows.start < *start;
            self.units[index].rows.start = *start;
            if is_cut && !self.units[index].rows.is_empty() {
                let at = self.instants(&self.units[index])?;
                self.units[index].narrow(&at);
            }
        }
        self.units.retain(|unit| !unit.rows.is_empty());
        Ok(())
    }

    /// Leaves the newest `max_events` events.
    fn cut(&mut self, max_events: u64) -> Result<()> {
        let mut search = Search {
            plan: self,
            kept: HashMap::new(),
        };
        // The oldest instant from which on there are not too many events; those just before it come in part.
        let spans = search.plan.units.iter().map(|unit| unit.span);
        let (mut low, mut high) = spans.fold((i128::MAX, i128::MIN), |all, span| {
            (all.0.min(span.0.into()), all.1.max(span.1.into()))
        });
        high += 1;
        while low < high {
            let middle = low + (high - low) / 2;
            if search.count_from(middle)? <= max_events {
                high = middle;
            } else {
                low = middle + 1;
            }
        }
        let left = max_events - search.count_from(low)?;
        let mut ties = Vec::new();
        let mut units = Vec::new();
        for (index, unit) in search.plan.units.iter().enumerate() {
            let (from, start) = (search.first_from(index, low - 1)?, search.first_from(index, low)?);
            let ids = search.plan.ids_of_rows(unit.source, unit.group, from..start)?;
            ties.extend(
                ids.iter()
                    .enumerate()
                    .map(|(place, id)| (id.to_owned(), index, from + place)),
            );
            units.push(start);
        }
        ties.sort_unstable();
        let left = usize::try_from(left).unwrap_or(usize::MAX);
        for (_, index, row) in ties.iter().rev().take(left) {
            units[*index] = units[*index].min(*row);
        }
        self.start(&units)?;
        self.events = max_events;
        self.is_truncated = true;
        Ok(())
    }
}

impl Unit {
    /// Returns the instants of the first and the last event. Units: milliseconds since the Unix epoch.
    pub fn span(&self) -> (i64, i64) {
        self.span
    }

    /// Returns the place of the row of that number, counted from the first of the unit.
    pub fn place(&self, row: usize) -> EventPosition {
        // Sources, row groups and rows are counted in 32 bits.
        let index = |place: usize| u32::try_from(place).unwrap_or(u32::MAX);
        EventPosition {
            source: index(self.source),
            group: index(self.group),
            row: index(self.rows.start + row),
        }
    }

    /// Takes the span from the instants of the row group or chunk.
    fn narrow(&mut self, at: &[i64]) {
        if let Some(at) = at.get(self.rows.clone())
            && let (Some(first), Some(last)) = (at.first(), at.last())
        {
            self.span = (*first, *last);
        }
    }
}

/// The search for the cut, with the instants that it read last.
struct Search<'a> {
    plan: &'a Plan,
    kept: HashMap<usize, Vec<i64>>,
}

impl Search<'_> {
    /// Returns how many events of the plan happened at this instant or later.
    fn count_from(&mut self, at: i128) -> Result<u64> {
        let mut count = 0;
        for index in 0..self.plan.units.len() {
            count += (self.plan.units[index].rows.end - self.first_from(index, at)?) as u64;
        }
        Ok(count)
    }

    /// Returns the first row of the unit that happened at this instant or later.
    fn first_from(&mut self, index: usize, at: i128) -> Result<usize> {
        let unit = &self.plan.units[index];
        if i128::from(unit.span.0) >= at {
            return Ok(unit.rows.start);
        }
        if i128::from(unit.span.1) < at {
            return Ok(unit.rows.end);
        }
        if !self.kept.contains_key(&index) {
            if self.kept.len() >= KEPT_UNITS {
                self.kept.clear();
            }
            self.kept.insert(index, self.plan.instants(unit)?);
        }
        let first = self.kept[&index].partition_point(|other| i128::from(*other) < at);
        Ok(first.clamp(unit.rows.start, unit.rows.end))
    }
}
