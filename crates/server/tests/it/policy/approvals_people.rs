//! People who sign in and vote.

use crate::access::oauth::{code, post, redeeming, user};
use crate::areas::oauth::{public_client, register};
use crate::support::{App, fresh_key};
use serde_json::json;

/// What the client of a person may do for it, as far as its role goes.
const SCOPES: [&str; 10] = [
    "automation_settings:write",
    "inventory:read",
    "inventory:write",
    "mcp_approvals:decide",
    "mcp_approvals:read",
    "mcp_approvals:request",
    "mcp_approvals:write",
    "policies:decide",
    "service_accounts:rotate",
    "service_accounts:write",
];

/// Somebody who signs in.
pub struct Person {
    pub id: String,
    pub login: String,
    client: String,
}

impl Person {
    /// Makes a user of a role, and a client that acts for it.
    pub async fn of(app: &App, name: &str, role: &str) -> Self {
        Self::with(app, name, role, &SCOPES).await
    }

    /// The same, with a client that may do this for it.
    pub async fn with(app: &App, name: &str, role: &str, scopes: &[&str]) -> Self {
        let login = format!("{name}.{}@acme.example", fresh_key().to_lowercase());
        let id = user(app, &login, Some(role)).await;
        let mut client = public_client(&fresh_key());
        client["scopes"] = json!(scopes);
        Self {
            id,
            login,
            client: register(app, client).await,
        }
    }

    /// Signs in and returns the token.
    pub async fn token(&self, app: &App) -> String {
        self.token_for(app, &SCOPES).await
    }

    /// Signs in for these scopes and returns the token.
    pub async fn token_for(&self, app: &App, scopes: &[&str]) -> String {
        let code = code(app, &self.client, &self.id, scopes, None).await;
        let reply = post(app, "/oauth/token", &redeeming(&self.client, &code)).await;
        let token = reply.json["access_token"].as_str();
        token.unwrap_or_else(|| panic!("{}", reply.text())).to_owned()
    }
}

/// Signs an admin of the directory in, and returns the token.
pub async fn signed_in(app: &App) -> String {
    Person::of(app, "person", "admin").await.token(app).await
}
