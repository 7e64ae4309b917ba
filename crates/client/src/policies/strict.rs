//! `--strict`: a warning is a failure, and nothing is written.
//!
//! The commands that write a policy are those of the API with this flag: before they write, they plan, and a plan with warnings ends
//! them.

use super::remote;
use crate::cli::{
    Client, Exit, Failure, Form, HandCommand, Printer, Request, Terminal, body_of, catalogue, command_of,
    perform,
};
use clap::{Arg, ArgAction, ArgMatches, Command};
use http::Method;
use serde_json::Value;

/// Returns the flag.
pub fn strict_arg() -> Arg {
    Arg::new("strict")
        .long("strict")
        .action(ArgAction::SetTrue)
        .help("Fails where there is a warning (exit code 10), and writes nothing")
}

/// Fails where there are warnings and that was asked for.
pub fn warned(matches: &ArgMatches, found: usize) -> Result<(), Failure> {
    if found == 0 || !matches.get_flag("strict") {
        return Ok(());
    }
    let line = format!(
        "--strict: {found} {}",
        if found == 1 { "warning" } else { "warnings" }
    );
    Err(Failure::new(Exit::Gate, line))
}

/// A command of the API that takes the flag.
#[derive(Clone, Copy)]
struct WriteCommand {
    group: &'static str,
    verb: &'static str,
    /// The family; none where the body says it.
    family: Option<&'static str>,
}

impl WriteCommand {
    fn command(self) -> Command {
        let command = command_of(&catalogue::of_group(self.group), self.group, self.verb, &[]);
        command
            .unwrap_or_else(|| Command::new(self.verb))
            .arg(strict_arg())
    }

    /// Does what the API's command does; with the flag, a plan of it is looked at before.
    async fn run(self, matches: &ArgMatches, terminal: &Terminal) -> Result<(), Failure> {
        let api = catalogue::of_group(self.group);
        let words = (self.group, self.verb);
        if !matches.get_flag("strict") {
            return perform(&api, words, matches, terminal).await;
        }
        if matches
            .get_one::<String>("global.body")
            .is_some_and(|path| path == "-")
        {
            let line = "--strict reads the body before it is sent: name a file instead of standard input";
            return Err(Failure::usage(line));
        }
        let client = Client::connect(matches, terminal)?;
        let body = body_of(&api, words, matches, terminal)?;
        let Some(family) = self.family else {
            let request = Request::new(Method::POST, &["policy-plans", "validate"]).json(&body);
            let answer = client.send(&request).await?.json()?;
            let printer = Printer {
                form: Form::chosen(matches, terminal),
                terminal,
                quiet: client.quiet,
            };
            printer.object(&answer)?;
            return warned(matches, note(&client, &answer));
        };
        let revision = body["expectedRevision"].as_u64().unwrap_or(0);
        let plan = plan(&client, family, &body, revision).await?;
        let found = note(&client, &plan);
        warned(matches, found).map_err(|failure| failure.and("nothing was written"))?;
        perform(&api, words, matches, terminal).await
    }
}

async fn plan(client: &Client<'_>, family: &str, body: &Value, revision: u64) -> Result<Value, Failure> {
    let mut asked = serde_json::json!({ "family": family, "expectedRevision": revision,
        "definition": body["definition"] });
    if let Some(source) = body.get("sourceRef").filter(|source| !source.is_null()) {
        asked["sourceRef"] = source.clone();
    }
    let request = Request::new(Method::POST, &["policy-plans", "validate"]).json(&asked);
    client.send(&request).await?.json()
}

/// Tells a person of the warnings and returns how many there are.
fn note(client: &Client<'_>, answer: &Value) -> usize {
    let lines = remote::warnings(answer);
    for line in &lines {
        client.note(&format!("warning: {line}"));
    }
    lines.len()
}

/// Makes a hand command of each.
macro_rules! written {
    ($($constant:ident = $group:literal $verb:literal $family:expr, $example:literal;)*) => {
        $(const $constant: WriteCommand = WriteCommand { group: $group, verb: $verb, family: $family };)*

        /// Returns the commands.
        pub fn own() -> Vec<HandCommand> {
            vec![$(HandCommand {
                group: $group,
                verb: $verb,
                command: || $constant.command(),
                examples: &[$example],
                run: |matches, terminal| Box::pin($constant.run(matches, terminal)),
            }),*]
        }
    };
}

written! {
    PLAN = "policies" "plan" None, "provost policies plan --body plan.json --strict";
    CREATE_CONTENT = "content-policies" "create" Some("content"), "provost content-policies create --body FILE --strict --reason TEXT";
    UPDATE_CONTENT = "content-policies" "update" Some("content"), "provost content-policies update no-shell --body FILE --strict --reason TEXT";
    CREATE_ACCESS = "access-policies" "create" Some("access"), "provost access-policies create --body FILE --strict --reason TEXT";
    UPDATE_ACCESS = "access-policies" "update" Some("access"), "provost access-policies update no-codex --body FILE --strict --reason TEXT";
    CREATE_RESOURCE = "resource-policies" "create" Some("resource"), "provost resource-policies create --body FILE --strict --reason TEXT";
    UPDATE_RESOURCE = "resource-policies" "update" Some("resource"), "provost resource-policies update no-redis --body FILE --strict --reason TEXT";
    CREATE_SKILL = "skill-acls" "create" Some("skill_acl"), "provost skill-acls create --body FILE --strict --reason TEXT";
    UPDATE_SKILL = "skill-acls" "update" Some("skill_acl"), "provost skill-acls update no-reading --body FILE --strict --reason TEXT";
}
