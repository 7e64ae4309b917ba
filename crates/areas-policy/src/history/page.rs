//! One page of the history, newest first, over chunks and segments alike, with bounded work.
//!
//! The order is that of places, (instant, event id), downwards. Sources and their row groups are read by their newest
//! event, newest first. What was found above the newest event of what is still unread cannot be passed by anything:
//!
//! ```text
//!   read:    ████ ███ ██      found: e9 e8 e5 …        unread: a group whose newest event is e6
//!   answer:  e9 e8            the next page begins at e6
//! ```
//!
//! So no event comes twice and none is lost while chunks are sealed beside: a cursor is a place, not a source.
//!
//! Keeps HS-7, HS-14.

use super::model::{EventId, place_of_instant};
use super::sources::{OpenSources, SourceKind, SourceRow, Unreadable, kept, open};
use provost_backtest::record::{self, Basis, OwnedRecord};
use provost_history::{Batch, Entry, MAX_EVENTS, Plan, Question, Source, Unit};
use provost_kernel::{Error, Kernel, Result};
use provost_policy::Field;
use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

/// LIMIT: a call reads no new row group after so many rows or so long, once it has come a millisecond further: at
/// least the events of one instant are read whole.
const MAX_ROWS: usize = 8 * 131_072;
const MAX_TIME: Duration = Duration::from_millis(50);
/// The columns by which what several sources tell of one call is found together.
const SESSION: &str = "session";
const CALL_ID: &str = "call_id";
/// The column that says that an approval was used.
pub(crate) const BASIS: &str = "basis";

/// What narrows a list; each is exact.
#[derive(Clone, Debug, Default)]
pub(crate) struct Filters {
    pub subject: Option<String>,
    pub device: Option<String>,
    pub tool: Option<String>,
    /// One of these; none: whatever was decided, and also nothing.
    pub actions: Vec<&'static str>,
    /// What was decided with and without an approval; none: whatever was.
    pub decided: Option<Decided>,
    pub mode: Option<&'static str>,
    pub policy: Option<String>,
    pub occasion: Option<String>,
    pub source: Option<String>,
    pub session: Option<String>,
    pub call: Option<String>,
}

/// What was decided, of events that passed by an approval apart from all others.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Decided {
    /// One of these, where no approval was used.
    pub plain: Vec<&'static str>,
    /// One of these, where one was.
    pub approved: Vec<&'static str>,
}

/// What is asked for.
pub(super) struct PageRequest {
    pub filters: Filters,
    /// The first instant that counts. Units: milliseconds since the Unix epoch.
    pub from: i64,
    /// Events come before this place.
    pub before: u128,
    pub limit: usize,
}

/// An event with its place and id.
pub(crate) struct ListedEvent {
    pub place: u128,
    pub id: String,
    pub event: OwnedRecord,
}

/// What was found.
pub(super) struct Page {
    /// Newest first.
    pub events: Vec<ListedEvent>,
    /// Where the next page goes on: events before this place. None at the end.
    pub next: Option<u128>,
    pub unreadable: Vec<Unreadable>,
}

/// Something that is not read yet.
enum UnreadSource {
    Source(SourceRow),
    Group(Arc<SourceRow>, Plan, Unit),
}

impl UnreadSource {
    fn newest(&self) -> i64 {
        match self {
            Self::Source(row) => row.max_at,
            Self::Group(.., unit) => unit.span().1,
        }
    }
}

