//! `refresh_token`: rotation at each use, and the end of the session when one is shown again (D2.7).
//!
//! ```text
//! generation   0 ──► 1 ──► 2          0 is shown again: the session ends
//!                    └───► 2'         1 is shown again within 30 s: the answer was lost, 2' is live beside 2
//! ```

use super::super::form::Form;
use super::super::grants::user;
use super::super::state::Oauth;
use super::super::store::{self, Refresh};
use super::super::verifier::own_grant;
use super::authenticate::AuthenticatedClient;
use super::code::{limits, narrowed};
use super::issue::{ACCESS_SECS, Access, NewRefresh, REFRESH, TokenAnswer, access, of_store, refresh, unit};
use super::scope::granted;
use crate::mcp_sessions::{self, SessionId};
use provost_kernel::token;
use provost_kernel::{Kernel, OperationContext, Result as Stored, Secret, Timestamp, params};
use provost_oauth::TokenError;
use provost_oauth::error::Code;
use std::sync::Arc;

/// How long the token before the present one may be shown again. Units: seconds (D2.7).
const LEEWAY_SECS: i64 = 30;

struct RefreshRequest {
    known: AuthenticatedClient,
    token: Secret<String>,
    lookup_id: String,
    scope: Option<String>,
    resources: Vec<String>,
    jkt: Option<String>,
}

pub async fn serve(
    kernel: &Arc<Kernel>,
    oauth: &Arc<Oauth>,
    known: AuthenticatedClient,
    form: &Form,
    jkt: Option<String>,
) -> Result<TokenAnswer, TokenError> {
    let token = Secret::new(form.need("refresh_token")?.to_owned());
    let parsed = token::parse(token.expose()).filter(|parsed| parsed.is_of(REFRESH));
    let lookup_id = parsed.ok_or_else(invalid)?.lookup_id.to_owned();
    let asked = RefreshRequest {
        known,
        token,
        lookup_id,
        scope: form.get("scope").map(str::to_owned),
        resources: form.all("resource").map(str::to_owned).collect(),
        jkt,
    };
    let row = find(kernel, &asked.token, &asked.lookup_id).await?;
    let row = row.ok_or_else(invalid)?;
    let oauth = oauth.clone();
    let run = move |ctx: &mut OperationContext<'_>| rotate(ctx, &oauth, &asked);
    unit(kernel, row.organization, "oauth.token.refreshed", run).await
}

/// Finds the row of a refresh token, if it is the token's.
pub async fn find(
    kernel: &Arc<Kernel>,
    token: &Secret<String>,
    lookup_id: &str,
) -> Result<Option<Refresh>, TokenError> {
    let lookup = lookup_id.to_owned();
    let found = kernel
        .read_system(move |tx| tx.query_opt(&store::REFRESH, params![lookup.as_str()], store::refresh))
        .await;
    let found = found.map_err(of_store)?;
    match found {
        Some(row) if row.is_of(token, &kernel.keys).map_err(of_store)? => Ok(Some(row)),
        _ => Ok(None),
    }
}

fn invalid() -> TokenError {
    no("the refresh token is not valid")
}

fn no(sentence: &str) -> TokenError {
    TokenError::new(Code::InvalidGrant, sentence)
}

fn rotate(
    ctx: &mut OperationContext<'_>,
    oauth: &Oauth,
    asked: &RefreshRequest,
) -> Stored<Result<TokenAnswer, TokenError>> {
    if let Err(refusal) = asked.known.spend(ctx)? {
        return Ok(Err(refusal));
    }
    let lookup = params![asked.lookup_id.as_str()];
    let found = ctx.query_opt(&store::REFRESH, lookup, store::refresh)?;
    let keys = &ctx.services().keys;
    let found = found.filter(|row| row.organization == *ctx.organization());
    let row = match found {
        Some(row) if row.is_of(&asked.token, keys)? => row,
        _ => return Ok(Err(invalid())),
    };
    ctx.target(&mcp_sessions::fences::SESSION, row.session_id.as_str());
    match checked(ctx, asked, &row)? {
        Ok(()) => go_on(ctx, oauth, asked, &row),
        Err(refusal) => Ok(Err(refusal)),
    }
}

