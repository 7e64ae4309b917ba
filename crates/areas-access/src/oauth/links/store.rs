//! All SQL of identity links.

use super::super::foreign::hexadecimal;
use super::super::grants::User;
use super::model::{LinkHistory, LinkView, REMEMBERED_SECS, Reach};
use crate::mcp_sessions;
use crate::oauth::fences;
use provost_areas_identity::directory::model::UserId;
use provost_areas_identity::directory::{HeldLink, RoleGiven, SignInsAsked};
use provost_areas_identity::subjects::SubjectKind;
use provost_areas_identity::visible;
use provost_areas_platform::announcements::{Departure, ImportApplied, LoginNameChanged, PrincipalEnded};
use provost_kernel::context::PRUNED_ROWS;
use provost_kernel::db::Row;
use provost_kernel::{OperationContext, Result, SureTime, Timestamp, params, statements};
use serde_json::{Value, json};

/// What ended sessions show that came by a link which was taken away.
const UNLINKED: &str = "identity_unlinked";
/// What ended sessions show of a user whose link is held.
const HELD: &str = "identity_held";

statements! {
    /// A page of links, the newest first; of an issuer `?2` and a user `?3` alone, if they are named.
    LIST = "SELECT issuer, subject, user_id, created_at, held_at, maker_roles FROM oauth_identities WHERE organization_id = ?1 AND (CAST(?2 AS TEXT) IS NULL OR issuer = CAST(?2 AS TEXT)) AND (CAST(?3 AS TEXT) IS NULL OR user_id = CAST(?3 AS TEXT)) ORDER BY created_at DESC, issuer, subject LIMIT ?4 OFFSET ?5";
    /// How many there are.
    COUNT = "SELECT COUNT(*) FROM oauth_identities WHERE organization_id = ?1 AND (CAST(?2 AS TEXT) IS NULL OR issuer = CAST(?2 AS TEXT)) AND (CAST(?3 AS TEXT) IS NULL OR user_id = CAST(?3 AS TEXT))";
    /// One link.
    GET = "SELECT issuer, subject, user_id, created_at, held_at, maker_roles FROM oauth_identities WHERE organization_id = ?1 AND issuer = ?2 AND subject = ?3";
    /// The links of a user. The order is no prefix of the key: SQLite would walk every link of the organization in it.
    OF_USER = "SELECT issuer, subject, user_id, created_at, held_at, maker_roles FROM oauth_identities WHERE organization_id = ?1 AND user_id = ?2 ORDER BY issuer || '', subject";
    /// Some links of an issuer.
    OF_ISSUER = "SELECT issuer, subject, user_id, created_at, held_at, maker_roles FROM oauth_identities WHERE organization_id = ?1 AND issuer = ?2 ORDER BY subject LIMIT ?3";
    /// Who has a role and is linked to an issuer.
    ROLES_OF_ISSUER = concat!("SELECT DISTINCT u.id, u.login_name, u.permission_role FROM oauth_identities i JOIN directory_users u ON u.organization_id = i.organization_id AND u.id = i.user_id WHERE i.organization_id = ?1 AND i.issuer = ?2 AND u.permission_role IS NOT NULL AND ", visible!("u"), " ORDER BY u.id LIMIT ?3");
    /// How many links an issuer has, so many at most.
    COUNT_OF_ISSUER = "SELECT COUNT(*) FROM (SELECT 1 FROM oauth_identities WHERE organization_id = ?1 AND issuer = ?2 LIMIT ?3) AS counted";
    /// Links a subject to a user.
    LINK = "INSERT INTO oauth_identities (organization_id, issuer, subject, user_id, created_at, maker_roles) VALUES (?1, ?2, ?3, ?4, ?5, ?6) ON CONFLICT (organization_id, issuer, subject) DO UPDATE SET user_id = excluded.user_id, created_at = excluded.created_at, held_at = NULL, maker_roles = excluded.maker_roles";
    /// Notes that the maker of a link could give less.
    NARROW = "UPDATE oauth_identities SET maker_roles = ?4 WHERE organization_id = ?1 AND issuer = ?2 AND subject = ?3";
    /// Holds a link.
    HOLD = "UPDATE oauth_identities SET held_at = ?4 WHERE organization_id = ?1 AND issuer = ?2 AND subject = ?3 AND held_at IS NULL";
    /// Takes a link away.
    UNLINK = "DELETE FROM oauth_identities WHERE organization_id = ?1 AND issuer = ?2 AND subject = ?3";
    /// Remembers that a user had one.
    REMEMBER = "INSERT INTO oauth_former_identities (organization_id, issuer, user_id, subject, ended_at) VALUES (?1, ?2, ?3, ?4, ?5) ON CONFLICT (organization_id, issuer, user_id) DO UPDATE SET subject = excluded.subject, ended_at = excluded.ended_at";
    /// When a user's last link of an issuer ended.
    ENDED_AT = "SELECT ended_at FROM oauth_former_identities WHERE organization_id = ?1 AND issuer = ?2 AND user_id = ?3";
    /// Forgets codes of a user that nobody used.
    VOID_CODES = "DELETE FROM oauth_codes WHERE organization_id = ?1 AND user_id = ?2 AND used_at IS NULL";
    /// Notes that a user's login name was changed.
    RENAME = "INSERT INTO oauth_renamed_users (organization_id, user_id, renamed_at) VALUES (?1, ?2, ?3) ON CONFLICT (organization_id, user_id) DO UPDATE SET renamed_at = excluded.renamed_at";
    /// When that was.
    RENAMED_AT = "SELECT renamed_at FROM oauth_renamed_users WHERE organization_id = ?1 AND user_id = ?2";
    /// Lets a user of an issuer be linked anew; '' is everybody.
    ALLOW = "INSERT INTO oauth_relinkings (organization_id, issuer, user_id, allowed_at, expires_at, maker_roles) VALUES (?1, ?2, ?3, ?4, ?5, ?6) ON CONFLICT (organization_id, issuer, user_id) DO UPDATE SET allowed_at = excluded.allowed_at, expires_at = excluded.expires_at, maker_roles = excluded.maker_roles";
    /// When that was allowed, if it holds still, and what those could give who did, the newest first.
    ALLOWED = "SELECT allowed_at, maker_roles FROM oauth_relinkings WHERE organization_id = ?1 AND issuer = ?2 AND user_id IN (?3, '') AND expires_at > ?4 ORDER BY allowed_at DESC, user_id";
    /// Forgets what was allowed for a user.
    FORGET_ALLOWED = "DELETE FROM oauth_relinkings WHERE organization_id = ?1 AND user_id = ?2";
    /// Notes whom an import renames that is made visible.
    IMPORT_RENAMED = "INSERT INTO oauth_renamed_users (organization_id, user_id, renamed_at) SELECT a.organization_id, a.id, CAST(?3 AS BIGINT) FROM directory_users a JOIN directory_users b ON b.organization_id = a.organization_id AND b.id = a.id AND b.valid_from = ?2 WHERE a.organization_id = ?1 AND a.valid_to = ?2 AND a.name_key <> b.name_key ON CONFLICT (organization_id, user_id) DO UPDATE SET renamed_at = excluded.renamed_at";
    /// Notes of the links of those without a role that whoever renamed them may have been able to give nothing.
    IMPORT_NARROWED = "UPDATE oauth_identities SET maker_roles = '' WHERE organization_id = ?1 AND user_id IN (SELECT a.id FROM directory_users a JOIN directory_users b ON b.organization_id = a.organization_id AND b.id = a.id AND b.valid_from = ?2 WHERE a.organization_id = ?1 AND a.valid_to = ?2 AND a.name_key <> b.name_key AND b.permission_role IS NULL)";
    /// Forgets links that ended long ago.
    PRUNE_FORMER = unscoped("retention is the same for every organization") "DELETE FROM oauth_former_identities WHERE (organization_id, issuer, user_id) IN (SELECT f.organization_id, f.issuer, f.user_id FROM oauth_former_identities f WHERE f.ended_at < ?1 ORDER BY f.ended_at, f.organization_id, f.issuer, f.user_id LIMIT ?2)";
    /// Forgets names that were changed long ago.
    PRUNE_RENAMED = unscoped("retention is the same for every organization") "DELETE FROM oauth_renamed_users WHERE (organization_id, user_id) IN (SELECT r.organization_id, r.user_id FROM oauth_renamed_users r WHERE r.renamed_at < ?1 ORDER BY r.renamed_at, r.organization_id, r.user_id LIMIT ?2)";
    /// Forgets what was allowed and has run out.
    PRUNE_ALLOWED = unscoped("retention is the same for every organization") "DELETE FROM oauth_relinkings WHERE (organization_id, issuer, user_id) IN (SELECT r.organization_id, r.issuer, r.user_id FROM oauth_relinkings r WHERE r.expires_at < ?1 ORDER BY r.expires_at, r.organization_id, r.issuer, r.user_id LIMIT ?2)";
}

