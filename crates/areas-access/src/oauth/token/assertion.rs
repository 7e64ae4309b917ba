//! What exchanges and assertions have in common: another issuer says which user it is.

use super::super::grants::{RecognizedUser, VerifiedLogin, recognize};
use super::super::issuers::IssuerTrust;
use super::super::state::{Oauth, is_pinned};
use super::super::verifier::LEEWAY_SECS;
use super::authenticate::{AuthenticatedClient, Spendable};
use super::code::limits;
use super::exchanged::Exchange;
use super::issue::{Access, SessionStart, TokenAnswer, access, begin, of_store, unit};
use super::scope::granted;
use crate::mcp_sessions::SessionActor;
use provost_kernel::auth::{OrganizationId, ScopeSet};
use provost_kernel::{Kernel, OperationContext, Result as Stored};
use provost_oauth::access_token::{Issuer, TokenPreview};
use provost_oauth::error::Code;
use provost_oauth::jwks::Algorithm;
use provost_oauth::{Confirmation, Refusal, TokenError};
use std::sync::Arc;

/// Who somebody is, on another issuer's word, and what is asked for them.
pub struct OnWord {
    pub known: AuthenticatedClient,
    pub trust: Arc<IssuerTrust>,
    pub issuer: String,
    pub subject: String,
    pub login: Option<VerifiedLogin>,
    /// What serves once.
    pub once: Option<Spendable>,
    pub scope: Option<String>,
    /// The most that the word allows.
    pub limit: ScopeSet,
    /// The resources, or why the request is refused although the word is true: what serves once is spent by it.
    pub audiences: Result<Vec<String>, TokenError>,
    pub jkt: Option<String>,
    /// Who acts for the subject.
    pub actor: Option<String>,
    pub secs: i64,
    /// The token that is exchanged.
    pub exchange: Option<Exchange>,
}

impl OnWord {
    /// Issues a token for the user.
    pub async fn issue(
        self,
        kernel: &Arc<Kernel>,
        oauth: &Arc<Oauth>,
        organization: OrganizationId,
    ) -> Result<TokenAnswer, TokenError> {
        let oauth = oauth.clone();
        let run = move |ctx: &mut OperationContext<'_>| self.run(ctx, &oauth);
        unit(kernel, organization, "oauth.token.issued", run).await
    }

    fn run(&self, ctx: &mut OperationContext<'_>, oauth: &Oauth) -> Stored<Result<TokenAnswer, TokenError>> {
        if let Err(refusal) = self.known.spend(ctx)? {
            return Ok(Err(refusal));
        }
        // INVARIANT OC-5: an assertion serves once at all servers of a store.
        if let Some(once) = &self.once
            && !once.spend(ctx)?
        {
            return Ok(Err(no("the assertion was used before")));
        }
        let audiences = match &self.audiences {
            Ok(audiences) => audiences,
            Err(refusal) => return Ok(Err(refusal.clone())),
        };
        if let Some(exchange) = &self.exchange
            && let Err(refusal) = exchange.admit(ctx)?
        {
            return Ok(Err(refusal));
        }
        let user = match recognize(ctx, &self.issuer, &self.subject, self.login.as_ref())? {
            RecognizedUser::User(user) => Some(user).filter(|user| user.is_active),
            RecognizedUser::Stranger => None,
            RecognizedUser::Withheld => {
                let sentence =
                    "an admin must link this subject to its user first, or allow that it is linked anew";
                return Ok(Err(no(sentence)));
            }
        };
        let Some((role, user)) = user.and_then(|user| Some((user.acting_role?, user))) else {
            self.trust
                .note_refusal(Refusal::Mismatch("sub"), oauth.now_secs());
            return Ok(Err(no("the subject is no user here who may act")));
        };
        let client = &self.known.client;
        let [of_client, of_role] = limits(client.scopes, role);
        let scopes = match granted(self.scope.as_deref(), &[of_client, of_role, self.limit]) {
            Ok(scopes) => scopes,
            Err(refusal) => return Ok(Err(refusal)),
        };
        let actor = match &self.actor {
            None => SessionActor::ConsoleUser {
                id: user.id.clone(),
                display: user.display,
            },
            Some(actor) => SessionActor::Agent {
                console_user: Some(user.id.clone()),
                service_account: None,
                display: actor.clone(),
            },
        };
        let beginning = SessionStart {
            actor,
            client_id: client.id.clone(),
            client_display: Some(client.name.clone()),
            scopes,
            secs: self.secs,
        };
        let name = match &self.exchange {
            None => {
                let secs = beginning.secs + LEEWAY_SECS;
                begin(ctx, SessionStart { secs, ..beginning })?.1
            }
            Some(exchange) => match exchange.begin(ctx, beginning)? {
                Ok(name) => name,
                Err(refusal) => return Ok(Err(refusal)),
            },
        };
        let new = Access {
            subject: &user.id,
            client_id: &client.id,
            scopes,
            audiences,
            session: &name,
            jkt: self.jkt.clone(),
            actor: self.actor.clone(),
            secs: self.secs,
        };
        let mut issued = access(ctx, oauth, new)?;
        issued.is_exchanged = self.exchange.is_some();
        Ok(Ok(issued))
    }
}

