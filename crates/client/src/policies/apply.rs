//! `provost policies apply -f DIR`: files are the truth.
//!
//! ```text
//!   read all files ─► compare ─► plan every write ─► (a person says yes) ─► write, each with the token of its plan
//!                                     │ one is refused, managed by somebody else, or --strict and warned: nothing is written
//! ```

use super::compare::{Change, changes, prune_arg, show};
use super::files::{family_arg, folder_arg, named};
use super::remote;
use super::strict::{strict_arg, warned};
use crate::cli::{
    Client, Confirm, Consent, Exit, Failure, Terminal, confirm_arg, connection_args, consent_args, counted,
};
use clap::{Arg, ArgAction, ArgMatches, Command};
use serde_json::Value;

/// Returns the command.
pub fn command() -> Command {
    Command::new("apply")
        .about("Makes the policies of the server what files say")
        .long_about(
            "Makes the policies of the server what files say. Every write is planned before the first one is done, and is done only as \
             it was planned; what does not differ is not written. Policies that Terraform or somebody else manages are never written. \
             Policies that no file has stay, unless --prune takes them away.\n\n\
             Needs the scopes policies:read and policies:write and the role admin.\n\n\
             Exit codes of its own:\n  5    a policy is refused, or managed by somebody else; nothing was written\n  10   with --strict: there is a \
             warning; nothing was written",
        )
        .arg(folder_arg())
        .arg(family_arg())
        .arg(
            Arg::new("dry-run")
                .long("dry-run")
                .action(ArgAction::SetTrue)
                .help("Plans and shows what would be written, and writes nothing"),
        )
        .arg(strict_arg())
        .arg(prune_arg(
            "Deletes the policies of the service that no file has; needs --confirm, or a person who says yes",
        ))
        .arg(confirm_arg("Says that what is written and deleted is known"))
        .args(consent_args())
        .args(connection_args())
}

/// Does it.
pub async fn run(matches: &ArgMatches, terminal: &Terminal) -> Result<(), Failure> {
    let files = named(matches, "folder", terminal)?;
    let client = Client::connect(matches, terminal)?;
    let all = changes(&client, &files, matches.get_flag("prune")).await?;
    let wanted: Vec<&Change> = all.iter().filter(|change| !change.is_nothing()).collect();
    show(&client, matches, &all)?;
    must_be_ours(&wanted)?;
    let (tokens, found) = plans(&client, &wanted).await?;
    warned(matches, found).map_err(nothing_written)?;
    if wanted.is_empty() || matches.get_flag("dry-run") {
        return Ok(());
    }
    let deletes = wanted.iter().filter(|change| change.wanted.is_none()).count();
    agreed(matches, terminal, (wanted.len() - deletes, deletes))?;
    let consent = Consent::of(matches, terminal, Confirm::Offered)?;
    for (at, (change, token)) in wanted.iter().zip(&tokens).enumerate() {
        let done = write(&client, change, token, &consent).await;
        done.map_err(|failure| {
            let left = wanted.len() - at - 1;
            failure
                .and(format!(
                    "this was about {}; {at} were written before it, {left} were not",
                    change.id
                ))
                .and("the same command again goes on where it ended")
        })?;
        client.note(&format!("{}d {}", change.word(), change.id));
    }
    Ok(())
}

async fn write(
    client: &Client<'_>,
    change: &Change,
    token: &Value,
    consent: &Consent,
) -> Result<(), Failure> {
    // Of each policy and content its own key: a repeated command repeats what was done and does the rest.
    let document = change.wanted.as_ref().map_or_else(String::new, Value::to_string);
    let step = crate::cli::sha256_hex(format!("{} {} {document}", change.id, change.revision).as_bytes());
    let consent = consent.step(&step[..16]);
    match &change.wanted {
        Some(wanted) => {
            let what = (wanted, change.revision);
            remote::write(client, &change.family, what, token, &consent)
                .await
                .map(drop)
        }
        None => remote::delete(client, &change.family, &change.id, change.revision, &consent).await,
    }
}

/// Refuses to touch what somebody else manages.
fn must_be_ours(wanted: &[&Change]) -> Result<(), Failure> {
    let others: Vec<String> = wanted
        .iter()
        .filter_map(|change| {
            Some(format!(
                "{} is managed by {}",
                change.id,
                change.manager.as_ref()?
            ))
        })
        .collect();
    let Some((first, more)) = others.split_first() else {
        return Ok(());
    };
    let failure = Failure::new(Exit::Conflict, first.clone());
    let failure = more
        .iter()
        .fold(failure, |failure, line| failure.and(line.clone()));
    Err(nothing_written(failure).and("change it there, or take its file out"))
}

/// Plans every write and returns the tokens, and how many warnings there are. All that is refused is told.
async fn plans(client: &Client<'_>, wanted: &[&Change]) -> Result<(Vec<Value>, usize), Failure> {
    let (mut tokens, mut found, mut refused): (Vec<Value>, usize, Option<Failure>) = (Vec::new(), 0, None);
    for change in wanted {
        let Some(definition) = &change.wanted else {
            tokens.push(Value::Null);
            continue;
        };
        let planned = remote::plan(client, &change.family, definition, change.revision).await;
        let file = change.file.as_deref().unwrap_or_default();
        match planned {
            Ok(plan) => {
                for line in remote::warnings(&plan) {
                    found += 1;
                    client.note(&format!("warning: {file}: {line}"));
                }
                tokens.push(plan["validationToken"].clone());
            }
            Err(failure) if failure.exit == Exit::Conflict => {
                let failure = failure.and(format!("the file is {file}"));
                refused = Some(match refused {
                    None => failure,
                    Some(first) => failure
                        .lines
                        .iter()
                        .fold(first, |all, line| all.and(line.clone())),
                });
            }
            Err(failure) => return Err(nothing_written(failure.and(format!("the file is {file}")))),
        }
    }
    match refused {
        Some(failure) => Err(nothing_written(failure)),
        None => Ok((tokens, found)),
    }
}

fn nothing_written(failure: Failure) -> Failure {
    failure.and("nothing was written")
}

/// Asks a person, or demands that it was said where something is deleted and nobody is there.
fn agreed(
    matches: &ArgMatches,
    terminal: &Terminal,
    (writes, deletes): (usize, usize),
) -> Result<(), Failure> {
    if matches.get_flag("global.confirm") {
        return Ok(());
    }
    let Some(prompt) = terminal.prompt.as_deref() else {
        if deletes == 0 {
            return Ok(());
        }
        let line = format!(
            "--prune would delete {}: say --confirm",
            counted(deletes, "policies")
        );
        return Err(nothing_written(Failure::usage(line)));
    };
    let asked = format!(
        "write {writes} and delete {}? type yes",
        counted(deletes, "policies")
    );
    let typed = prompt
        .line(&asked)
        .map_err(|error| nothing_written(Failure::usage(format!("no answer: {error}"))))?;
    if typed.trim() == "yes" {
        return Ok(());
    }
    Err(nothing_written(Failure::usage("not confirmed")))
}
