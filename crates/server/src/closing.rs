//! What a store was when it was closed: rot of what decides rights is found before anybody is answered (R5).
//!
//! SQLite has no checksums of its pages, so a flipped bit in a row is an answer like any other. A server that stops
//! leaves a keyed hash of every row that decides what somebody may do ([`Areas::rights`]); the next one compares before it serves,
//! and takes the hash away before the first change. A server that was killed leaves none: what it had written it had just read.
//!
//! ```text
//! serving → closed with a hash     a graceful stop
//! closed  → serving                the hash fits, or something acted on the store since
//! closed  → refused                it does not; `provost store accept` goes on with what is there, and says so in the log
//! ```
//!
//! INVARIANT ST-2: a store whose rows that decide rights, or their indexes, changed while it was closed is not
//! served; one that Provost's own commands changed is.
//!
//! Absent on purpose: PostgreSQL, which has checksums of its pages and of which no server knows whether it is the last;
//! the audit log, whose chain says the same of itself; what nobody's rights depend on.

use provost_areas_platform::store::{self, DROP_FACT, SET_FACT};
use provost_kernel::area::Areas;
use provost_kernel::audit::hex;
use provost_kernel::db::RightsTable;
use provost_kernel::db::{Access, Call, Conn, Engine, Location, Param, Statement, Tx};
use provost_kernel::error::{Error, Result};
use provost_kernel::keys::{Keys, MacPurpose};
use provost_kernel::merkle::{self, Hash};
use provost_kernel::{params, statements};
use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

statements! {
    /// Where each chain of the audit log ends, by which the store says that something acted on it.
    HEADS = unscoped("the hash is over everybody") "SELECT organization_id, seq, hash FROM chain_heads ORDER BY organization_id";
    /// The columns of a table of SQLite, each with its place in the primary key; 0 is none.
    COLUMNS = unscoped("the schema belongs to no organization") {
        sqlite: "SELECT name, pk FROM pragma_table_info(?1) ORDER BY cid",
        postgres: "SELECT ''::text, CAST(0 AS BIGINT) WHERE CAST(?1 AS TEXT) IS NULL",
    };
    /// What SQLite finds wrong with a table and its indexes.
    DAMAGE = unscoped("the file holds every organization") {
        sqlite: "SELECT integrity_check FROM pragma_integrity_check(?1)",
        postgres: "SELECT 'ok'::text WHERE CAST(?1 AS TEXT) IS NOT NULL",
    };
}

/// The fact that holds the hash.
const MARK: &str = "closed";

/// Notes what the store is, when nobody writes to it any more.
///
/// Errors: as reading and writing does; the store is whole without the note.
pub fn mark(areas: &Areas, location: &Location, keys: &Keys) -> Result<()> {
    if location.engine() == Engine::Postgres {
        return Ok(());
    }
    let mut conn = Conn::open(location, Access::Write)?;
    let value = conn.read(|tx| {
        let content = keys.mac(MacPurpose::ClosedStore, &[&content(areas, tx)?]);
        Ok(format!(
            "{} {} {}",
            areas.migrations().len(),
            hex(&heads(tx)?),
            hex(&content)
        ))
    })?;
    write(&mut conn, &SET_FACT, vec![Param::from(MARK), Param::from(value)])
}

/// Compares a migrated store with what it was when it was closed, and takes the note away.
///
/// Errors: a sentence that says what to do, for a store that changed.
pub fn check(areas: &Areas, conn: &mut Conn, keys: &Keys) -> Result<()> {
    let Some(mark) = conn.read(read_mark)? else {
        return Ok(());
    };
    if conn.engine() == Engine::Sqlite
        && let Some(finding) = conn.read(|tx| finding(areas, tx, keys, &mark))?
    {
        return Err(Error::unavailable(format!(
            "the store changed while it was closed: {finding}. Restore a backup. If you changed it yourself, or want to \
             go on with what is there, `provost store accept` does"
        )));
    }
    write(conn, &DROP_FACT, vec![Param::from(MARK)])
}

/// Takes the note of a store away, whatever it says, and returns whether there was one.
pub fn accept(conn: &mut Conn) -> Result<bool> {
    let is_marked = conn.read(read_mark)?.is_some();
    write(conn, &DROP_FACT, vec![Param::from(MARK)])?;
    Ok(is_marked)
}

/// Says what is wrong with a store that was closed, if anything is.
pub fn finding_of_closed(areas: &Areas, tx: &mut Tx<'_>, keys: &Keys) -> Result<Option<String>> {
    match read_mark(tx)? {
        Some(mark) => finding(areas, tx, keys, &mark),
        None => Ok(None),
    }
}

