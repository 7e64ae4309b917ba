//! The storage seam: one SQL text, two engines.
//!
//! Only this folder names a database driver. A [`Conn`] is one connection to SQLite or PostgreSQL; it is
//! opened, used and dropped on one storage thread. Operations see a [`Tx`]; readers get it from
//! [`Conn::read`], the group-commit writer drives [`Conn::begin`], [`Conn::savepoint`] and [`Conn::commit`].
//!
//! On PostgreSQL round trips decide the throughput. `BEGIN`, `SAVEPOINT`, `RELEASE` and queued statements
//! therefore wait for the next statement and travel with it; every pipelined answer is checked.
//!
//! Failures carry the class that tells the unit of work what to do (architecture, "Failures"). The first
//! storage error of a transaction makes every later statement of it fail at once, alike on both engines,
//! until [`Conn::rollback_to`] or [`Conn::rollback`].
//!
//! Absent on purpose: a connection pool (a thread owns its connection), an interrupt (an interrupted INSERT
//! destroys the whole SQLite transaction), SQL made with `format!`.

mod causes;
mod codec;
mod conn;
mod fault;
#[cfg(test)]
mod impostors;
pub mod migrate;
mod param;
mod pipeline;
mod plain;
mod postgres;
mod postgres_connection;
pub mod readers;
#[cfg(test)]
mod round_trips;
mod row;
mod sqlite;
mod statement;
mod surroundings;
#[cfg(test)]
mod surroundings_tests;
#[doc(hidden)]
pub mod testing;
#[cfg(test)]
mod tests;
mod tls;
pub mod touched;
mod url;
mod worker_pool;

pub use conn::{Conn, Tx, Watch};
pub use migrate::{Migration, is_migrated, migrate};
pub use param::Param;
pub use readers::Readers;
pub use row::{FromColumn, Row, Rows, Value};
pub use statement::{Call, Statement, to_postgres};
pub use surroundings::look_around;
pub use touched::{Column, ColumnKind, RightsTable, TouchedRow, columns, content_of, key_of};
pub use url::PostgresUrl;

pub use crate::{params, statements};

use crate::sync;
use std::path::PathBuf;

/// Where the store is.
#[derive(Clone, Debug)]
pub enum Location {
    /// A database file; it is created when it is opened for writing.
    Sqlite(PathBuf),
    /// A PostgreSQL url or `key=value` text, and whether it may do without TLS.
    Postgres(PostgresUrl),
}

/// Which engine answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Engine {
    /// The bundled SQLite.
    Sqlite,
    /// PostgreSQL, or what speaks its protocol.
    Postgres,
}

/// What a connection is opened for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    /// Snapshots only; the engine refuses writes.
    Read,
    /// Transactions that write.
    Write,
}

impl Location {
    /// Returns the engine that serves this location.
    pub fn engine(&self) -> Engine {
        match self {
            Location::Sqlite(_) => Engine::Sqlite,
            Location::Postgres(_) => Engine::Postgres,
        }
    }
}
