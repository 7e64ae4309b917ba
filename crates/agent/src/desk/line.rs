//! Who sits at the desk, and whose turn it is.
//!
//! Keeps LJ-6: an account that wants more than its share takes from itself; where the desk is full, it takes from whoever has most.

/// LIMIT: connections of one account.
const MOST_OF_ONE: usize = 16;
/// LIMIT: connections.
const MOST: usize = 64;
/// LIMIT: bytes that wait of one account.
const MOST_BYTES_OF_ONE: usize = 2 << 20;
/// LIMIT: bytes that wait.
const MOST_BYTES: usize = 8 << 20;

/// One connection.
#[derive(Clone, Copy, Debug)]
struct Seat {
    id: u64,
    account: u32,
    process: i32,
    bytes: usize,
}

/// The connections, the oldest first.
#[derive(Debug, Default)]
pub(crate) struct Line {
    seats: Vec<Seat>,
    next: u64,
    served: u32,
}

impl Line {
    /// Seats a connection, and returns its number and who has to leave for it.
    pub fn admit(&mut self, account: u32, process: i32) -> (u64, Option<u64>) {
        let own = || self.seats.iter().filter(|seat| seat.account == account);
        let leaves = if own().count() >= MOST_OF_ONE {
            // A process that takes many does not cost the others of its account.
            let most = most_of(own().map(|seat| seat.process));
            let of_process = own().find(|seat| Some(seat.process) == most);
            of_process.map(|seat| seat.id)
        } else if self.seats.len() >= MOST {
            let most = most_of(self.seats.iter().map(|seat| seat.account));
            let first = self.seats.iter().find(|seat| Some(seat.account) == most);
            first.map(|seat| seat.id)
        } else {
            None
        };
        if let Some(id) = leaves {
            self.leave(id);
        }
        let id = self.next;
        self.next += 1;
        self.seats.push(Seat {
            id,
            account,
            process,
            bytes: 0,
        });
        (id, leaves)
    }

    /// Notes how much a connection brings, and returns who has to leave for it.
    pub fn bring(&mut self, id: u64, bytes: usize) -> Vec<u64> {
        let Some(place) = self.seats.iter().position(|seat| seat.id == id) else {
            return Vec::new();
        };
        self.seats[place].bytes = bytes;
        let account = self.seats[place].account;
        let mut left = Vec::new();
        loop {
            let of = |account: u32| {
                let own = self.seats.iter().filter(|seat| seat.account == account);
                own.map(|seat| seat.bytes).sum::<usize>()
            };
            let total: usize = self.seats.iter().map(|seat| seat.bytes).sum();
            let mut others = self.seats.iter().filter(|seat| seat.id != id && seat.bytes > 0);
            let leaves = if of(account) > MOST_BYTES_OF_ONE {
                others.find(|seat| seat.account == account)
            } else if total > MOST_BYTES {
                // Of those who have most, the first.
                others.min_by_key(|seat| std::cmp::Reverse(of(seat.account)))
            } else {
                None
            };
            let Some(leaves) = leaves else {
                return left;
            };
            let leaves = leaves.id;
            self.leave(leaves);
            left.push(leaves);
        }
    }

    /// Takes a connection out.
    pub fn leave(&mut self, id: u64) {
        self.seats.retain(|seat| seat.id != id);
    }

    /// Returns those whose turn it is of those who are ready: one of each account, and the account behind the one that was served last
    /// comes first.
    pub fn turn(&mut self, ready: &[u64]) -> Vec<u64> {
        let mut first: Vec<(u32, u64)> = Vec::new();
        for seat in self.seats.iter().filter(|seat| ready.contains(&seat.id)) {
            if !first.iter().any(|(account, _)| *account == seat.account) {
                first.push((seat.account, seat.id));
            }
        }
        first.sort_unstable();
        let behind = first.partition_point(|(account, _)| *account <= self.served);
        first.rotate_left(behind);
        if let Some((account, _)) = first.last() {
            self.served = *account;
        }
        first.into_iter().map(|(_, id)| id).collect()
    }
}

/// Returns what stands most often; of several the first.
fn most_of<T: PartialEq + Copy>(all: impl Iterator<Item = T>) -> Option<T> {
    let all: Vec<T> = all.collect();
    let mut most: Option<(T, usize)> = None;
    for one in &all {
        let count = all.iter().filter(|other| *other == one).count();
        if most.is_none_or(|(_, before)| count > before) {
            most = Some((*one, count));
        }
    }
    most.map(|(one, _)| one)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Proves LJ-6.
    #[test]
    fn one_account_or_process_takes_from_itself_before_it_takes_from_others() {
        let mut line = Line::default();
        let (ada, _) = line.admit(1000, 1);
        let mut mallory = Vec::new();
        for _ in 0..1_000 {
            let (id, leaves) = line.admit(666, 7);
            assert_ne!(leaves, Some(ada));
            mallory.push(id);
        }
        assert_eq!(line.seats.len(), MOST_OF_ONE + 1);
        // Another process of the same account gets a seat, and keeps it while the first one goes on.
        let (other, leaves) = line.admit(666, 8);
        assert_eq!(leaves, Some(mallory[1_000 - MOST_OF_ONE]));
        for _ in 0..1_000 {
            assert_ne!(line.admit(666, 7).1, Some(other));
        }
        // Many accounts fill the desk: whoever comes has a seat, and takes it from one that has most.
        for account in 0..100 {
            line.admit(account, 1);
            line.admit(account, 1);
        }
        assert_eq!(line.seats.len(), MOST);
        let (bob, leaves) = line.admit(1001, 1);
        assert!(leaves.is_some() && leaves != Some(ada));
        assert!(line.seats.iter().any(|seat| seat.id == bob));
    }

    /// Proves LJ-6.
    #[test]
    fn bytes_that_wait_have_an_end_for_one_account_and_for_all() {
        let mut line = Line::default();
        let (first, _) = line.admit(666, 1);
        assert!(line.bring(first, 1 << 20).is_empty());
        let (second, _) = line.admit(666, 1);
        assert!(line.bring(second, 1 << 20).is_empty());
        let (third, _) = line.admit(666, 1);
        assert_eq!(line.bring(third, 1 << 20), [first]);
        let mut left = Vec::new();
        for account in 0..20 {
            let (id, _) = line.admit(account, 1);
            left.extend(line.bring(id, 1 << 20));
        }
        assert!(!left.is_empty());
        let total: usize = line.seats.iter().map(|seat| seat.bytes).sum();
        assert!(total <= MOST_BYTES, "{total}");
    }

    /// Proves LJ-6.
    #[test]
    fn turns_go_round_by_account() {
        let mut line = Line::default();
        let flood: Vec<u64> = (0..10).map(|_| line.admit(5, 1).0).collect();
        let (ada, _) = line.admit(3, 1);
        let (bob, _) = line.admit(9, 1);
        let mut ready = flood.clone();
        ready.extend([ada, bob]);
        assert_eq!(line.turn(&ready), [ada, flood[0], bob]);
        line.leave(ada);
        ready.retain(|id| *id != ada && *id != flood[0]);
        line.leave(flood[0]);
        assert_eq!(line.turn(&ready), [flood[1], bob]);
        assert!(line.turn(&[]).is_empty());
    }
}
