//! One command from the flags to the printed answer.

use super::advice;
use super::api::{Effect, Operation, Shape};
use super::column;
use super::connection::Connection;
use super::consent::Consent;
use super::draft::Draft;
use super::export;
use super::failure::{Exit, Failure};
use super::members;
use super::names::{self, Names};
use super::pages;
use super::print::{Form, Printer, parsed};
use super::secret_file::{self, ReservedFile};
use super::send::Sender;
use super::server::{Reply, Server};
use super::terminal::Terminal;
use clap::ArgMatches;
use serde_json::Value;
use std::path::PathBuf;
use std::time::Duration;

/// Empties a terminal, and begins again at its top.
const CLEAR: &[u8] = b"\x1b[2J\x1b[H";

/// The parameter that asks for a second person, and has nothing else done.
const ASKS: &str = "requestApproval";

/// Does what an operation's command says.
pub(super) async fn invoke(
    operation: &Operation,
    matches: &ArgMatches,
    terminal: &Terminal,
) -> Result<(), Failure> {
    let columns = column::chosen(&operation.columns, matches)?;
    let form = Form::chosen(matches, terminal);
    if form.is_json() && column::are_named(matches) {
        return Err(Failure::usage(
            "--columns is for tables and csv: JSON holds every member of every item",
        ));
    }
    if terminal.jq.get().is_some() && matches!(operation.answer, Shape::Lines | Shape::Bytes) {
        return Err(Failure::usage(
            "--jq: the answer of this command is not one JSON document",
        ));
    }
    let connection = Connection::resolve(matches, terminal)?;
    let quiet = matches.get_flag("global.quiet");
    let mut draft = Draft::new(operation, matches, &connection.place, terminal)?;
    let server = Server::new(&connection)?;
    let mut sender = Sender {
        server: &server,
        terminal,
        retries: connection.place.retries,
        quiet,
        repeat: None,
        unmodified: false,
        weighs: false,
    };
    // Who cannot be asked has said everything, or is told so before anything is looked up.
    let said = match terminal.prompt {
        None => Some(Consent::obtain(operation, matches, terminal)?),
        Some(_) => None,
    };
    let names = names::resolve(operation, matches, &connection.place, &sender).await?;
    draft.name(operation, matches, &connection.place, &names);
    let mut consent = if let Some(said) = said {
        said
    } else {
        let is_final = matches!(operation.kind, Effect::Write { confirm: true, .. });
        if is_final && !matches.get_flag("global.confirm") {
            name_target(operation, matches, &names, &connection, &sender).await;
        }
        Consent::obtain(operation, matches, terminal)?
    };
    if operation.answer == Shape::Bytes
        && terminal.stdout_is_terminal
        && !matches.contains_id("global.to-file")
    {
        return Err(Failure::usage(
            "the answer is nothing for a terminal: --to-file FILE, or a pipe",
        ));
    }
    sender.repeat = consent.as_ref().map(|consent| names.repeat(consent.repeat()));
    if let Some(consent) = &mut consent {
        if consent.unasked.is_some() {
            weigh(&sender, operation, &draft, consent)
                .await
                .map_err(|failure| with_hint(failure, operation, &connection, true))?;
            consent.ask(terminal)?;
        }
        draft.consent(operation, consent)?;
    }
    let printer = Printer {
        form,
        terminal,
        quiet,
    };
    let all = matches.try_get_one::<bool>("global.all").ok().flatten() == Some(&true);
    let watch = matches.try_get_one::<u64>("global.watch").ok().flatten();
    let done = loop {
        if watch.is_some() && terminal.stdout_is_terminal && !form.is_json() {
            terminal.print(CLEAR)?;
        }
        let done = match &operation.answer {
            Shape::List(member) if !operation.is_write() => {
                let draft = draft.clone();
                pages::list(&sender, &printer, operation, (member, &columns), draft, all).await
            }
            Shape::Lines => {
                // An export that stops early without a word would be taken for the whole.
                let all = all || draft.query("limit").is_none();
                let path = matches.get_one::<PathBuf>("global.to-file");
                let file = path.map(|path| secret_file::create_private(path)).transpose()?;
                export::export(&sender, operation, draft.clone(), all, file).await
            }
            Shape::Bytes => bytes(&sender, matches, &draft).await,
            _ => one(&sender, &printer, operation, matches, &draft).await,
        };
        match watch {
            Some(secs) if done.is_ok() => tokio::time::sleep(Duration::from_secs(*secs)).await,
            _ => break done,
        }
    };
    if done.is_ok() && operation.performs.is_some() && consent.is_none() && !quiet {
        terminal.note("this is a preview: --confirm does it");
    }
    done.map_err(|failure| {
        let failure = members::as_flags(names.explained(failure), operation, matches);
        with_hint(failure, operation, &connection, consent.is_some())
    })
}

