//! Whether an access token was issued by somebody who may, for this organization, this resource and this sender (D2.6).
//!
//! Whether it is still valid is not said here: its session says so, in the snapshot of the request (D2.9).

use super::first_login::FirstLogin;
use super::foreign::ForeignSession;
use super::issuers::IssuerTrust;
use super::state::{Oauth, is_pinned};
use super::turns::Asker;
use provost_kernel::auth::{OrganizationId, Origin, ScopeSet};
use provost_kernel::credential::{KeyProof, TokenCheck, VerifiedToken, Verifier, invalid_token};
use provost_kernel::error::{Code, Error, Result};
use provost_kernel::{Timestamp, write_behind};
use provost_oauth::access_token;
use provost_oauth::dpop::Proof;
use provost_oauth::{Claims, Confirmation, Refusal, dpop, introspection, is_same_url};
use std::pin::Pin;
use std::sync::{Arc, OnceLock};

/// By how much clocks may differ. Units: seconds (D2.6).
pub(super) const LEEWAY_SECS: i64 = 60;
/// LIMIT: seconds for which a checked signature is believed, so that a key that its issuer withdraws stops soon.
const SIGNATURE_SECS: i64 = 300;
/// LIMIT: seconds for which an issuer's word about an opaque token is believed (D2.6).
const INTROSPECTION_SECS: i64 = 30;

/// LIMIT: seconds for which a token stays refused without being looked at again: an issuer is not asked once for each time that
/// somebody sends one.
const REFUSAL_SECS: i64 = 10;

/// What is known of a token without a store, whatever it is asked for.
#[derive(Clone)]
pub(super) struct AcceptedToken {
    claims: Arc<Claims>,
    /// Whose it is; `None` is ours.
    issuer: Option<Arc<IssuerTrust>>,
    /// The address that the issuer vouches for.
    email: Option<String>,
}

/// See the module's text.
pub struct TokenVerifier(pub Arc<Oauth>);

impl Verifier for TokenVerifier {
    fn verify<'a>(
        &'a self,
        token: &'a str,
        ask: TokenCheck<'a>,
    ) -> Pin<Box<dyn Future<Output = Result<VerifiedToken>> + Send + 'a>> {
        Box::pin(async move {
            let accepted = self.0.accept(token, ask.origin).await?;
            self.0.admit(token, &accepted, ask)
        })
    }

    fn prove(&self, token: &str, ask: TokenCheck<'_>) -> Result<Arc<dyn KeyProof>> {
        let url = format!("{}{}", self.0.url, ask.path);
        let now = self.0.now_secs();
        let sent = ask.headers.get("dpop").and_then(|value| value.to_str().ok());
        let proof = sent.filter(|sent| dpop::is_elliptic(sent)).and_then(|_| {
            proof(ask.headers, ask.method.as_str(), &url, Some(token), now)
                .ok()
                .flatten()
        });
        let proof = proof.ok_or_else(|| no("the DPoP proof is missing or not accepted"))?;
        Ok(Arc::new(OwnTokenProof {
            oauth: self.0.clone(),
            proof,
            owner: provost_kernel::token::parse(token)
                .map(|parsed| parsed.lookup_id.to_owned())
                .unwrap_or_default(),
            spent: OnceLock::new(),
        }))
    }
}

/// The proof of the sender of one of our own opaque tokens, for one request.
struct OwnTokenProof {
    oauth: Arc<Oauth>,
    proof: Proof,
    /// Whose token it is beside: the public part of it.
    owner: String,
    /// What came of spending it: a request may be looked at more than once.
    spent: OnceLock<std::result::Result<(), Refusal>>,
}

impl std::fmt::Debug for OwnTokenProof {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("OwnTokenProof(…)")
    }
}

impl KeyProof for OwnTokenProof {
    fn thumbprint(&self) -> &str {
        &self.proof.thumbprint
    }

    fn spend(&self, organization: &OrganizationId) -> Result<()> {
        let spend = || {
            let now = self.oauth.now_secs();
            self.oauth
                .own_shares
                .take(organization.as_str(), &self.owner, now)?;
            self.oauth
                .own_proofs
                .admit_of(organization.as_str(), &self.proof, now)
        };
        match self.spent.get_or_init(spend) {
            Ok(()) => Ok(()),
            Err(Refusal::Busy) => Err(Error::unavailable("too many proofs at a time; try again")),
            Err(_) => Err(no("the DPoP proof is missing or not accepted")),
        }
    }
}

