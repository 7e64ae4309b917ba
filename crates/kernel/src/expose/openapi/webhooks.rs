//! The events as the document tells of them: one item of `webhooks` for each kind.

use crate::event::EventKind;
use crate::operation::Registry;
use schemars::SchemaGenerator;
use serde_json::{Map, Value, json};

/// What is true of every kind.
const WHERE: &str = "An element of events in the answer of listHeadlessEvents. Nothing is sent to other systems yet: whoever \
                     waits for it reads it there.";

pub(super) fn of_every_kind(registry: &Registry, generator: &mut SchemaGenerator) -> Map<String, Value> {
    let kinds = registry.fences().events();
    kinds
        .map(|kind| (kind.word().to_owned(), json!({ "post": item(kind, generator) })))
        .collect()
}

fn item(kind: &EventKind, generator: &mut SchemaGenerator) -> Value {
    let mut data = kind.schema(generator);
    super::opened(&mut data);
    let schema = json!({
        "type": "object",
        "required": ["id", "type", "timestamp", "data"],
        "properties": {
            "id": { "type": "string", "description": "the same at every delivery" },
            "type": { "const": kind.word() },
            "timestamp": { "type": "string", "format": "date-time" },
            "data": data,
        },
    });
    json!({
        "summary": kind.says(),
        "description": WHERE,
        "requestBody": {
            "required": true,
            "content": { "application/json": { "schema": schema, "example": kind.example() } },
        },
        "responses": { "2XX": { "description": "taken" } },
        "x-provost": { "readers": kind.readers().word() },
    })
}
