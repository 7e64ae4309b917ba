//! Rows of the history: an event into the recorder, and out of a batch that has all columns.

use super::column::{
    BASIS, CALL_ID, EXTERNAL_ID, IMPORTED, MISSING, OCCASION, PRINCIPAL, SESSION, SOURCE, position, schema,
};
use super::owned::{Attribute, Basis, Decision, Mode, OwnedRecord};
use provost_history::{
    ACTION, Batch, Entry, Error, MODE, POLICY_IDS, POLICY_SET_VERSION, Recorder, Result, Schema, Value,
};
use provost_policy::{Action, Event, Field, Occasion, Symbols};
use std::sync::{Arc, LazyLock};

/// Where the columns stand that are no attribute's.
pub(super) struct ColumnIndexes {
    action: usize,
    policy_ids: usize,
    policy_set_version: usize,
    mode: usize,
    pub occasion: usize,
    source: usize,
    session: usize,
    call_id: usize,
    external_id: usize,
    pub missing: usize,
    principal: usize,
    imported: usize,
    basis: usize,
}

pub(super) static PLACES: LazyLock<ColumnIndexes> = LazyLock::new(|| {
    let schema: Arc<Schema> = schema();
    let place = |name| schema.position(name).unwrap_or(usize::MAX);
    ColumnIndexes {
        action: place(ACTION),
        policy_ids: place(POLICY_IDS),
        policy_set_version: place(POLICY_SET_VERSION),
        mode: place(MODE),
        occasion: place(OCCASION),
        source: place(SOURCE),
        session: place(SESSION),
        call_id: place(CALL_ID),
        external_id: place(EXTERNAL_ID),
        missing: place(MISSING),
        principal: place(PRINCIPAL),
        imported: place(IMPORTED),
        basis: place(BASIS),
    }
});

/// Records an event under this id, wholly or not at all.
///
/// Errors: `Invalid` when the recorder is full or of another schema, or the event is too large for a chunk.
pub fn put(owned: &OwnedRecord, id: &str, recorder: &mut Recorder) -> Result<()> {
    let places = &*PLACES;
    let sets: Vec<Vec<&str>> = owned.attributes.iter().map(|(_, value)| members(value)).collect();
    let missing: Vec<&str> = owned.missing.iter().map(|field| field.name()).collect();
    let policy_ids: Vec<&str> = match &owned.decision {
        Some(decision) => decision.policy_ids.iter().map(String::as_str).collect(),
        None => Vec::new(),
    };
    let mut values = vec![Value::Missing; schema().columns().len()];
    if let Some(decision) = &owned.decision {
        values[places.action] = Value::Text(decision.action.word());
        values[places.policy_ids] = Value::Set(&policy_ids);
        values[places.policy_set_version] = text(decision.policy_set_version.as_deref());
        values[places.mode] = Value::Text(decision.mode.word());
        values[places.basis] = text(decision.basis.map(Basis::word));
    }
    values[places.occasion] = Value::Text(owned.occasion.word());
    values[places.source] = text(owned.source.as_deref());
    values[places.principal] = text(owned.principal.as_deref());
    if let Some(is_imported) = owned.imported {
        values[places.imported] = Value::Boolean(is_imported);
    }
    values[places.session] = text(owned.session.as_deref());
    values[places.call_id] = text(owned.call_id.as_deref());
    values[places.external_id] = text(owned.external_id.as_deref());
    if !missing.is_empty() {
        values[places.missing] = Value::Set(&missing);
    }
    for ((field, attribute), set) in owned.attributes.iter().zip(&sets) {
        values[position(*field)] = match attribute {
            Attribute::Text(text) => Value::Text(text),
            Attribute::Set(_) => Value::Set(set),
            Attribute::Number(number) => Value::Number(*number),
            Attribute::Boolean(is) => Value::Boolean(*is),
        };
    }
    recorder.record(&provost_history::Event {
        id,
        at: owned.at_ms,
        values: &values,
    })
}

fn text(text: Option<&str>) -> Value<'_> {
    text.map_or(Value::Missing, Value::Text)
}

fn members(attribute: &Attribute) -> Vec<&str> {
    match attribute {
        Attribute::Set(members) => members.iter().map(String::as_str).collect(),
        _ => Vec::new(),
    }
}

