//! `provost status`: whether the server takes requests. It needs no token, so that a container can ask for its health with it.

use super::super::connection::{self, Connection, Place, place_and_token};
use super::super::failure::{Exit, Failure};
use super::super::own::{CommandFuture, HandCommand};
use super::super::print::{Form, Printer};
use super::super::send::Sender;
use super::super::server::{Call, Reply, Server};
use super::super::table;
use super::super::terminal::Terminal;
use super::identity::Identity;
use clap::{ArgMatches, Command};
use http::{HeaderMap, Method};
use serde_json::{Value, json};

/// Answers without a token whether the store is read and takes changes.
const READY: &str = "/readyz";

pub(super) const COMMAND: HandCommand = HandCommand {
    group: "status",
    verb: "",
    command,
    examples: &[
        "provost status",
        "provost status --quiet --url http://127.0.0.1:8080   # the health check of a container",
    ],
    run: |matches, terminal| -> CommandFuture<'_> { Box::pin(run(matches, terminal)) },
};

fn command() -> Command {
    Command::new("status")
        .about("Says whether the server is ready, and what this profile is; 0 when it is")
        .long_about(
            "Says whether the server is ready, its version, and which profile is used. It needs no token; with one it also \
             says the version of the server.\n\nThe exit code is 0 when the server is ready, 6 when it is not, and 7 when it \
             cannot be reached. With --quiet nothing is printed then but the error.",
        )
        .args(connection::args())
        .mut_arg("global.timeout", |arg| arg.default_value("5"))
        .mut_arg("global.retries", |arg| arg.default_value("0"))
}

async fn run(matches: &ArgMatches, terminal: &Terminal) -> Result<(), Failure> {
    let (place, token) = place_and_token(matches, terminal)?;
    let quiet = matches.get_flag("global.quiet");
    let answer = ready(&place, terminal, quiet).await?;
    if quiet {
        return Ok(());
    }
    let mut said = json!({
        "status": "ready",
        "url": place.url,
        "clientVersion": env!("CARGO_PKG_VERSION"),
    });
    for (member, value) in [("profile", &place.profile), ("organization", &place.organization)] {
        if !value.is_empty() {
            said[member] = value.as_str().into();
        }
    }
    for member in ["rehearsal", "modules"] {
        if let Some(value) = answer.get(member) {
            said[member] = value.clone();
        }
    }
    // The version is told to who is known. That a token is missing or refused is no matter of the server's health.
    if let Ok((token, token_source)) = token {
        let connection = Connection {
            place,
            token,
            token_source,
        };
        let identity = Identity::ask(&connection, terminal, true).await;
        if let Some(version) = identity.as_ref().ok().and_then(Identity::server_version) {
            said["serverVersion"] = version.into();
        }
    }
    let form = Form::chosen(matches, terminal);
    if form != Form::Table {
        let printer = Printer {
            form,
            terminal,
            quiet,
        };
        return Ok(printer.object(&said)?);
    }
    let names = [
        ("status", "status"),
        ("server", "url"),
        ("server version", "serverVersion"),
        ("this version", "clientVersion"),
        ("profile", "profile"),
        ("organization", "organization"),
        ("rehearsal", "rehearsal"),
        ("modules", "modules"),
    ];
    let rows: Vec<(String, String)> = names
        .into_iter()
        .filter_map(|(name, member)| {
            let value = said.get(member)?;
            let text = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
            Some((name.to_owned(), text))
        })
        .collect();
    Ok(terminal.print(table::facts(&rows, terminal.width).as_bytes())?)
}

/// Asks what everybody may: without a token, and without saying more than the answer.
pub(in crate::cli) async fn ask(
    place: &Place,
    target: &str,
    terminal: &Terminal,
    quiet: bool,
) -> Result<Reply, Failure> {
    let server = Server::anonymous(place)?;
    let call = Call {
        method: Method::GET,
        target: target.to_owned(),
        headers: HeaderMap::new(),
        body: None,
        is_download: false,
    };
    let sender = Sender {
        server: &server,
        terminal,
        retries: place.retries,
        quiet,
        repeat: None,
        unmodified: false,
        weighs: false,
    };
    sender.send(&call).await
}

/// Asks the server whether it is ready, and returns what it says.
///
/// Errors: `Unavailable` when it is not, `Unreachable` when nobody answers.
pub(super) async fn ready(place: &Place, terminal: &Terminal, quiet: bool) -> Result<Value, Failure> {
    let reply = ask(place, READY, terminal, quiet).await?;
    let answer = super::super::print::parsed(&reply)?;
    if answer.get("status").and_then(Value::as_str) != Some("ready") {
        return Err(Failure::new(
            Exit::ServerFault,
            format!("{} answers, and not as a Provost server does", place.url),
        ));
    }
    Ok(answer)
}
