//! Every row of one store into another, empty one: one snapshot here, one transaction there.

use super::schema::{Table, tables, with_booleans};
use super::{Failure, lift_statement_timeouts};
use crate::commands::show;
use provost_kernel::db::{Call, Conn, Engine, FromColumn, Param, Row, Statement, Tx, Value};
use provost_kernel::{Error, Result};
use std::io::IsTerminal;

/// How many rows travel together.
const PAGE: usize = 500;
/// How many, of a table whose rows may have some megabytes each.
const PAGE_OF_CHUNKS: usize = 8;
const CHUNKS: &str = "history_chunks";

/// A column's value, whatever its type.
enum Cell {
    Null,
    Int(i64),
    Bool(bool),
    Text(String),
    Bytes(Vec<u8>),
}

impl FromColumn for Cell {
    fn from_value(value: Value<'_>) -> Option<Self> {
        match value {
            Value::Null => Some(Cell::Null),
            Value::Int(int) => Some(Cell::Int(int)),
            Value::Bool(bool) => Some(Cell::Bool(bool)),
            Value::Text(text) => Some(Cell::Text(text.to_owned())),
            Value::Bytes(bytes) => Some(Cell::Bytes(bytes.to_vec())),
            Value::Foreign => None,
        }
    }
}

impl Cell {
    fn param(&self, is_boolean: bool) -> Param<'static> {
        match self {
            Cell::Null => Param::Null,
            Cell::Int(int) if is_boolean => Param::Bool(*int != 0),
            Cell::Int(int) => Param::Int(*int),
            Cell::Bool(bool) => Param::Bool(*bool),
            Cell::Text(text) => Param::from(text.clone()),
            Cell::Bytes(bytes) => Param::from(bytes.clone()),
        }
    }
}

/// The four statements of one table. They are made from the schema, and the seam takes statements that live as
/// long as the program: a command copies once and ends, so some kilobytes stay behind.
struct Statements {
    first: &'static Statement,
    next: &'static Statement,
    insert: &'static Statement,
    count: &'static Statement,
    page: usize,
}

impl Statements {
    fn of(table: &Table) -> Self {
        let quoted = |name: &str| format!("\"{name}\"");
        let name = quoted(&table.name);
        let columns: Vec<String> = table.columns.iter().map(|(column, _)| quoted(column)).collect();
        let marks: Vec<String> = (1..=columns.len()).map(|n| format!("?{n}")).collect();
        let key: Vec<String> = table.key.iter().map(|column| quoted(column)).collect();
        let after: Vec<String> = (1..=key.len()).map(|n| format!("?{n}")).collect();
        let (list, key, after) = (columns.join(", "), key.join(", "), after.join(", "));
        let rows = if table.name == CHUNKS {
            PAGE_OF_CHUNKS
        } else {
            PAGE
        };
        let page = format!("ORDER BY {key} LIMIT {rows}");
        Self {
            page: rows,
            first: leak("first", format!("SELECT {list} FROM {name} {page}")),
            next: leak(
                "next",
                format!("SELECT {list} FROM {name} WHERE ({key}) > ({after}) {page}"),
            ),
            insert: leak(
                "insert",
                format!("INSERT INTO {name} ({list}) VALUES ({})", marks.join(", ")),
            ),
            count: leak("count", format!("SELECT COUNT(*) FROM {name}")),
        }
    }
}

fn leak(name: &'static str, sql: String) -> &'static Statement {
    let sql: &'static str = Box::leak(sql.into_boxed_str());
    let unscoped = Some("a copy takes every organization");
    Box::leak(Box::new(Statement {
        name,
        sqlite: sql,
        postgres: sql,
        unscoped,
    }))
}

/// Copies everything and returns how many rows there were. Both stores are migrated to the same version, and
/// one of them is SQLite.
///
/// Errors: the target is not empty; the two have different tables; a count differs. The target is as it was then.
pub fn all(from: &mut Conn, to: &mut Conn) -> Result<u64, Failure> {
    lift_statement_timeouts(from)?;
    lift_statement_timeouts(to)?;
    let tables = match (from.engine(), to.engine()) {
        (Engine::Sqlite, Engine::Sqlite) => tables(from)?,
        (Engine::Sqlite, Engine::Postgres) => with_booleans(tables(from)?, to)?,
        (Engine::Postgres, Engine::Sqlite) => with_booleans(tables(to)?, from)?,
        (Engine::Postgres, Engine::Postgres) => {
            return Err(Failure::new("PostgreSQL is copied with its own tools"));
        }
    };
    to.begin(&[])?;
    let mut attempts = 0;
    let copied = from.read(|tx| {
        attempts += 1;
        if attempts > 1 {
            // A second snapshot would not fit what the first one left.
            return Err(Error::unavailable(
                "the connection to the store was lost while it was read",
            ));
        }
        let mut rows = 0;
        for table in &tables {
            rows += copy_table(tx, to, table)?;
        }
        Ok(rows)
    });
    let copied = copied.and_then(|rows| to.commit(&[]).map(|_| rows));
    match copied {
        Ok(rows) => Ok(rows),
        Err(error) => {
            to.rollback();
            Err(Failure::from(error).during("nothing was copied"))
        }
    }
}

fn copy_table(from: &mut Tx<'_>, to: &mut Conn, table: &Table) -> Result<u64> {
    let statements = Statements::of(table);
    if count(&mut to.tx(), &statements)? != 0 {
        let message = format!("the target is not empty: its table {} holds rows", table.name);
        return Err(Error::new(provost_kernel::Code::Conflict, message));
    }
    let expected = count(from, &statements)?;
    let key: Vec<usize> = table
        .key
        .iter()
        .filter_map(|name| table.columns.iter().position(|(column, _)| column == name))
        .collect();
    let mut copied = 0;
    let mut after: Vec<Param<'static>> = Vec::new();
    loop {
        let statement = if after.is_empty() {
            statements.first
        } else {
            statements.next
        };
        let rows = from.query(statement, &after, |row| read(row, table))?;
        let Some(last) = rows.last() else { break };
        after = key.iter().map(|place| last[*place].clone()).collect();
        let is_last = rows.len() < statements.page;
        copied += rows.len() as u64;
        let calls: Vec<Call<'_>> = rows
            .into_iter()
            .map(|params| Call {
                statement: statements.insert,
                params,
            })
            .collect();
        to.many(&calls)?;
        progress(&table.name, copied, expected);
        if is_last {
            break;
        }
    }
    let arrived = count(&mut to.tx(), &statements)?;
    if [copied, arrived] == [expected; 2] {
        return Ok(copied);
    }
    Err(Error::internal(format!(
        "{}: {expected} rows, {copied} read, {arrived} arrived",
        table.name
    )))
}

fn read(row: &Row<'_>, table: &Table) -> Result<Vec<Param<'static>>> {
    let cells = table.columns.iter().enumerate();
    cells
        .map(|(place, (_, is_boolean))| Ok(row.get::<Cell>(place)?.param(*is_boolean)))
        .collect()
}

fn count(tx: &mut Tx<'_>, statements: &Statements) -> Result<u64> {
    let count = tx.query_opt(statements.count, &[], |row| row.get::<i64>(0))?;
    Ok(count.unwrap_or(0).unsigned_abs())
}

fn progress(table: &str, copied: u64, expected: u64) {
    let is_news = copied == expected || copied.is_multiple_of(50 * PAGE as u64);
    if is_news && std::io::stderr().is_terminal() {
        show::note(&format!("{table}: {copied} of {expected}"));
    }
}
