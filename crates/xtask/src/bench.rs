//! Benchmarks of the shipped binary, with the machine's own limits beside them.

mod api;
mod backtest;
mod decisions;
mod figures;
pub mod load;
pub mod machine;
mod mcp;
mod modules;
pub mod place;
pub mod report;
mod resolve;
mod scripts;
mod sessions;

use std::process::Command;

use crate::failure::Outcome;
use crate::process;

/// What can be measured.
#[derive(clap::Subcommand)]
pub enum Subject {
    Api(api::Arguments),
    Backtest(backtest::Arguments),
    Decisions(decisions::Arguments),
    Mcp(mcp::Arguments),
    Modules(modules::Arguments),
    Resolve(resolve::Arguments),
    Sessions(sessions::Arguments),
}

pub fn run(subject: &Subject) -> Outcome {
    // The load generator shares the cores with the server: an unoptimized one would measure itself.
    if cfg!(debug_assertions) {
        return run_optimized();
    }
    match subject {
        Subject::Api(arguments) => api::run(arguments),
        Subject::Backtest(arguments) => backtest::run(arguments),
        Subject::Decisions(arguments) => decisions::run(arguments),
        Subject::Mcp(arguments) => mcp::run(arguments),
        Subject::Modules(arguments) => modules::run(arguments),
        Subject::Resolve(arguments) => resolve::run(arguments),
        Subject::Sessions(arguments) => sessions::run(arguments),
    }
}

fn run_optimized() -> Outcome {
    eprintln!("building the load generator with the profile release");
    process::run(process::cargo().args(["build", "--quiet", "--release", "--package", "xtask"]))?;
    let mut optimized = Command::new(process::target().join("release").join("xtask"));
    process::run(optimized.args(std::env::args_os().skip(1)))
}
