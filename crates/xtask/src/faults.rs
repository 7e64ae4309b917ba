//! Crash and I/O error at every boundary (R2, R3, R8): `cargo xtask faults`.
//!
//! A trace of an undisturbed run says which system calls an operation makes on files. Then it runs anew for each of
//! them, with a fault in that call alone, and what the store holds afterwards is compared with what was answered.
//! Which faults are legal, and which would be lies, stands in `faults/fault.rs`; what is compared, in
//! `faults/judge.rs`.
//!
//! Absent on purpose: PostgreSQL, whose writes are PostgreSQL's own; the files of this program beside it (keys,
//! checkpoints, segments) are the same on both engines.

pub mod base;
mod command;
mod fault;
mod journal;
mod judge;
mod sealing;
mod state;
mod station;
pub mod strace;
mod tally;
mod threads;

use std::path::{Path, PathBuf};
use std::sync::Mutex;

use crate::failure::{Context, Failure, Outcome};
use crate::product::Workplace;
use crate::random::{self, Random};
use crate::record::Record;
use crate::traffic::catalogue::{self, Operation};
use crate::{clock, product};
use base::Base;
use command::Bench;
use fault::{FaultChoice, Point};
use journal::{Entry, Journal};
use sealing::SealingSite;
use station::{PointOutcome, Station};
use tally::Tally;

/// So many points of a subject may fail to be tried before the rest of it is left out.
const PATIENCE: usize = 3;

/// Fail every write and sync of every mutation, one at a time, and compare the store with what was answered
#[derive(clap::Args)]
pub struct Arguments {
    /// How many of the points are tried, in percent; at least one of each subject
    #[arg(long, default_value_t = 100, value_parser = clap::value_parser!(u64).range(1..=100))]
    sample: u64,
    /// Repeats the choice of an earlier run
    #[arg(long)]
    seed: Option<u64>,
    /// Try these alone, by their operationId or by the name that the progress shows
    #[arg(long, value_name = "ID")]
    operation: Vec<String>,
    /// Inject this kind of fault alone
    #[arg(long, value_enum, default_value = "all")]
    fault: FaultChoice,
    /// How many servers are tried at once [default: one for each core]
    #[arg(long)]
    jobs: Option<usize>,
    /// Test this binary instead of building one
    #[arg(long)]
    binary: Option<PathBuf>,
    /// Leave out the subjects that an earlier run, which may have been stopped, found nothing wrong with
    #[arg(long)]
    go_on: bool,
    /// Let what was tried with an earlier binary count, too
    #[arg(long, requires = "go_on")]
    accept_earlier: bool,
    /// Keep what was reached for docs/assurance.md
    #[arg(long, conflicts_with = "fault")]
    record: bool,
}

pub fn run(arguments: &Arguments) -> Outcome {
    catalogue::check_complete()?;
    strace::find_or_install()?;
    let seed = arguments.seed.unwrap_or_else(random::fresh_seed);
    println!(
        "seed {seed} (again with: cargo xtask faults --seed {seed} --sample {})",
        arguments.sample
    );
    let binary = product::given(arguments.binary.as_ref(), "ci")?;
    let workplace = base::workplace("faults")?;
    let base = Base::make(&binary, &workplace)?;
    let began = clock::now();
    let notes = Findings::open(arguments, &binary)?;
    let tally = try_subjects(arguments, seed, &base, &workplace, &notes)?;
    let seconds = began.elapsed().as_secs();
    println!("{}; {seconds} s", tally.sentence());
    if !tally.violations.is_empty() {
        return Err(Failure::new(format!(
            "{} violations with seed {seed}; their stores, traces and logs are kept in {}:\n{}",
            tally.violations.len(),
            workplace.folder.display(),
            tally.violations.join("\n")
        )));
    }
    workplace.remove()?;
    if arguments.record {
        let chosen = &arguments.operation;
        let flags = chosen.iter().map(|id| format!(" --operation {id}"));
        let command =
            format!("cargo xtask faults --sample {}", arguments.sample) + &flags.collect::<String>();
        let more = match tally.binaries.len() {
            0 | 1 => String::new(),
            several => format!(" With {several} binaries one after the other."),
        };
        let sentence = format!("{}.{more}", tally.sentence());
        // Migrations are among the commands.
        let goals: &[&str] = match chosen.as_slice() {
            [] => &["R2", "R3", "R8"],
            _ => &["R2", "R3"],
        };
        let record = Record::new(goals, sentence, command);
        // A seed chooses among points, and of all there is nothing to choose.
        let record = if arguments.sample < 100 {
            record.with_seeds(seed.to_string())
        } else {
            record
        };
        // What was chosen speaks for itself alone, and not in place of everything.
        let name = chosen
            .iter()
            .fold("faults".to_owned(), |name, id| name + "-" + id);
        record.write(&name)?;
    }
    Ok(())
}

