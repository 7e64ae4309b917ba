//! What takes away from sessions, and how it is taken away again (EN-3).

use super::end;
use super::model::{SessionId, State, Subject};
use provost_areas_platform::ends::unclear;
use provost_kernel::area::{Again, RepeatedRevocation, Right};
use provost_kernel::db::Tx;
use provost_kernel::ends::{Revocation, RowChange, Side};
use provost_kernel::{OperationContext, Result, Timestamp};

const SESSION: &str = "session";
const SESSIONS_OF: &str = "sessions_of";

/// The tables that decide what somebody may do.
pub const RIGHTS: &[Right] = &[
    Right::ending("mcp_session_cuts", cut),
    Right::lasting(
        "mcp_session_kinds",
        "what kinds of sessions may do; kinds only come",
    ),
    Right::lasting("mcp_session_tombstones", "stand for sessions that had ended"),
    Right::ending("mcp_sessions", session).loose(&["last_used_at", "last_used_ip"]),
];

/// The ways back.
pub const RETAKINGS: &[RepeatedRevocation] = &[
    RepeatedRevocation {
        what: SESSION,
        again: session_again,
    },
    RepeatedRevocation {
        what: SESSIONS_OF,
        again: cut_again,
    },
];

fn lives_until(side: &Side, now: Timestamp) -> Result<Option<i64>> {
    let until = side.number("expires_at")?.unwrap_or(i64::MAX);
    let lives = side.number("state")? == Some(State::Active.code()) && until > now.as_ms();
    Ok(lives.then_some(until))
}

fn session(_: &mut Tx<'_>, change: &RowChange, now: Timestamp) -> Result<Vec<Revocation>> {
    let Some(was) = change.was.as_ref() else {
        return Ok(Vec::new());
    };
    let Some(before) = lives_until(was, now)? else {
        return Ok(Vec::new());
    };
    let after = change.is.as_ref().map(|is| lives_until(is, now)).transpose()?;
    let how = match after.flatten() {
        None => "ended",
        Some(until) if until < before => "shortened",
        Some(_) => return Ok(Vec::new()),
    };
    Ok(vec![Revocation {
        what: SESSION,
        how,
        ids: was.ids(&["id"])?,
    }])
}

/// A cut ends every session of a subject that there is, before their rows say so.
fn cut(_: &mut Tx<'_>, change: &RowChange, _: Timestamp) -> Result<Vec<Revocation>> {
    match (&change.was, &change.is) {
        (None, Some(is)) => Ok(vec![Revocation {
            what: SESSIONS_OF,
            how: "ended",
            ids: is.ids(&["subject"])?,
        }]),
        _ => Ok(Vec::new()),
    }
}

fn session_again(ctx: &mut OperationContext<'_>, _: &str, ids: &[String]) -> Result<Again> {
    let [id] = ids else { return Ok(unclear()) };
    let ended = end::end(
        ctx,
        &SessionId::from_store(id.clone()),
        super::model::ADMIN_REVOKED,
    )?;
    Ok(if ended {
        Again::Done("ended")
    } else {
        Again::Already
    })
}

fn cut_again(ctx: &mut OperationContext<'_>, _: &str, ids: &[String]) -> Result<Again> {
    let [subject] = ids else { return Ok(unclear()) };
    let Some(subject) = Subject::parse(subject) else {
        return Ok(unclear());
    };
    end::end_all(ctx, &subject, super::model::ADMIN_REVOKED)?;
    Ok(Again::Done("every session of it is ended"))
}