/// Returns a trusted issuer and its keys. The keys are those for any of its algorithms: the token is verified next.
///
/// Errors: `invalid_grant` for a stranger, `temporarily_unavailable`.
pub async fn trusted(
    oauth: &Oauth,
    url: &str,
    token: &str,
) -> Result<(Arc<IssuerTrust>, Issuer), TokenError> {
    let trusted = oauth
        .issuer(url)
        .ok_or_else(|| no("the issuer is not trusted here"))?;
    let peeked = TokenPreview {
        issuer: url.to_owned(),
        kid: super::super::verified_email::key_of(token),
        algorithm: super::super::verified_email::algorithm_of(token).unwrap_or(Algorithm::EdDsa),
    };
    let fetcher = || oauth.fetcher().cloned();
    let issuer = trusted.with_keys(fetcher, &oauth.clock, &peeked).await;
    Ok((trusted.clone(), issuer.map_err(of_store)?))
}

/// Returns the organization in which a word counts: the client's, or the only one of the issuer; never one that the issuer
/// is not pinned to, or that the word denies.
///
/// Errors: `invalid_grant`.
pub fn organization(
    oauth: &Oauth,
    known: &AuthenticatedClient,
    issuer: &IssuerTrust,
    said: Option<&str>,
) -> Result<OrganizationId, TokenError> {
    let organization = match (
        &known.client.organization,
        issuer.declared.organizations.as_slice(),
    ) {
        (Some(own), _) => own.clone(),
        (None, [only]) => only.clone(),
        (None, _) => {
            return Err(no(
                "the issuer speaks of several organizations; register the client in one",
            ));
        }
    };
    let denied = said.is_some_and(|said| said != organization.as_str());
    if denied || !is_pinned(issuer, &organization) {
        issuer.note_refusal(Refusal::Mismatch("organization_id"), oauth.now_secs());
        return Err(no("the issuer is not trusted in this organization"));
    }
    Ok(organization)
}

/// Checks that whoever brings a word proves to hold the key that it is bound to.
///
/// Errors: `invalid_grant`, `invalid_dpop_proof`.
pub fn bound(confirmation: Option<&Confirmation>, jkt: Option<&str>) -> Result<(), TokenError> {
    match confirmation {
        None => Ok(()),
        Some(Confirmation::Jkt(wanted)) if jkt == Some(wanted) => Ok(()),
        Some(Confirmation::Jkt(_)) => Err(TokenError::new(
            Code::InvalidDpopProof,
            "this is bound to a key that the request does not prove to hold",
        )),
        Some(Confirmation::CertificateSha256(_)) => Err(no("this is bound to a certificate")),
    }
}

pub fn no(sentence: &str) -> TokenError {
    TokenError::new(Code::InvalidGrant, sentence)
}
