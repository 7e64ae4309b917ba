//! Whether the clients of this machine are guarded, looked at in each round and told to the server.
//!
//! ```text
//! settings of clients ──► in effect? ─┐
//! our program on the disk ───────────┤
//! what installers left ──────────────┼──► level and reasons ──► coverage.json ──► POST …/coverage, where anything changed
//! the line, executed once a day ─────┤
//! conversations, and who asked ──────┤
//! what puts their folders elsewhere ─┤
//! who may be on the machine ─────────┘
//! ```
//!
//! Of a client nothing is started; of a conversation the name and the time are read. The one program that is started is this one, by the
//! line that a client's settings register, and only where the line is to the letter what `provost hook install` writes for it.

use self::environments::moves_folder;
use self::people::{People, people};
use self::service::{Service, service};
use super::judging::Judging;
use super::places::{failure, place_args};
use crate::cli::{Column, Failure, Form, Printer, Terminal, list_output_arg};
use crate::hook::{Homes, SettingsFile, Whose as Place, executed, file};
use clap::{ArgMatches, Command};
use provost_agent::coverage::{
    Basis, ClientCoverage, Executions, Gap, KeptCoverage, SharedFired, Silence, kept_coverage,
};
use provost_agent::desk::guarded;
use provost_agent::{Agent, Cause, Finding, Mode, Station, Trouble, Visit, Visited, keep_coverage};
use provost_hooks::{
    CLIENT_SECONDS, Client, Coverage, Effect, EverySettings, Evidence, Mode as HookMode, ProgramStanding,
    Reason, SessionsSeen, SettingsFound, Signs, System, Whose, coverage, effect,
};
use provost_inventory::traces::{self, Traces};
use provost_inventory::{Client as Known, Platform};
use provost_words::durable::folder_of;
use provost_words::time::{Clock, SystemClock, Timestamp};
use serde_json::{Value, json};
use std::cell::Cell;
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io::ErrorKind;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// LIMIT: bytes of a file of settings. Ours, as for a scan.
const MOST_SETTINGS: u64 = 2 << 20;
/// LIMIT: files of a folder of settings. Ours.
const MOST_PARTS: usize = 64;
/// LIMIT: how long a look may take. Ours: a hundredth of the time between two rounds.
const LONGEST: Duration = Duration::from_secs(3);
const DAY_MS: i64 = 86_400_000;
/// Looks at clients in each round.
pub struct Guarding<'a> {
    judging: &'a Judging,
    homes: Homes,
    root: PathBuf,
    /// The program of this agent.
    own: Option<PathBuf>,
    /// Whose files the machine's are: root's, or of whom stands for root.
    owner: u32,
    /// The system whose accounts are meant.
    platform: Platform,
    /// Whether a process that stays works here.
    stays: Cell<bool>,
    /// Between which instants no agent worked here before this one. Units: milliseconds since the Unix epoch.
    gap: Cell<Option<Gap>>,
    /// A thread looks, and may hang.
    hangs: Arc<AtomicBool>,
    clock: Box<dyn Clock>,
}

/// The clients of which nothing but documents is known.
const BY_DOCUMENTS: [Known; 2] = [Known::Cursor, Known::Vscode];

const fn known(client: Client) -> Known {
    match client {
        Client::ClaudeCode => Known::ClaudeCode,
        Client::Codex => Known::Codex,
        Client::Gemini => Known::GeminiCli,
    }
}

/// What installations and conversations show of every client.
#[derive(Default)]
struct Found {
    /// Of the machine with all homes together.
    of_clients: BTreeMap<Known, Traces>,
    /// Those that may take their managed settings from elsewhere.
    elsewhere: BTreeSet<Known>,
    /// Those whose folder a file of the machine puts elsewhere.
    moved: BTreeSet<Known>,
    /// The homes, seen or not.
    homes: Vec<PathBuf>,
}

