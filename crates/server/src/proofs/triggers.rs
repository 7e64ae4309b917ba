//! What acts by itself on the rows that decide rights.
//!
//! PostgreSQL's triggers note what servers change; one that is gone, off or other than its migration made it leaves rows without
//! proofs, or proves what another hand did. A trigger or rule of another hand could change such a row while Provost writes
//! it or another one, and it would be proven as it was written. So whatever acts on any table of the store is compared with what the
//! migrations make.
//!
//! ```text
//! SQLite       the text of each trigger
//! PostgreSQL   event, columns, condition, arguments and function of each trigger; the function's text, language and settings
//! ```
//!
//! INVARIANT PF-6: a trigger or rule on a table of the store that Provost did not make, and one of its own that is
//! gone, off, or another than its migration makes, function included, is named.
//!
//! Absent on purpose: defaults, generated columns, constraints, event triggers, and the engine's own functions. Whoever may
//! replace those can do what the owner of the schema can.

use super::{Fault, Finding};
use provost_kernel::area::Areas;
use provost_kernel::audit::hex;
use provost_kernel::db::{self, Engine, Tx};
use provost_kernel::{Error, Result, params, statements};
use std::collections::{BTreeMap, BTreeSet};

statements! {
    /// The triggers of every table: whether each acts, what it is, and what it runs. A rule of PostgreSQL is one that runs nothing
    /// known; what a view selects is no rule here.
    TRIGGERS = unscoped("the schema belongs to no organization") {
        sqlite: "SELECT tbl_name, name, 1, '', sql FROM sqlite_schema WHERE type = 'trigger' ORDER BY tbl_name, name",
        postgres: "SELECT CAST(c.relname AS TEXT), CAST(t.tgname AS TEXT), \
            CAST(CASE WHEN t.tgenabled = 'O' THEN 1 ELSE 0 END AS BIGINT), \
            CONCAT(t.tgtype, ' ', encode(t.tgargs, 'hex'), ' [', t.tgattr, '] ', t.tgoldtable, ' ', \
            t.tgnewtable, ' ', t.tgqual IS NULL, ' ', CASE WHEN p.pronamespace = c.relnamespace THEN '' \
            ELSE 'another.' END, p.proname, ' ', l.lanname, ' ', p.prosecdef, ' ', p.proconfig IS NULL), \
            p.prosrc \
            FROM pg_trigger t JOIN pg_class c ON c.oid = t.tgrelid \
            JOIN pg_namespace n ON n.oid = c.relnamespace JOIN pg_proc p ON p.oid = t.tgfoid \
            JOIN pg_language l ON l.oid = p.prolang \
            WHERE n.nspname = current_schema() AND NOT t.tgisinternal \
            UNION ALL \
            SELECT CAST(c.relname AS TEXT), CAST(r.rulename AS TEXT), CAST(1 AS BIGINT), 'rule', '' \
            FROM pg_rewrite r JOIN pg_class c ON c.oid = r.ev_class \
            JOIN pg_namespace n ON n.oid = c.relnamespace \
            WHERE n.nspname = current_schema() AND r.ev_type <> '1' ORDER BY 1, 2",
    };
}

/// Those that note what a server changes, on each table of PostgreSQL: name, event as the catalogue has it, names of the rows.
const NOTES: [(&str, &str, &str); 3] = [
    ("note_rights_of_delete", "8", "former "),
    ("note_rights_of_insert", "4", " fresh"),
    ("note_rights_of_update", "16", "former fresh"),
];

/// What a trigger is, and what it runs.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Definition {
    shape: String,
    source: String,
}

/// A table and the name of a trigger.
type TriggerName = (String, String);

/// Returns the triggers that are missing, off or replaced, and those that Provost did not make.
///
/// Errors: those of the connection; `Internal` when a migration does not say what it should.
pub fn findings(areas: &Areas, tx: &mut Tx<'_>) -> Result<Vec<Finding>> {
    let mut expected = expected(areas, tx)?;
    let there = tx.query(&TRIGGERS, params![], |row| {
        let definition = Definition {
            shape: row.get(3)?,
            source: row.get(4)?,
        };
        Ok((
            (row.get::<String>(0)?, row.get::<String>(1)?),
            row.get::<i64>(2)? == 1,
            definition,
        ))
    })?;
    let tables: BTreeSet<&str> = areas
        .rights()
        .iter()
        .map(|deciding| deciding.table)
        .chain(areas.records().map(|(table, _)| table))
        .collect();
    let mut found = Vec::new();
    for (place, acts, definition) in there {
        match expected.remove(&place) {
            None if tables.contains(place.0.as_str()) => found.push(of_trigger(place, Act::Strange)),
            Some(_) if !acts => found.push(of_trigger(place, Act::Missing)),
            Some(known) if known != definition => found.push(of_trigger(place, Act::Replaced)),
            // As it was made, or of a table that is not the store's.
            _ => {}
        }
    }
    let missing = expected.into_keys();
    found.extend(missing.map(|place| of_trigger(place, Act::Missing)));
    Ok(found)
}

