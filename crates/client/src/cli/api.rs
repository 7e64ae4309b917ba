//! The OpenAPI document as operations that commands can be made of.

use super::column::{self, Column};
use super::schema::{Field, Kind, ResolvedSchema, Schemas};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// What accompanies every write and is asked for apart from the other members (D4.1).
const TRIO: [&str; 3] = ["reason", "idempotencyKey", "confirm"];
const METHODS: [&str; 5] = ["get", "post", "put", "patch", "delete"];
/// The organization comes from a flag, the environment or a profile, never from a positional.
const ORGANIZATION: &str = "organizationId";

/// The operations of one server version, read from its OpenAPI document.
#[derive(Debug)]
pub struct Api {
    pub(super) operations: Vec<Operation>,
}

/// One operation as a command sees it.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Operation {
    pub(super) group: String,
    pub(super) verb: String,
    #[serde(with = "method")]
    pub(super) method: http::Method,
    /// Without `--confirm` the server says what would be lost.
    pub(super) weighs: bool,
    /// The path with its `{…}` parameters, from the root.
    pub(super) path: String,
    pub(super) summary: String,
    pub(super) description: String,
    pub(super) path_parameters: Vec<Field>,
    pub(super) query: Vec<Field>,
    /// The path parameter that the query takes as well, for what no path carries unchanged.
    pub(super) slashed: Option<String>,
    pub(super) body: Option<Body>,
    pub(super) kind: Effect,
    pub(super) reveals_secret: bool,
    /// The scopes that it needs, in words: `a and b` are both needed, of `a or b` one is enough.
    pub(super) scope: Option<String>,
    pub(super) roles: Vec<String>,
    /// What performing needs beyond that, of an operation that otherwise previews (D8.5).
    pub(super) performs: Option<Performance>,
    pub(super) answer: Shape,
    /// The columns of a list that a read answers, behind the declared ones those that are there as well.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(super) columns: Vec<Column>,
}

/// Whether an operation changes state.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum Effect {
    Read,
    Write {
        /// Nothing can undo it, so `confirm: true` is demanded.
        confirm: bool,
        metadata: MetadataPlacement,
    },
}

/// Where `reason`, `idempotencyKey` and `confirm` travel.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum MetadataPlacement {
    Body,
    Headers,
    /// In headers, and none of them must be said.
    OptionalHeaders,
}

/// The right to perform what is otherwise only shown.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Performance {
    pub(super) scope: String,
    pub(super) roles: Vec<String>,
}

/// What a request carries beside the mutation metadata.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Body {
    pub(super) fields: Vec<Field>,
    /// The body is a document of its own, or can be given as one.
    pub(super) whole: bool,
    /// The media types of a body that is not JSON; empty for JSON.
    pub(super) media_types: Vec<String>,
    /// How much the server takes, where the document says so.
    pub(super) max_bytes: Option<u64>,
}

/// What a success looks like.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum Shape {
    /// No body.
    Nothing,
    /// One object.
    Object,
    /// A page: the items stand in the member of this name.
    List(String),
    /// JSON Lines.
    Lines,
    /// Bytes that no terminal can show, such as an archive.
    Bytes,
}

impl Api {
    /// Reads the document; an operation that says that no command is made of it has none.
    ///
    /// Errors: a sentence that names the operation without a command, path or method of its own, the list without columns, and
    /// the column that no item has.
    pub fn parse(document: &Value) -> Result<Self, String> {
        let schemas = Schemas(document.pointer("/components/schemas").and_then(Value::as_object));
        let paths = document.get("paths").and_then(Value::as_object);
        let paths = paths.ok_or("the document has no paths")?;
        let mut operations: Vec<Operation> = Vec::new();
        for (path, item) in paths {
            for method in METHODS {
                let Some(found) = item.get(method) else { continue };
                // Only machines call it, for themselves.
                let words = found.pointer("/x-provost/command").and_then(Value::as_array);
                if words.is_some_and(Vec::is_empty) {
                    continue;
                }
                let mut operation = operation(&schemas, path, method, found)
                    .ok_or_else(|| format!("{method} {path}: the document does not describe a command"))?;
                operation.columns =
                    columns(&schemas, found, &operation).map_err(|why| format!("{method} {path}: {why}"))?;
                let is_same = |o: &&Operation| o.group == operation.group && o.verb == operation.verb;
                if let Some(other) = operations.iter().find(is_same) {
                    let (group, verb) = (&operation.group, &operation.verb);
                    return Err(format!(
                        "{path} and {} share the command {group} {verb}",
                        other.path
                    ));
                }
                operations.push(operation);
            }
        }
        Ok(Self { operations })
    }

