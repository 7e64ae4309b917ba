//! Waiting for a run, with its progress before a person's eyes, and what its figures make of the exit code.
//!
//! Keeps BT-10.

use super::answer::Answer;
use super::gate::Gate;
use super::view::RunView;
use super::words::{events, number};
use crate::cli::{Client, Exit, Failure, Progress, Request, per_second};
use clap::{Arg, ArgAction, ArgMatches};
use provost_words::time::Timestamp;
use serde_json::Value;
use std::time::Duration;

const FIRST_WAIT: Duration = Duration::from_millis(100);
/// Before a person's eyes; a program is content with what the server asks for.
const LONGEST_WAIT: Duration = Duration::from_millis(500);
const LONGEST_WAIT_UNSEEN: Duration = Duration::from_secs(2);

/// For the long help of the commands that wait.
pub const EXIT_CODES: &str = "Exit codes of its own:
  1    the backtest failed or was canceled
  10   a condition of --fail-on holds
  130  interrupted while waiting; the backtest goes on";

/// Returns the flags.
pub fn args() -> Vec<Arg> {
    vec![
        Arg::new("wait")
            .long("wait")
            .action(ArgAction::SetTrue)
            .help("Waits until the backtest has ended"),
        Arg::new("fail-on")
            .long("fail-on")
            .value_name("CONDITION")
            .action(ArgAction::Append)
            .value_parser(Gate::parse)
            .help(
                "Waits, and exits with 10 if this holds, such as 'block_to_allow>0'; may be repeated. Figures: \
                 changed, unknown, errors, two actions with _to_ between; operators: > >= < <= == !=. Without a \
                 condition on errors it fails as well where events could not be read",
            ),
    ]
}

/// Returns the conditions that were asked for.
pub fn gates(matches: &ArgMatches) -> Vec<Gate> {
    matches
        .get_many("fail-on")
        .into_iter()
        .flatten()
        .cloned()
        .collect()
}

/// Returns whether the command waits.
pub fn is_wanted(matches: &ArgMatches) -> bool {
    matches.get_flag("wait") || matches.contains_id("fail-on")
}

/// Waits for the end of a run and returns it.
///
/// Errors: interrupted, with the words that go on; whatever asking comes to.
pub async fn until_the_end(client: &Client<'_>, id: &str) -> Result<Value, Failure> {
    tokio::select! {
        biased;
        done = polled(client, id) => done,
        Ok(()) = tokio::signal::ctrl_c() => Err(interrupted(id)),
    }
}

async fn polled(client: &Client<'_>, id: &str) -> Result<Value, Failure> {
    let mut progress = Progress::start(client.terminal, client.quiet, "events");
    let longest = if client.terminal.stderr_is_terminal {
        LONGEST_WAIT
    } else {
        LONGEST_WAIT_UNSEEN
    };
    let mut wait = FIRST_WAIT;
    let mut tag: Option<String> = None;
    loop {
        let mut request = Request::get(&["policies", "backtests", id]);
        if let Some(tag) = &tag {
            request = request.header("if-none-match", tag).or_unmodified();
        }
        let answer = client.send(&request).await?;
        if answer.status() != 304 {
            tag = answer.header("etag").map(str::to_owned);
            let json = answer.json()?;
            let run = RunView::read(&json)?;
            if run.is_final() {
                progress.clear();
                client.note(&speed(&run));
                return Ok(json);
            }
            match (run.status.as_str(), run.progress.events_processed) {
                ("queued", _) => progress.say("waiting for its turn"),
                (_, Some(done)) => progress.show(done, run.progress.events_total.map(|total| (done, total))),
                (_, None) => progress.say(&format!("{} % done", run.progress.percent)),
            }
        }
        tokio::time::sleep(wait).await;
        wait = (wait * 2).min(longest);
    }
}

fn speed(run: &RunView) -> String {
    let at = |text: &Option<String>| text.as_deref().and_then(Timestamp::parse);
    let took = at(&run.started_at).zip(at(&run.finished_at));
    let took = took.and_then(|(start, end)| u64::try_from(end.as_ms() - start.as_ms()).ok());
    let Some(processed) = run.progress.events_processed else {
        return run.status.clone();
    };
    let events = number(processed);
    match took {
        Some(ms) => {
            let rate = number(per_second(processed, Duration::from_millis(ms)));
            format!(
                "{}: {events} events in {}.{:03} s, {rate}/s",
                run.status,
                ms / 1000,
                ms % 1000
            )
        }
        None => format!("{}: {events} events", run.status),
    }
}

fn interrupted(id: &str) -> Failure {
    Failure::new(
        Exit::Interrupted,
        format!("interrupted; the backtest {id} goes on"),
    )
    .and(format!(
        "to wait for it again: provost backtests report {id} --wait"
    ))
    .and(format!(
        "to end it: provost backtests cancel {id} --confirm --reason TEXT"
    ))
}

/// Gives the answer, then says with the exit code what a script must know.
///
/// Errors: refused, when the run did not succeed; gate, when a condition holds.
pub fn conclude(run: &Value, answer: &Answer<'_>, gates: &[Gate]) -> Result<(), Failure> {
    answer.give(run)?;
    judge(&RunView::read(run)?, gates)
}

