//! All SQL of service accounts.
//!
//! Keeps SA-4, SA-6, SA-9.

use super::FIRST_ADMIN;
use super::model::{Rights, ServiceAccount, ServiceAccountId, Status, Token, TokenId};
use crate::directory::joined_user;
use provost_areas_platform::announcements::{TokenRevoked, TokenSuperseded};
use provost_kernel::auth::{OrganizationId, Role, ScopeSet};
use provost_kernel::db::{Row, Tx};
use provost_kernel::error::{Code, Error, Result};
use provost_kernel::{OperationContext, Timestamp, params, statements};
use provost_policy::match_key;
use std::collections::HashMap;

// What other areas may ask of this area's tables, as parts of their own statements: names and ids are unique here, and
// a deleted account is none.

/// The enabled accounts of these names: kind, id, no directory, folded name.
macro_rules! accounts_of_names {
    ($list:expr) => {
        concat!(
            "SELECT 'service_account', a.id, CAST(NULL AS TEXT), a.name_key FROM service_accounts a WHERE a.organization_id = ?1 AND a.name_key IN (",
            $list,
            ") AND a.deleted_at IS NULL AND a.status = 'active'"
        )
    };
}
pub(crate) use accounts_of_names;

/// Those of these ids that accounts have, disabled ones included.
macro_rules! accounts_of_ids {
    ($list:expr) => {
        concat!(
            "SELECT a.id FROM service_accounts a WHERE a.organization_id = ?1 AND a.id IN (",
            $list,
            ") AND a.deleted_at IS NULL"
        )
    };
}
pub(crate) use accounts_of_ids;

/// The accounts of the folded name `?2`, disabled ones included: kind, id, no directory.
macro_rules! accounts_of_name {
    () => {
        "SELECT 'service_account', a.id, CAST(NULL AS TEXT) FROM service_accounts a WHERE a.organization_id = ?1 AND a.name_key = ?2 AND a.deleted_at IS NULL"
    };
}
pub(crate) use accounts_of_name;

/// Joins the account that a row of another table names, as `a`; no row for a deleted one.
#[macro_export]
macro_rules! joined_account {
    ($organization:literal, $id:literal) => {
        concat!(
            "LEFT JOIN service_accounts a ON a.organization_id = ",
            $organization,
            " AND a.id = ",
            $id,
            " AND a.deleted_at IS NULL "
        )
    };
}

