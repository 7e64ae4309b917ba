//! The OpenAPI 3.1 document, derived from the registry. The CLI is built from it in turn.
//!
//! The statuses that the specification counts are declared by name; everything else an operation may answer
//! is under `default` (D1.7). Members behind `x-provost` say what the CLI and clients need beyond OpenAPI.

mod generators;
mod headers;
mod strangers;
mod v3_0;
mod webhooks;

use generators::plain;
pub(in crate::expose) use strangers::{closed, for_strangers, portable};
pub use v3_0::as_3_0;

use super::http::BASE;
use crate::auth::{Role, toolsets};
use crate::operation::{Access, BodyLimit, Consent, Entry, IN_QUERY, Kind, Meta, Registry};
use crate::second_person::ApprovalAsked;
use crate::text::{IdempotencyKey, Reason};
use schemars::generate::SchemaSettings;
use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde_json::{Map, Value, json};

/// The version of the API description (specification §9).
pub const VERSION: &str = "0.1.0";

/// Returns the document. Member order is stable: the committed file is compared byte for byte.
pub fn document(registry: &Registry) -> Value {
    let settings = SchemaSettings::draft2020_12().with(|s| {
        s.definitions_path = "/components/schemas".into();
        s.meta_schema = None;
    });
    let mut generator = settings.into_generator();
    let mut paths: Map<String, Value> = Map::new();
    for entry in registry.entries() {
        let item = paths
            .entry(format!("{BASE}{}", entry.meta.shown_path()))
            .or_insert_with(|| json!({}));
        item[entry.meta.method.as_str().to_lowercase()] = operation(entry, &mut generator);
    }
    let webhooks = webhooks::of_every_kind(registry, &mut generator);
    let mut tags: Vec<&str> = registry.entries().iter().map(|e| e.meta.toolset).collect();
    tags.sort_unstable();
    tags.dedup();
    let tag = |name: &str| json!({ "name": name, "description": about(name) });
    let tags: Vec<Value> = tags.into_iter().map(tag).collect();
    let mut schemas: Map<String, Value> = generator.take_definitions(true);
    // Only answers have named schemas; what requests may say stands in them.
    schemas.values_mut().for_each(without_null);
    schemas.values_mut().for_each(opened);
    schemas.insert("Error".into(), envelope_schema());
    let mut document = json!({
        "openapi": "3.1.0",
        "info": {
            "title": "Provost headless API",
            "version": VERSION,
            "description": "Know and decide who may use which model, MCP server, tool, skill and data source, and prove what happened.",
            "license": { "name": "Apache-2.0", "identifier": "Apache-2.0" },
        },
        "servers": [{ "url": "/" }],
        "security": [{ "bearer": [] }],
        "tags": tags,
        "paths": paths,
        "webhooks": webhooks,
        "components": {
            "schemas": schemas,
            "headers": headers::components(),
            "securitySchemes": { "bearer": { "type": "http", "scheme": "bearer" } },
        },
    });
    portable(&mut document);
    closed(&mut document);
    for_strangers(&mut document);
    plain(&mut document);
    // After all that brings schemas into form: an answer is data, whatever its members are called.
    exemplify(&mut document, &registry.answers());
    document
}

/// Shows of each operation the answer that is kept as its example.
fn exemplify(document: &mut Value, answers: &Map<String, Value>) {
    let paths = document["paths"].as_object_mut().into_iter().flatten();
    let operations = paths.flat_map(|(_, item)| item.as_object_mut().into_iter().flatten());
    for (_, operation) in operations {
        let id = operation["operationId"].as_str().unwrap_or_default();
        let Some(answer) = answers.get(id).cloned() else {
            continue;
        };
        let asks = !operation["x-provost"]["secondPerson"].is_null();
        let responses = operation["responses"].as_object_mut().into_iter().flatten();
        let contents = responses
            .filter(|(status, _)| status.starts_with('2') && !(asks && *status == "202"))
            .filter_map(|(_, response)| response.pointer_mut("/content/application~1json"));
        for content in contents {
            content["example"] = answer.clone();
        }
    }
}

/// Returns what a toolset is about, for the document's readers.
fn about(name: &str) -> &'static str {
    let toolset = toolsets().iter().find(|toolset| toolset.name == name);
    toolset.map_or("", |toolset| toolset.says)
}

