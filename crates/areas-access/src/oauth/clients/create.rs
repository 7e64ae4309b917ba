//! `POST …/mcp/clients`
//!
//! INVARIANT OC-15: a client has a ceiling that is written when its scopes are given; what its account may do later
//! adds nothing.

use super::model::{AuthMethod, ClientView, GrantTypes, Jwks, RedirectUris, RegisteredClient, texts, words};
use super::store;
use crate::oauth::fences;
use crate::resources::definition::SingleLine;
use provost_areas_identity::service_accounts::{self, ScopeList};
use provost_kernel::auth::Role::Admin;
use provost_kernel::operation::{Empty, Input, Meta, Method, Operation};
use provost_kernel::text::Name;
use provost_kernel::{OperationContext, Result};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};

pub struct CreateMcpClient;

/// What a client is made of.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[schemars(inline)]
pub struct CreateBody {
    /// How people call it; unique in the organization.
    name: Name,
    /// Where answers may be sent: `https:`, `http:` on the loopback interface, or a private scheme.
    #[serde(default)]
    redirect_uris: RedirectUris,
    /// What it may ask tokens with.
    grant_types: GrantTypes,
    /// How it proves itself.
    token_endpoint_auth_method: AuthMethod,
    /// Its public keys, for `private_key_jwt`.
    jwks: Option<Jwks>,
    /// Or where they are.
    jwks_uri: Option<SingleLine<1, 512>>,
    /// The most that it may be granted.
    scopes: ScopeList,
    /// The account that it is, for `client_credentials`.
    service_account_id: Option<Name>,
}

impl Operation for CreateMcpClient {
    const META: Meta = Meta::write("createHeadlessMcpClient", Method::Post, "/mcp/clients", "mcp")
        .access("mcp:write", &[Admin])
        .command("mcp-clients", "create")
        .example(
            r#"{"name": "Editor", "redirectUris": ["http://localhost/callback"],
               "grantTypes": ["authorization_code", "refresh_token"], "tokenEndpointAuthMethod": "none",
               "scopes": ["capabilities:read", "policies:read"]}"#,
        )
        .status(201)
        .answers(&["Location"])
        .of_two(&["rights"])
        .of_deciders()
        .says(
            "Register an MCP client",
            "Clients that publish a metadata document need no registration: its URL is their id.",
        );
    type Path = Empty;
    type Query = Empty;
    type Body = CreateBody;
    type Output = ClientView;

    /// Who the account is that it acts as.
    fn standing(ctx: &mut OperationContext<'_>, input: &Input<Self>) -> Result<Value> {
        match &input.body.service_account_id {
            Some(id) => service_accounts::shown_to_voters(ctx, id.as_str()),
            None => Ok(Value::Null),
        }
    }

    fn call(ctx: &mut OperationContext<'_>, input: &Input<Self>) -> Result<ClientView> {
        let body = &input.body;
        let client = RegisteredClient {
            id: ctx.new_id(),
            organization_id: ctx.org().to_owned(),
            name: body.name.as_str().to_owned(),
            redirect_uris: texts(&body.redirect_uris),
            grant_types: words(&body.grant_types),
            auth_method: body.token_endpoint_auth_method,
            jwks: body.jwks.clone(),
            jwks_uri: body.jwks_uri.as_ref().map(|url| url.as_str().to_owned()),
            scopes: body.scopes.set(),
            // INVARIANT OC-15: a grant has a ceiling that is written when it is made (D5.10): what the account may do later adds nothing.
            ceiling: body.scopes.set().closed(),
            service_account_id: body.service_account_id.as_ref().map(|id| id.as_str().to_owned()),
            blocked_at: None,
            created_at: ctx.now(),
            updated_at: ctx.now(),
        };
        ctx.target(&fences::CLIENT, client.id.as_str());
        client.check()?;
        store::may_be(ctx, &client)?;
        store::insert(ctx, &client)?;
        let base = format!("/api/headless/v1/organizations/{}", ctx.org());
        ctx.header("location", format!("{base}/mcp/clients/{}", client.id.as_str()));
        ctx.change("/name", Value::Null, client.name.as_str());
        ctx.change("/grantTypes", Value::Null, json!(client.grant_types));
        ctx.change("/scopes", Value::Null, json!(client.scopes.to_list()));
        ctx.emit(
            &fences::CLIENT_CREATED,
            &fences::OfClient {
                mcp_client_id: client.id.clone(),
            },
        );
        let idle = store::idle(ctx, &client)?;
        Ok(ClientView::from(client).with_idle(&idle))
    }
}
