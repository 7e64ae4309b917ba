//! What is said of the mutants at the end, and what is kept of it.

use std::fmt::Write;

use super::course::{Course, Member, Standing};
use super::groups::Group;
use crate::failure::{Context, Failure, Outcome};
use crate::process;
use crate::record::Record;

/// Shows the mutants and what is known of them.
pub fn list(course: &Course<'_>, members: &[Member]) {
    for member in members {
        let standing = match course.standing(member) {
            Standing::Open => String::new(),
            Standing::Unviable => " … does not compile".to_owned(),
            Standing::Caught(tests) => format!(" … caught by {}", tests.join(", ")),
            Standing::OutOfTime => " … a test hangs".to_owned(),
            Standing::Equivalent(why) => format!(" … equivalent: {why}"),
            Standing::Unreached => " … NOT REACHED".to_owned(),
            Standing::Escaped => " … ESCAPED".to_owned(),
            Standing::LeftOut => " … not tried: cannot be woven in".to_owned(),
        };
        println!("{}: {}{standing}", member.group.name, member.mutant.name);
    }
    println!("{} mutants.", members.len());
}

/// How many mutants of a group came to which end.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Count {
    all: usize,
    unviable: usize,
    caught: usize,
    out_of_time: usize,
    equivalent: usize,
    unreached: usize,
    escaped: usize,
    left_out: usize,
    open: usize,
}

impl Count {
    fn of(course: &Course<'_>, members: &[Member], group: &Group) -> Self {
        let mut count = Self::default();
        for member in members.iter().filter(|member| std::ptr::eq(member.group, group)) {
            count.all += 1;
            match course.standing(member) {
                Standing::Open => count.open += 1,
                Standing::Unviable => count.unviable += 1,
                Standing::Caught(_) => count.caught += 1,
                Standing::OutOfTime => count.out_of_time += 1,
                Standing::Unreached => count.unreached += 1,
                Standing::Equivalent(_) => count.equivalent += 1,
                Standing::Escaped => count.escaped += 1,
                Standing::LeftOut => count.left_out += 1,
            }
        }
        count
    }

    /// Tests that hang are noticed, and are told apart in the words.
    fn noticed(self) -> usize {
        self.caught + self.out_of_time
    }

    /// Rounded down, so that 100 means all.
    fn percent(self) -> usize {
        let judged = self.noticed() + self.unreached + self.escaped;
        (self.noticed() * 100).checked_div(judged).unwrap_or(100)
    }

    fn words(self, group: &Group) -> String {
        let mut parts = vec![
            format!("{} do not compile", self.unviable),
            format!("{} are caught", self.caught),
            format!("{} escape", self.escaped),
        ];
        for (count, said) in [
            (self.out_of_time, "make a test hang"),
            (self.unreached, "are reached by no test"),
            (self.equivalent, "change nothing that could be seen"),
            (self.left_out, "were not tried"),
            (self.open, "are not judged yet"),
        ] {
            if count > 0 {
                parts.push(format!("{count} {said}"));
            }
        }
        format!(
            "{} ({}): {} % of {} mutants, {}",
            group.name,
            group.about,
            self.percent(),
            self.all,
            parts.join(", ")
        )
    }
}

/// Says what came of each group, and fails when one is below its goal. With the name of the task, keeps it.
pub fn conclude(
    course: &Course<'_>,
    groups: &[&'static Group],
    members: &[Member],
    record: Option<&str>,
) -> Outcome {
    for member in members {
        let word = match course.standing(member) {
            Standing::Escaped => "ESCAPED",
            Standing::Unreached => "NOT REACHED",
            Standing::LeftOut => "NOT TRIED",
            _ => continue,
        };
        println!("{word}: {}\n    {}", member.mutant.name, member.mutant.line);
    }
    let mut figures = Vec::new();
    let mut below = Vec::new();
    for group in groups {
        let count = Count::of(course, members, group);
        if count.all == 0 {
            continue;
        }
        println!("{}.", count.words(group));
        figures.push(count.words(group));
        if count.percent() < group.goal || count.open > 0 {
            below.push(format!("{} ({} %)", group.name, group.goal));
        }
    }
    if record == Some("arms") {
        write_table(course, members)?;
    }
    if !below.is_empty() {
        return Err(Failure::new(format!("below the goal: {}", below.join(", "))));
    }
    if let Some(task) = record {
        let names: Vec<&str> = groups.iter().map(|group| group.name).collect();
        let commits = course.commits(members);
        let over = if commits == 1 {
            String::new()
        } else {
            format!(" The runs were at {commits} commits one after the other.")
        };
        let figure = format!("{}.{over}", figures.join("; "));
        let command = format!("cargo xtask {task} --group {}", names.join(" "));
        Record::new(&["R44"], figure, command).write(task)?;
    }
    Ok(())
}

/// Writes which test fails without which arm, and which arms are not judged.
pub fn write_table(course: &Course<'_>, members: &[Member]) -> Outcome {
    let mut text = "# Which test fails without which arm\n\nWritten by `cargo xtask arms --record`.\n\n\
                    What is not judged yet is judged by the next run; what escaped when it was judged, and has had a test since, \
                    is not judged yet.\n\n| arm | without it |\n| --- | --- |\n"
        .to_owned();
    for member in members {
        let without = match course.standing(member) {
            Standing::Caught(tests) => format!("`{}` fails", tests.join("`, `")),
            Standing::OutOfTime => "a test hangs".to_owned(),
            Standing::Equivalent(why) => format!("nothing changes: {why}"),
            Standing::Unviable => "the code does not compile".to_owned(),
            Standing::LeftOut => "not tried: the compiler has to know it".to_owned(),
            Standing::Unreached | Standing::Escaped => "**no test fails**".to_owned(),
            Standing::Open => "not judged yet".to_owned(),
        };
        let arm = member.mutant.change.replace('|', "\\|");
        writeln!(text, "| {} | {without} |", arm.replace('`', "'")).context("cannot write the table")?;
    }
    let file = process::root().join("docs/assurance/arms.md");
    std::fs::write(&file, text).context(file.display())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_that_escapes_is_never_a_hundred_percent() {
        let count = Count {
            all: 1_001,
            caught: 999,
            escaped: 1,
            unviable: 1,
            ..Count::default()
        };
        assert_eq!(count.percent(), 99);
        assert_eq!(Count { escaped: 0, ..count }.percent(), 100);
        let half = Count {
            caught: 0,
            out_of_time: 1,
            equivalent: 1,
            ..count
        };
        assert_eq!(half.percent(), 50);
    }
}
