//! Whether everything is as it has to be, each finding with one thing to do.

use crate::caller::Caller;
use crate::door::Door;
use crate::folder::Folder;
use crate::machine;
use crate::queue::Queue;
use crate::rotation;
use crate::trouble::{ANEW, Cause, Trouble};
use crate::{Agent, Mode, State, heartbeat, mark};
use provost_words::entropy::Entropy;
use provost_words::time::{Clock, Timestamp};
use serde::Serialize;
use std::cell::Cell;
use std::path::Path;

/// From when on the end of a token is worth a word. Units: seconds.
const TOKEN_SECS: i64 = 7 * 86_400;
/// How old the last heartbeat may be. Units: seconds.
const SILENT_SECS: i64 = 1_800;

/// What was looked at, and what came of it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Finding {
    /// `folder`, `enrolment`, `scans` (where there are none, or one was killed), `token`, `heartbeat`, `queue`, `server`, `clock`.
    pub check: &'static str,
    /// Whether it is good.
    pub good: bool,
    /// What was found.
    pub says: String,
    /// What to do.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fix: Option<String>,
}

impl Finding {
    fn good(check: &'static str, says: impl Into<String>) -> Self {
        Self {
            check,
            good: true,
            says: says.into(),
            fix: None,
        }
    }

    fn bad(check: &'static str, says: impl Into<String>, fix: impl Into<String>) -> Self {
        Self {
            check,
            good: false,
            says: says.into(),
            fix: Some(fix.into()),
        }
    }

    fn of(check: &'static str, trouble: Trouble) -> Self {
        let fix = trouble.fix.unwrap_or_else(|| "look at what it says".to_owned());
        Self::bad(check, trouble.line, fix)
    }
}

/// Looks at what lies on this machine. The agent is returned where it could be read.
pub fn examine(path: &Path, clock: &dyn Clock) -> (Vec<Finding>, Option<Agent>) {
    let folder = match Folder::open(path) {
        Ok(folder) => folder,
        Err(trouble) => return (vec![Finding::of("folder", trouble)], None),
    };
    let mut findings = vec![Finding::good(
        "folder",
        format!("{} is its owner's alone", path.display()),
    )];
    let agent = match Agent::open(&folder) {
        Ok(agent) => agent,
        Err(trouble) => {
            findings.push(Finding::of("enrolment", trouble));
            return (findings, None);
        }
    };
    findings.push(enrolment(&agent));
    if agent.device.mode == Mode::System {
        findings.push(Finding::good("scans", crate::NO_SCANS));
    }
    findings.extend(killed(&agent, clock.now()));
    findings.push(token(agent.token_expires_at(), clock.now()));
    findings.push(last_heartbeat(&folder, clock.now()));
    findings.push(queue(&folder));
    (findings, Some(agent))
}

fn enrolment(agent: &Agent) -> Finding {
    let device = &agent.device;
    let says = format!(
        "{} of {} at {}",
        device.device_id, device.organization, device.server
    );
    if device.is_copied(machine::machine_id().as_deref()) {
        let says = format!("{says}, enrolled by another installation of a system");
        let fix = format!("on the copy: {ANEW}");
        return Finding::bad("enrolment", says, fix);
    }
    Finding::good("enrolment", says)
}

fn token(expires: Timestamp, now: Timestamp) -> Finding {
    let left = (expires.as_ms() - now.as_ms()) / 1000;
    let days = left / 86_400;
    match left {
        ..=0 => Finding::bad("token", format!("it ended at {expires}"), ANEW),
        1..TOKEN_SECS => Finding::bad(
            "token",
            format!("it ends at {expires}, in {days} days"),
            "start the agent, which renews it: provost agent run --once",
        ),
        _ => Finding::good("token", format!("it ends at {expires}, in {days} days")),
    }
}

