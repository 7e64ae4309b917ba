//! Workload trusts: programs elsewhere act as a service account by tokens that their platform signs, so that they keep no
//! secret of ours.
//!
//! ```text
//! trust      active ⇄ suspended        either → deleted, by itself or with its account
//! exchange   token of the issuer ─► keys, claims, once ─► session of the account, 15 minutes at most
//! session    ends with its time, its token's `exp`, its trust (changed, suspended, deleted) or its account (disabled,
//!            narrowed, deleted)
//! ```
//!
//! A trust names an issuer, an audience and the claims that a token must have, and the account that such a workload is. What a
//! token is worth is found out at the token endpoint (`oauth::token::workload`); the session is one of `mcp_sessions`, whose
//! client is the trust, so that all that ends a client's sessions ends these.
//!
//! Keeps WO-1, WO-2.
//! INVARIANT WO-3: a session of a workload lives 15 minutes at most, is never renewed, and holds no scope with which something
//! can be made that outlives it.
//! INVARIANT WO-4: a session of a workload can do what its trust lists, within what its account can do now; it has ended when
//! its trust was changed, suspended or deleted, and when its account was narrowed, disabled or deleted.
//! INVARIANT WO-5: a token is accepted by the trust that is named alone: signed by its issuer, for the one audience, in its
//! time, with every claim; once, apart from a lost answer within 30 seconds; never one that was issued before the trust was
//! let in again.
//! INVARIANT WO-6: no token of a workload stands in a row, a log, an audit entry or an error.
//!
//! Absent on purpose: refresh tokens (a workload asks its platform for another token), patterns beyond prefixes, rules of
//! nested claims, other platforms than the three whose claims are known, trusts of people, a trust without an account.

mod create;
mod delete;
mod ends;
pub mod fences;
mod get;
mod held;
mod list;
mod maintenance;
mod model;
mod rules;
mod store;
mod update;

pub use model::{TrustId, WorkloadTrust};
pub use rules::{ClaimRule, unmet};
pub use store::{ids_of_account, resolve};

use crate::mcp_sessions;
use provost_areas_identity::subjects::SubjectKind;
use provost_areas_platform::announcements::{AccountNarrowed, Departure, PrincipalEnded};
use provost_kernel::announcement::Subscriber;
use provost_kernel::area::{Area, Check};
use provost_kernel::auth::Role::{self, Admin};
use provost_kernel::auth::{Toolset, scope};
use provost_kernel::error::Code;
use provost_kernel::migrations;
use provost_kernel::operation::{Access, Entry};
use provost_kernel::{OperationContext, Result, params};
use serde_json::{Value, json};

/// Who may write a trust: whoever may write trusts, and rotate the tokens of accounts.
const TRUSTING: Access = Access::ScopedBoth {
    scope: "workload_trusts:write",
    other: "service_accounts:rotate",
    roles: &[Admin],
};

/// The area.
pub static AREA: Area = Area {
    toolsets: &[Toolset {
        place: 21,
        name: "workload_trusts",
        says: "Which CI jobs and pods act as which service account.",
        title: "Workload trusts",
        holds: "which CI jobs and pods act as service accounts",
    }],
    scopes: &[
        scope("workload_trusts:read").held_by(&[Role::Auditor]),
        scope("workload_trusts:write").lasting(),
    ],
    operations,
    fences: Some(&fences::FENCES),
    migrations: &migrations!["0030_workload_trusts"],
    statements: &[store::STATEMENTS, held::STATEMENTS, maintenance::STATEMENTS],
    rights: ends::RIGHTS,
    retakings: ends::RETAKINGS,
    testimonies: &[&fences::TRUSTS],
    check: Check::Find(maintenance::broken_invariants),
    notes: Some(maintenance::whole_owners),
    on: &[&Subscriber(principal_ended), &Subscriber(account_narrowed)],
    held: &[held::KIND],
    guides: &[provost_kernel::guide!(
        "workload-identity",
        "Workload identity: CI without stored secrets"
    )],
    floor: 4,
    ..Area::named(
        "workload_trusts",
        "Which programs elsewhere act as service accounts, by tokens of their platform",
    )
};

fn operations() -> Vec<Entry> {
    vec![
        Entry::of::<list::ListWorkloadTrusts>(),
        Entry::of::<create::CreateWorkloadTrust>(),
        Entry::of::<get::GetWorkloadTrust>(),
        Entry::of::<update::UpdateWorkloadTrust>(),
        Entry::of::<delete::DeleteWorkloadTrust>(),
    ]
}

/// Returns a trust of the unit's organization as it is now.
pub fn find(ctx: &mut OperationContext<'_>, id: &TrustId) -> Result<Option<WorkloadTrust>> {
    match store::get(ctx, id) {
        Ok(trust) => Ok(Some(trust)),
        Err(error) if error.code() == Code::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}

/// Refuses every token that was issued until now, in the unit that accepts a loss: which of them were exchanged may be
/// forgotten.
pub fn refuse_issued(ctx: &mut OperationContext<'_>) -> Result<()> {
    let (org, now) = (ctx.org(), ctx.now());
    ctx.queue(&store::REFUSE_ISSUED, params![org, now])
}

/// Ends the sessions of a trust.
fn end_sessions(ctx: &mut OperationContext<'_>, id: &TrustId) -> Result<()> {
    mcp_sessions::end_all_of_client(ctx, id.as_str(), mcp_sessions::TRUST_CHANGED).map(drop)
}

/// Removes the trusts of an account that is deleted. Its sessions end with it.
fn principal_ended(ctx: &mut OperationContext<'_>, ended: &PrincipalEnded) -> Result<()> {
    if ended.kind != SubjectKind::ServiceAccount || ended.how != Departure::Deleted {
        return Ok(());
    }
    let trusts = store::of_account(ctx, &ended.id)?;
    for id in &trusts {
        store::delete(ctx, id)?;
        let gone = fences::OfTrust {
            workload_trust_id: id.clone(),
            service_account_id: ended.id.clone(),
        };
        ctx.emit(&fences::DELETED, &gone);
    }
    if !trusts.is_empty() {
        ctx.change("/workloadTrusts", json!(trusts), Value::Null);
    }
    Ok(())
}

/// Ends the sessions of workloads that act as an account which can do less now.
fn account_narrowed(ctx: &mut OperationContext<'_>, narrowed: &AccountNarrowed) -> Result<()> {
    for id in store::of_account(ctx, &narrowed.id)? {
        end_sessions(ctx, &id)?;
    }
    Ok(())
}
