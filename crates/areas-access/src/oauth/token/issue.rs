//! Making tokens, in the one unit of a request.

use super::super::state::Oauth;
use super::super::store;
use super::super::verifier::{LEEWAY_SECS, own_grant};
use crate::mcp_sessions::{self, NewSession, SessionActor, SessionId};
use provost_kernel::auth::{OrganizationId, ScopeSet};
use provost_kernel::error::Code::RateLimited;
use provost_kernel::error::{Error, Result};
use provost_kernel::token;
use provost_kernel::{Kernel, OperationContext, Secret, Timestamp, params};
use provost_oauth::error::Code;
use provost_oauth::{Claims, Confirmation, TokenError};
use std::sync::{Arc, Mutex, PoisonError};

/// The life of an access token. Units: seconds (D2.7).
pub const ACCESS_SECS: i64 = 3600;
/// The life of a session that has one access token and no other: as long as that one is accepted. Units: seconds.
pub const ALONE_SECS: i64 = ACCESS_SECS + LEEWAY_SECS;
/// The life of a refresh token that is not used. Units: seconds (D2.7).
pub const IDLE_SECS: i64 = 30 * 86_400;
/// The life of a session that is refreshed. Units: seconds (D2.7).
pub const ABSOLUTE_SECS: i64 = 90 * 86_400;

/// What a request is answered with.
pub struct TokenAnswer {
    pub access: Secret<String>,
    pub refresh: Option<Secret<String>>,
    pub expires_in: i64,
    pub scopes: ScopeSet,
    /// The access token is bound to a key.
    pub is_bound: bool,
    /// It answers an exchange.
    pub is_exchanged: bool,
}

/// What an access token says.
pub struct Access<'a> {
    pub subject: &'a str,
    pub client_id: &'a str,
    pub scopes: ScopeSet,
    pub audiences: &'a [String],
    /// The end of its session's key.
    pub session: &'a str,
    pub jkt: Option<String>,
    pub actor: Option<String>,
    /// Seconds for which it lives.
    pub secs: i64,
}

/// A session to begin with a token.
pub struct SessionStart {
    pub actor: SessionActor,
    pub client_id: String,
    pub client_display: Option<String>,
    pub scopes: ScopeSet,
    pub secs: i64,
}

/// Begins a session; returns its id and by what its tokens name it.
pub fn begin(ctx: &mut OperationContext<'_>, new: SessionStart) -> Result<(SessionId, String)> {
    let now = ctx.now();
    let name = provost_kernel::id::mint("grant", now, ctx.rng());
    let end = now.plus_secs(new.secs);
    begin_named(ctx, &name, end, new).map(|id| (id, name))
}

/// Begins the session of a name.
pub fn begin_named(
    ctx: &mut OperationContext<'_>,
    name: &str,
    expires_at: Timestamp,
    new: SessionStart,
) -> Result<SessionId> {
    let id = mcp_sessions::open(
        ctx,
        NewSession {
            grant_key: own_grant(name),
            actor: new.actor,
            client_id: Some(new.client_id),
            client_display: new.client_display,
            scopes: new.scopes,
            token_id: None,
            expires_at,
        },
    )?;
    ctx.target(&mcp_sessions::fences::SESSION, id.as_str());
    Ok(id)
}

/// Signs an access token of the unit's organization.
pub fn access(ctx: &mut OperationContext<'_>, oauth: &Oauth, new: Access<'_>) -> Result<TokenAnswer> {
    let now = ctx.now();
    let issued_at = now.as_ms().div_euclid(1000);
    let scopes: Vec<String> = new.scopes.names().map(str::to_owned).collect();
    let is_bound = new.jkt.is_some();
    ctx.change("/scopes", serde_json::Value::Null, scopes.join(" "));
    ctx.change("/clientId", serde_json::Value::Null, new.client_id);
    let claims = Claims {
        issuer: oauth.url.clone(),
        subject: new.subject.to_owned(),
        client_id: new.client_id.to_owned(),
        organization: ctx.org().to_owned(),
        scopes,
        audiences: new.audiences.to_vec(),
        issued_at,
        not_before: None,
        expires_at: issued_at + new.secs,
        id: provost_kernel::id::mint("at", now, ctx.rng()),
        session: Some(new.session.to_owned()),
        confirmation: new.jkt.map(Confirmation::Jkt),
        actor: new.actor,
    };
    Ok(TokenAnswer {
        access: oauth.sign(&claims)?,
        refresh: None,
        expires_in: new.secs,
        scopes: new.scopes,
        is_bound,
        is_exchanged: false,
    })
}

