//! Building and running the tests that must catch one bug, and what their output says.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::patch::Run;
use super::scratch::Scratch;
use crate::failure::{Context, Outcome};
use crate::postgres::Cluster;
use crate::{clock, process};

/// LIMIT: a build of one crate and its tests that takes longer hangs.
const BUILD_LIMIT: Duration = Duration::from_mins(45);
/// LIMIT: nextest ends a single test much earlier; this ends a runner that hangs itself.
const RUN_LIMIT: Duration = Duration::from_mins(30);

/// What came of one planted bug.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", tag = "result", content = "about")]
pub enum Verdict {
    /// These tests failed.
    Caught(Vec<String>),
    /// Every test passed.
    Escaped,
    /// The patch proves nothing, for this reason.
    Broken(String),
}

impl Verdict {
    pub fn is_caught(&self) -> bool {
        matches!(self, Self::Caught(_))
    }
}

/// Everything that runs have in common.
pub struct Runner<'a> {
    pub scratch: &'a Scratch,
    pub target: PathBuf,
    pub logs: PathBuf,
    pub with_nextest: bool,
}

/// How a command ended.
pub enum Ended {
    Status(Option<i32>),
    OutOfTime,
}

impl Runner<'_> {
    /// Builds and runs; `name` names the log.
    pub fn run(&self, name: &str, run: &Run, cluster: Option<&Cluster>) -> Outcome<Verdict> {
        let log = self.logs.join(format!("{name}.log"));
        let mut build = self.command(run, cluster);
        build.arg("--no-run");
        match watch(&mut build, &log, BUILD_LIMIT)? {
            Ended::OutOfTime => return Ok(Verdict::Broken("the build ran out of time".into())),
            Ended::Status(Some(0)) => {}
            Ended::Status(_) => {
                return Ok(Verdict::Broken(format!(
                    "it does not build, see {}",
                    log.display()
                )));
            }
        }
        let mut tests = self.command(run, cluster);
        if self.with_nextest {
            // The first failure says enough.
            tests.args(["--max-fail", "1:immediate"]);
            if !run.filter.is_empty() {
                tests.args(["-E", &run.filter]);
            }
        } else {
            tests.arg("--no-fail-fast");
        }
        let ended = watch(&mut tests, &log, RUN_LIMIT)?;
        let said = std::fs::read(&log).context(log.display())?;
        Ok(judge(&ended, &String::from_utf8_lossy(&said), &log))
    }

    fn command(&self, run: &Run, cluster: Option<&Cluster>) -> Command {
        let mut command = process::cargo();
        process::without_settings(&mut command);
        command
            .current_dir(self.scratch.folder())
            .env("CARGO_TARGET_DIR", &self.target)
            .env("CARGO_TERM_COLOR", "never");
        if self.with_nextest {
            command.args(["nextest", "run", "--cargo-profile", "ci", "--profile", "default"]);
        } else {
            command.args(["test", "--profile", "ci"]);
        }
        command.args(["-p", &run.package]).args(&run.targets);
        if let Some(cluster) = cluster {
            command.env("PROVOST_TEST_POSTGRES_URL", cluster.connection("postgres"));
            command.env("PROVOST_TEST_REQUIRE_POSTGRES", "1");
        }
        command
    }
}

/// Runs a command with its output in a file, for no longer than `limit`.
pub fn watch(command: &mut Command, log: &Path, limit: Duration) -> Outcome<Ended> {
    let output = File::create(log).context(log.display())?;
    let errors = output.try_clone().context(log.display())?;
    let mut child = command
        .stdin(Stdio::null())
        .stdout(output)
        .stderr(errors)
        .spawn()
        .context("cannot run cargo")?;
    let mut ended = None;
    clock::poll_until(limit, Duration::from_millis(50), || {
        ended = child.try_wait().transpose();
        ended.is_some()
    });
    let Some(status) = ended else {
        // Both runners pass the signal on to what they started.
        process::signal(child.id(), "TERM");
        child.wait().context("cannot wait for cargo")?;
        return Ok(Ended::OutOfTime);
    };
    Ok(Ended::Status(status.context("cannot wait for cargo")?.code()))
}