fn read(row: &Row<'_>) -> Result<LinkView> {
    Ok(LinkView {
        issuer: row.get(0)?,
        subject: row.get(1)?,
        user_id: UserId::from_store(row.get(2)?),
        created_at: row.get(3)?,
        held_at: row.get(4)?,
        reach: Reach::from_store(row.get::<Option<String>>(5)?.as_deref())?,
    })
}

/// Returns a page of links, the newest first, and how many there are.
pub fn list(
    ctx: &mut OperationContext<'_>,
    (issuer, user): (Option<&str>, Option<&str>),
    (limit, offset): (i64, i64),
) -> Result<(Vec<LinkView>, i64)> {
    let org = ctx.org();
    let found = ctx.query(&LIST, params![org, issuer, user, limit, offset], read)?;
    let total = ctx.query_opt(&COUNT, params![org, issuer, user], |row| row.get(0))?;
    Ok((found, total.unwrap_or(0)))
}

/// Returns the link of a subject.
pub fn get(ctx: &mut OperationContext<'_>, issuer: &str, subject: &str) -> Result<Option<LinkView>> {
    let org = ctx.org();
    ctx.query_opt(&GET, params![org, issuer, subject], read)
}

/// Returns up to `limit` links of an issuer.
pub fn of_issuer(ctx: &mut OperationContext<'_>, issuer: &str, limit: i64) -> Result<Vec<LinkView>> {
    let org = ctx.org();
    ctx.query(&OF_ISSUER, params![org, issuer, limit], read)
}

