//! A device changes its key.
//!
//! ```text
//! device.key.next is there ──► POST key, by the former key ──► rotated/: device.key, token, device.json the last
//!                                 │                                ──► each takes its place, device.json the last
//!                                 │                                ──► device.key.next goes
//!                                 ├── lost answer, kill, words of somebody on the way: it is asked again with the same new key
//!                                 └── refused by the server: device.key.next goes, and the former key stays
//! ```
//! A refusal that names the new key as the device's is none of those: the key waits, and nothing else is called.
//!
//! While `device.key.next` is there nothing else is called: once the server knows the new key, any other use of the former one says that
//! there are two who have it. From the moment at which `rotated/device.json` is there the device is the new key, wherever the process
//! ends. Keeps AG-2.

use crate::caller::Caller;
use crate::device::{DeviceFile, NAME, installation};
use crate::folder::Folder;
use crate::key::DeviceKey;
use crate::run::Loop;
use crate::state::KnownKey;
use crate::token::Token;
use crate::trouble::{ANEW, Cause, Trouble};
use crate::{Agent, State, counter, machine};
use provost_words::Secret;
use provost_words::entropy::Entropy;
use provost_words::time::Timestamp;
use serde_json::{Value, json};
use std::sync::Arc;

const KEY: &str = "device.key";
const NEXT: &str = "device.key.next";
const TOKEN: &str = "token";
/// A token that was renewed by the former key and is not in its place.
const NEXT_TOKEN: &str = "token.next";
const PLACE: &str = "rotated";

/// How old a key becomes before the agent has it changed by itself (F2.13). Units: seconds.
const OLD_SECS: i64 = 365 * 86_400;
/// How long the agent waits before it tries that again. Units: seconds.
const AGAIN_SECS: i64 = 86_400;

/// Says whether the key is so old, or so many tokens stand beside it, that it is changed by itself, and keeps since when the device has it. Where that is lost, or of another
/// time than there can be, the year begins again.
pub(crate) fn is_due(agent: &Agent, state: &mut State, now: Timestamp) -> bool {
    let thumbprint = agent.key().thumbprint();
    let known = state.key.as_ref();
    let since = known.filter(|known| known.thumbprint == thumbprint && known.since <= now);
    let Some(since) = since.map(|known| known.since) else {
        let since = now;
        state.key = Some(KnownKey { thumbprint, since });
        state.is_crowded = false;
        return false;
    };
    let tried = state.rotation_tried_at;
    let is_tried = tried.is_some_and(|at| at <= now && now < at.plus_secs(AGAIN_SECS));
    // What the former key enrolled to has no more room for a token, or it is a year old.
    let is_wanted = state.is_crowded || now >= since.plus_secs(OLD_SECS);
    is_wanted && !is_tried
}

/// Says whether the device is about to have another key.
pub(crate) fn is_waiting(folder: &Folder) -> bool {
    folder.file(NEXT).symlink_metadata().is_ok()
}

/// Returns the folder in which what a rotation came to is there wholly, and not all of it in its place yet.
///
/// Errors: folder, disk.
pub(crate) fn staged(folder: &Folder) -> Result<Option<Folder>, Trouble> {
    if folder.file(PLACE).symlink_metadata().is_err() {
        return Ok(None);
    }
    let place = Folder::open(&folder.file(PLACE))?;
    let is_whole = DeviceFile::load(&place)?.is_some();
    Ok(is_whole.then_some(place))
}

/// Puts what a rotation came to in its place. Whoever calls has the lock of the folder.
///
/// Errors: folder, disk.
pub(crate) fn finish(folder: &Folder) -> Result<(), Trouble> {
    let Some(place) = staged(folder)? else {
        return Ok(());
    };
    folder.remove(NEXT_TOKEN)?;
    for name in [KEY, TOKEN] {
        if place.file(name).symlink_metadata().is_ok() {
            folder.take(&place, name)?;
        }
    }
    folder.take(&place, NAME)?;
    for name in place.names()? {
        place.remove(&name)?;
    }
    // An empty folder that stays is in nobody's way.
    let _ = std::fs::remove_dir(place.path());
    Ok(())
}

/// Goes on with a rotation that was begun, before anything else is called.
///
/// Errors: refused, gone, unreachable, folder, disk; then nothing else may be called.
pub(crate) async fn go_on(agent: &Agent, caller: &mut Caller<'_>, say: &dyn Fn(&str)) -> Result<(), Trouble> {
    agent.has_rotated.set(false);
    finish(&agent.folder)?;
    match DeviceKey::load_as(&agent.folder, NEXT)? {
        None => Ok(()),
        Some(next) if next.thumbprint() == agent.key().thumbprint() => {
            agent.has_rotated.set(true);
            agent.folder.remove(NEXT)
        }
        Some(next) => {
            let has_another = ask(agent, caller, next, false, say).await?;
            agent.has_rotated.set(has_another);
            Ok(())
        }
    }
}

/// Gives the device another key, and says whether it has one: the server may refuse, and then the former one stays.
///
/// Errors: as for [`go_on`]; it goes on in the next round.
pub(crate) async fn rotate(
    agent: &Agent,
    caller: &mut Caller<'_>,
    entropy: &dyn Entropy,
    say: &dyn Fn(&str),
) -> Result<bool, Trouble> {
    // The command is told again whose answer was lost: what it asked for is done.
    if agent.has_rotated.take() {
        return Ok(true);
    }
    finish(&agent.folder)?;
    let is_first = !is_waiting(&agent.folder);
    let next = DeviceKey::load_or_make_as(&agent.folder, NEXT, entropy)?;
    ask(agent, caller, next, is_first, say).await
}

