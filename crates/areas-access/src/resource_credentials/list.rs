//! `GET …/resources/{resourceId}/credentials` (specification §4.8)

use super::model::{CredentialView, view};
use super::{port, store};
use crate::resources;
use crate::resources::model::ResourcePath;
use provost_kernel::auth::Role::{Admin, Auditor, Operator};
use provost_kernel::operation::{Empty, Input, Meta, Operation};
use provost_kernel::{OperationContext, Result};
use schemars::JsonSchema;
use serde::Serialize;

pub struct ListCredentials;

/// The credentials of a resource.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(inline)]
pub struct Credentials {
    /// The default first, then the oldest; complete.
    items: Vec<CredentialView>,
}

impl Operation for ListCredentials {
    const META: Meta = Meta::read(
        "listHeadlessResourceCredentials",
        "/resources/{resourceId}/credentials",
        "resource_credentials",
    )
    .access("resource_credentials:read", &[Admin, Auditor, Operator])
    .command("resource-credentials", "list").columns(&["name", "kind", "username", "lastUsedAt as last used", "id", "rotatedAt as rotated", "default", "assignedTo.users as users", "assignedTo.groups as groups", "assignedTo.serviceAccounts as service accounts", "resourceId as resource", "managementMode as managed", "managerId as manager", "managerInstance as instance", "createdAt as created"])
    .sensitive()
    .says(
        "List the credentials of a resource",
        "Secret values are never returned. An operator sees those that are assigned to it. The list is complete: \
         a resource has 500 credentials at most.",
    );
    type Path = ResourcePath;
    type Query = Empty;
    type Body = Empty;
    type Output = Credentials;

    fn call(ctx: &mut OperationContext<'_>, input: &Input<Self>) -> Result<Credentials> {
        let id = &input.path.resource_id;
        ctx.target(&resources::fences::RESOURCE, id.as_str());
        resources::protocol_of(ctx, id)?;
        let mut found = store::list(ctx, id)?;
        let actor = ctx.actor();
        if actor.permission.role == Operator {
            // INVARIANT RC-5: an operator reads the credentials that are assigned to it and no others (D3.1).
            let asking = port::asking(&mut ctx.tx(), actor)?;
            found.retain(|credential| asking.is_assigned(&credential.assigned));
        }
        let items = found.into_iter().map(|credential| view(ctx.org(), credential));
        Ok(Credentials {
            items: items.collect(),
        })
    }
}
