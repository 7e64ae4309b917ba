//! A delegation without storage: when it lends what, and which two make a chain.

use crate::approvals::model::Kind;
use provost_kernel::{Timestamp, id};

id!(DelegationId, "dlg", "Names a delegation of votes.");

/// How long one lasts at most. Units: seconds. Source: F8.4.
pub const LONGEST_SECS: i64 = 30 * 86_400;
/// How long before its beginning one is made at most. Units: seconds. Ours: a holiday is known a quarter before.
pub const AHEAD_SECS: i64 = 90 * 86_400;
/// How far its beginning may lie back: clocks differ, and hands are slow. Units: seconds.
pub const LATE_SECS: i64 = 60;
/// LIMIT: open delegations that one person made, and that are made to one person. Ours: each vote looks through them.
pub const MOST_OPEN: usize = 20;

provost_kernel::word! {
    /// Where a delegation stands.
    #[schemars(extend("x-open" = true))]
    pub enum DelegationState {
        /// It has not begun.
        Scheduled = "scheduled",
        /// Votes by it count.
        Active = "active",
        /// No vote by it counts any more.
        Ended = "ended",
    }
}

/// Somebody votes in the name of somebody else for a time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Delegation {
    /// Its id.
    pub id: DelegationId,
    /// Who lends their vote.
    pub from_user_id: String,
    /// Who votes.
    pub to_user_id: String,
    /// About what.
    pub kinds: Vec<Kind>,
    /// From when on.
    pub from: Timestamp,
    /// Until when.
    pub until: Timestamp,
    /// When it was made.
    pub created_at: Timestamp,
    /// When it ended.
    pub ended_at: Option<Timestamp>,
    /// Why it ended, where its time did not run out.
    pub end_reason: Option<String>,
}

/// Says whether votes about a kind can be lent: of operations the settings say that two people decide, and of what comes after this list
/// nobody has said it.
///
/// Keeps AP-19.
pub const fn can_be_lent(kind: Kind) -> bool {
    matches!(kind, Kind::ToolCall | Kind::McpServer)
}

impl Delegation {
    /// Returns where it stands at an instant: what ends by time has ended then, whatever its row says.
    pub fn state_at(&self, now: Timestamp) -> DelegationState {
        if self.ended_at.is_some() || now >= self.until {
            return DelegationState::Ended;
        }
        if now < self.from {
            return DelegationState::Scheduled;
        }
        DelegationState::Active
    }

    /// Says whether votes about a kind are lent by it at an instant.
    ///
    /// Keeps AP-19.
    pub fn lends(&self, kind: Kind, now: Timestamp) -> bool {
        can_be_lent(kind) && self.kinds.contains(&kind) && self.state_at(now) == DelegationState::Active
    }

    /// Says whether there is a kind and an instant for which both lend, where neither ends before its time.
    pub fn meets(&self, other: &Self) -> bool {
        let is_of_one_time = self.from < other.until && other.from < self.until;
        is_of_one_time && self.kinds.iter().any(|kind| other.kinds.contains(kind))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(secs: i64) -> Timestamp {
        Timestamp::from_ms(secs * 1_000)
    }

    fn delegation(kinds: &[Kind], from: i64, until: i64) -> Delegation {
        Delegation {
            id: DelegationId::from_store("dlg_1".into()),
            from_user_id: "usr_a".into(),
            to_user_id: "usr_b".into(),
            kinds: kinds.to_vec(),
            from: at(from),
            until: at(until),
            created_at: at(0),
            ended_at: None,
            end_reason: None,
        }
    }

    /// Proves AP-19.
    #[test]
    fn a_delegation_lends_its_kinds_in_its_time_and_never_an_operation() {
        let one = delegation(&[Kind::ToolCall, Kind::Operation], 10, 20);
        for (now, lends) in [(9, false), (10, true), (19, true), (20, false), (21, false)] {
            assert_eq!(one.lends(Kind::ToolCall, at(now)), lends, "{now}");
        }
        assert!(!one.lends(Kind::McpServer, at(15)));
        // Whatever its row says.
        assert!(!one.lends(Kind::Operation, at(15)));
        let ended = Delegation {
            ended_at: Some(at(12)),
            ..one
        };
        assert!(!ended.lends(Kind::ToolCall, at(11)) && !ended.lends(Kind::ToolCall, at(15)));
    }

    /// Proves AP-19.
    #[test]
    fn two_meet_where_they_lend_one_kind_at_one_time() {
        let one = delegation(&[Kind::ToolCall], 10, 20);
        for (other, meets) in [
            (delegation(&[Kind::ToolCall], 19, 30), true),
            (delegation(&[Kind::ToolCall, Kind::McpServer], 0, 11), true),
            (delegation(&[Kind::ToolCall], 20, 30), false),
            (delegation(&[Kind::ToolCall], 0, 10), false),
            (delegation(&[Kind::McpServer], 10, 20), false),
        ] {
            assert_eq!(
                (one.meets(&other), other.meets(&one)),
                (meets, meets),
                "{other:?}"
            );
        }
    }
}