/// Reads a page from these sources. It blocks.
pub(super) fn read(
    kernel: &Arc<Kernel>,
    org: &str,
    rows: Vec<SourceRow>,
    wanted: &PageRequest,
) -> Result<Page> {
    let started = kernel.clock.monotonic();
    let tests = Tests::of(&wanted.filters)?;
    let mut unread: Vec<UnreadSource> = rows.into_iter().map(UnreadSource::Source).collect();
    let mut page = Page {
        events: Vec::new(),
        next: None,
        unreadable: Vec::new(),
    };
    let mut read_rows = 0;
    let mut asked = HashSet::new();
    loop {
        // Oldest first, so that the newest one is popped.
        unread.sort_by_key(UnreadSource::newest);
        let frontier = unread
            .last()
            .map_or(0, |newest| place_of_instant(newest.newest().saturating_add(1)));
        let settled = page.events.iter().filter(|found| found.place >= frontier).count();
        let has_time = read_rows < MAX_ROWS && kernel.clock.monotonic().saturating_sub(started) < MAX_TIME;
        if unread.is_empty() || settled >= wanted.limit || (!has_time && frontier < wanted.before) {
            page.events.truncate(settled.min(wanted.limit));
            page.next = match page.events.last() {
                Some(last) if page.events.len() == wanted.limit => Some(last.place),
                _ if unread.is_empty() => None,
                _ => Some(frontier),
            };
            return Ok(page);
        }
        match unread.pop() {
            Some(UnreadSource::Source(row)) => {
                split(kernel, org, row, wanted, &mut unread, &mut page, &mut asked);
            }
            Some(UnreadSource::Group(of, plan, unit)) => {
                read_rows += unit.rows.len();
                if let Err(error) = page.take(&plan, &unit, &tests, wanted) {
                    match instead(kernel, org, &of, unit.span(), &mut asked) {
                        Some(rows) => unread.extend(rows.into_iter().map(UnreadSource::Source)),
                        None => page.miss(missed(&of, &unit), &error),
                    }
                }
            }
            None => {}
        }
    }
}

/// Puts the row groups of a source in its place.
fn split(
    kernel: &Arc<Kernel>,
    org: &str,
    row: SourceRow,
    wanted: &PageRequest,
    unread: &mut Vec<UnreadSource>,
    page: &mut Page,
    asked: &mut HashSet<String>,
) {
    let to = super::model::instant_of_place(wanted.before).saturating_add(1);
    let (span, of) = (Unreadable::of(&row), Arc::new(row.clone()));
    let OpenSources { sources, unreadable } = open(kernel, org, vec![row]);
    page.unreadable.extend(unreadable);
    for source in sources {
        match plan(source, wanted.from, to) {
            Ok(plan) => {
                let units = plan.units().to_vec();
                let group = |unit| UnreadSource::Group(of.clone(), plan.clone(), unit);
                unread.extend(units.into_iter().map(group));
            }
            Err(error) => match instead(kernel, org, &of, (i64::MIN, i64::MAX), asked) {
                Some(rows) => unread.extend(rows.into_iter().map(UnreadSource::Source)),
                None => page.miss(span.clone(), &error),
            },
        }
    }
}

/// Returns the events of one source in `from <= instant < to`.
pub(super) fn plan(source: Source, from: i64, to: i64) -> provost_history::Result<Plan> {
    let question = Question {
        from,
        to,
        max_events: MAX_EVENTS,
    };
    Plan::new(record::schema(), vec![source], question)
}

impl Page {
    fn miss(&mut self, span: Unreadable, error: &provost_history::Error) {
        tracing::error!(name = span.name, "history cannot be read: {error}");
        metrics::counter!("provost_history_unreadable_total").increment(1);
        self.unreadable.push(span);
    }

    /// Takes the newest matching events of a row group. One that came before, from the rows of a segment, is the same.
    fn take(
        &mut self,
        plan: &Plan,
        unit: &Unit,
        tests: &Tests,
        wanted: &PageRequest,
    ) -> provost_history::Result<()> {
        self.events.extend(matching(plan, unit, tests, wanted)?);
        self.events.sort_by_key(|found| std::cmp::Reverse(found.place));
        self.events.dedup_by_key(|found| found.place);
        self.events.truncate(wanted.limit);
        Ok(())
    }
}

/// Returns what to say of a row group that cannot be read.
fn missed(of: &SourceRow, unit: &Unit) -> Unreadable {
    let (min_at, max_at) = unit.span();
    Unreadable {
        name: of.name.clone(),
        rows: u32::try_from(unit.rows.len()).unwrap_or(u32::MAX),
        min_at,
        max_at,
    }
}

