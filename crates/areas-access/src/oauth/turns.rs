//! Turns at asking other servers. What is asked there a stranger decides, and how long the answer takes may be a stranger's as well.
//!
//! ```text
//! all turns    ├── strangers: two a host, two a network ──┤ kept for known clients: two a host ┤
//! ```
//!
//! INVARIANT OC-18: nobody who is not known takes a turn at asking other servers that is kept for known clients, or
//! more than two of a network or for a host.

use std::collections::HashMap;
use std::hash::Hash;
use std::pin::pin;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::sync::Notify;

/// LIMIT: turns at a time.
const MOST: usize = 16;
/// LIMIT: of these for known clients alone.
const KEPT: usize = 4;
/// LIMIT: turns of a network, and turns for a host.
const OF_ONE: usize = 2;
/// How long somebody waits for a turn.
const PATIENCE: Duration = Duration::from_secs(3);

/// On whose behalf another server is asked.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Asker {
    /// The network of the request; none for those who passed a sealed step of this server.
    pub network: Option<String>,
    /// Whether it is a client that was registered here or given something lately.
    pub is_known: bool,
}

/// The turns of one kind of question.
#[derive(Default)]
pub struct Slots {
    taken: Mutex<Holders>,
    freed: Notify,
}

#[derive(Default)]
struct Holders {
    all: usize,
    by_network: HashMap<String, usize>,
    by_host: HashMap<Host, usize>,
}

/// A host, for known clients and for others: those take no turn of these.
#[derive(Clone, PartialEq, Eq, Hash)]
struct Host {
    name: String,
    is_known: bool,
}

impl Slots {
    /// Waits for a turn at asking `host`, where questions to it are counted; `None` when none gets free in time.
    pub async fn take(&self, host: Option<&str>, asker: &Asker) -> Option<Slot<'_>> {
        let waiting = async {
            loop {
                let mut freed = pin!(self.freed.notified());
                // Before it is looked: what gets free in between is not missed.
                freed.as_mut().enable();
                if let Some(turn) = self.try_take(host, asker) {
                    return turn;
                }
                freed.await;
            }
        };
        tokio::time::timeout(PATIENCE, waiting).await.ok()
    }

    fn try_take(&self, host: Option<&str>, asker: &Asker) -> Option<Slot<'_>> {
        let host = host.map(|name| Host {
            name: name.to_owned(),
            is_known: asker.is_known,
        });
        let network = asker.network.clone().filter(|_| !asker.is_known);
        let mut taken = self.lock();
        let most = if asker.is_known { MOST } else { MOST - KEPT };
        let has_room = taken.all < most
            && host
                .as_ref()
                .is_none_or(|host| held(&taken.by_host, host) < OF_ONE)
            && network
                .as_ref()
                .is_none_or(|network| held(&taken.by_network, network) < OF_ONE);
        if !has_room {
            return None;
        }
        taken.all += 1;
        if let Some(host) = &host {
            *taken.by_host.entry(host.clone()).or_default() += 1;
        }
        if let Some(network) = &network {
            *taken.by_network.entry(network.clone()).or_default() += 1;
        }
        Some(Slot {
            turns: self,
            host,
            network,
        })
    }

    fn lock(&self) -> MutexGuard<'_, Holders> {
        self.taken.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn held<K: Hash + Eq>(of: &HashMap<K, usize>, key: &K) -> usize {
    of.get(key).copied().unwrap_or_default()
}

fn give_back<K: Hash + Eq>(of: &mut HashMap<K, usize>, key: Option<&K>) {
    let Some(key) = key else { return };
    if let Some(count) = of.get_mut(key) {
        *count -= 1;
        if *count == 0 {
            of.remove(key);
        }
    }
}

/// A turn, until it is dropped.
pub struct Slot<'a> {
    turns: &'a Slots,
    host: Option<Host>,
    network: Option<String>,
}

impl Drop for Slot<'_> {
    fn drop(&mut self) {
        let mut taken = self.turns.lock();
        taken.all -= 1;
        give_back(&mut taken.by_host, self.host.as_ref());
        give_back(&mut taken.by_network, self.network.as_ref());
        drop(taken);
        self.turns.freed.notify_waiters();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stranger(network: &str) -> Asker {
        Asker {
            network: Some(network.to_owned()),
            is_known: false,
        }
    }

    fn known(network: &str) -> Asker {
        Asker {
            is_known: true,
            ..stranger(network)
        }
    }

    /// Proves OC-18.
    #[test]
    fn a_network_and_a_host_have_two_turns() {
        let turns = Slots::default();
        let first = turns.try_take(Some("a.example"), &stranger("one")).unwrap();
        let _second = turns.try_take(Some("b.example"), &stranger("one")).unwrap();
        assert!(turns.try_take(Some("c.example"), &stranger("one")).is_none());
        let _third = turns.try_take(Some("b.example"), &stranger("two")).unwrap();
        assert!(turns.try_take(Some("b.example"), &stranger("three")).is_none());
        // A known client has turns of its own for the host, and its network is not counted.
        let _fourth = turns.try_take(Some("b.example"), &known("one")).unwrap();
        let _fifth = turns.try_take(Some("b.example"), &known("one")).unwrap();
        assert!(turns.try_take(Some("b.example"), &known("one")).is_none());
        drop(first);
        assert!(turns.try_take(Some("c.example"), &stranger("one")).is_some());
    }

    /// Proves OC-18.
    #[test]
    fn strangers_leave_what_is_kept_for_known_clients() {
        let turns = Slots::default();
        let of_strangers: Vec<_> = (0..MOST)
            .filter_map(|nth| {
                let name = nth.to_string();
                turns.try_take(Some(&name), &stranger(&name))
            })
            .collect();
        assert_eq!(of_strangers.len(), MOST - KEPT);
        let of_known: Vec<_> = (0..MOST)
            .filter_map(|nth| turns.try_take(Some(&nth.to_string()), &known("one")))
            .collect();
        assert_eq!(of_known.len(), KEPT);
        drop((of_strangers, of_known));
        let taken = turns.lock();
        assert!(taken.all == 0 && taken.by_host.is_empty() && taken.by_network.is_empty());
    }

    #[tokio::test]
    async fn who_waits_gets_the_turn_that_gets_free() {
        let turns = Slots::default();
        let held: Vec<_> = (0..OF_ONE)
            .map(|_| turns.try_take(None, &stranger("one")).unwrap())
            .collect();
        let asker = stranger("one");
        let waiting = turns.take(None, &asker);
        let freeing = async {
            tokio::task::yield_now().await;
            drop(held);
        };
        let (turn, ()) = tokio::join!(waiting, freeing);
        assert!(turn.is_some());
    }
}
