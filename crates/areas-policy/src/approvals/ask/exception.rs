//! An exception of a policy that somebody asks for, for themselves and until an instant.
//!
//! INVARIANT AP-17: an exception that is asked for holds for nobody but who asked, ends, and is to the letter what who decided was shown; it is added
//! to the definition that was looked at, with the right to write policies, by one who decides about what somebody else asked; where two people
//! change policies, nobody gets one by asking.

use super::{AskBody, Narrowing, joined, may_do};
use crate::approvals::model::{Approval, BoundPolicy, Kind, MOST, Party};
use crate::approvals::opening::{self, Wish};
use crate::approvals::store;
use crate::approvals::view::{CallView, ExceptionWish};
use crate::policies::exceptions::{self, ExceptedPolicy};
use crate::policies::fences;
use provost_areas_platform::settings::{self, ActOfTwo};
use provost_kernel::error::{Code, Error};
use provost_kernel::json::canonical;
use provost_kernel::keys::{Keys, MacPurpose};
use provost_kernel::{Kernel, OperationContext, Result, hex::hex};
use provost_policy::Family;
use provost_words::visible::lines_visible;
use serde_json::{Value, json};

/// The hash of an exception that is asked for, under a key of the installation.
const REQUEST: MacPurpose = MacPurpose::Own("provost/mac/approval-exception/v1");
/// With it somebody writes a policy without being asked.
const WRITING: &str = "policies:write";
/// LIMIT: bytes of a condition that is shown to who decides. Ours: nobody approves what nobody reads.
const MAX_CONDITIONS: usize = 16 * 1024;

/// Asks for an exception, or joins what waits for it.
///
/// Keeps AP-17. Errors: `InvalidDefinition` for an unknown policy, and conditions that do not fit; `Conflict` for a policy that can have none.
pub fn ask(ctx: &mut OperationContext<'_>, id: &str, body: &AskBody) -> Result<Approval> {
    one_person_writes(ctx)?;
    let asker = Party::of(ctx.actor());
    let policy = exceptions::of(ctx, id).map_err(|error| match error.code() {
        Code::NotFound => Error::unfit("/policyId", "names no policy of this organization"),
        _ => error,
    })?;
    let who = who(policy.family, &asker)?;
    let narrowed = body.conditions.as_ref().map(Narrowing::exact).transpose()?;
    if let Some(narrowed) = narrowed {
        must_be_seen(narrowed)?;
    }
    let conditions = exceptions::both(&who, narrowed);
    let wanted = Asked {
        policy: &policy,
        seconds: body.expires_in_seconds.get(),
        reason: lines_visible(body.justification.as_str()).into_owned(),
        conditions,
    };
    let kernel = Kernel::behind(ctx.services())?;
    let (org, now) = (ctx.org(), ctx.latest());
    let call_mac = wanted.mac(&kernel.keys, org, &asker);
    if let Some(open) = joined(ctx, &call_mac)? {
        return Ok(open);
    }
    exceptions::fits(ctx, &policy, (&who, &asker.id), (narrowed, &wanted.reason))?;
    let of = Wish {
        kind: Kind::Exception,
        tool: &policy.id,
        asker,
        call_mac,
        gains: Vec::new(),
        policies: vec![BoundPolicy {
            family: policy.family.word().to_owned(),
            policy_id: policy.id.clone(),
            definition_sha256: policy.sha256.clone(),
        }],
        // What is asked for by hand waits for days, and leaves half of the queue to calls.
        most_waiting: MOST / 2,
        most_secs: wanted.seconds,
    };
    let expires_at = now.plus_secs(wanted.seconds);
    let approval = opening::open(ctx, of, |id| {
        let text = |text: &String| lines_visible(text).into_owned();
        let wish = ExceptionWish {
            policy_id: policy.id.clone(),
            family: policy.family.word().to_owned(),
            name: text(&policy.name),
            action: policy.action.clone(),
            description: policy.description.as_ref().map(text),
            message: policy.message.as_ref().map(text),
            revision: policy.revision,
            definition_sha256: policy.sha256.clone(),
            leaves_devices: policy.leaves_devices,
            expires_in_seconds: wanted.seconds,
            expires_at,
            exception: json!({
                "id": id.as_str(), "reason": wanted.reason, "expiresAt": expires_at.to_rfc3339(), "conditions": wanted.conditions,
            }),
        };
        let shown = json!({ "exception": wish, "justification": wanted.reason });
        serde_json::to_vec(&shown).map_err(Error::internal)
    })?;
    opening::file(ctx, &approval, ("/policyId", &policy.id))?;
    Ok(approval)
}

/// What is asked for, before it has an id and an instant.
struct Asked<'a> {
    policy: &'a ExceptedPolicy,
    seconds: i64,
    reason: String,
    conditions: Value,
}

impl Asked<'_> {
    fn mac(&self, keys: &Keys, organization: &str, asker: &Party) -> String {
        let policy = (
            self.policy.id.as_str(),
            self.policy.revision,
            self.policy.sha256.as_str(),
        );
        mac(
            keys,
            organization,
            asker,
            policy,
            (self.seconds, &self.reason, &self.conditions),
        )
    }
}

