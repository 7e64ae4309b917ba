//! Values made of JSON schemas, and what breaks them.

use crate::support::Dice;
use serde_json::{Map, Value, json};

/// The OpenAPI document as a source of parameters, bodies and judgements.
pub struct Document {
    root: Value,
    /// For every operation id: its query parameters and its body's schema with a validator.
    operations: std::collections::HashMap<String, DescribedValue>,
}

#[derive(Default)]
pub struct DescribedValue {
    /// Names and schemas of what the query takes.
    pub query: Vec<(String, Value)>,
    /// The schema of a JSON body.
    pub body: Option<Value>,
    valid: Option<jsonschema::Validator>,
}

impl DescribedValue {
    /// Says whether a body fits its schema; without one none does.
    pub fn fits(&self, body: &Value) -> bool {
        self.valid.as_ref().is_some_and(|valid| valid.is_valid(body))
    }
}

impl Document {
    pub fn of(root: &Value) -> Self {
        let mut operations = std::collections::HashMap::new();
        for item in root["paths"].as_object().unwrap().values() {
            for operation in item.as_object().unwrap().values() {
                let Some(id) = operation["operationId"].as_str() else {
                    continue;
                };
                operations.insert(id.to_owned(), describe(root, operation));
            }
        }
        Self {
            root: root.clone(),
            operations,
        }
    }

    pub fn operation(&self, id: &str) -> &DescribedValue {
        self.operations
            .get(id)
            .unwrap_or_else(|| panic!("{id} stands not in the document"))
    }

    fn resolve<'a>(&'a self, schema: &'a Value) -> &'a Value {
        match schema["$ref"].as_str() {
            Some(place) => self.root.pointer(place.trim_start_matches('#')).unwrap(),
            None => schema,
        }
    }

    /// A value that a schema describes, more or less: patterns are met by luck.
    pub fn value(&self, dice: &mut Dice, schema: &Value, depth: usize) -> Value {
        let schema = self.resolve(schema);
        if depth == 0 {
            return Value::Null;
        }
        if let Some(value) = schema.get("const") {
            return value.clone();
        }
        if let Some(values) = schema["enum"].as_array() {
            return dice.pick(values).clone();
        }
        for word in ["oneOf", "anyOf"] {
            if let Some(ways) = schema[word].as_array() {
                let way = &ways[dice.below(ways.len())];
                let way = self.value(dice, way, depth - 1);
                if schema.get("properties").is_none() {
                    return way;
                }
            }
        }
        let kind = match &schema["type"] {
            Value::Array(kinds) => dice.pick(kinds).as_str().unwrap_or("null").to_owned(),
            Value::String(kind) => kind.clone(),
            _ if schema.get("properties").is_some() => "object".to_owned(),
            _ => ["string", "object", "integer", "boolean"][dice.below(4)].to_owned(),
        };
        match kind.as_str() {
            "string" => text(dice, schema).into(),
            "integer" | "number" => whole(dice, schema),
            "boolean" => dice.chance(2).into(),
            "array" => {
                let least = schema["minItems"].as_u64().unwrap_or(0);
                let items = usize::try_from(least).unwrap() + dice.below(3);
                (0..items)
                    .map(|_| self.value(dice, &schema["items"], depth - 1))
                    .collect()
            }
            "object" => self.object(dice, schema, depth),
            _ => Value::Null,
        }
    }

    fn object(&self, dice: &mut Dice, schema: &Value, depth: usize) -> Value {
        let mut made = Map::new();
        let required: Vec<&str> = schema["required"]
            .as_array()
            .map(|names| names.iter().filter_map(Value::as_str).collect())
            .unwrap_or_default();
        for (name, member) in schema["properties"].as_object().into_iter().flatten() {
            if required.contains(&name.as_str()) || dice.chance(3) {
                made.insert(name.clone(), self.value(dice, member, depth - 1));
            }
        }
        if schema["additionalProperties"].is_object() {
            for _ in 0..dice.below(3) {
                let name = dice.pick(&WORDS).to_string();
                made.insert(name, self.value(dice, &schema["additionalProperties"], depth - 1));
            }
        }
        made.into()
    }
}