fn envelope_schema() -> Value {
    json!({
        "type": "object",
        "required": ["message"],
        "properties": {
            "message": { "type": "string", "maxLength": 500 },
            "code": { "type": "string" },
            "requestId": { "type": "string" },
            "retryable": { "type": "boolean" },
            "status": {
                "type": ["string", "integer"],
                "description": "of a conflict with what has ended already: where the record stands; as application/problem+json always the status code",
            },
            "approvalId": {
                "type": "string",
                "description": "with the codes approval_required and approval_mismatch: the approval that was named",
            },
            "tokenId": {
                "type": "string",
                "description": "with the code secret_no_longer_retrievable: the token whose secret is shown no more",
            },
            "scope": {
                "type": "string",
                "description": "with the code insufficient_scope: every scope that is needed, with blanks between them",
            },
            "nextAfter": {
                "type": "integer",
                "description": "with the code sequence_gone: the value of after that goes on without missing an event",
            },
            "epoch": {
                "type": "string",
                "description": "with the code sequence_gone: the epoch of now",
            },
            "errors": {
                "type": "array",
                "maxItems": 20,
                "items": {
                    "type": "object",
                    "required": ["path", "message"],
                    "properties": { "path": { "type": "string" }, "message": { "type": "string" } },
                },
            },
        },
    })
}

fn operation(entry: &Entry, generator: &mut SchemaGenerator) -> Value {
    let meta = entry.meta;
    let [path, query, _, output] = entry.schemas;
    let mut parameters = vec![json!({
        "name": "organizationId", "in": "path", "required": true,
        "schema": { "type": "string", "minLength": 1, "maxLength": 256 },
    })];
    // In the order of the path, which is the order of a command's arguments.
    let order = meta.path_parameters();
    let mut in_path = parameters_of(&path(generator), "path");
    in_path.sort_by_key(|parameter| order.iter().position(|name| parameter["name"] == *name));
    let in_query = meta
        .greedy_parameter()
        .and_then(|name| in_path.iter().find(|parameter| parameter["name"] == name));
    let in_query = in_query.cloned().map(left_to_the_query);
    parameters.extend(in_path);
    parameters.extend(parameters_of(&query(generator), "query"));
    parameters.extend(in_query);
    if meta.kind == Kind::Write {
        parameters.extend(trio_headers(entry, generator));
    }
    parameters.extend(meta.precondition.map(headers::precondition));
    let mut responses = Map::new();
    for status in [Some(meta.status), meta.also].into_iter().flatten() {
        let mut response = success(entry, status, output, generator);
        response["headers"] = headers::of_success(meta, status);
        responses.insert(status.to_string(), response);
    }
    if meta.second_person.is_some() {
        responses.insert("202".to_owned(), asked(meta, generator));
    }
    let error = json!({
        "description": "the error envelope",
        "headers": headers::of_errors(),
        "content": { "application/json": { "schema": { "$ref": "#/components/schemas/Error" } } },
    });
    for status in meta.named_errors(entry.has_body) {
        responses.insert(status.to_string(), error.clone());
    }
    responses.insert("default".into(), error);
    let mut operation = json!({
        "operationId": meta.id,
        "summary": meta.summary,
        "tags": [meta.toolset],
        "parameters": parameters,
        "responses": responses,
        "x-provost": extension(entry),
    });
    if !meta.description.is_empty() {
        operation["description"] = meta.description.into();
    }
    if entry.has_body {
        operation["requestBody"] = request_body(entry, generator);
    }
    operation
}

/// What is answered to a request that asks for a second person.
fn asked(meta: &Meta, generator: &mut SchemaGenerator) -> Value {
    let schema = generator.subschema_for::<ApprovalAsked>();
    json!({
        "description": "a second person was asked, and nothing else was done",
        "headers": headers::of_success(meta, 202),
        "content": { "application/json": { "schema": schema } },
    })
}

fn request_body(entry: &Entry, generator: &mut SchemaGenerator) -> Value {
    let mut content = Map::new();
    let mut is_needed = entry.meta.consent == Consent::Required && entry.meta.performance.is_none();
    if let Some(consumes) = entry.meta.consumes {
        for media_type in consumes.media_types {
            let schema = json!({ "type": "string", "format": "binary", "maxLength": entry.meta.limit.bytes });
            content.insert((*media_type).into(), json!({ "schema": schema }));
        }
    } else {
        let schema = json_body(entry, generator);
        is_needed |= needs_a_member(&schema);
        let example = example_of(entry.meta);
        content.insert(
            "application/json".into(),
            json!({ "schema": schema, "example": example }),
        );
    }
    json!({ "required": is_needed, "content": content })
}

