//! What every benchmark is told, and what it does: rounds of loads on each engine, and a page about them.

use std::path::PathBuf;
use std::time::Duration;

use super::bench_store::{self, BenchStore};
use super::load::{self, Script};
use super::machine;
use super::report::{self, Goal, Row, median};
use crate::Engine;
use crate::failure::{Context, Outcome};
use crate::postgres::{self, Binaries};
use crate::product::{self, Server};

#[derive(clap::Args)]
pub struct Rounds {
    /// The engines to measure
    #[arg(long, value_enum, default_value_t = Engine::Both)]
    pub engine: Engine,
    /// How often everything is measured; the table shows medians
    #[arg(long = "rounds", value_name = "ROUNDS", default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..))]
    pub count: u32,
    /// How long each load lasts, in seconds
    #[arg(long, default_value_t = 3, value_parser = clap::value_parser!(u64).range(1..))]
    pub secs: u64,
    /// Also write the table, with date, machine and versions, to this file
    #[arg(long)]
    write: Option<PathBuf>,
    /// Measure this binary instead of building one with the release profile
    #[arg(long)]
    binary: Option<PathBuf>,
}

/// What a benchmark measured, of which there is one for each engine.
pub struct BenchResult<T> {
    pub engines: Vec<T>,
    /// The binary that was measured.
    pub binary: PathBuf,
    postgres: Option<Binaries>,
}

impl Rounds {
    pub fn length(&self) -> Duration {
        Duration::from_secs(self.secs)
    }

    /// Measures each engine in a place of its own.
    pub fn each<T>(
        &self,
        purpose: &str,
        measure: impl Fn(&BenchStore) -> Outcome<T>,
    ) -> Outcome<BenchResult<T>> {
        let binary = product::given(self.binary.as_ref(), "release")?;
        let postgres = postgres::find_for(self.engine)?;
        Ok(BenchResult {
            engines: bench_store::each(self.engine, purpose, &binary, postgres.as_ref(), measure)?,
            binary,
            postgres,
        })
    }

    /// Sends a load once to warm up and once to be measured.
    pub fn send(
        &self,
        place: &BenchStore,
        server: &Server,
        connections: usize,
        script: &Script,
        series: &mut Series,
    ) -> Outcome {
        load::send(server.address, connections, Duration::from_millis(300), script)?;
        let before = place.spent(server);
        let measured = load::send(server.address, connections, self.length(), script)?;
        let after = place.spent(server);
        #[expect(clippy::cast_precision_loss, reason = "some millions are exact")]
        let per_request = |after: Option<Duration>, before: Option<Duration>| {
            Some(after?.saturating_sub(before?).as_secs_f64() * 1e6 / measured.answers as f64)
        };
        series.rates.push(measured.per_second());
        series.p50.push(measured.p50.as_secs_f64() * 1e3);
        series.p99.push(measured.p99.as_secs_f64() * 1e3);
        series.cpu.extend(per_request(after.server, before.server));
        series
            .postgres_cpu
            .extend(per_request(after.postgres, before.postgres));
        Ok(())
    }

    /// Says what a round found of a load.
    pub fn say(&self, engine: Engine, round: u32, name: &str, series: &Series) {
        let last = |values: &[f64]| report::figure(values.last().copied().unwrap_or_default());
        eprintln!(
            "{} round {round}/{}: {name}: {}/s, p99 {} ms",
            engine.name(),
            self.count,
            last(&series.rates),
            last(&series.p99),
        );
    }

    /// Prints the figures, and writes the page that was asked for: they stand below what they were measured on and what a
    /// reader has to know.
    pub fn conclude<T>(
        &self,
        title: &str,
        explanation: &str,
        figures: &str,
        measured: &BenchResult<T>,
    ) -> Outcome {
        println!("{figures}");
        let Some(path) = &self.write else {
            return Ok(());
        };
        let mut facts = machine::describe();
        let postgres = measured.postgres.as_ref();
        facts.extend(postgres.map(|binaries| format!("PostgreSQL: {}", binaries.version)));
        let words: Vec<String> = std::env::args().skip(1).collect();
        let text = format!(
            "# {title}\n\nWritten by `cargo xtask {}`.\n\n- {}\n\n{explanation} A ratio of 1 or more is a goal that is \
             reached; where two figures of processor time are given, the second is PostgreSQL's.\n\n{figures}",
            words.join(" "),
            facts.join("\n- "),
        );
        std::fs::write(path, text).context(format_args!("cannot write {}", path.display()))
    }
}

/// The rounds' figures of one load.
#[derive(Default)]
pub struct Series {
    pub rates: Vec<f64>,
    pub p50: Vec<f64>,
    pub p99: Vec<f64>,
    /// Of the server alone, a request. Units: microseconds.
    pub cpu: Vec<f64>,
    pub postgres_cpu: Vec<f64>,
}

impl Series {
    /// The row of the rates.
    pub fn row(&self, name: &str, engine: Engine, goal: Goal) -> Row {
        self.row_of(name, engine, "/s", goal, self.rates.clone())
    }

    /// A row of other values of the same load.
    pub fn row_of(
        &self,
        name: &str,
        engine: Engine,
        unit: &'static str,
        goal: Goal,
        values: Vec<f64>,
    ) -> Row {
        let mut row = Row::new(name, engine.name(), unit, goal, values);
        row.latencies = Some((median(&self.p50), median(&self.p99)));
        let shares = [&self.cpu, &self.postgres_cpu].into_iter();
        let known = shares.filter(|values| !values.is_empty());
        let figures: Vec<String> = known.map(|values| report::figure(median(values))).collect();
        row.cpu = figures.join(" + ");
        row
    }

    /// The server's share and PostgreSQL's together.
    pub fn whole_cpu(&self) -> Vec<f64> {
        let postgres = self.postgres_cpu.iter().copied().chain(std::iter::repeat(0.0));
        self.cpu
            .iter()
            .zip(postgres)
            .map(|(server, postgres)| server + postgres)
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_shares_of_processor_time_are_added() {
        let mut series = Series {
            cpu: vec![1.0, 2.0],
            postgres_cpu: vec![10.0, 20.0],
            ..Series::default()
        };
        assert!((median(&series.whole_cpu()) - 16.5).abs() < 1e-9);
        assert_eq!(series.row("a", Engine::Postgres, Goal::None).cpu, "1.5 + 15");
        series.postgres_cpu.clear();
        assert!((median(&series.whole_cpu()) - 1.5).abs() < 1e-9);
        assert_eq!(series.row("a", Engine::Sqlite, Goal::None).cpu, "1.5");
    }
}
