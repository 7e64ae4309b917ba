//! Token exchange (RFC 8693): a token of a trusted issuer for one of ours.
//!
//! INVARIANT OC-17: an exchange gives a token for resources of the subject token alone, unless the client proved
//! itself.

use super::super::first_login::login;
use super::super::form::Form;
use super::super::state::Oauth;
use super::assertion::{OnWord, bound, no, organization, trusted};
use super::authenticate::AuthenticatedClient;
use super::exchanged::Exchange;
use super::issue::{ACCESS_SECS, TokenAnswer};
use super::scope::audiences;
use provost_kernel::Kernel;
use provost_kernel::auth::ScopeSet;
use provost_oauth::error::Code;
use provost_oauth::subject_token::{self, Subject, SubjectTokenType};
use provost_oauth::{TokenError, is_same_url};
use std::sync::Arc;

pub async fn serve(
    kernel: &Arc<Kernel>,
    oauth: &Arc<Oauth>,
    known: AuthenticatedClient,
    form: &Form,
    jkt: Option<String>,
) -> Result<TokenAnswer, TokenError> {
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
    if !known.is_confidential() && !is_named(&known, &subject) {
        return Err(no(
            "a client that does not prove itself exchanges only tokens that name it",
        ));
    }
    let organization = organization(oauth, &known, &issuer, subject.organization.as_deref())?;
    let actor = match (form.get("actor_token"), form.get("actor_token_type")) {
        (None, None) => None,
        (Some(token), Some(kind)) => {
            let (issuer, actor) = verified(oauth, token, kind).await?;
            bound(actor.confirmation.as_ref(), jkt.as_deref())?;
            super::assertion::organization(oauth, &known, &issuer, actor.organization.as_deref())?;
            Some(actor.subject)
        }
        _ => return Err(wrong("actor_token and actor_token_type come together")),
    };
    let exchange = Exchange::of(&subject, token, organization.as_str());
    let left = subject.expires_at.saturating_sub(oauth.now_secs());
    let limit = if kind == SubjectTokenType::AccessToken.as_str() {
        let names: Vec<&str> = subject.scopes.iter().map(String::as_str).collect();
        ScopeSet::of(&names)
    } else {
        ScopeSet::all()
    };
    let word = OnWord {
        login: login(&issuer, subject.verified_email.as_deref()),
        trust: issuer,
        issuer: subject.issuer,
        subject: subject.subject,
        once: None,
        scope: form.get("scope").map(str::to_owned),
        limit,
        audiences: within(oauth, &known, &subject.audiences, form),
        jkt,
        actor,
        secs: left.clamp(1, ACCESS_SECS),
        exchange: Some(exchange),
        known,
    };
    word.issue(kernel, oauth, organization).await
}

/// Returns the resources of an exchange.
///
/// INVARIANT OC-17: an exchange gives a token for resources of the subject token alone, unless the client proved itself
/// and may exchange tokens: whoever finds a token for one door opens no other with it.
///
/// Errors: `invalid_target`.
fn within(
    oauth: &Oauth,
    known: &AuthenticatedClient,
    subject: &[String],
    form: &Form,
) -> Result<Vec<String>, TokenError> {
    let ours = oauth.resources();
    let own: Vec<String> = ours
        .iter()
        .filter(|name| subject.iter().any(|named| is_same_url(named, name)))
        .cloned()
        .collect();
    // A request that names nothing asks for the API, or for what the subject token is for, which is less.
    let [api, _] = &ours;
    if form.all("resource").next().is_none() && !own.is_empty() && !own.contains(api) {
        return Ok(own);
    }
    let asked = audiences(oauth, form.all("resource"))?;
    if known.is_confidential() || asked.iter().all(|name| own.contains(name)) {
        return Ok(asked);
    }
    Err(TokenError::new(
        Code::InvalidTarget,
        "the subject token is not for this resource, and the client did not prove itself",
    ))
}

/// Says whether a subject token was made for the client that brings it. Whoever finds a token can call itself by a name.
fn is_named(known: &AuthenticatedClient, subject: &Subject) -> bool {
    match (&subject.client_id, subject.audiences.as_slice()) {
        (Some(client), _) => *client == known.client.id,
        (None, [only]) => *only == known.client.id,
        (None, _) => false,
    }
}

/// Verifies one of the two tokens.
async fn verified(
    oauth: &Oauth,
    token: &str,
    kind: &str,
) -> Result<(Arc<super::super::issuers::IssuerTrust>, Subject), TokenError> {
    let kind =
        SubjectTokenType::parse(kind).ok_or_else(|| wrong("tokens of this type are not exchanged here"))?;
    let url =
        subject_token::peek_issuer(token, kind).map_err(|refusal| refusal.answer(Code::InvalidGrant))?;
    let (trusted, issuer) = trusted(oauth, &url, token).await?;
    let ours = oauth.resources();
    let mut names: Vec<&str> = trusted.declared.audiences.iter().map(String::as_str).collect();
    names.extend([oauth.url.as_str(), ours[0].as_str(), ours[1].as_str()]);
    let subject = subject_token::verify(token, kind, &issuer, &names, oauth.now_secs());
    let subject = subject.map_err(|refusal| {
        trusted.note_refusal(refusal, oauth.now_secs());
        no(&refusal.to_string())
    })?;
    Ok((trusted, subject))
}

fn wrong(sentence: &str) -> TokenError {
    TokenError::new(Code::InvalidRequest, sentence)
}
