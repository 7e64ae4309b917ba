//! The words of the client contract that name versions, packages and entry points.
//!
//! A client checks them exactly and refuses to work with a server that says anything else, so they stand in one
//! place and never change within a version.
//!
//! Absent on purpose: the words of a single family; they stand with the family.

use crate::Family;

/// The version of the policy families that this engine reads. Source: client contract §3.1.
pub const POLICY_SCHEMA_VERSION: &str = "forge.policy.families.v1";
/// The version of the Rego contract. Source: client contract §3.1, §3.10.
pub const REGO_LANGUAGE_VERSION: &str = "forge.rego.v1";
/// The version of the two-step write protocol. Source: client contract §3.1.
pub const TERRAFORM_POLICY_PROTOCOL: &str = "forge.terraform.policy.v1";
/// The version of the plan protocol for LLM gateways. Source: client contract §3.1.
pub const TERRAFORM_GATEWAY_PROTOCOL: &str = "forge.terraform.llm-gateway-plan.v1";

/// To what a policy is bound that a Terraform manager wrote: the principal, not the labels. Source: client contract §3.1.
pub const TERRAFORM_OWNERSHIP_BINDING: &str = "service_account_principal";
/// How a policy is managed that no Terraform manager owns. Source: client contract §3.3, §3.12.
pub const MANAGED_BY_SERVICE: &str = "forge";
/// How a policy is managed that a Terraform manager owns. Source: client contract §3.3, §3.12.
pub const MANAGED_BY_TERRAFORM: &str = "terraform";

/// Returns the Rego package of a family's modules, or `None` for a family without Rego.
///
/// Source: client contract §3.10.
pub const fn rego_package(family: Family) -> Option<&'static str> {
    match family {
        Family::Content => Some("forge.content"),
        Family::Access => Some("forge.access"),
        Family::Resource => Some("forge.resource"),
        Family::SkillAcl => None,
    }
}

/// Returns the rule that decides in a family's modules, or `None` for a family without Rego.
///
/// Source: client contract §3.4, §3.10.
pub const fn rego_entrypoint(family: Family) -> Option<&'static str> {
    match family {
        Family::Content => Some("data.forge.content.match"),
        Family::Access => Some("data.forge.access.match"),
        Family::Resource => Some("data.forge.resource.match"),
        Family::SkillAcl => None,
    }
}
