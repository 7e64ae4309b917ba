//! From operations to clap commands.

use super::api::{Api, Effect, MetadataPlacement, Operation, Shape};
use super::column::columns_arg;
use super::connection;
use super::consent;
use super::content;
use super::failure::EXIT_CODES;
use super::flags::{self, FlagTarget, Names, file_arg};
use super::pages::Paging;
use super::profile_command;
use super::schema::Field;
use clap::{Arg, ArgAction, Command, ValueHint, value_parser};

/// Returns one command per group, with one subcommand per operation, and `profile`.
pub fn commands(api: &Api) -> Vec<Command> {
    let group = |(name, _): (&str, _)| fill(Command::new(name.to_owned()), api);
    let mut commands: Vec<Command> = api.groups().into_iter().map(group).collect();
    commands.push(profile_command::command());
    commands
}

/// Adds its operations to the command of a group.
pub fn fill(group: Command, api: &Api) -> Command {
    let name = group.get_name().to_owned();
    let operations = api.operations.iter().filter(|o| o.group == name);
    group
        .subcommand_required(true)
        .arg_required_else_help(true)
        .after_long_help(EXIT_CODES)
        .subcommands(operations.map(|each| operation(each, &[])))
}

/// Returns the command of one operation with flags that say its body in another way; none when there is no such operation.
pub fn command_of(api: &Api, group: &str, verb: &str, instead: &[Arg]) -> Option<Command> {
    api.find(group, verb).map(|found| operation(found, instead))
}

/// Returns the name of the flag that says a field of an operation.
pub(super) fn flag_name(operation: &Operation, place: FlagTarget, field: &Field) -> String {
    let taken: Vec<Arg> = own_args(operation)
        .into_iter()
        .chain(connection::args())
        .collect();
    let mut names = Names::new(&taken);
    let query = operation.query.iter().map(|field| (FlagTarget::Query, field));
    let body = operation.body.iter().flat_map(|body| &body.fields);
    let body = body.map(|field| (FlagTarget::Body, field));
    let mut longs = query
        .chain(body)
        .map(|(of, known)| (of, &known.path, names.take(of, known)));
    let found = longs.find(|(of, path, _)| *of == place && **path == field.path);
    found.map(|(_, _, long)| long).unwrap_or_default()
}

fn operation(operation: &Operation, instead: &[Arg]) -> Command {
    let mut own = own_args(operation);
    own.extend_from_slice(instead);
    let taken: Vec<Arg> = own.iter().cloned().chain(connection::args()).collect();
    let mut names = Names::new(&taken);
    let mut command = Command::new(operation.verb.clone())
        .about(operation.summary.clone())
        .long_about(long_about(operation))
        .after_long_help(format!("Example:\n  {}\n\n{EXIT_CODES}", example(operation)))
        .args(operation.path_parameters.iter().map(flags::positional));
    for field in &operation.query {
        let long = names.take(FlagTarget::Query, field);
        let mut arg = flags::flag(FlagTarget::Query, field, long).required(field.required);
        if field.path == ["from"] && field.is_time() && operation.query_field("since").is_none() {
            arg = arg.visible_alias("since");
        }
        command = command.arg(arg);
    }
    for field in operation.body.iter().flat_map(|body| &body.fields) {
        let long = names.take(FlagTarget::Body, field);
        let clear = field.can_be_cleared().then(|| flags::clear_flag(field, &long));
        let arg = flags::flag(FlagTarget::Body, field, long);
        let arg = if field.required {
            let others = instead.iter().map(|arg| arg.get_id().clone());
            arg.required_unless_present_any(others.chain(["global.body".into()]))
        } else {
            arg
        };
        command = command.arg(arg).args(clear);
    }
    // Not global flags of the group: the program adds verbs of its own to some groups.
    let command = command.args(own).args(connection::args());
    if operation.columns.is_empty() {
        return command;
    }
    command.mut_arg("global.output", |_| connection::list_output_arg())
}

/// Returns a command line with everything that is required.
fn example(operation: &Operation) -> String {
    let mut words = vec![
        "provost".to_owned(),
        operation.group.clone(),
        operation.verb.clone(),
    ];
    words.extend(operation.path_parameters.iter().map(flags::placeholder));
    let members = operation.body.iter().flat_map(|body| &body.fields);
    for field in operation
        .query
        .iter()
        .chain(members)
        .filter(|field| field.required)
    {
        words.push(format!("--{} …", flags::long(field)));
    }
    if !operation.media_types().is_empty() {
        words.push("--file FILE".to_owned());
    }
    if operation.answer == Shape::Bytes {
        words.push("--to-file FILE".to_owned());
    }
    if let Effect::Write { confirm, metadata } = operation.kind {
        if operation.performs.is_none() && metadata != MetadataPlacement::OptionalHeaders {
            words.push("--reason 'who asked for it'".to_owned());
        }
        if confirm {
            words.push("--confirm".to_owned());
        }
    }
    words.join(" ")
}

