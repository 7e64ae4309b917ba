//! `provost managed-config import`: what a machine has at the places of its client, as a content or as a release.

use super::publish::{Publication, print, target_of, yes_arg};
use super::pull::profile_id;
use super::settings_file;
use crate::cli::{Client, Confirm, Consent, Exit, Failure, Terminal, connection_args, consent_args};
use clap::builder::PossibleValuesParser;
use clap::{Arg, ArgAction, ArgMatches, Command, ValueHint, value_parser};
use serde_json::{Map, Value, json};
use std::path::{Path, PathBuf};

pub fn command() -> Command {
    Command::new("import")
        .about("Reads the settings that this machine has for a client, and prints or publishes them")
        .long_about(
            "Reads the settings that this machine has for a client, and prints or publishes them.\n\n\
             Claude Code: managed-settings.json in /etc/claude-code (macOS: /Library/Application Support/ClaudeCode), and \
             with --with-defaults the settings.json of this user. Codex: requirements.toml in /etc/codex, and with \
             --with-defaults the config.toml beside it.\n\n\
             Without --publish the content is printed, values and all, and nothing is sent; publish --body - takes it.",
        )
        .arg(
            Arg::new("client")
                .long("client")
                .value_name("WORD")
                .required(true)
                .value_parser(PossibleValuesParser::new(["claude_code", "codex"]))
                .help("Whose settings"),
        )
        .arg(
            Arg::new("with-defaults")
                .long("with-defaults")
                .action(ArgAction::SetTrue)
                .help("Reads the starting values as well"),
        )
        .arg(
            Arg::new("root")
                .long("root")
                .value_name("FOLDER")
                .default_value("/")
                .value_hint(ValueHint::DirPath)
                .value_parser(value_parser!(PathBuf))
                .help("Where the machine's files begin, for the files of another one"),
        )
        .arg(
            Arg::new("publish")
                .long("publish")
                .value_name("ID|NAME")
                .help("Publishes to this profile instead of printing"),
        )
        .arg(
            Arg::new("strict")
                .long("strict")
                .action(ArgAction::SetTrue)
                .requires("publish")
                .help("Refuses what is otherwise only warned of"),
        )
        .arg(yes_arg())
        .args(consent_args())
        .args(connection_args())
}

/// Does it.
pub async fn run(matches: &ArgMatches, terminal: &Terminal) -> Result<(), Failure> {
    let word = matches.get_one::<String>("client").map_or("", String::as_str);
    let root = matches.get_one::<PathBuf>("root").cloned().unwrap_or_default();
    let content = read(word, &root, matches.get_flag("with-defaults"), terminal)?;
    let Some(named) = matches.get_one::<String>("publish") else {
        let text = format!("{:#}\n", json!({ "content": content }));
        return Ok(terminal.print(terminal.shown(&text).as_bytes())?);
    };
    let client = Client::connect(matches, terminal)?;
    let profile = profile_id(&client, named).await?;
    let target = target_of(&client, &profile).await?;
    if target != word {
        let line = format!("the profile is for {target}, and these are settings of {word}; nothing was sent");
        return Err(Failure::new(Exit::Conflict, line));
    }
    let mut body = json!({ "content": content });
    if matches.get_flag("strict") {
        body["strict"] = true.into();
    }
    let publication = Publication {
        client: &client,
        profile,
        body,
        consent: Consent::of(matches, terminal, Confirm::Absent)?,
    };
    let answer = publication.perform(matches.get_flag("yes")).await?;
    print(&client, matches, &answer)
}

/// Reads what a machine has; says on standard error where each part came from.
///
/// Errors: not found, when there is nothing; a conflict, when a client would read more files than are read here.
fn read(word: &str, root: &Path, with_defaults: bool, terminal: &Terminal) -> Result<Value, Failure> {
    let home = terminal.surroundings.home.clone().unwrap_or_default();
    let (enforced, defaults) = if word == "codex" {
        (
            vec![root.join("etc/codex/requirements.toml")],
            root.join("etc/codex/config.toml"),
        )
    } else {
        (
            vec![
                root.join("etc/claude-code/managed-settings.json"),
                root.join("Library/Application Support/ClaudeCode/managed-settings.json"),
            ],
            home.join(".claude/settings.json"),
        )
    };
    let mut content = Map::from_iter([("enforced".to_owned(), json!({}))]);
    let mut is_anything = false;
    let mut add = |class: &str, path: &Path| -> Result<(), Failure> {
        if path.exists() {
            must_be_whole(path)?;
            content.insert(class.to_owned(), settings_file::read(path, word)?.into());
            terminal.note(&format!("{class}: {}", path.display()));
            is_anything = true;
        }
        Ok(())
    };
    if let Some(path) = enforced.iter().find(|path| path.exists()) {
        add("enforced", path)?;
    }
    if with_defaults {
        add("defaults", &defaults)?;
    }
    if is_anything {
        return Ok(content.into());
    }
    let places: Vec<String> = enforced.iter().map(|path| path.display().to_string()).collect();
    let line = format!(
        "this machine has no settings of {word} at {}",
        places.join(" or ")
    );
    Err(Failure::new(Exit::NotFound, line))
}

/// Refuses a file beside which the client reads others: a part would be taken for the whole, and might guard less.
fn must_be_whole(path: &Path) -> Result<(), Failure> {
    let folder = path.with_extension("d");
    let count = std::fs::read_dir(&folder).map_or(0, Iterator::count);
    if count == 0 {
        return Ok(());
    }
    let line = format!(
        "{} holds {count} more files that the client adds to {}",
        folder.display(),
        path.display()
    );
    let failure = Failure::new(Exit::Conflict, line);
    Err(failure.and("put them together into one file and publish it with --enforced-file".to_owned()))
}
