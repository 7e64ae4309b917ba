//! The simulation (R16, R21): the whole application on one thread, with one seed for everything that happens.
//!
//! It is a test of the server, because it needs the server's inside; this task builds it, says which seeds, and keeps
//! the figures.

use std::path::PathBuf;

use serde::Deserialize;

use crate::failure::{Context, Failure, Outcome};
use crate::process;
use crate::record::Record;

/// Run the whole application on one thread, seed by seed, and judge every step
#[derive(clap::Args)]
pub struct Arguments {
    /// How many seeds
    #[arg(long, default_value_t = 2000)]
    seeds: u64,
    /// The first seed
    #[arg(long, default_value_t = 0)]
    from: u64,
    /// Run this seed alone, twice, and compare its traces
    #[arg(long, conflicts_with_all = ["seeds", "from"])]
    seed: Option<u64>,
    /// How many seeds run at once; as many as there are processors when absent
    #[arg(long, short)]
    jobs: Option<usize>,
    /// The cargo profile: `ci` is built already, `long` takes minutes to build and then runs faster
    #[arg(long, default_value = "ci")]
    profile: String,
    /// Keep what was reached for docs/assurance.md
    #[arg(long)]
    record: bool,
}

/// What the simulation says of itself.
#[derive(Deserialize)]
struct Report {
    from: u64,
    seeds: u64,
    lives: u64,
    answers: u64,
    entries: u64,
    faults: u64,
    twice: u64,
    seconds: f64,
}

pub fn run(arguments: &Arguments) -> Outcome {
    let (from, seeds) = match arguments.seed {
        Some(seed) => (seed, 1),
        None => (arguments.from, arguments.seeds),
    };
    let jobs = arguments
        .jobs
        .unwrap_or_else(|| std::thread::available_parallelism().map_or(1, usize::from));
    let file = process::target().join(format!("simulation-{}.json", std::process::id()));
    let mut test = process::cargo();
    test.args([
        "test",
        "--profile",
        &arguments.profile,
        // Of the whole workspace, so that dependencies have the features of the suite and are not built again.
        "--workspace",
        "--test",
        "sim",
        "--",
    ]);
    test.args(["--exact", "run::every_seed_keeps_the_invariants", "--nocapture"]);
    process::without_settings(&mut test);
    test.env("PROVOST_TEST_SIM_FROM", from.to_string());
    test.env("PROVOST_TEST_SIM_SEEDS", seeds.to_string());
    test.env("PROVOST_TEST_SIM_JOBS", jobs.to_string());
    test.env("PROVOST_TEST_REPORT", &file);
    println!("Simulating {seeds} seeds from {from} with {jobs} at once.");
    let outcome = process::run(&mut test);
    let report = read(&file);
    outcome?;
    let report = report?;
    let sentence = sentence(&report);
    println!("{sentence}");
    if arguments.record {
        let command = format!(
            "cargo xtask simulate --seeds {} --from {}",
            report.seeds, report.from
        );
        Record::new(&["R16", "R21"], sentence, command)
            .with_seeds(format!("{} to {}", report.from, report.from + report.seeds - 1))
            .write("simulate")?;
    }
    Ok(())
}

fn read(file: &PathBuf) -> Outcome<Report> {
    let text = std::fs::read_to_string(file).context("the simulation left no figures")?;
    // Nobody reads it again.
    let _ = std::fs::remove_file(file);
    let report: Report = serde_json::from_str(&text).context("the simulation's figures cannot be read")?;
    if report.seeds == 0 {
        return Err(Failure::new("the simulation ran no seed"));
    }
    Ok(report)
}

fn sentence(report: &Report) -> String {
    let Report {
        seeds,
        lives,
        answers,
        entries,
        faults,
        twice,
        seconds,
        ..
    } = report;
    #[expect(clippy::cast_precision_loss, reason = "a figure for people")]
    let pace = *seeds as f64 / seconds * 60.0;
    format!(
        "{seeds} seeds of the whole application on one thread: {lives} lives of the server, {faults} injected faults, \
         {answers} answers and {entries} audit entries judged, 0 invariants broken; the traces of {twice} seeds that ran \
         twice were the same; {pace:.0} seeds a minute."
    )
}
