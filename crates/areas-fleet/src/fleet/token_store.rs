//! All SQL of the tokens of devices.

use super::model::{Device, DeviceId, DeviceTokenId, MOST_LIVING};
use provost_kernel::error::Result;
use provost_kernel::token::NewToken;
use provost_kernel::{OperationContext, Timestamp, params, statements};

statements! {
    /// Makes a token of a device.
    INSERT_TOKEN = "INSERT INTO device_tokens (organization_id, id, device_id, key_thumbprint, lookup_id, token_prefix, mac, pepper_id, created_at, expires_at, replay_pending, parent_id) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12)";
    /// The tokens of a device that work, the newest first.
    TOKENS = "SELECT id FROM device_tokens WHERE organization_id = ?1 AND device_id = ?2 AND revoked_at IS NULL AND expires_at > ?3 ORDER BY created_at DESC, id DESC LIMIT ?4";
    /// How many of them there are.
    COUNT_LIVING = "SELECT COUNT(*) FROM device_tokens WHERE organization_id = ?1 AND device_id = ?2 AND revoked_at IS NULL AND expires_at > ?3";
    /// Revokes a token of a device.
    REVOKE_TOKEN = "UPDATE device_tokens SET revoked_at = ?3, revoke_reason = ?4, replay_pending = ?5 WHERE organization_id = ?1 AND id = ?2 AND revoked_at IS NULL";
    /// The tokens of a device beside its key that nobody used.
    UNUSED = "SELECT id FROM device_tokens WHERE organization_id = ?1 AND device_id = ?2 AND revoked_at IS NULL AND replay_pending = ?3 AND key_thumbprint = ?4 ORDER BY created_at, id";
    /// The successors of a token that nobody used and that were made until an instant.
    UNUSED_SUCCESSORS = "SELECT id FROM device_tokens WHERE organization_id = ?1 AND parent_id = ?2 AND created_at <= ?3 AND revoked_at IS NULL AND replay_pending = ?4 ORDER BY created_at, id";
    /// The tokens of a device that work, but for one, that nobody used and that were made until an instant.
    UNUSED_LONG = "SELECT id FROM device_tokens WHERE organization_id = ?1 AND device_id = ?2 AND created_at <= ?3 AND revoked_at IS NULL AND replay_pending = ?4 AND expires_at > ?5 AND id <> ?6 ORDER BY created_at, id LIMIT ?7";
    /// How many successors of a token work.
    COUNT_SUCCESSORS = "SELECT COUNT(*) FROM device_tokens WHERE organization_id = ?1 AND parent_id = ?2 AND revoked_at IS NULL AND expires_at > ?3";
    /// A successor of a token that was made until an instant and that somebody used.
    USED_SUCCESSOR = "SELECT id FROM device_tokens WHERE organization_id = ?1 AND parent_id = ?2 AND created_at <= ?4 AND replay_pending = ?3 AND COALESCE(revoke_reason, '') <> 'superseded' ORDER BY created_at, id LIMIT 1";
    /// How many keys that a device gave up have a token that works.
    COUNT_FORMER = "SELECT COUNT(DISTINCT key_thumbprint || '') FROM device_tokens WHERE organization_id = ?1 AND device_id = ?2 AND revoked_at IS NULL AND expires_at > ?3 AND key_thumbprint <> ?4";
    /// A token beside a key that somebody used, of whatever device.
    USED_BESIDE = "SELECT id FROM device_tokens WHERE organization_id = ?1 AND key_thumbprint = ?2 AND replay_pending = ?3 AND COALESCE(revoke_reason, '') <> 'superseded' ORDER BY id LIMIT 1";
    /// A token beside a key, of whatever device.
    BESIDE = "SELECT id FROM device_tokens WHERE organization_id = ?1 AND key_thumbprint = ?2 ORDER BY id LIMIT 1";
    /// How many tokens there are beside a key, those that ended too.
    COUNT_BESIDE = "SELECT COUNT(*) FROM device_tokens WHERE organization_id = ?1 AND key_thumbprint = ?2";
}

/// Stores a new token of a device.
pub fn insert_token(
    ctx: &mut OperationContext<'_>,
    device: &Device,
    id: &DeviceTokenId,
    minted: &NewToken,
    expires_at: Timestamp,
    parent: Option<&str>,
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
            parent,
        ],
    )
}

/// LIMIT: tokens of a device that one unit revokes. Ours: a device has fewer that work, unless it had more before there was a bound.
pub const MOST_REVOKED: usize = 128;

/// Revokes the tokens of a device, with what could repeat them, up to [`MOST_REVOKED`], and returns how many worked. Those that ran out
/// are left as they are: a device has ever more of them.
pub fn revoke_tokens(ctx: &mut OperationContext<'_>, device: &DeviceId, reason: &str) -> Result<usize> {
    let (org, now) = (ctx.org(), ctx.now());
    let living = count_living(ctx, device)?;
    let most = i64::try_from(MOST_REVOKED).unwrap_or(i64::MAX);
    let tokens = ctx.query(&TOKENS, params![org, device.as_str(), now, most], |row| {
        row.get::<String>(0)
    })?;
    for id in &tokens {
        ctx.queue(&REVOKE_TOKEN, params![org, id.as_str(), now, reason, false])?;
        ctx.erase_replay(id)?;
    }
    Ok(usize::try_from(living).unwrap_or(usize::MAX))
}

