//! cargo-mutants: where it comes from, and what it is asked to do.

use std::collections::{BTreeSet, HashSet};
use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use serde::Deserialize;

use super::groups::{Judge, Set};
use super::journal::{Stage, Verdict};
use super::mutant::{self, Mutant};
use crate::failure::{Context, Failure, Outcome};
use crate::planted::runner::failed_tests;
use crate::planted::scratch::Scratch;
use crate::{clock, process};

/// Pinned, because the mutants that exist are those of a version.
const VERSION: &str = "27.1.0";
/// LIMIT: a build that takes longer hangs. Units: seconds.
const BUILD_LIMIT_SECS: &str = "1800";
/// LIMIT: nextest ends a single test after two minutes; this ends tests that hang one after the other.
const TEST_LIMIT_SECS: &str = "1200";

/// Returns the program, built below the target folder if it is not there.
pub fn find_or_install() -> Outcome<PathBuf> {
    process::find_or_install_crate("cargo-mutants", VERSION)
}

/// Everything that its runs have in common.
pub struct Tool<'a> {
    pub program: PathBuf,
    pub scratch: &'a Scratch,
    pub target: PathBuf,
    pub workplace: PathBuf,
    pub with_nextest: bool,
}

/// What came of one mutant.
pub struct Result {
    /// [`Mutant::name`].
    pub name: String,
    pub verdict: Verdict,
    pub seconds: u64,
}

impl Tool<'_> {
    /// Names what a folder holds at the commit.
    pub fn tree_of(&self, folder: &str) -> Outcome<String> {
        let mut git = Command::new("git");
        git.current_dir(self.scratch.folder())
            .args(["rev-parse", &format!("HEAD:{folder}")]);
        Ok(process::output(&mut git)?.trim().to_owned())
    }

    /// Lists the mutants of some code.
    pub fn list(&self, set: &Set) -> Outcome<Vec<Mutant>> {
        let mut mutants = self.of_files(set.sources.iter().map(|source| source.file))?;
        mutants.retain(|mutant| {
            set.sources.iter().any(|source| {
                let is_named =
                    source.functions.is_empty() || source.functions.contains(&mutant.function.as_str());
                source.file == mutant.file && is_named
            })
        });
        Ok(mutants)
    }

    fn of_files<'f>(&self, files: impl IntoIterator<Item = &'f str>) -> Outcome<Vec<Mutant>> {
        let mut command = self.command();
        command.args(["--list", "--json"]);
        for file in files {
            command.args(["--file", file]);
        }
        mutant::read(&process::output(&mut command)?, self.scratch.folder())
    }

    /// Sees a judge's tests pass, then tries the mutants one after the other; `heard` is told of each as it is known.
    pub fn judge(
        &self,
        stage: Stage,
        judge: &Judge,
        mutants: &[&Mutant],
        mut heard: impl FnMut(Result) -> Outcome,
    ) -> Outcome {
        // Whatever a stopped run left planted.
        self.scratch.revert()?;
        let output = self.workplace.join("out").join(stage.word());
        let results = output.join("mutants.out");
        drop(std::fs::remove_dir_all(&output));
        std::fs::create_dir_all(&results).context(results.display())?;
        self.see_clean(judge, &output.join("clean.log"))?;
        let files: BTreeSet<&str> = mutants.iter().map(|mutant| mutant.file.as_str()).collect();
        let asked: HashSet<&str> = mutants.iter().map(|mutant| mutant.name.as_str()).collect();
        let mut others = self.of_files(files.iter().copied())?;
        others.retain(|mutant| !asked.contains(mutant.name.as_str()));
        // As if a run before had seen them: its filters by name pass over some kinds of mutants.
        let others: Vec<&str> = others.iter().map(|mutant| mutant.name.as_str()).collect();
        std::fs::write(results.join("previously_caught.txt"), others.join("\n"))
            .context(results.display())?;
        let mut command = self.command();
        // Its own baseline is of the changed package, whichever package judges.
        command.args(["--iterate", "--in-place", "--baseline", "skip", "--no-shuffle"]);
        command.args(["--timeout", TEST_LIMIT_SECS, "--build-timeout", BUILD_LIMIT_SECS]);
        command.args(["--profile", "ci", "--test-package", judge.package]);
        command.arg("--output").arg(&output);
        for file in files {
            command.args(["--file", file]);
        }
        for word in judge.targets {
            command.arg(format!("--cargo-arg={word}"));
        }
        if self.with_nextest {
            // The first failure says enough.
            command.args(["--test-tool", "nextest", "--", "--max-fail", "1:immediate"]);
            if !judge.filter.is_empty() {
                command.args(["-E", judge.filter]);
            }
        }
        let log = output.join("said.log");
        let said = File::create(&log).context(log.display())?;
        let errors = said.try_clone().context(log.display())?;
        let mut child = command
            .stdin(Stdio::null())
            .stdout(said)
            .stderr(errors)
            .spawn()
            .context("cannot run cargo-mutants")?;
        let count = follow(&mut child, &results, &log, &mut heard);
        // It outlives this run only where this run could not go on.
        if count.is_err() && matches!(child.try_wait(), Ok(None)) {
            process::signal(child.id(), "TERM");
            drop(child.wait());
        }
        let count = count?;
        if count < mutants.len() {
            return Err(Failure::new(format!(
                "cargo-mutants judged {count} of {} mutants, see {}",
                mutants.len(),
                log.display()
            )));
        }
        Ok(())
    }

    /// Runs a judge's tests without any mutant: whatever fails there cannot catch one.
    fn see_clean(&self, judge: &Judge, log: &Path) -> Outcome {
        let mut tests = process::cargo();
        process::without_settings(&mut tests);
        if self.with_nextest {
            tests.args(["nextest", "run", "--cargo-profile", "ci"]);
        } else {
            tests.args(["test", "--profile", "ci"]);
        }
        tests.args(["--package", judge.package]).args(judge.targets);
        if self.with_nextest && !judge.filter.is_empty() {
            tests.args(["-E", judge.filter]);
        }
        let said = File::create(log).context(log.display())?;
        let errors = said.try_clone().context(log.display())?;
        tests
            .current_dir(self.scratch.folder())
            .env("CARGO_TARGET_DIR", &self.target)
            .env("CARGO_TERM_COLOR", "never")
            .stdout(said)
            .stderr(errors);
        if process::status(&mut tests)?.success() {
            return Ok(());
        }
        Err(Failure::new(format!(
            "without any mutant the tests of {} fail, and could not tell one; see {}",
            judge.package,
            log.display()
        )))
    }

    fn command(&self) -> Command {
        let mut command = Command::new(&self.program);
        process::without_settings(&mut command);
        command
            .arg("mutants")
            .current_dir(self.scratch.folder())
            // Without it only the default members are looked at.
            .args(["--workspace", "--no-config", "--colors", "never"])
            .env("CARGO_TARGET_DIR", &self.target)
            .env("CARGO_TERM_COLOR", "never");
        command
    }
}

