//! Which servers are denied, for whoever refuses their calls.
//!
//! Keeps IN-13.

use super::known::{KEYS, of_keys};
use provost_kernel::db::Row;
use provost_kernel::error::Result;
use provost_kernel::{OperationContext, Timestamp, params, statements};
use std::collections::{BTreeMap, BTreeSet};

statements! {
    /// The keys of the servers that are denied.
    DENIED = "SELECT key FROM inventory_servers WHERE organization_id = ?1 AND standing = 'denied' ORDER BY key LIMIT ?2";
    /// When those of fifty keys that are denied were.
    DENIED_OF = "SELECT key, standing_at FROM inventory_servers WHERE organization_id = ?1 AND standing = 'denied' AND key IN (?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16, ?17, ?18, ?19, ?20, ?21, ?22, ?23, ?24, ?25, ?26, ?27, ?28, ?29, ?30, ?31, ?32, ?33, ?34, ?35, ?36, ?37, ?38, ?39, ?40, ?41, ?42, ?43, ?44, ?45, ?46, ?47, ?48, ?49, ?50, ?51) ORDER BY key";
}

/// Returns the keys of the servers that are denied, in their order: so many at most.
pub fn denied(ctx: &mut OperationContext<'_>, most: i64) -> Result<Vec<String>> {
    let org = ctx.org();
    ctx.query(&DENIED, params![org, most], |row| row.get::<String>(0))
}

/// Returns those of these keys whose servers are denied, and since when.
pub fn denied_among(
    ctx: &mut OperationContext<'_>,
    keys: &BTreeSet<&str>,
) -> Result<BTreeMap<String, Timestamp>> {
    let org = ctx.org();
    let found = |row: &Row<'_>| Ok((row.get::<String>(0)?, row.get::<Timestamp>(1)?));
    let keys: Vec<&str> = keys.iter().copied().collect();
    let mut denied = BTreeMap::new();
    for chunk in keys.chunks(KEYS) {
        denied.extend(ctx.query(&DENIED_OF, &of_keys(&[org], chunk), found)?);
    }
    Ok(denied)
}