/// Returns the declared example of a body with the mutation metadata that it needs.
fn example_of(meta: &Meta) -> Value {
    // A test reads every example.
    let mut example: Value = serde_json::from_str(meta.example).unwrap_or_default();
    if meta.kind == Kind::Write && meta.consent == Consent::Required {
        example["reason"] = "asked for in ticket 4711".into();
        example["idempotencyKey"] = "ticket-4711".into();
    }
    if meta.confirm {
        example["confirm"] = true.into();
    }
    example
}

/// Says whether a schema refuses `{}`, as which a request without a body is read.
fn needs_a_member(schema: &Value) -> bool {
    let list = |name: &str| schema.get(name).and_then(Value::as_array);
    list("required").is_some_and(|names| !names.is_empty())
        || ["oneOf", "anyOf"]
            .iter()
            .filter_map(|name| list(name))
            .any(|choices| choices.iter().all(needs_a_member))
}

fn success(
    entry: &Entry,
    status: u16,
    output: fn(&mut SchemaGenerator) -> Schema,
    generator: &mut SchemaGenerator,
) -> Value {
    match status {
        204 => return json!({ "description": "done; no body" }),
        304 => return json!({ "description": "unchanged since the ETag of If-None-Match; no body" }),
        _ => {}
    }
    let produces = [entry.meta.produces];
    let consumed = entry.meta.consumes.map(|consumes| consumes.media_types);
    // What takes the media type that it answers with answers each request in its own.
    let media_types = consumed
        .filter(|all| all.contains(&produces[0]))
        .unwrap_or(&produces);
    let mut content = Map::new();
    for media_type in media_types {
        let mut schema = if media_type.starts_with("text/") || media_type.contains("json") {
            output(generator).to_value()
        } else {
            json!({ "type": "string", "format": "binary" })
        };
        without_null(&mut schema);
        opened(&mut schema);
        content.insert((*media_type).into(), json!({ "schema": schema }));
    }
    json!({ "description": "success", "content": content })
}

fn parameters_of(schema: &Schema, place: &str) -> Vec<Value> {
    let required = |name: &str| {
        let names = schema.get("required").and_then(Value::as_array);
        place == "path" || names.is_some_and(|names| names.iter().any(|n| n == name))
    };
    let members = schema.get("properties").and_then(Value::as_object);
    let parameter = |(name, schema): (&String, &Value)| {
        let mut schema = schema.clone();
        let description = schema.as_object_mut().and_then(|s| s.remove("description"));
        let mut parameter =
            json!({ "name": name, "in": place, "required": required(name), "schema": not_null(schema) });
        if let Some(description) = description {
            parameter["description"] = description;
        }
        parameter
    };
    members
        .map(|m| m.iter().map(parameter).collect())
        .unwrap_or_default()
}

/// Returns the parameter under which the query says what no path can carry.
fn left_to_the_query(mut parameter: Value) -> Value {
    parameter["in"] = "query".into();
    parameter["required"] = false.into();
    parameter["description"] = format!(
        "An id that no path carries unchanged, because it has an empty segment, one of a dot or two, or a slash at its end. The \
         path then has {IN_QUERY} in its place."
    )
    .into();
    parameter
}

/// Takes `null` out of the schema of an answer, at every depth: what has no value is absent (D1.2).
pub(super) fn without_null(schema: &mut Value) {
    match schema {
        Value::Array(items) => items.iter_mut().for_each(without_null),
        Value::Object(members) => {
            members.values_mut().for_each(without_null);
            *schema = not_null(schema.take());
        }
        _ => {}
    }
}

/// The mark of a type whose set of words may grow (D1.12): `#[schemars(extend("x-open" = true))]`.
pub const OPEN: &str = "x-open";

/// Makes texts of the marked words of an answer, at every depth: a client that was built from the document must take a
/// word that is added later.
pub(super) fn opened(schema: &mut Value) {
    match schema {
        Value::Array(items) => items.iter_mut().for_each(opened),
        Value::Object(members) => {
            members.values_mut().for_each(opened);
            if members.remove(OPEN) != Some(Value::Bool(true)) {
                return;
            }
            let words = words_of(members);
            members.retain(|name, _| name == "description");
            members.insert("type".into(), "string".into());
            members.insert("x-extensible-enum".into(), words.into());
        }
        _ => {}
    }
}

