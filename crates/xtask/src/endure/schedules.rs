//! Hand-written concurrency (R20): the queue of the writers, the buffer of notes, the rate limiter and the readers' crew,
//! under orders of their threads that shuttle draws.
//!
//! The scenes are tests of the kernel (`crates/kernel/src/schedules`), which the suite runs small, because only a build
//! of the tests has shuttle's locks in the place of the system's. This task builds them, says how many schedules, and
//! keeps the figures.

use std::path::Path;

use serde::Deserialize;

use crate::failure::{Context, Failure, Outcome};
use crate::record::Record;
use crate::{clock, process, random};

/// Run the threads that are coordinated by hand under chosen schedules
#[derive(clap::Args)]
pub struct Arguments {
    /// How many schedules of the writers' queue, over all its scenes; each other scene gets as many as one of these
    #[arg(long, default_value_t = 10_000)]
    count: u64,
    /// Repeats the schedules of an earlier run
    #[arg(long)]
    seed: Option<u64>,
    /// How many scenes run at once; as many as there are processors when absent
    #[arg(long, short)]
    jobs: Option<usize>,
    /// Keep what was reached for docs/assurance.md
    #[arg(long)]
    record: bool,
}

/// What one scene says of itself.
#[derive(Deserialize)]
struct SceneReport {
    subject: String,
    scene: String,
    random: u64,
    pct: u64,
}

pub fn run(arguments: &Arguments) -> Outcome {
    let count = arguments.count;
    let seed = arguments.seed.unwrap_or_else(random::fresh_seed);
    let command = format!("cargo xtask endure schedules --count {count}");
    println!("seed {seed} (again with: {command} --seed {seed})");
    let report = process::target().join(format!("schedules-{}.jsonl", std::process::id()));
    let mut test = process::cargo();
    test.args([
        "test",
        "--profile",
        "ci",
        "--package",
        "provost-kernel",
        "--lib",
        "--",
    ]);
    test.args(["schedules::", "--nocapture"]);
    if let Some(jobs) = arguments.jobs {
        test.args(["--test-threads", &jobs.to_string()]);
    }
    process::without_settings(&mut test);
    test.env("PROVOST_TEST_COUNT", count.to_string());
    test.env("PROVOST_TEST_SEED", seed.to_string());
    test.env("PROVOST_TEST_REPORT", &report);
    let began = clock::now();
    let outcome = process::run(&mut test);
    let scenes = read(&report);
    outcome.context(format_args!("a schedule of seed {seed} broke a promise"))?;
    let scenes = scenes?;
    let sentence = sentence(&scenes, count)?;
    println!("{sentence}\nDone in {} s.", began.elapsed().as_secs());
    if arguments.record {
        let record = Record::new(&["R20"], sentence, command).with_seeds(seed.to_string());
        record.write("endure-schedules")?;
    }
    Ok(())
}

fn read(file: &Path) -> Outcome<Vec<SceneReport>> {
    let text = std::fs::read_to_string(file).context("the scenes left no figures")?;
    // Nobody reads it again.
    let _ = std::fs::remove_file(file);
    let scenes = text.lines().map(serde_json::from_str);
    scenes
        .collect::<Result<_, _>>()
        .context("the figures of the scenes cannot be read")
}

/// Says what was reached; fails when the queue had fewer schedules than were asked for.
fn sentence(scenes: &[SceneReport], count: u64) -> Outcome<String> {
    let sum = |subject: &str| {
        let of_it = scenes.iter().filter(|scene| scene.subject == subject);
        of_it.map(|scene| scene.random + scene.pct).sum::<u64>()
    };
    let queue = sum("queue");
    if queue < count {
        return Err(Failure::new(format!(
            "{queue} of {count} schedules of the queue were run"
        )));
    }
    let mut names: Vec<&str> = scenes
        .iter()
        .filter(|scene| scene.subject == "queue")
        .map(|scene| scene.scene.as_str())
        .collect();
    names.sort_unstable();
    let random: u64 = scenes.iter().map(|scene| scene.random).sum();
    let pct: u64 = scenes.iter().map(|scene| scene.pct).sum();
    Ok(format!(
        "{queue} schedules of the group-commit queue and the notes beside it ({}), {} of the rate limiter, {} of the \
         readers' crew; {random} of them random and {pct} by PCT; 0 promises broken, 0 deadlocks.",
        names.join(", "),
        sum("limiter"),
        sum("readers"),
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_are_summed_and_too_few_are_a_failure() {
        let scene = |subject: &str, name: &str| SceneReport {
            subject: subject.into(),
            scene: name.into(),
            random: 3,
            pct: 2,
        };
        let scenes = [
            scene("queue", "stops"),
            scene("queue", "batches"),
            scene("readers", "readers"),
        ];
        let said = sentence(&scenes, 10).unwrap();
        assert!(said.starts_with("10 schedules"), "{said}");
        assert!(
            said.contains("(batches, stops), 0 of the rate limiter, 5 of the readers"),
            "{said}"
        );
        assert!(sentence(&scenes, 11).is_err());
    }
}
