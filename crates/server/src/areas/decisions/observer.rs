//! Rows of the history on their way into a past: the attributes that its conditions read, and nothing else.
//!
//! A dictionary is looked at once, not once for each row: making the past of a month reads as fast as the disk gives.

use provost_history::{Batch, Error, Result};
use provost_policy::{Event, Past, Symbols, Value};
use provost_replay::record::{Lens, View};
use std::ops::Range;

/// Texts that are kept for batches at work; then their table is emptied. Units: bytes.
const TABLE_BYTES: usize = 8 * 1024 * 1024;
/// So many sources may overlap in time before their dictionaries are looked at again.
const VIEWS: usize = 16;

/// Brings rows into a past.
pub struct Observer {
    lens: Lens,
    symbols: Symbols,
    views: Vec<View>,
}

impl Observer {
    /// Returns the observer for pasts of this one's set.
    pub fn new(past: &Past) -> Self {
        Self {
            lens: Lens::new(past.fields().iter().copied()),
            symbols: Symbols::new(),
            views: Vec::new(),
        }
    }

    /// Returns the positions of the columns that a batch must have, in this order.
    pub fn columns(&self) -> &[usize] {
        self.lens.positions()
    }

    /// Returns what of a batch with all columns is needed.
    pub fn narrow(&self, batch: Batch) -> Batch {
        let columns = self.columns().iter().map(|place| batch.columns[*place].clone());
        Batch {
            columns: columns.collect(),
            ..batch
        }
    }

    /// Makes rows part of the past, in their order; returns false when one came too late (see `Past::observe`).
    ///
    /// Errors: `Corrupt` when a row is no event.
    pub fn observe(&mut self, past: &mut Past, batch: &Batch, rows: Range<usize>) -> Result<bool> {
        let place = self.view(batch)?;
        let view = &self.views[place];
        let mut in_time = true;
        for row in rows {
            let occasion = view.occasion(batch, row).ok_or(Error::Corrupt("occasion"))?;
            let mut event = Event::new(batch.at[row], occasion);
            for (place, field) in self.lens.fields().iter().enumerate() {
                // The first two columns are the occasion and what is missing.
                let code = batch.columns[place + 2].codes[row] as usize;
                let value = if code == 0 && view.is_missing(batch, place, row) {
                    Value::Missing
                } else {
                    *view.values(place).get(code).ok_or(Error::Corrupt("code"))?
                };
                event.set(*field, value);
            }
            in_time &= past.observe(&event, &self.symbols);
        }
        Ok(in_time)
    }

    /// Returns the place of the view of a batch.
    fn view(&mut self, batch: &Batch) -> Result<usize> {
        if let Some(place) = self.views.iter().position(|view| view.is_of(batch)) {
            return Ok(place);
        }
        if self.views.len() >= VIEWS || self.symbols.bytes() > TABLE_BYTES {
            self.views.clear();
            self.symbols = Symbols::new();
        }
        self.views.push(View::new(&self.lens, batch, &mut self.symbols)?);
        Ok(self.views.len() - 1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use provost_history::Recorder;
    use provost_policy::{Definition, Family, Occasion, PolicySet};
    use provost_replay::record::{self, Owned};
    use serde_json::json;
    use std::sync::Arc;

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
    fn event(n: i64) -> Owned {
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
        Owned::read(n * 60_000, occasion, attributes.as_object().unwrap(), &missing).unwrap()
    }

    #[test]
    fn rows_by_columns_make_the_past_that_whole_events_make() {
        let set = set();
        let (mut whole, mut narrow) = (Past::new(set.clone()), Past::new(set.clone()));
        let mut observer = Observer::new(&narrow);
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
                let asked = Owned::read(at, Occasion::PreTool, asked.as_object().unwrap(), &[]);
                let asked = [asked.unwrap().event(&mut symbols)];
                let of = |past: &Past, symbols: &mut Symbols| {
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
}
