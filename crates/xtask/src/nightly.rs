//! Every net that takes longer than a change can wait for, one after the other.
//!
//! `.ci/run` holds a small sample of each. What a net prints goes into a log of its own; how it ended is one line of
//! `docs/assurance/nightly.json`, which is committed. A net that fails does not keep the others from running.
//!
//! Absent on purpose: `mutants`, which takes a day and a half; sizes of the goals, which take days: whoever runs a net at such
//! a size keeps its figure with `--record`.

use std::collections::BTreeMap;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde::{Deserialize, Serialize};

use crate::failure::{Context, Failure, Outcome};
use crate::record;
use crate::{clock, process};

/// Run every long net, one after the other, and keep how each ended
#[derive(clap::Args)]
pub struct Arguments {
    /// Only the nets of these names
    #[arg(long, num_args = 1.., value_name = "NAME")]
    only: Vec<String>,
    /// Show the nets and how each ended last, run nothing
    #[arg(long)]
    list: bool,
}

/// A task of this program with its words.
struct Net {
    name: &'static str,
    words: &'static str,
}

const fn net(name: &'static str, words: &'static str) -> Net {
    Net { name, words }
}

const NETS: &[Net] = &[
    net("tests", "test --nightly"),
    net("guides", "guides"),
    net(
        "clients",
        "clients --engine both --without device-hooks --without device-approvals --without device-coverage",
    ),
    net(
        "device-hooks",
        "clients device-hooks device-approvals device-coverage",
    ),
    net("schemathesis", "schemathesis --engine both --max-examples 100"),
    net("crash", "crash --engine both --cycles 100"),
    net("simulate", "simulate --seeds 20000"),
    net("faults", "faults --sample 100"),
    net("corrupt", "corrupt --count 1000"),
    net("power", "power --images 200 --changes 200"),
    net("dishonest-disk", "power --images 8 --changes 40 --dishonest"),
    net("backups", "endure backups --engine both"),
    net(
        "device-decisions",
        "endure device-decisions --rows 1000000 --engine both",
    ),
    net("leaks", "endure leaks --rounds 100"),
    net("neighbour", "endure neighbour --engine both"),
    net("overload", "endure overload --secs 60"),
    net("restarts", "endure restarts"),
    net("schedules", "endure schedules --count 100000"),
    net("servers", "endure servers --rounds 30"),
    net("soak", "endure soak --minutes 30"),
    net("stops", "endure stops --cycles 100 --thousand-events 20"),
    net("strangers", "endure strangers --reads"),
    net("surroundings", "endure surroundings --engine both --minutes"),
    net("uploads", "endure uploads --rows 100000 --engine both"),
    net("wire", "endure wire --slow 1000"),
    net("requests", "torment requests --count 100000"),
    net("storms", "torment storms --count 500"),
    net("misuse", "torment misuse --count 5"),
    net("histories", "torment histories --count 500"),
    net("tokens", "torment tokens --count 1000000"),
    net("jwts", "torment jwts --count 100000"),
    net("issued", "torment issued --count 100000"),
    net("approvals", "torment approvals --count 10000"),
    net("cells", "torment cells"),
    net("strings", "torment strings"),
    net("paths", "torment paths --count 10000"),
    net("verdicts", "torment verdicts --count 10000"),
    net("rights", "torment rights"),
    net("scale", "scale --size 10"),
    net("fuzz", "fuzz"),
    net("coverage", "coverage"),
    net("supply", "supply"),
    net("packaging-check", "packaging-check"),
];

/// How a net ended.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct End {
    passed: bool,
    /// The day, as YYYY-MM-DD.
    date: String,
    seconds: u64,
    /// The commit that was checked out.
    commit: String,
    command: String,
    /// The last line that it printed.
    said: String,
}

type Ends = BTreeMap<String, End>;

