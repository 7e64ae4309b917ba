//! Running the tests: once for all mutants to learn which test comes to which, then for each mutant those that do.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use super::journal::Verdict;
use super::mutant::Mutant;
use super::runner::{self, Ended, failed_tests};
use super::workshop::Workshop;
use crate::failure::{Context, Failure, Outcome};

/// LIMIT: nextest ends a single test earlier; this ends tests that hang one after the other.
const LIMIT: Duration = Duration::from_mins(20);

/// How many tests are asked before all others. Most mutants are caught by these; one that escapes is told by all.
const CLOSEST: usize = 48;

/// Test programs with the names of their tests.
pub type Tests = BTreeMap<String, BTreeSet<String>>;

/// Which tests come to which mutant.
pub type Reach = BTreeMap<usize, Tests>;

/// Runs every test with no mutant meant; returns which mutants each came to.
pub fn trace(workshop: &Workshop<'_>) -> Outcome<Reach> {
    let folder = workshop.folder.join("reach");
    drop(std::fs::remove_dir_all(&folder));
    std::fs::create_dir_all(&folder).context(folder.display())?;
    let log = workshop.folder.join("clean.log");
    let mut tests = runner(workshop, &packages())?;
    tests.env("XTASK_MUTANT_TRACE", &folder);
    if !matches!(watch(&mut tests, &log)?, Some(0)) {
        return Err(Failure::new(format!(
            "without any mutant the tests fail, and could not tell one; see {}",
            log.display()
        )));
    }
    read(&folder)
}

/// Reads what the tests wrote: a file for each, a number on each line.
fn read(folder: &Path) -> Outcome<Reach> {
    let mut reach = Reach::new();
    for entry in std::fs::read_dir(folder).context(folder.display())?.flatten() {
        let name = entry.file_name().to_string_lossy().into_owned();
        let (program, test) = name
            .split_once(' ')
            .context("a file of the trace is named oddly")?;
        let numbers = std::fs::read_to_string(entry.path()).context(&name)?;
        for number in numbers.lines() {
            let number = number
                .parse()
                .ok()
                .context("a line of the trace is not a number")?;
            let tests: &mut BTreeSet<String> = reach
                .entry(number)
                .or_default()
                .entry(program.into())
                .or_default();
            tests.insert(test.to_owned());
        }
    }
    Ok(reach)
}

/// Runs the tests that are closest to a mutant, with it meant. Returns nothing where these do not notice it and others
/// come to it too.
pub fn judge(
    workshop: &Workshop<'_>,
    number: usize,
    mutant: &Mutant,
    reach: &Reach,
) -> Outcome<Option<Verdict>> {
    let (closest, others) = in_two(mutant, number, reach);
    if closest.is_empty() {
        return Ok(Some(Verdict::Unreached));
    }
    let verdict = run(workshop, number, &closest)?;
    Ok((verdict != Verdict::Missed || others.is_empty()).then_some(verdict))
}

/// Runs all tests that come to some mutants, with these meant together, and then what failed for each of them alone: a
/// mutant that no test notices costs a share of one long run. One may hide another; it then counts as missed.
pub fn judge_together(workshop: &Workshop<'_>, numbers: &[usize], reach: &Reach) -> Outcome<Vec<Verdict>> {
    let of = |number: &usize| reach.get(number).into_iter().flat_map(each);
    let all = collect(numbers.iter().flat_map(of));
    let log = workshop.folder.join("together.log");
    let mut command = runner(workshop, &filter(&all))?;
    let meant: Vec<String> = numbers.iter().map(ToString::to_string).collect();
    command.env("XTASK_MUTANT", meant.join(","));
    let code = watch(&mut command, &log)?;
    let said = std::fs::read(&log).context(log.display())?;
    let failed: BTreeSet<String> = failed_tests(&String::from_utf8_lossy(&said))
        .into_iter()
        .collect();
    if code.is_some_and(|code| code != 0) && failed.is_empty() {
        return Err(Failure::new(format!(
            "the tests could not be run, see {}",
            log.display()
        )));
    }
    let verdict = |number: &usize| {
        // What ran out of time says nothing of the tests behind.
        let suspects = of(number).filter(|(_, test)| code.is_none() || failed.contains(*test));
        let suspects = collect(suspects);
        if suspects.is_empty() {
            return Ok(Verdict::Missed);
        }
        run(workshop, *number, &suspects)
    };
    numbers.iter().map(verdict).collect()
}