/// Tells who is about to be asked what the act is about: its name and its id.
async fn name_target(
    operation: &Operation,
    matches: &ArgMatches,
    names: &Names,
    connection: &Connection,
    sender: &Sender<'_>,
) {
    for line in names.said() {
        sender.terminal.note(line);
    }
    if names.said().is_empty()
        && let Some(line) = names::called(operation, matches, names, &connection.place, sender).await
    {
        sender.terminal.note(&line);
    }
}

/// Asks what others would lose by an act that is not confirmed yet, and shows it to who decides.
async fn weigh(
    sender: &Sender<'_>,
    operation: &Operation,
    draft: &Draft,
    consent: &Consent,
) -> Result<(), Failure> {
    let mut draft = draft.clone();
    // Under a key of its own: the command's is for the act.
    draft.consent(operation, &consent.step("weigh"))?;
    let weighing = Sender {
        server: sender.server,
        terminal: sender.terminal,
        retries: sender.retries,
        quiet: sender.quiet,
        repeat: None,
        unmodified: false,
        weighs: true,
    };
    let refusal = parsed(&weighing.send(&draft.call()).await?)?;
    for line in lost_references(&refusal) {
        sender.terminal.note(&line);
    }
    Ok(())
}

/// Returns what a refusal or an answer names as lost, a line for each.
pub fn lost_references(answer: &Value) -> Vec<String> {
    let lost = answer.get("lostReferences").and_then(Value::as_array);
    let line = |reference: &Value| {
        let text = |member: &str| reference.get(member).and_then(Value::as_str).unwrap_or_default();
        if let Some(count) = reference.get("count").and_then(Value::as_u64) {
            let (what, them) = match (text("by"), count) {
                ("credential", 1) => ("credential is assigned to", "it"),
                ("credential", _) => ("credentials are assigned to", "them"),
                (_, 1) => ("policy names", "it"),
                _ => ("policies name", "them"),
            };
            return format!("{count} {what} {}; you may not read {them}", text("id"));
        }
        if text("by") == "credential" {
            return format!(
                "credential {} is assigned to {}",
                text("credentialId"),
                text("id")
            );
        }
        let state = if reference.get("enabled") == Some(&Value::Bool(true)) {
            "enabled"
        } else {
            "draft"
        };
        let places = reference
            .get("places")
            .and_then(Value::as_array)
            .into_iter()
            .flatten();
        let places: Vec<&str> = places.filter_map(Value::as_str).collect();
        format!(
            "{state} policy {} ({}, {}) names {} at {}: it guards nothing there any more",
            text("policyId"),
            text("family"),
            text("action"),
            text("id"),
            places.join(", ")
        )
    };
    lost.into_iter().flatten().map(line).collect()
}

/// Writes an answer that is not text to a file, or to whatever standard output leads to.
async fn bytes(sender: &Sender<'_>, matches: &ArgMatches, draft: &Draft) -> Result<(), Failure> {
    let path = matches.get_one::<PathBuf>("global.to-file");
    let reserved = path.map(|path| ReservedFile::new(path)).transpose()?;
    let reply = sender.send(&draft.call()).await?;
    match reserved {
        Some(reserved) => Ok(reserved.keep_bytes(&reply.body)?),
        None => Ok(sender.terminal.print(&reply.body)?),
    }
}

async fn one(
    sender: &Sender<'_>,
    printer: &Printer<'_>,
    operation: &Operation,
    matches: &ArgMatches,
    draft: &Draft,
) -> Result<(), Failure> {
    let path = if operation.reveals_secret {
        matches.get_one::<PathBuf>("global.token-out")
    } else {
        None
    };
    let reserved = path.map(|path| ReservedFile::new(path)).transpose()?;
    let reply = sender.send(&draft.call()).await?;
    if reply.status == http::StatusCode::ACCEPTED && operation.query_field(ASKS).is_some() {
        printer.object(&parsed(&reply)?)?;
        if !sender.quiet {
            sender
                .terminal
                .note("nothing was done: once somebody has said yes, repeat the command with --approval-id in the place of --request-approval");
        }
        return Ok(());
    }
    draft.must_be_about(&reply)?;
    if reply
        .headers
        .get("idempotent-replayed")
        .is_some_and(|v| v == "true")
        && !sender.quiet
    {
        sender
            .terminal
            .note("this is the answer to an earlier request with the same key");
    }
    let shown = show(sender, printer, operation, &reply, reserved);
    match &sender.repeat {
        // Silence of a closed pipe would hide that the act was done and its secret lost.
        Some(repeat) => shown.map_err(|failure| {
            let lines = if failure.lines.is_empty() {
                vec!["nobody reads the answer".into()]
            } else {
                failure.lines
            };
            let failure = Failure {
                exit: Exit::Output,
                lines,
                status: None,
                refusal: None,
            };
            failure.and(format!(
                "it was done; to see the answer again repeat the command with {repeat}"
            ))
        }),
        None => shown,
    }
}