statements! {
    /// The accounts that a user answers for.
    OWNED = "SELECT id FROM service_accounts WHERE organization_id = ?1 AND owner_console_user_id = ?2 AND deleted_at IS NULL ORDER BY id || '' LIMIT 100";
    /// Finds a token and its account by the token's public lookup id.
    LOOKUP = unscoped("the lookup id is unique everywhere and says whose the token is") "\
        SELECT t.organization_id, a.id, a.name, a.permission_role, a.scopes, t.scopes, a.status, t.id, \
        t.token_prefix, t.mac, t.pepper_id, t.expires_at, t.revoked_at, t.self_rotated, n.replay_pending, \
        t.replay_pending, t.last_used_at, t.created_at \
        FROM service_account_tokens t JOIN service_accounts a ON a.organization_id = t.organization_id \
        AND a.id = t.service_account_id \
        LEFT JOIN service_account_tokens n ON n.organization_id = t.organization_id \
        AND n.id = t.superseded_by_id \
        WHERE t.lookup_id = ?1 AND a.deleted_at IS NULL";
    /// One account and its listed tokens.
    GET = concat!("SELECT a.id, a.organization_id, a.name, a.description, a.permission_role, a.scopes, a.status, a.owner_console_user_id, a.created_at, a.updated_at, a.disabled_at, a.disabled_reason, t.id, t.name, t.token_prefix, t.scopes, t.created_at, t.updated_at, t.expires_at, t.last_used_at, t.revoked_at, t.revoke_reason, t.superseded_by_id, t.lifetime_ceiling_secs, u.status, a.former_role, a.former_scopes FROM service_accounts a LEFT JOIN service_account_tokens t ON t.organization_id = a.organization_id AND t.service_account_id = a.id AND t.hidden_at IS NULL ", joined_user!("a.organization_id", "a.owner_console_user_id"), "WHERE a.organization_id = ?1 AND a.id = ?2 AND a.deleted_at IS NULL");
    /// One page of accounts and their listed tokens in any order, and how many accounts there are in all. Sorting
    /// the wide rows once more would cost more than reading them.
    LIST = concat!("SELECT a.id, a.organization_id, a.name, a.description, a.permission_role, a.scopes, a.status, a.owner_console_user_id, a.created_at, a.updated_at, a.disabled_at, a.disabled_reason, t.id, t.name, t.token_prefix, t.scopes, t.created_at, t.updated_at, t.expires_at, t.last_used_at, t.revoked_at, t.revoke_reason, t.superseded_by_id, t.lifetime_ceiling_secs, u.status, a.former_role, a.former_scopes, (SELECT COUNT(*) FROM service_accounts WHERE organization_id = ?1 AND deleted_at IS NULL AND (CAST(?2 AS TEXT) IS NULL OR status = CAST(?2 AS TEXT))) FROM (SELECT id, organization_id, name, description, permission_role, scopes, status, owner_console_user_id, created_at, updated_at, disabled_at, disabled_reason, former_role, former_scopes FROM service_accounts WHERE organization_id = ?1 AND deleted_at IS NULL AND (CAST(?2 AS TEXT) IS NULL OR status = CAST(?2 AS TEXT)) AND (created_at, id) < (?5, ?6) ORDER BY created_at DESC, id DESC LIMIT ?3 OFFSET ?4) a LEFT JOIN service_account_tokens t ON t.organization_id = a.organization_id AND t.service_account_id = a.id AND t.hidden_at IS NULL ", joined_user!("a.organization_id", "a.owner_console_user_id"));
    /// How many accounts a list has in all.
    COUNT = "SELECT COUNT(*) FROM service_accounts WHERE organization_id = ?1 AND deleted_at IS NULL AND (CAST(?2 AS TEXT) IS NULL OR status = CAST(?2 AS TEXT))";
    /// Makes an account, unless the name is taken.
    INSERT = "INSERT INTO service_accounts (organization_id, id, name, name_key, description, permission_role, scopes, status, owner_console_user_id, created_at, updated_at, name_match) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?10, ?11) ON CONFLICT DO NOTHING";
    /// Says whether another account has a name.
    NAME_TAKEN = "SELECT id FROM service_accounts WHERE organization_id = ?1 AND name_key = ?2 AND id <> ?3 AND deleted_at IS NULL";
    /// Replaces what can change of an account.
    SAVE = "UPDATE service_accounts \
        SET name = ?3, name_key = ?4, description = ?5, permission_role = ?6, scopes = ?7, status = ?8, \
        owner_console_user_id = ?9, updated_at = ?10, disabled_at = ?11, disabled_reason = ?12, \
        name_match = ?13, former_role = ?14, former_scopes = ?15 \
        WHERE organization_id = ?1 AND id = ?2";
    /// Marks an account as deleted.
    DELETE = "UPDATE service_accounts SET deleted_at = ?3, updated_at = ?3 WHERE organization_id = ?1 AND id = ?2";
    /// Stores a token.
    INSERT_TOKEN = "\
        INSERT INTO service_account_tokens (organization_id, id, service_account_id, lookup_id, name, \
        token_prefix, mac, pepper_id, scopes, created_at, updated_at, expires_at, self_rotated, \
        replay_pending, lifetime_ceiling_secs) \
        VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?10, ?11, ?12, ?13, ?14)";
    /// Revokes a token that is not revoked.
    REVOKE = "UPDATE service_account_tokens SET revoked_at = ?3, updated_at = ?3, revoke_reason = ?4, superseded_by_id = COALESCE(?5, superseded_by_id), self_rotated = ?6, replay_pending = ?7 WHERE organization_id = ?1 AND id = ?2 AND revoked_at IS NULL";
    /// Lets a superseded token live until the end of its grace.
    GRACE = "UPDATE service_account_tokens SET expires_at = ?3, updated_at = ?4, superseded_by_id = ?5, replay_pending = ?6 WHERE organization_id = ?1 AND id = ?2";
    /// Hides ended tokens beyond those that a list shows.
    HIDE = "UPDATE service_account_tokens \
        SET hidden_at = ?3 \
        WHERE organization_id = ?1 AND hidden_at IS NULL \
        AND id IN (SELECT id FROM service_account_tokens WHERE organization_id = ?1 \
        AND service_account_id = ?2 AND hidden_at IS NULL ORDER BY created_at DESC, id DESC \
        LIMIT 1000 OFFSET 22) \
        AND (revoked_at IS NOT NULL OR expires_at <= ?3)";
    /// Ends the replay of a token.
    FIRST_USE = "UPDATE service_account_tokens SET replay_pending = ?3 WHERE organization_id = ?1 AND id = ?2";
    /// Notes a use.
    TOUCH = "UPDATE service_account_tokens SET last_used_at = ?3, last_used_ip = ?4 WHERE organization_id = ?1 AND id = ?2 AND (last_used_at IS NULL OR last_used_at < ?3)";
    /// The account of a token.
    ACCOUNT_OF = "SELECT service_account_id FROM service_account_tokens WHERE organization_id = ?1 AND id = ?2";
    /// Whether another account could repair the organization: one or none. Hidden tokens have ended; the index leaves them out.
    OTHER_GOVERNORS = "SELECT COUNT(*) \
        FROM (SELECT a.id FROM service_accounts a WHERE a.organization_id = ?1 AND a.id <> ?2 \
        AND a.deleted_at IS NULL AND a.status = 'active' AND a.permission_role = 'admin' \
        AND (a.scopes IS NULL OR ' ' || a.scopes || ' ' LIKE '% service_accounts:write %') AND \
        EXISTS (SELECT 1 FROM service_account_tokens t WHERE t.organization_id = a.organization_id \
        AND t.service_account_id = a.id AND t.hidden_at IS NULL AND t.revoked_at IS NULL \
        AND t.expires_at > ?3 AND (t.scopes IS NULL \
        OR ' ' || t.scopes || ' ' LIKE '% service_accounts:write %')) LIMIT 1) o";
    /// Tokens that end within a time and of which nobody was warned yet.
    EXPIRING = unscoped("the worker serves every organization") "\
        SELECT t.organization_id, t.id, t.service_account_id, t.expires_at \
        FROM service_account_tokens t JOIN service_accounts a ON a.organization_id = t.organization_id \
        AND a.id = t.service_account_id \
        WHERE t.revoked_at IS NULL AND t.superseded_by_id IS NULL AND a.deleted_at IS NULL \
        AND t.expires_at > ?1 AND t.expires_at <= ?2 \
        AND (t.expiry_warned_days IS NULL OR t.expiry_warned_days > ?3) ORDER BY t.expires_at, t.id LIMIT 200";
    /// Tokens that ended by time and of which nobody was told yet.
    EXPIRED = unscoped("the worker serves every organization") "\
        SELECT t.organization_id, t.id, t.service_account_id, t.expires_at \
        FROM service_account_tokens t JOIN service_accounts a ON a.organization_id = t.organization_id \
        AND a.id = t.service_account_id \
        WHERE t.revoked_at IS NULL AND a.deleted_at IS NULL AND t.expires_at <= ?1 \
        AND (t.expiry_warned_days IS NULL OR t.expiry_warned_days > 0) ORDER BY t.expires_at, t.id LIMIT 200";
    /// When the tokens of first admins end, within a time.
    FIRST_ADMINS_ENDING = unscoped("the operator's log is warned of every organization") "\
        SELECT t.organization_id, MAX(t.expires_at) FROM service_accounts a \
        JOIN service_account_tokens t ON t.organization_id = a.organization_id AND t.service_account_id = a.id \
        WHERE a.name_key = ?1 AND a.deleted_at IS NULL AND a.status = 'active' AND t.revoked_at IS NULL \
        AND t.expires_at > ?2 GROUP BY t.organization_id HAVING MAX(t.expires_at) <= ?3 \
        ORDER BY t.organization_id LIMIT 100";
    /// How many tokens end before three instants, and when the next one does.
    ENDING_COUNTS = unscoped("figures name no organization") "\
        SELECT COUNT(CASE WHEN t.expires_at <= ?2 THEN 1 END), COUNT(CASE WHEN t.expires_at <= ?3 THEN 1 END), \
        COUNT(CASE WHEN t.expires_at <= ?4 THEN 1 END), MIN(t.expires_at) \
        FROM service_account_tokens t JOIN service_accounts a ON a.organization_id = t.organization_id \
        AND a.id = t.service_account_id \
        WHERE t.revoked_at IS NULL AND t.superseded_by_id IS NULL AND a.deleted_at IS NULL \
        AND a.status = 'active' AND t.expires_at > ?1";
    /// Remembers the last warning.
    WARNED = "UPDATE service_account_tokens SET expiry_warned_days = ?3 WHERE organization_id = ?1 AND id = ?2 AND revoked_at IS NULL AND (expiry_warned_days IS NULL OR expiry_warned_days > ?3)";
    /// Who an account is, for tokens that act for it.
    PRINCIPAL = "SELECT name, permission_role, scopes, status, former_role, former_scopes FROM service_accounts WHERE organization_id = ?1 AND id = ?2 AND deleted_at IS NULL";
    /// Removes the tokens of an account that was deleted long ago.
    PURGE_TOKENS = "DELETE FROM service_account_tokens WHERE organization_id = ?1 AND service_account_id = ?2 AND EXISTS (SELECT 1 FROM service_accounts a WHERE a.organization_id = ?1 AND a.id = ?2 AND a.deleted_at IS NOT NULL)";
    /// Removes an account that was deleted long ago.
    PURGE = "DELETE FROM service_accounts WHERE organization_id = ?1 AND id = ?2 AND deleted_at IS NOT NULL";
}

