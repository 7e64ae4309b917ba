//! Token exchange (RFC 8693): a token of a trusted issuer for one of ours.

use super::super::form::Form;
use super::super::opening::login;
use super::super::state::Oauth;
use super::assertion::{OnWord, bound, no, organization, trusted};
use super::authenticate::Known;
use super::issue::{ACCESS_SECS, Issued};
use super::scope::audiences;
use provost_kernel::Kernel;
use provost_kernel::auth::ScopeSet;
use provost_oauth::TokenError;
use provost_oauth::error::Code;
use provost_oauth::subject_token::{self, Subject, SubjectTokenType};
use std::sync::Arc;

pub async fn serve(
    kernel: &Arc<Kernel>,
    oauth: &Arc<Oauth>,
    known: Known,
    form: &Form,
    jkt: Option<String>,
) -> Result<Issued, TokenError> {
    // A stranger's document is no reason to hand it somebody else's rights.
    if known.client.organization.is_none() {
        return Err(TokenError::new(
            Code::UnauthorizedClient,
            "exchanges are for registered clients",
        ));
    }
    let wanted = form.get("requested_token_type");
    if wanted.is_some_and(|wanted| wanted != SubjectTokenType::AccessToken.as_str()) {
        return Err(wrong("requested_token_type must be an access token"));
    }
    if form.get("audience").is_some() {
        return Err(TokenError::new(
            Code::InvalidTarget,
            "name the resource, not an audience",
        ));
    }
    let (token, kind) = (form.need("subject_token")?, form.need("subject_token_type")?);
    let (issuer, subject) = verified(oauth, token, kind).await?;
    bound(subject.confirmation.as_ref(), jkt.as_deref())?;
    let organization = organization(&known, &issuer, subject.organization.as_deref())?;
    let actor = match (form.get("actor_token"), form.get("actor_token_type")) {
        (None, None) => None,
        (Some(token), Some(kind)) => {
            let (issuer, actor) = verified(oauth, token, kind).await?;
            bound(actor.confirmation.as_ref(), jkt.as_deref())?;
            super::assertion::organization(&known, &issuer, actor.organization.as_deref())?;
            Some(actor.subject)
        }
        _ => return Err(wrong("actor_token and actor_token_type come together")),
    };
    let email = subject.email.filter(|_| subject.email_verified == Some(true));
    let left = subject.expires_at.saturating_sub(oauth.now_secs());
    let limit = if kind == SubjectTokenType::AccessToken.as_str() {
        let names: Vec<&str> = subject.scopes.iter().map(String::as_str).collect();
        ScopeSet::of(&names)
    } else {
        ScopeSet::all()
    };
    let word = OnWord {
        login: login(&issuer, email.as_deref()),
        issuer: subject.issuer,
        subject: subject.subject,
        once: None,
        scope: form.get("scope").map(str::to_owned),
        limit,
        audiences: audiences(oauth, form.all("resource"))?,
        jkt,
        actor,
        secs: left.clamp(1, ACCESS_SECS),
        is_exchange: true,
        known,
    };
    word.issue(kernel, oauth, organization).await
}

/// Verifies one of the two tokens.
async fn verified(
    oauth: &Oauth,
    token: &str,
    kind: &str,
) -> Result<(Arc<super::super::issuers::Trusted>, Subject), TokenError> {
    let kind =
        SubjectTokenType::parse(kind).ok_or_else(|| wrong("tokens of this type are not exchanged here"))?;
    let url =
        subject_token::peek_issuer(token, kind).map_err(|refusal| refusal.answer(Code::InvalidGrant))?;
    let (trusted, issuer) = trusted(oauth, &url, token).await?;
    let ours = oauth.resources();
    let mut names: Vec<&str> = trusted.declared.audiences.iter().map(String::as_str).collect();
    names.extend([oauth.url.as_str(), ours[0].as_str(), ours[1].as_str()]);
    let subject = subject_token::verify(token, kind, &issuer, &names, oauth.now_secs());
    let subject = subject.map_err(|refusal| no(&refusal.to_string()))?;
    Ok((trusted, subject))
}

fn wrong(sentence: &str) -> TokenError {
    TokenError::new(Code::InvalidRequest, sentence)
}
