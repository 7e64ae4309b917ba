//! The course of a run: what is known, what is open, and one trial after the other.

use std::io::Write;

use super::arms;
use super::exceptions::{EXCEPTIONS, Exception};
use super::groups::Group;
use super::journal::{Entry, Journal, Verdict};
use super::mutant::Mutant;
use super::trial::{self, Reach};
use super::weave::Apart;
use super::workshop::Workshop;
use crate::clock;
use crate::failure::Outcome;

/// How many mutants that the closest tests do not notice are meant in one run of all tests.
const TOGETHER: usize = 8;

/// A mutant in its group.
pub struct Member {
    pub group: &'static Group,
    pub mutant: Mutant,
}

/// What is known of a mutant.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Standing {
    Open,
    Unviable,
    Caught(Vec<String>),
    OutOfTime,
    /// No test can tell it from the original.
    Equivalent(&'static str),
    /// No test comes to its place.
    Unreached,
    Escaped,
    /// Not tried: it cannot be woven in.
    LeftOut,
}

pub struct Course<'a> {
    workshop: &'a Workshop<'a>,
    journal: Journal,
    accept_earlier: bool,
    /// The tree of what the tests are made of.
    ground: String,
}

impl<'a> Course<'a> {
    pub fn new(workshop: &'a Workshop<'a>, journal: Journal, accept_earlier: bool) -> Outcome<Self> {
        Ok(Self {
            workshop,
            journal,
            accept_earlier,
            ground: workshop.ground()?,
        })
    }

    /// Leaves out what was found on this ground.
    pub fn begin_anew(&mut self) {
        self.journal.forget(&self.ground);
    }

