//! `PUT …/resources/{resourceId}/credentials/{credentialId}`

use super::model::{Credential, CredentialBody, CredentialPath, CredentialView, Management, view};
use super::{secrets, store, write};
use crate::resource_credentials::fences;
use crate::resources;
use crate::resources::ownership::Owner;
use provost_kernel::auth::Role::Admin;
use provost_kernel::operation::{Empty, Input, Meta, Method, Operation};
use provost_kernel::{OperationContext, Result};

pub struct UpdateCredential;

impl Operation for UpdateCredential {
    const META: Meta = Meta::write(
        "updateHeadlessResourceCredential",
        Method::Put,
        "/resources/{resourceId}/credentials/{credentialId}",
        "resource_credentials",
    )
    .access("resource_credentials:write", &[Admin])
    .command("resource-credentials", "update")
    .example(r#"{"name": "reporting", "kind": "username_password", "username": "reporting"}"#)
    .says(
        "Replace a credential of a resource",
        "Without a secret the stored one stays; with one it is rotated. The kind can change: members of the old \
         kind must go then, and a kind that has a secret needs one. A member that is left out gets its default. A secret that \
         is sent is a rotation, also when it is the one that is stored; so is another place of an external one.",
    );
    type Path = CredentialPath;
    type Query = Empty;
    type Body = CredentialBody;
    type Output = CredentialView;

    fn call(ctx: &mut OperationContext<'_>, input: &Input<Self>) -> Result<CredentialView> {
        let (path, body) = (&input.path, &input.body);
        ctx.target(&fences::CREDENTIAL, path.credential_id.as_str());
        let before = store::get(ctx, &path.resource_id, &path.credential_id)?;
        let writer = Owner::calling(ctx, input.manager.as_ref());
        let owner = before.management.owner().admit(ctx, writer)?;
        let protocol = resources::protocol_of(ctx, &path.resource_id)?;
        let keeps = before.has_secret() && before.kind == body.kind;
        let mut after = before.clone();
        after.management = write::judge(ctx, body, protocol, keeps, owner)?;
        after.apply(body);
        if after.is_default && !before.is_default {
            write::keep_one_default(ctx, &path.resource_id, &after.id)?;
        }
        let is_reassigned = write::assign(&mut after, body);
        let now = ctx.now().max(before.updated_at.plus_ms(1));
        after.secret_version += i64::from(body.secret.is_some());
        let is_rotated = body.secret.is_some() || names_another_secret(&before, &after);
        if is_rotated {
            after.rotated_at = Some(now);
        } else if !after.kind.keeps_secret() {
            // INVARIANT RC-8: what has no secret has none whose age could be said (ADR 0044).
            after.rotated_at = None;
        }
        write::note_changes(ctx, Some(&before), &after);
        if !ctx.has_changes() {
            return Ok(view(ctx.org(), after));
        }
        after.updated_at = now;
        store::save(ctx, &after, &before.assigned)?;
        change_secret(ctx, &before, &after, body)?;
        if is_rotated {
            write::emit_rotated(ctx, &after);
        }
        if is_reassigned {
            write::emit_assigned(ctx, &after);
        }
        Ok(view(ctx.org(), after))
    }
}

/// Says whether a credential stands for a secret elsewhere now, and for another one than before. What changes at that
/// place is not seen here.
fn names_another_secret(before: &Credential, after: &Credential) -> bool {
    let place = |credential: &Credential| match &credential.management {
        Management::Here(_) => None,
        Management::External {
            manager,
            instance,
            path,
            field,
        } => Some((manager.clone(), instance.clone(), path.clone(), field.clone())),
    };
    place(after).is_some_and(|now| place(before) != Some(now))
}

fn change_secret(
    ctx: &mut OperationContext<'_>,
    before: &Credential,
    after: &Credential,
    body: &CredentialBody,
) -> Result<()> {
    if let Some(secret) = &body.secret {
        secrets::put(ctx, after, secret.secret())?;
    } else if before.has_secret() && !after.has_secret() {
        secrets::erase(ctx, &after.id)?;
    }
    Ok(())
}