/// What earlier runs found, and where this one writes it.
struct Findings<'a> {
    arguments: &'a Arguments,
    binary: u64,
    journal: Mutex<Journal>,
}

impl<'a> Findings<'a> {
    fn open(arguments: &'a Arguments, binary: &Path) -> Outcome<Self> {
        let folder = crate::process::target().join("xtask/faults");
        std::fs::create_dir_all(&folder).context(folder.display())?;
        Ok(Self {
            arguments,
            binary: crate::journal::name_of(binary)?,
            journal: Mutex::new(Journal::open(&folder)?),
        })
    }

    fn known(&self, subject: &str) -> Option<Tally> {
        let Arguments {
            sample,
            accept_earlier,
            go_on,
            ..
        } = *self.arguments;
        let journal = self.journal.lock().ok().filter(|_| go_on)?;
        let known = journal.known(subject, sample, self.binary, accept_earlier);
        known.map(|entry| entry.tally.clone())
    }

    /// One fault of all does not speak for a subject.
    fn add(&self, subject: &str, tally: &Tally) -> Outcome {
        let Ok(mut journal) = self.journal.lock() else {
            return Ok(());
        };
        if self.arguments.fault != FaultChoice::All {
            return Ok(());
        }
        journal.add(Entry {
            subject: subject.to_owned(),
            sample: self.arguments.sample,
            binary: self.binary,
            tally: tally.clone(),
        })
    }
}

fn try_subjects(
    arguments: &Arguments,
    seed: u64,
    base: &Base,
    workplace: &Workplace,
    notes: &Findings<'_>,
) -> Outcome<Tally> {
    let is_wanted =
        |id: &str| arguments.operation.is_empty() || arguments.operation.iter().any(|one| one == id);
    let operations = std::iter::once(catalogue::CHECKPOINT)
        .chain(catalogue::all())
        .map(Subject::Operation);
    let commands = command::EACH.into_iter().map(Subject::Command);
    let sealing = sealing::EACH.into_iter().map(Subject::Sealing);
    // Commands and sealing first: they take longest.
    let subjects: Vec<Subject> = sealing
        .chain(commands)
        .chain(operations)
        .filter(|subject| is_wanted(subject.id()))
        .collect();
    if subjects.is_empty() {
        return Err(Failure::new(
            "nothing has this name; openapi/headless-v1.json knows the operations",
        ));
    }
    if subjects.iter().any(|one| matches!(one, Subject::Sealing(_))) {
        sealing::find_or_install()?;
    }
    let total = subjects.len();
    let waiting = Mutex::new(subjects.into_iter().enumerate());
    let tally = Mutex::new(Tally::default());
    let cores = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    let jobs = arguments.jobs.unwrap_or(cores).clamp(1, 64);
    let work = |job: usize| {
        let mut places = Sites {
            station: Station::new(base, seed, workplace.folder.join(format!("{job}"))),
            bench: Bench {
                base,
                folder: workplace.folder.join(format!("command-{job}")),
                backup: workplace.folder.join(format!("backup-{job}.db")),
                crashed: workplace.folder.join(format!("crashed-{job}")),
            },
            sealing: SealingSite {
                base,
                folder: workplace.folder.join(format!("sealing-{job}")),
            },
        };
        loop {
            let next = waiting.lock().ok().and_then(|mut waiting| waiting.next());
            let Some((index, subject)) = next else { return };
            if let Some(known) = notes.known(subject.id()) {
                println!(
                    "{:>3}/{total} {}: known from the journal",
                    index + 1,
                    subject.id()
                );
                if let Ok(mut tally) = tally.lock() {
                    tally.add(known);
                }
                continue;
            }
            let random = Random::part(seed, index as u64);
            let tried = try_subject(arguments, random, &mut places, &subject);
            let tried = tried.and_then(|mut tried| {
                tried.binaries.insert(notes.binary);
                notes.add(subject.id(), &tried)?;
                Ok(tried)
            });
            let one = tried.unwrap_or_else(|failure| {
                // The others can be tried nevertheless.
                let mut untried = Tally::default();
                untried.note(subject.id(), None, false, vec![could_not(&failure)]);
                places.station.begin_again();
                untried
            });
            println!("{:>3}/{total} {}: {}", index + 1, subject.id(), one.line());
            if let Ok(mut tally) = tally.lock() {
                tally.add(one);
            }
        }
    };
    std::thread::scope(|scope| {
        for job in 0..jobs {
            let work = &work;
            scope.spawn(move || work(job));
        }
    });
    tally.into_inner().map_err(|_| Failure::new("a job panicked"))
}

