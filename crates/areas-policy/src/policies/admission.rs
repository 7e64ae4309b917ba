//! What a write must pass, and a plan before it: the same questions in the same order.
//!
//! ```text
//!   is there such a policy, of this family?        404, 409
//!   is it the caller's to write?                   409     PO-7
//!   is it at the revision that the caller saw?     409
//!   do its names name one thing each?              422
//!   is this what was planned?                      409     PO-5 (writes with a token)
//! ```
//!
//! The token is a keyed hash of everything that the plan was judged from, and of no time: Terraform plans each change twice
//! and compares. Nothing of it is stored: whoever writes is judged again, and the hash says whether the outcome is what was
//! planned. A token is good for one write because that write makes another revision.
//!
//! Keeps PO-7.

use super::inputs::{PlanToken, stale};
use super::model::{Document, Policy, PolicyId};
use super::references::{self, Binding};
use super::store;
use provost_areas_access::resources::ownership::{Owner, may_be_said_again, naming};
use provost_kernel::error::{Code, Error};
use provost_kernel::keys::MacPurpose;
use provost_kernel::operation::Manager;
use provost_kernel::{OperationContext, Result};
use provost_policy::contract::POLICY_SCHEMA_VERSION;
use provost_policy::rego::compiler_fingerprint;
use provost_policy::{Definition, Family, document_sha256};
use serde_json::Value;

/// What a policy's plan was judged from.
const PLAN_TOKEN: MacPurpose = MacPurpose::Own("provost/mac/plan-token/v2");

/// What somebody wants to write.
pub struct Proposal<'a> {
    /// The definition, with its family.
    pub definition: &'a Definition,
    /// Where the author keeps it.
    pub source_ref: Option<&'a Document>,
    /// The revision that the author saw; 0 for none.
    pub expected_revision: i64,
    /// The labels of the caller's manager.
    pub manager: Option<&'a Manager>,
}

/// What a proposal may become.
pub struct AdmittedPolicy {
    /// The policy as it is; none where there never was one.
    pub before: Option<Policy>,
    /// Who owns it from then on.
    pub owner: Owner,
    /// The definition with its names resolved.
    pub binding: Binding,
    /// The policy that this very create made a while ago; nothing is to be written then.
    pub made_before: Option<Policy>,
}

/// Judges a proposal, all but its token.
///
/// Errors: `Conflict`, `AlreadyExists`, `InvalidDefinition`.
pub fn admit(ctx: &mut OperationContext<'_>, proposal: &Proposal<'_>) -> Result<AdmittedPolicy> {
    let definition = proposal.definition;
    let before = store::find(ctx, &PolicyId::of(definition))?;
    if let Some(before) = before
        .as_ref()
        .filter(|before| before.family != definition.family())
    {
        return Err(of_another_family(before));
    }
    let seen = before
        .as_ref()
        .filter(|before| before.is_there())
        .map_or(0, |before| before.revision);
    let caller = Owner::calling(ctx, proposal.manager);
    let mut owner = caller.clone();
    if let Some(before) = &before {
        let is_create = proposal.expected_revision == 0 && before.is_there();
        owner = admit_writer(ctx, before, owner).map_err(|error| {
            if is_create && error.is_refusal() {
                naming(error, before.id.as_str(), &before.owner)
            } else {
                error
            }
        })?;
    }
    let source_ref = proposal.source_ref.map(Document::value);
    let selectors = source_ref.as_ref().and_then(|source| source.get("selectors"));
    let (family, authored) = (definition.family(), definition.authored());
    if seen != proposal.expected_revision {
        let there = before.filter(|_| proposal.expected_revision == 0);
        let Some(there) = there else {
            return Err(stale(seen, proposal.expected_revision));
        };
        let exists = Error::new(Code::AlreadyExists, "a policy of this id exists already");
        let exists = naming(exists, there.id.as_str(), &there.owner).with("currentRevision", seen);
        let may_be = there.revision == 1 && may_be_said_again(ctx, &caller, &there.owner, there.created_at);
        if !may_be || there.definition_sha256 != definition.sha256() {
            return Err(exists);
        }
        let binding = references::bind(ctx, family, authored, selectors, "/definition")?;
        if !is_stored(ctx, &there, &binding, source_ref.as_ref())? {
            return Err(exists);
        }
        return Ok(AdmittedPolicy {
            // As it was when it was planned: the token is the same.
            before: None,
            owner,
            binding,
            made_before: Some(there),
        });
    }
    let binding = references::bind(ctx, family, authored, selectors, "/definition")?;
    Ok(AdmittedPolicy {
        before,
        owner,
        binding,
        made_before: None,
    })
}

/// Says whether a policy's first revision decides as this binding does, and has this source reference.
fn is_stored(
    ctx: &mut OperationContext<'_>,
    there: &Policy,
    binding: &Binding,
    source_ref: Option<&Value>,
) -> Result<bool> {
    let read = |text: &String| serde_json::from_str::<Value>(text).map_err(Error::internal);
    let bound = store::bound(ctx, &there.id, there.revision)?;
    let authored = store::authored(ctx, &there.id, there.revision)?;
    let source = authored.and_then(|(_, source)| source);
    let (bound, source) = (
        bound.as_ref().map(read).transpose()?,
        source.as_ref().map(read).transpose()?,
    );
    Ok(bound.as_ref() == Some(&binding.definition) && source.as_ref() == source_ref)
}