/// Returns until when the organizations have a token of their first admin, those where that is soon, at most 100.
pub fn ending_first_admins(
    tx: &mut Tx<'_>,
    now: Timestamp,
    until: Timestamp,
) -> Result<Vec<(OrganizationId, Timestamp)>> {
    let name = provost_kernel::text::name_key(FIRST_ADMIN);
    tx.query(&FIRST_ADMINS_ENDING, params![name.as_str(), now, until], |row| {
        Ok((OrganizationId::from_store(row.get(0)?), row.get(1)?))
    })
}

/// How many tokens of enabled accounts end soon that nothing has replaced.
#[derive(Clone, Copy, Debug, Default)]
pub struct EndingTokens {
    /// Within a day.
    pub within_a_day: i64,
    /// Within seven days.
    pub within_a_week: i64,
    /// Within fourteen days, when their owners are warned for the first time (D2.4).
    pub within_two_weeks: i64,
    /// When the next of all ends.
    pub next_end: Option<Timestamp>,
}

/// Counts the tokens that end soon, of every organization.
pub fn ending_tokens(tx: &mut Tx<'_>, now: Timestamp) -> Result<EndingTokens> {
    let [day, week, two_weeks] = [1, 7, 14].map(|days| now.plus_secs(days * 86_400));
    let counted = tx.query_opt(&ENDING_COUNTS, params![now, day, week, two_weeks], |row| {
        Ok(EndingTokens {
            within_a_day: row.get(0)?,
            within_a_week: row.get(1)?,
            within_two_weeks: row.get(2)?,
            next_end: row.get(3)?,
        })
    })?;
    Ok(counted.unwrap_or_default())
}

