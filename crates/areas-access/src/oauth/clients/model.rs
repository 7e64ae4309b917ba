//! The words and rules of registered clients, without storage.
//!
//! INVARIANT OC-14: whoever gives a client something, or lets it in again, holds all that it can then be granted.

pub use crate::jwks::Jwks;

use crate::resources::definition::{AtMost, SingleLine};
use provost_kernel::auth::ScopeSet;
use provost_kernel::error::{Error, Result};
use provost_kernel::{Timestamp, id};
use provost_oauth::{client_document, redirect};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

id!(ClientId, "ocl", "Names a registered client.");

/// LIMIT: redirect targets of a client, each of at most 512 characters.
pub type RedirectUris = AtMost<SingleLine<1, 512>, 16>;
/// The grants of a client.
pub type GrantTypes = AtMost<GrantType, 5>;

provost_kernel::word! {
    /// A grant that a client may use.
    pub enum GrantType {
        /// Somebody signs in and consents.
        AuthorizationCode = "authorization_code",
        /// A session goes on.
        RefreshToken = "refresh_token",
        /// The client is a service account.
        ClientCredentials = "client_credentials",
        /// A token of a trusted issuer is exchanged.
        TokenExchange = "urn:ietf:params:oauth:grant-type:token-exchange",
        /// An enterprise's assertion (ID-JAG).
        JwtBearer = "urn:ietf:params:oauth:grant-type:jwt-bearer",
    }
}

provost_kernel::word! {
    /// How a client proves itself at the token endpoint.
    pub enum AuthMethod {
        /// By its name: a public client.
        None = "none",
        /// By an assertion that it signs.
        PrivateKeyJwt = "private_key_jwt",
    }
}

/// A client as it is stored.
#[derive(Clone, Debug)]
pub struct RegisteredClient {
    pub id: ClientId,
    pub organization_id: String,
    pub name: String,
    pub redirect_uris: Vec<String>,
    pub grant_types: Vec<String>,
    pub auth_method: AuthMethod,
    pub jwks: Option<Jwks>,
    pub jwks_uri: Option<String>,
    pub scopes: ScopeSet,
    /// The most that can be granted of them: what whoever made or last widened it could hand out.
    pub ceiling: ScopeSet,
    pub service_account_id: Option<String>,
    pub blocked_at: Option<Timestamp>,
    pub created_at: Timestamp,
    pub updated_at: Timestamp,
}

/// Refuses members that do not go together.
pub(super) fn wrong(path: &str, message: &str) -> Result<()> {
    Err(Error::unfit(path, message))
}

impl RegisteredClient {
    /// Checks what no schema says: how the members go together.
    ///
    /// Errors: `InvalidDefinition`, naming the member.
    pub fn check(&self) -> Result<()> {
        let has = |grant: GrantType| self.grant_types.iter().any(|known| known == grant.as_str());
        if self.grant_types.is_empty() {
            return wrong("/grantTypes", "must name a grant");
        }
        for (place, uri) in self.redirect_uris.iter().enumerate() {
            if redirect::check(uri).is_err() {
                let message = "must be https:, http: on the loopback interface, or a private scheme with a dot in its name";
                return wrong(&format!("/redirectUris/{place}"), message);
            }
        }
        if has(GrantType::AuthorizationCode) == self.redirect_uris.is_empty() {
            return wrong("/redirectUris", "belong to authorization_code, which needs one");
        }
        if has(GrantType::RefreshToken) && !has(GrantType::AuthorizationCode) {
            return wrong("/grantTypes", "refresh_token goes with authorization_code");
        }
        if has(GrantType::ClientCredentials) != self.service_account_id.is_some() {
            return wrong(
                "/serviceAccountId",
                "goes with client_credentials, which needs it",
            );
        }
        let needs_keys = has(GrantType::ClientCredentials) || has(GrantType::JwtBearer);
        if needs_keys && self.auth_method == AuthMethod::None {
            return wrong(
                "/tokenEndpointAuthMethod",
                "must be private_key_jwt for these grants",
            );
        }
        self.check_keys()
    }

    /// Returns what it can be granted: of its scopes what its ceiling leaves.
    pub fn granted(&self) -> ScopeSet {
        self.scopes.closed().and(self.ceiling.closed())
    }

    /// Says whether this gives something that the client did not have: scopes beyond what it could be granted, a place
    /// where answers are sent, keys that are it, a grant, or its life.
    ///
    /// INVARIANT OC-14: whoever gives a client something, or lets it in again, holds all that it can then be granted; who
    /// takes something away need not.
    pub fn gives_beyond(&self, before: &Self) -> bool {
        let has_new = |after: &[String], before: &[String]| after.iter().any(|one| !before.contains(one));
        !before.granted().covers(self.scopes.closed()) && self.scopes != before.scopes
            || has_new(&self.redirect_uris, &before.redirect_uris)
            || has_new(&self.grant_types, &before.grant_types)
            || self.jwks_uri.is_some() && self.jwks_uri != before.jwks_uri
            || self.has_key_beyond(before)
            || before.blocked_at.is_some() && self.blocked_at.is_none()
    }

