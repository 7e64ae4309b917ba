//! The groups that deleted users were in.
//!
//! ```text
//! deleted ── what she was in is noted ── comes back: nobody knows what she is in ── a membership of hers is set ──► the directory's
//!                                        └────────────── 90 days after the deletion ──────────────────────────────► the directory's
//! ```
//!
//! A record that comes back is in no group (DI-9). A guard of a group that it was in must not end with that by itself: until
//! somebody has said in which groups it is, its groups are missing.
//!
//! The rows stand beside the words of deleted records, under a kind of their own: a group for each.
//!
//! Keeps WD-6.

use super::REMEMBERED_SECS;
use crate::directory::store::visible;
use provost_kernel::{OperationContext, Result, params, statements};

statements! {
    /// Notes the groups of a user whose memberships are about to be removed. The last condition always holds: without it SQLite walks
    /// an index of every membership, because that one has every column.
    NOTE = "INSERT INTO ended_words (organization_id, kind, record_id, match_key, word, ended_at) \
        SELECT DISTINCT m.organization_id, 'membership', m.user_id, m.group_id || '', m.group_id || '', \
        CAST(?3 AS BIGINT) \
        FROM directory_memberships m \
        WHERE m.organization_id = ?1 AND m.user_id = ?2 AND m.valid_to > 0 \
        ON CONFLICT (organization_id, kind, record_id, match_key) DO UPDATE \
        SET ended_at = excluded.ended_at";
    /// Keeps for longer what is noted of a user who is deleted again before anybody has set its groups.
    REMEMBER = "UPDATE ended_words SET ended_at = ?3 WHERE organization_id = ?1 AND kind = 'membership' AND record_id = ?2";
    /// The former groups of a user, by their names where they are there.
    FORMER = concat!("SELECT COALESCE(g.name, e.word) FROM ended_words e LEFT JOIN directory_groups g ON g.organization_id = e.organization_id AND g.id = e.word AND ", visible!("g"), " WHERE e.organization_id = ?1 AND e.kind = 'membership' AND e.record_id = ?2 AND e.ended_at > ?3 ORDER BY e.match_key");
    /// Forgets the former groups of a user.
    SETTLE = "DELETE FROM ended_words WHERE organization_id = ?1 AND kind = 'membership' AND record_id = ?2";
    /// Forgets the former groups of those whose groups a file gave.
    SETTLE_NAMED = "DELETE FROM ended_words WHERE organization_id = ?1 AND kind = 'membership' AND record_id IN (SELECT n.name_key FROM directory_import_names n WHERE n.organization_id = ?1 AND n.import_id = ?2 AND n.kind = 'groups of user')";
}

/// The kind under which an import notes the ids of users whose groups its lines gave.
pub const GIVEN: &str = "groups of user";

/// Notes the groups of a user who is deleted, before its memberships go.
pub fn end_memberships(ctx: &mut OperationContext<'_>, user: &str) -> Result<()> {
    let (org, now) = (ctx.org(), ctx.now());
    ctx.queue(&REMEMBER, params![org, user, now])?;
    ctx.queue(&NOTE, params![org, user, now])
}

/// Returns the groups that a user was in when it was deleted and that nobody has set since: by name, else by id.
pub fn former_groups(ctx: &mut OperationContext<'_>, user: &str) -> Result<Vec<String>> {
    let (org, after) = (ctx.org(), ctx.now().plus_secs(-REMEMBERED_SECS));
    ctx.query(&FORMER, params![org, user, after], |row| row.get(0))
}

/// Notes that somebody has said which groups a user is in.
pub fn settle_memberships(ctx: &mut OperationContext<'_>, user: &str) -> Result<()> {
    let org = ctx.org();
    ctx.queue(&SETTLE, params![org, user])
}

/// Notes that an import that is applied has said it, of the users whose groups its lines gave.
pub fn settle_imported(ctx: &mut OperationContext<'_>, import: &str) -> Result<()> {
    let org = ctx.org();
    ctx.queue(&SETTLE_NAMED, params![org, import])
}
