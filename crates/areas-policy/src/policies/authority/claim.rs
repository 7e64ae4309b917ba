//! `POST …/policy-authority/{policyId}/claim`

use super::super::inputs::RevisionNumber;
use super::super::model::PolicyPath;
use super::super::views::OneAuthority;
use super::super::{store, write};
use super::seen;
use crate::policies::fences;
use provost_areas_access::resources::definition::SingleLine;
use provost_areas_access::resources::ownership::Owner;
use provost_kernel::auth::Role::Admin;
use provost_kernel::error::{Code, Error};
use provost_kernel::operation::{Empty, Input, Manager, Meta, Method, Operation};
use provost_kernel::{OperationContext, Result};
use schemars::JsonSchema;
use serde::Deserialize;

pub struct ClaimAuthority;

/// Who claims.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[schemars(inline)]
pub struct ClaimBody {
    /// The revision that the caller saw.
    expected_revision: RevisionNumber,
    /// The manager's label.
    manager_id: SingleLine<1, 256>,
    /// The label of its workspace.
    manager_instance: SingleLine<1, 256>,
}

impl Operation for ClaimAuthority {
    const META: Meta = Meta::write(
        "claimHeadlessPolicyAuthority",
        Method::Post,
        "/policy-authority/{*policyId}/claim",
        "policies",
    )
    .access("policies:write", &[Admin])
    .command("policy-authority", "claim")
    .example(r#"{"expectedRevision": 1, "managerId": "platform", "managerInstance": "production"}"#)
    .of_two(&["policies"])
    .says(
        "Take over a policy that the service manages",
        "From then on the calling principal alone writes it, with these two labels. The policy and its revision stay as \
         they are. 409 when a Terraform manager has it already.",
    );
    type Path = PolicyPath;
    type Query = Empty;
    type Body = ClaimBody;
    type Output = OneAuthority;

    fn call(ctx: &mut OperationContext<'_>, input: &Input<Self>) -> Result<OneAuthority> {
        let (id, body) = (&input.path.policy_id, &input.body);
        ctx.target(&fences::POLICY, id.as_str());
        let mut policy = seen(ctx, id, body.expected_revision.get())?;
        let labels = Manager {
            id: body.manager_id.as_str().to_owned(),
            instance: body.manager_instance.as_str().to_owned(),
        };
        if input.manager.as_ref().is_some_and(|sent| *sent != labels) {
            let message = "the labels of the body are not those of the manager headers";
            return Err(Error::new(Code::Conflict, message));
        }
        if policy.owner != Owner::Service {
            // Only what a deleted principal left behind passes as the service's.
            policy.owner.admit(ctx, Owner::Service)?;
        }
        let before = policy.owner.clone();
        policy.owner = Owner::calling(ctx, Some(&labels));
        policy.updated_at = ctx.now().max(policy.updated_at);
        store::save(ctx, &policy)?;
        write::note_owner(ctx, Some(&before), &policy.owner);
        write::emit(ctx, &fences::CLAIMED, &policy);
        Ok(policy.into())
    }
}
