//! An approval as a state machine, without storage: votes, the decision, uses and ends.
//!
//! INVARIANT AP-1: over any order, crash and repetition, no more calls pass than the grant says.
//! INVARIANT AP-3: people alone say yes, and of them neither who asked, nor whom it is for, nor who stands behind one of the two (an
//! account's owner, and whoever made it or had its tokens, through however many accounts), nor whom one of these gave a role or a sign-in
//! since it was asked; of the others those alone who may decide at the moment in which the last vote comes; one who lost the right before
//! does not count. Nothing passes by the yes of somebody who stands behind the call, or may not decide any more, when it is used.
//! INVARIANT AP-5: nothing passes by an approval that is not decided, has ended, or whose time has run out.
//! INVARIANT AP-12: while the clock shows more than a minute less than it showed before, or any less and was set back by more than a minute
//! in all, nothing is asked for, approved or used, and what was open by then ends within a minute: a clock that was set back neither
//! lengthens nor revives anything.

use super::delegations::DelegationId;
use super::routes::{Frozen, OnDeadline};
use provost_kernel::auth::Actor;
use provost_kernel::{Timestamp, id};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

mod votes;

pub use votes::Behind;

id!(ApprovalId, "apr", "Names an approval.");
id!(GrantId, "grt", "Names what an approval gives.");

/// How long a request waits for its decision. Units: seconds. Ours: a person is at work, and so is who decides.
pub const PENDING_SECS: i64 = 3_600;
/// How long what was approved can be used. Units: seconds. Source: F8.2.
pub const GRANT_SECS: i64 = 900;
/// The same of a request for an operation. Units: seconds. Source: F8.2.
pub const OPERATION_GRANT_SECS: i64 = 3_600;
/// How long a request for an operation waits for its decision. Units: seconds. Ours: a day, within which a second admin is at work; after
/// it what the request is about is another.
pub const OPERATION_SECS: i64 = 86_400;
/// Within which requests are counted, whatever became of them. Units: seconds. Source: F8.9. Not less than [`PENDING_SECS`]: what
/// waits is among them.
pub const COUNTED_SECS: i64 = PENDING_SECS;
/// LIMIT: requests that one principal, and all that one person owns, ask for one subject within that time. Source: F8.9. Another asker
/// has others: nobody uses up the requests of somebody whom they name.
pub const MOST_OF_SUBJECT: i64 = 20;
/// LIMIT: requests of one principal, and of all that one person owns, within that time: its share of the queue. Ours: a fifth.
pub const MOST_OF_ASKER: i64 = 200;
/// How long a request that somebody made by hand waits. Units: seconds. Ours: a week, in which somebody is at work.
pub const BY_HAND_SECS: i64 = 7 * 86_400;
/// LIMIT: requests by hand of one principal, and of all that one person owns, that wait. Ours.
pub const MOST_BY_HAND: i64 = 100;
/// LIMIT: waiting requests of an organization. Source: F8.9.
pub const MOST: i64 = 1_000;
provost_kernel::word! {
    /// What is approved.
    #[schemars(extend("x-open" = true))]
    pub enum Kind {
        /// One call of a tool, with these arguments.
        ToolCall = "tool_call",
        /// That an MCP server of the inventory stands approved.
        McpServer = "mcp_server",
        /// That a policy has an exception for who asks, until an instant.
        Exception = "exception",
        /// One request for an operation that one person alone does not perform.
        Operation = "operation",
    }
}

impl Kind {
    /// Returns how long what was approved can be used. Units: seconds.
    pub const fn grant_secs(self) -> i64 {
        match self {
            Self::ToolCall | Self::McpServer | Self::Exception => GRANT_SECS,
            Self::Operation => OPERATION_GRANT_SECS,
        }
    }

    /// Returns how long a request waits for its decision where no route says otherwise. Units: seconds.
    pub const fn waits_secs(self) -> i64 {
        match self {
            Self::ToolCall => PENDING_SECS,
            Self::McpServer | Self::Exception => BY_HAND_SECS,
            Self::Operation => OPERATION_SECS,
        }
    }
}

