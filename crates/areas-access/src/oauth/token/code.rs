//! `authorization_code`: what somebody consented to becomes a session (RFC 6749 §4.1.3, RFC 7636).

use super::super::form::Form;
use super::super::grants::{code_digest, user};
use super::super::state::Oauth;
use super::super::store;
use super::authenticate::AuthenticatedClient;
use super::issue::{
    ABSOLUTE_SECS, ACCESS_SECS, ALONE_SECS, Access, IDLE_SECS, NewRefresh, SessionStart, TokenAnswer,
};
use super::issue::{access, begin, of_store, refresh, unit};
use super::scope::granted;
use crate::mcp_sessions::{self, SessionActor, SessionId};
use provost_kernel::auth::{Role, ScopeSet};
use provost_kernel::{Kernel, OperationContext, Result as Stored, params};
use provost_oauth::error::Code;
use provost_oauth::{TokenError, pkce};
use std::sync::Arc;

struct CodeRequest {
    known: AuthenticatedClient,
    digest: [u8; 32],
    redirect_uri: Option<String>,
    verifier: provost_kernel::Secret<String>,
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
    let asked = CodeRequest {
        known,
        digest: code_digest(form.need("code")?),
        redirect_uri: form.get("redirect_uri").map(str::to_owned),
        verifier: provost_kernel::Secret::new(form.need("code_verifier")?.to_owned()),
        resources: form.all("resource").map(str::to_owned).collect(),
        jkt,
    };
    let digest = asked.digest;
    let found = kernel
        .read_system(move |tx| tx.query_opt(&store::CODE, params![digest.as_slice()], store::code))
        .await;
    let code = found
        .map_err(of_store)?
        .ok_or_else(|| no("the code is not valid"))?;
    let oauth = oauth.clone();
    let run = move |ctx: &mut OperationContext<'_>| redeem(ctx, &oauth, &asked);
    unit(kernel, code.organization, "oauth.token.issued", run).await
}

fn no(sentence: &str) -> TokenError {
    TokenError::new(Code::InvalidGrant, sentence)
}

fn redeem(
    ctx: &mut OperationContext<'_>,
    oauth: &Oauth,
    asked: &CodeRequest,
) -> Stored<Result<TokenAnswer, TokenError>> {
    if let Err(refusal) = asked.known.spend(ctx)? {
        return Ok(Err(refusal));
    }
    let (org, now, client) = (ctx.org(), ctx.now(), &asked.known.client);
    let found = ctx.query_opt(&store::CODE, params![asked.digest.as_slice()], store::code)?;
    let Some(code) = found.filter(|code| code.organization == *ctx.organization()) else {
        return Ok(Err(no("the code is not valid")));
    };
    if code.client_id != client.id {
        return Ok(Err(no("the code was given to another client")));
    }
    // Before anything else: who saw a code go by, and cannot use it, ends nothing with it either.
    if let Err(refusal) = pkce::verify(&code.challenge, asked.verifier.expose()) {
        return Ok(Err(refusal.answer(Code::InvalidGrant)));
    }
    // INVARIANT OC-3: a code serves once; shown again, it ends the session that it began.
    if code.used_at.is_some() {
        if let Some(id) = code.session_id {
            ctx.target(&mcp_sessions::fences::SESSION, id.as_str());
            mcp_sessions::end(ctx, &SessionId::from_store(id), "token_reuse")?;
        }
        return Ok(Err(no("the code was used before; its session has ended")));
    }
    if code.expires_at <= ctx.latest() {
        return Ok(Err(no("the code has run out")));
    }
    // OAuth 2.1 §10.2 does not ask for it: the code's own challenge says whose it is. Whoever sends it says it right.
    let sent = asked.redirect_uri.as_ref();
    if sent.is_some_and(|sent| *sent != code.redirect_uri) {
        return Ok(Err(no(
            "redirect_uri is not the one of the authorization request",
        )));
    }
    if code.jkt.is_some() && code.jkt != asked.jkt {
        let refusal = TokenError::new(Code::InvalidDpopProof, "the code is bound to another key");
        return Ok(Err(refusal));
    }
    let audiences = match narrowed(oauth, &code.audiences, &asked.resources) {
        Ok(audiences) => audiences,
        Err(refusal) => return Ok(Err(refusal)),
    };
    let user = user(ctx, &code.user_id)?.filter(|user| user.is_active);
    let Some((role, user)) = user.and_then(|user| Some((user.acting_role?, user))) else {
        return Ok(Err(no("the user behind the code may not act any more")));
    };
    let consented = code.scopes.to_list().join(" ");
    let limits = limits(client.scopes, role);
    let scopes = match granted(Some(&consented), &limits) {
        Ok(scopes) => scopes,
        Err(refusal) => return Ok(Err(refusal)),
    };
    let refreshes = client.may_use("refresh_token");
    let (session, name) = begin(
        ctx,
        SessionStart {
            actor: SessionActor::ConsoleUser {
                id: user.id.clone(),
                display: code.user_display,
            },
            client_id: client.id.clone(),
            // As the page of consent showed it.
            client_display: code.client_name.or_else(|| Some(client.name.clone())),
            scopes,
            secs: if refreshes { IDLE_SECS } else { ALONE_SECS },
        },
    )?;
    let kept_until = now.plus_secs(if refreshes { ABSOLUTE_SECS } else { ALONE_SECS });
    ctx.queue(
        &store::USE_CODE,
        params![org, asked.digest.as_slice(), now, session.as_str(), kept_until],
    )?;
    let mut issued = access(
        ctx,
        oauth,
        Access {
            subject: &user.id,
            client_id: &client.id,
            scopes,
            audiences: &audiences,
            session: &name,
            jkt: asked.jkt.clone(),
            actor: None,
            secs: ACCESS_SECS,
        },
    )?;
    if refreshes {
        let new = NewRefresh {
            session_id: session.as_str(),
            grant_key: &name,
            generation: 0,
            client_id: &client.id,
            user_id: &user.id,
            scopes,
            audiences: &audiences,
            // RFC 9449 §5: those of public clients are bound; the others prove themselves anyway.
            jkt: asked.jkt.as_deref().filter(|_| !asked.known.is_confidential()),
            ends_at: now.plus_secs(ABSOLUTE_SECS),
        };
        issued.refresh = Some(refresh(ctx, &new)?.0);
    }
    Ok(Ok(issued))
}

/// Returns what a client and a role allow.
pub fn limits(client: Option<ScopeSet>, role: Role) -> [ScopeSet; 2] {
    [client.unwrap_or_else(ScopeSet::all), role.all_scopes()]
}

/// Returns the resources that a request names of those that were granted, in our own spelling; without names, all of them.
///
/// Errors: `invalid_target`.
pub fn narrowed(oauth: &Oauth, granted: &[String], named: &[String]) -> Result<Vec<String>, TokenError> {
    let spelled = |name: &String| oauth.resource(name).unwrap_or_else(|| name.clone());
    let granted: Vec<String> = granted.iter().map(spelled).collect();
    if named.is_empty() {
        return Ok(granted);
    }
    let named: Vec<String> = named.iter().map(spelled).collect();
    if !named.iter().all(|name| granted.contains(name)) {
        return Err(TokenError::new(
            Code::InvalidTarget,
            "this resource was not granted",
        ));
    }
    Ok(granted
        .into_iter()
        .filter(|known| named.contains(known))
        .collect())
}