impl Found {
    /// Returns that of a client; `None` where nobody could look.
    fn of(&self, client: Known) -> Option<&Traces> {
        self.of_clients.get(&client)
    }
}

/// Says whether something says that a client takes its managed settings from elsewhere than from the file: its maker's service, or the
/// system's preferences.
fn is_managed_elsewhere(root: &Path, homes: &[PathBuf], client: Client) -> bool {
    let name = match client {
        Client::ClaudeCode => ".claude/remote-settings.json",
        Client::Codex => ".codex/cloud-requirements-cache.json",
        Client::Gemini => return false,
    };
    let preferences = "Library/Managed Preferences/com.anthropic.claudecode.plist";
    homes.iter().any(|home| traces::is_in_home(home, name))
        || (client == Client::ClaudeCode && root.join(preferences).symlink_metadata().is_ok())
}

/// Looks at every client.
fn everything(root: &Path, people: &People, since: Timestamp) -> Found {
    let clock = SystemClock::new();
    let begun = clock.monotonic();
    let is_over = || clock.monotonic().saturating_sub(begun) >= LONGEST;
    let elsewhere = Client::ALL
        .into_iter()
        .filter(|client| is_managed_elsewhere(root, &people.homes, *client))
        .map(known)
        .collect();
    let clients = Client::ALL.into_iter().map(known).chain(BY_DOCUMENTS);
    let of_clients = clients
        .map(|client| {
            let mut all = traces::of_machine(root, client, &is_over);
            all.is_incomplete |= !people.has_all;
            for home in &people.homes {
                all.add(traces::of_home(
                    home,
                    client,
                    Platform::HERE,
                    since.as_ms(),
                    &is_over,
                ));
            }
            (client, all)
        })
        .collect();
    Found {
        of_clients,
        elsewhere,
        moved: Client::ALL
            .into_iter()
            .filter(|client| moves_folder(root, *client))
            .map(known)
            .collect(),
        homes: people.homes.clone(),
    }
}

impl<'a> Guarding<'a> {
    /// Returns what looks at the clients of a machine whose hooks ask this desk.
    pub fn new(judging: &'a Judging, terminal: &Terminal) -> Self {
        Self::at(
            judging,
            Homes::of(terminal),
            "/".into(),
            (std::env::current_exe().ok(), 0),
            Box::new(SystemClock::new()),
        )
    }

    fn at(
        judging: &'a Judging,
        homes: Homes,
        root: PathBuf,
        (own, owner): (Option<PathBuf>, u32),
        clock: Box<dyn Clock>,
    ) -> Self {
        Self {
            judging,
            homes,
            root,
            own,
            owner,
            platform: Platform::HERE,
            stays: Cell::new(false),
            gap: Cell::new(None),
            hangs: Arc::default(),
            clock,
        }
    }

    fn fired(&self) -> &SharedFired {
        self.judging.fired()
    }

    /// Returns what the files that decide about a client's hooks say.
    fn settings(&self, client: Client, mode: Mode) -> EverySettings {
        let (machine, switches) = of_machine(client, &self.root, &self.homes);
        let mut settings = EverySettings {
            machine,
            switches,
            ..EverySettings::default()
        };
        // Those of people are theirs: root does not read them, and they are no registration of the machine.
        if mode == Mode::User
            && let Ok(path) = file(client, Place::User, &self.root, &self.homes)
        {
            settings.person.push(found(client, &path));
        }
        settings
    }

