//! `POST …/approval-delegations`

use super::list::{DelegationView, OneDelegation};
use super::model::{AHEAD_SECS, Delegation, LATE_SECS, LONGEST_SECS, MOST_OPEN, can_be_lent};
use super::store;
use crate::approvals::model::{Kind, Party};
use crate::approvals::store::keep_time;
use crate::approvals::{fences, rights};
use provost_areas_access::resources::definition::AtMost;
use provost_areas_identity::directory::{self, model::UserId};
use provost_kernel::auth::Role::Admin;
use provost_kernel::error::{Code, Error};
use provost_kernel::operation::{Empty, Input, Meta, Method, Operation};
use provost_kernel::text::LongName;
use provost_kernel::{OperationContext, Result, Timestamp};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};

/// LIMIT: kinds of one delegation. Ours: as many as there may come to be.
const MOST_KINDS: usize = 10;

pub struct CreateDelegation;

/// To whom, about what, and when.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[schemars(inline)]
pub struct CreateBody {
    /// The id of the user who votes in the name of the caller.
    to_user_id: LongName,
    /// About what: `tool_call`, `mcp_server`, or both.
    kinds: AtMost<Kind, MOST_KINDS>,
    /// From when on, 90 days ahead at most; absent: from now on.
    from: Option<Timestamp>,
    /// Until when, at most 30 days behind the beginning.
    until: Timestamp,
}

impl Operation for CreateDelegation {
    const META: Meta = Meta::write(
        "createHeadlessApprovalDelegation",
        Method::Post,
        "/approval-delegations",
        "mcp_approvals",
    )
        .access(rights::DECIDE, &[Admin])
        .command("approvals", "delegate")
        // As the votes that it lends.
        .for_people()
        .example(
            r#"{"toUserId": "usr_01m7w5fpg4ctwq7mvve86yenbr", "kinds": ["tool_call"], "until": "2026-10-12T08:00:00.000Z"}"#,
        )
        .status(201)
        .of_deciders()
        .says(
            "Have somebody vote in one's name for a time",
            "Of people alone, for themselves: another user who may decide about approvals themselves, and whose token says \
             mcp_approvals:decide when they vote, says a yes in the name of the caller (inNameOf), where a route names the caller. It \
             gives nobody a right, and holds while the caller may decide. What is lent is not lent on. The kind operation cannot be \
             lent: the settings say who decides about it.",
        );
    type Path = Empty;
    type Query = Empty;
    type Body = CreateBody;
    type Output = OneDelegation;

    /// Who it is to whom votes are lent.
    fn standing(ctx: &mut OperationContext<'_>, input: &Input<Self>) -> Result<Value> {
        directory::who_they_are(ctx, &[UserId::from_text(input.body.to_user_id.as_str())])
    }

    fn gains(_cx: &mut OperationContext<'_>, input: &Input<Self>) -> Result<Vec<String>> {
        Ok(vec![input.body.to_user_id.as_str().to_owned()])
    }

    fn call(ctx: &mut OperationContext<'_>, input: &Input<Self>) -> Result<OneDelegation> {
        let (org, now, body) = (ctx.org(), ctx.latest(), &input.body);
        keep_time(ctx)?;
        let caller = Party::of(ctx.actor());
        if !caller.is_person() || !rights::may_decide(&mut ctx.tx(), org, &caller)? {
            let message = "people lend their votes, who may decide about approvals, and no service account does: nobody can say who has its \
                           token; sign in as a user of the directory";
            return Err(Error::new(Code::EscalationForbidden, message));
        }
        let from = must_be_in_time(body, now)?;
        let delegation = Delegation {
            id: ctx.new_id(),
            from_user_id: caller.id,
            to_user_id: body.to_user_id.as_str().to_owned(),
            kinds: must_be_lendable(&body.kinds)?,
            from,
            until: body.until,
            created_at: now,
            ended_at: None,
            end_reason: None,
        };
        must_be_no_chain(ctx, &delegation)?;
        store::insert(ctx, &delegation)?;
        ctx.target(&fences::DELEGATION, delegation.id.as_str());
        ctx.change("/toUserId", Value::Null, delegation.to_user_id.as_str());
        ctx.change("/kinds", Value::Null, json!(delegation.kinds));
        ctx.change("/from", Value::Null, delegation.from.to_rfc3339());
        ctx.change("/until", Value::Null, delegation.until.to_rfc3339());
        ctx.emit(
            &fences::DELEGATION_CREATED,
            &fences::OfDelegation::of(&delegation),
        );
        Ok(OneDelegation {
            delegation: DelegationView::of(delegation, now),
        })
    }
}