/// An account with its listed tokens.
pub type AccountWithTokens = (ServiceAccount, Vec<Token>);

/// Returns a stored scope list; `None` is "all".
pub fn scopes_text(scopes: Option<ScopeSet>) -> Option<String> {
    scopes.map(|set| set.to_list().join(" "))
}

/// Reads a stored role.
pub fn role(row: &Row<'_>, index: usize) -> Result<Role> {
    Role::parse(row.str(index)?)
        .ok_or_else(|| Error::internal("service_accounts.permission_role is not a role"))
}

/// Reads a stored scope list.
pub fn scopes(row: &Row<'_>, index: usize) -> Result<Option<ScopeSet>> {
    Ok(row
        .get::<Option<String>>(index)?
        .map(|text| ScopeSet::from_store(&text)))
}

fn account(row: &Row<'_>) -> Result<ServiceAccount> {
    let status = Status::parse(row.str(6)?);
    let owner: Option<String> = row.get(7)?;
    let is_there = row.get::<Option<String>>(24)?.as_deref() == Some("active");
    Ok(ServiceAccount {
        id: ServiceAccountId::from_store(row.get(0)?),
        organization_id: row.get(1)?,
        name: row.get(2)?,
        description: row.get(3)?,
        role: role(row, 4)?,
        scopes: scopes(row, 5)?,
        status: status.ok_or_else(|| Error::internal("service_accounts.status is not a status"))?,
        is_orphaned: owner.is_some() && !is_there,
        owner_console_user_id: owner,
        created_at: row.get(8)?,
        updated_at: row.get(9)?,
        disabled_at: row.get(10)?,
        disabled_reason: row.get(11)?,
        former: former(row, 25)?,
    })
}

