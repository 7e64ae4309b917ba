//! How clients prove themselves: by nothing, or by an assertion that they signed and that serves once.

use super::super::form::Form;
use super::super::grants::{self, Client};
use super::super::state::Oauth;
use super::super::store;
use super::super::verifier::LEEWAY_SECS;
use super::{FormRequest, PATH};
use aws_lc_rs::digest::{SHA256, digest};
use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use provost_areas_platform::store::organizations;
use provost_kernel::auth::OrganizationId;
use provost_kernel::{Kernel, OperationContext, Result as Stored, Timestamp};
use provost_oauth::client_document::Authentication;
use provost_oauth::dpop::{Proof, WINDOW_SECS};
use provost_oauth::error::Code;
use provost_oauth::{KeySet, Refusal, TokenError, assertion, json};
use std::sync::Arc;

/// A client that proved to be who it says.
pub struct AuthenticatedClient {
    pub client: Client,
    /// What it proved itself with, to be spent in the unit.
    pub assertion: Option<Spendable>,
    /// The proof of possession that came with it, which serves once as well.
    pub proof: Option<Spendable>,
}

impl AuthenticatedClient {
    /// Says whether it proved itself by more than its name.
    pub fn is_confidential(&self) -> bool {
        self.assertion.is_some()
    }

    /// Returns what is to be spent of a request that fails before its unit.
    pub fn rest(&self) -> OneTimeProofs {
        OneTimeProofs {
            organization: self.client.organization.clone(),
            assertion: self.assertion.clone(),
        }
    }

    /// Spends assertion and proof (OC-5, OC-8).
    pub fn spend(&self, ctx: &mut OperationContext<'_>) -> Stored<Result<(), TokenError>> {
        if let Some(assertion) = &self.assertion
            && !assertion.spend(ctx)?
        {
            return Ok(Err(refused("the client's assertion was used before")));
        }
        // INVARIANT OC-8: a proof of possession serves the token endpoint once, at all servers of a store.
        if let Some(proof) = &self.proof
            && !proof.spend(ctx)?
        {
            let refusal = TokenError::new(Code::InvalidDpopProof, "the proof was used before");
            return Ok(Err(refusal));
        }
        Ok(Ok(()))
    }
}

/// What a request brought that serves once, whatever becomes of the request.
pub struct OneTimeProofs {
    organization: Option<OrganizationId>,
    assertion: Option<Spendable>,
}

impl OneTimeProofs {
    /// Spends it, where the unit of the request did not. The assertion of a client that is no row has no organization of its
    /// own: it stands in the first one, and is spent in all of them, because a digest is in the store once.
    pub async fn spend(self, kernel: &Arc<Kernel>) {
        let Some(assertion) = self.assertion else { return };
        let organization = match self.organization {
            Some(own) => Ok(Some(own)),
            None => kernel
                .read_system(organizations)
                .await
                .map(|all| all.into_iter().next()),
        };
        let organization = match organization {
            Ok(Some(organization)) => organization,
            Ok(None) => return,
            Err(error) => {
                tracing::warn!("an assertion of a refused request could not be spent: {error}");
                return;
            }
        };
        let spent = kernel
            .system(organization, None, move |ctx| assertion.spend(ctx).map(drop))
            .await;
        if let Err(error) = spent {
            tracing::warn!("an assertion of a refused request could not be spent: {error}");
        }
    }
}

/// An assertion that serves once: the digest of what makes it the one, and the end of its life.
#[derive(Clone)]
pub struct Spendable {
    digest: Vec<u8>,
    expires_at: Timestamp,
}

impl Spendable {
    /// Returns the one of an issuer's id, for one purpose. `expires_at` is in seconds.
    pub fn of(purpose: &str, issuer: &str, id: &str, expires_at: i64) -> Self {
        let text = format!("{purpose}\0{issuer}\0{id}");
        let end = expires_at.saturating_add(LEEWAY_SECS + 1);
        Self {
            digest: digest(&SHA256, text.as_bytes()).as_ref().to_vec(),
            expires_at: Timestamp::from_ms(end.saturating_mul(1000)),
        }
    }

