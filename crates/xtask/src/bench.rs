//! Benchmarks of the shipped binary, with the machine's own limits beside them.

mod api;
mod figures;
mod load;
mod machine;
mod report;
mod scripts;

use crate::failure::Outcome;

/// What can be measured.
#[derive(clap::Subcommand)]
pub enum Subject {
    Api(api::Arguments),
}

pub fn run(subject: &Subject) -> Outcome {
    match subject {
        Subject::Api(arguments) => api::run(arguments),
    }
}
