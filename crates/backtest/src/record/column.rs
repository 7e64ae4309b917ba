//! The columns of a recorded event.

use provost_history::{ColumnSpec, Kind, Schema};
use provost_policy::{Field, FieldType};
use std::collections::HashMap;
use std::sync::{Arc, LazyLock};

/// The version of the list of columns; a change of the list raises it.
pub const SCHEMA_VERSION: u32 = 3;

/// How often events share a value of an attribute.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Values {
    /// Many have the same: the attribute is part of the behaviour by which a segment counts events together.
    Shared,
    /// Nearly every event has one for itself.
    Own,
}
use Values::{Own, Shared};

/// The columns beside the decision's and the attributes'.
pub(super) const OCCASION: &str = "occasion";
pub(super) const SOURCE: &str = "source";
pub(super) const SESSION: &str = "session";
pub(super) const CALL_ID: &str = "call_id";
pub(super) const EXTERNAL_ID: &str = "external_id";
pub(super) const MISSING: &str = "missing";

/// Columns of version 2, behind the attributes of version 1.
pub(super) const PRINCIPAL: &str = "principal";
pub(super) const IMPORTED: &str = "imported";

/// The column of version 3.
pub(super) const BASIS: &str = "basis";

/// The attributes of version 1 in the order of their columns. New ones follow behind the columns of version 3 (RE-2), in
/// a list of their own, with a new version.
const ATTRIBUTES: [(&str, Values); 93] = [
    ("account.access_state", Shared),
    ("account.posture", Shared),
    ("account.profile_id", Shared),
    ("agent.id", Shared),
    ("browser.account_domain", Shared),
    ("browser.account_id", Shared),
    ("browser.account_state", Shared),
    ("browser.account_truth_state", Shared),
    ("browser.extension_id", Shared),
    ("browser.extension_identity_id", Shared),
    ("browser.extension_surface", Shared),
    ("classification.categories", Shared),
    ("classification.data_labels", Shared),
    ("classification.data_source_kinds", Shared),
    ("classification.has_unresolved_sensitive_content", Shared),
    ("classification.proof_strength", Shared),
    ("classification.provider_actions", Shared),
    ("classification.sensitivity_labels", Shared),
    ("classification.state", Shared),
    ("control.path_kind", Shared),
    ("destination.domain", Shared),
    ("destination.ip", Own),
    ("destination.port", Shared),
    ("destination.protocol", Shared),
    ("device.id", Shared),
    ("device.platform", Shared),
    ("event.kind", Shared),
    ("event.labels", Shared),
    ("event.severity", Shared),
    ("event.summary", Own),
    ("event.title", Own),
    ("identity.group_ids", Shared),
    ("identity.service_account_id", Shared),
    ("identity.user_id", Shared),
    ("llm.input_tokens", Own),
    ("llm.model", Shared),
    ("llm.output_tokens", Own),
    ("llm.provider", Shared),
    ("local_model.governance_state", Shared),
    ("local_model.name", Shared),
    ("local_model.proof_level", Shared),
    ("mcp.gateway_endpoint_id", Shared),
    ("mcp.package_id", Shared),
    ("mcp.package_version", Shared),
    ("mcp.remote_url", Shared),
    ("mcp.server_id", Shared),
    ("mcp.tool_id", Shared),
    ("process.entrypoint_id", Shared),
    ("process.id", Own),
    ("process.local_port", Own),
    ("process.name", Shared),
    ("process.path", Shared),
    ("product.id", Shared),
    ("provider.id", Shared),
    ("request.http.content_type", Shared),
    ("request.http.method", Shared),
    ("request.http.path", Own),
    ("request.mysql.command", Shared),
    ("request.mysql.database", Shared),
    ("request.mysql.fingerprint", Own),
    ("request.mysql.tables", Shared),
    ("request.mysql.user", Shared),
    ("request.postgres.command", Shared),
    ("request.postgres.database", Shared),
    ("request.postgres.fingerprint", Own),
    ("request.postgres.schemas", Shared),
    ("request.postgres.tables", Shared),
    ("request.postgres.user", Shared),
    ("request.prompt", Own),
    ("request.redis.command", Shared),
    ("request.redis.database", Shared),
    ("request.redis.user", Shared),
    ("resource.id", Shared),
    ("resource.protocol", Shared),
    ("response.content", Own),
    ("route.posture", Shared),
    ("skill.id", Shared),
    ("source.capability", Shared),
    ("source.family", Shared),
    ("source.health_state", Shared),
    ("tool.id", Shared),
    ("tool.input", Own),
    ("tool.input.approval", Own),
    ("tool.input.command", Own),
    ("tool.input.env", Own),
    ("tool.input.file_path", Own),
    ("tool.input.script", Own),
    ("tool.input.surface_key", Own),
    ("tool.input.surface_kind", Own),
    ("tool.input.url", Own),
    ("tool.input.workdir", Own),
    ("tool.result", Own),
    ("tool.server_id", Shared),
];

