//! Which fetches of clear values the audit log knows: one entry for each principal, profile and hour.
//!
//! ```text
//! fetch ─► the hour's row is there ─► answer
//!       └► it is not ─► entry and row in one unit, durable ─► answer
//! ```
//!
//! A server that cannot write gives no clear values in an hour in which it has not noted any: what is not remembered is
//! not given (D12.7).

use super::current::GetCurrent;
use super::model::ProfileId;
use crate::managed_config::fences;
use provost_kernel::auth::{Actor, Origin};
use provost_kernel::context::PRUNED_ROWS;
use provost_kernel::operation::Operation;
use provost_kernel::{OperationContext, Result, SureTime, Timestamp, params, statements};

statements! {
    /// Says whether the audit log knows of a principal's fetches in an hour.
    IS_TOLD = "SELECT hour FROM managed_config_pulls WHERE organization_id = ?1 AND profile_id = ?2 AND principal_id = ?3 AND hour = ?4";
    /// Remembers that it does, once.
    TELL = "INSERT INTO managed_config_pulls (organization_id, profile_id, principal_id, hour) VALUES (?1, ?2, ?3, ?4) ON CONFLICT DO NOTHING";
    /// Forgets hours that are long over.
    FORGET_HOURS = unscoped("the reconciler serves every organization") "DELETE FROM managed_config_pulls WHERE (organization_id, profile_id, principal_id, hour) IN (SELECT p.organization_id, p.profile_id, p.principal_id, p.hour FROM managed_config_pulls p WHERE p.hour < ?1 ORDER BY p.hour, p.organization_id, p.profile_id, p.principal_id LIMIT ?2)";
}

const HOUR_MS: i64 = 3_600_000;
/// How long an hour is remembered. Units: hours.
const KEPT_HOURS: i64 = 48;

/// Who fetched, and where from.
#[derive(Clone)]
pub struct Caller {
    actor: Actor,
    origin: Option<Origin>,
}

impl Caller {
    /// Returns who calls.
    pub fn of(ctx: &OperationContext<'_>) -> Self {
        Self {
            actor: ctx.actor().clone(),
            origin: ctx.origin().cloned(),
        }
    }
}

/// Returns the hour of an instant. Units: hours since the Unix epoch.
fn hour(at: Timestamp) -> i64 {
    at.as_ms().div_euclid(HOUR_MS)
}

/// Says whether the audit log knows already that the caller fetches in this hour.
pub fn is_told(ctx: &mut OperationContext<'_>, profile: &ProfileId) -> Result<bool> {
    let (org, actor, hour) = (ctx.org(), ctx.actor(), hour(ctx.now()));
    let sought = params![org, profile.as_str(), actor.id.as_str(), hour];
    Ok(ctx.query_opt(&IS_TOLD, sought, |_| Ok(()))?.is_some())
}

/// Leaves the entry of this hour, unless another fetch of the caller left it.
pub fn tell(ctx: &mut OperationContext<'_>, profile: &ProfileId, caller: &Caller) -> Result<()> {
    let (org, hour) = (ctx.org(), hour(ctx.now()));
    let row = params![org, profile.as_str(), caller.actor.id.as_str(), hour];
    // INVARIANT MC-10: one entry for each principal, profile and hour; it is durable before the values are sent.
    if ctx.execute(&TELL, row)? == 1 {
        ctx.action(GetCurrent::META.id);
        ctx.target(&fences::PROFILE, profile.as_str());
        ctx.in_the_name_of(caller.actor.clone(), caller.origin.clone());
    }
    Ok(())
}

/// Forgets the hours that are long over.
pub fn forget(ctx: &mut OperationContext<'_>, now: SureTime) -> Result<()> {
    let before = hour(now.instant()) - KEPT_HOURS;
    ctx.prune(&FORGET_HOURS, params![before, PRUNED_ROWS])
}
