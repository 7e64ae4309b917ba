//! The part of JSON Schema that the document uses, read as values that a command line can say.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// LIMIT: references and unions that are followed for one schema; the document's own need two.
const MAX_HOPS: usize = 16;
/// LIMIT: objects inside objects that become flags of their own; deeper ones are said as JSON.
const MAX_DEPTH: usize = 3;
/// What the limits of an instant say.
const INSTANT: &str = "RFC 3339 time";

/// What a flag takes.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(super) enum Kind {
    Text { choices: Vec<Choice> },
    Integer { min: Option<i64>, max: Option<i64> },
    Number,
    Boolean,
    List(Box<Kind>),
    Json,
}

/// One word of an enumeration.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct Choice {
    pub(super) word: String,
    pub(super) about: Option<String>,
}

/// One value: a parameter, or a member of the body that is not an object.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Field {
    /// The member's name behind the names of the objects around it; a parameter has one name.
    pub(super) path: Vec<String>,
    pub(super) kind: Kind,
    pub(super) required: bool,
    pub(super) nullable: bool,
    pub(super) about: String,
    pub(super) limits: Vec<String>,
}

impl Field {
    pub(super) fn name(&self) -> String {
        self.path.join(".")
    }

    /// Says whether it is an instant.
    pub(super) fn is_time(&self) -> bool {
        self.limits.iter().any(|limit| limit == INSTANT)
    }

    /// Says whether `null` means something. The schema of every optional member allows it, as absent; only
    /// the words tell whether it clears.
    pub(super) fn can_be_cleared(&self) -> bool {
        self.nullable && self.about.contains("null")
    }
}

/// A schema without references and without `null`.
pub(super) struct ResolvedSchema {
    pub(super) schema: Map<String, Value>,
    pub(super) nullable: bool,
}

impl ResolvedSchema {
    fn text(&self, member: &str) -> Option<&str> {
        self.schema.get(member).and_then(Value::as_str)
    }

    pub(super) fn is(&self, kind: &str) -> bool {
        self.text("type") == Some(kind)
    }

    pub(super) fn properties(&self) -> Option<&Map<String, Value>> {
        self.schema
            .get("properties")
            .and_then(Value::as_object)
            .filter(|p| !p.is_empty())
    }
}

/// The named schemas of the document.
pub(super) struct Schemas<'a>(pub(super) Option<&'a Map<String, Value>>);

