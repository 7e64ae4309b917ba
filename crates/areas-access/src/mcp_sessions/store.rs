//! The rows of sessions: reading, opening, ending. Lists are in `find.rs`.

use super::model::{
    ABSOLUTE_SECS, IDLE_PRECISION_SECS, IDLE_SECS, KEPT_SECS, LASTING_GRANT, NewSession, RevocationWatermark,
    Session, SessionActor, SessionEnd, SessionId, State, Subject,
};
use provost_kernel::auth::ScopeSet;
use provost_kernel::credential::Use;
use provost_kernel::db::{Row, Tx};
use provost_kernel::error::Error;
use provost_kernel::text::name_key;
use provost_kernel::{OperationContext, Result, SureTime, Timestamp, params, statements};
use std::collections::BTreeSet;

/// The columns of a session and its kind, in the order that [`read`] expects.
macro_rules! columns {
    () => {
        "s.id, s.seq, s.organization_id, k.actor_type, (SELECT a.display FROM mcp_session_actors a WHERE a.organization_id = s.organization_id AND a.actor = s.actor), s.mcp_client_id, s.service_account_id, s.console_user_id, k.scopes, s.issued_at, s.last_used_at, s.expires_at, s.state, s.ended_at, s.revoke_reason"
    };
}
pub(super) use columns;

/// A session with its kind.
macro_rules! sessions {
    () => {
        " FROM mcp_sessions s JOIN mcp_session_kinds k ON k.organization_id = s.organization_id AND k.kind = s.kind "
    };
}
pub(super) use sessions;

/// Ends up to `?6` sessions that one condition names, active ones up to the seq `?3`, oldest first.
macro_rules! end {
    ($subject:literal) => {
        concat!(
            "UPDATE mcp_sessions SET state = 1, ended_at = ?4, revoke_reason = ?5 WHERE seq IN (SELECT seq FROM mcp_sessions WHERE organization_id = ?1 AND ",
            $subject,
            " = ?2 AND state = 0 AND seq <= ?3 AND expires_at > ?4 ORDER BY seq LIMIT ?6) RETURNING id"
        )
    };
}

