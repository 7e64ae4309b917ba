//! Sealing of recorded history, which no request asks for: a reconciler of the server makes a file of rows by itself.
//!
//! ```text
//! a store with chunks that are due · start ─── seconds later, with the fault in the n-th call of one thread:
//!   seal-commit    writer-0        unit: claim                             unit: the segment counts, its chunks no more
//!   seal-segment   history-sealer               write · sync · rename · sync
//!   the server lives:  the history, an import                              kill -9 in any case
//! start again · the history · kill -9 · the claim's ten minutes pass · start again · a segment, the history
//!   store check · audit verify · no file without a row
//! ```
//!
//! The history is right when every event of an import that was answered is there once (`power/history.rs`).
//!
//! Absent on purpose: the removal of chunks that a segment stands for, two hours later; object stores, which are not
//! written by calls on files.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use serde_json::json;

use super::base::{self, Base};
use super::fault::{Fault, Point};
use super::judge::Violation;
use super::station::PointOutcome;
use super::strace::{self, Call};
use super::threads;
use crate::failure::{Context, Failure, Outcome};
use crate::http::{Connection, Request};
use crate::power::history::missing;
use crate::product::{Bootstrap, Installation, Server};
use crate::{clock, process};

/// Whose calls are failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part {
    /// The thread that writes the segment's file.
    Segment,
    /// The thread that writes the store.
    Commit,
}

pub const EACH: [Part; 2] = [Part::Segment, Part::Commit];

/// How many imports are looked for; each is a chunk.
const LOTS: usize = 40;
/// The import that is sent beside the fault.
const PROBE: usize = LOTS;
/// How many events an import has that is looked for: two, as `power/history.rs` expects.
const EVENTS: usize = 2;
/// How many lots of another source fill an import: as many events as one takes, and more than are due after a while.
const FILLING: usize = 2_500;
/// A commit writes its pages to the log in the same way, some hundred calls long: every so many stand for all.
const PAGES: usize = 35;
/// Three rounds of the reconciler, and a slow machine.
const PATIENCE: Duration = Duration::from_secs(30);

impl Part {
    /// The name that `--operation` takes.
    pub fn id(self) -> &'static str {
        match self {
            Self::Segment => "seal-segment",
            Self::Commit => "seal-commit",
        }
    }

    fn thread(self) -> &'static str {
        match self {
            Self::Segment => "history-sealer",
            Self::Commit => "writer-0",
        }
    }

    /// How many imports of another source wait to be sealed. The sealer's thread is found while it reads and compresses, so
    /// that has to take a while; a commit writes again what the chunks hold, so they have to be few.
    fn fillings(self) -> usize {
        match self {
            Self::Segment => 16,
            Self::Commit => 1,
        }
    }

    pub fn wants(self, point: &Point) -> bool {
        let Call { name, number, .. } = &point.call;
        self == Self::Segment || name != "pwrite64" || *number <= 2 || number.is_multiple_of(PAGES)
    }
}

/// A place where sealing is tried, time after time.
pub struct SealingSite<'a> {
    pub base: &'a Base,
    pub folder: PathBuf,
}

/// Installs what dates claims back.
pub fn find_or_install() -> Outcome {
    process::find_or_install("sqlite3")
}