provost_kernel::word! {
    /// Where an approval stands.
    #[schemars(extend("x-open" = true))]
    pub enum State {
        /// It waits for votes.
        Pending = "pending",
        /// The call passes, as often as the grant says and until its end.
        Approved = "approved",
        /// The grant was used as often as it may be.
        Used = "used",
        /// Somebody who decides said no.
        Denied = "denied",
        /// Its time ran out, before the decision or before it was used up.
        Expired = "expired",
        /// It was taken back.
        Canceled = "canceled",
        /// What was approved was taken back.
        Revoked = "revoked",
        /// What it binds is not any more what it was.
        Void = "void",
    }
}

impl State {
    /// Says whether nothing can come of it any more.
    pub const fn is_ended(self) -> bool {
        !matches!(self, Self::Pending | Self::Approved)
    }
}

provost_kernel::word! {
    /// What somebody says of a request.
    pub enum Choice {
        /// Yes.
        Approve = "approve",
        /// No, which ends the request.
        Deny = "deny",
    }
}

/// Who asks, is asked for, or votes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(inline)]
pub struct Party {
    /// `user` or `service_account`. Open.
    pub kind: String,
    /// The id.
    pub id: String,
}

impl Party {
    /// Returns the caller. People come with tokens that say in their own word that somebody is a person.
    pub fn of(actor: &Actor) -> Self {
        let kind = match actor.kind {
            "console_user" => "user",
            kind => kind,
        };
        Self {
            kind: kind.to_owned(),
            id: actor.id.clone(),
        }
    }

    /// Returns a person.
    pub fn person(id: String) -> Self {
        Self {
            kind: "user".to_owned(),
            id,
        }
    }

    /// Returns whom an id names: an account by its first letters, else a person.
    pub fn named(id: &str) -> Self {
        if id.starts_with("sa_") {
            return Self {
                kind: "service_account".to_owned(),
                id: id.to_owned(),
            };
        }
        Self::person(id.to_owned())
    }

    /// Says whether it is somebody and not something.
    pub fn is_person(&self) -> bool {
        self.kind == "user"
    }
}

/// Whose vote somebody says in their name.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(inline)]
pub struct Lent {
    /// Who lent it.
    pub user_id: String,
    /// The delegation.
    pub delegation_id: DelegationId,
}

/// What one person says.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(inline)]
pub struct Vote {
    /// Who.
    pub by: Party,
    /// In whose name, where it is not their own.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub in_name_of: Option<Lent>,
    /// What.
    pub choice: Choice,
    /// When.
    pub at: Timestamp,
}

impl Vote {
    /// Returns whose place in a route it is said from.
    pub fn holder(&self) -> Party {
        match &self.in_name_of {
            Some(lent) => Party::person(lent.user_id.clone()),
            None => self.by.clone(),
        }
    }
}

/// One call that passed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(inline)]
pub struct Use {
    /// The decision that allowed it, as the history names it; of a server and of a policy its id; of an operation the id of the request that
    /// performed it.
    pub event_id: String,
    /// When.
    pub at: Timestamp,
}

/// A policy that asked for the approval, in the definition that was live then.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(inline)]
pub struct BoundPolicy {
    /// `content`, `access`, `resource` or `skill_acl`.
    pub family: String,
    /// The policy.
    pub policy_id: String,
    /// The SHA-256 of its definition.
    pub definition_sha256: String,
}

