//! `provost policies diff`, and what `apply` does with what differs.

use super::files::{PolicyFile, family_arg, folder_arg, must_differ, named};
use super::remote;
use crate::cli::{Client, Exit, Failure, Form, Printer, Terminal, connection_args, replace_file, visible};
use clap::{Arg, ArgAction, ArgMatches, Command, ValueHint, value_parser};
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::path::PathBuf;

/// LIMIT: differences that are shown of one policy.
const SHOWN: usize = 20;

/// What has to happen so that the server has what a file has.
#[derive(Clone, Debug)]
pub struct Change {
    /// The family.
    pub family: String,
    /// The policy.
    pub id: String,
    /// The revision that was seen; 0 where there is no such policy.
    pub revision: u64,
    /// What it is to be; nothing where it is to go.
    pub wanted: Option<Value>,
    /// What it is; nothing where there is none.
    pub current: Option<Value>,
    /// The manager who alone may change it, where somebody else manages it.
    pub manager: Option<String>,
    /// The file; nothing where it is to go.
    pub file: Option<String>,
}

impl Change {
    /// Returns the word for it.
    pub fn word(&self) -> &'static str {
        match (&self.current, &self.wanted) {
            (None, _) => "create",
            (Some(_), None) => "delete",
            (Some(current), Some(wanted)) if is_same(current, wanted) => "unchanged",
            _ => "update",
        }
    }

    /// Returns whether nothing has to happen.
    pub fn is_nothing(&self) -> bool {
        self.word() == "unchanged"
    }
}

/// Returns the command.
pub fn command() -> Command {
    Command::new("diff")
        .about("Compares the policies of the server with files")
        .long_about(
            "Compares the policies of the server with files. Nothing is written.\n\n\
             Needs the scope policies:read.\n\nExit codes of its own:\n  10   with --check: something differs",
        )
        .arg(folder_arg())
        .arg(family_arg())
        .arg(prune_arg("Shows policies that no file has as deleted"))
        .arg(
            Arg::new("check")
                .long("check")
                .action(ArgAction::SetTrue)
                .help("Fails where something differs (exit code 10)"),
        )
        .arg(
            Arg::new("changes")
                .long("changes")
                .value_name("FILE")
                .value_hint(ValueHint::FilePath)
                .value_parser(value_parser!(PathBuf))
                .help("Writes what differs into this file, for provost backtests run --candidate FILE"),
        )
        .args(connection_args())
}

/// Returns the flag that takes policies away which no file has.
pub fn prune_arg(help: &'static str) -> Arg {
    Arg::new("prune")
        .long("prune")
        .action(ArgAction::SetTrue)
        .help(help)
}

/// Does it.
pub async fn run(matches: &ArgMatches, terminal: &Terminal) -> Result<(), Failure> {
    let files = named(matches, "folder", terminal)?;
    let client = Client::connect(matches, terminal)?;
    let changes = changes(&client, &files, matches.get_flag("prune")).await?;
    show(&client, matches, &changes)?;
    let count = changes.iter().filter(|change| !change.is_nothing()).count();
    if let Some(path) = matches.get_one::<PathBuf>("changes") {
        let text = format!("{:#}\n", candidate(&changes));
        let written = replace_file(path, text.as_bytes(), 0o644);
        let cannot = |error| Failure::new(Exit::Output, format!("cannot write {}: {error}", path.display()));
        written.map_err(cannot)?;
    }
    if count > 0 && matches.get_flag("check") {
        let verb = if count == 1 {
            "policy differs"
        } else {
            "policies differ"
        };
        return Err(Failure::new(Exit::Gate, format!("{count} {verb}")));
    }
    Ok(())
}

