//! The descriptions of MCP tools, derived from the registry. The endpoint that serves them comes later.

use super::openapi::{flat_input, without_null};
use crate::operation::{Kind, Method, Registry};
use schemars::generate::SchemaSettings;
use serde_json::{Value, json};

/// Returns the description of every operation as an MCP tool, in declared order.
pub fn tools(registry: &Registry) -> Vec<Value> {
    let tool = |entry: &crate::operation::Entry| {
        let meta = entry.meta;
        let is_read = meta.kind == Kind::Read;
        let description = [meta.summary, meta.description].join("\n\n");
        let mut tool = json!({
            "name": meta.id,
            "title": meta.summary,
            "description": description.trim_end(),
            "inputSchema": flat_input(entry),
            "annotations": {
                "readOnlyHint": is_read && !meta.ingests,
                "destructiveHint": !is_read && (meta.confirm || meta.method == Method::Delete),
                // Every write carries a key under which it acts once; an event that is sent twice happened twice.
                "idempotentHint": !meta.ingests,
                "openWorldHint": false,
            },
            "_meta": { "toolset": meta.toolset },
        });
        if meta.status != 204 && meta.produces == "application/json" {
            let mut generator = SchemaSettings::draft2020_12()
                .with(|s| s.inline_subschemas = true)
                .into_generator();
            let mut output = (entry.schemas[3])(&mut generator).to_value();
            without_null(&mut output);
            tool["outputSchema"] = output;
        }
        tool
    };
    registry.entries().iter().map(tool).collect()
}
