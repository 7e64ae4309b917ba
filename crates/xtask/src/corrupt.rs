//! Flipped bits and torn pages of a closed store (R5): `cargo xtask corrupt`.
//!
//! A server makes accounts of every role, tokens that live and tokens that ended, and an audit log, and stops. Then one page
//! of its store is spoilt as disks spoil them, the server is started on it, and asked about every token, every account and
//! every entry of the log. What it answers must be what it answered before, or no answer: a refusal to start, a 5xx, a
//! check that names the fault.
//!
//! INVARIANT of the method: an unspoilt copy gives every answer of before; a run in which it does not proves nothing and
//! fails.
//!
//! Absent on purpose: PostgreSQL, which has checksums of its own pages (`initdb --data-checksums`); pages that are spoilt
//! while a server has the store open.

mod answers;
mod spoil;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use crate::failure::{Context, Failure, Outcome};
use crate::faults::base;
use crate::http::Connection;
use crate::product;
use crate::random::{self, Random};
use crate::record::Record;
use answers::{Answers, Difference, KnownTokens};
use base::Base;

/// Spoil one page of a closed store at a time, and look for answers that are silently wrong
#[derive(clap::Args)]
pub struct Arguments {
    /// How many stores are spoilt
    #[arg(long, default_value_t = 200)]
    count: u64,
    /// Repeats the choices of an earlier run
    #[arg(long)]
    seed: Option<u64>,
    /// How many are tried at once [default: one for each core]
    #[arg(long)]
    jobs: Option<usize>,
    /// Test this binary instead of building one
    #[arg(long)]
    binary: Option<PathBuf>,
    /// Keep what was reached for docs/assurance.md
    #[arg(long)]
    record: bool,
}

/// What came of one spoilt page.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum End {
    /// Every answer is that of before.
    Unharmed,
    /// The server does not start.
    RefusedToStart,
    /// Something was answered 5xx, and nothing wrong.
    Refused,
    /// Who may was refused, and a check names the fault.
    ShutOutAndTold,
    /// Who may was refused, and no check knows why.
    ShutOut,
    /// An answer is wrong, and a check names the fault.
    WrongAndTold,
    /// An answer is wrong, and no check knows.
    Wrong,
    /// A dead token was accepted, or a living one with more than it has.
    Allowed,
}

struct PageTrial {
    end: End,
    what: String,
}

pub fn run(arguments: &Arguments) -> Outcome {
    let seed = arguments.seed.unwrap_or_else(random::fresh_seed);
    let command = format!("cargo xtask corrupt --count {}", arguments.count);
    println!("seed {seed} (again with: {command} --seed {seed})");
    let binary = product::given(arguments.binary.as_ref(), "ci")?;
    let workplace = base::workplace("corrupt")?;
    let base = Base::make(&binary, &workplace)?;
    let known = {
        let installation = base::installation(&binary, &base.folder);
        let (now, past) = (base.folder.join("data/provost.db"), base.folder.join("past.db"));
        std::fs::copy(&now, &past).context("cannot keep the past of the store")?;
        let server = installation.serve()?;
        let known = KnownTokens::make(&mut Connection::new(server.address), &base.bootstrap)?;
        server.stop()?;
        known
    };
    let mut before = whole(&base, &known, &workplace.folder.join("whole"))?;
    let again = whole(&base, &known, &workplace.folder.join("whole"))?;
    before.keep_common(&again);
    before.check(&known)?;
    if !matches!(again.differ(&before, &known), Difference::None) {
        return Err(Failure::new(
            "two servers on unspoilt copies differ in what they answer",
        ));
    }
    let jobs = arguments
        .jobs
        .unwrap_or_else(|| std::thread::available_parallelism().map_or(1, std::num::NonZero::get));
    let (next, ends) = (AtomicU64::new(0), Mutex::new(Vec::new()));
    std::thread::scope(|scope| {
        for job in 0..jobs {
            let place = workplace.folder.join(format!("spoilt-{job}"));
            let (next, ends, base, known, before) = (&next, &ends, &base, &known, &before);
            scope.spawn(move || {
                loop {
                    let number = next.fetch_add(1, Ordering::SeqCst);
                    if number >= arguments.count {
                        return;
                    }
                    let tried = attempt(base, known, before, &place, seed, number);
                    let mut ends = ends.lock().unwrap_or_else(PoisonError::into_inner);
                    ends.push((number, tried));
                    if ends.len().is_multiple_of(100) {
                        println!("{} of {}", ends.len(), arguments.count);
                    }
                }
            });
        }
    });
    let mut ends = ends.into_inner().unwrap_or_else(PoisonError::into_inner);
    ends.sort_by_key(|(number, _)| *number);
    workplace.remove()?;
    told(arguments, &command, seed, ends)
}