/// Returns the words that a schema lists, as one `enum` or as alternatives.
fn words_of(schema: &Map<String, Value>) -> Vec<Value> {
    let list = |name: &str| schema.get(name).and_then(Value::as_array).cloned();
    if let Some(words) = list("enum") {
        return words;
    }
    let alternatives = list("oneOf").or_else(|| list("anyOf")).unwrap_or_default();
    let of = |alternative: &Value| match alternative.get("const") {
        Some(word) => vec![word.clone()],
        None => alternative.as_object().map(words_of).unwrap_or_default(),
    };
    alternatives.iter().flat_map(of).collect()
}

/// A query parameter is absent or present; `null` cannot be said.
fn not_null(mut schema: Value) -> Value {
    if let Some(types) = schema.get("type").and_then(Value::as_array) {
        let rest: Vec<Value> = types.iter().filter(|t| *t != "null").cloned().collect();
        if let [only] = rest.as_slice() {
            schema["type"] = only.clone();
        }
    }
    if let Some(words) = schema.get_mut("enum").and_then(Value::as_array_mut) {
        words.retain(|word| !word.is_null());
    }
    if let Some(any) = schema.get("anyOf").and_then(Value::as_array) {
        let rest: Vec<Value> = any
            .iter()
            .filter(|s| s.get("type") != Some(&json!("null")))
            .cloned()
            .collect();
        if let [only] = rest.as_slice() {
            return only.clone();
        }
    }
    schema
}

/// Without a body the mutation metadata can only travel in headers; with one the headers are an alias (D4.1).
fn trio_headers(entry: &Entry, generator: &mut SchemaGenerator) -> Vec<Value> {
    let is_alone = entry.meta.trio_in_headers();
    let required = is_alone && entry.meta.consent == Consent::Required;
    let about = |words: &str, member: &str| {
        if is_alone {
            return words.to_owned();
        }
        format!("{words}; the same as the member {member} of the body, which need not be there then")
    };
    let header = |name: &str, required: bool, schema: Value, description: &str| json!({ "name": name, "in": "header", "required": required, "schema": schema, "description": description });
    let mut key = IdempotencyKey::json_schema(generator).to_value();
    // Quotes around a key are not part of it; without this, two of them would spell an empty key.
    key["pattern"] = r#"^([!#-~][!-~]*|"([!#-~][!-~]*)?|""[!-~]+)$"#.into();
    let reason =
        json!({ "type": "string", "minLength": 1, "maxLength": 500, "pattern": "^[!-~]([ -~]*[!-~])?$" });
    let mut headers = vec![
        header(
            "Idempotency-Key",
            required,
            key,
            &about("the key under which the request acts once", "idempotencyKey"),
        ),
        header(
            "X-Reason",
            required,
            reason,
            &about("why; goes into the audit log", "reason"),
        ),
    ];
    let (values, words) = if entry.meta.confirm {
        (json!({ "const": "true" }), "the act cannot be undone")
    } else {
        (
            json!({ "enum": ["true", "false"] }),
            "consents to what the operation asks it for",
        )
    };
    let is_needed = is_alone && entry.meta.confirm;
    headers.push(header("X-Confirm", is_needed, values, &about(words, "confirm")));
    headers
}

/// What may stand in the JSON body of a request.
fn json_body(entry: &Entry, generator: &mut SchemaGenerator) -> Value {
    if entry.meta.trio_in_headers() {
        return (entry.schemas[2])(generator).to_value();
    }
    all_members(entry, generator)
}

/// The members of a body and, for a write, the mutation metadata, wherever it travels.
fn all_members(entry: &Entry, generator: &mut SchemaGenerator) -> Value {
    let mut schema = (entry.schemas[2])(generator).to_value();
    if entry.meta.kind == Kind::Write {
        schema["properties"]["reason"] = Reason::json_schema(generator).to_value();
        schema["properties"]["idempotencyKey"] = IdempotencyKey::json_schema(generator).to_value();
        let confirm = if entry.meta.confirm {
            json!({ "const": true })
        } else {
            json!({ "type": "boolean" })
        };
        schema["properties"]["confirm"] = confirm;
        let mut required = schema
            .get("required")
            .and_then(Value::as_array)
            .cloned()
            .unwrap_or_default();
        if entry.meta.performance.is_none() && entry.meta.consent == Consent::Required {
            required.extend(["reason".into(), "idempotencyKey".into()]);
        }
        if entry.meta.confirm {
            required.push("confirm".into());
        }
        schema["required"] = required.into();
        schema["type"] = "object".into();
        schema["additionalProperties"] = false.into();
    }
    schema
}

