//! The loop: heartbeat, scan if due, what waits; then sleep.
//!
//! ```text
//! heartbeat ──► stations ──► is a scan due? ──► queue ──► server ──► sleep ──┐
//!      ▲                                                                     │ measured by a clock that counts the time asleep and
//!      └─────────────────────────────────────────────────────────────────────┘ that nobody can set
//! ```
//!
//! A machine that wakes after eight hours makes one round, and so does one whose clock was set. Keeps AG-1.

use crate::caller::Caller;
use crate::commands::{Done, FAILED, UNSUPPORTED};
use crate::door::Door;
use crate::folder::Lock;
use crate::heartbeat::{Beat, beat};
use crate::pace::Pace;
use crate::queue::Queue;
use crate::renewal::{renew, settle};
use crate::report::Plan;
use crate::rotation;
use crate::station::{Station, Visit};
use crate::trouble::{ANEW, Cause, Trouble};
use crate::upload::{drain, forget, wants_scan};
use crate::{Agent, Mode, NO_SCANS, State};
use crate::{machine, mark};
use provost_words::entropy::Entropy;
use provost_words::time::{Clock, SystemClock};
use std::cell::Cell;
use std::path::Path;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// How long the loop sleeps at a time, so that it notices soon that the machine was woken: two wakes a minute.
const NAP: Duration = Duration::from_secs(30);

/// How long a scan is waited for; it ends itself after twenty seconds where disks answer.
const LONGEST_SCAN: Duration = Duration::from_mins(1);
/// How long it waits at a time where another agent works in its folder.
const BUSY: Duration = Duration::from_secs(2);

/// The command by which the server asks for a scan out of turn.
const RESCAN: &str = "rescan";
/// The command by which it asks for another key.
const ROTATE: &str = "rotate_key";
/// The server does not let the key be changed.
const REFUSED: &str = "refused";

/// What a round did after a heartbeat that the server took.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Once {
    /// When the server wants the next heartbeat.
    pub next: Duration,
    /// Whether the machine was scanned.
    pub has_scanned: bool,
    /// How many reports the server took.
    pub uploads: usize,
    /// How many it refused for ever, which were set aside.
    pub set_aside: usize,
    /// What stood in the way of a scan or of a report; what waits goes on waiting, and heartbeats go on.
    pub problem: Option<Trouble>,
}

/// What the loop works with.
pub struct Loop<'a> {
    /// The machine.
    pub agent: &'a Agent,
    /// The way to the server.
    pub door: &'a dyn Door,
    /// The home that is scanned in the mode `user`.
    pub home: &'a Path,
    /// The machine's clock.
    pub clock: &'a dyn Clock,
    /// Where randomness comes from.
    pub entropy: &'a dyn Entropy,
    /// Tells whoever reads the log.
    pub say: &'a dyn Fn(&str),
    /// What is done between the heartbeat and the queue.
    pub stations: &'a [&'a dyn Station],
    /// Set when the process is to end: a scan looks at it.
    pub stop: Arc<AtomicBool>,
}

