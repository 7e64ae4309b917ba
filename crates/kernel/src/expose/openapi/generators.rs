//! Schemas in the form from which generators of clients make types.
//!
//! What a body may say is written exactly: `scopes` and `allOfRole` exclude each other, for example. As alternatives beside members
//! (`oneOf`), generators make unions of half of a body, or nothing. As conditions (`if`, `then`, `else`) the same holds for whoever
//! validates, and generators see one object.

use serde_json::{Map, Value, json};

/// What each word of an `enum` means, by the word; documentation of APIs shows it.
const DESCRIPTIONS: &str = "x-enumDescriptions";

/// Rewrites schemas, at every depth, into equal ones that generators read: alternatives beside members as conditions, `false` as
/// the schema of a member as `not: {}`, an array of anything with `items`, words with descriptions as an `enum` beside
/// `x-enumDescriptions`, and `const` as an `enum` that says its type.
pub(super) fn plain(schema: &mut Value) {
    match schema {
        Value::Array(items) => items.iter_mut().for_each(plain),
        Value::Object(members) => {
            as_conditions(members);
            as_words(members);
            as_schemas(members);
            members.values_mut().for_each(plain);
        }
        _ => {}
    }
}

fn as_conditions(schema: &mut Map<String, Value>) {
    if !schema.get("properties").is_some_and(Value::is_object) {
        return;
    }
    let Some(Value::Array(alternatives)) = schema.remove("oneOf") else {
        return;
    };
    let exactly_one = exactly_one(&alternatives);
    if !schema.contains_key("if") {
        schema.extend(exactly_one);
        return;
    }
    // The conditions that stand there already are asked first, and both of their ends ask for the alternatives.
    for end in ["then", "else"] {
        let both = match schema.remove(end) {
            Some(asked) => json!({ "allOf": [asked, exactly_one] }),
            None => exactly_one.clone().into(),
        };
        schema.insert(end.into(), both);
    }
}

/// Returns conditions that hold exactly when one of the alternatives does.
fn exactly_one(alternatives: &[Value]) -> Map<String, Value> {
    let mut conditions = Map::new();
    match alternatives {
        [] => _ = conditions.insert("not".into(), json!({})),
        [Value::Object(last)] => conditions.clone_from(last),
        [first, rest @ ..] => {
            conditions.insert("if".into(), first.clone());
            conditions.insert("then".into(), json!({ "not": { "anyOf": rest } }));
            conditions.insert("else".into(), exactly_one(rest).into());
        }
    }
    conditions
}

/// Some generators take alternatives of one word each for a union of types, and find the first wrong.
fn as_words(schema: &mut Map<String, Value>) {
    let Some(alternatives) = schema.get("oneOf").and_then(Value::as_array) else {
        return;
    };
    let words: Option<Vec<Value>> = alternatives
        .iter()
        .map(|alternative| alternative.get("const").filter(|word| word.is_string()).cloned())
        .collect();
    let Some(words) = words else {
        return;
    };
    let described = alternatives.iter().filter_map(|alternative| {
        let word = alternative.get("const")?.as_str()?.to_owned();
        Some((word, alternative.get("description")?.clone()))
    });
    let descriptions: Map<String, Value> = described.collect();
    schema.remove("oneOf");
    schema.insert("type".into(), "string".into());
    schema.insert("enum".into(), words.into());
    if !descriptions.is_empty() {
        schema.insert(DESCRIPTIONS.into(), descriptions.into());
    }
}

fn as_schemas(schema: &mut Map<String, Value>) {
    if let Some(Value::Object(properties)) = schema.get_mut("properties") {
        for never in properties
            .values_mut()
            .filter(|member| **member == Value::Bool(false))
        {
            *never = json!({ "not": {} });
        }
    }
    let is_array = match schema.get("type") {
        Some(Value::String(only)) => only == "array",
        Some(Value::Array(types)) => types.iter().any(|one| one == "array"),
        _ => false,
    };
    if is_array && !schema.contains_key("items") {
        schema.insert("items".into(), json!({}));
    }
    let kind = match schema.get("const") {
        Some(Value::Bool(_)) => "boolean",
        // With a type, `const` is understood by all; described words stay as they are.
        Some(Value::String(_)) if !schema.contains_key("type") => "string",
        _ => return,
    };
    if let Some(only) = schema.remove("const") {
        schema.insert("enum".into(), json!([only]));
        schema.entry("type").or_insert_with(|| kind.into());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn conditions_take_what_exactly_one_alternative_takes() {
        let of = |name: &str| json!({ "required": [name] });
        let mut schema = json!({ "type": "object", "properties": { "a": {}, "b": {}, "c": {} }, "oneOf": [of("a"), of("b"), of("c")] });
        let before = jsonschema::draft202012::new(&schema).unwrap();
        plain(&mut schema);
        assert!(schema.get("oneOf").is_none(), "{schema}");
        let after = jsonschema::draft202012::new(&schema).unwrap();
        for names in 0..8_u8 {
            let mut body = Map::new();
            for (bit, name) in ["a", "b", "c"].into_iter().enumerate() {
                if names & (1 << bit) != 0 {
                    body.insert(name.into(), json!(1));
                }
            }
            let body = Value::Object(body);
            assert_eq!(before.is_valid(&body), after.is_valid(&body), "{body}");
        }
    }

    #[test]
    fn both_ends_of_a_condition_ask_for_one_alternative() {
        let mut schema = json!({
            "properties": { "a": {}, "b": {}, "do": {}, "why": {} },
            "oneOf": [{ "required": ["a"] }, { "required": ["b"] }],
            "if": { "required": ["do"] },
            "then": { "required": ["why"] },
        });
        let before = jsonschema::draft202012::new(&schema).unwrap();
        plain(&mut schema);
        let after = jsonschema::draft202012::new(&schema).unwrap();
        for names in 0..16_u8 {
            let mut body = Map::new();
            for (bit, name) in ["a", "b", "do", "why"].into_iter().enumerate() {
                if names & (1 << bit) != 0 {
                    body.insert(name.into(), json!(1));
                }
            }
            let body = Value::Object(body);
            assert_eq!(before.is_valid(&body), after.is_valid(&body), "{body}");
        }
    }

    #[test]
    fn what_generators_refuse_is_said_otherwise() {
        let mut schema = json!({
            "properties": { "no": false, "all": { "const": true }, "word": { "const": "a" }, "list": { "type": ["array", "null"] },
                "told": { "const": "b", "type": "string" },
                "words": { "oneOf": [{ "const": "c", "type": "string", "description": "See." }, { "const": "d", "type": "string" }] } },
        });
        plain(&mut schema);
        let expected = json!({
            "no": { "not": {} }, "all": { "enum": [true], "type": "boolean" }, "word": { "enum": ["a"], "type": "string" },
            "list": { "type": ["array", "null"], "items": {} }, "told": { "const": "b", "type": "string" },
            "words": { "type": "string", "enum": ["c", "d"], "x-enumDescriptions": { "c": "See." } },
        });
        assert_eq!(schema["properties"], expected);
    }
}
