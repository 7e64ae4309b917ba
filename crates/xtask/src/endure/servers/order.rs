//! Whether what was answered about one record can have happened one after the other (Wing and Gong, 1993; the memory of
//! places that were tried is Lowe's, 2017).
//!
//! INVARIANT: an answer is placed between the sending of its request and its arrival, and a read shows what the last
//! write before it left. A read that fits is placed at once: it changes nothing, so waiting gains nothing.

use std::collections::HashSet;
use std::time::Duration;

/// What was asked for and answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Act {
    Write(u64),
    Read(u64),
}

/// One answered request about one record.
#[derive(Clone, Copy, Debug)]
pub struct Observation {
    /// Before the first attempt was sent.
    pub sent: Duration,
    pub arrived: Duration,
    pub act: Act,
    /// Which server gave the answer.
    pub server: usize,
}

/// What was placed so far, and what the record holds then.
#[derive(Clone, PartialEq, Eq, Hash)]
struct OrderRecord {
    placed: Vec<u64>,
    value: u64,
}

impl OrderRecord {
    fn holds(&self, at: usize) -> bool {
        self.placed[at / 64] & (1 << (at % 64)) != 0
    }

    fn add(&mut self, at: usize) {
        self.placed[at / 64] |= 1 << (at % 64);
    }
}

/// Returns nothing when there is an order, and otherwise how many answers fit into the longest beginning of one.
pub fn find(initial: u64, answers: &[Observation]) -> Result<(), usize> {
    let begin = OrderRecord {
        placed: vec![0; answers.len().div_ceil(64)],
        value: initial,
    };
    let (mut seen, mut open, mut longest) = (HashSet::new(), vec![begin], 0);
    while let Some(mut place) = open.pop() {
        let next = advance(&mut place, answers);
        let count: u32 = place.placed.iter().map(|word| word.count_ones()).sum();
        let count = usize::try_from(count).unwrap_or(usize::MAX);
        longest = longest.max(count);
        if count == answers.len() {
            return Ok(());
        }
        if !seen.insert(place.clone()) {
            continue;
        }
        for at in next {
            if let Act::Write(value) = answers[at].act {
                let mut after = place.clone();
                after.add(at);
                after.value = value;
                open.push(after);
            }
        }
    }
    Err(longest)
}

/// Places every read that fits, and returns the writes that may come next.
fn advance(place: &mut OrderRecord, answers: &[Observation]) -> Vec<usize> {
    loop {
        let rest: Vec<usize> = (0..answers.len()).filter(|at| !place.holds(*at)).collect();
        // Whatever was sent after another answer had arrived comes after it.
        let Some(first_end) = rest.iter().map(|at| answers[*at].arrived).min() else {
            return Vec::new();
        };
        let next: Vec<usize> = rest
            .into_iter()
            .filter(|at| answers[*at].sent <= first_end)
            .collect();
        let fitting: Vec<usize> = next
            .iter()
            .copied()
            .filter(|at| answers[*at].act == Act::Read(place.value))
            .collect();
        if fitting.is_empty() {
            return next;
        }
        for at in fitting {
            place.add(at);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn history(acts: &[(u64, u64, Act)]) -> Vec<Observation> {
        acts.iter()
            .map(|(sent, arrived, act)| Observation {
                sent: Duration::from_millis(*sent),
                arrived: Duration::from_millis(*arrived),
                act: *act,
                server: 0,
            })
            .collect()
    }

    #[test]
    fn a_read_shows_the_last_write_that_was_answered() {
        let fresh = history(&[(0, 1, Act::Write(1)), (2, 3, Act::Read(1))]);
        assert_eq!(find(0, &fresh), Ok(()));
        let stale = history(&[(0, 1, Act::Write(1)), (2, 3, Act::Read(0))]);
        assert_eq!(find(0, &stale), Err(1));
    }

    #[test]
    fn what_ran_at_once_may_have_either_order() {
        let either = history(&[(0, 5, Act::Write(1)), (1, 6, Act::Write(2)), (7, 8, Act::Read(1))]);
        assert_eq!(find(0, &either), Ok(()));
        let during = history(&[(0, 9, Act::Write(1)), (1, 2, Act::Read(0)), (3, 4, Act::Read(1))]);
        assert_eq!(find(0, &during), Ok(()));
    }

    #[test]
    fn nothing_comes_back() {
        let back = history(&[(0, 9, Act::Write(1)), (1, 2, Act::Read(1)), (3, 4, Act::Read(0))]);
        assert!(find(0, &back).is_err());
        let lost = history(&[
            (0, 1, Act::Write(1)),
            (2, 3, Act::Write(2)),
            (4, 5, Act::Read(2)),
            (6, 7, Act::Read(1)),
        ]);
        assert_eq!(find(0, &lost), Err(3));
    }

    #[test]
    fn many_writers_are_ordered_in_time() {
        // Eight at once, again and again, and a read of the last of each round.
        let mut acts = Vec::new();
        for round in 0..50 {
            let begin = round * 100;
            for writer in 0..8 {
                acts.push((
                    begin + writer,
                    begin + 50 + writer,
                    Act::Write(round * 10 + writer),
                ));
            }
            acts.push((begin + 60, begin + 61, Act::Read(round * 10 + round % 8)));
        }
        assert_eq!(find(0, &history(&acts)), Ok(()));
        acts.push((5_000, 5_001, Act::Read(480)));
        assert!(find(0, &history(&acts)).is_err());
    }
}
