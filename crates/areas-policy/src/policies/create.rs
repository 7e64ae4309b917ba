//! `POST …/content-policies`, `…/access-policies`, `…/resource-policies`, `…/skill-acls`

use super::admission::{self, Proposal};
use super::collections::Collection;
use super::inputs::{AuthoredDefinition, DEFINITION_LIMIT, ExpectedRevision, PlanToken};
use super::model::{Document, PolicyId};
use super::views::{OnePolicy, all_warnings, policy};
use super::{gains, write};
use crate::policies::fences;
use provost_areas_access::resources::ownership::answer_again;
use provost_kernel::auth::Role::Admin;
use provost_kernel::operation::{Empty, Input, Meta, Method, Operation};
use provost_kernel::{OperationContext, Result};
use schemars::JsonSchema;
use serde::Deserialize;
use std::marker::PhantomData;

pub struct CreatePolicy<C>(PhantomData<C>);

/// A policy that is to be made.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[schemars(inline)]
pub struct CreateBody {
    /// The definition; it comes back as it is.
    definition: AuthoredDefinition,
    /// 0: a new policy is at no revision.
    expected_revision: Option<ExpectedRevision>,
    /// Where the author keeps the definition; it comes back as it is.
    source_ref: Option<Document>,
    /// The token of a plan; needed by callers that send manager headers, checked whenever it is there.
    validation_token: Option<PlanToken>,
}

impl<C: Collection> Operation for CreatePolicy<C> {
    const META: Meta = Meta::write(C::IDS[0], Method::Post, C::PATHS[0], "policies")
        .access("policies:write", &[Admin])
        .command(C::GROUP, "create")
        .example(C::EXAMPLES[0])
        .reads_up_to(DEFINITION_LIMIT.0, DEFINITION_LIMIT.1)
        .status(201)
        .also(200)
        .answers(&["Location", "Idempotent-Replayed"])
        .of_two(&["policies"])
        .says(
            C::SAYS[0],
            "An enabled policy decides from now on. Its id is its author's and stays taken when the policy is deleted: its \
             owner alone can bring it back, as the next revision. Sent with both manager headers, it is that \
             manager's and the caller's, and the same create within a day answers 200.",
        );
    type Path = Empty;
    type Query = Empty;
    type Body = CreateBody;
    type Output = OnePolicy;

    fn validate(input: &Input<Self>) -> Result<()> {
        let definition = input.body.definition.definition(C::FAMILY)?;
        super::inputs::must_fit_a_path(definition.id())
    }

    fn gains(ctx: &mut OperationContext<'_>, input: &Input<Self>) -> Result<Vec<String>> {
        let definition = input.body.definition.definition(C::FAMILY)?;
        gains::of(ctx, C::FAMILY, Some(definition.authored()), None)
    }

    fn call(ctx: &mut OperationContext<'_>, input: &Input<Self>) -> Result<OnePolicy> {
        let body = &input.body;
        let definition = body.definition.definition(C::FAMILY)?;
        ctx.target(&fences::POLICY, definition.id());
        let proposal = Proposal {
            definition,
            source_ref: body.source_ref.as_ref(),
            expected_revision: body.expected_revision.map_or(0, ExpectedRevision::get),
            manager: input.manager.as_ref(),
        };
        if proposal.expected_revision != 0 {
            // A new policy has no revision that anybody could have seen.
            let seen = super::store::find(ctx, &PolicyId::of(definition))?;
            let seen = seen
                .filter(super::model::Policy::is_there)
                .map_or(0, |seen| seen.revision);
            return Err(super::inputs::stale(seen, proposal.expected_revision));
        }
        let admitted = admission::admit(ctx, &proposal)?;
        admission::must_be_planned(ctx, &proposal, &admitted, body.validation_token.as_ref())?;
        let warnings = all_warnings(ctx, definition, &admitted.binding.definition);
        if let Some(made) = admitted.made_before {
            answer_again(ctx);
            return Ok(policy(ctx, made)?.with_warnings(warnings));
        }
        let made = write::revise(
            ctx,
            admitted.before.as_ref(),
            admitted.owner,
            definition,
            &admitted.binding,
            proposal.source_ref,
        )?;
        let base = format!("/api/headless/v1/organizations/{}", ctx.org());
        ctx.header("location", format!("{base}{}/{}", C::PATHS[0], made.id));
        Ok(policy(ctx, made)?.with_warnings(warnings))
    }
}
