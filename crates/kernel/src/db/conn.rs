//! One connection, and the transaction that operations see.
//!
//! Keeps DB-1, WT-1.

use super::fault::Fault;
use super::param::Param;
use super::postgres::Postgres;
use super::row::{Row, Rows};
use super::sqlite::Sqlite;
use super::statement::{Call, Statement};
use super::touched::{self, RightsTable, TouchedRow};
use super::{Access, Engine, Location};
use crate::error::{Class, Error, Result};
use std::sync::Arc;

/// What watches over the connections of a running server.
pub trait Watch: Send + Sync {
    /// Says whether the store may be asked at all. Called before each transaction.
    ///
    /// Errors: what the caller is told instead.
    fn permit(&self) -> Result<()>;

    /// Looks at what a connection reached that takes the place of a lost one, before it serves.
    ///
    /// Errors: those of the connection; `Broken` when it must never serve.
    fn look(&self, conn: &mut Conn) -> Result<()>;

    /// Hears that a snapshot was read.
    fn was_read(&self) {}
}

/// One connection to the store. It is opened, used and dropped on one storage thread, outside any runtime.
pub struct Conn {
    location: Location,
    access: Access,
    driver: Driver,
    phase: Phase,
    /// What the first storage error of the open transaction was.
    poison: Option<Class>,
    watch: Option<Arc<dyn Watch>>,
    /// It took the place of a lost one and was not looked at yet.
    is_unproven: bool,
    /// The tables whose changed rows the engine notes on this connection.
    tracked: &'static [RightsTable],
    /// The driver is `Send` but not `Sync`; say so whatever its parts become.
    _not_sync: std::marker::PhantomData<std::cell::Cell<()>>,
}

enum Driver {
    Sqlite(Box<Sqlite>),
    Postgres(Box<Postgres>),
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Phase {
    Idle,
    Reading,
    Writing,
}

impl Driver {
    /// Opens a connection: to the schema of an earlier one, if there was one (DB-1).
    fn open(location: &Location, access: Access, before: Option<&Self>) -> Result<Self, Fault> {
        Ok(match location {
            Location::Sqlite(file) => Driver::Sqlite(Box::new(Sqlite::open(file, access)?)),
            Location::Postgres(url) => {
                let schema = match before {
                    Some(Driver::Postgres(before)) => Some(before.schema()),
                    _ => None,
                };
                Driver::Postgres(Box::new(Postgres::open(url, access, schema)?))
            }
        })
    }
}

impl Conn {
    /// Opens a connection.
    ///
    /// Errors: `Unavailable` when the store cannot be reached; `Internal` when it is too old or the location
    /// cannot be understood.
    pub fn open(location: &Location, access: Access) -> Result<Self> {
        Ok(Self::over(
            location,
            access,
            Driver::open(location, access, None)?,
        ))
    }

    /// Opens a connection that reads a store as it is: as one for writing, which it can be beside a server; a SQLite file on a mount that
    /// is read-only without any other file.
    ///
    /// Errors: those of [`Conn::open`]; a sentence for a file on such a mount that was not closed.
    pub fn open_to_inspect(location: &Location) -> Result<Self> {
        let driver = match location {
            Location::Sqlite(file) => Driver::Sqlite(Box::new(Sqlite::open_to_inspect(file)?)),
            Location::Postgres(_) => Driver::open(location, Access::Write, None)?,
        };
        Ok(Self::over(location, Access::Write, driver))
    }

    fn over(location: &Location, access: Access, driver: Driver) -> Self {
        Self {
            location: location.clone(),
            access,
            driver,
            phase: Phase::Idle,
            poison: None,
            watch: None,
            is_unproven: false,
            tracked: &[],
            _not_sync: std::marker::PhantomData,
        }
    }

    /// Returns the same connection, watched from here on.
    #[must_use]
    pub fn watched(mut self, watch: Arc<dyn Watch>) -> Self {
        self.watch = Some(watch);
        self
    }

    /// Has the engine note, from here on, each row of these tables that a transaction of this connection changes.
    ///
    /// Errors: those of the connection; a sentence when the role may make no temporary table.
    pub fn track(&mut self, tables: &'static [RightsTable]) -> Result<()> {
        touched::track(self, tables)?;
        self.tracked = tables;
        Ok(())
    }

    /// Returns the rows of the tracked tables that the open transaction has changed so far, each change as what was and
    /// what is, and forgets them.
    ///
    /// Errors: those of the connection. Cost: one round trip.
    pub fn touched(&mut self) -> Result<Vec<TouchedRow>> {
        if self.tracked.is_empty() {
            return Ok(Vec::new());
        }
        touched::take(self)
    }

