//! The log of what was judged on this machine, until the server has it.
//!
//! ```text
//! append ──► the line at the end of the last segment ──► fsync, where something was refused ──► the answer
//! killed on the way: the last line is torn, and is cut off at the next start
//! taken by the server ──► a segment that it has wholly goes; the last one stays and says where the chain stands
//! damaged on the disk ──► what does not follow is kept aside, and an entry tells the server how much that is
//! ```
//!
//! Keeps LJ-7, LJ-10, AG-4.

use super::chain::Link;
use crate::folder::{Folder, disk};
use crate::sent::changed_at;
use crate::trouble::{Cause, Trouble};
use provost_policy::Action;
use provost_words::time::Timestamp;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::fs::File;
use std::io::{Seek, SeekFrom, Write};
use std::path::Path;
use std::time::Duration;

/// The folder of the log, in that of the agent.
pub const LOG: &str = "decisions";
/// Where a chain is bound anew: whole when the former one has given it its place.
const ANEW: &str = "decisions.anew";
/// A chain that was bound anew.
const FORMER: &str = "decisions.former";
/// LIMIT: bytes of the log (F4.10).
const MOST_BYTES: u64 = 64 << 20;
/// LIMIT: bytes of a segment; ours: what is removed at once.
const MOST_SEGMENT: u64 = 1 << 20;
/// LIMIT: bytes of one entry: an event that the server records has 250 KiB, and its text within JSON may be longer.
const MOST_ENTRY: usize = 512 << 10;
/// LIMIT: bytes that are read of a segment: one that a last entry made longer, with room.
const MOST_READ: u64 = MOST_SEGMENT + 2 * MOST_ENTRY as u64;
/// LIMIT: entries of one upload.
const MOST_ENTRIES: usize = 1_000;
/// LIMIT: bytes of one upload.
const MOST_UPLOAD: usize = 1 << 20;
/// What is behind the name of a segment of which damaged entries are kept aside.
const ASIDE: &str = ".torn";
/// How long the log stays in the order that it was put into. Ours: sixty-four times a mebibyte are read and written for it.
const SORT_PAUSE: Duration = Duration::from_hours(1);
/// LIMIT: sorts of calls whose counts wait for the next second.
const MOST_COUNTS: usize = 1_000;

/// One sort of calls that passed with nothing to speak of.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Sort {
    pub user: String,
    pub client: &'static str,
    pub tool: String,
    /// The minute, as an instant.
    pub minute: String,
}

impl Sort {
    /// Returns at least how long its line is. Units: bytes.
    pub fn size(&self) -> u64 {
        let words = json!([self.client, self.user, self.tool]).to_string();
        words.len() as u64 + 256
    }
}

/// The log, open at its end.
#[derive(Debug)]
pub(crate) struct Log {
    agent: Folder,
    folder: Folder,
    file: File,
    /// The number of the first entry of the open segment.
    first: u64,
    /// Bytes of the open segment that are whole.
    length: u64,
    /// Bytes of all segments.
    bytes: u64,
    /// How many they may be.
    most: u64,
    link: Link,
    counts: BTreeMap<Sort, u64>,
    /// Whether the last thing that was written could not be.
    is_blocked: bool,
    /// How many entries were found damaged, of which the server was not told.
    lost: usize,
    /// Whether the server takes no more of this device for today: then one entry at a time is tried.
    is_resting: bool,
    /// When what weighs was put first.
    sorted_at: Option<Duration>,
    /// What is written and not given to the system yet; only while the log is bound anew.
    draft: Option<Vec<u8>>,
}

/// Entries to send, and where they stand in the chain.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Batch {
    pub from: Link,
    pub behind: Link,
    pub entries: Vec<String>,
}

/// How much waits.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Backlog {
    /// How many segments there are.
    pub segments: usize,
    /// Their bytes.
    pub bytes: u64,
    /// How many damaged parts are kept aside.
    pub damaged: usize,
}

