//! All SQL of codes, refresh tokens, identities and assertions.

use provost_kernel::auth::{OrganizationId, ScopeSet};
use provost_kernel::db::Row;
use provost_kernel::error::{Error, Result};
use provost_kernel::keys::Keys;
use provost_kernel::{OperationContext, Secret, Timestamp, params, statements};

statements! {
    /// Keeps a code's digest, unless it is there.
    ADD_CODE = "INSERT INTO oauth_codes (organization_id, digest, client_id, client_name, redirect_uri, challenge, scopes, audiences, user_id, user_display, jkt, created_at, expires_at) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13) ON CONFLICT DO NOTHING";
    /// Finds a code.
    CODE = unscoped("the digest is unique everywhere and says whose the code is") "SELECT organization_id, client_id, client_name, redirect_uri, challenge, scopes, audiences, user_id, user_display, jkt, expires_at, used_at, session_id FROM oauth_codes WHERE digest = ?1";
    /// Notes that a code was used.
    USE_CODE = "UPDATE oauth_codes SET used_at = ?3, session_id = ?4, expires_at = ?5 WHERE organization_id = ?1 AND digest = ?2";
    /// Keeps a refresh token.
    ADD_REFRESH = "INSERT INTO oauth_refresh_tokens (organization_id, lookup_id, mac, pepper_id, session_id, grant_key, generation, client_id, user_id, scopes, audiences, jkt, created_at, idle_at, ends_at) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15)";
    /// Finds a refresh token, and the newest generation of its session.
    REFRESH = unscoped("the lookup id is unique everywhere and says whose the token is") "\
        SELECT r.organization_id, r.mac, r.pepper_id, r.session_id, r.grant_key, r.generation, r.client_id, \
        r.user_id, r.scopes, r.audiences, r.jkt, r.idle_at, r.ends_at, r.superseded_at, r.lookup_id, \
        r.successor_cell, r.successor_salt, r.successor_day, r.used_from, r.repeats, \
        (SELECT MAX(n.generation) FROM oauth_refresh_tokens n WHERE n.organization_id = r.organization_id \
        AND n.session_id = r.session_id) \
        FROM oauth_refresh_tokens r \
        WHERE r.lookup_id = ?1";
    /// Supersedes what was live of a session before a generation.
    SUPERSEDE = "UPDATE oauth_refresh_tokens SET superseded_at = ?4 WHERE organization_id = ?1 AND session_id = ?2 AND generation < ?3 AND superseded_at IS NULL";
    /// Keeps with a refresh token that is used its successor, and from where it was used.
    KEEP_SUCCESSOR = "UPDATE oauth_refresh_tokens SET successor_cell = ?3, successor_salt = ?4, successor_day = ?5, used_from = ?6 WHERE organization_id = ?1 AND lookup_id = ?2";
    /// Forgets the successors of the tokens before one that is used: its own use ends their cells (D4.8).
    FORGET_SUCCESSORS = "UPDATE oauth_refresh_tokens SET successor_cell = NULL, successor_salt = NULL, successor_day = NULL WHERE organization_id = ?1 AND session_id = ?2 AND generation < ?3 AND successor_cell IS NOT NULL";
    /// Counts an answer that is given again.
    COUNT_REPEAT = "UPDATE oauth_refresh_tokens SET repeats = repeats + 1 WHERE organization_id = ?1 AND lookup_id = ?2";
    /// The visible user of an id: name, login name, role, status.
    USER = concat!("SELECT u.id, u.display_name, u.login_name, u.permission_role, u.status FROM directory_users u WHERE u.organization_id = ?1 AND u.id = ?2 AND ", provost_areas_identity::visible!("u"));
    /// The visible user of a login name in a directory.
    USER_NAMED = concat!("SELECT u.id, u.display_name, u.login_name, u.permission_role, u.status FROM directory_users u WHERE u.organization_id = ?1 AND u.name_key = ?2 AND u.directory_id = ?3 AND ", provost_areas_identity::visible!("u"));
    /// Lets an assertion serve, unless it has.
    SPEND = "INSERT INTO oauth_assertions (organization_id, digest, expires_at) VALUES (?1, ?2, ?3) ON CONFLICT DO NOTHING";
    /// How often a subject token was exchanged.
    EXCHANGES = "SELECT times FROM oauth_exchanges WHERE organization_id = ?1 AND digest = ?2";
    /// Counts an exchange of it.
    COUNT_EXCHANGE = "INSERT INTO oauth_exchanges (organization_id, digest, times, expires_at) VALUES (?1, ?2, 1, ?3) ON CONFLICT (organization_id, digest) DO UPDATE SET times = oauth_exchanges.times + 1, expires_at = excluded.expires_at";
    /// Forgets subject tokens that have run out.
    PRUNE_EXCHANGES = unscoped("retention is the same for every organization") "DELETE FROM oauth_exchanges WHERE (organization_id, digest) IN (SELECT e.organization_id, e.digest FROM oauth_exchanges e WHERE e.expires_at < ?1 ORDER BY e.expires_at, e.organization_id, e.digest LIMIT ?2)";
    /// Forgets codes that have run out.
    PRUNE_CODES = unscoped("retention is the same for every organization") "DELETE FROM oauth_codes WHERE (organization_id, digest) IN (SELECT c.organization_id, c.digest FROM oauth_codes c WHERE c.expires_at < ?1 ORDER BY c.expires_at, c.organization_id, c.digest LIMIT ?2)";
    /// Forgets refresh tokens that have run out.
    PRUNE_REFRESH = unscoped("retention is the same for every organization") "DELETE FROM oauth_refresh_tokens WHERE (organization_id, lookup_id) IN (SELECT r.organization_id, r.lookup_id FROM oauth_refresh_tokens r WHERE r.ends_at < ?1 ORDER BY r.ends_at, r.organization_id, r.lookup_id LIMIT ?2)";
    /// Forgets assertions that have run out.
    PRUNE_ASSERTIONS = unscoped("retention is the same for every organization") "DELETE FROM oauth_assertions WHERE (organization_id, digest) IN (SELECT a.organization_id, a.digest FROM oauth_assertions a WHERE a.expires_at < ?1 ORDER BY a.expires_at, a.organization_id, a.digest LIMIT ?2)";
}

