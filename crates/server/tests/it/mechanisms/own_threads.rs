//! Work of areas goes to other threads by the kernel alone, which has none in a simulation (ADR 0023): else its clock goes on while
//! a thread works, by as much as that thread happens to need, and one seed has two traces.

use crate::areas_graph::folders_of_areas;
use std::path::Path;

/// What starts a thread, or has one of the runtime's work.
const STARTS: [&str; 4] = [
    "spawn_blocking",
    "spawn_thread",
    "thread::spawn",
    "thread::Builder",
];

/// What starts threads beside the kernel and why no simulation gets there: the end of a path, how often, and the reason.
const KNOWN: [(&str, usize, &str); 5] = [
    (
        "backtests/engine.rs",
        1,
        "starts none in a simulation, and works where it is",
    ),
    (
        "history/seal.rs",
        1,
        "starts none in a simulation, and works where it is",
    ),
    (
        "decisions/event_windows.rs",
        2,
        "a simulation has no policy that asks for the past",
    ),
    (
        "resource_credentials/external/mod.rs",
        1,
        "a simulation has no secret manager",
    ),
    (
        "resource_credentials/external/vault.rs",
        1,
        "a simulation has no secret manager",
    ),
];

/// Says how often a source starts threads, comments left out.
fn starts(text: &str) -> usize {
    let code = text
        .lines()
        .map(|line| line.split("//").next().unwrap_or_default());
    code.filter(|line| STARTS.iter().any(|start| line.contains(start)))
        .count()
}

fn look(folder: &Path, found: &mut Vec<(String, usize)>) {
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            look(&path, found);
            continue;
        }
        let name = path.to_str().unwrap().replace('\\', "/");
        let of_product = name
            .strip_suffix(".rs")
            .filter(|name| !name.ends_with("tests") && !name.ends_with("testing"));
        if of_product.is_some() {
            let count = starts(&std::fs::read_to_string(&path).unwrap());
            if count > 0 {
                found.push((name, count));
            }
        }
    }
}

/// No area starts a thread that a simulation would not know of (R16, R21).
#[test]
fn areas_start_no_thread_beside_the_kernel() {
    let mut found = Vec::new();
    for folder in folders_of_areas().values() {
        look(folder, &mut found);
    }
    for (path, count) in &found {
        let known = KNOWN.iter().find(|(end, _, _)| path.ends_with(end));
        let allowed = known.map_or(0, |(_, allowed, _)| *allowed);
        assert!(
            *count <= allowed,
            "{path} starts {count} threads: use Kernel::blocking, which works where it is in a simulation"
        );
    }
    for (end, count, _) in KNOWN {
        assert!(
            found.iter().any(|(path, n)| path.ends_with(end) && *n == count),
            "{end} starts others now"
        );
    }
}
