//! Running cargo with its output in a file, and the failing tests that its output names.

use std::fs::File;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use crate::failure::{Context, Outcome};
use crate::{clock, process};

/// How a command ended.
pub enum Ended {
    Status(Option<i32>),
    OutOfTime,
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failing_test_is_named_once_in_both_runners_words() {
        let failed = "        FAIL [   0.004s] ( 3/12) provost-kernel token::tests::a_typo_is_refused\n\
                          Summary [   0.010s] 3/12 tests run: 2 passed, 1 failed, 3 skipped\n\
                                  FAIL [   0.004s] ( 3/12) provost-kernel token::tests::a_typo_is_refused\n";
        assert_eq!(failed_tests(failed), ["token::tests::a_typo_is_refused"]);
        let late = "     TIMEOUT [ 120.004s] (  1/100) provost-server::it oauth::slow\n";
        assert_eq!(failed_tests(late), ["oauth::slow"]);
        assert_eq!(
            failed_tests("test token::tests::x ... FAILED\n"),
            ["token::tests::x"]
        );
    }
}
