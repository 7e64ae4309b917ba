//! What takes away from clients and identity links, and how it is taken away again (EN-3).

use super::{clients, links};
use crate::{mcp_sessions, workload_trusts};
use provost_areas_platform::ends::unclear;
use provost_kernel::area::{Again, RepeatedRevocation, Right};
use provost_kernel::db::Tx;
use provost_kernel::ends::{Revocation, RowChange, Side};
use provost_kernel::{Error, OperationContext, Result, Timestamp, params, statements};

const CLIENT: &str = "client";
const LINK: &str = "identity_link";
const FIRST_LINK: &str = "first_identity_link";

statements! {
    /// Blocks a client that is not.
    BLOCK = "UPDATE oauth_clients SET blocked_at = ?3, updated_at = CASE WHEN updated_at < ?3 THEN ?3 ELSE updated_at + 1 END WHERE organization_id = ?1 AND id = ?2 AND blocked_at IS NULL";
    /// Holds the links of a user that are followed.
    HOLD = "UPDATE oauth_identities SET held_at = ?3 WHERE organization_id = ?1 AND user_id = ?2 AND held_at IS NULL";
    /// Voids every code that was not used: who got it may have lost the right to it.
    VOID = "DELETE FROM oauth_codes WHERE organization_id = ?1 AND used_at IS NULL";
}

/// The tables that decide what somebody may do.
pub const RIGHTS: &[Right] = &[
    Right::lasting(
        "oauth_assertions",
        "what was spent once, and lives for minutes; documented as what a loss costs",
    ),
    Right::ending("oauth_clients", client),
    Right::lasting(
        "oauth_codes",
        "live for a minute; accepting a loss voids every one",
    ),
    Right::lasting(
        "oauth_exchanges",
        "count the exchanges of a token that lives for minutes; documented as what a loss costs",
    ),
    Right::lasting(
        "oauth_former_identities",
        "notes which links ended, whose end is a line of its own",
    ),
    Right::ending("oauth_identities", link),
    Right::lasting(
        "oauth_refresh_tokens",
        "work while their session does, whose end is a line of its own",
    ),
    Right::lasting("oauth_relinkings", "accepting a loss forgets every allowance"),
    Right::lasting(
        "oauth_renamed_users",
        "notes who was renamed, which is a line of the user",
    ),
];

/// The ways back.
pub const RETAKINGS: &[RepeatedRevocation] = &[
    RepeatedRevocation {
        what: CLIENT,
        again: client_again,
    },
    RepeatedRevocation {
        what: LINK,
        again: link_again,
    },
    RepeatedRevocation {
        what: FIRST_LINK,
        again: first_link_again,
    },
];

/// Voids every code that was not used, and every token of a workload that was issued, in the unit that accepts a loss.
pub fn void_codes(ctx: &mut OperationContext<'_>) -> Result<()> {
    let org = ctx.org();
    ctx.queue(&VOID, params![org])?;
    workload_trusts::refuse_issued(ctx)
}

fn one(what: &'static str, how: &'static str, ids: Vec<String>) -> Vec<Revocation> {
    vec![Revocation { what, how, ids }]
}

/// Says whether a list lost a member: a JSON array of texts, or words.
fn lost_a_member(was: &Side, is: &Side, column: &str) -> Result<bool> {
    let members = |side: &Side| -> Result<Vec<String>> {
        let Some(text) = side.text(column)? else {
            return Ok(Vec::new());
        };
        if text.starts_with('[') {
            return serde_json::from_str(text).map_err(Error::internal);
        }
        Ok(text.split_ascii_whitespace().map(str::to_owned).collect())
    };
    let after = members(is)?;
    Ok(members(was)?.iter().any(|member| !after.contains(member)))
}

fn client(_: &mut Tx<'_>, change: &RowChange, _: Timestamp) -> Result<Vec<Revocation>> {
    let Some(was) = change.was.as_ref() else {
        return Ok(Vec::new());
    };
    if was.has("blocked_at")? {
        return Ok(Vec::new());
    }
    let id = was.ids(&["id"])?;
    let Some(is) = &change.is else {
        return Ok(one(CLIENT, "deleted", id));
    };
    if is.has("blocked_at")? {
        return Ok(one(CLIENT, "blocked", id));
    }
    for column in ["redirect_uris", "grant_types", "scopes", "ceiling"] {
        if lost_a_member(was, is, column)? {
            return Ok(one(CLIENT, "narrowed", id));
        }
    }
    for column in ["jwks", "jwks_uri", "service_account_id", "auth_method"] {
        if was.has(column)? && !was.agrees(is, &[column])? {
            return Ok(one(CLIENT, "narrowed", id));
        }
    }
    Ok(Vec::new())
}

fn client_again(ctx: &mut OperationContext<'_>, how: &str, ids: &[String]) -> Result<Again> {
    let [id] = ids else { return Ok(unclear()) };
    clients::exists(ctx, id)?;
    let (org, now) = (ctx.org(), ctx.now());
    if ctx.execute(&BLOCK, params![org, id.as_str(), now])? == 0 {
        return Ok(Again::Already);
    }
    mcp_sessions::end_all_of_client(ctx, id, "client_blocked")?;
    ctx.change("/blockedAt", serde_json::Value::Null, now.to_rfc3339());
    Ok(Again::Done(match how {
        "deleted" => "blocked; delete it by hand",
        "narrowed" => "blocked; narrow it by hand before it is let in",
        _ => "blocked",
    }))
}

fn link(_: &mut Tx<'_>, change: &RowChange, _: Timestamp) -> Result<Vec<Revocation>> {
    let Some(was) = change.was.as_ref() else {
        // Who has a link is given none by a first sign-in.
        return match &change.is {
            Some(is) => Ok(one(FIRST_LINK, "made", is.ids(&["user_id"])?)),
            None => Ok(Vec::new()),
        };
    };
    if was.has("held_at")? {
        return Ok(Vec::new());
    }
    // The link itself is a name at another place: the line says whose it was.
    let id = was.ids(&["user_id"])?;
    let how = match &change.is {
        None => "removed",
        Some(is) if !was.agrees(is, &["user_id"])? => "removed",
        Some(is) if is.has("held_at")? => "held",
        Some(is) if !was.agrees(is, &["maker_roles"])? => "narrowed",
        Some(_) => return Ok(Vec::new()),
    };
    Ok(one(LINK, how, id))
}

fn link_again(ctx: &mut OperationContext<'_>, _: &str, ids: &[String]) -> Result<Again> {
    let [user] = ids else { return Ok(unclear()) };
    let (org, now) = (ctx.org(), ctx.now());
    if ctx.execute(&HOLD, params![org, user.as_str(), now])? == 0 {
        return Ok(Again::Already);
    }
    mcp_sessions::end_all_of_user(ctx, user, "identity_unlinked")?;
    ctx.change("/heldIdentityLinks", serde_json::Value::Null, user.as_str());
    Ok(Again::Done(
        "every link of the user is held; remove it by hand, or let the others go with `provost restore release`",
    ))
}

/// Whose first link was lost may not be linked by whoever signs in first now.
fn first_link_again(ctx: &mut OperationContext<'_>, _: &str, ids: &[String]) -> Result<Again> {
    let [user] = ids else { return Ok(unclear()) };
    if !links::close_first_link(ctx, user)? {
        return Ok(Again::Already);
    }
    ctx.change("/firstSignIn", user.as_str(), serde_json::Value::Null);
    Ok(Again::Done(
        "no first sign-in links the user; link the login by hand",
    ))
}
