//! `provost policies explain`: why an event is judged as it is.

use super::files::{PolicyFile, family_arg};
use super::remote;
use crate::backtests::json_file;
use crate::cli::{Client, Failure, Form, Printer, Terminal, connection_args, visible};
use clap::{Arg, ArgMatches, Command, ValueHint, value_parser};
use serde_json::{Map, Value, json};
use std::path::{Path, PathBuf};

/// What the id of a recorded event begins with.
const RECORDED: &str = "hev_";

/// Returns the command.
pub fn command() -> Command {
    Command::new("explain")
        .about("Says why an event is judged as it is: which policies matched, and which of their parts hold")
        .long_about(
            "Says why an event is judged as it is: which policies matched, and which of their parts hold. Nothing is recorded.\n\n\
             EVENT is a file with {\"occasion\": …, \"attributes\": {…}} or with a case {\"event\": …, \"earlier\": […]}, - for standard \
             input, or the id of a recorded event, which is judged by the policies as they are now, without what happened before it.\n\n\
             Needs the scope policies:read; for a recorded event also policies:history; without --policy also the scopes that read \
             the records that the event names (directory:read, service_accounts:read, registry:read, resources:read).",
        )
        .arg(
            Arg::new("event")
                .value_name("EVENT")
                .value_hint(ValueHint::FilePath)
                .required(true)
                .help("A file, - or the id of a recorded event (hev_…)"),
        )
        .arg(
            Arg::new("policy")
                .long("policy")
                .value_name("FILE")
                .value_hint(ValueHint::FilePath)
                .value_parser(value_parser!(PathBuf))
                .help("Asks this policy alone instead of the live ones"),
        )
        .arg(family_arg())
        .args(connection_args())
}

/// Does it.
pub async fn run(matches: &ArgMatches, terminal: &Terminal) -> Result<(), Failure> {
    let named = matches.get_one::<String>("event").cloned().unwrap_or_default();
    let family = matches.get_one::<String>("family").map(String::as_str);
    let policy = matches.get_one::<PathBuf>("policy");
    let policy = policy
        .map(|path| PolicyFile::read(path, family, terminal))
        .transpose()?;
    let client = Client::connect(matches, terminal)?;
    let case = if named.starts_with(RECORDED) && !Path::new(&named).exists() {
        let recorded = client.get_json(&["policies", "history", &named], &[]).await?;
        client.note("judged by the policies as they are now, without what happened before it");
        json!({ "event": of_history(&recorded) })
    } else {
        case_of(json_file(Path::new(&named), terminal)?)
    };
    let mut body = json!({ "cases": [case], "explain": true });
    if let Some(policy) = policy {
        body["family"] = policy.family.into();
        body["definition"] = policy.definition;
    }
    let answer = remote::test(&client, &body).await?;
    let form = Form::chosen(matches, terminal);
    if form == Form::Table {
        let text = told(&answer["results"][0]);
        return Ok(terminal.print(terminal.shown(&text).as_bytes())?);
    }
    let printer = Printer {
        form,
        terminal,
        quiet: client.quiet,
    };
    Ok(printer.object(&answer)?)
}

/// Returns the case that a file holds: a whole one without its expectation, or an event alone.
fn case_of(mut json: Value) -> Value {
    if json.get("event").is_none() {
        return json!({ "event": json });
    }
    let mut case = Map::new();
    for member in ["event", "earlier"] {
        if let Some(value) = json.get_mut(member) {
            case.insert(member.to_owned(), value.take());
        }
    }
    case.into()
}

/// Returns what of a recorded event is judged.
fn of_history(recorded: &Value) -> Value {
    let recorded = recorded.get("event").unwrap_or(recorded);
    let mut event = Map::new();
    for member in ["occasion", "attributes", "missing"] {
        if let Some(value) = recorded.get(member).filter(|value| !value.is_null()) {
            event.insert(member.to_owned(), value.clone());
        }
    }
    event.into()
}

/// Returns the explanation as a person reads it.
fn told(result: &Value) -> String {
    let text = |value: &Value, member: &str| value[member].as_str().unwrap_or_default().to_owned();
    let mut lines = vec![text(result, "action")];
    if result["basis"] == "no_policy_matched" {
        lines[0].push_str(": no policy matched");
    }
    if result["unknown"] == json!(true) {
        lines[0].push_str(" (something could not be evaluated, and counted as matched)");
    }
    for message in result["messages"].as_array().into_iter().flatten() {
        let message = message.as_str().unwrap_or_default();
        lines.push(format!("people are told: {}", visible(message)));
    }
    let reasons = result["reasons"]
        .as_array()
        .map(Vec::as_slice)
        .unwrap_or_default();
    for explained in result["explanations"].as_array().into_iter().flatten() {
        let id = text(explained, "policyId");
        let part = reasons
            .iter()
            .find(|reason| reason["policyId"] == explained["policyId"]);
        let said = match part {
            None => "does not match".to_owned(),
            Some(part) => {
                let decides = if part["decides"] == json!(true) {
                    ", decides"
                } else {
                    ""
                };
                let enforced = if part["enforced"] == json!(false) {
                    ", only reported"
                } else {
                    ""
                };
                format!(
                    "{} ({}{decides}{enforced})",
                    text(part, "action"),
                    text(part, "reason")
                )
            }
        };
        lines.push(String::new());
        lines.push(format!("{id}: {said}"));
        for part in explained["parts"].as_array().into_iter().flatten() {
            let sign = match part["holds"].as_str() {
                Some("true") => "holds   ",
                Some("false") => "no      ",
                _ => "unknown ",
            };
            lines.push(format!("  {sign} {}", text(part, "path")));
        }
        for missing in part
            .and_then(|part| part["missing"].as_array())
            .into_iter()
            .flatten()
        {
            lines.push(format!(
                "  nobody can say {}",
                missing.as_str().unwrap_or_default()
            ));
        }
    }
    lines.push(String::new());
    lines.join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_holds_an_event_or_a_case_and_a_record_more_than_is_judged() {
        let event = json!({ "occasion": "prompt", "attributes": {} });
        assert_eq!(case_of(event.clone()), json!({ "event": event }));
        let case = json!({ "name": "n", "event": event, "earlier": [], "expect": { "action": "block" } });
        assert_eq!(case_of(case), json!({ "event": event, "earlier": [] }));
        let recorded = json!({ "event": { "eventId": "hev_1", "at": "x", "occasion": "prompt", "attributes": {}, "session": "s" } });
        assert_eq!(of_history(&recorded), event);
    }

    #[test]
    fn an_explanation_names_policies_and_their_parts() {
        let text = told(
            &json!({ "action": "block", "unknown": false, "basis": "policies", "messages": ["ask"],
            "reasons": [{ "policyId": "p", "action": "block", "reason": "matched", "decides": true, "enforced": true }],
            "explanations": [
                { "policyId": "p", "parts": [{ "path": "/conditions", "holds": "true" }] },
                { "policyId": "q", "parts": [{ "path": "/conditions", "holds": "unknown" }, { "path": "/except", "holds": "false" }] } ] }),
        );
        assert_eq!(
            text,
            "block\npeople are told: ask\n\np: block (matched, decides)\n  holds    /conditions\n\nq: does not match\n  unknown  /conditions\n  no       /except\n"
        );
    }
}