/// Returns how much waits in the log of an agent, which may work; nothing where there is no log.
///
/// Errors: folder, disk.
pub fn backlog(agent: &Folder) -> Result<Option<Backlog>, Trouble> {
    if agent.file(LOG).symlink_metadata().is_err() {
        return Ok(None);
    }
    let folder = Folder::open(&agent.file(LOG))?;
    let mut backlog = Backlog::default();
    for name in folder.names()? {
        backlog.damaged += usize::from(name.contains(ASIDE));
        if number_of(&name).is_none() {
            continue;
        }
        backlog.segments += 1;
        backlog.bytes += folder
            .file(&name)
            .symlink_metadata()
            .map_or(0, |found| found.len());
    }
    Ok(Some(backlog))
}

impl Batch {
    /// Returns the body by which it is sent.
    pub fn body(&self) -> Value {
        json!({
            "from": self.from.next, "previous": self.from.previous, "head": self.behind.previous, "entries": self.entries,
        })
    }
}

/// Returns what the log of an agent, which may work, sends next, and when its segment was written last; nothing where nothing waits.
/// Nothing is mended, and nothing is written.
///
/// Errors: folder, disk.
pub(crate) fn waiting(agent: &Folder) -> Result<Option<(Batch, Timestamp)>, Trouble> {
    if agent.file(LOG).symlink_metadata().is_err() {
        return Ok(None);
    }
    let folder = Folder::open(&agent.file(LOG))?;
    for name in folder.names()? {
        let Some(number) = number_of(&name) else { continue };
        // The server may have it since the names were read.
        let Some(text) = folder.read_up_to(&name, MOST_READ)? else {
            continue;
        };
        let found = gathered(&text, number, MOST_ENTRIES).filter(|(batch, ..)| !batch.entries.is_empty());
        if let (Some((batch, ..)), Some(at)) = (found, changed_at(&folder.file(&name))) {
            return Ok(Some((batch, at)));
        }
    }
    Ok(None)
}

impl Log {
    /// Opens the log of an agent, or begins one. What a kill tore is cut off, and `say` hears of it.
    ///
    /// Errors: folder, disk.
    pub fn open(agent: &Folder, say: &dyn Fn(&str)) -> Result<Self, Trouble> {
        settle_anew(agent)?;
        let folder = agent.below(LOG)?;
        let mut numbers = Vec::new();
        let mut bytes = 0;
        for name in folder.names()? {
            if name.starts_with('.') {
                folder.remove(&name)?;
            } else if let Some(number) = number_of(&name) {
                bytes += folder
                    .file(&name)
                    .symlink_metadata()
                    .map_or(0, |found| found.len());
                numbers.push(number);
            }
        }
        let Some(first) = numbers.last().copied() else {
            return Self::begin(agent, folder, Link::first(), 0);
        };
        let name = name_of(first);
        let text = folder.read_up_to(&name, MOST_READ)?.unwrap_or_default();
        let shown = folder.file(&name);
        let Some((link, whole)) = walk(&text, first, |_, _, _| true) else {
            // Without its head nobody knows where the chain stood: another one begins, and the server says where.
            say(&format!("{} is torn and set aside", shown.display()));
            folder.rename(&name, &aside_name(&folder, &name))?;
            let before = bytes - text.len() as u64;
            let link = Link {
                next: first,
                ..Link::first()
            };
            let begun = Self::begin(agent, folder, link, before)?;
            return Ok(Self {
                lost: lines(&text),
                ..begun
            });
        };
        let file = folder.rewrite(&name)?;
        // A whole line is no kill's doing.
        let lost = lines(&text[whole..]);
        if whole < text.len() {
            if lost > 0 {
                say_damaged(&shown, lost, say);
                folder.replace(&aside_name(&folder, &name), &text[whole..])?;
            } else {
                say(&format!(
                    "{}: the last {} bytes were torn by the end of a process, and are cut off",
                    shown.display(),
                    text.len() - whole
                ));
            }
            file.set_len(whole as u64)
                .and_then(|()| file.sync_data())
                .map_err(|error| disk(&shown, "cut", &error))?;
        }
        let mut log = Self {
            agent: agent.clone(),
            folder,
            file,
            first,
            length: whole as u64,
            bytes: bytes - (text.len() - whole) as u64,
            link,
            counts: BTreeMap::new(),
            most: MOST_BYTES,
            is_blocked: false,
            lost,
            is_resting: false,
            sorted_at: None,
            draft: None,
        };
        log.file
            .seek(SeekFrom::Start(log.length))
            .map_err(|error| disk(&shown, "read", &error))?;
        Ok(log)
    }