/// Checks that a token is the present one of a session that stands.
fn checked(
    ctx: &mut OperationContext<'_>,
    asked: &RefreshRequest,
    row: &Refresh,
) -> Stored<Result<(), TokenError>> {
    let (now, client) = (ctx.latest(), &asked.known.client);
    if row.client_id != client.id {
        return Ok(Err(no("the refresh token was given to another client")));
    }
    if row.jkt.is_some() && row.jkt != asked.jkt {
        let refusal = TokenError::new(
            Code::InvalidDpopProof,
            "the refresh token is bound to another key",
        );
        return Ok(Err(refusal));
    }
    // INVARIANT OC-4: a refresh token that was superseded ends its session, unless it is the one before the present one and
    // was superseded less than 30 seconds ago.
    if row.generation != row.newest && !is_retry(row, now) {
        let id = SessionId::from_store(row.session_id.clone());
        mcp_sessions::end(ctx, &id, "token_reuse")?;
        return Ok(Err(no(
            "the refresh token was used before; its session has ended",
        )));
    }
    let grant = own_grant(&row.grant_key);
    let session = ctx.query_opt(
        &mcp_sessions::LOOKUP,
        params![grant.as_str()],
        mcp_sessions::credential,
    )?;
    let stands = session.is_some_and(|session| session.authenticate(now).is_ok());
    if !stands || row.idle_at <= now || row.ends_at <= now {
        return Ok(Err(no("the session has ended")));
    }
    Ok(Ok(()))
}

fn is_retry(row: &Refresh, now: Timestamp) -> bool {
    let fresh = |at: Timestamp| now < at.plus_secs(LEEWAY_SECS);
    row.generation == row.newest - 1 && row.superseded_at.is_some_and(fresh)
}

fn go_on(
    ctx: &mut OperationContext<'_>,
    oauth: &Oauth,
    asked: &RefreshRequest,
    row: &Refresh,
) -> Stored<Result<TokenAnswer, TokenError>> {
    let (org, now, client) = (ctx.org(), ctx.now(), &asked.known.client);
    let user = user(ctx, &row.user_id)?.filter(|user| user.is_active);
    let Some(role) = user.and_then(|user| user.role) else {
        return Ok(Err(no("the user behind the session may not act any more")));
    };
    let all = row.scopes.to_list().join(" ");
    let [client_scopes, of_role] = limits(client.scopes, role);
    let limits = [row.scopes, client_scopes, of_role];
    let scopes = match granted(Some(asked.scope.as_deref().unwrap_or(&all)), &limits) {
        Ok(scopes) => scopes,
        Err(refusal) => return Ok(Err(refusal)),
    };
    let audiences = match narrowed(oauth, &row.audiences, &asked.resources) {
        Ok(audiences) => audiences,
        Err(refusal) => return Ok(Err(refusal)),
    };
    let generation = row.generation + 1;
    let before = params![org, row.session_id.as_str(), generation, now];
    ctx.queue(&store::SUPERSEDE, before)?;
    let new = NewRefresh {
        session_id: &row.session_id,
        grant_key: &row.grant_key,
        generation,
        client_id: &client.id,
        user_id: &row.user_id,
        scopes: row.scopes,
        audiences: &row.audiences,
        jkt: row.jkt.as_deref(),
        ends_at: row.ends_at,
    };
    let (token, idle_at) = refresh(ctx, &new)?;
    mcp_sessions::extend(ctx, &SessionId::from_store(row.session_id.clone()), idle_at)?;
    let mut issued = access(
        ctx,
        oauth,
        Access {
            subject: &row.user_id,
            client_id: &client.id,
            scopes,
            audiences: &audiences,
            session: &row.grant_key,
            jkt: asked.jkt.clone(),
            actor: None,
            secs: ACCESS_SECS.min((row.ends_at.as_ms() - now.as_ms()) / 1000).max(1),
        },
    )?;
    issued.refresh = Some(token);
    Ok(Ok(issued))
}
