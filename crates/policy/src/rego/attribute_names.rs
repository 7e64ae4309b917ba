//! What a module that compares an id with a text is told in place of the id.
//!
//! ```text
//!   one name   the id · each text of the module that is a word of the record · each word as it stands · its match key
//!   a set      the ids · each as the module writes it · each by its first word, second, … · all of this together
//! ```
//!
//! A name that has no register (a tool, a server, a model) is what it is called: it is asked as it stands and as each text of
//! the module that has its match key. Its key is asked too where the module takes the name apart, unless the module writes
//! the name just as the event does: a module that lists what may be done (`not input.tool.id in {"Bash"}`) would otherwise stop
//! what it lists.
//!
//! Of several such attributes every combination is asked. The module matches if it matches for one of them, and is unknown if
//! it does for none and is unknown for one: a module's match makes no action weaker, whatever its action is, because the
//! strongest of all that match decides, and neither allow lists nor exceptions are modules.
//!
//! Keeps RG-5.

use super::literals::NamedLiteral;
use crate::catalogue::Field;
use crate::event::words_path;
use crate::register::name_key;
use regorus::Value;
use std::collections::BTreeSet;

/// LIMIT: evaluations of one module for one event; with more of them it is unknown where none matched.
const EVALUATIONS_LIMIT: usize = 64;

/// The names that an attribute of an event has.
#[derive(Debug)]
pub(crate) struct AttributeNames {
    pub field: Field,
    pub is_set: bool,
    pub names: Vec<Forms>,
}

/// A name: what a module is told, and what else it could be called.
#[derive(Debug)]
pub(crate) struct Forms {
    /// The id; the word itself where no record has it.
    pub id: String,
    /// Every word as it stands, and its match key.
    pub words: Vec<String>,
    /// The match keys of the id and of every word.
    pub keys: Vec<String>,
}

/// The inputs of a module for one event, the event's own left out.
#[derive(Debug, Default)]
pub(crate) struct OtherInputs {
    pub inputs: Vec<Value>,
    /// Whether there are more than are asked.
    pub is_cut: bool,
}

/// Returns the names that an input has, as far as it says: for who sends one to be judged.
pub(super) fn of_input(input: &serde_json::Value, fields: &BTreeSet<Field>) -> Vec<AttributeNames> {
    let at = |path: &str| path.split('.').try_fold(input, |at, name| at.get(name));
    let texts = |value: &serde_json::Value| -> Option<Vec<String>> {
        let items = value.as_array()?.iter();
        items.map(|item| item.as_str().map(str::to_owned)).collect()
    };
    let mut all = Vec::new();
    for field in fields {
        let Some(value) = at(field.name()) else { continue };
        let words = words_path(*field)
            .and_then(at)
            .and_then(texts)
            .unwrap_or_default();
        let (is_set, ids) = match (value.as_str(), texts(value)) {
            (Some(id), _) => (false, vec![id.to_owned()]),
            (None, Some(ids)) => (true, ids),
            (None, None) => continue,
        };
        let forms = |id: String| {
            let keys = words.iter().map(|word| name_key(*field, word).into_owned());
            let own = name_key(*field, &id).into_owned();
            Forms {
                keys: keys.chain([own.clone()]).collect(),
                words: words.iter().cloned().chain([own]).collect(),
                id,
            }
        };
        all.push(AttributeNames {
            field: *field,
            is_set,
            names: ids.into_iter().map(forms).collect(),
        });
    }
    all
}