/// Returns up to `limit` users who have a role and are linked to an issuer, with their login names and roles.
pub fn roles_of_issuer(ctx: &mut OperationContext<'_>, issuer: &str, limit: i64) -> Result<Vec<Value>> {
    let org = ctx.org();
    ctx.query(&ROLES_OF_ISSUER, params![org, issuer, limit], |row| {
        Ok(json!({
            "id": row.get::<String>(0)?, "loginName": row.get::<String>(1)?, "permissionRole": row.get::<String>(2)?,
        }))
    })
}

/// Returns how many links an issuer has, or `limit` where it has more.
pub fn count_of_issuer(ctx: &mut OperationContext<'_>, issuer: &str, limit: i64) -> Result<i64> {
    let org = ctx.org();
    let count = ctx.query_opt(&COUNT_OF_ISSUER, params![org, issuer, limit], |row| row.get(0))?;
    Ok(count.unwrap_or(0))
}

fn of_user(ctx: &mut OperationContext<'_>, user_id: &str) -> Result<Vec<LinkView>> {
    let org = ctx.org();
    ctx.query(&OF_USER, params![org, user_id], read)
}

/// Returns the links that a user has of an issuer.
pub fn of_both(ctx: &mut OperationContext<'_>, issuer: &str, user_id: &str) -> Result<Vec<LinkView>> {
    let mut all = of_user(ctx, user_id)?;
    all.retain(|link| link.issuer == issuer);
    Ok(all)
}

/// Says whether a user is linked to the subject of a digest ([`hexadecimal`] of issuer and subject), by a link that is
/// followed.
pub fn is_linked(ctx: &mut OperationContext<'_>, digest: &str, user: &User) -> Result<bool> {
    let all = of_user(ctx, &user.id)?;
    Ok(all
        .iter()
        .any(|link| link.is_followed(user.role) && hexadecimal(&[&link.issuer, &link.subject]) == digest))
}

