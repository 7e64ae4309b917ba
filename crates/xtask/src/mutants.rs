//! The mutation score (R44): cargo-mutants changes the code that decides who may call, that a key acts once, what a token is
//! and which state follows which, one small change at a time, and the tests must notice. `groups.rs` says which code is
//! meant and which share must be noticed.
//!
//! Every mutant is a build of its own, of some three minutes on two cores; all of them take a day and a half. For a change
//! under review, `-- --in-diff FILE` tries the mutants of its lines alone; `-- --shard 0/8` tries an eighth of them, and
//! `-- --iterate` leaves out those that an earlier run caught.
//!
//! All happens in a scratch worktree of the last commit below the target folder, never in the user's tree.
//!
//! Absent on purpose: PostgreSQL. None of this code knows which engine it speaks to; the suite compares the engines.
//! Building all mutants at once, to choose one while the program runs: it judged all of them in hours, and was five times the
//! code of the rest of this task (ADR 0078).

mod groups;

use std::path::Path;
use std::process::Command;

use crate::failure::{Context, Failure, Outcome};
use crate::process;
use crate::record::Record;
use crate::scratch::Scratch;
use groups::{EQUIVALENT, GROUPS, Group};

/// Pinned, because the mutants that exist are those of a version.
const VERSION: &str = "27.1.0";

/// What cargo-mutants says by its exit code: all were caught, some were missed, some ran out of time.
const JUDGED: [i32; 3] = [0, 2, 3];

/// Change the code that guards, in a scratch copy of the last commit, one small change at a time, and see tests fail
#[derive(clap::Args)]
pub struct Arguments {
    /// Only these groups: authorization, idempotency, tokens, states
    #[arg(long, num_args = 1.., value_name = "NAME")]
    group: Vec<String>,
    /// Show the mutants, run nothing
    #[arg(long)]
    list: bool,
    /// Keep what was reached for docs/assurance.md
    #[arg(long, conflicts_with_all = ["more", "list"])]
    record: bool,
    /// More options of cargo-mutants, such as --in-diff FILE, --shard K/N or --iterate
    #[arg(last = true)]
    more: Vec<String>,
}

pub fn run(arguments: &Arguments) -> Outcome {
    let groups = arguments.groups()?;
    let program = process::find_or_install_crate("cargo-mutants", VERSION)?;
    let workplace = process::target().join("mutants");
    let scratch = Scratch::prepare(&workplace)?;
    let mut figures = Vec::new();
    let mut below = Vec::new();
    for group in &groups {
        println!("{} ({}):", group.name, group.about);
        let folder = workplace.join(group.name);
        std::fs::create_dir_all(&folder).context(folder.display())?;
        let mut command = mutants(&program, &scratch, group);
        if arguments.list {
            process::run(command.arg("--list").args(&arguments.more))?;
            continue;
        }
        command
            .env("CARGO_TARGET_DIR", workplace.join("target"))
            // The first failing test says enough.
            .env("NEXTEST_MAX_FAIL", "1:immediate")
            .args(["--in-place", "--test-tool", "nextest", "--profile", "ci"])
            .args(["--test-workspace", "true", "--output"])
            .arg(&folder)
            .args(&arguments.more)
            // The unit tests of all crates, and the scenarios.
            .args(["--", "--lib", "--test", "it"]);
        let status = process::status(&mut command)?;
        if !status.code().is_some_and(|code| JUDGED.contains(&code)) {
            return Err(Failure::new(format!("cargo-mutants failed ({status})")));
        }
        let count = Count::read(&folder.join("mutants.out"), group)?;
        figures.push(count.words(group));
        if count.percent() < group.goal {
            below.push(format!("{} ({} %)", group.name, group.goal));
        }
    }
    for figure in &figures {
        println!("{figure}.");
    }
    if !below.is_empty() {
        return Err(Failure::new(format!("below the goal: {}", below.join(", "))));
    }
    if arguments.record {
        let names: Vec<&str> = groups.iter().map(|group| group.name).collect();
        let command = format!("cargo xtask mutants --group {}", names.join(" "));
        Record::new(&["R44"], format!("{}.", figures.join("; ")), command).write("mutants")?;
    }
    Ok(())
}

impl Arguments {
    fn groups(&self) -> Outcome<Vec<&'static Group>> {
        if self.group.is_empty() {
            return Ok(GROUPS.iter().collect());
        }
        let find = |name: &String| {
            let found = GROUPS.iter().find(|group| group.name == name);
            found.context(format_args!("there is no group {name}"))
        };
        self.group.iter().map(find).collect()
    }
}

/// cargo-mutants with the mutants of one group.
fn mutants(program: &Path, scratch: &Scratch, group: &Group) -> Command {
    let mut command = Command::new(program);
    process::without_settings(&mut command);
    // Without --workspace only the default members are looked at.
    command.current_dir(scratch.folder()).args([
        "mutants",
        "--workspace",
        "--no-config",
        "--colors",
        "never",
    ]);
    for source in group.sources {
        command.args(["--file", source.file, "--re", &source.expression()]);
    }
    for expression in EQUIVALENT {
        command.args(["--exclude-re", expression]);
    }
    command
}

/// How many mutants of a group came to which end.
#[derive(Clone, Copy, Debug, Default)]
struct Count {
    caught: usize,
    hanging: usize,
    missed: usize,
    unviable: usize,
}

impl Count {
    /// Reads the lists of a finished run, a mutant of the group on each line.
    fn read(folder: &Path, group: &Group) -> Outcome<Self> {
        let lines = |name: &str| {
            let file = folder.join(name);
            let text = std::fs::read_to_string(&file).context(file.display())?;
            Outcome::Ok(text.lines().filter(|line| group.has(line)).count())
        };
        Ok(Self {
            caught: lines("caught.txt")?,
            hanging: lines("timeout.txt")?,
            missed: lines("missed.txt")?,
            unviable: lines("unviable.txt")?,
        })
    }

    /// Rounded down, so that 100 means all. A test that hangs has noticed.
    fn percent(self) -> usize {
        let noticed = self.caught + self.hanging;
        (noticed * 100).checked_div(noticed + self.missed).unwrap_or(100)
    }

    fn words(self, group: &Group) -> String {
        format!(
            "{} ({}): {} % of {} mutants that compile, {} caught, {} made a test hang, {} escaped; {} do not compile",
            group.name,
            group.about,
            self.percent(),
            self.caught + self.hanging + self.missed,
            self.caught,
            self.hanging,
            self.missed,
            self.unviable
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_that_escapes_is_never_a_hundred_percent() {
        let count = Count {
            caught: 998,
            hanging: 1,
            missed: 1,
            unviable: 7,
        };
        assert_eq!(count.percent(), 99);
        assert_eq!(Count { missed: 0, ..count }.percent(), 100);
        assert_eq!(Count::default().percent(), 100);
    }
}
