//! Types what the README and the guides tell a reader to type, in their order and in one shell, and compares what it says with what
//! they show.
//!
//! The Markdown is the test. A block of `sh` is typed; so is a block without a language that begins with `$ `, command by command. The
//! next block of text or JSON under the same heading is what a block of `sh` says; `…` in it stands for anything, and ids, times, tokens,
//! digests and durations may be others ([`compare`]). An id that a page shows stands for the one that was really given, from there on.
//!
//! A comment before a block says what is special about it:
//!
//! ```text
//! <!-- not run: needs PostgreSQL -->      the next block is left out, and why
//! <!-- page not run: needs a fleet -->    no block from here on is typed, and why
//! <!-- shown: the form of an entry -->    the next block is no output, and what it is
//! <!-- in: file people.csv -->            the next block is the content of a file
//! <!-- in the background -->              the next block is typed with & behind it; the page goes on when the server answers
//! <!-- exits 5 -->                        the next block ends with this code
//! <!-- run: provost … -->                 is typed and not shown; the next block is what it says
//! <!-- set up: provost … -->              is typed and not shown
//! <!-- stands for: sa_… is provost … -->  is typed and not shown; what it says is what the page calls so
//! ```
//!
//! Each page has a terminal, a home, a folder and a server of its own. A page that starts its server itself gets none.
//!
//! Absent on purpose: a way to write the shown output anew. Whoever changes what is said reads the page.

mod compare;
mod doors;
mod page;
mod shell;
mod tokens;

use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::failure::{Context, Failure, Outcome};
use crate::product::{self, Workplace};
use crate::{clock, process};
use compare::Glossary;
pub use page::How;
use page::{Page, Step};
pub use shell::Shell;

/// Type the commands of the README and the guides, and compare what they say
#[derive(clap::Args)]
pub struct Arguments {
    /// Use this binary instead of building one
    #[arg(long)]
    binary: Option<PathBuf>,
    /// Only these pages: README, or the name of a guide
    #[arg(long, num_args = 1.., value_name = "PAGE")]
    only: Vec<String>,
    /// Say what is not run, with the reasons, and run nothing
    #[arg(long)]
    list: bool,
    /// Print what every command says
    #[arg(long)]
    verbose: bool,
    /// Go through the doors of README, each as the one for whom it is, and say how long the way to its first value takes
    #[arg(long, conflicts_with_all = ["only", "list"])]
    doors: bool,
}

pub fn run(arguments: &Arguments) -> Outcome {
    if arguments.doors {
        return doors::run(arguments.binary.as_ref(), arguments.verbose);
    }
    let pages = chosen(&arguments.only)?;
    if arguments.list {
        for page in &pages {
            list(page);
        }
        return Ok(());
    }
    let binary = product::given(arguments.binary.as_ref(), "ci")?;
    let binary = std::path::absolute(binary).context("cannot find the binary")?;
    let workplace = Workplace::create("guides")?;
    let start = clock::now();
    let (mut wrong, mut commands, mut compared, mut left_out) = (Vec::new(), 0, 0, 0);
    for page in &pages {
        let count = page.count();
        let walk = walk(page, &binary, &workplace.folder, arguments.verbose).context(format_args!(
            "{}, everything is kept in {}",
            page.name,
            workplace.folder.display()
        ))?;
        println!(
            "{}: {} blocks typed, {} outputs compared, {} left out{}",
            page.name,
            count.typed,
            count.compared,
            count.left_out,
            if walk.faults.is_empty() {
                ""
            } else {
                ", NOT as it says"
            }
        );
        commands += count.typed;
        compared += count.compared;
        left_out += count.left_out;
        wrong.extend(walk.faults);
    }
    if wrong.is_empty() {
        workplace.remove()?;
        println!(
            "{} pages went as they say in {} s: {commands} blocks typed, {compared} outputs compared, {left_out} left out (--list says why)",
            pages.len(),
            start.elapsed().as_secs()
        );
        return Ok(());
    }
    Err(Failure::new(format!(
        "{}\n{} places do not go as they say; everything is kept in {}",
        wrong.join("\n"),
        wrong.len(),
        workplace.folder.display()
    )))
}

