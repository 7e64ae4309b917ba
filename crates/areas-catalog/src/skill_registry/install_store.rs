//! All SQL of installs and gateway tokens.
//!
//! Keeps SK-4.

use super::model::{GatewayTokenId, Install, InstallId, InstallPlace, InstallStatus, SkillItemId};
use super::reference::full_name;
use provost_kernel::db::Row;
use provost_kernel::error::{Error, Result};
use provost_kernel::{OperationContext, Timestamp, params, statements};

statements! {
    /// The installs of one principal of one item that are in use, the oldest first.
    IN_USE = "SELECT s.id, s.item_id, i.namespace, i.name, s.principal_id, s.client, s.device, s.path, \
        s.client_version, s.version, s.digest, s.status, s.installed_at, s.updated_at, s.uninstalled_at, \
        s.removed_at \
        FROM skill_installs s JOIN skill_items i ON i.organization_id = s.organization_id \
        AND i.id = s.item_id \
        WHERE s.organization_id = ?1 AND s.principal_id = ?2 AND s.item_id = ?3 AND s.status = 'installed' \
        ORDER BY s.number, s.id";
    /// One install of a principal.
    OWN = "SELECT s.id, s.item_id, i.namespace, i.name, s.principal_id, s.client, s.device, s.path, \
        s.client_version, s.version, s.digest, s.status, s.installed_at, s.updated_at, s.uninstalled_at, \
        s.removed_at \
        FROM skill_installs s JOIN skill_items i ON i.organization_id = s.organization_id \
        AND i.id = s.item_id \
        WHERE s.organization_id = ?1 AND s.principal_id = ?2 AND s.id = ?3";
    /// One page of installs, newest first.
    LIST = "SELECT s.id, s.item_id, i.namespace, i.name, s.principal_id, s.client, s.device, s.path, \
        s.client_version, s.version, s.digest, s.status, s.installed_at, s.updated_at, s.uninstalled_at, \
        s.removed_at, s.number \
        FROM skill_installs s JOIN skill_items i ON i.organization_id = s.organization_id \
        AND i.id = s.item_id \
        WHERE s.organization_id = ?1 AND s.number < ?2 \
        AND (CAST(?3 AS TEXT) IS NULL OR s.principal_id = CAST(?3 AS TEXT)) \
        AND (CAST(?4 AS TEXT) IS NULL OR s.item_id = CAST(?4 AS TEXT)) \
        AND (CAST(?5 AS TEXT) IS NULL OR s.client = CAST(?5 AS TEXT)) \
        AND (CAST(?6 AS TEXT) IS NULL OR s.status = CAST(?6 AS TEXT)) ORDER BY s.number DESC, s.id DESC \
        LIMIT ?7";
    /// Stores an install.
    INSERT = "INSERT INTO skill_installs (organization_id, id, number, item_id, principal_id, place, client, \
        client_version, device, path, version, digest, status, installed_at, updated_at) \
        SELECT ?1, CAST(?2 AS TEXT), COALESCE(MAX(number), 0) + 1, CAST(?3 AS TEXT), CAST(?4 AS TEXT), \
        CAST(?5 AS TEXT), CAST(?6 AS TEXT), CAST(?7 AS TEXT), CAST(?8 AS TEXT), CAST(?9 AS TEXT), \
        CAST(?10 AS TEXT), CAST(?11 AS TEXT), CAST(?12 AS TEXT), CAST(?13 AS BIGINT), CAST(?13 AS BIGINT) \
        FROM skill_installs \
        WHERE organization_id = ?1";
    /// Replaces what can change of an install.
    SAVE = "UPDATE skill_installs SET client_version = ?3, version = ?4, digest = ?5, status = ?6, updated_at = ?7, uninstalled_at = ?8, removed_at = ?9 WHERE organization_id = ?1 AND id = ?2";
    /// Ends the waiting for a client whose place has a new install.
    REPLACED = "UPDATE skill_installs SET status = ?5, removed_at = ?6, updated_at = ?6 WHERE organization_id = ?1 AND principal_id = ?2 AND item_id = ?3 AND place = ?4 AND status = 'pending_cleanup'";
    /// Stores a gateway token.
    INSERT_TOKEN = "INSERT INTO gateway_tokens (organization_id, id, lookup_id, token_prefix, mac, pepper_id, principal_id, item_id, install_id, created_at, updated_at, expires_at, replay_pending, came_by) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?10, ?11, ?12, ?13)";
    /// Revokes every token of one principal for one item.
    REVOKE_ALL = "UPDATE gateway_tokens SET revoked_at = ?4, updated_at = ?4, revoke_reason = ?5, replay_pending = ?6 WHERE organization_id = ?1 AND principal_id = ?2 AND item_id = ?3 AND revoked_at IS NULL RETURNING id, token_prefix";
    /// Revokes the token of one install.
    REVOKE_OF_INSTALL = "UPDATE gateway_tokens SET revoked_at = ?5, updated_at = ?5, revoke_reason = ?6, replay_pending = ?7 WHERE organization_id = ?1 AND principal_id = ?2 AND item_id = ?3 AND install_id = ?4 AND revoked_at IS NULL RETURNING id, token_prefix";
    /// Revokes every token of one principal.
    REVOKE_OF_PRINCIPAL = "UPDATE gateway_tokens SET revoked_at = ?3, updated_at = ?3, revoke_reason = ?4, replay_pending = ?5 WHERE organization_id = ?1 AND principal_id = ?2 AND revoked_at IS NULL RETURNING id, token_prefix";
    /// Revokes every token that came by a credential.
    REVOKE_OF_ORIGIN = "UPDATE gateway_tokens SET revoked_at = ?3, updated_at = ?3, revoke_reason = ?4, replay_pending = ?5 WHERE organization_id = ?1 AND came_by = ?2 AND revoked_at IS NULL RETURNING id, token_prefix";
    /// Revokes every token that came by a session that ended at an instant for a reason.
    REVOKE_OF_ENDED = "UPDATE gateway_tokens \
        SET revoked_at = ?2, updated_at = ?2, revoke_reason = ?3, replay_pending = ?4 \
        WHERE organization_id = ?1 AND revoked_at IS NULL \
        AND came_by IN (SELECT s.id FROM mcp_sessions s WHERE s.organization_id = ?1 AND s.ended_at = ?2 \
        AND s.state = 1 AND s.revoke_reason = ?3) \
        RETURNING id, token_prefix";
    /// The tokens of one principal whose answer could still be replayed.
    REPLAYABLE = "SELECT id FROM gateway_tokens WHERE organization_id = ?1 AND principal_id = ?2 AND revoked_at IS NULL AND replay_pending = ?3 ORDER BY id || ''";
}

