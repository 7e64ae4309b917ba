//! Whether a client is guarded, as far as that is proven.
//!
//! ```text
//! registered ──► in effect ──► executed ──► fired          what is missing of it is a reason, and each reason has a most that it allows
//! enforced: nothing is missing     bypassable: a gap is known, or the last step cannot be seen     observed     none
//! ```
//!
//! INVARIANT FH-1: coverage is `enforced` only after the registered command line itself was executed as the client does.
//! INVARIANT FH-6: the registration that counts is the one that the client obeys, by its own order of precedence, and whether it fires is
//! compared with the client's conversations; what cannot be read, and where somebody may be whom nobody looked at, is not `enforced`.
//! INVARIANT FH-8: every level below `enforced` names a reason, and a known gap keeps a client below it.
//!
//! Source: F4.13; gaps as they were measured or reported (fleet.md §1).

use crate::client::Client;
use crate::effect::{Effect, Whose};
use std::collections::BTreeSet;

/// How far a client is guarded; the least first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Level {
    /// Nothing of ours is in effect, or nobody can say that it is.
    None,
    /// It is asked and recorded; that it refuses is not proven.
    Observed,
    /// It refuses, and a way around it is known, or whether it fires cannot be seen.
    Bypassable,
    /// Every step is proven.
    Enforced,
}

impl Level {
    /// Returns its word on the wire.
    pub const fn word(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Observed => "observed",
            Self::Bypassable => "bypassable",
            Self::Enforced => "enforced",
        }
    }

    /// Returns the level of a word.
    pub fn named(word: &str) -> Option<Self> {
        [Self::None, Self::Observed, Self::Bypassable, Self::Enforced]
            .into_iter()
            .find(|level| level.word() == word)
    }
}

/// What is missing of a proof.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Reason {
    /// Nothing of ours stands in the client's settings.
    NotRegistered,
    /// A file of settings that decides about it cannot be read.
    RegistrationUnreadable,
    /// Settings switch hooks off.
    HooksDisabled,
    /// A person's hooks are left out by the machine's settings.
    ManagedHooksOnly,
    /// Provost has no hook for this client.
    NoAdapter,
    /// What is registered is not what an installation writes.
    RegistrationChanged,
    /// It is registered to look on.
    MonitorMode,
    /// A bypass is on: what policies refuse passes for a time.
    Bypass,
    /// It stands in settings that the person can change.
    PersonRegistration,
    /// The agent is a person's, who can change what it says.
    PersonAgent,
    /// The client may take its managed settings from elsewhere than from the file.
    ManagedElsewhere,
    /// The registered program is not the one of this agent.
    ProgramOther,
    /// Others than root can change the registered program, or it cannot be started.
    ProgramOpen,
    /// The version of the client is not known.
    VersionUnknown,
    /// A version of the client that is installed is older than the first one that holds.
    VersionTooOld,
    /// The registered command line was not executed within a day.
    NotExecuted,
    /// It was executed, and gave no answer of a hook.
    ExecutionFailed,
    /// A conversation of the last day asked no hook.
    SessionWithoutEvents,
    /// Conversations of the last day cannot be seen, or not all of them.
    SessionsUnseen,
    /// A conversation asked that is kept outside of the homes, where a client has its folder elsewhere: others there may ask nothing.
    ConfigurationElsewhere,
    /// The agent does not hear of hooks, because it does not judge for them.
    EventsUnheard,
    /// The hook was started with code that is not its own within a day.
    HookPreloaded,
    /// The agent works, and is not started when the machine is.
    ServiceNotEnabled,
    /// Conversations of the last day were written while no agent worked.
    AgentWasSilent,
    /// One variable of the environment takes the machine's settings away.
    GapEnvironment,
    /// Settings of the person, or of a folder, switch the machine's hooks off, or a folder that is not trusted does.
    GapPersonSettings,
    /// Nested calls of code mode run against a refusal.
    GapCodeMode,
    /// Patches are applied against a refusal in the app.
    GapApplyPatch,
}

