//! Exceptions that somebody else asked for: the next revision of a policy, as whoever writes it would make it, and of no policy that would
//! become another thing by it.
//!
//! ```text
//!   asked for ── of:  is it one that can have any? ── fits: does the language take it? names it one thing?
//!   decided   ── add: the same policy still? ── what every write must pass ── the next revision
//! ```
//!
//! INVARIANT PO-10: what adds an exception to a policy changes nothing else of it, and only the definition that was looked at; access lists,
//! and policies that stop nobody or ask for approvals themselves, get none.

use super::admission::{self, Proposal};
use super::compiled;
use super::inputs::DEFINITION_LIMIT;
use super::model::{Document, Policy, PolicyId};
use super::{references, store, write};
use provost_areas_access::resources::ownership::{Owner, naming};
use provost_kernel::error::{Code, Error};
use provost_kernel::{OperationContext, Result};
use provost_policy::{Action, Definition, Family, document_sha256};
use serde_json::{Value, json};
use std::sync::Arc;

/// LIMIT: exceptions of a policy, as the language has it.
const MOST: usize = 256;
/// LIMIT: bytes of a definition with an exception more. Ours: it can be sent back, with what stands around it.
const LARGEST: usize = DEFINITION_LIMIT.0 - (64 << 10);
/// What the notification of an access policy says where people may ask for exceptions (client contract §3.6).
const MAY_BE_ASKED: &str = "available_when_future_policy_blocks";

/// A policy of which somebody wants an exception, as it is now.
pub struct ExceptedPolicy {
    /// Its id.
    pub id: String,
    /// Its family.
    pub family: Family,
    /// Its name.
    pub name: String,
    /// What it does with what it matches.
    pub action: String,
    /// What its author says of it.
    pub description: Option<String>,
    /// What people are told.
    pub message: Option<String>,
    /// The number of its newest revision.
    pub revision: i64,
    /// The digest of that definition.
    pub sha256: String,
    /// Devices may judge it by themselves so far, and do no more from its first exception on.
    pub leaves_devices: bool,
    authored: Value,
}

/// Returns a policy that can have an exception.
///
/// Errors: `NotFound`; `Conflict` for one that can have none, with the next step.
pub fn of(ctx: &mut OperationContext<'_>, id: &str) -> Result<ExceptedPolicy> {
    let id = PolicyId::from_path(id);
    let policy = store::find(ctx, &id)?.filter(Policy::is_there);
    let policy = policy.ok_or_else(admission::absent)?;
    if policy.family == Family::SkillAcl {
        let message = "a skill ACL has no exceptions; whoever writes policies names you among its subjects";
        return Err(Error::new(Code::Conflict, message));
    }
    must_be_the_services(ctx, &policy)?;
    let (authored, _) = authored(ctx, &policy)?;
    let current = without_module(policy.family, &authored);
    let current = compiled::definition(policy.family, &current).map_err(|violations| {
        let (policy, sentence) = (id.as_str(), "a stored policy does not read");
        tracing::error!(policy, %violations, "{sentence}");
        Error::new(Code::Unavailable, format!("{sentence}: {policy}"))
    })?;
    must_stop_somebody(&current)?;
    must_be_open(&authored)?;
    let text = |member: &str| authored[member].as_str().map(str::to_owned);
    let needs_server = current.has_exceptions() || current.has_history() || !authored["logic"].is_null();
    Ok(ExceptedPolicy {
        id: policy.id.as_str().to_owned(),
        family: policy.family,
        name: text("name").unwrap_or_default(),
        action: policy.action,
        description: text("description"),
        message: text("message"),
        revision: policy.revision,
        sha256: policy.definition_sha256,
        leaves_devices: policy.family == Family::Content && !needs_server,
        authored,
    })
}

