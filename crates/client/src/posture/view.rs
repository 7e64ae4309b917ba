//! How an organization stands, as far as the caller may know.

use provost_words::time::Timestamp;
use std::collections::BTreeMap;

/// A part of the page, or why there is none.
pub enum Part<T> {
    Known(T),
    /// The server does not show it to the caller; its sentence.
    Withheld(String),
}

pub struct Posture {
    pub organization: String,
    pub at: Timestamp,
    pub days: u16,
    pub decisions: Part<Decisions>,
    /// Policies that are switched on.
    pub policies: Part<Vec<Policy>>,
    /// The names of users by their ids.
    pub people: Part<BTreeMap<String, String>>,
    pub accounts: Part<Vec<Account>>,
    pub sessions: Part<Sessions>,
    pub machines: Part<Vec<Profile>>,
}

/// What was decided.
#[derive(Default)]
pub struct Decisions {
    pub all: u64,
    /// Of them told by somebody else.
    pub imported: u64,
    /// Events without a decision.
    pub undecided: u64,
    /// Days since the epoch, in UTC.
    pub by_day: BTreeMap<i64, BTreeMap<String, u64>>,
    pub by_action: BTreeMap<String, u64>,
    pub by_tool: BTreeMap<String, Tally>,
    pub by_subject: BTreeMap<String, Tally>,
    pub by_policy: BTreeMap<String, u64>,
    /// Where reading stopped, when it did before the beginning.
    pub read_to: Option<String>,
    pub unreadable: u64,
}

#[derive(Clone, Copy, Default, PartialEq, Eq)]
pub struct Tally {
    pub all: u64,
    /// Of them blocked or waiting for approval.
    pub stopped: u64,
}

pub struct Policy {
    pub id: String,
    pub name: Option<String>,
    pub family: String,
    pub action: String,
}

pub struct Account {
    pub id: String,
    pub name: String,
    pub role: String,
    pub is_disabled: bool,
    /// Nobody answers for it any more.
    pub is_orphaned: bool,
    /// When the last of its tokens that work ends; absent without one.
    pub ends_at: Option<Timestamp>,
    pub used_at: Option<Timestamp>,
}

/// MCP sessions that are active.
pub struct Sessions {
    pub total: u64,
    pub is_exact: bool,
    /// The newest of them.
    pub newest: Vec<Session>,
}

pub struct Session {
    pub actor: String,
    pub client: String,
    pub issued_at: String,
    pub used_at: String,
}

pub struct Profile {
    pub name: String,
    pub target: String,
    pub machines: Vec<Machine>,
}

pub struct Machine {
    pub name: String,
    pub state: String,
    pub reported_at: String,
    pub message: Option<String>,
}

impl Machine {
    /// Whether what is published is what it has.
    pub fn is_well(&self) -> bool {
        matches!(self.state.as_str(), "applied" | "verified")
    }
}

impl Tally {
    pub fn add(&mut self, action: &str) {
        self.all += 1;
        self.stopped += u64::from(matches!(action, "block" | "require_approval"));
    }
}
