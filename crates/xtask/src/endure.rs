//! What only time, repetition and rude peers show, of the shipped binary: restarts of a large store, backups and
//! stops under load, overload, two servers, hours of mixed load, raw bytes on sockets, secrets that get out, what strangers
//! learn, and agents whose reports and logs of decisions go through kills of both ends. `schedules` alone runs tests of the kernel, because a scheduler of its own has to be built in.
//!
//! Every driver prints its seed and takes one, shows progress, fails with a sentence that holds the figure, and
//! leaves the server's folder behind when it fails. The limits are those of the goals; a size that is too small to
//! judge a goal says so instead of passing it.
//!
//! Absent on purpose: anything in the process of the server. What needs a simulated clock or a look inside is tested in
//! the server's own suite.

mod backups;
mod device_decisions;
mod fixture;
mod known;
mod leaks;
mod neighbour;
mod overload;
mod restarts;
mod schedules;
mod servers;
mod soak;
mod stops;
mod strangers;
mod surroundings;
mod uploads;
mod wire;
mod workload;

use std::path::PathBuf;

use crate::Engine;
use crate::failure::Outcome;

/// What the server can be made to endure.
#[derive(clap::Subcommand)]
pub enum Subject {
    Backups(backups::Arguments),
    DeviceDecisions(device_decisions::Arguments),
    Leaks(leaks::Arguments),
    Neighbour(neighbour::Arguments),
    Overload(overload::Arguments),
    Restarts(restarts::Arguments),
    Schedules(schedules::Arguments),
    Servers(servers::Arguments),
    Soak(soak::Arguments),
    Stops(stops::Arguments),
    Strangers(strangers::Arguments),
    Surroundings(surroundings::Arguments),
    Uploads(uploads::Arguments),
    Wire(wire::Arguments),
}

/// What all of them are told.
#[derive(clap::Args)]
pub struct Choices {
    /// Repeats the choices of an earlier run
    #[arg(long)]
    seed: Option<u64>,
    /// The engines to run on
    #[arg(long, value_enum, default_value_t = Engine::Sqlite)]
    engine: Engine,
    /// Use this binary instead of building one
    #[arg(long)]
    binary: Option<PathBuf>,
    /// Keep what was reached for docs/assurance.md
    #[arg(long)]
    record: bool,
}

pub fn run(subject: &Subject) -> Outcome {
    match subject {
        Subject::Backups(arguments) => backups::run(arguments),
        Subject::DeviceDecisions(arguments) => device_decisions::run(arguments),
        Subject::Leaks(arguments) => leaks::run(arguments),
        Subject::Neighbour(arguments) => neighbour::run(arguments),
        Subject::Overload(arguments) => overload::run(arguments),
        Subject::Restarts(arguments) => restarts::run(arguments),
        Subject::Schedules(arguments) => schedules::run(arguments),
        Subject::Servers(arguments) => servers::run(arguments),
        Subject::Soak(arguments) => soak::run(arguments),
        Subject::Stops(arguments) => stops::run(arguments),
        Subject::Strangers(arguments) => strangers::run(arguments),
        Subject::Surroundings(arguments) => surroundings::run(arguments),
        Subject::Uploads(arguments) => uploads::run(arguments),
        Subject::Wire(arguments) => wire::run(arguments),
    }
}
