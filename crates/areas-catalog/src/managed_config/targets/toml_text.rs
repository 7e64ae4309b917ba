//! A document as TOML. JSON's `null` has no counterpart there and is refused before.

use crate::managed_config::content::{Fault, step};
use serde_json::Value;

/// Returns the document as TOML, tables last, names sorted. Members without a counterpart are left out.
pub fn render(document: &Value) -> String {
    converted(document)
        .and_then(|value| toml::to_string_pretty(&value).ok())
        .unwrap_or_default()
}

fn converted(value: &Value) -> Option<toml::Value> {
    Some(match value {
        Value::Null => return None,
        Value::Bool(value) => toml::Value::Boolean(*value),
        Value::Number(number) => match number.as_i64() {
            Some(number) => toml::Value::Integer(number),
            None => toml::Value::Float(number.as_f64()?),
        },
        Value::String(text) => toml::Value::String(text.clone()),
        Value::Array(items) => toml::Value::Array(items.iter().filter_map(converted).collect()),
        Value::Object(members) => {
            let members = members
                .iter()
                .filter_map(|(name, member)| Some((name.clone(), converted(member)?)));
            toml::Value::Table(members.collect())
        }
    })
}

/// Returns the places that have no counterpart in TOML.
pub fn faults(value: &Value, path: &str) -> Vec<Fault> {
    match value {
        Value::Null => vec![Fault::new(
            path,
            "is null, which TOML has no word for; leave the member out",
        )],
        Value::Array(items) => {
            let each = items.iter().enumerate();
            each.flat_map(|(place, item)| faults(item, &format!("{path}/{place}")))
                .collect()
        }
        Value::Object(members) => {
            let each = members.iter();
            each.flat_map(|(name, member)| faults(member, &step(path, name)))
                .collect()
        }
        _ => Vec::new(),
    }
}
