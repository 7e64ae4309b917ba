//! The desk at work: one thread that waits for nobody.
//!
//! ```text
//! poll ──► accept, each with its account ──► read what is there ──► one whole question of each account ──► judged ──► written
//!   ▲                                                                                                          │
//!   └───────────── whoever is late, or has to make room, is hung up on ◄───────────────────────────────────────┘
//! ```
//!
//! Keeps LJ-4, LJ-6, LJ-7 and LJ-14.

use super::bench::{Bench, Here, Registered, Said, Standing, Told, ToldBypass, Word, spoken, strongest};
use super::frame::{Asked, Intent, reply};
use super::line::Line;
use super::log::{Log, Sort};
use super::place::Place;
use super::servers::Servers;
use crate::coverage::SharedFired;
use crate::machine;
use crate::quarantine::Quarantine;
use crate::trouble::{Cause, Trouble};
use provost_bundle::{AskedEvent, Recording};
use provost_hooks::{Mode, Question, session_of};
use provost_policy::Action;
use provost_words::time::{Clock, Timestamp};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::fs::{self, Permissions};
use std::io::{ErrorKind, Read, Write};
use std::os::fd::AsFd;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::{UnixListener, UnixStream};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

/// How long a question may take to arrive, and its answer to be fetched.
const PATIENCE: Duration = Duration::from_millis(500);
/// How long counts wait for the disk.
const SETTLE: Duration = Duration::from_secs(1);
/// LIMIT: bytes of the log that one account fills before the server has them: what it does more is asked about.
const MOST_OF_LOG: u64 = 16 << 20;
/// From so few bytes of the log on everybody begins anew.
const LOG_IS_EMPTY: u64 = 2 << 20;
/// LIMIT: connections that are taken before somebody is served.
const MOST_ACCEPTED: usize = 8;
/// LIMIT: bytes that are read of one connection before the others have their turn.
const MOST_READ: usize = 64 << 10;

/// Says what the registration of this machine's hooks says, at each question.
pub trait Registrar: Send {
    /// Returns it.
    ///
    /// Errors: why none is believed.
    fn registered(&self) -> Result<Registered, String>;

    /// Returns the name of an account.
    fn account(&self, uid: u32) -> Option<String>;

    /// Returns the home of an account.
    fn home(&self, uid: u32) -> Option<PathBuf>;
}

/// A desk that is open; it closes when it is dropped.
#[derive(Debug)]
pub struct Desk {
    wake: UnixStream,
    thread: Option<JoinHandle<()>>,
    socket: PathBuf,
}

/// What a desk works with.
pub(crate) struct Work {
    pub place: Place,
    /// The server and the organization of the agent.
    pub server: String,
    pub organization: String,
    pub standing: Arc<Mutex<Standing>>,
    pub log: Arc<Mutex<Log>>,
    /// Which conversations asked.
    pub fired: SharedFired,
    /// Where the server of a call is looked up.
    pub servers: Servers,
    pub registrar: Box<dyn Registrar>,
    pub clock: Box<dyn Clock>,
}

impl Desk {
    /// Opens a desk.
    ///
    /// Errors: folder, where somebody else could put a socket in its place; disk.
    pub(crate) fn open(work: Work) -> Result<Self, Trouble> {
        let place = work.place.clone();
        let shown = place.socket.display();
        let cannot = |error: &std::io::Error| {
            Trouble::new(
                Cause::Disk,
                format!("the agent cannot listen at {shown}: {error}"),
            )
        };
        place.make(provost_words::durable::folder_of(&place.socket))?;
        // Under another name until it is whole, so that no hook finds one that nobody may open.
        let draft = place.socket.with_extension("new");
        let _ = fs::remove_file(&draft);
        let listener = UnixListener::bind(&draft).map_err(|error| cannot(&error))?;
        let mode = if place.is_everybodys { 0o666 } else { 0o600 };
        fs::set_permissions(&draft, Permissions::from_mode(mode))
            .and_then(|()| listener.set_nonblocking(true))
            .and_then(|()| fs::rename(&draft, &place.socket))
            .map_err(|error| cannot(&error))?;
        let (wake, woken) = UnixStream::pair().map_err(|error| cannot(&error))?;
        let socket = place.socket.clone();
        let counter = Counter {
            work,
            line: Line::default(),
            calls: BTreeMap::new(),
            filled: BTreeMap::new(),
            host: machine::host_name(),
        };
        let thread = std::thread::Builder::new()
            .name("desk".to_owned())
            .spawn(move || counter.run(&listener, &woken))
            .map_err(|error| cannot(&error))?;
        Ok(Self {
            wake,
            thread: Some(thread),
            socket,
        })
    }
}

