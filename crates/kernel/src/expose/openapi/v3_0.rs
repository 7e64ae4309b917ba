//! The document in the form of OpenAPI 3.0.3, for generators that read no other.
//!
//! It says less, never something else: conditions (`if`, `not`), which version 3.0 does not have or generators do not read, are left
//! out, so that a body may pass here and be refused by the server. Absent: webhooks, which 3.0 does not know; beside JSON, other forms
//! of the same body; and the query's word for an id that no path carries, whose name is that of the path's. The answer to every other
//! status stands at `4XX` and `5XX`: generators take `default` for a second answer to what succeeds.

use serde_json::{Map, Value, json};

/// Keywords of JSON Schema 2020-12 that 3.0 does not have, and `not`.
const LEFT_OUT: [&str; 10] = [
    "if",
    "then",
    "else",
    "not",
    "dependentRequired",
    "dependentSchemas",
    "propertyNames",
    "patternProperties",
    "unevaluatedProperties",
    "contentMediaType",
];

/// Returns the 3.0.3 form of the document.
pub fn as_3_0(document: &Value) -> Value {
    let mut document = document.clone();
    if let Some(members) = document.as_object_mut() {
        members.insert("openapi".into(), "3.0.3".into());
        members.remove("webhooks");
    }
    if let Some(license) = document
        .pointer_mut("/info/license")
        .and_then(Value::as_object_mut)
    {
        license.remove("identifier");
    }
    let paths = document.get_mut("paths").and_then(Value::as_object_mut);
    let items = paths.into_iter().flat_map(Map::values_mut);
    items
        .filter_map(Value::as_object_mut)
        .flat_map(Map::values_mut)
        .for_each(plain);
    schemas_of(&mut document);
    document
}

/// Leaves one form of each body and one meaning of each name and status to an operation.
fn plain(operation: &mut Value) {
    if let Some(parameters) = operation.get_mut("parameters").and_then(Value::as_array_mut) {
        let of_path = parameters.iter().filter(|one| one["in"] == "path");
        let names: Vec<Value> = of_path.map(|one| one["name"].clone()).collect();
        parameters.retain(|one| one["in"] != "query" || !names.contains(&one["name"]));
    }
    if let Some(body) = operation.get_mut("requestBody") {
        json_alone(body);
    }
    let Some(answers) = operation.get_mut("responses").and_then(Value::as_object_mut) else {
        return;
    };
    if let Some(other) = answers.remove("default") {
        answers.insert("4XX".into(), other.clone());
        answers.insert("5XX".into(), other);
    }
    answers.values_mut().for_each(json_alone);
}

/// Leaves JSON alone, where a body can be that.
fn json_alone(body: &mut Value) {
    if let Some(forms) = body.get_mut("content").and_then(Value::as_object_mut)
        && forms.contains_key("application/json")
    {
        forms.retain(|form, _| form == "application/json");
    }
}

/// Finds the schemas of a document: what stands under `schema`, and the named ones.
fn schemas_of(value: &mut Value) {
    match value {
        Value::Array(items) => items.iter_mut().for_each(schemas_of),
        Value::Object(members) => {
            for (name, member) in members {
                match name.as_str() {
                    "schema" => lower(member),
                    "schemas" => member
                        .as_object_mut()
                        .into_iter()
                        .flat_map(Map::values_mut)
                        .for_each(lower),
                    "example" => {}
                    _ => schemas_of(member),
                }
            }
        }
        _ => {}
    }
}

/// Brings a schema and those within it into the form of 3.0.
fn lower(schema: &mut Value) {
    if schema == &Value::Bool(true) || schema == &Value::Bool(false) {
        // A schema that takes nothing stands only where another member says so as well.
        *schema = json!({});
    }
    let Some(members) = schema.as_object_mut() else {
        return;
    };
    members.retain(|name, _| !LEFT_OUT.contains(&name.as_str()));
    // In 3.0 a list of required members names at least one.
    if members.get("required") == Some(&json!([])) {
        members.remove("required");
    }
    if let Some(Value::Object(properties)) = members.get_mut("properties") {
        properties.values_mut().for_each(lower);
    }
    for one in ["items", "additionalProperties"] {
        if let Some(inner) = members.get_mut(one).filter(|inner| inner.is_object()) {
            lower(inner);
        }
    }
    if let Some(Value::Array(examples)) = members.remove("examples")
        && let Some(first) = examples.into_iter().next()
    {
        members.insert("example".into(), first);
    }
    if let Some(only) = members.remove("const") {
        members.insert("enum".into(), json!([only]));
    }
    for (exclusive, bound) in [("exclusiveMinimum", "minimum"), ("exclusiveMaximum", "maximum")] {
        if let Some(limit) = members.get(exclusive).filter(|limit| limit.is_number()).cloned() {
            members.insert(bound.into(), limit);
            members.insert(exclusive.into(), true.into());
        }
    }
    types(members);
    unions(members);
    // What stands beside a reference is not read in 3.0.
    if members.len() > 1
        && let Some(reference) = members.remove("$ref")
    {
        members.insert("allOf".into(), json!([{ "$ref": reference }]));
    }
}

/// One type, and whether it may be null, in place of a list of types.
fn types(members: &mut Map<String, Value>) {
    if members.get("type").is_some_and(|only| only == "null") {
        members.remove("type");
        members.insert("nullable".into(), true.into());
        members.insert("enum".into(), json!([null]));
    }
    let Some(Value::Array(types)) = members.get("type").cloned() else {
        return;
    };
    let mut rest: Vec<Value> = types.iter().filter(|one| *one != "null").cloned().collect();
    let is_nullable = rest.len() < types.len();
    members.remove("type");
    match rest.as_mut_slice() {
        [only] => _ = members.insert("type".into(), only.take()),
        // Bounds of one type mean nothing to another: the alternatives stand beside them.
        several => {
            let each: Vec<Value> = several.iter().map(|one| json!({ "type": one })).collect();
            members.insert("anyOf".into(), each.into());
        }
    }
    if is_nullable {
        members.insert("nullable".into(), true.into());
    }
}

/// Words as one `enum`, and `null` as a fact beside the alternatives.
fn unions(members: &mut Map<String, Value>) {
    for union in ["oneOf", "anyOf", "allOf"] {
        let Some(Value::Array(mut branches)) = members.remove(union) else {
            continue;
        };
        branches.iter_mut().for_each(lower);
        let count = branches.len();
        branches.retain(|branch| branch.get("enum") != Some(&json!([null])));
        if branches.len() < count {
            members.insert("nullable".into(), true.into());
        }
        let words: Option<Vec<Value>> = branches.iter().map(only_word).collect();
        if let Some(words) = words.filter(|words| union != "allOf" && !words.is_empty()) {
            members.insert("type".into(), "string".into());
            members.insert("enum".into(), words.into());
        } else if let [Value::Object(only)] = branches.as_mut_slice()
            && !only.contains_key("$ref")
        {
            for (name, value) in std::mem::take(only) {
                members.entry(name).or_insert(value);
            }
        } else if !branches.is_empty() {
            members.insert(union.into(), branches.into());
        }
    }
    // In 3.0 `null` is no word of an enumeration unless it lists it.
    if members.get("nullable") == Some(&json!(true))
        && let Some(Value::Array(words)) = members.get_mut("enum")
        && !words.contains(&Value::Null)
    {
        words.push(Value::Null);
    }
}

/// Returns the word of a schema that takes one word alone.
fn only_word(schema: &Value) -> Option<Value> {
    match schema.get("enum")?.as_array()?.as_slice() {
        [word @ Value::String(_)] => Some(word.clone()),
        _ => None,
    }
}
