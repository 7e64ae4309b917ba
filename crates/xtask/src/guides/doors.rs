//! The doors of README: each is tried as the one for whom it is, in a clean folder with nothing but what its pages say, and the way
//! to the first thing that a page shows is timed.
//!
//! What the first page says is typed before the second, each on a new server. People read between two commands, which no clock here
//! knows: these are the seconds that the program takes of theirs.

use std::path::PathBuf;
use std::time::Duration;

use super::page::{Page, Step};
use super::{chosen, walk};
use crate::failure::{Context, Failure, Outcome};
use crate::process;
use crate::product::{self, Workplace};

/// LIMIT: to the first value behind a door, a running server included (issue 26).
const FIRST: Duration = Duration::from_mins(1);
/// LIMIT: to the end of what stands behind a door.
const WHOLE: Duration = Duration::from_mins(10);

/// LIMIT: each of the five doors begins with something that is typed, also where what follows needs more than one machine has.
const LEAST: usize = 5;

/// A row of the table.
#[derive(Debug, PartialEq, Eq)]
struct Door {
    who: String,
    wants: String,
    pages: Vec<String>,
}

pub fn run(binary: Option<&PathBuf>, is_verbose: bool) -> Outcome {
    let readme = std::fs::read_to_string(process::root().join("README.md")).context("README.md")?;
    let doors = doors(&readme);
    if doors.len() < 5 {
        return Err(Failure::new(format!("README has {} doors", doors.len())));
    }
    let binary = product::given(binary, "ci")?;
    let binary = std::path::absolute(binary).context("cannot find the binary")?;
    let workplace = Workplace::create("doors")?;
    let (mut wrong, mut tried) = (Vec::new(), 0);
    for door in &doors {
        println!("{} wants {}", door.who, door.wants);
        // Somebody else has been nowhere before.
        let folder = workplace.folder.join(door.who.replace(' ', "-"));
        let (mut first, mut whole) = (None, Duration::ZERO);
        for name in &door.pages {
            let page = chosen(std::slice::from_ref(name))?.remove(0);
            let walked = walk(&page, &binary, &folder, is_verbose).context(format_args!(
                "{}, everything is kept in {}",
                page.name,
                workplace.folder.display()
            ))?;
            if page.count().typed == 0 {
                println!("  {}: not typed, {}", page.name, why_not(&page));
                continue;
            }
            let shown = walked.first.map(|after| whole + after);
            println!(
                "  {}: first shown output after {}, all of it after {}",
                page.name,
                shown.map_or_else(|| "nothing".to_owned(), seconds),
                seconds(whole + walked.whole)
            );
            first = first.or(shown);
            whole += walked.whole;
            wrong.extend(walked.faults);
        }
        tried += usize::from(first.is_some());
        if first.is_some_and(|first| first > FIRST) || whole > WHOLE {
            wrong.push(format!(
                "{}: the first value must come within {}, and the whole within {}",
                door.who,
                seconds(FIRST),
                seconds(WHOLE)
            ));
        }
    }
    if tried < LEAST {
        wrong.push(format!("only {tried} doors can be tried"));
    }
    if wrong.is_empty() {
        workplace.remove()?;
        println!(
            "{tried} of {} doors lead where they say; what is left out behind them is tried by other tasks, as the pages say",
            doors.len()
        );
        return Ok(());
    }
    Err(Failure::new(format!(
        "{}\neverything is kept in {}",
        wrong.join("\n"),
        workplace.folder.display()
    )))
}

/// Returns the reason that a page gives for not being typed.
fn why_not(page: &Page) -> &str {
    let reasons = page.steps.iter().filter_map(|(_, step)| match step {
        Step::LeftOut { reason } => Some(reason.as_str()),
        _ => None,
    });
    reasons.into_iter().next().unwrap_or("for it has no commands")
}

fn seconds(time: Duration) -> String {
    format!("{:.1} s", time.as_secs_f32())
}

/// Returns the rows of the table whose last cell names guides, in their order there.
fn doors(readme: &str) -> Vec<Door> {
    let (_, section) = readme.split_once("\n## Which door is yours?").unwrap_or_default();
    let section = section.split("\n## ").next().unwrap_or_default();
    let rows = section.lines().filter_map(|line| {
        let mut cells = line.trim().trim_matches('|').split('|').map(str::trim);
        let (who, wants, begin) = (cells.next()?, cells.next()?, cells.next()?);
        let links = begin.split("(docs/guide/").skip(1);
        let pages = links.filter_map(|link| link.split(".md").next());
        let pages: Vec<String> = pages.map(str::to_owned).collect();
        (!pages.is_empty()).then(|| Door {
            who: who.to_owned(),
            wants: wants.to_owned(),
            pages,
        })
    });
    rows.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn readme_has_a_door_for_each_and_every_page_behind_them() {
        let readme = std::fs::read_to_string(process::root().join("README.md")).unwrap();
        let doors = doors(&readme);
        assert_eq!(doors.len(), 5, "{doors:?}");
        for door in doors {
            assert!(door.pages.len() >= 2, "{door:?}");
            assert_eq!(chosen(&door.pages).unwrap().len(), door.pages.len());
        }
    }
}