impl Drop for Desk {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.socket);
        let _ = self.wake.shutdown(std::net::Shutdown::Both);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// One connection.
struct Call {
    stream: UnixStream,
    account: u32,
    until: Duration,
    read: Vec<u8>,
    /// The head, and where it ends.
    asked: Option<(Asked, usize)>,
    /// What is to be written, and how much of it was.
    answer: Option<(Vec<u8>, usize)>,
}

/// What becomes of a connection.
#[derive(PartialEq)]
enum Next {
    Stays,
    Ends,
}

struct Counter {
    work: Work,
    line: Line,
    calls: BTreeMap<u64, Call>,
    /// By account, the bytes of the log that it filled.
    filled: BTreeMap<u32, u64>,
    host: Option<String>,
}

impl Counter {
    fn run(mut self, listener: &UnixListener, woken: &UnixStream) {
        let mut settles: Option<Duration> = None;
        loop {
            let now = self.work.clock.since_boot();
            if !self.wait(listener, woken, settles, now) {
                self.settle();
                return;
            }
            self.accept(listener);
            let ids: Vec<u64> = self.calls.keys().copied().collect();
            for id in ids {
                if self.transfer(id) == Next::Ends {
                    self.hang_up(id);
                }
            }
            let ready: Vec<u64> = self
                .calls
                .iter()
                .filter(|(_, call)| call.is_whole())
                .map(|(id, _)| *id)
                .collect();
            for id in self.line.turn(&ready) {
                self.serve(id);
                if self.transfer(id) == Next::Ends {
                    self.hang_up(id);
                }
            }
            let now = self.work.clock.since_boot();
            let late: Vec<u64> = self
                .calls
                .iter()
                .filter(|(_, call)| call.until <= now)
                .map(|(id, _)| *id)
                .collect();
            for id in late {
                self.hang_up(id);
            }
            let has_counts = lock(&self.work.log).has_counts();
            settles = match settles {
                Some(at) if at <= now => {
                    self.settle();
                    None
                }
                None if has_counts => Some(now + SETTLE),
                before => before.filter(|_| has_counts),
            };
        }
    }

    /// Waits until there is something to do; false when the desk is to close.
    fn wait(
        &self,
        listener: &UnixListener,
        woken: &UnixStream,
        settles: Option<Duration>,
        now: Duration,
    ) -> bool {
        let is_ready = self.calls.values().any(Call::is_whole);
        let ends = self.calls.values().map(|call| call.until).chain(settles).min();
        let wait = if is_ready {
            Some(Duration::ZERO)
        } else {
            ends.map(|until| until.saturating_sub(now))
        };
        let wait = wait.map(|wait| Timespec {
            tv_sec: i64::try_from(wait.as_secs()).unwrap_or(i64::MAX),
            tv_nsec: wait.subsec_nanos().into(),
        });
        let mut all = vec![
            PollFd::from_borrowed_fd(woken.as_fd(), PollFlags::IN),
            PollFd::from_borrowed_fd(listener.as_fd(), PollFlags::IN),
        ];
        for call in self.calls.values() {
            let wants = if call.answer.is_some() {
                PollFlags::OUT
            } else if call.is_whole() {
                continue;
            } else {
                PollFlags::IN
            };
            all.push(PollFd::from_borrowed_fd(call.stream.as_fd(), wants));
        }
        if let Err(error) = poll(&mut all, wait.as_ref())
            && error != rustix::io::Errno::INTR
        {
            // Without it there would be no end of looking.
            std::thread::sleep(Duration::from_millis(50));
        }
        all[0].revents().is_empty()
    }