    fn has_key_beyond(&self, before: &Self) -> bool {
        let keys = |client: &Self| match client.jwks.as_ref().and_then(|set| set.0.get("keys")) {
            Some(Value::Array(keys)) => keys.clone(),
            _ => Vec::new(),
        };
        if self.jwks == before.jwks {
            return false;
        }
        let known = keys(before);
        keys(self).iter().any(|key| !known.contains(key))
    }

    fn check_keys(&self) -> Result<()> {
        match (self.auth_method, &self.jwks, &self.jwks_uri) {
            (AuthMethod::None, None, None) => Ok(()),
            (AuthMethod::None, ..) => wrong("/jwks", "is for private_key_jwt alone"),
            (AuthMethod::PrivateKeyJwt, Some(keys), None) => match keys.parse() {
                Ok(keys) if !keys.is_empty() => Ok(()),
                _ => wrong(
                    "/jwks",
                    "must be a JWK Set of public keys: P-256, Ed25519 or RSA of 2048 bits and more",
                ),
            },
            (AuthMethod::PrivateKeyJwt, None, Some(url)) => match client_document::check_url(url) {
                Ok(()) => Ok(()),
                Err(_) => wrong(
                    "/jwksUri",
                    "must be an https: URL with a path and without a query",
                ),
            },
            (AuthMethod::PrivateKeyJwt, ..) => wrong("/jwks", "one of jwks and jwksUri is needed"),
        }
    }
}

/// A registered client as its readers see it.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(rename = "McpClient")]
pub struct ClientView {
    id: ClientId,
    organization_id: String,
    name: String,
    redirect_uris: Vec<String>,
    grant_types: Vec<String>,
    token_endpoint_auth_method: AuthMethod,
    #[serde(skip_serializing_if = "Option::is_none")]
    jwks: Option<Jwks>,
    #[serde(skip_serializing_if = "Option::is_none")]
    jwks_uri: Option<String>,
    /// The most that it may be granted.
    scopes: Vec<&'static str>,
    /// What of the scopes is granted in fact, where that is less: what could be handed out when they were given. Who
    /// holds the others lifts it by giving the scopes again.
    #[serde(skip_serializing_if = "Option::is_none")]
    ceiling: Option<Vec<&'static str>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    service_account_id: Option<String>,
    /// `active` or `blocked`.
    status: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    blocked_at: Option<Timestamp>,
    created_at: Timestamp,
    updated_at: Timestamp,
    /// What does not act as it was written; of answers to changes, absent when everything does.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schemars(default)]
    warnings: Vec<Warning>,
}

/// Something of a change that its author should know.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "McpClientWarning")]
pub struct Warning {
    /// `scopes_beyond_account`. Open.
    code: &'static str,
    message: String,
}

impl ClientView {
    /// Says which scopes the account that the client is cannot use.
    pub fn with_idle(mut self, idle: &[&'static str]) -> Self {
        if !idle.is_empty() {
            let (names, act) = (idle.join(", "), if idle.len() == 1 { "does" } else { "do" });
            self.warnings.push(Warning {
                code: "scopes_beyond_account",
                message: format!(
                    "the account of this client cannot do {names}, so that {act} nothing for the client until the account can"
                ),
            });
        }
        self
    }
}

impl From<RegisteredClient> for ClientView {
    fn from(client: RegisteredClient) -> Self {
        let granted = client.granted();
        Self {
            ceiling: (!granted.covers(client.scopes.closed())).then(|| granted.to_list()),
            status: if client.blocked_at.is_some() {
                "blocked"
            } else {
                "active"
            },
            id: client.id,
            organization_id: client.organization_id,
            name: client.name,
            redirect_uris: client.redirect_uris,
            grant_types: client.grant_types,
            token_endpoint_auth_method: client.auth_method,
            jwks: client.jwks,
            jwks_uri: client.jwks_uri,
            scopes: client.scopes.to_list(),
            service_account_id: client.service_account_id,
            blocked_at: client.blocked_at,
            created_at: client.created_at,
            updated_at: client.updated_at,
            warnings: Vec::new(),
        }
    }
}

/// The path of operations on one client.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[schemars(inline)]
pub struct ClientPath {
    /// The client.
    pub mcp_client_id: ClientId,
}

/// Returns the texts of a list.
pub fn texts<const MIN: usize, const MAX: usize, const COUNT: usize>(
    list: &AtMost<SingleLine<MIN, MAX>, COUNT>,
) -> Vec<String> {
    list.iter().map(|text| text.as_str().to_owned()).collect()
}

/// Returns the words of grants, each once.
pub fn words(grants: &GrantTypes) -> Vec<String> {
    let mut words: Vec<String> = Vec::new();
    for grant in grants.iter() {
        if !words.iter().any(|known| known == grant.as_str()) {
            words.push(grant.as_str().to_owned());
        }
    }
    words
}
