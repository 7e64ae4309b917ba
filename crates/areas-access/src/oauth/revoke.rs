//! Giving tokens back (RFC 7009): the session ends, with all that belongs to it. What is unknown is given back already.

use super::command_line;
use super::state::Oauth;
use super::token::{
    AuthenticatedClient, REFRESH, authenticate, failed, find_refresh, head, network, of_store, read, refused,
    unit,
};
use super::verifier::own_grant;
use crate::mcp_sessions::{self, SessionId};
use axum::extract::{Request, State};
use axum::response::Response;
use provost_kernel::auth::OrganizationId;
use provost_kernel::token;
use provost_kernel::{Kernel, OperationContext, Secret, params};
use provost_oauth::{TokenError, access_token};
use std::sync::Arc;

/// The path of the endpoint.
pub const PATH: &str = "/oauth/revoke";

/// Serves the endpoint.
pub async fn serve(State(kernel): State<Arc<Kernel>>, request: Request) -> Response {
    let from = network(&request);
    let asked = match read(request).await {
        Ok(asked) => asked,
        Err(error) => return refused(&error),
    };
    match revoke(&kernel, &asked).await {
        Ok(()) => head(200, "{}".to_owned()),
        Err(error) => failed(&kernel, from, &error),
    }
}

async fn revoke(kernel: &Arc<Kernel>, asked: &super::token::FormRequest) -> Result<(), TokenError> {
    let oauth = Oauth::of(kernel).map_err(of_store)?.clone();
    let token = Secret::new(asked.form.need("token")?.to_owned());
    let known = if asked.form.get("client_id") == Some(command_line::ID) {
        // Also where it is kept out: what it gives back cannot come to life when it is let in again.
        AuthenticatedClient {
            client: command_line::client(),
            assertion: None,
            proof: None,
        }
    } else {
        authenticate(kernel, &oauth, asked).await?
    };
    let rest = known.rest();
    let done = give_back(kernel, &oauth, known, token).await;
    // What ended nothing had no unit that spent the assertion.
    if !matches!(done, Ok(true)) {
        rest.spend(kernel).await;
    }
    done.map(drop)
}

/// Ends the session of a token; `false` for one that is nobody's, or another client's.
async fn give_back(
    kernel: &Arc<Kernel>,
    oauth: &Oauth,
    known: AuthenticatedClient,
    token: Secret<String>,
) -> Result<bool, TokenError> {
    let found = match token::parse(token.expose()) {
        Some(parsed) if parsed.is_of(REFRESH) => {
            let row = find_refresh(kernel, &token, parsed.lookup_id).await?;
            row.map(|row| (row.organization, row.session_id, row.client_id))
        }
        Some(_) => None,
        None => of_access(kernel, oauth, &token).await?,
    };
    // RFC 7009 §2.1: a client gives back its own alone.
    let found = found.filter(|(_, _, client)| *client == known.client.id);
    let Some((organization, session, _)) = found else {
        return Ok(false);
    };
    let run = move |ctx: &mut OperationContext<'_>| {
        if let Err(refusal) = known.spend(ctx)? {
            return Ok(Err(refusal));
        }
        ctx.target(&mcp_sessions::fences::SESSION, session.as_str());
        mcp_sessions::end(ctx, &SessionId::from_store(session.clone()), "user_revoked")?;
        Ok(Ok(true))
    };
    unit(kernel, organization, "oauth.token.revoked", run).await
}

/// Finds the session of one of our access tokens.
async fn of_access(
    kernel: &Arc<Kernel>,
    oauth: &Oauth,
    token: &Secret<String>,
) -> Result<Option<(OrganizationId, String, String)>, TokenError> {
    let ours = oauth.resources();
    let audiences = [ours[0].as_str(), ours[1].as_str()];
    let Ok(peeked) = access_token::peek(token.expose()) else {
        return Ok(None);
    };
    let Some(issuer) = oauth.own_issuer_of(&peeked) else {
        return Ok(None);
    };
    let Ok(claims) = access_token::verify(token.expose(), &issuer, &audiences, oauth.now_secs()) else {
        return Ok(None);
    };
    let Some(grant) = claims.session.as_deref().map(own_grant) else {
        return Ok(None);
    };
    let found = kernel
        .read_system(move |tx| {
            tx.query_opt(
                &mcp_sessions::LOOKUP,
                params![grant.as_str()],
                mcp_sessions::credential,
            )
        })
        .await;
    let found = found.map_err(of_store)?;
    Ok(found.map(|session| (session.organization, session.token_id, claims.client_id)))
}
