//! Access tokens of this server for a registered client that is a service account.

use serde_json::json;

use crate::clients::administrator::{Administrator, text};
use crate::clients::program::Program;
use crate::clock;
use crate::failure::{Context, Failure, Outcome};
use crate::http::{Connection, Request};
use crate::product::{self, Bootstrap, Server};

/// Registers a client with a key of its own and asks for so many tokens that read accounts.
pub fn issue(server: &Server, bootstrap: &Bootstrap, count: usize) -> Outcome<Vec<String>> {
    let mut asserter = start()?;
    let mut administrator = Administrator::new(server, bootstrap);
    let scopes = ["service_accounts:read"];
    let account = administrator.account("Reader with signed tokens", "auditor", &scopes)?;
    let client = administrator.post(
        "mcp/clients",
        json!({
            "name": "Reader", "grantTypes": ["client_credentials"], "tokenEndpointAuthMethod": "private_key_jwt",
            "jwks": asserter.object()?, "scopes": scopes, "serviceAccountId": account.id,
        }),
    )?;
    let client = text(&client, "/id")?;
    let mut connection = Connection::new(server.address);
    let metadata = connection.fetch(&Request {
        token: None,
        ..Request::get("/.well-known/oauth-authorization-server", "")
    })?;
    let audience = text(&metadata, "/issuer")?;
    let now = clock::since_epoch().as_secs();
    asserter.tell(&format!("{client} {audience} {now} {count}"))?;
    let ask = |_| {
        let form = format!(
            "grant_type=client_credentials&scope=service_accounts%3Aread&client_assertion={}\
             &client_assertion_type=urn%3Aietf%3Aparams%3Aoauth%3Aclient-assertion-type%3Ajwt-bearer",
            asserter.line()?
        );
        let request = Request {
            token: None,
            content: Some(("application/x-www-form-urlencoded", form.into_bytes())),
            ..Request::new("POST", "/oauth/token", "")
        };
        let granted = connection.fetch(&request)?;
        text(&granted, "/access_token")
    };
    let tokens = (0..count).map(ask).collect::<Outcome<Vec<_>>>()?;
    let distinct: std::collections::BTreeSet<_> = tokens.iter().collect();
    if distinct.len() == count {
        Ok(tokens)
    } else {
        Err(Failure::new("two tokens are the same"))
    }
}

/// Builds and starts the program that signs: this crate knows no keys.
fn start() -> Outcome<Program> {
    let program = product::example("provost-oauth", "assert_client", &["--features", "testing"])?;
    Program::start(&mut std::process::Command::new(program)).context("cannot start the program that signs")
}
