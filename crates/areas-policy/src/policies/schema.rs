//! `GET …/policy-contracts/schema`

use super::model::FamilyWord;
use provost_kernel::auth::Role::{Admin, Auditor, Operator, Viewer};
use provost_kernel::operation::{Empty, Input, Meta, Operation};
use provost_kernel::{OperationContext, Result};
use provost_policy::language;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

pub struct GetSchema;

/// Which family.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(inline)]
pub struct SchemaQuery {
    /// The family whose definitions are described.
    family: FamilyWord,
}

/// A JSON Schema.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(transparent)]
#[schemars(inline)]
pub struct DefinitionSchema(Map<String, Value>);

impl Operation for GetSchema {
    const META: Meta = Meta::read(
        "getHeadlessPolicySchema",
        "/policy-contracts/schema",
        "policies",
    )
    .access("policies:read", &[Admin, Operator, Auditor, Viewer])
    .command("policies", "schema")
    .says(
        "Read the JSON Schema of a family's definitions",
        "JSON Schema 2020-12, made of the tables that the compiler reads: for an editor, or a check before a definition is \
         sent. What it refuses the server refuses; rules about several members together are the server's alone.",
    );
    type Path = Empty;
    type Query = SchemaQuery;
    type Body = Empty;
    type Output = DefinitionSchema;

    fn call(_: &mut OperationContext<'_>, input: &Input<Self>) -> Result<DefinitionSchema> {
        let schema = match language::schema(input.query.family.into()) {
            Value::Object(members) => members,
            _ => Map::new(),
        };
        Ok(DefinitionSchema(schema))
    }
}
