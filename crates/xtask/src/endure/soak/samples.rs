//! What is looked at every ten seconds, and what follows from it.

use std::fs::File;
use std::io::Write;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use super::super::restarts::wal_mib;
use super::super::workload::WorkloadAnswers;
use crate::bench::load::quantile;
use crate::bench::machine;
use crate::failure::{Context, Failure, Outcome};
use crate::product::Store;

const SLOPE_MIB: f64 = 1.0;
const WAL_MIB: f64 = 64.0;
/// A slope is judged over this long at least: below it a page more or less decides.
const LEAST_SECONDS: f64 = 30.0 * 60.0;
/// What a shorter run may grow after its warm-up.
const GROWTH_MIB: f64 = 24.0;
/// Descriptors that come and go: connections of files, a checkpoint, a backtest's segments.
const SPARE_DESCRIPTORS: f64 = 4.0;

#[derive(Clone, Copy, Debug)]
pub struct Sample {
    seconds: f64,
    resident_mib: f64,
    descriptors: f64,
    wal_mib: f64,
}

#[derive(Default)]
pub struct Totals {
    pub answers: u64,
    pub changes: u64,
    pub judged: u64,
    pub p50: Duration,
    pub p99: Duration,
}

pub struct Sampler<'a> {
    file: File,
    pid: u32,
    store: &'a Store,
    told: &'a [Arc<Mutex<WorkloadAnswers>>],
    samples: Vec<Sample>,
    before: (u64, u64, u64),
    p50s: Vec<Duration>,
    p99s: Vec<Duration>,
}

impl<'a> Sampler<'a> {
    pub fn create(
        file: &Path,
        pid: u32,
        store: &'a Store,
        told: &'a [Arc<Mutex<WorkloadAnswers>>],
    ) -> Outcome<Self> {
        let mut file = File::create(file).context(format_args!("cannot create {}", file.display()))?;
        writeln!(
            file,
            "seconds,resident_mib,descriptors,wal_mib,answers,p50_ms,p99_ms"
        )
        .context("cannot write a sample")?;
        let mut sampler = Self {
            file,
            pid,
            store,
            told,
            samples: Vec::new(),
            before: (0, 0, 0),
            p50s: Vec::new(),
            p99s: Vec::new(),
        };
        let (_, counts) = sampler.hear();
        sampler.before = counts;
        Ok(sampler)
    }

    pub fn samples(&self) -> &[Sample] {
        &self.samples
    }

    /// The latencies since the last time, and the counts so far.
    fn hear(&self) -> (Vec<Duration>, (u64, u64, u64)) {
        let (mut latencies, mut counts) = (Vec::new(), (0, 0, 0));
        for told in self.told {
            let mut told = told.lock().unwrap_or_else(PoisonError::into_inner);
            latencies.append(&mut told.latencies);
            counts.0 += told.answers;
            counts.1 += told.changes;
            counts.2 += told.judged;
        }
        latencies.sort_unstable();
        (latencies, counts)
    }

    pub fn take(&mut self, since: Duration) -> Outcome {
        let (latencies, _) = self.hear();
        let sample = Sample {
            seconds: since.as_secs_f64(),
            resident_mib: machine::resident_mib(self.pid).context("the server is gone")?,
            descriptors: descriptors(self.pid)?,
            wal_mib: wal_mib(self.store),
        };
        let (p50, p99) = (quantile(&latencies, 50), quantile(&latencies, 99));
        self.p50s.push(p50);
        self.p99s.push(p99);
        let line = format!(
            "{:.0},{:.2},{:.0},{:.1},{},{:.2},{:.2}",
            sample.seconds,
            sample.resident_mib,
            sample.descriptors,
            sample.wal_mib,
            latencies.len(),
            p50.as_secs_f64() * 1e3,
            p99.as_secs_f64() * 1e3
        );
        writeln!(self.file, "{line}").context("cannot write a sample")?;
        if self.samples.len().is_multiple_of(6) {
            eprintln!("{line}");
        }
        self.samples.push(sample);
        Ok(())
    }

    pub fn totals(&mut self) -> Totals {
        let (_, counts) = self.hear();
        self.p50s.sort_unstable();
        self.p99s.sort_unstable();
        Totals {
            answers: counts.0 - self.before.0,
            changes: counts.1 - self.before.1,
            judged: counts.2 - self.before.2,
            p50: quantile(&self.p50s, 50),
            p99: quantile(&self.p99s, 50),
        }
    }
}

