//! All SQL of workload trusts.
//!
//! INVARIANT WO-2: whoever lets a workload in could mint a token of the account that it acts as.

use super::model::{MOST, TrustId, WorkloadTrust};
use super::rules::{ClaimRule, Kind};
use crate::jwks::Jwks;
use aws_lc_rs::digest::{SHA256, digest};
use provost_areas_identity::service_accounts::{self, Principal, Rights, may_be_held};
use provost_kernel::auth::ScopeSet;
use provost_kernel::db::{Row, Tx};
use provost_kernel::error::{Code, Error, Result};
use provost_kernel::hex::hex;
use provost_kernel::json::canonical;
use provost_kernel::text::name_key;
use provost_kernel::{OperationContext, params, statements};
use serde_json::{Value, json};

/// The columns of a trust, in the order that [`read`] expects.
macro_rules! columns {
    () => {
        "id, organization_id, name, kind, issuer, audience, service_account_id, claims, scopes, lifetime_secs, \
         max_token_age_secs, jwks, suspended_at, suspended_reason, tokens_from, created_at, updated_at"
    };
}

statements! {
    /// One trust.
    GET = concat!("SELECT ", columns!(), " FROM workload_trusts WHERE organization_id = ?1 AND id = ?2");
    /// The trust of an id, in whatever organization.
    RESOLVE = unscoped("a trust's id is unique everywhere and says whose the trust is") concat!("SELECT ", columns!(), " FROM workload_trusts WHERE id = ?1");
    /// A page of trusts, the newest first; of an account `?2` alone, if it is named.
    LIST = concat!("SELECT ", columns!(), " FROM workload_trusts WHERE organization_id = ?1 AND (CAST(?2 AS TEXT) IS NULL OR service_account_id = CAST(?2 AS TEXT)) ORDER BY created_at DESC, id DESC LIMIT ?3 OFFSET ?4");
    /// How many there are.
    COUNT = "SELECT COUNT(*) FROM workload_trusts WHERE organization_id = ?1 AND (CAST(?2 AS TEXT) IS NULL OR service_account_id = CAST(?2 AS TEXT))";
    /// Makes a trust, unless its name is taken.
    INSERT = "INSERT INTO workload_trusts (organization_id, id, name, name_key, kind, issuer, audience, service_account_id, claims, scopes, lifetime_secs, max_token_age_secs, jwks, created_at, updated_at) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?14) ON CONFLICT DO NOTHING";
    /// Says whether another trust has a name.
    NAME_TAKEN = "SELECT id FROM workload_trusts WHERE organization_id = ?1 AND name_key = ?2 AND id <> ?3";
    /// Replaces what can change of a trust.
    SAVE = "UPDATE workload_trusts SET name = ?3, name_key = ?4, audience = ?5, claims = ?6, scopes = ?7, lifetime_secs = ?8, max_token_age_secs = ?9, jwks = ?10, suspended_at = ?11, suspended_reason = ?12, updated_at = ?13, tokens_from = ?14 WHERE organization_id = ?1 AND id = ?2";
    /// Refuses what was issued until now, for every trust of the organization: what was exchanged may be forgotten.
    REFUSE_ISSUED = "UPDATE workload_trusts SET tokens_from = ?2 WHERE organization_id = ?1 AND (tokens_from IS NULL OR tokens_from < ?2)";
    /// The trusts of an account.
    OF_ACCOUNT = "SELECT id FROM workload_trusts WHERE organization_id = ?1 AND service_account_id = ?2 ORDER BY created_at, id";
    /// Removes a trust.
    DELETE = "DELETE FROM workload_trusts WHERE organization_id = ?1 AND id = ?2";
}

/// Reads a trust.
pub fn read(row: &Row<'_>) -> Result<WorkloadTrust> {
    let jwks = row.get::<Option<String>>(11)?;
    let jwks = jwks.map(|text| serde_json::from_str::<Jwks>(&text).map_err(Error::internal));
    Ok(WorkloadTrust {
        id: TrustId::from_store(row.get(0)?),
        organization_id: row.get(1)?,
        name: row.get(2)?,
        kind: Kind::from_store(row.str(3)?)?,
        issuer: row.get(4)?,
        audience: row.get(5)?,
        service_account_id: row.get(6)?,
        claims: serde_json::from_str::<Vec<ClaimRule>>(row.str(7)?).map_err(Error::internal)?,
        scopes: ScopeSet::from_store(row.str(8)?),
        lifetime_secs: row.get(9)?,
        max_token_age_secs: row.get(10)?,
        jwks: jwks.transpose()?,
        suspended_at: row.get(12)?,
        suspended_reason: row.get(13)?,
        tokens_from: row.get(14)?,
        created_at: row.get(15)?,
        updated_at: row.get(16)?,
    })
}

/// Returns a trust.
///
/// Errors: `NotFound` for an unknown, a deleted and another organization's trust alike.
pub fn get(ctx: &mut OperationContext<'_>, id: &TrustId) -> Result<WorkloadTrust> {
    let org = ctx.org();
    ctx.query_opt(&GET, params![org, id.as_str()], read)?
        .ok_or_else(|| Error::not_found("workload trust"))
}

