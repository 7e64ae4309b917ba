//! What a backtest costs, beside what others need for the same events and policies.
//!
//! `bench grow|measure|cedar RECORDING FOLDER EVENTS ROUNDS THREADS USERS POLICIES SAMPLE [ONLY]`, which
//! `cargo xtask bench backtest` calls: `grow` writes the histories, `measure` reads them, `cedar` needs none. Both print one JSON object a
//! line. With ONLY, which a profiler wants, no backtest is measured but those whose description has this text.

#![expect(clippy::expect_used, reason = "a benchmark stops at the first surprise")]

mod measure;
mod ours;
mod peers;
mod policies;
mod sample;
mod world;

use measure::{Goal, count, line, note};
use policies::Reads;
use provost_history::synthetic::Recording;
use provost_history::{Folder, Storage};
use std::error::Error;
use std::path::Path;
use std::sync::Arc;
use world::{DAYS, Distinct, Growth};

/// That of the product, for everybody who is measured.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// What the command line says.
pub struct Arguments {
    events: u64,
    rounds: usize,
    threads: usize,
    users: u32,
    policies: usize,
    sample: u64,
    only: Option<String>,
}

fn main() -> Result<(), Box<dyn Error>> {
    let mut words: Vec<String> = std::env::args().skip(1).collect();
    let only = (words.len() == 10).then(|| words.pop()).flatten();
    let [
        step,
        recording,
        folder,
        events,
        rounds,
        threads,
        users,
        policies,
        sample,
    ] = words.as_slice()
    else {
        return Err(
            "usage: bench grow|measure RECORDING FOLDER EVENTS ROUNDS THREADS USERS POLICIES SAMPLE".into(),
        );
    };
    let arguments = Arguments {
        events: events.parse()?,
        rounds: rounds.parse()?,
        threads: threads.parse()?,
        users: users.parse()?,
        policies: policies.parse()?,
        sample: sample.parse()?,
        only,
    };
    let recording = Recording::read(&std::fs::read_to_string(recording)?)?;
    let storage: Arc<dyn Storage> = Arc::new(Folder::open(Path::new(folder))?);
    match step.as_str() {
        "grow" => grow(&arguments, &recording, storage.as_ref()),
        "measure" => ours::measure(&arguments, &recording, &storage, Path::new(folder)),
        #[cfg(feature = "cedar")]
        "cedar" => ours::cedar(&arguments, &recording),
        _ => Err("no such step".into()),
    }
}

impl Arguments {
    /// Returns every history: its name, what it is, and how it is grown.
    pub fn histories(&self) -> [(&'static str, &'static str, Growth); 6] {
        let growth = |events: u64, users: u32, distinct: Distinct| Growth {
            events,
            users,
            distinct,
        };
        let (large, small) = (self.events, self.events / 10);
        [
            (
                "repeated",
                "repeated calls",
                growth(large, self.users, Distinct::Nothing),
            ),
            (
                "distinct",
                "every event distinct",
                growth(large, self.users, Distinct::Tokens),
            ),
            (
                "arguments",
                "every event distinct, arguments too",
                growth(small, self.users, Distinct::Arguments),
            ),
            (
                "fewer-repeated",
                "repeated calls, a tenth",
                growth(small, self.users, Distinct::Nothing),
            ),
            (
                "more-users",
                "repeated calls, a tenth, of 10 × as many users",
                growth(small, self.users * 10, Distinct::Nothing),
            ),
            (
                "fewer-distinct",
                "every event distinct, a tenth",
                growth(small, self.users, Distinct::Tokens),
            ),
        ]
    }
}

/// Writes the histories and says what they are.
fn grow(arguments: &Arguments, recording: &Recording, storage: &dyn Storage) -> Result<(), Box<dyn Error>> {
    note(&format!(
        "{DAYS} days, {} users, 40 tools, seed {}",
        arguments.users,
        world::SEED
    ));
    for (name, what, growth) in arguments.histories() {
        let (written, cost) =
            measure::cost(|| world::write(recording, growth, storage, name, arguments.threads as u64));
        let written = written?;
        let share = |distinct: u64| 100.0 * count(distinct) / count(growth.events);
        note(&format!(
            "{what}: {} events in {} segments; {} distinct ({:.2} %), {} behaviours ({:.3} %)",
            growth.events,
            written.names.len(),
            written.distinct,
            share(written.distinct),
            written.behaviours,
            share(written.behaviours),
        ));
        let each = count(written.bytes) / count(growth.events);
        let goal = if name == "repeated" {
            Goal::AtMost(40.0)
        } else {
            Goal::None
        };
        line(
            "Storage",
            &format!("bytes of an event, sealed: {what}"),
            " B",
            goal,
            &[each],
            &[],
        );
        let (wall, busy) = measure::rates(growth.events, arguments.threads, &[cost]);
        line(
            "Storage",
            &format!("growing, recording and sealing: {what}"),
            " M/s",
            Goal::None,
            &wall,
            &busy,
        );
    }
    Ok(())
}

/// Returns the policies of the benchmark.
pub fn policies_of(
    arguments: &Arguments,
    recording: &Recording,
    count: usize,
    reads: Reads,
) -> Result<Vec<policies::Policy>, Box<dyn Error>> {
    Ok(policies::policies(
        &world::world(recording, arguments.users)?,
        count,
        reads,
    ))
}
