//! `provost whoami`: whose the token is, what it may do, and when it ends.

use super::super::cell::Times;
use super::super::connection::{self, Connection, TokenSource};
use super::super::failure::Failure;
use super::super::own::{CommandFuture, HandCommand};
use super::super::print::{Form, Printer};
use super::super::table;
use super::super::terminal::Terminal;
use super::identity::Identity;
use clap::{ArgMatches, Command};
use provost_words::time::Timestamp;

pub(super) const COMMAND: HandCommand = HandCommand {
    group: "whoami",
    verb: "",
    command,
    examples: &["provost whoami", "provost whoami --profile prod -o json"],
    run: |matches, terminal| -> CommandFuture<'_> { Box::pin(run(matches, terminal)) },
};

fn command() -> Command {
    Command::new("whoami")
        .about("Says whose the token is: role, organization, scopes, when it ends")
        .args(connection::args())
}

async fn run(matches: &ArgMatches, terminal: &Terminal) -> Result<(), Failure> {
    let connection = Connection::resolve_unbound(matches, terminal)?;
    let quiet = matches.get_flag("global.quiet");
    let identity = Identity::ask(&connection, terminal, quiet).await?;
    let form = Form::chosen(matches, terminal);
    let is_own = identity.is_own_token();
    if form != Form::Table {
        let mut answer = identity.answer;
        // What the caller may call, operation by operation, is `capabilities show`.
        if let Some(members) = answer.as_object_mut() {
            members.remove("toolsets");
            members.remove("limits");
            members.insert("signedIn".to_owned(), means(&connection, is_own).into());
        }
        let printer = Printer {
            form,
            terminal,
            quiet,
        };
        return Ok(printer.object(&answer)?);
    }
    let scopes = if identity.has_all_of_role() {
        format!("all of the role {}", identity.role())
    } else {
        identity.scopes().join(", ")
    };
    let ends = identity
        .expires_at()
        .map(|at| ends(at, terminal))
        .unwrap_or_default();
    let rows = [
        ("who", identity.who()),
        ("id", identity.id().to_owned()),
        ("role", identity.role().to_owned()),
        ("organization", identity.organization.clone()),
        ("scopes", scopes),
        (
            "signed in",
            match means(&connection, is_own) {
                "browser" => "with a browser; renewed while it is used, `provost logout` ends it".to_owned(),
                "session" => "with a token of a session".to_owned(),
                _ => "with a token of its own".to_owned(),
            },
        ),
        ("token", format!("{}{ends}", identity.token_id())),
        ("from", connection.token_source.to_string()),
        (
            "server",
            format!("{}, from {}", connection.place.url, connection.place.url_source),
        ),
    ];
    let rows = rows.map(|(name, value)| (name.to_owned(), value));
    Ok(terminal.print(table::facts(&rows, terminal.width).as_bytes())?)
}

/// Returns how one is signed in.
fn means(connection: &Connection, is_own: bool) -> &'static str {
    match (&connection.token_source, is_own) {
        (TokenSource::SignIn { .. }, _) => "browser",
        (_, false) => "session",
        (_, true) => "token",
    }
}

/// Returns when a token ends: `, expires in 12 d`.
pub(super) fn ends(at: Timestamp, terminal: &Terminal) -> String {
    let now = terminal.clock.now();
    let times = if terminal.stdout_is_terminal {
        Times::Relative(now)
    } else {
        Times::Exact(now)
    };
    format!(", expires {}", times.write(&at.to_rfc3339()))
}
