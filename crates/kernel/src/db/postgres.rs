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
//!
//! Keeps DB-1.

use super::Access;
use super::fault::Fault;
use super::param::Param;
use super::pipeline::{Answer, Params, PipelineStep, address, ask};
use super::postgres_connection::PostgresConnection;
use super::row::{BufferedRows, Rows};
use super::statement::{Call, Statement};
use super::url::PostgresUrl;
use crate::error::Class;
use std::collections::{HashMap, HashSet};
use std::future::poll_fn;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use tokio_postgres::types::Type;
use tokio_postgres::{Client, SimpleQueryMessage};

/// `idle_in_transaction_session_timeout`: a frozen server must not stall the others through its locks. `jit`: compiling a
/// statement takes longer than any of ours runs.
const SESSION: &str = "SET lock_timeout = '5s'; SET statement_timeout = '10s';
    SET idle_in_transaction_session_timeout = '2s'; SET synchronous_commit = on; SET jit = off;
    SET TimeZone = 'UTC'";

const SESSION_READ: &str = "SET default_transaction_read_only = on";

/// The schema that URL and role give, and the first one on their path that has tables of a store.
const SCHEMAS: &str = "SELECT current_schema(), (SELECT p.name FROM unnest(current_schemas(false)) WITH ORDINALITY AS p (name, place)
    JOIN pg_namespace n ON n.nspname = p.name
    JOIN pg_class c ON c.relnamespace = n.oid AND c.relname = 'schema_lease' AND c.relkind IN ('r', 'p')
    ORDER BY p.place LIMIT 1)";

/// The one schema, and after it what would come before it unnamed: nobody's temporary table stands in a table's place.
const PIN: &str = "SELECT set_config('search_path', quote_ident(nspname) || ', pg_temp', false) FROM pg_namespace WHERE nspname = $1";

const NAME_SESSION: &str = "SELECT set_config('provost.session', $1, false)";

const SESSION_NAME: &str = "SELECT current_setting('provost.session', true)";

type PendingBatch = Pin<Box<dyn Future<Output = Result<(), tokio_postgres::Error>> + Send>>;

pub(super) struct Postgres {
    /// Before `line`, which says goodbye to the server when the client is gone.
    client: Arc<Client>,
    line: PostgresConnection,
    /// By address of the catalogue's static.
    prepared: HashMap<usize, tokio_postgres::Statement>,
    /// What rides with the next statement.
    deferred: Vec<PipelineStep<'static>>,
    savepoint: Savepoint,
    /// Where the tables lie.
    schema: String,
    /// The end of the last read, which was sent but whose answer nobody waited for.
    unanswered: Option<PendingBatch>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Savepoint {
    None,
    /// It stands at this place of `deferred`.
    Deferred(usize),
    Sent,
}

impl Postgres {
    /// Opens a connection to the schema that URL and role give, or to the one that an earlier connection was given.
    ///
    /// Errors: whatever keeps it from being used, as `Unavailable`.
    pub fn open(url: &PostgresUrl, access: Access, schema: Option<&str>) -> Result<Self, Fault> {
        let (client, line) = PostgresConnection::open(url)?;
        let mut made = Self {
            client: Arc::new(client),
            line,
            prepared: HashMap::new(),
            deferred: Vec::new(),
            savepoint: Savepoint::None,
            schema: String::new(),
            unanswered: None,
        };
        made.defer(SESSION);
        if access == Access::Read {
            made.defer(SESSION_READ);
        }
        made.flush(&[], None).map_err(Fault::of_connecting)?;
        let schema = match schema {
            Some(known) => known.to_owned(),
            None => made.given_schema().map_err(Fault::of_connecting)?,
        };
        made.pin(schema).map_err(Fault::of_connecting)?;
        Ok(made)
    }

    /// Returns the schema in which the tables lie, or will.
    pub fn schema(&self) -> &str {
        &self.schema
    }

    fn given_schema(&mut self) -> Result<String, Fault> {
        let mut row = self.ask(SCHEMAS)?.into_iter();
        let (given, held) = (row.next().flatten(), row.next().flatten());
        let given = given.ok_or_else(|| {
            Fault::told(
                "search_path of the PostgreSQL url and role names no schema that is there and that the role may use; create one, \
                 or name one with options=-csearch_path=SCHEMA in the url",
            )
        })?;
        match held {
            Some(held) if held != given => Err(Fault::told(format!(
                "the tables of this store lie in the schema {held}, and PostgreSQL url and role give {given} first; name the one \
                 that is meant with options=-csearch_path=SCHEMA in the url"
            ))),
            _ => Ok(given),
        }
    }

    fn pin(&mut self, schema: String) -> Result<(), Fault> {
        let client = Arc::clone(&self.client);
        let name = schema.clone();
        let pinned = self
            .line
            .drive(async move { client.query_typed(PIN, &[(&name, Type::TEXT)]).await })?
            .map_err(|error| Fault::of_postgres(&error).during("pin the schema"))?;
        if pinned.is_empty() {
            return Err(Fault::told(format!(
                "the schema {schema}, in which the tables of this store lie, is not there any more; bring it back, or restart the \
                 server with the one that is meant"
            )));
        }
        self.schema = schema;
        Ok(())
    }