/// Refuses a policy that a manager writes: it would take the exception away with its next write, or refuse to write at all.
///
/// Errors: `Conflict`.
fn must_be_the_services(ctx: &mut OperationContext<'_>, policy: &Policy) -> Result<Owner> {
    admission::admit_writer(ctx, policy, Owner::Service).map_err(|error| {
        if error.code() != Code::Conflict {
            return error;
        }
        let message = "the policy is managed by Terraform, which alone changes it; ask whoever keeps its configuration for the exception";
        naming(Error::new(Code::Conflict, message), policy.id.as_str(), &policy.owner)
    })
}

/// Refuses a policy that would become another thing by an exception, or of which none is wanted.
///
/// Errors: `Conflict`.
fn must_stop_somebody(definition: &Definition) -> Result<()> {
    let message = if !definition.is_enabled() {
        "the policy is not enabled, and stops nobody"
    } else if definition.is_monitored() {
        "the policy is only monitored, and stops nobody"
    } else if definition.acl().is_some() {
        // With an exception it is read as no list any more, and whom it kept out would come in.
        "the policy is an access list, which has no exceptions; whoever writes policies names you in it"
    } else {
        match definition.action() {
            Action::Block | Action::Redact | Action::Filter | Action::Nudge => return Ok(()),
            Action::RequireApproval => {
                "the policy asks for an approval of each call, and has no exceptions by request; ask for the call"
            }
            _ => "the policy stops nobody",
        }
    };
    Err(Error::new(Code::Conflict, message))
}

/// Refuses a policy whose author says that nobody asks for exceptions.
///
/// Errors: `Conflict`.
fn must_be_open(authored: &Value) -> Result<()> {
    match &authored["notification"]["exceptionRequest"] {
        Value::Null => Ok(()),
        Value::String(word) if word == MAY_BE_ASKED => Ok(()),
        _ => {
            let message = "whoever wrote the policy wants nobody to ask for exceptions (notification.exceptionRequest); ask them";
            Err(Error::new(Code::Conflict, message))
        }
    }
}

/// Refuses an exception that the language does not take, or whose names mean nothing for certain. `who` is the part of it that says for whom it is,
/// with the id that this has to mean; the rest of `conditions` stands in the request.
///
/// Errors: `InvalidDefinition` with places behind `/conditions`; `Conflict` where the policy has as many as it can have.
pub fn fits(
    ctx: &mut OperationContext<'_>,
    policy: &ExceptedPolicy,
    (who, id): (&Value, &str),
    (narrowed, reason): (Option<&Value>, &str),
) -> Result<()> {
    let listed = policy.authored["exceptions"].as_array().map_or(0, Vec::len);
    if listed >= MOST {
        let message = format!(
            "the policy has {MOST} exceptions, as many as it can have; whoever writes policies takes those away that have ended"
        );
        return Err(Error::new(Code::Conflict, message));
    }
    // By itself, so that what is said of it has its place in the request; a module is read where somebody decided.
    let alone = standing_alone(policy, narrowed.unwrap_or(who));
    Definition::read(policy.family, &alone).map_err(|violations| references::violated(&violations, ""))?;
    // Beside the rest: a tree is so deep, and a policy so large, at most.
    let whole = with_exception(
        &without_module(policy.family, &policy.authored),
        &json!({ "id": "asked-for", "reason": reason, "conditions": both(who, narrowed) }),
    );
    Definition::read(policy.family, &whole).map_err(|violations| {
        let found = violations.kept().iter().map(|one| {
            let place = if one.path.ends_with("/reason") {
                "/justification"
            } else {
                "/conditions"
            };
            (place.to_owned(), format!("{} {}", one.path, one.message))
        });
        references::refusal(found)
    })?;
    if whole.to_string().len() > LARGEST {
        let message = "the policy is so large that its author could not write it with one more exception; whoever writes policies takes \
                       those away that have ended";
        return Err(Error::new(Code::Conflict, message));
    }
    if let Some(narrowed) = narrowed {
        references::bind(ctx, policy.family, &json!({ "conditions": narrowed }), None, "")?;
    }
    let bound = references::bind(
        ctx,
        policy.family,
        &json!({ "conditions": who }),
        None,
        "/requestedFor",
    )?;
    if bound.definition["conditions"]["value"].as_str() != Some(id) {
        return Err(Error::internal("an exception for another than who asked"));
    }
    Ok(())
}

