//! `POST …/resources/{resourceId}/credentials`

use super::assignment::Assignees;
use super::model::{Credential, CredentialBody, CredentialView, MAX_PER_RESOURCE, view};
use super::{secrets, store, write};
use crate::resource_credentials::fences;
use crate::resources;
use crate::resources::model::ResourcePath;
use crate::resources::ownership::Owner;
use provost_kernel::auth::Role::Admin;
use provost_kernel::error::{Code, Error};
use provost_kernel::operation::{Empty, Input, Meta, Method, Operation};
use provost_kernel::{OperationContext, Result};

pub struct CreateCredential;

impl Operation for CreateCredential {
    const META: Meta = Meta::write(
        "createHeadlessResourceCredential",
        Method::Post,
        "/resources/{resourceId}/credentials",
        "resource_credentials",
    )
    .access("resource_credentials:write", &[Admin])
    .command("resource-credentials", "create")
    .status(201)
    .answers(&["Location"])
    .says(
        "Create a credential of a resource",
        "The secret is stored encrypted and never returned. With managementMode external it stays with a secret \
         manager that the operator of this server declared. A resource has one default credential and 500 \
         credentials at most. Names need not differ: the id tells credentials apart.",
    );
    type Path = ResourcePath;
    type Query = Empty;
    type Body = CredentialBody;
    type Output = CredentialView;

    fn call(ctx: &mut OperationContext<'_>, input: &Input<Self>) -> Result<CredentialView> {
        let (resource, body) = (&input.path.resource_id, &input.body);
        ctx.target(&resources::fences::RESOURCE, resource.as_str());
        let protocol = resources::protocol_of(ctx, resource)?;
        let owner = Owner::calling(ctx, input.manager.as_ref());
        let management = write::judge(ctx, body, protocol, false, owner)?;
        let mut credential = Credential {
            id: ctx.new_id(),
            resource_id: resource.clone(),
            name: String::new(),
            kind: body.kind,
            is_default: false,
            assigned: Assignees::default(),
            username: None,
            header_name: None,
            authentication: None,
            management,
            secret_version: i64::from(body.secret.is_some()),
            created_at: ctx.now(),
            updated_at: ctx.now(),
            last_used_at: None,
            rotated_at: None,
        };
        ctx.target(&fences::CREDENTIAL, credential.id.as_str());
        credential.apply(body);
        if credential.is_default {
            write::keep_one_default(ctx, resource, &credential.id)?;
        }
        let count: i64 = store::kinds_of(ctx, resource)?
            .iter()
            .map(|(_, count)| count)
            .sum();
        if count >= MAX_PER_RESOURCE {
            let message = format!("a resource has {MAX_PER_RESOURCE} credentials at most");
            return Err(Error::new(Code::Conflict, message));
        }
        let is_assigned = write::assign(&mut credential, body);
        store::insert(ctx, &credential)?;
        if let Some(secret) = &body.secret {
            secrets::put(ctx, &credential, secret.secret())?;
        }
        write::note_changes(ctx, None, &credential);
        if is_assigned {
            write::emit_assigned(ctx, &credential);
        }
        let base = format!("/api/headless/v1/organizations/{}", ctx.org());
        let location = format!("{base}/resources/{resource}/credentials/{}", credential.id);
        ctx.header("location", location);
        Ok(view(ctx.org(), credential))
    }
}