/// How a trigger is not what it should be.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Act {
    /// Provost did not make it.
    Strange,
    /// Provost made it, and it is gone or off.
    Missing,
    /// It is not what Provost made, or its function is not.
    Replaced,
}

fn of_trigger((table, name): TriggerName, act: Act) -> Finding {
    Finding {
        organization: None,
        row: None,
        fault: Fault::Trigger { table, name, act },
    }
}

/// Returns what the migrations make.
fn expected(areas: &Areas, tx: &mut Tx<'_>) -> Result<BTreeMap<TriggerName, Definition>> {
    match tx.engine() {
        Engine::Sqlite => Ok(of_sqlite(areas)),
        Engine::Postgres => of_postgres(areas, tx),
    }
}

/// Returns the triggers of SQLite's migrations, each as the engine keeps it: the text without the last semicolon.
fn of_sqlite(areas: &Areas) -> BTreeMap<TriggerName, Definition> {
    let mut made = BTreeMap::new();
    for migration in areas.migrations() {
        let mut text = migration.sqlite;
        while let Some(at) = next_line_with(text, &["CREATE TRIGGER ", "DROP TRIGGER "]) {
            text = &text[at..];
            let is_drop = text.starts_with("DROP");
            let end = if is_drop {
                text.find(';')
            } else {
                text.find("\nEND;")
            };
            let Some(end) = end else { break };
            let (statement, rest) = text.split_at(if is_drop { end } else { end + "\nEND".len() });
            text = rest;
            let mut words = statement.split_ascii_whitespace().skip(2);
            let name = words.next().unwrap_or_default();
            if is_drop {
                made.retain(|(_, known): &TriggerName, _| known != name);
                continue;
            }
            let table = words.skip_while(|word| *word != "ON").nth(1).unwrap_or_default();
            let definition = Definition {
                shape: String::new(),
                source: statement.to_owned(),
            };
            made.insert((table.to_owned(), name.to_owned()), definition);
        }
    }
    made
}

/// Returns where the next line begins that begins with one of these.
fn next_line_with(text: &str, starts: &[&str]) -> Option<usize> {
    let mut at = 0;
    for line in text.split_inclusive('\n') {
        if starts.iter().any(|start| line.starts_with(start)) {
            return Some(at);
        }
        at += line.len();
    }
    None
}

fn of_postgres(areas: &Areas, tx: &mut Tx<'_>) -> Result<BTreeMap<TriggerName, Definition>> {
    let mut made = BTreeMap::new();
    let note = source_of(areas, "note_touched_rights")?;
    for deciding in areas.rights() {
        let columns = db::columns(tx, deciding.table)?;
        let mut key: Vec<_> = columns.iter().filter(|column| column.place > 0).collect();
        key.sort_by_key(|column| column.place);
        let arguments = key
            .iter()
            .fold(String::new(), |all, column| all + &column.name + "\0");
        for (name, event, rows) in NOTES {
            let definition = Definition {
                shape: shape(event, arguments.as_bytes(), rows, "note_touched_rights"),
                source: note.to_owned(),
            };
            made.insert((deciding.table.to_owned(), name.to_owned()), definition);
        }
    }
    Ok(made)
}

/// Returns a trigger as the catalogue says it.
fn shape(event: &str, arguments: &[u8], rows: &str, function: &str) -> String {
    format!("{event} {} [] {rows} t {function} plpgsql f t", hex(arguments))
}

/// Returns the text of a function as the last migration that makes it says it: PostgreSQL keeps it to the letter.
fn source_of(areas: &Areas, function: &str) -> Result<&'static str> {
    let head = format!("FUNCTION {function}() ");
    let made = areas.migrations().iter().rev().find_map(|migration| {
        let (_, text) = migration.postgres.rsplit_once(head.as_str())?;
        text.split("$$").nth(1)
    });
    made.ok_or_else(|| Error::internal(format!("no migration makes the function {function}")))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::areas::ALL;

    /// Proves PF-6.
    #[test]
    fn the_last_migration_says_what_a_trigger_is() {
        let made = of_sqlite(&ALL);
        let place = (
            "mcp_session_actors".to_owned(),
            "mcp_session_actor_parts_delete".to_owned(),
        );
        assert!(made[&place].source.contains("VALUES ('delete', OLD.actor"));
        assert_eq!(made.len(), 5, "{:?}", made.keys());
        for definition in made.values() {
            assert!(definition.source.ends_with("END"), "{}", definition.source);
        }
        assert!(
            source_of(&ALL, "note_touched_rights")
                .unwrap()
                .contains("pg_temp.touched_rights")
        );
        assert!(source_of(&ALL, "nothing").is_err());
    }
}