    /// Says whether others than root could change what the machine's files say: one of them, one that is not there yet, or a folder.
    ///
    /// Keeps FH-6: each that was read, by one rule.
    fn is_open(&self, client: Client) -> bool {
        let Ok((machine, switches)) = paths(client, &self.root, &self.homes) else {
            return true;
        };
        let mut all: Vec<PathBuf> = machine.into_iter().chain(switches).collect();
        if client == Client::ClaudeCode
            && let Some(folder) = all.first().map(|path| dropped(path))
        {
            // The folder itself, also where it is empty.
            all.push(folder);
        }
        let is_nothing = |path: &Path| {
            path.symlink_metadata()
                .is_err_and(|error| error.kind() == ErrorKind::NotFound)
        };
        let is_roots = |path: &PathBuf| {
            let is_shut = path
                .metadata()
                .is_ok_and(|found| found.uid() == self.owner && found.mode() & 0o022 == 0);
            is_nothing(path) || (is_shut && is_roots(path, self.owner))
        };
        // Where a folder is not there, who can write the one above it can make it.
        let is_guarded = |path: &PathBuf| {
            let above = folder_of(path).ancestors().find(|folder| !is_nothing(folder));
            above.is_some_and(|folder| guarded(&self.root, folder, self.owner).is_ok())
        };
        all.is_empty() || !all.iter().all(|path| is_roots(path) && is_guarded(path))
    }

    /// Returns whether the registered program may be believed, and what it is on the disk.
    fn program(&self, registered: &Effect, mode: Mode) -> (ProgramStanding, String) {
        let Some((path, _)) = &registered.program else {
            return (ProgramStanding::Other, String::new());
        };
        let path = Path::new(path);
        let own = self.own.as_ref().and_then(|own| own.canonicalize().ok());
        let (Ok(led), Some(own)) = (path.canonicalize(), own) else {
            return (ProgramStanding::Other, String::new());
        };
        if !path.is_absolute() || led != own {
            return (ProgramStanding::Other, String::new());
        }
        let Ok(found) = led.metadata() else {
            return (ProgramStanding::Other, String::new());
        };
        let print = format!(
            "{} {} {} {:o}",
            found.ino(),
            found.mtime(),
            found.len(),
            found.mode()
        );
        let starts = match mode {
            Mode::System => found.mode() & 0o005 == 0o005,
            Mode::User => found.mode() & 0o111 != 0,
        };
        let is_guarded = mode == Mode::User || is_roots(path, self.owner);
        if starts && is_guarded {
            (ProgramStanding::Own, print)
        } else {
            (ProgramStanding::Open, print)
        }
    }

    /// Executes the lines that are due, one after the other.
    async fn execute(&self, mode: Mode, executions: &mut Executions) -> bool {
        let mut has_any = false;
        for client in Client::ALL {
            let Ok(effect) = effect(client, &self.settings(client, mode)) else {
                continue;
            };
            let (standing, print) = self.program(&effect, mode);
            let now = self.clock.now();
            // Nothing but this program is ever started, and nothing around it: the line is what an installation writes.
            let is_ours = standing == ProgramStanding::Own && effect.program.is_some();
            if !is_ours || !executions.is_due(client, &effect.line, &print, now) {
                continue;
            }
            let line = effect.line.clone();
            let run = move || {
                let limit = Duration::from_secs(CLIENT_SECONDS);
                executed(client, &line, limit, &SystemClock::new())
            };
            let said = match tokio::task::spawn_blocking(run).await {
                Ok(said) => said,
                Err(_) => Err("the execution broke".to_owned()),
            };
            executions.note(client, &effect.line, &print, now, said);
            has_any = true;
        }
        has_any
    }

    /// Returns what installations and conversations show, which a thread looks at: a disk may not answer, and heartbeats go on.
    async fn traces(&self, mode: Mode) -> Found {
        // One thread that hangs is enough.
        if self.hangs.swap(true, Ordering::Relaxed) {
            return Found::default();
        }
        let (root, since, hangs) = (
            self.root.clone(),
            self.clock.now().plus_ms(-DAY_MS),
            self.hangs.clone(),
        );
        let (own, asked, platform) = (self.homes.home.clone(), self.fired().accounts(), self.platform);
        let look = move || {
            let people = match mode {
                Mode::User => People {
                    has_all: own.is_some(),
                    homes: own.into_iter().collect(),
                },
                Mode::System => people(&root, platform, &asked),
            };
            let found = everything(&root, &people, since);
            hangs.store(false, Ordering::Relaxed);
            found
        };
        match tokio::time::timeout(LONGEST, tokio::task::spawn_blocking(look)).await {
            Ok(Ok(found)) => found,
            Ok(Err(_)) => {
                self.hangs.store(false, Ordering::Relaxed);
                Found::default()
            }
            Err(_) => Found::default(),
        }
    }

