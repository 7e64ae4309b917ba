//! Rows of the history on their way into a past: the attributes that its conditions read, and nothing else.
//!
//! A dictionary is looked at once, not once for each row: making the past of a month reads as fast as the disk gives.
//!
//! INVARIANT DE-10: an imported event is no part of the past that live conditions see, unless the organization's
//! setting `history.countImports` says so: whoever may import would write what a decision rests on.

use provost_areas_identity::words::{Kind, WordQuery};
use provost_backtest::record::{AttributeProjection, Imports, View, add_texts};
use provost_history::{Batch, Entry, Error, Result};
use provost_policy::{Event, EventWindow, Register, Symbols};
use std::collections::BTreeSet;
use std::ops::Range;
use std::sync::Arc;

/// Texts that are kept for batches at work; then their table is emptied. Units: bytes.
const TABLE_BYTES: usize = 8 * 1024 * 1024;
/// So many sources may overlap in time before their dictionaries are looked at again.
const VIEWS: usize = 16;

/// Which recorded events a past is made of.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EventSelection {
    /// Whether what was imported is part of it, beside what this server saw.
    pub imports: bool,
    /// Whether what devices told of what they judged is: that of all but these, of which nobody knows who speaks (DJ-9).
    pub devices: Option<Arc<BTreeSet<String>>>,
}

impl EventSelection {
    /// Says whether what a source told is part of it.
    fn has(&self, source: &str) -> bool {
        let device = source.strip_prefix("device:").unwrap_or_default();
        self.devices
            .as_ref()
            .is_some_and(|left_out| !left_out.contains(device))
    }
}

/// Returns what words mean.
pub trait Meaning: FnMut(WordQuery) -> provost_kernel::Result<Register> {}

impl<F: FnMut(WordQuery) -> provost_kernel::Result<Register>> Meaning for F {}

/// Brings rows into a past.
pub struct Observer<M> {
    lens: AttributeProjection,
    counted: EventSelection,
    /// The columns of the lens, and behind them the two that tell imports.
    columns: Vec<usize>,
    /// What conditions on the past ask about that names records, with its place in the lens.
    names: Vec<(Kind, usize)>,
    meaning: M,
    views: Vec<BatchReading>,
}

/// A batch that is being read, in a table whose register knows its words.
struct BatchReading {
    view: View,
    imports: Imports,
    /// By code of the source, whether a device is counted that is called so.
    counted: Vec<bool>,
    symbols: Symbols,
}

impl<M: Meaning> Observer<M> {
    /// Returns the observer for pasts of this one's set. What the words of a batch mean is asked once, and only where a
    /// condition on the past asks about them.
    pub fn new(past: &EventWindow, counted: EventSelection, meaning: M) -> Self {
        let lens = AttributeProjection::new(past.fields().iter().copied());
        let columns = lens.positions().iter().copied().chain(Imports::positions());
        let place = |kind: &Kind| {
            let field = kind.field();
            let is_asked = past.names().contains(&field);
            let place = lens.fields().binary_search(&field).ok()?;
            is_asked.then_some((*kind, place))
        };
        Self {
            columns: columns.collect(),
            names: Kind::ALL.iter().filter_map(place).collect(),
            lens,
            counted,
            meaning,
            views: Vec::new(),
        }
    }

    /// Returns the positions of the columns that a batch must have, in this order.
    pub fn columns(&self) -> &[usize] {
        &self.columns
    }

    /// Returns what of a batch with all columns is needed.
    pub fn narrow(&self, batch: Batch) -> Batch {
        let columns = self.columns().iter().map(|place| batch.columns[*place].clone());
        Batch {
            columns: columns.collect(),
            ..batch
        }
    }