fn describe(root: &Value, operation: &Value) -> DescribedValue {
    let query = operation["parameters"].as_array().into_iter().flatten();
    let query = query
        .filter(|parameter| parameter["in"] == "query")
        .map(|parameter| {
            (
                parameter["name"].as_str().unwrap().to_owned(),
                parameter["schema"].clone(),
            )
        });
    let body = operation
        .pointer("/requestBody/content/application~1json/schema")
        .cloned();
    let valid = body.as_ref().map(|schema| {
        let mut whole = schema.clone();
        whole["components"] = root["components"].clone();
        jsonschema::draft202012::new(&whole).unwrap()
    });
    DescribedValue {
        query: query.collect(),
        body,
        valid,
    }
}

const WORDS: [&str; 14] = [
    "a",
    "sample",
    "deploy-1",
    "acme.test",
    "2026-11-14T00:00:00.000Z",
    "2026-11-21T00:00:00.000Z",
    "sha256:0000000000000000000000000000000000000000000000000000000000000000",
    "https://acme.test/callback",
    "user:1",
    "tool.id",
    "shell",
    "P1D",
    "ann@acme.test",
    "content/one",
];

/// Text that has broken programs before.
pub const HOSTILE: [&str; 35] = [
    "",
    " ",
    "\0",
    "a\0b",
    "a\r\nSet-Cookie: x=1",
    "a\nb",
    "\u{1b}[2J",
    "\u{7f}",
    "\u{85}",
    "\u{2028}",
    "\u{202e}txt.exe",
    "\u{feff}a",
    "\u{fffd}",
    "\u{10ffff}",
    "e\u{301}\u{301}\u{301}",
    "İıſK",
    "' OR '1'='1",
    "'; DROP TABLE audit_entries; --",
    "1) UNION SELECT entry FROM audit_entries --",
    "\"}],\"x\":[{\"",
    "%00",
    "%",
    "_",
    "\\",
    "../../../../etc/passwd",
    "..%2f..%2f",
    "{{7*7}}",
    "${jndi:ldap://x}",
    "<script>alert(1)</script>",
    "=cmd|' /C calc'!A0",
    "NaN",
    "-1",
    "99999999999999999999",
    "null",
    "true",
];

fn text(dice: &mut Dice, schema: &Value) -> String {
    let mut made = match dice.below(8) {
        0 => dice.pick(&HOSTILE).to_string(),
        1 => crate::support::fresh_key(),
        _ => dice.pick(&WORDS).to_string(),
    };
    if schema["format"] == "date-time" {
        WORDS[4 + dice.below(2)].clone_into(&mut made);
    }
    let most = schema["maxLength"].as_u64().filter(|most| *most < 70_000);
    if let Some(most) = most.filter(|_| dice.chance(10)) {
        let letter = *dice.pick(&["a", "ü", "𝔸"]);
        let length = usize::try_from(most).unwrap() + dice.below(3);
        made = letter.repeat(length.saturating_sub(1));
    }
    made
}

fn whole(dice: &mut Dice, schema: &Value) -> Value {
    let least = schema["minimum"].as_i64().unwrap_or(0);
    let most = schema["maximum"].as_i64().unwrap_or(9_007_199_254_740_991);
    match dice.below(6) {
        0 => least.into(),
        1 => most.into(),
        2 => least.saturating_sub(1).into(),
        3 => most.saturating_add(1).into(),
        _ => least
            .saturating_add(i64::try_from(dice.below(100)).unwrap())
            .into(),
    }
}