    fn begin(agent: &Folder, folder: Folder, link: Link, bytes: u64) -> Result<Self, Trouble> {
        let head = link.head();
        let name = name_of(link.next);
        folder.replace(&name, head.as_bytes())?;
        let mut file = folder.rewrite(&name)?;
        file.seek(SeekFrom::End(0))
            .map_err(|error| disk(&folder.file(&name), "read", &error))?;
        Ok(Self {
            agent: agent.clone(),
            folder,
            file,
            first: link.next,
            length: head.len() as u64,
            bytes: bytes + head.len() as u64,
            link,
            counts: BTreeMap::new(),
            most: MOST_BYTES,
            is_blocked: false,
            lost: 0,
            is_resting: false,
            sorted_at: None,
            draft: None,
        })
    }

    /// Adds entries, and returns when they are there; with `is_kept` they outlive a loss of power.
    ///
    /// Errors: disk, also when the log has no room.
    pub fn append(&mut self, entries: &[String], is_kept: bool) -> Result<(), Trouble> {
        let mut done = Ok(());
        for (place, entry) in entries.iter().enumerate() {
            // Written in one go to the disk, with the last one.
            done = done.and_then(|()| self.write(entry, is_kept && place + 1 == entries.len()));
        }
        self.is_blocked = done.is_err();
        done
    }

    fn write(&mut self, entry: &str, is_kept: bool) -> Result<(), Trouble> {
        let (line, behind) = self.link.line(entry);
        let size = line.len() as u64;
        let full =
            |line: String| Trouble::new(Cause::Disk, line).fix("wait until the server takes what is there");
        if line.len() > MOST_ENTRY {
            return Err(full(format!(
                "a decision of {size} bytes is too long for the log"
            )));
        }
        if self.bytes + size > self.most {
            let shown = self.folder.path().display();
            return Err(full(format!(
                "{shown} holds {} MiB, and no more",
                MOST_BYTES >> 20
            )));
        }
        if self.length + size > MOST_SEGMENT {
            self.turn()?;
        }
        if let Some(draft) = &mut self.draft {
            draft.extend_from_slice(line.as_bytes());
            self.length += size;
            self.bytes += size;
            self.link = behind;
            return Ok(());
        }
        let written = self
            .file
            .write_all(line.as_bytes())
            .and_then(|()| if is_kept { self.file.sync_data() } else { Ok(()) });
        if let Err(error) = written {
            // What is there of it is cut off: the next entry begins where this one did.
            let cut = self.file.set_len(self.length);
            let back = self.file.seek(SeekFrom::Start(self.length));
            let name = self.folder.file(&name_of(self.first));
            if let (Err(worse), _) | (_, Err(worse)) = (cut, back) {
                return Err(disk(&name, "cut", &worse));
            }
            return Err(disk(&name, "write", &error));
        }
        self.length += size;
        self.bytes += size;
        self.link = behind;
        Ok(())
    }

    /// Goes on in another segment.
    fn turn(&mut self) -> Result<(), Trouble> {
        self.put_down()?;
        let shown = self.folder.file(&name_of(self.first));
        self.file
            .sync_data()
            .map_err(|error| disk(&shown, "write", &error))?;
        self.turn_over()
    }

    /// Gives the system what is drafted.
    fn put_down(&mut self) -> Result<(), Trouble> {
        let Some(draft) = &mut self.draft else {
            return Ok(());
        };
        let text = std::mem::take(draft);
        self.file
            .write_all(&text)
            .map_err(|error| disk(&self.folder.file(&name_of(self.first)), "write", &error))
    }

    fn turn_over(&mut self) -> Result<(), Trouble> {
        let next = Self::begin(&self.agent, self.folder.clone(), self.link.clone(), self.bytes)?;
        *self = Self {
            counts: std::mem::take(&mut self.counts),
            most: self.most,
            lost: self.lost,
            is_resting: self.is_resting,
            sorted_at: self.sorted_at,
            draft: self.draft.take(),
            ..next
        };
        Ok(())
    }