/// How many files and sockets a process has open.
#[expect(clippy::cast_precision_loss, reason = "some thousands are exact")]
fn descriptors(pid: u32) -> Outcome<f64> {
    let open = std::fs::read_dir(format!("/proc/{pid}/fd")).context("cannot count descriptors")?;
    Ok(open.count() as f64)
}

pub struct Verdict {
    pub sentence: String,
    pub misses: Vec<&'static str>,
}

impl Verdict {
    pub fn of(samples: &[Sample]) -> Outcome<Self> {
        let settled = &samples[samples.len() / 4..];
        let (Some(first), Some(last)) = (settled.first(), settled.last()) else {
            return Err(Failure::new("there is no sample"));
        };
        let quarter = settled.len().div_ceil(4);
        let most =
            |of: &[Sample], value: fn(&Sample) -> f64| of.iter().map(value).fold(f64::NEG_INFINITY, f64::max);
        let resident = most(samples, |sample| sample.resident_mib);
        let wal = most(samples, |sample| sample.wal_mib);
        let early = most(&settled[..quarter], |sample| sample.descriptors);
        let late = most(&settled[settled.len() - quarter..], |sample| sample.descriptors);
        let slope = slope(settled) * 3_600.0;
        let growth = last.resident_mib - first.resident_mib;
        let is_long = last.seconds - first.seconds >= LEAST_SECONDS;
        let mut misses = Vec::new();
        if is_long && slope >= SLOPE_MIB {
            misses.push("the resident memory grows by 1 MiB or more an hour");
        }
        if !is_long && growth >= GROWTH_MIB {
            misses.push("the resident memory grows by 24 MiB or more");
        }
        if late > early + SPARE_DESCRIPTORS {
            misses.push("descriptors leak");
        }
        if wal >= WAL_MIB {
            misses.push("the write-ahead log reaches 64 MiB");
        }
        let memory = if is_long {
            format!("a slope of {slope:+.2} MiB an hour")
        } else {
            format!("{growth:+.1} MiB after the warm-up, too short for a slope")
        };
        Ok(Self {
            sentence: format!(
                "resident memory at most {resident:.0} MiB, {memory}; {early:.0} descriptors after the warm-up and {late:.0} at \
                 the end; a WAL of at most {wal:.1} MiB"
            ),
            misses,
        })
    }
}

/// The slope of the resident memory by least squares, in MiB a second.
#[expect(clippy::cast_precision_loss, reason = "some thousands are exact")]
fn slope(samples: &[Sample]) -> f64 {
    let count = samples.len() as f64;
    let mean = |value: fn(&Sample) -> f64| samples.iter().map(value).sum::<f64>() / count;
    let (x, y) = (mean(|sample| sample.seconds), mean(|sample| sample.resident_mib));
    let covariance: f64 = samples
        .iter()
        .map(|sample| (sample.seconds - x) * (sample.resident_mib - y))
        .sum();
    let variance: f64 = samples.iter().map(|sample| (sample.seconds - x).powi(2)).sum();
    if variance > 0.0 {
        covariance / variance
    } else {
        0.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Samples of an hour that change by so much from the first to the last.
    fn hour(resident: f64, descriptors: f64, wal_mib: f64) -> Vec<Sample> {
        let sample = |number: u32| Sample {
            seconds: f64::from(number) * 10.0,
            resident_mib: 100.0 + resident * f64::from(number) / 360.0,
            descriptors: 40.0 + descriptors * f64::from(number) / 360.0,
            wal_mib,
        };
        (1..=360).map(sample).collect()
    }

    #[test]
    fn an_hour_is_held_against_each_limit() {
        assert!(Verdict::of(&hour(0.9, 3.0, 60.0)).unwrap().misses.is_empty());
        for (case, word) in [
            (hour(1.1, 0.0, 0.0), "memory"),
            (hour(0.0, 20.0, 0.0), "descriptors"),
            (hour(0.0, 0.0, 64.0), "write-ahead"),
        ] {
            let verdict = Verdict::of(&case).unwrap();
            assert_eq!(verdict.misses.len(), 1, "{}", verdict.sentence);
            assert!(verdict.misses[0].contains(word), "{:?}", verdict.misses);
        }
    }

    #[test]
    fn a_short_run_is_held_against_its_growth() {
        let verdict = Verdict::of(&hour(400.0, 0.0, 0.0)[..60]).unwrap();
        assert!(verdict.sentence.contains("too short"), "{}", verdict.sentence);
        assert_eq!(verdict.misses.len(), 1);
    }
}