statements! {
    /// One session.
    GET = concat!("SELECT ", columns!(), sessions!(), "WHERE s.organization_id = ?1 AND s.id = ?2");
    /// The session of a grant.
    BY_GRANT = unscoped("a grant's key is unique everywhere; the caller compares the organization") "SELECT organization_id, id FROM mcp_sessions WHERE grant_key = ?1";
    /// The session of a grant, in its organization.
    GRANTED = concat!("SELECT ", columns!(), sessions!(), "WHERE s.organization_id = ?1 AND s.grant_key = ?2");
    /// The kind of an actor type and scopes.
    KIND = "SELECT kind FROM mcp_session_kinds WHERE organization_id = ?1 AND actor_type = ?2 AND scopes = ?3";
    /// Adds a kind behind the others.
    ADD_KIND = "INSERT INTO mcp_session_kinds (organization_id, kind, actor_type, scopes) VALUES (?1, COALESCE((SELECT MAX(kind) FROM mcp_session_kinds WHERE organization_id = ?1), 0) + 1, ?2, ?3) RETURNING kind";
    /// The number of an actor.
    ACTOR = "SELECT actor FROM mcp_session_actors WHERE organization_id = ?1 AND display = ?2 AND service_account_id = ?3 AND console_user_id = ?4 ORDER BY actor || '' LIMIT 1";
    /// Gives an actor another name.
    RENAME_ACTOR = "UPDATE mcp_session_actors SET display = ?5, search = ?6 WHERE organization_id = ?1 AND service_account_id = ?2 AND console_user_id = ?3 AND display = ?4";
    /// Notes an actor, unless its number is taken.
    ADD_ACTOR = "INSERT INTO mcp_session_actors (organization_id, actor, display, service_account_id, console_user_id, search) VALUES (?1, ?2, ?3, ?4, ?5, ?6) ON CONFLICT (actor) DO NOTHING";
    /// Notes a client.
    ADD_CLIENT = "INSERT INTO mcp_session_clients (organization_id, mcp_client_id, search) VALUES (?1, ?2, ?3) ON CONFLICT (organization_id, mcp_client_id) DO NOTHING";
    /// Opens a session, unless its number is taken.
    INSERT = "INSERT INTO mcp_sessions (organization_id, id, seq, grant_key, kind, actor, actor_display, \
        mcp_client_id, client_display, service_account_id, console_user_id, token_id, issued_at, \
        last_used_at, expires_at, state) \
        VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?13, ?14, 0) \
        ON CONFLICT (seq) DO NOTHING";
    /// Lets a session live longer that has not ended.
    EXTEND = "UPDATE mcp_sessions SET expires_at = ?3 WHERE organization_id = ?1 AND id = ?2 AND state = 0 AND expires_at > ?4 AND expires_at < ?3";
    /// Lets a lasting session that is used live on, within the time that one can live.
    STAY = "UPDATE mcp_sessions SET expires_at = CASE WHEN issued_at + ?6 < ?3 THEN issued_at + ?6 ELSE ?3 END WHERE organization_id = ?1 AND id = ?2 AND state = 0 AND expires_at > ?4 AND expires_at < ?5 AND expires_at < issued_at + ?6 AND grant_key LIKE ?7";
    /// Gives a session another key, and lets it live until then at most.
    REKEY = "UPDATE mcp_sessions SET grant_key = ?3, expires_at = CASE WHEN expires_at > ?4 THEN ?4 ELSE expires_at END WHERE organization_id = ?1 AND grant_key = ?2";
    /// Has what a user's token was exchanged for follow the key of its session.
    REPOINT = "UPDATE mcp_sessions SET parent_grant = ?3 WHERE organization_id = ?1 AND parent_grant = ?2 AND console_user_id = ?4";
    /// Has a session list other scopes.
    SET_KIND = "UPDATE mcp_sessions SET kind = ?3 WHERE organization_id = ?1 AND id = ?2";
    /// Notes of which session's token a session's was made.
    SET_PARENT = "UPDATE mcp_sessions SET parent_grant = ?3 WHERE organization_id = ?1 AND id = ?2";
    /// Ends what the tokens of sessions were exchanged for that ended at an instant for a reason.
    END_CHILDREN = "UPDATE mcp_sessions \
        SET state = 1, ended_at = ?2, revoke_reason = ?3 \
        WHERE organization_id = ?1 AND state + 0 = 0 AND expires_at + 0 > ?2 \
        AND parent_grant IN (SELECT p.grant_key FROM mcp_sessions p WHERE p.organization_id = ?1 \
        AND p.ended_at = ?2 AND p.state = 1 AND p.revoke_reason = ?3) \
        RETURNING id";
    /// Lets the sessions of a token live until then at most.
    SHORTEN_TOKEN = "UPDATE mcp_sessions SET expires_at = ?3 WHERE organization_id = ?1 AND token_id = ?2 AND state = 0 AND expires_at + 0 > ?3";
    /// Ends an active session.
    END = "UPDATE mcp_sessions SET state = 1, ended_at = ?3, revoke_reason = ?4 WHERE organization_id = ?1 AND id = ?2 AND state = 0 AND expires_at > ?3";
    /// Ends sessions of a client.
    END_OF_CLIENT = unscoped("the inner query keeps to one organization, and a seq is unique") end!("mcp_client_id");
    /// Ends sessions of an account.
    END_OF_ACCOUNT = unscoped("the inner query keeps to one organization, and a seq is unique") end!("service_account_id");
    /// Ends sessions of a user.
    END_OF_USER = unscoped("the inner query keeps to one organization, and a seq is unique") end!("console_user_id");
    /// Notes a use that is newer than the stored one.
    TOUCH = "UPDATE mcp_sessions SET last_used_at = ?3, last_used_ip = ?4 WHERE organization_id = ?1 AND id = ?2 AND last_used_at < ?3";
    /// Ends that are not written down everywhere.
    CUTS = "SELECT subject, cut_seq, ended_at, revoke_reason FROM mcp_session_cuts WHERE organization_id = ?1 ORDER BY cut_seq, subject";
    /// Notes such an end.
    ADD_CUT = "INSERT INTO mcp_session_cuts (organization_id, subject, cut_seq, ended_at, revoke_reason) VALUES (?1, ?2, ?3, ?4, ?5) ON CONFLICT DO NOTHING";
    /// Forgets an end that is written down everywhere.
    DROP_CUT = "DELETE FROM mcp_session_cuts WHERE organization_id = ?1 AND subject = ?2 AND cut_seq = ?3";
    /// The last number of an organization.
    LAST_SEQ = "SELECT MAX(seq) FROM mcp_sessions WHERE organization_id = ?1";
    /// The sessions of a service-account token before a number, newest first.
    OF_TOKEN = concat!("SELECT ", columns!(), sessions!(), "WHERE s.organization_id = ?1 AND s.token_id = ?2 AND s.state = ?3 AND s.seq < ?4 ORDER BY s.seq DESC LIMIT ?5");
    /// Whether a session of the token `?2` was revoked and not for its account's sake, whether anything ended that is not
    /// written down, and the active session of the grant `?3`: all that a call of a known client asks, at once.
    ADMITTED = "SELECT EXISTS (SELECT 1 FROM mcp_sessions b WHERE b.organization_id = ?1 AND b.token_id = ?2 \
        AND b.state = 1 AND b.revoke_reason <> 'service_account_disabled'), \
        EXISTS (SELECT 1 FROM mcp_session_cuts c WHERE c.organization_id = ?1), g.id, g.last_used_at \
        FROM (SELECT CAST(?3 AS TEXT) AS grant_key) AS wanted \
        LEFT JOIN mcp_sessions g ON g.grant_key = wanted.grant_key AND g.organization_id = ?1 AND g.state = 0";
    /// Makes way for a new session of a token and client whose last one ended without blame.
    FREE_GRANT = "UPDATE mcp_sessions SET grant_key = grant_key || ' ' || id WHERE organization_id = ?1 AND grant_key = ?2";
    /// Writes down what has run out; what an earlier end covers is left to its job.
    SWEEP = unscoped("the inner query keeps to one organization, and a seq is unique") "UPDATE mcp_sessions \
        SET state = 2, ended_at = expires_at, revoke_reason = 'expired' \
        WHERE seq IN (SELECT s.seq FROM mcp_sessions s WHERE s.organization_id = ?1 AND s.state = 0 \
        AND s.expires_at <= ?2 AND NOT EXISTS (SELECT 1 FROM mcp_session_cuts c \
        WHERE c.organization_id = s.organization_id \
        AND c.subject IN ('client:' || s.mcp_client_id, 'account:' || s.service_account_id, \
        'user:' || s.console_user_id) AND c.cut_seq >= s.seq AND c.ended_at < s.expires_at) \
        ORDER BY s.expires_at LIMIT ?3) \
        RETURNING id, expires_at";
    /// How many sessions of an account began behind a number, `?4` at most.
    BEGUN_OF_ACCOUNT = "SELECT COUNT(*) FROM (SELECT seq FROM mcp_sessions WHERE organization_id = ?1 AND service_account_id = ?2 AND state IN (0, 1, 2) AND seq > ?3 LIMIT ?4) AS counted";
    /// How many sessions of a user began behind a number, `?4` at most.
    BEGUN_OF_USER = "SELECT COUNT(*) FROM (SELECT seq FROM mcp_sessions WHERE organization_id = ?1 AND console_user_id = ?2 AND state IN (0, 1, 2) AND seq > ?3 LIMIT ?4) AS counted";
    /// Whether a grant's session ended and was forgotten.
    IS_BURIED = unscoped("a grant's key is unique everywhere") "SELECT 1 FROM mcp_session_tombstones WHERE grant_key = ?1";
    /// Keeps of sessions that are about to be forgotten what their issuers could name again; the same ones as `PRUNE`.
    BURY = unscoped("the inner query keeps to one organization, and a seq is unique") "\
        INSERT INTO mcp_session_tombstones (organization_id, grant_key) \
        SELECT s.organization_id, s.grant_key \
        FROM mcp_sessions s \
        WHERE s.seq IN (SELECT seq FROM mcp_sessions WHERE organization_id = ?1 AND ended_at IS NOT NULL \
        AND ended_at < ?2 ORDER BY ended_at, seq LIMIT ?3) \
        AND s.grant_key LIKE ?4 \
        ON CONFLICT DO NOTHING";
    /// Whether anything has run out that is not written down.
    HAS_UNSWEPT = "SELECT 1 FROM mcp_sessions WHERE organization_id = ?1 AND state = 0 AND expires_at <= ?2 ORDER BY expires_at LIMIT 1";
    /// Whether anything ended long ago.
    HAS_OLD = "SELECT 1 FROM mcp_sessions WHERE organization_id = ?1 AND ended_at IS NOT NULL AND ended_at < ?2 LIMIT 1";
    /// Forgets sessions that ended long ago.
    PRUNE = unscoped("the inner query keeps to one organization, and a seq is unique") "DELETE FROM mcp_sessions WHERE seq IN (SELECT seq FROM mcp_sessions WHERE organization_id = ?1 AND ended_at IS NOT NULL AND ended_at < ?2 ORDER BY ended_at, seq LIMIT ?3) RETURNING actor, mcp_client_id";
    /// Forgets an actor without a session: its name is somebody's, and nothing shows it any more.
    FORGET_ACTOR = "DELETE FROM mcp_session_actors WHERE organization_id = ?1 AND actor = ?2 AND NOT EXISTS (SELECT 1 FROM mcp_sessions s WHERE s.organization_id = ?1 AND s.actor = ?2)";
    /// Forgets a client without a session.
    FORGET_CLIENT = "DELETE FROM mcp_session_clients WHERE organization_id = ?1 AND mcp_client_id = ?2 AND NOT EXISTS (SELECT 1 FROM mcp_sessions s WHERE s.organization_id = ?1 AND s.mcp_client_id = ?2)";
    /// Ends every session of an organization, in the unit that restores it.
    END_EVERY = "UPDATE mcp_sessions SET state = 1, ended_at = ?2, revoke_reason = ?3 WHERE organization_id = ?1 AND state = 0 AND expires_at > ?2";
}

