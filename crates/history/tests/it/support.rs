//! Storage in memory, random events, and the shortest way from events to a plan.

use proptest::prelude::*;
use provost_history::{
    Batch, Chunk, ColumnSpec, Entry, Event, Kind, Plan, Question, Recorder, Schema, Sealer, Segment, Source,
    Storage, Value, chunk,
};
use std::collections::HashMap;
use std::io::{self, Write};
use std::sync::{Arc, Mutex};

/// Objects in memory.
#[derive(Default)]
pub struct Memory(pub Mutex<HashMap<String, Vec<u8>>>);

impl Storage for Memory {
    fn size(&self, name: &str) -> io::Result<u64> {
        let objects = self.0.lock().unwrap();
        Ok(objects.get(name).ok_or(io::ErrorKind::NotFound)?.len() as u64)
    }

    fn read(&self, name: &str, offset: u64, length: usize) -> io::Result<bytes::Bytes> {
        let objects = self.0.lock().unwrap();
        let object = objects.get(name).ok_or(io::ErrorKind::NotFound)?;
        let start = usize::try_from(offset).unwrap();
        let end = start.checked_add(length).ok_or(io::ErrorKind::UnexpectedEof)?;
        Ok(object
            .get(start..end)
            .ok_or(io::ErrorKind::UnexpectedEof)?
            .to_vec()
            .into())
    }

    fn put(
        &self,
        name: &str,
        write: &mut dyn FnMut(&mut (dyn Write + Send)) -> provost_history::Result<()>,
    ) -> provost_history::Result<()> {
        let mut bytes = Vec::new();
        write(&mut bytes)?;
        self.0.lock().unwrap().insert(name.to_owned(), bytes);
        Ok(())
    }

    fn remove(&self, name: &str) -> io::Result<()> {
        self.0.lock().unwrap().remove(name);
        Ok(())
    }
}

/// A value that owns itself, as a test compares it.
#[derive(Clone, Debug, PartialEq)]
pub enum OwnedValue {
    Missing,
    Text(String),
    Set(Vec<String>),
    Number(f64),
    Boolean(bool),
    Json(String),
    Instant(i64),
}

/// An event that owns itself.
#[derive(Clone, Debug, PartialEq)]
pub struct Row {
    pub id: String,
    pub at: i64,
    pub values: Vec<OwnedValue>,
}

impl OwnedValue {
    /// Returns the value as it reads back.
    pub fn normal(&self) -> Self {
        match self {
            Self::Set(members) => {
                let mut members = members.clone();
                members.sort();
                members.dedup();
                Self::Set(members)
            }
            Self::Number(number) => Self::Number(number + 0.0),
            other => other.clone(),
        }
    }

    /// Returns a text that is equal iff the value is.
    pub fn key(&self) -> String {
        match self.normal() {
            Self::Number(number) => format!("n{:016x}", number.to_bits()),
            other => format!("{other:?}"),
        }
    }

    pub fn of(entry: Entry<'_>) -> Self {
        match entry {
            Entry::Missing => Self::Missing,
            Entry::Text(text) => Self::Text(text.to_owned()),
            Entry::Set(set) => Self::Set(set),
            Entry::Number(number) => Self::Number(number),
            Entry::Boolean(is_true) => Self::Boolean(is_true),
            Entry::Json(text) => Self::Json(text.to_owned()),
            Entry::Instant(at) => Self::Instant(at),
        }
    }
}

/// Returns the row as an event of a recorder.
pub fn record(recorder: &mut Recorder, row: &Row) -> provost_history::Result<()> {
    let sets: Vec<Vec<&str>> = row
        .values
        .iter()
        .map(|value| match value {
            OwnedValue::Set(members) => members.iter().map(String::as_str).collect(),
            _ => Vec::new(),
        })
        .collect();
    let values: Vec<Value<'_>> = row
        .values
        .iter()
        .zip(&sets)
        .map(|(value, set)| match value {
            OwnedValue::Missing => Value::Missing,
            OwnedValue::Text(text) => Value::Text(text),
            OwnedValue::Set(_) => Value::Set(set),
            OwnedValue::Number(number) => Value::Number(*number),
            OwnedValue::Boolean(is_true) => Value::Boolean(*is_true),
            OwnedValue::Json(text) => Value::Json(text),
            OwnedValue::Instant(at) => Value::Instant(*at),
        })
        .collect();
    recorder.record(&Event {
        id: &row.id,
        at: row.at,
        values: &values,
    })
}