    /// Returns the groups with their operations, in the document's order.
    pub(super) fn groups(&self) -> Vec<(&str, Vec<&Operation>)> {
        let mut groups: Vec<(&str, Vec<&Operation>)> = Vec::new();
        for operation in &self.operations {
            match groups.iter_mut().find(|(name, _)| *name == operation.group) {
                Some((_, operations)) => operations.push(operation),
                None => groups.push((&operation.group, vec![operation])),
            }
        }
        groups
    }

    pub(super) fn find(&self, group: &str, verb: &str) -> Option<&Operation> {
        self.operations
            .iter()
            .find(|o| o.group == group && o.verb == verb)
    }
}

impl Operation {
    pub(super) fn is_write(&self) -> bool {
        matches!(self.kind, Effect::Write { .. })
    }

    /// Says whether asking again changes nothing: what is kept as history is no write, and is kept again.
    pub(super) fn may_repeat(&self) -> bool {
        !self.is_write() && self.method == http::Method::GET
    }

    /// Returns what of scopes a caller needs, in words: `the scope a`, `the scopes a and b`.
    pub(super) fn needed_scopes(&self) -> Option<String> {
        let said = self.scope.as_deref()?;
        let plural = if said.contains(" and ") { "s" } else { "" };
        Some(format!("the scope{plural} {said}"))
    }

    /// Says whether each of these scopes, with blanks between them, is one that it needs of every caller.
    pub(super) fn needs_scopes(&self, named: &str) -> bool {
        let own = self.scope.as_deref().unwrap_or_default();
        let performing = self.performs.as_ref().map(|needs| needs.scope.as_str());
        let is_own = |word: &str| {
            own.split(' ').any(|one| one.trim_end_matches(',') == word) || performing == Some(word)
        };
        named.split(' ').all(is_own)
    }

    /// Says whether `--confirm` means something here: it is demanded, or the operation speaks of it.
    pub(super) fn takes_confirm(&self) -> bool {
        let Effect::Write { confirm, .. } = self.kind else {
            return false;
        };
        confirm
            || self.performs.is_some()
            || [&self.summary, &self.description]
                .iter()
                .any(|t| t.to_lowercase().contains("confirm"))
    }

    /// Returns the media types of a body that is not JSON; empty for JSON or no body.
    pub(super) fn media_types(&self) -> &[String] {
        self.body.as_ref().map_or(&[], |body| &body.media_types)
    }

    pub(super) fn query_field(&self, name: &str) -> Option<&Field> {
        self.query.iter().find(|field| field.path == [name])
    }

    /// Returns the largest page that the operation serves.
    pub(super) fn largest_page(&self) -> Option<i64> {
        match self.query_field("limit")?.kind {
            Kind::Integer { max, .. } => max,
            _ => None,
        }
    }
}

/// A method as its name.
mod method {
    use http::Method;
    use serde::de::Error;
    use serde::{Deserialize, Deserializer, Serializer};