impl Reason {
    /// Every reason.
    pub const ALL: [Self; 28] = [
        Self::NotRegistered,
        Self::RegistrationUnreadable,
        Self::HooksDisabled,
        Self::ManagedHooksOnly,
        Self::NoAdapter,
        Self::RegistrationChanged,
        Self::MonitorMode,
        Self::Bypass,
        Self::PersonRegistration,
        Self::PersonAgent,
        Self::ManagedElsewhere,
        Self::ProgramOther,
        Self::ProgramOpen,
        Self::VersionUnknown,
        Self::VersionTooOld,
        Self::NotExecuted,
        Self::ExecutionFailed,
        Self::SessionWithoutEvents,
        Self::SessionsUnseen,
        Self::ConfigurationElsewhere,
        Self::EventsUnheard,
        Self::HookPreloaded,
        Self::ServiceNotEnabled,
        Self::AgentWasSilent,
        Self::GapEnvironment,
        Self::GapPersonSettings,
        Self::GapCodeMode,
        Self::GapApplyPatch,
    ];

    /// Returns its word on the wire.
    pub const fn word(self) -> &'static str {
        match self {
            Self::NotRegistered => "not_registered",
            Self::RegistrationUnreadable => "registration_unreadable",
            Self::HooksDisabled => "hooks_disabled",
            Self::ManagedHooksOnly => "managed_hooks_only",
            Self::NoAdapter => "no_adapter",
            Self::RegistrationChanged => "registration_changed",
            Self::MonitorMode => "monitor_mode",
            Self::Bypass => "bypass",
            Self::PersonRegistration => "person_registration",
            Self::PersonAgent => "person_agent",
            Self::ManagedElsewhere => "managed_elsewhere",
            Self::ProgramOther => "program_other",
            Self::ProgramOpen => "program_open",
            Self::VersionUnknown => "version_unknown",
            Self::VersionTooOld => "version_too_old",
            Self::NotExecuted => "not_executed",
            Self::ExecutionFailed => "execution_failed",
            Self::SessionWithoutEvents => "session_without_events",
            Self::SessionsUnseen => "sessions_unseen",
            Self::ConfigurationElsewhere => "configuration_elsewhere",
            Self::EventsUnheard => "events_unheard",
            Self::HookPreloaded => "hook_preloaded",
            Self::ServiceNotEnabled => "service_not_enabled",
            Self::AgentWasSilent => "agent_was_silent",
            Self::GapEnvironment => "gap_environment",
            Self::GapPersonSettings => "gap_person_settings",
            Self::GapCodeMode => "gap_code_mode",
            Self::GapApplyPatch => "gap_apply_patch",
        }
    }

    /// Returns the most that a client is guarded for which this is missing.
    pub const fn most(self) -> Level {
        match self {
            Self::NotRegistered
            | Self::RegistrationUnreadable
            | Self::HooksDisabled
            | Self::ManagedHooksOnly
            | Self::NoAdapter => Level::None,
            Self::RegistrationChanged
            | Self::MonitorMode
            | Self::Bypass
            | Self::PersonRegistration
            | Self::PersonAgent
            | Self::ManagedElsewhere
            | Self::ProgramOther
            | Self::ProgramOpen
            | Self::VersionUnknown
            | Self::VersionTooOld
            | Self::NotExecuted
            | Self::ExecutionFailed
            | Self::SessionWithoutEvents
            | Self::HookPreloaded => Level::Observed,
            Self::SessionsUnseen
            | Self::ConfigurationElsewhere
            | Self::EventsUnheard
            | Self::ServiceNotEnabled
            | Self::AgentWasSilent
            | Self::GapEnvironment
            | Self::GapPersonSettings
            | Self::GapCodeMode
            | Self::GapApplyPatch => Level::Bypassable,
        }
    }

    /// Says whether something is wrong that somebody on the machine can mend, and not a choice or a thing of the client.
    pub const fn is_fault(self) -> bool {
        matches!(
            self,
            Self::RegistrationUnreadable
                | Self::HooksDisabled
                | Self::RegistrationChanged
                | Self::ProgramOther
                | Self::ProgramOpen
                | Self::VersionTooOld
                | Self::ExecutionFailed
                | Self::SessionWithoutEvents
                | Self::HookPreloaded
                | Self::ServiceNotEnabled
        )
    }

    /// Returns the reason of a word.
    pub fn named(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|reason| reason.word() == word)
    }

    /// Returns what somebody can do about it.
    pub const fn step(self) -> &'static str {
        match self {
            Self::NotRegistered => "register it: provost hook install CLIENT --system",
            Self::RegistrationUnreadable => "look at the client's settings: provost hook doctor",
            Self::HooksDisabled => "take out of the client's settings what switches hooks off",
            Self::ManagedHooksOnly | Self::PersonRegistration => {
                "register it for the machine: provost hook install CLIENT --system"
            }
            Self::NoAdapter => "nothing can be done yet: Provost has no hook for this client",
            Self::RegistrationChanged => "write it anew: provost hook install CLIENT --system",
            Self::MonitorMode => {
                "when what it records looks right: provost hook install CLIENT --system --mode enforce"
            }
            Self::Bypass => "it ends by itself; an admin ends it before: provost devices end-bypass",
            Self::PersonAgent => {
                "enrol the agent of the machine: provost agent enrol --system; a person can change their own"
            }
            Self::ManagedElsewhere => {
                "look where else the client takes managed settings from; what they say is not known here"
            }
            Self::ProgramOther => "register the program of this agent: provost hook install CLIENT --system",
            Self::ProgramOpen => {
                "put the program where root alone writes, such as /usr/local/bin, and let it be started: chmod 755"
            }
            Self::VersionUnknown => {
                "install the client by npm, or by its own installer, in one of the places that are looked at"
            }
            Self::VersionTooOld => "update the client",
            Self::NotExecuted => {
                "wait for the next round of the agent, five minutes at most; where none works: provost agent run --once --judge"
            }
            Self::ExecutionFailed => "see what it says: provost hook doctor",
            Self::SessionWithoutEvents => {
                "end the conversations that were open before the hook was there, and look which one asks nothing: provost hook doctor"
            }
            Self::SessionsUnseen => {
                "let the agent see names and times of conversations: provost agent install --system --judge --see-sessions; where it does: \
                 somebody may be here whom /etc/passwd does not know, which the guide on hooks lists"
            }
            Self::ConfigurationElsewhere => {
                "let the client keep its folder in the home: something sets CLAUDE_CONFIG_DIR, CODEX_HOME, GEMINI_CLI_HOME or another HOME for it; two days \
                 after the last such conversation this is forgotten"
            }
            Self::EventsUnheard => "let the agent judge for hooks: provost agent install --system --judge",
            Self::HookPreloaded => {
                "look what sets LD_PRELOAD, LD_AUDIT, LD_LIBRARY_PATH or DYLD_… for the client; a day after the last such call this is \
                 forgotten"
            }
            Self::ServiceNotEnabled => {
                "have it started with the machine: systemctl enable provost-agent (of a person: systemctl --user enable provost-agent)"
            }
            Self::AgentWasSilent => {
                "look why it did not work: journalctl -u provost-agent; a day later this is forgotten"
            }
            Self::GapEnvironment | Self::GapPersonSettings | Self::GapCodeMode | Self::GapApplyPatch => {
                "nothing closes it in this version of the client; what it leaves open is in the guide on hooks"
            }
        }
    }
}