/// Gives the device another key at once, and says whether it has one.
///
/// Errors: busy, where an agent works in the folder; whatever stood in the way.
pub async fn rotate_now(work: &Loop<'_>) -> Result<bool, Trouble> {
    let _lock = work.agent.folder.lock()?;
    // Between the first look at the folder and the lock another process may have changed the key.
    work.agent.look_again()?;
    let state = State::load(&work.agent.folder)?;
    let mut caller = work.caller(&state);
    rotate(work.agent, &mut caller, work.entropy, work.say).await
}

async fn send(agent: &Agent, caller: &Caller<'_>, next: &DeviceKey) -> Result<Value, Trouble> {
    let below = format!("devices/{}/key", agent.device.device_id);
    let body = json!({
        "newKeyProof": caller.proof_of(next, &below).expose(),
        "counter": counter::call(agent, caller.now())?,
    });
    let body = Secret::new(body.to_string());
    let (_, answer) = caller.post(&below, body.expose().as_bytes()).await?;
    Ok(answer)
}

/// Says whether a refusal leaves the device the key that it has. One in the words of a server does, unless it names the new key; what
/// somebody on the way says does so at the first ask alone: behind that the server may know the new key, whose answer was lost.
fn is_final(trouble: &Trouble, next: &DeviceKey, is_first: bool) -> bool {
    let is_refusal = matches!(trouble.cause, Cause::Refused(400 | 403 | 404 | 405 | 409 | 422));
    let names_next = trouble.key.as_deref() == Some(next.thumbprint().as_str());
    is_refusal && !names_next && (trouble.is_servers || is_first)
}

async fn ask(
    agent: &Agent,
    caller: &mut Caller<'_>,
    next: DeviceKey,
    is_first: bool,
    say: &dyn Fn(&str),
) -> Result<bool, Trouble> {
    let answer = match send(agent, caller, &next).await {
        // The proof of the new key was of another time, and the first answer taught the server's.
        Err(trouble) if trouble.cause == Cause::Refused(422) => send(agent, caller, &next).await,
        done => done,
    };
    match answer {
        Ok(mut answer) if is_of(&answer, &next) => {
            let token = token_of(&mut answer).ok_or_else(|| {
                let line = "the answer is no token; is this a Provost server?";
                Trouble::new(Cause::Refused(200), line)
            })?;
            keep(agent, &next, &token)?;
            agent.key.replace(Arc::new(next));
            agent.next.replace(None);
            caller.key = agent.key();
            caller.token = token.text.clone();
            agent.token.replace(token);
            agent.folder.remove(NEXT)?;
            say("the key was changed");
            Ok(true)
        }
        Ok(_) => {
            agent.folder.remove(NEXT)?;
            say(
                "warning: the server knows another key of this device, and holds the device apart: somebody else may have this one",
            );
            Ok(false)
        }
        Err(trouble) if is_final(&trouble, &next, is_first) => {
            agent.folder.remove(NEXT)?;
            say(&format!("warning: the key was not changed: {trouble}"));
            Ok(false)
        }
        // The server knows the new key and answers no more: nobody else has it, and what is left is another enrolment.
        Err(trouble) if trouble.cause == Cause::Refused(409) && trouble.key.is_some() => {
            Err(trouble.fix(ANEW))
        }
        Err(trouble) => Err(trouble),
    }
}

/// Says whether an answer is about this key and brings a token.
fn is_of(answer: &Value, key: &DeviceKey) -> bool {
    let thumbprint = answer.get("keyThumbprint").and_then(Value::as_str);
    thumbprint == Some(key.thumbprint().as_str()) && answer.get("token").is_some()
}

fn token_of(answer: &mut Value) -> Option<Token> {
    let text = answer.pointer_mut("/token/token").map(Value::take);
    let Some(Value::String(text)) = text else {
        return None;
    };
    let expires_at = answer.pointer("/token/expiresAt").and_then(Value::as_str);
    Token::of(Secret::new(text), expires_at)
}

/// Puts key and token on the disk so that a process that is killed leaves the one device or the other.
fn keep(agent: &Agent, next: &DeviceKey, token: &Token) -> Result<(), Trouble> {
    let folder = &agent.folder;
    let place = folder.below(PLACE)?;
    let bytes = folder.read(NEXT)?.map(Secret::new);
    let gone = || Trouble::new(Cause::Disk, format!("{} is gone", folder.file(NEXT).display()));
    place.replace(KEY, bytes.ok_or_else(gone)?.expose())?;
    let thumbprint = next.thumbprint();
    let id = machine::machine_id();
    let here = id.as_deref().map(|id| installation(id, &thumbprint));
    // A folder that came from another installation stays one.
    let is_copied = agent.device.is_copied(id.as_deref());
    let device = DeviceFile {
        key_thumbprint: thumbprint,
        installation: if is_copied {
            agent.device.installation.clone()
        } else {
            here
        },
        ..agent.device.clone()
    };
    device.keep(&place, token)?;
    finish(folder)
}