/// Parts the tests that come to a mutant: those that say words of its path, or come to few mutants, first.
fn in_two(mutant: &Mutant, number: usize, reach: &Reach) -> (Tests, Tests) {
    let mut mutants_of: BTreeMap<(&str, &str), usize> = BTreeMap::new();
    for (program, test) in reach.values().flat_map(each) {
        *mutants_of.entry((program, test)).or_default() += 1;
    }
    let words: Vec<&str> = mutant
        .file
        .split(['/', '.'])
        .filter(|word| !["crates", "src", "areas", "rs", "server", "model"].contains(word))
        .collect();
    let mut tests: Vec<_> = reach.get(&number).into_iter().flat_map(each).collect();
    tests.sort_by_key(|(program, test)| {
        let said = words.iter().filter(|word| test.contains(*word)).count();
        (
            std::cmp::Reverse(said),
            mutants_of.get(&(*program, *test)).copied(),
        )
    });
    let others = tests.split_off(tests.len().min(CLOSEST));
    (collect(tests), collect(others))
}

fn each(tests: &Tests) -> impl Iterator<Item = (&str, &str)> {
    tests
        .iter()
        .flat_map(|(program, names)| names.iter().map(|name| (program.as_str(), name.as_str())))
}

fn collect<'t>(tests: impl IntoIterator<Item = (&'t str, &'t str)>) -> Tests {
    let mut found = Tests::new();
    for (program, test) in tests {
        found
            .entry(program.to_owned())
            .or_default()
            .insert(test.to_owned());
    }
    found
}

fn run(workshop: &Workshop<'_>, number: usize, tests: &Tests) -> Outcome<Verdict> {
    let log = workshop.folder.join(format!("mutant-{number}.log"));
    let mut command = runner(workshop, &filter(tests))?;
    // The first failure says enough.
    command
        .args(["--max-fail", "1:immediate"])
        .env("XTASK_MUTANT", number.to_string());
    let code = watch(&mut command, &log)?;
    let said = std::fs::read(&log).context(log.display())?;
    let said = String::from_utf8_lossy(&said);
    let verdict =
        verdict(code, &said).context(format_args!("the tests could not be run, see {}", log.display()))?;
    drop(std::fs::remove_file(&log));
    Ok(verdict)
}

/// What the runner's code and words say. A run that failed without a failing test, on a full disk for example, says
/// nothing; a test that was ended for taking too long is told apart, because a busy machine does the same.
fn verdict(code: Option<i32>, said: &str) -> Option<Verdict> {
    let failed = failed_tests(said);
    let has_hung = said.lines().any(|line| line.trim().starts_with("TIMEOUT ["));
    match code {
        None => Some(Verdict::OutOfTime),
        Some(0) => Some(Verdict::Missed),
        Some(_) if has_hung => Some(Verdict::OutOfTime),
        Some(_) if failed.is_empty() => None,
        Some(_) => Some(Verdict::Caught(failed)),
    }
}

/// All tests of the crates that have guarded code.
fn packages() -> String {
    "package(provost-kernel) | package(provost-server)".to_owned()
}

/// These tests alone.
fn filter(tests: &Tests) -> String {
    let programs = tests.iter().map(|(program, names)| {
        let names: Vec<String> = names.iter().map(|name| format!("test(={name})")).collect();
        format!("(binary_id(={program}) & ({}))", names.join(" | "))
    });
    programs.collect::<Vec<_>>().join(" | ")
}

