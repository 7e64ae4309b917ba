//! The input of a module: a document, member for member.
//!
//! The engine's own way from JSON takes an object with the member `$serde_json::private::Number` for a number: of a
//! billion digits where its text says so, and where it says nothing the whole input is undefined. Whoever writes an
//! event's content could keep a processor busy for hours with it, or hide the event from every module.

use regorus::Value;
use serde_json::Value as Json;
use std::collections::BTreeMap;

/// Returns the value that a document is.
pub(crate) fn value(document: &Json) -> Value {
    match document {
        Json::Null => Value::Null,
        Json::Bool(is) => Value::from(*is),
        Json::Number(number) => match (number.as_u64(), number.as_i64(), number.as_f64()) {
            (Some(whole), _, _) => Value::from(whole),
            (_, Some(whole), _) => Value::from(whole),
            (_, _, number) => number.map_or(Value::Null, Value::from),
        },
        Json::String(text) => Value::from(text.as_str()),
        Json::Array(items) => Value::from(items.iter().map(value).collect::<Vec<Value>>()),
        Json::Object(members) => {
            let members = members
                .iter()
                .map(|(name, member)| (Value::from(name.as_str()), value(member)));
            Value::from(members.collect::<BTreeMap<Value, Value>>())
        }
    }
}