/// What a list of installs is narrowed by.
#[derive(Default)]
pub struct InstallFilter<'a> {
    /// Only of this principal.
    pub principal_id: Option<&'a str>,
    /// Only of this item.
    pub item_id: Option<&'a str>,
    /// Only of this client.
    pub client: Option<&'a str>,
    /// Only in this state.
    pub status: Option<InstallStatus>,
}

/// A token that was just revoked.
#[derive(Debug)]
pub struct RevokedInstallToken {
    /// Its id.
    pub id: GatewayTokenId,
    /// Its public prefix.
    pub token_prefix: String,
}

fn install(row: &Row<'_>) -> Result<Install> {
    let status = InstallStatus::parse(row.str(11)?);
    Ok(Install {
        id: InstallId::from_store(row.get(0)?),
        item_id: SkillItemId::from_store(row.get(1)?),
        item_ref: full_name(row.str(2)?, row.str(3)?),
        principal_id: row.get(4)?,
        place: InstallPlace {
            client: row.get(5)?,
            device: row.get(6)?,
            path: row.get(7)?,
        },
        client_version: row.get(8)?,
        version: row.get(9)?,
        digest: row.get(10)?,
        status: status.ok_or_else(|| Error::internal("skill_installs.status is not a status"))?,
        installed_at: row.get(12)?,
        updated_at: row.get(13)?,
        uninstalled_at: row.get(14)?,
        removed_at: row.get(15)?,
    })
}

