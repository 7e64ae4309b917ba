//! `provost policies test`: the cases beside a policy, judged by the server.

use super::files::{PolicyFile, family_arg, files_arg, named};
use super::remote;
use crate::backtests::json_file;
use crate::cli::{Client, Exit, Failure, Form, Printer, Terminal, connection_args, counted, visible};
use clap::{Arg, ArgMatches, Command, ValueHint, value_parser};
use serde_json::{Value, json};
use std::fmt::Write as _;
use std::path::PathBuf;

/// Returns the command.
pub fn command() -> Command {
    Command::new("test")
        .about("Judges the cases beside a policy and compares what comes out")
        .long_about(
            "Judges the cases beside a policy and compares what comes out. The server judges and records nothing; conditions on the past \
             see the earlier events of the case and no others.\n\n\
             Beside NAME.json lies NAME.cases.json: {\"cases\": [{\"name\": …, \"event\": {\"occasion\": …, \"attributes\": {…}}, \
             \"earlier\": [{\"ago\": \"5m\", \"event\": {…}}], \"expect\": {\"action\": \"block\"}}]}. What a case does not expect may be \
             anything; \"matched\" says whether the policy has a part in it.\n\n\
             Needs the scope policies:read.\n\nExit codes of its own:\n  10   a case came out otherwise",
        )
        .arg(files_arg())
        .arg(
            Arg::new("cases")
                .long("cases")
                .value_name("FILE")
                .value_hint(ValueHint::FilePath)
                .value_parser(value_parser!(PathBuf))
                .help("The cases of a single policy [default: NAME.cases.json beside it]"),
        )
        .arg(family_arg())
        .args(connection_args())
}

/// Does it.
pub async fn run(matches: &ArgMatches, terminal: &Terminal) -> Result<(), Failure> {
    let files = named(matches, "files", terminal)?;
    let said = matches.get_one::<PathBuf>("cases");
    if said.is_some() && files.len() != 1 {
        return Err(Failure::usage(
            "--cases is for one policy; each of several has its own beside it",
        ));
    }
    let client = Client::connect(matches, terminal)?;
    let form = Form::chosen(matches, terminal);
    let (mut answers, mut failed, mut cases) = (Vec::new(), 0, 0);
    for file in &files {
        let path = said.cloned().unwrap_or_else(|| file.cases());
        if files.len() > 1 && !path.exists() {
            client.note(&format!("{} has no cases", file.path.display()));
            continue;
        }
        let sent = cases_of(&path, terminal)?;
        let body = json!({ "family": file.family, "definition": file.definition, "cases": sent });
        let answer = remote::test(&client, &body).await;
        let answer = answer.map_err(|failure| named_file(failure, file))?;
        failed += answer["failed"].as_u64().unwrap_or(0);
        cases += answer["results"].as_array().map_or(0, Vec::len);
        if form == Form::Table {
            terminal.print(terminal.shown(&told(file, &answer)).as_bytes())?;
        }
        answers.push(json!({ "file": file.path.display().to_string(), "answer": answer }));
    }
    if form != Form::Table {
        let printer = Printer {
            form,
            terminal,
            quiet: client.quiet,
        };
        printer.object(&json!({ "files": answers }))?;
    }
    if cases == 0 {
        return Err(Failure::usage("there are no cases: a test of nothing would pass"));
    }
    if failed > 0 {
        let line = format!("{failed} of {} came out otherwise", counted(cases, "cases"));
        return Err(Failure::new(Exit::Gate, line));
    }
    client.note(&format!("{} came out as expected", counted(cases, "cases")));
    Ok(())
}

/// Returns the cases of a file: a list, or an object that holds one.
///
/// Errors: usage, also when there is not a single case: a test of nothing would pass.
fn cases_of(path: &std::path::Path, terminal: &Terminal) -> Result<Value, Failure> {
    if path.as_os_str() != "-" && !path.exists() {
        let line = format!("there are no cases: {} does not exist", path.display());
        return Err(Failure::usage(line));
    }
    let mut json = json_file(path, terminal)?;
    let cases = match json.get_mut("cases") {
        Some(cases) => cases.take(),
        None => json,
    };
    match cases.as_array().map(Vec::len) {
        Some(0) => Err(Failure::usage(format!("{} holds no case", path.display()))),
        Some(_) => Ok(cases),
        None => Err(Failure::usage(format!(
            "{} holds no cases: {{\"cases\": […]}}",
            path.display()
        ))),
    }
}

/// Says of which file a refusal is.
pub fn named_file(failure: Failure, file: &PolicyFile) -> Failure {
    failure.and(format!("the file is {}", file.path.display()))
}

/// Returns the lines about a file.
fn told(file: &PolicyFile, answer: &Value) -> String {
    let mut text = format!("{}\n", file.path.display());
    let results = answer["results"].as_array().into_iter().flatten();
    for (at, result) in results.enumerate() {
        let name = result["name"]
            .as_str()
            .map_or_else(|| format!("case {}", at + 1), visible_text);
        let sign = match result["passed"].as_bool() {
            Some(true) => "ok   ",
            Some(false) => "FAIL ",
            None => "     ",
        };
        let action = result["action"].as_str().unwrap_or_default();
        let mut came = action.to_owned();
        if result["basis"] == "no_policy_matched" {
            came.push_str(", not matched");
        }
        if result["unknown"] == json!(true) {
            came.push_str(", unknown");
        }
        let _ = writeln!(text, "  {sign}{name}: {came}");
    }
    for warning in remote::warnings(answer) {
        let _ = writeln!(text, "  warning: {warning}");
    }
    text
}

fn visible_text(text: &str) -> String {
    visible(text).to_string()
}