/// Returns what a trust is, and the account that it is a door to, for who says yes to something about it. The keys are there as a digest: nobody
/// reads them, and others are another trust.
pub fn standing(ctx: &mut OperationContext<'_>, id: &TrustId) -> Result<Value> {
    let trust = get(ctx, id)?;
    let account = service_accounts::shown_to_voters(ctx, &trust.service_account_id)?;
    let keys = trust.jwks.as_ref();
    let keys =
        keys.map(|jwks| hex(digest(&SHA256, canonical(&Value::Object(jwks.0.clone())).as_bytes()).as_ref()));
    Ok(json!({
        "name": trust.name, "kind": trust.kind, "issuer": trust.issuer, "audience": trust.audience, "claims": trust.claims,
        "scopes": trust.scopes.to_list(), "lifetimeSeconds": trust.lifetime_secs, "maxTokenAgeSeconds": trust.max_token_age_secs,
        "jwksSha256": keys, "suspended": trust.suspended_at.is_some(), "serviceAccountId": trust.service_account_id,
        "serviceAccount": account,
    }))
}

/// Returns the trust that somebody names who has not proved anything yet.
pub fn resolve(tx: &mut Tx<'_>, id: &str) -> Result<Option<WorkloadTrust>> {
    tx.query_opt(&RESOLVE, params![id], read)
}

/// Returns a page of trusts, the newest first, and how many there are.
pub fn list(
    ctx: &mut OperationContext<'_>,
    account: Option<&str>,
    limit: i64,
    offset: i64,
) -> Result<(Vec<WorkloadTrust>, i64)> {
    let org = ctx.org();
    let found = ctx.query(&LIST, params![org, account, limit, offset], read)?;
    let total = ctx.query_opt(&COUNT, params![org, account], |row| row.get::<i64>(0))?;
    Ok((found, total.unwrap_or(0)))
}

/// Returns the account of a trust.
///
/// Errors: `NotFound` for an account that is none.
pub fn account(ctx: &mut OperationContext<'_>, id: &str) -> Result<Principal> {
    let org = ctx.org();
    let account = service_accounts::principal(&mut ctx.tx(), org, id)?;
    account.ok_or_else(|| Error::not_found("service account"))
}

/// Returns the account of a trust, if the caller may hand out all that it can do and could do: a workload that the caller
/// names is the account.
///
/// Keeps WO-2.
///
/// Errors: `NotFound` for an account that is none, `EscalationForbidden`.
pub fn held_account(ctx: &mut OperationContext<'_>, id: &str) -> Result<Principal> {
    let account = account(ctx, id)?;
    let rights = Rights {
        role: account.role,
        scopes: account.scopes,
    };
    may_be_held(rights, account.former, ctx.actor().permission)?;
    Ok(account)
}

fn claims(trust: &WorkloadTrust) -> Result<String> {
    serde_json::to_string(&trust.claims).map_err(Error::internal)
}

fn keys(trust: &WorkloadTrust) -> Result<Option<String>> {
    let keys = trust.jwks.as_ref().map(serde_json::to_string);
    keys.transpose().map_err(Error::internal)
}

fn name_taken() -> Error {
    Error::new(
        Code::AlreadyExists,
        "a workload trust of this name exists already",
    )
}

/// Stores a new trust.
///
/// Errors: `AlreadyExists` when the name is taken, `Conflict` when there are too many.
pub fn insert(ctx: &mut OperationContext<'_>, trust: &WorkloadTrust) -> Result<()> {
    let (org, none) = (ctx.org(), None::<&str>);
    let known = ctx.query_opt(&COUNT, params![org, none], |row| row.get::<i64>(0))?;
    if known.unwrap_or(0) >= MOST {
        let message = format!("an organization has {MOST} workload trusts at most; delete one first");
        return Err(Error::new(Code::Conflict, message));
    }
    let inserted = ctx.execute(
        &INSERT,
        params![
            org,
            trust.id.as_str(),
            trust.name.as_str(),
            name_key(&trust.name),
            trust.kind.as_str(),
            trust.issuer.as_str(),
            trust.audience.as_deref(),
            trust.service_account_id.as_str(),
            claims(trust)?,
            trust.scopes.to_list().join(" "),
            trust.lifetime_secs,
            trust.max_token_age_secs,
            keys(trust)?,
            trust.created_at,
        ],
    )?;
    if inserted == 1 { Ok(()) } else { Err(name_taken()) }
}

/// Stores what changed of a trust.
///
/// Errors: `AlreadyExists` when a new name is taken.
pub fn save(ctx: &mut OperationContext<'_>, trust: &WorkloadTrust) -> Result<()> {
    let (org, id, key) = (ctx.org(), trust.id.as_str(), name_key(&trust.name));
    let taken = ctx.query_opt(&NAME_TAKEN, params![org, key.as_str(), id], |_| Ok(()))?;
    if taken.is_some() {
        return Err(name_taken());
    }
    ctx.queue(
        &SAVE,
        params![
            org,
            id,
            trust.name.as_str(),
            key,
            trust.audience.as_deref(),
            claims(trust)?,
            trust.scopes.to_list().join(" "),
            trust.lifetime_secs,
            trust.max_token_age_secs,
            keys(trust)?,
            trust.suspended_at,
            trust.suspended_reason.as_deref(),
            trust.updated_at,
            trust.tokens_from,
        ],
    )
}

/// Returns the ids of an account's trusts, the oldest first.
pub fn of_account(ctx: &mut OperationContext<'_>, account: &str) -> Result<Vec<TrustId>> {
    let org = ctx.org();
    ctx.query(&OF_ACCOUNT, params![org, account], |row| {
        Ok(TrustId::from_store(row.get(0)?))
    })
}

/// Removes a trust.
pub fn delete(ctx: &mut OperationContext<'_>, id: &TrustId) -> Result<()> {
    let org = ctx.org();
    ctx.queue(&DELETE, params![org, id.as_str()])
}

/// Returns the ids of the trusts by which workloads act as an account.
pub fn ids_of_account(tx: &mut Tx<'_>, org: &str, account: &str) -> Result<Vec<String>> {
    tx.query(&OF_ACCOUNT, params![org, account], |row| row.get(0))
}