    /// Returns the one of a proof of possession.
    pub fn of_proof(proof: &Proof) -> Self {
        let end = proof.issued_at.saturating_add(WINDOW_SECS);
        Self::of("dpop", &proof.thumbprint, &proof.id, end)
    }

    /// Spends it; `false` when it was spent before.
    pub fn spend(&self, ctx: &mut OperationContext<'_>) -> Stored<bool> {
        store::spend(ctx, &self.digest, self.expires_at)
    }
}

/// Finds out which client asks.
///
/// Errors: `invalid_client`, `invalid_request`, `temporarily_unavailable`.
pub async fn authenticate(
    kernel: &Arc<Kernel>,
    oauth: &Oauth,
    asked: &FormRequest,
) -> Result<AuthenticatedClient, TokenError> {
    let form = &asked.form;
    if asked.headers.contains_key(http::header::AUTHORIZATION) || form.get("client_secret").is_some() {
        return Err(refused("clients have no secrets here; use private_key_jwt"));
    }
    let assertion = match (form.get("client_assertion_type"), form.get("client_assertion")) {
        (None, None) => None,
        (Some(assertion::TYPE), Some(assertion)) => Some(assertion),
        _ => {
            return Err(refused(
                "client_assertion_type must be that of a JWT bearer assertion",
            ));
        }
    };
    let id = client_id(form, assertion)?;
    let client = grants::client(kernel, &id, asked.network.clone()).await?;
    let Some(assertion) = assertion else {
        if matches!(client.authentication, Authentication::None) {
            return Ok(AuthenticatedClient {
                client,
                assertion: None,
                proof: None,
            });
        }
        return Err(refused("this client must prove itself with an assertion"));
    };
    let fetched: Arc<KeySet>;
    let keys = match &client.authentication {
        Authentication::None => return Err(refused("this client has no keys")),
        Authentication::Keys(keys) => keys,
        Authentication::KeysAt(url) => {
            fetched = oauth.keys_at(url, &client, asked.network.clone()).await?;
            &fetched
        }
    };
    let endpoint = format!("{}{PATH}", oauth.url);
    let audiences = [oauth.url.as_str(), endpoint.as_str()];
    let verify = |keys: &KeySet| assertion::verify(assertion, &client.id, keys, &audiences, oauth.now_secs());
    let mut verified = verify(keys);
    // A client that took other keys a moment ago is not refused for the ones that are remembered.
    if let (Err(Refusal::UnknownKey), Authentication::KeysAt(url)) = (&verified, &client.authentication)
        && let Some(anew) = oauth.keys_anew(url, &client, asked.network.clone()).await?
    {
        verified = verify(&anew);
    }
    let verified = verified.map_err(|refusal| refusal.answer(Code::InvalidClient))?;
    let own = client.organization.as_ref().map(OrganizationId::as_str);
    if verified
        .organization
        .as_deref()
        .is_some_and(|said| Some(said) != own)
    {
        return Err(refused(
            "the assertion is for another organization than the client's",
        ));
    }
    // A full memory spends nothing: the unit of a request that succeeds does.
    if client.organization.is_none()
        && let Err(Refusal::Replayed) = oauth.assertions.admit_until(
            &client.id,
            &verified.id,
            verified.accepted_until(),
            oauth.now_secs(),
        )
    {
        return Err(refused("the client's assertion was used before"));
    }
    let assertion = Spendable::of("client", &client.id, &verified.id, verified.expires_at);
    Ok(AuthenticatedClient {
        client,
        assertion: Some(assertion),
        proof: None,
    })
}

/// Returns the id that a request names, or else the one that its assertion speaks of (RFC 7521 §4.2).
fn client_id(form: &Form, assertion: Option<&str>) -> Result<String, TokenError> {
    if let Some(id) = form.get("client_id") {
        return Ok(id.to_owned());
    }
    let subject = assertion.and_then(|assertion| {
        let payload = URL_SAFE_NO_PAD.decode(assertion.split('.').nth(1)?).ok()?;
        let claims = json::object(&payload).ok()?;
        claims.get("sub")?.as_str().map(str::to_owned)
    });
    subject.ok_or_else(|| refused("client_id is missing"))
}

fn refused(sentence: &str) -> TokenError {
    TokenError::new(Code::InvalidClient, sentence)
}
