//! What a policy does with a request that it matches, and which of several wins.
//!
//! ```text
//!   block > require_approval > filter > redact > nudge > flag_for_review > allow;  nothing matched = allow
//! ```
//!
//! Source: D9.10. The same words name changes in backtests (`block_to_allow`).

use serde::{Deserialize, Serialize};

/// An action; a greater one wins over a smaller one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Action {
    /// The request passes.
    Allow,
    /// It passes and somebody looks at it later.
    FlagForReview,
    /// It passes and its author is told something.
    Nudge,
    /// It passes with parts of it replaced.
    Redact,
    /// It passes with some items of a list left out.
    Filter,
    /// It waits for somebody's approval.
    RequireApproval,
    /// It does not pass.
    Block,
}

impl Action {
    /// Every action, the weakest first.
    pub const ALL: [Self; 7] = [
        Self::Allow,
        Self::FlagForReview,
        Self::Nudge,
        Self::Redact,
        Self::Filter,
        Self::RequireApproval,
        Self::Block,
    ];

    /// Returns the word on the wire.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Allow => "allow",
            Self::FlagForReview => "flag_for_review",
            Self::Nudge => "nudge",
            Self::Redact => "redact",
            Self::Filter => "filter",
            Self::RequireApproval => "require_approval",
            Self::Block => "block",
        }
    }

    /// Returns the action that has this word.
    pub fn named(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|action| action.word() == word)
    }
}
