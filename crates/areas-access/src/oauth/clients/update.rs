//! `PATCH …/mcp/clients/{mcpClientId}`: absent members stay (D13).
//!
//! INVARIANT OC-16: what somebody takes away from a client who does not hold it makes the client no easier to take:
//! its keys and targets are given by whoever holds what it could be granted before.

use super::model::{
    ClientPath, ClientView, GrantTypes, Jwks, RedirectUris, RegisteredClient, texts, words, wrong,
};
use super::store;
use crate::mcp_sessions;
use crate::oauth::fences;
use crate::resources::definition::SingleLine;
use provost_areas_identity::service_accounts::ScopeList;
use provost_kernel::auth::Role::Admin;
use provost_kernel::operation::{Empty, Input, Meta, Method, Operation};
use provost_kernel::patch::RequiredChange;
use provost_kernel::text::Name;
use provost_kernel::{OperationContext, Result, Timestamp};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};

pub struct UpdateMcpClient;

/// What can change.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[schemars(inline)]
pub struct UpdateBody {
    /// The new name.
    #[serde(default)]
    name: RequiredChange<Name>,
    /// The new redirect targets.
    #[serde(default)]
    redirect_uris: RequiredChange<RedirectUris>,
    /// The new grants.
    #[serde(default)]
    grant_types: RequiredChange<GrantTypes>,
    /// The new keys, in place of those that it has or of the place where they are.
    #[serde(default)]
    jwks: RequiredChange<Jwks>,
    /// The place where the keys are, in place of those that it has.
    #[serde(default)]
    jwks_uri: RequiredChange<SingleLine<1, 512>>,
    /// The new scopes.
    #[serde(default)]
    scopes: RequiredChange<ScopeList>,
    /// `true` ends its sessions and refuses it; `false` lets it in again.
    #[serde(default)]
    blocked: RequiredChange<bool>,
}

impl Operation for UpdateMcpClient {
    const META: Meta = Meta::write(
        "updateHeadlessMcpClient",
        Method::Patch,
        "/mcp/clients/{mcpClientId}",
        "mcp",
    )
    .access("mcp:write", &[Admin])
    .command("mcp-clients", "update")
    .example(r#"{"blocked": true}"#)
    .of_two(&["rights"])
    .of_deciders()
    .says(
        "Change, block or unblock a registered MCP client",
        "Members that are absent stay as they are. Whoever gives scopes, grants, keys or redirect targets, or unblocks the \
         client, holds all that it can then be granted; who takes away need not. Blocking ends all of its sessions at once.",
    );
    type Path = ClientPath;
    type Query = Empty;
    type Body = UpdateBody;
    type Output = ClientView;

    fn validate(input: &Input<Self>) -> Result<()> {
        if input.body.jwks.get().is_some() && input.body.jwks_uri.get().is_some() {
            return wrong("/jwks", "cannot come together with jwksUri");
        }
        Ok(())
    }

    fn standing(ctx: &mut OperationContext<'_>, input: &Input<Self>) -> Result<Value> {
        store::standing(ctx, &input.path.mcp_client_id)
    }

    /// Whoever it lets in acts as the account.
    fn gains(ctx: &mut OperationContext<'_>, input: &Input<Self>) -> Result<Vec<String>> {
        let client = store::get(ctx, &input.path.mcp_client_id)?;
        Ok(client.service_account_id.into_iter().collect())
    }

    fn call(ctx: &mut OperationContext<'_>, input: &Input<Self>) -> Result<ClientView> {
        let id = &input.path.mcp_client_id;
        ctx.target(&fences::CLIENT, id.as_str());
        let before = store::get(ctx, id)?;
        let mut after = apply(&before, &input.body, ctx.now());
        after.check()?;
        // INVARIANT OC-16: what somebody takes away from a client who does not hold it does not make the client easier to
        // take: keys and targets are given by whoever holds what the client could be granted before, until somebody who
        // does decides anew. What it is granted is less at once.
        if after.ceiling != before.ceiling && store::may_be(ctx, &before).is_err() {
            after.ceiling = before.ceiling;
        }
        if widens(&before, &after, &input.body) {
            store::may_be(ctx, &before)?;
            after.ceiling = after.scopes.closed();
            store::may_be(ctx, &after)?;
        } else if after.gives_beyond(&before) {
            store::may_be(ctx, &after)?;
        }
        note_changes(ctx, &before, &after);
        if ctx.has_changes() {
            after.updated_at = ctx.now().max(before.updated_at.plus_ms(1));
            store::save(ctx, &after)?;
            // What its sessions may do is what it has now: those who wait behind this unit are judged anew (OC-10).
            ctx.invalidate_cached_credentials();
            ctx.emit(
                &fences::CLIENT_UPDATED,
                &fences::OfClient {
                    mcp_client_id: id.clone(),
                },
            );
        }
        if input.body.blocked.get().is_some() {
            store::forget_held(ctx, id)?;
        }
        if after.blocked_at.is_some() && before.blocked_at.is_none() {
            mcp_sessions::end_all_of_client(ctx, id.as_str(), "client_blocked")?;
        }
        let idle = store::idle(ctx, &after)?;
        Ok(ClientView::from(after).with_idle(&idle))
    }
}

/// Says whether scopes were given that the client could not be granted: by themselves, or because its ceiling was below
/// them.
fn widens(before: &RegisteredClient, after: &RegisteredClient, body: &UpdateBody) -> bool {
    body.scopes.get().is_some() && !before.granted().covers(after.scopes.closed())
}

fn apply(before: &RegisteredClient, body: &UpdateBody, now: Timestamp) -> RegisteredClient {
    let mut after = before.clone();
    if let Some(name) = body.name.get() {
        name.as_str().clone_into(&mut after.name);
    }
    if let Some(uris) = body.redirect_uris.get() {
        after.redirect_uris = texts(uris);
    }
    if let Some(grants) = body.grant_types.get() {
        after.grant_types = words(grants);
    }
    if let Some(keys) = body.jwks.get() {
        (after.jwks, after.jwks_uri) = (Some(keys.clone()), None);
    }
    if let Some(url) = body.jwks_uri.get() {
        (after.jwks, after.jwks_uri) = (None, Some(url.as_str().to_owned()));
    }
    if let Some(scopes) = body.scopes.get() {
        after.scopes = scopes.set();
        // What is taken away is not given back by the ceiling.
        after.ceiling = before.ceiling.closed().and(after.scopes.closed());
    }
    match body.blocked.get() {
        Some(true) => after.blocked_at = before.blocked_at.or(Some(now)),
        Some(false) => after.blocked_at = None,
        None => {}
    }
    after
}

fn note_changes(ctx: &mut OperationContext<'_>, before: &RegisteredClient, after: &RegisteredClient) {
    ctx.change("/name", before.name.as_str(), after.name.as_str());
    ctx.change(
        "/redirectUris",
        json!(before.redirect_uris),
        json!(after.redirect_uris),
    );
    ctx.change("/grantTypes", json!(before.grant_types), json!(after.grant_types));
    ctx.change("/jwks", json!(before.jwks), json!(after.jwks));
    ctx.change("/jwksUri", json!(before.jwks_uri), json!(after.jwks_uri));
    ctx.change(
        "/scopes",
        json!(before.scopes.to_list()),
        json!(after.scopes.to_list()),
    );
    ctx.change(
        "/ceiling",
        json!(before.ceiling.to_list()),
        json!(after.ceiling.to_list()),
    );
    ctx.change(
        "/blocked",
        before.blocked_at.is_some(),
        after.blocked_at.is_some(),
    );
}
