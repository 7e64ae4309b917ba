//! Credentials of resources (specification §2.6, §4.8; D11; client contract §4.2).
//!
//! A credential opens one resource. It is for the people, groups and service accounts that it is assigned to, or
//! for everybody else as the default. Its secret is kept here under a key of the organization, or stays with a
//! secret manager that the operator declared.
//!
//! ```text
//! created → rotated* → deleted          managementMode  service | terraform ⇄ external
//! ```
//!
//! INVARIANT RC-1: no answer and no listing statement holds a secret, a ciphertext, a length or a hash of one.
//! INVARIANT RC-2: a secret opens only as the secret of its organization, resource, credential and version.
//! INVARIANT RC-3: a re-wrap that is killed anywhere loses no secret, and every secret opens at every moment of it.
//! INVARIANT RC-4: of several credentials the one in the order user, service account, group, default is used; within
//! a kind the lowest id.
//! INVARIANT RC-5: an operator reads the credentials that are assigned to it and no others (D3.1).
//! INVARIANT RC-6: a resource has one default credential at most.
//! INVARIANT RC-7: the API never names an address: external secrets come from what the operator declared for the
//! organization, below its prefix (D11.3).
//! INVARIANT RC-8: `rotatedAt` says when the secret that a credential stands for became another one, as far as it is
//! seen here, and is absent without a secret (ADR 0044).
//! INVARIANT RC-9: a credential has one open check: whoever asks again while it is under way waits for the same
//! answer, unless the credential was changed since.
//!
//! Absent on purpose: reading a secret through the API; writing a secret to an external manager; a Terraform
//! manager's ownership of an external credential; unique names.

mod assignment;
mod authentication;
mod checks;
mod create;
mod delete;
mod ends;
pub mod external;
pub mod fences;
mod get;
mod list;
pub mod model;
mod port;
pub mod secrets;
mod store;
mod update;
mod write;

pub use assignment::CredentialSeeker;
pub use port::{asking, credential_for, open_secret};
pub use store::PRUNE_CHECKS;

use crate::resources::announcements::{ProtocolChanges, ResourceGoes};
use provost_areas_identity::subjects::{LostReference, LostWith};
use provost_areas_platform::announcements::{Departure, OpenedTo, Opening, PrincipalEnded};
use provost_kernel::announcement::{Answers, Subscriber};
use provost_kernel::area::{Area, Check, every};
use provost_kernel::auth::{Toolset, scope};
use provost_kernel::context::PRUNED_ROWS;
use provost_kernel::error::{Code, Error};
use provost_kernel::operation::Entry;
use provost_kernel::{OperationContext, Result, SureTime, params};

/// The area.
pub static AREA: Area = Area {
    toolsets: &[Toolset {
        place: 18,
        name: "resource_credentials",
        says: "The credentials of resources; no secret is ever returned.",
        title: "Credentials",
        holds: "records of credentials, not the secrets in them",
    }],
    scopes: &[
        scope("resource_credentials:read").readers(),
        scope("resource_credentials:write"),
    ],
    operations,
    fences: Some(&fences::FENCES),
    statements: &[store::STATEMENTS, secrets::STATEMENTS, ends::STATEMENTS],
    rights: ends::RIGHTS,
    retakings: ends::RETAKINGS,
    records: &[("resource_credential_checks", "what a check of a credential found")],
    testimonies: &[&fences::CREDENTIALS],
    jobs: || vec![checks::handler()],
    timers: &[every(60, "rewrap", |kernel, _| {
        Box::pin(async move { secrets::rewrap(&kernel).await.map(drop) })
    })],
    check: Check::Nothing("a secret says by its own seal whose it is when it is opened"),
    on: &[
        &Subscriber(principal_ended),
        &Subscriber(resource_goes),
        &Subscriber(protocol_changes),
        &Answers(lost),
        &Answers(opened_to),
    ],
    prune: Some(prune_checks),
    sealing_keys: Some(secrets::sealing_keys_in_use),
    floor: 4,
    ..Area::named(
        "resource_credentials",
        "Credentials of resources, and the secrets behind them",
    )
};

fn operations() -> Vec<Entry> {
    vec![
        Entry::of::<list::ListCredentials>(),
        Entry::of::<create::CreateCredential>(),
        Entry::of::<get::GetCredential>(),
        Entry::of::<update::UpdateCredential>(),
        Entry::of::<delete::DeleteCredential>(),
        Entry::of::<checks::VerifyCredential>(),
        Entry::of::<checks::GetCheck>(),
    ]
}

/// Removes a deleted subject from every assignment (D13).
fn principal_ended(ctx: &mut OperationContext<'_>, ended: &PrincipalEnded) -> Result<()> {
    match ended.how {
        Departure::Deleted => store::forget(ctx, ended.kind, &ended.id),
        Departure::Stopped => Ok(()),
    }
}

/// Returns the assignments that go with records, those of each sorted by their credentials.
fn lost(ctx: &mut OperationContext<'_>, question: &LostWith) -> Result<Vec<LostReference>> {
    let org = ctx.org();
    let mut lost = Vec::new();
    for record in &question.records {
        if let Some(kind) = record.kind.subject() {
            let ids = store::assigned_to(&mut ctx.tx(), org, kind, &record.id)?;
            lost.extend(ids.into_iter().map(|id| LostReference::to_credential(id, record)));
        }
    }
    Ok(lost)
}

/// Returns the credentials that are assigned to a subject, sorted.
fn opened_to(ctx: &mut OperationContext<'_>, subject: &OpenedTo) -> Result<Vec<Opening>> {
    let org = ctx.org();
    let ids = store::assigned_to(&mut ctx.tx(), org, subject.kind, &subject.id)?;
    Ok(ids.into_iter().map(|id| Opening::Credential { id }).collect())
}

/// Refuses the end of a resource that has credentials: none outlives it, and none goes away with it silently (RS-2).
///
/// Errors: `Conflict`.
fn resource_goes(ctx: &mut OperationContext<'_>, resource: &ResourceGoes) -> Result<()> {
    let kinds = store::kinds_of(ctx, &resource.id)?;
    let count: i64 = kinds.iter().map(|(_, count)| count).sum();
    if count == 0 {
        return Ok(());
    }
    let message = format!("the resource still has credentials ({count}); delete them first");
    Err(Error::new(Code::Conflict, message).with("credentials", count))
}

/// Refuses a protocol that a credential of the resource does not fit.
///
/// Errors: `Conflict`.
fn protocol_changes(ctx: &mut OperationContext<'_>, change: &ProtocolChanges) -> Result<()> {
    for (kind, count) in store::kinds_of(ctx, &change.id)? {
        if !kind.fits(change.protocol) {
            let (kind, protocol) = (kind.as_str(), change.protocol.as_str());
            let message =
                format!("{count} credentials of the kind {kind} do not fit {protocol}; change them first");
            return Err(Error::new(Code::Conflict, message));
        }
    }
    Ok(())
}

/// Removes checks that have been kept long enough, within a unit of the installation.
fn prune_checks(ctx: &mut OperationContext<'_>, now: SureTime) -> Result<()> {
    let before = now.earlier_by(checks::model::KEPT_SECS);
    ctx.prune(&PRUNE_CHECKS, params![before.instant(), PRUNED_ROWS])
}
