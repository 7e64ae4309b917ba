//! `refresh_token`: rotation at each use, and the end of the session when one is shown again (D2.7).
//!
//! ```text
//! generation   0 ──► 1 ──► 2          0 is shown again: the session ends
//!                    └──► 2          1 is shown again in time, and 2 was not used: the answer was lost, 2 is given again
//! ```
//!
//! There is one chain: whoever has a token that was used gets what its holder got, and the first of the two who uses it ends it for
//! the other (ADR 0093).

use super::super::grants::user;
use super::super::state::Oauth;
use super::super::store::{self, Refresh};
use super::super::verifier::own_grant;
use super::FormRequest;
use super::authenticate::AuthenticatedClient;
use super::code::{limits, narrowed};
use super::issue::{ACCESS_SECS, Access, NewRefresh, REFRESH, TokenAnswer, access, of_store, refresh, unit};
use super::scope::granted;
use crate::mcp_sessions::{self, SessionId};
use provost_areas_platform::settings;
use provost_kernel::auth::Role;
use provost_kernel::keys::MacPurpose;
use provost_kernel::token;
use provost_kernel::{Kernel, OperationContext, Result as Stored, Secret, params};
use provost_oauth::TokenError;
use provost_oauth::error::Code;
use std::sync::Arc;

/// LIMIT: how long a token that nothing but itself proves is answered again elsewhere than where it was used. Units: seconds (D2.7).
const SHORT_LEEWAY_SECS: i64 = 30;
/// LIMIT: how often such a token is answered again where it was used, for as long as the organization says (D2.7).
const MAX_REPEATS: i64 = 5;
/// Separates the hashes of networks from the cursors, with which they share a sub-key.
const NETWORK: &[u8] = b"provost/oauth/refresh-network/v1";
/// Separates the cells of successors from those of stored answers.
const SUCCESSOR: &[u8] = b"provost/oauth/refresh-successor/v1";

struct RefreshRequest {
    known: AuthenticatedClient,
    token: Secret<String>,
    lookup_id: String,
    scope: Option<String>,
    resources: Vec<String>,
    jkt: Option<String>,
    network: Option<String>,
}

pub async fn serve(
    kernel: &Arc<Kernel>,
    oauth: &Arc<Oauth>,
    known: AuthenticatedClient,
    request: &FormRequest,
    jkt: Option<String>,
) -> Result<TokenAnswer, TokenError> {
    let form = &request.form;
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
        network: request.network.clone(),
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
        Ok(()) if row.generation == row.newest => go_on(ctx, oauth, asked, &row),
        Ok(()) => repeat(ctx, oauth, asked, &row),
        Err(refusal) => Ok(Err(refusal)),
    }
}

/// Checks that a token is the present one of a session that stands, or the one before in time.
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
    // INVARIANT OC-4: a refresh token that was used before ends its session, unless its successor was not used and it comes within
    // the leeway: then it is answered with that successor, and with no other.
    if row.generation != row.newest && !is_retry(ctx, asked, row)? {
        return reused(ctx, row);
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

/// Ends the session of a token that was used before.
fn reused(ctx: &mut OperationContext<'_>, row: &Refresh) -> Stored<Result<(), TokenError>> {
    let id = SessionId::from_store(row.session_id.clone());
    mcp_sessions::end(ctx, &id, "token_reuse")?;
    Ok(Err(no(
        "the refresh token was used before; its session has ended",
    )))
}

/// Says whether a token that was used comes again because its answer was lost. Whoever sends it proves to hold a key, or comes from
/// where it was used and not too often; who does neither has half a minute.
fn is_retry(ctx: &mut OperationContext<'_>, asked: &RefreshRequest, row: &Refresh) -> Stored<bool> {
    let Some(used_at) = row.superseded_at.filter(|_| row.generation == row.newest - 1) else {
        return Ok(false);
    };
    if row.successor.is_none() {
        return Ok(false);
    }
    let leeway = settings::load(ctx)?.oauth.refresh_leeway_seconds;
    let is_keyed = row.jkt.is_some() || asked.known.is_confidential();
    let from = used_from(ctx, asked, row);
    let is_near = from.is_some() && from == row.used_from && row.repeats < MAX_REPEATS;
    let secs = if is_keyed || is_near {
        leeway
    } else {
        leeway.min(SHORT_LEEWAY_SECS)
    };
    Ok(ctx.latest() < used_at.plus_secs(secs))
}

/// Returns the keyed hash of the network that a request comes from.
fn used_from(ctx: &OperationContext<'_>, asked: &RefreshRequest, row: &Refresh) -> Option<Vec<u8>> {
    let network = asked.network.as_ref()?;
    let parts = [
        NETWORK,
        ctx.org().as_bytes(),
        row.session_id.as_bytes(),
        network.as_bytes(),
    ];
    Some(ctx.services().keys.mac(MacPurpose::Cursor, &parts).to_vec())
}

/// Returns what the cell of a successor is bound to.
fn bound<'a>(ctx: &'a OperationContext<'_>, row: &'a Refresh) -> [&'a [u8]; 4] {
    [
        SUCCESSOR,
        ctx.org().as_bytes(),
        row.session_id.as_bytes(),
        row.lookup_id.as_bytes(),
    ]
}

