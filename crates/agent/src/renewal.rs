//! A token is renewed in the second half of its life.
//!
//! ```text
//! room on the disk ──► POST token ──► the new one on the disk ──► it is used
//!                          └── lost answer, kill: the earlier one serves to its own end and asks again; the server takes a
//!                              successor that nobody used for a lost answer, and the next one is in its place
//! ```
//! Where copies took all the places that successors of a token have, the renewal is refused. In the last week of its token the agent then changes
//! its key (`rotation.rs`): whoever goes on with the former one has the device held apart, and nobody is shut out (ADR 0123).
//! What is left: who is killed between the two and stays off until the end of the earlier one enrols anew.

use crate::caller::Caller;
use crate::token::Token;
use crate::trouble::{Cause, Trouble};
use crate::{Agent, State};
use provost_words::Secret;
use provost_words::time::Timestamp;
use serde_json::Value;

/// How long before its end a token is renewed. Units: seconds.
const EARLY_SECS: i64 = 15 * 86_400;
/// How long before its end it is renewed although the disk takes nothing: what is lost by a restart is lost either way then. Units:
/// seconds.
const LATE_SECS: i64 = 2 * 86_400;
/// How long before its end a token that is not renewed says that there are too many of it. Units: seconds.
const CROWDED_SECS: i64 = 7 * 86_400;
/// How long a server that finds the token too young, or has no such operation, is left alone. Units: seconds.
const PAUSE_SECS: i64 = 3_600;
/// How long the earlier token serves where the answer does not say it. Units: seconds.
const GRACE_SECS: i64 = 600;
/// How long before the end of the earlier token a new one is used that is not on the disk: a round and its chance. Units: seconds.
const LAST_SECS: i64 = 390;

/// A token that is not on the disk yet.
#[derive(Clone, Debug)]
pub(crate) struct Next {
    token: Token,
    earlier_until: Timestamp,
}

/// Renews the token if it is time to, and says whether it did.
///
/// Errors: refused, gone, unreachable, disk.
pub(crate) async fn renew(
    agent: &Agent,
    caller: &mut Caller<'_>,
    state: &mut State,
) -> Result<bool, Trouble> {
    // Whose clock is wrong must not miss the end.
    let now = caller.now();
    let ends = agent.token_expires_at();
    let may_ask = state
        .renewal_refused_at
        .is_none_or(|at| now < at || now >= at.plus_secs(PAUSE_SECS));
    if now < ends.plus_secs(-EARLY_SECS) || !may_ask || agent.next.borrow().is_some() {
        return Ok(false);
    }
    if let Err(trouble) = Token::make_room(&agent.folder)
        && now < ends.plus_secs(-LATE_SECS)
    {
        return Err(trouble);
    }
    let below = format!("devices/{}/token", agent.device.device_id);
    let mut answer = match caller.post(&below, b"{}").await {
        Ok((_, answer)) => answer,
        Err(trouble) if matches!(trouble.cause, Cause::Refused(404 | 405 | 409)) => {
            state.renewal_refused_at = Some(now);
            // So old no token is too young.
            state.is_crowded = trouble.cause == Cause::Refused(409) && now >= ends.plus_secs(-CROWDED_SECS);
            return Ok(false);
        }
        Err(trouble) => return Err(trouble),
    };
    let next = Next::of(&mut answer, now).ok_or_else(|| {
        Trouble::new(
            Cause::Refused(200),
            "the answer is no token; is this a Provost server?",
        )
    })?;
    (state.renewal_refused_at, state.is_crowded) = (None, false);
    agent.next.replace(Some(next));
    settle(agent, now)?;
    caller.token = agent.token.borrow().text.clone();
    Ok(true)
}

/// Writes the token that is not on the disk yet. It is used when it is there, or when the earlier one is about to end.
///
/// Errors: folder, disk; it is tried again in the next round.
pub(crate) fn settle(agent: &Agent, now: Timestamp) -> Result<(), Trouble> {
    let Some(next) = agent.next.borrow().clone() else {
        return Token::settle(&agent.folder);
    };
    let kept = next.token.succeed(&agent.folder);
    if kept.is_ok() {
        agent.next.replace(None);
    }
    if kept.is_ok() || now >= next.earlier_until.plus_secs(-LAST_SECS) {
        agent.token.replace(next.token);
    }
    kept
}

impl Next {
    fn of(answer: &mut Value, now: Timestamp) -> Option<Self> {
        let text = answer.pointer_mut("/token/token").map(Value::take);
        let Some(Value::String(text)) = text else {
            return None;
        };
        let time = |place: &str| answer.pointer(place).and_then(Value::as_str);
        let until = time("/earlierUntil").and_then(Timestamp::parse);
        Some(Self {
            token: Token::of(Secret::new(text), time("/token/expiresAt"))?,
            earlier_until: until.unwrap_or_else(|| now.plus_secs(GRACE_SECS)),
        })
    }
}