/// Returns the caller's installs of an item that are in use, the oldest first.
pub fn in_use(ctx: &mut OperationContext<'_>, item: &SkillItemId) -> Result<Vec<Install>> {
    let (org, principal) = (ctx.org(), ctx.actor().id.as_str());
    ctx.query(&IN_USE, params![org, principal, item.as_str()], install)
}

/// Returns one of the caller's installs.
///
/// Errors: `NotFound` for an unknown and for another principal's install alike.
pub fn own(ctx: &mut OperationContext<'_>, id: &InstallId) -> Result<Install> {
    let (org, principal) = (ctx.org(), ctx.actor().id.as_str());
    let found = ctx.query_opt(&OWN, params![org, principal, id.as_str()], install)?;
    found.ok_or_else(|| Error::not_found("skill install"))
}

/// Returns a page of installs below a place, newest first, each with its own place.
pub fn list(
    ctx: &mut OperationContext<'_>,
    filter: &InstallFilter<'_>,
    below: i64,
    limit: i64,
) -> Result<Vec<(i64, Install)>> {
    let org = ctx.org();
    let status = filter.status.map(InstallStatus::as_str);
    ctx.query(
        &LIST,
        params![
            org,
            below,
            filter.principal_id,
            filter.item_id,
            filter.client,
            status,
            limit
        ],
        |row| Ok((row.get(16)?, install(row)?)),
    )
}

/// Stores a new install; one at the same place whose client never called back is over with it.
pub fn insert(ctx: &mut OperationContext<'_>, install: &Install) -> Result<()> {
    let (org, place) = (ctx.org(), install.place.key());
    ctx.queue(
        &REPLACED,
        params![
            org,
            install.principal_id.as_str(),
            install.item_id.as_str(),
            place.as_str(),
            InstallStatus::Removed.as_str(),
            install.installed_at,
        ],
    )?;
    ctx.queue(
        &INSERT,
        params![
            org,
            install.id.as_str(),
            install.item_id.as_str(),
            install.principal_id.as_str(),
            place,
            install.place.client.as_str(),
            install.client_version.as_deref(),
            install.place.device.as_deref(),
            install.place.path.as_deref(),
            install.version.as_str(),
            install.digest.as_str(),
            install.status.as_str(),
            install.installed_at,
        ],
    )
}

/// Stores what changed of an install.
pub fn save(ctx: &mut OperationContext<'_>, install: &Install) -> Result<()> {
    let org = ctx.org();
    ctx.queue(
        &SAVE,
        params![
            org,
            install.id.as_str(),
            install.client_version.as_deref(),
            install.version.as_str(),
            install.digest.as_str(),
            install.status.as_str(),
            install.updated_at,
            install.uninstalled_at,
            install.removed_at,
        ],
    )
}

/// A gateway token that is stored with its MAC.
pub struct NewToken<'a> {
    /// Its id.
    pub id: &'a GatewayTokenId,
    /// The public part by which it is found.
    pub lookup_id: &'a str,
    /// Its public prefix.
    pub token_prefix: &'a str,
    /// The key that made the MAC, and the MAC.
    pub mac: (String, [u8; 32]),
    /// The end of its life.
    pub expires_at: Timestamp,
    /// The answer that issued it can be replayed.
    pub replay_pending: bool,
    /// The id of the session, or of the account's token, by which the skill was installed.
    pub came_by: Option<&'a str>,
}

/// Stores the token of an install.
pub fn insert_token(ctx: &mut OperationContext<'_>, install: &Install, token: &NewToken<'_>) -> Result<()> {
    let (org, now) = (ctx.org(), ctx.now());
    ctx.queue(
        &INSERT_TOKEN,
        params![
            org,
            token.id.as_str(),
            token.lookup_id,
            token.token_prefix,
            token.mac.1,
            token.mac.0.as_str(),
            install.principal_id.as_str(),
            install.item_id.as_str(),
            install.id.as_str(),
            now,
            token.expires_at,
            token.replay_pending,
            token.came_by,
        ],
    )
}