/// A request, its votes, and what they gave.
#[derive(Clone, Debug, PartialEq)]
pub struct Approval {
    /// Its id.
    pub id: ApprovalId,
    /// The id of what it gives once it is approved.
    pub grant_id: GrantId,
    /// What is approved.
    pub kind: Kind,
    /// Where it stands in its row; [`Self::state_at`] says where it stands now.
    pub state: State,
    /// Whose question opened it: only their questions are answered by it.
    pub asker: Party,
    /// Who owns the asker; the asker where that is a person, or nobody owns it. Requests count as theirs.
    pub owner_id: String,
    /// Whose call it is.
    pub subject: Party,
    /// What the subject could do then, in words that are compared.
    pub subject_rights: String,
    /// The keyed hash of the call.
    pub call_mac: String,
    /// The keyed hash of all that is bound, which votes repeat.
    pub binding_mac: String,
    /// The tool, the key of the server, or the id of the policy or the operation.
    pub tool: String,
    /// The ids of users and accounts beside the two who would get something by it; whoever stands behind one of them does not vote.
    pub gains: Vec<String>,
    /// What the approval answers.
    pub policies: Vec<BoundPolicy>,
    /// The route by which it is decided, as it was then; nothing where none fitted.
    pub route: Option<Frozen>,
    /// Distinct people who have to say yes.
    pub quorum: i64,
    /// What was said, in the order of the last word of each.
    pub votes: Vec<Vote>,
    /// How often the call passes.
    pub max_uses: i64,
    /// The calls that passed.
    pub uses: Vec<Use>,
    /// Until when it waits.
    pub deadline_at: Timestamp,
    /// Until when the grant can be used.
    pub grant_until: Option<Timestamp>,
    /// The sealed view of the call, and the sealing key's id; nothing once it was erased.
    pub sealed: Option<(String, Vec<u8>)>,
    /// When it was asked for.
    pub created_at: Timestamp,
    /// When it was approved or denied.
    pub decided_at: Option<Timestamp>,
    /// When it ended.
    pub ended_at: Option<Timestamp>,
    /// Why it ended, where the state does not say it.
    pub end_reason: Option<String>,
    /// How often the row changed; a change is stored only on the row that it was computed from.
    pub revision: i64,
}

/// What a new request has of its own; of the rest all begin alike.
pub struct Opening {
    /// Its id.
    pub id: ApprovalId,
    /// The id of what it gives once it is approved.
    pub grant_id: GrantId,
    /// What is asked for.
    pub kind: Kind,
    /// Who asks.
    pub asker: Party,
    /// Who owns who asks.
    pub owner_id: String,
    /// For whom.
    pub subject: Party,
    /// What the subject can do now.
    pub subject_rights: String,
    /// The keyed hash of what is asked for.
    pub call_mac: String,
    /// The keyed hash of all that is bound.
    pub binding_mac: String,
    /// The tool, the key of the server, or the id of the policy or the operation.
    pub tool: String,
    /// Who would get something by it beside the two.
    pub gains: Vec<String>,
    /// The policies that it answers.
    pub policies: Vec<BoundPolicy>,
    /// Who decides, where a route says so.
    pub route: Option<Frozen>,
    /// Distinct people who have to say yes.
    pub quorum: i64,
    /// How long it waits. Units: seconds.
    pub waits_secs: i64,
    /// The sealed view, and the sealing key's id.
    pub sealed: (String, Vec<u8>),
    /// Now.
    pub at: Timestamp,
}

/// Why something cannot be done with an approval.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// It stands where this cannot happen.
    Stands(State),
    /// Who votes asked for it, it is for them, or they stand behind one of the two.
    Own,
    /// Who says yes is no person.
    NotAPerson,
    /// Who votes may not decide now.
    MayNotDecide,
    /// Nobody of that name has lent them a vote about this that holds now.
    NotLent,
    /// There are too many votes.
    TooMany,
}

/// What a vote or a use changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Effect {
    /// Nothing: it was so already.
    Nothing,
    /// The record.
    Changed,
}