impl Loop<'_> {
    pub(crate) fn caller(&self, state: &State) -> Caller<'_> {
        Caller {
            door: self.door,
            organization: &self.agent.device.organization,
            key: self.agent.key(),
            token: self.agent.token.borrow().text.clone(),
            clock: self.clock,
            entropy: self.entropy,
            skew_ms: Cell::new(state.skew_ms),
            heard: Cell::new(None),
        }
    }

    /// Makes one round and keeps what came of it.
    async fn round(&self) -> Result<Once, Trouble> {
        let folder = &self.agent.folder;
        // What others may have changed is no ground to put anything back.
        self.agent.look_again()?;
        let mut state = match State::load(folder) {
            Ok(state) => state,
            Err(trouble) => {
                self.without_server(&trouble).await;
                return Err(trouble);
            }
        };
        self.settle_scan(&mut state);
        let now = self.clock.now().plus_ms(state.skew_ms);
        let unkept = settle(self.agent, now).err();
        let mut caller = self.caller(&state);
        let done = match rotation::go_on(self.agent, &mut caller, self.say).await {
            Ok(()) => self.work(&mut caller, &mut state).await,
            Err(trouble) => Err(trouble),
        };
        if let Err(trouble) = &done {
            self.without_server(trouble).await;
        }
        state.skew_ms = caller.skew_ms.get();
        let problem = match &done {
            Ok(once) => once.problem.as_ref().or(unkept.as_ref()),
            Err(trouble) => Some(trouble),
        };
        state.last_problem = problem.map(|trouble| trouble.line.clone());
        state.is_gone |= matches!(&done, Err(trouble) if trouble.cause == Cause::Gone);
        // A full disk must not end the heartbeats.
        if let Err(trouble) = state.save(folder) {
            (self.say)(&format!("warning: {trouble}"));
        }
        done
    }

    /// Has the stations do what they do without a server: one that is away must not leave the machine with what somebody wrote.
    /// One that answered with a refusal is no such server: what rests on its trust goes first.
    async fn without_server(&self, why: &Trouble) {
        if why.is_refusal() {
            for station in self.stations {
                if let Err(trouble) = station.refused(self.agent, why) {
                    (self.say)(&format!("warning: {trouble}"));
                }
            }
        }
        if why.cause == Cause::Gone {
            return;
        }
        for station in self.stations {
            if let Err(trouble) = station.alone(self.agent, self.say).await {
                (self.say)(&format!("warning: {trouble}"));
            }
        }
    }

    /// Says that a scan ended with the process before this one.
    fn settle_scan(&self, state: &mut State) {
        // A thread of this process may hang in one.
        if self.agent.scans.load(Ordering::Relaxed) {
            return;
        }
        match mark::settle(&self.agent.folder, state, self.clock.now()) {
            Ok(Some(line)) => (self.say)(&format!("warning: {line}")),
            Ok(None) => {}
            Err(trouble) => (self.say)(&format!("warning: {trouble}")),
        }
    }

    async fn work(&self, caller: &mut Caller<'_>, state: &mut State) -> Result<Once, Trouble> {
        let beat = beat(self.agent, caller, state).await?;
        let mut once = Once {
            next: beat.next,
            has_scanned: false,
            uploads: 0,
            set_aside: 0,
            problem: None,
        };
        match self.report(caller, state, &mut once, beat).await {
            Err(trouble) if trouble.cause == Cause::Gone => return Err(trouble),
            Err(trouble) => {
                once.next = trouble.wait.map_or(once.next, |told| once.next.max(told));
                once.problem = Some(trouble);
            }
            Ok(()) => {}
        }
        Ok(once)
    }

    async fn report(
        &self,
        caller: &mut Caller<'_>,
        state: &mut State,
        once: &mut Once,
        beat: Beat,
    ) -> Result<(), Trouble> {
        let folder = &self.agent.folder;
        // Where it cannot be known what was done, nothing is that is asked for; the stations are visited nevertheless.
        let (mut done, unread) = match Done::load(folder) {
            Ok(done) => (done, None),
            Err(trouble) => (Done::default(), Some(trouble)),
        };
        let commands = if unread.is_some() {
            Vec::new()
        } else {
            done.without(beat.commands)
        };
        let asks_for = |kind: &str| commands.iter().any(|command| command.kind == kind);
        // Before what may be large: the earlier token serves to its own end.
        let renewal = match renew(self.agent, caller, state).await {
            Ok(true) => {
                (self.say)("the token was renewed");
                Ok(())
            }
            Ok(false) => Ok(()),
            Err(trouble) if trouble.cause == Cause::Gone => return Err(trouble),
            // What stands in its way does not stand in that of reports.
            Err(trouble) => Err(trouble),
        };
        let mut failed = Vec::new();
        let mut first = renewal.err().or(unread);
        for station in self.stations {
            let visit = Visit {
                agent: self.agent,
                clock: self.clock,
                say: self.say,
                is_commanded: asks_for(station.command()),
                quarantine: beat.quarantine,
                caller,
            };
            match station.visit(&visit).await {
                Ok(()) => {}
                Err(trouble) if trouble.cause == Cause::Gone => return Err(trouble),
                Err(trouble) => {
                    failed.push(station.command());
                    first = first.or(Some(trouble));
                }
            }
        }
        let rescans = asks_for(RESCAN) && self.agent.device.mode == Mode::User;
        if rescans {
            state.last_scan_at = None;
        }
        let sent = self.send(caller, state, once).await;
        for command in &commands {
            let station = self.stations.iter().find(|one| one.command() == command.kind);
            let code = match command.kind.as_str() {
                // What was scanned waits at least.
                RESCAN if rescans => (!once.has_scanned).then_some(FAILED),
                ROTATE => match rotation::rotate(self.agent, caller, self.entropy, self.say).await {
                    Ok(has_another) => (!has_another).then_some(REFUSED),
                    Err(trouble) => {
                        // It goes on in the next round, before which the former key may say nothing; the command is told again.
                        done.save(folder)?;
                        return Err(trouble);
                    }
                },
                _ => match station {
                    Some(station) => failed.contains(&station.command()).then_some(FAILED),
                    None => Some(UNSUPPORTED),
                },
            };
            done.add(command, code);
        }
        match done.tell(folder, &self.agent.device.device_id, caller).await {
            Err(trouble) if trouble.cause == Cause::Gone => return Err(trouble),
            Err(trouble) => first = first.or(Some(trouble)),
            Ok(()) => {}
        }
        sent?;
        if let Some(trouble) = first {
            return Err(trouble);
        }
        // At the end of a round in which nothing was in the way: while it waits, nothing else is called.
        if rotation::is_due(self.agent, state, caller.now()) {
            state.rotation_tried_at = Some(caller.now());
            rotation::rotate(self.agent, caller, self.entropy, self.say).await?;
        }
        Ok(())
    }

    async fn send(&self, caller: &Caller<'_>, state: &mut State, once: &mut Once) -> Result<(), Trouble> {
        let queue = Queue::open(&self.agent.folder)?;
        forget(self.agent, &queue, self.clock)?;
        drain(self.agent, caller, &queue, state, once, self.say).await?;
        if !wants_scan(self.agent, &queue, state, self.clock)? {
            return Ok(());
        }
        // The heartbeat may have taught it.
        state.skew_ms = caller.skew_ms.get();
        // Noted before: a scan that ends the process must not be the first thing that the next one does.
        let before = state.last_scan_at.replace(self.clock.now());
        if let Err(trouble) = state.save(&self.agent.folder) {
            (self.say)(&format!("warning: {trouble}"));
        }
        let body = match self.scan(state).await {
            Ok(body) => body,
            Err(trouble) => {
                if trouble.cause != Cause::Busy {
                    state.last_scan_at = before;
                }
                return Err(trouble);
            }
        };
        // A scan that was cut short is no report.
        if self.stop.load(Ordering::Relaxed) {
            return Ok(());
        }
        queue.push(&body)?;
        once.has_scanned = true;
        drain(self.agent, caller, &queue, state, once, self.say).await?;
        Ok(())
    }

    /// Scans on a thread, for which the loop waits: a scan is seconds of work in which a signal has to be heard.
    async fn scan(&self, state: &State) -> Result<Vec<u8>, Trouble> {
        let plan = Plan::new(self.agent, self.home, state, self.clock, self.entropy)?;
        let hangs = || {
            let found = mark::found(&self.agent.folder).ok().flatten();
            let file = found.and_then(|scan| scan.file);
            let reads = file.map_or(String::new(), |file| format!(" while it reads {file:?}"));
            let line = format!(
                "a scan does not end{reads}: a disk of this machine may not answer, or the agent has too little of the processor; heartbeats \
                 go on"
            );
            Trouble::new(Cause::Busy, line)
        };
        // One thread that hangs is enough.
        if self.agent.scans.load(Ordering::Relaxed) {
            return Err(hangs());
        }
        let plan = plan.counted(&self.agent.folder, state, self.clock)?;
        let (stop, scans) = (self.stop.clone(), self.agent.scans.clone());
        scans.store(true, Ordering::Relaxed);
        let scan = move || {
            let done = plan.carry_out(&SystemClock::new(), &|| stop.load(Ordering::Relaxed));
            scans.store(false, Ordering::Relaxed);
            done
        };
        match tokio::time::timeout(LONGEST_SCAN, tokio::task::spawn_blocking(scan)).await {
            Ok(Ok(done)) => done,
            Ok(Err(_)) => {
                self.agent.scans.store(false, Ordering::Relaxed);
                Err(Trouble::new(Cause::Disk, "the scan ended before it was done"))
            }
            Err(_) => Err(hangs()),
        }
    }

    fn begin(&self) {
        if self.agent.device.mode == Mode::System {
            (self.say)(NO_SCANS);
        }
        if self.agent.device.is_copied(machine::machine_id().as_deref()) {
            let line = "warning: this folder was made on another installation; two machines that use it are one device to the server";
            (self.say)(line);
        }
    }
}