    /// Counts a call that passed with nothing to speak of; it is on the disk within a second, by [`Self::settle`].
    ///
    /// Errors: disk, where the last entry could not be written, or too much waits.
    pub fn count(&mut self, sort: Sort) -> Result<(), Trouble> {
        if self.is_blocked || (self.counts.len() >= MOST_COUNTS && !self.counts.contains_key(&sort)) {
            // Once more: there may be room again.
            self.settle()?;
        }
        *self.counts.entry(sort).or_default() += 1;
        Ok(())
    }

    /// Returns whether calls of this sort are counted already, and wait for the disk.
    pub fn counts_already(&self, sort: &Sort) -> bool {
        self.counts.contains_key(sort)
    }

    /// Returns whether counts wait.
    pub fn has_counts(&self) -> bool {
        !self.counts.is_empty()
    }

    /// Writes what was counted.
    ///
    /// Errors: disk; what could not be written waits.
    pub fn settle(&mut self) -> Result<(), Trouble> {
        while let Some((sort, count)) = self.counts.first_key_value() {
            let mut entry = json!({
                "kind": "count", "client": sort.client, "user": sort.user, "minute": sort.minute, "count": count,
            });
            if !sort.tool.is_empty() {
                entry["tool"] = sort.tool.as_str().into();
            }
            self.append(&[entry.to_string()], false)?;
            self.counts.pop_first();
        }
        Ok(())
    }

    /// Returns what is next for the server, which is on the disk then; nothing where nothing waits.
    ///
    /// What is damaged is kept aside, and `say` and the server hear of it. Errors: folder, disk.
    ///
    /// Keeps LJ-10.
    pub fn batch(&mut self, say: &dyn Fn(&str)) -> Result<Option<Batch>, Trouble> {
        self.tell_lost();
        let shown = self.folder.file(&name_of(self.first));
        self.file
            .sync_data()
            .map_err(|error| disk(&shown, "write", &error))?;
        let most = if self.is_resting { 1 } else { MOST_ENTRIES };
        for name in self.folder.names()? {
            let Some(number) = number_of(&name) else { continue };
            let text = self.segment(&name)?;
            let Some((batch, end, whole)) = gathered(&text, number, most) else {
                self.aside(&name, &text, say)?;
                continue;
            };
            let is_open = number == self.first;
            if whole < text.len() {
                self.mend(&name, &text, (end, whole), say)?;
                self.tell_lost();
            }
            if !batch.entries.is_empty() {
                return Ok(Some(batch));
            }
            if !is_open {
                self.remove(&name)?;
            }
        }
        Ok(None)
    }

    /// Keeps what is damaged of a segment aside: everything behind what is whole.
    fn mend(
        &mut self,
        name: &str,
        text: &[u8],
        (link, whole): (Link, usize),
        say: &dyn Fn(&str),
    ) -> Result<(), Trouble> {
        let shown = self.folder.file(name);
        let lost = lines(&text[whole..]).max(1);
        say_damaged(&shown, lost, say);
        self.folder
            .replace(&aside_name(&self.folder, name), &text[whole..])?;
        if name == name_of(self.first) {
            self.file
                .set_len(whole as u64)
                .and_then(|()| self.file.seek(SeekFrom::Start(whole as u64)))
                .map_err(|error| disk(&shown, "cut", &error))?;
            self.length = whole as u64;
            self.link = link;
        } else {
            self.folder.replace(name, &text[..whole])?;
        }
        self.bytes = self.bytes.saturating_sub((text.len() - whole) as u64);
        self.lost += lost;
        Ok(())
    }

    /// Tells the server how many entries are damaged here; where that cannot be written now, with the next batch.
    fn tell_lost(&mut self) {
        if self.lost == 0 {
            return;
        }
        let entry = json!({ "kind": "dropped", "events": self.lost, "why": "log_damaged" });
        if self.append(&[entry.to_string()], true).is_ok() {
            self.lost = 0;
        }
    }

    /// Notes whether the server takes no more of this device for today.
    pub fn rest(&mut self, is_resting: bool) {
        self.is_resting = is_resting;
    }

