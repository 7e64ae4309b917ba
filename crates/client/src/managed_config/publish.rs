//! `provost managed-config publish`: a content, or the files of a client as they are, become a release.

use super::pull::profile_id;
use super::settings_file;
use crate::cli::{
    Client, Confirm, Consent, Exit, Failure, Form, Printer, Request, Terminal, body_of, catalogue, command_of,
};
use clap::{Arg, ArgAction, ArgMatches, Command, ValueHint, value_parser};
use http::Method;
use serde_json::{Map, Value, json};
use std::path::PathBuf;

const GROUP: &str = "managed-config";

/// Returns the flag that says yes to what a preview shows.
pub fn yes_arg() -> Arg {
    Arg::new("yes")
        .long("yes")
        .action(ArgAction::SetTrue)
        .help("Publishes without showing first what would change, as a program does")
}

/// Returns the command: that of the operation, with files.
pub fn command() -> Command {
    let file = |id: &'static str, help: &'static str| {
        Arg::new(id)
            .long(id)
            .value_name("FILE")
            .value_hint(ValueHint::FilePath)
            .value_parser(value_parser!(PathBuf))
            .conflicts_with("global.body")
            .help(help)
    };
    let files = [
        file(
            "enforced-file",
            "What no user can override: managed-settings.json or requirements.toml, as it is",
        ),
        file(
            "defaults-file",
            "Starting values: settings.json or config.toml, as it is; only together with --enforced-file",
        ),
    ];
    let command = command_of(&catalogue::of_group(GROUP), GROUP, "publish", &files);
    command
        .unwrap_or_else(|| Command::new("publish").args(files))
        .arg(yes_arg())
}

/// Does it.
pub async fn run(matches: &ArgMatches, terminal: &Terminal) -> Result<(), Failure> {
    let file = |id: &str| matches.get_one::<PathBuf>(id);
    if file("defaults-file").is_some() && file("enforced-file").is_none() {
        let line = "--defaults-file needs --enforced-file: a release is the whole content, and without the file its \
                    enforced part would be empty; nothing was sent";
        let failure = Failure::usage(line);
        return Err(failure.and("to keep the enforced part, pass its file with --enforced-file as well"));
    }
    let client = Client::connect(matches, terminal)?;
    let named = matches
        .get_one::<String>("path.profileId")
        .map_or("", String::as_str);
    let profile = profile_id(&client, named).await?;
    let mut body = body_of(&catalogue::of_group(GROUP), (GROUP, "publish"), matches, terminal)?;
    let files = [
        ("enforced", file("enforced-file")),
        ("defaults", file("defaults-file")),
    ];
    if files.iter().any(|(_, file)| file.is_some()) {
        if !body["content"].is_null() {
            return Err(Failure::usage(
                "say the content by files or by flags, not by both",
            ));
        }
        let target = target_of(&client, &profile).await?;
        let mut content = Map::new();
        for (class, file) in files {
            if let Some(file) = file {
                content.insert(class.to_owned(), settings_file::read(file, &target)?.into());
            }
        }
        body["content"] = content.into();
    }
    let is_preview = matches.try_get_one::<bool>("query.preview").ok().flatten() == Some(&true);
    let publication = Publication {
        client: &client,
        profile,
        body,
        consent: Consent::of(matches, terminal, Confirm::Absent)?,
    };
    let answer = if is_preview {
        publication.preview().await?.0
    } else {
        publication.perform(matches.get_flag("yes")).await?
    };
    print(&client, matches, &answer)
}

/// Prints an answer, its warnings as notes.
pub fn print(client: &Client<'_>, matches: &ArgMatches, answer: &Value) -> Result<(), Failure> {
    let terminal = client.terminal;
    let printer = Printer {
        form: Form::chosen(matches, terminal),
        terminal,
        quiet: client.quiet,
    };
    for line in warnings(answer) {
        terminal.note(&line);
    }
    Ok(printer.object(answer)?)
}