impl Schemas<'_> {
    /// Follows references, and takes `null` out of a union of two.
    pub(super) fn resolve(&self, schema: &Value) -> ResolvedSchema {
        let mut schema = schema.as_object().cloned().unwrap_or_default();
        let mut nullable = false;
        for _ in 0..MAX_HOPS {
            let Some(next) = self.hop(&mut schema, &mut nullable) else {
                break;
            };
            // The words of the place where a schema is used are closer to the reader than its own.
            let outer = std::mem::replace(&mut schema, next);
            for member in ["description", "default"] {
                if let Some(value) = outer.get(member) {
                    schema.insert(member.into(), value.clone());
                }
            }
        }
        ResolvedSchema { schema, nullable }
    }

    fn hop(&self, schema: &mut Map<String, Value>, nullable: &mut bool) -> Option<Map<String, Value>> {
        if let Some(name) = schema.get("$ref").and_then(Value::as_str) {
            let name = name.strip_prefix("#/components/schemas/")?;
            return self.0?.get(name)?.as_object().cloned();
        }
        if let Some(types) = schema.get("type").and_then(Value::as_array) {
            let rest: Vec<Value> = types.iter().filter(|t| *t != "null").cloned().collect();
            *nullable |= rest.len() < types.len();
            if let [only] = rest.as_slice() {
                schema.insert("type".into(), only.clone());
            }
        }
        for union in ["anyOf", "oneOf", "allOf"] {
            let Some(branches) = schema.get(union).and_then(Value::as_array) else {
                continue;
            };
            let is_null = |branch: &Value| branch.get("type").is_some_and(|t| t == "null");
            let rest: Vec<&Value> = branches.iter().filter(|b| !is_null(b)).collect();
            *nullable |= rest.len() < branches.len();
            if let [only] = rest.as_slice() {
                return only.as_object().cloned();
            }
        }
        None
    }

    /// Returns what a resolved schema takes.
    pub(super) fn kind(&self, resolved: &ResolvedSchema) -> Kind {
        if let Some(choices) = choices(&resolved.schema) {
            return Kind::Text { choices };
        }
        let number = |member: &str| resolved.schema.get(member).and_then(Value::as_i64);
        match resolved.text("type") {
            Some("string") => Kind::Text { choices: Vec::new() },
            Some("integer") => Kind::Integer {
                min: number("minimum"),
                max: number("maximum"),
            },
            Some("number") => Kind::Number,
            Some("boolean") => Kind::Boolean,
            Some("array") => {
                let items = resolved.schema.get("items").cloned().unwrap_or_default();
                match self.kind(&self.resolve(&items)) {
                    Kind::List(_) | Kind::Json => Kind::Json,
                    item => Kind::List(Box::new(item)),
                }
            }
            _ => Kind::Json,
        }
    }

    /// Returns the field that a schema describes.
    pub(super) fn field(&self, path: Vec<String>, schema: &Value, required: bool) -> Field {
        let resolved = self.resolve(schema);
        Field {
            path,
            kind: self.kind(&resolved),
            required,
            nullable: resolved.nullable,
            about: resolved.text("description").unwrap_or_default().to_owned(),
            limits: limits(&resolved.schema),
        }
    }

    /// Returns the member of an object to which a path of names leads.
    pub(super) fn member(&self, object: &Value, path: &str) -> Option<Field> {
        let mut schema = object.clone();
        for name in path.split('.') {
            let resolved = self.resolve(&schema);
            schema = match resolved.properties() {
                Some(members) => members.get(name)?.clone(),
                // An object whose members nobody declares has whatever there is.
                None if resolved.schema.get("additionalProperties") == Some(&Value::Bool(true)) => {
                    Value::Object(Map::new())
                }
                None => return None,
            };
        }
        Some(self.field(path.split('.').map(str::to_owned).collect(), &schema, false))
    }

    /// Returns the members of an object, those of objects inside it included, in the document's order.
    pub(super) fn members(&self, schema: &Value) -> Vec<Field> {
        let mut fields = Vec::new();
        self.collect(&[], &self.resolve(schema), true, &mut fields);
        fields
    }

    fn collect(&self, path: &[String], object: &ResolvedSchema, required: bool, fields: &mut Vec<Field>) {
        let Some(properties) = object.properties() else {
            return;
        };
        let names = object.schema.get("required").and_then(Value::as_array);
        for (name, schema) in properties {
            let needed = required && names.is_some_and(|names| names.iter().any(|n| n == name));
            let mut inner = path.to_vec();
            inner.push(name.clone());
            let resolved = self.resolve(schema);
            if resolved.properties().is_some() && inner.len() < MAX_DEPTH {
                self.collect(&inner, &resolved, needed, fields);
            } else {
                fields.push(self.field(inner, schema, needed));
            }
        }
    }
}

/// Returns the words of an enumeration: `enum`, `const`, or a union of both.
fn choices(schema: &Map<String, Value>) -> Option<Vec<Choice>> {
    let branches = schema
        .get("oneOf")
        .or_else(|| schema.get("anyOf"))
        .and_then(Value::as_array);
    if let Some(branches) = branches {
        let branches: Vec<_> = branches.iter().map(|b| b.as_object().and_then(choices)).collect();
        return branches
            .into_iter()
            .collect::<Option<Vec<_>>>()
            .map(|c| c.concat());
    }
    let about = schema
        .get("description")
        .and_then(Value::as_str)
        .map(str::to_owned);
    if let Some(word) = schema.get("const") {
        return Some(vec![Choice {
            word: word.as_str()?.to_owned(),
            about,
        }]);
    }
    let descriptions = schema.get("x-enumDescriptions");
    let about = |word: &str| Some(descriptions?.get(word)?.as_str()?.to_owned());
    let words = schema
        .get("enum")?
        .as_array()?
        .iter()
        .filter(|word| !word.is_null());
    words
        .map(|word| {
            Some(Choice {
                about: about(word.as_str()?),
                word: word.as_str()?.to_owned(),
            })
        })
        .collect()
}

/// Returns the limits as words: `1 to 128 characters`.
fn limits(schema: &Map<String, Value>) -> Vec<String> {
    let range = |low: &str, high: &str, what: &str| match (schema.get(low), schema.get(high)) {
        (Some(low), Some(high)) => Some(format!("{low} to {high}{what}")),
        (Some(low), None) if low != 0 => Some(format!("at least {low}{what}")),
        (None, Some(high)) => Some(format!("at most {high}{what}")),
        _ => None,
    };
    let format = match schema.get("format").and_then(Value::as_str) {
        Some("date-time") => Some(INSTANT.to_owned()),
        _ => None,
    };
    let default = schema
        .get("default")
        .filter(|d| !d.is_null())
        .map(|d| match d.as_str() {
            Some(text) => format!("{text} when absent"),
            None => format!("{d} when absent"),
        });
    let found = [
        range("minLength", "maxLength", " characters"),
        range("minimum", "maximum", ""),
        range("minItems", "maxItems", " items"),
        format,
        default,
    ];
    found.into_iter().flatten().collect()
}
