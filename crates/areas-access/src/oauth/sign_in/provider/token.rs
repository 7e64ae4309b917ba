//! The ID token of an answer (OpenID Connect Core 3.1.3.7).
//!
//! Keeps SI-3.

use super::metadata::Metadata;
use super::{Person, ProviderDeclaration};
use chrono::DateTime;
use openidconnect::core::{CoreIdTokenVerifier, CoreJsonWebKey, CoreJwsSigningAlgorithm, CoreTokenResponse};
use openidconnect::{
    AccessTokenHash, ClaimsVerificationError, ClientId, IdTokenVerifier, Nonce, OAuth2TokenResponse,
    SignatureVerificationError, TokenResponse,
};
use provost_kernel::{Kernel, Timestamp};

/// How far clocks may differ. Units: seconds.
const LEEWAY_SECS: i64 = 60;
/// How old a token may be that was asked for a moment ago. Units: seconds.
const MAX_AGE_SECS: i64 = 600;
/// LIMIT: characters of a subject (OpenID Connect Core 2: 255 ASCII characters).
const MAX_SUBJECT: usize = 255;

const ALGORITHMS: [CoreJwsSigningAlgorithm; 9] = [
    CoreJwsSigningAlgorithm::RsaSsaPkcs1V15Sha256,
    CoreJwsSigningAlgorithm::RsaSsaPkcs1V15Sha384,
    CoreJwsSigningAlgorithm::RsaSsaPkcs1V15Sha512,
    CoreJwsSigningAlgorithm::RsaSsaPssSha256,
    CoreJwsSigningAlgorithm::RsaSsaPssSha384,
    CoreJwsSigningAlgorithm::RsaSsaPssSha512,
    CoreJwsSigningAlgorithm::EcdsaP256Sha256,
    CoreJwsSigningAlgorithm::EcdsaP384Sha384,
    CoreJwsSigningAlgorithm::EdDsa,
];

/// Why a token is not believed.
#[derive(Debug)]
pub enum Doubt {
    /// Its key is not among those that are known; there may be new ones.
    UnknownKey,
    /// Anything else, in words that hold nothing of the token.
    Because(&'static str),
}

impl Doubt {
    /// Returns the reason.
    pub fn words(self) -> &'static str {
        match self {
            Self::UnknownKey => "it is signed with a key that the provider does not publish",
            Self::Because(words) => words,
        }
    }
}

/// Judges the ID token of a token answer.
pub fn judge(
    answer: &CoreTokenResponse,
    nonce: &Nonce,
    kernel: &Kernel,
    declared: &ProviderDeclaration,
    metadata: &Metadata,
) -> Result<Person, Doubt> {
    let because = |words| Err(Doubt::Because(words));
    let Some(token) = answer.id_token() else {
        return because("there is none");
    };
    let now = kernel.clock.now();
    let verifier = verifier(declared, metadata, now);
    let claims = token.claims(&verifier, nonce).map_err(|error| doubt(&error))?;
    let party = claims.authorized_party().map(|party| party.as_str());
    if party.is_some_and(|party| party != declared.client_id) {
        return because("it was made for another party");
    }
    if let Some(expected) = claims.access_token_hash() {
        let algorithm = token.signing_alg();
        let key = token.signing_key(&verifier);
        let (Ok(algorithm), Ok(key)) = (algorithm, key) else {
            return because("its signature has no algorithm or key");
        };
        let actual = AccessTokenHash::from_token(answer.access_token(), algorithm, key);
        if !actual.is_ok_and(|actual| actual == *expected) {
            return because("it does not belong to the access token beside it");
        }
    }
    let subject = claims.subject().as_str();
    if subject.is_empty() || subject.len() > MAX_SUBJECT || subject.chars().any(char::is_control) {
        return because("its subject is none");
    }
    let email = claims.email().map(|email| email.as_str().to_owned());
    Ok(Person {
        subject: subject.to_owned(),
        verified_email: email.filter(|_| claims.email_verified() == Some(true)),
    })
}

fn verifier<'a>(
    declared: &ProviderDeclaration,
    metadata: &Metadata,
    now: Timestamp,
) -> CoreIdTokenVerifier<'a> {
    let id = ClientId::new(declared.client_id.clone());
    let keys = metadata.jwks().clone();
    let verifier: IdTokenVerifier<'_, CoreJsonWebKey> =
        IdTokenVerifier::new_public_client(id, metadata.issuer().clone(), keys);
    verifier
        .set_allowed_algs(ALGORITHMS)
        .set_time_fn(move || {
            // The leeway is the token's: it ends that much later.
            let now = now.plus_secs(-LEEWAY_SECS).as_ms();
            DateTime::from_timestamp_millis(now).unwrap_or(DateTime::UNIX_EPOCH)
        })
        .set_issue_time_verifier_fn(move |issued| {
            let age_secs = now.as_ms() / 1000 - issued.timestamp();
            let fits = (-LEEWAY_SECS..=MAX_AGE_SECS).contains(&age_secs);
            if fits { Ok(()) } else { Err(String::new()) }
        })
}

fn doubt(error: &ClaimsVerificationError) -> Doubt {
    Doubt::Because(match error {
        ClaimsVerificationError::SignatureVerification(SignatureVerificationError::NoMatchingKey) => {
            return Doubt::UnknownKey;
        }
        ClaimsVerificationError::SignatureVerification(_) => "its signature does not verify",
        ClaimsVerificationError::Expired(_) => "it is too old or from the future",
        ClaimsVerificationError::InvalidAudience(_) => "it is for another audience",
        ClaimsVerificationError::InvalidIssuer(_) => "it is from another issuer",
        ClaimsVerificationError::InvalidNonce(_) => "it is not the answer to this request",
        _ => "it is not understood",
    })
}
