//! What is done without anybody asking: removal of what was removed long ago, the check of a store, and its restore.

use super::model::{MOST_OBSERVATIONS, MOST_REMOVED, REMOVED_SECS};
use super::uses;
use crate::fleet::{DeviceRetired, Kept, KeptFrom, KeptKind, WhatIsKept};
use provost_areas_platform::announcements::{Departure, PrincipalEnded, SubjectKind};
use provost_kernel::db::{Row, Tx};
use provost_kernel::{OperationContext, Result, SureTime, Timestamp, params, statements};

statements! {
    /// Removes what was removed until an instant.
    FORGET = unscoped("the round is everybody's") "DELETE FROM inventory_observations WHERE (organization_id, id) IN (SELECT o.organization_id, o.id FROM inventory_observations o WHERE o.removed_at < ?1 ORDER BY o.removed_at, o.organization_id, o.id LIMIT ?2)";
    /// Forgets what was used last before an instant.
    FORGET_USES = unscoped("the round is everybody's") "DELETE FROM inventory_uses WHERE (organization_id, seq) IN (SELECT u.organization_id, u.seq FROM inventory_uses u WHERE u.last_at < ?1 ORDER BY u.last_at, u.organization_id, u.seq LIMIT ?2)";
    /// Forgets what was imported last before an instant.
    FORGET_IMPORTED = unscoped("the round is everybody's") "DELETE FROM inventory_imported WHERE (organization_id, server_id, source) IN (SELECT i.organization_id, i.server_id, i.source FROM inventory_imported i WHERE i.last_at < ?1 ORDER BY i.last_at, i.organization_id, i.server_id, i.source LIMIT ?2)";
    /// Forgets servers that nobody decided about and that stand nowhere any more.
    FORGET_SERVERS = unscoped("the round is everybody's") "DELETE FROM inventory_servers WHERE (organization_id, id) IN (SELECT s.organization_id, s.id FROM inventory_servers s WHERE s.standing_by IS NULL AND s.last_seen_at < ?1 AND NOT EXISTS (SELECT 1 FROM inventory_observations o WHERE o.organization_id = s.organization_id AND o.server_id = s.id) AND NOT EXISTS (SELECT 1 FROM inventory_uses u WHERE u.organization_id = s.organization_id AND u.server_id = s.id) AND NOT EXISTS (SELECT 1 FROM inventory_imported i WHERE i.organization_id = s.organization_id AND i.server_id = s.id) ORDER BY s.last_seen_at, s.organization_id, s.id LIMIT ?2)";
    /// Forgets assets that stand nowhere any more.
    FORGET_ASSETS = unscoped("the round is everybody's") "DELETE FROM inventory_assets WHERE (organization_id, id) IN (SELECT s.organization_id, s.id FROM inventory_assets s WHERE s.last_seen_at < ?1 AND NOT EXISTS (SELECT 1 FROM inventory_observations o WHERE o.organization_id = s.organization_id AND o.asset_id = s.id) ORDER BY s.last_seen_at, s.organization_id, s.id LIMIT ?2)";
    /// Keeps that nothing of a device is there any more.
    RETIRE = "UPDATE inventory_observations SET removed_at = ?3 WHERE organization_id = ?1 AND id IN (SELECT o.id FROM inventory_observations o WHERE o.organization_id = ?1 AND o.device_id = ?2 AND o.removed_at IS NULL ORDER BY o.seq LIMIT ?4)";
    /// Keeps that more of a device was there than the unit ended that retired it.
    LEAVE = "INSERT INTO inventory_leftovers (organization_id, device_id) VALUES (?1, ?2) ON CONFLICT (organization_id, device_id) DO NOTHING";
    /// Ends the rest of such devices. It goes by them: a walk over all that are retired would be as long as ever more of them are kept.
    RETIRE_REST = unscoped("the round is everybody's") "UPDATE inventory_observations SET removed_at = ?1 WHERE (organization_id, id) IN (SELECT o.organization_id, o.id FROM inventory_leftovers l CROSS JOIN inventory_observations o WHERE o.organization_id = l.organization_id AND o.device_id = l.device_id AND o.removed_at IS NULL ORDER BY l.organization_id, l.device_id, o.seq LIMIT ?2)";
    /// Forgets those of which nothing is there any more.
    END_LEFTOVERS = unscoped("the round is everybody's") "DELETE FROM inventory_leftovers WHERE (organization_id, device_id) IN (SELECT l.organization_id, l.device_id FROM inventory_leftovers l WHERE NOT EXISTS (SELECT 1 FROM inventory_observations o WHERE o.organization_id = l.organization_id AND o.device_id = l.device_id AND o.removed_at IS NULL) ORDER BY l.organization_id, l.device_id LIMIT ?1)";
    /// Forgets how the looks at the sections of a device went.
    RETIRE_SECTIONS = "DELETE FROM inventory_sections WHERE organization_id = ?1 AND device_id = ?2";
    /// Forgets the last scan of a device.
    RETIRE_SCAN = "DELETE FROM inventory_scans WHERE organization_id = ?1 AND device_id = ?2";
    /// Erases what a device had.
    ERASE = "DELETE FROM inventory_observations WHERE organization_id = ?1 AND id IN (SELECT o.id FROM inventory_observations o WHERE o.organization_id = ?1 AND o.device_id = ?2 ORDER BY o.client, o.account, o.ident LIMIT ?3)";
    /// Ends every approval of an organization.
    END_APPROVALS = "UPDATE inventory_servers SET standing = 'shadow', standing_at = ?2, standing_until = NULL, standing_by = NULL, updated_at = ?2 WHERE organization_id = ?1 AND standing = 'approved'";
    /// Servers whose standing and end contradict each other.
    TORN = unscoped("a check looks at every organization") "SELECT organization_id, id FROM inventory_servers WHERE (standing = 'approved') <> (standing_until IS NOT NULL) OR standing NOT IN ('approved', 'denied', 'shadow', 'builtin') ORDER BY organization_id, id";
    /// Approved servers whose key never says wholly what runs.
    WEAK = unscoped("a check looks at every organization") "SELECT organization_id, id FROM inventory_servers WHERE standing = 'approved' AND SUBSTR(key, 1, 4) = 'cmd:' ORDER BY organization_id, id";
    /// Uses whose server is not there, or that name one though nothing was found.
    LOOSE_USES = unscoped("a check looks at every organization") "SELECT u.organization_id, u.server_id FROM inventory_uses u WHERE (u.certainty = 'unresolved') <> (u.server_id = '') OR (u.server_id <> '' AND NOT EXISTS (SELECT 1 FROM inventory_servers s WHERE s.organization_id = u.organization_id AND s.id = u.server_id)) ORDER BY u.organization_id, u.seq";
    /// Observations of servers that are not linked to one.
    LOOSE = unscoped("a check looks at every organization") "SELECT organization_id, id FROM inventory_observations WHERE (kind = 'mcp_server') <> (server_id IS NOT NULL) ORDER BY organization_id, id";
}

