//! What it costs to ask a module in a process of its own, beside the figure of the same process.

use std::path::PathBuf;
use std::process::Command;

use crate::failure::Outcome;
use crate::{process, product};

/// Measure the hop to a process that runs modules: p50 and p99 of one question there and here
#[derive(clap::Args)]
pub struct Arguments {
    /// How many questions are asked
    #[arg(long, default_value_t = 20_000, value_parser = clap::value_parser!(u32).range(100..))]
    rounds: u32,
    /// Start workers from this binary instead of building one with the release profile
    #[arg(long)]
    binary: Option<PathBuf>,
}

pub fn run(arguments: &Arguments) -> Outcome {
    let binary = arguments
        .binary
        .clone()
        .map_or_else(|| product::build("release"), Ok)?;
    let package = ["--package", "provost-server", "--example", "measure_workers"];
    let mut build = process::cargo();
    process::run(build.args(["build", "--quiet", "--release"]).args(package))?;
    let examples = process::target().join("release").join("examples");
    let mut measure = Command::new(examples.join("measure_workers"));
    process::run(measure.arg(binary).arg(arguments.rounds.to_string()))
}
