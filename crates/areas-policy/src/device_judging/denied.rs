//! Which of the MCP servers that events name are denied.
//!
//! Keeps IN-13.

use provost_areas_fleet::inventory;
use provost_kernel::OperationContext;
use provost_kernel::error::Result;
use provost_policy::{Field, name_key};
use std::collections::{BTreeMap, BTreeSet};

/// LIMIT: keys of denied servers that are compared with a key that nobody has: as many as an organization knows servers.
const MOST_DENIED: i64 = 50_000;

/// Returns the keys of those servers that are denied, by the words that name them: their keys, and what is another spelling of one and no
/// other server's own key. As policies compare names (WD-1), a denial is no weaker than they are.
///
/// Cost: two indexed reads where the inventory has the keys; where it has one of them not, the keys of all servers that are denied.
pub fn denied_servers(
    ctx: &mut OperationContext<'_>,
    named: &BTreeSet<&str>,
) -> Result<BTreeMap<String, String>> {
    // No key has a NUL, and PostgreSQL takes no text with one; such a word may be another spelling all the same.
    let possible: BTreeSet<&str> = named.iter().copied().filter(|key| !key.contains('\0')).collect();
    let exact = inventory::denied_among(ctx, &possible)?;
    let mut denied: BTreeMap<String, String> = exact.into_keys().map(|key| (key.clone(), key)).collect();
    let mut open: BTreeSet<&str> = named.iter().copied().collect();
    open.retain(|key| !denied.contains_key(*key));
    if !open.is_empty() {
        let known = inventory::decided_among(ctx, &possible)?;
        open.retain(|key| !known.contains(*key));
    }
    if open.is_empty() {
        return Ok(denied);
    }
    let name = |key: &str| name_key(Field::MCP_PACKAGE, key).into_owned();
    let all = inventory::denied(ctx, MOST_DENIED)?;
    let by_name: BTreeMap<String, String> = all.into_iter().map(|key| (name(&key), key)).collect();
    for key in open {
        if let Some(found) = by_name.get(&name(key)) {
            denied.insert(key.to_owned(), found.clone());
        }
    }
    Ok(denied)
}
