//! Rows: three sources, one way to read a column.

use super::codec;
use super::statement::Statement;
use crate::error::{Error, Result};
use crate::time::Timestamp;

/// One row; it lives no longer than the driver's own.
#[derive(Clone, Copy)]
pub struct Row<'r> {
    statement: &'static Statement,
    source: Source<'r>,
}

#[derive(Clone, Copy)]
enum Source<'r> {
    /// The row that SQLite stands on.
    Sqlite(&'r rusqlite::Row<'r>),
    /// A row that SQLite answered inside a batch of statements.
    Kept(&'r [rusqlite::types::Value]),
    Postgres(&'r tokio_postgres::Row),
}

/// A column as the engines know it. Bool and time are integers on SQLite.
#[derive(Clone, Copy)]
pub enum Value<'r> {
    /// SQL NULL.
    Null,
    /// An integer of any width.
    Int(i64),
    /// A PostgreSQL BOOLEAN.
    Bool(bool),
    /// Text.
    Text(&'r str),
    /// Bytes.
    Bytes(&'r [u8]),
    /// Anything that the store should not contain.
    Foreign,
}

/// What a column can be read as; `None` means that the column holds something else.
pub trait FromColumn: Sized {
    /// Returns the value, if the column has this type.
    fn from_value(value: Value<'_>) -> Option<Self>;
}

impl FromColumn for String {
    fn from_value(value: Value<'_>) -> Option<Self> {
        match value {
            Value::Text(text) => Some(text.to_owned()),
            _ => None,
        }
    }
}

impl FromColumn for i64 {
    fn from_value(value: Value<'_>) -> Option<Self> {
        match value {
            Value::Int(int) => Some(int),
            _ => None,
        }
    }
}

impl FromColumn for bool {
    fn from_value(value: Value<'_>) -> Option<Self> {
        match value {
            Value::Bool(bool) => Some(bool),
            Value::Int(0) => Some(false),
            Value::Int(1) => Some(true),
            _ => None,
        }
    }
}

impl FromColumn for Timestamp {
    fn from_value(value: Value<'_>) -> Option<Self> {
        i64::from_value(value).map(Timestamp::from_ms)
    }
}

impl FromColumn for Vec<u8> {
    fn from_value(value: Value<'_>) -> Option<Self> {
        match value {
            Value::Bytes(bytes) => Some(bytes.to_vec()),
            _ => None,
        }
    }
}

impl<T: FromColumn> FromColumn for Option<T> {
    fn from_value(value: Value<'_>) -> Option<Self> {
        match value {
            Value::Null => Some(None),
            other => T::from_value(other).map(Some),
        }
    }
}

impl<'r> Row<'r> {
    pub(super) fn sqlite(statement: &'static Statement, row: &'r rusqlite::Row<'r>) -> Self {
        let source = Source::Sqlite(row);
        Self { statement, source }
    }

    /// Returns column `index`, counted from 0.
    ///
    /// Errors: `Internal` when the column is absent or holds another type, which means a corrupt row.
    pub fn get<T: FromColumn>(&self, index: usize) -> Result<T> {
        T::from_value(self.value(index)).ok_or_else(|| self.corrupt(index))
    }

    /// Returns text column `index` without a copy.
    ///
    /// Errors: as [`Row::get`].
    pub fn str(&self, index: usize) -> Result<&'r str> {
        match self.value(index) {
            Value::Text(text) => Ok(text),
            _ => Err(self.corrupt(index)),
        }
    }

    /// Appends every column with its kind and length, so that two rows that differ make different bytes.
    pub fn frame(&self, bytes: &mut Vec<u8>) {
        let columns = match self.source {
            Source::Sqlite(row) => row.as_ref().column_count(),
            Source::Kept(values) => values.len(),
            Source::Postgres(row) => row.len(),
        };
        for index in 0..columns {
            let number;
            let (kind, content): (u8, &[u8]) = match self.value(index) {
                Value::Null => (0, &[]),
                Value::Int(int) => {
                    number = int.to_be_bytes();
                    (1, &number)
                }
                Value::Bool(bool) => (2, if bool { &[1] } else { &[0] }),
                Value::Text(text) => (3, text.as_bytes()),
                Value::Bytes(content) => (4, content),
                Value::Foreign => (5, &[]),
            };
            bytes.push(kind);
            bytes.extend((content.len() as u64).to_be_bytes());
            bytes.extend(content);
        }
    }

    /// Copies the columns of a SQLite row, which is gone when the statement moves on.
    pub(super) fn keep(&self) -> Vec<rusqlite::types::Value> {
        let Source::Sqlite(row) = self.source else {
            return Vec::new();
        };
        (0..).map_while(|index| row.get(index).ok()).collect()
    }

    fn value(&self, index: usize) -> Value<'r> {
        use rusqlite::types::ValueRef;
        let value = match self.source {
            Source::Sqlite(row) => row.get_ref(index).ok(),
            Source::Kept(values) => values.get(index).map(ValueRef::from),
            Source::Postgres(row) => return codec::value(row, index),
        };
        match value {
            Some(ValueRef::Null) => Value::Null,
            Some(ValueRef::Integer(int)) => Value::Int(int),
            Some(ValueRef::Text(text)) => std::str::from_utf8(text).map_or(Value::Foreign, Value::Text),
            Some(ValueRef::Blob(bytes)) => Value::Bytes(bytes),
            Some(ValueRef::Real(_)) | None => Value::Foreign,
        }
    }

    fn corrupt(&self, index: usize) -> Error {
        let found = match self.value(index) {
            Value::Null => "null",
            Value::Int(_) => "an integer",
            Value::Bool(_) => "a boolean",
            Value::Text(_) => "text",
            Value::Bytes(_) => "bytes",
            Value::Foreign => "no value of a known type",
        };
        Error::internal(format!(
            "{}: column {index} holds {found}, which is not what the program expects",
            self.statement.name
        ))
    }
}

/// The answer to one statement of a batch.
pub struct Rows {
    pub(super) statement: &'static Statement,
    pub(super) kept: BufferedRows,
    pub(super) affected: u64,
}

pub(super) enum BufferedRows {
    Sqlite(Vec<Vec<rusqlite::types::Value>>),
    Postgres(Vec<tokio_postgres::Row>),
}

impl Rows {
    /// Returns how many rows came back.
    pub fn len(&self) -> usize {
        match &self.kept {
            BufferedRows::Sqlite(rows) => rows.len(),
            BufferedRows::Postgres(rows) => rows.len(),
        }
    }

    /// Returns whether no row came back.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns how many rows the statement wrote; for a SELECT, how many it returned.
    pub fn affected(&self) -> u64 {
        self.affected
    }

    /// Returns the first row.
    pub fn first(&self) -> Option<Row<'_>> {
        self.row(0)
    }

    /// Walks the rows in the order of the answer.
    pub fn iter(&self) -> impl Iterator<Item = Row<'_>> {
        (0..self.len()).filter_map(|index| self.row(index))
    }

    fn row(&self, index: usize) -> Option<Row<'_>> {
        let source = match &self.kept {
            BufferedRows::Sqlite(rows) => Source::Kept(rows.get(index)?),
            BufferedRows::Postgres(rows) => Source::Postgres(rows.get(index)?),
        };
        Some(Row {
            statement: self.statement,
            source,
        })
    }
}

impl std::fmt::Debug for Rows {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} rows of {}", self.len(), self.statement.name)
    }
}