fn last_heartbeat(folder: &Folder, now: Timestamp) -> Finding {
    let state = match State::load(folder) {
        Ok(state) => state,
        Err(trouble) => return Finding::of("heartbeat", trouble),
    };
    // A round that does all of its work takes it away.
    let has_failed = state.last_problem.is_some();
    let problem = state
        .last_problem
        .map(|line| format!("; the last try said: {line}"))
        .unwrap_or_default();
    let start = "start the agent: systemctl --user enable --now provost-agent (with --system: systemctl enable --now provost-agent)";
    match state.last_heartbeat_at {
        _ if state.is_gone => Finding::bad(
            "heartbeat",
            format!("the server no longer takes this device{problem}"),
            ANEW,
        ),
        None => Finding::bad("heartbeat", format!("none was ever taken{problem}"), start),
        Some(last) if now.as_ms() - last.as_ms() > SILENT_SECS * 1000 => Finding::bad(
            "heartbeat",
            format!("the last one was taken at {last}{problem}"),
            start,
        ),
        Some(last) if has_failed => Finding::bad(
            "heartbeat",
            format!("the last one was taken at {last}{problem}"),
            "see to what the last try said; the agent goes on trying by itself",
        ),
        Some(last) => Finding::good("heartbeat", format!("the last one was taken at {last}")),
    }
}

/// Returns what is wrong where a scan ended with its process within a day.
fn killed(agent: &Agent, now: Timestamp) -> Option<Finding> {
    let mut state = State::load(&agent.folder).ok()?;
    // While an agent works here the mark is that of its scan, which goes on.
    if agent.folder.lock().is_ok() {
        state
            .killed_scans
            .extend(mark::found(&agent.folder).ok().flatten());
    }
    let recent = state.killed_scans.iter().rev();
    let last = recent.into_iter().find(|scan| mark::is_recent(scan.at, now))?;
    let journal = match agent.device.mode {
        Mode::System => "journalctl -u",
        Mode::User => "journalctl --user -u",
    };
    let fix = format!(
        "look at that file and at the memory of the agent: {journal} provost-agent; what is left out is a fault in the report"
    );
    Some(Finding::bad("scans", last.says(), &fix))
}

fn queue(folder: &Folder) -> Finding {
    let depth = match Queue::look(folder).and_then(|queue| queue.depth()) {
        Ok(depth) => depth,
        Err(trouble) => return Finding::of("queue", trouble),
    };
    let refused = State::load(folder).ok().and_then(|state| state.last_refusal);
    let refused = refused.map(|line| format!("; {line}")).unwrap_or_default();
    let says = format!(
        "{} reports wait, {} were set aside, {} bytes{refused}",
        depth.waiting, depth.aside, depth.bytes
    );
    if depth.aside == 0 {
        return Finding::good("queue", says);
    }
    let shown = folder.file("queue");
    Finding::bad(
        "queue",
        says,
        format!(
            "look at {}; what was set aside goes after seven days, and a scan of every hour says the same anew",
            shown.display()
        ),
    )
}

/// Sends a heartbeat, which shows that the server is reached, and that token, key and clock are good.
pub async fn examine_server(
    agent: &Agent,
    door: &dyn Door,
    clock: &dyn Clock,
    entropy: &dyn Entropy,
) -> Vec<Finding> {
    let url = door.url();
    // Whoever has the lock counts the calls of the device.
    let lock = agent.folder.lock();
    if let Err(trouble) = lock {
        return vec![match trouble.cause {
            Cause::Busy => Finding::good(
                "server",
                format!("an agent works here and asks {url}; see heartbeat"),
            ),
            _ => Finding::of("server", trouble),
        }];
    }
    if let Err(trouble) = agent.look_again() {
        return vec![Finding::of("server", trouble)];
    }
    // Nothing but the change itself is called by the former key.
    if rotation::is_waiting(&agent.folder) {
        let says = format!("the key of this device is being changed, which the agent asks {url} for first");
        return vec![Finding::good("server", says)];
    }
    let caller = Caller {
        door,
        organization: &agent.device.organization,
        key: agent.key(),
        token: agent.token.borrow().text.clone(),
        clock,
        entropy,
        skew_ms: Cell::new(0),
        heard: Cell::new(None),
    };
    let server = match heartbeat::send(agent, &caller).await {
        Ok(_) => Finding::good("server", format!("{url} took a heartbeat of this device")),
        Err(trouble) if trouble.cause == Cause::Gone => Finding::bad("server", trouble.line, ANEW),
        Err(trouble) => Finding::of("server", trouble),
    };
    let skew = caller.skew_ms.get() / 1000;
    let clock = if skew == 0 {
        Finding::good("clock", "it agrees with the server's")
    } else {
        let says = format!(
            "it is {} s {} the server's",
            skew.abs(),
            if skew > 0 { "behind" } else { "ahead of" }
        );
        Finding::bad("clock", says, "set it: timedatectl set-ntp true")
    };
    let answered = !server.says.starts_with("cannot reach");
    if answered {
        vec![server, clock]
    } else {
        vec![server]
    }
}