/// Says what came of it, and fails where an answer was silently wrong.
fn told(arguments: &Arguments, command: &str, seed: u64, ends: Vec<(u64, Outcome<PageTrial>)>) -> Outcome {
    let mut counts: BTreeMap<End, u64> = BTreeMap::new();
    let mut silent = Vec::new();
    for (number, tried) in ends {
        let tried = tried.context(format_args!("number {number}"))?;
        *counts.entry(tried.end).or_default() += 1;
        if matches!(tried.end, End::ShutOut | End::Wrong | End::Allowed) {
            silent.push(format!("{:?}, number {number}: {}", tried.end, tried.what));
        }
    }
    let count = |end| counts.get(&end).copied().unwrap_or_default();
    let sentence = format!(
        "{} pages of a closed store spoilt one at a time (a bit, a byte, a sector of zeros or of the page's past, a page of \
         noise or of another place): {} changed no answer, {} kept the server from starting, {} were answered 5xx, {} \
         refused somebody and {} gave a wrong answer that a check names, {} refused somebody and {} gave a wrong answer \
         that no check names, {} let somebody do what they may not.",
        arguments.count,
        count(End::Unharmed),
        count(End::RefusedToStart),
        count(End::Refused),
        count(End::ShutOutAndTold),
        count(End::WrongAndTold),
        count(End::ShutOut),
        count(End::Wrong),
        count(End::Allowed),
    );
    println!("{sentence}");
    for line in &silent {
        println!("SILENT {line}");
    }
    if arguments.record {
        let record = Record::new(&["R5"], sentence, command.to_owned());
        record.with_seeds(seed.to_string()).write("corrupt")?;
    }
    if silent.is_empty() {
        return Ok(());
    }
    Err(Failure::new(format!(
        "{} answers were silently wrong with seed {seed}",
        silent.len()
    )))
}

/// What a server on a copy of the store said.
enum ServerVerdict {
    Answered(Answers),
    Ended(String),
}

/// What a server on an unspoilt copy says.
fn whole(base: &Base, known: &KnownTokens, place: &Path) -> Outcome<Answers> {
    match look_at(base, known, place, |_| Ok(String::new()))? {
        (ServerVerdict::Answered(answers), _) => Ok(answers),
        (ServerVerdict::Ended(why), _) => {
            Err(Failure::new(format!("an unspoilt store does not serve: {why}")))
        }
    }
}

/// Asks a server on a copy to which something was done.
fn look_at(
    base: &Base,
    known: &KnownTokens,
    place: &Path,
    spoil: impl FnOnce(&Path) -> Outcome<String>,
) -> Outcome<(ServerVerdict, String)> {
    let installation = base.copy(place)?;
    let what = spoil(&place.join("data/provost.db"))?;
    let mut server = installation.launch()?;
    let looked = match server.wait_until_ready(Duration::from_secs(30)) {
        Err(_) if server.has_ended() => {
            ServerVerdict::Ended(std::fs::read_to_string(&installation.log).unwrap_or_default())
        }
        Err(failure) => return Err(failure),
        Ok(()) => ServerVerdict::Answered(Answers::ask(
            &mut Connection::new(server.address),
            known,
            &base.bootstrap,
        )),
    };
    drop(server);
    let log = std::fs::read_to_string(&installation.log).unwrap_or_default();
    if log.contains("panicked at") {
        return Err(Failure::new(format!("{what}: the server panicked:\n{log}")));
    }
    Ok((looked, what))
}

fn attempt(
    base: &Base,
    known: &KnownTokens,
    before: &Answers,
    place: &Path,
    seed: u64,
    number: u64,
) -> Outcome<PageTrial> {
    let mut random = Random::part(seed, number);
    let past = base.folder.join("past.db");
    let (looked, what) = look_at(base, known, place, |file| spoil::one(file, &past, &mut random))?;
    let answers = match looked {
        ServerVerdict::Ended(_) => {
            return Ok(PageTrial {
                end: End::RefusedToStart,
                what,
            });
        }
        ServerVerdict::Answered(answers) => answers,
    };
    let difference = answers.differ(before, known);
    let installation = base::installation(&base.binary, place);
    let is_told = || {
        [&["store", "check"][..], &["audit", "verify"]]
            .iter()
            .any(|words| installation.check(words).is_err())
    };
    let end = match &difference {
        Difference::None => End::Unharmed,
        Difference::Refused => End::Refused,
        Difference::ShutOut(_) if is_told() => End::ShutOutAndTold,
        Difference::ShutOut(_) => End::ShutOut,
        Difference::Wrong(_) if is_told() => End::WrongAndTold,
        Difference::Wrong(_) => End::Wrong,
        Difference::Allowed(_) => End::Allowed,
    };
    let what = match difference {
        Difference::None | Difference::Refused => what,
        Difference::ShutOut(how) | Difference::Wrong(how) | Difference::Allowed(how) => {
            format!("{what}: {how}")
        }
    };
    Ok(PageTrial { end, what })
}
