//! What a server publishes about itself: RFC 8414 (authorization server) and RFC 9728 (protected resource).
//!
//! Members with an empty list are left out, for an empty list would say "none" where nothing is meant.

use serde::Serialize;

/// The document of an authorization server.
#[derive(Clone, Debug, Default, Serialize)]
pub struct AuthorizationServer {
    /// The issuer, exactly as its tokens and its answers (RFC 9207) say it.
    pub issuer: String,
    /// Absent when no interactive grant is served.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub authorization_endpoint: Option<String>,
    /// Where tokens are asked for.
    pub token_endpoint: String,
    /// Where this server's public keys are.
    pub jwks_uri: String,
    /// Where tokens are given back (RFC 7009).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub revocation_endpoint: Option<String>,
    /// Where clients register (RFC 7591).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub registration_endpoint: Option<String>,
    /// For whoever writes a client.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub service_documentation: Option<String>,
    /// What can be asked for.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub scopes_supported: Vec<String>,
    /// `code`, or nothing: this one member is required and may be empty.
    pub response_types_supported: Vec<String>,
    /// `query`.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub response_modes_supported: Vec<String>,
    /// The grants that are served.
    pub grant_types_supported: Vec<String>,
    /// Profiles of the grants, such as [`crate::id_jag::GRANT_PROFILE`].
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub authorization_grant_profiles_supported: Vec<String>,
    /// How clients prove themselves.
    pub token_endpoint_auth_methods_supported: Vec<String>,
    /// What they may sign with.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub token_endpoint_auth_signing_alg_values_supported: Vec<String>,
    /// `S256`.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub code_challenge_methods_supported: Vec<String>,
    /// What proofs of possession may be signed with.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub dpop_signing_alg_values_supported: Vec<String>,
    /// Do authorization answers carry `iss` (RFC 9207)?
    pub authorization_response_iss_parameter_supported: bool,
    /// May a client be known by its URL?
    pub client_id_metadata_document_supported: bool,
    /// The client that this server's own command line is, where it may be one. A member of our own (RFC 8414 §2).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub command_line_client_id: Option<String>,
}

/// The document of a protected resource.
#[derive(Clone, Debug, Default, Serialize)]
pub struct ProtectedResource {
    /// The resource, exactly as `resource` and `aud` say it.
    pub resource: String,
    /// For people.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub resource_name: Option<String>,
    /// Who issues tokens for it.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub authorization_servers: Vec<String>,
    /// What a client may begin with (D2.8: the minimal set, never `offline_access`).
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub scopes_supported: Vec<String>,
    /// `header`.
    pub bearer_methods_supported: Vec<String>,
    /// What proofs of possession may be signed with.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub dpop_signing_alg_values_supported: Vec<String>,
    /// Whether every token must be bound to a key.
    pub dpop_bound_access_tokens_required: bool,
    /// For whoever writes a client.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub resource_documentation: Option<String>,
}

/// Returns the path of a metadata document: the well-known name goes between host and path (RFC 8414 §3, RFC 9728
/// §3.1).
///
/// `name` is `oauth-authorization-server` or `oauth-protected-resource`; `path` is that of the issuer or the
/// resource.
pub fn well_known(name: &str, path: &str) -> String {
    format!("/.well-known/{name}{}", path.trim_end_matches('/'))
}
