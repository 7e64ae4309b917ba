//! PostgreSQL 15 or newer, pipelined over one connection that this thread drives.
//!
//! Timeline of a unit, where each line is one round trip:
//! ```text
//! BEGIN · prologue
//! SAVEPOINT · first statement
//! queued · queued · second statement
//! RELEASE · SAVEPOINT · first statement of the next unit
//! RELEASE · epilogue · COMMIT
//! ```
//!
//! A transaction is aborted only by a statement that failed, and every answer is looked at; so a COMMIT that
//! the server would turn into a ROLLBACK (its command tag is not visible through the driver) is known before
//! it is sent, or follows a failure in its own pipeline.

use super::Access;
use super::fault::Fault;
use super::line::Line;
use super::param::Param;
use super::row::{Kept, Rows};
use super::statement::{Call, Statement};
use super::step::{Answer, Params, Step, address, ask};
use crate::error::Class;
use std::collections::{HashMap, HashSet};
use std::future::poll_fn;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use tokio_postgres::Client;

/// `idle_in_transaction_session_timeout`: a frozen server must not stall the others through its locks. `jit`: compiling a
/// statement takes longer than any of ours runs.
const SESSION: &str = "SET lock_timeout = '5s'; SET statement_timeout = '10s';
    SET idle_in_transaction_session_timeout = '2s'; SET synchronous_commit = on; SET jit = off;
    SET TimeZone = 'UTC'";

const SESSION_READ: &str = "SET default_transaction_read_only = on";

type Unanswered = Pin<Box<dyn Future<Output = Result<(), tokio_postgres::Error>> + Send>>;

pub(super) struct Postgres {
    /// Before `line`, which says goodbye to the server when the client is gone.
    client: Arc<Client>,
    line: Line,
    /// By address of the catalogue's static.
    prepared: HashMap<usize, tokio_postgres::Statement>,
    /// What rides with the next statement.
    deferred: Vec<Step<'static>>,
    savepoint: Savepoint,
    /// The end of the last read, which was sent but whose answer nobody waited for.
    unanswered: Option<Unanswered>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Savepoint {
    None,
    /// It stands at this place of `deferred`.
    Deferred(usize),
    Sent,
}

impl Postgres {
    pub fn open(url: &str, access: Access) -> Result<Self, Fault> {
        let (client, line) = Line::open(url)?;
        let mut made = Self {
            client: Arc::new(client),
            line,
            prepared: HashMap::new(),
            deferred: Vec::new(),
            savepoint: Savepoint::None,
            unanswered: None,
        };
        made.defer(SESSION);
        if access == Access::Read {
            made.defer(SESSION_READ);
        }
        made.flush(&[], None).map_err(Fault::of_connecting)?;
        Ok(made)
    }

    /// Opens the transaction together with the next statement.
    pub fn begin(&mut self, sql: &'static str) {
        self.deferred.clear();
        self.savepoint = Savepoint::None;
        self.defer(sql);
    }