fn mac(
    keys: &Keys,
    organization: &str,
    asker: &Party,
    (id, revision, sha256): (&str, i64, &str),
    (seconds, reason, conditions): (i64, &str, &Value),
) -> String {
    let (revision, seconds) = (revision.to_string(), seconds.to_string());
    let conditions = canonical(conditions);
    let parts: [&[u8]; 9] = [
        organization.as_bytes(),
        asker.kind.as_bytes(),
        asker.id.as_bytes(),
        id.as_bytes(),
        revision.as_bytes(),
        sha256.as_bytes(),
        seconds.as_bytes(),
        reason.as_bytes(),
        conditions.as_bytes(),
    ];
    hex(&keys.mac(REQUEST, &parts))
}

/// Refuses what one person would do by a vote, where two change policies.
///
/// Keeps AP-17. Errors: `Conflict`.
fn one_person_writes(ctx: &mut OperationContext<'_>) -> Result<()> {
    if !settings::load(ctx)?
        .approvals
        .require_for
        .contains(&ActOfTwo::Policies)
    {
        return Ok(());
    }
    // Who asks needs no right to write policies, so that who decides would be the only one of the two who has it.
    let message = "two people change policies here, and who asks for an exception is none of them: ask somebody who writes policies to add it \
                   (the update of the policy, with requestApproval=true)";
    Err(Error::new(Code::Conflict, message))
}

/// Returns the condition that holds for somebody and for nobody else.
///
/// Errors: `Conflict` where a family does not know who calls.
fn who(family: Family, asker: &Party) -> Result<Value> {
    let field = if asker.is_person() {
        "identity.user_id"
    } else if family == Family::Access {
        let message =
            "an access policy knows people and no service accounts, so that none has an exception of it";
        return Err(Error::new(Code::Conflict, message));
    } else {
        "identity.service_account_id"
    };
    Ok(json!({ "field": field, "op": "eq", "value": asker.id }))
}

/// Refuses a condition that would be shown otherwise than it is added.
///
/// Errors: `InvalidDefinition`.
fn must_be_seen(conditions: &Value) -> Result<()> {
    let text = conditions.to_string();
    if text.len() > MAX_CONDITIONS {
        let message = format!("must have at most {MAX_CONDITIONS} bytes: nobody approves what nobody reads");
        return Err(Error::unfit("/conditions", message));
    }
    if !is_seen(conditions) {
        let message = "must have no character that nobody sees, or that moves others: who decides would be shown another text";
        return Err(Error::unfit("/conditions", message));
    }
    Ok(())
}

fn is_seen(value: &Value) -> bool {
    let is_plain = |text: &str| lines_visible(text) == text;
    match value {
        Value::Object(members) => members
            .iter()
            .all(|(name, value)| is_plain(name) && is_seen(value)),
        Value::Array(items) => items.iter().all(is_seen),
        Value::String(text) => is_plain(text),
        Value::Null | Value::Bool(_) | Value::Number(_) => true,
    }
}

/// Adds the exception to the policy in the name of the voter.
///
/// Keeps AP-11, AP-17. Errors: `InsufficientScope`; `Conflict` where the policy is another by now, is somebody else's to change, or takes two people.
pub fn perform(
    ctx: &mut OperationContext<'_>,
    approval: &mut Approval,
    shown: Option<&CallView>,
) -> Result<()> {
    let wish = shown.and_then(CallView::exception);
    let wish = wish.ok_or_else(|| Error::internal("a request of an exception without the exception"))?;
    may_do(ctx, WRITING)?;
    one_person_writes(ctx)?;
    let (org, now) = (ctx.org(), ctx.latest());
    let kernel = Kernel::behind(ctx.services())?;
    let policy = (
        wish.policy_id.as_str(),
        wish.revision,
        wish.definition_sha256.as_str(),
    );
    let reason = wish.exception["reason"].as_str().unwrap_or_default();
    let said = (wish.expires_in_seconds, reason, &wish.exception["conditions"]);
    if mac(&kernel.keys, org, &approval.asker, policy, said) != approval.call_mac {
        // The key of hashes is another since, or what was sealed is not what waits.
        let message = "the request cannot be read as it was asked for; deny it, whoever needs it asks again";
        return Err(Error::new(Code::Conflict, message));
    }
    approval.grant_until = Some(wish.expires_at);
    approval
        .consume(&wish.policy_id, now)
        .map_err(|_| Error::internal("a request of an exception that cannot be used"))?;
    // Before the policy changes, which ends whatever is open and answers it; the vote is stored once more behind this.
    store::save(ctx, approval)?;
    approval.revision += 1;
    exceptions::add(ctx, policy, &wish.exception)?;
    // The entry is about the policy, whose rows entries vouch for, and names the approval as an operation by two people does.
    ctx.target(&fences::POLICY, &*wish.policy_id);
    ctx.change("/approvalId", Value::Null, approval.id.as_str());
    Ok(())
}
