//! Which rows of some tables a transaction changed, as the engine notes it: no statement can forget to say so.
//!
//! ```text
//! SQLite       triggers of the connection → a temporary table of the connection
//! PostgreSQL   triggers of the schema     → a temporary table of the session, where there is one
//! ```
//!
//! What another session changes is noted nowhere, and no other session can write into what is noted here. A row is
//! noted as JSON, with its bytes as `\x` and hexadecimal digits on both engines.
//!
//! Absent on purpose: the order of changes. What a transaction did to a row and undid again leaves as many equal
//! contents on both sides; whoever reads takes them away in pairs.
//!
//! Keeps PF-1.

use super::conn::{Conn, Tx};
use super::statement::Statement;
use super::{Engine, Param, Row};
use crate::error::Result;
use std::fmt::Write;

crate::statements! {
    /// The columns of a table: name, type, and a number above 0 that grows along the primary key, or 0.
    COLUMNS = unscoped("the schema belongs to no organization") {
        sqlite: "SELECT name, LOWER(type), pk FROM pragma_table_info(?1) ORDER BY cid",
        postgres: "SELECT CAST(a.attname AS TEXT), CAST(format_type(a.atttypid, NULL) AS TEXT), \
            CAST(COALESCE(array_position(CAST(i.indkey AS SMALLINT[]), a.attnum) + 1, 0) AS BIGINT) \
            FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace AND n.nspname = current_schema() \
            JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped \
            LEFT JOIN pg_index i ON i.indrelid = c.oid AND i.indisprimary \
            WHERE c.relname = ?1 ORDER BY a.attnum",
    };
}

/// A table whose rows decide what somebody may do.
#[derive(Clone, Copy, Debug)]
pub struct RightsTable {
    /// Its name.
    pub table: &'static str,
    /// Columns whose content another column names by a digest.
    pub without: &'static [&'static str],
    /// Columns that only say what was seen: they decide nothing, and no proof is over them.
    pub loose: &'static [&'static str],
}

/// What was noted, each row beside the proof that the store holds of it. The table is the session's own, so that no catalogue
/// can prepare this statement.
static TOUCHED: Statement = Statement {
    name: "provost_kernel::db::touched::TOUCHED",
    sqlite: "SELECT t.organization_id, t.table_name, t.row_key, t.is_new, t.content, p.key_id, p.mac FROM temp.touched_rights t LEFT JOIN main.right_proofs p ON p.organization_id = t.organization_id AND p.table_name = t.table_name AND p.row_key = t.row_key",
    postgres: "SELECT t.organization_id, t.table_name, t.row_key, t.is_new, t.content, p.key_id, p.mac \
        FROM pg_temp.touched_rights t \
        LEFT JOIN LATERAL (SELECT q.key_id, q.mac FROM right_proofs q WHERE q.organization_id = t.organization_id \
        AND q.table_name = t.table_name AND q.row_key = t.row_key LIMIT 1) p ON TRUE",
    unscoped: Some("a transaction may touch several organizations"),
};

/// Forgets what was noted.
static FORGET: Statement = Statement {
    name: "provost_kernel::db::touched::FORGET",
    sqlite: "DELETE FROM temp.touched_rights",
    postgres: "DELETE FROM pg_temp.touched_rights",
    unscoped: Some("a transaction may touch several organizations"),
};

const SQLITE_NOTES: &str = "CREATE TEMP TABLE IF NOT EXISTS touched_rights (organization_id TEXT NOT NULL, table_name TEXT NOT NULL, \
     row_key TEXT NOT NULL, is_new INTEGER NOT NULL, content TEXT NOT NULL);";

/// The rows go by themselves when the transaction ends: nothing gathers in a table that no vacuum visits.
const POSTGRES_NOTES: &str = "CREATE TEMP TABLE IF NOT EXISTS touched_rights (organization_id TEXT COLLATE \"C\" NOT NULL, \
     table_name TEXT COLLATE \"C\" NOT NULL, row_key TEXT COLLATE \"C\" NOT NULL, is_new BOOLEAN NOT NULL, content TEXT NOT NULL) \
     ON COMMIT DELETE ROWS";

/// One side of a change.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TouchedRow {
    /// Whose row it is.
    pub organization: String,
    /// The table.
    pub table: String,
    /// The primary key, as a JSON array.
    pub key: String,
    /// Whether this is what the row is, or what it was.
    pub is_new: bool,
    /// The columns, as a JSON object.
    pub content: String,
    /// The key's id and the proof that the store holds of the row.
    pub proof: Option<(String, String)>,
}

impl TouchedRow {
    fn read(row: &Row<'_>) -> Result<Self> {
        let proof = Option::zip(row.get(5)?, row.get(6)?);
        Ok(Self {
            organization: row.get(0)?,
            table: row.get(1)?,
            key: row.get(2)?,
            is_new: row.get(3)?,
            content: row.get(4)?,
            proof,
        })
    }
}

/// A column of a table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Column {
    /// Its name.
    pub name: String,
    /// Its type.
    pub kind: ColumnKind,
    /// Grows along the primary key; 0 outside of it.
    pub place: i64,
}

/// The types that columns have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ColumnKind {
    /// Text.
    Text,
    /// Numbers, instants, and truth values on SQLite.
    Int,
    /// Truth values on PostgreSQL.
    Bool,
    /// Bytes.
    Bytes,
}

