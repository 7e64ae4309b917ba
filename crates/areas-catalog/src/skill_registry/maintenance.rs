//! What the operator's commands ask of the area: the check of a store and the restore of a backup (D12.9).

use provost_kernel::db::Tx;
use provost_kernel::{OperationContext, Result, params, statements};

statements! {
    /// Revokes every gateway token of an organization that is not revoked.
    REVOKE_EVERY = "UPDATE gateway_tokens SET revoked_at = ?2, updated_at = ?2, revoke_reason = ?3, replay_pending = ?4 WHERE organization_id = ?1 AND revoked_at IS NULL";
    /// Tokens that are not revoked and whose install is not in use (SK-4).
    ORPHANED = unscoped("a check looks at every organization") "SELECT t.organization_id, t.id \
        FROM gateway_tokens t JOIN skill_installs s ON s.organization_id = t.organization_id \
        AND s.id = t.install_id \
        WHERE t.revoked_at IS NULL AND s.status <> 'installed' ORDER BY t.organization_id, t.id LIMIT 20";
}

/// Revokes every gateway token of the organization, in the unit that restores it.
pub fn revoke_every_token(ctx: &mut OperationContext<'_>, reason: &str) -> Result<()> {
    let (org, now) = (ctx.org(), ctx.now());
    ctx.queue(&REVOKE_EVERY, params![org, now, reason, false])
}

/// Returns a sentence for every record that breaks an invariant of the area.
pub fn broken_invariants(tx: &mut Tx<'_>) -> Result<Vec<String>> {
    tx.query(&ORPHANED, params![], |row| {
        Ok(format!(
            "the gateway token {} of {} is not revoked although its skill was uninstalled",
            row.str(1)?,
            row.str(0)?
        ))
    })
}
