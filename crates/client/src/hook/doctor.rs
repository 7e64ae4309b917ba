//! `provost hook doctor`: whether the hooks of this machine work, what they guard, and what they do not.
//!
//! Settings are no proof: hooks that were registered and never ran were found after weeks. So the registered command line is run as
//! the client would run it, through a shell, with an event of its own.

use super::ask::Ask;
use super::desk::{Desk, quarantine_of_machine};
use super::places::{self, Whose};
use super::run::{client_arg, config_arg};
use super::settings::{self, Homes, HookSettings, KeptToken};
use super::settings_text::SettingsFile;
use super::{caller, guarded, sample};
use crate::agent::coverage::{found, of_machine};
use crate::cli::{Exit, Failure, Terminal, lines_visible};
use clap::{ArgMatches, Command};
use provost_agent::Quarantine;
use provost_hooks::{
    CLIENT_SECONDS, Client, Decision, EverySettings, Message, Mode, Reason, Registration, SettingsFound,
    changed, effect, hear, switches_off,
};
use serde_json::{Map, Value};
use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// LIMIT: how long the server is waited for.
const TRIAL: Duration = Duration::from_secs(5);
const DECIDE: &str = "policies:decide";

/// Returns the command.
pub fn command() -> Command {
    Command::new("doctor")
        .about(
            "Check the hooks of this machine: file, token, server, registrations, and one event through each",
        )
        .arg(client_arg().help("Only this client [default: each that has a registration]"))
        .arg(config_arg())
        .arg(places::root_arg())
}

/// What was found, line by line.
#[derive(Default)]
struct Findings {
    text: String,
    failed: usize,
    trouble: Trouble,
}

/// What is wrong with the hooks of a machine.
#[derive(Default)]
pub struct Trouble {
    /// What keeps them from working.
    pub failures: Vec<String>,
    /// What somebody should know.
    pub warnings: Vec<String>,
}

impl Findings {
    fn ok(&mut self, line: &str) {
        self.say("ok", line);
    }

    fn warn(&mut self, line: &str) {
        self.trouble.warnings.push(line.to_owned());
        self.say("warning", line);
    }

    fn fail(&mut self, line: &str) {
        self.failed += 1;
        self.trouble.failures.push(line.to_owned());
        self.say("FAILED", line);
    }

    fn say(&mut self, word: &str, line: &str) {
        let _ = writeln!(self.text, "{word:<12} {line}");
    }
}

/// Does it.
pub async fn run(matches: &ArgMatches, terminal: &Terminal) -> Result<(), Failure> {
    let homes = Homes::of(terminal);
    let mut findings = Findings::default();
    let config = matches.get_one::<PathBuf>("config").map(PathBuf::as_path);
    settings_of(config, &homes, &mut findings).await;
    let named = matches
        .get_one::<String>("client")
        .and_then(|word| Client::named(word));
    let root = places::root(matches);
    let mut registered = 0;
    for client in Client::ALL
        .into_iter()
        .filter(|client| named.is_none_or(|named| named == *client))
    {
        for whose in [Whose::Machine, Whose::User] {
            let Ok(path) = places::file(client, whose, &root, &homes) else {
                continue;
            };
            registered += usize::from(registration(
                (client, whose, path),
                (&root, &homes),
                terminal,
                &mut findings,
            ));
        }
    }
    if registered == 0 {
        let which = named.map_or("no client", Client::name);
        findings.fail(&format!(
            "{which} has a registration; run: provost hook install CLIENT"
        ));
    }
    terminal.print(lines_visible(&findings.text).as_bytes())?;
    match findings.failed {
        0 => Ok(()),
        1 => Err(Failure::new(Exit::Refused, "one check failed")),
        several => Err(Failure::new(Exit::Refused, format!("{several} checks failed"))),
    }
}

/// Looks at the hooks of this machine and of this person as `provost hook doctor` does, where a client has a registration; nothing
/// where none has.
pub async fn look(terminal: &Terminal) -> Option<Trouble> {
    let homes = Homes::of(terminal);
    let mut findings = Findings::default();
    let mut registered = false;
    for client in Client::ALL {
        for whose in [Whose::Machine, Whose::User] {
            if let Ok(path) = places::file(client, whose, Path::new("/"), &homes) {
                registered |= registration(
                    (client, whose, path),
                    (Path::new("/"), &homes),
                    terminal,
                    &mut findings,
                );
            }
        }
    }
    if !registered && findings.failed == 0 {
        return None;
    }
    settings_of(None, &homes, &mut findings).await;
    Some(findings.trouble)
}

/// Looks at the file of the hook, and at what its token may.
async fn settings_of(named: Option<&Path>, homes: &Homes, findings: &mut Findings) {
    if let Some((settings, kept)) = file(named, homes, findings) {
        token(&settings, &kept, findings).await;
        user(&settings, &kept, findings).await;
    }
}