/// The system on which a client runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum System {
    /// Linux.
    Linux,
    /// macOS.
    Macos,
    /// Windows.
    Windows,
}

impl System {
    /// The system that this was built for.
    pub const HERE: Self = if cfg!(target_os = "macos") {
        Self::Macos
    } else if cfg!(windows) {
        Self::Windows
    } else {
        Self::Linux
    };
}

/// A way around a hook that is known.
#[derive(Clone, Copy, Debug)]
pub struct Gap {
    /// The client.
    pub client: Client,
    /// Where it is; everywhere, where none is named.
    pub systems: &'static [System],
    /// The first version that has it; all before, where none is named.
    pub from: Option<&'static str>,
    /// The first version that does not have it any more; none yet, where none is named.
    pub until: Option<&'static str>,
    /// What it is called.
    pub reason: Reason,
    /// Where it was seen.
    pub source: &'static str,
}

/// The gaps that are known.
pub const GAPS: [Gap; 4] = [
    Gap {
        client: Client::Gemini,
        systems: &[],
        from: None,
        until: None,
        reason: Reason::GapEnvironment,
        source: "measured with 0.61.0: GEMINI_CLI_SYSTEM_SETTINGS_PATH; by its source: GEMINI_CLI_SYSTEM_DEFAULTS_PATH",
    },
    Gap {
        client: Client::Gemini,
        systems: &[],
        from: None,
        until: None,
        reason: Reason::GapPersonSettings,
        source: "measured with 0.61.0: hooksConfig of a person; by its source: a folder's, and one that is not trusted",
    },
    Gap {
        client: Client::Codex,
        systems: &[System::Windows],
        from: None,
        until: None,
        reason: Reason::GapCodeMode,
        source: "openai/codex issue 23411",
    },
    Gap {
        client: Client::Codex,
        // The app is there for these.
        systems: &[System::Macos, System::Windows],
        from: None,
        until: None,
        reason: Reason::GapApplyPatch,
        source: "openai/codex issue 27833",
    },
];