/// Returns what a link reaches that a user gets of an issuer without an admin (IL-1); nothing where it gets none.
///
/// INVARIANT RH-1: while a link of the user is held, of whatever issuer, it gets none.
pub fn link_of_itself(ctx: &mut OperationContext<'_>, issuer: &str, user: &User) -> Result<Option<Reach>> {
    let (org, now, user_id) = (ctx.org(), ctx.now(), user.id.as_str());
    let mut links = of_user(ctx, user_id)?;
    if links.iter().any(|link| !link.is_followed(user.role)) {
        return Ok(None);
    }
    links.retain(|link| link.issuer == issuer);
    let at = |row: &Row<'_>| row.get::<Timestamp>(0);
    let allowed = ctx.query(&ALLOWED, params![org, issuer, user_id, ctx.latest()], |row| {
        let reach = Reach::from_store(row.get::<Option<String>>(1)?.as_deref())?;
        Ok((row.get::<Timestamp>(0)?, reach))
    })?;
    // INVARIANT IL-5: what somebody allowed who could not give the user's role serves for nobody who has it.
    let allowed = allowed.into_iter().find(|(_, reach)| reach.covers(user.role));
    let past = LinkHistory {
        linked_at: links.iter().map(|link| link.created_at).max(),
        ended_at: ctx.query_opt(&ENDED_AT, params![org, issuer, user_id], at)?,
        renamed_at: ctx.query_opt(&RENAMED_AT, params![org, user_id], at)?,
        allowed_at: allowed.as_ref().map(|(at, _)| *at),
    };
    if !past.may_link_itself(now) {
        return Ok(None);
    }
    let by_word = past.newest(now).is_none();
    Ok(Some(match allowed {
        Some((_, reach)) if !by_word => reach,
        _ => Reach::Whole,
    }))
}

/// Links a subject to a user, in place of the one that the user has of the issuer. `reach` is what its maker could give.
pub fn link(
    ctx: &mut OperationContext<'_>,
    issuer: &str,
    subject: &str,
    user_id: &str,
    reach: &Reach,
) -> Result<()> {
    for link in of_both(ctx, issuer, user_id)? {
        if link.subject != subject {
            unlink(ctx, &link)?;
        }
    }
    let (org, now) = (ctx.org(), ctx.now());
    let words = reach.words();
    ctx.queue(
        &LINK,
        params![org, issuer, subject, user_id, now, words.as_deref()],
    )?;
    ctx.change(
        "/identityLink",
        Value::Null,
        json!({ "issuer": issuer, "subject": subject, "userId": user_id }),
    );
    ctx.emit(&fences::LINKED, &of_link(user_id, issuer));
    Ok(())
}

/// Ends what was allowed for a user who gets a role, or acts in one again, and holds the links whose makers could not give it:
/// whoever planted one waits for the role in vain (IL-5). Returns the links that are held by it.
pub fn role_given(ctx: &mut OperationContext<'_>, given: &RoleGiven) -> Result<Vec<HeldLink>> {
    let (user_id, role) = (given.user_id.as_str(), given.role);
    let (org, now) = (ctx.org(), ctx.now());
    ctx.queue(&FORGET_ALLOWED, params![org, user_id])?;
    let mut held = of_user(ctx, user_id)?;
    held.retain(|link| link.held_at.is_none() && !link.reach.covers(Some(role)));
    if held.is_empty() {
        return Ok(Vec::new());
    }
    for link in &held {
        let (issuer, subject) = (link.issuer.as_str(), link.subject.as_str());
        ctx.queue(&HOLD, params![org, issuer, subject, now])?;
        ctx.emit(&fences::HELD, &of_link(user_id, issuer));
    }
    // Which sessions came by them is not known: all end, as where a link is taken away (IL-2).
    ctx.queue(&VOID_CODES, params![org, user_id])?;
    mcp_sessions::end_all_of_user(ctx, user_id, HELD)?;
    let named = held
        .iter()
        .map(|link| json!({ "issuer": link.issuer, "subject": link.subject, "userId": user_id }));
    ctx.change("/heldIdentityLinks", Value::Null, named.collect::<Vec<Value>>());
    Ok(held.into_iter().map(HeldLink::from).collect())
}

/// Returns by which subjects somebody signs in as a user.
pub fn sign_ins(ctx: &mut OperationContext<'_>, asked: &SignInsAsked) -> Result<Vec<Value>> {
    let links = of_user(ctx, &asked.user_id)?;
    let shown = |link: LinkView| json!({ "issuer": link.issuer, "subject": link.subject, "createdAt": link.created_at, "heldAt": link.held_at });
    Ok(links.into_iter().map(shown).collect())
}

