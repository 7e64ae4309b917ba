//! An OpenID provider, and what it says of somebody who signed in there (SI-3).
//!
//! ```text
//! discovery (kept an hour; a day when the provider is down, which is asked again after ten seconds) ─► start ─► its page ─► finish: code ─► ID token ─► Person
//!                                                         keys are asked for anew once a minute when one is unknown
//! ```
//!
//! Every exchange has state, nonce and PKCE. What the ID token says is believed after `openidconnect` has checked
//! signature, issuer, audience, end and nonce; here the time of issue, the party and the hash of the access token are checked
//! besides. Algorithms are asymmetric ones.
//!
//! Absent on purpose: the user-info endpoint (what is needed stands in the ID token), signing out there, refresh tokens.

mod http;
mod metadata;
mod token;

pub use http::Http;

use super::PendingWork;
use super::request::{AuthorizationRequest, Prompt};
use metadata::Metadata;
use openidconnect::core::{CoreAuthPrompt, CoreAuthenticationFlow, CoreClient, CoreClientAuthMethod};
use openidconnect::{
    AuthType, AuthorizationCode, ClientId, ClientSecret, CsrfToken, EndpointMaybeSet, EndpointNotSet,
    EndpointSet, LoginHint, Nonce, PkceCodeChallenge, PkceCodeVerifier, RedirectUrl, RequestTokenError,
    Scope,
};
use provost_kernel::auth::OrganizationId;
use provost_kernel::{Kernel, Secret};
use std::path::PathBuf;
use std::sync::Arc;

type Client = CoreClient<
    EndpointSet,
    EndpointNotSet,
    EndpointNotSet,
    EndpointNotSet,
    EndpointMaybeSet,
    EndpointMaybeSet,
>;

/// What the operator declared of a provider, checked.
pub struct ProviderDeclaration {
    /// What people read.
    pub name: String,
    /// Its issuer, exactly as its tokens say it.
    pub issuer: String,
    /// What this server is called there.
    pub client_id: String,
    /// A file with the secret; without one this server is a public client there.
    pub client_secret_file: Option<PathBuf>,
    /// The organizations whose people sign in there.
    pub organizations: Vec<OrganizationId>,
    /// What it is asked for besides `openid`.
    pub scopes: Vec<String>,
    /// The directory for whose login names its word counts.
    pub authoritative_for: Option<String>,
    /// How it is reached.
    pub http: Http,
}

/// See the module's text.
pub struct Provider {
    declared: ProviderDeclaration,
    known: metadata::Cache,
}

/// The providers of an installation, as one of the kernel's extras.
pub struct Providers(Vec<Provider>);

impl Providers {
    /// Makes them of what was declared.
    pub fn new(declared: Vec<ProviderDeclaration>) -> Self {
        let made = declared.into_iter().map(|declared| Provider {
            declared,
            known: metadata::Cache::default(),
        });
        Self(made.collect())
    }

    /// Says whether there is none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns those at which people of an organization sign in; all without one.
    pub fn of(&self, organization: Option<&OrganizationId>) -> Vec<&Provider> {
        let serves = |provider: &&Provider| {
            organization.is_none_or(|wanted| provider.declared.organizations.contains(wanted))
        };
        self.0.iter().filter(serves).collect()
    }

    /// Returns the one of an issuer and a client.
    pub fn find(&self, reference: &Reference) -> Option<&Provider> {
        self.0.iter().find(|provider| provider.reference() == *reference)
    }
}

/// Names a provider among those of an installation.
#[derive(Clone, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Reference {
    issuer: String,
    client_id: String,
}

/// Secrets of one sign-in.
#[derive(serde::Serialize, serde::Deserialize)]
pub struct Trip {
    nonce: String,
    verifier: String,
}

impl Trip {
    /// Draws them.
    pub fn new(kernel: &Kernel) -> Self {
        let mut rng = kernel.rng();
        let mut draw = || {
            use base64::Engine;
            let mut bytes = zeroize::Zeroizing::new([0; 32]);
            rng.fill(bytes.as_mut_slice());
            base64::engine::general_purpose::URL_SAFE_NO_PAD.encode(bytes.as_slice())
        };
        Self {
            nonce: draw(),
            verifier: draw(),
        }
    }
}

/// Who signed in.
pub struct Person {
    /// `sub`, unique at the issuer.
    pub subject: String,
    /// The login name that it vouches for: an address that it says is verified.
    pub verified_email: Option<String>,
}

/// Why nobody signed in.
#[derive(Debug)]
pub enum SignInFailure {
    /// The provider could not be asked, or refused this server.
    Provider(String),
    /// What it said is not believed.
    Token(&'static str),
}

impl Provider {
    /// Returns what people read.
    pub fn name(&self) -> &str {
        &self.declared.name
    }

    /// Returns its issuer.
    pub fn issuer(&self) -> &str {
        &self.declared.issuer
    }

    /// Returns the organizations whose people sign in there.
    pub fn organizations(&self) -> &[OrganizationId] {
        &self.declared.organizations
    }

    /// Returns the directory for whose login names its word counts.
    pub fn authoritative_for(&self) -> Option<&str> {
        self.declared.authoritative_for.as_deref()
    }

