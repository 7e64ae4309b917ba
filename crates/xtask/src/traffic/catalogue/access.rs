//! Service accounts, tokens, settings, workload trusts, and the clients and sessions of MCP.

use serde_json::{Value, json};

use super::{Operation, keyed};
use crate::failure::{Context, Outcome};
use crate::http::Request;
use crate::traffic::account as account_body;
use crate::traffic::maker::Maker;

pub const OPERATIONS: &[Operation] = &[
    keyed("createHeadlessServiceAccount", |maker| {
        let body = account_body(maker.unique, "viewer");
        Ok(maker.call("POST", "service-accounts", body))
    }),
    keyed("updateHeadlessServiceAccount", |maker| {
        let path = account(maker)?;
        Ok(maker.call("PATCH", &path, json!({ "description": maker.unique })))
    }),
    keyed("deleteHeadlessServiceAccount", |maker| {
        let path = account(maker)?;
        Ok(maker.bare("DELETE", &path))
    }),
    keyed("disableHeadlessServiceAccount", |maker| {
        let path = account(maker)?;
        Ok(maker.bare("POST", &format!("{path}/disable")))
    }),
    keyed("enableHeadlessServiceAccount", |maker| {
        let path = account(maker)?;
        maker.write("POST", &format!("{path}/disable"), json!({}))?;
        Ok(maker.bare("POST", &format!("{path}/enable")))
    }),
    keyed("rotateHeadlessServiceAccountToken", |maker| {
        let path = account(maker)?;
        Ok(maker.call(
            "POST",
            &format!("{path}/tokens"),
            json!({ "gracePeriodSeconds": 60 }),
        ))
    }),
    keyed("revokeHeadlessServiceAccountToken", |maker| {
        let path = account(maker)?;
        let shown = maker.send(&Request::get(maker.bootstrap.path(&path), &maker.bootstrap.token))?;
        let token = shown
            .pointer("/serviceAccount/tokens/0/id")
            .and_then(Value::as_str);
        let token = token.context("an account without a token")?;
        Ok(maker.bare("POST", &format!("{path}/tokens/{token}/revoke")))
    }),
    keyed("updateHeadlessAutomationSettings", |maker| {
        let path = "automation/settings";
        let shown = maker.send(&Request::get(maker.bootstrap.path(path), &maker.bootstrap.token))?;
        let flag = shown.to_string().contains("\"revokeFamilyOnReuse\":true");
        // Another operation may have set something of devices, which no other change resets without a word.
        let body = json!({ "tokens": { "revokeFamilyOnReuse": !flag }, "fleet": shown["fleet"] });
        Ok(maker.call("PUT", path, body))
    }),
    keyed("patchHeadlessAutomationSettings", |maker| {
        let path = "automation/settings";
        let shown = maker.send(&Request::get(maker.bootstrap.path(path), &maker.bootstrap.token))?;
        let flag = shown.to_string().contains("\"revokeFamilyOnReuse\":true");
        Ok(maker.call(
            "PATCH",
            path,
            json!({ "tokens": { "revokeFamilyOnReuse": !flag } }),
        ))
    }),
    keyed("createHeadlessMcpClient", |maker| {
        Ok(maker.call("POST", "mcp/clients", client(maker.unique)))
    }),
    keyed("updateHeadlessMcpClient", |maker| {
        let path = registered(maker)?;
        Ok(maker.call(
            "PATCH",
            &path,
            json!({ "name": format!("client {}", maker.unique) }),
        ))
    }),
    keyed("deleteHeadlessMcpClient", |maker| {
        let path = registered(maker)?;
        Ok(maker.bare("DELETE", &path))
    }),
    keyed("createHeadlessWorkloadTrust", |maker| {
        let account = maker.account()?;
        Ok(maker.call("POST", "workload-trusts", trust(&account, maker.unique)))
    }),
    keyed("updateHeadlessWorkloadTrust", |maker| {
        let path = trusted(maker)?;
        Ok(maker.call("PATCH", &path, json!({ "lifetimeSeconds": 600 })))
    }),
    keyed("deleteHeadlessWorkloadTrust", |maker| {
        let path = trusted(maker)?;
        Ok(maker.bare("DELETE", &path))
    }),
    keyed("revokeHeadlessMcpSession", |maker| {
        let session = session(maker)?;
        Ok(maker.bare("POST", &format!("mcp/sessions/{session}/revoke")))
    }),
    keyed("revokeHeadlessMcpSessions", |maker| {
        session(maker)?;
        Ok(maker.call("POST", "mcp/sessions/revoke", json!({ "clientId": maker.unique })))
    }),
];

fn account(maker: &mut Maker<'_>) -> Outcome<String> {
    Ok(format!("service-accounts/{}", maker.account()?))
}

fn client(name: &str) -> Value {
    json!({
        "name": name, "redirectUris": ["http://127.0.0.1/callback"],
        "grantTypes": ["authorization_code", "refresh_token"], "tokenEndpointAuthMethod": "none",
        "scopes": ["policies:read"],
    })
}

fn registered(maker: &mut Maker<'_>) -> Outcome<String> {
    let id = maker.make("mcp/clients", client(&format!("for {}", maker.unique)))?;
    Ok(format!("mcp/clients/{id}"))
}

fn trust(account: &str, name: &str) -> Value {
    json!({
        "name": name, "kind": "github", "issuer": "https://token.actions.githubusercontent.com",
        "serviceAccountId": account,
        "claims": [
            { "claim": "repository_id", "value": "74" },
            { "claim": "sub", "value": "repo:acme/shop:environment:production" },
        ],
    })
}

fn trusted(maker: &mut Maker<'_>) -> Outcome<String> {
    let account = maker.account()?;
    let body = trust(&account, &format!("for {}", maker.unique));
    let id = maker.make("workload-trusts", body)?;
    Ok(format!("workload-trusts/{id}"))
}

/// Connects an MCP client of this point's name with a token of its own, which opens a session.
fn session(maker: &mut Maker<'_>) -> Outcome<String> {
    let body = json!({ "name": format!("for {}", maker.unique), "permissionRole": "admin", "scopes": ["policies:read"] });
    let made = maker.write("POST", "service-accounts", body)?;
    let token = made
        .pointer("/token/token")
        .and_then(Value::as_str)
        .context("an account without a token")?;
    let mut connect = Request::new("POST", "/mcp", token).with_body(json!({
        "jsonrpc": "2.0", "id": 1, "method": "initialize",
        "params": { "protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": { "name": maker.unique, "version": "1" } },
    }));
    connect
        .headers
        .push(("Accept", "application/json, text/event-stream".to_owned()));
    maker.answer(&connect)?;
    let path = maker.bootstrap.path("mcp/sessions?limit=100");
    let shown = maker.send(&Request::get(path, &maker.bootstrap.token))?;
    let sessions = shown["sessions"].as_array().context("no list of sessions")?;
    let mine = sessions.iter().find(|one| one["mcpClientId"] == maker.unique);
    mine.and_then(|one| one["id"].as_str())
        .map(str::to_owned)
        .context("a client that connected has no session")
}