    pub fn commit(&mut self, calls: &[Call<'_>]) -> Result<Vec<Rows>, Fault> {
        self.release();
        self.flush(calls, Some("COMMIT"))
    }

    /// Ends a transaction that only read, without waiting for the answer.
    pub fn finish_read(&mut self) -> Result<(), Fault> {
        match self.deferred.as_slice() {
            // Nothing was asked: the transaction was never opened.
            [Step::Command(_)] => self.deferred.clear(),
            [] => {
                let client = Arc::clone(&self.client);
                let mut end: Unanswered = Box::pin(async move { client.batch_execute("COMMIT").await });
                let mut quiet = Context::from_waker(Waker::noop());
                if end.as_mut().poll(&mut quiet).is_pending() {
                    self.unanswered = Some(end);
                }
                self.line.send();
            }
            _ => drop(self.flush(&[], Some("COMMIT"))?),
        }
        Ok(())
    }

    /// Ends the transaction. Where that fails, the connection is given up.
    pub fn rollback(&mut self) {
        self.deferred.clear();
        self.savepoint = Savepoint::None;
        if self.flush(&[], Some("ROLLBACK")).is_err() {
            self.line.hang_up();
        }
    }

    pub fn savepoint(&mut self) {
        self.release();
        self.savepoint = Savepoint::Deferred(self.deferred.len());
        self.defer("SAVEPOINT unit");
    }

    pub fn release(&mut self) {
        match std::mem::replace(&mut self.savepoint, Savepoint::None) {
            Savepoint::None => {}
            // Nothing happened inside: the server never hears of it.
            Savepoint::Deferred(at) if at + 1 == self.deferred.len() => self.deferred.truncate(at),
            Savepoint::Deferred(_) | Savepoint::Sent => self.defer("RELEASE SAVEPOINT unit"),
        }
    }

    pub fn rollback_to(&mut self) -> Result<(), Fault> {
        match self.savepoint {
            Savepoint::None => return Err(Fault::new(Class::Refused, "rollback_to without a savepoint")),
            Savepoint::Deferred(at) => self.deferred.truncate(at + 1),
            Savepoint::Sent => {
                self.deferred.clear();
                self.defer("ROLLBACK TO SAVEPOINT unit");
            }
        }
        Ok(())
    }

    pub fn queue(&mut self, statement: &'static Statement, params: &[Param<'_>]) {
        self.deferred.push(Step::Call {
            statement,
            params: Params::Queued(params.iter().map(|param| param.clone().into_owned()).collect()),
        });
    }

    pub fn run(&mut self, statement: &'static Statement, params: &[Param<'_>]) -> Result<Rows, Fault> {
        let step = Step::Call {
            statement,
            params: Params::Asked(params),
        };
        self.flush_steps(vec![step])?
            .pop()
            .ok_or_else(|| Fault::new(Class::Lost, "no answer").during(statement.name))
    }

