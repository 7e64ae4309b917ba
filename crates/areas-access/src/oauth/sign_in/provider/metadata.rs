//! What a provider says about itself, and its keys, kept for a while.

use super::{ProviderDeclaration, SignInFailure};
use openidconnect::core::{
    CoreAuthDisplay, CoreClaimName, CoreClaimType, CoreClientAuthMethod, CoreGrantType, CoreJsonWebKey,
    CoreJweContentEncryptionAlgorithm, CoreJweKeyManagementAlgorithm, CoreResponseMode, CoreResponseType,
    CoreSubjectIdentifierType,
};
use openidconnect::{AdditionalProviderMetadata, DiscoveryError, IssuerUrl, ProviderMetadata};
use provost_kernel::Kernel;
use serde::{Deserialize, Serialize};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::Mutex;

/// How long it is not asked again.
const FRESH: Duration = Duration::from_hours(1);
/// How long what it said last serves while it cannot be asked.
const STALE: Duration = Duration::from_hours(24);
/// How often a token with an unknown key may cause a question.
const RENEWAL: Duration = Duration::from_mins(1);

/// How long a provider that did not answer is not asked again: whoever comes meanwhile is told at once. People try again
/// after some seconds.
const PAUSE: Duration = Duration::from_secs(10);

/// A member of RFC 9207 that the library does not read.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
pub struct Further {
    /// Whether every answer names its issuer.
    #[serde(default)]
    pub authorization_response_iss_parameter_supported: bool,
}

impl AdditionalProviderMetadata for Further {}

/// The document of a provider, with its keys.
pub type Metadata = ProviderMetadata<
    Further,
    CoreAuthDisplay,
    CoreClientAuthMethod,
    CoreClaimName,
    CoreClaimType,
    CoreGrantType,
    CoreJweContentEncryptionAlgorithm,
    CoreJweKeyManagementAlgorithm,
    CoreJsonWebKey,
    CoreResponseMode,
    CoreResponseType,
    CoreSubjectIdentifierType,
>;

/// What was last said. Locked while it is asked for: those who wait share the answer.
#[derive(Default)]
pub struct Cache(Mutex<State>);

#[derive(Default)]
struct State {
    known: Option<KnownMetadata>,
    /// When it last did not answer, and why.
    failed: Option<(Duration, String)>,
}

struct KnownMetadata {
    metadata: Arc<Metadata>,
    since: Duration,
}

impl KnownMetadata {
    fn is_within(&self, age: Duration, now: Duration) -> bool {
        now.checked_sub(self.since).is_none_or(|since| since < age)
    }
}

impl Cache {
    /// Returns what the provider says, or said not long ago.
    pub async fn get(
        &self,
        kernel: &Kernel,
        declared: &ProviderDeclaration,
    ) -> Result<Arc<Metadata>, SignInFailure> {
        self.within(kernel, declared, FRESH).await
    }

    /// Returns what it says now, or said within the last minute.
    pub async fn renewed(
        &self,
        kernel: &Kernel,
        declared: &ProviderDeclaration,
    ) -> Result<Arc<Metadata>, SignInFailure> {
        self.within(kernel, declared, RENEWAL).await
    }

    async fn within(
        &self,
        kernel: &Kernel,
        declared: &ProviderDeclaration,
        age: Duration,
    ) -> Result<Arc<Metadata>, SignInFailure> {
        let mut state = self.0.lock().await;
        let now = kernel.clock.monotonic();
        if let Some(known) = state.known.as_ref().filter(|known| known.is_within(age, now)) {
            return Ok(known.metadata.clone());
        }
        let pauses = |(at, _): &(Duration, String)| now.saturating_sub(*at) < PAUSE;
        if !state.failed.as_ref().is_some_and(pauses) {
            match discover(declared).await {
                Ok(metadata) => {
                    let metadata = Arc::new(metadata);
                    *state = State {
                        known: Some(KnownMetadata {
                            metadata: metadata.clone(),
                            since: now,
                        }),
                        failed: None,
                    };
                    return Ok(metadata);
                }
                // The time that it took to give up is not a part of the pause.
                Err(why) => state.failed = Some((kernel.clock.monotonic(), why)),
            }
        }
        let last = state.known.as_ref().filter(|known| known.is_within(STALE, now));
        last.map(|known| known.metadata.clone()).ok_or_else(|| {
            let why = state.failed.as_ref().map(|(_, why)| why.clone());
            SignInFailure::Provider(why.unwrap_or_default())
        })
    }
}

async fn discover(declared: &ProviderDeclaration) -> Result<Metadata, String> {
    let issuer = IssuerUrl::new(declared.issuer.clone()).map_err(|_| "its issuer is not a URL")?;
    let http = declared.http.asker();
    let metadata = Metadata::discover_async(issuer, &http).await;
    let metadata = metadata.map_err(|error| match error {
        DiscoveryError::Request(silence) => silence.to_string(),
        DiscoveryError::Response(status, ..) => format!("its metadata or keys have the status {status}"),
        DiscoveryError::Validation(_) => "its metadata are those of another issuer".into(),
        _ => "its metadata or keys are not understood".into(),
    })?;
    // What a browser is sent to, and what a secret is sent to, is as safe as the issuer.
    let token_endpoint = metadata.token_endpoint().map(|url| url.url().scheme());
    let schemes = [
        Some(metadata.authorization_endpoint().url().scheme()),
        token_endpoint,
    ];
    let is_plain = declared.issuer.starts_with("http://");
    let allowed = |scheme: &&str| *scheme == "https" || (is_plain && *scheme == "http");
    if !schemes.iter().flatten().all(allowed) {
        return Err("its endpoints are not https: URLs".into());
    }
    Ok(metadata)
}
