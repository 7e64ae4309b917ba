//! A token is renewed in the second half of its life.
//!
//! ```text
//! POST token ──► the new one on the disk ──► device.json says when it ends
//!      └── lost answer: the earlier one serves ten minutes more, and the next round asks again
//! ```

use crate::caller::Caller;
use crate::device::{DeviceFile, is_device_token};
use crate::trouble::{Cause, Trouble};
use crate::{Agent, State};
use provost_words::Secret;
use provost_words::time::Timestamp;
use serde_json::Value;

/// How long before its end a token is renewed. Units: seconds.
const EARLY_SECS: i64 = 15 * 86_400;
/// How long a server that finds the token too young, or has no such operation, is left alone. Units: seconds.
const PAUSE_SECS: i64 = 86_400;

/// Renews the token if it is time to, and says whether it did.
///
/// Errors: refused, gone, unreachable, disk.
pub(crate) async fn renew(
    agent: &Agent,
    caller: &mut Caller<'_>,
    state: &mut State,
) -> Result<bool, Trouble> {
    keep(agent)?;
    let now = caller.clock.now();
    let is_time = now >= agent.token_expires_at.get().plus_secs(-EARLY_SECS);
    let may_ask = state
        .renewal_refused_at
        .is_none_or(|at| now < at || now >= at.plus_secs(PAUSE_SECS));
    if !is_time || !may_ask {
        return Ok(false);
    }
    // A disk that takes nothing is found out before the earlier token is ended.
    agent.is_unkept.set(true);
    keep(agent)?;
    let below = format!("devices/{}/token", agent.device.device_id);
    let mut answer = match caller.post(&below, b"{}").await {
        Ok((_, answer)) => answer,
        Err(trouble) if matches!(trouble.cause, Cause::Refused(404 | 405 | 409)) => {
            state.renewal_refused_at = Some(now);
            return Ok(false);
        }
        Err(trouble) => return Err(trouble),
    };
    let wrong = || {
        Trouble::new(
            Cause::Refused(200),
            "the answer is no token; is this a Provost server?",
        )
    };
    let expires = answer
        .pointer("/token/expiresAt")
        .and_then(Value::as_str)
        .and_then(Timestamp::parse);
    let expires = expires.ok_or_else(wrong)?;
    let Some(Value::String(token)) = answer.pointer_mut("/token/token").map(Value::take) else {
        return Err(wrong());
    };
    let token = Secret::new(token);
    if !is_device_token(token.expose()) {
        return Err(wrong());
    }
    // It serves from now on, whatever the disk says; the earlier one ends in ten minutes.
    agent.token.replace(token.clone());
    agent.token_expires_at.set(expires);
    caller.token = token;
    state.renewal_refused_at = None;
    agent.is_unkept.set(true);
    keep(agent)?;
    Ok(true)
}

/// Writes the token that serves, where that is still to be done.
///
/// Errors: disk; it is tried again in the next round.
fn keep(agent: &Agent) -> Result<(), Trouble> {
    if !agent.is_unkept.get() {
        return Ok(());
    }
    let device = DeviceFile {
        token_expires_at: agent.token_expires_at.get(),
        ..agent.device.clone()
    };
    device.keep(&agent.folder, &agent.token.borrow())?;
    agent.is_unkept.set(false);
    Ok(())
}
