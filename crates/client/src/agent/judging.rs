//! What this machine judges by, kept equal to the server's, and the desk at which hooks ask.
//!
//! ```text
//! heartbeat ──► policy-bundle, unless it is the one that is known ──► signed, for this device, no older ──► its disk ──► the desk
//!           └─► what was judged ──► decisions
//!           └─► held apart, or free again ──► the mark that hooks look at (LJ-13)
//! not declared, refused, retired, quarantined, given up ──► the bundle goes; the organization's mode stays known
//! ```
//!
//! Keeps LJ-2, LJ-5, LJ-13 and LJ-14.

use super::asked::{Device, KNOWN_KEYS, disk, of_failure};
use crate::cli::{Failure, Terminal, TrustedKeys};
use crate::hook::{registered, registration};
use clap::{Arg, ArgAction, ArgMatches};
use provost_agent::coverage::SharedFired;
use provost_agent::desk::{
    Bench, Desk, KeptMode, LastLook, Latest, Place, Registered, Registrar, SharedLog, SharedStanding,
    ToldBypass, account_of, backlog, floor, home_of, is_behind, keep_bundle, keep_latest, keep_look,
    kept_bundle, last_look, latest, take_bundle_away,
};
use provost_agent::{
    Agent, Cause, Finding, Folder, KeptQuarantine, Mode, Quarantine, QuarantineWord, State, Station, Telling,
    Trouble, Visit, Visited, has_waiting_decisions, keep_quarantine, kept_quarantine,
};
use provost_bundle::{Addressee, HookMode, Judge, PolicyBundle, Recording, read};
use provost_hooks::Client;
use provost_words::dsse::SignedKind;
use provost_words::time::{Clock, SystemClock, Timestamp};
use rustix::process::geteuid;
use serde_json::{Value, json};
use std::cell::{Cell, RefCell};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// LIMIT: bytes of an envelope: 3 MiB in base64, with what stands around them.
const MOST_ENVELOPE: usize = 5 << 20;
/// LIMIT: how long a bundle judges for which the server gives no answer, while it takes heartbeats; ours.
const LONGEST_SILENCE: Duration = Duration::from_hours(1);
/// How often it was asked for by then at least: a machine that slept has not asked.
const MOST_LOOKS: u32 = 6;
/// What the last look found where the settings of the organization have no device judge.
const OFF: &str =
    "judging is off in the settings of the organization (fleet.hooks.judging): hooks ask the server";
/// What it found where the server has no bundle and does not say why: one of before there were any.
const NONE: &str = "the server has no bundle for this device";
/// The state by which a server says that judging is off.
const IS_OFF: &str = "judging_off";
/// How judging is switched on.
const SWITCH_ON: &str = "an admin switches it on (provost settings set --fleet-hooks-judging on --confirm --reason WHY); or run the agent without --judge";
/// The file of the machine's accounts.
const ACCOUNTS: &str = "/etc/passwd";

/// Whether an agent judges.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Use {
    /// It was declared.
    On,
    /// It was not: what an earlier agent judged by goes.
    Off,
    /// A command that is no agent's: it neither judges nor changes by what another one does.
    Apart,
}

impl Use {
    /// Returns what a command line declares.
    pub fn declared(matches: &ArgMatches) -> Self {
        if matches.get_flag("judge") {
            Self::On
        } else {
            Self::Off
        }
    }
}

/// Returns the flag that declares it.
pub fn arg() -> Arg {
    Arg::new("judge")
        .long("judge")
        .action(ArgAction::SetTrue)
        .help("Judges for the hooks of this machine by the organization's signed policies")
}

/// What judges on this machine.
pub struct Judging {
    judges: Use,
    /// Where hooks look for the agent; none where there is no home.
    place: Option<Place>,
    registrar: Option<HooksFile>,
    standing: SharedStanding,
    /// Which conversations asked.
    fired: SharedFired,
    log: RefCell<Option<SharedLog>>,
    desk: RefCell<Option<Desk>>,
    /// The tag of the bundle that is known.
    tag: RefCell<Option<String>>,
    clock: Box<dyn Clock>,
    /// Since when the bundle alone is not answered, and how often it was asked for.
    silence: RefCell<Option<Silence>>,
    /// Whether it was said that judging is off.
    said_off: Cell<bool>,
}

/// What a look for the bundle came to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Looked {
    /// There is one.
    Is,
    /// There is none.
    IsNone,
    /// There is none, because the settings have no device judge.
    IsOff,
}

impl Looked {
    /// Returns what is wrong.
    const fn problem(self) -> Option<&'static str> {
        match self {
            Self::Is => None,
            Self::IsNone => Some(NONE),
            Self::IsOff => Some(OFF),
        }
    }
}