/// A code as it is stored.
#[derive(Clone, Debug)]
pub struct StoredCode {
    pub organization: OrganizationId,
    pub client_id: String,
    pub client_name: Option<String>,
    pub redirect_uri: String,
    pub challenge: String,
    pub scopes: ScopeSet,
    pub audiences: Vec<String>,
    pub user_id: String,
    pub user_display: String,
    pub jkt: Option<String>,
    pub expires_at: Timestamp,
    pub used_at: Option<Timestamp>,
    pub session_id: Option<String>,
}

/// Reads a row of [`CODE`].
pub fn code(row: &Row<'_>) -> Result<StoredCode> {
    Ok(StoredCode {
        organization: OrganizationId::from_store(row.get(0)?),
        client_id: row.get(1)?,
        client_name: row.get(2)?,
        redirect_uri: row.get(3)?,
        challenge: row.get(4)?,
        scopes: ScopeSet::from_store(row.str(5)?),
        audiences: words(row.str(6)?),
        user_id: row.get(7)?,
        user_display: row.get(8)?,
        jkt: row.get(9)?,
        expires_at: row.get(10)?,
        used_at: row.get(11)?,
        session_id: row.get(12)?,
    })
}

/// A refresh token as it is stored.
#[derive(Clone, Debug)]
pub struct Refresh {
    pub organization: OrganizationId,
    pub mac: Vec<u8>,
    pub pepper_id: String,
    pub session_id: String,
    pub grant_key: String,
    pub generation: i64,
    pub client_id: String,
    pub user_id: String,
    pub scopes: ScopeSet,
    pub audiences: Vec<String>,
    pub jkt: Option<String>,
    /// The end of its life when it is not used.
    pub idle_at: Timestamp,
    /// The end of the session's life.
    pub ends_at: Timestamp,
    pub superseded_at: Option<Timestamp>,
    pub lookup_id: String,
    /// What it was answered with.
    pub successor: Option<Successor>,
    /// From where it was used.
    pub used_from: Option<Vec<u8>>,
    /// How often it was answered again.
    pub repeats: i64,
    /// The newest generation of the session.
    pub newest: i64,
}

