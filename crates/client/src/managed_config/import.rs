//! `provost managed-config import`: what a machine has at the places of its client, as a content or as a release.

use super::places::{self, Root};
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
             Without --publish the content is printed, values and all, and nothing is sent; publish --body - takes it. \
             What cannot be read ends the command: it is never taken for absent. A release needs the enforced file.\n\n\
             Below the --root of another machine links are not followed, and the settings.json of this user is not read.",
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
    let named = matches.get_one::<String>("publish");
    let wanted = Wanted {
        word,
        root: Root::new(root),
        with_defaults: matches.get_flag("with-defaults"),
        is_published: named.is_some(),
    };
    let content = wanted.read(terminal)?;
    let Some(named) = named else {
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

/// Which settings are read, and what for.
struct Wanted<'a> {
    word: &'a str,
    root: Root,
    with_defaults: bool,
    is_published: bool,
}

impl Wanted<'_> {
    /// Reads what a machine has; says on standard error where each part came from. A part that was not found is left out: an
    /// empty one in its place would say that the machine is not guarded.
    ///
    /// Errors: not found, when there is nothing, or no enforced file for a release; usage, when a place cannot be looked at;
    /// a conflict, when a client would read more files than are read here, or a place holds what is not read.
    fn read(&self, terminal: &Terminal) -> Result<Value, Failure> {
        let word = self.word;
        let defaults = self.defaults(terminal)?;
        let places: &[&str] = if word == "codex" {
            &["etc/codex/requirements.toml"]
        } else {
            &[
                "etc/claude-code/managed-settings.json",
                "Library/Application Support/ClaudeCode/managed-settings.json",
            ]
        };
        let mut enforced = None;
        for place in places {
            let found = self.root.find(place)?;
            self.must_be_whole(place)?;
            enforced = enforced.or(found);
        }
        let mut content = Map::new();
        let mut add = |class: &str, path: &Path| -> Result<(), Failure> {
            places::must_be_regular(path)?;
            content.insert(class.to_owned(), settings_file::read(path, word)?.into());
            terminal.note(&format!("{class}: {}", path.display()));
            Ok(())
        };
        if let Some(path) = &enforced {
            add("enforced", path)?;
        }
        if let Some(path) = &defaults {
            add("defaults", path)?;
        }
        if enforced.is_some() {
            return Ok(content.into());
        }
        let paths: Vec<String> = places
            .iter()
            .map(|place| self.root.path(place).display().to_string())
            .collect();
        let paths = paths.join(" or ");
        if content.is_empty() {
            let line = format!("this machine has no settings of {word} at {paths}");
            return Err(Failure::new(Exit::NotFound, line));
        }
        if self.is_published {
            let line =
                format!("this machine has no enforced settings of {word} at {paths}; nothing was sent");
            let failure = Failure::new(Exit::NotFound, line);
            return Err(failure.and("a release of the starting values alone would empty the enforced part"));
        }
        terminal.note(&format!(
            "enforced: nothing at {paths}; the content is printed without it"
        ));
        Ok(content.into())
    }

    /// Returns the file of the starting values, when it is wanted and there.
    fn defaults(&self, terminal: &Terminal) -> Result<Option<PathBuf>, Failure> {
        if !self.with_defaults {
            return Ok(None);
        }
        let (path, found) = if self.word == "codex" {
            let place = "etc/codex/config.toml";
            (self.root.path(place), self.root.find(place)?)
        } else if self.root.is_another() {
            let line =
                "--with-defaults reads the settings.json of this user, which does not lie below --root";
            return Err(Failure::usage(line).and("leave out one of the two"));
        } else {
            let home = terminal.surroundings.home.as_ref();
            let home =
                home.ok_or_else(|| Failure::usage("there is no home folder; leave out --with-defaults"))?;
            let path = home.join(".claude/settings.json");
            let found = places::look(&path)?.map(|_| path.clone());
            (path, found)
        };
        if found.is_none() {
            terminal.note(&format!("defaults: nothing at {}", path.display()));
        }
        Ok(found)
    }

    /// Refuses a place beside which the client reads other files, whether or not a file stands there: a part would be taken for
    /// the whole, and might guard less.
    fn must_be_whole(&self, place: &str) -> Result<(), Failure> {
        let path = self.root.path(place);
        let Some(folder) = self.root.find(Path::new(place).with_extension("d"))? else {
            return Ok(());
        };
        let count = places::count(&folder)?;
        if count == 0 {
            return Ok(());
        }
        let line = format!(
            "{} holds {count} more files that the client adds to {}",
            folder.display(),
            path.display()
        );
        let failure = Failure::new(Exit::Conflict, line);
        Err(failure.and("put them together into one file and publish it with --enforced-file"))
    }
}
