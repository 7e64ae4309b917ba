//! What the rest of the program asks of credentials: which one serves a caller, and its secret.

use super::assignment::{Candidates, CredentialSeeker};
use super::model::CredentialId;
use super::{secrets, store};
use crate::resources::model::ResourceId;
use provost_areas_identity::directory;
use provost_areas_identity::subjects::SubjectKind;
use provost_kernel::auth::Actor;
use provost_kernel::db::Tx;
use provost_kernel::{OperationContext, Result, Secret};

/// Returns who an actor is to the assignments: a person with their groups, or a service account.
pub fn asking(tx: &mut Tx<'_>, actor: &Actor) -> Result<CredentialSeeker> {
    if actor.kind == "service_account" {
        return Ok(CredentialSeeker {
            service_account: Some(actor.id.clone()),
            ..CredentialSeeker::default()
        });
    }
    Ok(CredentialSeeker {
        groups: directory::groups_of(tx, actor.organization.as_str(), &actor.id)?,
        user: Some(actor.id.clone()),
        service_account: None,
    })
}

/// Returns the credential with which somebody opens a resource: the person's own, else the service account's,
/// else one of the person's groups, else the default; of several the one with the lowest id (D11.4).
///
/// Cost: one indexed read for each of person, account and group, and one for the default.
pub fn credential_for(
    ctx: &mut OperationContext<'_>,
    asking: &CredentialSeeker,
    resource: &ResourceId,
) -> Result<Option<CredentialId>> {
    let mut candidates = Candidates::default();
    if let Some(user) = &asking.user {
        candidates.user = store::lowest_of(ctx, resource, SubjectKind::User, user)?;
    }
    if let Some(account) = &asking.service_account {
        candidates.service_account = store::lowest_of(ctx, resource, SubjectKind::ServiceAccount, account)?;
    }
    for group in &asking.groups {
        let found = store::lowest_of(ctx, resource, SubjectKind::Group, group)?;
        candidates.group = candidates.group.into_iter().chain(found).min();
    }
    candidates.default = store::default_of(ctx, resource)?;
    Ok(candidates.choose())
}

/// Returns the secret of a credential that is kept here, and notes the use to the minute (D11.7). `None` when the
/// kind has no secret or a secret manager keeps it.
///
/// Errors: `NotFound`; `Unavailable` when the organization's key cannot be opened.
pub fn open_secret(ctx: &mut OperationContext<'_>, id: &CredentialId) -> Result<Option<Secret<Vec<u8>>>> {
    store::find(ctx, id)?;
    let secret = secrets::unseal(ctx, id)?;
    store::touch(ctx, id)?;
    Ok(secret)
}
