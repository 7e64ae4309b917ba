//! Disables and enables a service account. Both are idempotent (D5.7).

use super::model::{AccountPath, OneAccount, ServiceAccount, Status, Token, not_oneself, view};
use super::{rotate, store};
use crate::service_accounts::fences;
use crate::subjects::SubjectKind;
use provost_areas_platform::announcements::{Departure, PrincipalEnded};
use provost_kernel::auth::Role::Admin;
use provost_kernel::operation::{Empty, Input, Meta, Method, Operation};
use provost_kernel::{OperationContext, Result};
use serde_json::Value;

pub struct DisableServiceAccount;

impl Operation for DisableServiceAccount {
    const META: Meta = Meta::write(
        "disableHeadlessServiceAccount",
        Method::Post,
        "/service-accounts/{serviceAccountId}/disable",
        "service_accounts",
    )
    .access("service_accounts:write", &[Admin])
    .command("service-accounts", "disable")
    .says(
        "Disable a service account",
        "Its tokens are refused from the next request on and keep their state.",
    );
    type Path = AccountPath;
    type Query = Empty;
    type Body = Empty;
    type Output = OneAccount;

    fn call(ctx: &mut OperationContext<'_>, input: &Input<Self>) -> Result<OneAccount> {
        let id = &input.path.service_account_id;
        ctx.target(&fences::ACCOUNT, id.as_str());
        let (mut account, tokens) = store::get(ctx, id)?;
        let now = ctx.now();
        if account.status == Status::Active {
            not_oneself(&ctx.actor().id, &account, "disable")?;
            store::keep_a_governor(ctx, &account)?;
            disable(ctx, &mut account, &tokens)?;
        } else if let Some(reason) = account.disabled_reason.take() {
            // Somebody decided: a release of everybody who is held does not bring it back.
            ctx.change("/disabledReason", reason, serde_json::Value::Null);
            account.updated_at = account.changed_at(now);
            store::save(ctx, &account, false)?;
        }
        Ok(OneAccount {
            service_account: view(account, tokens, now),
            warnings: Vec::new(),
        })
    }
}

pub struct EnableServiceAccount;

impl Operation for EnableServiceAccount {
    const META: Meta = Meta::write(
        "enableHeadlessServiceAccount",
        Method::Post,
        "/service-accounts/{serviceAccountId}/enable",
        "service_accounts",
    )
    .access("service_accounts:write", &[Admin])
    .command("service-accounts", "enable")
    .of_two(&["rights"])
    .says(
        "Enable a service account",
        "Tokens that are neither expired nor revoked work again.",
    );
    type Path = AccountPath;
    type Query = Empty;
    type Body = Empty;
    type Output = OneAccount;

    fn standing(ctx: &mut OperationContext<'_>, input: &Input<Self>) -> Result<Value> {
        rotate::standing(ctx, &input.path.service_account_id)
    }

    fn call(ctx: &mut OperationContext<'_>, input: &Input<Self>) -> Result<OneAccount> {
        let id = &input.path.service_account_id;
        ctx.target(&fences::ACCOUNT, id.as_str());
        let (mut account, tokens) = store::get(ctx, id)?;
        if account.status == Status::Disabled {
            // Enabling gives the account's tokens their power back: nobody does that for more than they hold.
            account.may_be_held_by(ctx.actor().permission)?;
            account.disabled_at = None;
            account.disabled_reason = None;
            change(ctx, &mut account, Status::Active)?;
            ctx.emit(&fences::ENABLED, &fences::OfAccount::of(id));
        }
        Ok(OneAccount {
            service_account: view(account, tokens, ctx.now()),
            warnings: Vec::new(),
        })
    }
}

/// Disables an account that is active, whoever may do that.
pub(super) fn disable(
    ctx: &mut OperationContext<'_>,
    account: &mut ServiceAccount,
    tokens: &[Token],
) -> Result<()> {
    let now = ctx.now();
    account.disabled_at = Some(account.changed_at(now));
    change(ctx, account, Status::Disabled)?;
    // Only a token that still works can have a secret that could be replayed (D4.8).
    for token in tokens.iter().filter(|t| t.is_usable(now)) {
        ctx.erase_replay(token.id.as_str())?;
    }
    ctx.announce(&PrincipalEnded {
        kind: SubjectKind::ServiceAccount,
        id: account.id.as_str().to_owned(),
        how: Departure::Stopped,
    })?;
    ctx.emit(&fences::DISABLED, &fences::OfAccount::of(&account.id));
    Ok(())
}

fn change(ctx: &mut OperationContext<'_>, account: &mut ServiceAccount, status: Status) -> Result<()> {
    ctx.change("/status", account.status.as_str(), status.as_str());
    account.status = status;
    account.updated_at = account.changed_at(ctx.now());
    store::save(ctx, account, false)
}