    /// Makes rows part of the past, in their order; returns false when one came too late (see `EventWindow::observe`).
    ///
    /// Errors: `Corrupt` when a row is no event.
    pub fn observe(&mut self, past: &mut EventWindow, batch: &Batch, rows: Range<usize>) -> Result<bool> {
        let place = self.view(batch)?;
        let BatchReading {
            view,
            imports,
            counted,
            symbols,
        } = &self.views[place];
        let told = self.lens.positions().len();
        let mut in_time = true;
        for row in rows {
            let codes = [told, told + 1].map(|column| batch.columns[column].codes[row]);
            let is_import = imports.is_imported(codes) && !self.counted.imports;
            let is_of_device = imports.is_of_device(codes);
            // Of one that nobody can read it is not known who speaks.
            let is_counted = counted.get(codes[0] as usize).copied();
            let is_counted = is_counted.unwrap_or(self.counted.devices.is_some());
            if is_import || (is_of_device && !is_counted) {
                continue;
            }
            let occasion = view.occasion(batch, row).ok_or(Error::Corrupt("occasion"))?;
            let mut event = Event::new(batch.at[row], occasion);
            for (place, field) in self.lens.fields().iter().enumerate() {
                event.set(*field, view.value(batch, place, row)?);
            }
            // What may be anybody's would put everybody's past in doubt, by the word of one device.
            if is_of_device && event.is_of_somebody_unknown(symbols) {
                continue;
            }
            in_time &= past.observe(&event, symbols);
        }
        Ok(in_time)
    }

    /// Returns the place of the view of a batch.
    fn view(&mut self, batch: &Batch) -> Result<usize> {
        if let Some(place) = self.views.iter().position(|seen| seen.view.is_of(batch)) {
            return Ok(place);
        }
        let bytes: usize = self.views.iter().map(|seen| seen.symbols.bytes()).sum();
        if self.views.len() >= VIEWS || bytes > TABLE_BYTES {
            self.views.clear();
        }
        let [.., source, imported] = batch.columns.as_slice() else {
            return Err(Error::Corrupt("columns"));
        };
        let imports = Imports::new([source, imported])?;
        let last = u32::try_from(source.dictionary.len()).map_err(|_| Error::Corrupt("dictionary"))?;
        let counted = (0..=last).map(|code| match source.dictionary.entry(code)? {
            Entry::Text(text) => Ok(self.counted.has(text)),
            _ => Ok(false),
        });
        let counted: Vec<bool> = counted.collect::<Result<_>>()?;
        let mut symbols = Symbols::knowing(Arc::new(self.register(batch)?));
        let view = View::new(&self.lens, batch, &mut symbols)?;
        self.views.push(BatchReading {
            view,
            imports,
            counted,
            symbols,
        });
        Ok(self.views.len() - 1)
    }