    pub(super) fn serialize<S: Serializer>(method: &Method, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(method.as_str())
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Method, D::Error> {
        <&str>::deserialize(deserializer)?
            .parse()
            .map_err(D::Error::custom)
    }
}

fn operation(schemas: &Schemas<'_>, path: &str, method: &str, found: &Value) -> Option<Operation> {
    let extension = found.get("x-provost")?;
    let text = |value: &Value, member: &str| value.get(member).and_then(Value::as_str).map(str::to_owned);
    let flag = |member: &str| extension.get(member).and_then(Value::as_bool).unwrap_or_default();
    let word = |place: usize| {
        let word = extension.get("command")?.get(place)?.as_str()?;
        (!word.is_empty() && !word.starts_with('-')).then(|| word.to_owned())
    };
    let access = extension.get("access").cloned().unwrap_or_default();
    let words = |value: Option<&Value>| -> Vec<String> {
        let words = value.and_then(Value::as_array).into_iter().flatten();
        words
            .filter_map(|word| word.as_str().map(str::to_owned))
            .collect()
    };
    let performs = extension.get("previews").map(|needs| Performance {
        scope: text(needs, "scope").unwrap_or_default(),
        roles: words(needs.get("roles")),
    });
    let body_schema = found.pointer("/requestBody/content/application~1json/schema");
    let body_schema = body_schema.map(|schema| schemas.resolve(schema));
    let kind = if text(extension, "kind")? == "write" {
        let has_reason = body_schema.as_ref().and_then(|b| b.properties()?.get("reason"));
        Effect::Write {
            confirm: flag("confirm"),
            metadata: match text(extension, "trio").as_deref() {
                Some("optional-headers") => MetadataPlacement::OptionalHeaders,
                _ if has_reason.is_none() => MetadataPlacement::Headers,
                _ => MetadataPlacement::Body,
            },
        }
    } else {
        Effect::Read
    };
    let path_parameters = parameters(schemas, found, "path");
    let mut query = parameters(schemas, found, "query");
    let mut slashed = None;
    query.retain(|field| {
        let is_twice = path_parameters.iter().any(|other| other.path == field.path);
        if is_twice {
            slashed = Some(field.name());
        }
        !is_twice
    });
    Some(Operation {
        group: word(0)?,
        verb: word(1)?,
        method: method.to_uppercase().parse().ok()?,
        path: path.to_owned(),
        summary: text(found, "summary").unwrap_or_default(),
        description: text(found, "description").unwrap_or_default(),
        path_parameters,
        query,
        slashed,
        body: match body_schema {
            Some(schema) => Some(body(schemas, schema)),
            None => content(found),
        },
        kind,
        reveals_secret: flag("revealsSecret"),
        weighs: flag("weighs"),
        scope: scopes(&access),
        roles: words(access.get("roles")),
        performs,
        answer: answer(schemas, found)?,
        columns: Vec::new(),
    })
}

/// Returns the scopes that an operation needs, in words.
fn scopes(access: &Value) -> Option<String> {
    let word = |member: &str| access.get(member).and_then(Value::as_str);
    let mut said = word("scope")?.to_owned();
    for (member, between) in [
        ("andScope", " and "),
        ("orScope", " or "),
        ("selfScope", " or, of oneself, "),
    ] {
        if let Some(scope) = word(member) {
            said.push_str(between);
            said.push_str(scope);
        }
    }
    Some(said)
}

fn columns(schemas: &Schemas<'_>, found: &Value, operation: &Operation) -> Result<Vec<Column>, String> {
    let declared = found.pointer("/x-provost/columns");
    match &operation.answer {
        Shape::List(member) if !operation.is_write() => {
            let page = success(found).and_then(schema_of);
            let items = page.and_then(|page| schemas.resolve(&page).properties()?.get(member).cloned());
            let items = items.and_then(|items| schemas.resolve(&items).schema.remove("items"));
            column::of_list(schemas, declared, &items.unwrap_or_default())
        }
        _ if declared.is_some() => Err("it declares columns and answers no list".into()),
        _ => Ok(Vec::new()),
    }
}

fn parameters(schemas: &Schemas<'_>, found: &Value, place: &str) -> Vec<Field> {
    let all = found
        .get("parameters")
        .and_then(Value::as_array)
        .cloned()
        .unwrap_or_default();
    let field = |parameter: &Value| {
        let name = parameter.get("name")?.as_str()?;
        if parameter.get("in")? != place || name == ORGANIZATION {
            return None;
        }
        let required = parameter.get("required") == Some(&Value::Bool(true));
        let schema = parameter.get("schema").cloned().unwrap_or_default();
        let mut field = schemas.field(vec![name.to_owned()], &schema, required);
        if let Some(about) = parameter.get("description").and_then(Value::as_str) {
            about.clone_into(&mut field.about);
        }
        Some(field)
    };
    all.iter().filter_map(field).collect()
}

fn body(schemas: &Schemas<'_>, resolved: ResolvedSchema) -> Body {
    let has_union = ["anyOf", "oneOf", "allOf"]
        .iter()
        .any(|u| resolved.schema.contains_key(*u));
    let is_closed = resolved.schema.get("additionalProperties") == Some(&Value::Bool(false));
    let mut fields = schemas.members(&Value::Object(resolved.schema));
    fields.retain(|field| !matches!(field.path.as_slice(), [name] if TRIO.contains(&name.as_str())));
    Body {
        whole: !fields.is_empty() || has_union || !is_closed,
        fields,
        media_types: Vec::new(),
        max_bytes: None,
    }
}

/// Returns a body that is not JSON, if the operation takes one.
fn content(found: &Value) -> Option<Body> {
    let content = found.pointer("/requestBody/content")?.as_object()?;
    let largest = content
        .values()
        .filter_map(|body| body.pointer("/schema/maxLength")?.as_u64());
    Some(Body {
        fields: Vec::new(),
        whole: false,
        media_types: content.keys().cloned().collect(),
        max_bytes: largest.max(),
    })
}

/// Returns the content of a success by its media types; nothing where it has none.
fn success(found: &Value) -> Option<&Map<String, Value>> {
    let responses = found.get("responses")?.as_object()?;
    // That a second person was asked is no answer of the operation.
    let asks = found.pointer("/x-provost/secondPerson").is_some();
    let is_own = |status: &str| status.starts_with('2') && !(asks && status == "202");
    let (_, success) = responses.iter().find(|(status, _)| is_own(status))?;
    success.get("content")?.as_object()
}

fn schema_of(content: &Map<String, Value>) -> Option<Value> {
    let schema = content.values().next()?.get("schema");
    Some(schema.cloned().unwrap_or_default())
}

fn answer(schemas: &Schemas<'_>, found: &Value) -> Option<Shape> {
    let responses = found.get("responses")?.as_object()?;
    responses.keys().find(|status| status.starts_with('2'))?;
    let Some(content) = success(found) else {
        return Some(Shape::Nothing);
    };
    if content
        .keys()
        .any(|media_type| media_type.contains("jsonl") || media_type.contains("ndjson"))
    {
        return Some(Shape::Lines);
    }
    let schema = schema_of(content)?;
    if schema.get("format").is_some_and(|format| format == "binary") {
        return Some(Shape::Bytes);
    }
    Some(list_member(schemas, &schemas.resolve(&schema)).map_or(Shape::Object, Shape::List))
}

/// Returns the member that holds the items if the object is a page: an array of objects among plain values. Where there are
/// several, it is the one that every page has; what a page may have beside its items (`warnings`, `unreadable`) is optional.
fn list_member(schemas: &Schemas<'_>, object: &ResolvedSchema) -> Option<String> {
    let properties: &Map<String, Value> = object.properties()?;
    let required = object.schema.get("required").and_then(Value::as_array);
    let is_required = |name: &String| required.is_some_and(|names| names.iter().any(|known| known == name));
    let mut found = Vec::new();
    for (name, schema) in properties {
        let member = schemas.resolve(schema);
        if member.is("object") {
            // What a page says of all its items stands beside them: `dataAge`.
            if properties.contains_key("nextCursor") {
                continue;
            }
            return None;
        }
        if !member.is("array") {
            continue;
        }
        let items = schemas.resolve(member.schema.get("items")?);
        if !(items.is("object") || items.properties().is_some()) {
            return None;
        }
        found.push(name);
    }
    if found.len() > 1 {
        found.retain(|name| is_required(name));
    }
    match found[..] {
        [name] => Some(name.clone()),
        _ => None,
    }
}