    /// Returns how far a client is guarded; nothing where there is nothing of it.
    fn one(
        &self,
        client: Client,
        mode: Mode,
        everything: &Found,
        executions: &Executions,
        hears_events: bool,
        (before, service): (&KeptCoverage, Service),
    ) -> Option<ClientCoverage> {
        let now = self.clock.now();
        let unseen = Traces {
            is_incomplete: true,
            ..Traces::default()
        };
        let seen = everything.of(known(client));
        let traces = seen.unwrap_or(&unseen);
        let mut obeyed = effect(client, &self.settings(client, mode));
        // Where nothing could be looked at, nobody can say that the client is not there.
        if obeyed == Err(Reason::NotRegistered) && !traces.is_there && !traces.is_incomplete {
            return None;
        }
        if let Ok(effect) = &mut obeyed
            && effect.whose == Whose::Machine
            && mode == Mode::System
            && self.is_open(client)
        {
            effect.lacks.insert(Reason::PersonRegistration);
        }
        let (program, print) = obeyed
            .as_ref()
            .map_or((ProgramStanding::Other, String::new()), |effect| {
                self.program(effect, mode)
            });
        // What is proven is the registration that is obeyed; a line that is another one is taken for one that refuses.
        let proven = obeyed.as_ref().ok().and_then(|effect| effect.program.as_ref());
        let proven = proven.map_or(HookMode::Enforce, |(_, mode)| *mode);
        let silence = match seen {
            Some(found) if hears_events => self.fired().silence(client, proven, &found.sessions, now),
            _ => Silence::default(),
        };
        let line = obeyed.as_ref().map_or("", |effect| effect.line.as_str());
        let evidence = Evidence {
            client,
            system: System::HERE,
            is_person_agent: mode == Mode::User,
            effect: obeyed.as_ref().map_err(|reason| *reason),
            is_managed_elsewhere: everything.elsewhere.contains(&known(client)),
            program,
            versions: &traces.versions,
            has_unversioned: traces.has_unversioned,
            execution: executions.standing(client, line, &print, now),
            sessions: SessionsSeen {
                has_all: !traces.is_incomplete && silence.strange == 0,
                hears_events,
                silent: silence.silent,
                // Of homes that nobody named nothing can be said, and then no conversation is seen.
                is_elsewhere: everything.moved.contains(&known(client))
                    || (seen.is_some() && self.fired().is_elsewhere(client, &everything.homes, now)),
            },
            signs: Signs {
                is_preloaded: hears_events && self.fired().is_preloaded(client, now),
                is_not_enabled: before.lacks_service(service != Service::Absent, service == Service::Enabled),
                was_silent: before.was_silent(&traces.sessions),
            },
        };
        let mut found = coverage(&evidence);
        if obeyed.is_ok() && self.judging.bypass(client).is_some() {
            found.reasons.insert(Reason::Bypass);
            found = Coverage::of(found.reasons);
        }
        let answered = executions.last(client).filter(|run| run.has_answered);
        let told = ClientCoverage {
            executed_at: answered.map(|run| run.at),
            ..ClientCoverage::of(
                known(client).word(),
                least(&traces.versions),
                Basis::Measured,
                &found,
            )
        };
        Some(told.fired(self.fired().last(client, proven)))
    }

