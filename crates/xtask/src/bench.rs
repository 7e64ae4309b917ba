//! Benchmarks of the shipped binary, with the machine's own limits beside them.

mod api;
mod backtest;
pub mod bench_store;
mod decisions;
mod figures;
mod fleet;
pub mod hook;
pub mod load;
pub mod machine;
mod mcp;
mod modules;
pub mod report;
mod resolve;
mod rounds;
mod scan;
mod scripts;
mod sessions;

use crate::failure::Outcome;

/// What can be measured.
#[derive(clap::Subcommand)]
pub enum Subject {
    Api(api::Arguments),
    Backtest(backtest::Arguments),
    Decisions(decisions::Arguments),
    Fleet(fleet::Arguments),
    Hook(hook::Arguments),
    Mcp(mcp::Arguments),
    Modules(modules::Arguments),
    Resolve(resolve::Arguments),
    Scan(scan::Arguments),
    Sessions(sessions::Arguments),
}

pub fn run(subject: &Subject) -> Outcome {
    match subject {
        Subject::Api(arguments) => api::run(arguments),
        Subject::Backtest(arguments) => backtest::run(arguments),
        Subject::Decisions(arguments) => decisions::run(arguments),
        Subject::Fleet(arguments) => fleet::run(arguments),
        Subject::Hook(arguments) => hook::run(arguments),
        Subject::Mcp(arguments) => mcp::run(arguments),
        Subject::Modules(arguments) => modules::run(arguments),
        Subject::Resolve(arguments) => resolve::run(arguments),
        Subject::Scan(arguments) => scan::run(arguments),
        Subject::Sessions(arguments) => sessions::run(arguments),
    }
}
