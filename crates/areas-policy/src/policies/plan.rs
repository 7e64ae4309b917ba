//! `POST …/policy-plans/validate`

use super::admission::{self, Proposal};
use super::inputs::{AuthoredDefinition, DEFINITION_LIMIT, ExpectedRevision};
use super::model::{Document, FamilyWord};
use super::views::{Warning, all_warnings};
use provost_kernel::auth::Role::Admin;
use provost_kernel::operation::{Empty, Input, Meta, Operation};
use provost_kernel::{OperationContext, Result, Timestamp};
use provost_policy::contract::POLICY_SCHEMA_VERSION;
use provost_policy::rego::compiler_fingerprint;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// How long clients keep a plan (client contract §3.2). Units: seconds.
const KEPT_SECS: i64 = 10 * 60;

pub struct ValidatePlan;

/// What is to be written.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[schemars(inline)]
pub struct PlanBody {
    /// The family that the definition is of.
    family: FamilyWord,
    /// The definition.
    definition: AuthoredDefinition,
    /// Where the author keeps it.
    source_ref: Option<Document>,
    /// The revision that the author saw; 0 when there is no such policy.
    expected_revision: ExpectedRevision,
}

/// A plan that can be applied.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(inline)]
pub struct Plan {
    /// Always true: what is not valid is refused.
    valid: bool,
    /// To be sent with the write.
    validation_token: String,
    /// The SHA-256 of the definition's canonical JSON.
    definition_sha256: String,
    /// The digest of what the definition's names were resolved to.
    reference_binding_fingerprint: String,
    schema_version: &'static str,
    compiler_fingerprint: String,
    /// When a client that keeps plans should ask again; the token ends by what it is bound to, and by no time.
    expires_at: Timestamp,
    /// What the author should change although the definition is taken.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schemars(default)]
    warnings: Vec<Warning>,
}

impl Operation for ValidatePlan {
    const META: Meta = Meta::query("validateHeadlessPolicyPlan", "/policy-plans/validate", "policies")
        .access("policies:write", &[Admin])
        .command("policies", "plan").columns(&["path", "line", "column", "message", "code"])
        .example(
            r#"{"family": "content", "expectedRevision": 0, "definition": {"id": "no-shell",
               "name": "Shells are blocked", "action": "block", "evaluateOn": ["pre_tool"], "acknowledgeBroadScope": true,
               "conditions": {"field": "tool.id", "op": "eq", "value": "Bash"}}}"#,
        )
        .reads_up_to(DEFINITION_LIMIT.0, DEFINITION_LIMIT.1)
            .says(
            "Check what the write of a policy would do, and bind it",
            "Answers a token that is good for this caller with the same manager headers, and for this definition, source \
             reference and revision as long as every name in it means the same. Nothing is written.",
        );
    type Path = Empty;
    type Query = Empty;
    type Body = PlanBody;
    type Output = Plan;

    fn validate(input: &Input<Self>) -> Result<()> {
        let body = &input.body;
        let definition = body.definition.definition(body.family.into())?;
        // One that exists with such an id can still be changed.
        if body.expected_revision.get() > 0 {
            return Ok(());
        }
        super::inputs::must_fit_a_path(definition.id())
    }

    fn call(ctx: &mut OperationContext<'_>, input: &Input<Self>) -> Result<Plan> {
        let body = &input.body;
        let definition = body.definition.definition(body.family.into())?;
        let proposal = Proposal {
            definition,
            source_ref: body.source_ref.as_ref(),
            expected_revision: body.expected_revision.get(),
            manager: input.manager.as_ref(),
        };
        let admitted = admission::admit(ctx, &proposal)?;
        let validation_token = admission::token(ctx, &proposal, &admitted);
        let warnings = all_warnings(ctx, definition, &admitted.binding.definition);
        Ok(Plan {
            valid: true,
            validation_token,
            definition_sha256: definition.sha256().to_owned(),
            reference_binding_fingerprint: admitted.binding.fingerprint,
            schema_version: POLICY_SCHEMA_VERSION,
            compiler_fingerprint: compiler_fingerprint(),
            expires_at: ctx.now().plus_secs(KEPT_SECS),
            warnings,
        })
    }
}
