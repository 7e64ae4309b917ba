//! An enterprise's assertion that a client may act for a user (ID-JAG as a JWT bearer grant; MCP's enterprise-managed
//! authorization). The client must prove itself, and the assertion serves once.

use super::super::first_login::login;
use super::super::form::Form;
use super::super::state::Oauth;
use super::assertion::{OnWord, bound, no, organization, trusted};
use super::authenticate::{AuthenticatedClient, Spendable};
use super::code::narrowed;
use super::issue::{ACCESS_SECS, TokenAnswer};
use provost_kernel::Kernel;
use provost_kernel::auth::ScopeSet;
use provost_oauth::TokenError;
use provost_oauth::error::Code;
use provost_oauth::id_jag;
use std::sync::Arc;

pub async fn serve(
    kernel: &Arc<Kernel>,
    oauth: &Arc<Oauth>,
    known: AuthenticatedClient,
    form: &Form,
    jkt: Option<String>,
) -> Result<TokenAnswer, TokenError> {
    if !known.is_confidential() {
        return Err(TokenError::new(
            Code::UnauthorizedClient,
            "a client must prove itself to use this grant",
        ));
    }
    let assertion = form.need("assertion")?;
    let url = id_jag::peek_issuer(assertion).map_err(|refusal| refusal.answer(Code::InvalidGrant))?;
    let (trusted, issuer) = trusted(oauth, &url, assertion).await?;
    let ours = oauth.resources();
    let resources = [ours[0].as_str(), ours[1].as_str()];
    let jag = id_jag::verify(
        assertion,
        &issuer,
        &oauth.url,
        &known.client.id,
        &resources,
        oauth.now_secs(),
    );
    let jag = jag.map_err(|refusal| {
        trusted.note_refusal(refusal, oauth.now_secs());
        no(&refusal.to_string())
    })?;
    let organization = organization(oauth, &known, &trusted, jag.organization.as_deref())?;
    let wanted: Vec<String> = form.all("resource").map(str::to_owned).collect();
    let audiences = bound(jag.confirmation.as_ref(), jkt.as_deref())
        .and_then(|()| narrowed(oauth, &jag.resources, &wanted));
    // An assertion that names no scope leaves it to this server: what only looks.
    let limit = if jag.scopes.is_empty() {
        ScopeSet::reads()
    } else {
        let names: Vec<&str> = jag.scopes.iter().map(String::as_str).collect();
        ScopeSet::of(&names)
    };
    let scope = form.get("scope").map(str::to_owned);
    let word = OnWord {
        login: login(&trusted, jag.verified_email.as_deref()),
        once: Some(Spendable::of("id-jag", &jag.issuer, &jag.id, jag.expires_at)),
        trust: trusted,
        issuer: jag.issuer,
        subject: jag.subject,
        scope: scope.or_else(|| (!jag.scopes.is_empty()).then(|| jag.scopes.join(" "))),
        limit,
        audiences,
        jkt,
        actor: None,
        secs: ACCESS_SECS,
        exchange: None,
        known,
    };
    word.issue(kernel, oauth, organization).await
}
