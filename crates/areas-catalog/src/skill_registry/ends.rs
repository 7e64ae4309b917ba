//! What takes away from skills and gateway tokens, and how it is taken away again (EN-3).

use super::model::SkillItemId;
use super::{install_store, store};
use provost_areas_identity::subjects::SubjectKind;
use provost_areas_platform::announcements::{Departure, PrincipalEnded, SessionsEnded, TokenRevoked};
use provost_areas_platform::ends::{unclear, works_until};
use provost_kernel::area::{Again, RepeatedRevocation, Right};
use provost_kernel::db::Tx;
use provost_kernel::ends::{Revocation, RowChange};
use provost_kernel::{OperationContext, Result, Timestamp, params, statements};

const TOKEN: &str = "gateway_token";
const SKILL: &str = "skill";
const VERSION: &str = "skill_version";

statements! {
    /// Revokes a token that works.
    REVOKE = "UPDATE gateway_tokens SET revoked_at = ?3, updated_at = ?3, revoke_reason = ?4, replay_pending = ?5 WHERE organization_id = ?1 AND id = ?2 AND revoked_at IS NULL";
    /// Whether a version is offered.
    OFFERED = "SELECT 1 FROM skill_versions WHERE organization_id = ?1 AND item_id = ?2 AND version = ?3 AND withdrawn_at IS NULL";
}

/// Ends the gateway tokens of a user or an account that acts no more. What ended for a person stays ended when she comes back;
/// an account that is disabled keeps its tokens, which do not work meanwhile, and what could be replayed of them goes (D4.8).
pub fn principal_ended(ctx: &mut OperationContext<'_>, ended: &PrincipalEnded) -> Result<()> {
    let id = ended.id.as_str();
    match (ended.kind, ended.how) {
        (SubjectKind::Group, _) => Ok(()),
        (_, Departure::Deleted) => install_store::revoke_of_principal(ctx, id, "principal_deleted").map(drop),
        (SubjectKind::User, Departure::Stopped) => {
            install_store::revoke_of_principal(ctx, id, "user_suspended").map(drop)
        }
        (SubjectKind::ServiceAccount, Departure::Stopped) => install_store::erase_replays(ctx, id),
    }
}

// INVARIANT SK-8
/// Revokes the gateway tokens that came by a token of an account which is revoked. A rotation replaces the token of somebody
/// who goes on; every other end takes with it what was made by the token.
pub fn token_revoked(ctx: &mut OperationContext<'_>, revoked: &TokenRevoked) -> Result<()> {
    if revoked.reason == "rotated" {
        return Ok(());
    }
    install_store::revoke_of_origin(ctx, &revoked.id, &revoked.reason).map(drop)
}

// INVARIANT SK-8
/// Revokes the gateway tokens that came by sessions which ended.
pub fn sessions_ended(ctx: &mut OperationContext<'_>, ended: &SessionsEnded) -> Result<()> {
    install_store::revoke_of_ended(ctx, ended.at, &ended.reason).map(drop)
}

/// The tables that decide what somebody may do.
pub const RIGHTS: &[Right] = &[
    Right::ending("gateway_tokens", token).loose(&["last_used_at", "last_used_ip"]),
    Right::lasting(
        "skill_installs",
        "what somebody has installed; its token's end is a line of its own",
    ),
    Right::ending("skill_items", item),
    Right::ending("skill_versions", version),
    Right::lasting("skill_words", "what a skill is called; rows only come"),
];

/// The ways back.
pub const RETAKINGS: &[RepeatedRevocation] = &[
    RepeatedRevocation {
        what: TOKEN,
        again: token_again,
    },
    RepeatedRevocation {
        what: SKILL,
        again: item_again,
    },
    RepeatedRevocation {
        what: VERSION,
        again: version_again,
    },
];

fn token(_: &mut Tx<'_>, change: &RowChange, now: Timestamp) -> Result<Vec<Revocation>> {
    let Some(was) = change.was.as_ref() else {
        return Ok(Vec::new());
    };
    let Some(before) = works_until(was, now)? else {
        return Ok(Vec::new());
    };
    let after = change.is.as_ref().map(|is| works_until(is, now)).transpose()?;
    if after.flatten().is_some_and(|until| until >= before) {
        return Ok(Vec::new());
    }
    Ok(vec![Revocation {
        what: TOKEN,
        how: "revoked",
        ids: was.ids(&["id"])?,
    }])
}

fn token_again(ctx: &mut OperationContext<'_>, _: &str, ids: &[String]) -> Result<Again> {
    let [id] = ids else { return Ok(unclear()) };
    let (org, now) = (ctx.org(), ctx.now());
    if ctx.execute(&REVOKE, params![org, id.as_str(), now, "admin_revoked", false])? == 0 {
        return Ok(Again::Already);
    }
    ctx.erase_replay(id)?;
    Ok(Again::Done("revoked"))
}

fn withdrawn(what: &'static str, columns: &[&str], change: &RowChange) -> Result<Vec<Revocation>> {
    let Some(was) = change.was.as_ref() else {
        return Ok(Vec::new());
    };
    let is_offered = match &change.is {
        None => false,
        Some(is) => !is.has("withdrawn_at")?,
    };
    if was.has("withdrawn_at")? || is_offered {
        return Ok(Vec::new());
    }
    Ok(vec![Revocation {
        what,
        how: "withdrawn",
        ids: was.ids(columns)?,
    }])
}

fn item(_: &mut Tx<'_>, change: &RowChange, _: Timestamp) -> Result<Vec<Revocation>> {
    withdrawn(SKILL, &["id"], change)
}

fn version(_: &mut Tx<'_>, change: &RowChange, _: Timestamp) -> Result<Vec<Revocation>> {
    withdrawn(VERSION, &["item_id", "version"], change)
}

fn item_again(ctx: &mut OperationContext<'_>, _: &str, ids: &[String]) -> Result<Again> {
    let [id] = ids else { return Ok(unclear()) };
    let Some(mut item) = store::item_by_id(ctx, &SkillItemId::from_store(id.clone()))? else {
        return Ok(Again::Gone);
    };
    if item.withdrawn_at.is_some() {
        return Ok(Again::Already);
    }
    let at = item.changed_at(ctx.now());
    item.withdrawn_at = Some(at);
    item.updated_at = at;
    store::save_item(ctx, &item)?;
    ctx.change("/withdrawnAt", serde_json::Value::Null, at.to_rfc3339());
    Ok(Again::Done("withdrawn"))
}

fn version_again(ctx: &mut OperationContext<'_>, _: &str, ids: &[String]) -> Result<Again> {
    let [id, version] = ids else { return Ok(unclear()) };
    let item = SkillItemId::from_store(id.clone());
    let (org, now) = (ctx.org(), ctx.now());
    let offered = params![org, id.as_str(), version.as_str()];
    if ctx.query_opt(&OFFERED, offered, |_| Ok(()))?.is_none() {
        return Ok(Again::Already);
    }
    store::withdraw_version(ctx, &item, version, now)?;
    if let Some(mut item) = store::item_by_id(ctx, &item)? {
        let known = store::known(ctx, &item.id)?;
        item.latest_version = super::model::latest(&known).map(|known| known.version.to_string());
        item.updated_at = item.changed_at(now);
        store::save_item(ctx, &item)?;
    }
    ctx.change("/versions/withdrawn", serde_json::Value::Null, version.as_str());
    Ok(Again::Done("withdrawn"))
}