impl Oauth {
    /// Finds out who issued a token and what it says.
    async fn accept(&self, token: &str, origin: &Origin) -> Result<AcceptedToken> {
        let now = self.now_secs();
        if let Some(known) = self.tokens.get(token, now) {
            return Ok(known);
        }
        if let Some(refusal) = self.rejected.get(token, now) {
            return Err(refused(refusal));
        }
        let is_signed = token.bytes().filter(|byte| *byte == b'.').count() == 2;
        let (accepted, secs) = if is_signed {
            (self.signed(token, now).await, SIGNATURE_SECS)
        } else {
            (self.opaque(token, now, origin).await, INTROSPECTION_SECS)
        };
        let accepted = accepted.inspect_err(|error| {
            let refusal = match error.code() {
                Code::Unauthenticated => Refusal::Signature,
                Code::TokenExpired => Refusal::Expired,
                // Nobody was asked, or nobody answered.
                _ => return,
            };
            if is_signed && self.names_unknown_key(token) {
                return;
            }
            self.rejected.put(token, refusal, now, now + REFUSAL_SECS);
        })?;
        let until = (accepted.claims.expires_at + LEEWAY_SECS).min(now + secs);
        self.tokens.put(token, accepted.clone(), now, until);
        Ok(accepted)
    }

    async fn signed(&self, token: &str, now: i64) -> Result<AcceptedToken> {
        let resources = self.resources();
        let audiences = [resources[0].as_str(), resources[1].as_str()];
        let peeked = access_token::peek(token).map_err(refused)?;
        if let Some(ours) = self.own_issuer_of(&peeked) {
            let claims = access_token::verify(token, &ours, &audiences, now).map_err(refused)?;
            return Ok(AcceptedToken {
                claims: Arc::new(claims),
                issuer: None,
                email: None,
            });
        }
        let trusted = self.issuer(&peeked.issuer).ok_or_else(invalid_token)?;
        let fetcher = || self.fetcher().cloned();
        let issuer = trusted.with_keys(fetcher, &self.clock, &peeked).await?;
        let claims = access_token::verify(token, &issuer, &audiences, now).map_err(|refusal| {
            trusted.note_refusal(refusal, now);
            refused(refusal)
        })?;
        Ok(AcceptedToken {
            claims: Arc::new(claims),
            issuer: Some(trusted.clone()),
            email: super::verified_email::of_token(token),
        })
    }

    /// Asks the one issuer of opaque tokens.
    async fn opaque(&self, token: &str, now: i64, origin: &Origin) -> Result<AcceptedToken> {
        let mut asked = self
            .issuers
            .iter()
            .filter_map(|issuer| Some((issuer, issuer.declared.introspection.as_ref()?)));
        let (trusted, endpoint) = asked.next().ok_or_else(invalid_token)?;
        let form = introspection::request(token).map_err(refused)?;
        let silence = || Error::unavailable("the issuer of this token cannot be asked; try again");
        if trusted.is_silent(self.clock.as_ref()) {
            return Err(silence());
        }
        let sender = Asker {
            network: Some(write_behind::network(origin.source_ip)),
            is_known: origin.arrival.is_known(),
        };
        // The host is the operator's own.
        let _turn = self.questions.take(None, &sender).await.ok_or_else(silence)?;
        // It may have fallen silent while this one waited.
        if trusted.is_silent(self.clock.as_ref()) {
            return Err(silence());
        }
        let authorization = super::form::basic(&endpoint.client_id, &endpoint.client_secret);
        let answer = self
            .fetcher()?
            .post_form(
                &endpoint.url,
                bytes::Bytes::from_owner(form),
                authorization,
                introspection::FETCH,
            )
            .await;
        let answer = answer.map_err(|cause| {
            tracing::warn!(issuer = %trusted.declared.url, "an issuer did not answer about a token: {cause}");
            trusted.note_silence(self.clock.as_ref(), &cause);
            silence()
        })?;
        let resources = self.resources();
        let audiences = [resources[0].as_str(), resources[1].as_str()];
        let claims = introspection::answer(&answer, token, &trusted.declared.url, &audiences, now);
        let claims = claims.map_err(|refusal| {
            // Of a text that it does not know the issuer says that it is not active: it was no token of its.
            if refusal != Refusal::Inactive {
                trusted.note_refusal(refusal, now);
            }
            refused(refusal)
        })?;
        Ok(AcceptedToken {
            claims: Arc::new(claims),
            issuer: Some(trusted.clone()),
            email: super::verified_email::of_claims(&answer),
        })
    }

