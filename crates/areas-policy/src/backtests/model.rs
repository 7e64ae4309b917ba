//! The states of a run and every way from one to another, without storage.
//!
//! ```text
//! queued ─ claim ─▶ running ─ succeed ─▶ succeeded        claim again: the lease ended, attempt + 1
//!   │                  ├───── fail ────▶ failed           after the fourth attempt: failed, `interrupted`
//!   └──── cancel ──────┴──── cancel ───▶ canceled
//! ```
//!
//! Every function that a worker calls takes the epoch under which it works and answers whether it still counts.

use provost_kernel::error::{Code, Error, Result};
use provost_kernel::{Timestamp, id};
use schemars::JsonSchema;
use serde::Serialize;

id!(BacktestId, "btr", "Names a backtest.");

/// How long the record of an ended run is kept. Units: seconds (D9.5: 30 days).
pub const KEEP_SECS: i64 = 30 * 86_400;
/// How often a run is begun or taken up again at most (D9.7).
pub const MAX_ATTEMPTS: i64 = 4;
/// How long a worker may be silent before another takes its run up. Units: milliseconds.
pub const LEASE_MS: i64 = 10_000;
/// LIMIT: how many of a hundred events may be unreadable before what was counted of the others says nothing.
pub const UNREADABLE_PERCENT: i64 = 1;
/// LIMIT: runs of an organization that are worked on at a time (D9.5).
pub const MAX_RUNNING: i64 = 2;
/// LIMIT: runs of an organization that wait (D9.5).
pub const MAX_QUEUED: i64 = 20;

provost_kernel::word! {
    /// Where a run stands (D9.2).
    pub enum Status {
        /// It waits for a worker.
        Queued = "queued",
        /// A worker is at it.
        Running = "running",
        /// It has its results.
        Succeeded = "succeeded",
        /// It could not be finished; `failure` says why.
        Failed = "failed",
        /// Somebody canceled it.
        Canceled = "canceled",
    }
}

impl Status {
    /// Says whether nothing follows.
    pub const fn is_terminal(self) -> bool {
        matches!(self, Self::Succeeded | Self::Failed | Self::Canceled)
    }
}

provost_kernel::word! {
    /// What cut a run's events short.
    pub enum CutReason {
        /// `limits.maxEvents`: older events of the window were left out.
        Events = "events",
        /// `limits.maxDurationSeconds`: what was not evaluated by then was left out.
        Duration = "duration",
    }
}

/// Who did something.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[schemars(inline)]
pub struct Principal {
    /// `service_account`; more may come.
    #[serde(rename = "type")]
    pub kind: String,
    /// The principal's id.
    pub id: String,
}

/// Why a run failed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[schemars(inline)]
pub struct Failure {
    /// `interrupted`, `unreadable_history`, `engine_unavailable`, `internal`. Open.
    pub code: String,
    /// The same as a sentence.
    pub message: String,
}

/// How a run ended, or that it has not.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum State {
    /// It waits.
    Queued,
    /// It is worked on.
    Running,
    /// It has its results.
    Succeeded,
    /// It could not be finished.
    Failed(Failure),
    /// Somebody canceled it.
    Canceled {
        /// Who.
        by: Principal,
        /// Why.
        reason: String,
    },
}

impl State {
    /// Returns the status of the state.
    pub const fn status(&self) -> Status {
        match self {
            Self::Queued => Status::Queued,
            Self::Running => Status::Running,
            Self::Succeeded => Status::Succeeded,
            Self::Failed(_) => Status::Failed,
            Self::Canceled { .. } => Status::Canceled,
        }
    }
}

/// How far the work is. INVARIANT BT-3: no counter ever decreases.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Progress {
    /// Events that were read.
    pub processed: i64,
    /// Events of the question; 0 until they were counted.
    pub total: i64,
    /// Events that stand in the results.
    pub evaluated: i64,
}

impl Progress {
    fn raise(&mut self, other: Self) {
        self.processed = self.processed.max(other.processed);
        self.total = self.total.max(other.total);
        self.evaluated = self.evaluated.max(other.evaluated);
    }
}