/// Returns the event of a row, as policies judge it; the batch has all columns of the schema, in its order.
///
/// Errors: `Corrupt` when the batch has other columns, or the row is no event.
pub fn event(batch: &Batch, row: usize, symbols: &mut Symbols) -> Result<Event> {
    Ok(owned(batch, row)?.event(symbols))
}

/// Returns the event of a row with everything that is known of it; the batch has all columns of the schema.
///
/// Errors: `Corrupt` when the batch has other columns, or the row is no event.
pub fn owned(batch: &Batch, row: usize) -> Result<OwnedRecord> {
    let places = &*PLACES;
    let row = Row { batch, row };
    let at_ms = *batch.at.get(row.row).ok_or(Error::Corrupt("row"))?;
    let mut owned = OwnedRecord::empty(at_ms, occasion(&row.entry(places.occasion)?)?);
    owned.source = row.text(places.source)?;
    owned.principal = row.text(places.principal)?;
    owned.imported = match row.entry(places.imported)? {
        Entry::Boolean(is) => Some(is),
        _ => None,
    };
    owned.session = row.text(places.session)?;
    owned.call_id = row.text(places.call_id)?;
    owned.external_id = row.text(places.external_id)?;
    owned.decision = row.decision()?;
    for field in Field::all() {
        let attribute = match row.entry(position(field))? {
            Entry::Text(text) => Attribute::Text(text.to_owned()),
            Entry::Set(members) => Attribute::Set(members),
            Entry::Number(number) => Attribute::Number(number),
            Entry::Boolean(is) => Attribute::Boolean(is),
            _ => continue,
        };
        owned.attributes.push((field, attribute));
    }
    if let Entry::Set(names) = row.entry(places.missing)? {
        owned.missing = missing(&names)?;
    }
    Ok(owned)
}

/// Returns the occasion that a value of its column names.
pub(super) fn occasion(entry: &Entry<'_>) -> Result<Occasion> {
    let Entry::Text(word) = entry else {
        return Err(Error::Corrupt("occasion"));
    };
    let mut all = Occasion::ALL.into_iter();
    all.find(|occasion| occasion.word() == *word)
        .ok_or(Error::Corrupt("occasion"))
}

/// Returns the attributes that a value of the column `missing` names, sorted.
pub(super) fn missing(names: &[String]) -> Result<Vec<Field>> {
    let fields = names.iter().map(|name| Field::named(name));
    let mut fields: Vec<Field> = fields
        .collect::<Option<_>>()
        .ok_or(Error::Corrupt("name of an attribute"))?;
    fields.sort_unstable();
    Ok(fields)
}

struct Row<'a> {
    batch: &'a Batch,
    row: usize,
}

impl<'a> Row<'a> {
    fn entry(&self, place: usize) -> Result<Entry<'a>> {
        let column = self.batch.columns.get(place).ok_or(Error::Corrupt("column"))?;
        let code = column.codes.get(self.row).ok_or(Error::Corrupt("row"))?;
        column.dictionary.entry(*code)
    }

    fn text(&self, place: usize) -> Result<Option<String>> {
        Ok(match self.entry(place)? {
            Entry::Text(text) => Some(text.to_owned()),
            _ => None,
        })
    }

    fn decision(&self) -> Result<Option<Decision>> {
        let places = &*PLACES;
        let Some(action) = self.text(places.action)? else {
            return Ok(None);
        };
        let mode = self.text(places.mode)?;
        let basis = self.text(places.basis)?;
        Ok(Some(Decision {
            action: Action::named(&action).ok_or(Error::Corrupt("action"))?,
            policy_ids: match self.entry(places.policy_ids)? {
                Entry::Set(ids) => ids,
                _ => Vec::new(),
            },
            policy_set_version: self.text(places.policy_set_version)?,
            mode: mode
                .and_then(|word| Mode::named(&word))
                .ok_or(Error::Corrupt("mode"))?,
            basis: match basis {
                None => None,
                Some(word) => Some(Basis::named(&word).ok_or(Error::Corrupt("basis"))?),
            },
        }))
    }
}
