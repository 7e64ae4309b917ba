//! Secrets that get out (R30): unique ones go through every operation that takes or gives a secret and through its
//! failures, with the log at its most talkative; then they are looked for in everything that the server leaves behind.
//!
//! What is searched: the log, the store with its write-ahead log while the server runs and after it stopped, the keys
//! folder, a backup, the metrics, the exported audit log, the events, every answer that was a refusal, and a core dump.
//! Each secret is looked for raw, in hexadecimal, in base64 at its three alignments, percent-encoded and escaped.
//!
//! The memory of a running server is another matter: a caller's token was in its request, so it may stand in buffers that
//! were freed and not overwritten. What is promised is that no core dump is written, whatever the limits of the shell
//! that started the server say, and that is what is tried: `SIGABRT` with an unlimited core size. `--memory` also
//! searches what `gcore` (which needs root) takes of the running process, and reports the figures without judging them.
//!
//! Absent on purpose: signed access tokens, whose keys belong to a client; the suite of the server covers them.

mod needles;
mod routes;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use serde_json::Value;

use super::Choices;
use super::fixture::{self, Purpose};
use crate::bench::bench_store::BenchStore;
use crate::failure::{Context, Failure, Outcome};
use crate::http::{Connection, Request};
use crate::process;
use crate::product::{Bootstrap, Installation, Server, Store};
use crate::random::Random;
use needles::{Hit, Needles};
use routes::Rounds;

/// Send unique secrets everywhere, and look for them in everything that the server leaves behind
#[derive(clap::Args)]
pub struct Arguments {
    /// How many rounds through all operations; a round has some 30 secrets, and the goal is 10000
    #[arg(long, default_value_t = 10)]
    rounds: u32,
    /// Also take the memory of the running process with gcore, and say what is in it
    #[arg(long)]
    memory: bool,
    #[command(flatten)]
    choices: Choices,
}

/// An unknown member of a body is named in the answer to whoever sent it; a secret as a name is theirs alone to see, and
/// must be nowhere else.
const NAMED: (&str, &str) = ("searched/refusals", "the name of a member");

/// What was searched, and what was found in it.
#[derive(Default)]
struct Findings {
    places: Vec<(String, u64)>,
    hits: BTreeMap<(String, &'static str, &'static str), (usize, Hit)>,
}

pub fn run(arguments: &Arguments) -> Outcome {
    let purpose = Purpose {
        name: "leaks",
        goals: &["R30"],
        sizes: format!("--rounds {}", arguments.rounds),
        profile: "ci",
    };
    fixture::each(&arguments.choices, &purpose, |place, seed| {
        drive(arguments, place, seed)
    })
}

