//! What instrumentations of libraries and command lines of agents tell about one question that needs one tool.
//!
//! The libraries, their instrumentations and exporters and the command lines are the real ones of pinned versions; the model is a script
//! (`clients/telemetry/model.py`). Each tells the server what happened, and the events that the server keeps are compared with it, cell by
//! cell.

use std::path::Path;
use std::process::Command;
use std::time::Duration;

use serde_json::{Value, json};

use super::terminal::{CLAUDE, CODEX};
use super::{Scene, install};
use crate::compatibility::Table;
use crate::failure::{Context, Failure, Outcome};
use crate::{clock, process};

const USER: &str = "ann@example.com";
const QUESTION: &str = "Weather in Oslo?";
const RESULT: &str = "Rain, says the station.";
/// What is compared of each client.
const CELLS: [&str; 8] = [
    "prompt",
    "tool",
    "arguments",
    "result",
    "user",
    "session",
    "model",
    "tokens",
];
/// Of a hundred cells so many must be right.
const GOAL: usize = 95;

/// What becomes of the tool's result.
#[derive(Clone, Copy, PartialEq)]
enum ToolResult {
    /// The client runs the tool and tells what came of it.
    Told,
    /// It runs the tool and tells that it ended.
    Hidden,
    /// The caller of a library runs it, of which nothing tells.
    Elsewhere,
}

/// One client, and what it is to tell.
struct Client {
    /// The package that tells, and the library or program of which it tells; both with their versions on the page.
    teller: &'static str,
    library: &'static str,
    how: How,
    result: ToolResult,
}

