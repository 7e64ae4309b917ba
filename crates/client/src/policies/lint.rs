//! `provost policies lint`: what is wrong with files, and what their authors should change, as the server says.

use super::files::{family_arg, files_arg, named};
use super::remote;
use super::strict::{strict_arg, warned};
use super::test::named_file;
use crate::cli::{Client, Exit, Failure, Form, Printer, Terminal, connection_args};
use clap::{ArgMatches, Command};
use serde_json::json;

/// Returns the command.
pub fn command() -> Command {
    Command::new("lint")
        .about("Says what is wrong with policies in files, and what their authors should change")
        .long_about(
            "Says what is wrong with policies in files, and what their authors should change. The server reads them and keeps \
             nothing; names of users, groups and other records are looked up only when a policy is planned or applied.\n\n\
             Needs the scope policies:read.\n\nExit codes of its own:\n  5    a policy breaks its contract\n  10   with --strict: there is a warning",
        )
        .arg(files_arg())
        .arg(family_arg())
        .arg(strict_arg())
        .args(connection_args())
}

/// Does it: all files, then the exit code of the first one that is refused.
pub async fn run(matches: &ArgMatches, terminal: &Terminal) -> Result<(), Failure> {
    let files = named(matches, "files", terminal)?;
    let client = Client::connect(matches, terminal)?;
    let form = Form::chosen(matches, terminal);
    let (mut refused, mut found, mut answers) = (None, 0, Vec::new());
    for file in &files {
        let path = file.path.display().to_string();
        let body = json!({ "family": file.family, "definition": file.definition, "cases": [] });
        let mut lines = Vec::new();
        match remote::test(&client, &body).await {
            Ok(answer) => {
                lines.extend(
                    remote::warnings(&answer)
                        .into_iter()
                        .map(|line| format!("warning: {line}")),
                );
                found += lines.len();
                let warnings = answer.get("warnings").cloned().unwrap_or_else(|| json!([]));
                answers.push(json!({ "file": path, "valid": true, "warnings": warnings }));
            }
            Err(failure) if failure.exit == Exit::Conflict => {
                lines.extend(failure.lines.iter().map(|line| format!("error: {line}")));
                answers.push(json!({ "file": path, "valid": false, "errors": failure.lines }));
                refused.get_or_insert(named_file(failure, file));
            }
            Err(failure) => return Err(named_file(failure, file)),
        }
        if form == Form::Table {
            let text = match lines.as_slice() {
                [] => format!("{path}: ok\n"),
                lines => format!("{path}\n  {}\n", lines.join("\n  ")),
            };
            terminal.print(terminal.shown(&text).as_bytes())?;
        }
    }
    if form != Form::Table {
        let printer = Printer {
            form,
            terminal,
            quiet: client.quiet,
        };
        printer.object(&json!({ "files": answers }))?;
    }
    match refused {
        Some(failure) => Err(failure),
        None => warned(matches, found),
    }
}