/// Reads former rights, a role and a list of scopes beside each other.
pub fn former(row: &Row<'_>, index: usize) -> Result<Option<Rights>> {
    if row.get::<Option<String>>(index)?.is_none() {
        return Ok(None);
    }
    Ok(Some(Rights {
        role: role(row, index)?,
        scopes: scopes(row, index + 1)?,
    }))
}

fn token(row: &Row<'_>) -> Result<Option<Token>> {
    let Some(id) = row.get::<Option<String>>(12)? else {
        return Ok(None);
    };
    Ok(Some(Token {
        id: TokenId::from_store(id),
        name: row.get(13)?,
        token_prefix: row.get(14)?,
        scopes: scopes(row, 15)?,
        lifetime_ceiling_secs: row.get(23)?,
        created_at: row.get(16)?,
        updated_at: row.get(17)?,
        expires_at: row.get(18)?,
        last_used_at: row.get(19)?,
        revoked_at: row.get(20)?,
        revoke_reason: row.get(21)?,
        superseded_by_id: row.get(22)?,
    }))
}

/// Collects rows of account × token into accounts.
#[derive(Default)]
struct AccountCollector {
    found: Vec<AccountWithTokens>,
    places: HashMap<String, usize>,
}

impl AccountCollector {
    fn add(&mut self, row: &Row<'_>) -> Result<()> {
        let known = self.places.get(row.str(0)?).copied();
        let place = known.unwrap_or(self.found.len());
        if known.is_none() {
            self.places.insert(row.get(0)?, place);
            self.found.push((account(row)?, Vec::new()));
        }
        if let Some(token) = token(row)? {
            self.found[place].1.push(token);
        }
        Ok(())
    }
}

/// Returns an account and its listed tokens.
///
/// Errors: `NotFound` for an unknown, a deleted and another organization's account alike.
pub fn get(ctx: &mut OperationContext<'_>, id: &ServiceAccountId) -> Result<AccountWithTokens> {
    let mut collected = AccountCollector::default();
    let org = ctx.org();
    ctx.query(&GET, params![org, id.as_str()], |row| collected.add(row))?;
    collected
        .found
        .pop()
        .ok_or_else(|| Error::not_found("service account"))
}

/// Where a page of accounts begins, which are listed newest first.
pub struct Start {
    /// The instant and the id of the account behind which it begins.
    pub behind: (Timestamp, String),
    /// How many are passed over from there.
    pub offset: i64,
}

