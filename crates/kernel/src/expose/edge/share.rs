//! What one network may have at a time without having shown a valid token: requests that are worked on, and connections.
//!
//! ```text
//! share of a network, full    oldest │ … │ newest
//! one more comes              closed │ … │ newest │ it
//! one of them is recognized            leaves, and is counted here no more
//! ```
//!
//! Whoever holds many places holds the oldest ones, so that somebody of the same network with a valid token gets in: it needs its
//! place for as long as it takes to be recognized.
//!
//! INVARIANT SH-1: a share of a network holds no more than its limit and nobody who was recognized; only the oldest
//! of it is closed.

use std::collections::{BTreeMap, HashMap};
use std::net::IpAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio_util::sync::CancellationToken;

/// An IPv4 address, or an IPv6 /64: one IPv6 caller has 2^64 addresses.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Network {
    V4([u8; 4]),
    V6([u16; 4]),
}

impl Network {
    fn of(ip: IpAddr) -> Self {
        match ip.to_canonical() {
            IpAddr::V4(ip) => Self::V4(ip.octets()),
            IpAddr::V6(ip) => {
                let [a, b, c, d, ..] = ip.segments();
                Self::V6([a, b, c, d])
            }
        }
    }
}

/// The shares of all networks in one kind of thing.
pub(super) struct Share {
    /// What is counted, for the metric.
    of: &'static str,
    most: usize,
    members: Mutex<Members>,
}

#[derive(Default)]
struct Members {
    next: u64,
    by_network: HashMap<Network, BTreeMap<u64, CancellationToken>>,
}

impl Share {
    /// Returns empty shares of `most` each.
    pub(super) fn new(of: &'static str, most: usize) -> Arc<Self> {
        Arc::new(Self {
            of,
            most: most.max(1),
            members: Mutex::default(),
        })
    }

    /// Takes a place in the share of a network, and closes the oldest of it when it is full.
    pub(super) fn join(self: &Arc<Self>, ip: IpAddr) -> Member {
        let (network, closed) = (Network::of(ip), CancellationToken::new());
        let mut members = self.lock();
        let number = members.next;
        members.next += 1;
        let own = members.by_network.entry(network).or_default();
        while own.len() >= self.most {
            let Some((_, oldest)) = own.pop_first() else { break };
            oldest.cancel();
            metrics::counter!("provost_strangers_closed_total", "of" => self.of).increment(1);
        }
        own.insert(number, closed.clone());
        Member {
            share: Arc::clone(self),
            network,
            number,
            closed,
        }
    }

    fn leave(&self, network: Network, number: u64) {
        let mut members = self.lock();
        if let Some(own) = members.by_network.get_mut(&network) {
            own.remove(&number);
            if own.is_empty() {
                members.by_network.remove(&network);
            }
        }
    }

    fn lock(&self) -> MutexGuard<'_, Members> {
        self.members.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// One place of a share, until it is dropped.
pub(super) struct Member {
    share: Arc<Share>,
    network: Network,
    number: u64,
    closed: CancellationToken,
}

impl Member {
    /// Returns what is cancelled when another one takes the place.
    pub(super) fn closed(&self) -> CancellationToken {
        self.closed.clone()
    }
}

impl Drop for Member {
    fn drop(&mut self) {
        self.share.leave(self.network, self.number);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ip(text: &str) -> IpAddr {
        text.parse().unwrap()
    }

    /// Proves SH-1.
    #[test]
    fn a_full_share_closes_its_oldest_and_nobody_elses() {
        let share = Share::new("things", 2);
        let first = share.join(ip("192.0.2.1"));
        let neighbour = share.join(ip("192.0.2.2"));
        let second = share.join(ip("192.0.2.1"));
        assert!(!first.closed().is_cancelled());
        let third = share.join(ip("192.0.2.1"));
        assert!(first.closed().is_cancelled());
        for stays in [&neighbour, &second, &third] {
            assert!(!stays.closed().is_cancelled());
        }
    }

    #[test]
    fn who_leaves_makes_room_and_is_closed_by_nobody() {
        let share = Share::new("things", 2);
        let first = share.join(ip("192.0.2.1"));
        let second = share.join(ip("192.0.2.1"));
        let closed = first.closed();
        drop(first);
        let third = share.join(ip("192.0.2.1"));
        assert!(!closed.is_cancelled() && !third.closed().is_cancelled());
        drop(third);
        drop(second);
        assert!(
            share.lock().by_network.is_empty(),
            "nothing is kept of who is gone"
        );
    }

    #[test]
    fn a_network_is_an_ipv4_address_or_64_bits() {
        for (one, other, is_same) in [
            ("192.0.2.1", "192.0.2.2", false),
            ("192.0.2.1", "::ffff:192.0.2.1", true),
            ("2001:db8:0:1::1", "2001:db8:0:1:ffff::2", true),
            ("2001:db8:0:1::1", "2001:db8:0:2::1", false),
        ] {
            let share = Share::new("things", 1);
            let first = share.join(ip(one));
            let _second = share.join(ip(other));
            assert_eq!(first.closed().is_cancelled(), is_same, "{one} {other}");
        }
    }
}