    /// Lists the mutants of groups, or their arms.
    pub fn members(&self, groups: &[&'static Group], are_arms: bool) -> Outcome<Vec<Member>> {
        let sources = groups.iter().flat_map(|group| group.sources);
        let mut files: Vec<&str> = sources.map(|source| source.file).collect();
        files.sort_unstable();
        files.dedup();
        let mut members = Vec::new();
        let listed = if are_arms {
            arms::list(self.workshop.scratch.folder(), files)?
        } else {
            self.workshop.list(files)?
        };
        for mutant in listed {
            let group = groups
                .iter()
                .find(|group| group.has(&mutant.file, &mutant.function));
            if let Some(group) = group {
                members.push(Member { group, mutant });
            }
        }
        Ok(members)
    }

    /// Judges what is not known yet.
    pub fn run(&mut self, members: &[Member]) -> Outcome {
        let open: Vec<&Mutant> = members
            .iter()
            .filter(|member| self.standing(member) == Standing::Open)
            .map(|member| &member.mutant)
            .collect();
        if open.is_empty() {
            return Ok(());
        }
        println!(
            "{} of them are open. Building the tests with all of these …",
            open.len()
        );
        let built = self.workshop.build(&open)?;
        for number in built.unviable.keys() {
            self.say(open[*number], Verdict::Unviable, 0)?;
        }
        println!("Running every test once, to see which comes to which mutant …");
        let reach = trial::trace(self.workshop)?;
        let mut unnoticed = Vec::new();
        for (number, mutant) in open.iter().enumerate() {
            if built.unviable.contains_key(&number) {
                continue;
            }
            match built.apart.get(&number) {
                None => {}
                Some(Apart::Impossible) => {
                    self.say(mutant, Verdict::Unviable, 0)?;
                    continue;
                }
                Some(Apart::Constant | Apart::Hidden | Apart::Unplaced) => {
                    println!("[{:3}/{}] {} … left out", number + 1, open.len(), mutant.name);
                    self.say(mutant, Verdict::LeftOut, 0)?;
                    continue;
                }
            }
            let start = clock::now();
            match trial::judge(self.workshop, number, mutant, &reach)? {
                Some(verdict) => self.tell(&open, number, verdict, &reach, start.elapsed().as_secs())?,
                None => unnoticed.push(number),
            }
        }
        if !unnoticed.is_empty() {
            println!(
                "{} were not noticed by the closest tests; all others follow, {TOGETHER} of them at a time.",
                unnoticed.len()
            );
        }
        for numbers in far_apart(&unnoticed, TOGETHER) {
            let start = clock::now();
            let verdicts = trial::judge_together(self.workshop, &numbers, &reach)?;
            let seconds = start.elapsed().as_secs() / numbers.len() as u64;
            for (number, verdict) in numbers.into_iter().zip(verdicts) {
                self.tell(&open, number, verdict, &reach, seconds)?;
            }
        }
        Ok(())
    }

    fn tell(
        &mut self,
        open: &[&Mutant],
        number: usize,
        verdict: Verdict,
        reach: &Reach,
        seconds: u64,
    ) -> Outcome {
        let tests = reach.get(&number).into_iter().flatten();
        println!(
            "[{:3}/{}] {} … {} ({} tests come to it, {seconds} s)",
            number + 1,
            open.len(),
            open[number].name,
            said(&verdict),
            tests.map(|(_, names)| names.len()).sum::<usize>(),
        );
        let _ = std::io::stdout().flush();
        self.say(open[number], verdict, seconds)
    }

    fn say(&mut self, mutant: &Mutant, verdict: Verdict, seconds: u64) -> Outcome {
        self.journal.add(Entry {
            mutant: mutant.identity.clone(),
            commit: self.workshop.scratch.commit.clone(),
            ground: self.ground.clone(),
            verdict,
            seconds,
        })
    }

    fn known(&self, member: &Member) -> Option<&Entry> {
        self.journal
            .known(&member.mutant, &self.ground, self.accept_earlier)
    }

    /// What is known of a mutant by now.
    pub fn standing(&self, member: &Member) -> Standing {
        if let Some(exception) = exception(&member.mutant) {
            return Standing::Equivalent(exception.why);
        }
        match self.known(member).map(|entry| &entry.verdict) {
            None => Standing::Open,
            Some(Verdict::Unviable) => Standing::Unviable,
            Some(Verdict::OutOfTime) => Standing::OutOfTime,
            Some(Verdict::Caught(tests)) => Standing::Caught(tests.clone()),
            Some(Verdict::Unreached) => Standing::Unreached,
            Some(Verdict::Missed) => Standing::Escaped,
            Some(Verdict::LeftOut) => Standing::LeftOut,
        }
    }

    /// The commits at which members were judged.
    pub fn commits(&self, members: &[Member]) -> usize {
        let mut commits: Vec<&str> = members
            .iter()
            .filter_map(|member| self.known(member))
            .map(|entry| entry.commit.as_str())
            .collect();
        commits.sort_unstable();
        commits.dedup();
        commits.len()
    }
}

/// Parts numbers into groups of at most `most`, neighbours in different ones: they guard the same, and one hides another.
fn far_apart(numbers: &[usize], most: usize) -> Vec<Vec<usize>> {
    let groups = numbers.len().div_ceil(most);
    let of = |group: usize| {
        numbers
            .iter()
            .copied()
            .skip(group)
            .step_by(groups.max(1))
            .collect()
    };
    (0..groups).map(of).collect()
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
        Verdict::OutOfTime => "a test hangs".to_owned(),
        Verdict::Unreached => "NOT REACHED".to_owned(),
        Verdict::Missed => "NOT CAUGHT".to_owned(),
        Verdict::LeftOut => "left out".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn neighbours_are_not_meant_together_and_none_is_left_out() {
        assert_eq!(far_apart(&[1, 2, 3, 4, 5], 2), [vec![1, 4], vec![2, 5], vec![3]]);
        assert_eq!(far_apart(&[1, 2, 3], 8), [vec![1, 2, 3]]);
        assert!(far_apart(&[], 8).is_empty());
    }
}
