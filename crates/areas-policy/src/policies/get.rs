//! `GET …/content-policies/{policyId}` and the other three collections'

use super::admission;
use super::collections::Collection;
use super::model::PolicyPath;
use super::unresolved::Lately;
use super::views::{OnePolicy, policy};
use provost_kernel::auth::Role::{Admin, Auditor, Operator, Viewer};
use provost_kernel::operation::{Empty, Input, Meta, Operation};
use provost_kernel::{OperationContext, Result};
use std::marker::PhantomData;

pub struct GetPolicy<C>(PhantomData<C>);

impl<C: Collection> Operation for GetPolicy<C> {
    const META: Meta = Meta::read(C::IDS[1], C::PATHS[1], "policies")
        .access("policies:read", &[Admin, Operator, Auditor, Viewer])
        .command(C::GROUP, "get")
        .says(
            C::SAYS[1],
            "The definition is the one that was sent, value for value.",
        );
    type Path = PolicyPath;
    type Query = Empty;
    type Body = Empty;
    type Output = OnePolicy;

    fn call(ctx: &mut OperationContext<'_>, input: &Input<Self>) -> Result<OnePolicy> {
        let found = admission::find(ctx, C::FAMILY, &input.path.policy_id)?;
        let lately = Lately::read(ctx)?;
        Ok(policy(ctx, found)?.with_unresolved(&lately))
    }
}
