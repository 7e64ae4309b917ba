//! What this server publishes about itself (RFC 8414, RFC 9728; D2.8). Anybody may read it, scripts in browsers too.

use super::state::Oauth;
use super::token::{GRANT_TYPES, PATH as TOKEN};
use super::{AUDIENCES, command_line, revoke};
use axum::Router;
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use http::header;
use provost_kernel::auth::ScopeSet;
use provost_oauth::metadata::{AuthorizationServer, ProtectedResource, well_known};
use provost_oauth::{Algorithm, id_jag, pkce};
use std::sync::Arc;

/// What a client may begin with (D2.8): enough to look around, and to be told what else is needed.
const FIRST_SCOPES: [&str; 3] = ["capabilities:read", "policies:read", "registry:read"];
/// The path of our public keys.
pub const KEYS: &str = "/oauth/jwks";

/// Returns the routes of the documents.
pub fn routes(oauth: &Arc<Oauth>) -> Router {
    let [api, mcp] = AUDIENCES.map(|path| document(&resource(oauth, path)));
    let mut router = Router::new();
    // A proxy in front may take the path of `public_url` away or leave it.
    let base = path_of(&oauth.url);
    let bases = [""].into_iter().chain(Some(base).filter(|base| !base.is_empty()));
    for base in bases {
        // Clients that look at the root mean the endpoint that they were given, and that is MCP's.
        for (path, document) in [(AUDIENCES[0], &api), (AUDIENCES[1], &mcp), ("", &mcp)] {
            router = at(
                router,
                "oauth-protected-resource",
                &format!("{base}{path}"),
                document,
            );
        }
        if oauth.settings.authorization_server {
            router = at(
                router,
                "oauth-authorization-server",
                base,
                &document(&server(oauth)),
            );
        }
    }
    if oauth.settings.authorization_server {
        let keys = oauth.clone();
        router = router.route(KEYS, get(move || answer(keys.key_set())));
    }
    router
}

/// Adds a document under its well-known name, with the path of what it is about behind it.
fn at(router: Router, name: &str, path: &str, document: &str) -> Router {
    let document = document.to_owned();
    router.route(&well_known(name, path), get(move || answer(document.clone())))
}

/// Returns the path of a URL; nothing for one that has none, or one with characters that a route reads as more than themselves.
fn path_of(url: &str) -> &str {
    let host = url.split_once("://").map_or(url, |(_, rest)| rest);
    let path = host.find('/').map_or("", |start| &host[start..]);
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-._~/%".contains(&byte);
    if path.bytes().all(is_plain) {
        path.trim_end_matches('/')
    } else {
        ""
    }
}

fn answer(body: String) -> std::future::Ready<Response> {
    let headers = [
        (header::CONTENT_TYPE, "application/json; charset=utf-8"),
        (header::ACCESS_CONTROL_ALLOW_ORIGIN, "*"),
    ];
    std::future::ready((headers, body).into_response())
}

fn document(document: &impl serde::Serialize) -> String {
    serde_json::to_string(document).unwrap_or_default()
}

fn texts(all: &[&str]) -> Vec<String> {
    all.iter().map(|&text| text.to_owned()).collect()
}

fn algorithms() -> Vec<String> {
    Algorithm::ALL
        .iter()
        .map(|algorithm| algorithm.as_str().to_owned())
        .collect()
}

fn resource(oauth: &Oauth, path: &str) -> ProtectedResource {
    let mut servers: Vec<String> = Vec::new();
    if oauth.settings.authorization_server {
        servers.push(oauth.url.clone());
    }
    servers.extend(oauth.issuers.iter().map(|issuer| issuer.declared.url.clone()));
    ProtectedResource {
        resource: format!("{}{path}", oauth.url),
        resource_name: Some("Provost".to_owned()),
        authorization_servers: servers,
        scopes_supported: texts(&FIRST_SCOPES),
        bearer_methods_supported: texts(&["header"]),
        dpop_signing_alg_values_supported: algorithms(),
        dpop_bound_access_tokens_required: false,
        resource_documentation: None,
    }
}

fn server(oauth: &Oauth) -> AuthorizationServer {
    let is_interactive = oauth.settings.interactive;
    let at = |path: &str| format!("{}{path}", oauth.url);
    let only_interactive = |grant: &str| grant == "authorization_code" || grant == "refresh_token";
    let grants = GRANT_TYPES
        .iter()
        .filter(|grant| is_interactive || !only_interactive(grant));
    AuthorizationServer {
        issuer: oauth.url.clone(),
        authorization_endpoint: is_interactive.then(|| at("/oauth/authorize")),
        token_endpoint: at(TOKEN),
        jwks_uri: at(KEYS),
        revocation_endpoint: Some(at(revoke::PATH)),
        registration_endpoint: None,
        service_documentation: None,
        scopes_supported: texts(&ScopeSet::all().to_list()),
        response_types_supported: if is_interactive {
            texts(&["code"])
        } else {
            Vec::new()
        },
        response_modes_supported: if is_interactive {
            texts(&["query"])
        } else {
            Vec::new()
        },
        grant_types_supported: grants.map(|&grant| grant.to_owned()).collect(),
        authorization_grant_profiles_supported: texts(&[id_jag::GRANT_PROFILE]),
        token_endpoint_auth_methods_supported: texts(&["none", "private_key_jwt"]),
        token_endpoint_auth_signing_alg_values_supported: algorithms(),
        code_challenge_methods_supported: texts(&[pkce::METHOD]),
        dpop_signing_alg_values_supported: algorithms(),
        authorization_response_iss_parameter_supported: is_interactive,
        client_id_metadata_document_supported: oauth.settings.client_documents,
        command_line_client_id: oauth.settings.command_line.then(|| command_line::ID.to_owned()),
    }
}
