//! Where a subject runs: each engine in a place of its own, one seed for all, one record at the end.

use std::time::Duration;

use super::Choices;
use crate::bench::bench_store::BenchStore;
use crate::failure::{Context, Outcome};
use crate::record::Record;
use crate::{Engine, postgres, product, random};

/// What a run is called and speaks for.
pub struct Purpose<'a> {
    /// The word of the command line, which is also the name of the record.
    pub name: &'a str,
    pub goals: &'a [&'a str],
    /// The sizes as they were given, as on the command line.
    pub sizes: String,
    /// The profile of the binary, when none is given.
    pub profile: &'a str,
}

/// Endures on each engine, in a place that stays behind when that fails; returns one sentence for each.
pub fn each(
    choices: &Choices,
    purpose: &Purpose<'_>,
    endure: impl Fn(&BenchStore, u64) -> Outcome<String>,
) -> Outcome {
    let seed = choices.seed.unwrap_or_else(random::fresh_seed);
    let Purpose { name, sizes, .. } = purpose;
    let command = format!(
        "cargo xtask endure {name} {sizes} --engine {}",
        choices.engine.word()
    );
    println!("seed {seed} (again with: {command} --seed {seed})");
    let binary = product::given(choices.binary.as_ref(), purpose.profile)?;
    let binaries = postgres::find_for(choices.engine)?;
    let mut figures = Vec::new();
    for engine in choices.engine.each() {
        let place = BenchStore::create(&format!("endure-{name}"), engine, &binary, binaries.as_ref())?;
        let folder = place.folder().display().to_string();
        let figure = endure(&place, seed).context(format_args!(
            "{} with seed {seed} (store and log are kept in {folder})",
            engine.name()
        ))?;
        place.remove()?;
        println!("{}: {figure}", engine.name());
        figures.push(format!("{}: {figure}", engine.name()));
    }
    if choices.record {
        let record = Record::new(purpose.goals, figures.join(" "), command).with_seeds(seed.to_string());
        record.write(&format!("endure-{name}"))?;
    }
    Ok(())
}

/// How many digits of a duration people read.
pub fn millis(duration: Duration) -> String {
    format!("{:.1} ms", duration.as_secs_f64() * 1e3)
}

/// The word of an engine in a line of progress.
pub fn word(engine: Engine) -> &'static str {
    engine.word()
}