/// Where one job tries its subjects.
struct Sites<'a> {
    station: Station<'a>,
    bench: Bench<'a>,
    sealing: SealingSite<'a>,
}

/// What is tried.
enum Subject {
    Sealing(sealing::Part),
    Command(command::Subject),
    Operation(Operation),
}

impl Subject {
    fn id(&self) -> &'static str {
        match self {
            Self::Sealing(part) => part.id(),
            Self::Command(command) => command.id(),
            Self::Operation(operation) => operation.id,
        }
    }

    /// A checkpoint writes thousands of pages to the file in the same way: every 500th stands for them, and the log's
    /// own are those of any other operation.
    fn wants(&self, point: &Point) -> bool {
        if let Self::Sealing(part) = self {
            return part.wants(point);
        }
        let is_page = point.call.name == "pwrite64";
        self.id() != catalogue::CHECKPOINT.id
            || !is_page
            || (point.call.place.ends_with("provost.db") && point.call.number.is_multiple_of(500))
    }

    fn attempt(&self, places: &mut Sites<'_>, point: Option<&Point>) -> Outcome<PointOutcome> {
        let station = &mut places.station;
        match self {
            Self::Sealing(part) => places.sealing.attempt(*part, point),
            Self::Command(command) => places.bench.attempt(*command, point),
            Self::Operation(operation) => {
                let is_key = point.is_some_and(|point| point.call.place.contains("/data/keys"));
                if is_key || operation.id == catalogue::CHECKPOINT.id {
                    // A day's key is made once, and each checkpoint fills a log of its own.
                    station.begin_again();
                }
                station.attempt(operation, point)
            }
        }
    }
}

fn could_not(failure: &Failure) -> String {
    format!("it could not be tried: {failure}")
}

/// An undisturbed run first; its trace has the points.
fn try_subject(
    arguments: &Arguments,
    mut random: Random,
    places: &mut Sites<'_>,
    subject: &Subject,
) -> Outcome<Tally> {
    let began = clock::now();
    let mut tally = Tally {
        subjects: 1,
        ..Tally::default()
    };
    let undisturbed = subject.attempt(places, None)?;
    tally.note(subject.id(), None, undisturbed.hit, undisturbed.violations);
    let all = fault::points(&undisturbed.calls, arguments.fault, |call| match subject {
        Subject::Sealing(_) => places.sealing.is_ours(call),
        Subject::Command(_) => places.bench.is_ours(call),
        Subject::Operation(_) => places.station.is_ours(call),
    });
    let all: Vec<Point> = all.into_iter().filter(|point| subject.wants(point)).collect();
    tally.calls = undisturbed.calls.len();
    let mut chosen: Vec<&Point> = all.iter().filter(|_| random.chance(arguments.sample)).collect();
    if chosen.is_empty() {
        chosen.extend(random.pick(&all.iter().collect::<Vec<_>>()));
    }
    let mut untried = 0;
    for point in chosen {
        let tried = subject.attempt(places, Some(point));
        let tried = match tried.context(point.name(subject.id())) {
            Ok(tried) => tried,
            Err(failure) if untried < PATIENCE => {
                // The points behind it can be tried nevertheless.
                untried += 1;
                places.station.begin_again();
                tally.note(subject.id(), Some(point), false, vec![could_not(&failure)]);
                continue;
            }
            Err(failure) => return Err(failure),
        };
        tally.note(subject.id(), Some(point), tried.hit, tried.violations);
    }
    tally.millis = u64::try_from(began.elapsed().as_millis()).unwrap_or(u64::MAX);
    Ok(tally)
}