    /// Returns what names it.
    pub fn reference(&self) -> Reference {
        Reference {
            issuer: self.declared.issuer.clone(),
            client_id: self.declared.client_id.clone(),
        }
    }

    /// Returns where people go to sign in. `state` comes back with them.
    pub fn start<'a>(
        &'a self,
        kernel: &'a Kernel,
        trip: &'a Trip,
        asked: &'a AuthorizationRequest,
        state: String,
    ) -> PendingWork<'a, Result<String, SignInFailure>> {
        Box::pin(async move {
            let metadata = self.known.get(kernel, &self.declared).await?;
            let client = self.client(kernel, &metadata, None)?;
            let nonce = trip.nonce.clone();
            let verifier = PkceCodeVerifier::new(trip.verifier.clone());
            let mut request = client.authorize_url(
                CoreAuthenticationFlow::AuthorizationCode,
                move || CsrfToken::new(state),
                move || Nonce::new(nonce),
            );
            request = request.set_pkce_challenge(PkceCodeChallenge::from_code_verifier_sha256(&verifier));
            for scope in &self.declared.scopes {
                request = request.add_scope(Scope::new(scope.clone()));
            }
            request = match asked.prompt {
                Some(Prompt::Login) => request.add_prompt(CoreAuthPrompt::Login),
                Some(Prompt::SelectAccount) => request.add_prompt(CoreAuthPrompt::SelectAccount),
                None => request,
            };
            if let Some(hint) = &asked.login_hint {
                request = request.set_login_hint(LoginHint::new(hint.clone()));
            }
            Ok(request.url().0.into())
        })
    }

    /// Says whether an answer names this provider, as far as it must (RFC 9207).
    pub fn sent<'a>(
        &'a self,
        kernel: &'a Kernel,
        issuer: Option<&'a str>,
    ) -> PendingWork<'a, Result<bool, SignInFailure>> {
        Box::pin(async move {
            if let Some(issuer) = issuer {
                return Ok(issuer == self.declared.issuer);
            }
            let metadata = self.known.get(kernel, &self.declared).await?;
            Ok(!metadata
                .additional_metadata()
                .authorization_response_iss_parameter_supported)
        })
    }

    /// Exchanges the code of an answer and returns who signed in.
    pub fn finish<'a>(
        &'a self,
        kernel: &'a Kernel,
        trip: Trip,
        code: &'a str,
    ) -> PendingWork<'a, Result<Person, SignInFailure>> {
        Box::pin(async move {
            let metadata = self.known.get(kernel, &self.declared).await?;
            let secret = self.secret()?;
            let client = self.client(kernel, &metadata, secret)?;
            let request = client
                .exchange_code(AuthorizationCode::new(code.to_owned()))
                .map_err(|_| SignInFailure::Provider("it names no token endpoint".into()))?
                .set_pkce_verifier(PkceCodeVerifier::new(trip.verifier));
            let http = self.declared.http.asker();
            let answer = request.request_async(&http).await.map_err(|error| {
                // Only words of ours: a body may hold tokens.
                SignInFailure::Provider(match error {
                    RequestTokenError::ServerResponse(_) => "it refused the code, or this server".into(),
                    RequestTokenError::Request(silence) => silence.to_string(),
                    _ => "its token answer is not understood".into(),
                })
            })?;
            let nonce = Nonce::new(trip.nonce);
            match token::judge(&answer, &nonce, kernel, &self.declared, &metadata) {
                Err(token::Doubt::UnknownKey) => {
                    let metadata = self.known.renewed(kernel, &self.declared).await?;
                    token::judge(&answer, &nonce, kernel, &self.declared, &metadata)
                }
                judged => judged,
            }
            .map_err(|doubt| SignInFailure::Token(doubt.words()))
        })
    }

    fn client(
        &self,
        kernel: &Kernel,
        metadata: &Arc<Metadata>,
        secret: Option<Secret<String>>,
    ) -> Result<Client, SignInFailure> {
        let callback = format!("{}{}", kernel.settings.public_url, super::CALLBACK);
        let callback = RedirectUrl::new(callback)
            .map_err(|_| SignInFailure::Provider("this server's public URL is none".into()))?;
        let posts = metadata
            .token_endpoint_auth_methods_supported()
            .is_some_and(|methods| {
                methods.contains(&CoreClientAuthMethod::ClientSecretPost)
                    && !methods.contains(&CoreClientAuthMethod::ClientSecretBasic)
            });
        let id = ClientId::new(self.declared.client_id.clone());
        let secret = secret.map(|secret| ClientSecret::new(secret.expose().clone()));
        let client = CoreClient::from_provider_metadata(Metadata::clone(metadata), id, secret);
        let client = client.set_redirect_uri(callback);
        Ok(if posts {
            client.set_auth_type(AuthType::RequestBody)
        } else {
            client
        })
    }

    /// Reads the secret anew each time, so that it can be rotated under a running server.
    fn secret(&self) -> Result<Option<Secret<String>>, SignInFailure> {
        let Some(path) = &self.declared.client_secret_file else {
            return Ok(None);
        };
        let text = std::fs::read_to_string(path).map(zeroize::Zeroizing::new);
        let text = text.map_err(|_| SignInFailure::Provider("client_secret_file cannot be read".into()))?;
        Ok(Some(Secret::new(text.trim().to_owned())))
    }
}