    fn accept(&mut self, listener: &UnixListener) {
        for _ in 0..MOST_ACCEPTED {
            let stream = match listener.accept() {
                Ok((stream, _)) => stream,
                Err(error) if error.kind() == ErrorKind::WouldBlock => return,
                Err(_) => {
                    // No descriptors are left, or whoever came has gone.
                    std::thread::sleep(Duration::from_millis(5));
                    return;
                }
            };
            let Some((account, process)) = peer(&stream) else {
                continue;
            };
            // A person's agent answers that person.
            if !self.work.place.is_everybodys && account != self.work.place.owner {
                continue;
            }
            if stream.set_nonblocking(true).is_err() {
                continue;
            }
            let (id, leaves) = self.line.admit(account, process);
            if let Some(leaves) = leaves {
                self.calls.remove(&leaves);
            }
            let call = Call {
                stream,
                account,
                until: self.work.clock.since_boot() + PATIENCE,
                read: Vec::new(),
                asked: None,
                answer: None,
            };
            self.calls.insert(id, call);
        }
    }

    fn hang_up(&mut self, id: u64) {
        self.calls.remove(&id);
        self.line.leave(id);
    }

    /// Reads what is there, or writes what fits.
    fn transfer(&mut self, id: u64) -> Next {
        let Some(call) = self.calls.get_mut(&id) else {
            return Next::Ends;
        };
        if let Some((bytes, done)) = &mut call.answer {
            while *done < bytes.len() {
                match call.stream.write(&bytes[*done..]) {
                    Ok(0) => return Next::Ends,
                    Ok(written) => *done += written,
                    Err(error) if error.kind() == ErrorKind::WouldBlock => return Next::Stays,
                    Err(error) if error.kind() == ErrorKind::Interrupted => {}
                    Err(_) => return Next::Ends,
                }
            }
            return Next::Ends;
        }
        let mut room = MOST_READ;
        while room > 0 && !call.is_whole() {
            // No more than was announced is ever kept.
            let wanted = match &call.asked {
                None => 128,
                Some((asked, end)) => end + asked.length - call.read.len(),
            };
            let mut part = vec![0; wanted.min(room).min(16 << 10)];
            match call.stream.read(&mut part) {
                Ok(0) => return Next::Ends,
                Ok(read) => {
                    call.read.extend_from_slice(&part[..read]);
                    room -= read;
                }
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Next::Stays,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(_) => return Next::Ends,
            }
            if call.asked.is_none() {
                match Asked::read(&call.read) {
                    Err(_) => return Next::Ends,
                    Ok(None) => {}
                    Ok(Some((asked, end))) => {
                        if call.read.len() > end + asked.length {
                            return Next::Ends;
                        }
                        call.asked = Some((asked, end));
                        for leaves in self.line.bring(id, asked.length) {
                            self.calls.remove(&leaves);
                        }
                        return if self.calls.contains_key(&id) {
                            self.transfer(id)
                        } else {
                            Next::Ends
                        };
                    }
                }
            }
        }
        Next::Stays
    }

    fn serve(&mut self, id: u64) {
        let Some(call) = self.calls.get(&id) else { return };
        let Some((asked, end)) = call.asked else { return };
        let payload = &call.read[end..];
        let account = call.account;
        let mut filled = self.filled.get(&account).copied().unwrap_or_default();
        let told = catch_unwind(AssertUnwindSafe(|| {
            self.told(asked, payload, account, &mut filled)
        }));
        let told = told.unwrap_or_else(|_| {
            let mut told = self.greeting();
            told.why = Some("the agent broke at this event".to_owned());
            told
        });
        if lock(&self.work.log).bytes() < LOG_IS_EMPTY {
            self.filled.clear();
        } else if filled > 0 {
            self.filled.insert(account, filled);
        }
        let json = serde_json::to_vec(&told).unwrap_or_default();
        let until = self.work.clock.since_boot() + PATIENCE;
        if let Some(call) = self.calls.get_mut(&id) {
            call.read = Vec::new();
            call.until = until;
            call.answer = Some((reply(&json), 0));
        }
    }