fn read_mark(tx: &mut Tx<'_>) -> Result<Option<String>> {
    store::fact(tx, MARK)
}

fn finding(areas: &Areas, tx: &mut Tx<'_>, keys: &Keys, mark: &str) -> Result<Option<String>> {
    let words: Vec<&str> = mark.split(' ').collect();
    let &[migrations, known_heads, known] = words.as_slice() else {
        return Ok(Some("its note of what it was cannot be read".to_owned()));
    };
    // A version with other tables, or a command that acted since: then the note is of another store.
    if migrations != areas.migrations().len().to_string() || known_heads != hex(&heads(tx)?) {
        return Ok(None);
    }
    let content = content(areas, tx)?;
    let known: Option<Vec<u8>> = (0..known.len())
        .step_by(2)
        .map(|at| {
            known
                .get(at..at + 2)
                .and_then(|byte| u8::from_str_radix(byte, 16).ok())
        })
        .collect();
    if !known.is_some_and(|known| keys.mac_matches(MacPurpose::ClosedStore, &[&content], &known)) {
        return Ok(Some(
            "the rows that decide what somebody may do are not those that were there".to_owned(),
        ));
    }
    for deciding in areas.rights() {
        let damage = tx.query(&DAMAGE, params![deciding.table], |row| row.get::<String>(0))?;
        if let Some(line) = damage.into_iter().find(|line| line != "ok") {
            return Ok(Some(line));
        }
    }
    Ok(None)
}

// INVARIANT RW-1: what is hashed is the list of tables, and of each table all columns that it has today.
fn content(areas: &Areas, tx: &mut Tx<'_>) -> Result<Hash> {
    let mut hash = merkle::leaf(b"");
    for deciding in areas.rights() {
        let statement = every_row(tx, deciding)?;
        hash = folded(tx, statement, hash)?;
    }
    Ok(hash)
}

/// Returns the statement that reads a table in the order of its key.
///
/// It is made from the schema, so that a column of a later migration is not forgotten. The seam takes statements that
/// live as long as the program; each is made once.
fn every_row(tx: &mut Tx<'_>, deciding: &RightsTable) -> Result<&'static Statement> {
    static MADE: Mutex<BTreeMap<String, &'static Statement>> = Mutex::new(BTreeMap::new());
    let mut columns = tx.query(&COLUMNS, params![deciding.table], |row| {
        Ok((row.get::<String>(0)?, row.get::<i64>(1)?))
    })?;
    columns.retain(|(name, _)| !deciding.without.contains(&name.as_str()));
    let quoted = |name: &String| format!("\"{name}\"");
    let list: Vec<String> = columns.iter().map(|(name, _)| quoted(name)).collect();
    let mut key: Vec<&(String, i64)> = columns.iter().filter(|(_, place)| *place > 0).collect();
    key.sort_by_key(|(_, place)| *place);
    let key: Vec<String> = key.into_iter().map(|(name, _)| quoted(name)).collect();
    if key.is_empty() {
        return Err(Error::internal(format!(
            "the table {} has no primary key",
            deciding.table
        )));
    }
    let sql = format!(
        "SELECT {} FROM \"{}\" ORDER BY {}",
        list.join(", "),
        deciding.table,
        key.join(", ")
    );
    let mut made = MADE.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(known) = made.get(&sql) {
        return Ok(*known);
    }
    let text: &'static str = Box::leak(sql.clone().into_boxed_str());
    let statement: &'static Statement = Box::leak(Box::new(Statement {
        name: deciding.table,
        sqlite: text,
        postgres: text,
        unscoped: Some("the hash is over everybody"),
    }));
    made.insert(sql, statement);
    Ok(statement)
}

fn heads(tx: &mut Tx<'_>) -> Result<Hash> {
    folded(tx, &HEADS, merkle::leaf(b""))
}

/// Adds every row of a statement to a hash.
fn folded(tx: &mut Tx<'_>, statement: &'static Statement, mut hash: Hash) -> Result<Hash> {
    let mut bytes = Vec::new();
    tx.query(statement, params![], |row| {
        bytes.clear();
        row.frame(&mut bytes);
        hash = merkle::node(&hash, &merkle::leaf(&bytes));
        Ok(())
    })?;
    Ok(merkle::node(&hash, &merkle::leaf(statement.name.as_bytes())))
}

fn write(conn: &mut Conn, statement: &'static Statement, params: Vec<Param<'_>>) -> Result<()> {
    conn.change(&[Call { statement, params }])
}
