//! What came of executions of the registered command lines: each line and program once a day, and no more than four times a day for a
//! client.

use crate::folder::Folder;
use crate::trouble::Trouble;
use provost_hooks::{Client, Execution};
use provost_words::digest::sha256_hex;
use provost_words::time::Timestamp;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

const NAME: &str = "executed.json";
/// How long an execution says something. Units: seconds.
const DAY_SECS: i64 = 86_400;
/// How long what failed is left alone. Units: seconds.
const AGAIN_SECS: i64 = 6 * 3_600;
/// LIMIT: executions of a client within a day: one, and where the line, the program or what it says changed three more. Ours.
const MOST_A_DAY: usize = 4;

/// What was executed last of a client.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Run {
    /// When, by this machine's clock.
    pub at: Timestamp,
    /// The digest of the line and of what the program was then.
    pub digest: String,
    /// Whether it answered as a hook does.
    pub has_answered: bool,
    /// What it said, for whoever owns the machine.
    pub says: String,
}

/// Executions of every client.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Executions {
    last: BTreeMap<String, Run>,
    /// The instants of a day.
    times: BTreeMap<String, Vec<Timestamp>>,
}

/// Returns the digest of a line and of a program as it lies on the disk.
pub(crate) fn digest(line: &str, program: &str) -> String {
    sha256_hex(format!("{line}\n{program}").as_bytes())
}

impl Executions {
    /// Reads the file; one that cannot be read is as none: it is executed again.
    ///
    /// Errors: folder.
    pub fn load(folder: &Folder) -> Result<Self, Trouble> {
        let bytes = folder.read(NAME)?.unwrap_or_default();
        Ok(serde_json::from_slice(&bytes).unwrap_or_default())
    }

    /// Keeps it.
    ///
    /// Errors: disk.
    pub fn save(&self, folder: &Folder) -> Result<(), Trouble> {
        folder.replace(NAME, &serde_json::to_vec_pretty(self).unwrap_or_default())
    }

    /// Returns the last execution of a client.
    pub fn last(&self, client: Client) -> Option<&Run> {
        self.last.get(client.word())
    }

    /// Returns what an execution of this line and this program says now. What was executed before, or by a clock that is ahead of this
    /// one, says nothing.
    pub fn standing(&self, client: Client, line: &str, program: &str, now: Timestamp) -> Execution {
        let run = self
            .last(client)
            .filter(|run| run.digest == digest(line, program) && is_within(run.at, now, DAY_SECS));
        match run {
            Some(run) if run.has_answered => Execution::Answered,
            Some(_) => Execution::Failed,
            None => Execution::Missing,
        }
    }

    /// Says whether a line is to be executed now.
    pub fn is_due(&self, client: Client, line: &str, program: &str, now: Timestamp) -> bool {
        let times = self.times.get(client.word()).map_or(&[][..], Vec::as_slice);
        let of_today = times.iter().filter(|at| is_within(**at, now, DAY_SECS)).count();
        let is_known = self.last(client).is_some_and(|run| {
            let secs = if run.has_answered { DAY_SECS } else { AGAIN_SECS };
            run.digest == digest(line, program) && is_within(run.at, now, secs)
        });
        !is_known && of_today < MOST_A_DAY
    }

    /// Notes what came of an execution.
    pub fn note(
        &mut self,
        client: Client,
        line: &str,
        program: &str,
        now: Timestamp,
        said: Result<String, String>,
    ) {
        let times = self.times.entry(client.word().to_owned()).or_default();
        times.retain(|at| is_within(*at, now, DAY_SECS));
        times.push(now);
        let run = Run {
            at: now,
            digest: digest(line, program),
            has_answered: said.is_ok(),
            says: said.unwrap_or_else(|why| why),
        };
        self.last.insert(client.word().to_owned(), run);
    }
}

fn is_within(at: Timestamp, now: Timestamp, secs: i64) -> bool {
    at <= now && now < at.plus_secs(secs)
}
