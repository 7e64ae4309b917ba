//! `GET …/policy-authority/{policyId}`

use super::super::model::PolicyPath;
use super::super::views::OneAuthority;
use super::find;
use provost_kernel::auth::Role::{Admin, Auditor, Operator, Viewer};
use provost_kernel::operation::{Empty, Input, Meta, Operation};
use provost_kernel::{OperationContext, Result};

pub struct GetAuthority;

impl Operation for GetAuthority {
    const META: Meta = Meta::read(
        "getHeadlessPolicyAuthority",
        "/policy-authority/{*policyId}",
        "policies",
    )
    .access("policies:read", &[Admin, Operator, Auditor, Viewer])
    .command("policy-authority", "get")
    .says("Read who manages a policy", "The policy may be of any family.");
    type Path = PolicyPath;
    type Query = Empty;
    type Body = Empty;
    type Output = OneAuthority;

    fn call(ctx: &mut OperationContext<'_>, input: &Input<Self>) -> Result<OneAuthority> {
        find(ctx, &input.path.policy_id).map(OneAuthority::from)
    }
}
