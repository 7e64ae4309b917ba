//! `provost agent doctor`.

use super::coverage;
use super::judging;
use super::places::{folder_path, place_args};
use crate::cli::{Column, DeviceServer, Exit, Failure, Form, Printer, Terminal, list_output_arg};
use clap::{ArgMatches, Command};
use provost_agent::{examine, examine_server};
use provost_words::entropy::SystemEntropy;
use provost_words::time::SystemClock;
use provost_words::withheld::without_secrets;
use serde_json::json;

pub fn command() -> Command {
    Command::new("doctor")
        .about("Looks whether the agent works, and says of each fault what to do")
        .long_about(
            "Looks at the agent's folder, its key, its token, what it did last and what waits; then sends a heartbeat, which \
             shows that the server is reached, takes this device, and has the same time. It ends with 1 where something is wrong.",
        )
        .args(place_args())
        .arg(list_output_arg())
}

pub async fn run(matches: &ArgMatches, terminal: &Terminal) -> Result<(), Failure> {
    let clock = SystemClock::new();
    let (mut findings, agent) = examine(&folder_path(matches, terminal)?, &clock);
    if let Some(agent) = agent {
        findings.extend(judging::findings(&agent, terminal));
        findings.extend(coverage::findings(&agent));
        let device = &agent.device;
        let server = DeviceServer::new(&device.server, agent.ca_cert(), device.allow_plain_http, terminal)?;
        findings.extend(examine_server(&agent, &server, &clock, &SystemEntropy).await);
    }
    for finding in &mut findings {
        finding.says = without_secrets(&finding.says).into_owned();
    }
    let printer = Printer {
        form: Form::chosen(matches, terminal),
        terminal,
        quiet: false,
    };
    let columns = ["check", "good", "says", "fix"].map(Column::declared);
    printer.list(&json!({ "findings": findings }), "findings", &columns)?;
    match findings.iter().filter(|finding| !finding.good).count() {
        0 => Ok(()),
        1 => Err(Failure::new(Exit::Refused, "one thing is wrong")),
        several => Err(Failure::new(Exit::Refused, format!("{several} things are wrong"))),
    }
}