    /// Returns what the words of a batch mean that conditions ask about.
    fn register(&mut self, batch: &Batch) -> Result<Register> {
        let mut asked = WordQuery::default();
        for (kind, place) in &self.names {
            // Before the attributes stand the occasion and what is missing.
            let before = self.lens.positions().len() - self.lens.fields().len();
            let mut words = BTreeSet::new();
            add_texts(&batch.columns[before + place].dictionary, &mut words);
            for word in &words {
                asked.add(*kind, word);
            }
        }
        if asked.is_empty() {
            return Ok(Register::default());
        }
        (self.meaning)(asked).map_err(|cause| Error::Storage(std::io::Error::other(cause)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    use provost_backtest::record::{self, OwnedRecord};
    use provost_history::Recorder;
    use provost_policy::{Action, Definition, Family, Occasion, PolicySet};
    use serde_json::json;

    impl EventSelection {
        /// What this server saw.
        pub const SEEN: Self = Self {
            imports: false,
            devices: None,
        };

        /// Returns the same with what devices told, but for that of some.
        #[must_use]
        pub fn with_devices(self, left_out: BTreeSet<String>) -> Self {
            Self {
                devices: Some(Arc::new(left_out)),
                ..self
            }
        }
    }

    fn nothing() -> impl Meaning {
        |_| Ok(Register::default())
    }

    fn set() -> Arc<PolicySet> {
        let x = json!({ "field": "tool.id", "op": "eq", "value": "x" });
        let definition = json!({ "id": "p", "name": "p", "action": "block", "evaluateOn": ["pre_tool"], "acknowledgeBroadScope": true,
            "conditions": { "any": [
                { "eventCount": { "within": "1h", "where": { "all": [x, { "field": "llm.input_tokens", "op": "gt", "value": 5 }] }, "op": "gte", "value": 2 } },
                { "priorDistinctValues": { "within": "1h", "field": "classification.categories", "op": "gte", "value": 3 } },
            ] } });
        let definition = Definition::read(Family::Content, &definition).unwrap();
        Arc::new(PolicySet::new([Arc::new(definition)]).unwrap())
    }

    /// Returns the event of a number: some attributes present, some missing, some absent.
    fn event(n: i64) -> OwnedRecord {
        let mut attributes = json!({ "identity.user_id": format!("u{}", n % 7), "tool.input": { "n": n } });
        let mut missing = Vec::new();
        match n % 5 {
            0 => missing.push("tool.id"),
            1 => {}
            _ => attributes["tool.id"] = ["x", "y"][usize::from(n % 3 == 0)].into(),
        }
        match n % 4 {
            0 => missing.push("llm.input_tokens"),
            more => attributes["llm.input_tokens"] = (more * 3).into(),
        }
        attributes["classification.categories"] = json!([format!("c{}", n % 11), "c"]);
        let occasion = [Occasion::PreTool, Occasion::Prompt][usize::from(n % 6 == 0)];
        OwnedRecord::read(n * 60_000, occasion, attributes.as_object().unwrap(), &missing).unwrap()
    }

    #[test]
    fn rows_by_columns_make_the_past_that_whole_events_make() {
        let set = set();
        let (mut whole, mut narrow) = (EventWindow::new(set.clone()), EventWindow::new(set.clone()));
        let mut observer = Observer::new(&narrow, EventSelection::SEEN, nothing());
        let mut told = 0;
        for chunk in 0..40 {
            let mut recorder = Recorder::new(record::schema());
            for n in chunk * 10..chunk * 10 + 10 {
                record::put(&event(n), &format!("hev_{n:026}"), &mut recorder).unwrap();
            }
            let batch = recorder.finish().unwrap();
            for row in 0..batch.rows() {
                let mut symbols = Symbols::new();
                let judged = record::event(&batch, row, &mut symbols).unwrap();
                assert!(whole.observe(&judged, &symbols));
            }
            let rows = 0..batch.rows();
            let batch = observer.narrow(batch);
            assert!(observer.observe(&mut narrow, &batch, rows).unwrap());
            for user in 0..7 {
                let mut symbols = Symbols::new();
                let asked = json!({ "identity.user_id": format!("u{user}") });
                let at = chunk * 600_000 + 540_000;
                let asked = OwnedRecord::read(at, Occasion::PreTool, asked.as_object().unwrap(), &[]);
                let asked = [asked.unwrap().event(&mut symbols)];
                let of = |past: &EventWindow, symbols: &mut Symbols| {
                    let chronicle = past.recall(&asked, symbols);
                    let outcome = set.judge(&asked[0], symbols, &chronicle);
                    (outcome.action, outcome.unknown)
                };
                let expected = of(&whole, &mut symbols);
                assert_eq!(of(&narrow, &mut symbols), expected, "chunk {chunk}, user {user}");
                told |= 1 << (expected.0 as usize * 2 + usize::from(expected.1));
            }
        }
        assert!(i32::count_ones(told) >= 2, "every answer was the same");
    }

    /// Proves DJ-5.
    #[test]
    fn what_devices_told_is_part_of_a_past_of_its_own() {
        for (source, is_device) in [
            (record::device_source("dev_1"), true),
            (record::DECISIONS.into(), false),
        ] {
            let told = |left_out: &[&str]| {
                let left_out = left_out.iter().map(|id| (*id).to_owned());
                EventSelection::SEEN.with_devices(left_out.collect())
            };
            for (counted, tells) in [
                (EventSelection::SEEN, false),
                (told(&[]), true),
                (told(&["dev_1"]), false),
                (told(&["dev_2"]), true),
            ] {
                let mut recorder = Recorder::new(record::schema());
                for n in 0..2 {
                    let said = json!({ "identity.user_id": "u", "tool.id": "x", "llm.input_tokens": 9 });
                    let said = said.as_object().unwrap();
                    let mut event = OwnedRecord::read(60_000, Occasion::PreTool, said, &[]).unwrap();
                    event.source = Some(source.clone());
                    event.imported = Some(false);
                    record::put(&event, &format!("hev_{n:026}"), &mut recorder).unwrap();
                }
                let mut past = EventWindow::new(set());
                let mut observer = Observer::new(&past, counted.clone(), nothing());
                let batch = observer.narrow(recorder.finish().unwrap());
                assert!(observer.observe(&mut past, &batch, 0..2).unwrap());
                let mut symbols = Symbols::new();
                let asked = json!({ "identity.user_id": "u" });
                let asked = OwnedRecord::read(70_000, Occasion::PreTool, asked.as_object().unwrap(), &[]);
                let asked = [asked.unwrap().event(&mut symbols)];
                let chronicle = past.recall(&asked, &mut symbols);
                let matched = set().judge(&asked[0], &symbols, &chronicle).action == Action::Block;
                assert_eq!(matched, !is_device || tells, "{source} {counted:?}");
            }
        }
    }

    /// Proves DJ-4.
    #[test]
    fn what_a_device_tells_of_nobody_puts_nobodys_past_in_doubt() {
        for (source, doubts) in [
            (record::device_source("dev_1"), false),
            (record::DECISIONS.into(), true),
        ] {
            let mut recorder = Recorder::new(record::schema());
            for n in 0..2 {
                let said = json!({ "tool.id": "x", "llm.input_tokens": 9 });
                let missing = ["identity.user_id"];
                let read = OwnedRecord::read(60_000, Occasion::PreTool, said.as_object().unwrap(), &missing);
                let mut event = read.unwrap();
                event.source = Some(source.clone());
                event.imported = Some(false);
                record::put(&event, &format!("hev_{n:026}"), &mut recorder).unwrap();
            }
            let mut past = EventWindow::new(set());
            let mut observer = Observer::new(
                &past,
                EventSelection::SEEN.with_devices(BTreeSet::new()),
                nothing(),
            );
            let batch = observer.narrow(recorder.finish().unwrap());
            assert!(observer.observe(&mut past, &batch, 0..2).unwrap());
            let mut symbols = Symbols::new();
            let asked = json!({ "identity.user_id": "u" });
            let asked = OwnedRecord::read(70_000, Occasion::PreTool, asked.as_object().unwrap(), &[]);
            let asked = [asked.unwrap().event(&mut symbols)];
            let chronicle = past.recall(&asked, &mut symbols);
            assert_eq!(
                set().judge(&asked[0], &symbols, &chronicle).unknown,
                doubts,
                "{source}"
            );
        }
    }

    /// Proves DE-10.
    #[test]
    fn what_was_imported_counts_only_where_it_is_asked_for() {
        let origins = [
            // Recorded now, and before there was a word for it.
            (Some(record::DECISIONS), Some(false), false),
            (Some("laptops"), Some(true), true),
            (Some("a-device"), Some(false), false),
            (Some(record::DECISIONS), None, false),
            (Some(record::OTLP), None, false),
            (Some("laptops"), None, true),
        ];
        for (source, imported, is_import) in origins {
            let mut event = OwnedRecord::read(
                60_000,
                Occasion::PreTool,
                json!({ "identity.user_id": "u", "tool.id": "x", "llm.input_tokens": 9 })
                    .as_object()
                    .unwrap(),
                &[],
            )
            .unwrap();
            event.source = source.map(str::to_owned);
            event.imported = imported;
            assert_eq!(event.is_imported(), is_import);
            for counted in [false, true].map(|imports| EventSelection {
                imports,
                ..EventSelection::SEEN
            }) {
                let mut recorder = Recorder::new(record::schema());
                for n in 0..2 {
                    record::put(&event, &format!("hev_{n:026}"), &mut recorder).unwrap();
                }
                let mut past = EventWindow::new(set());
                let mut observer = Observer::new(&past, counted.clone(), nothing());
                let batch = observer.narrow(recorder.finish().unwrap());
                assert!(observer.observe(&mut past, &batch, 0..2).unwrap());
                let mut symbols = Symbols::new();
                let asked = json!({ "identity.user_id": "u" });
                let asked = OwnedRecord::read(70_000, Occasion::PreTool, asked.as_object().unwrap(), &[]);
                let asked = [asked.unwrap().event(&mut symbols)];
                let chronicle = past.recall(&asked, &mut symbols);
                let matched = set().judge(&asked[0], &symbols, &chronicle).action == Action::Block;
                let counts = !is_import || counted.imports;
                assert_eq!(matched, counts, "{source:?} {imported:?} {counted:?}");
            }
        }
    }
}
