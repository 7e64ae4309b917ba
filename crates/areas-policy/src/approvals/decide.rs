//! `POST …/approvals/{approvalId}/decision`

use super::model::{Approval, Choice, Effect, Lent, Party, Refusal, State, Vote};
use super::view::{ApprovalPath, ApprovalView, CallView, OneApproval, call_of};
use super::{ask, delegations, fences, refused, rights, store};
use provost_kernel::auth::Role::Admin;
use provost_kernel::error::{Code, Error};
use provost_kernel::event::EventOf;
use provost_kernel::operation::{Empty, Input, Meta, Method, Operation};
use provost_kernel::text::{LongName, Name};
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
    /// The id of a user who lent the caller their vote; absent: in the own name. With `approve` and `deny`.
    in_name_of: Option<LongName>,
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
         inNameOf says it in the name of who lent the caller their vote (approval-delegations), whom the route names and who does not stand \
         behind the request either; the caller still may decide, and needs the scopes themselves. \
         An approved call passes once, within 15 minutes, when it is asked about again with equal arguments. A server that was asked \
         for by hand stands approved with the vote, which needs inventory:write as well, and a policy gets the exception that was asked \
         for, which needs policies:write.",
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
        let lent = lent(ctx, &approval, body)?;
        let effect = say(ctx, &mut approval, shown.as_ref(), (body.decision, lent))?;
        if effect == Effect::Changed {
            store::save(ctx, &approval)?;
        }
        Ok(OneApproval {
            // Without what the call says: answers are kept for who repeats a request.
            approval: ApprovalView::of(ctx, approval, None)?,
        })
    }
}

/// Returns what the caller votes by, where it is in the name of somebody else.
///
/// Keeps AP-19. Errors: `InvalidDefinition` with a word that takes a vote back; `EscalationForbidden` where nothing is lent that holds now.
fn lent(ctx: &mut OperationContext<'_>, approval: &Approval, body: &DecisionBody) -> Result<Option<Lent>> {
    let Some(from) = &body.in_name_of else {
        return Ok(None);
    };
    if body.decision == Word::Abstain {
        let message =
            "is said with approve and deny: abstain takes the caller's vote back, in whosever name it was";
        return Err(Error::unfit("/inNameOf", message));
    }
    let (org, now, by) = (ctx.org(), ctx.latest(), Party::of(ctx.actor()));
    let lent = delegations::lent(&mut ctx.tx(), org, (from.as_str(), &by), approval.kind, now)?;
    lent.map(Some)
        .ok_or_else(|| refused(Refusal::NotLent, approval, now))
}

/// Takes what the caller says.
///
/// Keeps AP-3 and AP-19.
fn say(
    ctx: &mut OperationContext<'_>,
    approval: &mut Approval,
    shown: Option<&CallView>,
    (word, lent): (Word, Option<Lent>),
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
    let vote = Vote {
        by,
        in_name_of: lent,
        choice,
        at: now,
    };
    let device = shown.and_then(CallView::device);
    let mut behind = rights::behind(&mut tx, org, approval, device)?;
    // Each once: most votes are said in the own name.
    let mut parties: Vec<Party> = Vec::new();
    for vote in approval.votes.iter().chain([&vote]) {
        for party in [vote.by.clone(), vote.holder()] {
            if !parties.contains(&party) {
                parties.push(party);
            }
        }
    }
    for party in parties {
        if rights::is_made_by_those(&mut tx, org, approval, &party, &behind)? {
            behind.insert(party.id);
        }
    }
    // A no gives nothing to anybody: whoever may decide about anything says it, whatever the route.
    let route = approval.route.clone().filter(|_| choice == Choice::Approve);
    let kind = approval.kind;
    let in_name_of = vote.in_name_of.clone();
    let said = approval.vote(vote, now, &behind, &mut |vote| {
        rights::may_decide_about(&mut tx, org, (kind, route.as_ref()), vote, now)
    })?;
    let effect = said.map_err(|refusal: Refusal| refused(refusal, approval, now))?;
    if effect == Effect::Changed {
        if approval.state == State::Approved {
            ask::perform(ctx, approval, shown)?;
        }
        ctx.change("/decision", serde_json::Value::Null, choice.as_str());
        if let Some(lent) = in_name_of {
            ctx.change("/inNameOf", serde_json::Value::Null, lent.user_id);
            ctx.change(
                "/delegationId",
                serde_json::Value::Null,
                lent.delegation_id.as_str(),
            );
        }
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
