//! `provost skills list`: what is installed on this machine, and in which state.

use super::receipt::{Receipt, Receipts, State, cannot};
use super::skill_folder::{FolderComparison, SkillFolder};
use crate::cli::{Client, Column, Exit, Failure, Form, Printer, Terminal, connection_args, list_output_arg};
use clap::{Arg, ArgAction, ArgMatches, Command};
use serde_json::{Value, json};

pub fn command() -> Command {
    Command::new("list")
        .about("List the skills that were installed on this machine")
        .long_about(
            "List the skills that were installed on this machine.\n\n\
             state: ok, modified (a file was changed), missing (a file is gone), installing or uninstalling (a command \
             was interrupted, or the server could not be told; repeat it).\n\
             registry, with --ask-server: current, updatable, withdrawn or unknown.",
        )
        .arg(
            Arg::new("ask-server")
                .long("ask-server")
                .action(ArgAction::SetTrue)
                .help("Asks the server which are withdrawn or have a newer version"),
        )
        .args(connection_args())
        .mut_arg("global.output", |_| list_output_arg())
}

pub async fn run(matches: &ArgMatches, terminal: &Terminal) -> Result<(), Failure> {
    let asks = matches.get_flag("ask-server");
    let client = asks.then(|| Client::connect(matches, terminal)).transpose()?;
    let mut skills = Vec::new();
    for receipt in Receipts::read(matches, terminal)?.all()? {
        let mut row = json!({
            "name": receipt.name,
            "version": receipt.version,
            "state": state(&receipt, &survey(&receipt)?),
        });
        if let Some(client) = &client {
            ask(client, &receipt, &mut row).await?;
        }
        row["path"] = json!(receipt.path);
        row["ref"] = json!(receipt.item_ref);
        row["client"] = json!(receipt.client);
        row["organization"] = json!(receipt.organization);
        row["server"] = json!(receipt.server);
        row["installId"] = json!(receipt.install_id);
        row["installedAt"] = json!(receipt.installed_at);
        skills.push(row);
    }
    let columns = [
        "name",
        "version",
        "state",
        "registry",
        "installedAt as installed",
        "path",
        "latestVersion as latest",
        "ref",
        "client",
        "organization",
        "server",
        "installId",
    ]
    .map(Column::declared);
    Printer {
        form: Form::chosen(matches, terminal),
        terminal,
        quiet: matches.get_flag("global.quiet"),
    }
    .list(&json!({ "skills": skills }), "skills", &columns)?;
    Ok(())
}

/// Compares the place of a receipt with what was written there.
pub fn survey(receipt: &Receipt) -> Result<FolderComparison, Failure> {
    let place = SkillFolder {
        folder: receipt.path.clone(),
    };
    let known = receipt.known();
    place
        .survey(&known)
        .map_err(|error| cannot("read", &receipt.path, &error))
}

/// Returns the word for what is there.
pub fn state(receipt: &Receipt, sight: &FolderComparison) -> &'static str {
    match receipt.state {
        State::Installing => "installing",
        State::Uninstalling | State::Removed => "uninstalling",
        State::Installed if !sight.changed.is_empty() => "modified",
        State::Installed if !sight.missing.is_empty() => "missing",
        State::Installed => "ok",
    }
}

async fn ask(client: &Client<'_>, receipt: &Receipt, row: &mut Value) -> Result<(), Failure> {
    if receipt.server != client.url() || receipt.organization != client.organization() {
        return Ok(());
    }
    let installed = format!("{}@{}", receipt.item_ref, receipt.version);
    let found = match client.get_json(&["skill-registry", &installed], &[]).await {
        Err(failure) if failure.exit == Exit::NotFound => {
            row["registry"] = json!("unknown");
            return Ok(());
        }
        found => found?,
    };
    let is_withdrawn = |pointer: &str| found.pointer(pointer).and_then(Value::as_str) == Some("withdrawn");
    let latest = found.pointer("/item/latestVersion").and_then(Value::as_str);
    row["registry"] = json!(
        if is_withdrawn("/item/status") || is_withdrawn("/version/status") {
            "withdrawn"
        } else if latest.is_some_and(|latest| latest != receipt.version) {
            "updatable"
        } else {
            "current"
        }
    );
    if let Some(latest) = latest {
        row["latestVersion"] = json!(latest);
    }
    Ok(())
}