    /// Looks at every client.
    async fn look(&self, agent: &Agent) -> Result<KeptCoverage, Trouble> {
        let (folder, mode) = (&agent.folder, agent.device.mode);
        let mut executions = Executions::load(folder)?;
        if self.execute(mode, &mut executions).await {
            executions.save(folder)?;
        }
        // Where root registers the hook, root's agent is asked and no person's.
        let of_root = self
            .root
            .join(crate::hook::OF_THE_MACHINE.trim_start_matches('/'));
        let is_of_root = mode == Mode::User && of_root.symlink_metadata().is_ok();
        let hears_events = self.judging.hears(agent) && !is_of_root;
        let everything = self.traces(mode).await;
        let mut before = kept_coverage(folder)?;
        before.note_gap(self.gap.take(), self.clock.now());
        let service = service(&self.root, self.homes.config.as_deref(), mode);
        before.has_service |= service != Service::Absent;
        let signs = (&before, service);
        let mut clients: Vec<ClientCoverage> = Client::ALL
            .into_iter()
            .filter_map(|client| self.one(client, mode, &everything, &executions, hears_events, signs))
            .collect();
        for client in BY_DOCUMENTS {
            if everything.of(client).is_some_and(|found| found.is_there) {
                let lacks = Coverage::of(BTreeSet::from([Reason::NoAdapter]));
                clients.push(ClientCoverage::of(client.word(), None, Basis::Documents, &lacks));
            }
        }
        if self.stays.get() {
            self.fired().save(folder, self.clock.now())?;
        }
        let kept = KeptCoverage {
            at: Some(self.clock.now()),
            clients,
            ..before
        };
        kept.save(folder)?;
        Ok(kept)
    }

    async fn work(&self, visit: &Visit<'_>) -> Result<(), Trouble> {
        let agent = visit.agent;
        // A command that is no agent's hears of no hook, and would say so.
        if self.judging.is_apart() {
            return Ok(());
        }
        let mut kept = self.look(agent).await?;
        let bundle = self.judging.held();
        let (digest, now) = (kept.digest(bundle.as_ref()), self.clock.now());
        if !visit.is_commanded && !kept.is_due(&digest, now) {
            return Ok(());
        }
        let mut said = json!({ "clients": kept.clients });
        if let Some(bundle) = bundle {
            said["policyBundle"] = bundle;
        }
        match visit.post("coverage", &said).await {
            Ok(_) => {
                kept.was_told(digest, now);
                // What `explain` shows of it is worth no failure.
                let _ = keep_coverage(&agent.folder, said.to_string().as_bytes());
                kept.save(&agent.folder)
            }
            // An earlier server has no such operation.
            Err(trouble) if matches!(trouble.cause, Cause::Refused(404 | 405)) => Ok(()),
            Err(trouble) => Err(trouble),
        }
    }
}

impl Station for Guarding<'_> {
    fn command(&self) -> &'static str {
        "check_coverage"
    }

    fn begin(&self, agent: &Agent, _: &dyn Fn(&str)) -> Result<(), Trouble> {
        self.stays.set(true);
        // Nobody looked between the last round of the agent before this one and now.
        let last = kept_coverage(&agent.folder)?.at;
        self.gap
            .set(last.map(|last| Gap(last.as_ms(), self.clock.now().as_ms())));
        self.fired().load(&agent.folder)
    }

    fn visit<'a>(&'a self, visit: &'a Visit<'a>) -> Visited<'a> {
        Box::pin(self.work(visit))
    }

    fn alone<'a>(&'a self, agent: &'a Agent, _: &'a dyn Fn(&str)) -> Visited<'a> {
        Box::pin(async move {
            if self.judging.is_apart() {
                return Ok(());
            }
            self.look(agent).await.map(drop)
        })
    }
}

/// Returns the least of versions, as far as they have numbers.
fn least(versions: &BTreeSet<String>) -> Option<String> {
    let numbers = |version: &String| -> Vec<u64> {
        let parts = version.split(['.', '-', '+']);
        parts.map_while(|part| part.parse().ok()).collect()
    };
    versions.iter().min_by_key(|version| numbers(version)).cloned()
}