/// The runner for some tests. They are named in a file: the names of all tests are too long for a command line.
fn runner(workshop: &Workshop<'_>, filter: &str) -> Outcome<Command> {
    let settings = workshop.folder.join("nextest.toml");
    let text = format!(
        "[profile.default]\ndefault-filter = '{filter}'\nfail-fast = false\nretries = 0\n\
         slow-timeout = {{ period = \"30s\", terminate-after = 6, grace-period = \"5s\" }}\n\
         status-level = \"fail\"\nfinal-status-level = \"fail\"\nfailure-output = \"never\"\n"
    );
    std::fs::write(&settings, text).context(settings.display())?;
    Ok(workshop.runner(&settings))
}

/// Runs a command with its output in a file; returns how it ended, and nothing when it had to be ended.
fn watch(command: &mut Command, log: &Path) -> Outcome<Option<i32>> {
    Ok(match runner::watch(command, log, LIMIT)? {
        Ended::OutOfTime => None,
        Ended::Status(code) => Some(code.unwrap_or(-1)),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::process;

    #[test]
    fn a_trace_is_read_and_names_the_tests_again() {
        let folder = process::target().join(format!("mutants-trace-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        std::fs::write(folder.join("provost-kernel auth::tests::a"), "3\n5\n").unwrap();
        std::fs::write(folder.join("provost-server::it oauth::b"), "5\n").unwrap();
        let reach = read(&folder).unwrap();
        std::fs::remove_dir_all(&folder).unwrap();
        assert_eq!(
            filter(&reach[&3]),
            "(binary_id(=provost-kernel) & (test(=auth::tests::a)))"
        );
        assert_eq!(
            filter(&reach[&5]),
            "(binary_id(=provost-kernel) & (test(=auth::tests::a))) | \
             (binary_id(=provost-server::it) & (test(=oauth::b)))"
        );
    }

    #[test]
    fn the_closest_tests_are_asked_first_and_none_is_left_out() {
        let mutant = Mutant {
            file: "crates/server/src/areas/oauth/grants.rs".into(),
            ..Mutant::sample("m")
        };
        let mut reach = Reach::new();
        let (named, wide) = ("oauth::grants_end", "decisions::everything");
        for other in 0..5 {
            reach.insert(other, collect([("it", named), ("it", wide)]));
        }
        let narrow: Vec<String> = (0..60).map(|count| format!("many::{count:02}")).collect();
        let all = narrow.iter().map(|name| ("it", name.as_str()));
        reach.insert(7, collect(all.chain([("it", named), ("it", wide)])));
        let (closest, others) = in_two(&mutant, 7, &reach);
        assert_eq!(each(&closest).count(), CLOSEST);
        assert!(closest["it"].contains(named));
        assert!(others["it"].contains(wide));
        let parts: BTreeSet<_> = each(&closest).chain(each(&others)).collect();
        assert_eq!(parts, each(&reach[&7]).collect());
    }

    #[test]
    fn a_run_that_fails_without_a_test_says_nothing() {
        let caught = "        FAIL [   0.004s] ( 3/12) provost-kernel token::tests::a_typo_is_refused\n";
        let name = "token::tests::a_typo_is_refused".to_owned();
        assert_eq!(verdict(Some(100), caught), Some(Verdict::Caught(vec![name])));
        assert_eq!(verdict(Some(0), ""), Some(Verdict::Missed));
        assert_eq!(verdict(Some(100), "no space left"), None);
        assert_eq!(verdict(None, caught), Some(Verdict::OutOfTime));
        let late = "     TIMEOUT [ 180.004s] (  1/100) provost-server::it oauth::slow\n";
        assert_eq!(verdict(Some(100), late), Some(Verdict::OutOfTime));
    }
}
