//! Approvals: a call that a policy wants a yes for passes once when somebody who may decide has said it (F8, G3.16).
//!
//! ```text
//!   decision: require_approval ──► pending ──votes──► approved ──the call again──► used
//!                                     │                  └─► expired · revoked · void
//!                                     └─► denied · expired · canceled · void
//! ```
//!
//! One record: the request, its votes, and what they gave. The decisions open it and use it (`plan.rs`); people vote, take
//! back and revoke. What is open is void when what it binds moves: a policy that it answers is changed or deleted, the rights
//! of its subject are others, its subject or who asked ends, the store was restored.
//!
//! Keeps AP-1, AP-2, AP-3, AP-4, AP-5, AP-6, AP-7, AP-8, AP-9, AP-10, AP-11, AP-12, AP-13, AP-14, AP-15, AP-16, AP-17, AP-18 and AP-19.
//!
//! Beside calls somebody asks by hand that an MCP server of the inventory is approved, or for an exception of a policy (`ask`); the vote that
//! decides it does it.
//!
//! Absent on purpose: calls that nobody's decision asked about (nobody types the exact call of a machine); waiting inside a
//! decision (who asks again is answered); comments of voters (the reason of each write is in the log); links that vote.
//! Who is away has somebody else say yes in their name (`delegations`).
//! And where the settings want two people for an act, the request for it waits until a second one has said yes (`second_person.rs`).
//!
//! Not here yet, and refused by name: the kinds `mcp_tool`, `skill` and `access`, and places of consumption other than the servers.

mod apply;
mod ask;
pub mod binding;
mod decide;
mod delegations;
mod ends;
pub mod fences;
mod get;
mod list;
mod model;
mod names;
mod opening;
mod own;
mod plan;
mod preview;
mod rights;
mod routes;
mod second_person;
mod secrets;
mod store;
mod values;
mod verbs;
mod view;

pub use apply::apply;
pub use binding::{Call, Unbound};
pub use model::{ApprovalId, BoundPolicy, Party};
pub use plan::{Answer, Plan, Question, plan};

use crate::policies::PolicyChanged;
use model::{Approval, Effect, Refusal, State};
use provost_areas_platform::announcements::{AccountNarrowed, PrincipalEnded, SubjectKind};
use provost_kernel::announcement::{Answers, Subscriber};
use provost_kernel::area::{Area, Check, every};
use provost_kernel::auth::Role::{Auditor, Member, Operator, Viewer};
use provost_kernel::auth::{OrganizationId, Toolset, scope};
use provost_kernel::db::Tx;
use provost_kernel::error::{Code, Error};
use provost_kernel::migrations;
use provost_kernel::operation::Entry;
use provost_kernel::{Kernel, OperationContext, Result, SureTime, Timestamp};
use std::sync::Arc;

/// How long people can see what a call said, after the approval ended. Units: seconds. Source: F8.6.
const SHOWN_SECS: i64 = 30 * 86_400;
/// How long an approval is kept after its end. Units: seconds. Source: F8.9.
const KEPT_SECS: i64 = 400 * 86_400;

/// The area.
pub static AREA: Area = Area {
    toolsets: &[Toolset {
        place: 0,
        name: "mcp_approvals",
        says: "Calls that wait for somebody's yes.",
        title: "MCP approvals",
        holds: "approvals of calls",
    }],
    scopes: &[
        scope("mcp_approvals:read").readers(),
        scope("mcp_approvals:write"),
        scope("mcp_approvals:request")
            .says("Ask for approvals")
            .held_by(&[Operator, Auditor, Viewer, Member]),
        scope(rights::DECIDE)
            .says("Approve calls of others, which pass then")
            .lasting(),
    ],
    operations,
    fences: Some(&fences::FENCES),
    migrations: &migrations![
        "0043_approvals",
        "0049_approval_routes",
        "0055_approval_gains",
        "0057_approval_delegations"
    ],
    statements: &[store::STATEMENTS, routes::STATEMENTS, delegations::STATEMENTS],
    rights: ends::RIGHTS,
    retakings: ends::RETAKINGS,
    timers: &[every(60, "approvals", |kernel, _| Box::pin(sweep(kernel)))],
    on: &[
        &Subscriber(principal_ended),
        &Subscriber(account_narrowed),
        &Subscriber(policy_changed),
        &Answers(second_person::named),
        &Answers(second_person::passage),
        &Answers(second_person::waiting),
        &Subscriber(second_person::acts_changed),
    ],
    prune: Some(prune),
    sealing_keys: Some(store::sealing_keys),
    restore: Some(end_every),
    check: Check::Find(store::broken_invariants),
    guides: &[provost_kernel::guide!("approvals", "Approve a call")],
    floor: 5,
    ..Area::named("approvals", "Calls that pass once when somebody has said yes")
};