/// Reads a session.
pub fn read(row: &Row<'_>) -> Result<Session> {
    let (at, reason) = (row.get::<Option<Timestamp>>(13)?, row.get::<Option<String>>(14)?);
    Ok(Session {
        id: SessionId::from_store(row.get(0)?),
        seq: row.get(1)?,
        organization_id: row.get(2)?,
        actor_type: row.get(3)?,
        actor_display: row.get(4)?,
        mcp_client_id: row.get(5)?,
        service_account_id: row.get(6)?,
        console_user_id: row.get(7)?,
        scopes: ScopeSet::from_store(row.str(8)?),
        issued_at: row.get(9)?,
        last_used_at: row.get(10)?,
        expires_at: row.get(11)?,
        state: State::of_code(row.get(12)?)?,
        ended: at.zip(reason).map(|(at, reason)| SessionEnd { at, reason }),
    })
}

/// Returns a session as it is now.
///
/// Errors: `NotFound` for an unknown and another organization's session alike.
pub fn get(ctx: &mut OperationContext<'_>, id: &SessionId) -> Result<Session> {
    let (org, now) = (ctx.org(), ctx.now());
    let found = ctx.query_opt(&GET, params![org, id.as_str()], read)?;
    let found = found.ok_or_else(|| Error::not_found("MCP session"))?;
    let cuts = cuts(&mut ctx.tx(), org)?;
    Ok(found.at(now, &cuts))
}