fn drive(arguments: &Arguments, place: &BenchStore, seed: u64) -> Outcome<String> {
    let installation = Installation {
        environment: vec![
            ("PROVOST_LOG", "trace".into()),
            ("PROVOST_LOG_FORMAT", "json".into()),
        ],
        ..place.installation.clone()
    };
    let bootstrap = installation.initialize()?;
    // The server inherits a shell that allows core dumps of any size.
    let me = std::process::id().to_string();
    process::output(Command::new("prlimit").args(["--core=unlimited:unlimited", "--pid", &me]))
        .context("core dumps cannot be allowed (this needs root)")?;
    let server = installation.serve()?;
    let mut needles = Needles::default();
    needles.add("token", secret_part(&bootstrap.token)?);
    let mut rounds = Rounds::begin(&bootstrap, server.address, Random::part(seed, 0), place.folder())?;
    for round in 1..=arguments.rounds {
        rounds
            .one(round, &mut needles)
            .context(format_args!("round {round}"))?;
        if round % 50 == 0 {
            eprintln!("{round} rounds, {} secrets", needles.len());
        }
    }
    let searched = place.folder().join("searched");
    std::fs::create_dir_all(&searched).context("cannot make a folder")?;
    rounds.write_refusals(&searched.join("refusals"))?;
    collect(&installation, &server, &bootstrap, &searched)?;
    // While it runs: what the write-ahead log holds goes into the store when it stops.
    copy_store(&installation.store, &searched.join("running"))?;
    let memory = if arguments.memory {
        let memory = memory(&server, &searched, &needles)?;
        println!("{memory}");
        Some(memory)
    } else {
        None
    };
    // A core dump that is there is searched with the rest before it is a fault.
    let core = abort(server, &searched);
    let mut findings = Findings::default();
    findings.search(&needles, place.folder())?;
    println!(
        "{} secrets of {} kinds: {:?}",
        needles.len(),
        needles.kinds.len(),
        needles.kinds
    );
    for (name, bytes) in &findings.places {
        println!("  {:>9} KiB  {name}", bytes.div_ceil(1024));
    }
    findings.judge()?;
    let core = core?;
    let total: u64 = findings.places.iter().map(|(_, bytes)| bytes).sum();
    Ok(format!(
        "{} unique secrets of {} kinds through {} requests, {} of them refused, at the log level trace: 0 hits in {} files \
         ({:.1} MiB: log, store, write-ahead log, keys, backup, metrics, audit export, events, refusals), each in 8 forms; \
         {core}{}",
        needles.len(),
        needles.kinds.len(),
        rounds.sent,
        rounds.refused,
        findings.places.len(),
        f64::from(u32::try_from(total >> 10).unwrap_or(u32::MAX)) / 1024.0,
        memory.map_or_else(String::new, |memory| format!(" {memory}"))
    ))
}

/// The random part of a token; the part before it is public and stands in lists and logs.
pub fn secret_part(token: &str) -> Outcome<&str> {
    let part = token.splitn(4, '_').nth(3).filter(|part| part.len() >= 43);
    part.context("a token without a secret")
}

/// Writes what the server tells others: metrics, audit log, events; and takes a backup.
fn collect(installation: &Installation, server: &Server, bootstrap: &Bootstrap, folder: &Path) -> Outcome {
    let write = |name: &str, bytes: &[u8]| {
        std::fs::write(folder.join(name), bytes).context(format_args!("cannot write {name}"))
    };
    let metrics = Request {
        token: None,
        ..Request::get("/metrics", "")
    };
    let metrics = Connection::new(server.metrics)
        .send(&metrics)
        .map_err(|lost| lost.why);
    write("metrics", &metrics.context("the metrics")?.body)?;
    let mut connection = Connection::new(server.address);
    for (name, path) in [
        ("audit-export", "audit/export?limit=10000"),
        ("events", "events?limit=100"),
    ] {
        let mut text = Vec::new();
        let mut next = path.to_owned();
        for _ in 0..1_000 {
            let request = Request::get(bootstrap.path(&next), &bootstrap.token);
            let answer = connection.send(&request).map_err(|lost| lost.why).context(name)?;
            if !answer.is_success() {
                return Err(Failure::new(format!("{name} is answered {}", answer.summary())));
            }
            text.extend_from_slice(&answer.body);
            // The export is lines, the last of which may name the next part; events are one object.
            let last = answer
                .body
                .rsplit(|byte| *byte == b'\n')
                .find(|line| !line.is_empty());
            let last: Value = serde_json::from_slice(last.unwrap_or_default()).unwrap_or_default();
            let Some(cursor) = last["nextCursor"].as_str() else {
                break;
            };
            next = format!("{path}&cursor={}", crate::clients::administrator::escaped(cursor));
        }
        write(name, &text)?;
    }
    let copy = folder.join("backup.db").display().to_string();
    installation.check(&["store", "backup", &copy])
}

fn copy_store(store: &Store, to: &Path) -> Outcome {
    let Store::Sqlite { data } = store else {
        return Ok(());
    };
    std::fs::create_dir_all(to).context("cannot make a folder")?;
    for name in ["provost.db", "provost.db-wal"] {
        let from = data.join(name);
        std::fs::copy(&from, to.join(name)).context(format_args!("cannot copy {name}"))?;
    }
    Ok(())
}

