//! Import what agents did, try two policies on it, adopt the better one, see it decide.

use serde_json::{Value, json};
use std::fs;

use super::expect;
use super::guide::{Guide, text};
use crate::failure::{Context, Outcome};

#[expect(clippy::too_many_lines, reason = "one walk, told step by step")]
pub fn visit(guide: &mut Guide) -> Outcome {
    let calls = guide.repository("docs/guide/data/agent-tool-calls-airline.jsonl");
    let strict = guide.repository("docs/guide/data/refunds-every-cancellation.json");
    let policy = guide.repository("docs/guide/data/refunds.json");

    guide.says("A recording of 1 164 tool calls becomes history; its calls have no times and get some.");
    let import = [
        "history",
        "import",
        &calls,
        "--format",
        "tool-calls",
        "--spread",
        "60d",
    ];
    let imported = guide.does(&import)?;
    expect(
        imported["accepted"] == 1164 && imported["refused"] == 0,
        "every call is taken",
    )?;
    let again = guide.does(&import)?;
    expect(again["duplicateChunks"] == 1, "the same file is known")?;
    let status = guide.does(&["history", "status"])?;
    expect(status["events"] == 1164, "nothing is there twice")?;

    guide.says("A file of other events may have lines that are wrong: they are named, the others are kept.");
    let broken = guide.home.join("broken.jsonl");
    let good =
        json!({ "at": "2020-01-01T00:00:00Z", "occasion": "pre_tool", "attributes": { "tool.id": "t" } });
    fs::write(&broken, format!("\nno event\n{good}\n")).context("cannot write a file")?;
    let said = guide.is_refused(&["history", "import", &broken.display().to_string()])?;
    expect(
        said.contains("line 2") && said.contains("line 3"),
        "both lines are named: one is no event, one older than the retention",
    )?;

    guide.says("The first idea: somebody approves every cancellation.");
    let tried = guide.changes(&["backtests", "run", "--candidate", &strict, "--wait"])?;
    let results = &tried["results"];
    expect(results["eventsEvaluated"] == 1164, "every call is judged")?;
    expect(
        results["changed"] == 69 && results["byChange"] == json!({ "allow_to_require_approval": 69 }),
        "each of the 69 cancellations would wait",
    )?;

    guide.says(
        "That is too many. The second idea: the second of a day, and certificates of 100 dollars or more.",
    );
    let (page, saved) = (guide.home.join("report.html"), guide.home.join("run.json"));
    let (page_file, saved_file) = (page.display().to_string(), saved.display().to_string());
    let run = ["backtests", "run", "--candidate", &policy, "--name", "Refunds"];
    let tried = guide.changes(
        &[
            &run[..],
            &[
                "--html",
                &page_file,
                "--json",
                &saved_file,
                "--fail-on",
                "block_to_allow>0",
            ],
        ]
        .concat(),
    )?;
    expect(tried["results"]["changed"] == 37, "37 would wait")?;
    let id = text(&tried, "/id")?;
    let read = |file: &std::path::Path| fs::read_to_string(file).context("cannot read a report");
    let report = read(&page)?;
    expect(
        report.contains("37 (3.2") && report.contains("would have needed approval"),
        "the page says so in a sentence",
    )?;
    guide.does(&[
        "backtests",
        "report",
        "--from",
        &saved_file,
        "--html",
        "again.html",
    ])?;
    expect(
        read(&guide.home.join("again.html"))? == report,
        "the saved run makes the same page without a server",
    )?;

    guide.says("In CI the exit code says what must not happen; what is no condition is refused before anything runs.");
    let said = guide.is_refused(&[
        "backtests",
        "report",
        &id,
        "--fail-on",
        "allow_to_require_approval>36",
    ])?;
    expect(said.contains("it is 37"), "the figure is said")?;
    guide.is_refused(&[&run[..], &["--fail-on", "allowed>0", "--reason", "a tour"]].concat())?;

    guide.says("Adopted, the policy decides about what agents do next.");
    let question = json!({ "events": [{ "occasion": "pre_tool", "attributes": {
        "identity.user_id": "noah_muller_9847", "tool.id": "send_certificate",
        "tool.input": { "user_id": "noah_muller_9847", "amount": 150 } } }] });
    let before = decided(guide, &question)?;
    expect(before["action"] == "allow", "nothing stands against it yet")?;
    guide.changes(&["content-policies", "create", "--body", &policy])?;
    let after = decided(guide, &question)?;
    expect(
        after["action"] == "require_approval" && after["policyIds"] == json!(["refunds/approval"]),
        "the adopted policy decides",
    )?;
    let recorded = guide.does(&[
        "history",
        "list",
        "--tool",
        "send_certificate",
        "--limit",
        "1",
        "-o",
        "json",
    ])?;
    expect(
        recorded["events"][0]["decision"]["action"] == "require_approval",
        "the decision is history",
    )
}

fn decided(guide: &mut Guide, question: &Value) -> Outcome<Value> {
    let answer = guide.does(&["policies", "decide", "--body", &question.to_string()])?;
    Ok(answer["decisions"][0].clone())
}
