//! What waits to be written without a request waiting for it: notes for the audit log, counts of plain reads
//! and of failed authentications, and the last use of tokens.
//!
//! Notes are bounded: when the buffer is full, sensitive reads are refused rather than left unrecorded
//! (D12.7). Counts become one entry a minute (D12.4); uses are written every few seconds, one a token and 45 seconds
//! (ADR 0044). Both are bounded for each organization, and for strangers apart: what one of them does never hides what
//! another did.
//!
//! INVARIANT CR-4: the last use that is shown is at most 60 seconds older than the last one there was, and a first
//! use shows within 5 seconds, while the store can be written.

mod audit_buffer;
mod usage_counters;

use crate::audit::{AuditRecord, Decision};
use crate::auth::OrganizationId;
use crate::credential::{Scheme, Use};
use crate::error::Code;
use crate::fence;
use crate::sync;
use crate::time::Timestamp;
use audit_buffer::AuditBuffer;
use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::{Mutex, MutexGuard, PoisonError};
use usage_counters::Counter;

/// LIMIT: notes of one organization that may wait for the writer.
const MAX_NOTES: usize = 65_536;
/// How many dead tokens are remembered before those of earlier minutes are forgotten.
const MAX_REUSED: usize = 10_000;
/// Uses closer together than this are one use. Units: milliseconds.
///
/// What is not written for that reason, and what waits to be written, is together less than the 60 seconds of D2.5.
pub(crate) const USE_PRECISION_MS: i64 = 45_000;
/// How often uses are written. Units: seconds.
pub const USE_FLUSH_SECS: u64 = 3;

/// What one line of the access summary counts.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum AccessKind {
    Read {
        organization: OrganizationId,
        principal: String,
        operation: &'static str,
    },
    KnownToken {
        organization: OrganizationId,
        token_id: String,
        code: &'static str,
    },
    Stranger {
        code: &'static str,
        network: String,
    },
}

/// See the module's text.
pub(crate) struct WriteBehind {
    /// Notes for the audit log.
    pub notes: AuditBuffer,
    counts: Mutex<Counter>,
    uses: Mutex<HashMap<String, (Scheme, Use)>>,
    reused: Mutex<HashMap<String, i64>>,
}