    /// Puts what was refused, or asked an approval for, before everything else, where the server stands at the first entry; says whether
    /// anything was put elsewhere. All of the log is written anew for it, so that it is done once an hour at most: `now` is by a clock that
    /// nobody can set.
    ///
    /// Errors: folder, disk.
    pub fn put_weighty_first(
        &mut self,
        stands: &Link,
        now: Duration,
        say: &dyn Fn(&str),
    ) -> Result<bool, Trouble> {
        if self
            .sorted_at
            .is_some_and(|at| now.saturating_sub(at) < SORT_PAUSE)
        {
            return Ok(false);
        }
        let (mut has_others, mut is_behind) = (false, false);
        for name in self.folder.names()? {
            let Some(number) = number_of(&name) else { continue };
            walk(&self.segment(&name)?, number, |entry, _, _| {
                let is_weighty = is_weighty(entry);
                is_behind |= is_weighty && has_others;
                has_others |= !is_weighty;
                !is_behind
            });
        }
        if is_behind {
            say("what was refused, or asked an approval for, is sent first");
            self.bind(stands, &[is_weighty, |entry| !is_weighty(entry)], say)?;
            self.sorted_at = Some(now);
        }
        Ok(is_behind)
    }

    /// Returns where the chain stood before an entry; nothing where it is not known here any more, or not yet.
    ///
    /// Errors: folder, disk.
    pub fn at(&self, next: u64) -> Result<Option<Link>, Trouble> {
        for name in self.folder.names()?.iter().rev() {
            let Some(number) = number_of(name).filter(|number| *number <= next) else {
                continue;
            };
            let text = self.segment(name)?;
            let mut found = Link::of_head(&text)
                .map(|(link, _)| link)
                .filter(|link| link.next == next);
            walk(&text, number, |_, behind, _| {
                if behind.next == next {
                    found = Some(behind.clone());
                }
                found.is_none()
            });
            return Ok(found);
        }
        Ok(None)
    }

    /// Removes what the server has: everything below a number. The entries from there on begin a segment of their own.
    ///
    /// Errors: folder, disk.
    pub fn taken(&mut self, expected: &Link) -> Result<(), Trouble> {
        for name in self.folder.names()? {
            let Some(number) = number_of(&name).filter(|number| *number < expected.next) else {
                continue;
            };
            let text = self.segment(&name)?;
            let mut rest = Vec::new();
            let walked = walk(&text, number, |entry, behind, _| {
                if behind.next > expected.next {
                    rest.push(entry.to_owned());
                }
                true
            });
            let is_open = number == self.first;
            if let Some((_, whole)) = &walked
                && *whole < text.len()
            {
                // What is behind it is told of with the next batch; what is whole goes on.
                self.lost += lines(&text[*whole..]).max(1);
                self.folder
                    .replace(&aside_name(&self.folder, &name), &text[*whole..])?;
            }
            if walked.is_none() {
                self.set_aside(&name, &text)?;
                continue;
            }
            if !is_open && rest.is_empty() {
                self.remove(&name)?;
                continue;
            }
            // A draft with its own name first: a kill leaves the one or both, and the earlier entries are taken again by their number.
            let mut link = expected.clone();
            let mut left = link.head();
            for entry in &rest {
                let (text, behind) = link.line(entry);
                left.push_str(&text);
                link = behind;
            }
            self.folder.replace(&name_of(expected.next), left.as_bytes())?;
            self.bytes += left.len() as u64;
            if is_open {
                let place = name_of(expected.next);
                let mut file = self.folder.rewrite(&place)?;
                file.seek(SeekFrom::End(0))
                    .map_err(|error| disk(&self.folder.file(&place), "read", &error))?;
                self.file = file;
                self.first = expected.next;
                self.length = left.len() as u64;
            }
            self.remove(&name)?;
        }
        Ok(())
    }

    /// Begins another chain where the server's stands: what it has of this device and what is here do not fit together. What waits is
    /// bound anew, and nothing of it is lost.
    ///
    /// Errors: folder, disk.
    pub fn rebind(&mut self, expected: &Link, say: &dyn Fn(&str)) -> Result<(), Trouble> {
        say(&format!(
            "the server has another chain of this device's decisions; what waits follows its entry {}",
            expected.next - 1
        ));
        self.bind(expected, &[|_| true], say)
    }

