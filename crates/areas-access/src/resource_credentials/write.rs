//! What creating and replacing a credential have in common.
//!
//! Keeps RC-6.

use super::assignment::{AssignedBody, KINDS};
use super::external::ExternalManagers;
use super::model::{Credential, CredentialBody, CredentialId, Management, Surroundings};
use super::store;
use crate::resource_credentials::fences;
use crate::resources::model::{Protocol, ResourceId};
use crate::resources::ownership::Owner;
use provost_areas_identity::subjects;
use provost_kernel::OperationContext;
use provost_kernel::error::{Code, Error, Result};
use serde_json::json;

/// Judges a definition and returns how the credential will be managed.
///
/// Errors: `Conflict` for a secret that would lie elsewhere (D11.3); `InvalidDefinition`.
pub fn judge(
    ctx: &mut OperationContext<'_>,
    body: &CredentialBody,
    protocol: Protocol,
    has_secret: bool,
    owner: Owner,
) -> Result<Management> {
    if body.is_external() && body.secret.is_some() {
        let message = "the secret of an external credential is written with its secret manager, not here";
        return Err(Error::new(Code::Conflict, message));
    }
    let instance = body.manager_instance.as_ref().map_or("", |name| name.as_str());
    let managers = ctx.services().extra::<ExternalManagers>();
    let manager = managers
        .and_then(|managers| managers.place(ctx.org(), instance))
        .map(|place| place.kind());
    let mut breaches = body.breaches(&Surroundings {
        protocol,
        has_secret,
        by_terraform: owner != Owner::Service,
        manager,
    });
    if let Some(assigned) = &body.assigned_to {
        for (kind, ..) in KINDS {
            let mut ids = assigned.ids(kind);
            ids.sort_unstable();
            ids.dedup();
            if !ids.is_empty() {
                let missing = subjects::missing(ctx, kind, &ids)?;
                assigned.note_missing(kind, &missing, &mut breaches);
            }
        }
    }
    breaches.refuse()?;
    Ok(match (body.is_external(), manager, &body.external_path) {
        (true, Some(manager), Some(path)) => Management::External {
            manager: manager.to_owned(),
            instance: instance.to_owned(),
            path: path.as_str().to_owned(),
            field: body
                .external_field
                .as_ref()
                .map(|field| field.as_str().to_owned()),
        },
        _ => Management::Here(owner),
    })
}

/// Refuses a second default: which one is meant is the caller's to say, not ours to guess.
///
/// Errors: `Conflict` with the default's id.
pub fn keep_one_default(
    ctx: &mut OperationContext<'_>,
    resource: &ResourceId,
    id: &CredentialId,
) -> Result<()> {
    match store::default_of(ctx, resource)? {
        Some(other) if other != *id => Err(Error::new(
            Code::Conflict,
            format!("the credential {other} is the default of this resource; take that from it first"),
        )),
        _ => Ok(()),
    }
}

/// Takes assignments from a body and says whether they changed.
pub fn assign(credential: &mut Credential, body: &CredentialBody) -> bool {
    let assigned = body
        .assigned_to
        .as_ref()
        .map(AssignedBody::stored)
        .unwrap_or_default();
    let changed = assigned != credential.assigned;
    credential.assigned = assigned;
    changed
}

/// Tells whom a credential is for now (D12.3).
pub fn emit_assigned(ctx: &mut OperationContext<'_>, credential: &Credential) {
    ctx.emit(&fences::ASSIGNED, &of(credential));
}

/// Tells that a credential has another secret now.
pub fn emit_rotated(ctx: &mut OperationContext<'_>, credential: &Credential) {
    ctx.emit(&fences::ROTATED, &of(credential));
}

fn of(credential: &Credential) -> fences::OfCredential {
    fences::OfCredential {
        resource_id: credential.resource_id.clone(),
        credential_id: credential.id.clone(),
    }
}

/// Notes what changed for the audit entry: never the secret, whose version alone is shown.
pub fn note_changes(ctx: &mut OperationContext<'_>, before: Option<&Credential>, after: &Credential) {
    fn of<'a, T>(before: Option<&'a Credential>, get: impl Fn(&'a Credential) -> T) -> Option<T> {
        before.map(get)
    }
    let b = before;
    ctx.change("/name", of(b, |c| c.name.as_str()), after.name.as_str());
    ctx.change("/kind", of(b, |c| c.kind.as_str()), after.kind.as_str());
    ctx.change("/default", of(b, |c| c.is_default), after.is_default);
    ctx.change("/assignedTo", of(b, |c| json!(c.assigned)), json!(after.assigned));
    ctx.change(
        "/username",
        b.and_then(|c| c.username.as_deref()),
        after.username.as_deref(),
    );
    ctx.change(
        "/headerName",
        b.and_then(|c| c.header_name.as_deref()),
        after.header_name.as_deref(),
    );
    ctx.change(
        "/authentication",
        of(b, |c| json!(c.authentication)),
        json!(after.authentication),
    );
    ctx.change(
        "/managementMode",
        of(b, |c| c.management.mode()),
        after.management.mode(),
    );
    let ([manager, instance], [path, field]) = (after.management.labels(), after.management.place());
    let (old, old_place) = (
        b.map_or([None, None], |c| c.management.labels()),
        b.map_or([None, None], |c| c.management.place()),
    );
    ctx.change("/managerId", old[0], manager);
    ctx.change("/managerInstance", old[1], instance);
    ctx.change("/externalPath", old_place[0], path);
    ctx.change("/externalField", old_place[1], field);
    let owner = |c: &'_ Credential| c.management.owner().columns()[2].map(str::to_owned);
    ctx.change("/ownerId", b.and_then(owner), owner(after));
    ctx.change(
        "/secretVersion",
        of(b, |c| c.secret_version),
        after.secret_version,
    );
}
