//! What a scan of a home costs, beside another scanner and beside reading the same files.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use super::machine;
use super::report::{Goal, Row, table};
use crate::clients;
use crate::failure::{Context, Outcome};
use crate::product::Workplace;
use crate::{homes, process, product};

/// Processes of which one value is made: the kernel counts in hundredths of a second.
const RUNS: u32 = 10;
/// How long one run may take. Ours: a hundred times as long as the slowest of them, another scanner written in Python.
const LONGEST: Duration = Duration::from_mins(5);

/// Measure the processor time of `provost scan` over a home with 40 projects, 25 servers and 60 skills
#[derive(clap::Args)]
pub struct Arguments {
    /// How many values the median is of
    #[arg(long, default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..))]
    rounds: u32,
    /// Measure this binary instead of building one with the release profile
    #[arg(long)]
    binary: Option<PathBuf>,
}

pub fn run(arguments: &Arguments) -> Outcome {
    let binary = product::given(arguments.binary.as_ref(), "release")?;
    let binary = std::path::absolute(binary).context("cannot find the binary")?;
    eprintln!("measuring {}", binary.display());
    let workplace = Workplace::create("bench-scan")?;
    let mut number = 0;
    let home = homes::crowded(&workplace.folder, &mut || {
        number += 1;
        format!("a secret of somebody {number}")
    })?;
    let (mut ours, mut reads, mut theirs) = (Vec::new(), Vec::new(), Vec::new());
    let snyk = clients::snyk().inspect_err(|why| println!("Snyk Agent Scan is NOT measured: {why}"));
    for _ in 0..arguments.rounds {
        ours.push(cpu(RUNS, &home, &binary, &["scan", "--output", "json"])?);
        reads.push(cpu(
            RUNS,
            &home,
            Path::new("find"),
            &[".", "-type", "f", "-exec", "cat", "{}", "+"],
        )?);
        if let Ok(snyk) = &snyk {
            theirs.push(cpu(1, &home, snyk, &["inspect", "--json"])?);
        }
    }
    let row = |measure, goal, values| Row::new(measure, "–", " ms", goal, values);
    let rows = [
        row("CPU of `provost scan`", Goal::AtMost(300.0), ours),
        row(
            "CPU of find and cat over every file of the home",
            Goal::None,
            reads,
        ),
        row(
            "CPU of Snyk Agent Scan, which starts no server",
            Goal::None,
            theirs,
        ),
    ];
    println!("{}", machine::describe().join("\n"));
    println!("{}", table(rows.iter().filter(|row| !row.values.is_empty())));
    workplace.remove()
}

/// Returns the processor time of a run. Units: milliseconds.
fn cpu(runs: u32, home: &Path, program: &Path, words: &[&str]) -> Outcome<f64> {
    let time = || machine::cpu_time_of_ended_children().context("there is no /proc");
    let what = format!("a run of {} over the crowded home", program.display());
    let before = time()?;
    for _ in 0..runs {
        let mut command = Command::new(program);
        command
            .args(words)
            .env_clear()
            .env("HOME", home)
            .current_dir(home);
        command.env("PATH", std::env::var_os("PATH").unwrap_or_default());
        process::output_within(&mut command, LONGEST, &what)?;
    }
    Ok(time()?.saturating_sub(before).as_secs_f64() * 1e3 / f64::from(runs))
}