fn file(named: Option<&Path>, homes: &Homes, findings: &mut Findings) -> Option<(HookSettings, KeptToken)> {
    let read = settings::place(named, homes).and_then(|place| Ok((HookSettings::load(&place)?, place)));
    let (settings, place) = read.map_err(|why| findings.fail(&why)).ok()?;
    findings.ok(&format!(
        "{}: {}, organization {}",
        place.display(),
        settings.url,
        settings.organization
    ));
    let held = Desk::of(&place, homes).and_then(|desk| desk.quarantine(Some(&settings)));
    match held.max(quarantine_of_machine()) {
        Some(held @ Quarantine::Block) => findings.fail(held.says()),
        Some(held @ Quarantine::Monitor) => findings.warn(held.says()),
        None => {}
    }
    let kept = settings.token(homes).map_err(|why| findings.fail(&why)).ok()?;
    let shown = kept.path.display();
    if kept.mode.trailing_zeros() >= 6 {
        findings.ok(&format!("{shown}: its owner alone can read the token"));
    } else {
        findings.warn(&format!(
            "{shown}: other users of this machine can read the token; run: chmod 600 {shown}"
        ));
    }
    Some((settings, kept))
}

async fn token(settings: &HookSettings, kept: &KeptToken, findings: &mut Findings) {
    let ask = Ask {
        settings,
        token: &kept.token,
        path: "capabilities",
        body: None,
        limit: TRIAL,
    };
    let answer = match ask.answer().await {
        Ok(answer) => answer,
        Err(why) => return findings.fail(&why),
    };
    let holder: Value = serde_json::from_slice(&answer).unwrap_or_default();
    let text = |pointer: &str| {
        holder
            .pointer(pointer)
            .and_then(Value::as_str)
            .unwrap_or("?")
            .to_owned()
    };
    let (kind, id, name) = (
        text("/principal/type"),
        text("/principal/id"),
        text("/principal/name"),
    );
    let scopes: Vec<&str> = holder["scopes"]
        .as_array()
        .into_iter()
        .flatten()
        .filter_map(Value::as_str)
        .collect();
    let whose = format!("the token is that of {name} ({kind} {id})");
    if !scopes.contains(&DECIDE) {
        return findings.fail(&format!(
            "{whose}, and may not ask for decisions: it lacks {DECIDE}"
        ));
    }
    if scopes.len() == 1 {
        findings.ok(&format!("{whose}, and may do nothing but ask for decisions"));
    } else {
        let more = scopes.len() - 1;
        findings.warn(&format!(
            "{whose}, and may do more than ask for decisions ({more} more scopes): an agent can read it; make one with {DECIDE} alone"
        ));
    }
    if kind != "service_account" && settings.user.as_deref() != Some(&id) {
        findings.fail("the token is a person's, and the file of the hook names another user; run: provost hook install CLIENT");
    }
}

/// Asks about a harmless call without enforcing it: the answer says whether the word names somebody.
async fn user(settings: &HookSettings, kept: &KeptToken, findings: &mut Findings) {
    let Some(word) = caller::word(settings) else {
        return findings.warn(
            "nobody can say whose agent it is: every policy about users and groups counts as matched; \
             run: provost hook install CLIENT --user WORD",
        );
    };
    let Ok(Message::Question(question)) =
        hear(Client::ClaudeCode, sample::event(Client::ClaudeCode).as_bytes())
    else {
        return findings.fail("the sample event is not understood");
    };
    let ask = Ask {
        settings,
        token: &kept.token,
        path: "policies/decisions",
        body: Some(question.request(Some(&word), None, Mode::Monitor)),
        limit: TRIAL,
    };
    let decided = ask.answer().await;
    let decided = decided.and_then(|answer| Decision::read(&answer, question.count()).map_err(str::to_owned));
    match decided {
        Err(why) => findings.fail(&why),
        Ok(decision) if decision.user_unresolved => findings.warn(&format!(
            "the user is {word}, which names nobody whom the server knows, or several: policies about users and groups do not see \
             the person"
        )),
        Ok(_) => findings.ok(&format!("the user is {word}, whom the server knows")),
    }
}