fn judge(run: &RunView, gates: &[Gate]) -> Result<(), Failure> {
    match run.status.as_str() {
        "succeeded" => {}
        "failed" => {
            let why = run
                .failure
                .as_ref()
                .map_or("no reason is known", |failure| failure.message.as_str());
            return Err(Failure::new(Exit::Refused, format!("the backtest failed: {why}")));
        }
        "canceled" => return Err(Failure::new(Exit::Refused, "the backtest was canceled")),
        // Without waiting nothing is decided yet.
        _ if gates.is_empty() => return Ok(()),
        other => return Err(Failure::new(Exit::Refused, format!("the backtest is {other}"))),
    }
    let Some(results) = &run.results else {
        return Err(Failure::new(
            Exit::ServerFault,
            "the backtest succeeded without results",
        ));
    };
    if results.is_withheld && !gates.is_empty() {
        let message =
            "the figures of this backtest are not shown to you, so that no condition can be checked";
        let failure = Failure::new(Exit::Refused, message);
        return Err(failure.and("it reads content: ask with a token that has the scope policies:inspect"));
    }
    let mut caught: Vec<String> = gates
        .iter()
        .filter_map(|gate| {
            let figure = gate.caught(results)?;
            Some(format!("--fail-on {gate} holds: it is {}", number(figure)))
        })
        .collect();
    // What could not be read might have been what a condition is about.
    if !gates.is_empty() && results.errors > 0 && !gates.iter().any(Gate::is_about_errors) {
        caught.push(format!(
            "{} could not be read, and --fail-on wants none: --fail-on 'errors>N' says how many may be",
            events(results.errors)
        ));
    }
    let mut caught = caught.into_iter();
    match caught.next() {
        None => Ok(()),
        Some(first) => Err(caught.fold(Failure::new(Exit::Gate, first), Failure::and)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn run(status: &str) -> RunView {
        RunView::read(&json!({
            "id": "btr_1", "status": status, "failure": { "message": "it stopped" },
            "results": { "eventsEvaluated": 5, "changed": 2, "byChange": { "block_to_allow": 2 } },
        }))
        .unwrap()
    }

    fn exit(status: &str, gates: &[&str]) -> Option<Exit> {
        let gates: Vec<Gate> = gates.iter().map(|gate| Gate::parse(gate).unwrap()).collect();
        judge(&run(status), &gates).err().map(|failure| failure.exit)
    }

    #[test]
    fn the_exit_code_says_how_it_ended() {
        assert_eq!(exit("succeeded", &[]), None);
        assert_eq!(exit("succeeded", &["unknown>0", "block_to_allow>2"]), None);
        assert_eq!(
            exit("succeeded", &["unknown>0", "block_to_allow>0"]),
            Some(Exit::Gate)
        );
        assert_eq!(exit("failed", &[]), Some(Exit::Refused));
        assert_eq!(exit("canceled", &["changed<0"]), Some(Exit::Refused));
        assert_eq!(
            (exit("running", &[]), exit("running", &["changed>9"])),
            (None, Some(Exit::Refused))
        );
        assert_eq!((Exit::Gate as u8, Exit::Interrupted as u8), (10, 130));
    }

    #[test]
    fn a_condition_on_a_figure_that_is_not_shown_does_not_pass() {
        let of = |results| {
            RunView::read(&json!({ "id": "btr_1", "status": "succeeded", "results": results })).unwrap()
        };
        let gates = [Gate::parse("block_to_allow>0").unwrap()];
        let withheld = of(json!({ "restricted": true }));
        let failure = judge(&withheld, &gates).unwrap_err();
        assert!(failure.exit == Exit::Refused && failure.lines[1].contains("policies:inspect"));
        assert!(judge(&withheld, &[]).is_ok());
        let totals = of(json!({ "restricted": true, "eventsEvaluated": 9, "unchanged": 9, "byChange": {} }));
        assert!(judge(&totals, &gates).is_ok());
    }

    /// Proves BT-10.
    #[test]
    fn a_condition_wants_everything_read_unless_it_says_otherwise() {
        let run = RunView::read(&json!({
            "id": "btr_1", "status": "succeeded", "partial": true,
            "results": { "eventsEvaluated": 500, "changed": 2, "errors": 3 },
        }))
        .unwrap();
        let lines = |gates: &[&str]| {
            let gates: Vec<Gate> = gates.iter().map(|gate| Gate::parse(gate).unwrap()).collect();
            judge(&run, &gates)
                .err()
                .map(|failure| (failure.exit, failure.lines.join("\n")))
        };
        assert_eq!(lines(&[]), None);
        let (exit, said) = lines(&["changed>2"]).unwrap();
        assert!(
            exit == Exit::Gate && said.starts_with("3 events could not be read") && said.contains("errors>N"),
            "{said}"
        );
        let (_, both) = lines(&["changed>1"]).unwrap();
        assert_eq!(both.lines().count(), 2, "{both}");
        assert_eq!(lines(&["changed>2", "errors>3"]), None);
        assert!(lines(&["changed>2", "errors>2"]).is_some());
    }

    #[test]
    fn every_condition_that_holds_is_said() {
        let gates = ["changed>=2", "block_to_allow!=0"].map(|gate| Gate::parse(gate).unwrap());
        let failure = judge(&run("succeeded"), &gates).unwrap_err();
        assert_eq!(
            failure.lines,
            [
                "--fail-on changed>=2 holds: it is 2",
                "--fail-on block_to_allow!=0 holds: it is 2"
            ]
        );
    }

    #[test]
    fn whoever_interrupts_learns_how_to_go_on_and_how_to_end_it() {
        let lines = interrupted("btr_1").lines.join("\n");
        assert!(lines.contains("backtests report btr_1 --wait") && lines.contains("backtests cancel btr_1"));
    }
}
