//! What the operating system knows of processes, the machine and its disk.

use std::fs::File;
use std::io::Write;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use super::load::quantile;
use crate::failure::{Context, Outcome};
use crate::{clock, process};

/// The kernel counts a process's time in hundredths of a second, whatever its own tick.
const TICK: Duration = Duration::from_millis(10);

/// Processor time of a process so far; none where there is no /proc.
pub fn cpu_time(pid: u32) -> Option<Duration> {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    Some(parse_stat(&stat)?.0)
}

/// Processor time of a process and its children that live.
pub fn cpu_time_of_family(parent: u32) -> Option<Duration> {
    let mut sum = cpu_time(parent)?;
    for entry in std::fs::read_dir("/proc").ok()?.flatten() {
        let stat = std::fs::read_to_string(entry.path().join("stat")).unwrap_or_default();
        if let Some((time, of)) = parse_stat(&stat)
            && of == parent
        {
            sum += time;
        }
    }
    Some(sum)
}

/// Processor time of the children of this process that ended and were waited for.
pub fn cpu_time_of_ended_children() -> Option<Duration> {
    let stat = std::fs::read_to_string("/proc/self/stat").ok()?;
    let fields: Vec<_> = stat.rsplit_once(')')?.1.split_whitespace().collect();
    let ticks = |place: usize| fields.get(place)?.parse::<u32>().ok();
    Some(TICK * ticks(13)?.checked_add(ticks(14)?)?)
}

/// User and system time, and the parent, of a line of /proc/<pid>/stat.
fn parse_stat(stat: &str) -> Option<(Duration, u32)> {
    // The name may hold spaces and brackets; what is counted stands after the last bracket.
    let fields: Vec<_> = stat.rsplit_once(')')?.1.split_whitespace().collect();
    let ticks = fields
        .get(11)?
        .parse::<u32>()
        .ok()?
        .checked_add(fields.get(12)?.parse().ok()?)?;
    Some((TICK * ticks, fields.get(1)?.parse().ok()?))
}

/// Resident memory in MiB.
pub fn resident_mib(pid: u32) -> Option<f64> {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"))?;
    let kib: f64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    Some(kib / 1024.0)
}

/// How fast a folder's disk makes one block of 4 KiB after the other durable.
pub struct Syncs {
    pub per_second: f64,
    pub p50: Duration,
    pub p99: Duration,
}

pub fn measure_syncs(folder: &Path, duration: Duration) -> Outcome<Syncs> {
    let path = folder.join("syncs");
    let mut file = File::create(&path).context("cannot create a file to sync")?;
    let block = [0x5a; 4096];
    let mut latencies = Vec::new();
    let start = clock::now();
    while start.elapsed() < duration {
        let before = clock::now();
        file.write_all(&block).context("cannot write a block")?;
        file.sync_data().context("cannot sync a block")?;
        latencies.push(before.elapsed());
    }
    let total: Duration = latencies.iter().sum();
    std::fs::remove_file(&path).context("cannot remove the synced file")?;
    latencies.sort_unstable();
    #[expect(clippy::cast_precision_loss, reason = "some thousands are exact")]
    let per_second = latencies.len() as f64 / total.as_secs_f64();
    Ok(Syncs {
        per_second,
        p50: quantile(&latencies, 50),
        p99: quantile(&latencies, 99),
    })
}

/// Date, processor, kernel, compiler and commit, one line each.
pub fn describe() -> Vec<String> {
    let cpu = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let model = cpu
        .lines()
        .find_map(|line| line.strip_prefix("model name")?.split_once(": "));
    let model = model.map_or("unknown processor", |(_, model)| model);
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let say = |program: &str, words: &[&str]| {
        let mut command = Command::new(program);
        command.current_dir(process::root()).args(words);
        process::output(&mut command).map_or_else(|_| "unknown".to_owned(), |said| said.trim().to_owned())
    };
    vec![
        format!("Date: {}", clock::today()),
        format!("Machine: {model}, {cores} cores; {}", say("uname", &["-srm"])),
        format!("Compiler: {}", say("rustc", &["--version"])),
        format!("Commit: {}", say("git", &["describe", "--always", "--dirty"])),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_read_after_a_name_with_spaces_and_brackets() {
        let stat = "42 (a (b) c) S 7 42 42 0 -1 4194560 1 0 0 0 150 50 0 0 20 0 1 0 1 1 1";
        assert_eq!(parse_stat(stat), Some((Duration::from_secs(2), 7)));
        assert_eq!(parse_stat("42 (x"), None);
    }

    #[test]
    #[cfg(target_os = "linux")]
    fn this_process_has_time_and_memory() {
        let me = std::process::id();
        assert!(resident_mib(me).unwrap() > 0.1);
        let own = cpu_time(me).unwrap();
        assert!(cpu_time_of_family(me).unwrap() >= own);
    }

    #[test]
    fn syncs_take_time() {
        let syncs = measure_syncs(&std::env::temp_dir(), Duration::from_millis(20)).unwrap();
        assert!(syncs.per_second > 0.0 && syncs.p50 <= syncs.p99);
    }
}
