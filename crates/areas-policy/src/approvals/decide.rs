//! `POST …/approvals/{approvalId}/decision`

use super::model::{Approval, Choice, Effect, Party, Refusal, State, Vote};
use super::view::{ApprovalPath, ApprovalView, CallView, OneApproval, call_of};
use super::{ask, fences, refused, rights, store};
use provost_kernel::auth::Role::Admin;
use provost_kernel::error::{Code, Error};
use provost_kernel::event::EventOf;
use provost_kernel::operation::{Empty, Input, Meta, Method, Operation};
use provost_kernel::text::Name;
use provost_kernel::{OperationContext, Result};
use schemars::JsonSchema;
use serde::Deserialize;

pub struct DecideApproval;

/// What is said.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[schemars(inline)]
pub struct DecisionBody {
    /// `approve`, `deny`, or `abstain`, which takes an earlier vote of the caller back.
    decision: Word,
    /// `preview.bindingDigest` of what the caller looked at.
    binding_digest: Name,
}

provost_kernel::word! {
    /// What is said.
    pub enum Word {
        /// Yes.
        Approve = "approve",
        /// No.
        Deny = "deny",
        /// Nothing.
        Abstain = "abstain",
    }
}

impl Operation for DecideApproval {
    const META: Meta = Meta::write(
        "decideHeadlessApproval",
        Method::Post,
        "/approvals/{approvalId}/decision",
        "mcp_approvals",
    )
    .access(rights::DECIDE, &[Admin])
    .command("approvals", "decide")
    .for_people()
    .example(
        r#"{"decision": "approve", "bindingDigest": "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08"}"#,
    )
    .says(
        "Vote on an approval",
        "One vote for each; the last counts until the decision. One no ends the request. People alone approve, and neither who \
         asked, nor whom it is for, nor who owns, made or changed an account of the two, nor whom one of these gave a role or a \
         sign-in since it was asked; a vote counts while its voter may decide. \
         Where a route says who decides, they alone say yes, as many as it says; no may say whoever may decide. \
         An approved call passes once, within 15 minutes, when it is asked about again with equal arguments. A server that was asked \
         for by hand stands approved with the vote, which needs inventory:write as well.",
    );
    type Path = ApprovalPath;
    type Query = Empty;
    type Body = DecisionBody;
    type Output = OneApproval;

    fn call(ctx: &mut OperationContext<'_>, input: &Input<Self>) -> Result<OneApproval> {
        let (id, body) = (&input.path.approval_id, &input.body);
        ctx.target(&fences::APPROVAL, id.as_str());
        let mut approval = store::get(ctx, id)?;
        let shown = match body.decision {
            // A yes is to what can be shown; a no needs nothing.
            Word::Approve => {
                store::keep_time(ctx)?;
                call_of(ctx, &approval)?
            }
            Word::Deny | Word::Abstain => call_of(ctx, &approval).ok().flatten(),
        };
        if approval.binding_mac != body.binding_digest.as_str() {
            let message = "bindingDigest is not that of this approval; look at it again before you decide";
            return Err(Error::new(Code::PreconditionFailed, message));
        }
        let effect = say(ctx, &mut approval, shown.as_ref(), body.decision)?;
        if effect == Effect::Changed {
            store::save(ctx, &approval)?;
        }
        Ok(OneApproval {
            // Without what the call says: answers are kept for who repeats a request.
            approval: ApprovalView::of(ctx, approval, None),
        })
    }
}

/// Takes what the caller says.
///
/// Keeps AP-3.
fn say(
    ctx: &mut OperationContext<'_>,
    approval: &mut Approval,
    shown: Option<&CallView>,
    word: Word,
) -> Result<Effect> {
    let (org, now, actor) = (ctx.org(), ctx.latest(), ctx.actor());
    let by = Party::of(actor);
    let choice = match word {
        Word::Approve => Choice::Approve,
        Word::Deny => Choice::Deny,
        Word::Abstain => {
            let effect = approval
                .abstain(&by, now)
                .map_err(|refusal| refused(refusal, approval, now))?;
            if effect == Effect::Changed {
                ctx.change("/vote", true, false);
                ctx.emit(&fences::VOTED, &fences::OfApproval::of(approval));
            }
            return Ok(effect);
        }
    };
    let before = approval.state;
    let mut tx = ctx.tx();
    let vote = Vote { by, choice, at: now };
    let device = shown.and_then(CallView::device);
    let mut behind = rights::behind(&mut tx, org, approval, device)?;
    for party in approval.votes.iter().map(|vote| &vote.by).chain([&vote.by]) {
        if rights::is_made_by_those(&mut tx, org, approval, party, &behind)? {
            behind.insert(party.id.clone());
        }
    }
    // A no gives nothing to anybody: whoever may decide about anything says it, whatever the route.
    let route = approval.route.clone().filter(|_| choice == Choice::Approve);
    let said = approval.vote(vote, now, &behind, &mut |party| {
        rights::may_decide_about(&mut tx, org, route.as_ref(), party)
    })?;
    let effect = said.map_err(|refusal: Refusal| refused(refusal, approval, now))?;
    if effect == Effect::Changed {
        if approval.state == State::Approved {
            ask::perform(ctx, approval, shown)?;
        }
        ctx.change("/decision", serde_json::Value::Null, choice.as_str());
        ctx.change("/state", before.as_str(), approval.state.as_str());
        let kind: &'static EventOf<fences::OfApproval> = match approval.state {
            State::Approved | State::Used => &fences::APPROVED,
            State::Denied => &fences::DENIED,
            _ => &fences::VOTED,
        };
        ctx.emit(kind, &fences::OfApproval::of(approval));
    }
    Ok(effect)
}