/// Returns the inputs that differ from an event's own in what its names are called.
pub(crate) fn others(literals: &[NamedLiteral], input: &Value, spoken: &[AttributeNames]) -> OtherInputs {
    let mut ways: Vec<Vec<(Field, Value)>> = vec![Vec::new()];
    let mut is_cut = false;
    for spoken in spoken {
        let told = spoken.told(literals);
        if told.len() < 2 {
            continue;
        }
        let with = |way: &Vec<(Field, Value)>, value: &Value| -> Vec<(Field, Value)> {
            way.iter()
                .cloned()
                .chain([(spoken.field, value.clone())])
                .collect()
        };
        let all = ways
            .iter()
            .flat_map(|way| told.iter().map(move |value| with(way, value)));
        let mut next: Vec<_> = all.take(EVALUATIONS_LIMIT + 1).collect();
        is_cut |= next.len() > EVALUATIONS_LIMIT;
        next.truncate(EVALUATIONS_LIMIT);
        ways = next;
    }
    let inputs = ways.into_iter().skip(1).map(|way| {
        let mut other = input.clone();
        for (field, value) in way {
            put(&mut other, field, value);
        }
        other
    });
    OtherInputs {
        inputs: inputs.collect(),
        is_cut,
    }
}

impl AttributeNames {
    /// Returns what a module is told of the attribute, first of all what it always is.
    fn told(&self, literals: &[NamedLiteral]) -> Vec<Value> {
        let written = |name: &Forms| -> Vec<String> {
            let own = literals.iter().filter(|literal| literal.field == self.field);
            own.filter(|literal| {
                name.keys
                    .iter()
                    .any(|key| *key == name_key(self.field, &literal.text))
            })
            .map(|literal| literal.text.clone())
            .collect()
        };
        let own = literals.iter().filter(|literal| literal.field == self.field);
        let is_in_parts = own.clone().any(|literal| literal.is_in_parts);
        let asks_key = |name: &Forms| {
            self.field.has_register() || is_in_parts && own.clone().all(|literal| literal.text != name.id)
        };
        let forms: Vec<Vec<String>> = self
            .names
            .iter()
            .map(|name| {
                let words = name.words.iter().filter(|_| asks_key(name)).cloned();
                distinct(written(name).into_iter().chain(words))
            })
            .collect();
        if !self.is_set {
            let own = self.names.iter().map(|name| name.id.clone());
            let all = distinct(own.chain(forms.into_iter().flatten()));
            return all.into_iter().map(Value::from).collect();
        }
        let list = |texts: &mut dyn Iterator<Item = String>| -> Vec<String> {
            let sorted: BTreeSet<String> = texts.collect();
            sorted.into_iter().collect()
        };
        let ids = || self.names.iter().map(|name| name.id.clone());
        let mut all = vec![list(&mut ids())];
        all.push(list(&mut self.names.iter().map(|name| {
            let first = written(name).into_iter().next();
            first.unwrap_or_else(|| name.id.clone())
        })));
        let most = forms.iter().map(Vec::len).max().unwrap_or(0);
        for nth in 0..most {
            let named = self.names.iter().zip(&forms);
            all.push(list(&mut named.map(|(name, forms)| {
                let form = forms.get(nth).or_else(|| forms.last());
                form.unwrap_or(&name.id).clone()
            })));
        }
        all.push(list(&mut ids().chain(forms.iter().flatten().cloned())));
        let mut seen = BTreeSet::new();
        all.retain(|texts| seen.insert(texts.clone()));
        all.into_iter()
            .map(|texts| Value::from(texts.into_iter().map(Value::from).collect::<Vec<Value>>()))
            .collect()
    }
}

fn distinct(texts: impl Iterator<Item = String>) -> Vec<String> {
    let mut seen = BTreeSet::new();
    texts.filter(|text| seen.insert(text.clone())).collect()
}

/// Puts a value in the place of an attribute; an input that has no such place stays.
fn put(input: &mut Value, field: Field, value: Value) {
    let Some((parent, member)) = field.name().split_once('.') else {
        return;
    };
    let place = input
        .as_object_mut()
        .ok()
        .and_then(|root| root.get_mut(&Value::from(parent)))
        .and_then(|parent| parent.as_object_mut().ok())
        .and_then(|parent| parent.get_mut(&Value::from(member)));
    if let Some(place) = place {
        *place = value;
    }
}
