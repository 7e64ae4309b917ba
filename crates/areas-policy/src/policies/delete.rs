//! `DELETE …/content-policies/{policyId}` and the other three collections'

use super::collections::Collection;
use super::inputs::RevisionNumber;
use super::model::{NAMED, PolicyPath, name};
use super::{admission, gains, write};
use crate::policies::fences;
use provost_kernel::auth::Role::Admin;
use provost_kernel::operation::{Empty, Input, Meta, Method, NoContent, Operation};
use provost_kernel::{OperationContext, Result};
use schemars::JsonSchema;
use serde::Deserialize;
use std::marker::PhantomData;

pub struct DeletePolicy<C>(PhantomData<C>);

/// What the caller knows of the policy.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct DeleteQuery {
    /// The revision that the caller saw.
    expected_revision: RevisionNumber,
}

impl<C: Collection> Operation for DeletePolicy<C> {
    const META: Meta = Meta::write(C::IDS[3], Method::Delete, C::PATHS[1], "policies")
        .access("policies:write", &[Admin])
        .command(C::GROUP, "delete")
        .status(204)
        .answers(&[NAMED])
        .of_two(&["policies"])
        .says(
            C::SAYS[3],
            "It decides nothing from now on. Its revisions are kept, and its id stays taken: its owner can create it again, \
             as the next revision.",
        );
    type Path = PolicyPath;
    type Query = DeleteQuery;
    type Body = Empty;
    type Output = NoContent;

    fn gains(ctx: &mut OperationContext<'_>, input: &Input<Self>) -> Result<Vec<String>> {
        gains::of(ctx, C::FAMILY, None, Some(&input.path.policy_id))
    }

    fn call(ctx: &mut OperationContext<'_>, input: &Input<Self>) -> Result<NoContent> {
        let id = &input.path.policy_id;
        ctx.target(&fences::POLICY, id.as_str());
        let (manager, expected) = (input.manager.as_ref(), input.query.expected_revision.get());
        let (policy, owner) = admission::existing(ctx, C::FAMILY, id, manager, expected)?;
        write::delete(ctx, &policy, owner)?;
        name(ctx, &policy.id);
        Ok(NoContent {})
    }
}
