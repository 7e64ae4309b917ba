//! How sessions end before their time, one by one and many at once.
//!
//! Up to [`CHUNK`] sessions are ended in the unit that asks for it. Where there may be more, the unit leaves a *cut*: all
//! sessions of the subject up to a number have ended. Whoever reads a session reads the cuts of its organization beside
//! it, so the end holds from the answer on, and a job writes it down in units of [`CHUNK`]. A session that is opened
//! while there are cuts gets a number behind them.
//!
//! INVARIANT MS-4: what was ended is refused and listed as ended from the next request on, however many they are.

use super::model::{
    ACCOUNT_DISABLED, RevocationWatermark, SUPERSEDED, SessionActor, SessionEnd, SessionId, State, Subject,
    USER_SUSPENDED, last_seq,
};
use super::store;
use crate::mcp_sessions::fences;
use provost_areas_identity::subjects::SubjectKind;
use provost_areas_platform::announcements::{
    PrincipalEnded, PrincipalRenamed, SessionsEnded, TokenRevoked, TokenSuperseded,
};
use provost_kernel::error::Error;
use provost_kernel::jobs::{Handler, NewJob, Work};
use provost_kernel::{OperationContext, Result, Timestamp, params};
use serde_json::{Value, json};

/// How many sessions one unit ends.
pub const CHUNK: i64 = 500;
/// The job that writes the rest down.
const CONTINUE: &str = "mcp_session.end_rest";

/// Runs it.
pub const HANDLER: Handler = Handler {
    kind: CONTINUE,
    action: "mcp.sessions.revoked",
    work: Work::Inside(carry_on),
};

fn tell(ctx: &mut OperationContext<'_>, ids: &[SessionId], reason: &str) {
    for id in ids {
        ctx.emit(
            &fences::REVOKED,
            &fences::SessionRevocation {
                session_id: id.clone(),
                revoke_reason: reason.to_owned(),
            },
        );
    }
}

/// Ends a session; `false` when it has ended already.
///
/// Errors: `NotFound`.
pub fn end(ctx: &mut OperationContext<'_>, id: &SessionId, reason: &str) -> Result<bool> {
    let session = store::get(ctx, id)?;
    if session.state != State::Active {
        return Ok(false);
    }
    end_one(ctx, id, reason)?;
    Ok(true)
}

/// Ends all sessions of a subject. Returns how many were written down at once; a job writes down the others, if
/// there are any, and they have ended all the same.
pub fn end_all(ctx: &mut OperationContext<'_>, subject: &Subject, reason: &str) -> Result<u64> {
    // The sessions of a client, and of agents that act for somebody, are others' than the unit's target (WK-4).
    ctx.invalidate_cached_credentials();
    let (org, now) = (ctx.org(), ctx.now());
    let ended = SessionEnd {
        at: now,
        reason: reason.to_owned(),
    };
    // An earlier end that is not written down yet must not be written over.
    let mut done = Vec::new();
    if store::cuts(&mut ctx.tx(), org)?.is_empty() {
        done = store::end_some(ctx, subject, i64::MAX, &ended, CHUNK)?;
        tell(ctx, &done, reason);
        end_children(ctx, now, reason)?;
        if i64::try_from(done.len()).unwrap_or(i64::MAX) < CHUNK {
            return Ok(done.len() as u64);
        }
    }
    let last = ctx.query_opt(&store::LAST_SEQ, params![org], |row| row.get::<Option<i64>>(0))?;
    let seq = last.flatten().unwrap_or(0).max(last_seq(now));
    let text = subject.text();
    ctx.execute(&store::ADD_CUT, params![org, text.as_str(), seq, now, reason])?;
    enqueue(ctx, &text, seq);
    Ok(done.len() as u64)
}

/// Ends all sessions of a user, and of those that act for it.
pub fn end_all_of_user(ctx: &mut OperationContext<'_>, user_id: &str, reason: &str) -> Result<u64> {
    end_all(ctx, &Subject::ConsoleUser(user_id.to_owned()), reason)
}

/// Ends all sessions of a service account, and of those that act for it.
pub fn end_all_of_service_account(ctx: &mut OperationContext<'_>, id: &str, reason: &str) -> Result<u64> {
    end_all(ctx, &Subject::ServiceAccount(id.to_owned()), reason)
}

/// Ends all sessions of a client.
pub fn end_all_of_client(ctx: &mut OperationContext<'_>, client_id: &str, reason: &str) -> Result<u64> {
    end_all(ctx, &Subject::Client(client_id.to_owned()), reason)
}

/// Ends the sessions of a user or an account that acts no more. Its tokens are refused by what it is now (D2.9); this is the
/// record.
pub fn principal_ended(ctx: &mut OperationContext<'_>, ended: &PrincipalEnded) -> Result<()> {
    match ended.kind {
        SubjectKind::User => end_all_of_user(ctx, &ended.id, USER_SUSPENDED).map(drop),
        SubjectKind::ServiceAccount => end_all_of_service_account(ctx, &ended.id, ACCOUNT_DISABLED).map(drop),
        SubjectKind::Group => Ok(()),
    }
}