/// Returns the first version of a client that refuses as the registration says.
pub const fn first_version(client: Client) -> &'static str {
    match client {
        // The first that knows onFailure.
        Client::ClaudeCode => "2.1.295",
        Client::Codex => "0.124.0",
        // The one that was measured.
        Client::Gemini => "0.61.0",
    }
}

/// The numbers of a version, and whether it is a release.
type Numbers = ([u64; 3], bool);

fn numbers(version: &str) -> Option<Numbers> {
    let version = version.split_once('+').map_or(version, |(version, _)| version);
    let (numbers, is_release) = match version.split_once('-') {
        Some((numbers, _)) => (numbers, false),
        None => (version, true),
    };
    let mut parts = numbers.split('.');
    let mut read = [0; 3];
    for number in &mut read {
        *number = parts.next()?.parse().ok()?;
    }
    parts.next().is_none().then_some((read, is_release))
}

/// Says whether a version is another one or later; `None` where one of them is none. What comes before a release is before it.
fn is_since(version: &str, first: &str) -> Option<bool> {
    Some(numbers(version)? >= numbers(first)?)
}

/// What came of the last execution of the registered command line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Execution {
    /// It gave the answer of a hook, within a day.
    Answered,
    /// It did not.
    Failed,
    /// There was none within a day, of this line and this program.
    Missing,
}

/// Whether the registered program is one that may be started and believed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ProgramStanding {
    /// It is the agent's own, and nobody but root, or whose the agent is, can change it.
    Own,
    /// It is another one.
    Other,
    /// Others can change it, or it cannot be started.
    Open,
}

/// Everything that is known of a client here.
#[derive(Clone, Debug)]
pub struct Evidence<'a> {
    /// The client.
    pub client: Client,
    /// Where it runs.
    pub system: System,
    /// Whether the agent is a person's.
    pub is_person_agent: bool,
    /// What the client obeys, or why nothing.
    pub effect: Result<&'a Effect, Reason>,
    /// Whether something says that the client takes managed settings from elsewhere.
    pub is_managed_elsewhere: bool,
    /// Of the registered program.
    pub program: ProgramStanding,
    /// The versions that are installed.
    pub versions: &'a BTreeSet<String>,
    /// Whether one is installed whose version nothing says.
    pub has_unversioned: bool,
    /// Of the registered command line.
    pub execution: Execution,
    /// Of its conversations.
    pub sessions: SessionsSeen,
    /// Of the agent and of the hook's own process.
    pub signs: Signs,
}

/// What says that somebody meddled with what guards (F4.15).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Signs {
    /// The hook of the client was started with code that is not its own.
    pub is_preloaded: bool,
    /// The agent is not started when the machine is, and was installed to be.
    pub is_not_enabled: bool,
    /// Conversations of the client were written while no agent worked.
    pub was_silent: bool,
}

/// What is known of conversations of the last day.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SessionsSeen {
    /// Whether every one can be seen.
    pub has_all: bool,
    /// Whether the agent hears of each event of a hook.
    pub hears_events: bool,
    /// How many asked no hook.
    pub silent: usize,
    /// Whether one asked that is kept where nobody looks.
    pub is_elsewhere: bool,
}

/// How far a client is guarded, and what is missing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Coverage {
    /// How far.
    pub level: Level,
    /// What is missing: nothing where it is enforced, and there alone.
    pub reasons: BTreeSet<Reason>,
}

impl Coverage {
    /// Returns what follows from reasons.
    ///
    /// Keeps FH-8.
    pub fn of(reasons: BTreeSet<Reason>) -> Self {
        let level = reasons.iter().map(|reason| reason.most()).min();
        Self {
            level: level.unwrap_or(Level::Enforced),
            reasons,
        }
    }
}

