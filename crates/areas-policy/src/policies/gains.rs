//! Who gets something by a policy: whom it names by themselves.
//!
//! An exception, a place in an access list, and the end of a policy that stops somebody give something, and which of the names of a definition do is a
//! question for whoever reads it. So nobody whom it names, before or after, is the second person of the change.
//!
//! Of a group it names those who may decide get something, unless all who may decide are in it: what everybody gets nobody gets before others, and
//! nobody would be left to say yes.

use super::model::{Policy, PolicyId};
use super::references::{self, NamedIds};
use super::store;
use provost_areas_identity::directory;
use provost_kernel::auth::Role;
use provost_kernel::error::Error;
use provost_kernel::{OperationContext, Result};
use provost_policy::Family;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};

/// LIMIT: groups, or people who may say yes, that are looked at, a statement each.
const MOST_LOOKED_AT: usize = 100;

/// Returns the ids of the accounts, and of the users who may say yes, whom a definition names, or the one that a policy has so far.
///
/// Errors: as [`inside`].
pub fn of(
    ctx: &mut OperationContext<'_>,
    family: Family,
    after: Option<&Value>,
    before: Option<&PolicyId>,
) -> Result<Vec<String>> {
    let mut named = NamedIds::default();
    if let Some(definition) = after {
        references::add_named(ctx, family, definition, &mut named)?;
    }
    if let Some(id) = before
        && let Some(policy) = store::find(ctx, id)?.filter(Policy::is_there)
        && let Some((definition, _)) = store::authored(ctx, id, policy.revision)?
    {
        let definition: Value = serde_json::from_str(&definition).map_err(Error::internal)?;
        references::add_named(ctx, family, &definition, &mut named)?;
    }
    let NamedIds {
        alone: mut ids,
        groups,
    } = named;
    let org = ctx.org();
    let deciders: BTreeSet<String> = directory::with_role(&mut ctx.tx(), org, Role::Admin)?
        .into_iter()
        .collect();
    ids.retain(|id| !id.starts_with("usr_") || deciders.contains(id));
    ids.extend(inside(ctx, &groups, &deciders)?);
    Ok(ids.into_iter().collect())
}

/// Returns those of `deciders` who are in one of the groups that some of them are not in.
///
/// Errors: `InvalidDefinition` where there are too many of both to be looked at.
fn inside(
    ctx: &mut OperationContext<'_>,
    groups: &BTreeSet<String>,
    deciders: &BTreeSet<String>,
) -> Result<BTreeSet<String>> {
    let org = ctx.org();
    let mut members: BTreeMap<&str, BTreeSet<String>> = BTreeMap::new();
    if groups.len() <= MOST_LOOKED_AT {
        for group in groups {
            let found = directory::with_role_in(&mut ctx.tx(), org, Role::Admin, group)?;
            members.insert(group, found.into_iter().collect());
        }
    } else if deciders.len() <= MOST_LOOKED_AT {
        for decider in deciders {
            for group in directory::groups_of(&mut ctx.tx(), org, decider)? {
                if let Some(group) = groups.get(&group) {
                    members.entry(group).or_default().insert(decider.clone());
                }
            }
        }
    } else {
        let message = format!(
            "where a change of policies needs two people and more than {MOST_LOOKED_AT} may say yes, a policy names at most {MOST_LOOKED_AT} groups, \
             before and after together: make several policies of it"
        );
        return Err(Error::unfit("", message));
    }
    let some = members.into_values().filter(|inside| !deciders.is_subset(inside));
    Ok(some.flatten().collect())
}