impl Approval {
    /// Returns a request that waits, and that nobody said anything of.
    pub fn open(opening: Opening) -> Self {
        Self {
            id: opening.id,
            grant_id: opening.grant_id,
            kind: opening.kind,
            state: State::Pending,
            asker: opening.asker,
            owner_id: opening.owner_id,
            subject: opening.subject,
            subject_rights: opening.subject_rights,
            call_mac: opening.call_mac,
            binding_mac: opening.binding_mac,
            tool: opening.tool,
            gains: opening.gains,
            policies: opening.policies,
            route: opening.route,
            quorum: opening.quorum,
            votes: Vec::new(),
            max_uses: 1,
            uses: Vec::new(),
            deadline_at: opening.at.plus_secs(opening.waits_secs),
            grant_until: None,
            sealed: Some(opening.sealed),
            created_at: opening.at,
            decided_at: None,
            ended_at: None,
            end_reason: None,
            revision: 0,
        }
    }

    /// Returns where it stands at an instant: what ends by time has ended then, whatever its row says.
    pub fn state_at(&self, now: Timestamp) -> State {
        let end = match self.state {
            State::Pending => Some(self.deadline_at),
            // An approval whose end nobody knows gives nothing.
            State::Approved => Some(self.grant_until.unwrap_or(self.created_at)),
            _ => None,
        };
        if end.is_none_or(|end| now < end) {
            return self.state;
        }
        let denies = |route: &Frozen| route.on_deadline == OnDeadline::Deny;
        match self.state {
            State::Pending if self.route.as_ref().is_some_and(denies) => State::Denied,
            _ => State::Expired,
        }
    }

    /// Returns how many uses are left, whatever the state.
    pub fn uses_left(&self) -> i64 {
        let used = i64::try_from(self.uses.len()).unwrap_or(i64::MAX);
        self.max_uses.saturating_sub(used).max(0)
    }

    /// Takes the request back.
    pub fn cancel(&mut self, now: Timestamp) -> std::result::Result<Effect, Refusal> {
        match self.state_at(now) {
            State::Canceled => Ok(Effect::Nothing),
            State::Pending => Ok(self.end(State::Canceled, now, None)),
            state => Err(Refusal::Stands(state)),
        }
    }

    /// Takes back what was approved.
    pub fn revoke(&mut self, now: Timestamp) -> std::result::Result<Effect, Refusal> {
        match self.state_at(now) {
            State::Revoked => Ok(Effect::Nothing),
            State::Approved => Ok(self.end(State::Revoked, now, None)),
            state => Err(Refusal::Stands(state)),
        }
    }

    /// Ends what is open because what it binds moved.
    pub fn make_void(&mut self, now: Timestamp, reason: &str) -> Effect {
        if self.state.is_ended() {
            return Effect::Nothing;
        }
        self.end(State::Void, now, Some(reason))
    }

    /// Writes down that its time ran out: as its route says, where nobody decided.
    pub fn expire(&mut self, now: Timestamp) -> Effect {
        let state = self.state_at(now);
        if self.state.is_ended() || !state.is_ended() {
            return Effect::Nothing;
        }
        let reason = (state == State::Denied).then_some("deadline");
        self.end(state, now, reason)
    }

    /// Lets one call pass, by the decision that allows it. A decision that is there already uses nothing again: a unit of work
    /// may run twice.
    ///
    /// Keeps AP-1 and AP-5.
    pub fn consume(&mut self, event_id: &str, now: Timestamp) -> std::result::Result<Effect, Refusal> {
        if self.uses.iter().any(|earlier| earlier.event_id == event_id) {
            return Ok(Effect::Nothing);
        }
        let state = self.state_at(now);
        if state != State::Approved || self.uses_left() == 0 {
            return Err(Refusal::Stands(state));
        }
        self.uses.push(Use {
            event_id: event_id.to_owned(),
            at: now,
        });
        if self.uses_left() == 0 {
            self.end(State::Used, now, None);
        }
        Ok(Effect::Changed)
    }

    fn end(&mut self, state: State, now: Timestamp, reason: Option<&str>) -> Effect {
        self.state = state;
        self.ended_at = Some(now);
        self.end_reason = reason.map(str::to_owned);
        Effect::Changed
    }
}

#[cfg(test)]
mod tests;
