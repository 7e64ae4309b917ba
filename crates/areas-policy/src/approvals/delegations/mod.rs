//! Delegations: for a time somebody votes in the name of somebody else, in whose place they stand in routes (F8.4).
//!
//! ```text
//!   made ──► scheduled ──from──► active ──until──► ended
//!               └──────────────────┴── taken back · one of the two acts no more · clock set back · restored
//! ```
//!
//! INVARIANT AP-19: a delegation gives nobody a right: who votes in the name of somebody may decide themselves, with a token that may, and
//! who lent the vote may decide and is let by the route, both at the moment in which the last vote comes and when the yes is used; neither of
//! the two stands behind the request. It holds for its kinds and its time alone, and what is lent is not lent on. Whoever has a place in a
//! route has one yes by it, whoever says it, and whoever says it has one yes, in how many names ever.
//!
//! Keeps AP-12.
//!
//! Absent on purpose: kinds of which the settings say who decides (`operation`): lending them would be a way around those words. And
//! delegations that somebody makes for somebody else: nobody takes a place in a route that its holder did not give away.

mod create;
mod end;
mod list;
mod model;
mod seats;
mod store;

pub use model::{Delegation, DelegationId};
pub use seats::Seats;
pub(super) use store::{STATEMENTS, forget, open_of_all, overdue};

use super::fences;
use super::model::{Kind, Lent, Party};
use provost_kernel::db::Tx;
use provost_kernel::operation::Entry;
use provost_kernel::{OperationContext, Result, Timestamp};
use serde_json::Value;

/// Returns the operations on delegations.
pub fn operations() -> Vec<Entry> {
    vec![
        Entry::of::<create::CreateDelegation>(),
        Entry::of::<list::ListDelegations>(),
        Entry::of::<end::EndDelegation>(),
    ]
}

/// Returns what somebody lent to a voter for a kind, where it holds now.
///
/// Keeps AP-19.
pub fn lent(
    tx: &mut Tx<'_>,
    org: &str,
    (from, to): (&str, &Party),
    kind: Kind,
    now: Timestamp,
) -> Result<Option<Lent>> {
    if !to.is_person() {
        return Ok(None);
    }
    for delegation in store::of_person(tx, org, from)? {
        if delegation.to_user_id == to.id && holds(tx, org, &delegation, (from, kind), now)? {
            return Ok(Some(Lent {
                user_id: delegation.from_user_id,
                delegation_id: delegation.id,
            }));
        }
    }
    Ok(None)
}

/// Says whether what a vote came by still holds.
///
/// Keeps AP-19.
pub fn still_holds(
    tx: &mut Tx<'_>,
    org: &str,
    (lent, to): (&Lent, &Party),
    kind: Kind,
    now: Timestamp,
) -> Result<bool> {
    let Some(delegation) = store::find(tx, org, &lent.delegation_id)? else {
        return Ok(false);
    };
    Ok(to.is_person()
        && delegation.to_user_id == to.id
        && holds(tx, org, &delegation, (&lent.user_id, kind), now)?)
}

/// Says whether a delegation of somebody holds for a kind now: nobody lends what is lent to them.
fn holds(
    tx: &mut Tx<'_>,
    org: &str,
    delegation: &Delegation,
    (from, kind): (&str, Kind),
    now: Timestamp,
) -> Result<bool> {
    if delegation.from_user_id != from || !delegation.lends(kind, now) {
        return Ok(false);
    }
    let others = store::of_person(tx, org, from)?;
    Ok(!others
        .iter()
        .any(|other| other.to_user_id == from && other.lends(kind, now)))
}

/// Ends a delegation, and says so once.
fn end(ctx: &mut OperationContext<'_>, mut delegation: Delegation, reason: Option<&str>) -> Result<bool> {
    let now = ctx.latest();
    let before = delegation.state_at(now);
    if delegation.ended_at.is_some() {
        return Ok(false);
    }
    delegation.ended_at = Some(now);
    delegation.end_reason = reason.map(str::to_owned);
    store::end(ctx, &delegation)?;
    ctx.target(&fences::DELEGATION, delegation.id.as_str());
    ctx.change("/state", before.as_str(), delegation.state_at(now).as_str());
    ctx.emit(&fences::DELEGATION_ENDED, &fences::OfDelegation::of(&delegation));
    Ok(true)
}

fn end_all(ctx: &mut OperationContext<'_>, open: Vec<Delegation>, reason: &str) -> Result<()> {
    let now = ctx.latest();
    let mut ended = Vec::with_capacity(open.len());
    for mut delegation in open {
        delegation.ended_at = Some(now);
        delegation.end_reason = Some(reason.to_owned());
        store::end(ctx, &delegation)?;
        ctx.emit(&fences::DELEGATION_ENDED, &fences::OfDelegation::of(&delegation));
        ended.push(delegation.id.as_str().to_owned());
    }
    if !ended.is_empty() {
        ctx.change("/delegations", serde_json::json!(ended), Value::Null);
    }
    Ok(())
}

/// Ends what somebody lent, and what was lent to them, who acts no more.
pub fn end_of(ctx: &mut OperationContext<'_>, user: &str) -> Result<()> {
    let org = ctx.org();
    let open = store::of_person(&mut ctx.tx(), org, user)?;
    end_all(ctx, open, "person_ended")
}

/// Ends everything that is lent, in the unit that restores the organization.
pub fn end_every(ctx: &mut OperationContext<'_>, reason: &'static str) -> Result<()> {
    let open = store::open(ctx)?;
    end_all(ctx, open, reason)
}

/// Ends what was lent while the clock is behind what it showed before: it would last anew.
///
/// Keeps AP-12.
pub fn end_untimed(ctx: &mut OperationContext<'_>, id: &str) -> Result<()> {
    let delegation = store::get(ctx, &DelegationId::from_store(id.to_owned()))?;
    end(ctx, delegation, Some("clock_set_back")).map(drop)
}

/// Writes down that the time of a delegation ran out.
pub fn end_overdue(ctx: &mut OperationContext<'_>, id: &str) -> Result<()> {
    let delegation = store::get(ctx, &DelegationId::from_store(id.to_owned()))?;
    if ctx.latest() < delegation.until {
        return Ok(());
    }
    end(ctx, delegation, None).map(drop)
}

/// Ends a delegation again in a store that went back behind its end.
///
/// Errors: `NotFound` where the store has none of this id.
pub fn end_again(ctx: &mut OperationContext<'_>, id: &str) -> Result<bool> {
    let delegation = store::get(ctx, &DelegationId::from_store(id.to_owned()))?;
    end(ctx, delegation, Some("lost"))
}
