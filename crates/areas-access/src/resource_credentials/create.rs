//! `POST …/resources/{resourceId}/credentials`

use super::assignment::Assignees;
use super::model::{Credential, CredentialBody, CredentialView, MAX_PER_RESOURCE, view};
use super::{secrets, store, write};
use crate::resource_credentials::fences;
use crate::resources;
use crate::resources::model::ResourcePath;
use crate::resources::ownership::{Owner, answer_again, may_be_said_again, naming};
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
    .example(
        r#"{"name": "reporting", "kind": "username_password", "username": "reporting",
           "secret": "an example", "assignedTo": {"serviceAccounts": ["sa_01m7w5fpg4ctwq7mvve86yenbr"]}}"#,
    )
    .status(201)
    .also(200)
    .answers(&["Location", "Idempotent-Replayed"])
    .says(
        "Create a credential of a resource",
        "The secret is stored encrypted and never returned. With managementMode external it stays with a secret \
         manager that the operator of this server declared. A resource has one default credential and 500 \
         credentials at most. Names need not differ: the id tells credentials apart. A manager's same \
         create within a day replaces the secret.",
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
        let is_assigned = write::assign(&mut credential, body);
        if let Some(there) = made_before(ctx, &credential)? {
            return said_again(ctx, &credential, there, body);
        }
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

/// Returns the credential of this name that the same Terraform manager made, the oldest one.
fn made_before(ctx: &mut OperationContext<'_>, said: &Credential) -> Result<Option<Credential>> {
    if *said.management.owner() == Owner::Service {
        return Ok(None);
    }
    let all = store::list(ctx, &said.resource_id)?.into_iter();
    let same = all.filter(|there| there.name == said.name && there.management == said.management);
    Ok(same.min_by_key(|there| (there.created_at, there.id.as_str().to_owned())))
}

/// Answers a create that was said again. Its secret takes the place of the stored one, and is never compared with it: nobody
/// learns whether they are the same.
///
/// Errors: `Conflict` with the credential that is there, when it is another one or was made earlier.
fn said_again(
    ctx: &mut OperationContext<'_>,
    said: &Credential,
    there: Credential,
    body: &CredentialBody,
) -> Result<CredentialView> {
    let is_same = said.kind == there.kind
        && said.is_default == there.is_default
        && said.username == there.username
        && said.header_name == there.header_name
        && said.authentication == there.authentication
        && said.assigned == there.assigned;
    let owner = there.management.owner();
    if !(is_same && may_be_said_again(ctx, said.management.owner(), owner, there.created_at)) {
        let message =
            "this manager has a credential of this name already; import it, or give this one another name";
        return Err(naming(
            Error::new(Code::Conflict, message),
            there.id.as_str(),
            owner,
        ));
    }
    ctx.target(&fences::CREDENTIAL, there.id.as_str());
    answer_again(ctx);
    let Some(secret) = &body.secret else {
        return Ok(view(ctx.org(), there));
    };
    let mut after = there.clone();
    let now = ctx.now().max(there.updated_at.plus_ms(1));
    after.secret_version += 1;
    (after.updated_at, after.rotated_at) = (now, Some(now));
    write::note_changes(ctx, Some(&there), &after);
    store::save(ctx, &after, &there.assigned)?;
    secrets::put(ctx, &after, secret.secret())?;
    write::emit_rotated(ctx, &after);
    Ok(view(ctx.org(), after))
}