/// Returns the condition of an exception: for whom, and when where that is narrowed.
pub fn both(who: &Value, narrowed: Option<&Value>) -> Value {
    match narrowed {
        None => who.clone(),
        Some(narrowed) => json!({ "all": [who, narrowed] }),
    }
}

/// Adds an exception to the policy that was looked at, in the name of the caller.
///
/// Keeps PO-10. Errors: `Conflict` where it is another by now, or a manager's; those of every write.
pub fn add(
    ctx: &mut OperationContext<'_>,
    (id, revision, sha256): (&str, i64, &str),
    exception: &Value,
) -> Result<()> {
    let seen = of(ctx, id)?;
    if seen.revision != revision || seen.sha256 != sha256 {
        let message = "the policy is not what it was when the exception was asked for; deny the request, whoever needs it asks again";
        return Err(Error::new(Code::Conflict, message));
    }
    let document = with_exception(&seen.authored, exception);
    let definition = read(seen.family, &document)?;
    let policy = admission::find(ctx, seen.family, &PolicyId::from_path(id))?;
    let (_, source_ref) = authored(ctx, &policy)?;
    let proposal = Proposal {
        definition: &definition,
        source_ref: source_ref.as_ref(),
        expected_revision: revision,
        manager: None,
    };
    let admitted = admission::admit(ctx, &proposal)?;
    write::revise(
        ctx,
        admitted.before.as_ref(),
        admitted.owner,
        &definition,
        &admitted.binding,
        proposal.source_ref,
    )?;
    Ok(())
}

fn read(family: Family, document: &Value) -> Result<Arc<Definition>> {
    compiled::definition(family, document)
        .map_err(|violations| references::violated(&violations, "/definition"))
}

/// Returns the newest definition of a policy and its source reference, as they were sent.
///
/// Errors: `Internal` for one that is not what its row says.
fn authored(ctx: &mut OperationContext<'_>, policy: &Policy) -> Result<(Value, Option<Document>)> {
    let found = store::authored(ctx, &policy.id, policy.revision)?;
    let (definition, source) =
        found.ok_or_else(|| Error::internal("a policy without its newest revision"))?;
    let definition: Value = serde_json::from_str(&definition).map_err(Error::internal)?;
    if document_sha256(&definition) != policy.definition_sha256 {
        return Err(Error::internal(
            "the newest definition of a policy is not that of its digest",
        ));
    }
    let source = source.map(|text| serde_json::from_str(&text)).transpose();
    Ok((definition, source.map_err(Error::internal)?))
}

/// Returns a definition with one more exception.
fn with_exception(definition: &Value, exception: &Value) -> Value {
    let mut document = definition.clone();
    match &mut document["exceptions"] {
        Value::Array(list) => list.push(exception.clone()),
        none => *none = json!([exception]),
    }
    document
}

/// Returns a definition with a condition in the place of its module, which costs the writer of the store nothing to read.
fn without_module(family: Family, definition: &Value) -> Value {
    let mut document = definition.clone();
    if let Some(members) = document.as_object_mut()
        && family != Family::SkillAcl
        && members.get("logic").is_some_and(|logic| !logic.is_null())
    {
        members.remove("logic");
        members.insert("conditions".to_owned(), anybody());
    }
    document
}

/// Returns a policy's definition with a condition in the place of its own.
fn standing_alone(policy: &ExceptedPolicy, condition: &Value) -> Value {
    let mut document = without_module(policy.family, &policy.authored);
    document["conditions"] = condition.clone();
    document
}

/// Returns a condition that every family has.
fn anybody() -> Value {
    json!({ "field": "identity.user_id", "op": "exists" })
}
