//! Signing in and consenting: what a browser sees, and what a client gets.
//!
//! `PROVOST_TEST_OIDC_PROVIDER` names the folder of a real OpenID provider (`crates/xtask/oidc` with its packages);
//! `cargo xtask test` installs it. With `PROVOST_TEST_REQUIRE_OIDC=1` its absence is a failure. What no right provider
//! would say, a provider of the tests' own says.

mod command_line;
mod documents;
mod faults;
mod liar;
mod pages;
mod real;
mod steps;
mod visitor;

use crate::support::{App, every_scope, segments};
use provost_areas_access::oauth::sign_in::{Http, ProviderDeclaration, Providers};
use provost_kernel::auth::OrganizationId;
use provost_kernel::kernel::Extras;
use rustls::RootCertStore;
use serde_json::{Value, json};

pub const REDIRECT: &str = "https://app.example/callback?fixed=1";
/// The SHA-256 of `VERIFIER`, in base64url.
pub const CHALLENGE: &str = "E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM";

/// Returns a declaration of a provider; the organization is the application's.
pub fn declared(app: &App, issuer: &str, client_id: &str) -> ProviderDeclaration {
    let secret = app.keys_dir.join("client-secret");
    std::fs::write(&secret, "a secret / with + signs: and more\n").unwrap();
    ProviderDeclaration {
        name: "Acme Login".into(),
        issuer: issuer.into(),
        client_id: client_id.into(),
        client_secret_file: Some(secret),
        organizations: vec![OrganizationId::parse(&app.organization).unwrap()],
        scopes: vec!["email".into()],
        authoritative_for: Some("default".into()),
        http: Http::new(RootCertStore::empty()).unwrap(),
    }
}

/// Returns one more server of the same store, with providers.
pub fn with_providers(app: &App, declared: Vec<ProviderDeclaration>) -> App {
    let extras = Extras::default()
        .with(segments(&app.keys_dir))
        .with(Providers::new(declared));
    app.restarted(extras).unwrap()
}

/// Registers a client of the application's organization, for all scopes if none is named; returns its id.
pub async fn client(app: &App, name: &str, redirect_uris: &[&str], scopes: &[&str]) -> String {
    let every = every_scope();
    let scopes = if scopes.is_empty() { &every } else { scopes };
    let body = json!({
        "name": name,
        "redirectUris": redirect_uris,
        "grantTypes": ["authorization_code", "refresh_token"],
        "tokenEndpointAuthMethod": "none",
        "scopes": scopes,
    });
    let made = app.write("POST", "/mcp/clients", body).await;
    made.ok()["id"].as_str().unwrap().to_owned()
}

/// Makes a user; returns its id.
pub async fn user(app: &App, login_name: &str, role: Option<&str>) -> String {
    let mut body = json!({ "loginName": login_name, "displayName": "Ada Lovelace" });
    if let Some(role) = role {
        body["permissionRole"] = role.into();
    }
    let made = app.write("POST", "/directory/users", body).await;
    made.ok()["user"]["id"].as_str().unwrap().to_owned()
}

pub async fn suspend(app: &App, user_id: &str) {
    let path = format!("/directory/users/{user_id}/suspend");
    app.write("POST", &path, json!({})).await.ok();
}

/// Returns the target of a request of a client, with what a right one holds apart from `changes`; `None` leaves out.
pub fn authorize(client_id: &str, changes: &[(&str, Option<&str>)]) -> String {
    let mut all = vec![
        ("response_type", "code"),
        ("client_id", client_id),
        ("redirect_uri", REDIRECT),
        ("scope", "policies:read policies:backtest audit:read"),
        ("state", "s t/a&te"),
        ("code_challenge", CHALLENGE),
        ("code_challenge_method", "S256"),
    ];
    for (name, value) in changes {
        all.retain(|(known, _)| known != name);
        if let Some(value) = value {
            all.push((name, value));
        }
    }
    format!("/oauth/authorize?{}", query(&all))
}

/// Encodes parameters.
pub fn query(pairs: &[(&str, &str)]) -> String {
    let escape = |text: &str| -> String {
        text.bytes()
            .map(|byte| {
                if byte.is_ascii_alphanumeric() || b"-._~".contains(&byte) {
                    char::from(byte).to_string()
                } else {
                    format!("%{byte:02X}")
                }
            })
            .collect()
    };
    let pairs = pairs
        .iter()
        .map(|(name, value)| format!("{}={}", escape(name), escape(value)));
    pairs.collect::<Vec<_>>().join("&")
}

/// Returns a parameter of a URL, decoded.
pub fn parameter(url: &str, name: &str) -> Option<String> {
    let (_, query) = url.split_once('?')?;
    let pairs = query.split('&').filter_map(|pair| pair.split_once('='));
    let mut values = pairs.filter(|(known, _)| *known == name).map(|(_, value)| value);
    let value = values.next()?;
    assert!(values.next().is_none(), "{name} is there twice: {url}");
    let value = value.replace('+', " ");
    Some(provost_kernel::dispatch::percent_decode(&value).unwrap())
}

/// Returns the entries of the audit log with an action.
pub async fn audited(app: &App, action: &str) -> Vec<Value> {
    let page = app.get(&format!("/audit/events?limit=100&action={action}")).await;
    page.ok()["events"].as_array().unwrap().clone()
}