/// Returns how far a client is guarded.
///
/// Keeps FH-1, FH-6, FH-8.
pub fn coverage(evidence: &Evidence<'_>) -> Coverage {
    let effect = match evidence.effect {
        Ok(effect) => effect,
        // What else is missing is of no account where nothing is in effect.
        Err(reason) => return Coverage::of(BTreeSet::from([reason])),
    };
    let mut reasons = effect.lacks.clone();
    let mut lacks = |is_lacking: bool, reason: Reason| {
        if is_lacking {
            reasons.insert(reason);
        }
    };
    lacks(evidence.is_person_agent, Reason::PersonAgent);
    lacks(effect.whose == Whose::Person, Reason::PersonRegistration);
    lacks(evidence.is_managed_elsewhere, Reason::ManagedElsewhere);
    lacks(evidence.program == ProgramStanding::Other, Reason::ProgramOther);
    lacks(evidence.program == ProgramStanding::Open, Reason::ProgramOpen);
    let first = first_version(evidence.client);
    let since = evidence.versions.iter().map(|version| is_since(version, first));
    let since: Vec<Option<bool>> = since.collect();
    lacks(
        since.is_empty() || evidence.has_unversioned || since.contains(&None),
        Reason::VersionUnknown,
    );
    lacks(since.contains(&Some(false)), Reason::VersionTooOld);
    lacks(evidence.execution == Execution::Missing, Reason::NotExecuted);
    lacks(evidence.execution == Execution::Failed, Reason::ExecutionFailed);
    let sessions = evidence.sessions;
    lacks(!sessions.has_all, Reason::SessionsUnseen);
    lacks(sessions.is_elsewhere, Reason::ConfigurationElsewhere);
    lacks(!sessions.hears_events, Reason::EventsUnheard);
    // Of events that nobody hears nobody can say that they are missing.
    lacks(
        sessions.hears_events && sessions.silent > 0,
        Reason::SessionWithoutEvents,
    );
    let signs = evidence.signs;
    lacks(signs.is_preloaded, Reason::HookPreloaded);
    lacks(signs.is_not_enabled, Reason::ServiceNotEnabled);
    lacks(signs.was_silent, Reason::AgentWasSilent);
    for gap in GAPS {
        lacks(has_gap(&gap, evidence), gap.reason);
    }
    Coverage::of(reasons)
}

fn has_gap(gap: &Gap, evidence: &Evidence<'_>) -> bool {
    let is_here = gap.systems.is_empty() || gap.systems.contains(&evidence.system);
    let has = |version: &String| {
        let begins = gap.from.is_none_or(|from| is_since(version, from) != Some(false));
        let ended = gap
            .until
            .is_some_and(|until| is_since(version, until) == Some(true));
        begins && !ended
    };
    let is_of_a_version =
        evidence.versions.is_empty() || evidence.has_unversioned || evidence.versions.iter().any(has);
    gap.client == evidence.client && is_here && is_of_a_version
}

/// Returns by what the conversation of an event is known in the name of its file: Gemini CLI has the first eight digits there. `None` for what
/// names no conversation that a client begins, such as the event by which a line is tried.
pub fn session_key(client: Client, session: &str) -> Option<&str> {
    let is_one = session.len() == SESSION && is_hex(session);
    let key = match client {
        Client::ClaudeCode | Client::Codex => Some(session),
        Client::Gemini => session.get(..8),
    };
    key.filter(|_| is_one)
}

/// Letters of the name of a conversation.
const SESSION: usize = 36;

fn is_hex(text: &str) -> bool {
    text.bytes().all(|byte| byte.is_ascii_hexdigit() || byte == b'-')
}

/// Returns the home in which a client keeps a conversation, by the path that an event names: what stands before the folder that the client has in
/// each home. `None` where it stands in no such folder: the client has another one.
pub fn home_of_session(client: Client, path: &str) -> Option<&str> {
    // The folder, and how many parts the client's files have behind it: a file that lies deeper is one of another folder within this one.
    let (folder, parts) = match client {
        Client::ClaudeCode => ("/.claude/projects", 2),
        Client::Codex => ("/.codex/sessions", 4),
        Client::Gemini => ("/.gemini/tmp", 3),
    };
    if path.split('/').any(|part| part == "..") {
        return None;
    }
    let mut before = path;
    for _ in 0..parts {
        before = before.rsplit_once('/')?.0;
    }
    before.strip_suffix(folder)
}

