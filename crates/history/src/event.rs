//! Recording: from events, in the order in which they come, to a batch in the order of (instant, event id).

use crate::batch::{Batch, Column, Value};
use crate::error::{Result, invalid};
use crate::schema::Schema;
use crate::symbols::Symbols;
use crate::texts::Texts;
use std::sync::Arc;

/// One decision as it was made, or one imported event.
#[derive(Clone, Copy, Debug)]
pub struct Event<'a> {
    /// The id, unique in its organization; ULIDs pack best.
    pub id: &'a str,
    /// When it happened. Units: milliseconds since the Unix epoch.
    pub at: i64,
    /// A value for each column of the schema, in its order.
    pub values: &'a [Value<'a>],
}

/// How many events one chunk holds at most. Source: D9.11.
pub const CHUNK_EVENTS: usize = 5_000;
// LIMIT: an id has 128 bytes, an event 256 KiB, the texts of a chunk 32 MiB. Ours: a chunk is one BLOB of a row.
const ID_BYTES: usize = 128;
const EVENT_BYTES: usize = 256 * 1024;
const CHUNK_BYTES: usize = 32 * 1024 * 1024;

/// Collects the events of one chunk.
#[derive(Debug)]
pub struct Recorder {
    schema: Arc<Schema>,
    at: Vec<i64>,
    ids: Texts,
    codes: Vec<Vec<u32>>,
    symbols: Vec<Symbols>,
    bytes: usize,
}

impl Recorder {
    /// Returns an empty recorder.
    pub fn new(schema: Arc<Schema>) -> Self {
        let columns = schema.columns();
        Self {
            at: Vec::new(),
            ids: Texts::default(),
            codes: columns.iter().map(|_| Vec::new()).collect(),
            symbols: columns.iter().map(|column| Symbols::new(column.kind)).collect(),
            bytes: 0,
            schema,
        }
    }

    /// Returns whether the chunk takes no more events.
    pub fn is_full(&self) -> bool {
        self.at.len() >= CHUNK_EVENTS || self.bytes >= CHUNK_BYTES
    }

    /// Returns how many events were taken.
    pub fn rows(&self) -> usize {
        self.at.len()
    }

    /// Takes an event, wholly or not at all.
    ///
    /// Errors: `Invalid` when the recorder is full, or the id, the size, the number of values or a value breaks a
    /// rule of the schema.
    pub fn record(&mut self, event: &Event<'_>) -> Result<()> {
        if self.is_full() {
            return invalid("the chunk is full");
        }
        if event.id.is_empty() || event.id.len() > ID_BYTES {
            return invalid(format!("an event id has 1 to {ID_BYTES} bytes"));
        }
        if event.values.len() != self.symbols.len() {
            return invalid(format!("an event has {} values", self.symbols.len()));
        }
        let bytes = event.id.len() + event.values.iter().map(size_bytes).sum::<usize>();
        if bytes > EVENT_BYTES {
            return invalid(format!("an event has at most {EVENT_BYTES} bytes"));
        }
        // All are checked before any is kept: a refused event leaves nothing behind.
        for (symbols, value) in self.symbols.iter().zip(event.values) {
            symbols.check(value)?;
        }
        let mut codes = Vec::with_capacity(event.values.len());
        for (symbols, value) in self.symbols.iter_mut().zip(event.values) {
            codes.push(symbols.intern(value)?);
        }
        self.ids.push(event.id)?;
        self.at.push(event.at);
        self.codes
            .iter_mut()
            .zip(codes)
            .for_each(|(column, code)| column.push(code));
        self.bytes += bytes;
        Ok(())
    }

    /// Returns the events in the order of (instant, event id).
    ///
    /// Errors: `Invalid` when the ids pass 4 GiB, which the limits of a chunk exclude.
    pub fn finish(self) -> Result<Batch> {
        let order = order(&self.at, &self.ids);
        let mut ids = Texts::with_capacity(self.ids.len(), self.ids.bytes());
        order
            .iter()
            .try_for_each(|row| ids.push(self.ids.get(*row as usize)))?;
        let columns = self
            .codes
            .iter()
            .zip(self.symbols)
            .map(|(codes, symbols)| Column {
                codes: order.iter().map(|row| codes[*row as usize]).collect(),
                dictionary: Arc::new(symbols.into_dictionary()),
            });
        let columns = columns.collect();
        Ok(Batch {
            at: order.iter().map(|row| self.at[*row as usize]).collect(),
            ids,
            columns,
        })
    }

    /// Returns the schema of the events.
    pub fn schema(&self) -> &Arc<Schema> {
        &self.schema
    }
}

/// Returns the rows in the order of (instant, event id); rows that agree in both keep their order.
pub(crate) fn order(at: &[i64], ids: &Texts) -> Vec<u32> {
    let mut rows: Vec<u32> = (0..).take(at.len()).collect();
    rows.sort_by(|a, b| {
        let (a, b) = (*a as usize, *b as usize);
        at[a].cmp(&at[b]).then_with(|| ids.get(a).cmp(ids.get(b)))
    });
    rows
}

/// Returns the bytes of the texts of a value, or those of its number.
fn size_bytes(value: &Value<'_>) -> usize {
    match value {
        Value::Text(text) | Value::Json(text) => text.len(),
        Value::Set(set) => set.iter().map(|member| member.len()).sum(),
        _ => 8,
    }
}