    /// Returns which engine answers.
    pub fn engine(&self) -> Engine {
        self.location.engine()
    }

    /// Runs `f` on one snapshot. `f` runs once more when the connection was lost or its statements were stale.
    pub fn read<T>(&mut self, mut f: impl FnMut(&mut Tx<'_>) -> Result<T>) -> Result<T> {
        match self.read_once(&mut f) {
            Err(error) if error.work_class() == Class::Lost => {
                self.reconnect()?;
                self.read_once(&mut f)
            }
            Err(error) if error.work_class() == Class::Retry => {
                self.rollback();
                self.forget_statements();
                self.read_once(&mut f)
            }
            outcome => outcome,
        }
    }

    fn read_once<T>(&mut self, f: &mut impl FnMut(&mut Tx<'_>) -> Result<T>) -> Result<T> {
        self.settle()?;
        self.phase = Phase::Reading;
        match &mut self.driver {
            Driver::Sqlite(sqlite) => sqlite.begin(Access::Read)?,
            Driver::Postgres(postgres) => {
                postgres.begin("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY");
            }
        }
        let outcome = f(&mut Tx { conn: self });
        // A swallowed storage error must not become half an answer.
        let outcome = outcome.and_then(|value| self.check().map(|()| value));
        let end = match &mut self.driver {
            Driver::Sqlite(sqlite) => sqlite.rollback(),
            Driver::Postgres(postgres) => postgres.finish_read(),
        };
        (self.phase, self.poison) = (Phase::Idle, None);
        let value = outcome?;
        end?;
        if let Some(watch) = &self.watch {
            watch.was_read();
        }
        Ok(value)
    }

    /// Opens a write transaction and runs the calls: one round trip on PostgreSQL.
    ///
    /// After an error there is no open transaction. A connection that was lost while it was idle is opened
    /// again without an error, because nothing was done yet.
    pub fn begin(&mut self, calls: &[Call<'_>]) -> Result<Vec<Rows>> {
        match self.begin_once(calls) {
            Err(error) if error.work_class() == Class::Lost => {
                self.reconnect()?;
                self.begin_once(calls)
            }
            outcome => outcome,
        }
    }

    fn begin_once(&mut self, calls: &[Call<'_>]) -> Result<Vec<Rows>> {
        self.settle()?;
        self.phase = Phase::Writing;
        let outcome = match &mut self.driver {
            Driver::Sqlite(sqlite) => sqlite.begin(Access::Write).and_then(|()| sqlite.calls(calls)),
            Driver::Postgres(postgres) => {
                postgres.begin("BEGIN ISOLATION LEVEL READ COMMITTED");
                postgres.flush(calls, None)
            }
        };
        outcome.map_err(|fault| {
            self.rollback();
            fault.into()
        })
    }

    /// Runs independent statements: one round trip on PostgreSQL.
    pub fn many(&mut self, calls: &[Call<'_>]) -> Result<Vec<Rows>> {
        self.check()?;
        let outcome = match &mut self.driver {
            Driver::Sqlite(sqlite) => sqlite.calls(calls),
            Driver::Postgres(postgres) => postgres.flush(calls, None),
        };
        outcome.map_err(|fault| self.fail(fault))
    }

    /// Returns the open transaction. Outside of one, every statement is its own.
    pub fn tx(&mut self) -> Tx<'_> {
        Tx { conn: self }
    }

    /// Opens the savepoint. There is one level: an open one is released first.
    pub fn savepoint(&mut self) -> Result<()> {
        self.check()?;
        let outcome = match &mut self.driver {
            Driver::Sqlite(sqlite) => sqlite.savepoint(),
            Driver::Postgres(postgres) => {
                postgres.savepoint();
                Ok(())
            }
        };
        outcome.map_err(|fault| self.fail(fault))
    }

    /// Undoes everything since the savepoint, which stays open, and heals the transaction if that can be.
    ///
    /// Errors: the class of the first error, when it spoiled the whole transaction (`Retry`, `Lost`, `Broken`).
    pub fn rollback_to(&mut self) -> Result<()> {
        if let Some(Class::Retry | Class::Lost | Class::Broken) = self.poison {
            self.check()?;
        }
        let outcome = match &mut self.driver {
            Driver::Sqlite(sqlite) => sqlite.rollback_to(),
            Driver::Postgres(postgres) => postgres.rollback_to(),
        };
        self.poison = None;
        outcome.map_err(|fault| self.fail(fault))
    }

    /// Keeps everything since the savepoint. Without an open savepoint nothing happens.
    pub fn release(&mut self) -> Result<()> {
        self.check()?;
        let outcome = match &mut self.driver {
            Driver::Sqlite(sqlite) => sqlite.release(),
            Driver::Postgres(postgres) => {
                postgres.release();
                Ok(())
            }
        };
        outcome.map_err(|fault| self.fail(fault))
    }

    /// Sends what is deferred, the calls and COMMIT: one round trip on PostgreSQL. `Ok` means durable.
    ///
    /// Errors: `Retry` when the transaction was poisoned before; `Lost` when the outcome is unknown. After an
    /// error there is no open transaction.
    pub fn commit(&mut self, calls: &[Call<'_>]) -> Result<Vec<Rows>> {
        let outcome = match self.poison {
            None if self.phase == Phase::Writing => match &mut self.driver {
                Driver::Sqlite(sqlite) => sqlite
                    .calls(calls)
                    .and_then(|rows| sqlite.commit().map(|()| rows)),
                Driver::Postgres(postgres) => postgres.commit(calls),
            },
            None => Err(Fault::new(Class::Refused, "commit without a transaction")),
            Some(class @ (Class::Lost | Class::Broken)) => Err(Fault::new(class, "commit after a failure")),
            Some(_) => Err(Fault::new(Class::Retry, "commit of an aborted transaction")),
        };
        match outcome {
            Ok(rows) => {
                self.phase = Phase::Idle;
                Ok(rows)
            }
            Err(fault) => {
                self.rollback();
                Err(fault.into())
            }
        }
    }

    /// Runs the calls in a transaction of their own. `Ok` means durable.
    ///
    /// Errors: as [`Self::commit`]; the store is as it was then, or, when the connection was lost, as the calls leave it.
    pub fn change(&mut self, calls: &[Call<'_>]) -> Result<()> {
        if calls.is_empty() {
            return Ok(());
        }
        self.begin(&[])?;
        self.commit(calls).map(drop)
    }

    /// Ends the transaction, if there is one. It leaves a usable connection, or one that the next use opens
    /// again.
    pub fn rollback(&mut self) {
        (self.phase, self.poison) = (Phase::Idle, None);
        match &mut self.driver {
            Driver::Sqlite(sqlite) => {
                if sqlite.rollback().is_err() {
                    // If this fails too, the next BEGIN fails and comes back here.
                    let _ = self.reconnect();
                }
            }
            Driver::Postgres(postgres) => postgres.rollback(),
        }
    }

    /// Replaces the connection, and with it the prepared statements.
    ///
    /// Errors: `Unavailable` when the store cannot be reached; those of [`Watch::look`].
    pub fn reconnect(&mut self) -> Result<()> {
        self.driver = Driver::open(&self.location, self.access, Some(&self.driver))?;
        (self.phase, self.poison) = (Phase::Idle, None);
        touched::track(self, self.tracked)?;
        if let Some(watch) = self.watch.clone() {
            self.is_unproven = true;
            watch.look(self)?;
            self.is_unproven = false;
        }
        Ok(())
    }

    /// Makes what earlier processes left in SQLite's log durable in the file; PostgreSQL does so by itself.
    ///
    /// A process whose fsync failed may have left pages that the system shows and the disk lacks: no later fsync of
    /// the log writes them again. Copied into the file they are new writes, with an fsync that tells.
    ///
    /// Errors: `Broken` when the file cannot be written.
    pub fn checkpoint(&mut self) -> Result<()> {
        match &self.driver {
            Driver::Sqlite(sqlite) => Ok(sqlite.checkpoint()?),
            Driver::Postgres(_) => Ok(()),
        }
    }

    /// Runs a script of plain SQL, for migrations.
    pub fn batch(&mut self, sql: &str) -> Result<()> {
        self.check()?;
        let outcome = match &mut self.driver {
            Driver::Sqlite(sqlite) => sqlite.batch(sql),
            Driver::Postgres(postgres) => postgres.batch(sql),
        };
        outcome.map_err(|fault| self.fail(fault))
    }

    /// Lifts the limits on time (`false`) or restores them, for work on a whole table.
    ///
    /// Errors: those of the connection.
    pub fn set_statement_timeouts(&mut self, set_statement_timeouts: bool) -> Result<()> {
        let outcome = match &mut self.driver {
            Driver::Sqlite(_) => Ok(()),
            Driver::Postgres(postgres) if set_statement_timeouts => postgres.restore_statement_timeouts(),
            Driver::Postgres(postgres) => postgres.lift_statement_timeouts(),
        };
        outcome.map_err(|fault| self.fail(fault))
    }

    /// Ends what an earlier user left open (a panic, a forgotten rollback) and replaces a lost connection.
    fn settle(&mut self) -> Result<()> {
        if self.phase != Phase::Idle {
            self.rollback();
        }
        if let Some(watch) = &self.watch {
            watch.permit()?;
        }
        match &self.driver {
            _ if self.is_unproven => self.reconnect(),
            Driver::Postgres(postgres) if postgres.is_lost() => self.reconnect(),
            _ => Ok(()),
        }
    }

    fn forget_statements(&mut self) {
        if let Driver::Postgres(postgres) = &mut self.driver {
            postgres.forget_statements();
        }
    }

    fn run(
        &mut self,
        statement: &'static Statement,
        params: &[Param<'_>],
        each: &mut dyn FnMut(&Row<'_>) -> bool,
    ) -> Result<u64> {
        self.check()?;
        let outcome = match &mut self.driver {
            Driver::Sqlite(sqlite) => sqlite.run(statement, params, each),
            Driver::Postgres(postgres) => postgres.run(statement, params).map(|rows| {
                // The answer is complete; `each` may stop looking at it.
                let _ = rows.iter().all(|row| each(&row));
                rows.affected()
            }),
        };
        outcome.map_err(|fault| self.fail(fault))
    }

    fn queue(&mut self, statement: &'static Statement, params: &[Param<'_>]) -> Result<()> {
        self.check()?;
        let outcome = match &mut self.driver {
            Driver::Sqlite(sqlite) => sqlite
                .run(statement, params, &mut |_| true)
                .map(drop)
                .map_err(Fault::of_queued),
            Driver::Postgres(postgres) => {
                postgres.queue(statement, params);
                Ok(())
            }
        };
        outcome.map_err(|fault| self.fail(fault))
    }

    /// Fails with the class of the transaction's first storage error, if it had one.
    fn check(&self) -> Result<()> {
        match self.poison {
            Some(class) => Err(Fault::new(class, "an earlier statement of the transaction failed").into()),
            None => Ok(()),
        }
    }

    fn fail(&mut self, fault: Fault) -> Error {
        if self.phase != Phase::Idle {
            self.poison = Some(fault.class);
        }
        fault.into()
    }
}

/// The transaction as operations see it.
pub struct Tx<'c> {
    conn: &'c mut Conn,
}

impl Tx<'_> {
    /// Runs a statement and returns how many rows it wrote.
    pub fn execute(&mut self, statement: &'static Statement, params: &[Param<'_>]) -> Result<u64> {
        self.conn.run(statement, params, &mut |_| true)
    }

    /// Runs a statement and maps every row.
    pub fn query<T>(
        &mut self,
        statement: &'static Statement,
        params: &[Param<'_>],
        mut map: impl FnMut(&Row<'_>) -> Result<T>,
    ) -> Result<Vec<T>> {
        let mut mapped = Ok(Vec::new());
        self.conn.run(statement, params, &mut |row| {
            match (map(row), &mut mapped) {
                (Ok(value), Ok(values)) => values.push(value),
                (Err(error), _) => mapped = Err(error),
                (Ok(_), Err(_)) => {}
            }
            mapped.is_ok()
        })?;
        mapped
    }

    /// Runs a statement and maps its first row, if it has one.
    pub fn query_opt<T>(
        &mut self,
        statement: &'static Statement,
        params: &[Param<'_>],
        mut map: impl FnMut(&Row<'_>) -> Result<T>,
    ) -> Result<Option<T>> {
        let mut first = None;
        self.conn.run(statement, params, &mut |row| {
            first = Some(map(row));
            false
        })?;
        first.transpose()
    }

    /// Runs a statement whose outcome nobody waits for. SQLite runs it now; on PostgreSQL it travels with the
    /// next statement or the commit. An error in it spoils the whole transaction (`Retry`).
    pub fn queue(&mut self, statement: &'static Statement, params: &[Param<'_>]) -> Result<()> {
        self.conn.queue(statement, params)
    }

    /// Returns which engine answers.
    pub fn engine(&self) -> Engine {
        self.conn.engine()
    }

    /// Returns the same transaction for a shorter while.
    pub fn reborrow(&mut self) -> Tx<'_> {
        Tx { conn: self.conn }
    }

    /// Says whether a statement failed, so that nothing but a rollback can follow.
    pub fn is_poisoned(&self) -> bool {
        self.conn.poison.is_some()
    }
}