struct Columns {
    schema: Arc<Schema>,
    positions: HashMap<Field, usize>,
}

static COLUMNS: LazyLock<Columns> = LazyLock::new(|| {
    let mut specs = vec![
        ColumnSpec::of(OCCASION, Kind::Text),
        ColumnSpec::of(SOURCE, Kind::Text),
        ColumnSpec::detail(SESSION, Kind::Text),
        ColumnSpec::detail(CALL_ID, Kind::Text),
        ColumnSpec::detail(EXTERNAL_ID, Kind::Text),
        ColumnSpec::of(MISSING, Kind::TextSet),
    ];
    for (name, values) in ATTRIBUTES {
        specs.push(ColumnSpec {
            name: name.to_owned(),
            kind: Field::named(name).map_or(Kind::Text, kind),
            behaviour: values == Shared,
        });
    }
    specs.push(ColumnSpec::detail(PRINCIPAL, Kind::Text));
    specs.push(ColumnSpec::detail(IMPORTED, Kind::Boolean));
    specs.push(ColumnSpec::detail(BASIS, Kind::Text));
    #[expect(
        clippy::expect_used,
        reason = "the names are constants of this file, different and printable, as a test shows"
    )]
    let schema = Schema::new(SCHEMA_VERSION, specs).expect("the columns are a schema");
    let positions = Field::all().filter_map(|field| Some((field, schema.position(field.name())?)));
    Columns {
        positions: positions.collect(),
        schema: Arc::new(schema),
    }
});

/// Returns the columns of a recorded event.
pub fn schema() -> Arc<Schema> {
    Arc::clone(&COLUMNS.schema)
}

/// Returns the position of an attribute's column in the schema.
pub fn position(field: Field) -> usize {
    // Every attribute has a column, as a test shows.
    COLUMNS.positions.get(&field).copied().unwrap_or(usize::MAX)
}

/// Returns the type of an attribute's column.
fn kind(of: Field) -> Kind {
    match of.kind() {
        FieldType::Text | FieldType::Content | FieldType::Object => Kind::Text,
        FieldType::Set => Kind::TextSet,
        FieldType::Number => Kind::Number,
        FieldType::Boolean => Kind::Boolean,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Proves RE-2.
    #[test]
    fn every_attribute_of_the_catalogue_has_one_column_and_every_column_an_attribute() {
        let schema = schema();
        assert_eq!(schema.columns().len(), 4 + 6 + ATTRIBUTES.len() + 3);
        let mut catalogue: Vec<&str> = Field::all().map(Field::name).collect();
        let mut listed: Vec<&str> = ATTRIBUTES.iter().map(|(name, _)| *name).collect();
        catalogue.sort_unstable();
        listed.sort_unstable();
        assert_eq!(listed, catalogue);
        for field in Field::all() {
            let column = &schema.columns()[position(field)];
            assert_eq!((column.name.as_str(), column.kind), (field.name(), kind(field)));
        }
    }

    // INVARIANT RE-2: these are the lists of versions 1, 2 and 3, by the digests of their names and types.
    /// Proves RE-2.
    #[test]
    fn the_columns_of_earlier_versions_stay_where_they_are() {
        let digest = |count: usize| {
            let first: Vec<String> = schema().columns()[..count]
                .iter()
                .map(|column| format!("{} {:?}", column.name, column.kind))
                .collect();
            provost_policy::sha256_hex(first.join("\n").as_bytes())
        };
        assert_eq!(
            digest(103),
            "aa9bc0f2172031654911590fd4ed051054781eed3151fdcf0496fcf8c26169b9"
        );
        assert_eq!(
            digest(105),
            "3e9ef8bf89f16706c82680dee3819b84bd95973a49b4ce89217dd7cf918d82b8"
        );
        assert_eq!(
            digest(106),
            "545efc1d2c7a9be0508b508ac5abcadfbc4b2f3337219e23db031d2997790fd3"
        );
    }
}
