//! Where storage and work that blocks run: on threads of their own, or inline on the runtime of the caller.
//!
//! A server uses threads. A simulation runs the whole application on one thread, so that one seed decides the order of
//! everything that happens (ADR 0023): readers answer inside the call that asks them, the writer is a task, and what
//! would go to a blocking thread runs where it is. [`FaultInjector`] then says how long each turn is held up and what befalls
//! each transaction.
//!
//! Only SQLite runs inline: a connection to PostgreSQL drives a runtime of its own.
//!
//! Absent on purpose: a trait over threads. A server pays one comparison for each turn and nothing else.

use crate::error::{Class, Error, Result};
use std::fmt::Debug;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::Duration;

/// Where storage and blocking work run.
#[derive(Clone, Debug, Default)]
pub enum Threads {
    /// On threads of the operating system.
    #[default]
    Os,
    /// On the caller's runtime, which has one thread and a clock of its own.
    Inline(Arc<dyn FaultInjector>),
}

/// How a simulation delays and fails what runs.
pub trait FaultInjector: Debug + Send + Sync {
    /// Returns for how long this turn is held up.
    fn pause(&self, turn: SchedulePoint) -> Duration;

    /// Returns how the transaction fails at this moment, if it does.
    fn inject(&self, moment: TransactionPhase) -> Option<Class>;
}

/// A point at which a simulation may hold work up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SchedulePoint {
    /// A read.
    Read,
    /// A transaction over what waits for the writer.
    Write,
}

/// Where a transaction is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TransactionPhase {
    /// Nothing was done yet.
    Begin,
    /// Everything was written and nothing is durable.
    BeforeCommit,
    /// Everything is durable and nobody was answered.
    AfterCommit,
}

impl Threads {
    /// Holds a turn up for as long as the simulation wants.
    pub(crate) async fn pause(&self, turn: SchedulePoint) {
        let Self::Inline(fate) = self else { return };
        let pause = fate.pause(turn);
        if !pause.is_zero() {
            tokio::time::sleep(pause).await;
        }
    }

    /// Lets the simulation fail a transaction.
    ///
    /// Errors: of the class that the simulation wants.
    pub(crate) fn inject(&self, moment: TransactionPhase) -> Result<()> {
        let Self::Inline(fate) = self else { return Ok(()) };
        match fate.inject(moment) {
            Some(class) => Err(Error::internal(format!("simulated at {moment:?}")).class(class)),
            None => Ok(()),
        }
    }

    /// Runs work that blocks, beside the runtime's own threads.
    ///
    /// Errors: `Internal` when the work panicked.
    pub async fn blocking<T: Send + 'static>(&self, work: impl FnOnce() -> T + Send + 'static) -> Result<T> {
        match self {
            Self::Os => tokio::task::spawn_blocking(work).await.map_err(Error::internal),
            Self::Inline(_) => {
                catch_unwind(AssertUnwindSafe(work)).map_err(|_| Error::internal("blocking work panicked"))
            }
        }
    }
}
