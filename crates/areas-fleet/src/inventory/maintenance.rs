//! What is done without anybody asking: removal of what was removed long ago, the check of a store, and its restore.

use super::model::REMOVED_SECS;
use provost_kernel::db::{Row, Tx};
use provost_kernel::{OperationContext, Result, SureTime, Timestamp, params, statements};

statements! {
    /// Removes what was removed until an instant.
    FORGET = unscoped("the round is everybody's") "DELETE FROM inventory_observations WHERE removed_at < ?1";
    /// Forgets servers that nobody decided about and that stand nowhere any more.
    FORGET_SERVERS = unscoped("the round is everybody's") "DELETE FROM inventory_servers WHERE standing_by IS NULL AND NOT EXISTS (SELECT 1 FROM inventory_observations o WHERE o.organization_id = inventory_servers.organization_id AND o.server_id = inventory_servers.id)";
    /// Forgets assets that stand nowhere any more.
    FORGET_ASSETS = unscoped("the round is everybody's") "DELETE FROM inventory_assets WHERE NOT EXISTS (SELECT 1 FROM inventory_observations o WHERE o.organization_id = inventory_assets.organization_id AND o.asset_id = inventory_assets.id)";
    /// Ends every approval of an organization.
    END_APPROVALS = "UPDATE inventory_servers SET standing = 'shadow', standing_at = ?2, standing_until = NULL, standing_by = NULL, updated_at = ?2 WHERE organization_id = ?1 AND standing = 'approved'";
    /// Servers whose standing and end contradict each other.
    TORN = unscoped("a check looks at every organization") "SELECT organization_id, id FROM inventory_servers WHERE (standing = 'approved') <> (standing_until IS NOT NULL) OR standing NOT IN ('approved', 'denied', 'shadow', 'builtin') ORDER BY organization_id, id";
    /// Approved servers whose key never says wholly what runs.
    WEAK = unscoped("a check looks at every organization") "SELECT organization_id, id FROM inventory_servers WHERE standing = 'approved' AND key LIKE 'cmd:%' ORDER BY organization_id, id";
    /// Observations of servers that are not linked to one.
    LOOSE = unscoped("a check looks at every organization") "SELECT organization_id, id FROM inventory_observations WHERE (kind = 'mcp_server') <> (server_id IS NOT NULL) ORDER BY organization_id, id";
}

/// Removes what has been kept long enough, of every organization, and what then stands nowhere.
pub fn prune(ctx: &mut OperationContext<'_>, now: SureTime) -> Result<()> {
    let until = now.instant().plus_secs(-REMOVED_SECS);
    if ctx.execute(&FORGET, params![until])? > 0 {
        ctx.queue(&FORGET_SERVERS, params![])?;
        ctx.queue(&FORGET_ASSETS, params![])?;
    }
    Ok(())
}

/// Ends every approval of the organization, in the unit that restores it: one that was taken back after the backup must not come back.
/// Denials stay.
pub fn end_approvals(ctx: &mut OperationContext<'_>, _: &'static str) -> Result<()> {
    let (org, now) = (ctx.org(), ctx.now());
    ctx.queue(&END_APPROVALS, params![org, now])
}

/// Returns a sentence for everything that breaks an invariant of the area.
pub fn broken_invariants(tx: &mut Tx<'_>, _: Timestamp) -> Result<Vec<String>> {
    let found = |row: &Row<'_>| Ok((row.get::<String>(0)?, row.get::<String>(1)?));
    let mut broken = Vec::new();
    for (organization, id) in tx.query(&TORN, params![], found)? {
        broken.push(format!(
            "the MCP server {id} of {organization} has a standing that its end contradicts"
        ));
    }
    for (organization, id) in tx.query(&WEAK, params![], found)? {
        broken.push(format!(
            "the MCP server {id} of {organization} is approved though its key is weak"
        ));
    }
    for (organization, id) in tx.query(&LOOSE, params![], found)? {
        broken.push(format!(
            "the observation {id} of {organization} names a server that it is not linked to, or the other way round"
        ));
    }
    Ok(broken)
}