/// How long the server takes heartbeats and answers nothing about the bundle.
#[derive(Clone, Copy, Debug)]
struct Silence {
    /// By a clock that nobody can set.
    since: Duration,
    looks: u32,
}

/// The registration of the hooks for which an agent judges.
struct HooksFile {
    path: PathBuf,
    top: PathBuf,
    owner: u32,
    /// The home of the owner, where the machine's list of accounts has none: a directory may have them.
    home: Option<PathBuf>,
}

impl Registrar for HooksFile {
    fn registered(&self) -> Result<Registered, String> {
        registered(&self.path, &self.top, self.owner)
    }

    fn account(&self, uid: u32) -> Option<String> {
        account_of(uid, Path::new(ACCOUNTS))
    }

    fn home(&self, uid: u32) -> Option<PathBuf> {
        let own = || self.home.clone().filter(|_| uid == self.owner);
        home_of(uid, Path::new(ACCOUNTS)).or_else(own)
    }
}

/// Returns where hooks look for an agent: that of the machine at one place for ever, that of a person beside their `hook.toml`.
pub fn place(mode: Mode, terminal: &Terminal) -> Option<Place> {
    match mode {
        Mode::System => Some(Place::of_machine(Path::new("/"), 0)),
        Mode::User => {
            let file = registration(terminal)?;
            Some(Place::of_person(file.parent()?, geteuid().as_raw()))
        }
    }
}

fn hooks_file(mode: Mode, terminal: &Terminal) -> Option<HooksFile> {
    match mode {
        Mode::System => Some(HooksFile {
            path: crate::hook::OF_THE_MACHINE.into(),
            top: "/".into(),
            owner: 0,
            home: None,
        }),
        Mode::User => {
            let path = registration(terminal)?;
            Some(HooksFile {
                top: path.parent()?.parent()?.to_owned(),
                path,
                owner: geteuid().as_raw(),
                home: super::places::home(terminal).ok(),
            })
        }
    }
}

impl Judging {
    /// Returns what judges for an agent.
    pub fn new(mode: Mode, judges: Use, terminal: &Terminal) -> Self {
        let registrar = hooks_file(mode, terminal);
        let clock = Box::new(SystemClock::new());
        Self::at(place(mode, terminal), registrar, judges, clock)
    }

    /// Returns one at a place of a machine below another root, with an owner that stands for root.
    #[cfg(test)]
    pub(super) fn below(root: &Path, owner: u32, clock: Box<dyn Clock>) -> Self {
        let hooks = HooksFile {
            path: root.join(crate::hook::OF_THE_MACHINE.trim_start_matches('/')),
            top: root.to_owned(),
            owner,
            home: None,
        };
        Self::at(Some(Place::of_machine(root, owner)), Some(hooks), Use::On, clock)
    }

    fn at(place: Option<Place>, registrar: Option<HooksFile>, judges: Use, clock: Box<dyn Clock>) -> Self {
        Self {
            judges,
            place,
            registrar,
            standing: SharedStanding::default(),
            fired: SharedFired::default(),
            log: RefCell::default(),
            desk: RefCell::default(),
            tag: RefCell::default(),
            clock,
            silence: RefCell::default(),
            said_off: Cell::default(),
        }
    }

    /// Returns which conversations asked the desk.
    pub fn fired(&self) -> &SharedFired {
        &self.fired
    }

    /// Says whether it belongs to a command that is no agent's.
    pub fn is_apart(&self) -> bool {
        self.judges == Use::Apart
    }

    /// Says whether hooks of this machine ask here: the desk is open, and what registers them names this agent's server.
    pub fn hears(&self, agent: &Agent) -> bool {
        let registered = self.registrar.as_ref().map(Registrar::registered);
        let is_ours = registered.is_some_and(|found| found.is_ok_and(|found| is_of(&found, agent)));
        self.desk.borrow().is_some() && is_ours
    }

    /// Returns the bypass by which calls of a client pass now.
    pub fn bypass(&self, client: Client) -> Option<ToldBypass> {
        self.standing.now().bypass(client, &*self.clock)
    }

    /// Returns the bundle by which this machine judges, as the server is told of it; `None` where there is none.
    pub fn held(&self) -> Option<Value> {
        let bench = self.standing.now().bench?;
        let bundle = bench.judge().bundle();
        let mut held = json!({
            "storeEpoch": bundle.store_epoch, "sequence": bundle.sequence, "policySetVersion": bundle.policy_set_version.id,
            "issuedAt": bundle.issued_at, "notAfter": bundle.not_after,
        });
        if let Some(tag) = &*self.tag.borrow() {
            held["name"] = tag.trim_matches('"').into();
        }
        Some(held)
    }