/// Members that a caller has no business with.
const FORBIDDEN: [&str; 16] = [
    "id",
    "organizationId",
    "createdAt",
    "updatedAt",
    "status",
    "role",
    "permissionRole",
    "scopes",
    "allOfRole",
    "revision",
    "tokens",
    "__proto__",
    "constructor",
    "managedBy",
    "comfirm",
    "",
];

/// Breaks one place of a value, or makes it odd.
pub fn mutate(dice: &mut Dice, value: &mut Value) {
    let place = dice.below(places(value));
    let mut left = place;
    visit(value, &mut left, &mut |node| change(dice, node));
}

fn places(value: &Value) -> usize {
    1 + match value {
        Value::Array(items) => items.iter().map(places).sum(),
        Value::Object(members) => members.values().map(places).sum(),
        _ => 0,
    }
}

fn visit(value: &mut Value, left: &mut usize, act: &mut dyn FnMut(&mut Value)) -> bool {
    if *left == 0 {
        act(value);
        return true;
    }
    *left -= 1;
    match value {
        Value::Array(items) => items.iter_mut().any(|item| visit(item, left, act)),
        Value::Object(members) => members.values_mut().any(|member| visit(member, left, act)),
        _ => false,
    }
}

/// Bytes that one change adds at most, a multiple of what a body may have: changes of changes would fill the memory.
const LARGEST: usize = 1024 * 1024;

fn at_most(times: usize, bytes: usize) -> usize {
    times.min(LARGEST / bytes.max(1)).max(1)
}

fn change(dice: &mut Dice, node: &mut Value) {
    match (dice.below(7), &mut *node) {
        (0, Value::Object(members)) if !members.is_empty() => {
            let names: Vec<String> = members.keys().cloned().collect();
            members.remove(dice.pick(&names));
        }
        (1, Value::Object(members)) => {
            let value = scalar(dice);
            members.insert(dice.pick(&FORBIDDEN).to_string(), value);
        }
        (2, Value::Object(members)) if !members.is_empty() => {
            let names: Vec<String> = members.keys().cloned().collect();
            let name = dice.pick(&names);
            let value = members.remove(name).unwrap();
            members.insert(name.to_uppercase(), value);
        }
        (0..=2, Value::Array(items)) if !items.is_empty() => {
            let item = dice.pick(items).clone();
            let times = at_most(*dice.pick(&[1, 2, 100, 1100]), item.to_string().len());
            items.extend(std::iter::repeat_n(item, times));
        }
        (0..=3, Value::String(text)) => {
            let odd = *dice.pick(&HOSTILE);
            match dice.below(4) {
                0 => text.push_str(odd),
                1 => text.insert_str(0, odd),
                2 => *text = text.repeat(at_most(*dice.pick(&[2, 300, 6000]), text.len())),
                _ => odd.clone_into(text),
            }
        }
        (0..=2, Value::Number(_)) => *node = number(dice),
        _ => *node = scalar(dice),
    }
}

fn number(dice: &mut Dice) -> Value {
    dice.pick(&[
        json!(0),
        json!(-1),
        json!(1),
        json!(0.5),
        json!(-0.0),
        json!(1e308),
        json!(i64::MAX),
        json!(i64::MIN),
        json!(u64::MAX),
        json!(9_007_199_254_740_991_i64),
        json!(9_007_199_254_740_992_i64),
        json!(2_147_483_648_i64),
    ])
    .clone()
}

fn scalar(dice: &mut Dice) -> Value {
    match dice.below(8) {
        0 => Value::Null,
        1 => true.into(),
        2 => number(dice),
        3 => json!([]),
        4 => json!({}),
        5 => deep(*dice.pick(&[5, 20, 40])),
        6 => json!(vec![0; 300]),
        _ => dice.pick(&HOSTILE).to_string().into(),
    }
}

fn deep(levels: usize) -> Value {
    (0..levels).fold(json!(1), |inner, level| {
        if level % 2 == 0 {
            json!([inner])
        } else {
            json!({ "a": inner })
        }
    })
}