    /// Binds everything that is here anew behind an entry: what the first of these takes before what the next one takes.
    fn bind(
        &mut self,
        expected: &Link,
        order: &[fn(&str) -> bool],
        say: &dyn Fn(&str),
    ) -> Result<(), Trouble> {
        remove_folder(&self.agent, ANEW)?;
        let draft = self.agent.below(ANEW)?;
        let mut anew = Self::begin(&self.agent, draft.clone(), expected.clone(), 0)?;
        // Heads of greater numbers are longer: what was full fits all the same.
        anew.most += MOST_SEGMENT;
        // Line by line it would take the system ten times as long, and no verdict is recorded meanwhile.
        anew.draft = Some(Vec::new());
        for takes in order {
            for name in self.folder.names()? {
                let Some(number) = number_of(&name) else { continue };
                let text = self.segment(&name)?;
                let mut done = Ok(());
                let walked = walk(&text, number, |entry, _, _| {
                    if takes(entry) {
                        done = anew.write(entry, false);
                    }
                    done.is_ok()
                });
                done?;
                match walked {
                    // Nobody knows where it stood: it is kept beside the chain.
                    None => {
                        say_damaged(&self.folder.file(&name), lines(&text).max(1), say);
                        self.set_aside(&name, &text)?;
                    }
                    Some((link, whole)) if whole < text.len() => {
                        self.mend(&name, &text, (link, whole), say)?;
                    }
                    Some(_) => {}
                }
            }
        }
        // What is kept aside stays.
        for name in self.folder.names()?.iter().filter(|name| name.contains(ASIDE)) {
            let kept = self.folder.read_up_to(name, MOST_READ)?.unwrap_or_default();
            draft.replace(name, &kept)?;
        }
        anew.put_down()?;
        anew.draft = None;
        anew.file
            .sync_data()
            .map_err(|error| disk(draft.path(), "write", &error))?;
        // From the first rename on the chain is the other one, wherever the process ends.
        self.agent.rename(LOG, FORMER)?;
        self.agent.rename(ANEW, LOG)?;
        remove_folder(&self.agent, FORMER)?;
        let counts = std::mem::take(&mut self.counts);
        let folder = Folder::open(&self.agent.file(LOG))?;
        *self = Self {
            folder,
            counts,
            most: MOST_BYTES,
            lost: self.lost,
            is_resting: self.is_resting,
            sorted_at: self.sorted_at,
            ..anew
        };
        Ok(())
    }

    fn segment(&self, name: &str) -> Result<Vec<u8>, Trouble> {
        Ok(self.folder.read_up_to(name, MOST_READ)?.unwrap_or_default())
    }

    /// Keeps a segment aside of which nobody knows where it stood.
    fn aside(&mut self, name: &str, text: &[u8], say: &dyn Fn(&str)) -> Result<(), Trouble> {
        say_damaged(&self.folder.file(name), lines(text).max(1), say);
        self.set_aside(name, text)?;
        self.tell_lost();
        Ok(())
    }

    fn set_aside(&mut self, name: &str, text: &[u8]) -> Result<(), Trouble> {
        self.folder.rename(name, &aside_name(&self.folder, name))?;
        self.bytes = self.bytes.saturating_sub(text.len() as u64);
        self.lost += lines(text).max(1);
        if name == name_of(self.first) {
            self.turn_over()?;
        }
        Ok(())
    }

    fn remove(&mut self, name: &str) -> Result<(), Trouble> {
        let size = self
            .folder
            .file(name)
            .symlink_metadata()
            .map_or(0, |found| found.len());
        self.folder.remove(name)?;
        self.bytes = self.bytes.saturating_sub(size);
        Ok(())
    }

    /// Has no room any more, as where the disk is full.
    #[cfg(test)]
    pub fn fill(&mut self) {
        self.bytes = MOST_BYTES;
    }

    /// Returns how many bytes there are.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Returns where the chain stands.
    #[cfg(test)]
    pub fn link(&self) -> &Link {
        &self.link
    }
}