    /// Notes that a conversation of an account asked, and by a registration of which mode.
    fn note(&self, asked: Asked, payload: &[u8], account: u32) {
        let now = self.work.clock.now();
        // Somebody is there, whatever they ask.
        self.work.fired.heard_of(account, now);
        // What somebody tries by hand shows that the hook answers, and not that a client starts it.
        if asked.intent != Intent::Judge || asked.by_hand {
            return;
        }
        let fired = &self.work.fired;
        if asked.preloaded {
            fired.preloaded(asked.client, now);
        }
        if let Some(of) = session_of(payload) {
            fired.note(account, asked.client, asked.mode, &of.session, now);
            fired.keeps(account, asked.client, &of, now);
        }
    }

    fn greeting(&self) -> Told {
        lock(&self.work.standing).told((&self.work.server, &self.work.organization))
    }

    /// Returns what a hook is told.
    fn told(&self, asked: Asked, payload: &[u8], account: u32, filled: &mut u64) -> Told {
        let standing = lock(&self.work.standing).by(&*self.work.clock);
        let mut told = standing.told((&self.work.server, &self.work.organization));
        // Whatever becomes of it, the hook was started: that is what is noted.
        self.note(asked, payload, account);
        let registered = match self.work.registrar.registered() {
            Ok(registered) => registered,
            Err(why) => {
                told.why = Some(why);
                return told;
            }
        };
        if registered.url != self.work.server || registered.organization != self.work.organization {
            told.why = Some("the hook asks another server or organization than this agent".to_owned());
            return told;
        }
        if standing.quarantine == Some(Quarantine::Block) {
            // Whatever it still has to judge by.
            told.why = Some(Quarantine::Block.says().to_owned());
            return told;
        }
        let Some(bench) = &standing.bench else {
            told.why = Some("the agent has no policies".to_owned());
            return told;
        };
        let word = match registered.word {
            Word::Named(word) => Some(word),
            Word::OfAccount => self.work.registrar.account(account),
            Word::Unsaid => None,
        };
        let mode = match (asked.mode, standing.mode) {
            (Mode::Enforce, _) | (_, Some(provost_bundle::HookMode::Enforce)) => Mode::Enforce,
            (Mode::Monitor, _) => Mode::Monitor,
        };
        let now = self.work.clock.now().plus_ms(standing.skew_ms);
        let server_of = |question: &Question| {
            let home = self.work.registrar.home(account);
            let conversation = session_of(payload);
            let by = (account, home.as_deref());
            self.work
                .servers
                .of(by, question, conversation.as_ref(), &*self.work.clock)
        };
        let here = Here {
            host: self.host.as_deref(),
            server_of: &server_of,
        };
        let said = bench.say(asked.client, payload, word.as_deref(), mode, here, now);
        told.judges = said.request.is_some();
        told.mcp_server.clone_from(&said.server);
        let question = Kept {
            asked,
            mode,
            now,
            bench,
            word: word.as_deref().unwrap_or_default(),
            said: &said,
        };
        // What only looks on refuses nothing.
        let bypass = match (asked.intent, mode) {
            // It is of the device's people: of nobody it lets nothing pass.
            (Intent::Judge, Mode::Enforce) if word.is_some() => {
                standing.bypass(asked.client, &*self.work.clock)
            }
            (Intent::Judge | Intent::Hold, _) => None,
        };
        if let Some(bypass) = bypass
            && self.passed(&question, bypass, &mut told, filled)
        {
            return told;
        }
        match asked.intent {
            Intent::Judge => self.judged(&question, &mut told, filled),
            Intent::Hold => self.held(&question, &mut told, filled),
        }
        told
    }

