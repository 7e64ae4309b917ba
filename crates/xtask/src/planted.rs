//! The drill of planted bugs (R45): every patch of `tests/planted` is a bug that a colleague could have made, and
//! the tests of the area it stands in must notice.
//!
//! A patch is applied to a scratch worktree of the last commit below the target folder, never to the user's tree.
//! The tests that its `Run:` line names are built and run there; the bug is caught when at least one of them fails.
//! A patch that does not apply, does not build or runs no test proves nothing, and is said to be broken. Before the
//! first patch, the same tests are run without any: a test that fails anyway catches nothing.
//!
//! What was found stands in a journal below the target folder, so that a drill that was stopped goes on where it was.
//!
//! Absent on purpose: running the whole suite for each bug. A day of machine time would say less than the narrow run:
//! that the tests beside a promise keep it.

mod drill;
mod journal;
mod patch;
pub(crate) mod runner;
pub(crate) mod scratch;

use std::path::PathBuf;

use crate::failure::{Context, Failure, Outcome};
use crate::process;
use patch::Patch;

/// Plant some fifty bugs one by one, in a scratch copy of the last commit, and see the tests catch them
#[derive(clap::Args)]
#[expect(clippy::struct_excessive_bools, reason = "the flags of a command line")]
pub struct Arguments {
    /// Only the patches whose names contain one of these
    #[arg(long, num_args = 1.., value_name = "NAME")]
    only: Vec<String>,
    /// Only the patches from this number on
    #[arg(long, value_name = "NUMBER", default_value_t = 0)]
    from: u32,
    /// How many must be caught; all but two unless given
    #[arg(long, value_name = "COUNT")]
    need: Option<usize>,
    /// Show the patches and what each is about, run nothing
    #[arg(long)]
    list: bool,
    /// Only say which patches no longer apply, run nothing
    #[arg(long, conflicts_with = "list")]
    check: bool,
    /// Plant anew what the journal has already
    #[arg(long)]
    fresh: bool,
    /// Let what was caught at an earlier commit count
    #[arg(long, conflicts_with = "fresh")]
    accept_earlier: bool,
    /// Do not see the tests pass without any patch first
    #[arg(long)]
    skip_clean: bool,
    /// Build in this folder instead of one below the target folder
    #[arg(long, value_name = "FOLDER", env = "PROVOST_PLANTED_TARGET")]
    target_dir: Option<PathBuf>,
    /// Keep what was reached for docs/assurance.md
    #[arg(long, conflicts_with = "skip_clean")]
    record: bool,
}

pub fn run(arguments: &Arguments) -> Outcome {
    let every = patch::read_all()?;
    let chosen: Vec<&Patch> = every.iter().filter(|patch| arguments.wants(patch)).collect();
    if chosen.is_empty() {
        return Err(Failure::new(format!(
            "no patch of {} is meant",
            patch::folder().display()
        )));
    }
    if arguments.list {
        list(&chosen);
        return Ok(());
    }
    if arguments.check {
        return check(&chosen);
    }
    if arguments.record && chosen.len() < every.len() {
        return Err(Failure::new(
            "a record is about all patches: leave out --only and --from",
        ));
    }
    drill::run(arguments, &chosen)
}

impl Arguments {
    fn wants(&self, patch: &Patch) -> bool {
        let is_named = self.only.is_empty() || self.only.iter().any(|word| patch.name.contains(word));
        is_named && patch.number() >= self.from
    }
}

fn list(patches: &[&Patch]) {
    for patch in patches {
        println!("{} ({})\n    {}", patch.name, patch.promise, patch.bug);
        println!("    runs {}", patch.run);
    }
    println!("{} patches.", patches.len());
}

/// Says which patches do not apply to the tree as it is; changes nothing.
fn check(patches: &[&Patch]) -> Outcome {
    let mut stale = Vec::new();
    for patch in patches {
        let mut git = std::process::Command::new("git");
        git.current_dir(process::root())
            .args(["apply", "--check"])
            .arg(&patch.file);
        if let Err(failure) = process::output(&mut git) {
            eprintln!("{}: {failure}", patch.name);
            stale.push(patch.name.as_str());
        }
    }
    if stale.is_empty() {
        println!("All {} patches apply.", patches.len());
        return Ok(());
    }
    Err(Failure::new(format!(
        "{} of {} patches no longer apply: {}",
        stale.len(),
        patches.len(),
        stale.join(", ")
    )))
}

/// The folder of worktree, builds and journal.
fn workplace() -> Outcome<PathBuf> {
    let folder = process::target().join("planted");
    std::fs::create_dir_all(&folder).context(format_args!("cannot make {}", folder.display()))?;
    Ok(folder)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_patch_applies_to_the_tree_as_it_is() {
        let every = patch::read_all().unwrap();
        check(&every.iter().collect::<Vec<_>>()).unwrap();
    }

    #[test]
    fn fifty_bugs_are_planted_and_no_two_have_one_number() {
        let every = patch::read_all().unwrap();
        assert!(every.len() >= 50, "{}", every.len());
        let numbers: std::collections::BTreeSet<u32> = every.iter().map(Patch::number).collect();
        assert_eq!(numbers.len(), every.len());
    }
}
