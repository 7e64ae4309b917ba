//! Compiled policy sets, kept by their digest.
//!
//! ```text
//!   digest ──► kept? ──yes──────────────────────────────► the set
//!                 └─no─► read the definitions (those of kept sets are there) ─► compile ─► keep ─► the set
//! ```
//!
//! A digest says what a set holds, so that one entry serves every organization and every version with the same policies.
//! Nothing is compiled under the lock: two threads may compile the same set, and one of the two is kept.
//!
//! Keeps PO-6.

use super::store;
use provost_kernel::Result;
use provost_kernel::db::Tx;
use provost_kernel::error::{Code, Error};
use provost_policy::{Definition, Family, PolicySet};
use serde_json::Value;
use std::collections::HashMap;
use std::sync::{Arc, LazyLock, Mutex, MutexGuard, PoisonError, Weak};

/// LIMIT: sets that are kept; the one that was not asked for longest goes.
const KEPT: usize = 32;

#[derive(Default)]
struct CompiledSets {
    /// The one that was asked for last stands last.
    sets: Vec<Arc<PolicySet>>,
    /// The definitions of living sets, by family and digest: a new version shares nearly all of the last one's.
    definitions: HashMap<(Family, String), Weak<Definition>>,
}

static KEPT_SETS: LazyLock<Mutex<CompiledSets>> = LazyLock::new(Mutex::default);

fn kept() -> MutexGuard<'static, CompiledSets> {
    KEPT_SETS.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Returns the set of this digest, if it is kept.
pub fn get(digest: &str) -> Option<Arc<PolicySet>> {
    let mut kept = kept();
    let place = kept.sets.iter().rposition(|set| set.digest() == digest)?;
    let set = kept.sets.remove(place);
    kept.sets.push(set.clone());
    Some(set)
}

/// Keeps a set, and returns the one to use: another thread may have kept the same one before.
pub fn keep(set: PolicySet) -> Arc<PolicySet> {
    if let Some(earlier) = get(set.digest()) {
        return earlier;
    }
    let set = Arc::new(set);
    let mut kept = kept();
    for definition in set.policies() {
        let key = (definition.family(), definition.sha256().to_owned());
        kept.definitions.insert(key, Arc::downgrade(definition));
    }
    kept.sets.push(set.clone());
    if kept.sets.len() > KEPT {
        let oldest = kept.sets.remove(0);
        drop(oldest);
        kept.definitions
            .retain(|_, definition| definition.strong_count() > 0);
    }
    set
}

/// Returns a definition that a living set holds.
fn known(family: Family, sha256: &str) -> Option<Arc<Definition>> {
    kept().definitions.get(&(family, sha256.to_owned()))?.upgrade()
}

/// Returns the definition that a document spells; one that a living set holds is not read again.
pub fn definition(family: Family, document: &Value) -> Result<Arc<Definition>, provost_policy::Violations> {
    if let Some(known) = known(family, &provost_policy::document_sha256(document)) {
        return Ok(known);
    }
    Definition::read(family, document).map(Arc::new)
}

/// Returns the compiled set of a stored version.
///
/// Errors: `Unavailable` when a stored definition does not read, or the version is not what its digest says (PO-6).
pub fn stored(tx: &mut Tx<'_>, org: &str, label: &store::Label) -> Result<Arc<PolicySet>> {
    if let Some(set) = get(&label.digest) {
        return Ok(set);
    }
    let definitions = store::definitions(tx, org, label.sequence, |family, id, sha256, text| {
        if let Some(known) = known(family, sha256) {
            return Ok(known);
        }
        let document: Value = serde_json::from_str(text).map_err(Error::internal)?;
        Definition::read(family, &document).map(Arc::new).map_err(|violations| {
            tracing::error!(organization = org, policy = id, %violations, "a stored policy does not read");
            unreadable(id)
        })
    })?;
    let set = PolicySet::new(definitions).map_err(Error::internal)?;
    if set.digest() != label.digest {
        let (version, found, expected) = (&label.id, set.digest(), &label.digest);
        tracing::error!(
            organization = org,
            version,
            found,
            expected,
            "a stored policy set is not what it was"
        );
        return Err(Error::new(
            Code::Unavailable,
            "the stored policy set is not what its digest says; nothing is decided with it",
        ));
    }
    Ok(keep(set))
}

fn unreadable(id: &str) -> Error {
    let message =
        format!("the stored policy {id} cannot be read by this version; nothing is decided without it");
    Error::new(Code::Unavailable, message)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn set(skill: &str) -> PolicySet {
        let document = json!({
            "id": "one", "skillId": skill, "enabled": true, "effect": "block", "subjects": { "everyone": true },
        });
        PolicySet::new([definition(Family::SkillAcl, &document).unwrap()]).unwrap()
    }

    #[test]
    fn sets_are_kept_and_the_oldest_goes() {
        let first = keep(set("ski_first"));
        assert!(Arc::ptr_eq(&first, &keep(set("ski_first"))));
        let shared = definition(Family::SkillAcl, first.policies()[0].authored()).unwrap();
        assert!(Arc::ptr_eq(&shared, &first.policies()[0]));
        drop(shared);
        let digest = first.digest().to_owned();
        drop(first);
        for number in 0..KEPT * 2 {
            keep(set(&format!("ski_{number}")));
        }
        assert!(get(&digest).is_none());
        assert!(kept().sets.len() <= KEPT);
        assert!(kept().definitions.len() <= KEPT);
    }
}
