//! What waits to be sent: one file for each report, whole or not there.
//!
//! ```text
//! push   draft ──► fsync ──► rename to 00…07 ──► fsync of the folder ──► Ok
//! take   the lowest number; a digest in its first line says whether it is whole
//! sent   200 ──► rename into sent/           killed between the two: sent again, under the same name of the report
//! ```
//!
//! Keeps AG-3.

use crate::folder::{Folder, disk};
use crate::sent::{self, Upload};
use crate::trouble::{Cause, Trouble};
use provost_inventory::wire::Report;
use provost_words::digest::sha256_hex;
use provost_words::durable::sync_folder;
use provost_words::time::Timestamp;
use std::fs;

/// LIMIT: bytes that wait (F4.10).
pub(crate) const MAX_BYTES: u64 = 64 << 20;
/// LIMIT: bytes of one report. The server takes 4 MiB (F3.9).
pub(crate) const MAX_SEGMENT: u64 = 8 << 20;
const LEAD: &str = "provost-queue 1 ";
const TORN: &str = ".torn";
const REFUSED: &str = ".refused";

/// The queue.
#[derive(Debug)]
pub(crate) struct Queue {
    folder: Folder,
}

/// Something that waits.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Segment {
    /// Its place.
    pub number: u64,
    /// What is sent, byte for byte.
    pub body: Vec<u8>,
}

/// How much there is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Depth {
    /// How many wait.
    pub waiting: usize,
    /// How many were set aside, torn or refused.
    pub aside: usize,
    /// The bytes of all of them.
    pub bytes: u64,
}

impl Queue {
    /// Opens the queue of an agent. Drafts of what never was in it are removed.
    ///
    /// Errors: folder, disk.
    pub fn open(agent: &Folder) -> Result<Self, Trouble> {
        let queue = Self {
            folder: agent.below("queue")?,
        };
        for name in queue.folder.names()? {
            if name.starts_with('.') {
                queue.folder.remove(&name)?;
            }
        }
        Ok(queue)
    }

    /// Opens the queue to look at it; drafts may be somebody's who works.
    ///
    /// Errors: folder, disk.
    pub fn look(agent: &Folder) -> Result<Self, Trouble> {
        let folder = agent.below("queue")?;
        Ok(Self { folder })
    }

    /// Adds a report at the end; when this returns, it outlives a loss of power.
    ///
    /// Errors: disk, also when there is no room for it.
    pub fn push(&self, body: &[u8]) -> Result<u64, Trouble> {
        let segment = written(body);
        let size = segment.len() as u64;
        if size > MAX_SEGMENT || self.depth()?.bytes + size > MAX_BYTES {
            let shown = self.folder.path().display();
            let line = format!(
                "there is no room for {size} bytes in {shown}, which holds {} MiB",
                MAX_BYTES >> 20
            );
            return Err(Trouble::new(Cause::Disk, line).fix("wait until the server takes what is there"));
        }
        let last = self
            .folder
            .names()?
            .iter()
            .filter_map(|name| number_of(name))
            .max();
        let number = last.unwrap_or(0) + 1;
        self.folder.create(&name_of(number), &segment)?;
        Ok(number)
    }

    /// Returns what is next, without removing it. What is torn is set aside and told to `say`.
    ///
    /// Errors: folder, disk.
    pub fn next(&self, say: &dyn Fn(&str)) -> Result<Option<Segment>, Trouble> {
        for name in self.folder.names()? {
            let Some(number) = number_of(&name).filter(|number| name == name_of(*number)) else {
                continue;
            };
            let Some(bytes) = self.folder.read_up_to(&name, MAX_SEGMENT)? else {
                continue;
            };
            match body_of(&bytes) {
                Some(body) => {
                    let body = body.to_vec();
                    return Ok(Some(Segment { number, body }));
                }
                None => self.aside(number, TORN, "is torn", say)?,
            }
        }
        Ok(None)
    }

    /// Leaves out of a report that waits what folders of projects are called: on the disk first, so that what is kept of it is what was sent.
    /// Says whether it names none now: one that this version cannot read may.
    ///
    /// Errors: disk.
    pub fn leave_out_project_names(&self, segment: &mut Segment) -> Result<bool, Trouble> {
        const MEMBER: &[u8] = b"\"projectName\"";
        if !segment.body.windows(MEMBER.len()).any(|part| part == MEMBER) {
            return Ok(true);
        }
        let Ok(mut report) = serde_json::from_slice::<Report>(&segment.body) else {
            return Ok(false);
        };
        if !report.leave_out_project_names() {
            return Ok(true);
        }
        let body = serde_json::to_vec(&report)
            .map_err(|error| Trouble::new(Cause::Disk, format!("the report cannot be written: {error}")))?;
        self.folder.replace(&name_of(segment.number), &written(&body))?;
        segment.body = body;
        Ok(true)
    }