/// Takes a link away, and ends what came by it (IL-2). Which of its user's sessions came by it is not known: all end.
pub fn unlink(ctx: &mut OperationContext<'_>, link: &LinkView) -> Result<()> {
    let (org, now, user) = (ctx.org(), ctx.now(), link.user_id.as_str());
    let (issuer, subject) = (link.issuer.as_str(), link.subject.as_str());
    ctx.queue(&UNLINK, params![org, issuer, subject])?;
    ctx.queue(&REMEMBER, params![org, issuer, user, subject, now])?;
    ctx.queue(&VOID_CODES, params![org, user])?;
    mcp_sessions::end_all_of_user(ctx, user, UNLINKED)?;
    ctx.emit(&fences::UNLINKED, &of_link(user, issuer));
    Ok(())
}

fn of_link(user_id: &str, issuer: &str) -> fences::OfLink {
    fences::OfLink {
        user_id: user_id.to_owned(),
        issuer: issuer.to_owned(),
    }
}

/// Lets a user be linked anew to a subject of an issuer until an instant; '' is everybody. The link will reach what the
/// caller can give.
pub fn allow(ctx: &mut OperationContext<'_>, issuer: &str, user_id: &str, until: Timestamp) -> Result<()> {
    let (org, now, words) = (ctx.org(), ctx.now(), Reach::of(ctx.actor().permission).words());
    ctx.queue(
        &ALLOW,
        params![org, issuer, user_id, now, until, words.as_deref()],
    )
}

/// Ends the links of a user that is deleted (IL-3).
pub fn principal_ended(ctx: &mut OperationContext<'_>, ended: &PrincipalEnded) -> Result<()> {
    if ended.kind != SubjectKind::User || ended.how != Departure::Deleted {
        return Ok(());
    }
    let (org, user_id) = (ctx.org(), ended.id.as_str());
    for link in of_user(ctx, user_id)? {
        unlink(ctx, &link)?;
        ctx.change(
            "/identityLink",
            json!({ "issuer": link.issuer, "subject": link.subject, "userId": link.user_id }),
            Value::Null,
        );
    }
    ctx.queue(&FORGET_ALLOWED, params![org, user_id])
}

/// Notes that a user's login name is another one: who comes under it may be somebody new (IL-1), and whoever is linked may have
/// been somebody else: the links reach no more than who renamed the user can give (IL-5).
pub fn login_name_changed(ctx: &mut OperationContext<'_>, change: &LoginNameChanged) -> Result<()> {
    let user_id = change.user_id.as_str();
    let (org, now, renamer) = (ctx.org(), ctx.now(), Reach::of(ctx.actor().permission));
    ctx.queue(&RENAME, params![org, user_id, now])?;
    for link in of_user(ctx, user_id)? {
        let reach = link.reach.and(&renamer);
        if reach != link.reach {
            let (issuer, subject) = (link.issuer.as_str(), link.subject.as_str());
            ctx.queue(&NARROW, params![org, issuer, subject, reach.words().as_deref()])?;
        }
    }
    Ok(())
}

/// Lets nobody be linked to a user by a first sign-in any more, as after a rename (IL-1); says whether somebody could be until now.
pub fn close_first_link(ctx: &mut OperationContext<'_>, user_id: &str) -> Result<bool> {
    let (org, now) = (ctx.org(), ctx.now());
    if ctx
        .query_opt(&RENAMED_AT, params![org, user_id], |_| Ok(()))?
        .is_some()
    {
        return Ok(false);
    }
    ctx.queue(&RENAME, params![org, user_id, now])?;
    Ok(true)
}

/// Notes the same of everybody whom an import renames that is made visible now. Its lines were judged for those who had a role;
/// for the others it counts as made by somebody who could give nothing.
pub fn import_applied(ctx: &mut OperationContext<'_>, applied: &ImportApplied) -> Result<()> {
    let (org, now, generation) = (ctx.org(), ctx.now(), applied.generation);
    ctx.queue(&IMPORT_RENAMED, params![org, generation, now])?;
    ctx.queue(&IMPORT_NARROWED, params![org, generation])
}

/// Forgets what is remembered no longer.
pub fn tidy(ctx: &mut OperationContext<'_>, now: SureTime) -> Result<()> {
    let (before, now) = (now.earlier_by(REMEMBERED_SECS).instant(), now.instant());
    ctx.prune(&PRUNE_FORMER, params![before, PRUNED_ROWS])?;
    ctx.prune(&PRUNE_RENAMED, params![before, PRUNED_ROWS])?;
    ctx.prune(&PRUNE_ALLOWED, params![now, PRUNED_ROWS])
}
