//! Rotates the token of a service account (specification §4.3, D5.4, D5.5).

use super::create::{AccountAndToken, LifetimeSecs, issue};
use super::model::{AccountPath, ServiceAccount, Status, Token, TokenId, lifetime_secs, view};
use super::store::{self, Ending};
use crate::areas::settings;
use provost_kernel::auth::Role::Admin;
use provost_kernel::auth::{ScopeSet, may_mint};
use provost_kernel::error::{Code, Error};
use provost_kernel::kernel::buckets;
use provost_kernel::operation::{Access, Empty, Input, Meta, Method, Operation};
use provost_kernel::text::Bounded;
use provost_kernel::{Cx, Result, Timestamp};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;

/// See [`Operation::META`].
pub struct RotateServiceAccountToken;

/// How to rotate.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[schemars(inline)]
pub struct RotateBody {
    /// How long the old token still works, in seconds; the organization's default when absent.
    grace_period_seconds: Option<Bounded<0, 604_800>>,
    /// The life of the new token, in seconds; the old one's when absent.
    expires_in_seconds: Option<LifetimeSecs>,
}

impl Operation for RotateServiceAccountToken {
    const META: Meta = Meta::write(
        "rotateHeadlessServiceAccountToken",
        Method::Post,
        "/service-accounts/{serviceAccountId}/tokens",
        "service_accounts",
    )
    .rule(Access::ScopedOrSelf {
        scope: "service_accounts:rotate",
        roles: &[Admin],
        self_scope: "service_accounts:rotate_self",
        parameter: "serviceAccountId",
    })
    .command("service-accounts", "rotate")
    .reveals_secret()
    .says(
        "Rotate the token of a service account",
        "The answer shows the new token once; a retry with the same idempotency key shows it again until it was used, at most 24 hours. The old token ends at once unless a grace period is given.",
    );
    type Path = AccountPath;
    type Query = Empty;
    type Body = RotateBody;
    type Output = AccountAndToken;

    fn call(cx: &mut Cx<'_>, input: &Input<Self>) -> Result<AccountAndToken> {
        let id = &input.path.service_account_id;
        cx.target("service_account", id.as_str());
        let (mut account, mut tokens) = store::get(cx, id)?;
        let last = newest(&tokens, cx.now());
        let scopes = last.map_or(account.scopes, |t| t.scopes);
        check_escalation(cx, &account, scopes)?;
        let (org, actor) = (cx.org(), cx.actor());
        cx.limit(&buckets::ROTATION_OF_ACCOUNT, &[org, id.as_str()])?;
        cx.limit(&buckets::ROTATION_BY_CALLER, &[org, &actor.id])?;
        if account.status == Status::Disabled {
            return Err(Error::new(
                Code::Disabled,
                "the service account is disabled; enable it first",
            ));
        }
        let settings = settings::load(cx)?;
        let asked = input.body.expires_in_seconds.map(Bounded::get);
        let lifetime = lifetime_secs(asked, last, settings.tokens.max_lifetime_seconds)?;
        let name = last.map_or_else(|| "default".to_owned(), |t| t.name.clone());
        let grace_secs = input
            .body
            .grace_period_seconds
            .map_or(settings.tokens.default_grace_seconds, Bounded::get);
        let (token, issued) = issue(
            cx,
            id,
            &name,
            scopes,
            lifetime,
            settings.tokens.secret_replay_seconds,
        )?;
        supersede(cx, &mut tokens, &token.id, grace_secs)?;
        if tokens.len() > 20 {
            let now = cx.now();
            cx.queue(&store::HIDE, provost_kernel::params![org, id.as_str(), now])?;
        }
        account.updated_at = account.changed_at(cx.now());
        store::save(cx, &account, false)?;
        cx.emit(
            "service_account.token.rotated",
            json!({ "serviceAccountId": id, "tokenId": token.id }),
        );
        tokens.push(token);
        Ok(AccountAndToken {
            service_account: view(account, tokens, cx.now()),
            token: issued,
        })
    }

    fn recheck(cx: &mut Cx<'_>, input: &Input<Self>) -> Result<()> {
        let (account, tokens) = store::get(cx, &input.path.service_account_id)?;
        let scopes = newest(&tokens, cx.now()).map_or(account.scopes, |t| t.scopes);
        check_escalation(cx, &account, scopes)
    }
}

/// The token whose name, scopes and lifetime the next one keeps.
///
/// The current one, if there is one, whatever the clock said when the others were made.
fn newest(tokens: &[Token], now: Timestamp) -> Option<&Token> {
    tokens.iter().max_by_key(|t| {
        (
            t.is_current(now),
            t.superseded_by_id.is_none(),
            t.created_at,
            t.id.as_str().to_owned(),
        )
    })
}

/// Whoever rotates a token holds it (decision I).
fn check_escalation(cx: &Cx<'_>, account: &ServiceAccount, scopes: Option<ScopeSet>) -> Result<()> {
    let caller = cx.actor().permission;
    if caller.role == Admin && caller.scopes.has("service_accounts:rotate_any") {
        return Ok(());
    }
    may_mint(caller, account.permission(scopes))
}

/// Ends every earlier token: the current one at once or after its grace, one that was in grace at once (D5.2).
fn supersede(cx: &mut Cx<'_>, tokens: &mut [Token], successor: &TokenId, grace_secs: i64) -> Result<()> {
    let now = cx.now();
    let caller = cx.actor().token.as_ref().map(|t| t.id.clone());
    for token in tokens.iter_mut().filter(|t| t.is_usable(now)) {
        let was_in_grace = token.superseded_by_id.is_some();
        if grace_secs > 0 && !was_in_grace {
            let until: Timestamp = token.expires_at.min(now.plus_secs(grace_secs));
            store::grace(cx, token, until, successor)?;
            continue;
        }
        let by_itself = caller.as_deref() == Some(token.id.as_str());
        let successor = (by_itself || !was_in_grace).then_some(successor);
        store::revoke(
            cx,
            token,
            &Ending {
                reason: "rotated",
                successor,
                by_itself,
            },
        )?;
    }
    Ok(())
}
