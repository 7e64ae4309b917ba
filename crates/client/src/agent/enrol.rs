//! `provost agent enrol`.

use super::places::{failure, folder_path, mode, place_args};
use crate::cli::{
    DeviceServer, EnrolmentWish, Failure, Form, OwnEnrolment, Printer, Terminal, enrolment_token, output_arg,
};
use clap::{Arg, ArgAction, ArgMatches, Command, ValueHint, value_parser};
use provost_agent::{Enrolment, Folder, enrol, host_name, may_enrol};
use provost_words::Secret;
use provost_words::entropy::SystemEntropy;
use provost_words::time::SystemClock;
use serde_json::json;
use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

/// LIMIT: bytes of the certificates of a server. Ours: what a file of the agent may have.
const MAX_CERTIFICATES: u64 = 1 << 20;

pub fn command() -> Command {
    Command::new("enrol")
        .about("Makes this machine a device of the organization")
        .long_about(
            "Makes this machine a device of the organization, by an enrolment token that an admin made \
             (`provost enrolment-tokens create`), or with --sign-in as your own: you sign in with a browser, where the settings have people \
             enrol their own machines (fleet.enrolment.selfEnrol). That sign-in may do nothing else and is not kept. The machine draws a key of its own, which never leaves it; the token \
             that the server gives it opens nothing without that key.\n\n\
             When the answer is lost the same command is typed again: it is the same device. An enrolment token is used once.\n\n\
             A machine whose device is retired, or whose token has ended, enrols with --anew: as another device, with another key. \
             It is the earlier one until the server has answered.",
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
                .required_unless_present("sign-in")
                .help("The organization's key; with --sign-in it is the one that you choose in the browser"),
        )
        .arg(
            Arg::new("token-file")
                .long("token-file")
                .value_name("FILE")
                .required_unless_present("sign-in")
                .value_hint(ValueHint::FilePath)
                .value_parser(value_parser!(PathBuf))
                .help("The file that holds the enrolment token; - reads standard input"),
        )
        .arg(
            Arg::new("sign-in")
                .long("sign-in")
                .action(ArgAction::SetTrue)
                .conflicts_with_all(["token-file", "system"])
                .help("Signs in with a browser, and enrols the machine as your own"),
        )
        .arg(
            Arg::new("no-browser")
                .long("no-browser")
                .action(ArgAction::SetTrue)
                .requires("sign-in")
                .help("Names the address where you sign in, and opens no browser"),
        )
        .arg(
            Arg::new("port")
                .long("port")
                .value_name("N")
                .value_parser(value_parser!(u16).range(1..))
                .requires("sign-in")
                .help("Where the browser brings the answer, for a port that is forwarded [default: one that is free]"),
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
                .help("Trusts these certificates (PEM) instead of the system's, from now on; the agent keeps a copy"),
        )
        .arg(
            Arg::new("allow-plain-http")
                .long("allow-plain-http")
                .action(ArgAction::SetTrue)
                .help("Sends tokens unencrypted to a host that is not this machine, from now on"),
        )
        .arg(
            Arg::new("anew")
                .long("anew")
                .action(ArgAction::SetTrue)
                .help("Gives up the device that this machine is, and enrols as another one"),
        )
        .args(place_args())
        .arg(output_arg())
}

/// Reads the certificates that vouch for a server. That they are some, whoever makes the connection says.
fn certificates(path: &Path) -> Result<Vec<u8>, Failure> {
    let cannot = |error: std::io::Error| Failure::usage(format!("cannot read {}: {error}", path.display()));
    let mut bytes = Vec::new();
    let file = File::open(path).map_err(cannot)?;
    file.take(MAX_CERTIFICATES + 1)
        .read_to_end(&mut bytes)
        .map_err(cannot)?;
    if bytes.len() as u64 > MAX_CERTIFICATES {
        let line = format!("{} has more than {MAX_CERTIFICATES} bytes", path.display());
        return Err(Failure::usage(line));
    }
    Ok(bytes)
}

/// By what a machine enrols.
enum By {
    /// An enrolment token that somebody made, and the key of the organization.
    Token(String, Secret<String>),
    /// The sign-in of a person.
    SignIn(Box<OwnEnrolment>),
}

impl By {
    /// Reads the enrolment token that somebody made.
    ///
    /// Errors: usage, where there is none.
    fn token(matches: &ArgMatches, organization: &str, terminal: &Terminal) -> Result<Self, Failure> {
        if organization.is_empty() {
            return Err(Failure::usage("say which organization: --organization KEY"));
        }
        let path = matches.get_one::<PathBuf>("token-file").cloned();
        let token = enrolment_token(&path.unwrap_or_default(), terminal)?;
        // Whatever else lies in that file is no server's to see.
        if !token.expose().starts_with("prov_ent_") {
            let line = "that is no enrolment token: one begins with prov_ent_";
            return Err(Failure::usage(line).and("an admin makes one: provost enrolment-tokens create"));
        }
        Ok(Self::Token(organization.to_owned(), token))
    }

    /// Returns the key of the organization and the enrolment token.
    fn parts(&self) -> (&str, &Secret<String>) {
        match self {
            Self::Token(organization, token) => (organization, token),
            Self::SignIn(own) => (&own.organization, &own.token),
        }
    }
}

pub async fn run(matches: &ArgMatches, terminal: &Terminal) -> Result<(), Failure> {
    let text = |id: &str| {
        matches
            .get_one::<String>(id)
            .map(String::as_str)
            .unwrap_or_default()
    };
    let ca_path = matches.get_one::<PathBuf>("ca-cert");
    // The agent keeps a copy of its own: the file may be somebody else's to change, and gone tomorrow.
    let ca_cert = ca_path.map(|path| certificates(path)).transpose()?;
    let allow_plain_http = matches.get_flag("allow-plain-http");
    let server = DeviceServer::new(text("server"), ca_path.cloned(), allow_plain_http, terminal)?;
    let own = host_name();
    let name = matches.get_one::<String>("name").cloned().or(own);
    let name = name.ok_or_else(|| Failure::usage("this machine has no name; say --name NAME"))?;
    let anew = matches.get_flag("anew");
    let by = if matches.get_flag("sign-in") {
        let folder = Folder::make(&folder_path(matches, terminal)?).map_err(failure)?;
        // Nobody signs in for what is refused afterwards.
        may_enrol(&folder, anew).map_err(failure)?;
        let wish = EnrolmentWish {
            organization: Some(text("organization")).filter(|key| !key.is_empty()),
            name: &name,
            opens: !matches.get_flag("no-browser"),
            port: matches.get_one("port").copied().unwrap_or_default(),
        };
        By::SignIn(Box::new(OwnEnrolment::begin(&server, &wish, terminal).await?))
    } else {
        By::token(matches, text("organization"), terminal)?
    };
    let folder = Folder::make(&folder_path(matches, terminal)?).map_err(failure)?;
    let (organization, token) = by.parts();
    let enrolment = Enrolment {
        door: &server,
        organization,
        token,
        name: &name,
        mode: mode(matches),
        allow_plain_http,
        ca_cert: ca_cert.as_deref(),
        anew,
        clock: &SystemClock::new(),
        entropy: &SystemEntropy,
    };
    let done = enrol(&folder, &enrolment).await;
    if let By::SignIn(own) = by {
        own.end(terminal).await;
    }
    let (device, odd) = done.map_err(failure)?;
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
        "mode": device.mode, "keyThumbprint": device.key_thumbprint,
        "folder": folder.path().display().to_string(),
    }))?;
    Ok(())
}
