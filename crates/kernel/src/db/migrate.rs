//! Forward-only migrations with checksums.
//!
//! Several servers may start on one store. Each migration is one transaction that first locks the one row of
//! `schema_lease` (on SQLite: the file) and then looks whether somebody else has already done it. There are
//! no advisory locks, because distributed engines that speak PostgreSQL's protocol lack them.

use super::conn::Conn;
use super::{Call, Engine};
use crate::error::{Code, Error, Result};
use crate::params;
use crate::time::Timestamp;
use std::collections::BTreeMap;

/// One step of the schema; the same number and name on both engines.
#[derive(Clone, Copy, Debug)]
pub struct Migration {
    /// From 1, without gaps.
    pub number: u32,
    /// A few words, for people.
    pub name: &'static str,
    /// The script for SQLite.
    pub sqlite: &'static str,
    /// The script for PostgreSQL.
    pub postgres: &'static str,
}

impl Migration {
    /// Returns the number with which a name begins.
    ///
    /// # Panics
    ///
    /// For a name that does not begin with four digits, while it is compiled: names stand in constants.
    pub const fn number_of(name: &str) -> u32 {
        let digits = name.as_bytes();
        let (mut number, mut at) = (0, 0);
        while at < 4 {
            assert!(
                digits[at].is_ascii_digit(),
                "a migration's name begins with four digits"
            );
            number = number * 10 + (digits[at] - b'0') as u32;
            at += 1;
        }
        number
    }
}

crate::statements! {
    /// Creates the record of what was applied.
    CREATE_MIGRATIONS = unscoped("the schema belongs to no organization") {
        sqlite: "CREATE TABLE IF NOT EXISTS schema_migrations (number INTEGER NOT NULL PRIMARY KEY, \
            name TEXT NOT NULL, checksum TEXT NOT NULL, applied_at INTEGER NOT NULL) STRICT",
        postgres: "CREATE TABLE IF NOT EXISTS schema_migrations (number BIGINT NOT NULL PRIMARY KEY, \
            name TEXT NOT NULL, checksum TEXT NOT NULL, applied_at BIGINT NOT NULL)",
    };
    /// Creates the table whose one row is the lease.
    CREATE_LEASE = unscoped("the schema belongs to no organization") {
        sqlite: "CREATE TABLE IF NOT EXISTS schema_lease (id INTEGER NOT NULL PRIMARY KEY, \
            taken_at INTEGER NOT NULL) STRICT",
        postgres: "CREATE TABLE IF NOT EXISTS schema_lease (id BIGINT NOT NULL PRIMARY KEY, \
            taken_at BIGINT NOT NULL)",
    };
    /// Takes the lease until the end of the transaction; a second server waits here.
    TAKE_LEASE = unscoped("the schema belongs to no organization")
        "INSERT INTO schema_lease (id, taken_at) VALUES (1, ?1) \
         ON CONFLICT (id) DO UPDATE SET taken_at = excluded.taken_at";
    /// Lists what was applied.
    APPLIED = unscoped("the schema belongs to no organization")
        "SELECT number, checksum FROM schema_migrations ORDER BY number";
    /// Records a migration.
    RECORD = unscoped("the schema belongs to no organization")
        "INSERT INTO schema_migrations (number, name, checksum, applied_at) VALUES (?1, ?2, ?3, ?4)";
    /// Tells whether the record exists.
    HAS_MIGRATIONS = unscoped("the schema belongs to no organization") {
        sqlite: "SELECT COUNT(*) FROM sqlite_schema WHERE type = 'table' AND name = 'schema_migrations'",
        postgres: "SELECT COUNT(*) FROM information_schema.tables \
            WHERE table_schema = current_schema() AND table_name = 'schema_migrations'",
    };
}

/// Applies what is missing and returns the numbers applied by this call.
///
/// Errors: `Internal` with a public sentence when the store has a migration that this program does not know,
/// or one with another content; nothing is changed then.
pub fn migrate(conn: &mut Conn, migrations: &[Migration], now: Timestamp) -> Result<Vec<u32>> {
    conn.set_statement_timeouts(false)?;
    let outcome = create_tables(conn).and_then(|()| apply_missing(conn, migrations, now));
    // After a failure the connection may be gone; the failure is the news.
    let restored = conn.set_statement_timeouts(true);
    let applied = outcome?;
    restored?;
    Ok(applied)
}

