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
//! A change of a constant, of a member left out of a structure or of what a function of a hidden type returns cannot be
//! asked for while the program runs: it is not tried, and the figures say how many these are.
//!
//! Absent on purpose: PostgreSQL. None of this code knows which engine it speaks to; the suite compares the engines.
//! Tests that start the program with an empty environment: they would not pass on which mutant is meant.

mod course;
mod exceptions;
mod groups;
mod journal;
mod mutant;
mod report;
mod trial;
mod weave;
mod workshop;

use std::path::PathBuf;

use crate::failure::{Context, Failure, Outcome};
use crate::planted::scratch::Scratch;
use crate::process;
use course::{Course, Member};
use groups::{GROUPS, Group};
use journal::Journal;
use workshop::Workshop;

/// Change the code that guards, in a scratch copy of the last commit, one small change at a time, and see tests fail
#[derive(clap::Args)]
#[expect(clippy::struct_excessive_bools, reason = "the flags of a command line")]
pub struct Arguments {
    /// Only these groups: authorization, idempotency, tokens, states
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
    /// Keep what was reached for docs/assurance.md
    #[arg(long, conflicts_with = "only")]
    record: bool,
}

pub fn run(arguments: &Arguments) -> Outcome {
    let chosen = arguments.chosen()?;
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
    let mut members = course.members(&chosen)?;
    members.retain(|member| arguments.wants(member));
    if members.is_empty() {
        return Err(Failure::new("no mutant is meant"));
    }
    if arguments.list {
        report::list(&course, &members);
        return Ok(());
    }
    println!("{} mutants at {:.12}.", members.len(), scratch.commit);
    course.run(&members)?;
    report::conclude(&course, &chosen, &members, arguments.record)
}

impl Arguments {
    fn chosen(&self) -> Outcome<Vec<&'static Group>> {
        if self.group.is_empty() {
            return Ok(GROUPS.iter().collect());
        }
        let find = |name: &String| {
            let found = GROUPS.iter().find(|group| group.name == name);
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
