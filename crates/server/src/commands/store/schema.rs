//! The tables of a store as its engine describes them.
//!
//! Copying follows the schema instead of a list of tables in the program: a list would forget the next area's.

use super::Failure;
use provost_kernel::db::{Conn, Row};
use provost_kernel::{Result, params, statements};
use std::collections::{BTreeMap, BTreeSet};

statements! {
    /// Every column of what is no index in a table's clothes: table, column, type, place in the primary key (SQLite alone knows it; 0 is none).
    COLUMNS = unscoped("the schema belongs to no organization") {
        sqlite: "SELECT t.name, c.name, LOWER(c.type), c.pk FROM pragma_table_list t JOIN pragma_table_info(t.name) c WHERE t.schema = 'main' AND t.type = 'table' AND t.name NOT LIKE 'sqlite\\_%' ESCAPE '\\' ORDER BY t.name, c.cid",
        postgres: "SELECT table_name::text, column_name::text, data_type::text, CAST(0 AS BIGINT) \
            FROM information_schema.columns \
            WHERE table_schema = current_schema() \
            AND table_name NOT IN (SELECT v.table_name FROM information_schema.views v \
            WHERE v.table_schema = current_schema()) \
            ORDER BY 1, ordinal_position",
    };
    /// Every foreign key: the table that has it, the table that it names.
    PARENTS = unscoped("the schema belongs to no organization") {
        sqlite: "SELECT DISTINCT t.name, f.\"table\" FROM sqlite_schema t JOIN pragma_foreign_key_list(t.name) f WHERE t.type = 'table' ORDER BY 1, 2",
        postgres: "SELECT DISTINCT c.conrelid::regclass::text, c.confrelid::regclass::text FROM pg_constraint c WHERE c.contype = 'f' ORDER BY 1, 2",
    };
}

/// What the migrations keep for themselves: each store has its own.
const OF_MIGRATIONS: [&str; 2] = ["schema_lease", "schema_migrations"];

/// One table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Table {
    /// Its name.
    pub name: String,
    /// Its columns in declared order, each with whether it is a boolean.
    pub columns: Vec<(String, bool)>,
    /// The columns of the primary key, in their order in it.
    pub key: Vec<String>,
}

/// Returns the tables of a SQLite store, each after those that its foreign keys name.
pub fn tables(conn: &mut Conn) -> Result<Vec<Table>, Failure> {
    let (columns, parents) = conn.read(|tx| {
        let columns = tx.query(&COLUMNS, params![], column)?;
        let parents = tx.query(&PARENTS, params![], |row| {
            Ok((row.get::<String>(0)?, row.get::<String>(1)?))
        })?;
        Ok((columns, parents))
    })?;
    let mut waiting: BTreeMap<String, (Table, Vec<(i64, String)>)> = BTreeMap::new();
    for (table, name, kind, place) in columns {
        let entry = waiting.entry(table.clone()).or_insert_with(|| {
            (
                Table {
                    name: table,
                    columns: Vec::new(),
                    key: Vec::new(),
                },
                Vec::new(),
            )
        });
        entry.0.columns.push((name.clone(), kind == "boolean"));
        if place > 0 {
            entry.1.push((place, name));
        }
    }
    waiting.retain(|name, _| !OF_MIGRATIONS.contains(&name.as_str()));
    let mut ordered: Vec<Table> = Vec::new();
    while !waiting.is_empty() {
        let done: BTreeSet<&str> = ordered.iter().map(|table| table.name.as_str()).collect();
        let is_free = |name: &str| {
            let mut named = parents
                .iter()
                .filter(|(child, parent)| child == name && parent != name);
            named.all(|(_, parent)| done.contains(parent.as_str()))
        };
        let next = waiting.keys().find(|name| is_free(name)).cloned();
        let next = next.and_then(|name| waiting.remove(&name));
        let (mut table, mut key) =
            next.ok_or_else(|| Failure::new("the tables' foreign keys form a circle"))?;
        key.sort();
        table.key = key.into_iter().map(|(_, name)| name).collect();
        ordered.push(table);
    }
    Ok(ordered)
}

/// Marks the boolean columns, which SQLite keeps as integers, as the PostgreSQL store declares them.
///
/// Errors: a table or a column that only one of the two has.
pub fn with_booleans(mut tables: Vec<Table>, postgres: &mut Conn) -> Result<Vec<Table>, Failure> {
    let columns = postgres.read(|tx| tx.query(&COLUMNS, params![], column))?;
    let mut types: BTreeMap<(String, String), String> = columns
        .into_iter()
        .map(|(table, column, kind, _)| ((table, column), kind))
        .collect();
    for table in &mut tables {
        for (column, is_boolean) in &mut table.columns {
            let kind = types.remove(&(table.name.clone(), column.clone()));
            let kind = kind.ok_or_else(|| differ(&table.name, column))?;
            *is_boolean = kind == "boolean";
        }
    }
    match types
        .keys()
        .find(|(table, _)| !OF_MIGRATIONS.contains(&table.as_str()))
    {
        Some((table, column)) => Err(differ(table, column)),
        None => Ok(tables),
    }
}

fn differ(table: &str, column: &str) -> Failure {
    Failure::new(format!(
        "the two stores differ: only one has the column {table}.{column}"
    ))
}

fn column(row: &Row<'_>) -> Result<(String, String, String, i64)> {
    Ok((row.get(0)?, row.get(1)?, row.get(2)?, row.get(3)?))
}