/// What an engine's end says about the whole run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Verdict {
    /// How far the work came.
    pub progress: Progress,
    /// How many of the evaluated events could not be read.
    pub errors: i64,
    /// What cut the events short.
    pub cut: Option<CutReason>,
    /// The digest of what was read.
    pub dataset_digest: String,
    /// The digest of the results; none where another run could find something else.
    pub result_digest: Option<String>,
}

impl Verdict {
    /// Returns why the results are none, if too much of the history could not be read. INVARIANT BT-10.
    fn failure(&self) -> Option<Failure> {
        let (errors, evaluated) = (i128::from(self.errors), i128::from(self.progress.evaluated));
        let is_unreadable = errors * 100 > evaluated * i128::from(UNREADABLE_PERCENT);
        is_unreadable.then(|| Failure {
            code: "unreadable_history".to_owned(),
            message: format!(
                "more than {UNREADABLE_PERCENT} % of the recorded events could not be read; results.unreadable names where \
                 they lie, and `provost store check` says what is wrong there"
            ),
        })
    }
}

/// A run as it is stored, without its question and its results.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Run {
    /// Its id.
    pub id: BacktestId,
    /// Its place in the list.
    pub seq: i64,
    /// Its name for people.
    pub name: Option<String>,
    /// Why it was asked for.
    pub reason: String,
    /// When it was asked for.
    pub created_at: Timestamp,
    /// Who asked.
    pub created_by: Principal,
    /// When the record last changed.
    pub updated_at: Timestamp,
    /// When a worker first began.
    pub started_at: Option<Timestamp>,
    /// When it ended, in any terminal state.
    pub finished_at: Option<Timestamp>,
    /// Where it stands.
    pub state: State,
    /// How far it is.
    pub progress: Progress,
    /// What cut its events short.
    pub cut: Option<CutReason>,
    /// The version of the engine that judges.
    pub engine_version: String,
    /// The digest of what was read.
    pub dataset_digest: Option<String>,
    /// The digest of the results.
    pub result_digest: Option<String>,
    /// How often it was begun or taken up again.
    pub attempt: i64,
    /// How long workers were at it. Units: milliseconds.
    pub worked_ms: i64,
    /// Under which number the worker of now works; it grows with every claim (BT-4).
    pub epoch: i64,
    /// Until when a worker's silence is no sign.
    pub lease_until: Option<Timestamp>,
    /// How often the record changed.
    pub revision: i64,
}

/// What a claim came to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Claim {
    /// A worker begins.
    Started,
    /// A worker goes on where another stopped.
    Resumed,
    /// It was interrupted too often and has failed.
    GaveUp,
    /// There is nothing to claim: it has ended, or its worker is alive.
    Refused,
}

impl Run {
    /// Returns a run that waits.
    pub fn queued(id: BacktestId, created_by: Principal, reason: &str, now: Timestamp) -> Self {
        Self {
            id,
            seq: 0,
            name: None,
            reason: reason.to_owned(),
            created_at: now,
            created_by,
            updated_at: now,
            started_at: None,
            finished_at: None,
            state: State::Queued,
            progress: Progress::default(),
            cut: None,
            engine_version: String::new(),
            dataset_digest: None,
            result_digest: None,
            attempt: 0,
            worked_ms: 0,
            epoch: 0,
            lease_until: None,
            revision: 1,
        }
    }

    /// Returns where the run stands.
    pub const fn status(&self) -> Status {
        self.state.status()
    }

    /// Returns when the record of an ended run goes away (D9.5).
    pub fn expires_at(&self) -> Option<Timestamp> {
        self.finished_at.map(|at| at.plus_secs(KEEP_SECS))
    }

    /// Says whether the results are those of a part because it did not succeed after it evaluated something (D9.8).
    pub const fn is_partial(&self) -> bool {
        matches!(self.state, State::Failed(_) | State::Canceled { .. }) && self.progress.evaluated > 0
    }

    /// Says whether the record shows results (D9.4).
    pub const fn shows_results(&self) -> bool {
        matches!(self.state, State::Succeeded) || self.is_partial()
    }

