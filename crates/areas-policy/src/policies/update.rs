//! `PUT …/content-policies/{policyId}` and the other three collections'

use super::admission::{self, Proposal};
use super::collections::Collection;
use super::inputs::{AuthoredDefinition, DEFINITION_LIMIT, PlanToken, RevisionNumber};
use super::model::{Document, PolicyPath};
use super::views::{OnePolicy, all_warnings, policy};
use super::{gains, references, write};
use crate::policies::fences;
use provost_kernel::auth::Role::Admin;
use provost_kernel::operation::{Empty, Input, Meta, Method, Operation};
use provost_kernel::{OperationContext, Result};
use schemars::JsonSchema;
use serde::Deserialize;
use std::marker::PhantomData;

pub struct UpdatePolicy<C>(PhantomData<C>);

/// A policy's next revision.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[schemars(inline)]
pub struct UpdateBody {
    /// The definition, with the id of the path; it comes back as it is.
    definition: AuthoredDefinition,
    /// The revision that the author saw.
    expected_revision: RevisionNumber,
    /// Where the author keeps the definition; it comes back as it is.
    source_ref: Option<Document>,
    /// The token of a plan; needed by callers that send manager headers, checked whenever it is there.
    validation_token: Option<PlanToken>,
}

impl<C: Collection> Operation for UpdatePolicy<C> {
    const META: Meta = Meta::write(C::IDS[2], Method::Put, C::PATHS[1], "policies")
        .access("policies:write", &[Admin])
        .command(C::GROUP, "update")
        .example(C::EXAMPLES[1])
        .reads_up_to(DEFINITION_LIMIT.0, DEFINITION_LIMIT.1)
        .of_two(&["policies"])
        .says(
            C::SAYS[2],
            "The whole definition is replaced and becomes the next revision; earlier ones are kept. 409 when the policy is \
             at another revision than expected or is managed by somebody else.",
        );
    type Path = PolicyPath;
    type Query = Empty;
    type Body = UpdateBody;
    type Output = OnePolicy;

    fn validate(input: &Input<Self>) -> Result<()> {
        input.body.definition.definition(C::FAMILY).map(drop)
    }

    fn gains(ctx: &mut OperationContext<'_>, input: &Input<Self>) -> Result<Vec<String>> {
        let definition = input.body.definition.definition(C::FAMILY)?;
        gains::of(
            ctx,
            C::FAMILY,
            Some(definition.authored()),
            Some(&input.path.policy_id),
        )
    }

    fn call(ctx: &mut OperationContext<'_>, input: &Input<Self>) -> Result<OnePolicy> {
        let (id, body) = (&input.path.policy_id, &input.body);
        ctx.target(&fences::POLICY, id.as_str());
        let (manager, expected_revision) = (input.manager.as_ref(), body.expected_revision.get());
        admission::existing(ctx, C::FAMILY, id, manager, expected_revision)?;
        let definition = body.definition.definition(C::FAMILY)?;
        if definition.id() != id.as_str() {
            let message = "must be the id of the path: a policy's id never changes".to_owned();
            return Err(references::refusal([("/definition/id".to_owned(), message)]));
        }
        let proposal = Proposal {
            definition,
            source_ref: body.source_ref.as_ref(),
            expected_revision,
            manager,
        };
        let admitted = admission::admit(ctx, &proposal)?;
        admission::must_be_planned(ctx, &proposal, &admitted, body.validation_token.as_ref())?;
        let warnings = all_warnings(ctx, definition, &admitted.binding.definition);
        let revised = write::revise(
            ctx,
            admitted.before.as_ref(),
            admitted.owner,
            definition,
            &admitted.binding,
            proposal.source_ref,
        )?;
        Ok(policy(ctx, revised)?.with_warnings(warnings))
    }
}
