//! `POST …/policy-authority/{policyId}/release`

use super::super::inputs::RevisionNumber;
use super::super::model::{NAMED, PolicyPath, name};
use super::super::{store, write};
use super::seen;
use crate::policies::fences;
use provost_areas_access::resources::ownership::Owner;
use provost_kernel::auth::Role::Admin;
use provost_kernel::error::{Code, Error};
use provost_kernel::operation::{Empty, Input, Meta, Method, NoContent, Operation};
use provost_kernel::{OperationContext, Result};
use schemars::JsonSchema;
use serde::Deserialize;

pub struct ReleaseAuthority;

/// What the caller knows of the policy.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[schemars(inline)]
pub struct ReleaseBody {
    /// The revision that the caller saw.
    expected_revision: RevisionNumber,
}

impl Operation for ReleaseAuthority {
    const META: Meta = Meta::write(
        "releaseHeadlessPolicyAuthority",
        Method::Post,
        "/policy-authority/{*policyId}/release",
        "policies",
    )
    .access("policies:write", &[Admin])
    .command("policy-authority", "release")
    .example(r#"{"expectedRevision": 2}"#)
    .status(204)
    .answers(&[NAMED])
    .of_two(&["policies"])
    .says(
        "Give a policy back to the service",
        "Its owner alone may, with the manager headers under which it was claimed or made. The policy and its revision stay \
         as they are.",
    );
    type Path = PolicyPath;
    type Query = Empty;
    type Body = ReleaseBody;
    type Output = NoContent;

    fn call(ctx: &mut OperationContext<'_>, input: &Input<Self>) -> Result<NoContent> {
        let id = &input.path.policy_id;
        ctx.target(&fences::POLICY, id.as_str());
        let mut policy = seen(ctx, id, input.body.expected_revision.get())?;
        if policy.owner == Owner::Service {
            let message = "this policy is managed by the service already";
            return Err(Error::new(Code::Conflict, message));
        }
        let caller = Owner::calling(ctx, input.manager.as_ref());
        policy.owner.admit(ctx, caller)?;
        let before = std::mem::replace(&mut policy.owner, Owner::Service);
        policy.updated_at = ctx.now().max(policy.updated_at);
        store::save(ctx, &policy)?;
        write::note_owner(ctx, Some(&before), &policy.owner);
        write::emit(ctx, &fences::RELEASED, &policy);
        name(ctx, &policy.id);
        Ok(NoContent {})
    }
}