/// Returns the chunks to read in place of a part of a segment (HS-14), without those that were asked for before; `None` unless
/// every row that the segment stands for is still there.
fn instead(
    kernel: &Arc<Kernel>,
    org: &str,
    of: &SourceRow,
    (min_at, max_at): (i64, i64),
    asked: &mut HashSet<String>,
) -> Option<Vec<SourceRow>> {
    if of.kind != SourceKind::Segment {
        return None;
    }
    let mut kept = kept(kernel, org, of);
    let rows: u64 = kept.iter().map(|chunk| u64::from(chunk.rows)).sum();
    if rows != u64::from(of.rows) {
        return None;
    }
    kept.retain(|chunk| chunk.min_at <= max_at && chunk.max_at >= min_at && asked.insert(chunk.id.clone()));
    Some(kept)
}

/// Returns the newest events of a row group that match and come before the page's place.
fn matching(
    plan: &Plan,
    unit: &Unit,
    tests: &Tests,
    wanted: &PageRequest,
) -> provost_history::Result<Vec<ListedEvent>> {
    let batch = plan.read(unit, &tests.columns, false)?;
    let verdicts = tests.judge(&batch)?;
    let edge = super::model::instant_of_place(wanted.before);
    // Of the edge's instant every match is taken: which of them come before the place, their ids say.
    let mut rows: Vec<usize> = Vec::new();
    let mut before_edge = 0;
    for row in (0..batch.rows()).rev() {
        if batch.at[row] > edge || !verdicts.iter().all(|test| test.holds(&batch, row)) {
            continue;
        }
        if batch.at[row] < edge {
            // Of one more instant every match is taken as well: rows of an instant stand in the order of ids.
            if before_edge == wanted.limit {
                break;
            }
            before_edge += 1;
        }
        rows.push(row);
    }
    let (Some(last), Some(first)) = (rows.first(), rows.last()) else {
        return Ok(Vec::new());
    };
    let mut narrow = unit.clone();
    let start = unit.rows.start;
    narrow.rows = start + first..start + last + 1;
    let all: Vec<usize> = (0..record::schema().columns().len()).collect();
    let batch = plan.read(&narrow, &all, true)?;
    let mut found = Vec::with_capacity(rows.len());
    for row in &rows {
        let row = row - first;
        let id = batch.ids.get(row);
        let place = EventId::place(id).ok_or(provost_history::Error::Corrupt("event id"))?;
        if place < wanted.before {
            found.push(ListedEvent {
                place,
                id: id.to_owned(),
                event: record::owned(&batch, row)?,
            });
        }
    }
    Ok(found)
}

/// What a value says about a row.
#[derive(Clone, Copy, PartialEq, Eq)]
enum RowVerdict {
    Yes,
    No,
    /// The next column decides.
    Next,
}

/// How columns are judged: the first one that says yes or no decides, and none is no.
struct Test {
    steps: Vec<(usize, Step)>,
}