/// Returns when a delegation begins.
///
/// Errors: `InvalidDefinition` for a time that is over, too far away, or too long.
fn must_be_in_time(body: &CreateBody, now: Timestamp) -> Result<Timestamp> {
    let from = body.from.unwrap_or(now);
    if from < now.plus_secs(-LATE_SECS) {
        return Err(Error::unfit(
            "/from",
            "lies behind now: nobody votes in somebody's name about what was; leave it out for now",
        ));
    }
    if from > now.plus_secs(AHEAD_SECS) {
        return Err(Error::unfit("/from", "must lie at most 90 days ahead"));
    }
    let from = from.max(now);
    if body.until <= from {
        return Err(Error::unfit("/until", "must lie behind the beginning"));
    }
    if body.until > from.plus_secs(LONGEST_SECS) {
        return Err(Error::unfit(
            "/until",
            "must lie at most 30 days behind the beginning",
        ));
    }
    Ok(from)
}

/// Returns the kinds of a delegation, each once.
///
/// Errors: `InvalidDefinition` for none, and for kinds of which votes cannot be lent.
fn must_be_lendable(kinds: &[Kind]) -> Result<Vec<Kind>> {
    let mut found = Vec::with_capacity(kinds.len());
    for (at, kind) in kinds.iter().enumerate() {
        if !can_be_lent(*kind) {
            let message = format!(
                "{} cannot be lent: who decides about it decides themselves",
                kind.as_str()
            );
            return Err(Error::unfit(format!("/kinds/{at}"), message));
        }
        if !found.contains(kind) {
            found.push(*kind);
        }
    }
    if found.is_empty() {
        return Err(Error::unfit(
            "/kinds",
            "must say about what; tool_call and mcp_server can be lent",
        ));
    }
    Ok(found)
}

/// Refuses a delegation to nobody who could vote by it, and one that would lend on what is lent.
///
/// Keeps AP-19. Errors: `InvalidDefinition`, `Conflict`.
fn must_be_no_chain(ctx: &mut OperationContext<'_>, delegation: &Delegation) -> Result<()> {
    let (org, from, to) = (ctx.org(), &delegation.from_user_id, &delegation.to_user_id);
    let mut tx = ctx.tx();
    if to == from {
        return Err(Error::unfit("/toUserId", "must be somebody else"));
    }
    if !rights::may_decide(&mut tx, org, &Party::person(to.clone()))? {
        let message = "must be the id of a user who may decide about approvals themselves: with the role admin, and not suspended";
        return Err(Error::unfit("/toUserId", message));
    }
    let (mine, theirs) = (
        store::of_person(&mut tx, org, from)?,
        store::of_person(&mut tx, org, to)?,
    );
    let conflict = |message: String, other: &Delegation| {
        Err(Error::new(Code::Conflict, message).with("delegationId", other.id.as_str()))
    };
    let lent_to_me = mine
        .iter()
        .find(|other| other.to_user_id == *from && other.meets(delegation));
    if let Some(other) = lent_to_me {
        let message = format!(
            "somebody has lent their vote to you at that time ({}), and who votes for others lends nothing on; end it first, or say another \
             time or kind",
            other.id.as_str()
        );
        return conflict(message, other);
    }
    let lent_by_them = theirs
        .iter()
        .find(|other| other.from_user_id == *to && other.meets(delegation));
    if let Some(other) = lent_by_them {
        let message = format!(
            "that user has lent their own vote at that time ({}); lend yours to somebody who votes themselves, or say another time or kind",
            other.id.as_str()
        );
        return conflict(message, other);
    }
    let made = mine.iter().filter(|other| other.from_user_id == *from).count();
    let held = theirs.iter().filter(|other| other.to_user_id == *to).count();
    if made >= MOST_OPEN || held >= MOST_OPEN {
        let message = format!(
            "{MOST_OPEN} delegations of one person, or to one, are open at most; end some of them first"
        );
        return Err(Error::new(Code::Conflict, message));
    }
    Ok(())
}