/// Returns how many tokens of a device work.
pub fn count_living(ctx: &mut OperationContext<'_>, device: &DeviceId) -> Result<i64> {
    let (org, now) = (ctx.org(), ctx.now());
    let found = ctx.query_opt(&COUNT_LIVING, params![org, device.as_str(), now], |row| {
        row.get::<i64>(0)
    })?;
    Ok(found.unwrap_or(0))
}

/// Revokes the tokens of a device that nobody used and that were made until an instant, but for one.
pub fn revoke_unused_long(
    ctx: &mut OperationContext<'_>,
    device: &DeviceId,
    made_until: Timestamp,
    but: &str,
) -> Result<()> {
    let (org, now) = (ctx.org(), ctx.now());
    let params = params![org, device.as_str(), made_until, true, now, but, MOST_LIVING];
    let unused = ctx.query(&UNUSED_LONG, params, |row| row.get::<String>(0))?;
    supersede(ctx, &unused)
}

/// Revokes one token of a device, and says whether it worked.
pub fn revoke_token(ctx: &mut OperationContext<'_>, id: &str, reason: &str) -> Result<bool> {
    let (org, now) = (ctx.org(), ctx.now());
    let revoked = ctx.execute(&REVOKE_TOKEN, params![org, id, now, reason, false])?;
    ctx.erase_replay(id)?;
    Ok(revoked == 1)
}

/// Revokes the tokens of a device beside its key that nobody used: the answers that brought them were lost.
pub fn revoke_unused(ctx: &mut OperationContext<'_>, device: &Device) -> Result<()> {
    let org = ctx.org();
    let (id, key) = (device.id.as_str(), device.key_thumbprint.as_str());
    let unused = ctx.query(&UNUSED, params![org, id, true, key], |row| row.get::<String>(0))?;
    supersede(ctx, &unused)
}

/// Revokes the successors of a token that nobody used and that were made until an instant.
pub fn revoke_unused_successors(
    ctx: &mut OperationContext<'_>,
    token: &str,
    made_until: Timestamp,
) -> Result<()> {
    let org = ctx.org();
    let params = params![org, token, made_until, true];
    let unused = ctx.query(&UNUSED_SUCCESSORS, params, |row| row.get::<String>(0))?;
    supersede(ctx, &unused)
}

fn supersede(ctx: &mut OperationContext<'_>, tokens: &[String]) -> Result<()> {
    for id in tokens {
        revoke_token(ctx, id, "superseded")?;
    }
    Ok(())
}

/// Returns how many successors of a token work.
pub fn count_successors(ctx: &mut OperationContext<'_>, token: &str) -> Result<i64> {
    let (org, now) = (ctx.org(), ctx.now());
    let found = ctx.query_opt(&COUNT_SUCCESSORS, params![org, token, now], |row| {
        row.get::<i64>(0)
    })?;
    Ok(found.unwrap_or(0))
}

/// Says whether somebody called with a successor of a token that was made until an instant.
pub fn has_used_successor(
    ctx: &mut OperationContext<'_>,
    token: &str,
    made_until: Timestamp,
) -> Result<bool> {
    let org = ctx.org();
    let found = ctx.query_opt(&USED_SUCCESSOR, params![org, token, false, made_until], |row| {
        row.get::<String>(0)
    })?;
    Ok(found.is_some())
}

/// Returns how many keys that a device gave up have a token that works.
pub fn count_former(ctx: &mut OperationContext<'_>, device: &Device) -> Result<i64> {
    let (org, now) = (ctx.org(), ctx.now());
    let (id, key) = (device.id.as_str(), device.key_thumbprint.as_str());
    let found = ctx.query_opt(&COUNT_FORMER, params![org, id, now, key], |row| row.get::<i64>(0))?;
    Ok(found.unwrap_or(0))
}

/// Says whether a key is or was a device's of the organization, as far as its tokens are kept.
pub fn is_known_key(ctx: &mut OperationContext<'_>, key: &str) -> Result<bool> {
    let org = ctx.org();
    let found = ctx.query_opt(&BESIDE, params![org, key], |row| row.get::<String>(0))?;
    Ok(found.is_some())
}

/// Returns how many tokens there are beside a key, those that ended too.
pub fn count_beside(ctx: &mut OperationContext<'_>, key: &str) -> Result<i64> {
    let org = ctx.org();
    let found = ctx.query_opt(&COUNT_BESIDE, params![org, key], |row| row.get::<i64>(0))?;
    Ok(found.unwrap_or(0))
}

/// Says whether somebody called with a key.
pub fn is_used_key(ctx: &mut OperationContext<'_>, key: &str) -> Result<bool> {
    let org = ctx.org();
    let found = ctx.query_opt(&USED_BESIDE, params![org, key, false], |row| row.get::<String>(0))?;
    Ok(found.is_some())
}
