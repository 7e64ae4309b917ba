//! What a stranger can learn (R31): records of another organization and records that never were must answer with the
//! same bytes, and cost the same work within 1 %.
//!
//! Every operation that names a record is called, with a token of one organization, about a record of another one and
//! about none. Its answers are compared byte by byte, but for the request's own id. Its work is counted in instructions
//! by valgrind's callgrind, which has the server stand still for nothing else: times say less and lie more.
//!
//! INVARIANT of the driver: batches about either kind take turns, and both kinds of a case are sent over one connection
//! with texts of the same lengths. What the server does in the background is as much as what it does for a batch, and
//! comes when it likes. So a round is judged function by function and thread by thread: what a function does more for the
//! one kind than for the other, in the median of the rounds, is summed up. A batch is of one kind, so that what depends on
//! it is in every round; what comes now and then is not, and falls out. A case is counted until its error is small enough
//! to judge by, in larger batches if need be, and one that stays too noisy fails instead of passing. What was told is
//! written down, so that a run of an hour can go on after the noise of a neighbour.
//!
//! Absent on purpose: PostgreSQL, whose work is done by other processes that callgrind does not see.

mod cases;
mod counted;
mod weighed;

use std::time::Duration;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::Choices;
use super::fixture::{self, Purpose};
use crate::bench::bench_store::BenchStore;
use crate::bench::report::median;
use crate::failure::{Context, Failure, Outcome};
use crate::http::{Answer, Connection};
use crate::journal::{self, Journal};
use crate::process;
use crate::random::Random;
use cases::{Case, Kind};
use counted::{CallgrindServer, Costs};
use weighed::Round;

/// Ask for records of another organization and for none, and compare the answers and the instructions
#[derive(clap::Args)]
pub struct Arguments {
    /// Requests in a batch, at first; more when they cannot be told from the background
    #[arg(long, default_value_t = 20)]
    batch: u32,
    /// Batches about either kind, at most; fewer when they agree earlier
    #[arg(long, default_value_t = 64)]
    rounds: usize,
    /// Only the operations whose id contains this
    #[arg(long)]
    operation: Option<String>,
    /// Only operations that read: every change is a commit, which takes some hundred times as long
    #[arg(long)]
    reads: bool,
    /// Take over what an earlier run of the same binary could tell, and count the rest
    #[arg(long)]
    go_on: bool,
    #[command(flatten)]
    choices: Choices,
}

/// The goal: the share by which the work may differ.
const GOAL: f64 = 0.01;

/// How many standard errors a difference must be away from the goal, to be below or above it.
const SURE: f64 = 2.0;

/// How many times as many requests a batch has at most.
const LARGEST: u32 = 16;

/// Batches about either kind that are counted in any case: fewer agree by chance.
const LEAST: usize = 4 * FOLDS;

/// Parts of the batches that are judged by themselves, to know how far they agree.
const FOLDS: usize = 4;

/// Requests of either kind before anything is counted: statements are prepared and pools are filled.
const WARM: u32 = 10;

/// The server takes some 50 times as long as without valgrind.
const PATIENCE: Duration = Duration::from_mins(3);

pub fn run(arguments: &Arguments) -> Outcome {
    if arguments.choices.engine.has_postgres() {
        return Err(Failure::new(
            "callgrind counts what the server does, and on PostgreSQL another process does it: use --engine sqlite",
        ));
    }
    counted::find_or_install()?;
    let purpose = Purpose {
        name: "strangers",
        goals: &["R31"],
        sizes: format!(
            "--batch {} --rounds {}{}{}",
            arguments.batch,
            arguments.rounds,
            if arguments.reads { " --reads" } else { "" },
            if arguments.go_on { " --go-on" } else { "" }
        ),
        profile: "ci",
    };
    if arguments.choices.record && arguments.operation.is_some() {
        return Err(Failure::new(
            "a record is about all operations: leave out --operation",
        ));
    }
    fixture::each(&arguments.choices, &purpose, |place, seed| {
        drive(arguments, place, seed)
    })
}

/// One line of the journal.
#[derive(Serialize, Deserialize)]
struct Entry {
    /// The counted binary: another one costs something else.
    binary: u64,
    found: CaseFinding,
}