impl SealingSite<'_> {
    /// Tries one point; without one, what happens when the server is killed after it has sealed.
    pub fn attempt(&self, part: Part, point: Option<&Point>) -> Outcome<PointOutcome> {
        let installation = self.begin(part)?;
        let mut server = installation.serve()?;
        let trace = self.folder.join("trace");
        let thread = await_thread(&server, part.thread())?;
        let traced = strace::attach(&thread, &trace, point.map(Point::injection).as_deref())?;
        let may_break = part == Part::Commit && point.is_some_and(|point| self.may_break(point));
        let mut connection = Connection::new(server.address);
        let is_over = clock::poll_until(PATIENCE, Duration::from_millis(20), || {
            server.has_ended()
                || (may_break && is_injected(&trace))
                || self
                    .status(&mut connection, "segments")
                    .is_ok_and(|segments| segments > 0)
        });
        let died = server.has_ended();
        let hit = died || is_injected(&trace);
        let mut lots: Vec<usize> = (0..LOTS).collect();
        let (mut violations, mut probe) = (Vec::new(), None);
        if point.is_some() && !died {
            probe = connection.send(&lot(&self.base.bootstrap, PROBE)).ok();
            lots.extend(probe.iter().filter(|probe| probe.is_success()).map(|_| PROBE));
            // A store that failed may answer nothing, but nothing wrong.
            match missing(&mut connection, &self.base.bootstrap, &lots) {
                Ok(wrong) => violations.extend(wrong),
                Err(_) if may_break => {}
                Err(failure) => violations.push(failure.to_string()),
            }
        }
        drop(server);
        let calls = traced.ended()?;
        if calls.iter().any(|call| call.injected && !self.is_ours(call)) {
            // An event or the log was hit, which no disk does.
            return Ok(PointOutcome {
                calls,
                hit: false,
                violations: Vec::new(),
            });
        }
        let is_killed = point.is_some_and(|point| point.fault == Fault::Kill);
        if died && !is_killed {
            violations.push("the server ended by itself".to_owned());
        }
        if !is_over {
            violations.push(format!("nothing was sealed within {} s", PATIENCE.as_secs()));
        }
        let is_lost = |call: &Call| call.injected && !self.is_folder(call);
        let is_broken = may_break && point.is_some_and(Point::loses) && calls.iter().any(is_lost);
        if let Some(probe) = probe.filter(|_| !is_killed) {
            let is_refused = probe.status == 503;
            // A segment's file is no matter of the store's.
            let is_right = if is_broken {
                is_refused
            } else {
                probe.is_success() || (may_break && is_refused)
            };
            if !is_right {
                violations.push(format!(
                    "an import beside the fault was answered {}",
                    probe.summary()
                ));
            }
        }
        // What follows changes the store, and whoever looks for a cause wants it as it was.
        base::copy_folder(&self.folder.join("data"), &self.folder.join("at-the-fault"))?;
        let after = self.look_after(part, &installation, &lots, point, &calls);
        if !violations.is_empty() || !after.as_ref().is_ok_and(Vec::is_empty) {
            let kept = format!("kept-{}-{}", part.id(), clock::since_epoch().as_nanos());
            base::copy_folder(&self.folder, &self.folder.with_extension(kept))?;
        }
        violations.extend(after?);
        Ok(PointOutcome {
            calls,
            hit,
            violations,
        })
    }

    /// Whether the store may take no changes after it (WK-2): it must not after a loss, and SQLite takes a sync that was
    /// interrupted for one that failed.
    fn may_break(&self, point: &Point) -> bool {
        let is_interrupted = point.fault == Fault::Eintr && point.call.name.ends_with("sync");
        let is_everything = point.fault == Fault::EioFromHere;
        (point.loses() || is_interrupted) && (is_everything || !self.is_folder(&point.call))
    }

    /// The name of the log is durable since the store was opened, by a sync of the product's own. SQLite syncs the folder
    /// once more with the first commit, and passes over a failure.
    fn is_folder(&self, call: &Call) -> bool {
        Path::new(&call.place) == self.folder.join("data")
    }

    /// Whether a call is about a file of the installation; its segments lie in the data folder.
    pub fn is_ours(&self, call: &Call) -> bool {
        Path::new(&call.place).starts_with(self.folder.join("data"))
    }

    /// An installation whose chunks are due from its start on.
    fn begin(&self, part: Part) -> Outcome<Installation> {
        let due = self.folder.with_extension(part.id());
        if !due.is_dir() {
            self.record(part, &due)?;
        }
        drop(std::fs::remove_dir_all(&self.folder));
        std::fs::create_dir_all(&self.folder).context("cannot create a folder")?;
        base::copy_folder(&due, &self.folder.join("data"))?;
        Ok(base::installation(&self.base.binary, &self.folder))
    }

    /// Imports what has waited long enough to be sealed.
    fn record(&self, part: Part, due: &Path) -> Outcome {
        let folder = self.folder.with_extension("records");
        let server = self.base.copy(&folder)?.serve()?;
        let mut connection = Connection::new(server.address);
        let fillings =
            (0..part.fillings()).map(|one| import(&self.base.bootstrap, "others", one * FILLING, FILLING));
        let lots = (0..LOTS).map(|number| lot(&self.base.bootstrap, number));
        for request in fillings.chain(lots) {
            let imported = connection.fetch(&request)?;
            if imported["refused"] != json!(0) {
                return Err(Failure::new(format!(
                    "lines of an import were refused: {imported}"
                )));
            }
        }
        server.kill()?;
        let data = folder.join("data");
        sqlite(
            &data,
            "UPDATE history_chunks SET created_at = created_at - 3600000",
        )?;
        std::fs::rename(&data, due).context("cannot keep what is due")
    }

    /// The history after a restart, and once more when the sealing of what waits was repeated.
    fn look_after(
        &self,
        part: Part,
        installation: &Installation,
        lots: &[usize],
        point: Option<&Point>,
        calls: &[Call],
    ) -> Outcome<Vec<Violation>> {
        let data = self.folder.join("data");
        let server = installation.serve().context("the start after the fault")?;
        let mut connection = Connection::new(server.address);
        let mut violations = self.history(part, lots, &mut connection)?;
        let segments = self.status(&mut connection, "segments")?;
        drop(server);
        let counting = sqlite(&data, "SELECT name FROM history_segments WHERE state = 'sealed'")?;
        let injected = calls.iter().any(|call| call.injected);
        if let Some(point) = point.filter(|point| injected && point.loses())
            && let Some(name) = segment(calls).filter(|name| counting.lines().any(|one| one == *name))
        {
            violations.push(format!("{name} counts although its {} failed", point.call.name));
        }
        if segments == 0 {
            // The claim of a writer that was killed holds for ten minutes.
            sqlite(
                &data,
                "UPDATE history_segments SET updated_at = updated_at - 3600000 WHERE state = 'writing'",
            )?;
            let server = installation.serve().context("the second start after the fault")?;
            let mut connection = Connection::new(server.address);
            let is_sealed = clock::poll_until(PATIENCE, Duration::from_millis(20), || {
                self.status(&mut connection, "segments")
                    .is_ok_and(|segments| segments > 0)
            });
            if !is_sealed {
                violations.push("nothing is sealed any more, an hour later".to_owned());
            }
            violations.extend(self.history(part, lots, &mut connection)?);
        }
        violations.extend(strays(&data)?);
        for words in [&["store", "check"][..], &["audit", "verify"]] {
            violations.extend(installation.check(words).err().map(|failure| failure.to_string()));
        }
        Ok(violations)
    }

    /// What is wrong with the history: each event of the lots one by one, those of the other source as a sum.
    fn history(&self, part: Part, lots: &[usize], connection: &mut Connection) -> Outcome<Vec<Violation>> {
        let mut violations = missing(connection, &self.base.bootstrap, lots)?;
        let events = self.status(connection, "events")?;
        let known = (part.fillings() * FILLING + lots.len()) * EVENTS;
        // An import that was not answered may be there.
        let most = if lots.contains(&PROBE) {
            known
        } else {
            known + EVENTS
        };
        if events != known && events != most {
            violations.push(format!("{events} events count instead of {known}"));
        }
        Ok(violations)
    }

    /// A number of the history's status.
    fn status(&self, connection: &mut Connection, name: &str) -> Outcome<usize> {
        let path = self.base.bootstrap.path("policies/history/status");
        let status = connection.fetch(&Request::get(path, &self.base.bootstrap.token))?;
        let number = status[name]
            .as_u64()
            .and_then(|number| usize::try_from(number).ok());
        number.context(format_args!("a status without {name}"))
    }
}