/// Reads the results while they come; returns how many mutants there were.
fn follow(
    child: &mut Child,
    results: &Path,
    log: &Path,
    heard: &mut impl FnMut(Result) -> Outcome,
) -> Outcome<usize> {
    let mut count = 0;
    loop {
        let mut ended = None;
        clock::poll_until(Duration::from_secs(1), Duration::from_millis(100), || {
            ended = child.try_wait().transpose();
            ended.is_some()
        });
        for outcome in read(&results.join("outcomes.json")).into_iter().skip(count) {
            count += 1;
            heard(outcome.judged(results)?)?;
        }
        if let Some(status) = ended {
            let code = status.context("cannot wait for cargo-mutants")?.code();
            // 0: all were caught, 2: some were missed, 3: some ran out of time.
            if !matches!(code, Some(0 | 2 | 3)) {
                return Err(Failure::new(format!(
                    "cargo-mutants failed, see {}",
                    log.display()
                )));
            }
            return Ok(count);
        }
    }
}

#[derive(Deserialize)]
struct Outcomes {
    outcomes: Vec<Judged>,
}

#[derive(Deserialize)]
struct Judged {
    scenario: Scenario,
    summary: String,
    log_path: PathBuf,
    phase_results: Vec<Phase>,
}

#[derive(Deserialize)]
enum Scenario {
    Baseline,
    Mutant(Named),
}

#[derive(Deserialize)]
struct Named {
    name: String,
}

#[derive(Deserialize)]
struct Phase {
    duration: f64,
}

/// What is known of mutants by now; nothing while the file is being written.
fn read(file: &Path) -> Vec<Judged> {
    let text = std::fs::read_to_string(file).unwrap_or_default();
    let outcomes = serde_json::from_str::<Outcomes>(&text).map(|all| all.outcomes);
    let mut outcomes = outcomes.unwrap_or_default();
    outcomes.retain(|outcome| matches!(outcome.scenario, Scenario::Mutant(_)));
    outcomes
}

impl Judged {
    fn judged(self, results: &Path) -> Outcome<Result> {
        let log = results.join(&self.log_path);
        let Scenario::Mutant(mutant) = self.scenario else {
            return Err(Failure::new("a result without a mutant"));
        };
        let verdict = match self.summary.as_str() {
            "Unviable" => Verdict::Unviable,
            "MissedMutant" => Verdict::Missed,
            "Timeout" => Verdict::OutOfTime,
            "CaughtMutant" => caught(&log)?,
            other => return Err(Failure::new(format!("a mutant came out as {other}"))),
        };
        let seconds: f64 = self.phase_results.iter().map(|phase| phase.duration).sum();
        Ok(Result {
            name: mutant.name,
            verdict,
            seconds: Duration::from_secs_f64(seconds.max(0.0)).as_secs(),
        })
    }
}

/// What the tests said that failed. A run that failed without a failing test, on a full disk for example, caught
/// nothing; a test that was ended for taking too long is told apart, because a busy machine does the same.
fn caught(log: &Path) -> Outcome<Verdict> {
    let said = std::fs::read(log).context(log.display())?;
    let said = String::from_utf8_lossy(&said);
    let failed = failed_tests(&said);
    if failed.is_empty() {
        return Err(Failure::new(format!(
            "the tests could not be run, see {}",
            log.display()
        )));
    }
    let has_hung = said.lines().any(|line| line.trim().starts_with("TIMEOUT ["));
    Ok(if has_hung {
        Verdict::OutOfTime
    } else {
        Verdict::Caught(failed)
    })
}