fn operations() -> Vec<Entry> {
    let mut all = vec![
        Entry::of::<list::ListApprovals>(),
        Entry::of::<ask::AskApproval>(),
        Entry::of::<own::ListOwnApprovals>(),
        Entry::of::<get::GetApproval>(),
        Entry::of::<decide::DecideApproval>(),
        Entry::of::<verbs::CancelApproval>(),
        Entry::of::<verbs::RevokeApproval>(),
    ];
    all.extend(routes::operations());
    all.extend(delegations::operations());
    all
}

/// Returns the refusal of an act, in words.
fn refused(refusal: Refusal, approval: &Approval, now: Timestamp) -> Error {
    let id = approval.id.as_str();
    match refusal {
        Refusal::Stands(state) => {
            let code = if state.is_ended() {
                Code::AlreadyTerminal
            } else {
                Code::Conflict
            };
            Error::new(code, format!("the approval {id} is {}", state.as_str()))
                .with("status", state.as_str())
        }
        Refusal::Own => Error::new(
            Code::EscalationForbidden,
            "who asked for an approval, whom it is for, who owns, made or changed an account of the two, and whom one of these gave a \
             role or a sign-in since, do not vote on it; somebody else decides",
        ),
        Refusal::NotAPerson => Error::new(
            Code::EscalationForbidden,
            "people approve calls, and no service account does: nobody can say who has its token; sign in as a user of the directory",
        ),
        Refusal::MayNotDecide => Error::new(
            Code::EscalationForbidden,
            "the route of this approval names others who decide, or the caller may not decide any more; GET shows whom it names, and who \
             votes for one of them says inNameOf",
        ),
        Refusal::NotLent => Error::new(
            Code::EscalationForbidden,
            "inNameOf names nobody who has lent the caller a vote about this kind that holds now; the list of delegations \
             (approval-delegations) shows who has",
        ),
        Refusal::TooMany => {
            let message = format!(
                "the approval {id} has as many votes as it can have, and waits until {}",
                now.to_rfc3339()
            );
            Error::new(Code::Conflict, message)
        }
    }
}

/// Ends an open approval because what it binds moved.
fn make_void(ctx: &mut OperationContext<'_>, approval: &mut Approval, reason: &str) -> Result<()> {
    let now = ctx.latest();
    if approval.make_void(now, reason) == Effect::Changed {
        store::save(ctx, approval)?;
        ctx.emit(&fences::VOID, &fences::OfApproval::of(approval));
    }
    Ok(())
}

/// Writes down that the time of an approval ran out, if it did.
fn expire(ctx: &mut OperationContext<'_>, approval: &mut Approval) -> Result<bool> {
    if approval.expire(ctx.latest()) == Effect::Nothing {
        return Ok(false);
    }
    store::save(ctx, approval)?;
    let kind = match approval.state {
        State::Denied => &fences::DENIED,
        _ => &fences::EXPIRED,
    };
    ctx.emit(kind, &fences::OfApproval::of(approval));
    Ok(true)
}

fn make_all_void(ctx: &mut OperationContext<'_>, open: Vec<Approval>, reason: &str) -> Result<()> {
    let mut ended = Vec::with_capacity(open.len());
    for mut approval in open {
        make_void(ctx, &mut approval, reason)?;
        ended.push(approval.id.as_str().to_owned());
    }
    if !ended.is_empty() {
        ctx.change("/approvals", serde_json::json!(ended), serde_json::Value::Null);
    }
    Ok(())
}

/// Ends what is open of somebody who acts no more.
fn principal_ended(ctx: &mut OperationContext<'_>, ended: &PrincipalEnded) -> Result<()> {
    let open = store::of_party(ctx, ended.kind.as_str(), &ended.id)?;
    make_all_void(ctx, open, "subject_ended")?;
    match ended.kind {
        SubjectKind::User => delegations::end_of(ctx, &ended.id),
        SubjectKind::Group | SubjectKind::ServiceAccount => Ok(()),
    }
}