/// Returns what a file of settings says.
pub(crate) fn found(client: Client, path: &Path) -> SettingsFound {
    match path.metadata() {
        Err(error) if error.kind() == ErrorKind::NotFound => return SettingsFound::Absent,
        Ok(found) if found.is_file() && found.len() <= MOST_SETTINGS => {}
        _ => return SettingsFound::Unreadable,
    }
    let read = SettingsFile::read(client, path.to_owned()).and_then(|file| file.members());
    read.map_or(SettingsFound::Unreadable, SettingsFound::Read)
}

/// Returns the files of the machine that decide about a client's hooks, the weakest first, and those that switch things on and off.
///
/// Errors: a folder of them cannot be read.
fn paths(client: Client, root: &Path, homes: &Homes) -> Result<(Vec<PathBuf>, Vec<PathBuf>), Reason> {
    let Ok(path) = file(client, Place::Machine, root, homes) else {
        return Ok((Vec::new(), Vec::new()));
    };
    let (mut machine, mut switches) = (vec![path.clone()], Vec::new());
    match client {
        Client::ClaudeCode => machine.extend(parts(&dropped(&path))?),
        Client::Codex => {
            let names = ["config.toml", "managed_config.toml"];
            switches.extend(names.map(|name| folder_of(&path).join(name)));
        }
        // By its source: it counts before everything else that somebody wrote, and switches of both count.
        Client::Gemini => machine.insert(0, folder_of(&path).join("system-defaults.json")),
    }
    Ok((machine, switches))
}

/// Returns what the machine's files say that decide about a client's hooks, the weakest first, and those that switch things on and off.
pub(crate) fn of_machine(
    client: Client,
    root: &Path,
    homes: &Homes,
) -> (Vec<SettingsFound>, Vec<SettingsFound>) {
    let read = |paths: Vec<PathBuf>| paths.iter().map(|path| found(client, path)).collect();
    match paths(client, root, homes) {
        Ok((machine, switches)) => (read(machine), read(switches)),
        Err(_) => (vec![SettingsFound::Unreadable], Vec::new()),
    }
}

/// Returns where files of settings lie that add to another one.
fn dropped(path: &Path) -> PathBuf {
    folder_of(path).join("managed-settings.d")
}

/// Returns the files of a folder that the client reads, in their order: it reads none whose name begins with a dot.
///
/// Errors: the folder cannot be read, or has too many.
fn parts(folder: &Path) -> Result<Vec<PathBuf>, Reason> {
    let unreadable = Reason::RegistrationUnreadable;
    let entries = match fs::read_dir(folder) {
        Ok(entries) => entries,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Vec::new()),
        Err(_) => return Err(unreadable),
    };
    let mut paths = Vec::new();
    for entry in entries {
        let path = entry.map_err(|_| unreadable)?.path();
        let is_hidden = path
            .file_name()
            .is_some_and(|name| name.as_encoded_bytes().starts_with(b"."));
        if !is_hidden && path.extension().is_some_and(|ending| ending == "json") {
            paths.push(path);
        }
    }
    if paths.len() > MOST_PARTS {
        return Err(unreadable);
    }
    paths.sort();
    Ok(paths)
}

/// LIMIT: links on the way to a program: the kernel's.
const MOST_LINKS: usize = 40;

