//! The course of a run: what is known, what is open, and the judges one after the other.

use std::io::Write;

use super::exceptions::{EXCEPTIONS, Exception};
use super::groups::{Group, Set};
use super::journal::{Entry, Journal, Stage, Verdict};
use super::mutant::Mutant;
use super::tool::Tool;
use crate::failure::{Context, Outcome};

/// A mutant in its place.
pub struct Member {
    pub group: &'static Group,
    pub set: &'static Set,
    pub mutant: Mutant,
}

/// What is known of a mutant.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Standing {
    Open,
    Unviable,
    Caught(Stage, Vec<String>),
    OutOfTime,
    /// No test can tell it from the original.
    Equivalent(&'static str),
    Escaped,
}

pub struct Course<'a> {
    pub tool: &'a Tool<'a>,
    pub journal: Journal,
    pub accept_earlier: bool,
}

impl Course<'_> {
    /// Lists the mutants of a group.
    pub fn members(&self, group: &'static Group) -> Outcome<Vec<Member>> {
        let mut members = Vec::new();
        for set in group.sets {
            let mutants = self.tool.list(set)?;
            members.extend(mutants.into_iter().map(|mutant| Member { group, set, mutant }));
        }
        Ok(members)
    }

    /// Judges what is not known yet.
    pub fn run(&mut self, members: &[Member]) -> Outcome {
        let mut sets: Vec<&'static Set> = Vec::new();
        for member in members {
            if !sets.iter().any(|set| std::ptr::eq(*set, member.set)) {
                sets.push(member.set);
            }
        }
        // All unit tests first: they cost little and say most.
        for stage in [Stage::Unit, Stage::Integration] {
            for set in &sets {
                self.judge(stage, set, members)?;
            }
        }
        Ok(())
    }

    fn judge(&mut self, stage: Stage, set: &'static Set, members: &[Member]) -> Outcome {
        let open: Vec<&Mutant> = members
            .iter()
            .filter(|member| std::ptr::eq(member.set, set) && self.is_open(&member.mutant, stage))
            .map(|member| &member.mutant)
            .collect();
        if open.is_empty() {
            return Ok(());
        }
        let judge = match stage {
            Stage::Unit => &set.unit,
            Stage::Integration => &set.integration,
        };
        println!(
            "{} mutants before the {} tests of {} {} {}",
            open.len(),
            stage.word(),
            judge.package,
            judge.targets.join(" "),
            judge.filter
        );
        let tool = self.tool;
        let mut place = 0;
        tool.judge(stage, judge, &open, |result| {
            let mutant = open.iter().find(|mutant| mutant.name == result.name);
            let mutant = mutant.context("cargo-mutants judged a mutant that it was not asked about")?;
            place += 1;
            println!(
                "[{place:3}/{}] {} … {} ({} s)",
                open.len(),
                mutant.name,
                said(&result.verdict),
                result.seconds
            );
            let _ = std::io::stdout().flush();
            self.journal.add(Entry {
                mutant: mutant.identity.clone(),
                commit: tool.scratch.commit.clone(),
                stage,
                verdict: result.verdict,
                seconds: result.seconds,
            })
        })
    }

    fn known(&self, mutant: &Mutant, stage: Stage) -> Option<&Entry> {
        self.journal
            .known(mutant, stage, &self.tool.scratch.commit, self.accept_earlier)
    }

    fn is_open(&self, mutant: &Mutant, stage: Stage) -> bool {
        let is_missed = |entry: &Entry| entry.verdict == Verdict::Missed;
        match stage {
            Stage::Unit => {
                self.known(mutant, Stage::Unit).is_none() && self.known(mutant, Stage::Integration).is_none()
            }
            Stage::Integration => {
                self.known(mutant, Stage::Unit).is_some_and(is_missed)
                    && self.known(mutant, Stage::Integration).is_none()
                    && exception(mutant).is_none()
            }
        }
    }

    /// What is known of a mutant by now.
    pub fn standing(&self, mutant: &Mutant) -> Standing {
        let stages = [Stage::Unit, Stage::Integration];
        let said = stages.map(|stage| self.known(mutant, stage).map(|entry| &entry.verdict));
        for (stage, verdict) in stages.into_iter().zip(said) {
            match verdict {
                Some(Verdict::Unviable) => return Standing::Unviable,
                Some(Verdict::OutOfTime) => return Standing::OutOfTime,
                Some(Verdict::Caught(tests)) => return Standing::Caught(stage, tests.clone()),
                Some(Verdict::Missed) | None => {}
            }
        }
        match (exception(mutant), said) {
            (Some(exception), [Some(_), _]) => Standing::Equivalent(exception.why),
            (None, [_, Some(_)]) => Standing::Escaped,
            _ => Standing::Open,
        }
    }

    /// The commits at which members were judged.
    pub fn commits(&self, members: &[Member]) -> usize {
        let stages = [Stage::Unit, Stage::Integration];
        let mut commits: Vec<&str> = members
            .iter()
            .flat_map(|member| stages.map(|stage| self.known(&member.mutant, stage)))
            .flatten()
            .map(|entry| entry.commit.as_str())
            .collect();
        commits.sort_unstable();
        commits.dedup();
        commits.len()
    }
}

fn exception(mutant: &Mutant) -> Option<&'static Exception> {
    let is_meant =
        |exception: &&Exception| exception.mutant == mutant.change && exception.line == mutant.line;
    EXCEPTIONS.iter().find(is_meant)
}

fn said(verdict: &Verdict) -> String {
    match verdict {
        Verdict::Unviable => "does not compile".to_owned(),
        Verdict::Caught(tests) => format!("caught by {}", tests.join(", ")),
        Verdict::OutOfTime => "the tests hang".to_owned(),
        Verdict::Missed => "not caught".to_owned(),
    }
}
