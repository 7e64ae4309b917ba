//! Who manages a policy, whatever its family (client contract §3.12).
//!
//! ```text
//!   forge ──claim by (principal, labels)──► terraform ──release by the same──► forge
//! ```
//!
//! Neither changes the policy or its revision. What a principal owned that was deleted counts as the service's.
//!
//! An id may end in `/claim` or `/release`: the last segment of a POST is the act, and everything before it the id.

pub mod claim;
pub mod get;
pub mod release;

use super::model::{Policy, PolicyId};
use super::{admission, inputs, store};
use provost_kernel::{OperationContext, Result};

/// Returns a policy that an act on its authority names, at the revision that the caller saw.
///
/// Errors: `NotFound`, `Conflict`.
fn seen(ctx: &mut OperationContext<'_>, id: &PolicyId, expected_revision: i64) -> Result<Policy> {
    let policy = find(ctx, id)?;
    if policy.revision != expected_revision {
        return Err(inputs::stale(policy.revision, expected_revision));
    }
    Ok(policy)
}

/// Returns a policy of any family.
///
/// Errors: `NotFound`, also for a deleted one.
fn find(ctx: &mut OperationContext<'_>, id: &PolicyId) -> Result<Policy> {
    let found = store::find(ctx, id)?.filter(Policy::is_there);
    found.ok_or_else(admission::absent)
}