/// Returns the rows in one batch.
pub fn batch(schema: &Arc<Schema>, rows: &[Row]) -> Batch {
    let mut recorder = Recorder::new(Arc::clone(schema));
    for row in rows {
        record(&mut recorder, row).unwrap();
    }
    recorder.finish().unwrap()
}

/// Returns the rows that a batch with ids has.
pub fn rows(batch: &Batch, range: std::ops::Range<usize>) -> Vec<Row> {
    let value = |column: &provost_history::Column, row: usize| {
        OwnedValue::of(column.dictionary.entry(column.codes[row]).unwrap())
    };
    range
        .map(|row| Row {
            id: batch.ids.get(row).to_owned(),
            at: batch.at[row],
            values: batch.columns.iter().map(|column| value(column, row)).collect(),
        })
        .collect()
}

/// Returns the rows as they read back: normal values, in the order of (instant, event id).
pub fn expected(rows: &[Row]) -> Vec<Row> {
    let normal = |row: &Row| Row {
        values: row.values.iter().map(OwnedValue::normal).collect(),
        ..row.clone()
    };
    let mut rows: Vec<Row> = rows.iter().map(normal).collect();
    rows.sort_by(|a, b| (a.at, &a.id).cmp(&(b.at, &b.id)));
    rows
}

/// Stores the rows as a chunk.
pub fn chunk(storage: &Arc<Memory>, schema: &Arc<Schema>, name: &str, rows: &[Row]) -> Source {
    let bytes = chunk::encode(schema, &batch(schema, rows)).unwrap();
    let summary = chunk::summary(&bytes).unwrap();
    storage.put(name, &mut |out| Ok(out.write_all(&bytes)?)).unwrap();
    Source::Chunk(Chunk::new(Arc::clone(storage) as Arc<dyn Storage>, name, summary))
}

/// Stores the rows as a segment.
pub fn segment(storage: &Arc<Memory>, schema: &Arc<Schema>, name: &str, rows: &[Row]) -> Source {
    let mut sealer = Sealer::new(Arc::clone(schema));
    for rows in rows.chunks(7) {
        sealer.add(&batch(schema, rows)).unwrap();
    }
    sealer.seal(storage.as_ref(), name).unwrap();
    Source::Segment(Segment::open(Arc::clone(storage) as Arc<dyn Storage>, name, schema).unwrap())
}

/// Spreads the rows over chunks and segments, as the choices say; overlapping in time.
pub fn sources(schema: &Arc<Schema>, rows: &[Row], choices: &[bool]) -> Vec<Source> {
    let storage = Arc::new(Memory::default());
    let mut parts: Vec<Vec<Row>> = vec![Vec::new(); choices.len()];
    for (index, row) in rows.iter().enumerate() {
        parts[(index * 7 + index / 5) % choices.len()].push(row.clone());
    }
    let whole = parts
        .iter()
        .zip(choices)
        .enumerate()
        .filter(|(_, (part, _))| !part.is_empty());
    whole
        .map(|(index, (part, is_sealed))| {
            let make = if *is_sealed { segment } else { chunk };
            make(&storage, schema, &format!("part-{index}"), part)
        })
        .collect()
}

/// Returns the plan over everything.
pub fn whole(schema: &Arc<Schema>, sources: Vec<Source>) -> Plan {
    let question = Question {
        from: i64::MIN,
        to: i64::MAX,
        max_events: 1_000_000,
    };
    Plan::new(Arc::clone(schema), sources, question).unwrap()
}

/// Returns all rows of the plan in the order of time.
pub fn read(plan: &Plan) -> Vec<Row> {
    let columns: Vec<usize> = (0..plan.schema().columns().len()).collect();
    let mut all = Vec::new();
    provost_history::scan::ordered(
        plan,
        &columns,
        &provost_history::scan::Watch::default(),
        |batch, range| {
            all.extend(rows(batch, range));
            Ok(())
        },
    )
    .unwrap();
    all
}

