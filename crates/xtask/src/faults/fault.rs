//! Which faults a call can have, and how strace is told.
//!
//! A fault is legal when a kernel may answer so, and truthful when the file is as the answer says. Only those are
//! injected:
//!
//! ```text
//! kill    SIGKILL on entering the call, which is not made: the state between two calls
//! eio     the call fails and changes nothing; alone, and together with every later one of its name
//! enospc  the same for calls that take room, syncs included: delayed allocation fails there
//! short   a write answers that it wrote nothing
//! eintr   writes, syncs and truncations were interrupted before they began
//! ```
//!
//! Absent on purpose:
//! - A short write of one byte or more: strace can only claim it (`retval=1` skips the call), and a program that is told
//!   so goes on behind bytes that were never written. No program can detect that lie. A call that writes some of its
//!   bytes is the business of a store on a full disk and of images of a power loss.
//! - A sync that claims success without syncing is the same lie, and belongs to images of a power loss.
//! - Faults in sockets, events and the log: no file of the store is behind them.

use clap::ValueEnum;
use serde::{Deserialize, Serialize};

use super::strace::Call;

/// The faults of the command line.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum FaultChoice {
    Kill,
    Eio,
    Enospc,
    Short,
    Eintr,
    All,
}

/// What happens in the n-th call.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum Fault {
    Kill,
    Eio,
    /// This call and every later one of its name.
    EioFromHere,
    Enospc,
    Short,
    Eintr,
}

pub const EACH: [Fault; 6] = [
    Fault::Kill,
    Fault::Eio,
    Fault::EioFromHere,
    Fault::Enospc,
    Fault::Short,
    Fault::Eintr,
];

/// One fault in one call.
#[derive(Clone, Debug)]
pub struct Point {
    pub fault: Fault,
    pub call: Call,
}

impl Fault {
    pub fn word(self) -> &'static str {
        match self {
            Self::Kill => "kill",
            Self::Eio => "eio",
            Self::EioFromHere => "eio+",
            Self::Enospc => "enospc",
            Self::Short => "short",
            Self::Eintr => "eintr",
        }
    }

    pub fn is_chosen(self, chosen: FaultChoice) -> bool {
        match chosen {
            FaultChoice::All => true,
            FaultChoice::Kill => self == Self::Kill,
            FaultChoice::Eio => matches!(self, Self::Eio | Self::EioFromHere),
            FaultChoice::Enospc => self == Self::Enospc,
            FaultChoice::Short => self == Self::Short,
            FaultChoice::Eintr => self == Self::Eintr,
        }
    }

    /// Whether this call can have this fault.
    fn fits(self, call: &Call, is_of_the_store: bool) -> bool {
        // The moment between a commit and its answer is one as well.
        if self == Self::Kill {
            return true;
        }
        if !is_of_the_store {
            return false;
        }
        let (writes, syncs) = (is_write(&call.name), is_sync(&call.name));
        match self {
            Self::Kill | Self::Eio => true,
            // Later ones of these names are of the store, too; a plain write may be to anything.
            Self::EioFromHere => call.name == "pwrite64" || syncs,
            Self::Enospc => !call.name.starts_with("unlink") && call.name != "ftruncate",
            Self::Short => writes,
            Self::Eintr => writes || syncs || call.name == "ftruncate",
        }
    }
}

fn is_write(name: &str) -> bool {
    ["write", "pwrite64", "writev", "pwritev", "pwritev2"].contains(&name)
}

fn is_sync(name: &str) -> bool {
    ["fsync", "fdatasync", "sync_file_range"].contains(&name)
}

impl Point {
    /// strace's expression.
    pub fn injection(&self) -> String {
        let Call { name, number, .. } = &self.call;
        match self.fault {
            Fault::Kill => format!("{name}:signal=SIGKILL:when={number}"),
            Fault::Eio => format!("{name}:error=EIO:when={number}"),
            Fault::EioFromHere => format!("{name}:error=EIO:when={number}+"),
            Fault::Enospc => format!("{name}:error=ENOSPC:when={number}"),
            Fault::Short => format!("{name}:retval=0:when={number}"),
            Fault::Eintr => format!("{name}:error=EINTR:when={number}"),
        }
    }

    /// How a person finds the point again.
    pub fn name(&self, subject: &str) -> String {
        let Call {
            name, number, place, ..
        } = &self.call;
        format!("{subject}: {} at {name} {number} ({place})", self.fault.word())
    }

    /// Whether bytes that were to be written or made durable were not: nothing may be acknowledged after it.
    pub fn loses(&self) -> bool {
        let is_data = is_write(&self.call.name) || is_sync(&self.call.name);
        // A full keys folder refuses what needs a line or a key, and nothing else, and recovers (EN-1): a line that was
        // written in part is written to its end, and of a new key another file is made.
        let place = &self.call.place;
        let is_line = is_write(&self.call.name) && place.ends_with("/ends.jsonl");
        let is_new_key = place.contains("/keys/.day-");
        let has_room_again = (is_line || is_new_key) && matches!(self.fault, Fault::Enospc | Fault::Short);
        is_data && !has_room_again && !matches!(self.fault, Fault::Kill | Fault::Eintr)
    }
}

/// Every fault that the calls of a trace can have. `is_ours` says which files are of the store.
pub fn points(calls: &[Call], chosen: FaultChoice, is_ours: impl Fn(&Call) -> bool) -> Vec<Point> {
    let mut points = Vec::new();
    for fault in EACH.into_iter().filter(|fault| fault.is_chosen(chosen)) {
        let mut seen: Vec<(&str, usize)> = Vec::new();
        for call in calls {
            // Of threads that reach the same number, one point stands for all.
            if fault.fits(call, is_ours(call)) && !seen.contains(&(&call.name, call.number)) {
                seen.push((&call.name, call.number));
                points.push(Point {
                    fault,
                    call: call.clone(),
                });
            }
        }
    }
    points
}

#[cfg(test)]
mod tests {
    use super::*;

    fn call(name: &str, place: &str) -> Call {
        Call {
            thread: 0,
            name: name.into(),
            number: 1,
            place: place.into(),
            injected: false,
            at: std::time::Duration::ZERO,
        }
    }

    #[test]
    fn an_event_can_only_be_killed_at() {
        let calls = [
            call("write", "anon_inode:[eventfd]"),
            call("pwrite64", "/d/provost.db-wal"),
        ];
        let points = points(&calls, FaultChoice::All, |call| call.place.starts_with("/d/"));
        let of = |place: &str| points.iter().filter(|point| point.call.place == place).count();
        assert_eq!(of("anon_inode:[eventfd]"), 1);
        assert_eq!(of("/d/provost.db-wal"), EACH.len());
    }

    #[test]
    fn a_lost_write_is_told_from_an_interrupted_one() {
        let point = |fault| Point {
            fault,
            call: call("fsync", "/d/provost.db-wal"),
        };
        assert!(point(Fault::Eio).loses() && !point(Fault::Eintr).loses());
        assert_eq!(point(Fault::EioFromHere).injection(), "fsync:error=EIO:when=1+");
    }
}