/// LIMIT: rows of a device that one unit ends or erases: a device has no more (its observations, and those that are gone). Were there more, an
/// admin's unit would last as long as the device likes; the rounds end the rest.
const MOST_OF_UNIT: i64 = MOST_OBSERVATIONS + MOST_REMOVED;
/// LIMIT: rows of each table that one round removes: a unit has a quarter of a second, and these rows stand in many indexes. Ours; the next
/// round removes more, which is a hundred thousand a day.
const MOST_OF_ROUND: i64 = 500;

/// Removes what has been kept long enough, of every organization, and what has stood nowhere for as long.
pub fn prune(ctx: &mut OperationContext<'_>, now: SureTime) -> Result<()> {
    ctx.queue(&RETIRE_REST, params![now.instant(), MOST_OF_ROUND])?;
    ctx.queue(&END_LEFTOVERS, params![MOST_OF_ROUND])?;
    let until = now.instant().plus_secs(-REMOVED_SECS);
    for statement in [
        &FORGET,
        &FORGET_USES,
        &FORGET_IMPORTED,
        &FORGET_SERVERS,
        &FORGET_ASSETS,
    ] {
        ctx.queue(statement, params![until, MOST_OF_ROUND])?;
    }
    Ok(())
}

/// Marks what a device that is retired reported as removed, in the same unit: it reports no more, so that nothing else ever would. The
/// marked rows stay for as long as everything that is removed; how the looks of the device went is forgotten at once.
pub fn device_retired(ctx: &mut OperationContext<'_>, retired: &DeviceRetired) -> Result<()> {
    let (org, now, device) = (ctx.org(), ctx.now(), retired.id.as_str());
    let ended = ctx.execute(&RETIRE, params![org, device, now, MOST_OF_UNIT])?;
    if i64::try_from(ended).unwrap_or(i64::MAX) >= MOST_OF_UNIT {
        ctx.queue(&LEAVE, params![org, device])?;
    }
    ctx.queue(&RETIRE_SECTIONS, params![org, device])?;
    ctx.queue(&RETIRE_SCAN, params![org, device])
}

/// Erases what is known of a device that reports no more, and returns of how many places that was. Each device has a bounded number of them.
pub fn erase(ctx: &mut OperationContext<'_>, device: &str) -> Result<u64> {
    let org = ctx.org();
    let erased = ctx.execute(&ERASE, params![org, device, MOST_OF_UNIT])?;
    ctx.queue(&RETIRE_SECTIONS, params![org, device])?;
    ctx.queue(&RETIRE_SCAN, params![org, device])?;
    Ok(erased)
}

/// Returns for how long what was found on devices is kept, and what their owners used.
#[expect(clippy::unnecessary_wraps, reason = "a question is answered so")]
pub fn kept(_: &mut OperationContext<'_>, _: &WhatIsKept) -> Result<Vec<Kept>> {
    Ok(vec![
        Kept::for_secs(KeptKind::Inventory, REMOVED_SECS, KeptFrom::Ended),
        Kept::for_secs(KeptKind::Uses, REMOVED_SECS, KeptFrom::Happened),
    ])
}

/// Forgets what a user used who is deleted: that is nobody's any more.
pub fn principal_ended(ctx: &mut OperationContext<'_>, ended: &PrincipalEnded) -> Result<()> {
    if ended.kind != SubjectKind::User || ended.how != Departure::Deleted {
        return Ok(());
    }
    uses::forget_user(ctx, &ended.id)
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
    for (organization, id) in tx.query(&LOOSE_USES, params![], found)? {
        broken.push(format!(
            "a use of {organization} names the server \"{id}\", which is not there or contradicts what it says of itself"
        ));
    }
    Ok(broken)
}
