//! What it costs to ask a module in a process of its own, beside the figure of the same process.

use std::path::PathBuf;
use std::process::Command;

use crate::failure::Outcome;
use crate::process;
use crate::product;

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
    let binary = product::given(arguments.binary.as_ref(), "release")?;
    let program = product::example("provost-server", "measure_workers", &[])?;
    process::run(
        Command::new(program)
            .arg(binary)
            .arg(arguments.rounds.to_string()),
    )
}