    /// Moves what the server has to what was sent.
    ///
    /// Errors: disk.
    pub fn sent(&self, agent: &Folder, segment: &Segment, now: Timestamp) -> Result<(), Trouble> {
        sent::keep_report(
            agent,
            &self.folder.file(&name_of(segment.number)),
            segment.number,
            now,
        )?;
        sync_folder(self.folder.path()).map_err(|error| disk(self.folder.path(), "write", &error))
    }

    /// Sets aside what the server will never take.
    ///
    /// Errors: disk.
    pub fn refused(&self, segment: &Segment, say: &dyn Fn(&str)) -> Result<(), Trouble> {
        self.aside(segment.number, REFUSED, "is not taken by the server", say)
    }

    fn aside(&self, number: u64, end: &str, why: &str, say: &dyn Fn(&str)) -> Result<(), Trouble> {
        let from = self.folder.file(&name_of(number));
        let to = self.folder.file(&format!("{}{end}", name_of(number)));
        say(&format!(
            "{} {why} and is set aside as {}",
            from.display(),
            to.display()
        ));
        fs::rename(&from, &to)
            .and_then(|()| sync_folder(self.folder.path()))
            .map_err(|error| disk(&from, "rename", &error))
    }

    /// Removes what was set aside before an instant, and the oldest of more than are kept.
    ///
    /// Errors: disk.
    pub fn forget_aside(&self, before: Timestamp, most: usize) -> Result<(), Trouble> {
        let mut names = self.folder.names()?;
        names.retain(|name| name.ends_with(TORN) || name.ends_with(REFUSED));
        let surplus = names.len().saturating_sub(most);
        for (place, name) in names.iter().enumerate() {
            let is_old = sent::changed_at(&self.folder.file(name)).is_some_and(|at| at < before);
            if place < surplus || is_old {
                self.folder.remove(name)?;
            }
        }
        Ok(())
    }

    /// Returns what waits and what the server refused.
    ///
    /// Errors: folder, disk.
    pub fn contents(&self) -> Result<Vec<Upload>, Trouble> {
        let mut contents = Vec::new();
        for name in self.folder.names()? {
            let Some(number) = number_of(&name).filter(|_| !name.ends_with(TORN)) else {
                continue;
            };
            let state = if name == name_of(number) {
                "waits"
            } else {
                "refused"
            };
            let Some(at) = sent::changed_at(&self.folder.file(&name)) else {
                continue;
            };
            let bytes = self.folder.read_up_to(&name, MAX_SEGMENT)?.unwrap_or_default();
            contents.extend(body_of(&bytes).map(|body| Upload {
                kind: "report",
                state,
                at,
                body: body.to_vec(),
            }));
        }
        Ok(contents)
    }

    /// Returns how much there is.
    ///
    /// Errors: disk.
    pub fn depth(&self) -> Result<Depth, Trouble> {
        let mut depth = Depth::default();
        for name in self.folder.names()? {
            let path = self.folder.file(&name);
            depth.bytes += fs::symlink_metadata(&path).map_or(0, |found| found.len());
            match number_of(&name) {
                Some(number) if name == name_of(number) => depth.waiting += 1,
                Some(_) => depth.aside += 1,
                None => {}
            }
        }
        Ok(depth)
    }
}

fn name_of(number: u64) -> String {
    format!("{number:020}")
}

/// Returns the number that a name begins with, what was set aside included: no number is given twice beside it.
fn number_of(name: &str) -> Option<u64> {
    let digits = name.get(..20)?;
    let is_known = matches!(&name[20..], "" | TORN | REFUSED);
    (is_known && digits.bytes().all(|byte| byte.is_ascii_digit())).then(|| digits.parse().ok())?
}

fn written(body: &[u8]) -> Vec<u8> {
    let mut segment = format!("{LEAD}{} {}\n", body.len(), sha256_hex(body)).into_bytes();
    segment.extend_from_slice(body);
    segment
}

/// Returns what a segment holds, if it is whole.
pub(crate) fn body_of(segment: &[u8]) -> Option<&[u8]> {
    let rest = segment.strip_prefix(LEAD.as_bytes())?;
    let end = rest.iter().position(|byte| *byte == b'\n')?;
    let (length, digest) = std::str::from_utf8(&rest[..end]).ok()?.split_once(' ')?;
    let body = &rest[end + 1..];
    (length == body.len().to_string() && digest == sha256_hex(body)).then_some(body)
}
