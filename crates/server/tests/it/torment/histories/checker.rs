//! Whether the calls on one object can be put in an order in which each has the outcome that it had, and none comes
//! before one that had ended when it began (Wing and Gong 1993, with the memory of Lowe 2017).

use std::collections::HashSet;
use std::fmt::Debug;
use std::hash::Hash;

/// One call: what was asked, what came of it, and when, on a logical clock.
#[derive(Clone, Debug)]
pub struct Call<A> {
    pub act: A,
    pub invoked: u64,
    pub returned: u64,
}

/// What an object does.
pub trait Object: Clone + Eq + Hash + Debug {
    type Act: Debug;

    /// The state after an act, or nothing if it could not have had this outcome here.
    fn after(&self, act: &Self::Act) -> Option<Self>;
}

/// Says whether there is such an order.
///
/// LIMIT: 128 calls of one object.
pub fn is_linearizable<O: Object>(begin: &O, calls: &[Call<O::Act>]) -> bool {
    assert!(calls.len() <= 128, "{} calls of one object", calls.len());
    let all = u128::MAX
        .checked_shr(128 - u32::try_from(calls.len()).unwrap())
        .unwrap_or(0);
    let mut seen: HashSet<(u128, O)> = HashSet::new();
    let mut open = vec![(0_u128, begin.clone())];
    while let Some((done, state)) = open.pop() {
        if done == all {
            return true;
        }
        let left = || {
            calls
                .iter()
                .enumerate()
                .filter(|(place, _)| done & (1 << place) == 0)
        };
        let first_return = left().map(|(_, call)| call.returned).min().unwrap();
        for (place, call) in left().filter(|(_, call)| call.invoked < first_return) {
            let Some(after) = state.after(&call.act) else {
                continue;
            };
            let next = (done | (1 << place), after);
            if seen.insert(next.clone()) {
                open.push(next);
            }
        }
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A number that can be written, read, and written if it is another one.
    #[derive(Clone, Debug, PartialEq, Eq, Hash)]
    struct Number(u32);

    #[derive(Clone, Copy, Debug)]
    enum Act {
        Write(u32),
        Read(u32),
        Swap(u32, u32, bool),
    }

    impl Object for Number {
        type Act = Act;

        fn after(&self, act: &Act) -> Option<Self> {
            match *act {
                Act::Write(value) => Some(Self(value)),
                Act::Read(value) => (value == self.0).then(|| self.clone()),
                Act::Swap(from, to, true) => (from == self.0).then_some(Self(to)),
                Act::Swap(from, _, false) => (from != self.0).then(|| self.clone()),
            }
        }
    }

    fn judge(calls: &[(Act, u64, u64)]) -> bool {
        let calls: Vec<_> = calls
            .iter()
            .map(|(act, invoked, returned)| Call {
                act: *act,
                invoked: *invoked,
                returned: *returned,
            })
            .collect();
        is_linearizable(&Number(0), &calls)
    }

    #[test]
    fn an_order_that_exists_is_found() {
        use Act::{Read, Swap, Write};
        assert!(judge(&[]));
        assert!(judge(&[(Write(1), 0, 1), (Read(1), 2, 3)]));
        // A read beside a write sees either.
        assert!(judge(&[(Write(1), 0, 5), (Read(0), 1, 2)]));
        assert!(judge(&[(Write(1), 0, 5), (Read(1), 1, 2), (Read(1), 3, 4)]));
        assert!(judge(&[(Write(1), 0, 9), (Write(2), 1, 8), (Read(1), 10, 11)]));
        assert!(judge(&[(Swap(0, 1, true), 0, 5), (Swap(0, 2, false), 1, 4)]));
    }

    #[test]
    fn a_wrong_history_is_refused() {
        use Act::{Read, Swap, Write};
        // A stale read.
        assert!(!judge(&[(Write(1), 0, 1), (Read(0), 2, 3)]));
        // A value of nobody.
        assert!(!judge(&[(Write(1), 0, 1), (Read(2), 2, 3)]));
        // New, then old again.
        assert!(!judge(&[(Write(1), 0, 9), (Read(1), 1, 2), (Read(0), 3, 4)]));
        // A lost write.
        assert!(!judge(&[(Write(1), 0, 1), (Write(2), 2, 3), (Read(1), 4, 5)]));
        // Two that both saw the same revision.
        assert!(!judge(&[(Swap(0, 1, true), 0, 5), (Swap(0, 2, true), 1, 4)]));
        // A refusal without a cause.
        assert!(!judge(&[(Swap(0, 1, false), 0, 1)]));
    }

    #[test]
    fn a_long_history_is_judged_at_once() {
        let mut calls = Vec::new();
        for n in 0..128_u32 {
            let at = u64::from(n) * 2;
            let act = if n % 2 == 0 {
                Act::Write(n)
            } else {
                Act::Read(n - 1)
            };
            calls.push((act, at, at + 1));
        }
        assert!(judge(&calls));
        calls[127].0 = Act::Read(0);
        assert!(!judge(&calls));
    }
}
