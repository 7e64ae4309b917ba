//! Rows of the history against both sets, and what is counted of the answers.

use super::checkpoint_state::Fingerprint;
use super::fingerprints::{Fingerprints, mix};
use super::names::Names;
use super::run_context::RunContext;
use super::totals::{Behaviour, Provenance, SubjectKind, Totals};
use crate::record::{AttributeProjection, Codes, RowBatch, View};
use provost_history::group::Groups;
use provost_history::{Batch as Rows, Error, EventPosition, Result, Unit};
use provost_policy::{Action, Batch, Pair, Symbols};
use std::collections::hash_map::Entry;
use std::ops::Range;
use std::sync::Arc;

/// Milliseconds in a day, UTC.
pub(super) const DAY_MS: i64 = 86_400_000;

/// One walk over rows.
pub(super) struct Judge<'a> {
    frame: &'a RunContext<'a>,
    stop: &'a dyn Fn() -> bool,
    symbols: Symbols,
    /// About how many bytes of texts the table of symbols has.
    bytes: usize,
    pair: Pair<'a>,
    subjects: Names<'a>,
    tools: Names<'a>,
    marks: Fingerprints,
    piece: RowBatch,
    rows: PendingRows,
    totals: Totals,
}

/// A batch of the history with its dictionaries translated.
pub(super) struct TranslatedBatch {
    pub view: View,
    codes: Codes,
    /// By code: numbers of users, service accounts, devices.
    subjects: [Vec<u32>; 3],
    /// By code: numbers of tools.
    tools: [Vec<u32>; 2],
    /// By code: whether the resource is asked for.
    resources: Option<Vec<bool>>,
}

/// What is known of the rows that wait, beside what policies see.
#[derive(Default)]
struct PendingRows {
    /// The place of the first in its batch; where rows come from one batch the others follow it.
    first: usize,
    at_ms: Vec<i64>,
    subjects: Vec<u32>,
    tools: Vec<u32>,
    /// How many events each stands for; 0 where it is not counted.
    weights: Vec<u64>,
}

impl PendingRows {
    fn clear(&mut self) {
        self.at_ms.clear();
        self.subjects.clear();
        self.tools.clear();
        self.weights.clear();
    }
}