enum How {
    /// An instrumentation: the Python of that number, and the words of the script.
    Instrumentation(u8, [&'static str; 2]),
    Claude,
    Codex,
}

const fn library(
    teller: &'static str,
    library: &'static str,
    python: u8,
    words: [&'static str; 2],
    result: ToolResult,
) -> Client {
    Client {
        teller,
        library,
        how: How::Instrumentation(python, words),
        result,
    }
}

use ToolResult::{Elsewhere, Hidden, Told};

const CLIENTS: [Client; 14] = [
    library(
        "opentelemetry-instrumentation-openai",
        "openai",
        1,
        ["openllmetry", "openai"],
        Elsewhere,
    ),
    library(
        "opentelemetry-instrumentation-anthropic",
        "anthropic",
        1,
        ["openllmetry", "anthropic"],
        Elsewhere,
    ),
    library(
        "opentelemetry-instrumentation-langchain",
        "langchain",
        1,
        ["openllmetry", "langchain"],
        Told,
    ),
    library(
        "opentelemetry-instrumentation-openai-agents",
        "openai-agents",
        1,
        ["openllmetry", "openai-agents"],
        Told,
    ),
    library(
        "openinference-instrumentation-openai",
        "openai",
        1,
        ["openinference", "openai"],
        Elsewhere,
    ),
    library(
        "openinference-instrumentation-anthropic",
        "anthropic",
        1,
        ["openinference", "anthropic"],
        Elsewhere,
    ),
    library(
        "openinference-instrumentation-langchain",
        "langchain",
        1,
        ["openinference", "langchain"],
        Told,
    ),
    library(
        "openinference-instrumentation-openai-agents",
        "openai-agents",
        1,
        ["openinference", "openai-agents"],
        Told,
    ),
    library("logfire", "openai", 1, ["logfire", "openai"], Elsewhere),
    library("logfire", "anthropic", 1, ["logfire", "anthropic"], Elsewhere),
    library("logfire", "openai-agents", 1, ["logfire", "openai-agents"], Told),
    library(
        "opentelemetry-instrumentation-openai-agents-v2",
        "openai-agents",
        2,
        ["opentelemetry", "openai-agents"],
        Told,
    ),
    Client {
        teller: "@anthropic-ai/claude-code",
        library: "",
        how: How::Claude,
        result: Hidden,
    },
    Client {
        teller: "@openai/codex",
        library: "",
        how: How::Codex,
        result: Told,
    },
];

pub fn run(scene: &Scene<'_>, is_recorded: bool) -> Outcome {
    let mut columns = vec!["told by", "about"];
    columns.extend(CELLS);
    let mut table = Table::new(
        "Telemetry",
        &columns,
        &[
            "How: `cargo xtask clients telemetry --record`. Each client puts one question to a model that is a script and asks for one tool, \
             and sends its own records to a running server; the events of its history are compared with what happened. Whoever calls \
             `openai` or `anthropic` runs the tool itself: then nothing tells of the result, and it must not be taken for a prompt. \
             The records of Claude Code tell that the tool ended, and not with what.",
        ],
    );
    let (mut right, mut all) = (0, 0);
    for client in &CLIENTS {
        let events = tried(scene, client).context(client.name())?;
        let cells = client.judged(&events);
        right += cells.iter().filter(|is_right| **is_right).count();
        all += cells.len();
        let wrong: Vec<&str> = CELLS
            .iter()
            .zip(cells)
            .filter(|(_, is_right)| !is_right)
            .map(|(cell, _)| *cell)
            .collect();
        println!(
            "    {}: {}",
            client.name(),
            if wrong.is_empty() {
                "all told".to_owned()
            } else {
                format!("wrong: {}", wrong.join(", "))
            }
        );
        if !wrong.is_empty() {
            for event in &events {
                println!("      {event}");
            }
        }
        let mut row = vec![client.told_by()?, client.about()?];
        row.extend(cells.map(|is_right| if is_right { "yes" } else { "**no**" }.to_owned()));
        table.rows.push(row);
    }
    println!("    {right} of {all} cells are right");
    if right * 100 < all * GOAL {
        return Err(Failure::new(format!("only {right} of {all} cells are right")));
    }
    if is_recorded {
        table.how.push(format!("{right} of {all} cells are right."));
        table.write("telemetry")?;
    }
    Ok(())
}

impl Client {
    fn name(&self) -> String {
        format!("{} {}", self.teller, self.library).trim_end().to_owned()
    }

    fn told_by(&self) -> Outcome<String> {
        Ok(format!("`{}` {}", self.teller, version(&self.how, self.teller)?))
    }

    fn about(&self) -> Outcome<String> {
        if self.library.is_empty() {
            return Ok("itself".to_owned());
        }
        Ok(format!(
            "`{}` {}",
            self.library,
            version(&self.how, self.library)?
        ))
    }

    /// Says of each cell whether the events are right.
    fn judged(&self, events: &[Value]) -> [bool; CELLS.len()] {
        let of = |occasion: &str| {
            events
                .iter()
                .filter(|event| event["occasion"] == occasion)
                .collect::<Vec<_>>()
        };
        let (prompts, calls, ends, answers) = (of("prompt"), of("pre_tool"), of("post_tool"), of("response"));
        let attribute = |event: &Value, name: &str| event["attributes"][name].clone();
        let every = |events: &[&Value], name: &str, value: &Value| {
            !events.is_empty() && events.iter().all(|event| attribute(event, name) == *value)
        };
        let (tool, arguments, model) = match self.how {
            How::Claude => {
                let command = format!("echo {RESULT}");
                let arguments = json!({ "command": command, "description": "Say how the weather is" });
                ("Bash", arguments, "claude-sonnet-5")
            }
            How::Codex => (
                "exec_command",
                json!({ "cmd": format!("echo {RESULT}") }),
                "gpt-5",
            ),
            How::Instrumentation(_, [_, "anthropic"]) => {
                ("get_weather", json!({ "city": "Oslo" }), "claude-sonnet-4-5")
            }
            How::Instrumentation(..) => ("get_weather", json!({ "city": "Oslo" }), "gpt-5"),
        };
        let provider = if model.starts_with("claude") {
            "anthropic"
        } else {
            "openai"
        };
        let tokens = |name: &str, count: f64| every(&answers, name, &json!(count));
        [
            prompts.len() == 1 && every(&prompts, "request.prompt", &json!(QUESTION)),
            calls.len() == 1
                && every(&calls, "tool.id", &json!(tool))
                && ends.iter().all(|end| attribute(end, "tool.id") == tool),
            every(&calls, "tool.input", &arguments)
                && ends.iter().all(|end| attribute(end, "tool.input") == arguments),
            match self.result {
                Told => {
                    ends.len() == 1
                        && attribute(ends[0], "tool.result")
                            .as_str()
                            .is_some_and(|result| result.contains(RESULT))
                }
                Hidden => ends.len() == 1 && is_missing(ends[0], "tool.result"),
                Elsewhere => ends.is_empty(),
            },
            events
                .iter()
                .all(|event| attribute(event, "identity.user_id") == USER),
            events[0]["session"].is_string()
                && events
                    .iter()
                    .all(|event| event["session"] == events[0]["session"]),
            every(&answers, "llm.model", &json!(model)) && every(&answers, "llm.provider", &json!(provider)),
            answers.len() == 2 && tokens("llm.input_tokens", 11.0) && tokens("llm.output_tokens", 7.0),
        ]
    }
}

fn is_missing(event: &Value, name: &str) -> bool {
    let missing = event["missing"].as_array();
    missing.is_some_and(|missing| missing.iter().any(|one| one == name))
}

/// Lets a client ask its question, and returns the events that the server has of it.
fn tried(scene: &Scene<'_>, client: &Client) -> Outcome<Vec<Value>> {
    let before = ids(scene)?;
    let scripts = install::sources().join("telemetry");
    let receiver = |signal: &str| {
        format!(
            "{}{}",
            scene.origin(),
            scene.bootstrap.path(&format!("otlp/v1/{signal}"))
        )
    };
    let mut command = match client.how {
        How::Instrumentation(line, words) => {
            let mut command = Command::new(python(line)?);
            command
                .arg(scripts.join("agent.py"))
                .args(words)
                .env("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", receiver("traces"))
                .env(
                    "OTEL_EXPORTER_OTLP_TRACES_HEADERS",
                    format!("Authorization=Bearer%20{}", scene.bootstrap.token),
                );
            command
        }
        How::Claude | How::Codex => {
            let (word, program) = if matches!(client.how, How::Claude) {
                ("claude", CLAUDE)
            } else {
                ("codex", CODEX)
            };
            let home = scene.folder.join(word);
            std::fs::create_dir_all(&home).context("cannot make a home")?;
            let start = scene.tools.command(program);
            let mut command = Command::new(python(1)?);
            command
                .arg(scripts.join("command.py"))
                .arg(word)
                .arg(start.get_program())
                .args(start.get_args())
                .env("HOME", &home)
                .env("PROVOST_LOGS", receiver("logs"))
                .env("PROVOST_TOKEN", &scene.bootstrap.token)
                .env("CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC", "1")
                .env("DISABLE_AUTOUPDATER", "1");
            command
        }
    };
    process::output(
        command
            .current_dir(&scene.folder)
            .env("PYTHONDONTWRITEBYTECODE", "1"),
    )?;
    // What is kept is listed a moment later.
    let mut found = Vec::new();
    let mut last = usize::MAX;
    let is_there = clock::poll_until(Duration::from_secs(30), Duration::from_secs(1), || {
        found = ids(scene).unwrap_or_default();
        found.retain(|id| !before.contains(id));
        let is_settled = !found.is_empty() && found.len() == last;
        last = found.len();
        is_settled
    });
    if !is_there {
        return Err(Failure::new("the server has no event of it"));
    }
    let administrator = scene.administrator();
    found
        .iter()
        .map(|id| administrator.get(&format!("policies/history/{id}")))
        .collect()
}

fn ids(scene: &Scene<'_>) -> Outcome<Vec<String>> {
    let list = scene.administrator().get("policies/history?limit=50")?;
    let events = list["events"].as_array().context("a list of events")?;
    Ok(events
        .iter()
        .filter_map(|event| event["eventId"].as_str().map(str::to_owned))
        .collect())
}

/// Returns the Python of a number, with the instrumentations that can be together; installs it when it is not there.
pub fn python(line: u8) -> Outcome<std::path::PathBuf> {
    let programs = crate::python::programs(&format!("telemetry-{line}"), &requirements(line))?;
    Ok(programs.join("python"))
}

fn requirements(line: u8) -> std::path::PathBuf {
    install::sources().join(format!("telemetry/python-{line}.txt"))
}

/// The version that is pinned of a package.
fn version(how: &How, package: &str) -> Outcome<String> {
    let read = |path: &Path| std::fs::read_to_string(path).context(path.display());
    if let How::Instrumentation(line, _) = how {
        let pinned = read(&requirements(*line))?;
        let mut lines = pinned.lines();
        let version = lines.find_map(|line| line.strip_prefix(package)?.strip_prefix("=="));
        return version
            .map(str::to_owned)
            .context(format_args!("{package} is not pinned"));
    }
    let pinned: Value = serde_json::from_str(&read(&install::sources().join("commands/package.json"))?)
        .context("cannot read the packages")?;
    let version = pinned["dependencies"][package].as_str();
    version
        .map(str::to_owned)
        .context(format_args!("{package} is not pinned"))
}
