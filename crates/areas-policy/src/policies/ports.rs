//! What other areas ask of policies: the set that decides now or decided then, and sets that might.

use super::model::{Policy, PolicyId};
use super::{compiled, references, store};
use provost_kernel::announcement::Announcement;
use provost_kernel::db::Tx;
use provost_kernel::error::Error;
use provost_kernel::{OperationContext, Result};
use provost_policy::{Definition, Family, PolicySet, set_digest};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::BTreeMap;
use std::sync::Arc;

/// The version that stands before the first write: number 0, no policy.
const EMPTY_VERSION: &str = "psv_00000000000000000000000000";

/// A version of the policy set, compiled.
#[derive(Clone, Debug)]
pub struct Live {
    /// Its id.
    pub version_id: String,
    /// Its number.
    pub sequence: i64,
    /// Its policies.
    pub set: Arc<PolicySet>,
}

impl Live {
    fn empty() -> Result<Self> {
        let digest = set_digest([]);
        let set = match compiled::get(&digest) {
            Some(set) => set,
            None => compiled::keep(PolicySet::new([]).map_err(Error::internal)?),
        };
        Ok(Self {
            version_id: EMPTY_VERSION.into(),
            sequence: 0,
            set,
        })
    }

    fn of(tx: &mut Tx<'_>, org: &str, label: store::Label) -> Result<Self> {
        Ok(Self {
            set: compiled::stored(tx, org, &label)?,
            version_id: label.id,
            sequence: label.sequence,
        })
    }
}

/// Returns the set that decides now.
///
/// Errors: `Unavailable` when a stored definition cannot be read (PO-6).
/// Cost: one indexed row; after a change, once for each process, a row for each policy and the compilation.
pub fn live(tx: &mut Tx<'_>, org: &str) -> Result<Live> {
    match store::latest(tx, org)? {
        Some(label) => Live::of(tx, org, label),
        None => Live::empty(),
    }
}

/// Returns the set of a version, if there is such a version.
///
/// Errors: as [`live`].
pub fn version(tx: &mut Tx<'_>, org: &str, version_id: &str) -> Result<Option<Live>> {
    if version_id == EMPTY_VERSION {
        return Live::empty().map(Some);
    }
    let label = label(tx, org, version_id)?;
    label.map(|label| Live::of(tx, org, label)).transpose()
}

/// Returns the set of a version where nothing has to be compiled that somebody else chose: the live one, and what is kept since it was used.
///
/// Errors: as [`live`].
/// Cost: two indexed rows; as [`live`] for the live one.
pub fn version_at_hand(tx: &mut Tx<'_>, org: &str, version_id: &str) -> Result<Option<Live>> {
    let Some(label) = label(tx, org, version_id)? else {
        return Ok(None);
    };
    let is_kept = compiled::get(&label.digest).is_some();
    if !is_kept && store::latest(tx, org)?.is_none_or(|latest| latest.id != label.id) {
        return Ok(None);
    }
    Live::of(tx, org, label).map(Some)
}

/// Returns what a version is called, if there is such a version.
fn label(tx: &mut Tx<'_>, org: &str, version_id: &str) -> Result<Option<store::Label>> {
    // PostgreSQL takes no NUL in a text, and no id has one.
    if version_id.contains('\0') {
        return Ok(None);
    }
    store::by_id(tx, org, version_id)
}

/// Returns the set of a version by its number; 0 is the empty set before the first write.
///
/// Errors: `NotFound` for a number that no version has; as [`live`].
pub fn at_sequence(tx: &mut Tx<'_>, org: &str, sequence: i64) -> Result<Live> {
    if sequence == 0 {
        return Live::empty();
    }
    let label = store::by_sequence(tx, org, sequence)?;
    Live::of(
        tx,
        org,
        label.ok_or_else(|| Error::not_found("policy set version"))?,
    )
}

/// A policy says something else than before, or nothing any more.
pub struct PolicyChanged {
    /// The policy.
    pub policy_id: String,
}

impl Announcement for PolicyChanged {}

/// A change of a set that somebody asks about.
#[derive(Clone, Debug)]
pub enum Change {
    /// This definition is added, or takes the place of the one with its id.
    Set {
        /// The family.
        family: Family,
        /// The definition as authored.
        definition: Value,
    },
    /// The policy is taken away.
    Remove {
        /// The family; without it, that of the stored policy.
        family: Option<Family>,
        /// The policy.
        policy_id: String,
    },
}

