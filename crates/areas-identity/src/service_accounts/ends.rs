//! What takes away from service accounts and their tokens, and how it is taken away again (EN-3).

use super::model::{ServiceAccountId, Status, is_narrower};
use super::status;
use super::store::{self, TokenEnd};
use provost_areas_platform::ends::{by_hand, unclear, works_until};
use provost_kernel::area::{Again, RepeatedRevocation, Right};
use provost_kernel::auth::{Permission, Role, ScopeSet};
use provost_kernel::db::Tx;
use provost_kernel::ends::{Revocation, RowChange, Side};
use provost_kernel::{Error, OperationContext, Result, Timestamp};

const ACCOUNT: &str = "service_account";
const TOKEN: &str = "service_account_token";
const DELETED: &str = "deleted";
const NEW_OWNER: &str = "owner_changed";
const RENAMED: &str = "renamed";

/// The tables that decide what somebody may do.
pub const RIGHTS: &[Right] = &[
    Right::ending("service_account_tokens", token).loose(&[
        "last_used_at",
        "last_used_ip",
        "expiry_warned_days",
    ]),
    Right::ending("service_accounts", account),
];

/// The ways back.
pub const RETAKINGS: &[RepeatedRevocation] = &[
    RepeatedRevocation {
        what: ACCOUNT,
        again: account_again,
    },
    RepeatedRevocation {
        what: TOKEN,
        again: token_again,
    },
];

fn acts(side: &Side) -> Result<bool> {
    Ok(side.text("status")? == Some("active") && !side.has("deleted_at")?)
}

fn permission(side: &Side) -> Result<Permission> {
    let role = side.text("permission_role")?.and_then(Role::parse);
    let role = role.ok_or_else(|| Error::internal("service_accounts.permission_role is not a role"))?;
    Ok(Permission::effective(
        role,
        side.text("scopes")?.map(ScopeSet::from_store),
        None,
    ))
}

fn account(_: &mut Tx<'_>, change: &RowChange, _: Timestamp) -> Result<Vec<Revocation>> {
    let Some(was) = change.was.as_ref() else {
        return Ok(Vec::new());
    };
    if !acts(was)? {
        return Ok(Vec::new());
    }
    let how = match &change.is {
        None => DELETED,
        Some(is) if is.has("deleted_at")? => DELETED,
        Some(is) if !acts(is)? => "disabled",
        Some(is) if is_narrower(permission(is)?, permission(was)?) => "narrowed",
        Some(is) if was.has("owner_console_user_id")? && !was.agrees(is, &["owner_console_user_id"])? => {
            NEW_OWNER
        }
        Some(is) if !was.agrees(is, &["name_key"])? => RENAMED,
        Some(_) => return Ok(Vec::new()),
    };
    Ok(vec![Revocation {
        what: ACCOUNT,
        how,
        ids: was.ids(&["id"])?,
    }])
}

fn account_again(ctx: &mut OperationContext<'_>, how: &str, ids: &[String]) -> Result<Again> {
    let [id] = ids else { return Ok(unclear()) };
    let (mut account, mut tokens) = store::get(ctx, &ServiceAccountId::from_store(id.clone()))?;
    if how == NEW_OWNER {
        return by_hand("say again who answers for it");
    }
    if how == RENAMED {
        return by_hand("give it its newer name again");
    }
    let mut done = None;
    if how == DELETED {
        for token in tokens.iter_mut().filter(|token| token.revoked_at.is_none()) {
            store::revoke(ctx, token, &again())?;
            done = Some("its tokens are revoked; delete it by hand");
        }
    }
    if account.status == Status::Active {
        status::disable(ctx, &mut account, &tokens)?;
        done = Some(match how {
            DELETED => "disabled, and its tokens are revoked; delete it by hand",
            "narrowed" => "disabled; narrow it by hand before it is enabled",
            _ => "disabled",
        });
    }
    Ok(done.map_or(Again::Already, Again::Done))
}

fn again() -> TokenEnd<'static> {
    TokenEnd {
        reason: "admin_revoked",
        successor: None,
        by_itself: false,
    }
}

fn token(_: &mut Tx<'_>, change: &RowChange, now: Timestamp) -> Result<Vec<Revocation>> {
    let Some(was) = change.was.as_ref() else {
        return Ok(Vec::new());
    };
    let Some(before) = works_until(was, now)? else {
        return Ok(Vec::new());
    };
    let after = change.is.as_ref().map(|is| works_until(is, now)).transpose()?;
    let how = match after.flatten() {
        None => "revoked",
        Some(until) if until < before => "superseded",
        Some(_) => match &change.is {
            // What a token was narrowed to has no way back but its end.
            Some(is) if is.has("scopes")? && !was.agrees(is, &["scopes"])? => "narrowed",
            _ => return Ok(Vec::new()),
        },
    };
    Ok(vec![Revocation {
        what: TOKEN,
        how,
        ids: was.ids(&["service_account_id", "id"])?,
    }])
}

fn token_again(ctx: &mut OperationContext<'_>, _: &str, ids: &[String]) -> Result<Again> {
    let [account, id] = ids else { return Ok(unclear()) };
    let (_, mut tokens) = store::get(ctx, &ServiceAccountId::from_store(account.clone()))?;
    let Some(token) = tokens.iter_mut().find(|token| token.id.as_str() == id) else {
        return Ok(Again::Gone);
    };
    if token.revoked_at.is_some() {
        return Ok(Again::Already);
    }
    store::revoke(ctx, token, &again())?;
    Ok(Again::Done("revoked"))
}