/// Returns the schema of everything that a caller of an MCP tool or a command can say: one flat object.
pub(super) fn flat_input(entry: &Entry) -> Value {
    let mut generator = SchemaSettings::draft2020_12()
        .with(|s| s.inline_subschemas = true)
        .into_generator();
    let mut properties = Map::new();
    let mut required = Vec::new();
    for place in 0..2 {
        let schema = (entry.schemas[place])(&mut generator);
        for parameter in parameters_of(&schema, if place == 0 { "path" } else { "query" }) {
            let name = parameter["name"].as_str().unwrap_or_default().to_owned();
            if parameter["required"] == true {
                required.push(Value::from(name.as_str()));
            }
            properties.insert(name, parameter["schema"].clone());
        }
    }
    let mut body = all_members(entry, &mut generator);
    if let Some(consumes) = entry.meta.consumes {
        body["properties"]["content"] = json!({ "type": "string", "contentEncoding": "base64" });
        body["properties"]["mediaType"] = json!({ "enum": consumes.media_types });
    }
    if let Some(members) = body.get("properties").and_then(Value::as_object) {
        properties.extend(members.clone());
    }
    required.extend(
        body.get("required")
            .and_then(Value::as_array)
            .cloned()
            .unwrap_or_default(),
    );
    if entry.meta.consumes.is_some() {
        required.extend(["content".into(), "mediaType".into()]);
    }
    let mut input = json!({ "type": "object", "properties": properties, "required": required, "additionalProperties": false });
    closed(&mut input);
    input
}

fn extension(entry: &Entry) -> Value {
    let meta = entry.meta;
    let access = match meta.access {
        Access::OfKind { kind, .. } => json!({ "kind": kind, "roles": [] }),
        Access::Authenticated => json!({ "roles": Role::ALL }),
        Access::Scoped { scope, roles } => json!({ "scope": scope, "roles": roles }),
        Access::ScopedEither { scope, other, roles } => {
            json!({ "scope": scope, "orScope": other, "roles": roles })
        }
        Access::ScopedBoth { scope, other, roles } => {
            json!({ "scope": scope, "andScope": other, "roles": roles })
        }
        Access::ScopedOrSelf {
            scope,
            roles,
            self_scope,
            ..
        } => {
            json!({ "scope": scope, "roles": roles, "selfScope": self_scope })
        }
    };
    let metadata = match (meta.kind, meta.consent) {
        (Kind::Read, _) => "none",
        (_, Consent::OptionalHeaders) => "optional-headers",
        _ if meta.trio_in_headers() => "headers",
        _ => "body",
    };
    // Machines call for themselves, by programs of their own: no command does.
    let command: &[&str] = match meta.access {
        Access::OfKind { .. } => &[],
        _ => &meta.command,
    };
    let mut extension = json!({
        "command": command,
        "kind": if meta.kind == Kind::Write { "write" } else { "read" },
        "access": access,
        "confirm": meta.confirm,
        "revealsSecret": meta.reveals_secret,
        "audited": meta.sensitive || meta.kind == Kind::Write,
        "trio": metadata,
    });
    if let Some(needs) = meta.performance {
        extension["previews"] = json!({ "scope": needs.scope, "roles": needs.roles });
    }
    if !meta.columns.is_empty() {
        extension["columns"] = json!(meta.columns);
    }
    if let Some(second_person) = meta.second_person {
        extension["secondPerson"] =
            json!({ "named": second_person.named, "ofDeciders": second_person.of_deciders });
    }
    if meta.weighs {
        extension["weighs"] = true.into();
    }
    if meta.of_item {
        extension["gatewayToken"] = true.into();
    }
    if meta.limit != BodyLimit::ORDINARY {
        extension["maxBodyBytes"] = meta.limit.bytes.into();
    }
    extension
}
