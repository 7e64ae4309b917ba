//! Where the agent lies, and what its troubles are as the end of a command.

use crate::cli::{Exit, Failure, Terminal};
use clap::{Arg, ArgAction, ArgMatches, ValueHint, value_parser};
use provost_agent::{Agent, Cause, Folder, Mode, Trouble};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

pub const SYSTEM: &str = "/var/lib/provost-agent";
pub const USER: &str = ".local/state/provost-agent";

/// Returns the flags that say which agent is meant.
pub fn place_args() -> [Arg; 2] {
    [
        Arg::new("system")
            .long("system")
            .action(ArgAction::SetTrue)
            .help(format!(
                "The agent of the machine, in {SYSTEM}, instead of your own in ~/{USER}"
            )),
        Arg::new("state-dir")
            .long("state-dir")
            .value_name("DIR")
            .value_hint(ValueHint::DirPath)
            .value_parser(value_parser!(PathBuf))
            .help("The folder of the agent, where it is another one"),
    ]
}

/// Returns for whom the agent works.
pub fn mode(matches: &ArgMatches) -> Mode {
    if matches.get_flag("system") {
        Mode::System
    } else {
        Mode::User
    }
}

/// Returns one's own home.
///
/// Errors: usage, when it is not known.
pub fn home(terminal: &Terminal) -> Result<PathBuf, Failure> {
    let home = terminal.surroundings.home.clone();
    home.filter(|home| !home.as_os_str().is_empty())
        .ok_or_else(|| Failure::usage("HOME is not set").and("say --system, or set HOME"))
}

/// Returns the path of the agent's folder.
///
/// Errors: usage, when there is no home.
pub fn folder_path(matches: &ArgMatches, terminal: &Terminal) -> Result<PathBuf, Failure> {
    match (matches.get_one::<PathBuf>("state-dir"), mode(matches)) {
        (Some(path), _) => Ok(path.clone()),
        (None, Mode::System) => Ok(PathBuf::from(SYSTEM)),
        (None, Mode::User) => Ok(home(terminal)?.join(USER)),
    }
}

/// Returns the agent that was enrolled, and the home that it scans where it is one person's.
///
/// Errors: why there is none.
pub fn enrolled(matches: &ArgMatches, terminal: &Terminal) -> Result<(Agent, PathBuf), Failure> {
    let folder = Folder::open(&folder_path(matches, terminal)?).map_err(failure)?;
    let agent = Agent::open(&folder).map_err(failure)?;
    let home = match agent.device.mode {
        Mode::System => PathBuf::from("/"),
        Mode::User => home(terminal)?,
    };
    Ok((agent, home))
}

/// Returns a trouble as the end of a command.
pub fn failure(trouble: Trouble) -> Failure {
    let exit = match trouble.cause {
        Cause::Busy | Cause::Folder | Cause::Enrolment => Exit::Usage,
        Cause::Gone | Cause::Expired | Cause::Refused(401 | 403) => Exit::Forbidden,
        Cause::Refused(404) => Exit::NotFound,
        Cause::Refused(409 | 412 | 422) => Exit::Conflict,
        Cause::Refused(429 | 503) => Exit::Unavailable,
        Cause::Refused(500..) => Exit::ServerFault,
        Cause::Refused(_) => Exit::Refused,
        Cause::Unreachable => Exit::Unreachable,
        Cause::Disk => Exit::Output,
    };
    let failure = Failure::new(exit, trouble.line);
    match trouble.fix {
        Some(fix) => failure.and(fix),
        None => failure,
    }
}

/// Refuses a file that another account than root could change, itself or by a folder above it: root works with it later.
///
/// Errors: usage, with the path that is open.
pub fn refuse_others(path: &Path) -> Result<(), Failure> {
    let cannot =
        |error: std::io::Error| Failure::usage(format!("cannot look at {}: {error}", path.display()));
    let real = path.canonicalize().map_err(cannot)?;
    for part in real.ancestors() {
        let found = part.metadata().map_err(cannot)?;
        if found.uid() != 0 || found.mode() & 0o022 != 0 {
            let line = format!("{} can be changed by others than root", part.display());
            return Err(Failure::usage(line).and(format!(
                "root would work with {}: put it where root alone writes, such as below /usr/local or /etc",
                real.display()
            )));
        }
    }
    Ok(())
}