    /// Checks a token against what was called.
    ///
    /// INVARIANT OC-1: a delegated token is accepted only from the issuer that its organization is pinned to, for the
    /// resource that was called, with the proof that it asks for.
    fn admit(&self, token: &str, accepted: &AcceptedToken, ask: TokenCheck<'_>) -> Result<VerifiedToken> {
        let (claims, now) = (&accepted.claims, self.now_secs());
        let note = |refusal| {
            if let Some(issuer) = &accepted.issuer {
                issuer.note_refusal(refusal, now);
            }
        };
        if now.saturating_sub(LEEWAY_SECS) >= claims.expires_at {
            note(Refusal::Expired);
            return Err(refused(Refusal::Expired));
        }
        // INVARIANT OC-9: a blocked client gets nothing, and what it was given is refused.
        let is_out = match &accepted.issuer {
            None => self.settings.keeps_out(&claims.client_id),
            Some(_) => self.settings.blocks(&claims.client_id),
        };
        if is_out {
            return Err(invalid_token());
        }
        let called = format!("{}{}", self.url, ask.entry_point.audience());
        if !claims.audiences.iter().any(|named| is_same_url(named, &called)) {
            note(Refusal::Audience);
            return Err(invalid_token());
        }
        let organization = OrganizationId::parse(&claims.organization);
        let organization = organization.filter(|organization| {
            let pinned = accepted.issuer.as_ref();
            pinned.is_none_or(|issuer| is_pinned(issuer, organization))
        });
        let Some(organization) = organization else {
            note(Refusal::Mismatch("organization_id"));
            return Err(invalid_token());
        };
        self.prove(token, claims, ask, now)?;
        // Another server of the store may have issued it by a clock of its own.
        let end = claims.expires_at.saturating_add(LEEWAY_SECS);
        let expires_at = Timestamp::from_ms(end.saturating_mul(1000));
        let scopes: Vec<&str> = claims.scopes.iter().map(String::as_str).collect();
        let scopes = ScopeSet::of(&scopes);
        let client = Some(claims.client_id.clone());
        let Some(issuer) = &accepted.issuer else {
            let session = claims.session.as_deref().ok_or_else(invalid_token)?;
            return Ok(VerifiedToken {
                organization,
                grant: own_grant(session),
                client,
                principal: Some(claims.subject.clone()),
                scopes,
                grows: false,
                expires_at,
                opening: None,
            });
        };
        // The subject stands in the key.
        let keys = ForeignSession::of(claims).keys();
        let grant = keys.own.clone();
        let opening = FirstLogin::of(
            keys,
            claims,
            accepted.email.as_deref(),
            issuer,
            scopes,
            expires_at,
        );
        Ok(VerifiedToken {
            organization,
            grant,
            client,
            principal: None,
            scopes,
            grows: claims.session.is_some(),
            expires_at,
            opening: Some(Arc::new(opening)),
        })
    }

    /// Checks that the sender holds the key that a token is bound to (RFC 9449 §7).
    fn prove(&self, token: &str, claims: &Claims, ask: TokenCheck<'_>, now: i64) -> Result<()> {
        let is_dpop = ask
            .headers
            .get(http::header::AUTHORIZATION)
            .and_then(|value| value.as_bytes().get(..5))
            .is_some_and(|lead| lead.eq_ignore_ascii_case(b"dpop "));
        let wanted = match &claims.confirmation {
            None if is_dpop => return Err(invalid_token()),
            None => return Ok(()),
            Some(Confirmation::CertificateSha256(_)) => {
                return Err(no(
                    "this token is bound to a client certificate, and this server asks for none",
                ));
            }
            Some(Confirmation::Jkt(_)) if !is_dpop => {
                return Err(no("this token is bound to a key; send it as DPoP, with a proof"));
            }
            Some(Confirmation::Jkt(thumbprint)) => thumbprint,
        };
        let url = format!("{}{}", self.url, ask.path);
        let proof = proof(ask.headers, ask.method.as_str(), &url, Some(token), now);
        let proof = proof.ok().flatten();
        let proof = proof.filter(|proof| proof.thumbprint == *wanted);
        let admitted = proof
            .ok_or(Refusal::Shape)
            .and_then(|proof| self.proofs.admit(&proof, now));
        match admitted {
            Ok(()) => Ok(()),
            Err(Refusal::Busy) => Err(Error::unavailable("too many proofs at a time; try again")),
            Err(_) => Err(no("the DPoP proof is missing or not accepted")),
        }
    }
}

/// Returns the proof that a request holds, if it holds one at all. That it serves once is for the caller to see to.
///
/// Errors: those of the proof, `Shape` for two of them.
pub(super) fn proof(
    headers: &http::HeaderMap,
    method: &str,
    url: &str,
    token: Option<&str>,
    now: i64,
) -> std::result::Result<Option<Proof>, Refusal> {
    let mut sent = headers.get_all("dpop").iter();
    let Some(first) = sent.next() else { return Ok(None) };
    let text = first.to_str().map_err(|_| Refusal::Shape)?;
    if sent.next().is_some() {
        return Err(Refusal::Shape);
    }
    dpop::verify(text, method, url, token, now).map(Some)
}

/// Returns by what key the session of one of our tokens is found.
pub(super) fn own_grant(session: &str) -> String {
    format!("own|{session}")
}

fn no(message: &'static str) -> Error {
    Error::new(Code::Unauthenticated, message).with("presented", true)
}

fn refused(refusal: Refusal) -> Error {
    match refusal {
        Refusal::Expired => Error::new(Code::TokenExpired, "the token has expired").with("presented", true),
        _ => invalid_token(),
    }
}
