//! What the tables that decide rights hold of one organization, and how two moments differ.
//!
//! The tables are those of `ALL.rights()` and every column that they have today: a table that this
//! net does not know fails it, and a column that nobody thought of stands in the golden.

use super::tables::{self, Table};
use crate::support::App;
use provost_kernel::db::{Engine, Statement, Tx};
use provost_kernel::{Result, params, statements};
use serde_json::{Map, Value};
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::{Arc, Mutex};

statements! {
    /// The columns of a table of SQLite, in their order.
    COLUMNS = unscoped("the schema belongs to no organization") {
        sqlite: "SELECT name FROM pragma_table_info(?1) ORDER BY cid",
        postgres: "SELECT ''::text WHERE CAST(?1 AS TEXT) IS NULL",
    };
}

/// Columns that say when or by whom something was done, and nothing about what may be done.
const NOTES: [&str; 7] = [
    "last_used_at",
    "last_used_ip",
    "updated_at",
    "expiry_warned_days",
    "replay_pending",
    "idle_at",
    "search",
];

pub type Row = Map<String, Value>;

/// The name of a table and of one of its rows.
pub type Name = (&'static str, String);

/// The rows of an organization at one moment.
#[derive(Clone, Default)]
pub struct Rows(BTreeMap<Name, Arc<Row>>);

/// What became of a row.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Change {
    New,
    Gone,
    /// The columns that have another value.
    Columns(Vec<String>),
}

impl Rows {
    pub fn of<'a>(&'a self, table: &'static str) -> impl Iterator<Item = &'a Arc<Row>> {
        let from = (table, String::new());
        let rows = self.0.range(from..);
        rows.take_while(move |((name, _), _)| *name == table)
            .map(|(_, row)| row)
    }

    /// Returns what differs from an earlier moment.
    pub fn changes_since(&self, before: &Self) -> Vec<(Name, Change)> {
        let names: BTreeSet<&Name> = before.0.keys().chain(self.0.keys()).collect();
        let change = |name: &Name| match (before.0.get(name), self.0.get(name)) {
            (Some(was), Some(is)) if Arc::ptr_eq(was, is) => None,
            (Some(was), Some(is)) => {
                let differs = |column: &&String| was[*column] != is[*column];
                let columns = is.keys().filter(differs).filter(|c| !NOTES.contains(&c.as_str()));
                let columns: Vec<String> = columns.cloned().collect();
                (!columns.is_empty()).then_some(Change::Columns(columns))
            }
            (None, Some(_)) => Some(Change::New),
            (Some(_), None) => Some(Change::Gone),
            (None, None) => None,
        };
        names
            .into_iter()
            .filter_map(|name| Some((name.clone(), change(name)?)))
            .collect()
    }
}

/// Reads the rows of an organization again and again.
pub struct Reader {
    tables: Vec<&'static Table>,
    statement: &'static Statement,
    /// Rows that were read before, by their text: most of them stay what they are.
    known: Mutex<HashMap<String, Arc<Row>>>,
}

impl Reader {
    pub async fn of(app: &App) -> Self {
        let engine = app.location().engine();
        let tables = tables::of_program(app);
        let read = tables.clone();
        let made = app
            .kernel
            .read_system(move |tx| every_row(tx, engine, &read))
            .await;
        let text: &'static str = Box::leak(made.unwrap().into_boxed_str());
        let statement = Box::leak(Box::new(Statement {
            name: "rights_graph::EVERY_ROW",
            sqlite: text,
            postgres: text,
            unscoped: None,
        }));
        Self {
            tables,
            statement,
            known: Mutex::default(),
        }
    }

    pub async fn read(&self, app: &App) -> Rows {
        let (organization, statement) = (app.organization.clone(), self.statement);
        let read = move |tx: &mut Tx<'_>| {
            tx.query(statement, params![organization.as_str()], |row| {
                Ok((row.get::<i64>(0)?, row.get::<String>(1)?))
            })
        };
        let read = app.kernel.read_system(read).await.unwrap();
        let mut known = self.known.lock().unwrap();
        let rows = read.into_iter().map(|(place, text)| {
            let row = known
                .entry(text)
                .or_insert_with_key(|text| Arc::new(serde_json::from_str(text).unwrap()));
            (usize::try_from(place).unwrap(), row.clone())
        });
        visible(&self.tables, rows.collect())
    }
}

/// Returns the text that reads every table: its place in the list, and its rows as JSON.
fn every_row(tx: &mut Tx<'_>, engine: Engine, tables: &[&Table]) -> Result<String> {
    let mut parts = Vec::new();
    for (place, table) in tables.iter().enumerate() {
        let name = table.name;
        let object = match engine {
            Engine::Postgres => "CAST(row_to_json(t) AS TEXT)".to_owned(),
            Engine::Sqlite => {
                let columns = tx.query(&COLUMNS, params![name], |row| row.get::<String>(0))?;
                let members = columns.iter().map(|column| {
                    let bytes = format!("CASE typeof(\"{column}\") WHEN 'blob' THEN hex(\"{column}\")");
                    format!("'{column}', {bytes} ELSE \"{column}\" END")
                });
                format!("json_object({})", members.collect::<Vec<_>>().join(", "))
            }
        };
        parts.push(format!(
            "SELECT CAST({place} AS BIGINT), {object} FROM {name} t WHERE organization_id = ?1"
        ));
    }
    Ok(parts.join(" UNION ALL "))
}

/// Leaves of the versions of users, groups and memberships those that are seen now: what an import stages is not there.
fn visible(tables: &[&'static Table], read: Vec<(usize, Arc<Row>)>) -> Rows {
    let state = read
        .iter()
        .find(|(place, _)| tables[*place].name == "directory_state");
    let generation = state.map_or(0, |(_, row)| number(row, "generation"));
    let mut rows = BTreeMap::new();
    for (place, row) in read {
        let table = tables[place];
        let is_versioned = row.contains_key("valid_from");
        if is_versioned && (number(&row, "valid_from") > generation || number(&row, "valid_to") <= generation)
        {
            continue;
        }
        let mut row = row;
        if is_versioned {
            let mut shown = (*row).clone();
            shown.retain(|column, _| column != "valid_from" && column != "valid_to");
            row = Arc::new(shown);
        }
        let name: Vec<String> = table.key.iter().map(|column| row[*column].to_string()).collect();
        let before = rows.insert((table.name, name.join(" ")), row);
        assert!(before.is_none(), "{}: {:?} is no key", table.name, table.key);
    }
    Rows(rows)
}

pub fn number(row: &Row, column: &str) -> i64 {
    row[column]
        .as_i64()
        .unwrap_or_else(|| panic!("{column} of {row:?}"))
}

pub fn text<'a>(row: &'a Row, column: &str) -> Option<&'a str> {
    match &row[column] {
        Value::Null => None,
        other => Some(other.as_str().unwrap_or_else(|| panic!("{column} of {row:?}"))),
    }
}