/// Says whether root, or who stands for root, alone can change where a path leads: every folder and every link on the way. In a folder such
/// as `/tmp` nobody takes away what is another's.
fn is_roots(path: &Path, owner: u32) -> bool {
    let parts = |path: &Path| -> Vec<PathBuf> {
        let parts = path.components().rev();
        parts.map(|part| PathBuf::from(part.as_os_str())).collect()
    };
    let is_shut = |path: &Path| {
        path.symlink_metadata().is_ok_and(|found| {
            let is_shut = found.is_symlink() || found.mode() & 0o022 == 0 || found.mode() & 0o1000 != 0;
            (found.uid() == 0 || found.uid() == owner) && is_shut
        })
    };
    let (mut waiting, mut at, mut links) = (parts(path), PathBuf::from("/"), 0);
    while let Some(part) = waiting.pop() {
        let next = if part == Path::new("..") {
            folder_of(&at).to_owned()
        } else {
            // The root takes the place of what was before.
            at.join(part)
        };
        if !is_shut(&next) {
            return false;
        }
        match fs::read_link(&next) {
            Ok(_) if links == MOST_LINKS => return false,
            Ok(target) => {
                links += 1;
                waiting.extend(parts(&target));
            }
            Err(_) => at = next,
        }
    }
    true
}

/// Returns the command.
pub fn command() -> Command {
    Command::new("coverage")
        .about("Shows how far each client on this machine is guarded, and what to do about the rest")
        .long_about(
            "Shows what the agent found in its last round: enforced, where every step is proven; bypassable, where a way around is known or \
             conversations cannot be seen; observed, where it is asked and that it refuses is not proven; none. Each level below enforced has \
             its reasons, and each of them a step. No server is asked.",
        )
        .args(place_args())
        .arg(list_output_arg())
}

/// Shows what was found last.
///
/// Errors: usage, where nothing was looked at yet.
pub fn run(matches: &ArgMatches, terminal: &Terminal) -> Result<(), Failure> {
    let (agent, _) = super::places::enrolled(matches, terminal)?;
    let kept = kept_coverage(&agent.folder).map_err(failure)?;
    let Some(at) = kept.at else {
        return Err(
            Failure::usage("the agent has looked at no client yet").and("start it: provost agent run --once")
        );
    };
    let printer = Printer {
        form: Form::chosen(matches, terminal),
        terminal,
        quiet: false,
    };
    let columns = ["client", "level", "clientVersion", "reasons", "steps"].map(Column::declared);
    printer.list(&json!({ "at": at, "clients": shown(&kept) }), "clients", &columns)?;
    if kept.clients.is_empty() {
        terminal.note("no client that could be guarded is here");
    }
    Ok(())
}

fn shown(kept: &KeptCoverage) -> Vec<Value> {
    let with_steps = |client: &ClientCoverage| {
        let mut shown = json!(client);
        shown["steps"] = json!(client.steps());
        shown
    };
    kept.clients.iter().map(with_steps).collect()
}

/// Returns what `status` says; nothing before the first look.
pub fn status(agent: &Agent) -> Option<Value> {
    let kept = kept_coverage(&agent.folder).ok()?;
    kept.at.map(|at| json!({ "at": at, "clients": shown(&kept) }))
}

/// Returns what `doctor` finds.
pub fn findings(agent: &Agent) -> Vec<Finding> {
    let kept = match kept_coverage(&agent.folder) {
        Ok(kept) => kept,
        Err(trouble) => {
            return vec![Finding {
                check: "coverage",
                good: false,
                says: trouble.line,
                fix: Some("look at what it says".to_owned()),
            }];
        }
    };
    let executions = Executions::load(&agent.folder).unwrap_or_default();
    let finding = |client: &ClientCoverage| {
        let reasons = if client.reasons.is_empty() {
            "every step is proven".to_owned()
        } else {
            client.reasons.join(", ")
        };
        let ran = Client::ALL
            .into_iter()
            .find(|one| known(*one).word() == client.client)
            .and_then(|one| executions.last(one))
            .map(|run| format!("; {}, at {}", run.says, run.at))
            .unwrap_or_default();
        Finding {
            check: "coverage",
            good: !client.has_fault(),
            says: format!("{} is {}: {reasons}{ran}", client.client, client.level),
            fix: (!client.reasons.is_empty()).then(|| client.steps().join("; ")),
        }
    };
    kept.clients.iter().map(finding).collect()
}

mod environments;
mod people;
mod service;
#[cfg(test)]
mod tests;
