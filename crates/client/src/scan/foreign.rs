//! `provost scan --foreign FILE`: what another scanner found, as the body of an import. Nothing but keys and names leaves the file.

use crate::cli::{Exit, Failure, Terminal};
use provost_inventory::InventoryKey;
use provost_inventory::foreign::snyk;
use provost_words::entropy::{Entropy, SystemEntropy};
use serde_json::{Value, json};
use std::io::Read;
use std::path::Path;

/// LIMIT: the length of a report. Ours: it has the files of skills in it. Units: bytes.
const MOST: u64 = 64 << 20;
/// LIMIT: servers of one import (the operation's own).
const SERVERS: usize = 250;

/// Does it.
pub fn run(file: &Path, terminal: &Terminal) -> Result<(), Failure> {
    let unread = |error: std::io::Error| Failure::usage(format!("the report cannot be read: {error}"));
    let (mut reader, _) = terminal.input(file)?;
    let mut text = Vec::new();
    reader
        .by_ref()
        .take(MOST + 1)
        .read_to_end(&mut text)
        .map_err(unread)?;
    if text.len() as u64 > MOST {
        return Err(Failure::usage("the report has more than 64 MiB"));
    }
    let other = || Failure::usage("this is no report of snyk-agent-scan inspect --json");
    let report: Value = serde_json::from_slice(&text).map_err(|_| other())?;
    let found = snyk(&report, &InventoryKey::new(&SystemEntropy.seed())).ok_or_else(other)?;
    let servers: Vec<Value> = found
        .servers
        .iter()
        .take(SERVERS)
        .map(|(key, name)| json!({ "key": key, "name": name }))
        .collect();
    if servers.is_empty() {
        return Err(Failure::new(
            Exit::Refused,
            "the report has no server whose key says what runs",
        ));
    }
    let body = json!({ "source": "snyk_agent_scan", "servers": servers });
    terminal.print(format!("{body}\n").as_bytes())?;
    let beyond = found.servers.len().saturating_sub(SERVERS);
    let shown = found.servers.iter().take(SERVERS);
    let weak = shown.filter(|(key, _)| found.weak.contains(key)).count();
    terminal.note(&format!(
        "{} servers, {weak} of them with a key that does not say wholly what runs, by which nothing is approved; {} left out that have \
         no key or no name, {beyond} beyond what one import takes; nothing was sent",
        servers.len(),
        found.left_out
    ));
    Ok(())
}