    /// Returns the first row of an answer as texts; nothing is prepared.
    fn ask(&mut self, sql: &'static str) -> Result<Vec<Option<String>>, Fault> {
        let client = Arc::clone(&self.client);
        let answer = self
            .line
            .drive(async move { client.simple_query(sql).await })?
            .map_err(|error| Fault::of_postgres(&error).during(sql))?;
        let row = answer.into_iter().find_map(|message| match message {
            SimpleQueryMessage::Row(row) => Some(row),
            _ => None,
        });
        Ok(row.map_or_else(Vec::new, |row| {
            (0..row.len()).map(|at| row.get(at).map(str::to_owned)).collect()
        }))
    }

    /// Returns what the first column of an answer says.
    pub fn text(&mut self, sql: &'static str) -> Result<Option<String>, Fault> {
        let row = self.ask(sql).map_err(Fault::of_connecting)?;
        Ok(row.into_iter().next().flatten())
    }

    /// Gives the session a name of its own.
    pub fn name_session(&mut self, name: &str) -> Result<(), Fault> {
        let client = Arc::clone(&self.client);
        let name = name.to_owned();
        self.line
            .drive(async move { client.query_typed(NAME_SESSION, &[(&name, Type::TEXT)]).await })?
            .map(drop)
            .map_err(|error| Fault::of_postgres(&error).during("name the session"))
    }

    /// Returns the name that was given to the session, whoever gave it.
    pub fn session_name(&mut self) -> Result<Option<String>, Fault> {
        self.text(SESSION_NAME)
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
            [PipelineStep::Command(_)] => self.deferred.clear(),
            [] => {
                let client = Arc::clone(&self.client);
                let mut end: PendingBatch = Box::pin(async move { client.batch_execute("COMMIT").await });
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
        self.deferred.push(PipelineStep::Call {
            statement,
            params: Params::Queued(params.iter().map(|param| param.clone().into_owned()).collect()),
        });
    }

    pub fn run(&mut self, statement: &'static Statement, params: &[Param<'_>]) -> Result<Rows, Fault> {
        let step = PipelineStep::Call {
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
            steps.push(PipelineStep::Call {
                statement: call.statement,
                params: Params::Asked(&call.params),
            });
        }
        steps.extend(end.map(PipelineStep::Command));
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
    pub fn lift_statement_timeouts(&mut self) -> Result<(), Fault> {
        self.batch("SET statement_timeout = 0; SET lock_timeout = 0")?;
        self.line.set_statement_timeouts(false);
        Ok(())
    }

    /// Restores them.
    pub fn restore_statement_timeouts(&mut self) -> Result<(), Fault> {
        self.line.set_statement_timeouts(true);
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
        self.deferred.push(PipelineStep::Command(sql));
    }

    fn flush_steps(&mut self, asked: Vec<PipelineStep<'_>>) -> Result<Vec<Rows>, Fault> {
        let mut steps: Vec<PipelineStep<'_>> = std::mem::take(&mut self.deferred);
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
            if let PipelineStep::Call { statement, .. } = step
                && self.is_unknown(step)
                && seen.insert(address(statement))
            {
                steps.push(PipelineStep::Prepare(statement));
            }
        }
        let mut rows = self.exchange(&steps)?;
        rows.extend(self.exchange(&rest)?);
        Ok(rows)
    }

    fn is_unknown(&self, step: &PipelineStep<'_>) -> bool {
        matches!(step, PipelineStep::Call { statement, .. } if !self.prepared.contains_key(&address(statement)))
    }

    /// Sends all steps at once, takes every answer, and returns the rows of the calls or the first fault.
    fn exchange(&mut self, steps: &[PipelineStep<'_>]) -> Result<Vec<Rows>, Fault> {
        let client = Arc::clone(&self.client);
        let unanswered = self.unanswered.take();
        let mut asked: Vec<_> = steps
            .iter()
            .map(|step| {
                let prepared = match step {
                    PipelineStep::Call { statement, .. } => self.prepared.get(&address(statement)).cloned(),
                    _ => None,
                };
                Box::pin(ask(&client, prepared, step))
            })
            .collect();
        let work = async {
            // The first poll of each puts its message into the connection's queue, in this order.
            let mut answers = Vec::with_capacity(asked.len());
            for one in &mut asked {
                answers.push(poll_fn(|ctx| Poll::Ready(ready(one.as_mut().poll(ctx)))).await);
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

    fn accept(&mut self, step: &PipelineStep<'_>, answer: Answer) -> Option<Rows> {
        match (step, answer) {
            (PipelineStep::Prepare(statement), Answer::Prepared(prepared)) => {
                self.prepared.insert(address(statement), prepared);
                None
            }
            (
                PipelineStep::Call {
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
                    kept: BufferedRows::Postgres(rows),
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