/// Returns what has to happen so that the server has what the files have; `prunes` takes away what no file has and nobody else manages.
///
/// Errors: usage, when two files are one policy; whatever asking comes to.
pub async fn changes(
    client: &Client<'_>,
    files: &[PolicyFile],
    prunes: bool,
) -> Result<Vec<Change>, Failure> {
    must_differ(files)?;
    let mut all = Vec::new();
    for file in files {
        let id = file.id()?.to_owned();
        let stored = remote::stored(client, &file.family, &id).await?;
        all.push(Change {
            revision: revision(stored.as_ref()),
            manager: stored.as_ref().and_then(manager),
            current: stored.map(|mut item| item["definition"].take()),
            family: file.family.clone(),
            wanted: Some(file.definition.clone()),
            file: Some(file.path.display().to_string()),
            id,
        });
    }
    if !prunes {
        return Ok(all);
    }
    let kept: BTreeSet<&str> = files.iter().map(PolicyFile::id).collect::<Result<_, _>>()?;
    for listed in client
        .get_all(&["policies"], &[("limit", "100")], "policies")
        .await?
    {
        let id = listed["id"].as_str().unwrap_or_default();
        let family = listed["family"].as_str().unwrap_or_default();
        if kept.contains(id) || manager(&listed).is_some() {
            continue;
        }
        let Some(mut item) = remote::stored(client, family, id).await? else {
            continue;
        };
        all.push(Change {
            family: family.to_owned(),
            id: id.to_owned(),
            revision: revision(Some(&item)),
            wanted: None,
            manager: manager(&item),
            current: Some(item["definition"].take()),
            file: None,
        });
    }
    Ok(all)
}

/// Returns what differs as a backtest takes it.
fn candidate(changes: &[Change]) -> Value {
    let changes = changes.iter().filter(|change| !change.is_nothing());
    let changes: Vec<Value> = changes
        .map(|change| match &change.wanted {
            Some(definition) => json!({ "op": "set", "family": change.family, "definition": definition }),
            None => json!({ "op": "remove", "policyId": change.id }),
        })
        .collect();
    json!({ "changes": changes })
}

fn revision(stored: Option<&Value>) -> u64 {
    stored
        .and_then(|item| item["currentRevision"].as_u64())
        .unwrap_or(0)
}

/// Returns who manages a policy, where it is not the service.
fn manager(item: &Value) -> Option<String> {
    let mode = item["managementMode"].as_str().unwrap_or_default();
    if mode == "forge" {
        return None;
    }
    let text = |member: &str| item[member].as_str().unwrap_or_default();
    Some(format!("{mode} ({} {})", text("managerId"), text("managerInstance")).replace(" )", ")"))
}

/// Prints what differs.
pub fn show(client: &Client<'_>, matches: &ArgMatches, changes: &[Change]) -> Result<(), Failure> {
    let terminal = client.terminal;
    let form = Form::chosen(matches, terminal);
    if form == Form::Table {
        let mut text = String::new();
        for change in changes.iter().filter(|change| !change.is_nothing()) {
            text.push_str(&told(change));
        }
        let unchanged = changes.iter().filter(|change| change.is_nothing()).count();
        if unchanged == changes.len() {
            text.push_str("nothing differs\n");
        } else if unchanged > 0 {
            let _ = writeln!(text, "{unchanged} more do not differ");
        }
        return Ok(terminal.print(terminal.shown(&text).as_bytes())?);
    }
    let listed: Vec<Value> = changes
        .iter()
        .map(|change| {
            let mut item = json!({ "change": change.word(), "id": change.id, "family": change.family,
                "revision": change.revision, "differences": differences(change) });
            if let Some(manager) = &change.manager {
                item["manager"] = manager.as_str().into();
            }
            if let Some(file) = &change.file {
                item["file"] = file.as_str().into();
            }
            item
        })
        .collect();
    let printer = Printer {
        form,
        terminal,
        quiet: client.quiet,
    };
    Ok(printer.object(&json!({ "changes": listed }))?)
}

fn told(change: &Change) -> String {
    let sign = match change.word() {
        "create" => '+',
        "delete" => '-',
        _ => '~',
    };
    let mut text = format!(
        "{sign} {} {} ({})",
        change.word(),
        visible(&change.id),
        change.family
    );
    if let Some(manager) = &change.manager {
        let _ = write!(text, "; managed by {}", visible(manager));
    }
    text.push('\n');
    if change.word() == "update" {
        let lines = differences(change);
        for line in lines.iter().take(SHOWN) {
            let _ = writeln!(text, "    {}", visible(line));
        }
        if lines.len() > SHOWN {
            let _ = writeln!(text, "    and {} more", lines.len() - SHOWN);
        }
    }
    text
}