pub fn run(arguments: &Arguments) -> Outcome {
    let chosen = arguments.chosen()?;
    let mut ends = read()?;
    if arguments.list {
        for net in chosen {
            let end = ends.get(net.name).map_or_else(
                || "never run".to_owned(),
                |end| {
                    let word = if end.passed { "passed" } else { "FAILED" };
                    format!("{word} on {} in {} s", end.date, end.seconds)
                },
            );
            println!("{}: cargo xtask {} ({end})", net.name, net.words);
        }
        return Ok(());
    }
    let logs = process::target().join("nightly");
    std::fs::create_dir_all(&logs).context(logs.display())?;
    let mut git = Command::new("git");
    git.current_dir(process::root())
        .args(["rev-parse", "--short=12", "HEAD"]);
    let commit = process::output(&mut git)?.trim().to_owned();
    // Nets build the workspace, and this program with it: the path stays, whatever becomes of the file.
    let program = std::env::current_exe().context("cannot find this program")?;
    let mut failed = Vec::new();
    for (number, net) in chosen.iter().enumerate() {
        println!("[{}/{}] cargo xtask {} …", number + 1, chosen.len(), net.words);
        let log = logs.join(format!("{}.log", net.name));
        let end = cast(net, &program, &log, &commit)?;
        let word = if end.passed { "passed" } else { "FAILED" };
        println!("    {word} after {} s: {}", end.seconds, end.said);
        if !end.passed {
            println!("    what it printed stands in {}", log.display());
            failed.push(net.name);
        }
        ends.insert(net.name.to_owned(), end);
        // After each one, so that a night that is cut short keeps what it had.
        let file = file();
        std::fs::write(&file, record::lines(&ends)?).context(file.display())?;
    }
    if failed.is_empty() {
        println!("All {} nets passed.", chosen.len());
        return Ok(());
    }
    Err(Failure::new(format!(
        "{} of {} nets failed: {}",
        failed.len(),
        chosen.len(),
        failed.join(", ")
    )))
}

impl Arguments {
    fn chosen(&self) -> Outcome<Vec<&'static Net>> {
        if self.only.is_empty() {
            return Ok(NETS.iter().collect());
        }
        let find = |name: &String| {
            let found = NETS.iter().find(|net| net.name == name);
            found.context(format_args!(
                "there is no net {name}; `cargo xtask nightly --list` shows them"
            ))
        };
        self.only.iter().map(find).collect()
    }
}

fn cast(net: &Net, program: &Path, log: &Path, commit: &str) -> Outcome<End> {
    let output = File::create(log).context(log.display())?;
    let errors = output.try_clone().context(log.display())?;
    let mut command = Command::new(program);
    command
        .args(net.words.split(' '))
        .stdout(output)
        .stderr(errors)
        .current_dir(process::root());
    let start = clock::now();
    let status = process::status(&mut command)?;
    let printed = std::fs::read(log).context(log.display())?;
    Ok(End {
        passed: status.success(),
        date: clock::today(),
        seconds: start.elapsed().as_secs(),
        commit: commit.to_owned(),
        command: format!("cargo xtask {}", net.words),
        said: last_line(&String::from_utf8_lossy(&printed)),
    })
}

fn last_line(printed: &str) -> String {
    let last = printed.lines().rev().find(|line| !line.trim().is_empty());
    last.unwrap_or_default().trim().to_owned()
}

fn file() -> PathBuf {
    process::root().join("docs/assurance/nightly.json")
}

/// Returns how each net ended last; nothing is known before the first night.
fn read() -> Outcome<Ends> {
    let file = file();
    if !file.exists() {
        return Ok(Ends::new());
    }
    let text = std::fs::read_to_string(&file).context(file.display())?;
    let mut ends: Ends =
        serde_json::from_str(&text).context(format_args!("{} holds no ends of nets", file.display()))?;
    // A net that is gone has no last run.
    ends.retain(|name, _| NETS.iter().any(|net| net.name == name));
    Ok(ends)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Task;
    use clap::Parser;

    #[test]
    fn every_net_is_a_task_and_has_a_name_of_its_own() {
        for net in NETS {
            let words = std::iter::once("xtask").chain(net.words.split(' '));
            if let Err(refusal) = Task::try_parse_from(words) {
                panic!("{}: {refusal}", net.name);
            }
        }
        let names: std::collections::BTreeSet<_> = NETS.iter().map(|net| net.name).collect();
        assert_eq!(names.len(), NETS.len());
    }

    #[test]
    fn what_is_kept_is_one_line_for_each_net_that_there_is() {
        let ends = read().unwrap();
        let there = std::fs::read_to_string(file()).unwrap_or_default();
        assert!(ends.is_empty() || there == record::lines(&ends).unwrap());
    }

    #[test]
    fn the_last_line_is_the_last_one_with_a_word() {
        assert_eq!(last_line("a\n b \n\n"), "b");
        assert_eq!(last_line(""), "");
    }
}