    /// Lets a call pass by a bypass that would not pass by itself, once it is recorded what the policies say of it; says whether it did. What
    /// cannot be recorded is judged as without one.
    ///
    /// Keeps LJ-15.
    fn passed(&self, question: &Kept<'_>, bypass: ToldBypass, told: &mut Told, filled: &mut u64) -> bool {
        let Some(verdicts) = question.said.stopped() else {
            return false;
        };
        let by = Basis::Bypass(&bypass.id);
        if self.record(question, verdicts, by, filled).is_err() {
            return false;
        }
        told.decided = Some(spoken(verdicts));
        told.bypass = Some(bypass);
        true
    }

    fn judged(&self, question: &Kept<'_>, told: &mut Told, filled: &mut u64) {
        let said = question.said;
        told.why = said.why.map(str::to_owned);
        if let Some(decided) = &said.decided {
            let is_counted = question.bench.judge().bundle().record == Recording::Counted;
            let kept = if is_counted && said.is_plain() && !said.is_expired {
                self.count(question.sort(), filled)
            } else {
                let basis = match (said.is_expired, said.is_certain) {
                    (true, _) => Basis::Expired,
                    (false, true) => Basis::Judged,
                    // It is held to, and not what the server would say of the event alone.
                    (false, false) => Basis::Unanswered,
                };
                self.record(question, decided, basis, filled)
            };
            match kept {
                Ok(()) => {
                    told.decided = Some(spoken(decided));
                    return;
                }
                Err(trouble) => told.why = Some(format!("the agent cannot record it: {}", trouble.line)),
            }
        }
        let held = said.decided.as_ref().or(said.held.as_ref());
        told.holds = held.is_some();
        if said.is_expired && held.is_none() {
            told.on_unknown = Some(question.bench.judge().bundle().hooks.on_unknown);
        }
        told.may_use_approval = held.is_none_or(|held| strongest(held) >= Action::RequireApproval);
    }

    /// The server was asked, and gave no answer.
    fn held(&self, question: &Kept<'_>, told: &mut Told, filled: &mut u64) {
        let said = question.said;
        told.why = said.why.map(str::to_owned);
        let Some(held) = said.decided.as_ref().or(said.held.as_ref()) else {
            return;
        };
        let basis = if said.is_expired {
            Basis::Expired
        } else {
            Basis::Unanswered
        };
        match self.record(question, held, basis, filled) {
            Ok(()) => told.decided = Some(spoken(held)),
            // What is refused stays refused; nothing passes that nobody hears of.
            Err(_) if strongest(held) >= Action::RequireApproval => told.decided = Some(spoken(held)),
            Err(trouble) => told.why = Some(format!("the agent cannot record it: {}", trouble.line)),
        }
    }

    fn record(
        &self,
        question: &Kept<'_>,
        verdicts: &[Arc<provost_bundle::Verdict>],
        basis: Basis<'_>,
        filled: &mut u64,
    ) -> Result<(), Trouble> {
        let entries = question.entries(verdicts, basis)?;
        let size: usize = entries.iter().map(String::len).sum();
        if *filled + size as u64 > MOST_OF_LOG {
            let line = "this account has filled its share of the log";
            return Err(Trouble::new(Cause::Disk, line));
        }
        *filled += size as u64;
        lock(&self.work.log).append(&entries, strongest(verdicts) >= Action::RequireApproval)
    }

    /// Counts what is plain. A sort that is new will be a line of the log, and is of its account's share.
    fn count(&self, sort: Sort, filled: &mut u64) -> Result<(), Trouble> {
        let mut log = lock(&self.work.log);
        if !log.counts_already(&sort) {
            let size = sort.size();
            if *filled + size > MOST_OF_LOG {
                let line = "this account has filled its share of the log";
                return Err(Trouble::new(Cause::Disk, line));
            }
            *filled += size;
        }
        log.count(sort)
    }

    fn settle(&self) {
        // What cannot be written now is tried with the next count, which is asked about until it can.
        let _ = lock(&self.work.log).settle();
    }
}