/// The segment whose file a traced thread wrote.
fn segment(calls: &[Call]) -> Option<&str> {
    calls.iter().find_map(|call| {
        let name = Path::new(&call.place).file_name()?.to_str()?;
        name.strip_suffix(".partial")
    })
}

/// INVARIANT HS-4: a file of the segments' folder has a row, and what was not finished is swept.
fn strays(data: &Path) -> Outcome<Vec<Violation>> {
    let known = sqlite(data, "SELECT name FROM history_segments")?;
    let mut strays = Vec::new();
    for entry in std::fs::read_dir(data.join("history")).context("cannot read the folder of segments")? {
        let entry = entry.context("cannot read the folder of segments")?;
        let name = entry.file_name().to_string_lossy().into_owned();
        // The marker says whose place it is.
        if name != "place.json" && !known.lines().any(|one| one == name) {
            strays.push(format!("the file {name} has no row"));
        }
    }
    Ok(strays)
}

/// Asks the database of a data folder that no server works on.
fn sqlite(data: &Path, statement: &str) -> Outcome<String> {
    process::output(
        Command::new("sqlite3")
            .arg(data.join("provost.db"))
            .arg(statement),
    )
}

/// Waits for a thread of this name.
fn await_thread(server: &Server, name: &str) -> Outcome<Vec<u32>> {
    let mut found = Err(Failure::new(""));
    clock::poll_until(PATIENCE, Duration::from_millis(2), || {
        found = threads::named(server.pid(), name);
        found.is_ok()
    });
    found
}