/// Where the rows of a piece come from.
pub(super) enum Origin<'a> {
    /// From a unit, whose row of that number stands first in the batch.
    Unit(&'a Unit),
    /// Each is a group.
    Groups(&'a Groups),
    /// From several units; where each row is.
    Places(&'a [EventPosition]),
}

impl<'a> Judge<'a> {
    pub fn new(frame: &'a RunContext<'a>, stop: &'a dyn Fn() -> bool) -> Self {
        Self {
            frame,
            stop,
            symbols: Symbols::knowing(Arc::clone(frame.register)),
            bytes: 0,
            pair: Pair::new(frame.baseline, frame.candidate),
            subjects: Names::new(frame.subjects.as_ref()),
            tools: Names::new(frame.tools.as_ref()),
            marks: Fingerprints::default(),
            piece: RowBatch::new(&frame.lens),
            rows: PendingRows::default(),
            totals: Totals::new(),
        }
    }

    /// Returns how many more rows can be added before `judge`.
    pub fn room(&self) -> usize {
        self.piece.room()
    }

    /// Returns how many rows wait for `judge`.
    pub fn waiting(&self) -> usize {
        self.rows.at_ms.len()
    }

    /// Returns what is read of events.
    pub fn lens(&self) -> &'a AttributeProjection {
        &self.frame.lens
    }

    /// Starts a new table of symbols when this one has more bytes of texts; no batch may stay opened.
    pub fn forget(&mut self, bytes: usize) {
        if self.bytes > bytes {
            self.renew();
        }
    }

    /// Returns about how many bytes of texts are kept.
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    pub fn totals(&mut self) -> &mut Totals {
        &mut self.totals
    }

    /// Translates the dictionaries of a batch that has the columns of the lens.
    pub fn open(&mut self, batch: &Rows) -> Result<TranslatedBatch> {
        let view = View::new(&self.frame.lens, batch, &mut self.symbols)?;
        self.bytes += view.bytes();
        let places = &self.frame.places;
        let [user, account, device] = places.subject;
        let mut subject = |kind, place| {
            self.subjects
                .numbers(Some(kind), view.values(place), &self.symbols)
        };
        let subjects = [
            subject(SubjectKind::User, user),
            subject(SubjectKind::ServiceAccount, account),
            subject(SubjectKind::Device, device),
        ];
        let tools = places
            .tool
            .map(|place| self.tools.numbers(None, view.values(place), &self.symbols));
        let resources = places.resource.map(|place| {
            let is_wanted = |value: &provost_policy::Value| match (value, &self.frame.resources) {
                (provost_policy::Value::Text(symbol), Some(wanted)) => {
                    wanted.contains(self.symbols.text(*symbol))
                }
                _ => false,
            };
            view.values(place).iter().map(is_wanted).collect()
        });
        Ok(TranslatedBatch {
            view,
            codes: Codes::default(),
            subjects,
            tools,
            resources,
        })
    }

    /// Adds rows, at most as many as there is room for; row `r` stands for `weight(r)` events.
    pub fn push(
        &mut self,
        opened: &mut TranslatedBatch,
        batch: &Rows,
        range: Range<usize>,
        weight: impl Fn(usize) -> u64,
    ) {
        let places = &self.frame.places;
        let [user, account, device] = places.subject.map(|place| &batch.columns[place + 2].codes);
        let [tool, mcp_tool] = places.tool.map(|place| &batch.columns[place + 2].codes);
        let resource = places.resource.map(|place| &batch.columns[place + 2].codes);
        let rows = &mut self.rows;
        if rows.at_ms.is_empty() {
            rows.first = range.start;
        }
        rows.at_ms.extend_from_slice(&batch.at[range.clone()]);
        rows.weights.extend(range.clone().map(&weight));
        if self.is_plain(opened, batch, &range) {
            let (users, tools) = (&opened.subjects[0], &opened.tools[0]);
            let numbers = |codes: &[u32], of: &[u32], into: &mut Vec<u32>| {
                into.extend(codes.iter().map(|code| of[*code as usize]));
            };
            numbers(&user[range.clone()], users, &mut self.rows.subjects);
            numbers(&tool[range.clone()], tools, &mut self.rows.tools);
            self.piece.push(&opened.view, &mut opened.codes, batch, range);
            return;
        }
        let start = self.rows.weights.len() - range.len();
        for (nth, row) in (start..).zip(range.clone()) {
            let subject = match (user[row], account[row], device[row]) {
                (0, _, _) if opened.view.is_missing(batch, places.subject[0], row) => 0,
                (0, 0, _) if opened.view.is_missing(batch, places.subject[1], row) => 0,
                (0, 0, code) => opened.subjects[2][code as usize],
                (0, code, _) => opened.subjects[1][code as usize],
                (code, _, _) => opened.subjects[0][code as usize],
            };
            let tool = match (tool[row], mcp_tool[row]) {
                (0, code) => opened.tools[1][code as usize],
                (code, _) => opened.tools[0][code as usize],
            };
            let has_resource = match (resource, &opened.resources) {
                (Some(codes), Some(wanted)) => wanted[codes[row] as usize],
                _ => true,
            };
            let weight = &mut self.rows.weights[nth];
            if opened.view.occasion(batch, row).is_none() {
                self.totals.errors += std::mem::take(weight);
            }
            if !(has_resource && self.subjects.is_wanted(subject) && self.tools.is_wanted(tool)) {
                *weight = 0;
            }
            self.rows.subjects.push(subject);
            self.rows.tools.push(tool);
        }
        self.piece.push(&opened.view, &mut opened.codes, batch, range);
    }

    /// Returns whether rows need no second look: users and tools alone tell subjects and tools, all occasions are known,
    /// and every event counts.
    fn is_plain(&self, opened: &TranslatedBatch, batch: &Rows, range: &Range<usize>) -> bool {
        let places = &self.frame.places;
        let is_unused = |place: usize| opened.view.values(place).len() == 1 && !opened.view.may_miss(place);
        let [user, account, device] = places.subject;
        opened.resources.is_none()
            && self.subjects.wants_all()
            && self.tools.wants_all()
            && !opened.view.may_miss(user)
            && [account, device, places.tool[1]].into_iter().all(is_unused)
            && opened.view.knows_occasions(batch, range)
    }

    /// Judges the rows that wait.
    ///
    /// Errors: `Canceled` when it is told to stop; then nothing of them is counted.
    pub fn judge(&mut self, origin: &Origin<'_>) -> Result<()> {
        if (self.stop)() {
            return Err(Error::Canceled);
        }
        let rows = std::mem::take(&mut self.rows);
        // A piece has at most as many rows as a batch, and its codes are those of its dictionaries.
        let batch = self
            .piece
            .take(&self.frame.lens)
            .map_err(|_| Error::Corrupt("batch"))?;
        let modules = self.frame.modules;
        if !self.pair.judge_by(&batch, &self.symbols, modules, self.stop) {
            return Err(Error::Canceled);
        }
        let (before, after) = (self.pair.baseline(), self.pair.candidate());
        let comparison = &mut self.totals.comparison;
        let changed = if rows.weights.iter().all(|weight| *weight == 1) {
            comparison.add(before, after)
        } else {
            comparison.add_weighted(before, after, &rows.weights)
        };
        for (which, scan) in [before, after].into_iter().enumerate() {
            for (at, cause, events) in scan.failures(&batch, &rows.weights) {
                let sums = self.totals.failures.entry((which, index(at), cause)).or_default();
                *sums += events;
            }
        }
        self.subjects.evaluate(&rows.subjects, &rows.weights);
        self.tools.evaluate(&rows.tools, &rows.weights);
        self.days(origin, &rows, &changed);
        for nth in changed {
            self.subjects.change(rows.subjects[nth], rows.weights[nth]);
            self.tools.change(rows.tools[nth], rows.weights[nth]);
            self.note(&batch, nth, &rows, origin);
        }
        self.totals.behaviours.trim();
        self.rows = rows;
        self.rows.clear();
        Ok(())
    }

    fn days(&mut self, origin: &Origin<'_>, rows: &PendingRows, changed: &[usize]) {
        let mut add = |day: i64, evaluated: u64, differing: u64| {
            if evaluated > 0 {
                let sums = self.totals.days.entry(day).or_default();
                *sums = (sums.0 + evaluated, sums.1 + differing);
            }
        };
        if let Origin::Groups(groups) = origin {
            for (day, counts) in (groups.first_day..).zip(&groups.days) {
                let counts = &counts[rows.first..];
                let count = |nth: usize| {
                    if rows.weights[nth] > 0 {
                        u64::from(counts[nth])
                    } else {
                        0
                    }
                };
                let differing = changed.iter().map(|nth| count(*nth)).sum();
                add(day, (0..rows.weights.len()).map(count).sum(), differing);
            }
            return;
        }
        let mut rest = changed;
        let mut start = 0;
        while let Some(first) = rows.at_ms.get(start) {
            let day = first.div_euclid(DAY_MS);
            let next_day = (day + 1).saturating_mul(DAY_MS);
            // The rows are in the order of time.
            let end = start
                + rows.at_ms[start..]
                    .partition_point(|at_ms| *at_ms < next_day)
                    .max(1);
            let (of_day, later) = rest.split_at(rest.partition_point(|nth| *nth < end));
            let differing = of_day.iter().map(|nth| rows.weights[*nth]).sum();
            add(day, rows.weights[start..end].iter().sum(), differing);
            (start, rest) = (end, later);
        }
    }

    /// Counts a changed row's behaviour, and remembers its event if it is the newest.
    fn note(&mut self, batch: &Batch, nth: usize, rows: &PendingRows, origin: &Origin<'_>) {
        let (at_ms, weight, place) = (rows.at_ms[nth], rows.weights[nth], rows.first + nth);
        let scans = [self.pair.baseline(), self.pair.candidate()];
        let [from, to] = scans.map(|scan| scan.decision(nth).0);
        let (mark, occasion) = self.mark(batch, nth, rows, (from, to));
        let Some(entry) = self.totals.behaviours.entry(mark) else {
            return;
        };
        let whence = match origin {
            Origin::Unit(unit) => Provenance::at(unit.place(place)),
            Origin::Groups(groups) => Provenance::at(groups.newest[place]),
            Origin::Places(places) => Provenance::at(places[nth]),
        };
        let deciding = || {
            let scans = [self.pair.baseline(), self.pair.candidate()];
            scans.map(|scan| scan.deciding(nth).into_iter().map(index).collect())
        };
        match entry {
            Entry::Occupied(mut slot) => {
                let known = slot.get_mut();
                known.count += weight;
                // Within one walk rows of one instant come in the order of their ids, or, of groups, once.
                if at_ms >= known.at_ms {
                    known.at_ms = at_ms;
                    known.whence = whence;
                    if self.frame.has_history {
                        known.deciding = deciding();
                    }
                }
            }
            Entry::Vacant(slot) => {
                let subject = self.subjects.name(rows.subjects[nth], &self.symbols);
                let tool = self.tools.name(rows.tools[nth], &self.symbols);
                slot.insert(Behaviour {
                    count: weight,
                    at_ms,
                    whence,
                    occasion,
                    from,
                    to,
                    deciding: deciding(),
                    subject: subject.and_then(|(kind, text)| Some((kind?, text.into()))),
                    tool: tool.map(|(_, text)| text.into()),
                });
            }
        }
    }

    /// Returns the digest of a row's behaviour: all that both sets can see, the subject, the tool; and the decisions,
    /// which follow from these unless they depend on the past.
    fn mark(
        &mut self,
        batch: &Batch,
        nth: usize,
        rows: &PendingRows,
        (from, to): (Action, Action),
    ) -> (Fingerprint, provost_policy::Occasion) {
        let projection = &self.frame.projection;
        let occasion = batch.occasion(nth);
        let past = projection
            .instants()
            .partition_point(|instant| *instant <= rows.at_ms[nth]);
        let mut mark = mix(past as Fingerprint, occasion as Fingerprint);
        mark = mix(mark, (from as Fingerprint) << 8 | to as Fingerprint);
        for field in projection.fields() {
            let value = self.marks.value(batch.value(*field, nth), &self.symbols);
            mark = mix(mark, value);
        }
        mark = mix(mark, self.subjects.mark(rows.subjects[nth], &self.symbols));
        (
            mix(mark, self.tools.mark(rows.tools[nth], &self.symbols)),
            occasion,
        )
    }

    /// Returns what was counted since the last call.
    pub fn part(&mut self) -> Totals {
        self.subjects.settle(&mut self.totals.subjects, &self.symbols);
        self.tools.settle(&mut self.totals.tools, &self.symbols);
        let next = self.totals.beside();
        std::mem::replace(&mut self.totals, next)
    }

    /// Counts from here on beside these totals, to which its parts are added; nothing may be counted yet.
    pub fn follow(&mut self, totals: &Totals) {
        self.totals = totals.beside();
    }

    /// Starts a new table of symbols; no rows may wait, and no batch may stay opened.
    pub fn renew(&mut self) {
        self.subjects.settle(&mut self.totals.subjects, &self.symbols);
        self.tools.settle(&mut self.totals.tools, &self.symbols);
        let mut symbols = Symbols::knowing(Arc::clone(self.frame.register));
        self.pair.renew(&self.symbols, &mut symbols);
        // About as many bytes as a text and its place take.
        self.bytes = 96 * symbols.len();
        self.symbols = symbols;
        self.subjects = Names::new(self.frame.subjects.as_ref());
        self.tools = Names::new(self.frame.tools.as_ref());
        self.marks = Fingerprints::default();
    }
}

/// Sources, row groups, rows and policies are counted in 32 bits.
fn index(place: usize) -> u32 {
    u32::try_from(place).unwrap_or(u32::MAX)
}
