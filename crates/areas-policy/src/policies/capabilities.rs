//! `GET …/policy-contracts/capabilities`

use provost_kernel::auth::Role::{Admin, Auditor, Operator, Viewer};
use provost_kernel::operation::{Empty, Input, Meta, Operation};
use provost_kernel::{OperationContext, Result};
use provost_policy::{contract, rego};
use schemars::JsonSchema;
use serde::Serialize;

pub struct GetCapabilities;

/// The versions of what is spoken here.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(inline)]
pub struct Capabilities {
    /// The version of the policy families.
    policy_schema_version: &'static str,
    /// The version of the Rego contract.
    rego_language_version: &'static str,
    /// What tells this Rego compiler from every other.
    rego_compiler_fingerprint: String,
    /// The built-ins that a Rego module can call.
    rego_built_ins: Vec<BuiltIn>,
    /// The version of plan and apply for policies.
    terraform_policy_protocol: &'static str,
    /// The version of plan and apply for LLM gateways.
    terraform_gateway_protocol: &'static str,
    /// To what an owned policy is bound.
    terraform_ownership_binding: &'static str,
}

/// A built-in that a Rego module can call. Each call reads its operands as wholes.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(inline)]
pub struct BuiltIn {
    name: &'static str,
    /// How large a result can be; what would be larger stops the module, which then counts as matched.
    result_limit: &'static str,
    /// What a call walks, in words.
    cost: &'static str,
    /// What it has no value for, so that the module fails unless a `not` negates it or it stands below a default.
    refuses: &'static str,
}

impl From<&rego::BuiltIn> for BuiltIn {
    fn from(row: &rego::BuiltIn) -> Self {
        Self {
            name: match row.name {
                "__builtin_sets.intersection" => "&",
                "__builtin_sets.union" => "|",
                name => name,
            },
            result_limit: row.size.said(),
            cost: row.cost.said(),
            refuses: row.refuses,
        }
    }
}

impl Operation for GetCapabilities {
    const META: Meta = Meta::read(
        "getHeadlessPolicyCapabilities",
        "/policy-contracts/capabilities",
        "policies",
    )
    .access("policies:read", &[Admin, Operator, Auditor, Viewer])
    .command("policies", "capabilities")
    .columns(&["name", "cost", "resultLimit as limit", "refuses"])
    .says(
        "Read which policy contracts the server speaks",
        "A client that was written for other values must not write policies here.",
    );
    type Path = Empty;
    type Query = Empty;
    type Body = Empty;
    type Output = Capabilities;

    fn call(_: &mut OperationContext<'_>, _: &Input<Self>) -> Result<Capabilities> {
        Ok(Capabilities {
            policy_schema_version: contract::POLICY_SCHEMA_VERSION,
            rego_language_version: contract::REGO_LANGUAGE_VERSION,
            rego_compiler_fingerprint: rego::compiler_fingerprint(),
            rego_built_ins: rego::BUILT_INS.iter().map(BuiltIn::from).collect(),
            terraform_policy_protocol: contract::TERRAFORM_POLICY_PROTOCOL,
            terraform_gateway_protocol: contract::TERRAFORM_GATEWAY_PROTOCOL,
            terraform_ownership_binding: contract::TERRAFORM_OWNERSHIP_BINDING,
        })
    }
}
