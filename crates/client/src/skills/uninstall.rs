//! `provost skills uninstall`: the server forgets the installs and revokes the tokens, and the files go (D10.7).

use super::receipt::{Receipt, Receipts, State, cannot};
use super::reference::{self, Reference};
use super::skill_folder::SkillFolder;
use crate::cli::{
    Client, Confirm, Consent, Exit, Failure, Form, Printer, Request, Terminal, connection_args, consent_args,
};
use clap::{Arg, ArgAction, ArgMatches, Command};
use http::Method;
use serde_json::{Value, json};
use std::path::Path;

pub fn command() -> Command {
    Command::new("uninstall")
        .about("Remove a skill from this machine and give back its access")
        .long_about(
            "Remove a skill from this machine and give back its access.\n\n\
             The server forgets your installs of the skill and revokes their gateway tokens. Then the files that \
             `install` wrote are removed, and the folders that are empty after that. Files that were changed since stay \
             and are named; say what shall become of them with --force or --keep-data. Files that others put into the \
             folder always stay.\n\n\
             When the server cannot be reached, the files go all the same, and what remains to do is said. The command \
             can be repeated until nothing is left.",
        )
        .arg(reference::arg().required(true))
        .arg(
            Arg::new("force")
                .long("force")
                .action(ArgAction::SetTrue)
                .conflicts_with("keep-data")
                .help("Removes files of the install that were changed since"),
        )
        .arg(
            Arg::new("keep-data")
                .long("keep-data")
                .action(ArgAction::SetTrue)
                .help("Leaves files that were changed since; they are yours from now on"),
        )
        .args(consent_args())
        .args(connection_args())
}

pub async fn run(matches: &ArgMatches, terminal: &Terminal) -> Result<(), Failure> {
    let client = Client::connect(matches, terminal)?;
    let wanted = Reference::of(matches)?.ok_or_else(|| Failure::usage("say which skill"))?;
    let receipts = Receipts::change(matches, terminal)?;
    let mut mine = chosen(&receipts, &wanted, &client)?;
    let consent = Consent::of(matches, terminal, Confirm::Absent)?;
    // INVARIANT SL-3: the receipt says what is being done before a file goes, and stays until the server knows.
    for receipt in mine.iter_mut().filter(|receipt| receipt.state != State::Removed) {
        receipt.state = State::Uninstalling;
        receipts.save(receipt)?;
    }
    let told = tell(&client, &wanted, &consent.step("uninstall")).await;
    if told.is_ok() {
        mine.iter()
            .try_for_each(|receipt| receipts.forget_token(receipt))?;
    }
    let kept = remove(&client, &receipts, &mut mine, matches)?;
    let told = match told {
        // A registry that has no such item has nothing to forget.
        Err(failure) if failure.exit == Exit::NotFound && !mine.is_empty() => {
            json!({ "status": "not_installed" })
        }
        told => told.map_err(|failure| unfinished(failure, &mine))?,
    };
    for receipt in mine.iter().filter(|receipt| receipt.state == State::Removed) {
        report(&client, &receipt.install_id, &consent).await?;
        receipts.forget(receipt)?;
    }
    elsewhere(&client, &receipts, &told, &mine, &consent).await?;
    show(matches, &client, &wanted, &told, &mine, &kept)?;
    if kept.is_empty() || matches.get_flag("keep-data") {
        return Ok(());
    }
    let failure = Failure::new(
        Exit::Conflict,
        "files that were changed since they were installed are still there",
    );
    let failure = kept
        .iter()
        .fold(failure, |failure, path| failure.and(format!("kept: {path}")));
    Err(failure.and("repeat with --force to remove them, or with --keep-data to keep them as yours"))
}

fn chosen(receipts: &Receipts, wanted: &Reference, client: &Client<'_>) -> Result<Vec<Receipt>, Failure> {
    let named = receipts
        .all()?
        .into_iter()
        .filter(|receipt| wanted.names(receipt));
    let (mine, others): (Vec<Receipt>, Vec<Receipt>) = named
        .partition(|receipt| receipt.server == client.url() && receipt.organization == client.organization());
    for other in others {
        client.note(&format!(
            "{} in {} came from {} at {} and stays",
            other.item_ref,
            other.path.display(),
            other.organization,
            other.server
        ));
    }
    Ok(mine)
}