/// A change with its names resolved, to be kept with what asked about it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct BoundChange {
    /// The family.
    pub family: Family,
    /// The policy.
    pub policy_id: String,
    /// What would decide; without it the policy is taken away.
    pub definition: Option<Value>,
}

/// Returns candidate changes, checked and with their names resolved.
///
/// Errors: `InvalidDefinition` with JSON Pointers `/changes/<n>/definition/…` and `/changes/<n>/policyId`.
pub fn bind(ctx: &mut OperationContext<'_>, changes: &[Change]) -> Result<Vec<BoundChange>> {
    bind_at(ctx, changes, |at| format!("/changes/{at}"))
}

/// As [`bind`], for changes that stand elsewhere in a request: `place` is the pointer of the object that holds
/// `definition` or `policyId`.
pub fn bind_at(
    ctx: &mut OperationContext<'_>,
    changes: &[Change],
    place: impl Fn(usize) -> String,
) -> Result<Vec<BoundChange>> {
    let mut all = Vec::with_capacity(changes.len());
    for (at, change) in changes.iter().enumerate() {
        all.push(match change {
            Change::Set { family, definition } => {
                let base = format!("{}/definition", place(at));
                let read = compiled::definition(*family, definition);
                let read = read.map_err(|violations| references::violated(&violations, &base))?;
                let binding = references::bind(ctx, *family, definition, None, &base)?;
                BoundChange {
                    family: *family,
                    policy_id: read.id().to_owned(),
                    definition: Some(binding.definition),
                }
            }
            Change::Remove { family, policy_id } => {
                let stored = family_of(ctx, policy_id)?;
                let family = stored.filter(|stored| family.is_none_or(|family| family == *stored));
                let absent = || {
                    let message = "names no policy of this family in this organization".to_owned();
                    references::refusal([(format!("{}/policyId", place(at)), message)])
                };
                BoundChange {
                    family: family.ok_or_else(absent)?,
                    policy_id: policy_id.clone(),
                    definition: None,
                }
            }
        });
    }
    Ok(all)
}

/// Returns the set that `base` becomes with these changes; a disabled definition takes its policy away.
///
/// Errors: `Unavailable` when a definition does not read, which those of [`bind`] do.
pub fn with_changes(base: &PolicySet, changes: &[BoundChange]) -> Result<Arc<PolicySet>> {
    let own = |definition: &Arc<Definition>| {
        let key = (definition.family(), definition.id().to_owned());
        (key, definition.clone())
    };
    let mut policies: BTreeMap<(Family, String), Arc<Definition>> = base.policies().iter().map(own).collect();
    for change in changes {
        let key = (change.family, change.policy_id.clone());
        policies.remove(&key);
        if let Some(document) = &change.definition {
            let read = compiled::definition(change.family, document);
            let read = read.map_err(|violations| {
                let (policy, sentence) = (&change.policy_id, "a candidate policy does not read any more");
                tracing::error!(policy, %violations, "{sentence}");
                Error::new(provost_kernel::Code::Unavailable, format!("{sentence}: {policy}"))
            })?;
            if read.is_enabled() {
                policies.insert(key, read);
            }
        }
    }
    let digest = set_digest(policies.values().map(|p| (p.family(), p.id(), p.sha256())));
    if let Some(set) = compiled::get(&digest) {
        return Ok(set);
    }
    let set = PolicySet::new(policies.into_values()).map_err(Error::internal)?;
    Ok(compiled::keep(set))
}

/// Returns what decides of a stored policy that is not deleted, enabled or not.
pub fn stored(
    ctx: &mut OperationContext<'_>,
    family: Option<Family>,
    policy_id: &str,
) -> Result<Option<Value>> {
    let id = PolicyId::from_path(policy_id);
    let policy = store::find(ctx, &id)?.filter(Policy::is_there);
    let Some(policy) = policy.filter(|policy| family.is_none_or(|family| family == policy.family)) else {
        return Ok(None);
    };
    let text = store::bound(ctx, &id, policy.revision)?;
    let text = text.ok_or_else(|| Error::internal("a policy without its newest revision"))?;
    serde_json::from_str(&text).map(Some).map_err(Error::internal)
}

/// Returns the family of a policy, deleted or not.
pub fn family_of(ctx: &mut OperationContext<'_>, policy_id: &str) -> Result<Option<Family>> {
    let policy = store::find(ctx, &PolicyId::from_path(policy_id))?;
    Ok(policy.map(|policy| policy.family))
}