    /// Takes the bundle away, and closes the desk: the server no longer takes this device. Its organization denies nothing here any more.
    ///
    /// Errors: disk.
    pub fn retire(&self, agent: &Agent) -> Result<(), Trouble> {
        self.desk.take();
        let known = self.know_no_denials(agent);
        self.forget(agent).and(known)
    }

    /// Takes the word of a heartbeat about a quarantine. An agent that does not judge makes no mark, and takes back what an earlier one
    /// made when the server says so.
    ///
    /// Keeps LJ-13.
    fn hear(&self, visit: &Visit<'_>) -> Result<(), Trouble> {
        match visit.quarantine {
            QuarantineWord::Free => self.free(visit.agent),
            QuarantineWord::Held(quarantine, mode) if self.judges == Use::On => {
                // The bundle would say it, and a machine that is held apart gets none. It makes nothing weaker: that is signed, or not said.
                let raised = match mode {
                    Some(HookMode::Enforce) => {
                        let denies = |place: &Place| place.knows_denials(Some(of(visit.agent)));
                        let denies = self.place.as_ref().is_some_and(denies);
                        self.know_mode(visit.agent, HookMode::Enforce, denies)
                    }
                    Some(HookMode::Monitor) | None => Ok(()),
                };
                self.hold(visit.agent, quarantine).and(raised)
            }
            QuarantineWord::Unsaid | QuarantineWord::Held(..) => Ok(()),
        }
    }

    fn hold(&self, agent: &Agent, quarantine: Quarantine) -> Result<(), Trouble> {
        // First of all where the desk looks: no disk is in its way.
        self.standing
            .change(|standing| standing.quarantine = Some(quarantine));
        let kept = KeptQuarantine {
            server: agent.device.server.clone(),
            organization: agent.device.organization.clone(),
            quarantine,
        };
        let marked = self
            .place
            .as_ref()
            .map_or(Ok(()), |place| place.keep_quarantine(&kept));
        let noted = keep_quarantine(&agent.folder, Some(&kept));
        // It learns nothing more of policies and people, and what it has is not judged by.
        let taken = match quarantine {
            Quarantine::Block => self.forget(agent),
            Quarantine::Monitor => Ok(()),
        };
        marked.and(noted).and(taken)
    }

    fn free(&self, agent: &Agent) -> Result<(), Trouble> {
        keep_quarantine(&agent.folder, None)?;
        // A unit that may not write there is asked for nothing where nothing is.
        if let Some(place) = self
            .place
            .as_ref()
            .filter(|place| place.quarantine(None).is_some())
        {
            place.remove_quarantine()?;
            if self.judges == Use::Off {
                // What stayed there as long as the mark did.
                place.clear()?;
            }
        }
        self.standing.change(|standing| standing.quarantine = None);
        Ok(())
    }

    /// Takes up how the machine was held apart when the agent was there last: what is stricter of the mark and of the agent's own note,
    /// until a heartbeat says more.
    fn take_up_quarantine(&self, agent: &Agent, say: &dyn Fn(&str)) {
        let noted = kept_quarantine(&agent.folder, of(agent)).unwrap_or_else(|trouble| {
            say(&format!("warning: {trouble}"));
            Some(Quarantine::Block)
        });
        let marked = self
            .place
            .as_ref()
            .and_then(|place| place.quarantine(Some(of(agent))));
        let Some(quarantine) = noted.max(marked) else {
            return;
        };
        say(quarantine.says());
        // A mark that was lost is made again before a hook asks; where it cannot be, the desk says it.
        if let Err(trouble) = self.hold(agent, quarantine) {
            say(&format!("warning: {trouble}"));
        }
    }

    /// Takes the bundle away; the desk stays, and has hooks ask the server.
    fn forget(&self, agent: &Agent) -> Result<(), Trouble> {
        self.standing.change(|standing| standing.bench = None);
        self.tag.take();
        take_bundle_away(&agent.folder)
    }

    /// Notes the present, so that a clock that is set back afterwards makes no bundle young. What an answer of this round said of it
    /// counts, also where somebody had set this clock ahead; this clock alone makes nothing earlier.
    fn note_time(&self, agent: &Agent, heard: Option<Timestamp>) -> Result<(), Trouble> {
        let standing = self.standing.now();
        let now = self.clock.now().plus_ms(standing.skew_ms);
        let least = standing.latest.map(|latest| latest.least(&*self.clock));
        let at = heard.unwrap_or_else(|| least.map_or(now, |least| now.max(least)));
        let latest = Some(Latest::new(at, &*self.clock));
        self.standing.change(|standing| standing.latest = latest);
        keep_latest(&agent.folder, at)
    }