/// Returns the same of the name of a file; `None` for one that this version does not understand.
pub fn session_of_file(client: Client, stem: &str) -> Option<&str> {
    match client {
        Client::ClaudeCode => (stem.len() == SESSION && is_hex(stem)).then_some(stem),
        Client::Codex => {
            let tail = stem.len().checked_sub(SESSION).and_then(|at| stem.get(at..))?;
            (stem.starts_with("rollout-") && is_hex(tail)).then_some(tail)
        }
        Client::Gemini => {
            let (_, tail) = stem.strip_prefix("session-")?.rsplit_once('-')?;
            (tail.len() == 8 && is_hex(tail)).then_some(tail)
        }
    }
}

/// Says whether a file in a folder of conversations is known to be none: what a helper of one wrote is part of it.
pub fn is_part_of_session(client: Client, stem: &str) -> bool {
    client == Client::ClaudeCode && stem.starts_with("agent-")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::client::Mode;

    type Change<'a> = Box<dyn Fn(&mut Evidence<'a>) + 'a>;

    fn effect(whose: Whose) -> Effect {
        Effect {
            whose,
            line: "x".to_owned(),
            program: Some(("/usr/local/bin/provost".to_owned(), Mode::Enforce)),
            lacks: BTreeSet::new(),
        }
    }

    fn evidence<'a>(client: Client, effect: &'a Effect, versions: &'a BTreeSet<String>) -> Evidence<'a> {
        Evidence {
            client,
            system: System::Linux,
            is_person_agent: false,
            effect: Ok(effect),
            is_managed_elsewhere: false,
            program: ProgramStanding::Own,
            versions,
            has_unversioned: false,
            execution: Execution::Answered,
            sessions: SessionsSeen {
                has_all: true,
                hears_events: true,
                silent: 0,
                is_elsewhere: false,
            },
            signs: Signs::default(),
        }
    }

    fn versions(all: &[&str]) -> BTreeSet<String> {
        all.iter().map(|version| (*version).to_owned()).collect()
    }

    /// Proves FH-1, FH-6, FH-8.
    #[test]
    fn each_step_that_is_not_proven_keeps_a_client_below_enforced_and_says_so() {
        let (effect, versions) = (effect(Whose::Machine), versions(&["2.1.331"]));
        let whole = || evidence(Client::ClaudeCode, &effect, &versions);
        let proven = coverage(&whole());
        assert_eq!((proven.level, proven.reasons.len()), (Level::Enforced, 0));
        let old = BTreeSet::from(["2.1.294".to_owned()]);
        let both = BTreeSet::from(["2.1.331".to_owned(), "1.0.0".to_owned()]);
        let none = BTreeSet::new();
        let strange = BTreeSet::from(["latest".to_owned()]);
        let changes: Vec<(Change<'_>, Reason, Level)> = vec![
            (
                Box::new(|one| one.effect = Err(Reason::NotRegistered)),
                Reason::NotRegistered,
                Level::None,
            ),
            (
                Box::new(|one| one.effect = Err(Reason::HooksDisabled)),
                Reason::HooksDisabled,
                Level::None,
            ),
            (
                Box::new(|one| one.is_person_agent = true),
                Reason::PersonAgent,
                Level::Observed,
            ),
            (
                Box::new(|one| one.is_managed_elsewhere = true),
                Reason::ManagedElsewhere,
                Level::Observed,
            ),
            (
                Box::new(|one| one.program = ProgramStanding::Other),
                Reason::ProgramOther,
                Level::Observed,
            ),
            (
                Box::new(|one| one.program = ProgramStanding::Open),
                Reason::ProgramOpen,
                Level::Observed,
            ),
            (
                Box::new(|one| one.versions = &none),
                Reason::VersionUnknown,
                Level::Observed,
            ),
            (
                Box::new(|one| one.versions = &strange),
                Reason::VersionUnknown,
                Level::Observed,
            ),
            (
                Box::new(|one| one.has_unversioned = true),
                Reason::VersionUnknown,
                Level::Observed,
            ),
            (
                Box::new(|one| one.versions = &old),
                Reason::VersionTooOld,
                Level::Observed,
            ),
            // The oldest that is installed may be the one that runs.
            (
                Box::new(|one| one.versions = &both),
                Reason::VersionTooOld,
                Level::Observed,
            ),
            (
                Box::new(|one| one.execution = Execution::Missing),
                Reason::NotExecuted,
                Level::Observed,
            ),
            (
                Box::new(|one| one.execution = Execution::Failed),
                Reason::ExecutionFailed,
                Level::Observed,
            ),
            (
                Box::new(|one| one.sessions.silent = 1),
                Reason::SessionWithoutEvents,
                Level::Observed,
            ),
            (
                Box::new(|one| one.sessions.has_all = false),
                Reason::SessionsUnseen,
                Level::Bypassable,
            ),
            (
                Box::new(|one| one.sessions.hears_events = false),
                Reason::EventsUnheard,
                Level::Bypassable,
            ),
        ];
        for (change, reason, level) in changes {
            let mut other = whole();
            change(&mut other);
            let found = coverage(&other);
            assert_eq!(found.level, level, "{reason:?}");
            assert_eq!(found.reasons, BTreeSet::from([reason]));
        }
    }

    /// Proves FH-6, FH-8.
    #[test]
    fn a_client_that_keeps_conversations_elsewhere_is_bypassable() {
        let (effect, versions) = (effect(Whose::Machine), versions(&["2.1.331"]));
        let mut moved = evidence(Client::ClaudeCode, &effect, &versions);
        moved.sessions.is_elsewhere = true;
        let found = coverage(&moved);
        let reasons = BTreeSet::from([Reason::ConfigurationElsewhere]);
        assert_eq!((found.level, found.reasons), (Level::Bypassable, reasons));
    }

    /// Proves FH-8.
    #[test]
    fn a_sign_that_somebody_meddled_keeps_a_client_below_enforced_and_is_named() {
        let (effect, versions) = (effect(Whose::Machine), versions(&["2.1.331"]));
        let with = |signs: Signs| {
            let mut one = evidence(Client::ClaudeCode, &effect, &versions);
            one.signs = signs;
            let found = coverage(&one);
            (found.level, found.reasons.into_iter().collect::<Vec<_>>())
        };
        let signs = Signs {
            is_preloaded: true,
            ..Signs::default()
        };
        assert_eq!(with(signs), (Level::Observed, vec![Reason::HookPreloaded]));
        let signs = Signs {
            is_not_enabled: true,
            ..Signs::default()
        };
        assert_eq!(with(signs), (Level::Bypassable, vec![Reason::ServiceNotEnabled]));
        let signs = Signs {
            was_silent: true,
            ..Signs::default()
        };
        assert_eq!(with(signs), (Level::Bypassable, vec![Reason::AgentWasSilent]));
    }

    /// Proves FH-8.
    #[test]
    fn a_known_gap_is_named_where_it_is() {
        let effect = effect(Whose::Machine);
        let (gemini, codex) = (versions(&["0.61.0"]), versions(&["0.169.0"]));
        let found = coverage(&evidence(Client::Gemini, &effect, &gemini));
        assert_eq!(found.level, Level::Bypassable);
        let gaps = [Reason::GapEnvironment, Reason::GapPersonSettings];
        assert_eq!(found.reasons, BTreeSet::from(gaps));
        let on = |system| {
            let mut one = evidence(Client::Codex, &effect, &codex);
            one.system = system;
            coverage(&one)
        };
        assert_eq!(on(System::Linux).level, Level::Enforced);
        assert_eq!(on(System::Macos).reasons, BTreeSet::from([Reason::GapApplyPatch]));
        assert_eq!(on(System::Windows).reasons.len(), 2);
        // A range has a beginning and an end.
        let gap = Gap {
            from: Some("1.2.0"),
            until: Some("1.4.0"),
            ..GAPS[0]
        };
        let has = |version: &[&str]| {
            let versions = versions(version);
            has_gap(&gap, &evidence(Client::Gemini, &effect, &versions))
        };
        assert!(!has(&["1.1.9"]) && has(&["1.2.0"]) && has(&["1.3.9"]) && !has(&["1.4.0"]));
        assert!(has(&[]) && has(&["latest"]) && has(&["1.0.0", "1.3.0"]));
    }

    #[test]
    fn what_comes_before_a_release_is_before_it() {
        let is = |version| is_since(version, "2.1.295");
        assert_eq!(is("2.1.295"), Some(true));
        assert_eq!(is("2.1.295-beta.1"), Some(false));
        assert_eq!(is("2.1.296-beta.1"), Some(true));
        assert_eq!(is("2.10.0"), Some(true));
        assert_eq!(is("2.1.295+build"), Some(true));
        for strange in ["2.1", "2.1.295.1", "two", "2.1.x", ""] {
            assert_eq!(is(strange), None, "{strange}");
        }
        assert_eq!(is_since("0.124.0", first_version(Client::Codex)), Some(true));
    }

    #[test]
    fn each_reason_has_a_word_of_its_own_and_a_step() {
        let words: BTreeSet<&str> = Reason::ALL.iter().map(|reason| reason.word()).collect();
        assert_eq!(words.len(), Reason::ALL.len());
        for reason in Reason::ALL {
            assert!(reason.most() < Level::Enforced && !reason.step().is_empty());
            assert_eq!(Coverage::of(BTreeSet::from([reason])).level, reason.most());
        }
        for level in [Level::None, Level::Observed, Level::Bypassable, Level::Enforced] {
            assert_eq!(Level::named(level.word()), Some(level));
        }
    }

    /// Proves FH-6.
    #[test]
    fn what_is_tried_is_no_conversation_and_a_folder_elsewhere_is_no_home() {
        for client in [Client::ClaudeCode, Client::Codex, Client::Gemini] {
            for session in [
                "provost-hook-doctor",
                "",
                "s1",
                "0d7c5a4e",
                "0d7c5a4e-1111-2222-3333-44445555666x",
            ] {
                assert_eq!(session_key(client, session), None, "{session}");
            }
        }
        for (client, path, home) in [
            (
                Client::ClaudeCode,
                "/home/ada/.claude/projects/-work/x.jsonl",
                Some("/home/ada"),
            ),
            (Client::ClaudeCode, "/data/claude/projects/-work/x.jsonl", None),
            (Client::ClaudeCode, "/dev/null", None),
            (
                Client::ClaudeCode,
                "/home/ada/.claude/projects/x/projects/-work/x.jsonl",
                None,
            ),
            (Client::ClaudeCode, "/home/ada/.claude/projects/../x.jsonl", None),
            (
                Client::Codex,
                "/home/ada/.codex/sessions/2026/11/28/rollout-x.jsonl",
                Some("/home/ada"),
            ),
            (Client::Codex, "/home/ada/.claude/projects/-work/x.jsonl", None),
            (
                Client::Gemini,
                "/home/ada/.gemini/tmp/x/chats/session-x.json",
                Some("/home/ada"),
            ),
        ] {
            assert_eq!(home_of_session(client, path), home, "{path}");
        }
    }

    #[test]
    fn a_gap_is_measured_as_far_as_its_source_says_and_the_guide_names_its_variables() {
        let guide = include_str!("../../../docs/guide/hooks.md");
        for gap in GAPS {
            let (measured, _) = gap
                .source
                .split_once("; by its source: ")
                .unwrap_or((gap.source, ""));
            // No client was asked in a folder that is not trusted, nor with other defaults.
            for not_measured in ["trusted", "folder", "DEFAULTS"] {
                assert!(!measured.contains(not_measured), "{measured}");
            }
            let words = gap.source.split([' ', ';', ',', ':']);
            for variable in words.filter(|word| word.starts_with("GEMINI_CLI_")) {
                assert!(guide.contains(&format!("`{variable}`")), "{variable}");
            }
        }
        let names = |name: &str| GAPS.iter().any(|gap| gap.source.contains(name));
        assert!(names("GEMINI_CLI_SYSTEM_SETTINGS_PATH") && names("GEMINI_CLI_SYSTEM_DEFAULTS_PATH"));
    }

    /// Proves FH-6.
    #[test]
    fn the_name_of_a_file_says_whose_events_it_waits_for() {
        let id = "0d7c5a4e-1111-2222-3333-444455556666";
        let codex = format!("rollout-2026-11-28T10-00-00-{id}");
        assert_eq!(
            session_of_file(Client::ClaudeCode, id),
            session_key(Client::ClaudeCode, id)
        );
        assert_eq!(
            session_of_file(Client::Codex, &codex),
            session_key(Client::Codex, id)
        );
        let gemini = "session-2026-11-28T10-00-0d7c5a4e";
        assert_eq!(
            session_of_file(Client::Gemini, gemini),
            session_key(Client::Gemini, id)
        );
        for (client, stem) in [
            (Client::ClaudeCode, "agent-0d7c5a4e"),
            (Client::ClaudeCode, "notes"),
            (Client::Codex, id),
            (Client::Gemini, "session-x"),
            (Client::Gemini, "logs"),
        ] {
            assert_eq!(session_of_file(client, stem), None, "{stem}");
        }
        assert!(
            is_part_of_session(Client::ClaudeCode, "agent-1")
                && !is_part_of_session(Client::Codex, "agent-1")
        );
    }
}
