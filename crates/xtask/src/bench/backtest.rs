//! Backtests over grown histories: an example of the crate `backtest` measures, beside what others need; and the shipped
//! server, which takes events and decides while a backtest runs.

mod live;

use std::fmt::Write;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde_json::Value;

use super::machine;
use super::report::{Goal, figure, median};
use crate::failure::{Context, Failure, Outcome};
use crate::{process, product};

/// Measure backtests over a history that is grown from a recording of real tool calls
#[derive(clap::Args)]
pub struct Arguments {
    /// The recording, in JSON Lines (`user`, `tool`, `model`, `arguments`, `result`, `task`, `trial`)
    #[arg(long)]
    recording: PathBuf,
    /// How many events the large histories have; what shows how cost grows uses a tenth
    #[arg(long, default_value_t = 20_000_000, value_parser = clap::value_parser!(u64).range(10_000..=1_000_000_000))]
    events: u64,
    /// How often everything is measured; the table shows medians
    #[arg(long, default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..))]
    rounds: u32,
    /// How many threads everybody uses
    #[arg(long, default_value_t = 2, value_parser = clap::value_parser!(u32).range(1..=64))]
    threads: u32,
    /// How many users the events have
    #[arg(long, default_value_t = 1_000, value_parser = clap::value_parser!(u32).range(1..=100_000))]
    users: u32,
    /// How many policies judge
    #[arg(long, default_value_t = 50, value_parser = clap::value_parser!(u32).range(1..=1_000))]
    policies: u32,
    /// How many events the others judge in each round
    #[arg(long, default_value_t = 20_000, value_parser = clap::value_parser!(u64).range(100..))]
    sample: u64,
    /// Where the histories lie while they are measured; some gigabytes
    #[arg(long)]
    folder: Option<PathBuf>,
    /// Write the table, with machine, commit and date, to this file
    #[arg(long)]
    write: Option<PathBuf>,
    /// Measure the server of this binary instead of building one with the release profile
    #[arg(long)]
    binary: Option<PathBuf>,
}

/// What the measuring program has said.
#[derive(Default)]
struct ProgramOutput {
    notes: Vec<String>,
    /// By the part of the table, in the order of their first lines.
    parts: Vec<(String, Vec<Line>)>,
}

/// One line of a table.
struct Line {
    measure: String,
    unit: String,
    goal: Goal,
    values: Vec<f64>,
    /// What processor time says: the figures of a machine that does nothing else.
    busy: Vec<f64>,
}

pub fn run(arguments: &Arguments) -> Outcome {
    eprintln!("building the measuring program with the profile release, once without and once with Cedar");
    let program = build(&process::target(), &[])?;
    // Cedar's crates turn features of the others on: what is measured of ours is built without.
    let with_cedar = build(&process::target().join("cedar"), &["--features", "cedar"])?;
    let scratch = process::target().join("bench-backtest");
    let folder = arguments.folder.as_deref().unwrap_or(&scratch);
    std::fs::create_dir_all(folder).context(format_args!("cannot create {}", folder.display()))?;
    let mut said = ProgramOutput::default();
    // Processes of their own: what the generator needs does not count as memory of a backtest.
    let measured = [("grow", &program), ("measure", &program), ("cedar", &with_cedar)]
        .into_iter()
        .try_for_each(|(step, program)| said.hear(arguments.command(program, folder, step)));
    if arguments.folder.is_none() {
        std::fs::remove_dir_all(folder).context("cannot remove the histories")?;
    }
    measured?;
    let binary = product::given(arguments.binary.as_ref(), "release")?;
    live::measure(&mut said, &binary, arguments.rounds, arguments.policies as usize)?;
    let text = said.text();
    println!("{text}");
    match &arguments.write {
        Some(path) => write(path, arguments, &text),
        None => Ok(()),
    }
}

/// Builds the measuring program and returns where it is.
fn build(target: &Path, features: &[&str]) -> Outcome<PathBuf> {
    let words = [
        "build",
        "--quiet",
        "--release",
        "--package",
        "provost-backtest",
        "--example",
        "bench",
    ];
    process::run(
        process::cargo()
            .args(words)
            .arg("--target-dir")
            .arg(target)
            .args(features),
    )?;
    Ok(target.join("release").join("examples").join("bench"))
}

impl Arguments {
    fn command(&self, program: &Path, folder: &Path, step: &str) -> Command {
        let mut command = Command::new(program);
        command.arg(step).arg(&self.recording).arg(folder);
        let numbers = [
            self.events,
            self.rounds.into(),
            self.threads.into(),
            self.users.into(),
            self.policies.into(),
            self.sample,
        ];
        command.args(numbers.map(|number| number.to_string()));
        command
    }
}

impl ProgramOutput {
    /// Runs a step of the measuring program and takes what it prints, line by line.
    fn hear(&mut self, mut command: Command) -> Outcome {
        let mut child = command
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .spawn()
            .context("cannot run the measuring program")?;
        let output = child
            .stdout
            .take()
            .context("no output of the measuring program")?;
        for line in BufReader::new(output).lines() {
            let line = line.context("cannot read what the measuring program says")?;
            eprintln!("{line}");
            let said: Value = serde_json::from_str(&line).context(format_args!(
                "the measuring program says {line:?}, which is no JSON"
            ))?;
            self.take(&said);
        }
        let status = child.wait().context("cannot wait for the measuring program")?;
        if status.success() {
            Ok(())
        } else {
            Err(Failure::new(format!("the measuring program failed ({status})")))
        }
    }

