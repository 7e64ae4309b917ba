//! Coverage (R43): which lines and branches of the product no test runs.
//!
//! The crates of the workspace are built with the compiler's own counters, their dependencies without: a wrapper around
//! the compiler adds the flags, so that what was built for the suite serves again. Every process of every test counts,
//! the servers that the tests start included; what is killed with SIGKILL loses its counts, so that the figures are
//! a little too low, never too high.
//!
//! Branches are those of the source (`if`, `match` guards, `&&`, `||`, `?` is none): each side is to be taken once. The
//! compiler calls counters of branches unstable; the wrapper switches them on for these builds alone.
//!
//! Absent on purpose: a figure that a change must reach. Whoever writes for a number writes tests that assert nothing.

mod figures;
mod tools;

use std::path::{Path, PathBuf};
use std::process::Command;

use serde::Deserialize;

use crate::failure::{Context, Failure, Outcome};
use crate::record::Record;
use crate::suite::Surroundings;
use crate::{Engine, process};
use figures::Figures;
use tools::Tools;

/// Run every test with counters in the code, and say which lines and branches nothing ran
#[derive(clap::Args)]
pub struct Arguments {
    /// Run only the tests whose names contain one of these
    filters: Vec<String>,
    /// The engines of the tests
    #[arg(long, value_enum, default_value_t = Engine::Both)]
    engine: Engine,
    /// How many tests run at once
    #[arg(long, short)]
    jobs: Option<usize>,
    /// Run nothing: read the counts of the last run once more
    #[arg(long)]
    again: bool,
    /// Keep what was reached for docs/assurance.md
    #[arg(long, conflicts_with = "filters")]
    record: bool,
}

pub fn run(arguments: &Arguments) -> Outcome {
    let tools = Tools::find_or_install()?;
    let folder = process::target().join("coverage");
    let counts = folder.join("counts");
    let wrapper = tools::write_wrapper(&folder)?;
    if !arguments.again {
        // Counts of an earlier build would not fit this one.
        drop(std::fs::remove_dir_all(&counts));
        std::fs::create_dir_all(&counts).context("cannot make the folder of the counts")?;
        run_tests(arguments, &wrapper, &counts)?;
    }
    let merged = folder.join("merged.profdata");
    tools.merge(&counts, &merged)?;
    let figures = Figures::read(&tools.export(&merged, &binaries(&wrapper)?)?)?;
    let missed = folder.join("missed.txt");
    std::fs::write(&missed, figures.missed()).context("cannot write what was missed")?;
    println!("{}", figures.table());
    println!("What no test runs stands in {}.", missed.display());
    if arguments.record {
        Record::new(&["R43"], figures.sentence(), "cargo xtask coverage").write("coverage")?;
    }
    Ok(())
}

fn nextest(wrapper: &Path, words: &[&str]) -> Command {
    let mut command = process::cargo();
    command.arg("nextest").args(words);
    command.args(["--cargo-profile", "ci", "--workspace"]);
    command.env("RUSTC_WORKSPACE_WRAPPER", wrapper);
    command
}

fn run_tests(arguments: &Arguments, wrapper: &Path, counts: &Path) -> Outcome {
    let surroundings = Surroundings::start(arguments.engine)?;
    let mut runner = nextest(wrapper, &["run", "--profile", "nightly"]);
    surroundings.tell(&mut runner);
    // Four files a program, into which its processes add their counts when they end.
    runner.env("LLVM_PROFILE_FILE", counts.join("%4m.profraw"));
    if let Some(jobs) = arguments.jobs {
        runner.args(["--test-threads", &jobs.to_string()]);
    }
    // Counting makes everything slower, and a test that fails here was judged by the suite already.
    runner.arg("--no-fail-fast").args(&arguments.filters);
    let status = process::status(&mut runner)?;
    drop(surroundings);
    if !status.success() {
        eprintln!("Some tests failed under the counters ({status}); the figures are those of all that ran.");
        if arguments.record {
            return Err(Failure::new("a record is about a suite that passed"));
        }
    }
    Ok(())
}

/// The programs of the tests, and the product's.
fn binaries(wrapper: &Path) -> Outcome<Vec<PathBuf>> {
    #[derive(Deserialize)]
    struct List {
        #[serde(rename = "rust-binaries")]
        binaries: std::collections::BTreeMap<String, Binary>,
    }
    #[derive(Deserialize)]
    #[serde(rename_all = "kebab-case")]
    struct Binary {
        binary_path: PathBuf,
    }
    let mut list = nextest(wrapper, &["list", "--list-type", "binaries-only"]);
    let text = process::output(list.args(["--message-format", "json"]))?;
    let list: List = serde_json::from_str(&text).context("the list of tests cannot be read")?;
    let mut binaries: Vec<PathBuf> = list
        .binaries
        .into_values()
        .map(|binary| binary.binary_path)
        .collect();
    binaries.push(process::target().join("ci").join("provost"));
    Ok(binaries)
}