/// What a refresh token stands for.
pub struct NewRefresh<'a> {
    pub session_id: &'a str,
    pub grant_key: &'a str,
    pub generation: i64,
    pub client_id: &'a str,
    pub user_id: &'a str,
    pub scopes: ScopeSet,
    pub audiences: &'a [String],
    pub jkt: Option<&'a str>,
    pub ends_at: Timestamp,
}

/// What refresh tokens look like: new access tokens are asked for with them, and they call nothing.
pub const REFRESH: token::Form = token::Form::new("prov_mrt_");

/// Makes a refresh token; returns it and the end of its life when it is not used.
pub fn refresh(ctx: &mut OperationContext<'_>, new: &NewRefresh<'_>) -> Result<(Secret<String>, Timestamp)> {
    let minted = token::mint(REFRESH, ctx.rng());
    let (org, now) = (ctx.org(), ctx.now());
    let idle_at = now.plus_secs(IDLE_SECS).min(new.ends_at);
    let (pepper, mac) = ctx.services().keys.token_mac_current(minted.token.expose());
    ctx.queue(
        &store::ADD_REFRESH,
        params![
            org,
            minted.lookup_id.as_str(),
            mac.as_slice(),
            pepper,
            new.session_id,
            new.grant_key,
            new.generation,
            new.client_id,
            new.user_id,
            store::joined(new.scopes),
            new.audiences.join(" "),
            new.jkt,
            now,
            idle_at,
            new.ends_at,
        ],
    )?;
    Ok((minted.token, idle_at))
}

/// Runs the one unit of a request. A refusal is a result: what the unit wrote before stays, under the name of a refusal.
///
/// Errors: the refusal; `temporarily_unavailable` when the store does not take it.
pub async fn unit<T: Send + 'static>(
    kernel: &Arc<Kernel>,
    organization: OrganizationId,
    action: &'static str,
    run: impl Fn(&mut OperationContext<'_>) -> Result<std::result::Result<T, TokenError>> + Send + 'static,
) -> std::result::Result<T, TokenError> {
    let sink = Arc::new(Mutex::new(None));
    let place = sink.clone();
    let unit = kernel.system(organization, Some(action), move |ctx| {
        let done = match run(ctx) {
            // What limits sessions is for the client to know, and stands in the audit log.
            Err(error) if error.code() == RateLimited => {
                Err(TokenError::new(Code::SlowDown, error.message()))
            }
            done => done?,
        };
        if let Err(refusal) = &done {
            ctx.action("oauth.token.refused");
            ctx.change("/error", serde_json::Value::Null, refusal.code().as_str());
        }
        *place.lock().unwrap_or_else(PoisonError::into_inner) = Some(done);
        Ok(())
    });
    unit.await.map_err(of_store)?;
    let done = sink.lock().unwrap_or_else(PoisonError::into_inner).take();
    done.unwrap_or_else(|| Err(of_store(Error::internal("a unit left no result"))))
}

/// Returns what is answered when the store refuses.
#[expect(clippy::needless_pass_by_value, reason = "it stands behind map_err")]
pub fn of_store(error: Error) -> TokenError {
    if error.code().status() == 500 {
        tracing::error!(cause = ?error.private(), "the token endpoint failed: {error}");
    }
    TokenError::new(
        Code::TemporarilyUnavailable,
        "the server cannot answer now; try again",
    )
}
