//! Rows of the history as batches that policies judge, by columns: values are looked at once per dictionary entry.

use super::column::position;
use super::row::{PLACES, missing, occasion};
use provost_history::{Batch as Rows, Column, Dictionary, Result};
use provost_policy::{Field, Follow, Occasion, Symbols, Value, follow};
use std::collections::BTreeSet;
use std::ops::Range;
use std::sync::Arc;

/// Which attributes are read, and the columns in which they are.
///
/// Who reads what follows from a tool's input reads the input as well: what was kept of it may be the reading of a
/// former version.
#[derive(Clone, Debug)]
pub struct AttributeProjection {
    fields: Vec<Field>,
    positions: Vec<usize>,
    /// The place of the tool's input, where something that follows from it is read.
    input: Option<usize>,
}

impl AttributeProjection {
    /// Returns the lens for these attributes; the occasion is always read.
    pub fn new(fields: impl IntoIterator<Item = Field>) -> Self {
        let mut fields: Vec<Field> = fields.into_iter().collect();
        let has_members = fields.iter().any(|field| field.member_of_input().is_some());
        if has_members {
            fields.push(Field::TOOL_INPUT);
        }
        fields.sort_unstable();
        fields.dedup();
        let input = fields.binary_search(&Field::TOOL_INPUT).ok();
        let attributes = fields.iter().map(|field| position(*field));
        Self {
            positions: [PLACES.occasion, PLACES.missing]
                .into_iter()
                .chain(attributes)
                .collect(),
            input: input.filter(|_| has_members),
            fields,
        }
    }

    /// Returns the attributes, sorted by name.
    pub fn fields(&self) -> &[Field] {
        &self.fields
    }

    /// Returns the positions in the schema of the columns that a batch for this lens has, in this order.
    pub fn positions(&self) -> &[usize] {
        &self.positions
    }
}

/// Adds every text of a dictionary, members of sets alike; of one that cannot be read, nothing.
pub fn add_texts(dictionary: &Dictionary, texts: &mut BTreeSet<String>) {
    let mut add = |text: &str| {
        if !texts.contains(text) {
            texts.insert(text.to_owned());
        }
    };
    if let Some(all) = dictionary.texts() {
        all.iter().for_each(&mut add);
    } else if let Ok(Some(sets)) = dictionary.sets() {
        sets.members.iter().for_each(&mut add);
    }
}

/// The dictionaries of a batch of the history in a table of symbols.
#[derive(Debug)]
pub struct View {
    dictionaries: Vec<Arc<Dictionary>>,
    /// By code; nothing for a row that names no occasion.
    occasions: Vec<Option<Occasion>>,
    columns: Vec<Values>,
    /// The place of the tool's input, where something follows from it.
    input: Option<usize>,
    bytes: usize,
}

/// The values of one attribute.
#[derive(Debug)]
#[expect(clippy::struct_field_names, reason = "they are what it holds")]
pub(super) struct Values {
    /// By code; the first is `Absent`.
    pub values: Vec<Value>,
    /// By code of the column `missing`, whether the attribute is; nothing where it never is.
    pub is_missing: Option<Vec<bool>>,
    /// By code of the tool's input, what follows from it; nothing of an attribute that does not.
    follows: Option<Vec<Follow>>,
}

impl View {
    /// Returns the view of a batch that has the columns of the lens.
    ///
    /// Errors: `Corrupt` when the column `missing` names no attribute.
    pub fn new(lens: &AttributeProjection, batch: &Rows, symbols: &mut Symbols) -> Result<Self> {
        let [occasions, missing_names, attributes @ ..] = batch.columns.as_slice() else {
            return Err(provost_history::Error::Corrupt("columns"));
        };
        let names = &missing_names.dictionary;
        let mut lost = vec![Vec::new()];
        for code in 1..=code(names.len()) {
            if let provost_history::Entry::Set(all) = names.entry(code)? {
                lost.push(missing(&all)?);
            }
        }
        let mut view = Self {
            dictionaries: batch.columns.iter().map(|c| Arc::clone(&c.dictionary)).collect(),
            occasions: (0..=code(occasions.dictionary.len()))
                .map(|code| {
                    occasions
                        .dictionary
                        .entry(code)
                        .and_then(|word| occasion(&word))
                        .ok()
                })
                .collect(),
            columns: Vec::with_capacity(attributes.len()),
            input: lens.input,
            bytes: 0,
        };
        for (field, column) in lens.fields.iter().zip(attributes) {
            let is_missing: Vec<bool> = lost.iter().map(|all| all.binary_search(field).is_ok()).collect();
            let values = values(*field, column, symbols, &mut view.bytes)?;
            view.columns.push(Values {
                values,
                is_missing: is_missing.contains(&true).then_some(is_missing),
                follows: None,
            });
        }
        view.follow(lens, symbols);
        Ok(view)
    }

    /// Reads each input once, for all attributes that follow from it.
    fn follow(&mut self, lens: &AttributeProjection, symbols: &mut Symbols) {
        let Some(input) = self.input else { return };
        let places: Vec<usize> = (0..lens.fields.len())
            .filter(|place| lens.fields[*place].member_of_input().is_some())
            .collect();
        let fields: Vec<Field> = places.iter().map(|place| lens.fields[*place]).collect();
        let inputs = &self.columns[input].values;
        let mut each: Vec<Vec<Follow>> = fields.iter().map(|_| Vec::with_capacity(inputs.len())).collect();
        for value in inputs {
            for (all, follows) in each.iter_mut().zip(follow(*value, &fields, symbols)) {
                all.push(follows);
            }
        }
        for (place, follows) in places.into_iter().zip(each) {
            self.columns[place].follows = Some(follows);
        }
    }

