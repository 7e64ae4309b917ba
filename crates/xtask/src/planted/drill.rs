//! The drill itself: one patch after the other, and what is said about them at the end.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use super::Arguments;
use super::journal::{Entry, Journal};
use super::patch::{Patch, Run};
use super::runner::{Runner, Verdict};
use super::scratch::Scratch;
use crate::failure::{Context, Failure, Outcome};
use crate::postgres::{self, Cluster, Durability};
use crate::record::Record;
use crate::{clock, process};

pub fn run(arguments: &Arguments, patches: &[&Patch]) -> Outcome {
    let start = clock::now();
    let workplace = super::workplace()?;
    let logs = workplace.join("logs");
    std::fs::create_dir_all(&logs).context(logs.display())?;
    let scratch = Scratch::prepare(&workplace)?;
    let runner = Runner {
        scratch: &scratch,
        target: target(arguments, &workplace),
        logs,
        with_nextest: process::works(process::cargo().args(["nextest", "--version"])),
    };
    if !runner.with_nextest {
        println!(
            "cargo-nextest is not installed: every test of the named programs runs, which takes longer."
        );
    }
    let mut journal = Journal::open(&workplace)?;
    let known = |journal: &Journal, patch: &Patch| {
        let known = journal.known(patch, &scratch.commit, arguments.accept_earlier);
        known.filter(|_| !arguments.fresh).cloned()
    };
    let open: Vec<&Patch> = patches
        .iter()
        .copied()
        .filter(|patch| known(&journal, patch).is_none())
        .collect();
    let cluster = if open.iter().any(|patch| patch.needs_postgres) {
        Some(Cluster::start(&postgres::find_or_install()?, Durability::None)?)
    } else {
        None
    };
    println!(
        "{} planted bugs at {:.12}, {} of them known from the journal.",
        patches.len(),
        scratch.commit,
        patches.len() - open.len()
    );
    if !arguments.skip_clean {
        see_clean(&runner, &open, cluster.as_ref())?;
    }
    let mut entries = Vec::new();
    for (place, patch) in patches.iter().enumerate() {
        print!("[{:2}/{}] {} … ", place + 1, patches.len(), patch.name);
        let _ = std::io::Write::flush(&mut std::io::stdout());
        let entry = if let Some(entry) = known(&journal, patch) {
            entry
        } else {
            let entry = plant(&runner, patch, cluster.as_ref())?;
            journal.add(entry.clone())?;
            entry
        };
        println!("{} ({} s)", said(&entry.verdict), entry.seconds);
        entries.push(entry);
    }
    drop(cluster);
    let minutes = start.elapsed().as_secs().div_ceil(60);
    conclude(arguments, &entries, minutes)
}

fn target(arguments: &Arguments, workplace: &Path) -> PathBuf {
    let named = arguments.target_dir.as_ref();
    named.map_or_else(|| workplace.join("target"), |folder| process::root().join(folder))
}

/// Runs the tests without any bug: whatever fails there cannot catch one.
fn see_clean(runner: &Runner<'_>, patches: &[&Patch], cluster: Option<&Cluster>) -> Outcome {
    let runs: BTreeSet<(&Run, bool)> = patches
        .iter()
        .map(|patch| (&patch.run, patch.needs_postgres))
        .collect();
    for (place, (run, needs_postgres)) in runs.iter().enumerate() {
        print!("[{:2}/{}] without a bug: {run} … ", place + 1, runs.len());
        let _ = std::io::Write::flush(&mut std::io::stdout());
        let start = clock::now();
        let cluster = cluster.filter(|_| *needs_postgres);
        match runner.run(&format!("clean-{}", place + 1), run, cluster)? {
            Verdict::Escaped => println!("passes ({} s)", start.elapsed().as_secs()),
            Verdict::Caught(tests) => {
                return Err(Failure::new(format!(
                    "without any bug {} fails; it could not tell a bug",
                    tests.join(", ")
                )));
            }
            Verdict::Broken(why) => return Err(Failure::new(format!("without any bug: {why}"))),
        }
    }
    Ok(())
}

fn plant(runner: &Runner<'_>, patch: &Patch, cluster: Option<&Cluster>) -> Outcome<Entry> {
    let start = clock::now();
    let verdict = if let Err(failure) = runner.scratch.apply(&patch.file) {
        Verdict::Broken(format!("it does not apply: {failure}"))
    } else {
        let verdict = runner.run(&patch.name, &patch.run, cluster.filter(|_| patch.needs_postgres));
        // Also when the run could not be made: the next patch wants a clean tree.
        runner.scratch.revert()?;
        verdict?
    };
    Ok(Entry {
        name: patch.name.clone(),
        patch: patch.text.clone(),
        commit: runner.scratch.commit.clone(),
        verdict,
        seconds: start.elapsed().as_secs(),
    })
}

fn said(verdict: &Verdict) -> String {
    match verdict {
        Verdict::Caught(tests) => format!("caught by {}", tests.join(", ")),
        Verdict::Escaped => "ESCAPED".to_owned(),
        Verdict::Broken(why) => format!("BROKEN PATCH: {why}"),
    }
}

fn conclude(arguments: &Arguments, entries: &[Entry], minutes: u64) -> Outcome {
    let names = |wanted: fn(&Verdict) -> bool| {
        let names = entries.iter().filter(|entry| wanted(&entry.verdict));
        names.map(|entry| entry.name.as_str()).collect::<Vec<_>>()
    };
    let caught = names(Verdict::is_caught).len();
    let escaped = names(|verdict| *verdict == Verdict::Escaped);
    let broken = names(|verdict| matches!(verdict, Verdict::Broken(_)));
    let list = |names: &[&str]| {
        if names.is_empty() {
            String::new()
        } else {
            format!(" ({})", names.join(", "))
        }
    };
    let figure = format!(
        "{} bugs planted, {caught} caught by the tests of their areas, {} escaped{}, {} patches broken{}.",
        entries.len(),
        escaped.len(),
        list(&escaped),
        broken.len(),
        list(&broken)
    );
    println!("{figure} {minutes} minutes.");
    let need = arguments.need.unwrap_or(entries.len().saturating_sub(2));
    if caught < need {
        return Err(Failure::new(format!("{need} must be caught")));
    }
    if arguments.record {
        let mut commits: Vec<&str> = entries.iter().map(|entry| entry.commit.as_str()).collect();
        commits.sort_unstable();
        commits.dedup();
        let over = if commits.len() == 1 {
            String::new()
        } else {
            format!(" The runs were at {} commits one after the other.", commits.len())
        };
        Record::new(&["R45"], figure + &over, "cargo xtask planted").write("planted")?;
    }
    Ok(())
}