/// Returns the ends of an organization that are not written down everywhere.
pub fn cuts(tx: &mut Tx<'_>, org: &str) -> Result<Vec<RevocationWatermark>> {
    tx.query(&CUTS, params![org], |row| {
        let subject = Subject::parse(row.str(0)?);
        Ok(RevocationWatermark {
            subject: subject.ok_or_else(|| Error::internal("mcp_session_cuts.subject is not a subject"))?,
            seq: row.get(1)?,
            ended: SessionEnd {
                at: row.get(2)?,
                reason: row.get(3)?,
            },
        })
    })
}

/// Returns the organization and id of a grant's session.
pub fn by_grant(ctx: &mut OperationContext<'_>, grant_key: &str) -> Result<Option<(String, SessionId)>> {
    ctx.query_opt(&BY_GRANT, params![grant_key], |row| {
        Ok((row.get(0)?, SessionId::from_store(row.get(1)?)))
    })
}

/// Returns the kind of an actor type and scopes, made if it is new. The organization's chain head is locked.
pub fn kind(ctx: &mut OperationContext<'_>, actor_type: &str, scopes: ScopeSet) -> Result<i64> {
    let (org, scopes) = (ctx.org(), scopes.to_list().join(" "));
    let values = params![org, actor_type, scopes.as_str()];
    if let Some(kind) = ctx.query_opt(&KIND, values, |row| row.get(0))? {
        return Ok(kind);
    }
    let made = ctx.query_opt(&ADD_KIND, values, |row| row.get(0))?;
    made.ok_or_else(|| Error::internal("a kind of sessions was not made"))
}

