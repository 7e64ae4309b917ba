//! `provost backtests run --candidate FILE`: what a policy would have done, from a file to a table.

use super::answer::{Answer, output_args};
use super::candidate::{FAMILIES, candidate};
use super::view::RunView;
use super::{tried, wait, window};
use crate::cli::{Client, Confirm, Consent, Exit, Failure, Terminal, connection_args, consent_args};
use clap::builder::{NonEmptyStringValueParser, PossibleValuesParser};
use clap::{Arg, ArgAction, ArgMatches, Command, ValueHint, value_parser};
use http::Method;
use serde_json::{Value, json};

/// Returns the command.
pub fn command() -> Command {
    let text = |id: &'static str, value: &'static str, help: &'static str| {
        Arg::new(id)
            .long(id)
            .value_name(value)
            .value_parser(NonEmptyStringValueParser::new())
            .help(help)
    };
    let filter = |id: &'static str, help: &'static str| {
        text(id, "ID", help)
            .action(ArgAction::Append)
            .help_heading("Filters")
    };
    let limit = |id: &'static str, help: &'static str| {
        Arg::new(id)
            .long(id)
            .value_name("N")
            .value_parser(value_parser!(u64).range(1..))
            .help(help)
    };
    Command::new("run")
        .about("Replays recorded events against a policy and shows which decisions change")
        .long_about(format!(
            "Replays recorded events against a policy and shows which decisions change. Live enforcement is not \
             touched.\n\n\
             --candidate is a file with the definition of one policy, with {{\"changes\":[…]}} to the baseline or with \
             a whole set {{\"policies\":[…]}}, - for standard input, or draft:POLICY_ID for a stored policy that is \
             not enabled.\n\n\
             --fail-on, --html, --json and --format wait for the end, as --wait does.\n\n\
             Needs the scopes policies:backtest and policies:read and one of the roles admin, operator; and the scope \
             policies:inspect where a policy that differs reads content.\n\n{}",
            wait::EXIT_CODES
        ))
        .arg(
            text("candidate", "FILE|-|draft:ID", "What is tried: a file, - or a stored draft")
                .value_hint(ValueHint::FilePath)
                .required(true),
        )
        .arg(
            text("family", "WORD", "The family of a single definition [default: by its members]")
                .value_parser(PossibleValuesParser::new(FAMILIES)),
        )
        .arg(text("baseline", "VERSION", "Compares with this policy-set version (psv_…) [default: the live set]"))
        .args(window::args())
        .arg(filter("subject", "Looks only at events of this user, service account or device; may be repeated"))
        .arg(filter("tool", "Looks only at calls of this tool; may be repeated"))
        .arg(filter("resource", "Looks only at requests to this resource; may be repeated"))
        .arg(limit("max-events", "Reads at most this many events, the newest first"))
        .arg(limit("max-duration", "Ends after this many seconds with what there is"))
        .arg(text("name", "TEXT", "What the backtest is called"))
        .args(wait::args())
        .args(output_args())
        .args(consent_args())
        .args(connection_args())
}

/// Does it.
pub async fn run(matches: &ArgMatches, terminal: &Terminal) -> Result<(), Failure> {
    let answer = Answer::of(matches, terminal)?;
    let gates = wait::gates(matches);
    let client = Client::connect(matches, terminal)?;
    let text = |id: &str| matches.get_one::<String>(id).map(String::as_str);
    let candidate = candidate(text("candidate").unwrap_or_default(), text("family"), terminal)?;
    let consent = Consent::of(matches, terminal, Confirm::Absent)?;
    let window = window::window(matches, &client).await?;
    let body = body(matches, &candidate, &window);
    let path = ["policies", "backtests"];
    let created = client.send_json(Method::POST, &path, &body, &consent).await;
    let created = created.map_err(|failure| with_window(failure, &window))?;
    let id = RunView::read(&created)?.id;
    if wait::is_wanted(matches) || answer.has_files() {
        client.note(&format!("backtest {id}"));
        let run = wait::until_the_end(&client, &id).await?;
        let tried = match tried::of_candidate(&candidate) {
            None if answer.has_files() => Some(tried::of_run(&client, &run).await?),
            known => known,
        };
        let answer = answer.about(tried);
        return wait::conclude(&run, &answer, &gates);
    }
    answer.print(&created)?;
    client.note(&format!(
        "to see what comes of it: provost backtests report {id} --wait"
    ));
    Ok(())
}

