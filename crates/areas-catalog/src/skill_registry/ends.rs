//! What takes away from skills and gateway tokens, and how it is taken away again (EN-3).

use super::model::SkillItemId;
use super::{install_store, store};
use provost_areas_identity::subjects::SubjectKind;
use provost_areas_platform::announcements::{Departure, PrincipalEnded, SessionsEnded, TokenRevoked};
use provost_areas_platform::ends::{unclear, works_until};
use provost_kernel::area::{Again, Retaking, Right};
use provost_kernel::db::Tx;
use provost_kernel::ends::{Revocation, RowChange};
use provost_kernel::{Cx, Result, Timestamp, params, statements};

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
pub fn principal_ended(cx: &mut Cx<'_>, ended: &PrincipalEnded) -> Result<()> {
    let id = ended.id.as_str();
    match (ended.kind, ended.how) {
        (SubjectKind::Group, _) => Ok(()),
        (_, Departure::Deleted) => install_store::revoke_of_principal(cx, id, "principal_deleted").map(drop),
        (SubjectKind::User, Departure::Stopped) => {
            install_store::revoke_of_principal(cx, id, "user_suspended").map(drop)
        }
        (SubjectKind::ServiceAccount, Departure::Stopped) => install_store::erase_replays(cx, id),
    }
}

// INVARIANT SK-8
/// Revokes the gateway tokens that came by a token of an account which is revoked. A rotation replaces the token of somebody
/// who goes on; every other end takes with it what was made by the token.
pub fn token_revoked(cx: &mut Cx<'_>, revoked: &TokenRevoked) -> Result<()> {
    if revoked.reason == "rotated" {
        return Ok(());
    }
    install_store::revoke_of_origin(cx, &revoked.id, &revoked.reason).map(drop)
}

// INVARIANT SK-8
/// Revokes the gateway tokens that came by sessions which ended.
pub fn sessions_ended(cx: &mut Cx<'_>, ended: &SessionsEnded) -> Result<()> {
    install_store::revoke_of_ended(cx, ended.at, &ended.reason).map(drop)
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
];

/// The ways back.
pub const RETAKINGS: &[Retaking] = &[
    Retaking {
        what: TOKEN,
        again: token_again,
    },
    Retaking {
        what: SKILL,
        again: item_again,
    },
    Retaking {
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

fn token_again(cx: &mut Cx<'_>, _: &str, ids: &[String]) -> Result<Again> {
    let [id] = ids else { return Ok(unclear()) };
    let (org, now) = (cx.org(), cx.now());
    if cx.execute(&REVOKE, params![org, id.as_str(), now, "admin_revoked", false])? == 0 {
        return Ok(Again::Already);
    }
    cx.erase_replay(id)?;
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

fn item_again(cx: &mut Cx<'_>, _: &str, ids: &[String]) -> Result<Again> {
    let [id] = ids else { return Ok(unclear()) };
    let Some(mut item) = store::item_by_id(cx, &SkillItemId::from_store(id.clone()))? else {
        return Ok(Again::Gone);
    };
    if item.withdrawn_at.is_some() {
        return Ok(Again::Already);
    }
    let at = item.changed_at(cx.now());
    item.withdrawn_at = Some(at);
    item.updated_at = at;
    store::save_item(cx, &item)?;
    cx.change("/withdrawnAt", serde_json::Value::Null, at.to_rfc3339());
    Ok(Again::Done("withdrawn"))
}

fn version_again(cx: &mut Cx<'_>, _: &str, ids: &[String]) -> Result<Again> {
    let [id, version] = ids else { return Ok(unclear()) };
    let item = SkillItemId::from_store(id.clone());
    let (org, now) = (cx.org(), cx.now());
    let offered = params![org, id.as_str(), version.as_str()];
    if cx.query_opt(&OFFERED, offered, |_| Ok(()))?.is_none() {
        return Ok(Again::Already);
    }
    store::withdraw_version(cx, &item, version, now)?;
    if let Some(mut item) = store::item_by_id(cx, &item)? {
        let known = store::known(cx, &item.id)?;
        item.latest_version = super::model::latest(&known).map(|known| known.version.to_string());
        item.updated_at = item.changed_at(now);
        store::save_item(cx, &item)?;
    }
    cx.change("/versions/withdrawn", serde_json::Value::Null, version.as_str());
    Ok(Again::Done("withdrawn"))
}