/// How the agent came to what it did.
#[derive(Clone, Copy)]
enum Basis<'a> {
    Judged,
    Unanswered,
    Expired,
    /// A bypass let it pass, by its id.
    Bypass(&'a str),
}

impl<'a> Basis<'a> {
    /// Returns its word in the log, and the bypass.
    const fn said(self) -> (&'static str, Option<&'a str>) {
        match self {
            Self::Judged => ("judged", None),
            Self::Unanswered => ("unanswered", None),
            Self::Expired => ("expired", None),
            Self::Bypass(id) => ("bypass", Some(id)),
        }
    }
}

/// A question, and what was said of it.
struct Kept<'a> {
    asked: Asked,
    mode: Mode,
    now: Timestamp,
    bench: &'a Bench,
    word: &'a str,
    said: &'a Said,
}

impl Kept<'_> {
    fn events(&self) -> &[Value] {
        let events = self
            .said
            .request
            .as_ref()
            .and_then(|request| request["events"].as_array());
        events.map_or(&[], Vec::as_slice)
    }

    fn sort(&self) -> Sort {
        let tool = self
            .events()
            .iter()
            .find_map(|event| event["attributes"]["tool.id"].as_str());
        let minute = Timestamp::from_ms(self.now.as_ms().div_euclid(60_000) * 60_000);
        Sort {
            user: self.word.to_owned(),
            client: self.asked.client.word(),
            tool: tool.unwrap_or_default().to_owned(),
            minute: minute.to_rfc3339(),
        }
    }

    /// Returns the entries of the log, one for each event, without what this machine does not tell: what is judged wholly is written to no
    /// disk.
    ///
    /// Keeps LJ-14.
    ///
    /// Errors: disk, where an event cannot be read again.
    fn entries(
        &self,
        verdicts: &[Arc<provost_bundle::Verdict>],
        basis: Basis<'_>,
    ) -> Result<Vec<String>, Trouble> {
        let (basis, bypass) = basis.said();
        // What a bypass lets pass was only looked at.
        let mode = if bypass.is_some() {
            Mode::Monitor
        } else {
            self.mode
        };
        let judge = self.bench.judge();
        let version = &judge.bundle().policy_set_version.id;
        let events = self.events().iter().zip(verdicts);
        events
            .map(|(event, verdict)| {
                let mut told = AskedEvent::of(event)
                    .map_err(|why| Trouble::new(Cause::Disk, format!("an event cannot be written: {why}")))?;
                let is_whole = judge.withhold(&mut told);
                let mut entry = json!({
                    "kind": "event", "at": self.now.to_rfc3339(), "occasion": event["occasion"], "attributes": told.attributes,
                    "missing": told.missing, "basis": basis, "whole": is_whole,
                    "decision": {
                        "action": verdict.action().word(), "mode": mode.word(), "policyIds": verdict.policy_ids(),
                        "policySetVersion": version,
                    },
                });
                if let Some(bypass) = bypass {
                    entry["bypass"] = bypass.into();
                }
                for member in ["session", "callId"] {
                    if let Some(value) = event.get(member) {
                        entry[member] = value.clone();
                    }
                }
                Ok(entry.to_string())
            })
            .collect()
    }
}

impl Call {
    /// Says whether the question is there wholly and was not answered.
    fn is_whole(&self) -> bool {
        let asked = self.asked.as_ref();
        self.answer.is_none() && asked.is_some_and(|(asked, end)| self.read.len() == end + asked.length)
    }
}

/// Returns what was locked; a thread that broke leaves nothing half done here.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Returns the account and the process at the other end, as the kernel noted them when they connected.
#[cfg(target_os = "linux")]
pub(crate) fn peer(stream: &UnixStream) -> Option<(u32, i32)> {
    let peer = rustix::net::sockopt::socket_peercred(stream).ok()?;
    Some((peer.uid.as_raw(), peer.pid.as_raw_nonzero().get()))
}

/// Nobody is believed where the kernel cannot be asked by safe code.
#[cfg(not(target_os = "linux"))]
pub(crate) fn peer(_: &UnixStream) -> Option<(u32, i32)> {
    None
}
