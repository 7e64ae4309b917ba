//! The course of a run: what is known, what is open, and the judges one after the other.

use std::collections::BTreeMap;
use std::io::Write;

use super::exceptions::{EXCEPTIONS, Exception};
use super::groups::{GROUPS, Group, Set};
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
    tool: &'a Tool<'a>,
    journal: Journal,
    accept_earlier: bool,
    /// The trees of the judges' grounds.
    grounds: BTreeMap<&'static str, String>,
}

impl<'a> Course<'a> {
    pub fn new(tool: &'a Tool<'a>, journal: Journal, accept_earlier: bool) -> Outcome<Self> {
        let mut grounds = BTreeMap::new();
        for set in GROUPS.iter().flat_map(|group| group.sets) {
            for judge in [&set.unit, &set.integration] {
                if !grounds.contains_key(judge.ground) {
                    grounds.insert(judge.ground, tool.tree_of(judge.ground)?);
                }
            }
        }
        Ok(Self {
            tool,
            journal,
            accept_earlier,
            grounds,
        })
    }

    /// Leaves out what was found on the grounds as they are.
    pub fn begin_anew(&mut self) {
        for ground in self.grounds.values() {
            self.journal.forget(ground);
        }
    }

    fn ground(&self, set: &Set, stage: Stage) -> &str {
        let ground = self.grounds.get(set.judge(stage).ground);
        ground.map_or("", String::as_str)
    }
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
            .filter(|member| std::ptr::eq(member.set, set) && self.is_open(member, stage))
            .map(|member| &member.mutant)
            .collect();
        if open.is_empty() {
            return Ok(());
        }
        let judge = set.judge(stage);
        let ground = self.ground(set, stage).to_owned();
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
                ground: ground.clone(),
                stage,
                verdict: result.verdict,
                seconds: result.seconds,
            })
        })
    }

    fn known(&self, member: &Member, stage: Stage) -> Option<&Entry> {
        let ground = self.ground(member.set, stage);
        self.journal
            .known(&member.mutant, stage, ground, self.accept_earlier)
    }

    fn is_open(&self, member: &Member, stage: Stage) -> bool {
        let is_missed = |entry: &Entry| entry.verdict == Verdict::Missed;
        match stage {
            Stage::Unit => {
                self.known(member, Stage::Unit).is_none() && self.known(member, Stage::Integration).is_none()
            }
            Stage::Integration => {
                self.known(member, Stage::Unit).is_some_and(is_missed)
                    && self.known(member, Stage::Integration).is_none()
                    && exception(&member.mutant).is_none()
            }
        }
    }

    /// What is known of a mutant by now.
    pub fn standing(&self, member: &Member) -> Standing {
        let stages = [Stage::Unit, Stage::Integration];
        let said = stages.map(|stage| self.known(member, stage).map(|entry| &entry.verdict));
        for (stage, verdict) in stages.into_iter().zip(said) {
            match verdict {
                Some(Verdict::Unviable) => return Standing::Unviable,
                Some(Verdict::OutOfTime) => return Standing::OutOfTime,
                Some(Verdict::Caught(tests)) => return Standing::Caught(stage, tests.clone()),
                Some(Verdict::Missed) | None => {}
            }
        }
        match (exception(&member.mutant), said) {
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
            .flat_map(|member| stages.map(|stage| self.known(member, stage)))
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
