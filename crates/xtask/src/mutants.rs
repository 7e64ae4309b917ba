//! The mutation score (R44): the code that decides who may call, that a key acts once, what a token is and which state
//! follows which is changed, one small change at a time; the tests must notice. cargo-mutants says which changes there
//! are; `groups.rs` says which code and which goal.
//!
//! Building is what costs. So all changes are woven into one text that asks, at each place, which one is meant
//! (`weave.rs`), and the tests are built once; those that do not compile are taken out until the rest does
//! (`workshop.rs`). One run of all tests says which come to which change; then each change is meant once, before those
//! alone (`trial.rs`). A mutant that no test can tell from the original stands in `exceptions.rs` with the reason.
//!
//! All happens in a scratch worktree of the last commit below the target folder, never in the user's tree. What was
//! found stands in a journal beside it, so that a run that was stopped goes on where it was.
//!
//! `cargo xtask arms` takes away, by the same means, each part of what guards (`arms.rs`).
//!
//! A change of a constant, of a member left out of a structure or of what a function of a hidden type returns cannot be
//! asked for while the program runs: it is not tried, and the figures say how many these are.
//!
//! Absent on purpose: PostgreSQL. None of this code knows which engine it speaks to; the suite compares the engines.
//! Tests that start the program with an empty environment: they would not pass on which mutant is meant.

mod arms;
mod course;
mod exceptions;
mod groups;
mod journal;
mod mutant;
mod report;
mod runner;
mod trial;
mod weave;
mod workshop;

use std::path::PathBuf;

use crate::failure::{Context, Failure, Outcome};
use crate::process;
use crate::scratch::Scratch;
use course::{Course, Member};
use groups::{GROUPS, Group};
use journal::Journal;
use workshop::Workshop;

#[derive(clap::Args)]
#[expect(clippy::struct_excessive_bools, reason = "the flags of a command line")]
pub struct Arguments {
    /// Only these groups (mutants: authorization, idempotency, tokens, states; arms: rights, limits, filters)
    #[arg(long, num_args = 1.., value_name = "NAME")]
    group: Vec<String>,
    /// Only the mutants whose names contain one of these
    #[arg(long, num_args = 1.., value_name = "WORD")]
    only: Vec<String>,
    /// Show the mutants and what is known of them, run nothing
    #[arg(long)]
    list: bool,
    /// Judge anew what the journal has already
    #[arg(long)]
    fresh: bool,
    /// Let what other tests caught earlier count, where the changed code is the same
    #[arg(long, conflicts_with = "fresh")]
    accept_earlier: bool,
    /// Build in this folder instead of one below the target folder; never in one that builds of the checkout use, which
    /// would take what is woven for their own
    #[arg(long, value_name = "FOLDER", env = "PROVOST_MUTANTS_TARGET")]
    target_dir: Option<PathBuf>,
    /// Keep what was reached for docs/assurance.md; of arms, keep the table also where some escape or are open
    #[arg(long, conflicts_with = "only")]
    record: bool,
}

/// Makes the mutants that cargo-mutants lists.
pub fn run(arguments: &Arguments) -> Outcome {
    judge(arguments, GROUPS, false)
}

/// Takes the arms of what guards away.
pub fn run_arms(arguments: &Arguments) -> Outcome {
    judge(arguments, arms::GROUPS, true)
}

fn judge(arguments: &Arguments, groups: &'static [Group], are_arms: bool) -> Outcome {
    let chosen = arguments.chosen(groups)?;
    let workplace = workplace()?;
    let scratch = Scratch::prepare(&workplace)?;
    let target = arguments.target(&workplace);
    if target == process::target() {
        return Err(Failure::new(
            "builds of the checkout would take what is woven for their own: choose another --target-dir",
        ));
    }
    let workshop = Workshop::open(&scratch, target, workplace.clone())?;
    let mut course = Course::new(&workshop, Journal::open(&workplace)?, arguments.accept_earlier)?;
    if arguments.fresh {
        course.begin_anew();
    }
    let mut members = course.members(&chosen, are_arms)?;
    members.retain(|member| arguments.wants(member));
    if members.is_empty() {
        return Err(Failure::new("no mutant is meant"));
    }
    if arguments.list {
        report::list(&course, &members);
        return if are_arms && arguments.record {
            report::write_table(&course, &members)
        } else {
            Ok(())
        };
    }
    let word = if are_arms { "arms" } else { "mutants" };
    println!("{} {word} at {:.12}.", members.len(), scratch.commit);
    course.run(&members)?;
    report::conclude(&course, &chosen, &members, arguments.record.then_some(word))
}

impl Arguments {
    fn chosen(&self, groups: &'static [Group]) -> Outcome<Vec<&'static Group>> {
        if self.group.is_empty() {
            return Ok(groups.iter().collect());
        }
        let find = |name: &String| {
            let found = groups.iter().find(|group| group.name == name);
            found.context(format_args!("there is no group {name}"))
        };
        self.group.iter().map(find).collect()
    }

    fn wants(&self, member: &Member) -> bool {
        self.only.is_empty() || self.only.iter().any(|word| member.mutant.name.contains(word))
    }

    fn target(&self, workplace: &std::path::Path) -> PathBuf {
        let named = self.target_dir.as_ref();
        named.map_or_else(|| workplace.join("target"), |folder| process::root().join(folder))
    }
}

/// The folder of worktree, builds and journal.
fn workplace() -> Outcome<PathBuf> {
    let folder = process::target().join("mutants");
    std::fs::create_dir_all(&folder).context(format_args!("cannot make {}", folder.display()))?;
    Ok(folder)
}