    /// Counts a look to which nobody answered while heartbeats are taken, and says whether that is so for long.
    fn is_silent_for_long(&self) -> bool {
        let now = self.clock.since_boot();
        let mut silence = self.silence.borrow_mut();
        let silence = silence.get_or_insert(Silence { since: now, looks: 0 });
        silence.looks = silence.looks.saturating_add(1);
        silence.looks >= MOST_LOOKS && now.saturating_sub(silence.since) >= LONGEST_SILENCE
    }

    /// Judges by a bundle from now on.
    fn judge_by(&self, agent: &Agent, judge: Judge) -> Result<(), Trouble> {
        let bundle = judge.bundle();
        let mode = bundle.mode;
        let denies = !bundle.servers.is_empty() || bundle.servers_withheld;
        let bench = std::sync::Arc::new(Bench::new(judge));
        self.standing.change(|standing| standing.bench = Some(bench));
        self.know_mode(agent, mode, denies)
    }

    /// Takes the organization's mode for the one that counts here, and whether servers are denied for what hooks know without the agent.
    fn know_mode(&self, agent: &Agent, mode: HookMode, denies: bool) -> Result<(), Trouble> {
        self.standing.change(|standing| standing.mode = Some(mode));
        let kept = KeptMode {
            server: agent.device.server.clone(),
            organization: agent.device.organization.clone(),
            mode,
            denies,
        };
        self.place.as_ref().map_or(Ok(()), |place| place.keep_mode(&kept))
    }

    /// Takes back what hooks know of servers that are denied; the mode stays.
    fn know_no_denials(&self, agent: &Agent) -> Result<(), Trouble> {
        let known = self.place.as_ref().and_then(|place| {
            let mode = place.known_mode(Some(of(agent)))?;
            place.knows_denials(Some(of(agent))).then_some(mode)
        });
        known.map_or(Ok(()), |mode| self.know_mode(agent, mode, false))
    }

    /// Takes away what an earlier agent judged by; what it judged still goes to the server.
    fn clear_all(&self, agent: &Agent, say: &dyn Fn(&str)) -> Result<(), Trouble> {
        self.retire(agent)?;
        if last_look(&agent.folder)? != LastLook::default() {
            keep_look(&agent.folder, &LastLook::default())?;
        }
        if let Some(Err(trouble)) = self.place.as_ref().map(Place::clear) {
            // A unit that does not judge may not write there. What is left makes hooks refuse more, never less.
            say(&format!("warning: {trouble}; remove it by hand"));
        }
        Ok(())
    }

    async fn work(&self, visit: &Visit<'_>) -> Result<(), Trouble> {
        let heard = match self.judges {
            Use::On | Use::Off => self.hear(visit),
            Use::Apart => Ok(()),
        };
        if self.judges != Use::On {
            // A unit that does not judge may not write there.
            if let Err(trouble) = heard {
                (visit.say)(&format!("warning: {trouble}; remove it by hand"));
            }
            return self.upload(visit).await;
        }
        let skew_ms = visit.skew_ms();
        self.standing.change(|standing| standing.skew_ms = skew_ms);
        let noted = self.note_time(visit.agent, visit.heard());
        let looked = self.look(visit).await;
        if let Err(trouble) = &looked
            && trouble.cause == Cause::Gone
        {
            return looked.map(drop);
        }
        // Once, until it is on: whoever declared that this agent judges reads why it does not.
        let is_off = matches!(looked, Ok(Looked::IsOff));
        if is_off && !self.said_off.get() {
            (visit.say)(&format!("warning: {OFF}; {SWITCH_ON}"));
        }
        if looked.is_ok() {
            self.said_off.set(is_off);
        }
        let folder = &visit.agent.folder;
        let look = match &looked {
            Ok(found) => LastLook {
                asked_at: Some(visit.clock.now()),
                problem: found.problem().map(str::to_owned),
            },
            Err(trouble) => LastLook {
                problem: Some(trouble.line.clone()),
                ..last_look(folder)?
            },
        };
        let kept = keep_look(folder, &look);
        let sent = self.upload(visit).await;
        heard.and(looked.map(drop)).and(sent).and(kept).and(noted)
    }