fn body(matches: &ArgMatches, candidate: &Value, window: &Value) -> Value {
    let mut body = json!({ "candidate": candidate, "window": window });
    let text = |id: &str| matches.get_one::<String>(id);
    if let Some(name) = text("name") {
        body["name"] = name.as_str().into();
    }
    if let Some(version) = text("baseline") {
        body["baseline"] = json!({ "kind": "version", "versionId": version });
    }
    for (id, member) in [
        ("subject", "subjectIds"),
        ("tool", "tools"),
        ("resource", "resourceIds"),
    ] {
        let values: Vec<&String> = matches.get_many(id).into_iter().flatten().collect();
        if !values.is_empty() {
            body["filters"][member] = json!(values);
        }
    }
    for (id, member) in [
        ("max-events", "maxEvents"),
        ("max-duration", "maxDurationSeconds"),
    ] {
        if let Some(limit) = matches.get_one::<u64>(id) {
            body["limits"][member] = json!(limit);
        }
    }
    body
}

/// A repetition under the same key must say the same; "the last 90 days" would not.
fn with_window(failure: Failure, window: &Value) -> Failure {
    if !matches!(
        failure.exit,
        Exit::Unreachable | Exit::Unavailable | Exit::ServerFault
    ) {
        return failure;
    }
    let text = |member: &str| window[member].as_str().unwrap_or_default();
    failure.and(format!("and with --from {} --to {}", text("from"), text("to")))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn matches(words: &[&str]) -> Result<ArgMatches, clap::Error> {
        let all = ["run", "--candidate", "p.json"].iter().chain(words);
        command().try_get_matches_from(all)
    }

    #[test]
    fn the_request_holds_what_was_said_and_nothing_else() {
        let window = json!({ "from": "a", "to": "b" });
        let candidate = json!({ "kind": "draft", "policyId": "p" });
        let said = matches(&[]).unwrap();
        assert_eq!(
            body(&said, &candidate, &window),
            json!({ "candidate": candidate, "window": window })
        );
        let said = matches(&[
            "--name",
            "n",
            "--baseline",
            "psv_1",
            "--subject",
            "u",
            "--subject",
            "v",
            "--tool",
            "t",
            "--resource",
            "r",
            "--max-events",
            "5",
            "--max-duration",
            "6",
        ]);
        assert_eq!(
            body(&said.unwrap(), &candidate, &window),
            json!({
                "candidate": candidate, "window": window, "name": "n",
                "baseline": { "kind": "version", "versionId": "psv_1" },
                "filters": { "subjectIds": ["u", "v"], "tools": ["t"], "resourceIds": ["r"] },
                "limits": { "maxEvents": 5, "maxDurationSeconds": 6 },
            })
        );
    }

    #[test]
    fn what_is_wrong_is_refused_before_anything_is_sent() {
        for words in [
            &["--fail-on", "changed"][..],
            &["--fail-on", "allow_to_sing>0"],
            &["--days", "0"],
            &["--days", "5", "--from", "2026-01-01"],
            &["--from", "soon"],
            &["--family", "other"],
            &["--max-events", "0"],
        ] {
            assert!(matches(words).is_err(), "{words:?}");
        }
        assert!(command().try_get_matches_from(["run"]).is_err());
    }

    #[test]
    fn a_repetition_is_told_the_window() {
        let window = json!({ "from": "a", "to": "b" });
        let lost = with_window(Failure::new(Exit::Unreachable, "lost"), &window);
        assert_eq!(lost.lines[1], "and with --from a --to b");
        assert_eq!(with_window(Failure::usage("no"), &window).lines.len(), 1);
    }
}
