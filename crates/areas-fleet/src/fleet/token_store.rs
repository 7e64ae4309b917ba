//! All SQL of the tokens of devices.

use super::model::{Device, DeviceId, DeviceTokenId};
use provost_kernel::error::Result;
use provost_kernel::token::NewToken;
use provost_kernel::{OperationContext, Timestamp, params, statements};

statements! {
    /// Makes a token of a device.
    INSERT_TOKEN = "INSERT INTO device_tokens (organization_id, id, device_id, key_thumbprint, lookup_id, token_prefix, mac, pepper_id, created_at, expires_at, replay_pending) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11)";
    /// The tokens of a device that are not revoked.
    TOKENS = "SELECT id FROM device_tokens WHERE organization_id = ?1 AND device_id = ?2 AND revoked_at IS NULL ORDER BY created_at, id";
    /// Revokes a token of a device.
    REVOKE_TOKEN = "UPDATE device_tokens SET revoked_at = ?3, revoke_reason = ?4, replay_pending = ?5 WHERE organization_id = ?1 AND id = ?2 AND revoked_at IS NULL";
    /// The tokens of a device that were made after an instant, are not revoked, and that nobody used.
    UNUSED = "SELECT id FROM device_tokens WHERE organization_id = ?1 AND device_id = ?2 AND created_at > ?3 AND revoked_at IS NULL AND replay_pending = ?4 ORDER BY created_at, id";
    /// How many tokens of a device work.
    COUNT_LIVING = "SELECT COUNT(*) FROM device_tokens WHERE organization_id = ?1 AND device_id = ?2 AND revoked_at IS NULL AND expires_at > ?3";
    /// Has the tokens of a device that were made until an instant end at another at the latest.
    SHORTEN = "UPDATE device_tokens SET expires_at = ?4 WHERE organization_id = ?1 AND device_id = ?2 AND created_at <= ?3 AND revoked_at IS NULL AND expires_at > ?4";
}

/// Stores a new token of a device.
pub fn insert_token(
    ctx: &mut OperationContext<'_>,
    device: &Device,
    id: &DeviceTokenId,
    minted: &NewToken,
    expires_at: Timestamp,
) -> Result<()> {
    let (org, now) = (ctx.org(), ctx.now());
    let (pepper, mac) = ctx.services().keys.token_mac_current(minted.token.expose());
    ctx.queue(
        &INSERT_TOKEN,
        params![
            org,
            id.as_str(),
            device.id.as_str(),
            device.key_thumbprint.as_str(),
            minted.lookup_id.as_str(),
            minted.prefix.as_str(),
            mac.as_slice(),
            pepper.as_str(),
            now,
            expires_at,
            true,
        ],
    )
}

/// Revokes every token of a device, with what could repeat them, and returns how many.
pub fn revoke_tokens(ctx: &mut OperationContext<'_>, device: &DeviceId, reason: &str) -> Result<usize> {
    let (org, now) = (ctx.org(), ctx.now());
    let tokens = ctx.query(&TOKENS, params![org, device.as_str()], |row| row.get::<String>(0))?;
    for id in &tokens {
        ctx.queue(&REVOKE_TOKEN, params![org, id.as_str(), now, reason, false])?;
        ctx.erase_replay(id)?;
    }
    Ok(tokens.len())
}

/// Revokes one token of a device, and says whether it worked.
pub fn revoke_token(ctx: &mut OperationContext<'_>, id: &str, reason: &str) -> Result<bool> {
    let (org, now) = (ctx.org(), ctx.now());
    let revoked = ctx.execute(&REVOKE_TOKEN, params![org, id, now, reason, false])?;
    ctx.erase_replay(id)?;
    Ok(revoked == 1)
}

/// Revokes the tokens of a device that were made after an instant and that nobody used: successors whose answers were lost.
pub fn revoke_unused(ctx: &mut OperationContext<'_>, device: &DeviceId, made_after: Timestamp) -> Result<()> {
    let org = ctx.org();
    let unused = ctx.query(&UNUSED, params![org, device.as_str(), made_after, true], |row| {
        row.get::<String>(0)
    })?;
    for id in &unused {
        revoke_token(ctx, id, "superseded")?;
    }
    Ok(())
}

/// Returns how many tokens of a device work.
pub fn count_living(ctx: &mut OperationContext<'_>, device: &DeviceId) -> Result<i64> {
    let (org, now) = (ctx.org(), ctx.now());
    let found = ctx.query_opt(&COUNT_LIVING, params![org, device.as_str(), now], |row| {
        row.get::<i64>(0)
    })?;
    Ok(found.unwrap_or(0))
}

/// Has the tokens of a device that were made until an instant end at another at the latest.
pub fn shorten_tokens(
    ctx: &mut OperationContext<'_>,
    device: &DeviceId,
    made_until: Timestamp,
    end: Timestamp,
) -> Result<()> {
    let org = ctx.org();
    ctx.queue(&SHORTEN, params![org, device.as_str(), made_until, end])
}