/// Returns at most `limit` accounts from a place on, newest first, and the number of accounts in all.
pub fn list(
    ctx: &mut OperationContext<'_>,
    status: Option<Status>,
    limit: i64,
    start: &Start,
) -> Result<(Vec<AccountWithTokens>, i64)> {
    let (org, status) = (ctx.org(), status.map(Status::as_str));
    let (created_at, id) = (start.behind.0, start.behind.1.as_str());
    let (mut collected, mut total) = (AccountCollector::default(), None);
    ctx.query(
        &LIST,
        params![org, status, limit, start.offset, created_at, id],
        |row| {
            total = Some(row.get::<i64>(27)?);
            collected.add(row)
        },
    )?;
    let mut found = collected.found;
    found.sort_by(|(a, _), (b, _)| (b.created_at, b.id.as_str()).cmp(&(a.created_at, a.id.as_str())));
    if let Some(total) = total {
        return Ok((found, total));
    }
    // A page behind the end has no row that could carry the number.
    let total = ctx.query_opt(&COUNT, params![org, status], |row| row.get::<i64>(0))?;
    Ok((found, total.unwrap_or(0)))
}

/// What a token that acts for an account must know of it.
pub struct Principal {
    /// The account's name.
    pub display: String,
    /// Its role.
    pub role: Role,
    /// Its scopes; `None` is all of its role.
    pub scopes: Option<ScopeSet>,
    /// Whether it is enabled.
    pub enabled: bool,
    /// What it could do before somebody took it away who does not hold it.
    pub former: Option<Rights>,
}

/// Returns what an account is now, in the snapshot of `tx`; `None` for an unknown and a deleted one.
///
/// For credentials of other areas that act for an account: they name organization and account from their own rows.
pub fn principal(tx: &mut Tx<'_>, organization: &str, id: &str) -> Result<Option<Principal>> {
    tx.query_opt(&PRINCIPAL, params![organization, id], |row| {
        Ok(Principal {
            display: row.get(0)?,
            role: role(row, 1)?,
            scopes: scopes(row, 2)?,
            enabled: row.str(3)? == Status::Active.as_str(),
            former: former(row, 4)?,
        })
    })
}

/// Stores a new account.
///
/// Errors: `AlreadyExists` when the name is taken.
pub fn insert(ctx: &mut OperationContext<'_>, account: &ServiceAccount) -> Result<()> {
    let inserted = ctx.execute(
        &INSERT,
        params![
            account.organization_id.as_str(),
            account.id.as_str(),
            account.name.as_str(),
            provost_kernel::text::name_key(&account.name),
            account.description.as_deref(),
            account.role.as_str(),
            scopes_text(account.scopes),
            account.status.as_str(),
            account.owner_console_user_id.as_deref(),
            account.created_at,
            match_key(&account.name),
        ],
    )?;
    if inserted == 1 { Ok(()) } else { Err(name_taken()) }
}

fn name_taken() -> Error {
    Error::new(
        Code::AlreadyExists,
        "a service account of this name exists already",
    )
}

/// Stores what changed of an account. The organization's chain head is locked, so nobody else changes it.
///
/// Errors: `AlreadyExists` when a new name is taken.
pub fn save(ctx: &mut OperationContext<'_>, account: &ServiceAccount, renamed: bool) -> Result<()> {
    let (org, key) = (ctx.org(), provost_kernel::text::name_key(&account.name));
    if renamed {
        let taken = ctx.query_opt(
            &NAME_TAKEN,
            params![org, key.as_str(), account.id.as_str()],
            |_| Ok(()),
        )?;
        if taken.is_some() {
            return Err(name_taken());
        }
    }
    ctx.queue(
        &SAVE,
        params![
            org,
            account.id.as_str(),
            account.name.as_str(),
            key,
            account.description.as_deref(),
            account.role.as_str(),
            scopes_text(account.scopes),
            account.status.as_str(),
            account.owner_console_user_id.as_deref(),
            account.updated_at,
            account.disabled_at,
            account.disabled_reason.as_deref(),
            match_key(&account.name),
            account.former.map(|former| former.role.as_str()),
            scopes_text(account.former.and_then(|former| former.scopes)),
        ],
    )
}

