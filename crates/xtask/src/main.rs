//! Tasks of the repository: `cargo xtask <task>`.
//!
//! They know the product as a program that answers HTTP, never as a crate: whatever they prove,
//! they prove about the thing that is shipped.

#![forbid(unsafe_code)]

mod agent_build;
mod assurance;
mod bench;
mod clients;
mod clock;
mod compatibility;
mod corrupt;
mod coverage;
mod crash;
mod dist;
mod endure;
mod failure;
mod faults;
mod fuzz;
mod guides;
mod homes;
mod http;
mod journal;
mod monitoring;
mod mutants;
mod nightly;
mod oidc;
mod packaging;
mod page;
mod postgres;
mod power;
mod probe_clients;
mod process;
mod product;
mod python;
mod random;
mod record;
mod s3;
mod scale;
mod schemathesis;
mod scratch;
mod simulate;
mod suite;
mod supply;
mod tables;
mod torment;
mod tour;
mod traffic;

use std::process::{Command, ExitCode};

use clap::{Parser, ValueEnum};

use failure::Outcome;

#[derive(Parser)]
#[command(
    name = "xtask",
    bin_name = "cargo xtask",
    about = "Tasks of the repository",
    max_term_width = 100
)]
enum Task {
    /// Run every test on both engines; ends with the runner's summary
    Test(suite::Arguments),
    /// Rewrite the goldens and show which of them changed
    Golden(suite::Arguments),
    /// Check that everything is formatted
    FmtCheck,
    /// Run clippy over everything; a warning is a failure
    Lint,
    /// Run schemathesis with all checks against the real binary
    Schemathesis(schemathesis::Arguments),
    /// Take the tour of the guides against the real binary
    Tour(tour::Arguments),
    /// Type the commands of the README and the guides, and compare what they say
    Guides(guides::Arguments),
    /// Connect real MCP clients to the real binary and run the conformance suite
    Clients(clients::Arguments),
    /// Ask real clients what they do with each member of their settings, and keep it as data
    ProbeClients(probe_clients::Arguments),
    /// Look at the report page of a backtest in headless Chromium
    Page(page::Arguments),
    /// Print the ten most used tables of the demo's organization at 80 columns into one text
    Tables(tables::Arguments),
    /// Kill the server at random times and compare what it was with what it had acknowledged
    Crash(crash::Arguments),
    /// Run tests of the suite at a large size, on both engines
    Scale(scale::Arguments),
    /// Run the whole application on one thread, seed by seed, and judge every step
    Simulate(simulate::Arguments),
    /// Fail every write and sync of every mutation, one at a time, and compare the store with what was answered
    Faults(faults::Arguments),
    /// Spoil one page of a closed store at a time, and look for answers that are silently wrong
    Corrupt(corrupt::Arguments),
    /// Lose the power at random moments, with what a disk may then hold, and look for what had been acknowledged
    Power(power::Arguments),
    /// Keep the server busy, full, restarting or under odd bytes, and judge what it does
    #[command(subcommand)]
    Endure(endure::Subject),
    /// Run every test with counters in the code, and say which lines and branches nothing ran
    Coverage(coverage::Arguments),
    /// Change the code that guards, in a scratch copy of the last commit, one small change at a time, and see tests fail
    Mutants(mutants::Arguments),
    /// Count the crates of the binary, write its bill of materials, and build it twice to compare the bits
    Supply(supply::Arguments),
    /// Let libFuzzer look for inputs that break a promise of the parsers
    Fuzz(fuzz::Arguments),
    /// Storm the whole application with hostile requests, and look for what must not be
    Torment(torment::Arguments),
    /// Run every long net, one after the other, and keep how each ended
    Nightly(nightly::Arguments),
    /// Make the Debian package, the wheel and the npm package of the release binary
    Dist(dist::Arguments),
    /// Install those packages into fresh places and use them
    DistCheck(dist::CheckArguments),
    /// Build the program without the server, and print its size and what it costs while it runs
    AgentBuild(agent_build::Arguments),
    /// Have promtool check and try the alert rules, and read the figures of the program
    Monitoring(monitoring::Arguments),
    /// Have the programs that read what carries the program read it: linters, Compose, Helm, Ansible, systemd
    PackagingCheck(packaging::Arguments),
    /// Write docs/assurance.md from the records of the runs
    Assurance(assurance::Arguments),
    /// Write docs/compatibility.md from the tables that the tasks keep
    Compatibility(compatibility::Arguments),
    /// Measure the release binary
    #[command(subcommand)]
    Bench(bench::Subject),
    #[command(hide = true)]
    GuardCluster(postgres::GuardianArguments),
}