    /// Fetches the bundle, and says whether the server has any. The one of before goes on only where the server confirms it or gives no
    /// answer, and an hour at most where it takes heartbeats and gives none to this: whoever asks it about calls is answered then.
    async fn look(&self, visit: &Visit<'_>) -> Result<Looked, Trouble> {
        let looked = self.fetch(visit).await;
        let is_refused = match &looked {
            Ok(found) => *found != Looked::Is,
            Err(trouble) if trouble.is_unanswered() => self.is_silent_for_long(),
            Err(_) => true,
        };
        if !matches!(&looked, Err(trouble) if trouble.is_unanswered()) {
            self.silence.take();
        }
        if is_refused {
            self.forget(visit.agent)?;
        }
        if matches!(looked, Ok(Looked::IsOff)) {
            // Nothing is judged here any more, by the server's own word: whatever is refused for want of the agent's policies would be for ever.
            self.know_no_denials(visit.agent)?;
        }
        looked
    }

    async fn fetch(&self, visit: &Visit<'_>) -> Result<Looked, Trouble> {
        let known = self.tag.borrow().clone();
        let answer = match visit.bytes_unless("policy-bundle", known.as_deref()).await {
            Err(trouble) if matches!(trouble.cause, Cause::Refused(404 | 405)) => {
                let is_off = trouble.status.as_deref() == Some(IS_OFF);
                return Ok(if is_off { Looked::IsOff } else { Looked::IsNone });
            }
            Err(trouble) => {
                // Held apart, whatever the status: what it was trusted to judge by is taken back.
                if trouble.status.as_deref() == Some("quarantined") {
                    self.forget(visit.agent)?;
                }
                return Err(trouble);
            }
            Ok(answer) => answer,
        };
        let Some((bytes, tag)) = answer else {
            return Ok(Looked::Is);
        };
        let judge = self.opened(visit, &bytes).await?;
        let kept = keep_bundle(&visit.agent.folder, &bytes, judge.bundle().floor());
        self.judge_by(visit.agent, judge)?;
        // What is not on the disk is fetched again.
        kept?;
        self.tag.replace(tag);
        Ok(Looked::Is)
    }

    async fn opened(&self, visit: &Visit<'_>, bytes: &[u8]) -> Result<Judge, Trouble> {
        let envelope = envelope(bytes)?;
        let device = Device::new(visit);
        let mut trusted = trusted(visit.agent).map_err(of_failure)?;
        let payload = trusted.open(&device, &envelope, SignedKind::PolicyBundle).await;
        let payload = payload.map_err(|failure| device.lost().unwrap_or_else(|| of_failure(failure)))?;
        judge(visit.agent, &payload)
    }

    async fn upload(&self, visit: &Visit<'_>) -> Result<(), Trouble> {
        let is_there = self.log.borrow().is_some();
        if !is_there {
            if backlog(&visit.agent.folder)?.is_none() {
                return Ok(());
            }
            let log = SharedLog::open(&visit.agent.folder, visit.say)?;
            self.log.replace(Some(log));
        }
        let log = self.log.borrow().as_ref().map(SharedLog::share);
        match log {
            Some(log) => log.upload(visit).await.map(drop),
            None => Ok(()),
        }
    }

    fn open_desk(&self, agent: &Agent, say: &dyn Fn(&str)) -> Result<(), Trouble> {
        let (Some(place), Some(registrar)) = (&self.place, &self.registrar) else {
            return Ok(());
        };
        let known = place.known_mode(Some(of(agent)));
        self.standing.change(|standing| standing.mode = known);
        self.take_up_quarantine(agent, say);
        // As the loop has it before it hears of the server.
        let skew_ms = State::load(&agent.folder).unwrap_or_default().skew_ms;
        self.standing.change(|standing| standing.skew_ms = skew_ms);
        let found = latest(&agent.folder).and_then(|at| {
            let latest = at.map(|at| Latest::new(at, &*self.clock));
            self.standing.change(|standing| standing.latest = latest);
            kept(agent)
        });
        match found {
            Ok(Some(judge)) => self.judge_by(agent, judge)?,
            Ok(None) => {}
            Err(trouble) => say(&format!("warning: {trouble}")),
        }
        let log = SharedLog::open(&agent.folder, say)?;
        self.log.replace(Some(log.share()));
        let clock = Box::new(SystemClock::new());
        let registrar = HooksFile {
            path: registrar.path.clone(),
            top: registrar.top.clone(),
            owner: registrar.owner,
            home: registrar.home.clone(),
        };
        let desk = Desk::of(
            agent,
            place.clone(),
            &self.standing,
            (&log, &self.fired),
            Box::new(registrar),
            clock,
        )?;
        self.desk.replace(Some(desk));
        Ok(())
    }
}