/// What was found about one case.
#[derive(Clone, Serialize, Deserialize)]
struct CaseFinding {
    name: String,
    /// Instructions of a request about a foreign record, over those of one about none.
    ratio: f64,
    error: f64,
    /// Where most of the difference is.
    most: String,
}

fn drive(arguments: &Arguments, place: &BenchStore, seed: u64) -> Outcome<String> {
    let mut cases = cases::make(place, &mut Random::part(seed, 0))?;
    cases.retain(|case| case.is_read() || !arguments.reads);
    if let Some(word) = &arguments.operation {
        cases.retain(|case| case.name.contains(word.as_str()));
    }
    if cases.is_empty() {
        return Err(Failure::new("no operation is meant"));
    }
    let binary = journal::name_of(&place.installation.binary)?;
    let mut journal = journal()?;
    let mut server = CallgrindServer::start(&place.installation, place.folder(), PATIENCE)?;
    let mut connection = Connection::new(server.address());
    let (mut found, mut violations) = (Vec::new(), Vec::new());
    let count = cases.len();
    for (number, case) in cases.iter_mut().enumerate() {
        if let Some(violation) = compare(case, &mut connection)? {
            println!("VIOLATION {violation}");
            violations.push(violation);
            continue;
        }
        let earlier = arguments
            .go_on
            .then(|| told(&journal, &case.name, binary))
            .flatten();
        let one = match earlier {
            Some(found) => found,
            None => weigh(arguments, case, &mut server, &mut connection).context(&case.name)?,
        };
        println!(
            "{:3}/{count} {}: {:.4} times the instructions (error {:.4})",
            number + 1,
            one.name,
            one.ratio,
            one.error
        );
        violations.extend(one.violation());
        journal.add(Entry {
            binary,
            found: one.clone(),
        })?;
        found.push(one);
    }
    server.stop()?;
    conclude(&found, &violations, arguments.batch)
}

fn journal() -> Outcome<Journal<Entry>> {
    let workplace = process::target().join("endure-strangers");
    std::fs::create_dir_all(&workplace).context(workplace.display())?;
    Journal::open(&workplace)
}

/// What an earlier run found about a case, if it could tell.
fn told(journal: &Journal<Entry>, case: &str, binary: u64) -> Option<CaseFinding> {
    let mut entries = journal.entries.iter().rev();
    let entry = entries
        .find(|entry| entry.binary == binary && entry.found.name == case && entry.found.is_judged())?;
    Some(entry.found.clone())
}

impl CaseFinding {
    fn deviation(&self) -> f64 {
        (self.ratio - 1.0).abs()
    }

    /// Whether the difference is certainly below the goal or certainly above it.
    fn is_judged(&self) -> bool {
        (self.deviation() - GOAL).abs() > SURE * self.error
    }

    fn violation(&self) -> Option<String> {
        let Self {
            name,
            ratio,
            error,
            most,
        } = self;
        if !self.is_judged() {
            return Some(format!(
                "{name}: counts differ too much to tell ({ratio:.4}, error {error:.4})"
            ));
        }
        (self.deviation() > GOAL).then(|| {
            format!(
                "{name}: a foreign record takes {ratio:.4} times the instructions of none (error {error:.4}), most of it \
                 in {most}"
            )
        })
    }
}

/// Compares the answers themselves; both refuse, and say the same.
fn compare(case: &mut Case, connection: &mut Connection) -> Outcome<Option<String>> {
    let mut answers = Vec::new();
    for turn in 0..WARM {
        for kind in Kind::BOTH {
            let answer = send(case, kind, connection)?;
            if turn == 0 {
                answers.push(answer);
            }
        }
    }
    let shown = |answer: &Answer| masked(answer).map(|body| (answer.status, body));
    let (foreign, absent) = (shown(&answers[0])?, shown(&answers[1])?);
    if foreign != absent {
        return Ok(Some(format!(
            "{}: a foreign record is answered {}, and none {}",
            case.name,
            answers[0].summary(),
            answers[1].summary()
        )));
    }
    let refused = [403, 404].contains(&foreign.0);
    Ok((!refused).then(|| format!("{}: neither was refused: {}", case.name, answers[0].summary())))
}

/// The body without the id of its request.
fn masked(answer: &Answer) -> Outcome<Value> {
    let mut body = answer.json()?;
    if let Some(id) = body.get_mut("requestId") {
        *id = Value::Null;
    }
    Ok(body)
}

