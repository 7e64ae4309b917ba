//! Asks the server to check a credential, and waits for what comes of it.

use crate::cli::{
    Client, Confirm, Consent, Exit, Failure, Form, Printer, Terminal, connection_args, consent_args,
};
use clap::{Arg, ArgAction, ArgMatches, Command, value_parser};
use http::Method;
use provost_words::time::{Clock, SystemClock};
use serde_json::{Value, json};
use std::time::Duration;

const POLL: Duration = Duration::from_secs(1);

/// Returns the command.
pub fn command() -> Command {
    let id = |id: &'static str, name: &'static str, help: &'static str| {
        Arg::new(id).value_name(name).required(true).help(help)
    };
    Command::new("verify")
        .about("Checks that a credential's secret can be fetched, without showing it")
        .long_about(
            "Checks that a credential's secret can be fetched, without showing it.\n\n\
             The server checks in the background. With --wait the command ends with 0 when the secret could be \
             fetched and with 1 when it could not; without it, with the check's id.\n\n\
             Needs the scope resource_credentials:write and the role admin; --wait also resource_credentials:read.",
        )
        .arg(id("resource", "RESOURCE_ID", "The resource"))
        .arg(id("credential", "CREDENTIAL_ID", "The credential"))
        .arg(
            Arg::new("wait")
                .long("wait")
                .action(ArgAction::SetTrue)
                .help("Waits for the outcome"),
        )
        .arg(
            Arg::new("wait-seconds")
                .long("wait-seconds")
                .value_name("N")
                .default_value("60")
                .value_parser(value_parser!(u64).range(1..=3600))
                .help("Waits at most this long"),
        )
        .args(consent_args())
        .args(connection_args())
}

/// Does it.
pub async fn run(matches: &ArgMatches, terminal: &Terminal) -> Result<(), Failure> {
    let client = Client::connect(matches, terminal)?;
    let consent = Consent::of(matches, terminal, Confirm::Absent)?;
    let text = |id: &str| matches.get_one::<String>(id).map_or("", String::as_str);
    let (resource, credential) = (text("resource"), text("credential"));
    let path = ["resources", resource, "credentials", credential, "verify"];
    let begun = client
        .send_json(Method::POST, &path, &json!({}), &consent)
        .await?;
    let printer = Printer {
        form: Form::chosen(matches, terminal),
        terminal,
        quiet: client.quiet,
    };
    if !matches.get_flag("wait") {
        return Ok(printer.object(&begun)?);
    }
    let check = begun.get("checkId").and_then(Value::as_str).unwrap_or_default();
    let path = ["resources", resource, "credentials", credential, "checks", check];
    let most = matches.get_one::<u64>("wait-seconds").copied().unwrap_or(60);
    let clock = SystemClock::new();
    loop {
        let answer = client.get_json(&path, &[]).await?;
        match answer.get("state").and_then(Value::as_str) {
            Some("succeeded") => {
                printer.object(&answer)?;
                client.note("the secret can be fetched");
                return Ok(());
            }
            Some("failed") => {
                printer.object(&answer)?;
                let reason = answer.get("reason").and_then(Value::as_str).unwrap_or_default();
                return Err(Failure::new(
                    Exit::Refused,
                    format!("the secret cannot be fetched: {}", words(reason)),
                ));
            }
            _ if clock.monotonic() >= Duration::from_secs(most) => {
                return Err(Failure::new(
                    Exit::Unavailable,
                    format!("the check has not ended within {most} s"),
                )
                .and(format!(
                    "look later: provost resource-credentials check {resource} {credential} {check}"
                )));
            }
            _ => tokio::time::sleep(POLL).await,
        }
    }
}

/// Returns what a reason means.
fn words(reason: &str) -> &str {
    match reason {
        "not_found" => "the secret manager has nothing in this place",
        "denied" => "the secret manager does not let the server read it",
        "unreachable" => "the secret manager cannot be reached",
        "timeout" => "the secret manager did not answer in time",
        "invalid_answer" => "the secret manager's answer holds no such secret",
        "not_configured" => "the server's configuration does not name this secret manager",
        "not_unsealed" => "the stored secret does not open with the server's keys",
        other => other,
    }
}