impl Station for Judging {
    fn command(&self) -> &'static str {
        "refresh_policies"
    }

    fn begin(&self, agent: &Agent, say: &dyn Fn(&str)) -> Result<(), Trouble> {
        match self.judges {
            Use::On => self.open_desk(agent, say),
            Use::Off => self.clear_all(agent, say),
            Use::Apart => Ok(()),
        }
    }

    fn visit<'a>(&'a self, visit: &'a Visit<'a>) -> Visited<'a> {
        Box::pin(self.work(visit))
    }

    fn begin_once(&self, agent: &Agent, say: &dyn Fn(&str)) -> Result<(), Trouble> {
        match self.judges {
            Use::Off => self.clear_all(agent, say),
            Use::On | Use::Apart => Ok(()),
        }
    }

    /// As [`Self::look`] does: whoever is refused at the heartbeat is asked for no bundle.
    fn refused(&self, agent: &Agent, why: &Trouble) -> Result<(), Trouble> {
        self.forget(agent)?;
        if self.judges != Use::On || why.cause == Cause::Gone {
            return Ok(());
        }
        let look = LastLook {
            problem: Some(why.line.clone()),
            ..last_look(&agent.folder)?
        };
        keep_look(&agent.folder, &look)
    }

    fn alone<'a>(&'a self, agent: &'a Agent, _: &'a dyn Fn(&str)) -> Visited<'a> {
        let judges = self.standing.now().bench.is_some();
        let noted = if judges {
            self.note_time(agent, None)
        } else {
            Ok(())
        };
        Box::pin(std::future::ready(noted))
    }
}

/// Returns how the machine is held apart still, by what was heard last.
pub(super) fn still_held(agent: &Agent) -> Option<Quarantine> {
    kept_quarantine(&agent.folder, of(agent)).unwrap_or(Some(Quarantine::Block))
}

fn of(agent: &Agent) -> (&str, &str) {
    (&agent.device.server, &agent.device.organization)
}

fn trusted(agent: &Agent) -> Result<TrustedKeys, Failure> {
    TrustedKeys::kept_in(agent.folder.file(KNOWN_KEYS), of(agent))
}

fn envelope(bytes: &[u8]) -> Result<Value, Trouble> {
    if bytes.len() > MOST_ENVELOPE {
        return Err(disk("the policy bundle has more than 3 MiB"));
    }
    serde_json::from_slice(bytes).map_err(|_| disk("the policy bundle is no signed document of its kind"))
}

/// Returns a verified payload as what judges for this device.
fn judge(agent: &Agent, payload: &[u8]) -> Result<Judge, Trouble> {
    let device = &agent.device;
    if device.is_copied_here() {
        return Err(disk(
            "this folder was made on another installation: it judges nothing here, and hooks ask the server",
        ));
    }
    let addressee = Addressee {
        organization_id: &device.organization,
        device_id: &device.device_id,
        floor: floor(&agent.folder)?,
    };
    let bundle = read(payload, &addressee).and_then(Judge::new);
    bundle.map_err(|refusal| disk(format!("{refusal} ({})", refusal.code())))
}

/// Returns what judges by the bundle on the disk; nothing where there is none.
///
/// Errors: why the one that is there is not believed.
fn kept(agent: &Agent) -> Result<Option<Judge>, Trouble> {
    let Some(bytes) = kept_bundle(&agent.folder)? else {
        return Ok(None);
    };
    let trusted = trusted(agent).map_err(of_failure)?;
    let payload = trusted
        .verified(&envelope(&bytes)?, SignedKind::PolicyBundle)
        .map_err(of_failure)?;
    judge(agent, &payload).map(Some)
}

/// Returns what an agent tells of the calls that hooks ask it about, by what lies in its folder.
pub fn telling(folder: &Folder) -> Telling {
    let kept = Agent::open(folder).and_then(|agent| kept(&agent));
    let waits = has_waiting_decisions(folder);
    match (kept, kept_bundle(folder), waits) {
        (Ok(Some(judge)), ..)
            if judge.bundle().record == Recording::Counted && !judge.bundle().record_all =>
        {
            Telling::Counts(judge.bundle().told)
        }
        (Ok(Some(judge)), ..) => Telling::Events(judge.bundle().told),
        (_, Ok(None), Ok(false)) => Telling::Nothing,
        (_, Ok(None), Ok(true)) => Telling::Rest,
        // A later agent may read what this one does not.
        (_, Ok(Some(_)) | Err(_), _) | (.., Err(_)) => Telling::Unsure,
    }
}

