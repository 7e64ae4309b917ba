//! `DELETE …/resources/{resourceId}/credentials/{credentialId}`

use super::model::CredentialPath;
use super::{secrets, store};
use crate::resource_credentials::fences;
use crate::resources::ownership::Owner;
use provost_kernel::auth::Role::Admin;
use provost_kernel::error::{Code, Error};
use provost_kernel::operation::{Empty, Input, Meta, Method, NoContent, Operation};
use provost_kernel::{OperationContext, Result};
use serde_json::{Value, json};

pub struct DeleteCredential;

impl Operation for DeleteCredential {
    const META: Meta = Meta::write(
        "deleteHeadlessResourceCredential",
        Method::Delete,
        "/resources/{resourceId}/credentials/{credentialId}",
        "resource_credentials",
    )
    .access("resource_credentials:write", &[Admin])
    .command("resource-credentials", "delete")
    .status(204)
    .says(
        "Delete a credential of a resource and erase its secret",
        "A credential that is assigned to somebody goes only with confirm: true; without, the refusal names whom \
         it is assigned to.",
    );
    type Path = CredentialPath;
    type Query = Empty;
    type Body = Empty;
    type Output = NoContent;

    fn call(ctx: &mut OperationContext<'_>, input: &Input<Self>) -> Result<NoContent> {
        let path = &input.path;
        ctx.target(&fences::CREDENTIAL, path.credential_id.as_str());
        let credential = store::get(ctx, &path.resource_id, &path.credential_id)?;
        let writer = Owner::calling(ctx, input.manager.as_ref());
        credential.management.owner().admit(ctx, writer)?;
        if !credential.assigned.is_empty() && !input.confirm {
            let message = "this credential is assigned: say with confirm: true (or the header X-Confirm: true) that \
                           its assignees lose it";
            return Err(
                Error::new(Code::ConfirmationRequired, message).with("assignees", json!(credential.assigned))
            );
        }
        secrets::erase(ctx, &credential.id)?;
        store::delete(ctx, &credential.id)?;
        ctx.change("/name", credential.name, Value::Null);
        ctx.change("/assignedTo", json!(credential.assigned), Value::Null);
        Ok(NoContent {})
    }
}