/// Stores a new session, and its actor and client where they are new; `false` when its number is taken. The
/// organization's chain head is locked.
pub fn insert(
    ctx: &mut OperationContext<'_>,
    id: &SessionId,
    kind: i64,
    at: Timestamp,
    new: &NewSession,
) -> Result<bool> {
    let (org, seq) = (ctx.org(), super::model::seq(id)?);
    let Some(actor) = actor(ctx, &new.actor, seq)? else {
        return Ok(false);
    };
    if let Some(client) = &new.client_id {
        ctx.queue(&ADD_CLIENT, params![org, client.as_str(), name_key(client)])?;
    }
    let stored = ctx.execute(
        &INSERT,
        params![
            org,
            id.as_str(),
            seq,
            new.grant_key.as_str(),
            kind,
            actor,
            new.actor.display(),
            new.client_id.as_deref(),
            new.client_display.as_deref(),
            new.actor.service_account(),
            new.actor.console_user(),
            new.token_id.as_deref(),
            at,
            new.expires_at,
        ],
    )?;
    Ok(stored == 1)
}

/// Returns the number of an actor: `seq`, if it is new. `None` when that is another's.
fn actor(ctx: &mut OperationContext<'_>, actor: &SessionActor, seq: i64) -> Result<Option<i64>> {
    let org = ctx.org();
    let account = actor.service_account().unwrap_or_default();
    let user = actor.console_user().unwrap_or_default();
    let values = params![org, actor.display(), account, user];
    if let Some(number) = ctx.query_opt(&ACTOR, values, |row| row.get(0))? {
        return Ok(Some(number));
    }
    let searched = super::model::searched(actor);
    let values = params![org, seq, actor.display(), account, user, searched];
    Ok((ctx.execute(&ADD_ACTOR, values)? == 1).then_some(seq))
}

/// Ends active sessions of a subject up to a number, oldest first, at most `limit`; returns their ids.
pub fn end_some(
    ctx: &mut OperationContext<'_>,
    subject: &Subject,
    up_to: i64,
    ended: &SessionEnd,
    limit: i64,
) -> Result<Vec<SessionId>> {
    let statement = match subject {
        Subject::Client(_) => &END_OF_CLIENT,
        Subject::ServiceAccount(_) => &END_OF_ACCOUNT,
        Subject::ConsoleUser(_) => &END_OF_USER,
    };
    let (org, reason) = (ctx.org(), ended.reason.as_str());
    ctx.query(
        statement,
        params![org, subject.id(), up_to, ended.at, reason, limit],
        |row| Ok(SessionId::from_store(row.get(0)?)),
    )
}

