//! Fuzzing (R23): libFuzzer over the functions of the folder `fuzz`, with `AddressSanitizer` beneath what others wrote in C.
//!
//! What libFuzzer finds interesting is kept below the target folder, so that a later run goes on where this one was;
//! inputs of the corpus that is committed come first. A crash leaves its input there and fails the task.
//!
//! The compiler is the one at hand: the wrapper's flags are unstable, and are switched on for these builds alone.

use std::fs::File;
use std::path::Path;
use std::process::{Command, Stdio};

use crate::failure::{Context, Failure, Outcome};
use crate::record::Record;
use crate::{clock, process};

const TOOL: &str = "cargo-fuzz";
const VERSION: &str = "0.13.1";

/// Let libFuzzer look for inputs that break a promise of the parsers
#[derive(clap::Args)]
pub struct Arguments {
    /// Only these targets; all of the folder `fuzz` if none is named
    targets: Vec<String>,
    /// How many inputs each target tries
    #[arg(long, default_value_t = 1_000_000, value_parser = clap::value_parser!(u64).range(1..))]
    runs: u64,
    /// How long each target tries at most, in seconds
    #[arg(long, default_value_t = 300, value_parser = clap::value_parser!(u64).range(1..))]
    secs: u64,
    /// Keep what was reached for docs/assurance.md
    #[arg(long, conflicts_with = "targets")]
    record: bool,
}

/// What one target did.
struct TargetRun {
    target: String,
    runs: u64,
    secs: u64,
}

pub fn run(arguments: &Arguments) -> Outcome {
    let all = targets()?;
    if let Some(unknown) = arguments.targets.iter().find(|name| !all.contains(name)) {
        let message = format!("there is no target {unknown}; there are {}", all.join(", "));
        return Err(Failure::new(message));
    }
    let chosen = if arguments.targets.is_empty() {
        &all
    } else {
        &arguments.targets
    };
    let tool = process::find_or_install_crate(TOOL, VERSION)?;
    let folder = process::target().join("fuzz");
    // The same versions of all dependencies as the product.
    let locked = process::root().join("Cargo.lock");
    std::fs::copy(&locked, process::root().join("fuzz/Cargo.lock")).context("cannot copy Cargo.lock")?;
    println!("Building {} targets …", chosen.len());
    let mut build = cargo_fuzz(&tool, "build", &folder);
    process::output(&mut build)?;
    let mut tried = Vec::new();
    for target in chosen {
        let one = try_target(&tool, &folder, target, arguments)?;
        println!("{}: {} inputs in {} s, no crash", one.target, one.runs, one.secs);
        tried.push(one);
    }
    if arguments.record {
        record(arguments, &tried)?;
    }
    Ok(())
}

/// The names of all targets.
fn targets() -> Outcome<Vec<String>> {
    let folder = process::root().join("fuzz/fuzz_targets");
    let entries = std::fs::read_dir(&folder).context(format_args!("cannot list {}", folder.display()))?;
    let mut names: Vec<String> = entries
        .filter_map(|entry| entry.ok()?.path().file_stem()?.to_str().map(str::to_owned))
        .collect();
    names.sort();
    Ok(names)
}

fn cargo_fuzz(tool: &Path, verb: &str, folder: &Path) -> Command {
    let mut command = Command::new(tool);
    command.current_dir(process::root()).arg(verb);
    command.args(["--fuzz-dir", "fuzz", "--sanitizer", "address", "--target-dir"]);
    command.arg(folder.join("build"));
    command.env("RUSTC_BOOTSTRAP", "1").env_remove("CARGO_TARGET_DIR");
    command
}

fn try_target(tool: &Path, folder: &Path, target: &str, arguments: &Arguments) -> Outcome<TargetRun> {
    let [found, crashes] = ["found", "crashes"].map(|name| folder.join(name).join(target));
    for folder in [&found, &crashes] {
        std::fs::create_dir_all(folder).context(format_args!("cannot make {}", folder.display()))?;
    }
    let log = folder.join(format!("{target}.log"));
    let out = File::create(&log).context(format_args!("cannot write {}", log.display()))?;
    let mut fuzzer = cargo_fuzz(tool, "run", folder);
    fuzzer
        .arg(target)
        .arg(&found)
        .arg(format!("fuzz/corpus/{target}"));
    fuzzer.args(["--", "-print_final_stats=1", "-timeout=30"]);
    fuzzer.arg(format!("-runs={}", arguments.runs));
    fuzzer.arg(format!("-max_total_time={}", arguments.secs));
    fuzzer.arg(format!("-artifact_prefix={}/", crashes.display()));
    fuzzer.stdin(Stdio::null()).stdout(Stdio::null()).stderr(out);
    let begun = clock::now();
    let status = fuzzer.status().context("cannot run cargo-fuzz")?;
    let said = std::fs::read(&log).context(format_args!("cannot read {}", log.display()))?;
    let said = String::from_utf8_lossy(&said);
    if !status.success() {
        let last: Vec<&str> = said.lines().rev().take(40).collect();
        let last: Vec<&str> = last.into_iter().rev().collect();
        return Err(Failure::new(format!(
            "{target} found an input that breaks a promise; it lies in {}, and {} has all of this:\n{}",
            crashes.display(),
            log.display(),
            last.join("\n")
        )));
    }
    let runs = said
        .lines()
        .find_map(|line| line.strip_prefix("stat::number_of_executed_units:"));
    let runs = runs.and_then(|count| count.trim().parse().ok());
    Ok(TargetRun {
        target: target.to_owned(),
        runs: runs.context(format_args!("{} names no count of inputs", log.display()))?,
        secs: begun.elapsed().as_secs(),
    })
}

fn record(arguments: &Arguments, tried: &[TargetRun]) -> Outcome {
    let each: Vec<String> = tried
        .iter()
        .map(|one| format!("{} {}", one.target, one.runs))
        .collect();
    let figure = format!(
        "{} targets with AddressSanitizer, inputs tried by each: {}; no crash, no broken promise, none longer than 30 s.",
        tried.len(),
        each.join(", ")
    );
    let command = format!(
        "cargo xtask fuzz --runs {} --secs {}",
        arguments.runs, arguments.secs
    );
    Record::new(&["R23"], figure, command).write("fuzz")
}
