//! The ids that stored policies name although nothing has them any more.

use super::references::names_in;
use super::store;
use provost_areas_catalog::skill_registry;
use provost_areas_identity::words::{self, Kind, WordQuery};
use provost_kernel::{Error, OperationContext, Result};
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};

/// A record that a policy names and that is not there.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(inline)]
pub struct LostName {
    /// `user`, `group`, `service_account`, `resource` or `skill`.
    kind: &'static str,
    /// The id that it had.
    id: String,
}

/// Returns what each of the policies among these places of the list names and nothing is any more, by policy.
///
/// Cost: one read of the page's definitions, and one statement about the ids, and one for each skill.
pub fn of_page(
    ctx: &mut OperationContext<'_>,
    from: i64,
    to: i64,
) -> Result<BTreeMap<String, Vec<LostName>>> {
    let mut named: BTreeMap<String, BTreeSet<(Kind, String)>> = BTreeMap::new();
    for stored in store::newest_of_page(ctx, from, to)? {
        let definition: Value = serde_json::from_str(&stored.definition).map_err(Error::internal)?;
        let ids = names_in(stored.family, &definition).into_iter();
        let ids = ids.filter(|named| is_id(named.kind, named.name));
        named.insert(
            stored.id,
            ids.map(|named| (named.kind, named.name.to_owned())).collect(),
        );
    }
    let all: BTreeSet<(Kind, String)> = named.values().flatten().cloned().collect();
    let missing = missing(ctx, &all)?;
    let mut lost = BTreeMap::new();
    for (policy, ids) in named {
        let gone: Vec<LostName> = ids
            .intersection(&missing)
            .map(|(kind, id)| LostName {
                kind: kind.word(),
                id: id.clone(),
            })
            .collect();
        if !gone.is_empty() {
            lost.insert(policy, gone);
        }
    }
    Ok(lost)
}

fn is_id(kind: Kind, name: &str) -> bool {
    let prefix = match kind {
        Kind::User => "usr",
        Kind::Group => "grp",
        Kind::ServiceAccount => "sa",
        Kind::Resource => "res",
        Kind::Skill => "ski",
    };
    provost_kernel::id::parse(prefix, name).is_some()
}

fn missing(
    ctx: &mut OperationContext<'_>,
    all: &BTreeSet<(Kind, String)>,
) -> Result<BTreeSet<(Kind, String)>> {
    let mut asked = WordQuery::default();
    for (kind, id) in all {
        asked.add(*kind, id);
    }
    let org = ctx.org();
    let living = words::living(&mut ctx.tx(), org, &asked)?;
    let mut missing = BTreeSet::new();
    for (kind, id) in all {
        let is_there = living.of(*kind, id).iter().any(|named| named.id == *id);
        // A skill that is withdrawn keeps its record, and nobody gets it any more.
        if !is_there || (*kind == Kind::Skill && !skill_registry::is_offered(ctx, id)?) {
            missing.insert((*kind, id.clone()));
        }
    }
    Ok(missing)
}
