//! Who gets something by a policy: whom it names by themselves.
//!
//! An exception, a place in an access list, and the end of a policy that stops somebody give something, and which of the names of a definition do is a
//! question for whoever reads it. So nobody whom it names, before or after, is the second person of the change.
//!
//! Absent on purpose: groups. Policies are about groups that everybody is in, and nobody would be left to say yes.

use super::model::{Policy, PolicyId};
use super::{references, store};
use provost_areas_identity::directory;
use provost_kernel::auth::Role;
use provost_kernel::error::Error;
use provost_kernel::{OperationContext, Result};
use provost_policy::Family;
use serde_json::Value;
use std::collections::BTreeSet;

/// Returns the ids of the accounts, and of the users who may say yes, whom a definition names, or the one that a policy has so far.
pub fn of(
    ctx: &mut OperationContext<'_>,
    family: Family,
    after: Option<&Value>,
    before: Option<&PolicyId>,
) -> Result<Vec<String>> {
    let mut ids = BTreeSet::new();
    if let Some(definition) = after {
        ids.extend(references::named_alone(ctx, family, definition)?);
    }
    if let Some(id) = before
        && let Some(policy) = store::find(ctx, id)?.filter(Policy::is_there)
        && let Some((definition, _)) = store::authored(ctx, id, policy.revision)?
    {
        let definition: Value = serde_json::from_str(&definition).map_err(Error::internal)?;
        ids.extend(references::named_alone(ctx, family, &definition)?);
    }
    let org = ctx.org();
    let deciders: BTreeSet<String> = directory::with_role(&mut ctx.tx(), org, Role::Admin)?
        .into_iter()
        .collect();
    ids.retain(|id| !id.starts_with("usr_") || deciders.contains(id));
    Ok(ids.into_iter().collect())
}