/// Notes a use, if it is news.
pub fn touch(ctx: &mut OperationContext<'_>, used: &Use) -> Result<()> {
    let org = ctx.org();
    let id = used.token_id.as_str();
    ctx.queue(&TOUCH, params![org, id, used.at, used.source_ip.to_string()])?;
    let until = used.at.plus_secs(IDLE_SECS);
    let late = until.plus_secs(-IDLE_PRECISION_SECS);
    let lasting = format!("{LASTING_GRANT}%");
    ctx.queue(
        &STAY,
        params![org, id, until, used.at, late, ABSOLUTE_SECS * 1000, lasting],
    )
}

/// Gives an actor another name, wherever it is shown and looked for.
pub fn rename(ctx: &mut OperationContext<'_>, before: &SessionActor, display: &str) -> Result<()> {
    let after = match before.clone() {
        SessionActor::ConsoleUser { id, .. } => SessionActor::ConsoleUser {
            id,
            display: display.to_owned(),
        },
        SessionActor::ServiceAccount { id, .. } => SessionActor::ServiceAccount {
            id,
            display: display.to_owned(),
        },
        agent @ SessionActor::Agent { .. } => agent,
    };
    let org = ctx.org();
    let account = before.service_account().unwrap_or_default();
    let user = before.console_user().unwrap_or_default();
    let searched = super::model::searched(&after);
    ctx.queue(
        &RENAME_ACTOR,
        params![org, account, user, before.display(), after.display(), searched],
    )
}

/// Writes down up to `limit` expiries; returns them.
pub fn sweep(
    ctx: &mut OperationContext<'_>,
    now: SureTime,
    limit: i64,
) -> Result<Vec<(SessionId, Timestamp)>> {
    let (org, now) = (ctx.org(), now.instant());
    ctx.query(&SWEEP, params![org, now, limit], |row| {
        Ok((SessionId::from_store(row.get(0)?), row.get(1)?))
    })
}

/// Says whether a grant's session ended and was forgotten since.
pub fn is_buried(ctx: &mut OperationContext<'_>, grant_key: &str) -> Result<bool> {
    let found = ctx.query_opt(&IS_BURIED, params![grant_key], |_| Ok(()))?;
    Ok(found.is_some())
}

/// Returns how many sessions an actor has begun since, at most `limit`.
pub fn begun(
    ctx: &mut OperationContext<'_>,
    actor: &SessionActor,
    since: Timestamp,
    limit: i64,
) -> Result<i64> {
    let (statement, id) = match (actor.service_account(), actor.console_user()) {
        (Some(id), _) => (&BEGUN_OF_ACCOUNT, id),
        (None, Some(id)) => (&BEGUN_OF_USER, id),
        (None, None) => return Ok(0),
    };
    let (org, behind) = (ctx.org(), super::model::last_seq(since));
    let found = ctx.query_opt(statement, params![org, id, behind, limit], |row| row.get(0))?;
    Ok(found.unwrap_or(0))
}

/// Forgets up to `limit` sessions that ended long ago, and whom no other session names; returns how many.
pub fn prune(ctx: &mut OperationContext<'_>, now: SureTime, limit: i64) -> Result<u64> {
    let (org, before) = (ctx.org(), now.earlier_by(KEPT_SECS).instant());
    // INVARIANT MS-8: a session that ended is not opened again under its issuer's name, also when it is forgotten.
    ctx.execute(&BURY, params![org, before, limit, format!("{LASTING_GRANT}%")])?;
    let (mut actors, mut clients) = (BTreeSet::new(), BTreeSet::new());
    let gone = ctx.query(&PRUNE, params![org, before, limit], |row| {
        actors.insert(row.get::<i64>(0)?);
        clients.extend(row.get::<Option<String>>(1)?);
        Ok(())
    })?;
    for actor in actors {
        ctx.queue(&FORGET_ACTOR, params![org, actor])?;
    }
    for client in clients {
        ctx.queue(&FORGET_CLIENT, params![org, client.as_str()])?;
    }
    Ok(gone.len() as u64)
}
