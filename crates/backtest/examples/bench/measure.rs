//! Clocks, memory, and the lines that `cargo xtask bench backtest` makes a table of.

use serde_json::json;
use std::time::{Duration, Instant};

/// What a figure has to be.
#[derive(Clone, Copy)]
pub enum Goal {
    AtLeast(f64),
    AtMost(f64),
    None,
}

/// Prints a line of the table; `busy` has, for each value, what it would be if the machine did nothing else.
pub fn line(table: &str, measure: &str, unit: &str, goal: Goal, values: &[f64], busy: &[f64]) {
    let (at_least, at_most) = match goal {
        Goal::AtLeast(goal) => (Some(goal), None),
        Goal::AtMost(goal) => (None, Some(goal)),
        Goal::None => (None, None),
    };
    let line = json!({"table": table, "measure": measure, "unit": unit, "values": values, "busy": busy,
        "atLeast": at_least, "atMost": at_most});
    println!("{line}");
}

/// Prints a sentence for the text beside the tables.
pub fn note(text: &str) {
    println!("{}", json!({ "note": text }));
}

/// What a piece of work took.
#[derive(Clone, Copy, Default)]
pub struct Cost {
    /// By the clock on the wall.
    pub wall: f64,
    /// On processors, of all threads.
    pub processor: f64,
}

/// Returns what the work gave and what it took.
pub fn cost<T>(work: impl FnOnce() -> T) -> (T, Cost) {
    let (start, before) = (now(), processor_time());
    let given = work();
    let wall = start.elapsed().as_secs_f64();
    let processor = processor_time().saturating_sub(before).as_secs_f64();
    (given, Cost { wall, processor })
}

/// Returns the rates of some rounds in millions a second: measured, and on a machine that does nothing else.
pub fn rates(events: u64, threads: usize, costs: &[Cost]) -> (Vec<f64>, Vec<f64>) {
    let rate = |seconds: f64| count(events) / 1e6 / seconds.max(1e-9);
    let idle = |cost: &Cost| rate(cost.processor / count(threads as u64));
    (
        costs.iter().map(|cost| rate(cost.wall)).collect(),
        costs.iter().map(idle).collect(),
    )
}

#[expect(clippy::cast_precision_loss, reason = "counts far below 2^53")]
pub fn count(count: u64) -> f64 {
    count as f64
}

#[expect(clippy::disallowed_methods, reason = "a benchmark reads the clock")]
pub fn now() -> Instant {
    Instant::now()
}

/// Returns how long all threads of the process, ended ones too, were on processors, in hundredths of seconds.
fn processor_time() -> Duration {
    let stat = std::fs::read_to_string("/proc/self/stat").unwrap_or_default();
    let fields = stat.rsplit(')').next().unwrap_or_default();
    let ticks = fields.split_whitespace().skip(11).take(2);
    let ticks: u64 = ticks.filter_map(|ticks| ticks.parse::<u64>().ok()).sum();
    Duration::from_millis(ticks * 10)
}

/// Makes the system forget the peak of memory, where it can.
pub fn reset_peak_memory() {
    drop(std::fs::write("/proc/self/clear_refs", "5"));
}

/// Returns the most memory that the process had at once since then. Units: MiB.
pub fn peak_memory_mib() -> f64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let kib = line.and_then(|line| line.trim().trim_end_matches(" kB").parse::<u64>().ok());
    count(kib.unwrap_or(0)) / 1024.0
}
