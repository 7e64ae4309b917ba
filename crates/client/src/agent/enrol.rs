//! `provost agent enrol`.

use super::places::{failure, folder_path, mode, place_args, refuse_others};
use crate::cli::{DeviceServer, Failure, Form, Printer, Terminal, enrolment_token, output_arg};
use clap::{Arg, ArgAction, ArgMatches, Command, ValueHint, value_parser};
use provost_agent::{Enrolment, Folder, Mode, enrol, host_name};
use provost_words::entropy::SystemEntropy;
use provost_words::time::SystemClock;
use serde_json::json;
use std::path::PathBuf;

pub fn command() -> Command {
    Command::new("enrol")
        .about("Makes this machine a device of the organization")
        .long_about(
            "Makes this machine a device of the organization, by an enrolment token that an admin made \
             (`provost enrolment-tokens create`). The machine draws a key of its own, which never leaves it; the token \
             that the server gives it opens nothing without that key.\n\n\
             When the answer is lost the same command is typed again: it is the same device. An enrolment token is used once.",
        )
        .arg(
            Arg::new("server")
                .long("server")
                .value_name("URL")
                .required(true)
                .value_hint(ValueHint::Url)
                .help("The server, by the address that it has for itself (http.public_url)"),
        )
        .arg(
            Arg::new("organization")
                .long("organization")
                .value_name("KEY")
                .required(true)
                .help("The organization's key"),
        )
        .arg(
            Arg::new("token-file")
                .long("token-file")
                .value_name("FILE")
                .required(true)
                .value_hint(ValueHint::FilePath)
                .value_parser(value_parser!(PathBuf))
                .help("The file that holds the enrolment token; - reads standard input"),
        )
        .arg(
            Arg::new("name")
                .long("name")
                .value_name("NAME")
                .help("What people call the machine [default: its own name]"),
        )
        .arg(
            Arg::new("ca-cert")
                .long("ca-cert")
                .value_name("FILE")
                .value_hint(ValueHint::FilePath)
                .value_parser(value_parser!(PathBuf))
                .help("Trusts these certificates (PEM) instead of the system's, from now on"),
        )
        .arg(
            Arg::new("allow-plain-http")
                .long("allow-plain-http")
                .action(ArgAction::SetTrue)
                .help("Sends tokens unencrypted to a host that is not this machine, from now on"),
        )
        .args(place_args())
        .arg(output_arg())
}

pub async fn run(matches: &ArgMatches, terminal: &Terminal) -> Result<(), Failure> {
    let text = |id: &str| {
        matches
            .get_one::<String>(id)
            .map(String::as_str)
            .unwrap_or_default()
    };
    let ca_cert = match matches.get_one::<PathBuf>("ca-cert") {
        // The service that runs later has another working folder.
        Some(path) => Some(
            path.canonicalize()
                .map_err(|error| Failure::usage(format!("cannot read {}: {error}", path.display())))?,
        ),
        None => None,
    };
    if let (Mode::System, Some(path)) = (mode(matches), &ca_cert) {
        refuse_others(path)?;
    }
    let allow_plain_http = matches.get_flag("allow-plain-http");
    let server = DeviceServer::new(text("server"), ca_cert.clone(), allow_plain_http, terminal)?;
    if text("organization").is_empty() {
        return Err(Failure::usage("say which organization: --organization KEY"));
    }
    let token = matches
        .get_one::<PathBuf>("token-file")
        .cloned()
        .unwrap_or_default();
    let token = enrolment_token(&token, terminal)?;
    let own = host_name();
    let name = matches.get_one::<String>("name").cloned().or(own);
    let name = name.ok_or_else(|| Failure::usage("this machine has no name; say --name NAME"))?;
    let folder = Folder::make(&folder_path(matches, terminal)?).map_err(failure)?;
    let enrolment = Enrolment {
        door: &server,
        organization: text("organization"),
        token: &token,
        name: &name,
        mode: mode(matches),
        allow_plain_http,
        ca_cert,
        clock: &SystemClock::new(),
        entropy: &SystemEntropy,
    };
    let (device, odd) = enrol(&folder, &enrolment).await.map_err(failure)?;
    for line in odd {
        terminal.note(&format!("warning: {line}"));
    }
    terminal
        .note("enrolled; the agent works once it runs: provost agent install, or provost agent run --once");
    let printer = Printer {
        form: Form::chosen(matches, terminal),
        terminal,
        quiet: false,
    };
    printer.object(&json!({
        "deviceId": device.device_id, "name": device.name, "server": device.server, "organization": device.organization,
        "mode": device.mode, "keyThumbprint": device.key_thumbprint, "tokenExpiresAt": device.token_expires_at,
        "folder": folder.path().display().to_string(),
    }))?;
    Ok(())
}
