//! `POST …/resources/{resourceId}/credentials`

use super::assignment::Assigned;
use super::model::{Credential, CredentialBody, CredentialView, MAX_PER_RESOURCE, view};
use super::{secrets, store, write};
use crate::resource_credentials::fences;
use crate::resources;
use crate::resources::model::ResourcePath;
use crate::resources::ownership::Owner;
use provost_kernel::auth::Role::Admin;
use provost_kernel::error::{Code, Error};
use provost_kernel::operation::{Empty, Input, Meta, Method, Operation};
use provost_kernel::{Cx, Result};

/// See [`Operation::META`].
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

    fn call(cx: &mut Cx<'_>, input: &Input<Self>) -> Result<CredentialView> {
        let (resource, body) = (&input.path.resource_id, &input.body);
        cx.target(&resources::fences::RESOURCE, resource.as_str());
        let protocol = resources::protocol_of(cx, resource)?;
        let owner = Owner::calling(cx, input.manager.as_ref());
        let management = write::judge(cx, body, protocol, false, owner)?;
        let mut credential = Credential {
            id: cx.new_id(),
            resource_id: resource.clone(),
            name: String::new(),
            kind: body.kind,
            is_default: false,
            assigned: Assigned::default(),
            username: None,
            header_name: None,
            authentication: None,
            management,
            secret_version: i64::from(body.secret.is_some()),
            created_at: cx.now(),
            updated_at: cx.now(),
            last_used_at: None,
            rotated_at: None,
        };
        cx.target(&fences::CREDENTIAL, credential.id.as_str());
        credential.apply(body);
        if credential.is_default {
            write::keep_one_default(cx, resource, &credential.id)?;
        }
        let count: i64 = store::kinds_of(cx, resource)?
            .iter()
            .map(|(_, count)| count)
            .sum();
        if count >= MAX_PER_RESOURCE {
            let message = format!("a resource has {MAX_PER_RESOURCE} credentials at most");
            return Err(Error::new(Code::Conflict, message));
        }
        let is_assigned = write::assign(&mut credential, body);
        store::insert(cx, &credential)?;
        if let Some(secret) = &body.secret {
            secrets::put(cx, &credential, secret.secret())?;
        }
        write::note_changes(cx, None, &credential);
        if is_assigned {
            write::emit_assigned(cx, &credential);
        }
        let base = format!("/api/headless/v1/organizations/{}", cx.org());
        let location = format!("{base}/resources/{resource}/credentials/{}", credential.id);
        cx.header("location", location);
        Ok(view(cx.org(), credential))
    }
}
