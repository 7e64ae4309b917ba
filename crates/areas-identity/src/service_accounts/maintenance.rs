//! What the operator's commands ask of the area: the check of a store and the restore of a backup (D12.9).

use provost_kernel::db::Tx;
use provost_kernel::{OperationContext, Result, Timestamp, params, statements};

statements! {
    /// Revokes every token of an organization that is not revoked.
    REVOKE_EVERY = "UPDATE service_account_tokens SET revoked_at = ?2, updated_at = ?2, revoke_reason = ?3, replay_pending = ?4 WHERE organization_id = ?1 AND revoked_at IS NULL";
    /// Accounts with more than one current token, or more than one in grace (SA-1).
    CROWDED = unscoped("a check looks at every organization") "SELECT organization_id, service_account_id, CASE WHEN superseded_by_id IS NULL THEN 1 ELSE 0 END, COUNT(*) FROM service_account_tokens WHERE revoked_at IS NULL AND expires_at > ?1 GROUP BY 1, 2, 3 HAVING COUNT(*) > 1 ORDER BY 1, 2, 3";
    /// Tokens of a deleted account that are not revoked (SA-5).
    UNDEAD = unscoped("a check looks at every organization") "SELECT t.organization_id, t.id \
        FROM service_account_tokens t JOIN service_accounts a ON a.organization_id = t.organization_id \
        AND a.id = t.service_account_id \
        WHERE a.deleted_at IS NOT NULL AND t.revoked_at IS NULL ORDER BY t.organization_id, t.id LIMIT 20";
}

/// Revokes every token of the organization, in the unit that restores it.
pub fn revoke_every_token(ctx: &mut OperationContext<'_>, reason: &str) -> Result<()> {
    let (org, now) = (ctx.org(), ctx.now());
    ctx.queue(&REVOKE_EVERY, params![org, now, reason, false])
}

/// Returns a sentence for every record that breaks an invariant of the area.
pub fn broken_invariants(tx: &mut Tx<'_>, now: Timestamp) -> Result<Vec<String>> {
    let mut found = tx.query(&CROWDED, params![now], |row| {
        let kind = if row.get::<i64>(2)? == 1 {
            "current tokens"
        } else {
            "superseded tokens in grace"
        };
        let (organization, account, count) = (row.str(0)?, row.str(1)?, row.get::<i64>(3)?);
        Ok(format!(
            "the service account {account} of {organization} has {count} {kind}; it may have one"
        ))
    })?;
    found.extend(tx.query(&UNDEAD, params![], |row| {
        Ok(format!(
            "the token {} of {} belongs to a deleted account and is not revoked",
            row.str(1)?,
            row.str(0)?
        ))
    })?);
    Ok(found)
}
