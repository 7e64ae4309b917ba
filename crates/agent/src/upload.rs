//! From the queue to the server, in order.

use crate::caller::Caller;
use crate::queue::{MAX_BYTES, Queue, Segment};
use crate::report::{Plan, acknowledge};
use crate::trouble::{Cause, Trouble};
use crate::{Agent, Mode, Once, State, counter, mark, sent};
use provost_words::entropy::Entropy;
use provost_words::time::Clock;
use std::path::Path;

/// How often a machine is scanned (F2.14). Units: seconds.
pub(crate) const SCAN_SECS: i64 = 3600;

/// LIMIT: what was set aside and is kept to be looked at. Ours: a report is set aside every hour where a server never takes one.
const MOST_ASIDE: usize = 4;
/// How often a report is tried behind a heartbeat that was taken, in rounds in which the server said that it is busy: a day.
const MOST_TRIES: u32 = 288;
/// How much a round counts in which the server failed at it, or it did not arrive: an hour of these is as much.
const FAILURE: u32 = 24;

/// Scans and queues the report. Returns what the queue calls it.
///
/// Errors: enrolment, for the agent of the machine; folder, disk.
pub fn queue_scan(
    agent: &Agent,
    home: &Path,
    clock: &dyn Clock,
    entropy: &dyn Entropy,
) -> Result<u64, Trouble> {
    let _lock = agent.folder.lock()?;
    let mut state = State::load(&agent.folder)?;
    mark::settle(&agent.folder, &mut state, clock.now())?;
    let plan = Plan::new(agent, home, &state, clock, entropy)?.counted(&agent.folder, &state, clock)?;
    let number = Queue::open(&agent.folder)?.push(&plan.carry_out(clock, &|| false)?)?;
    state.last_scan_at = Some(clock.now());
    state.save(&agent.folder)?;
    Ok(number)
}

/// Sends what waits, until there is nothing more or something is in the way.
///
/// Errors: refused, gone, unreachable, folder, disk.
pub(crate) async fn drain(
    agent: &Agent,
    caller: &Caller<'_>,
    queue: &Queue,
    state: &mut State,
    once: &mut Once,
    say: &dyn Fn(&str),
) -> Result<(), Trouble> {
    let below = format!("devices/{}/scans", agent.device.device_id);
    while let Some(mut segment) = queue.next(say)? {
        // Keeps PV-2: it may have been made while names of projects were shown.
        if !state.shows_project_names() && !queue.leave_out_project_names(&mut segment)? {
            let line = "a report that waits cannot be read by this version of the agent";
            let why = "it may name projects, which are hidden, and is set aside";
            set_aside(queue, state, &segment, &Trouble::new(Cause::Disk, line), why, say)?;
            once.set_aside += 1;
            continue;
        }
        match caller.post(&below, &segment.body).await {
            Ok((_, answer)) => {
                let now = caller.clock.now();
                // INVARIANT AG-3: it leaves the queue after the server's answer; a kill between the two sends it again, under
                // the same name and number of its scan.
                queue.sent(&agent.folder, &segment, now)?;
                match acknowledge(&agent.folder, &segment.body, &answer, now) {
                    Ok(true) => state.scan_again(now, SCAN_SECS),
                    Ok(false) => {}
                    // What the server has is then sent again as a whole.
                    Err(trouble) => say(&format!("warning: {trouble}")),
                }
                state.last_upload_at = Some(now);
                state.last_refusal = None;
                state.taken();
                once.uploads += 1;
            }
            // It took a heartbeat of this device: what it does not know is reports. They wait until it is a later one.
            Err(trouble) if matches!(trouble.cause, Cause::Refused(404 | 405)) => {
                say("the server is of a version that takes no reports; they wait");
                return Ok(());
            }
            Err(trouble) if is_for_ever(&trouble) => {
                let why =
                    "it is set aside; a server of an earlier version than this agent may not know its form";
                set_aside(queue, state, &segment, &trouble, why, say)?;
                once.set_aside += 1;
                // It may be the number that is refused, which an earlier version took from a clock: from the first one on the server says
                // which it knows.
                if trouble.cause == Cause::Refused(400) {
                    counter::forget_scans(&agent.folder)?;
                }
            }
            Err(trouble) if state.stuck(segment.number, weight(&trouble)) >= MOST_TRIES => {
                set_aside(
                    queue,
                    state,
                    &segment,
                    &trouble,
                    "it was tried often enough and is set aside",
                    say,
                )?;
                once.set_aside += 1;
            }
            Err(trouble) => return Err(trouble),
        }
    }
    Ok(())
}

/// Says whether the same bytes would be refused again by every server. A conflict passes: a device that waits for its approval may not
/// report yet.
fn is_for_ever(trouble: &Trouble) -> bool {
    matches!(trouble.cause, Cause::Refused(400 | 413 | 415 | 422))
}

/// Returns how much a failure counts that may be the report's own: the heartbeat before it was taken. Who is told to be approved or to
/// show another token does not have it counted; who is told to wait has it counted a little, because a report that is too much for a
/// server is told so for ever.
fn weight(trouble: &Trouble) -> u32 {
    match trouble.cause {
        Cause::Refused(429 | 503) => 1,
        Cause::Refused(401 | 409)
        | Cause::Busy
        | Cause::Gone
        | Cause::Expired
        | Cause::Disk
        | Cause::Folder
        | Cause::Enrolment => 0,
        Cause::Refused(_) | Cause::Unreachable => FAILURE,
    }
}

/// Sets a report aside. Nothing is lost by it: what the server has of this machine is as before, so that the next scan says it again.
fn set_aside(
    queue: &Queue,
    state: &mut State,
    segment: &Segment,
    trouble: &Trouble,
    why: &str,
    say: &dyn Fn(&str),
) -> Result<(), Trouble> {
    let line = format!("{}; {why}", trouble.line);
    say(&line);
    state.last_refusal = Some(line);
    queue.refused(segment, say)
}

/// Removes what was kept long enough.
///
/// Errors: folder, disk.
pub(crate) fn forget(agent: &Agent, queue: &Queue, clock: &dyn Clock) -> Result<(), Trouble> {
    let now = clock.now();
    sent::forget(&agent.folder, now)?;
    queue.forget_aside(now.plus_secs(-sent::KEPT_SECS), MOST_ASIDE)
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
    // Root would read with its own rights what a person's files and links name. To read with that person's it would have to start a
    // program under their account, and it starts none.
    if agent.device.mode == Mode::System {
        return Ok(false);
    }
    let depth = queue.depth()?;
    let has_room = depth.waiting == 0 && depth.bytes < MAX_BYTES / 2;
    Ok(has_room && state.is_scan_due(clock.now(), SCAN_SECS))
}