fn send(case: &mut Case, kind: Kind, connection: &mut Connection) -> Outcome<Answer> {
    connection
        .send(case.next(kind))
        .map_err(|lost| Failure::new(lost.why))
}

fn weigh(
    arguments: &Arguments,
    case: &mut Case,
    server: &mut CallgrindServer,
    connection: &mut Connection,
) -> Outcome<CaseFinding> {
    let mut size = arguments.batch;
    loop {
        let found = weigh_batches(size, arguments.rounds, case, server, connection)?;
        if found.is_judged() || size >= arguments.batch * LARGEST {
            return Ok(found);
        }
        // The less a request costs, the more of them it takes to stand out from the background.
        size *= 4;
    }
}

fn weigh_batches(
    size: u32,
    most: usize,
    case: &mut Case,
    server: &mut CallgrindServer,
    connection: &mut Connection,
) -> Outcome<CaseFinding> {
    let mut rounds: Vec<Round> = Vec::new();
    loop {
        rounds.push(round(size, rounds.len(), case, server, connection)?);
        if !rounds.len().is_multiple_of(2 * FOLDS) || rounds.len() < LEAST {
            continue;
        }
        let place = weighed::most(&rounds).map(|(site, more)| format!("{} ({more:+})", server.name(site)));
        let found = CaseFinding {
            name: case.name.clone(),
            ratio: weighed::ratio(&rounds),
            error: weighed::standard_error(&rounds, FOLDS),
            most: place.unwrap_or_default(),
        };
        if found.is_judged() || rounds.len() >= most {
            return Ok(found);
        }
    }
}

/// The instructions of a batch about either kind; which one comes first changes from round to round.
fn round(
    size: u32,
    number: usize,
    case: &mut Case,
    server: &mut CallgrindServer,
    connection: &mut Connection,
) -> Outcome<Round> {
    let mut counts = [Costs::new(), Costs::new()];
    let mut order = [0, 1];
    order.rotate_left(number % 2);
    for place in order {
        server.zero()?;
        for _ in 0..size {
            send(case, Kind::BOTH[place], connection)?;
        }
        counts[place] = server.count()?;
    }
    Ok(counts)
}

fn conclude(found: &[CaseFinding], violations: &[String], batch: u32) -> Outcome<String> {
    if !violations.is_empty() {
        return Err(Failure::new(violations.join("\n")));
    }
    let deviations: Vec<f64> = found.iter().map(CaseFinding::deviation).collect();
    let worst = found
        .iter()
        .max_by(|one, other| one.deviation().total_cmp(&other.deviation()))
        .context("nothing was counted")?;
    Ok(format!(
        "{} kinds of requests about records of another organization and about none, in batches of {batch} or more: the same \
         bytes but for the request's id, and instructions that differ by {:.2} % in the median and by {:.2} % at most \
         ({}, standard error {:.2} %).",
        found.len(),
        median(&deviations) * 100.0,
        worst.deviation() * 100.0,
        worst.name,
        worst.error * 100.0
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(ratio: f64, error: f64) -> CaseFinding {
        CaseFinding {
            name: "one".into(),
            ratio,
            error,
            most: String::new(),
        }
    }

    #[test]
    fn what_could_not_be_told_and_what_another_binary_cost_is_counted_again() {
        let folder = process::target().join(format!("strangers-journal-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let mut journal = Journal::open(&folder).unwrap();
        for (binary, found) in [(7, found(1.001, 0.001)), (8, found(1.009, 0.002))] {
            journal.add(Entry { binary, found }).unwrap();
        }
        let journal = Journal::open(&folder).unwrap();
        assert!((told(&journal, "one", 7).unwrap().ratio - 1.001).abs() < 1e-9);
        assert!(told(&journal, "one", 8).is_none() && told(&journal, "one", 9).is_none());
        assert!(told(&journal, "another", 7).is_none());
        std::fs::remove_dir_all(&folder).unwrap();
    }

    #[test]
    fn more_than_the_goal_and_more_than_can_be_told_are_violations() {
        assert!(found(1.009, 0.0004).violation().is_none());
        assert!(found(1.0, 0.004).violation().is_none());
        assert!(found(1.02, 0.002).violation().is_some());
        assert!(found(0.97, 0.002).violation().is_some());
        assert!(found(1.009, 0.001).violation().is_some());
        assert!(found(1.0, 0.006).violation().is_some());
    }
}
