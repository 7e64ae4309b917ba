//! The words and rules of workload trusts, without storage.

use super::rules::{ClaimRule, Kind, Named, Warning, named, warnings, wrong};
use crate::jwks::Jwks;
use provost_areas_identity::service_accounts::{Principal, ScopeList};
use provost_kernel::auth::{Permission, ScopeSet};
use provost_kernel::error::Result;
use provost_kernel::text::IntegerBetween;
use provost_kernel::{Timestamp, id};
use provost_outbound::{Address, is_same_url};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

id!(TrustId, "wtr", "Names a workload trust.");

/// LIMIT: the life of a session that a workload begins. Units: seconds.
pub const MAX_LIFETIME_SECS: i64 = 900;
/// How long ago a token may have been issued where nothing else is said. Units: seconds.
pub const TOKEN_AGE_SECS: i64 = 3600;
/// LIMIT: trusts of an organization.
pub const MOST: i64 = 500;

/// The life of a session, as a client may ask for it. Units: seconds.
pub type LifetimeSecs = IntegerBetween<60, MAX_LIFETIME_SECS>;
/// The age of a token, as a client may allow it. Units: seconds.
pub type TokenAgeSecs = IntegerBetween<60, 86_400>;

/// A trust as it is stored.
#[derive(Clone, Debug)]
pub struct WorkloadTrust {
    /// Its id.
    pub id: TrustId,
    /// Its organization.
    pub organization_id: String,
    /// Its name.
    pub name: String,
    /// Whose tokens are meant.
    pub kind: Kind,
    /// Exactly what `iss` says.
    pub issuer: String,
    /// Exactly what `aud` says; `None` is this server's own URL.
    pub audience: Option<String>,
    /// The account that a workload acts as.
    pub service_account_id: String,
    /// What a token must say.
    pub claims: Vec<ClaimRule>,
    /// The most that a session can do.
    pub scopes: ScopeSet,
    /// The life of a session. Units: seconds.
    pub lifetime_secs: i64,
    /// How long ago a token may have been issued. Units: seconds.
    pub max_token_age_secs: i64,
    /// The issuer's keys, where they cannot be fetched.
    pub jwks: Option<Jwks>,
    /// Since when nothing is exchanged.
    pub suspended_at: Option<Timestamp>,
    /// Why, where nobody suspended it.
    pub suspended_reason: Option<String>,
    /// Tokens that were issued until then are exchanged for nothing.
    pub tokens_from: Option<Timestamp>,
    /// When it was made.
    pub created_at: Timestamp,
    /// When it last changed.
    pub updated_at: Timestamp,
}

impl WorkloadTrust {
    /// Says whether this gives something that the trust did not give before: other workloads, more scopes, longer sessions,
    /// or its life.
    pub fn gives_beyond(&self, before: &Self) -> bool {
        self.claims != before.claims
            || self.audience != before.audience
            || self.jwks != before.jwks
            || !before.scopes.covers(self.scopes)
            || self.lifetime_secs > before.lifetime_secs
            || self.max_token_age_secs > before.max_token_age_secs
            || before.suspended_at.is_some() && self.suspended_at.is_none()
    }
}

/// Checks an issuer's URL: `https:`, or `http:` on this machine, which the operator has to allow before it is asked.
///
/// Errors: `InvalidDefinition`.
pub fn check_issuer(issuer: &str, own_url: &str) -> Result<()> {
    let wrong = |message: &str| wrong("/issuer", message);
    let address = match Address::parse(issuer) {
        Ok(address) => address,
        Err(why) => return wrong(&format!("is not what an issuer's tokens say: {}", why.0)),
    };
    if !address.is_https && !address.is_loopback() {
        return wrong("must begin with https://");
    }
    if address.query.is_some() || address.has_dot_segments() {
        return wrong("must have no query and no dot segments");
    }
    // Our own tokens say whom somebody else let act.
    if is_same_url(issuer.trim_end_matches('/'), own_url.trim_end_matches('/')) {
        return wrong("is this server, whose own tokens are exchanged for nothing");
    }
    Ok(())
}

/// Checks an audience that somebody wrote.
///
/// Errors: `InvalidDefinition`.
pub fn check_audience(audience: Option<&str>) -> Result<()> {
    match audience {
        Some(text) if text.contains('*') => wrong(
            "/audience",
            "has a star, which would stand for itself; an audience is one name",
        ),
        _ => Ok(()),
    }
}

