//! The threads that the kernel coordinates by hand, under every order that shuttle thinks of (R20): the queue of a writer,
//! the buffer of notes, the rate limiter, the readers.
//!
//! The sources are those of the product, read a second time: here `super::sync` is [`sync`], with shuttle's primitives.
//! Half of the schedules are random, half are PCT's (few changes of thread, at places chosen by chance), which find
//! different faults. A schedule in which everybody waits for somebody is a fault as well; shuttle sees it.
//!
//! A failed test prints its seed and the schedule. `PROVOST_TEST_SEED` repeats it; `PROVOST_TEST_COUNT` says how many
//! schedules the scenes of the queue share, and `PROVOST_TEST_REPORT` names a file for a line of figures from each scene:
//! `cargo xtask endure schedules` sets them.
//!
//! Absent on purpose: weak memory. Shuttle takes every atomic for sequentially consistent; those of these files are, or
//! decide nothing.

mod buffered_records;
mod group_commit;
mod rate_limits;
mod reader_pool;
mod sync;
mod writer;

#[expect(dead_code, clippy::duplicate_mod, reason = "as above")]
#[path = "../write_behind/audit_buffer.rs"]
mod audit_buffer;
#[expect(dead_code, clippy::duplicate_mod, reason = "as above")]
#[path = "../rate/limiter.rs"]
mod limiter;
#[expect(dead_code, clippy::duplicate_mod, reason = "as above")]
#[path = "../work/queue.rs"]
mod queue;
#[expect(
    dead_code,
    clippy::duplicate_mod,
    reason = "read a second time on purpose, and the scenes do not ask for all that the product asks for"
)]
#[path = "../db/worker_pool.rs"]
mod worker_pool;

use serde_json::json;
use shuttle::scheduler::{PctScheduler, RandomScheduler, Scheduler};
use shuttle::{Config, Runner};
use std::io::Write;

/// Schedules of all scenes of the queue together, in the suite.
const COUNT: usize = 9000;
/// So many scenes share them; of each other scene there are as many schedules as of one of these.
const SCENES_OF_THE_QUEUE: usize = 9;
/// How often PCT changes the thread. Most faults of order need one or two changes.
const CHANGES: usize = 3;

/// Runs a scene under its share of schedules.
fn explore(subject: &str, scene: &str, play: fn()) {
    let all = number("PROVOST_TEST_COUNT").map_or(COUNT, |count| usize::try_from(count).unwrap());
    let count = all.div_ceil(SCENES_OF_THE_QUEUE);
    let seed = number("PROVOST_TEST_SEED").unwrap_or(20);
    println!("{subject}, {scene}: {count} schedules of seed {seed}");
    let half = count / 2;
    let random = run(RandomScheduler::new_from_seed(seed, count - half), play);
    let pct = run(PctScheduler::new_from_seed(seed, CHANGES, half), play);
    assert_eq!(random + pct, count);
    if let Some(path) = std::env::var_os("PROVOST_TEST_REPORT") {
        let figures = json!({ "subject": subject, "scene": scene, "random": random, "pct": pct });
        let mut file = std::fs::File::options()
            .append(true)
            .create(true)
            .open(path)
            .unwrap();
        // In one piece: other scenes write to the same file.
        file.write_all(format!("{figures}\n").as_bytes()).unwrap();
    }
}

fn run(scheduler: impl Scheduler + 'static, play: fn()) -> usize {
    let mut config = Config::new();
    config.silence_warnings = true;
    // Builds without optimizations use more than the default.
    config.stack_size = 0x1_0000;
    // Ten times what the longest takes: whoever takes more goes round in a circle.
    config.max_steps = shuttle::MaxSteps::FailAfter(10_000);
    Runner::new(scheduler, config).run(play)
}

fn number(name: &str) -> Option<u64> {
    let word = std::env::var_os(name)?;
    Some(word.to_str().unwrap().parse().unwrap())
}