fn show(
    sender: &Sender<'_>,
    printer: &Printer<'_>,
    operation: &Operation,
    reply: &Reply,
    reserved: Option<ReservedFile>,
) -> Result<(), Failure> {
    let terminal = sender.terminal;
    let mut answer = parsed(reply)?;
    if answer.is_null() {
        if !sender.quiet {
            terminal.note("done");
        }
        return Ok(());
    }
    if !operation.reveals_secret || (reserved.is_none() && printer.form != Form::Table) {
        printer.object(&answer)?;
        if operation.reveals_secret && !sender.quiet {
            terminal.note("the secret in this answer is shown once: keep it now");
        }
        return Ok(());
    }
    let secret = secret_file::take(&mut answer);
    match (secret, reserved) {
        (Some(secret), Some(reserved)) => {
            reserved.keep(&secret)?;
            prune(&mut answer);
            printer.object(&answer)?;
        }
        (Some(secret), None) => {
            prune(&mut answer);
            printer.object(&answer)?;
            if !sender.quiet {
                terminal.note("the next line is shown once: keep it now");
            }
            terminal.print(format!("{}\n", terminal.shown(secret.expose())).as_bytes())?;
        }
        (None, reserved) => {
            printer.object(&answer)?;
            if reserved.is_some() {
                return Err(Failure::new(
                    Exit::Output,
                    "the answer holds no secret, so no file was written",
                ));
            }
        }
    }
    Ok(())
}

/// Removes objects that the secret left empty.
fn prune(answer: &mut Value) {
    if let Some(members) = answer.as_object_mut() {
        members.retain(|_, value| value.as_object().is_none_or(|inner| !inner.is_empty()));
    }
}

/// Says what a refused caller can do about it.
fn with_hint(
    failure: Failure,
    operation: &Operation,
    connection: &Connection,
    is_performed: bool,
) -> Failure {
    match failure.status {
        // Nothing is missing of the caller.
        Some(403)
            if matches!(
                failure.refused("code"),
                Some("approval_required" | "escalation_forbidden")
            ) =>
        {
            failure
        }
        Some(403) if is_about_rights(&failure, operation) => {
            let needs = operation.performs.as_ref().filter(|_| is_performed);
            let scopes = match needs {
                Some(needs) => Some(format!("the scope {}", needs.scope)),
                None => operation.needed_scopes(),
            };
            let scope = scopes.map(|scopes| format!("{scopes} and ")).unwrap_or_default();
            let roles = needs.map_or(&operation.roles, |needs| &needs.roles).join(", ");
            let organization = &connection.place.organization;
            let failure = failure.and(format!(
                "this needs {scope}one of the roles {roles} in the organization {organization}"
            ));
            advice::about_access(failure, connection)
        }
        Some(401 | 403) => advice::about_access(failure, connection),
        Some(400) if failure.refused("code") == Some("confirmation_required") => {
            failure.and("on a command line, --confirm says so: repeat the command with it")
        }
        _ => failure,
    }
}

/// Says whether a refusal is for a role or a scope that the operation asks of everybody. What else is refused (who is no person, what would grow,
/// a scope for a part of what was asked) the server's own sentence says; a right that the caller has would be named as missing.
fn is_about_rights(failure: &Failure, operation: &Operation) -> bool {
    match failure.refused("code") {
        Some("insufficient_scope") => failure
            .refused(advice::NEEDED_SCOPE)
            .is_none_or(|named| operation.needs_scopes(named)),
        Some("role_forbidden") => {
            let said = failure.refused("message").unwrap_or_default();
            let role = said
                .strip_prefix("the role ")
                .and_then(|said| said.strip_suffix(" may not do this"));
            role.is_some()
        }
        _ => false,
    }
}