    /// Returns whether the batch has the dictionaries of this view.
    pub fn is_of(&self, batch: &Rows) -> bool {
        let pairs = self.dictionaries.iter().zip(&batch.columns);
        pairs.len() == batch.columns.len()
            && pairs
                .into_iter()
                .all(|(ours, theirs)| Arc::ptr_eq(ours, &theirs.dictionary))
    }

    /// Returns whether somebody else still reads a batch with these dictionaries.
    pub fn is_read(&self) -> bool {
        self.dictionaries
            .first()
            .is_some_and(|dictionary| Arc::strong_count(dictionary) > 1)
    }

    /// Returns about how many bytes of texts were brought into the table of symbols.
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// Returns the occasion of a row; nothing when the row names none.
    pub fn occasion(&self, batch: &Rows, row: usize) -> Option<Occasion> {
        let code = batch.columns[0].codes[row] as usize;
        self.occasions[code]
    }

    /// Appends the occasions of rows, some occasion where a row names none.
    pub(super) fn occasions(&self, batch: &Rows, range: &Range<usize>, into: &mut Vec<Occasion>) {
        let known: Vec<Occasion> = self
            .occasions
            .iter()
            .map(|occasion| occasion.unwrap_or(Occasion::Prompt))
            .collect();
        let codes = &batch.columns[0].codes[range.clone()];
        into.extend(codes.iter().map(|code| known[*code as usize]));
    }

    /// Returns whether the attribute at this place of the lens is missing in a row that has no value for it.
    pub fn is_missing(&self, batch: &Rows, place: usize, row: usize) -> bool {
        self.columns[place].is_missing_at(batch, row)
    }

    /// Returns whether the attribute at this place of the lens is missing in some row of the batches of this view.
    pub fn may_miss(&self, place: usize) -> bool {
        self.columns[place].is_missing.is_some()
    }

    /// Returns whether all of these rows name their occasions.
    pub fn knows_occasions(&self, batch: &Rows, range: &Range<usize>) -> bool {
        self.occasions.iter().skip(1).all(Option::is_some)
            && batch.columns[0].codes[range.clone()]
                .iter()
                .all(|code| *code != 0)
    }

    /// Returns the value of the attribute at this place of the lens in a row.
    ///
    /// Errors: `Corrupt` when the row's code stands for nothing.
    pub fn value(&self, batch: &Rows, place: usize, row: usize) -> Result<Value> {
        let own = self.kept(batch, place, row)?;
        let (Some(follows), Some(input)) = (&self.columns[place].follows, self.input) else {
            return Ok(own);
        };
        let follows = match self.kept(batch, input, row)? {
            Value::Missing => Follow::MISSING,
            // The code is that of a value, as was just seen.
            _ => follows[code_of(batch, input, row)],
        };
        Ok(follows.beside(own))
    }

    /// Returns whether the attribute at this place of the lens follows from another one.
    pub(super) fn follows(&self, place: usize) -> bool {
        self.columns[place].follows.is_some()
    }

    /// Returns the value that was kept.
    fn kept(&self, batch: &Rows, place: usize, row: usize) -> Result<Value> {
        let (code, column) = (code_of(batch, place, row), &self.columns[place]);
        if code == 0 && column.is_missing_at(batch, row) {
            return Ok(Value::Missing);
        }
        let value = column.values.get(code);
        value.copied().ok_or(provost_history::Error::Corrupt("code"))
    }

    /// Returns the values that the attribute at this place of the lens has, by code; the first stands for absent or
    /// missing.
    pub fn values(&self, place: usize) -> &[Value] {
        &self.columns[place].values
    }

    pub(super) fn column(&self, place: usize) -> &Values {
        &self.columns[place]
    }
}

impl Values {
    pub fn is_missing_at(&self, batch: &Rows, row: usize) -> bool {
        let at = |all: &Vec<bool>| all[batch.columns[1].codes[row] as usize];
        self.is_missing.as_ref().is_some_and(at)
    }
}

/// Returns the code of a row in the column of an attribute; the first two columns are the occasion and what is missing.
fn code_of(batch: &Rows, place: usize, row: usize) -> usize {
    batch.columns[place + 2].codes[row] as usize
}

fn code(length: usize) -> u32 {
    u32::try_from(length).unwrap_or(u32::MAX)
}

fn values(field: Field, column: &Column, symbols: &mut Symbols, bytes: &mut usize) -> Result<Vec<Value>> {
    let dictionary = &column.dictionary;
    let mut values = Vec::with_capacity(dictionary.len() + 1);
    values.push(Value::Absent);
    if let Some(texts) = dictionary.texts() {
        *bytes += texts.bytes() + 64 * texts.len();
        values.extend(texts.iter().map(|text| Value::Text(symbols.intern(text))));
    } else if let Some(numbers) = dictionary.numbers() {
        values.extend(numbers.iter().map(|number| Value::Number(*number)));
    } else if let Some(sets) = dictionary.sets()? {
        *bytes += sets.members.bytes() + 64 * (sets.members.len() + sets.ends.len());
        let mut start = 0;
        for end in sets.ends {
            let members = (start..end as usize).map(|place| sets.members.get(place));
            values.push(Value::Set(symbols.intern_set(members)));
            start = end as usize;
        }
    } else {
        values.extend([Value::Boolean(false), Value::Boolean(true)]);
    }
    // What is stored under an attribute and is not of its type is missing, as it is everywhere.
    let mut probe = provost_policy::Event::new(0, Occasion::Prompt);
    if let Some(first) = values.get(1) {
        probe.set(field, *first);
        if probe.get(field) == Value::Missing {
            values
                .iter_mut()
                .skip(1)
                .for_each(|value| *value = Value::Missing);
        }
    }
    Ok(values)
}