/// The successor of a refresh token, in a cell that the token itself opens (D4.8).
#[derive(Clone, Debug)]
pub struct Successor {
    pub day: i64,
    pub salt: [u8; 16],
    pub sealed: Vec<u8>,
}

fn successor(row: &Row<'_>) -> Result<Option<Successor>> {
    let (sealed, salt, day): (Option<Vec<u8>>, Option<Vec<u8>>, Option<i64>) =
        (row.get(15)?, row.get(16)?, row.get(17)?);
    let (Some(sealed), Some(salt), Some(day)) = (sealed, salt, day) else {
        return Ok(None);
    };
    let salt = salt
        .try_into()
        .map_err(|_| Error::internal("the salt of a refresh token's successor has not 16 bytes"))?;
    Ok(Some(Successor { day, salt, sealed }))
}

/// Reads a row of [`REFRESH`].
pub fn refresh(row: &Row<'_>) -> Result<Refresh> {
    Ok(Refresh {
        organization: OrganizationId::from_store(row.get(0)?),
        mac: row.get(1)?,
        pepper_id: row.get(2)?,
        session_id: row.get(3)?,
        grant_key: row.get(4)?,
        generation: row.get(5)?,
        client_id: row.get(6)?,
        user_id: row.get(7)?,
        scopes: ScopeSet::from_store(row.str(8)?),
        audiences: words(row.str(9)?),
        jkt: row.get(10)?,
        idle_at: row.get(11)?,
        ends_at: row.get(12)?,
        superseded_at: row.get(13)?,
        lookup_id: row.get(14)?,
        successor: successor(row)?,
        used_from: row.get(18)?,
        repeats: row.get(19)?,
        newest: row.get(20)?,
    })
}

/// Returns words as they are stored.
pub fn joined(scopes: ScopeSet) -> String {
    scopes.to_list().join(" ")
}

fn words(text: &str) -> Vec<String> {
    text.split(' ')
        .filter(|word| !word.is_empty())
        .map(str::to_owned)
        .collect()
}

/// Lets an assertion serve; `false` when it has served before (OC-5).
pub fn spend(ctx: &mut OperationContext<'_>, digest: &[u8], expires_at: Timestamp) -> Result<bool> {
    let org = ctx.org();
    Ok(ctx.execute(&SPEND, params![org, digest, expires_at])? == 1)
}

/// Returns how often a subject token was exchanged.
pub fn exchanges(ctx: &mut OperationContext<'_>, digest: &[u8]) -> Result<i64> {
    let org = ctx.org();
    let times = ctx.query_opt(&EXCHANGES, params![org, digest], |row| row.get(0))?;
    Ok(times.unwrap_or(0))
}

/// Counts an exchange.
pub fn note_exchange(ctx: &mut OperationContext<'_>, digest: &[u8], expires_at: Timestamp) -> Result<()> {
    let org = ctx.org();
    ctx.queue(&COUNT_EXCHANGE, params![org, digest, expires_at])
}

impl Refresh {
    /// Says whether this is the row of a token. Constant time in the token's bytes.
    ///
    /// Errors: `Unavailable` when the row names a key that is not here.
    pub fn is_of(&self, token: &Secret<String>, keys: &Keys) -> Result<bool> {
        let mac = keys.token_mac(&self.pepper_id, token.expose())?;
        Ok(keys_equal(&mac, &self.mac))
    }
}

fn keys_equal(a: &[u8], b: &[u8]) -> bool {
    aws_lc_rs::constant_time::verify_slices_are_equal(a, b).is_ok()
}