/// Returns whether every migration is applied.
///
/// Errors: as [`migrate`].
pub fn is_migrated(conn: &mut Conn, migrations: &[Migration]) -> Result<bool> {
    conn.read(|tx| {
        let exists = tx.query_opt(&HAS_MIGRATIONS, params![], |row| row.get::<i64>(0))?;
        if exists != Some(1) {
            return Ok(false);
        }
        let applied = tx.query(&APPLIED, params![], |row| Ok((row.get(0)?, row.get(1)?)))?;
        let missing = missing(&applied.into_iter().collect(), migrations, tx.engine())?;
        Ok(missing.is_empty())
    })
}

/// PostgreSQL lets two sessions create one table at once and fails one of them; that one tries again.
fn create_tables(conn: &mut Conn) -> Result<()> {
    let mut attempts = 5;
    loop {
        attempts -= 1;
        let outcome = conn
            .begin(&[call(&CREATE_MIGRATIONS), call(&CREATE_LEASE)])
            .and_then(|_| conn.commit(&[]));
        match outcome {
            Err(error) if attempts == 0 || conn.engine() == Engine::Sqlite => return Err(error),
            Err(_) => {}
            Ok(_) => return Ok(()),
        }
    }
}

fn apply_missing(conn: &mut Conn, migrations: &[Migration], now: Timestamp) -> Result<Vec<u32>> {
    let mut done = Vec::new();
    loop {
        let lease = Call {
            statement: &TAKE_LEASE,
            params: params![now].to_vec(),
        };
        // On PostgreSQL the second answer must see what the holder of the lease committed: READ COMMITTED.
        let rows = conn.begin(&[lease, call(&APPLIED)])?;
        let next = read_applied(&rows)
            .and_then(|applied| Ok(missing(&applied, migrations, conn.engine())?.first().copied()));
        match next {
            Ok(Some(migration)) => {
                if let Err(error) = apply(conn, migration, now) {
                    conn.rollback();
                    return Err(error);
                }
                done.push(migration.number);
            }
            outcome => {
                conn.rollback();
                outcome?;
                return Ok(done);
            }
        }
    }
}

fn apply(conn: &mut Conn, migration: &Migration, now: Timestamp) -> Result<()> {
    let engine = conn.engine();
    conn.batch(script(migration, engine))?;
    let record = Call {
        statement: &RECORD,
        params: params![migration.number, migration.name, checksum(migration, engine), now].to_vec(),
    };
    conn.commit(&[record]).map(drop)
}

fn read_applied(rows: &[super::Rows]) -> Result<BTreeMap<i64, String>> {
    let rows = rows.last().map(super::Rows::iter).into_iter().flatten();
    rows.map(|row| Ok((row.get(0)?, row.get(1)?))).collect()
}

fn missing<'m>(
    applied: &BTreeMap<i64, String>,
    migrations: &'m [Migration],
    engine: Engine,
) -> Result<Vec<&'m Migration>> {
    let newest = migrations
        .iter()
        .map(|migration| migration.number)
        .max()
        .unwrap_or(0);
    if let Some((number, _)) = applied.last_key_value()
        && *number > i64::from(newest)
    {
        return Err(Error::new(
            Code::Internal,
            format!(
                "the store was migrated to {number} by a newer version of the program, and this one knows \
                 only {newest}; start the newer version"
            ),
        ));
    }
    let mut missing = Vec::new();
    for migration in migrations {
        match applied.get(&i64::from(migration.number)) {
            None => missing.push(migration),
            Some(known) if *known == checksum(migration, engine) => {}
            Some(_) => {
                return Err(Error::new(
                    Code::Internal,
                    format!(
                        "migration {} ({}) of the store differs from the one in this program; start the \
                         version that made the store",
                        migration.number, migration.name
                    ),
                ));
            }
        }
    }
    missing.sort_by_key(|migration| migration.number);
    Ok(missing)
}

fn script(migration: &Migration, engine: Engine) -> &'static str {
    match engine {
        Engine::Sqlite => migration.sqlite,
        Engine::Postgres => migration.postgres,
    }
}

/// SHA-256 of the script, in hexadecimal digits.
fn checksum(migration: &Migration, engine: Engine) -> String {
    use std::fmt::Write;
    let digest = aws_lc_rs::digest::digest(&aws_lc_rs::digest::SHA256, script(migration, engine).as_bytes());
    digest.as_ref().iter().fold(String::new(), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    })
}

fn call(statement: &'static super::Statement) -> Call<'static> {
    Call {
        statement,
        params: Vec::new(),
    }
}