/// The storage engines that a task runs on.
#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Engine {
    Sqlite,
    Postgres,
    Both,
}

impl Engine {
    fn has_postgres(self) -> bool {
        self != Self::Sqlite
    }

    /// The engines one by one.
    fn each(self) -> Vec<Self> {
        if self == Self::Both {
            vec![Self::Sqlite, Self::Postgres]
        } else {
            vec![self]
        }
    }

    /// The word of the command line.
    fn word(self) -> &'static str {
        match self {
            Self::Sqlite => "sqlite",
            Self::Postgres => "postgres",
            Self::Both => "both",
        }
    }

    fn name(self) -> &'static str {
        match self {
            Self::Sqlite => "SQLite",
            Self::Postgres => "PostgreSQL",
            Self::Both => "SQLite and PostgreSQL",
        }
    }
}

impl Task {
    /// Whether the task shares the cores with what it measures, so that its own pace is part of the figure.
    fn measures(&self) -> bool {
        match self {
            // What a scan takes the system counts, of other processes.
            Self::Bench(bench::Subject::Scan(_)) => false,
            Self::Bench(_) | Self::Endure(endure::Subject::Overload(_)) => true,
            _ => false,
        }
    }
}

/// Runs this task once more, optimized: the profile of the tests leaves our crates as they are (ADR 0030).
fn run_optimized() -> Outcome<ExitCode> {
    let mut build = process::cargo();
    build.args(["build", "--release", "--locked", "--quiet", "--package", "xtask"]);
    // Quietly it takes minutes, and waits without a word for another build that holds the lock of the folder.
    let what = "the build of this task with optimizations, or for another build in the same folder";
    eprintln!("first {what}");
    process::run_within(&mut build, product::LONGEST_BUILD, what)?;
    let mut again = Command::new(process::target().join("release").join("xtask"));
    // Paths among the arguments are the caller's.
    again.current_dir(".").args(std::env::args_os().skip(1));
    let status = process::status(&mut again)?;
    Ok(if status.success() {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    })
}

fn main() -> ExitCode {
    let task = Task::parse();
    let done = if cfg!(debug_assertions) && task.measures() {
        run_optimized()
    } else {
        perform(&task)
    };
    done.unwrap_or_else(|failure| {
        eprintln!("error: {failure}");
        ExitCode::FAILURE
    })
}

fn perform(task: &Task) -> Outcome<ExitCode> {
    match task {
        Task::Test(arguments) => return suite::test(arguments),
        Task::Golden(arguments) => return suite::golden(arguments),
        Task::FmtCheck => suite::check_format()?,
        Task::Lint => suite::lint()?,
        Task::Schemathesis(arguments) => schemathesis::run(arguments)?,
        Task::Tour(arguments) => tour::run(arguments)?,
        Task::Guides(arguments) => guides::run(arguments)?,
        Task::Clients(arguments) => clients::run(arguments)?,
        Task::ProbeClients(arguments) => probe_clients::run(arguments)?,
        Task::Page(arguments) => page::run(arguments)?,
        Task::AgentBuild(arguments) => agent_build::run(arguments)?,
        Task::Tables(arguments) => tables::run(arguments)?,
        Task::Crash(arguments) => crash::run(arguments)?,
        Task::Scale(arguments) => scale::run(arguments)?,
        Task::Simulate(arguments) => simulate::run(arguments)?,
        Task::Faults(arguments) => faults::run(arguments)?,
        Task::Corrupt(arguments) => corrupt::run(arguments)?,
        Task::Power(arguments) => power::run(arguments)?,
        Task::Endure(subject) => endure::run(subject)?,
        Task::Coverage(arguments) => coverage::run(arguments)?,
        Task::Supply(arguments) => supply::run(arguments)?,
        Task::Fuzz(arguments) => fuzz::run(arguments)?,
        Task::Mutants(arguments) => mutants::run(arguments)?,
        Task::Torment(arguments) => torment::run(arguments)?,
        Task::Nightly(arguments) => nightly::run(arguments)?,
        Task::Dist(arguments) => dist::run(arguments)?,
        Task::DistCheck(arguments) => dist::check(arguments)?,
        Task::Monitoring(arguments) => monitoring::run(arguments)?,
        Task::PackagingCheck(arguments) => packaging::run(arguments)?,
        Task::Assurance(arguments) => assurance::run(arguments)?,
        Task::Compatibility(arguments) => compatibility::run(arguments)?,
        Task::Bench(subject) => bench::run(subject)?,
        Task::GuardCluster(arguments) => postgres::guard(arguments)?,
    }
    Ok(ExitCode::SUCCESS)
}