/// Makes one round.
///
/// Errors: whatever stood in the way.
pub async fn once(work: &Loop<'_>) -> Result<Once, Trouble> {
    let _lock = work.agent.folder.lock()?;
    work.begin();
    for station in work.stations {
        if let Err(trouble) = station.begin_once(work.agent, work.say) {
            (work.say)(&format!("warning: {trouble}"));
        }
    }
    work.round().await.map_err(explained)
}

/// Makes rounds until `end` comes; what a round has begun is dropped then, and what it queued stays.
///
/// Errors: gone, when the server no longer knows the device; folder.
pub async fn run(work: &Loop<'_>, end: impl Future<Output = ()>) -> Result<(), Trouble> {
    let mut end: Pin<Box<dyn Future<Output = ()> + '_>> = Box::pin(end);
    let Some(_lock) = alone(work, &mut end).await? else {
        return Ok(());
    };
    work.begin();
    for station in work.stations {
        if let Err(trouble) = station.begin(work.agent, work.say) {
            (work.say)(&format!("warning: {trouble}"));
        }
    }
    let mut pace = Pace::default();
    let mut before = None;
    'rounds: loop {
        let done = tokio::select! {
            biased;
            () = &mut end => break 'rounds,
            done = work.round() => done,
        };
        let wait = match &done {
            Ok(once) => pace.after_success(once.next, work.entropy),
            Err(trouble) if trouble.may_pass() => pace.after(trouble, work.entropy),
            Err(trouble) => return Err(explained(trouble.clone())),
        };
        // What goes on as before is said once: a day without a server is a line, not a hundred.
        let said = match &done {
            Ok(Once { problem: None, .. }) => "heartbeat taken".to_owned(),
            Ok(Once {
                problem: Some(trouble),
                ..
            }) => format!("heartbeat taken; {trouble}"),
            Err(trouble) => trouble.to_string(),
        };
        if before.as_ref() != Some(&said) {
            (work.say)(&format!("{said}; next in {} s", wait.as_secs()));
            before = Some(said);
        }
        let until = work.clock.since_boot() + wait;
        loop {
            let left = until.saturating_sub(work.clock.since_boot());
            if left.is_zero() {
                break;
            }
            tokio::select! {
                biased;
                () = &mut end => break 'rounds,
                () = tokio::time::sleep(left.min(NAP)) => {}
            }
        }
    }
    work.stop.store(true, Ordering::Relaxed);
    // Who tells the agent to end does not kill its scan.
    mark::remove(&work.agent.folder);
    Ok(())
}

/// Waits until no other agent works in the folder: somebody's look at it must not end a service. `None` when `end` comes first.
async fn alone(
    work: &Loop<'_>,
    end: &mut (impl Future<Output = ()> + Unpin),
) -> Result<Option<Lock>, Trouble> {
    let mut was_said = false;
    loop {
        match work.agent.folder.lock() {
            Err(trouble) if trouble.cause == Cause::Busy => {
                if !std::mem::replace(&mut was_said, true) {
                    (work.say)(&trouble.to_string());
                }
            }
            taken => return taken.map(Some),
        }
        tokio::select! {
            biased;
            () = &mut *end => return Ok(None),
            () = tokio::time::sleep(BUSY) => {}
        }
    }
}

fn explained(trouble: Trouble) -> Trouble {
    if trouble.cause != Cause::Gone {
        return trouble;
    }
    let line = format!(
        "the server no longer takes this device: it was retired, or its token was replaced ({})",
        trouble.line
    );
    Trouble { line, ..trouble }.fix(format!("nothing is sent any more; {ANEW}"))
}
