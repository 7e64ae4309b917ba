//! What history costs: bytes and time for each event, from recording to grouping.
//!
//! `cargo run -p provost-history --release --example measure_history -- RECORDING [EVENTS [REPETITION]]`
//!
//! Grows the recording to so many events (2 000 000), of which so many repeat a recorded call (1: all; 0: every event
//! is distinct; without it: one table for each of 1, 0.99 and 0), then records, seals, scans and groups them.
//! Reading is repeated three times; the median counts, and beside it the events per second of processor time, which
//! a busy machine falsifies less. The files are in the page cache: decoding is measured, not the disk.

#![expect(clippy::disallowed_methods, reason = "a benchmark reads the clock")]
#![expect(clippy::cast_precision_loss, reason = "figures for people")]

use provost_history::group::{self, Limits};
use provost_history::scan::{self, Projection, Watch};
use provost_history::synthetic::{Census, Recording, Shape, schema};
use provost_history::{
    Error, Event, Folder, Plan, Question, Recorder, Schema, Sealer, Segment, Source, Storage, chunk,
};
use std::error::Error as Fault;
use std::path::Path;
use std::sync::Arc;
use std::time::Instant;

const DAY_MS: i64 = 86_400_000;
const FROM: i64 = 1_780_000_000_000;
/// What a policy set reads, say.
const PROJECTION: [&str; 5] = ["subject", "groups", "tool", "resource", "amount"];
const RUNS: usize = 3;

fn main() -> Result<(), Box<dyn Fault>> {
    let mut arguments = std::env::args().skip(1);
    let recording = arguments
        .next()
        .ok_or("usage: bench RECORDING [EVENTS [REPETITION]]")?;
    let events = arguments.next().map_or(Ok(2_000_000), |text| text.parse())?;
    let repetitions = arguments
        .next()
        .map_or(Ok(vec![1.0, 0.99, 0.0]), |text| text.parse().map(|one| vec![one]))?;
    let recording = Recording::read(&std::fs::read_to_string(recording)?)?;
    for repetition in repetitions {
        let to = FROM + 90 * DAY_MS;
        let shape = Shape {
            events,
            users: 1_000,
            tools: 40,
            repetition,
            from: FROM,
            to,
            seed: 20_260_101,
        };
        println!(
            "\n{events} events, repetition {repetition}, 90 days, 1 000 users, 40 tools, seed {}",
            shape.seed
        );
        measure(&recording, shape, Path::new("target/bench-history"))?;
    }
    Ok(())
}

fn measure(recording: &Recording, shape: Shape, folder: &Path) -> Result<(), Box<dyn Fault>> {
    let schema = Arc::new(schema()?);
    let storage: Arc<dyn Storage> = Arc::new(Folder::open(folder)?);
    let names = write(recording, shape, &schema, storage.as_ref())?;
    println!(
        "  peak memory of writing   {} MiB, with the generator and its census",
        peak_memory_mib()
    );
    reset_peak_memory();
    let open = || -> provost_history::Result<Plan> {
        let open = |name: &String| Segment::open(Arc::clone(&storage), name, &schema).map(Source::Segment);
        let sources = names.iter().map(open).collect::<provost_history::Result<_>>()?;
        let question = Question {
            from: shape.from,
            to: shape.to,
            max_events: 1_000_000_000,
        };
        Plan::new(Arc::clone(&schema), sources, question)
    };
    for threads in [1, 2] {
        let label = |what: &str| format!("{what}, {threads} thread{}", if threads == 1 { "" } else { "s" });
        rate(&label("scan of 5 columns"), shape.events, || {
            let plan = open()?;
            let columns = plan.columns(&PROJECTION)?;
            let projection = Projection {
                columns: &columns,
                with_ids: false,
            };
            let sums = scan::fold(
                &plan,
                projection,
                threads,
                &Watch::default(),
                || 0_u64,
                |sum, _, batch| {
                    for column in &batch.columns {
                        *sum += column.codes.iter().map(|code| u64::from(*code)).sum::<u64>();
                    }
                    Ok(())
                },
            )?;
            Ok(format!("codes sum to {}", sums.iter().sum::<u64>()))
        })?;
        for (what, names) in [
            ("group by 5 columns", &PROJECTION[..]),
            ("group by tool, groups", &["tool", "groups"]),
        ] {
            rate(&label(what), shape.events, || {
                let plan = open()?;
                let columns = plan.columns(names)?;
                match group::group(&plan, &columns, Limits::default(), threads, &Watch::default()) {
                    Ok(groups) => Ok(format!("{} groups", groups.len())),
                    Err(Error::TooDistinct) => Ok("refused: too many groups".into()),
                    Err(cause) => Err(cause),
                }
            })?;
        }
    }
    rate("in the order of time, 5 columns and ids", shape.events, || {
        let plan = open()?;
        let columns = plan.columns(&PROJECTION)?;
        let mut runs = 0_u64;
        scan::ordered(&plan, &columns, &Watch::default(), |_, _| {
            runs += 1;
            Ok(())
        })?;
        Ok(format!("{runs} runs"))
    })?;
    names.iter().try_for_each(|name| storage.remove(name))?;
    println!("  peak memory of reading   {} MiB", peak_memory_mib());
    Ok(())
}