/// What `gcore` takes of the running process, and how many secrets of each kind are in it.
fn memory(server: &Server, folder: &Path, needles: &Needles) -> Outcome<String> {
    let base = folder.join("memory");
    let pid = server.pid().to_string();
    process::output(Command::new("gcore").arg("-o").arg(&base).arg(&pid)).context("gcore")?;
    let file = PathBuf::from(format!("{}.{pid}", base.display()));
    let size = file.metadata().context("gcore wrote nothing")?.len() >> 20;
    let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
    for hit in needles.search_file(&file)? {
        *counts.entry(hit.kind).or_default() += 1;
    }
    std::fs::remove_file(&file).context("cannot remove the memory")?;
    Ok(format!(
        "The memory of the running process ({size} MiB) held, by kind: {counts:?}, which is not judged."
    ))
}

/// Ends the server as a crash would, where nothing but itself keeps it from dumping core.
fn abort(server: Server, folder: &Path) -> Outcome<String> {
    let pid = server.pid();
    let place = std::fs::read_link(format!("/proc/{pid}/cwd")).context("where the server works")?;
    let cores = || -> Vec<PathBuf> {
        let files = std::fs::read_dir(&place).into_iter().flatten().flatten();
        files
            .map(|file| file.path())
            .filter(|path| {
                path.file_name()
                    .is_some_and(|name| name.to_string_lossy().starts_with("core"))
            })
            .collect()
    };
    let before = cores();
    process::signal(pid, "ABRT");
    let status = server.await_end(Duration::from_secs(30))?;
    let dumped = cores().into_iter().find(|core| !before.contains(core));
    if let Some(core) = dumped {
        let kept = folder.join("core");
        let size = core.metadata().map_or(0, |data| data.len()) >> 20;
        std::fs::rename(&core, &kept)
            .or_else(|_| std::fs::copy(&core, &kept).and_then(|_| std::fs::remove_file(&core)))
            .context("cannot keep the core dump")?;
        return Err(Failure::new(format!(
            "SIGABRT left a core dump of {size} MiB, and with it whatever was in memory ({status})"
        )));
    }
    Ok(format!(
        "SIGABRT with an unlimited core size left no core dump ({status})."
    ))
}

impl Findings {
    /// Searches every file below a folder.
    fn search(&mut self, needles: &Needles, folder: &Path) -> Outcome {
        let mut waiting = vec![folder.to_path_buf()];
        while let Some(here) = waiting.pop() {
            let files = std::fs::read_dir(&here).context(format_args!("cannot list {}", here.display()))?;
            for file in files {
                let path = file.context("cannot list a folder")?.path();
                if path.is_dir() {
                    waiting.push(path);
                    continue;
                }
                let name = path.strip_prefix(folder).unwrap_or(&path).display().to_string();
                let size = path.metadata().context("cannot see a file")?.len();
                for hit in needles.search_file(&path)? {
                    if (name.as_str(), hit.kind) == NAMED {
                        continue;
                    }
                    let found = self.hits.entry((name.clone(), hit.kind, hit.form));
                    found.or_insert_with(|| (0, hit.clone())).0 += 1;
                }
                self.places.push((name, size));
            }
        }
        self.places.sort();
        let all = [
            "server.log",
            "searched/metrics",
            "searched/audit-export",
            "searched/backup.db",
        ];
        match all.iter().find(|name| {
            !self
                .places
                .iter()
                .any(|(known, size)| known == *name && *size > 0)
        }) {
            Some(missing) => Err(Failure::new(format!("there is no {missing} to search"))),
            None => Ok(()),
        }
    }

    fn judge(&self) -> Outcome {
        if self.hits.is_empty() {
            return Ok(());
        }
        let lines = self.hits.iter().map(|((place, kind, form), (count, hit))| {
            format!(
                "\n  {place}: {count} × {kind}, {form}; the first at {}, after {:?}",
                hit.at, hit.before
            )
        });
        Err(Failure::new(format!(
            "secrets got out:{}",
            lines.collect::<String>()
        )))
    }
}