/// Returns the flags that are about the request and not in its schema.
fn own_args(operation: &Operation) -> Vec<Arg> {
    let mut args = Vec::new();
    if operation.body.as_ref().is_some_and(|body| body.whole) {
        let body = Arg::new("global.body")
            .long("body")
            .value_name("FILE|-|JSON")
            .value_hint(ValueHint::FilePath);
        args.push(body.help(
            "The whole body as JSON: a file, - for standard input, or the text itself; flags add to it",
        ));
    }
    if let Some(body) = operation
        .body
        .as_ref()
        .filter(|body| !body.media_types.is_empty())
    {
        args.extend(content::args(body));
    }
    if let Effect::Write { confirm, metadata } = operation.kind {
        let may_be_silent = metadata == MetadataPlacement::OptionalHeaders;
        args.extend(
            consent::consent_args()
                .into_iter()
                .map(|arg| match arg.get_id().as_str() {
                    "global.reason" if may_be_silent => {
                        arg.help("Why; goes into the audit log (1 to 500 characters)")
                    }
                    _ => arg,
                }),
        );
        let help = if confirm {
            "Says that you know that nothing can undo this [asked for on a terminal]"
        } else if operation.performs.is_some() {
            "Does it; without this flag the command only shows what would be done"
        } else {
            "Sends confirm: true"
        };
        args.extend(operation.takes_confirm().then(|| consent::confirm_arg(help)));
    }
    if operation.reveals_secret {
        let help = "Writes the secret into this new file, readable by you alone, instead of showing it";
        args.push(file_arg("global.token-out", "token-out").help(help));
    }
    if !operation.columns.is_empty() {
        args.push(columns_arg());
    }
    if matches!(operation.answer, Shape::List(_) | Shape::Object) && operation.may_repeat() {
        args.push(watch_arg());
    }
    if Paging::of(operation).is_some() {
        let arg = Arg::new("global.all").long("all").action(ArgAction::SetTrue);
        args.push(arg.help("Fetches every page"));
    }
    if operation.answer == Shape::Lines {
        let help = "Writes the lines into this new file, readable by you alone";
        let arg = file_arg("global.to-file", "to-file").help(help);
        let has_to = operation.query_field("to").is_some();
        args.push(if has_to { arg } else { arg.visible_alias("to") });
    }
    if operation.answer == Shape::Bytes {
        let help = "Writes the answer into this new file, readable by you alone [default: standard output]";
        args.push(
            file_arg("global.to-file", "to-file")
                .visible_alias("to")
                .help(help),
        );
    }
    args.into_iter().map(|arg| arg.help_heading("Request")).collect()
}

fn watch_arg() -> Arg {
    Arg::new("global.watch")
        .long("watch")
        .value_name("SECONDS")
        .num_args(0..=1)
        .require_equals(true)
        .default_missing_value("2")
        .value_parser(value_parser!(u64).range(1..=3600))
        .help("Asks again every two seconds, or as many as are said, until Ctrl-C or an error")
}

fn long_about(operation: &Operation) -> String {
    let mut paragraphs = vec![operation.summary.clone()];
    if !operation.description.is_empty() {
        paragraphs.push(operation.description.clone());
    }
    let roles = operation.roles.join(", ");
    paragraphs.push(match operation.needed_scopes() {
        Some(scopes) => format!("Needs {scopes} and one of the roles: {roles}."),
        None => format!("Needs a token of one of the roles: {roles}."),
    });
    if let Some(needs) = &operation.performs {
        paragraphs.push(format!(
            "Without --confirm it only shows what would be done, and asks for no reason. --confirm needs the scope \
             {} and one of the roles: {}.",
            needs.scope,
            needs.roles.join(", ")
        ));
    }
    if matches!(operation.kind, Effect::Write { confirm: true, .. }) {
        paragraphs.push("Nothing can undo it.".into());
    }
    if operation.reveals_secret {
        paragraphs.push("The answer holds a secret that is shown once.".into());
    }
    paragraphs.push(format!("{} {}", operation.method, operation.path));
    paragraphs.join("\n\n")
}