/// Returns the program that a profile is for.
pub async fn target_of(client: &Client<'_>, profile: &str) -> Result<String, Failure> {
    let found = client.get_json(&[GROUP, "profiles", profile], &[]).await?;
    let target = found.pointer("/profile/target").and_then(Value::as_str);
    target.map(str::to_owned).ok_or_else(|| {
        Failure::new(
            Exit::ServerFault,
            "the answer is no profile; is this a Provost server?",
        )
    })
}

/// A content on its way to a profile.
pub struct Publication<'a> {
    pub client: &'a Client<'a>,
    pub profile: String,
    pub body: Value,
    pub consent: Consent,
}

impl Publication<'_> {
    /// Shows a person what would change and asks; publishes at once where nobody is there, or where that was said. Returns the
    /// preview when nothing would change: nothing is published then.
    ///
    /// Errors: usage, when the person does not say yes.
    pub async fn perform(&self, is_said: bool) -> Result<Value, Failure> {
        let terminal = self.client.terminal;
        let mut seen = None;
        if let Some(prompt) = terminal.prompt.as_deref().filter(|_| !is_said) {
            let (preview, etag) = self.preview().await?;
            seen = etag;
            if preview["wouldCreate"] == json!(false) {
                terminal.note(
                    "nothing changes: the current release says the same already; nothing was published",
                );
                return Ok(preview);
            }
            for line in shown(&preview) {
                terminal.note(&line);
            }
            let typed = prompt
                .line("publish this? type yes")
                .map_err(|error| Failure::usage(format!("no answer: {error}; nothing was published")))?;
            if typed.trim() != "yes" {
                return Err(Failure::usage("not confirmed; nothing was published"));
            }
        }
        // What was shown is what the person said yes to: the server refuses it when somebody else published meanwhile. An
        // earlier server names nothing.
        let request = match &seen {
            Some(etag) => self.request().header("if-match", etag),
            None => self.request(),
        };
        self.client.send(&request.consent(&self.consent)?).await?.json()
    }

    /// Returns what would change, and the name of that.
    async fn preview(&self) -> Result<(Value, Option<String>), Failure> {
        let request = self.request().query("preview", "true").consent(&self.consent)?;
        let answer = self.client.send(&request).await?;
        let etag = answer.header("etag").map(str::to_owned);
        Ok((answer.json()?, etag))
    }

    fn request(&self) -> Request {
        let path = [GROUP, "profiles", &self.profile, "releases"];
        Request::new(Method::POST, &path).json(&self.body)
    }
}

fn warnings(answer: &Value) -> Vec<String> {
    let warnings = answer["warnings"].as_array().into_iter().flatten();
    warnings
        .map(|warning| {
            let paths = warning["paths"].as_array().into_iter().flatten();
            let paths: Vec<&str> = paths.filter_map(Value::as_str).collect();
            let message = warning["message"].as_str().unwrap_or_default();
            format!("warning: {} {message}", paths.join(", "))
        })
        .collect()
}

/// Returns a preview for a person: the difference, what is weaker, what has no effect.
fn shown(preview: &Value) -> Vec<String> {
    let texts = |pointer: &str| {
        let lines = preview
            .pointer(pointer)
            .and_then(Value::as_array)
            .into_iter()
            .flatten();
        lines.cloned().collect::<Vec<_>>()
    };
    let difference = texts("/renderedDiff/lines");
    let mut lines: Vec<String> = difference
        .iter()
        .filter_map(Value::as_str)
        .map(str::to_owned)
        .collect();
    lines.extend(cut(preview));
    lines.extend(texts("/weakensEnforcement").iter().map(|weaker| {
        let text = |member: &str| weaker[member].as_str().unwrap_or_default();
        format!("weaker: {} {}", text("path"), text("message"))
    }));
    lines.extend(warnings(preview));
    lines
}

/// Returns the sentence that a preview does not show all that changes.
fn cut(preview: &Value) -> Option<String> {
    let is_cut = |pointer: &str| preview.pointer(pointer) == Some(&json!(true));
    if !is_cut("/truncated") && !is_cut("/renderedDiff/truncated") {
        return None;
    }
    let line = "more lines are not shown";
    Some(match preview["changesTotal"].as_u64() {
        Some(count) => format!("{line}: {count} members change in all"),
        None => line.to_owned(),
    })
}