/// Returns the columns of a table in declared order.
///
/// Errors: those of the connection.
pub fn columns(tx: &mut Tx<'_>, table: &str) -> Result<Vec<Column>> {
    tx.query(&COLUMNS, &[Param::from(table)], |row| {
        let kind = match row.str(1)? {
            "text" => ColumnKind::Text,
            "boolean" => ColumnKind::Bool,
            "blob" | "bytea" => ColumnKind::Bytes,
            _ => ColumnKind::Int,
        };
        Ok(Column {
            name: row.get(0)?,
            kind,
            place: row.get(2)?,
        })
    })
}

/// Returns the SQL of a row's content, as [`TouchedRow::content`] holds it; `row` names the row.
pub fn content_of(engine: Engine, row: &str, columns: &[Column], loose: &[&str]) -> String {
    if engine == Engine::Postgres {
        return format!("CAST(to_jsonb({row}) AS TEXT)");
    }
    let held = columns
        .iter()
        .filter(|column| !loose.contains(&column.name.as_str()));
    let members = held.map(|column| format!("'{}', {}", column.name, value(row, column)));
    format!("json_object({})", members.collect::<Vec<_>>().join(", "))
}

/// Returns the SQL of a row's key, as [`TouchedRow::key`] holds it. Both engines write the same text.
pub fn key_of(engine: Engine, row: &str, columns: &[Column]) -> String {
    let members = in_key(columns).into_iter().map(|column| match engine {
        Engine::Sqlite => format!("json_quote({})", value(row, column)),
        Engine::Postgres => format!("CAST(to_jsonb({row}.\"{}\") AS TEXT)", column.name),
    });
    format!(
        "'[' || {} || ']'",
        members.collect::<Vec<_>>().join(" || ', ' || ")
    )
}

/// Returns the columns of the primary key, in its order.
pub(super) fn in_key(columns: &[Column]) -> Vec<&Column> {
    let mut key: Vec<&Column> = columns.iter().filter(|column| column.place > 0).collect();
    key.sort_by_key(|column| column.place);
    key
}

/// A column of SQLite, its bytes as PostgreSQL's JSON has them.
fn value(row: &str, column: &Column) -> String {
    let name = format!("{row}.\"{}\"", column.name);
    match column.kind {
        ColumnKind::Bytes => {
            format!("CASE WHEN {name} IS NULL THEN NULL ELSE '\\x' || LOWER(HEX({name})) END")
        }
        ColumnKind::Text | ColumnKind::Int | ColumnKind::Bool => name,
    }
}

/// Has the engine note what the connection changes in these tables.
pub(super) fn track(conn: &mut Conn, tables: &[RightsTable]) -> Result<()> {
    if tables.is_empty() {
        return Ok(());
    }
    if conn.engine() == Engine::Postgres {
        // The triggers are the schema's (migrations).
        return conn.batch(POSTGRES_NOTES);
    }
    let mut script = SQLITE_NOTES.to_owned();
    for deciding in tables {
        let columns = columns(&mut conn.tx(), deciding.table)?;
        triggers(&mut script, deciding, &columns);
    }
    conn.batch(&script)
}

/// Adds the triggers of one table of SQLite.
fn triggers(script: &mut String, deciding: &RightsTable, columns: &[Column]) {
    let RightsTable { table, loose, .. } = *deciding;
    let note = |row: &str, is_new: u8| {
        let key = key_of(Engine::Sqlite, row, columns);
        let content = content_of(Engine::Sqlite, row, columns, loose);
        format!(
            "INSERT INTO touched_rights (organization_id, table_name, row_key, is_new, content) \
             VALUES ({row}.organization_id, '{table}', {key}, {is_new}, {content});"
        )
    };
    let list = |row: &str| {
        let held = columns
            .iter()
            .filter(|column| !loose.contains(&column.name.as_str()));
        let names = held.map(|column| format!("{row}.\"{}\"", column.name));
        names.collect::<Vec<_>>().join(", ")
    };
    let (was, is) = (note("OLD", 0), note("NEW", 1));
    // A change of what only records use is none.
    let differs = format!("({}) IS NOT ({})", list("OLD"), list("NEW"));
    for (event, condition, notes) in [
        ("INSERT", "TRUE", is.clone()),
        ("DELETE", "TRUE", was.clone()),
        ("UPDATE", differs.as_str(), format!("{was} {is}")),
    ] {
        // Writing to a text cannot fail.
        let _ = write!(
            script,
            "\nCREATE TEMP TRIGGER IF NOT EXISTS note_rights_of_{table}_{event} AFTER {event} ON main.\"{table}\" \
             WHEN {condition} BEGIN {notes} END;"
        );
    }
}

/// Returns what was noted in the open transaction, and forgets it.
pub(super) fn take(conn: &mut Conn) -> Result<Vec<TouchedRow>> {
    let engine = conn.engine();
    let mut tx = conn.tx();
    let touched = tx.query(&TOUCHED, &[], TouchedRow::read)?;
    // PostgreSQL forgets at the end of the transaction; whoever goes on inside it must not read the same twice.
    if !touched.is_empty() && engine == Engine::Sqlite {
        tx.execute(&FORGET, &[])?;
    }
    Ok(touched)
}