/// Looks at one place; says whether something of ours stands there.
fn registration(
    (client, whose, path): (Client, Whose, PathBuf),
    (root, homes): (&Path, &Homes),
    terminal: &Terminal,
    findings: &mut Findings,
) -> bool {
    let file = match SettingsFile::read(client, path) {
        Ok(file) => file,
        Err(failure) => {
            findings.fail(&failure.lines.join("; "));
            return false;
        }
    };
    let shown = file.path().display().to_string();
    let read = file.found().and_then(|found| Ok((found, file.members()?)));
    let (found, members) = match read {
        Ok((Some(found), members)) => (found, members),
        Ok((None, _)) => return false,
        Err(failure) => {
            findings.fail(&failure.lines.join("; "));
            return false;
        }
    };
    let mode = mode_of(&found);
    let failed = findings.failed;
    let line = format!(
        "{shown}: {} asks at {} ({})",
        client.name(),
        found.events.join(", "),
        mode.word()
    );
    if found.events.len() < 3 {
        findings.fail(&format!(
            "{line}; some are missing, run: provost hook install {}",
            client.word()
        ));
    } else {
        findings.ok(&line);
    }
    if mode == Mode::Enforce && client == Client::ClaudeCode && !found.on_failure {
        findings.fail(&format!(
            "{shown}: the registration lacks onFailure: a hook that fails lets calls run"
        ));
    }
    if mode == Mode::Enforce && !found.command.contains("exit 2; }") {
        findings.fail(&format!(
            "{shown}: the command line has no tail that refuses when the program is missing"
        ));
    }
    match changed(client, &members, &found.command) {
        Some(Reason::HooksDisabled) => findings.fail(&format!(
            "{shown}: hooks are switched off there (such as by disableAllHooks), so no hook of this file runs"
        )),
        // What is said above says more.
        Some(_) if findings.failed == failed => findings.fail(&format!(
            "{shown}: the registration is not as it was written: a matcher, a condition, a time or something in its line was changed, so that \
             calls may run without a decision; run: {}",
            again(client, whose, mode)
        )),
        _ => {}
    }
    if findings.failed == failed {
        elsewhere((client, whose), members, (root, homes), findings);
    }
    match sample::answered(
        client,
        &found.command,
        Duration::from_secs(CLIENT_SECONDS),
        terminal.clock.as_ref(),
    ) {
        Ok(said) => findings.ok(&said),
        Err(why) => findings.fail(&why),
    }
    if findings.failed == failed {
        findings.say("guarded", guarded::guarded(mode));
    } else {
        findings.say(
            "guarded",
            "nobody can say what is, until what FAILED here is mended",
        );
    }
    for open in guarded::not_guarded(client, whose, mode) {
        findings.say("not guarded", open);
    }
    true
}

/// Returns the command that writes a registration anew.
fn again(client: Client, whose: Whose, mode: Mode) -> String {
    let whose = match whose {
        Whose::Machine => " --system",
        Whose::User => "",
    };
    format!(
        "provost hook install {}{whose} --mode {}",
        client.word(),
        mode.word()
    )
}

/// Says where other settings than those of a registration take it away: the machine's, and those of the folder in which somebody looks,
/// which Claude Code obeys about a person's hooks and Gemini CLI about all.
fn elsewhere(
    (client, whose): (Client, Whose),
    members: Map<String, Value>,
    (root, homes): (&Path, &Homes),
    findings: &mut Findings,
) {
    let (machine, switches) = of_machine(client, root, homes);
    let person = match whose {
        Whose::User => vec![SettingsFound::Read(members)],
        Whose::Machine => Vec::new(),
    };
    let every = EverySettings {
        machine,
        switches,
        person,
    };
    match effect(client, &every) {
        Err(Reason::HooksDisabled) => {
            findings.fail("the machine's settings switch hooks off, so that none of these runs");
        }
        Err(Reason::ManagedHooksOnly) => findings.fail(
            "the machine's settings allow its own hooks alone (allowManagedHooksOnly): none of a person's runs; run: provost hook install \
             claude-code --system",
        ),
        Err(Reason::RegistrationUnreadable) => {
            findings.fail("a file of the machine's settings cannot be read, so that nobody can say whether hooks run");
        }
        _ => {}
    }
    let mut here = match (client, whose) {
        (Client::ClaudeCode, Whose::User) => [".claude/settings.json", ".claude/settings.local.json"]
            .map(PathBuf::from)
            .to_vec(),
        (Client::Gemini, _) => vec![PathBuf::from(".gemini/settings.json")],
        _ => Vec::new(),
    };
    // Gemini CLI puts lists of switches together, also under the machine's.
    if (client, whose) == (Client::Gemini, Whose::Machine) {
        here.extend(places::file(client, Whose::User, root, homes).ok());
    }
    for path in here {
        let shown = path.display();
        match found(client, &path) {
            SettingsFound::Read(members) if switches_off(client, &members) => findings.fail(&format!(
                "{shown} switches hooks off (such as by disableAllHooks or hooksConfig): none of these runs where it counts"
            )),
            SettingsFound::Unreadable => findings.warn(&format!(
                "{shown} cannot be read as the client's settings, so that nobody can say whether it switches hooks off"
            )),
            SettingsFound::Read(_) | SettingsFound::Absent => {}
        }
    }
}

/// Without a word, it is enforced.
fn mode_of(found: &Registration) -> Mode {
    if found.command.contains("--mode monitor") {
        Mode::Monitor
    } else {
        Mode::Enforce
    }
}
