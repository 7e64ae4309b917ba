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
use provost_kernel::operation::Operation;
use provost_kernel::{Cx, Result, SureTime, Timestamp, params, statements};

statements! {
    /// Says whether the audit log knows of a principal's fetches in an hour.
    IS_TOLD = "SELECT hour FROM managed_config_pulls WHERE organization_id = ?1 AND profile_id = ?2 AND principal_id = ?3 AND hour = ?4";
    /// Remembers that it does, once.
    TELL = "INSERT INTO managed_config_pulls (organization_id, profile_id, principal_id, hour) VALUES (?1, ?2, ?3, ?4) ON CONFLICT DO NOTHING";
    /// Forgets hours that are long over.
    FORGET_HOURS = unscoped("the reconciler serves every organization") "DELETE FROM managed_config_pulls WHERE hour < ?1";
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
    pub fn of(cx: &Cx<'_>) -> Self {
        Self {
            actor: cx.actor().clone(),
            origin: cx.origin().cloned(),
        }
    }
}

/// Returns the hour of an instant. Units: hours since the Unix epoch.
fn hour(at: Timestamp) -> i64 {
    at.as_ms().div_euclid(HOUR_MS)
}

/// Says whether the audit log knows already that the caller fetches in this hour.
pub fn is_told(cx: &mut Cx<'_>, profile: &ProfileId) -> Result<bool> {
    let (org, actor, hour) = (cx.org(), cx.actor(), hour(cx.now()));
    let sought = params![org, profile.as_str(), actor.id.as_str(), hour];
    Ok(cx.query_opt(&IS_TOLD, sought, |_| Ok(()))?.is_some())
}

/// Leaves the entry of this hour, unless another fetch of the caller left it.
pub fn tell(cx: &mut Cx<'_>, profile: &ProfileId, caller: &Caller) -> Result<()> {
    let (org, hour) = (cx.org(), hour(cx.now()));
    let row = params![org, profile.as_str(), caller.actor.id.as_str(), hour];
    // INVARIANT MC-10: one entry for each principal, profile and hour; it is durable before the values are sent.
    if cx.execute(&TELL, row)? == 1 {
        cx.action(GetCurrent::META.id);
        cx.target(&fences::PROFILE, profile.as_str());
        cx.in_the_name_of(caller.actor.clone(), caller.origin.clone());
    }
    Ok(())
}

/// Forgets the hours that are long over.
pub fn forget(cx: &mut Cx<'_>, now: SureTime) -> Result<()> {
    let before = hour(now.instant()) - KEPT_HOURS;
    cx.queue(&FORGET_HOURS, params![before])
}