/// Returns the places that differ, each with what it was and what it is to be.
fn differences(change: &Change) -> Vec<String> {
    let mut lines = Vec::new();
    if let (Some(current), Some(wanted)) = (&change.current, &change.wanted) {
        compare(current, wanted, "", &mut lines);
    }
    lines
}

fn compare(was: &Value, is: &Value, path: &str, lines: &mut Vec<String>) {
    if is_same(was, is) {
        return;
    }
    match (was, is) {
        (Value::Object(was), Value::Object(is)) => {
            let names: BTreeSet<&String> = was.keys().chain(is.keys()).collect();
            for name in names {
                let path = format!("{path}/{}", name.replace('~', "~0").replace('/', "~1"));
                match (was.get(name), is.get(name)) {
                    (Some(was), Some(is)) => compare(was, is, &path, lines),
                    (Some(was), None) => lines.push(format!("- {path}: {was}")),
                    (None, Some(is)) => lines.push(format!("+ {path}: {is}")),
                    (None, None) => {}
                }
            }
        }
        (Value::Array(was), Value::Array(is)) if was.len() == is.len() => {
            for (at, (was, is)) in was.iter().zip(is).enumerate() {
                compare(was, is, &format!("{path}/{at}"), lines);
            }
        }
        _ => lines.push(format!("~ {path}: {was} → {is}")),
    }
}

/// Returns whether two documents are the same JSON value, as the server compares them: 1 and 1.0 are one number.
fn is_same(one: &Value, other: &Value) -> bool {
    match (one, other) {
        (Value::Number(a), Value::Number(b)) => {
            a == b || (a.as_f64() == b.as_f64() && a.is_f64() != b.is_f64())
        }
        (Value::Array(a), Value::Array(b)) => {
            a.len() == b.len() && a.iter().zip(b).all(|(a, b)| is_same(a, b))
        }
        (Value::Object(a), Value::Object(b)) => {
            let same =
                |(name, value): (&String, &Value)| b.get(name).is_some_and(|other| is_same(value, other));
            a.len() == b.len() && a.iter().all(same)
        }
        _ => one == other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn change(current: Option<Value>, wanted: Option<Value>) -> Change {
        Change {
            family: "content".into(),
            id: "p".into(),
            revision: 1,
            wanted,
            current,
            manager: None,
            file: None,
        }
    }

    #[test]
    fn what_has_to_happen_follows_from_both_sides() {
        let (a, b) = (json!({ "id": "p", "n": 1 }), json!({ "n": 1.0, "id": "p" }));
        assert_eq!(change(None, Some(a.clone())).word(), "create");
        assert_eq!(change(Some(a.clone()), None).word(), "delete");
        assert_eq!(change(Some(a.clone()), Some(b)).word(), "unchanged");
        assert_eq!(change(Some(a), Some(json!({ "id": "p" }))).word(), "update");
    }

    #[test]
    fn differences_are_places_with_both_values() {
        let was = json!({ "id": "p", "action": "block", "gone": 1, "list": [1, 2], "on": ["a"] });
        let is = json!({ "id": "p", "action": "allow", "new/er": true, "list": [1, 3], "on": ["a", "b"] });
        assert_eq!(
            differences(&change(Some(was), Some(is))),
            [
                "~ /action: \"block\" → \"allow\"",
                "- /gone: 1",
                "~ /list/1: 2 → 3",
                "+ /new~1er: true",
                "~ /on: [\"a\"] → [\"a\",\"b\"]"
            ]
        );
    }

    #[test]
    fn the_service_manages_what_nobody_else_does() {
        assert_eq!(manager(&json!({ "managementMode": "forge" })), None);
        let item = json!({ "managementMode": "terraform", "managerId": "infra", "managerInstance": "prod" });
        assert_eq!(manager(&item).as_deref(), Some("terraform (infra prod)"));
    }
}