/// Ends what is open of an account that can do less.
fn account_narrowed(ctx: &mut OperationContext<'_>, narrowed: &AccountNarrowed) -> Result<()> {
    let open = store::of_party(ctx, SubjectKind::ServiceAccount.as_str(), &narrowed.id)?;
    make_all_void(ctx, open, "subject_changed")
}

/// Ends what is open and answers a policy that is another now.
fn policy_changed(ctx: &mut OperationContext<'_>, changed: &PolicyChanged) -> Result<()> {
    let mut open = store::open(ctx)?;
    open.retain(|approval| {
        approval
            .policies
            .iter()
            .any(|policy| policy.policy_id == changed.policy_id)
    });
    make_all_void(ctx, open, "policies_changed")
}

/// Ends everything that is open, in the unit that restores the organization.
fn end_every(ctx: &mut OperationContext<'_>, reason: &'static str) -> Result<()> {
    let open = store::open(ctx)?;
    make_all_void(ctx, open, reason)?;
    delegations::end_every(ctx, reason)
}

/// Removes what has been kept long enough, in every organization.
fn prune(ctx: &mut OperationContext<'_>, now: SureTime) -> Result<()> {
    store::erase_shown(ctx, now.earlier_by(SHOWN_SECS))?;
    store::forget(ctx, now.earlier_by(KEPT_SECS))?;
    delegations::forget(ctx, now.earlier_by(KEPT_SECS))
}

/// Does something to each of some approvals or delegations of every organization, in a unit of its own each: one that cannot be written keeps no other
/// one open, however many come before it.
///
/// Errors: the first that a unit had, behind all of them.
async fn each_of_all(
    kernel: &Arc<Kernel>,
    action: &'static str,
    next: fn(&mut Tx<'_>, &store::Place, Timestamp) -> Result<Vec<store::Place>>,
    now: Timestamp,
    end: fn(&mut OperationContext<'_>, &str) -> Result<()>,
) -> Result<()> {
    let (mut outcome, mut last) = (Ok(()), store::first_place());
    loop {
        let behind = last.clone();
        let some = kernel.read_system(move |tx| next(tx, &behind, now)).await?;
        let Some(place) = some.last() else {
            return outcome;
        };
        last = place.clone();
        for (organization, id) in some {
            let run = move |ctx: &mut OperationContext<'_>| end(ctx, &id);
            let organization = OrganizationId::from_store(organization);
            let written = kernel.system(organization, Some(action), run).await;
            outcome = outcome.and(written);
        }
    }
}

/// Ends what is open while the clock is behind what it showed before: once it has come there again, what is open would last anew.
///
/// Keeps AP-12.
fn end_untimed(ctx: &mut OperationContext<'_>, id: &str) -> Result<()> {
    let mut approval = store::get(ctx, &ApprovalId::from_store(id.to_owned()))?;
    ctx.target(&fences::APPROVAL, approval.id.as_str());
    let before = approval.state;
    make_void(ctx, &mut approval, "clock_set_back")?;
    ctx.change("/state", before.as_str(), approval.state.as_str());
    Ok(())
}

fn end_overdue(ctx: &mut OperationContext<'_>, id: &str) -> Result<()> {
    let mut approval = store::get(ctx, &ApprovalId::from_store(id.to_owned()))?;
    let before = approval.state;
    if expire(ctx, &mut approval)? {
        ctx.target(&fences::APPROVAL, approval.id.as_str());
        ctx.change("/state", before.as_str(), approval.state.as_str());
    }
    Ok(())
}

/// Writes down whose time ran out, if nobody doubts the clock.
async fn sweep(kernel: Arc<Kernel>) -> Result<()> {
    let undoubted = kernel.undoubted().await?;
    if kernel.is_set_back() {
        let open = |tx: &mut Tx<'_>, place: &store::Place, _| store::open_of_all(tx, place);
        let now = kernel.latest();
        let ended = each_of_all(&kernel, fences::UNTIMED, open, now, end_untimed).await;
        let (open, end) = (delegations::open_of_all, delegations::end_untimed);
        return ended.and(each_of_all(&kernel, fences::UNTIMED, open, now, end).await);
    }
    let Some(now) = undoubted else {
        return Ok(());
    };
    let now = now.instant();
    let ended = each_of_all(&kernel, fences::EXPIRY, store::overdue, now, end_overdue).await;
    let (overdue, end) = (delegations::overdue, delegations::end_overdue);
    ended.and(each_of_all(&kernel, fences::EXPIRY, overdue, now, end).await)
}
