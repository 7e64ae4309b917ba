//! Revokes one token.

use super::model::{OneAccount, ServiceAccountId, TokenId, view};
use super::store::{self, TokenEnd};
use crate::service_accounts::fences;
use provost_kernel::auth::Role::Admin;
use provost_kernel::error::Error;
use provost_kernel::operation::{Empty, Input, Meta, Method, Operation};
use provost_kernel::{OperationContext, Result};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Value;

pub struct RevokeServiceAccountToken;

/// Names a token.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[schemars(inline)]
pub struct TokenPath {
    service_account_id: ServiceAccountId,
    token_id: TokenId,
}

impl Operation for RevokeServiceAccountToken {
    const META: Meta = Meta::write(
        "revokeHeadlessServiceAccountToken",
        Method::Post,
        "/service-accounts/{serviceAccountId}/tokens/{tokenId}/revoke",
        "service_accounts",
    )
    .access("service_accounts:write", &[Admin])
    .command("service-accounts", "revoke-token")
    .confirmed()
    .says(
        "Revoke one token of a service account",
        "The token is refused from the next request on. Revoking it again changes nothing.",
    );
    type Path = TokenPath;
    type Query = Empty;
    type Body = Empty;
    type Output = OneAccount;

    fn call(ctx: &mut OperationContext<'_>, input: &Input<Self>) -> Result<OneAccount> {
        let (id, token_id) = (&input.path.service_account_id, &input.path.token_id);
        ctx.target(&fences::ACCOUNT, id.as_str());
        let (mut account, mut tokens) = store::get(ctx, id)?;
        let now = ctx.now();
        // A narrowed token that is left repairs nothing.
        let is_last_governing = tokens
            .iter()
            .filter(|t| t.governs(now))
            .all(|t| t.id == *token_id);
        let token = tokens.iter_mut().find(|t| t.id == *token_id);
        let token = token.ok_or_else(|| Error::not_found("token of this service account"))?;
        if token.revoked_at.is_none() {
            if is_last_governing && token.governs(now) {
                store::keep_a_governor(ctx, &account)?;
            }
            store::revoke(
                ctx,
                token,
                &TokenEnd {
                    reason: "admin_revoked",
                    successor: None,
                    by_itself: false,
                },
            )?;
            account.updated_at = account.changed_at(now);
            store::save(ctx, &account, false)?;
            ctx.change("/tokens/revokedAt", Value::Null, now.to_rfc3339());
            ctx.emit(&fences::TOKEN_REVOKED, &fences::OfToken::of(id, token_id));
        }
        Ok(OneAccount {
            service_account: view(account, tokens, now),
            warnings: Vec::new(),
        })
    }
}