/// Shows a user or an account under its new name.
pub fn principal_renamed(ctx: &mut OperationContext<'_>, renamed: &PrincipalRenamed) -> Result<()> {
    let (id, display) = (renamed.id.clone(), renamed.before.clone());
    let before = match renamed.kind {
        SubjectKind::User => SessionActor::ConsoleUser { id, display },
        SubjectKind::ServiceAccount => SessionActor::ServiceAccount { id, display },
        SubjectKind::Group => return Ok(()),
    };
    store::rename(ctx, &before, &renamed.after)
}

/// Ends the sessions of a token that was revoked.
pub fn token_revoked(ctx: &mut OperationContext<'_>, revoked: &TokenRevoked) -> Result<()> {
    let token_id = revoked.id.as_str();
    let reason = match revoked.reason.as_str() {
        "rotated" => SUPERSEDED,
        "token_reuse" => "token_reuse",
        "account_deleted" => ACCOUNT_DISABLED,
        _ => super::model::ADMIN_REVOKED,
    };
    let (org, now) = (ctx.org(), ctx.now());
    let cuts = store::cuts(&mut ctx.tx(), org)?;
    let mut before = i64::MAX;
    loop {
        let of_token = params![org, token_id, State::Active.code(), before, CHUNK];
        let sessions = ctx.query(&store::OF_TOKEN, of_token, store::read)?;
        let Some(last) = sessions.last() else {
            return Ok(());
        };
        before = last.seq;
        for session in sessions {
            let session = session.at(now, &cuts);
            if session.state == State::Active {
                end_one(ctx, &session.id, reason)?;
            }
        }
    }
}

fn end_one(ctx: &mut OperationContext<'_>, id: &SessionId, reason: &str) -> Result<()> {
    let (org, now) = (ctx.org(), ctx.now());
    ctx.queue(&store::END, params![org, id.as_str(), now, reason])?;
    tell(ctx, std::slice::from_ref(id), reason);
    end_children(ctx, now, reason)
}

/// Ends what the tokens of sessions were exchanged for that ended now, and what was made with them.
fn end_children(ctx: &mut OperationContext<'_>, at: Timestamp, reason: &str) -> Result<()> {
    let org = ctx.org();
    let children = ctx.query(&store::END_CHILDREN, params![org, at, reason], |row| {
        Ok(SessionId::from_store(row.get(0)?))
    })?;
    tell(ctx, &children, reason);
    ctx.announce(&SessionsEnded {
        at,
        reason: reason.to_owned(),
    })
}

/// Lets the sessions of a token live until its grace ends.
pub fn token_superseded(ctx: &mut OperationContext<'_>, superseded: &TokenSuperseded) -> Result<()> {
    let org = ctx.org();
    ctx.queue(
        &store::SHORTEN_TOKEN,
        params![org, superseded.id.as_str(), superseded.until],
    )
}

/// Ends every session of the organization, in the unit that restores it (D12.9).
pub fn end_every(ctx: &mut OperationContext<'_>, reason: &str) -> Result<()> {
    let (org, now) = (ctx.org(), ctx.now());
    ctx.queue(&store::END_EVERY, params![org, now, reason])
}

fn enqueue(ctx: &mut OperationContext<'_>, subject: &str, seq: i64) {
    ctx.enqueue(NewJob {
        kind: CONTINUE,
        payload: json!({ "subject": subject, "seq": seq }),
        run_at: ctx.now(),
    });
}

/// Writes the next ends down, those of the oldest cut first, until the cut of this job is gone.
fn carry_on(ctx: &mut OperationContext<'_>, payload: &Value) -> Result<()> {
    let own = payload["subject"].as_str().zip(payload["seq"].as_i64());
    let (subject, seq) = own.ok_or_else(|| Error::internal("a job names no end of sessions"))?;
    let org = ctx.org();
    let cuts = store::cuts(&mut ctx.tx(), org)?;
    let is_own = |cut: &RevocationWatermark| cut.seq == seq && cut.subject.text() == subject;
    if !cuts.iter().any(is_own) {
        return Ok(());
    }
    let Some(oldest) = cuts.iter().min_by_key(|cut| (cut.ended.at, cut.seq)) else {
        return Ok(());
    };
    ctx.target(oldest.subject.kind(), oldest.subject.id());
    let ended = store::end_some(ctx, &oldest.subject, oldest.seq, &oldest.ended, CHUNK)?;
    tell(ctx, &ended, &oldest.ended.reason);
    end_children(ctx, oldest.ended.at, &oldest.ended.reason)?;
    ctx.change("/revoked", Value::Null, ended.len());
    let is_done = i64::try_from(ended.len()).unwrap_or(i64::MAX) < CHUNK;
    if is_done {
        let text = oldest.subject.text();
        ctx.queue(&store::DROP_CUT, params![org, text, oldest.seq])?;
    }
    if !is_done || !is_own(oldest) {
        enqueue(ctx, subject, seq);
    }
    Ok(())
}