/// Checks keys that somebody sent.
///
/// Errors: `InvalidDefinition`.
pub fn check_keys(jwks: Option<&Jwks>) -> Result<()> {
    match jwks.map(Jwks::parse) {
        None => Ok(()),
        Some(Ok(keys)) if !keys.is_empty() => Ok(()),
        Some(_) => wrong(
            "/jwks",
            "must be a JWK Set of public keys: P-256, Ed25519 or RSA of 2048 bits and more",
        ),
    }
}

/// Returns what sessions may do: what was asked for, or else all that the account can do now, without what makes something
/// that outlives a session (WO-3).
///
/// Errors: `InvalidDefinition` for a scope that the account lacks, or that no workload has.
pub fn granted(account: &Principal, asked: Option<&ScopeList>) -> Result<ScopeSet> {
    let held = Permission::effective(account.role, account.scopes, None).scopes;
    let lasting = ScopeSet::lasting();
    let Some(asked) = asked.map(ScopeList::set) else {
        let scopes = held.without(lasting);
        if scopes == ScopeSet::default() {
            return wrong(
                "/serviceAccountId",
                "can do nothing that a workload may do; give it a scope first",
            );
        }
        return Ok(scopes);
    };
    let kept = asked.and(lasting);
    if kept != ScopeSet::default() {
        let message = format!(
            "{} is for nobody whose session ends by itself: what is made with it would outlive the session",
            kept.to_list().join(", ")
        );
        return wrong("/scopes", &message);
    }
    if !held.covers(asked) {
        let lacking = asked.without(held).to_list().join(", ");
        return wrong(
            "/scopes",
            &format!("the account cannot do {lacking}; widen the account first"),
        );
    }
    Ok(asked)
}

/// A trust as its readers see it.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(rename = "WorkloadTrust")]
pub struct TrustView {
    id: TrustId,
    organization_id: String,
    name: String,
    kind: Kind,
    issuer: String,
    /// Absent: this server's own URL.
    #[serde(skip_serializing_if = "Option::is_none")]
    audience: Option<String>,
    service_account_id: String,
    claims: Vec<ClaimRule>,
    /// The rules name an owner, and no repository or project.
    whole_owner: bool,
    /// The most that a session can do, within what the account can.
    scopes: Vec<&'static str>,
    lifetime_seconds: i64,
    max_token_age_seconds: i64,
    #[serde(skip_serializing_if = "Option::is_none")]
    jwks: Option<Jwks>,
    suspended: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    suspended_at: Option<Timestamp>,
    /// `restored`: a restore of the store holds it back. Open.
    #[serde(skip_serializing_if = "Option::is_none")]
    suspended_reason: Option<String>,
    created_at: Timestamp,
    updated_at: Timestamp,
}

impl From<WorkloadTrust> for TrustView {
    fn from(trust: WorkloadTrust) -> Self {
        Self {
            whole_owner: named(trust.kind, &trust.claims) == Named::Owner,
            id: trust.id,
            organization_id: trust.organization_id,
            name: trust.name,
            kind: trust.kind,
            issuer: trust.issuer,
            audience: trust.audience,
            service_account_id: trust.service_account_id,
            claims: trust.claims,
            scopes: trust.scopes.to_list(),
            lifetime_seconds: trust.lifetime_secs,
            max_token_age_seconds: trust.max_token_age_secs,
            jwks: trust.jwks,
            suspended: trust.suspended_at.is_some(),
            suspended_at: trust.suspended_at,
            suspended_reason: trust.suspended_reason,
            created_at: trust.created_at,
            updated_at: trust.updated_at,
        }
    }
}

/// One trust.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(inline)]
pub struct OneTrust {
    /// It.
    pub workload_trust: TrustView,
    /// What it lets in that somebody may not expect; absent when there is nothing.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schemars(default)]
    pub warnings: Vec<Warning>,
}

impl From<WorkloadTrust> for OneTrust {
    fn from(trust: WorkloadTrust) -> Self {
        Self {
            warnings: warnings(
                trust.kind,
                &trust.claims,
                trust.audience.as_deref(),
                trust.jwks.is_some(),
            ),
            workload_trust: trust.into(),
        }
    }
}

/// The path of operations on one trust.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[schemars(inline)]
pub struct TrustPath {
    /// The trust.
    pub workload_trust_id: TrustId,
}