    /// Sends what is deferred, then the calls, then `end`, and returns the answers of the calls.
    pub fn flush(&mut self, calls: &[Call<'_>], end: Option<&'static str>) -> Result<Vec<Rows>, Fault> {
        let mut steps = Vec::with_capacity(calls.len() + 1);
        for call in calls {
            steps.push(Step::Call {
                statement: call.statement,
                params: Params::Asked(&call.params),
            });
        }
        steps.extend(end.map(Step::Command));
        self.flush_steps(steps)
    }

    /// Runs a script after what is deferred. Prepared statements may not fit its changes: they are dropped.
    pub fn batch(&mut self, sql: &str) -> Result<(), Fault> {
        self.flush(&[], None)?;
        self.prepared.clear();
        let client = Arc::clone(&self.client);
        self.line
            .drive(async move { client.batch_execute(sql).await })?
            .map_err(|error| Fault::of_postgres(&error).during("script"))
    }

    /// Lifts the limits on time, for migrations.
    pub fn unhurried(&mut self) -> Result<(), Fault> {
        self.batch("SET statement_timeout = 0; SET lock_timeout = 0")?;
        self.line.hurry(false);
        Ok(())
    }

    /// Restores them.
    pub fn hurried(&mut self) -> Result<(), Fault> {
        self.line.hurry(true);
        self.batch(SESSION)
    }

    /// Whether the connection is known to be gone.
    pub fn is_lost(&self) -> bool {
        self.line.is_lost()
    }

    pub fn forget_statements(&mut self) {
        self.prepared.clear();
    }

    fn defer(&mut self, sql: &'static str) {
        self.deferred.push(Step::Command(sql));
    }

    fn flush_steps(&mut self, asked: Vec<Step<'_>>) -> Result<Vec<Rows>, Fault> {
        let mut steps: Vec<Step<'_>> = std::mem::take(&mut self.deferred);
        steps.extend(asked);
        if self.savepoint != Savepoint::None {
            self.savepoint = Savepoint::Sent;
        }
        let Some(first) = steps.iter().position(|step| self.is_unknown(step)) else {
            return self.exchange(&steps);
        };
        // What stands before the first unknown statement goes with the preparing, so that a statement that
        // cannot be prepared fails inside its savepoint.
        let rest = steps.split_off(first);
        let mut seen = HashSet::new();
        for step in &rest {
            if let Step::Call { statement, .. } = step
                && self.is_unknown(step)
                && seen.insert(address(statement))
            {
                steps.push(Step::Prepare(statement));
            }
        }
        let mut rows = self.exchange(&steps)?;
        rows.extend(self.exchange(&rest)?);
        Ok(rows)
    }

    fn is_unknown(&self, step: &Step<'_>) -> bool {
        matches!(step, Step::Call { statement, .. } if !self.prepared.contains_key(&address(statement)))
    }

    /// Sends all steps at once, takes every answer, and returns the rows of the calls or the first fault.
    fn exchange(&mut self, steps: &[Step<'_>]) -> Result<Vec<Rows>, Fault> {
        let client = Arc::clone(&self.client);
        let unanswered = self.unanswered.take();
        let mut asked: Vec<_> = steps
            .iter()
            .map(|step| {
                let prepared = match step {
                    Step::Call { statement, .. } => self.prepared.get(&address(statement)).cloned(),
                    _ => None,
                };
                Box::pin(ask(&client, prepared, step))
            })
            .collect();
        let work = async {
            // The first poll of each puts its message into the connection's queue, in this order.
            let mut answers = Vec::with_capacity(asked.len());
            for one in &mut asked {
                answers.push(poll_fn(|cx| Poll::Ready(ready(one.as_mut().poll(cx)))).await);
            }
            let before = match unanswered {
                Some(end) => end.await,
                None => Ok(()),
            };
            for (one, answer) in asked.iter_mut().zip(&mut answers) {
                if answer.is_none() {
                    *answer = Some(one.as_mut().await);
                }
            }
            (before, answers)
        };
        let (before, answers) = self.line.drive(work)?;
        drop(asked);
        let mut fault = before
            .err()
            .map(|error| Fault::of_postgres(&error).during("end of a read"));
        let mut rows = Vec::with_capacity(steps.len());
        for (step, answer) in steps.iter().zip(answers) {
            match answer {
                Some(Ok(answer)) => rows.extend(self.accept(step, answer)),
                Some(Err(error)) => {
                    let found = step.fault(&error);
                    // The connection's end outweighs what went wrong on it before.
                    if fault
                        .as_ref()
                        .is_none_or(|first| first.class != Class::Lost && found.class == Class::Lost)
                    {
                        fault = Some(found);
                    }
                }
                None => {}
            }
        }
        let Some(fault) = fault else {
            return Ok(rows);
        };
        // "Lost" means one thing: the next transaction needs another connection.
        if fault.class == Class::Lost {
            self.line.hang_up();
        }
        Err(fault)
    }

    fn accept(&mut self, step: &Step<'_>, answer: Answer) -> Option<Rows> {
        match (step, answer) {
            (Step::Prepare(statement), Answer::Prepared(prepared)) => {
                self.prepared.insert(address(statement), prepared);
                None
            }
            (
                Step::Call {
                    statement, params, ..
                },
                answer,
            ) if !params.are_queued() => {
                let (affected, rows) = match answer {
                    Answer::Rows(rows) => (rows.len() as u64, rows),
                    Answer::Affected(affected) => (affected, Vec::new()),
                    Answer::Done | Answer::Prepared(_) => return None,
                };
                Some(Rows {
                    statement,
                    kept: Kept::Postgres(rows),
                    affected,
                })
            }
            _ => None,
        }
    }
}

fn ready<T>(poll: Poll<T>) -> Option<T> {
    match poll {
        Poll::Ready(value) => Some(value),
        Poll::Pending => None,
    }
}