    fn take(&mut self, said: &Value) {
        if let Some(note) = said["note"].as_str() {
            self.notes.push(note.to_owned());
            return;
        }
        let text = |name: &str| said[name].as_str().unwrap_or_default().to_owned();
        let numbers = |name: &str| {
            let all = said[name].as_array().into_iter().flatten();
            all.filter_map(Value::as_f64).collect()
        };
        let goal = match (said["atLeast"].as_f64(), said["atMost"].as_f64()) {
            (Some(goal), _) => Goal::AtLeast(goal),
            (_, Some(goal)) => Goal::AtMost(goal),
            _ => Goal::None,
        };
        let line = Line {
            measure: text("measure"),
            unit: text("unit"),
            goal,
            values: numbers("values"),
            busy: numbers("busy"),
        };
        self.add(&text("table"), line);
    }

    fn add(&mut self, part: &str, line: Line) {
        match self.parts.iter_mut().find(|(known, _)| known == part) {
            Some((_, lines)) => lines.push(line),
            None => self.parts.push((part.to_owned(), vec![line])),
        }
    }

    fn text(&self) -> String {
        let mut text = String::new();
        for note in &self.notes {
            let _ = writeln!(text, "- {note}");
        }
        text += "\n| Measure | Median | Lowest | Highest | By processor time | Goal | Ratio to goal |\n\
                 |---|---:|---:|---:|---:|---:|---:|\n";
        for (part, lines) in &self.parts {
            let _ = writeln!(text, "| **{part}** | | | | | | |");
            for line in lines {
                line.write(&mut text);
            }
        }
        text
    }
}

impl Line {
    fn write(&self, text: &mut String) {
        let value = median(&self.values);
        let say = |value: f64| format!("{}{}", figure(value), self.unit);
        let lowest = self.values.iter().copied().fold(f64::INFINITY, f64::min);
        let highest = self.values.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        let busy = if self.busy.is_empty() {
            String::new()
        } else {
            say(median(&self.busy))
        };
        let ratio = self
            .goal
            .ratio(value)
            .map_or_else(|| "–".to_owned(), |ratio| format!("{ratio:.2}"));
        let _ = writeln!(
            text,
            "| {} | {} | {} | {} | {busy} | {} | {ratio} |",
            self.measure,
            say(value),
            say(lowest),
            say(highest),
            self.goal.text(&self.unit)
        );
    }
}

fn write(path: &Path, arguments: &Arguments, tables: &str) -> Outcome {
    let facts = machine::describe().join("\n- ");
    let text = format!(
        "# Benchmarks of backtests\n\n\
         Written by `cargo xtask bench backtest --recording FILE --events {} --rounds {} --threads {} --users {} \
         --policies {} --sample {} --write {}`, where FILE holds 1 164 tool calls of an airline's agent.\n\n\
         - {facts}\n\n\
         Everything is measured in one run, over the same events, with as many threads for everybody. Rates of ours \
         are those of a whole backtest: segments are opened, checked, unpacked and decoded, two sets of policies judge \
         every event, and all counts, breakdowns and samples are made. The others judge with one set, and only \
         judging is timed: what they judge was made ready before. The files are in the page cache. \"By processor \
         time\" is the rate that the processor time of the same rounds gives, which other work on the machine falsifies \
         less; beside seconds it has the seconds of all processors together. The server runs with SQLite (WAL, \
         synchronous=FULL), and the load generator shares its processors. A ratio of 1 or more is a goal that is \
         reached.\n\n\
         {tables}",
        arguments.events,
        arguments.rounds,
        arguments.threads,
        arguments.users,
        arguments.policies,
        arguments.sample,
        path.display(),
    );
    std::fs::write(path, text).context(format_args!("cannot write {}", path.display()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn what_the_program_says_becomes_one_table() {
        let mut said = ProgramOutput::default();
        said.take(&json!({"note": "2 events"}));
        let line = |table: &str, goal: &str| json!({"table": table, "measure": "m", "unit": " M/s", "values": [1.0, 30.0, 2.0], "busy": [4.0], goal: 4.0});
        said.take(&line("Rates", "atLeast"));
        said.take(&line("Growth", "none"));
        said.take(&line("Rates", "atMost"));
        let text = said.text();
        assert!(
            text.starts_with("- 2 events\n\n| Measure |") && text.contains("\n| **Rates** | | | | | | |\n"),
            "{text}"
        );
        assert!(
            text.contains("\n| m | 2 M/s | 1 M/s | 30 M/s | 4 M/s | ≥ 4 M/s | 0.50 |\n| m |"),
            "{text}"
        );
        assert!(text.contains("| ≤ 4 M/s | 2.00 |\n| **Growth** |"), "{text}");
        assert!(text.ends_with("| 4 M/s | – | – |\n"), "{text}");
    }
}