/// strace writes down a call before the next one is made.
fn is_injected(trace: &Path) -> bool {
    std::fs::read_to_string(trace).is_ok_and(|text| text.contains("(INJECTED)"))
}

/// An import that is looked for.
fn lot(bootstrap: &Bootstrap, number: usize) -> Request {
    import(bootstrap, "power", number, 1)
}

/// So many lots from a number on in one import, each event with a millisecond of its own of the day before.
fn import(bootstrap: &Bootstrap, source: &str, first: usize, lots: usize) -> Request {
    let (year, month, day) = clock::civil_date(clock::since_epoch().as_secs() / 86_400 - 1);
    let mut lines = String::new();
    for millis in first * EVENTS..(first + lots) * EVENTS {
        let (minute, second, milli) = (millis / 60_000, millis / 1_000 % 60, millis % 1_000);
        let line = json!({
            "id": format!("{}-{}", millis / EVENTS, millis % EVENTS),
            "at": format!("{year}-{month:02}-{day:02}T00:{minute:02}:{second:02}.{milli:03}Z"),
            "occasion": "post_tool",
            "attributes": { "tool.id": source },
        });
        lines += &line.to_string();
        lines += "\n";
    }
    let path = bootstrap.path(&format!("policies/history/import?source={source}"));
    let mut request = Request::new("POST", path, &bootstrap.token);
    request.content = Some(("application/x-ndjson", lines.into_bytes()));
    request
}

#[cfg(test)]
mod tests {
    use super::*;

    fn call(name: &str, number: usize, place: &str) -> Call {
        Call {
            thread: 0,
            name: name.into(),
            number,
            place: place.into(),
            injected: false,
            at: Duration::ZERO,
        }
    }

    #[test]
    fn the_segment_of_a_trace_is_the_file_that_was_begun() {
        let calls = [
            call("write", 1, "/d/history/segment-a-b.parquet.partial"),
            call("rename", 1, "/d/history/segment-a-b.parquet"),
        ];
        assert_eq!(segment(&calls), Some("segment-a-b.parquet"));
        assert_eq!(segment(&[call("fsync", 1, "/d/provost.db-wal")]), None);
    }

    #[test]
    fn only_pages_of_a_commit_are_left_out() {
        let wants = |part: Part, name: &str, number| {
            let call = call(name, number, "/d/provost.db-wal");
            let fault = Fault::Eio;
            part.wants(&Point { fault, call })
        };
        assert!(wants(Part::Commit, "pwrite64", 1) && wants(Part::Commit, "pwrite64", 70));
        assert!(!wants(Part::Commit, "pwrite64", 23));
        assert!(wants(Part::Commit, "fsync", 23) && wants(Part::Segment, "pwrite64", 23));
    }
}