/// The pages of these names, all of them when there is none; README first.
fn chosen(names: &[String]) -> Outcome<Vec<Page>> {
    let root = process::root();
    let folder = root.join("docs/guide");
    let mut files: Vec<PathBuf> = std::fs::read_dir(&folder)
        .context(folder.display())?
        .filter_map(|entry| entry.ok().map(|entry| entry.path()))
        .filter(|path| path.extension().is_some_and(|extension| extension == "md"))
        .filter(|path| !path.ends_with("README.md"))
        .collect();
    files.sort();
    files.insert(0, root.join("README.md"));
    let mut pages = Vec::new();
    for file in files {
        let name = file
            .file_stem()
            .unwrap_or_default()
            .to_string_lossy()
            .into_owned();
        if names.is_empty() || names.contains(&name) {
            let text = std::fs::read_to_string(&file).context(file.display())?;
            pages.push(Page::read(&name, &text)?);
        }
    }
    if let Some(unknown) = names
        .iter()
        .find(|name| !pages.iter().any(|page| page.name == **name))
    {
        return Err(Failure::new(format!("there is no page {unknown}")));
    }
    Ok(pages)
}

fn list(page: &Page) {
    let count = page.count();
    println!(
        "{}: {} blocks typed, {} outputs compared, {} illustrations",
        page.name, count.typed, count.compared, page.illustrations
    );
    for (line, step) in &page.steps {
        if let Step::LeftOut { reason } = step {
            println!("  line {line}: {reason}");
        }
    }
}

/// What came of typing a page.
struct Walk {
    /// What is not as the page says.
    faults: Vec<String>,
    /// How long the reader waited for programs until the first output that the page shows; a server's start is among it.
    first: Option<Duration>,
    /// And until the end of the page.
    whole: Duration,
}

/// Types a page from its begin to its end.
fn walk(page: &Page, binary: &Path, folder: &Path, is_verbose: bool) -> Outcome<Walk> {
    let place = folder.join(&page.name);
    let mut shell = Shell::open(binary, &place)?;
    let start = clock::now();
    let mut walk = Walk {
        faults: Vec::new(),
        first: None,
        whole: Duration::ZERO,
    };
    if page.count().typed == 0 {
        return shell.close().map(|()| walk);
    }
    if !page.starts_a_server() {
        shell.start_a_server()?;
    }
    let mut meant = Glossary::default();
    meant.stands_for("127.0.0.1:8080", &shell.address.to_string());
    for (line, step) in &page.steps {
        let fault = perform(step, &mut shell, &mut meant, is_verbose)
            .context(format_args!("{}, line {line}", page.name))?;
        if let Some(fault) = fault {
            walk.faults.push(format!("{}, line {line}: {fault}", page.name));
        }
        walk.whole = start.elapsed();
        if walk.first.is_none() && matches!(step, Step::Type(typed) if typed.shown.is_some()) {
            walk.first = Some(walk.whole);
        }
    }
    shell.close()?;
    Ok(walk)
}

fn perform(
    step: &Step,
    shell: &mut Shell,
    meant: &mut Glossary,
    is_verbose: bool,
) -> Outcome<Option<String>> {
    let typed = match step {
        Step::LeftOut { .. } => return Ok(None),
        Step::File { name, content } => {
            shell.write(name, &meant.in_command(content))?;
            return Ok(None);
        }
        Step::Means { shown, command } => {
            let said = shell.types(&meant.in_command(command), How::Block)?;
            if said.status != 0 || said.text.trim().is_empty() {
                return Ok(Some(format!("nothing stands for {shown}: {}", said.text)));
            }
            meant.stands_for(shown, said.text.trim());
            return Ok(None);
        }
        Step::Type(typed) => typed,
    };
    let text = meant.in_command(&typed.text);
    let said = shell.types(&text, typed.how)?;
    if is_verbose {
        println!("$ {text}\n{}", said.text);
    }
    if !typed.exit.takes(said.status) {
        return Ok(Some(format!(
            "ended with {}\n  typed: {}\n  said: {}",
            said.status,
            text.trim(),
            said.text.trim()
        )));
    }
    let Some((line, shown)) = &typed.shown else {
        return Ok(None);
    };
    Ok(meant.compare(shown, &said.text).err().map(|difference| {
        format!(
            "what it shows in line {line} is not what is said: {difference}\n  said: {}",
            said.text.trim()
        )
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_page_can_be_read_and_says_why_something_is_left_out() {
        let pages = chosen(&[]).unwrap();
        assert!(pages.len() > 20);
        for page in pages {
            for (line, step) in &page.steps {
                if let Step::LeftOut { reason } = step {
                    assert!(
                        reason.len() > 8,
                        "{}, line {line}: {reason:?} is no reason",
                        page.name
                    );
                }
            }
        }
    }
}