/// Returns the bypass that is on, as far as this machine's disk says it, with the clients that pass by it.
fn bypass(
    agent: &Agent,
    terminal: &Terminal,
    bundle: &PolicyBundle,
) -> Option<(ToldBypass, Vec<&'static str>)> {
    if is_old(agent, bundle) || quarantine(agent, terminal).is_some() {
        return None;
    }
    let skew_ms = State::load(&agent.folder).unwrap_or_default().skew_ms;
    let shown = SystemClock::new().now().plus_ms(skew_ms);
    let now = latest(&agent.folder).ok()?.map_or(shown, |at| at.max(shown));
    let words = Client::ALL.map(Client::inventory).into_iter();
    let clients: Vec<&str> = words
        .filter(|word| bundle.bypass_of(word, now).is_some())
        .collect();
    let (bypass, until) = bundle.bypass_of(clients.first()?, now)?;
    let id = bypass.id.clone();
    Some((ToldBypass { id, until }, clients))
}

/// Returns what `explain` says of a bypass that is on.
pub fn bypass_line(folder: &Folder, terminal: &Terminal) -> Option<String> {
    let agent = Agent::open(folder).ok()?;
    let judge = kept(&agent).ok()??;
    let (bypass, clients) = bypass(&agent, terminal, judge.bundle())?;
    Some(format!("{} ({})", bypass.says(), clients.join(", ")))
}

/// Returns what `status` says of judging.
pub fn status(agent: &Agent, terminal: &Terminal) -> Value {
    let mut said = json!({});
    match kept(agent) {
        Ok(Some(judge)) => {
            said["bundle"] = shown(agent, judge.bundle());
            if let Some((bypass, clients)) = bypass(agent, terminal, judge.bundle()) {
                said["bypass"] = json!({ "id": bypass.id, "until": bypass.until, "clients": clients });
            }
        }
        Ok(None) => {}
        Err(trouble) => said["refused"] = trouble.line.into(),
    }
    if let Ok(look) = last_look(&agent.folder) {
        if let Some(at) = look.asked_at {
            said["askedAt"] = json!(at);
        }
        if let Some(problem) = look.problem {
            said["problem"] = problem.into();
        }
    }
    said["tells"] = telling(&agent.folder).says().into();
    if let Some(quarantine) = quarantine(agent, terminal) {
        said["quarantine"] = quarantine.word().into();
    }
    if let Some(place) = place(agent.device.mode, terminal) {
        said["socket"] = place.socket.display().to_string().into();
        said["listens"] = listens(&place).is_ok().into();
    }
    if let Ok(Some(backlog)) = backlog(&agent.folder) {
        said["logBytes"] = backlog.bytes.into();
        if backlog.damaged > 0 {
            said["logDamaged"] = backlog.damaged.into();
        }
    }
    said
}

/// Says whether a bundle lets nothing pass: it is out of date, or the clock was set back.
fn is_old(agent: &Agent, bundle: &PolicyBundle) -> bool {
    let skew_ms = State::load(&agent.folder).unwrap_or_default().skew_ms;
    let now = SystemClock::new().now().plus_ms(skew_ms);
    let is_back = latest(&agent.folder).map_or(true, |at| at.is_some_and(|at| is_behind(now, at)));
    bundle.is_expired(now) || is_behind(now, bundle.issued_at) || is_back
}

fn shown(agent: &Agent, bundle: &PolicyBundle) -> Value {
    json!({
        "sequence": bundle.sequence, "storeEpoch": bundle.store_epoch, "issuedAt": bundle.issued_at, "notAfter": bundle.not_after,
        "expired": is_old(agent, bundle), "mode": bundle.mode, "policies": bundle.policies.len(), "users": bundle.users.len(),
        "asksAlways": bundle.record_all, "records": bundle.record, "tells": bundle.told,
    })
}

/// Says whether somebody listens at a place, of whom hooks would take an answer.
fn listens(place: &Place) -> Result<(), String> {
    place.check_socket()?;
    let found = place.socket.symlink_metadata();
    found
        .map(drop)
        .map_err(|_| format!("there is no {}", place.socket.display()))
}

/// Returns how this machine is held apart, as hooks and the agent know it.
fn quarantine(agent: &Agent, terminal: &Terminal) -> Option<Quarantine> {
    let marked = place(agent.device.mode, terminal).and_then(|place| place.quarantine(Some(of(agent))));
    let noted = kept_quarantine(&agent.folder, of(agent)).unwrap_or(Some(Quarantine::Block));
    marked.max(noted)
}