/// Stores a token with its MAC.
pub fn insert_token(
    ctx: &mut OperationContext<'_>,
    account: &ServiceAccountId,
    token: &Token,
    lookup_id: &str,
    mac: (&str, [u8; 32]),
    replay_pending: bool,
) -> Result<()> {
    let org = ctx.org();
    ctx.queue(
        &INSERT_TOKEN,
        params![
            org,
            token.id.as_str(),
            account.as_str(),
            lookup_id,
            token.name.as_str(),
            token.token_prefix.as_str(),
            mac.1,
            mac.0,
            scopes_text(token.scopes),
            token.created_at,
            token.expires_at,
            false,
            replay_pending,
            token.lifetime_ceiling_secs,
        ],
    )
}

/// How a token ends.
pub struct TokenEnd<'a> {
    /// Shown as `revokeReason`.
    pub reason: &'a str,
    /// The token that takes its place.
    pub successor: Option<&'a TokenId>,
    /// It performed the rotation that ends it (D5.5).
    pub by_itself: bool,
}

/// Revokes a token and erases what could be replayed of it.
pub fn revoke(ctx: &mut OperationContext<'_>, token: &mut Token, ending: &TokenEnd<'_>) -> Result<()> {
    let (org, now) = (ctx.org(), ctx.now().max(token.updated_at));
    let successor = ending.successor.map(TokenId::as_str);
    let id = token.id.as_str().to_owned();
    ctx.queue(
        &REVOKE,
        params![
            org,
            id.as_str(),
            now,
            ending.reason,
            successor,
            ending.by_itself,
            false
        ],
    )?;
    ctx.erase_replay(&id)?;
    ctx.announce(&TokenRevoked {
        id,
        reason: ending.reason.to_owned(),
    })?;
    token.revoked_at = Some(now);
    token.updated_at = now;
    token.revoke_reason = Some(ending.reason.to_owned());
    if let Some(successor) = successor {
        token.superseded_by_id = Some(successor.to_owned());
    }
    Ok(())
}

/// Lets a superseded token live until `until`, and erases what could be replayed of it.
pub fn grace(
    ctx: &mut OperationContext<'_>,
    token: &mut Token,
    until: Timestamp,
    successor: &TokenId,
) -> Result<()> {
    let (org, now) = (ctx.org(), ctx.now().max(token.updated_at));
    let id = token.id.as_str().to_owned();
    ctx.queue(
        &GRACE,
        params![org, id.as_str(), until, now, successor.as_str(), false],
    )?;
    ctx.erase_replay(&id)?;
    ctx.announce(&TokenSuperseded { id, until })?;
    token.expires_at = until;
    token.updated_at = now;
    token.superseded_by_id = Some(successor.as_str().to_owned());
    Ok(())
}

/// Refuses an act after which nobody could repair the organization (SA-4).
///
/// Errors: `Conflict`.
pub fn keep_a_governor(ctx: &mut OperationContext<'_>, account: &ServiceAccount) -> Result<()> {
    if !account.governs() {
        return Ok(());
    }
    let (org, now) = (ctx.org(), ctx.now());
    let others = ctx.query_opt(&OTHER_GOVERNORS, params![org, account.id.as_str(), now], |row| {
        row.get::<i64>(0)
    })?;
    if others.unwrap_or(0) > 0 {
        return Ok(());
    }
    Err(Error::new(
        Code::Conflict,
        "this is the last usable admin of the organization; make another one first",
    ))
}

/// Returns the ids of the accounts that a user answers for, sorted; of very many the first hundred (D5.10).
pub fn owned_by(ctx: &mut OperationContext<'_>, user: &str) -> Result<Vec<String>> {
    let org = ctx.org();
    ctx.query(&OWNED, params![org, user], |row| row.get(0))
}

/// Refuses a name that a group or a user has (D6.6).
///
/// Errors: `AlreadyExists`.
pub fn keep_name_free(ctx: &mut OperationContext<'_>, name: &str, except: &str) -> Result<()> {
    match crate::subjects::name_taken(ctx, name, except)? {
        None => Ok(()),
        Some(crate::subjects::SubjectKind::ServiceAccount) => Err(name_taken()),
        Some(kind) => Err(Error::new(
            Code::AlreadyExists,
            format!(
                "a {} of this name exists already; names of groups and service accounts are unique",
                kind.as_str()
            ),
        )),
    }
}