async fn tell(client: &Client<'_>, wanted: &Reference, consent: &Consent) -> Result<Value, Failure> {
    let segment = wanted.segment();
    let request = Request::new(Method::POST, &["skill-registry", &segment, "cli-uninstall"]);
    client.send(&request.consent(consent)?).await?.json()
}

/// Removes the files of every receipt and returns the changed ones that were kept.
fn remove(
    client: &Client<'_>,
    receipts: &Receipts,
    mine: &mut [Receipt],
    matches: &ArgMatches,
) -> Result<Vec<String>, Failure> {
    let mut kept = Vec::new();
    for receipt in mine.iter_mut().filter(|receipt| receipt.state != State::Removed) {
        let place = SkillFolder {
            folder: receipt.path.clone(),
        };
        let left = place
            .remove(&receipt.known(), matches.get_flag("force"))
            .map_err(|error| cannot("remove the files in", &receipt.path, &error))?;
        let shown = |path: &String| receipt.path.join(path).display().to_string();
        for path in &left.foreign {
            client.note(&format!("not written by this program, stays: {}", shown(path)));
        }
        if left.changed.is_empty() || matches.get_flag("keep-data") {
            receipt.state = State::Removed;
            receipts.save(receipt)?;
        }
        kept.extend(left.changed.iter().map(shown));
    }
    Ok(kept)
}

fn unfinished(failure: Failure, mine: &[Receipt]) -> Failure {
    if mine.is_empty() {
        return failure;
    }
    failure
        .and("the files are gone from this machine, but the server was not told:")
        .and("it still counts the install, and the gateway token is valid until it expires")
        .and("repeat the command when the server can be asked")
}

/// Says that the files of an install are gone. An install that the server does not know any more needs no report.
async fn report(client: &Client<'_>, install_id: &str, consent: &Consent) -> Result<(), Failure> {
    let path = ["skill-installs", install_id, "removed"];
    let consent = consent.step(&format!("removed-{install_id}"));
    match client.send_json(Method::POST, &path, &json!({}), &consent).await {
        Err(failure) if failure.exit != Exit::NotFound => Err(failure.and(
            "the files are gone, and the server shows the install as pending clean-up; repeat the command",
        )),
        _ => Ok(()),
    }
}

/// Looks at installs of this machine that the server forgot and no receipt is of.
async fn elsewhere(
    client: &Client<'_>,
    receipts: &Receipts,
    told: &Value,
    mine: &[Receipt],
    consent: &Consent,
) -> Result<(), Failure> {
    let device = receipts.device()?;
    for install in told["installs"].as_array().into_iter().flatten() {
        let text = |member: &str| install[member].as_str().unwrap_or_default();
        let is_mine = mine.iter().any(|receipt| receipt.install_id == text("installId"));
        if is_mine || text("installId").is_empty() {
            continue;
        }
        if text("device") == device && !text("path").is_empty() && !Path::new(text("path")).exists() {
            report(client, text("installId"), consent).await?;
        } else {
            let (place, device) = (text("path"), text("device"));
            client.note(&format!(
                "another install of it is to be removed: {place} on {device}"
            ));
        }
    }
    Ok(())
}

fn show(
    matches: &ArgMatches,
    client: &Client<'_>,
    wanted: &Reference,
    told: &Value,
    mine: &[Receipt],
    kept: &[String],
) -> Result<(), Failure> {
    let removed = mine.iter().filter(|receipt| receipt.state == State::Removed);
    let removed: Vec<Value> = removed.map(|receipt| json!(receipt.path)).collect();
    let mut shown = json!({
        "ref": told["itemRef"].as_str().unwrap_or(&wanted.item),
        "status": told["status"],
        "removed": removed,
        "revokedTokens": told.pointer("/gatewayToken/revokedCount").and_then(Value::as_u64).unwrap_or(0),
    });
    if !kept.is_empty() {
        shown["kept"] = json!(kept);
    }
    Printer {
        form: Form::chosen(matches, client.terminal),
        terminal: client.terminal,
        quiet: client.quiet,
    }
    .object(&shown)?;
    Ok(())
}