/// Gives the answer to a token once more: the same successor, and a new access token beside it.
fn repeat(
    ctx: &mut OperationContext<'_>,
    oauth: &Oauth,
    asked: &RefreshRequest,
    row: &Refresh,
) -> Stored<Result<TokenAnswer, TokenError>> {
    let Some(cell) = &row.successor else {
        return Ok(reused(ctx, row)?.and_then(|()| Err(invalid())));
    };
    let keys = &ctx.services().keys;
    let (presented, aad) = (asked.token.expose(), bound(ctx, row));
    let Some(successor) = keys.open_cell(cell.day, &cell.salt, &aad, presented, &cell.sealed)? else {
        return Ok(reused(ctx, row)?.and_then(|()| Err(invalid())));
    };
    let mut issued = match grant(ctx, oauth, asked, row)? {
        Ok(issued) => issued,
        Err(refusal) => return Ok(Err(refusal)),
    };
    let org = ctx.org();
    ctx.queue(&store::COUNT_REPEAT, params![org, row.lookup_id.as_str()])?;
    let used_at = row.superseded_at.unwrap_or(ctx.now());
    let secs = (ctx.now().as_ms() - used_at.as_ms()).max(0) / 1000;
    ctx.action("oauth.token.refresh_repeated");
    ctx.change("/secondsAfterUse", serde_json::Value::Null, secs);
    issued.refresh = Some(successor);
    Ok(Ok(issued))
}

/// Makes the next token of the chain.
fn go_on(
    ctx: &mut OperationContext<'_>,
    oauth: &Oauth,
    asked: &RefreshRequest,
    row: &Refresh,
) -> Stored<Result<TokenAnswer, TokenError>> {
    let mut issued = match grant(ctx, oauth, asked, row)? {
        Ok(issued) => issued,
        Err(refusal) => return Ok(Err(refusal)),
    };
    let (org, now) = (ctx.org(), ctx.now());
    let generation = row.generation + 1;
    let before = params![org, row.session_id.as_str(), generation, now];
    ctx.queue(&store::SUPERSEDE, before)?;
    let earlier = params![org, row.session_id.as_str(), row.generation];
    ctx.queue(&store::FORGET_SUCCESSORS, earlier)?;
    let new = NewRefresh {
        session_id: &row.session_id,
        grant_key: &row.grant_key,
        generation,
        client_id: &asked.known.client.id,
        user_id: &row.user_id,
        scopes: row.scopes,
        audiences: &row.audiences,
        jkt: row.jkt.as_deref(),
        ends_at: row.ends_at,
    };
    let (token, idle_at) = refresh(ctx, &new)?;
    let mut salt = [0; 16];
    ctx.rng().fill(&mut salt);
    let (presented, successor) = (asked.token.expose(), token.expose().as_bytes());
    let day = now.as_ms().div_euclid(86_400_000);
    let keys = &ctx.services().keys;
    let sealed = keys.seal_cell(day, &salt, &bound(ctx, row), presented, successor)?;
    let from = used_from(ctx, asked, row);
    ctx.queue(
        &store::KEEP_SUCCESSOR,
        params![
            org,
            row.lookup_id.as_str(),
            sealed.as_slice(),
            salt.as_slice(),
            day,
            from.as_deref()
        ],
    )?;
    mcp_sessions::extend(ctx, &SessionId::from_store(row.session_id.clone()), idle_at)?;
    issued.refresh = Some(token);
    Ok(Ok(issued))
}

/// Makes the access token of an answer.
fn grant(
    ctx: &mut OperationContext<'_>,
    oauth: &Oauth,
    asked: &RefreshRequest,
    row: &Refresh,
) -> Stored<Result<TokenAnswer, TokenError>> {
    let (now, client) = (ctx.now(), &asked.known.client);
    let user = user(ctx, &row.user_id)?.filter(|user| user.is_active);
    let Some(role): Option<Role> = user.and_then(|user| user.acting_role) else {
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
    let new = Access {
        subject: &row.user_id,
        client_id: &client.id,
        scopes,
        audiences: &audiences,
        session: &row.grant_key,
        jkt: asked.jkt.clone(),
        actor: None,
        secs: ACCESS_SECS.min((row.ends_at.as_ms() - now.as_ms()) / 1000).max(1),
    };
    access(ctx, oauth, new).map(Ok)
}
