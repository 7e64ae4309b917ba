//! `provost agent run` and `provost agent scan`.

use super::configuration::Configuration;
use super::coverage::Guarding;
use super::judging::{self, Judging, Use, still_held};
use super::places::{enrolled, failure, place_args, refuse_others};
use super::skills::Skills;
use crate::cli::{DeviceServer, Exit, Failure, Terminal, counted};
use clap::{Arg, ArgAction, ArgMatches, Command};
use provost_agent::{
    ANEW, Agent, Cause, Loop, Mode, Once, State, Trouble, forget_decisions, once, queue_scan, report,
};
use provost_words::entropy::SystemEntropy;
use provost_words::time::SystemClock;
use std::path::Path;
use std::sync::Arc;
use tokio::signal::unix::{SignalKind, signal};

pub fn command() -> Command {
    Command::new("run")
        .about("Works: says that the machine is there, scans it every hour, sends what was found")
        .long_about(
            "Works until it is stopped: says to the server that the machine is there, scans it every hour, and sends what was \
             found. The agent of the machine keeps the managed settings that an admin assigned to it, and that of a person the skills. It asks the server that the machine \
             enrolled at and nobody else, and starts no program but itself, to see whether hooks answer. What cannot be sent waits in the agent's folder.\n\n\
             It ends with 3 when the server no longer takes the device; a service does not start it again then.",
        )
        .arg(
            Arg::new("once")
                .long("once")
                .action(ArgAction::SetTrue)
                .help("Makes one round and ends, for cron and for a look"),
        )
        .arg(judging::arg())
        .args(place_args())
}

pub fn scan_command() -> Command {
    Command::new("scan")
        .about("Scans the machine now, and sends what was found")
        .arg(
            Arg::new("print")
                .long("print")
                .action(ArgAction::SetTrue)
                .help("Prints what would be sent, byte for byte, and sends nothing"),
        )
        .args(place_args())
}

fn server(agent: &Agent, terminal: &Terminal) -> Result<DeviceServer, Failure> {
    let device = &agent.device;
    DeviceServer::new(&device.server, agent.ca_cert(), device.allow_plain_http, terminal)
}

/// Makes one round.
async fn round(agent: &Agent, home: &Path, judges: Use, terminal: &Terminal) -> Result<Once, Failure> {
    let say = |line: &str| terminal.note(line);
    let judging = Judging::new(agent.device.mode, judges, terminal);
    let work = Loop {
        agent,
        door: &server(agent, terminal)?,
        home,
        clock: &SystemClock::new(),
        entropy: &SystemEntropy,
        say: &say,
        stations: &[
            &Configuration::new("/"),
            &Skills::new(home),
            &judging,
            &Guarding::new(&judging, terminal),
        ],
        stop: Arc::default(),
    };
    let done = once(&work).await;
    let mut done = done.map_err(|trouble| ended(&judging, agent, trouble, terminal))?;
    match done.problem.take() {
        Some(trouble) => Err(failure(trouble)),
        None => Ok(done),
    }
}

/// Errors: refused, where a report was set aside.
fn whole(done: &Once) -> Result<(), Failure> {
    let says = match done.set_aside {
        0 => return Ok(()),
        1 => "one report was set aside".to_owned(),
        several => format!("{several} reports were set aside"),
    };
    Err(Failure::new(Exit::Refused, says).and("look at it: provost agent doctor"))
}

pub async fn run(matches: &ArgMatches, terminal: &Terminal) -> Result<(), Failure> {
    let (agent, home) = enrolled(matches, terminal)?;
    if State::load(&agent.folder).map_err(failure)?.is_gone {
        let line = "the server no longer takes this device; nothing is sent any more";
        return Err(Failure::new(Exit::Forbidden, line).and(format!("it is another device then: {ANEW}")));
    }
    let judges = Use::declared(matches);
    if matches.get_flag("once") {
        let done = round(&agent, &home, judges, terminal).await?;
        let scanned = if done.has_scanned {
            "the machine was scanned, "
        } else {
            ""
        };
        terminal.note(&format!(
            "heartbeat taken, {scanned}{} sent",
            counted(done.uploads, "reports")
        ));
        if let Some(held) = still_held(&agent) {
            let later = "where it was released just now: a heartbeat within ten seconds of another hears of no release";
            terminal.note(&format!("{}; {later}", held.says()));
        }
        return whole(&done);
    }
    if agent.device.mode == Mode::System {
        // Whoever can change the program would be root at the next start.
        refuse_others(&std::env::current_exe().unwrap_or_default())?;
    }
    let unheard = |error| Failure::new(Exit::Output, format!("signals cannot be heard: {error}"));
    let mut terminate = signal(SignalKind::terminate()).map_err(unheard)?;
    let mut interrupt = signal(SignalKind::interrupt()).map_err(unheard)?;
    let end = async {
        tokio::select! {
            _ = terminate.recv() => {}
            _ = interrupt.recv() => {}
        }
    };
    let say = |line: &str| terminal.note(line);
    let judging = Judging::new(agent.device.mode, judges, terminal);
    let work = Loop {
        agent: &agent,
        door: &server(&agent, terminal)?,
        home: &home,
        clock: &SystemClock::new(),
        entropy: &SystemEntropy,
        say: &say,
        stations: &[
            &Configuration::new("/"),
            &Skills::new(&home),
            &judging,
            &Guarding::new(&judging, terminal),
        ],
        stop: Arc::default(),
    };
    let done = provost_agent::run(&work, end).await;
    done.map_err(|trouble| ended(&judging, &agent, trouble, terminal))
}

/// Returns the end of a command, after what a device that is gone judged by was taken away.
fn ended(judging: &Judging, agent: &Agent, trouble: Trouble, terminal: &Terminal) -> Failure {
    if trouble.cause != Cause::Gone {
        return failure(trouble);
    }
    // Prompts stand in what was sent last.
    if let Err(kept) = judging.retire(agent).and(forget_decisions(&agent.folder)) {
        terminal.note(&format!("warning: {kept}"));
    }
    Failure {
        exit: Exit::Forbidden,
        ..failure(trouble)
    }
}

pub async fn scan(matches: &ArgMatches, terminal: &Terminal) -> Result<(), Failure> {
    let (agent, home) = enrolled(matches, terminal)?;
    let (clock, entropy) = (SystemClock::new(), SystemEntropy);
    if matches.get_flag("print") {
        let bytes = report(&agent, &home, &clock, &entropy).map_err(failure)?;
        terminal.print(&bytes)?;
        if terminal.stdout_is_terminal {
            terminal.print(b"\n")?;
        }
        terminal.note("nothing was sent");
        return Ok(());
    }
    queue_scan(&agent, &home, &clock, &entropy).map_err(failure)?;
    let done = round(&agent, &home, Use::Apart, terminal).await?;
    terminal.note(&format!("{} sent", counted(done.uploads, "reports")));
    whole(&done)
}