fn judge(ended: &Ended, said: &str, log: &Path) -> Verdict {
    let failed = failed_tests(said);
    match ended {
        Ended::OutOfTime => Verdict::Broken("the runner of the tests ran out of time".into()),
        _ if !failed.is_empty() => Verdict::Caught(failed),
        Ended::Status(Some(0)) if ran_a_test(said) => Verdict::Escaped,
        // nextest: 4 is “no tests to run”.
        Ended::Status(Some(0 | 4)) => Verdict::Broken("its line “Run:” names no test".into()),
        Ended::Status(code) => Verdict::Broken(format!(
            "the tests could not be run ({}), see {}",
            code.map_or_else(|| "by a signal".to_owned(), |code| format!("status {code}")),
            log.display()
        )),
    }
}

/// The tests that failed or were ended for taking too long, in both runners' words.
pub fn failed_tests(said: &str) -> Vec<String> {
    // SIGKILL and SIGTERM are missing: so end the tests that still ran when another one failed.
    const ENDS: [&str; 7] = [
        "FAIL",
        "LEAK-FAIL",
        "TIMEOUT",
        "ABORT",
        "SIGABRT",
        "SIGSEGV",
        "SIGBUS",
    ];
    let mut failed: Vec<String> = Vec::new();
    for line in said.lines().map(str::trim) {
        let by_nextest = line
            .split_once(" [")
            .filter(|(word, _)| ENDS.contains(&word.trim()))
            .and_then(|(_, rest)| rest.split_whitespace().last());
        let by_cargo = line
            .strip_prefix("test ")
            .and_then(|line| line.strip_suffix(" ... FAILED"));
        if let Some(name) = by_nextest.or(by_cargo) {
            let name = name.to_owned();
            if !failed.contains(&name) {
                failed.push(name);
            }
        }
    }
    failed
}

fn ran_a_test(said: &str) -> bool {
    said.lines().map(str::trim).any(|line| {
        let by_nextest = line.starts_with("Summary [") && !line.contains("] 0 tests run");
        let by_cargo = line.starts_with("test result: ok.") && !line.contains("ok. 0 passed");
        by_nextest || by_cargo
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const CLEAN: &str = "     Summary [   0.010s] 12 tests run: 12 passed, 3 skipped\n";
    const CAUGHT: &str = "        FAIL [   0.004s] ( 3/12) provost-kernel token::tests::a_typo_is_refused\n\
                          Summary [   0.010s] 3/12 tests run: 2 passed, 1 failed, 3 skipped\n\
                                  FAIL [   0.004s] ( 3/12) provost-kernel token::tests::a_typo_is_refused\n";

    fn judged(code: i32, said: &str) -> Verdict {
        judge(&Ended::Status(Some(code)), said, Path::new("log"))
    }

    #[test]
    fn a_failing_test_catches_and_is_named_once() {
        let name = "token::tests::a_typo_is_refused".to_owned();
        assert_eq!(judged(100, CAUGHT), Verdict::Caught(vec![name]));
        let late = "     TIMEOUT [ 120.004s] (  1/100) provost-server::it oauth::slow\n";
        assert_eq!(judged(100, late), Verdict::Caught(vec!["oauth::slow".into()]));
        let old = "test token::tests::x ... FAILED\n";
        assert_eq!(judged(101, old), Verdict::Caught(vec!["token::tests::x".into()]));
    }

    #[test]
    fn passing_tests_let_it_escape_and_none_at_all_prove_nothing() {
        assert_eq!(judged(0, CLEAN), Verdict::Escaped);
        assert_eq!(
            judged(0, "test result: ok. 3 passed; 0 failed\n"),
            Verdict::Escaped
        );
        assert!(matches!(judged(4, ""), Verdict::Broken(_)));
        assert!(matches!(
            judged(0, "test result: ok. 0 passed\n"),
            Verdict::Broken(_)
        ));
        assert!(matches!(
            judged(101, "error: could not compile"),
            Verdict::Broken(_)
        ));
        assert!(matches!(
            judge(&Ended::OutOfTime, CAUGHT, Path::new("log")),
            Verdict::Broken(_)
        ));
    }
}