fn kind() -> impl Strategy<Value = Kind> {
    prop::sample::select(vec![
        Kind::Text,
        Kind::TextSet,
        Kind::Number,
        Kind::Boolean,
        Kind::Json,
        Kind::Instant,
    ])
}

fn number() -> impl Strategy<Value = f64> {
    let edges = vec![
        0.0,
        -0.0,
        1.0,
        0.1,
        f64::MAX,
        f64::MIN,
        f64::MIN_POSITIVE,
        5e-324,
        9_007_199_254_740_993.0,
    ];
    prop_oneof![
        prop::sample::select(edges),
        (0_i32..5).prop_map(f64::from),
        prop::num::f64::NORMAL
    ]
}

fn text() -> impl Strategy<Value = String> {
    prop_oneof![3 => "[a-c]{0,2}", 1 => "\\PC{0,20}", 1 => prop::sample::select(vec!["\0".to_owned(), "\"\\\n".into(), "🧭é\u{2028}".into()])]
}

fn value(kind: Kind) -> BoxedStrategy<OwnedValue> {
    let some = match kind {
        Kind::Text => text().prop_map(OwnedValue::Text).boxed(),
        Kind::TextSet => prop::collection::vec(text(), 0..4)
            .prop_map(OwnedValue::Set)
            .boxed(),
        Kind::Number => number().prop_map(OwnedValue::Number).boxed(),
        Kind::Boolean => any::<bool>().prop_map(OwnedValue::Boolean).boxed(),
        Kind::Json => text()
            .prop_map(|text| OwnedValue::Json(serde_json::json!({ "t": text }).to_string()))
            .boxed(),
        Kind::Instant => prop_oneof![Just(i64::MIN), Just(i64::MAX), 0_i64..3]
            .prop_map(OwnedValue::Instant)
            .boxed(),
    };
    prop_oneof![4 => some, 1 => Just(OwnedValue::Missing)].boxed()
}

fn instant() -> impl Strategy<Value = i64> {
    prop_oneof![8 => -200_000_000_i64..200_000_000, 8 => 0_i64..20]
}

/// Random schemas.
pub fn schemas() -> impl Strategy<Value = Arc<Schema>> {
    prop::collection::vec((kind(), any::<bool>()), 0..7).prop_map(|kinds| {
        let columns = kinds.iter().enumerate();
        let spec = |(index, (kind, behaviour)): (usize, &(Kind, bool))| ColumnSpec {
            name: format!("column {index}"),
            kind: *kind,
            behaviour: *behaviour,
        };
        Arc::new(Schema::new(3, columns.map(spec).collect()).unwrap())
    })
}

/// Random rows of a schema; ids are unique and say nothing about the order.
pub fn histories(schema: Arc<Schema>, count: usize) -> impl Strategy<Value = (Arc<Schema>, Vec<Row>)> {
    let values: Vec<_> = schema.columns().iter().map(|column| value(column.kind)).collect();
    prop::collection::vec((instant(), values), 1..count).prop_map(move |rows| {
        let row = |(index, (at, values)): (usize, (i64, Vec<OwnedValue>))| Row {
            id: format!("{:x}-{index}", index * 7919 % 256),
            at,
            values,
        };
        (
            Arc::clone(&schema),
            rows.into_iter().enumerate().map(row).collect(),
        )
    })
}

/// A plain schema for tests with chosen rows, and a row of it.
pub fn plain() -> Arc<Schema> {
    Arc::new(
        Schema::new(
            1,
            vec![
                ColumnSpec::of("tool", Kind::Text),
                ColumnSpec::of("cost", Kind::Number),
            ],
        )
        .unwrap(),
    )
}

pub fn row(id: &str, at: i64, tool: &str) -> Row {
    let text = |text: &str| OwnedValue::Text(text.to_owned());
    let values = vec![
        text("allow"),
        OwnedValue::Set(Vec::new()),
        text("psv_1"),
        text("enforce"),
        text(tool),
        OwnedValue::Missing,
    ];
    Row {
        id: id.to_owned(),
        at,
        values,
    }
}
