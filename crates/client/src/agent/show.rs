//! `provost agent status` and `provost agent explain`.

use super::coverage;
use super::judging;
use super::places::{enrolled, failure, folder_path, place_args};
use crate::cli::{Exit, Failure, Form, Printer, Terminal, output_arg};
use clap::{Arg, ArgAction, ArgMatches, Command};
use provost_agent::{Folder, Mode, State, Upload, rules, uploads};
use serde_json::{Value, json};
use std::fmt::Write;

/// LIMIT: bytes that a page shows of one body. Ours: a report of a machine with much on it, and many screens.
const MOST_SHOWN: usize = 256 << 10;

pub fn status_command() -> Command {
    Command::new("status")
        .about("Shows what this machine is enrolled as, and what the agent did last")
        .long_about(
            "Shows what this machine is enrolled as, and what the agent did last. No server is asked. It ends with 0 where the \
             machine is enrolled, and with 2 where it is not: a script detects by it.",
        )
        .arg(
            Arg::new("json")
                .long("json")
                .action(ArgAction::SetTrue)
                .help("As -o json"),
        )
        .args(place_args())
        .arg(output_arg())
}

pub fn explain_command() -> Command {
    Command::new("explain")
        .about("Shows what was sent last, byte for byte, and what never is")
        .long_about(
            "Shows what is collected and what never is, how others are shown it, what was sent in the last seven days or waits to be, and of each kind the \
             last as it was sent: also what this machine told of the calls that it judged, with prompts, arguments and results where the organization \
             has them told. With -o json each of them is there, byte for byte. No server is asked.",
        )
        .args(place_args())
        .arg(output_arg())
}

fn printer<'a>(matches: &ArgMatches, terminal: &'a Terminal, is_json: bool) -> Printer<'a> {
    let form = if is_json {
        Form::Json
    } else {
        Form::chosen(matches, terminal)
    };
    Printer {
        form,
        terminal,
        quiet: false,
    }
}

pub fn status(matches: &ArgMatches, terminal: &Terminal) -> Result<(), Failure> {
    let (agent, _) = enrolled(matches, terminal)?;
    let device = &agent.device;
    let mut status = json!({
        "enrolled": true, "deviceId": device.device_id, "name": device.name, "server": device.server,
        "organization": device.organization, "mode": device.mode, "keyThumbprint": device.key_thumbprint,
        "tokenExpiresAt": agent.token_expires_at(), "scansHomes": device.mode == Mode::User, "agentVersion": env!("CARGO_PKG_VERSION"),
        "folder": agent.folder.path().display().to_string(), "judging": judging::status(&agent, terminal),
    });
    if let Some(coverage) = coverage::status(&agent) {
        status["coverage"] = coverage;
    }
    let state = State::load(&agent.folder).map_err(failure)?;
    let is_gone = state.is_gone;
    shown_to_others(&mut status, &state);
    if let (Value::Object(state), Some(status)) = (json!(state), status.as_object_mut()) {
        status.extend(state);
    }
    printer(matches, terminal, matches.get_flag("json")).object(&status)?;
    if is_gone {
        return Err(Failure::new(
            Exit::Forbidden,
            "the server no longer takes this device",
        ));
    }
    Ok(())
}

pub fn explain(matches: &ArgMatches, terminal: &Terminal) -> Result<(), Failure> {
    let folder = Folder::open(&folder_path(matches, terminal)?).map_err(failure)?;
    let uploads = uploads(&folder).map_err(failure)?;
    let state = State::load(&folder).map_err(failure)?;
    let mut rules = rules(judging::telling(&folder));
    rules.extend(judging::bypass_line(&folder, terminal));
    let form = Form::chosen(matches, terminal);
    if form != Form::Table {
        let shown = uploads.iter().map(|upload| {
            json!({ "kind": upload.kind, "state": upload.state, "at": upload.at, "bytes": upload.body.len(), "body": text(upload) })
        });
        let mut all = json!({ "rules": rules, "uploads": shown.collect::<Vec<_>>() });
        shown_to_others(&mut all, &state);
        printer(matches, terminal, false).object(&all)?;
        return Ok(());
    }
    let mut page = String::new();
    for rule in &rules {
        let _ = writeln!(page, "{rule}");
    }
    if let Some(privacy) = &state.privacy {
        let _ = writeln!(page, "shown by the server: {}", privacy.says());
    }
    if let Some(change) = &state.privacy_changed {
        let _ = writeln!(page, "{}", change.says());
    }
    for upload in &uploads {
        let _ = writeln!(
            page,
            "\n{} of {}, {}, {} bytes",
            upload.kind,
            upload.at,
            upload.state,
            upload.body.len()
        );
    }
    // Of each kind the last, as it was sent.
    for kind in ["report", "coverage", "decisions", "heartbeat"] {
        if let Some(last) = uploads.iter().rfind(|upload| upload.kind == kind) {
            let _ = writeln!(page, "\nthe last {kind}:\n{}", beginning(&text(last)));
        }
    }
    if uploads.is_empty() {
        page += "\nnothing was sent in the last seven days, and nothing waits\n";
    }
    terminal.print(terminal.shown(&page).as_bytes())?;
    Ok(())
}

/// Adds what others see of this machine, as the server said it last, and how that changed.
fn shown_to_others(page: &mut Value, state: &State) {
    if let Some(privacy) = &state.privacy {
        page["shownToOthers"] = privacy.says().into();
    }
    if let Some(change) = &state.privacy_changed {
        page["shownToOthersChanged"] = change.says().into();
    }
}

/// Returns what a page shows of a body; all of it is in JSON.
fn beginning(body: &str) -> String {
    let shown = &body[..body.floor_char_boundary(MOST_SHOWN)];
    let left = body.len() - shown.len();
    if left == 0 {
        return shown.to_owned();
    }
    format!("{shown}\n… and {left} bytes more: provost agent explain -o json")
}

fn text(upload: &Upload) -> String {
    String::from_utf8_lossy(&upload.body).into_owned()
}