    /// Gives the run to a worker, under a new epoch.
    pub fn claim(&mut self, now: Timestamp) -> Claim {
        let is_resumed = match self.state {
            State::Queued => false,
            State::Running if self.lease_until.is_none_or(|until| until <= now) => true,
            _ => return Claim::Refused,
        };
        // The worker before counts no more, even if nobody follows it.
        self.epoch += 1;
        if self.attempt >= MAX_ATTEMPTS {
            let failure = Failure {
                code: "interrupted".to_owned(),
                message: format!("the work was interrupted {MAX_ATTEMPTS} times"),
            };
            self.end(State::Failed(failure), now);
            return Claim::GaveUp;
        }
        self.attempt += 1;
        self.state = State::Running;
        self.started_at = self.started_at.or(Some(now));
        self.lease_until = Some(now.plus_ms(LEASE_MS));
        self.touch(now);
        if is_resumed {
            Claim::Resumed
        } else {
            Claim::Started
        }
    }

    /// Says whether a worker of this epoch still counts. INVARIANT BT-4: an older one never does.
    pub fn is_held(&self, epoch: i64) -> bool {
        matches!(self.state, State::Running) && self.epoch == epoch
    }

    /// Notes how far a worker is and keeps its lease; false when it counts no more.
    pub fn advance(&mut self, epoch: i64, progress: Progress, worked_ms: i64, now: Timestamp) -> bool {
        if !self.is_held(epoch) {
            return false;
        }
        self.progress.raise(progress);
        self.worked_ms = self.worked_ms.max(worked_ms);
        self.lease_until = Some(now.plus_ms(LEASE_MS));
        self.touch(now);
        true
    }

    /// Gives the run back so that any worker may take it up at once; false when the worker counts no more.
    pub fn release(&mut self, epoch: i64, now: Timestamp) -> bool {
        if !self.is_held(epoch) {
            return false;
        }
        self.lease_until = Some(now);
        self.touch(now);
        true
    }

    /// Ends the run with its results, as failed where too much could not be read; false when the worker counts no more.
    pub fn conclude(&mut self, epoch: i64, verdict: Verdict, worked_ms: i64, now: Timestamp) -> bool {
        if !self.is_held(epoch) {
            return false;
        }
        self.progress.raise(verdict.progress);
        self.worked_ms = self.worked_ms.max(worked_ms);
        self.cut = verdict.cut;
        let failure = verdict.failure();
        self.dataset_digest = Some(verdict.dataset_digest);
        // INVARIANT BT-5: a cut by duration depends on the machine, so its results have no digest (D9.6).
        let is_reproducible = self.cut != Some(CutReason::Duration) && failure.is_none();
        self.result_digest = verdict.result_digest.filter(|_| is_reproducible);
        self.end(failure.map_or(State::Succeeded, State::Failed), now);
        true
    }

    /// Ends the run without; false when the worker counts no more.
    pub fn fail(&mut self, epoch: i64, failure: Failure, now: Timestamp) -> bool {
        if !self.is_held(epoch) {
            return false;
        }
        self.end(State::Failed(failure), now);
        true
    }

    /// Cancels the run; false when it was canceled already, which changes nothing (BT-2).
    ///
    /// Errors: `AlreadyTerminal` with `status` when it has succeeded or failed.
    /// Source: specification §4.5; D9.8.
    pub fn cancel(&mut self, by: Principal, reason: &str, now: Timestamp) -> Result<bool> {
        match self.state {
            State::Canceled { .. } => Ok(false),
            State::Succeeded | State::Failed(_) => {
                let status = self.status().as_str();
                let message = format!("the backtest has ended: it is {status}");
                Err(Error::new(Code::AlreadyTerminal, message).with("status", status))
            }
            State::Queued | State::Running => {
                let reason = reason.to_owned();
                self.end(State::Canceled { by, reason }, now);
                Ok(true)
            }
        }
    }

    fn end(&mut self, state: State, now: Timestamp) {
        self.state = state;
        self.lease_until = None;
        self.touch(now);
        self.finished_at = Some(self.updated_at);
    }

    /// The record's instants never go back (D1.2).
    fn touch(&mut self, now: Timestamp) {
        self.updated_at = now.max(self.updated_at.plus_ms(1));
        self.revision += 1;
    }
}

#[cfg(test)]
mod tests;
