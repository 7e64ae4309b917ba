//! `GET …/resources/{resourceId}/credentials/{credentialId}`

use super::model::{CredentialPath, CredentialView, view};
use super::store;
use crate::resource_credentials::fences;
use provost_kernel::auth::Role::{Admin, Auditor};
use provost_kernel::operation::{Empty, Input, Meta, Operation};
use provost_kernel::{OperationContext, Result};

pub struct GetCredential;

impl Operation for GetCredential {
    const META: Meta = Meta::read(
        "getHeadlessResourceCredential",
        "/resources/{resourceId}/credentials/{credentialId}",
        "resource_credentials",
    )
    .access("resource_credentials:read", &[Admin, Auditor])
    .command("resource-credentials", "get")
    .sensitive()
    .says("Show a credential of a resource", "The secret is never returned.");
    type Path = CredentialPath;
    type Query = Empty;
    type Body = Empty;
    type Output = CredentialView;

    fn call(ctx: &mut OperationContext<'_>, input: &Input<Self>) -> Result<CredentialView> {
        let path = &input.path;
        ctx.target(&fences::CREDENTIAL, path.credential_id.as_str());
        let credential = store::get(ctx, &path.resource_id, &path.credential_id)?;
        Ok(view(ctx.org(), credential))
    }
}