/// Returns what `doctor` finds of judging.
pub fn findings(agent: &Agent, terminal: &Terminal) -> Vec<Finding> {
    let mut found = vec![bundle_finding(agent)];
    found.extend(quarantine(agent, terminal).map(|quarantine| {
        let fix = "ask an admin why: provost devices release takes it back, at the agent's next heartbeat";
        bad("quarantine", quarantine.says().to_owned(), fix)
    }));
    let on = kept(agent).ok().flatten();
    let on = on.and_then(|judge| bypass(agent, terminal, judge.bundle()));
    found.extend(
        on.map(|(bypass, clients)| good("bypass", format!("{} ({})", bypass.says(), clients.join(", ")))),
    );
    if let Some(place) = place(agent.device.mode, terminal) {
        found.push(match listens(&place) {
            Ok(()) => good("desk", format!("hooks ask at {}", place.socket.display())),
            Err(why) => good("desk", format!("{why}: hooks ask the server")),
        });
        found.extend(
            hooks_file(agent.device.mode, terminal).map(|file| match file.registered() {
                Ok(registered) if is_of(&registered, agent) => {
                    good("registration", format!("{} is believed", file.path.display()))
                }
                Ok(_) => good(
                    "registration",
                    format!(
                        "{} is of another server or organization, which hooks ask",
                        file.path.display()
                    ),
                ),
                Err(why) => good("registration", format!("{why}: hooks ask the server")),
            }),
        );
    }
    if let Ok(Some(backlog)) = backlog(&agent.folder) {
        found.push(good(
            "decisions",
            format!("{} bytes of decisions wait for the server", backlog.bytes),
        ));
        if backlog.damaged > 0 {
            found.push(bad(
                "log",
                format!(
                    "{} damaged parts of the log of decisions are kept aside, of which the server was told",
                    backlog.damaged
                ),
                "look at the disk and at who can write in the agent's folder; move the files that end in .torn away when you have seen them",
            ));
        }
    }
    found
}

fn is_of(registered: &Registered, agent: &Agent) -> bool {
    registered.url == agent.device.server && registered.organization == agent.device.organization
}

fn bundle_finding(agent: &Agent) -> Finding {
    let problem = last_look(&agent.folder).ok().and_then(|look| look.problem);
    let behind = problem
        .as_ref()
        .map(|problem| format!("; the last look said: {problem}"))
        .unwrap_or_default();
    // A second agent is refused beside one that works.
    let works = matches!(agent.folder.lock(), Err(trouble) if trouble.cause == Cause::Busy);
    let fix = if works {
        "the agent that works here looks for another one at each heartbeat; until then hooks ask the server"
    } else {
        "start the agent, which fetches another one: provost agent run --once --judge; until then hooks ask the server"
    };
    match kept(agent) {
        Err(trouble) => bad(
            "policies",
            format!("{}; it is as none{behind}", trouble.line),
            fix,
        ),
        Ok(None) if problem.as_deref() == Some(OFF) => bad("policies", OFF.to_owned(), SWITCH_ON),
        Ok(None) if problem.is_some() => bad("policies", format!("none are here{behind}"), fix),
        Ok(None) => good("policies", "none are here: hooks ask the server".to_owned()),
        Ok(Some(judge)) => {
            let bundle = judge.bundle();
            let of_nobody = if bundle.users.is_empty() {
                ", of nobody: this machine has no owner, or the owner's id or that of a group is a word of somebody else as well, and the server is asked about everything that is about somebody (an admin says whose it is: provost devices update DEVICE --owner-user-id USER)"
            } else {
                ""
            };
            let says = format!(
                "bundle {} of {}, good until {}, {} policies, {}{of_nobody}{behind}",
                bundle.sequence,
                bundle.issued_at,
                bundle.not_after,
                bundle.policies.len(),
                bundle.mode.as_str()
            );
            if is_old(agent, bundle) {
                bad(
                    "policies",
                    format!("{says}; it is out of date, or the clock was set back, and lets nothing pass"),
                    fix,
                )
            } else {
                good("policies", says)
            }
        }
    }
}

fn good(check: &'static str, says: String) -> Finding {
    Finding {
        check,
        good: true,
        says,
        fix: None,
    }
}

fn bad(check: &'static str, says: String, fix: &str) -> Finding {
    Finding {
        check,
        good: false,
        says,
        fix: Some(fix.to_owned()),
    }
}

/// Takes away what hooks find of an agent that is removed.
///
/// Errors: disk, folder.
pub fn clear(mode: Mode, folder: &Path, terminal: &Terminal) -> Result<(), Trouble> {
    if let Some(place) = place(mode, terminal) {
        place.clear()?;
    }
    match Folder::open(folder) {
        Ok(folder) => take_bundle_away(&folder),
        Err(trouble) if trouble.cause == Cause::Enrolment => Ok(()),
        Err(trouble) => Err(trouble),
    }
}

#[cfg(test)]
pub(super) mod tests;