impl Default for WriteBehind {
    fn default() -> Self {
        Self {
            notes: AuditBuffer::new(MAX_NOTES),
            counts: Mutex::default(),
            uses: Mutex::default(),
            reused: Mutex::default(),
        }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl WriteBehind {
    fn count(&self, what: AccessKind) {
        lock(&self.counts).add(what, 1);
    }

    /// Counts a plain read.
    pub fn count_read(&self, organization: &OrganizationId, principal: &str, operation: &'static str) {
        let (organization, principal) = (organization.clone(), principal.to_owned());
        self.count(AccessKind::Read {
            organization,
            principal,
            operation,
        });
    }

    /// Counts a failed authentication with a token that is known.
    pub fn count_known(&self, organization: &OrganizationId, token_id: &str, code: &'static str) {
        let (organization, token_id) = (organization.clone(), token_id.to_owned());
        self.count(AccessKind::KnownToken {
            organization,
            token_id,
            code,
        });
    }

    /// Counts a failed authentication of somebody unknown.
    pub fn count_unauthenticated(&self, code: &'static str, ip: IpAddr) {
        self.count(AccessKind::Stranger {
            code,
            network: network(ip),
        });
    }

    /// Notes a use of a token.
    pub fn used(&self, scheme: Scheme, used: Use) {
        let mut waiting = lock(&self.uses);
        if waiting
            .get(&used.token_id)
            .is_none_or(|(_, known)| known.at <= used.at)
        {
            waiting.insert(used.token_id.clone(), (scheme, used));
        }
    }

    /// Says whether the reuse of a dead token is news: at most once per token and minute (D2.10).
    pub fn is_new_reuse(&self, token_id: &str, now: Timestamp) -> bool {
        let minute = now.as_ms().div_euclid(60_000);
        let mut reused = lock(&self.reused);
        if reused.len() > MAX_REUSED {
            reused.retain(|_, at| *at == minute);
        }
        reused.insert(token_id.to_owned(), minute) != Some(minute)
    }

    /// Takes what was counted.
    pub fn take_counts(&self) -> Vec<(AccessKind, u64)> {
        lock(&self.counts).take()
    }

    /// Counts again what could not be written.
    pub fn put_back(&self, what: AccessKind, count: u64) {
        lock(&self.counts).add(what, count);
    }

    /// Takes the uses that wait.
    pub fn take_uses(&self) -> Vec<(Scheme, Use)> {
        lock(&self.uses).drain().map(|(_, used)| used).collect()
    }
}

/// Returns the network that failures are counted by: an IPv4 address, or an IPv6 /64.
pub fn network(ip: IpAddr) -> String {
    match ip {
        IpAddr::V4(ip) => ip.to_string(),
        IpAddr::V6(ip) => {
            let s = ip.segments();
            let prefix = || format!("{:x}:{:x}:{:x}:{:x}::/64", s[0], s[1], s[2], s[3]);
            ip.to_ipv4_mapped()
                .map_or_else(prefix, |mapped| mapped.to_string())
        }
    }
}

/// Returns the entry that a count becomes.
pub(crate) fn summary_note(what: AccessKind, now: Timestamp) -> AuditRecord {
    match what {
        AccessKind::Read {
            organization,
            principal,
            operation,
        } => {
            let mut note = AuditRecord::new(organization, now, "access.summary");
            note.target = Some((&fence::OPERATION, format!("{operation} {principal}")));
            note
        }
        AccessKind::KnownToken {
            organization,
            token_id,
            code,
        } => {
            let mut note = AuditRecord::new(organization, now, "authentication.failed");
            note.target = Some((&fence::TOKEN, token_id));
            let status = Code::ALL.iter().find(|known| known.as_str() == code);
            let status = status.map_or(401, |code| code.status());
            (note.decision, note.status, note.code) = (Decision::Denied, status, Some(code));
            note
        }
        AccessKind::Stranger { code, network } => {
            let mut note = AuditRecord::new(OrganizationId::installation(), now, "authentication.failed");
            note.target = Some((&fence::NETWORK, network));
            (note.decision, note.status, note.code) = (Decision::Denied, 401, Some(code));
            note
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::credential::tests::OURS;

    #[test]
    fn failures_are_counted_by_network() {
        assert_eq!(network("192.0.2.7".parse().unwrap()), "192.0.2.7");
        assert_eq!(network("::ffff:192.0.2.7".parse().unwrap()), "192.0.2.7");
        assert_eq!(network("2001:db8:1:2:3::9".parse().unwrap()), "2001:db8:1:2::/64");
    }

    /// Proves CR-4.
    #[test]
    fn what_waits_and_what_is_not_written_is_less_than_a_minute() {
        let waits = i64::try_from(USE_FLUSH_SECS).unwrap() * 1_000;
        assert!(
            waits < 5_000,
            "a first use shows within 5 s, its writing included"
        );
        assert!(USE_PRECISION_MS + waits < 55_000);
    }

    #[test]
    fn of_two_uses_the_later_one_waits() {
        let write_behind = WriteBehind::default();
        let at = |ms| Use {
            organization: OrganizationId::installation(),
            token_id: "sat_1".into(),
            at: Timestamp::from_ms(ms),
            source_ip: IpAddr::from([127, 0, 0, 1]),
        };
        for ms in [5, 9, 7] {
            write_behind.used(Scheme(&OURS), at(ms));
        }
        let waiting: Vec<i64> = write_behind
            .take_uses()
            .iter()
            .map(|(_, used)| used.at.as_ms())
            .collect();
        assert_eq!(waiting, [9]);
    }

    #[test]
    fn a_reuse_is_news_once_a_minute() {
        let write_behind = WriteBehind::default();
        assert!(write_behind.is_new_reuse("sat_1", Timestamp::from_ms(0)));
        assert!(!write_behind.is_new_reuse("sat_1", Timestamp::from_ms(59_999)));
        assert!(write_behind.is_new_reuse("sat_1", Timestamp::from_ms(60_000)));
    }

    #[test]
    fn a_full_buffer_refuses() {
        let write_behind = WriteBehind::default();
        let note = AuditRecord::new(OrganizationId::installation(), Timestamp::EPOCH, "x");
        assert!(write_behind.notes.add(note.clone()).unwrap());
        for _ in 1..MAX_NOTES {
            assert!(!write_behind.notes.add(note.clone()).unwrap());
        }
        assert_eq!(
            write_behind.notes.add(note).unwrap_err().code(),
            Code::AuditUnavailable
        );
        // The room of another chain is its own.
        let acme = OrganizationId::parse("acme").unwrap();
        let note = AuditRecord::new(acme.clone(), Timestamp::EPOCH, "x");
        assert!(!write_behind.notes.is_pressed(&acme) && write_behind.notes.add(note).unwrap());
        assert!(write_behind.notes.is_pressed(&OrganizationId::installation()));
        assert_eq!(write_behind.notes.take(10, |_| true).len(), 10);
    }

    #[test]
    fn taking_and_putting_back_keep_the_order_of_every_chain() {
        let write_behind = WriteBehind::default();
        let of = |key: &str, ms| {
            AuditRecord::new(OrganizationId::parse(key).unwrap(), Timestamp::from_ms(ms), "x")
        };
        for (key, ms) in [("a", 1), ("b", 2), ("a", 3), ("b", 4), ("a", 5)] {
            write_behind.notes.add(of(key, ms)).unwrap();
        }
        let times = |notes: &[AuditRecord]| notes.iter().map(|n| n.time.as_ms()).collect::<Vec<_>>();
        let taken = write_behind.notes.take(2, |o| o.as_str() == "a");
        assert_eq!(times(&taken), [1, 3]);
        write_behind.notes.put_back(taken);
        assert_eq!(times(&write_behind.notes.take(10, |_| true)), [1, 3, 2, 4, 5]);
        let a = OrganizationId::parse("a").unwrap();
        assert!(!write_behind.notes.is_pressed(&a));
        for ms in 0..=32_768 {
            write_behind.notes.add(of("a", ms)).unwrap();
        }
        assert!(write_behind.notes.is_pressed(&a));
    }

    #[test]
    fn every_chain_wakes_its_own_writer() {
        let write_behind = WriteBehind::default();
        let of = |key: &str| AuditRecord::new(OrganizationId::parse(key).unwrap(), Timestamp::EPOCH, "x");
        assert!(write_behind.notes.add(of("a")).unwrap());
        assert!(
            write_behind.notes.add(of("b")).unwrap(),
            "the note of a wakes nobody for b"
        );
        assert!(!write_behind.notes.add(of("b")).unwrap());
        assert_eq!(write_behind.notes.take(10, |o| o.as_str() == "a").len(), 1);
        assert!(write_behind.notes.add(of("a")).unwrap());
        assert!(!write_behind.notes.add(of("b")).unwrap());
        assert_eq!(write_behind.notes.take(10, |_| true).len(), 4);
    }
}
