//! What lies around a server and fails (R52): the database behind it, its clock, its keys, its disk, its log, its pooler, the
//! store of its segments, the vault that it asks.
//!
//! Each drill has a store of its own and the real thing where there is one: a standby that is promoted behind a proxy,
//! libfaketime, `PgBouncer`, a file system that is full. A drill says what it saw in one sentence, or why this machine cannot
//! run it; one that fails says what was answered and what had to be.
//!
//! Absent on purpose: kills, power loss and disks that fail below one write, which have drivers of their own, and whatever
//! takes hours of running time, which the suite tests with a clock of its own.

mod clock;
mod disk;
mod failover;
mod instance;
mod keys;
mod log;
mod pooler;
mod scene;
mod segments;
mod stores;
mod tls;
mod vault;

use super::Choices;
use super::fixture::{self, Purpose};
use crate::Engine;
use crate::bench::bench_store::BenchStore;
use crate::failure::{Context, Failure, Outcome};

/// Let what lies around a server fail: database, clock, keys, disk, log, pooler, vault
#[derive(clap::Args)]
pub struct Arguments {
    /// Only the drills of these names
    #[arg(long, num_args = 1.., value_name = "NAME")]
    only: Vec<String>,
    /// Also what takes minutes: a clock that jumps while the server runs
    #[arg(long)]
    minutes: bool,
    #[command(flatten)]
    choices: Choices,
}

/// What came of a drill.
enum Report {
    /// It was seen to be as it must be; a sentence with figures.
    Seen(String),
    /// It cannot be run here, and why.
    Absent(String),
}

struct Drill {
    name: &'static str,
    run: fn(&BenchStore, &Arguments, u64) -> Outcome<Report>,
    /// SQLite has nothing of the kind.
    is_for_postgres: bool,
}

const fn drill(name: &'static str, run: fn(&BenchStore, &Arguments, u64) -> Outcome<Report>) -> Drill {
    Drill {
        name,
        run,
        is_for_postgres: false,
    }
}

const fn of_postgres(name: &'static str, run: fn(&BenchStore, &Arguments, u64) -> Outcome<Report>) -> Drill {
    Drill {
        is_for_postgres: true,
        ..drill(name, run)
    }
}

const DRILLS: &[Drill] = &[
    drill("clock", clock::run),
    drill("keys-disk", disk::run),
    of_postgres("failover", failover::run),
    of_postgres("keys", keys::run),
    drill("log", log::run),
    of_postgres("move", stores::take_over),
    of_postgres("pooler", pooler::run),
    drill("rehearsal", stores::rehearse),
    drill("segments", segments::run),
    of_postgres("tls", tls::run),
    drill("vault", vault::run),
];

pub fn run(arguments: &Arguments) -> Outcome {
    let only = &arguments.only;
    let names: Vec<&str> = DRILLS.iter().map(|drill| drill.name).collect();
    if let Some(unknown) = only.iter().find(|name| !names.contains(&name.as_str())) {
        return Err(Failure::new(format!(
            "no drill is called {unknown}; there are {}",
            names.join(", ")
        )));
    }
    let is_chosen = |drill: &&Drill| only.is_empty() || only.iter().any(|name| name == drill.name);
    let chosen: Vec<&Drill> = DRILLS.iter().filter(is_chosen).collect();
    let purpose = Purpose {
        name: "surroundings",
        goals: &["R52"],
        sizes: match (only.is_empty(), arguments.minutes) {
            (false, _) => format!("--only {}", only.join(" ")),
            (true, true) => "--minutes".into(),
            (true, false) => String::new(),
        },
        profile: "ci",
    };
    fixture::each(&arguments.choices, &purpose, |place, seed| {
        let mut sentences = Vec::new();
        for drill in &chosen {
            if drill.is_for_postgres && place.engine == Engine::Sqlite {
                println!("sqlite, {}: nothing of the kind", drill.name);
                continue;
            }
            let report = (drill.run)(place, arguments, seed).context(format_args!("drill {}", drill.name))?;
            let sentence = match report {
                Report::Seen(sentence) => sentence,
                Report::Absent(why) if arguments.choices.record => {
                    return Err(Failure::new(format!(
                        "drill {} cannot be run here, so that nothing is recorded: {why}",
                        drill.name
                    )));
                }
                Report::Absent(why) => format!("NOT RUN, because {why}"),
            };
            println!("{}, {}: {sentence}", fixture::word(place.engine), drill.name);
            sentences.push(format!("{}: {sentence}", drill.name));
        }
        Ok(sentences.join("; ") + ".")
    })
}