/// Grows, records and seals; returns the names of the segments.
fn write(
    recording: &Recording,
    shape: Shape,
    schema: &Arc<Schema>,
    storage: &dyn Storage,
) -> Result<Vec<String>, Box<dyn Fault>> {
    let (mut record, mut decode, mut seal) = (0, 0, 0);
    let (mut chunk_bytes, mut segment_bytes, mut behaviours) = (0, 0, 0);
    let mut names = Vec::new();
    let mut census = Census::default();
    let mut sealer = Sealer::new(Arc::clone(schema));
    let mut growth = recording.grow(shape)?.peekable();
    while growth.peek().is_some() {
        let events: Vec<_> = growth
            .by_ref()
            .take(5_000)
            .inspect(|event| census.count(event))
            .collect();
        let start = thread_nanos();
        let mut recorder = Recorder::new(Arc::clone(schema));
        for event in &events {
            event.with_values(|values| {
                recorder.record(&Event {
                    id: &event.id,
                    at: event.at,
                    values,
                })
            })?;
        }
        let bytes = chunk::encode(schema, &recorder.finish()?)?;
        record += thread_nanos() - start;
        chunk_bytes += bytes.len();
        let start = thread_nanos();
        let batch = chunk::decode(schema, &bytes)?;
        decode += thread_nanos() - start;
        let start = thread_nanos();
        if sealer.fits(&batch) {
            sealer.add(&batch)?;
        } else {
            let name = format!("segment-{}.parquet", names.len());
            let full = std::mem::replace(&mut sealer, Sealer::new(Arc::clone(schema)));
            let made = full.seal(storage, &name)?;
            segment_bytes += made.size_bytes;
            behaviours += made.behaviours.unwrap_or(made.rows);
            names.push(name);
            sealer.add(&batch)?;
        }
        seal += thread_nanos() - start;
    }
    let start = thread_nanos();
    let name = format!("segment-{}.parquet", names.len());
    let made = sealer.seal(storage, &name)?;
    names.push(name);
    segment_bytes += made.size_bytes;
    behaviours += made.behaviours.unwrap_or(made.rows);
    seal += thread_nanos() - start;
    let (distinct, counted) = census.distinct();
    let events = shape.events as f64;
    println!(
        "  distinct events          {distinct} of {counted} ({:.3} %)",
        100.0 * distinct as f64 / events
    );
    println!(
        "  behaviours in segments   {behaviours} in {} segments",
        names.len()
    );
    println!(
        "  chunk                    {:.1} bytes an event",
        chunk_bytes as f64 / events
    );
    println!(
        "  segment                  {:.1} bytes an event",
        segment_bytes as f64 / events
    );
    println!(
        "  record into chunks       {:.2} M events per processor second",
        events / record as f64 * 1e3
    );
    println!(
        "  decode chunks            {:.2} M events per processor second",
        events / decode as f64 * 1e3
    );
    println!(
        "  seal chunks              {:.2} M events per processor second",
        events / seal as f64 * 1e3
    );
    Ok(names)
}

/// Prints the median rate of some runs.
fn rate(
    what: &str,
    events: u64,
    mut run: impl FnMut() -> provost_history::Result<String>,
) -> Result<(), Box<dyn Fault>> {
    let mut times = Vec::new();
    let busy = processor_secs();
    let mut outcome = String::new();
    for _ in 0..RUNS {
        let start = Instant::now();
        outcome = run()?;
        times.push(start.elapsed());
    }
    times.sort_unstable();
    let (seconds, millions) = (times[RUNS / 2].as_secs_f64(), events as f64 / 1e6);
    let busy = (processor_secs() - busy) / RUNS as f64;
    println!(
        "  {what:<40} {:>7.1} M events/s {:>7.1} ms; per processor second {:>6.1} M; {outcome}",
        millions / seconds,
        seconds * 1e3,
        millions / busy
    );
    Ok(())
}

/// Returns how long this thread kept a processor busy, in nanoseconds, where the system says so.
fn thread_nanos() -> u64 {
    let stat = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
    stat.split_whitespace()
        .next()
        .and_then(|nanos| nanos.parse().ok())
        .unwrap_or(0)
}

/// Returns how long the process kept processors busy, in hundredths of a second, where the system says so.
fn processor_secs() -> f64 {
    let stat = std::fs::read_to_string("/proc/self/stat").unwrap_or_default();
    let fields = stat
        .rsplit(')')
        .next()
        .unwrap_or_default()
        .split_whitespace()
        .skip(11)
        .take(2);
    fields.filter_map(|ticks| ticks.parse::<f64>().ok()).sum::<f64>() / 100.0
}

/// Makes the system forget the peak, where it can.
fn reset_peak_memory() {
    drop(std::fs::write("/proc/self/clear_refs", "5"));
}

/// Returns the most memory that the process had at once, where the system says so.
fn peak_memory_mib() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    line.and_then(|line| line.trim().trim_end_matches(" kB").parse::<u64>().ok())
        .unwrap_or(0)
        / 1024
}
