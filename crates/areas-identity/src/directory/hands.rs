//! By whose hands somebody is who they are, where no entry of the log has the user as its target: what changes many at once.
//!
//! INVARIANT DI-17: of each user whom settling held changes, an import, leave to be linked anew, the end of a link, a membership or a
//! release reaches, it can be said whose hands that were: for forty days of what was done by name, and of an import as long as it
//! is known or has been followed by another one that had to do with somebody who has a role.

use super::imports::model::Import;
use super::model::UserId;
use crate::visible;
use provost_areas_platform::audit;
use provost_kernel::context::PRUNED_ROWS;
use provost_kernel::db::Tx;
use provost_kernel::error::{Code, Error};
use provost_kernel::{OperationContext, Result, SureTime, Timestamp, params, statements};

/// How long hands are known. Units: seconds (40 days). Ours: longer than anything waits that asks for them.
const KEPT_SECS: i64 = 40 * 86_400;
/// LIMIT: hands on one user; beyond it nobody can say whose they are.
const MOST: usize = 256;
/// LIMIT: hands of one import that are noted by name. Ours: each is two statements of the unit that makes it visible.
const MOST_OF_IMPORT: usize = 8;
/// What begins the id of an import.
const IMPORT: &str = "imp_";
/// Everybody, in the store.
const EVERYBODY: &str = "";
statements! {
    /// Notes a hand on a user.
    NOTE = "INSERT INTO directory_hands (organization_id, user_id, hand, done_at) VALUES (?1, ?2, ?3, ?4) ON CONFLICT (organization_id, user_id, hand) DO UPDATE SET done_at = excluded.done_at";
    /// Notes that an import that is made visible has to do with users who have a role. Those are few, whatever the import brings.
    NOTE_IMPORT = "INSERT INTO directory_hands (organization_id, user_id, hand, done_at) SELECT u.organization_id, u.id, CAST(?3 AS TEXT), CAST(?4 AS BIGINT) FROM directory_users u WHERE u.organization_id = ?1 AND u.valid_from + 0 = ?2 AND u.permission_role IS NOT NULL ON CONFLICT (organization_id, user_id, hand) DO UPDATE SET done_at = excluded.done_at";
    /// The same of memberships.
    NOTE_MEMBERS = "INSERT INTO directory_hands (organization_id, user_id, hand, done_at) SELECT DISTINCT m.organization_id, m.user_id, CAST(?3 AS TEXT), CAST(?4 AS BIGINT) FROM directory_users u CROSS JOIN directory_memberships m WHERE u.organization_id = ?1 AND u.permission_role IS NOT NULL AND u.valid_to > ?2 AND m.organization_id = u.organization_id AND m.user_id = u.id AND m.valid_from + 0 = ?2 ON CONFLICT (organization_id, user_id, hand) DO UPDATE SET done_at = excluded.done_at";
    /// The hands on a user since an instant, or on everybody, the latest first, and one more than may be.
    SINCE = "SELECT hand FROM directory_hands WHERE organization_id = ?1 AND user_id IN (?2, '') AND done_at >= ?3 ORDER BY done_at DESC, user_id, hand LIMIT 257";
    /// The import that made the version of a user that is seen, if it was made visible since an instant.
    IMPORT_OF = concat!("SELECT i.id FROM directory_users u JOIN directory_imports i ON i.organization_id = u.organization_id AND i.generation = u.valid_from WHERE u.organization_id = ?1 AND u.id = ?2 AND u.valid_from > 0 AND ", visible!("u"), " AND i.finished_at >= ?3 AND u.created_at <= i.finished_at ORDER BY i.id || '' LIMIT 1");
    /// Forgets what was done long ago.
    FORGET = unscoped("retention is the same for every organization") "DELETE FROM directory_hands WHERE (organization_id, user_id, hand) IN (SELECT h.organization_id, h.user_id, h.hand FROM directory_hands h WHERE h.done_at < ?1 ORDER BY h.done_at, h.organization_id, h.user_id, h.hand LIMIT ?2)";
}

/// Notes that a user is who they are by the hands of the caller.
///
/// Keeps DI-17.
pub fn note_hand(ctx: &mut OperationContext<'_>, user: &str) -> Result<()> {
    let (org, now, hand) = (ctx.org(), ctx.latest(), ctx.actor().id.as_str());
    ctx.queue(&NOTE, params![org, user, hand, now])
}

/// Notes that everybody may be who they are by the hands of the caller.
///
/// Keeps DI-17.
pub fn note_hand_on_everybody(ctx: &mut OperationContext<'_>) -> Result<()> {
    note_hand(ctx, EVERYBODY)
}

/// Notes whom an import has to do with that is made visible, of those who have a role: by the hands of everybody who opened it, sent it or
/// applied it. An import that comes every hour by the same hand is one hand. Where those who had a hand in it are many, the import stands
/// for them.
///
/// Keeps DI-17.
pub(super) fn note_import(ctx: &mut OperationContext<'_>, import: &Import) -> Result<()> {
    let (org, now) = (ctx.org(), ctx.latest());
    for hand in hands_of(ctx, import)? {
        for statement in [&NOTE_IMPORT, &NOTE_MEMBERS] {
            ctx.queue(statement, params![org, import.generation, hand.as_str(), now])?;
        }
    }
    Ok(())
}

/// Returns who had a hand in an import, or the import itself, where nobody or more than a few had one.
fn hands_of(ctx: &mut OperationContext<'_>, import: &Import) -> Result<Vec<String>> {
    let (org, id) = (ctx.org(), import.id.as_str());
    let mut hands = match audit::hands_on(&mut ctx.tx(), org, id) {
        Ok(hands) => hands,
        // Whoever asks for these hands is told that they are too many: the import is made visible all the same.
        Err(error) if error.code() == Code::Unavailable => return Ok(vec![id.to_owned()]),
        Err(error) => return Err(error),
    };
    // The entry of who applies it now is written behind this.
    hands.push(ctx.actor().id.clone());
    hands.sort_unstable();
    hands.dedup();
    if hands.len() > MOST_OF_IMPORT {
        return Ok(vec![id.to_owned()]);
    }
    Ok(hands)
}

/// Returns the ids of who had a hand in what a user is, since an instant, where the log does not say it of the user.
///
/// Keeps DI-17.
///
/// Errors: `Unavailable` when they are too many to say it.
/// Cost: two statements, and one for each import.
pub fn hands_since(
    tx: &mut Tx<'_>,
    organization: &str,
    user: &UserId,
    since: Timestamp,
) -> Result<Vec<String>> {
    let user = user.as_str();
    let noted = tx.query(&SINCE, params![organization, user, since], |row| {
        row.get::<String>(0)
    })?;
    if noted.len() > MOST {
        return Err(Error::unavailable(
            "too many have changed one user for the server to say who stands behind them",
        ));
    }
    let import = tx.query_opt(&IMPORT_OF, params![organization, user, since], |row| {
        row.get::<String>(0)
    })?;
    let (mut imports, mut hands): (Vec<String>, Vec<String>) =
        noted.into_iter().partition(|hand| hand.starts_with(IMPORT));
    imports.extend(import);
    for import in imports {
        hands.append(&mut audit::hands_on(tx, organization, &import)?);
    }
    hands.sort_unstable();
    hands.dedup();
    Ok(hands)
}

/// Forgets the hands that nothing asks for any more, of every organization.
pub(super) fn forget(ctx: &mut OperationContext<'_>, now: SureTime) -> Result<()> {
    ctx.prune(&FORGET, params![now.earlier_by(KEPT_SECS).instant(), PRUNED_ROWS])
}
