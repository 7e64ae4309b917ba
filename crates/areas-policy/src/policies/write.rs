//! What every write does: a revision, and the next version of the set when what decides is another.
//!
//! ```text
//!   version     4      5      6                     revision 2 of a policy, enabled in 4, replaced in 6:
//!   revision 2  [set_from 4 ── set_to 6)            its row says so; nothing else is copied
//!   revision 3                [set_from 6 ── …
//! ```
//!
//! Keeps PO-2, PO-8.

use super::model::{Document, Policy, PolicyId, Revision, SetVersion, SetVersionId, management_mode};
use super::ports::PolicyChanged;
use super::references::Binding;
use super::store;
use crate::policies::fences;
use provost_areas_access::resources::ownership::Owner;
use provost_kernel::event::EventOf;
use provost_kernel::{OperationContext, Result};
use provost_policy::{Definition, set_digest};
use serde_json::{Value, json};

/// Stores a definition as the next revision of its policy and returns the policy.
pub fn revise(
    ctx: &mut OperationContext<'_>,
    before: Option<&Policy>,
    owner: Owner,
    definition: &Definition,
    binding: &Binding,
    source_ref: Option<&Document>,
) -> Result<Policy> {
    let policy = match before {
        Some(before) => {
            let mut policy = before.clone();
            policy.owner = owner;
            policy.revise(definition, ctx.now());
            policy
        }
        None => Policy::first(definition, owner, ctx.now()),
    };
    let is_same = binding.definition == *definition.authored();
    let revision = Revision {
        definition: definition.authored().to_string(),
        bound: (!is_same).then(|| binding.definition.to_string()),
        bound_sha256: provost_policy::document_sha256(&binding.definition),
        source_ref: source_ref.map(|source| source.value().to_string()),
    };
    // The policy's row first: its revisions refer to it.
    match before {
        Some(_) => store::save(ctx, &policy)?,
        None => store::insert(ctx, &policy)?,
    }
    let decides = policy.enabled.then_some(revision.bound_sha256.as_str());
    let next = change_set(ctx, &policy.id, decides)?;
    store::insert_revision(ctx, &policy, &revision, next.filter(|_| policy.enabled))?;
    if let Some(sequence) = next {
        add_version(ctx, sequence)?;
    }
    note(ctx, before, &policy);
    if before.is_some() {
        announce(ctx, &policy)?;
    }
    let kind = match before.filter(|before| before.is_there()) {
        Some(_) => &fences::UPDATED,
        None => &fences::CREATED,
    };
    emit(ctx, kind, &policy);
    Ok(policy)
}

/// Deletes a policy: it decides nothing any more, its history and its id stay (PO-8).
pub fn delete(ctx: &mut OperationContext<'_>, before: &Policy, owner: Owner) -> Result<()> {
    let mut policy = before.clone();
    policy.owner = owner;
    policy.enabled = false;
    policy.updated_at = ctx.now().max(before.updated_at);
    policy.deleted_at = Some(policy.updated_at);
    store::save(ctx, &policy)?;
    if let Some(sequence) = change_set(ctx, &policy.id, None)? {
        add_version(ctx, sequence)?;
    }
    note(ctx, Some(before), &policy);
    ctx.change("/deletedAt", Value::Null, json!(policy.deleted_at));
    announce(ctx, &policy)?;
    emit(ctx, &fences::DELETED, &policy);
    Ok(())
}

fn announce(ctx: &mut OperationContext<'_>, policy: &Policy) -> Result<()> {
    ctx.announce(&PolicyChanged {
        policy_id: policy.id.as_str().to_owned(),
    })
}

/// Takes what decides of a policy out of the set when the definition of another digest, or none, is to take its place.
/// Returns the number of the version with which that happens; none when the set stays as it is (PO-2).
fn change_set(ctx: &mut OperationContext<'_>, id: &PolicyId, sha256: Option<&str>) -> Result<Option<i64>> {
    let decided = store::in_set(ctx, id)?;
    if decided.as_deref() == sha256 {
        return Ok(None);
    }
    let org = ctx.org();
    let latest = store::latest(&mut ctx.tx(), org)?;
    let sequence = latest.map_or(0, |latest| latest.sequence) + 1;
    if decided.is_some() {
        store::leave_set(ctx, id, sequence)?;
    }
    Ok(Some(sequence))
}

/// Makes the version of the set as it is now. The organization's writes are serial, so no number is taken twice.
fn add_version(ctx: &mut OperationContext<'_>, sequence: i64) -> Result<()> {
    let members = store::members(ctx)?;
    // INVARIANT PO-3: the same function gives the digest of a compiled set.
    let digest = set_digest(
        members
            .iter()
            .map(|(family, id, sha256)| (*family, id.as_str(), sha256.as_str())),
    );
    let id: SetVersionId = ctx.new_id();
    let version = SetVersion {
        sequence,
        id: id.as_str().to_owned(),
        digest,
        policies: i64::try_from(members.len()).unwrap_or(i64::MAX),
        created_at: ctx.now(),
        created_by: (ctx.actor().kind.to_owned(), ctx.actor().id.clone()),
    };
    store::insert_version(ctx, &version)?;
    ctx.change("/policySetVersion", Value::Null, version.id.as_str());
    ctx.emit(
        &fences::VERSION_CREATED,
        &fences::NewSetVersion {
            version_id: version.id,
            number: sequence,
            digest: version.digest,
            policies: version.policies,
        },
    );
    Ok(())
}

/// Notes what changed, by digests: definitions stand in no audit entry.
fn note(ctx: &mut OperationContext<'_>, before: Option<&Policy>, after: &Policy) {
    let was = |f: fn(&Policy) -> Value| before.map_or(Value::Null, f);
    ctx.change("/revision", was(|p| p.revision.into()), after.revision);
    ctx.change(
        "/definitionSha256",
        was(|p| p.definition_sha256.as_str().into()),
        after.definition_sha256.as_str(),
    );
    ctx.change(
        "/action",
        was(|p| p.action.as_str().into()),
        after.action.as_str(),
    );
    ctx.change("/enabled", was(|p| p.enabled.into()), after.enabled);
    note_owner(ctx, before.map(|p| &p.owner), &after.owner);
}

/// Notes a change of authority.
pub fn note_owner(ctx: &mut OperationContext<'_>, before: Option<&Owner>, after: &Owner) {
    let [manager, instance, owner] = before.map_or([None; 3], Owner::columns);
    let [new_manager, new_instance, new_owner] = after.columns();
    let mode = before.map_or(Value::Null, |owner| management_mode(owner).into());
    ctx.change("/managementMode", mode, management_mode(after));
    ctx.change("/managerId", manager, new_manager);
    ctx.change("/managerInstance", instance, new_instance);
    ctx.change("/ownerId", owner, new_owner);
}

/// Tells others what became of a policy.
pub fn emit(ctx: &mut OperationContext<'_>, kind: &'static EventOf<fences::OfPolicy>, policy: &Policy) {
    let data = fences::OfPolicy {
        policy_id: policy.id.clone(),
        family: policy.family.word(),
        revision: policy.revision,
        definition_sha256: policy.definition_sha256.clone(),
        enabled: policy.enabled,
        management_mode: management_mode(&policy.owner),
    };
    ctx.emit(kind, &data);
}