enum Step {
    /// This text; another text is no, no text leaves it to the next column.
    Is(String),
    /// As `Is`, one of these.
    IsOneOf(Vec<&'static str>),
    /// This text is yes, everything else leaves it to the next column.
    Passes(&'static str),
    /// This text leaves it to the next column, everything else is yes.
    PassesOthers(&'static str),
    /// A set that holds this text.
    Holds(String),
    /// A set that holds this name is no, everything else leaves it to the next column.
    Without(&'static str),
}

/// A test over the columns of one batch: for each step the column and what each of its codes says.
struct BatchTest(Vec<(usize, Vec<RowVerdict>)>);

impl BatchTest {
    fn holds(&self, batch: &Batch, row: usize) -> bool {
        let says = self
            .0
            .iter()
            .map(|(column, says)| says[batch.columns[*column].codes[row] as usize]);
        says.into_iter().find(|says| *says != RowVerdict::Next) == Some(RowVerdict::Yes)
    }
}

/// Every test of a list, with the columns that they read.
struct Tests {
    columns: Vec<usize>,
    tests: Vec<Test>,
}

impl Tests {
    fn of(filters: &Filters) -> Result<Self> {
        let mut all = Self {
            columns: Vec::new(),
            tests: Vec::new(),
        };
        let name = |field: Field| field.name();
        if let Some(subject) = &filters.subject {
            // Whose event it is: the user's, else the service account's, else the device's; nobody knows it where the
            // first of them is missing.
            let is = || Step::Is(subject.clone());
            let missing = |field: Field| ("missing", Step::Without(field.name()));
            all.add(vec![
                (name(Field::USER), is()),
                missing(Field::USER),
                (name(Field::SERVICE_ACCOUNT), is()),
                missing(Field::SERVICE_ACCOUNT),
                (name(Field::DEVICE), is()),
            ])?;
        }
        if let Some(tool) = &filters.tool {
            let is = || Step::Is(tool.clone());
            all.add(vec![(name(Field::TOOL), is()), (name(Field::MCP_TOOL), is())])?;
        }
        if let Some(device) = &filters.device {
            // What a device tells happened on it, also where its event names no machine.
            all.add(vec![
                (name(Field::DEVICE), Step::Is(device.clone())),
                ("source", Step::Is(record::device_source(device))),
            ])?;
        }
        if !filters.actions.is_empty() {
            let wanted = Step::IsOneOf(filters.actions.clone());
            all.add(vec![(provost_history::ACTION, wanted)])?;
        }
        if let Some(Decided { plain, approved }) = &filters.decided {
            let is = Basis::Approved.word();
            let actions = |of: &[&'static str]| (provost_history::ACTION, Step::IsOneOf(of.to_vec()));
            all.add(vec![(BASIS, Step::Passes(is)), actions(plain)])?;
            all.add(vec![(BASIS, Step::PassesOthers(is)), actions(approved)])?;
        }
        if let Some(mode) = filters.mode {
            all.add(vec![(provost_history::MODE, Step::Is(mode.to_owned()))])?;
        }
        if let Some(policy) = &filters.policy {
            all.add(vec![(provost_history::POLICY_IDS, Step::Holds(policy.clone()))])?;
        }
        if let Some(occasion) = &filters.occasion {
            all.add(vec![("occasion", Step::Is(occasion.clone()))])?;
        }
        for (column, wanted) in [
            ("source", &filters.source),
            (SESSION, &filters.session),
            (CALL_ID, &filters.call),
        ] {
            if let Some(wanted) = wanted {
                all.add(vec![(column, Step::Is(wanted.clone()))])?;
            }
        }
        Ok(all)
    }

    fn add(&mut self, steps: Vec<(&str, Step)>) -> Result<()> {
        let mut placed = Vec::with_capacity(steps.len());
        for (name, step) in steps {
            let position = record::schema().position(name);
            let position =
                position.ok_or_else(|| Error::internal(format!("history has no column {name}")))?;
            let known = self.columns.iter().position(|column| *column == position);
            let place = known.unwrap_or_else(|| {
                self.columns.push(position);
                self.columns.len() - 1
            });
            placed.push((place, step));
        }
        self.tests.push(Test { steps: placed });
        Ok(())
    }

    fn judge(&self, batch: &Batch) -> provost_history::Result<Vec<BatchTest>> {
        let judge = |test: &Test| {
            let steps = test.steps.iter().map(|(column, step)| {
                let dictionary = &batch.columns[*column].dictionary;
                let codes = 0..=u32::try_from(dictionary.len()).unwrap_or(u32::MAX);
                let says = codes.map(|code| Ok(step.says(&dictionary.entry(code)?)));
                Ok((
                    *column,
                    says.collect::<provost_history::Result<Vec<RowVerdict>>>()?,
                ))
            });
            Ok(BatchTest(steps.collect::<provost_history::Result<_>>()?))
        };
        self.tests.iter().map(judge).collect()
    }
}

impl Step {
    fn says(&self, entry: &Entry<'_>) -> RowVerdict {
        let yes = |is: bool| if is { RowVerdict::Yes } else { RowVerdict::No };
        match (self, entry) {
            (Self::Is(wanted), Entry::Text(text)) => yes(wanted == text),
            (Self::IsOneOf(wanted), Entry::Text(text)) => yes(wanted.iter().any(|one| one == text)),
            (Self::Passes(wanted), Entry::Text(text)) if wanted == text => RowVerdict::Yes,
            (Self::PassesOthers(wanted), Entry::Text(text)) if wanted == text => RowVerdict::Next,
            (Self::PassesOthers(_), _) => RowVerdict::Yes,
            (Self::Holds(wanted), Entry::Set(members)) => yes(members.contains(wanted)),
            (Self::Without(name), Entry::Set(members)) if members.iter().any(|member| member == name) => {
                RowVerdict::No
            }
            _ => RowVerdict::Next,
        }
    }
}
