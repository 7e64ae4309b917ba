//! `client_credentials`: a registered client that is a service account.

use super::super::form::Form;
use super::super::state::Oauth;
use super::authenticate::AuthenticatedClient;
use super::issue::{ACCESS_SECS, ALONE_SECS, Access, SessionStart, TokenAnswer, access, begin, unit};
use super::scope::{audiences, granted};
use crate::mcp_sessions::SessionActor;
use provost_areas_identity::service_accounts;
use provost_kernel::auth::ScopeSet;
use provost_kernel::{Kernel, OperationContext, Result as Stored};
use provost_oauth::TokenError;
use provost_oauth::error::Code;
use std::sync::Arc;

struct CredentialsRequest {
    known: AuthenticatedClient,
    account_id: String,
    scope: Option<String>,
    audiences: Vec<String>,
    jkt: Option<String>,
}

pub async fn serve(
    kernel: &Arc<Kernel>,
    oauth: &Arc<Oauth>,
    known: AuthenticatedClient,
    form: &Form,
    jkt: Option<String>,
) -> Result<TokenAnswer, TokenError> {
    let account = known
        .client
        .service_account_id
        .clone()
        .filter(|_| known.is_confidential());
    let (Some(account_id), Some(organization)) = (account, known.client.organization.clone()) else {
        return Err(TokenError::new(
            Code::UnauthorizedClient,
            "this client is no service account",
        ));
    };
    let asked = CredentialsRequest {
        known,
        account_id,
        scope: form.get("scope").map(str::to_owned),
        audiences: audiences(oauth, form.all("resource"))?,
        jkt,
    };
    let oauth = oauth.clone();
    let run = move |ctx: &mut OperationContext<'_>| issue(ctx, &oauth, &asked);
    unit(kernel, organization, "oauth.token.issued", run).await
}

fn issue(
    ctx: &mut OperationContext<'_>,
    oauth: &Oauth,
    asked: &CredentialsRequest,
) -> Stored<Result<TokenAnswer, TokenError>> {
    if let Err(refusal) = asked.known.spend(ctx)? {
        return Ok(Err(refusal));
    }
    let (org, client) = (ctx.org(), &asked.known.client);
    let account = service_accounts::principal(&mut ctx.tx(), org, &asked.account_id)?;
    let Some(account) = account.filter(|account| account.enabled) else {
        let refusal = TokenError::new(Code::InvalidGrant, "the client's account is gone or disabled");
        return Ok(Err(refusal));
    };
    let of_client = client.scopes.unwrap_or_else(ScopeSet::all);
    let of_account = account.scopes.unwrap_or_else(|| account.role.all_scopes());
    let limits = [of_client, account.role.grants(), of_account];
    let scopes = match granted(asked.scope.as_deref(), &limits) {
        Ok(scopes) => scopes,
        Err(refusal) => return Ok(Err(refusal)),
    };
    let beginning = SessionStart {
        actor: SessionActor::ServiceAccount {
            id: asked.account_id.clone(),
            display: account.display,
        },
        client_id: client.id.clone(),
        client_display: Some(client.name.clone()),
        scopes,
        secs: ALONE_SECS,
    };
    let (_, name) = begin(ctx, beginning)?;
    let new = Access {
        subject: &asked.account_id,
        client_id: &client.id,
        scopes,
        audiences: &asked.audiences,
        session: &name,
        jkt: asked.jkt.clone(),
        actor: None,
        secs: ACCESS_SECS,
    };
    access(ctx, oauth, new).map(Ok)
}
