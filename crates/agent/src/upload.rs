//! From the queue to the server, in order.

use crate::caller::Caller;
use crate::queue::{MAX_BYTES, Queue, Segment};
use crate::report::{Plan, acknowledge};
use crate::trouble::{Cause, Trouble};
use crate::{Agent, Mode, State, sent};
use provost_words::entropy::Entropy;
use provost_words::time::Clock;
use std::path::Path;

/// How often a machine is scanned (F2.14). Units: seconds.
pub(crate) const SCAN_SECS: i64 = 3600;

/// Scans and queues the report. Returns what the queue calls it.
///
/// Errors: folder, disk.
pub fn queue_scan(
    agent: &Agent,
    home: &Path,
    clock: &dyn Clock,
    entropy: &dyn Entropy,
) -> Result<u64, Trouble> {
    let _lock = agent.folder.lock()?;
    let plan = Plan::new(&agent.folder, agent.device.mode, home, clock, entropy)?;
    let number = Queue::open(&agent.folder)?.push(&plan.carry_out(clock, &|| false)?)?;
    note_scan(agent, clock)?;
    Ok(number)
}

/// Notes that a scan was made.
///
/// Errors: folder, disk.
fn note_scan(agent: &Agent, clock: &dyn Clock) -> Result<(), Trouble> {
    let state = State {
        last_scan_at: Some(clock.now()),
        ..State::load(&agent.folder)?
    };
    state.save(&agent.folder)
}

/// Sends what waits, until there is nothing more or something is in the way.
///
/// Errors: refused, gone, unreachable, folder, disk.
pub(crate) async fn drain(
    agent: &Agent,
    caller: &Caller<'_>,
    queue: &Queue,
    state: &mut State,
    say: &dyn Fn(&str),
) -> Result<usize, Trouble> {
    let below = format!("devices/{}/scans", agent.device.device_id);
    let mut count = 0;
    while let Some(segment) = queue.next(say)? {
        match caller.post(&below, &segment.body).await {
            Ok((_, answer)) => {
                let now = caller.clock.now();
                // INVARIANT AG-3: it leaves the queue after the server's answer; a kill between the two sends it again, under
                // the same name of its scan.
                if acknowledge(&agent.folder, &segment.body, &answer, now)? {
                    state.last_scan_at = None;
                }
                queue.sent(&agent.folder, &segment, now)?;
                state.last_upload_at = Some(now);
                count += 1;
            }
            // It took a heartbeat of this device: what it does not know is reports. They wait until it is a later one.
            Err(trouble) if matches!(trouble.cause, Cause::Refused(404 | 405)) => {
                say("the server is of a version that takes no reports; they wait");
                return Ok(count);
            }
            Err(trouble) if is_for_ever(&trouble) => set_aside(queue, &segment, &trouble, say)?,
            Err(trouble) => return Err(trouble),
        }
    }
    Ok(count)
}

/// Says whether the same bytes would be refused again by every server. A conflict passes: a device that waits for its approval may not
/// report yet.
fn is_for_ever(trouble: &Trouble) -> bool {
    matches!(trouble.cause, Cause::Refused(400 | 413 | 415 | 422))
}

fn set_aside(queue: &Queue, segment: &Segment, trouble: &Trouble, say: &dyn Fn(&str)) -> Result<(), Trouble> {
    say(&trouble.line);
    queue.refused(segment, say)
}

/// Removes what was kept long enough.
///
/// Errors: folder, disk.
pub(crate) fn forget(agent: &Agent, queue: &Queue, clock: &dyn Clock) -> Result<(), Trouble> {
    let now = clock.now();
    sent::forget(&agent.folder, now)?;
    queue.forget_aside(now.plus_secs(-sent::KEPT_SECS))
}

/// Says whether another scan is made now: one that waits is sent first, so that an agent without a server writes one report and not
/// one an hour.
///
/// Errors: disk.
pub(crate) fn wants_scan(
    agent: &Agent,
    queue: &Queue,
    state: &State,
    clock: &dyn Clock,
) -> Result<bool, Trouble> {
    // Root would read with its own rights what a person's files and links name; until it reads with that person's, it reads no homes.
    if agent.device.mode == Mode::System {
        return Ok(false);
    }
    let depth = queue.depth()?;
    let has_room = depth.waiting == 0 && depth.bytes < MAX_BYTES / 2;
    Ok(has_room && state.is_scan_due(clock.now(), SCAN_SECS))
}