/// Finishes or forgets what a kill left of a chain that was bound anew.
fn settle_anew(agent: &Folder) -> Result<(), Trouble> {
    let is_there = |name: &str| agent.file(name).symlink_metadata().is_ok();
    if is_there(FORMER) && !is_there(LOG) && is_there(ANEW) {
        agent.rename(ANEW, LOG)?;
    }
    remove_folder(agent, ANEW)?;
    remove_folder(agent, FORMER)
}

/// Removes a folder of the agent and the files in it.
pub(crate) fn remove_folder(agent: &Folder, name: &str) -> Result<(), Trouble> {
    if agent.file(name).symlink_metadata().is_err() {
        return Ok(());
    }
    let folder = Folder::open(&agent.file(name))?;
    for file in folder.names()? {
        folder.remove(&file)?;
    }
    std::fs::remove_dir(folder.path()).map_err(|error| disk(folder.path(), "remove", &error))
}

/// Walks the entries of a segment as long as `take` wants, and returns where the chain stands behind the last whole one and how many
/// bytes are whole; `None` where it has no head of this number.
fn walk(text: &[u8], first: u64, mut take: impl FnMut(&str, &Link, usize) -> bool) -> Option<(Link, usize)> {
    let (mut link, mut whole) = Link::of_head(text).filter(|(link, _)| link.next == first)?;
    while let Some(end) = text[whole..].iter().position(|byte| *byte == b'\n') {
        let Some((entry, behind)) = link.follow(&text[whole..whole + end]) else {
            break;
        };
        if !take(entry, &behind, end) {
            break;
        }
        link = behind;
        whole += end + 1;
    }
    Some((link, whole))
}

/// Returns the first entries of a segment, as many as one upload takes, where the chain stands behind its last whole one and how many
/// bytes are whole; `None` where it has no head of this number.
fn gathered(text: &[u8], number: u64, most: usize) -> Option<(Batch, Link, usize)> {
    let (from, _) = Link::of_head(text).filter(|(link, _)| link.next == number)?;
    let mut batch = Batch {
        behind: from.clone(),
        from,
        entries: Vec::new(),
    };
    let mut size = 0;
    // To its end: what is damaged anywhere in it is noticed now.
    let (end, whole) = walk(text, number, |entry, behind, bytes| {
        size += bytes;
        let is_full = batch.entries.len() >= most;
        if is_full || (size > MOST_UPLOAD && !batch.entries.is_empty()) {
            size = MOST_UPLOAD;
            return true;
        }
        batch.behind = behind.clone();
        batch.entries.push(entry.to_owned());
        true
    })?;
    Some((batch, end, whole))
}

/// Returns how many whole lines there are.
fn lines(text: &[u8]) -> usize {
    text.split(|byte| *byte == b'\n').count().saturating_sub(1)
}

fn say_damaged(shown: &Path, lost: usize, say: &dyn Fn(&str)) {
    say(&format!(
        "warning: {} is damaged: {lost} entries do not follow; they are kept aside, and the server is told",
        shown.display()
    ));
}

/// Returns a name that nothing has yet, under which a part of a segment is kept aside.
fn aside_name(folder: &Folder, name: &str) -> String {
    let mut all = (1..).map(|number| match number {
        1 => format!("{name}{ASIDE}"),
        number => format!("{name}{ASIDE}.{number}"),
    });
    let free = all.find(|name| folder.file(name).symlink_metadata().is_err());
    free.unwrap_or_else(|| format!("{name}{ASIDE}"))
}

/// Says whether an entry tells that something was refused, or asked an approval for.
fn is_weighty(entry: &str) -> bool {
    let read: Value = serde_json::from_str(entry).unwrap_or_default();
    let action = read["decision"]["action"].as_str().unwrap_or_default();
    [Action::Block, Action::RequireApproval]
        .map(Action::word)
        .contains(&action)
}

fn name_of(number: u64) -> String {
    format!("{number:020}")
}

fn number_of(name: &str) -> Option<u64> {
    (name.len() == 20 && name.bytes().all(|byte| byte.is_ascii_digit())).then(|| name.parse().ok())?
}
