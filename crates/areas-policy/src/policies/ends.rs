//! What takes away by policies, and how it is taken away again (EN-3).
//!
//! Whether a policy gives or takes depends on what it says, which no line holds: every change is one.

use super::model::PolicyId;
use super::{store, write};
use provost_areas_platform::ends::{by_hand, unclear};
use provost_kernel::area::{Again, RepeatedRevocation, Right};
use provost_kernel::db::Tx;
use provost_kernel::ends::{Revocation, RowChange};
use provost_kernel::{OperationContext, Result, Timestamp};

const POLICY: &str = "policy";
const DELETED: &str = "deleted";

/// The tables that decide what somebody may do.
pub const RIGHTS: &[Right] = &[
    Right::ending("policies", policy),
    Right::lasting(
        "policy_revisions",
        "count while a policy names them, which is a line of its own",
    ),
    Right::lasting(
        "policy_set_versions",
        "follow from the policies, whose changes are lines of their own",
    ),
];

/// The ways back.
pub const RETAKINGS: &[RepeatedRevocation] = &[RepeatedRevocation {
    what: POLICY,
    again: policy_again,
}];

fn policy(_: &mut Tx<'_>, change: &RowChange, _: Timestamp) -> Result<Vec<Revocation>> {
    let (how, side) = match (&change.was, &change.is) {
        (None, Some(is)) => ("created", is),
        (Some(was), None) => (DELETED, was),
        (Some(was), Some(is)) if is.has("deleted_at")? && !was.has("deleted_at")? => (DELETED, was),
        (Some(was), Some(is)) if !was.agrees(is, &["current_revision", "enabled", "deleted_at"])? => {
            ("changed", was)
        }
        _ => return Ok(Vec::new()),
    };
    Ok(vec![Revocation {
        what: POLICY,
        how,
        ids: side.ids(&["id"])?,
    }])
}

fn policy_again(ctx: &mut OperationContext<'_>, how: &str, ids: &[String]) -> Result<Again> {
    let [id] = ids else { return Ok(unclear()) };
    let found = store::find(ctx, &PolicyId::from_store(id.clone()))?;
    let found = found.filter(super::model::Policy::is_there);
    match (how, found) {
        (DELETED, None) => Ok(Again::Already),
        (DELETED, Some(policy)) => {
            let owner = policy.owner.clone();
            write::delete(ctx, &policy, owner)?;
            Ok(Again::Done("deleted"))
        }
        ("created", None) => by_hand("what it forbade is not forbidden now; write it again"),
        (_, None) => Ok(Again::Gone),
        (_, Some(_)) => by_hand("it says what it said before; write the newer revision again"),
    }
}
