//! `provost agent install` and `provost agent uninstall`: the unit of systemd, and texts for those who roll out.

use super::judging;
use super::places::{SYSTEM, USER, failure, home, mode, refuse_others};
use crate::cli::{Exit, Failure, Terminal, replace_file};
use clap::builder::PossibleValuesParser;
use clap::{Arg, ArgAction, ArgMatches, Command, ValueHint};
use provost_agent::{Duties, Mdm, Mode, NO_SCANS, Unit, artefact, unit};
use provost_words::durable::folder_of;
use std::fs;
use std::io::ErrorKind;
use std::path::PathBuf;

fn args() -> [Arg; 2] {
    [
        Arg::new("system")
            .long("system")
            .action(ArgAction::SetTrue)
            .help("The unit of the machine, instead of one of your own manager"),
        Arg::new("print")
            .long("print")
            .action(ArgAction::SetTrue)
            .help("Prints it and changes nothing"),
    ]
}

pub fn command() -> Command {
    Command::new("install")
        .about("Writes the unit by which systemd runs the agent")
        .long_about(
            "Writes the unit by which systemd runs the agent, and says the commands that start it: the agent starts no program, \
             not even systemctl. A unit that is there is left alone unless it is the same.\n\n\
             --print-mdm prints a text for a management system. Those texts were written after documentation and tried nowhere. \
             Machines that they roll out judge only where --judge stands beside it.",
        )
        .args(args())
        .arg(super::judging::arg())
        .arg(
            Arg::new("see-sessions")
                .long("see-sessions")
                .action(ArgAction::SetTrue)
                .requires("judge")
                .requires("system")
                .help("Lets the agent of the machine see names and times of conversations in homes, which proves that hooks fire"),
        )
        .arg(
            Arg::new("print-mdm")
                .long("print-mdm")
                .value_name("SYSTEM")
                .value_parser(PossibleValuesParser::new(["jamf", "intune", "ansible"]))
                .requires("server")
                .requires("organization")
                .help("Prints a text for a management system, untested"),
        )
        .arg(
            Arg::new("server")
                .long("server")
                .value_name("URL")
                .value_hint(ValueHint::Url)
                .help("The server in that text"),
        )
        .arg(
            Arg::new("organization")
                .long("organization")
                .value_name("KEY")
                .help("The organization in that text"),
        )
}

pub fn uninstall_command() -> Command {
    Command::new("uninstall")
        .about("Removes the unit by which systemd runs the agent; the device and its folder stay")
        .args(args())
}

/// Returns the unit and the path of its file.
fn own_unit(matches: &ArgMatches, duties: Duties, terminal: &Terminal) -> Result<(Unit, PathBuf), Failure> {
    let program = std::env::current_exe().map_err(|error| {
        Failure::new(
            Exit::Output,
            format!("this program does not know its path: {error}"),
        )
    })?;
    let unit = unit(mode(matches), &program, duties).map_err(Failure::usage)?;
    let path = match mode(matches) {
        Mode::System => PathBuf::from(unit.path),
        Mode::User => home(terminal)?.join(unit.path),
    };
    Ok((unit, path))
}

pub fn run(matches: &ArgMatches, terminal: &Terminal) -> Result<(), Failure> {
    let text = |id: &str| {
        matches
            .get_one::<String>(id)
            .map(String::as_str)
            .unwrap_or_default()
    };
    let mdm = match text("print-mdm") {
        "jamf" => Some(Mdm::Jamf),
        "intune" => Some(Mdm::Intune),
        "ansible" => Some(Mdm::Ansible),
        _ => None,
    };
    let duties = Duties {
        judges: matches.get_flag("judge"),
        sees_sessions: matches.get_flag("see-sessions"),
    };
    if let Some(mdm) = mdm {
        let script = artefact(mdm, text("server"), text("organization"), duties).map_err(Failure::usage)?;
        terminal.print(script.as_bytes())?;
        return Ok(());
    }
    let (unit, path) = own_unit(matches, duties, terminal)?;
    if matches.get_flag("print") {
        terminal.print(unit.text.as_bytes())?;
        terminal.note(&format!("nothing was written; it belongs in {}", path.display()));
        return Ok(());
    }
    if mode(matches) == Mode::System {
        let program = std::env::current_exe().unwrap_or_default();
        refuse_others(&program)?;
        terminal.note(NO_SCANS);
        terminal.note("managed settings are written where their folders are; make them first: mkdir -p -m 755 /etc/claude-code /etc/codex");
    }
    let shown = path.display();
    match fs::read_to_string(&path) {
        Ok(there) if there == unit.text => {
            terminal.note(&format!("{shown} is there and the same"));
            return Ok(());
        }
        Ok(_) => {
            let line = format!("{shown} is there and is another one");
            return Err(Failure::new(Exit::Conflict, line)
                .and("compare it with --print, and remove it to have it written"));
        }
        Err(error) if error.kind() == ErrorKind::NotFound => {}
        Err(error) => return Err(Failure::usage(format!("cannot read {shown}: {error}"))),
    }
    let written =
        fs::create_dir_all(folder_of(&path)).and_then(|()| replace_file(&path, unit.text.as_bytes(), 0o644));
    written.map_err(|error| Failure::new(Exit::Output, format!("cannot write {shown}: {error}")))?;
    if terminal.surroundings.https_proxy.is_some() {
        terminal.note("the service has not HTTPS_PROXY of this shell: put it under [Service] as Environment=HTTPS_PROXY=… with systemctl edit");
    }
    terminal.note(&format!("{shown} was written; start the agent with:"));
    for command in unit.enable {
        terminal.note(&format!("  {command}"));
    }
    Ok(())
}

pub fn uninstall(matches: &ArgMatches, terminal: &Terminal) -> Result<(), Failure> {
    let (unit, path) = own_unit(matches, Duties::default(), terminal)?;
    let shown = path.display();
    if matches.get_flag("print") {
        terminal.print(format!("{}\nrm {shown}\n", unit.disable).as_bytes())?;
        return Ok(());
    }
    match fs::remove_file(&path) {
        Ok(()) => terminal.note(&format!(
            "{shown} was removed; what runs is stopped with: {}",
            unit.disable
        )),
        Err(error) if error.kind() == ErrorKind::NotFound => terminal.note(&format!("{shown} is not there")),
        Err(error) => {
            let line = format!("cannot remove {shown}: {error}");
            return Err(Failure::new(Exit::Output, line));
        }
    }
    let folder = match mode(matches) {
        Mode::System => PathBuf::from(SYSTEM),
        Mode::User => home(terminal)?.join(USER),
    };
    judging::clear(mode(matches), &folder, terminal).map_err(failure)?;
    terminal.note("the device is still enrolled: have it retired with provost devices retire");
    Ok(())
}
