//! The unit of work: the only way to change state.
//!
//! A writer takes the units that wait (never waits for more), runs them in one transaction, commits durably,
//! and only then answers. Each unit has a savepoint: a refusal or a panic costs that unit alone. The
//! transaction carries the changes, the audit entries, the outgoing events, the jobs and the stored answers.
//!
//! ```text
//! prologue  BEGIN · lock chain heads in order · read the keys · read the tokens again      1 round trip
//! per unit  key known? → replay.  SAVEPOINT · operation · RELEASE | ROLLBACK TO
//! epilogue  audit · outbox · jobs · stored answers · heads · COMMIT                         1 round trip
//! ```
//!
//! INVARIANT WK-1: an answer is sent after its transaction is durable, never before. Proof: `cargo xtask crash`,
//! `cargo xtask power`.
//! INVARIANT WK-2: after a failed write or fsync nothing is acknowledged until a restart. Proof: `cargo xtask
//! faults`.
//! INVARIANT WK-3: a unit whose COMMIT went unanswered runs again with the same key, instant and seed.
//! INVARIANT WK-4: rights are judged in the same transaction as the change. Proof: in part; with debug assertions
//! every unit is followed by a second reading of all who wait.
//! Keeps CX-2.
//!
//! Absent on purpose: a timer that waits for fuller batches; cancellation of a running unit.

mod attempt;
mod in_flight;
mod queue;
mod writer;

pub(crate) use in_flight::{Flights, InFlight};
pub(crate) use writer::Writers;

use crate::auth::{OrganizationId, Origin};
use crate::context::OperationContext;
use crate::credential::{Caller, EntryPoint};
use crate::error::Result;
use crate::idempotency::KeyUse;
use crate::operation::{Answer, BoundCall, Meta};
use crate::second_person::Asked;
use crate::sync;
use crate::time::Timestamp;
use serde_json::Value;
use std::time::Duration;
use tokio::sync::oneshot;

/// What a dispatcher hears back.
pub(crate) type Reply = oneshot::Sender<Result<Answer>>;

pub(crate) type SystemRun = Box<dyn Fn(&mut OperationContext<'_>) -> Result<()> + Send>;

/// What a unit runs.
pub(crate) enum Run {
    /// A request's operation.
    Operation(Box<Call>),
    /// The program's own work.
    System {
        action: Option<&'static str>,
        run: SystemRun,
    },
}

/// A decoded request that waits for its writer.
pub(crate) struct Call {
    pub meta: &'static Meta,
    pub bound: Box<dyn BoundCall>,
    pub path: Value,
    pub caller: Caller,
    /// By which door it came.
    pub entry_point: EntryPoint,
    pub principal_id: String,
    pub key: KeyUse,
    /// What the request says where a second person may be wanted.
    pub second_person: Option<Asked>,
    pub origin: Origin,
    /// Counts the principal's units in flight; released when the unit is answered.
    pub _in_flight: InFlight,
}

/// One unit of work.
pub(crate) struct Unit {
    pub organization: OrganizationId,
    pub run: Run,
    pub now: Timestamp,
    pub seed: [u8; 32],
    /// Monotonic instant after which the unit is refused instead of begun.
    pub expires: Duration,
    /// Absent when nobody waits for the outcome.
    pub reply: Option<Reply>,
}