fn of_another_family(before: &Policy) -> Error {
    let family = before.family.word();
    Error::new(
        Code::AlreadyExists,
        format!("this id belongs to a policy of the family {family}"),
    )
}

/// Returns a policy of a family that a caller writes by its path, and who owns it from then on.
///
/// Errors: `NotFound`; `Conflict` when it is somebody else's or at another revision.
pub fn existing(
    ctx: &mut OperationContext<'_>,
    family: Family,
    id: &PolicyId,
    manager: Option<&Manager>,
    expected_revision: i64,
) -> Result<(Policy, Owner)> {
    let policy = find(ctx, family, id)?;
    let writer = Owner::calling(ctx, manager);
    let owner = admit_writer(ctx, &policy, writer)?;
    if policy.revision != expected_revision {
        return Err(stale(policy.revision, expected_revision));
    }
    Ok((policy, owner))
}

/// Returns a policy of a family.
///
/// Errors: `NotFound`, also for a deleted one and one of another family.
pub fn find(ctx: &mut OperationContext<'_>, family: Family, id: &PolicyId) -> Result<Policy> {
    let found = store::find(ctx, id)?.filter(|policy| policy.is_there() && policy.family == family);
    found.ok_or_else(absent)
}

/// The one answer to everything that names no policy.
pub fn absent() -> Error {
    Error::not_found("policy")
}

/// Returns who owns a policy after a write by `writer`.
///
/// Errors: `Conflict` (PO-7).
pub fn admit_writer(ctx: &mut OperationContext<'_>, policy: &Policy, writer: Owner) -> Result<Owner> {
    if policy.owner == Owner::Service && writer != Owner::Service {
        let message = "this policy is managed by the service; claim its authority before Terraform writes it";
        return Err(Error::new(Code::Conflict, message));
    }
    policy.owner.admit(ctx, writer)
}

/// Returns the token of a proposal that was admitted.
pub fn token(ctx: &OperationContext<'_>, proposal: &Proposal<'_>, admitted: &AdmittedPolicy) -> String {
    let mac = with_parts(ctx, proposal, admitted, |parts| {
        ctx.services().keys.mac(PLAN_TOKEN, parts)
    });
    PlanToken::text(&mac)
}

/// Refuses a write that is not what was planned. A manager's write must have been planned.
///
/// Errors: `Conflict`.
pub fn must_be_planned(
    ctx: &OperationContext<'_>,
    proposal: &Proposal<'_>,
    admitted: &AdmittedPolicy,
    token: Option<&PlanToken>,
) -> Result<()> {
    let Some(token) = token else {
        if proposal.manager.is_none() {
            return Ok(());
        }
        let message = "a write of Terraform needs the validationToken of a plan; validate a plan first";
        return Err(Error::new(Code::Conflict, message));
    };
    // INVARIANT PO-5: everything that the plan was judged from is hashed again.
    let is_planned = with_parts(ctx, proposal, admitted, |parts| {
        ctx.services().keys.mac_matches(PLAN_TOKEN, parts, token.bytes())
    });
    if is_planned {
        return Ok(());
    }
    let message = "this is not what was planned, or somebody else planned it; validate a plan again";
    Err(Error::new(Code::Conflict, message))
}

fn with_parts<T>(
    ctx: &OperationContext<'_>,
    proposal: &Proposal<'_>,
    admitted: &AdmittedPolicy,
    f: impl FnOnce(&[&[u8]]) -> T,
) -> T {
    let compiler = compiler_fingerprint();
    // A deleted policy has revisions too: a plan of before its deletion does not bring it back.
    let latest = admitted.before.as_ref().map_or(0, |before| before.revision);
    let revisions = [proposal.expected_revision, latest].map(i64::to_be_bytes);
    let source_ref = proposal.source_ref.map(|source| document_sha256(&source.value()));
    let labels = proposal
        .manager
        .map(|manager| [manager.id.as_str(), manager.instance.as_str()]);
    // No labels and empty labels are not the same.
    let words = [
        ctx.org(),
        &ctx.actor().id,
        if labels.is_some() { "manager" } else { "" },
        labels.map_or("", |[manager, _]| manager),
        labels.map_or("", |[_, instance]| instance),
        proposal.definition.family().word(),
        proposal.definition.sha256(),
        &admitted.binding.fingerprint,
        source_ref.as_deref().unwrap_or(""),
        POLICY_SCHEMA_VERSION,
        &compiler,
    ];
    let revisions = revisions.iter().map(<[u8; 8]>::as_slice);
    let parts: Vec<&[u8]> = words
        .iter()
        .map(|word| word.as_bytes())
        .chain(revisions)
        .collect();
    f(&parts)
}