fn revoked(row: &Row<'_>) -> Result<RevokedInstallToken> {
    Ok(RevokedInstallToken {
        id: GatewayTokenId::from_store(row.get(0)?),
        token_prefix: row.get(1)?,
    })
}

/// Erases what could be replayed of revoked tokens, and returns them in order.
fn erased(
    ctx: &mut OperationContext<'_>,
    mut tokens: Vec<RevokedInstallToken>,
) -> Result<Vec<RevokedInstallToken>> {
    tokens.sort_by(|a, b| a.id.cmp(&b.id));
    for token in &tokens {
        ctx.erase_replay(token.id.as_str())?;
    }
    Ok(tokens)
}

/// Revokes every gateway token of the caller for an item (SK-3).
pub fn revoke_all(
    ctx: &mut OperationContext<'_>,
    item: &SkillItemId,
    reason: &str,
) -> Result<Vec<RevokedInstallToken>> {
    let (org, principal, now) = (ctx.org(), ctx.actor().id.as_str(), ctx.now());
    let tokens = ctx.query(
        &REVOKE_ALL,
        params![org, principal, item.as_str(), now, reason, false],
        revoked,
    )?;
    erased(ctx, tokens)
}

/// Revokes the token of an install, before it gets another one (SK-4).
pub fn revoke_of_install(
    ctx: &mut OperationContext<'_>,
    install: &Install,
    reason: &str,
) -> Result<Vec<RevokedInstallToken>> {
    let (org, now) = (ctx.org(), ctx.now());
    let of = [
        install.principal_id.as_str(),
        install.item_id.as_str(),
        install.id.as_str(),
    ];
    let tokens = ctx.query(
        &REVOKE_OF_INSTALL,
        params![org, of[0], of[1], of[2], now, reason, false],
        revoked,
    )?;
    erased(ctx, tokens)
}

/// Revokes every gateway token of a principal that is no more.
pub fn revoke_of_principal(
    ctx: &mut OperationContext<'_>,
    principal: &str,
    reason: &str,
) -> Result<Vec<RevokedInstallToken>> {
    let (org, now) = (ctx.org(), ctx.now());
    let tokens = ctx.query(
        &REVOKE_OF_PRINCIPAL,
        params![org, principal, now, reason, false],
        revoked,
    )?;
    erased(ctx, tokens)
}

/// Revokes every gateway token that came by a credential: the token of an account, or a session.
pub fn revoke_of_origin(
    ctx: &mut OperationContext<'_>,
    credential: &str,
    reason: &str,
) -> Result<Vec<RevokedInstallToken>> {
    let (org, now) = (ctx.org(), ctx.now());
    let tokens = ctx.query(
        &REVOKE_OF_ORIGIN,
        params![org, credential, now, reason, false],
        revoked,
    )?;
    erased(ctx, tokens)
}

/// Revokes every gateway token that came by a session that was ended at an instant for a reason.
pub fn revoke_of_ended(
    ctx: &mut OperationContext<'_>,
    at: Timestamp,
    reason: &str,
) -> Result<Vec<RevokedInstallToken>> {
    let org = ctx.org();
    let tokens = ctx.query(&REVOKE_OF_ENDED, params![org, at, reason, false], revoked)?;
    erased(ctx, tokens)
}

/// Erases what could be replayed of a principal's gateway tokens (D4.8).
pub fn erase_replays(ctx: &mut OperationContext<'_>, principal: &str) -> Result<()> {
    let org = ctx.org();
    let tokens = ctx.query(&REPLAYABLE, params![org, principal, true], |row| {
        row.get::<String>(0)
    })?;
    for token in tokens {
        ctx.erase_replay(&token)?;
    }
    Ok(())
}
