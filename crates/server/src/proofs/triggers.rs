//! Whose triggers act on the rows that decide rights.
//!
//! PostgreSQL's note what servers change; one that is gone or off leaves rows without proofs. Another hand's could change a row
//! while Provost writes it, and it would be proven as it was written.
//!
//! Absent on purpose: what a trigger's function does. Whoever may replace a function of the schema can do what its owner can.

use super::{Fault, Finding};
use crate::rights::DECIDING;
use provost_kernel::db::{Engine, Tx};
use provost_kernel::{Result, params, statements};
use std::collections::BTreeSet;

statements! {
    /// The triggers of every table, each with whether it acts.
    TRIGGERS = unscoped("the schema belongs to no organization") {
        sqlite: "SELECT tbl_name, name, 1 FROM sqlite_schema WHERE type = 'trigger' ORDER BY tbl_name, name",
        postgres: "SELECT CAST(c.relname AS TEXT), CAST(t.tgname AS TEXT), CAST(CASE WHEN t.tgenabled = 'O' THEN 1 ELSE 0 END AS BIGINT) FROM pg_trigger t JOIN pg_class c ON c.oid = t.tgrelid JOIN pg_namespace n ON n.oid = c.relnamespace WHERE n.nspname = current_schema() AND NOT t.tgisinternal ORDER BY 1, 2",
    };
}

/// Those that note what a server changes, on each table of PostgreSQL.
const NOTES: [&str; 3] = [
    "note_rights_of_delete",
    "note_rights_of_insert",
    "note_rights_of_update",
];

/// Those that count sessions and keep the index of their texts.
const OF_SESSIONS: [&str; 5] = [
    "mcp_session_parts_delete",
    "mcp_session_parts_insert",
    "mcp_sessions_count_delete",
    "mcp_sessions_count_insert",
    "mcp_sessions_count_update",
];

/// Returns the triggers that are missing or off, and those that Provost did not make.
///
/// Errors: those of the connection.
pub(super) fn findings(tx: &mut Tx<'_>) -> Result<Vec<Finding>> {
    let engine = tx.engine();
    let there = tx.query(&TRIGGERS, params![], |row| {
        Ok((
            row.get::<String>(0)?,
            row.get::<String>(1)?,
            row.get::<i64>(2)? == 1,
        ))
    })?;
    let deciding: BTreeSet<&str> = DECIDING.iter().map(|deciding| deciding.table).collect();
    let mut found = Vec::new();
    for (table, name, _) in &there {
        let is_note = engine == Engine::Postgres && NOTES.contains(&name.as_str());
        let is_of_sessions = table == "mcp_sessions" && OF_SESSIONS.contains(&name.as_str());
        if deciding.contains(table.as_str()) && !is_note && !is_of_sessions {
            found.push(of_trigger(table, name, true));
        }
    }
    if engine == Engine::Postgres {
        for table in deciding {
            let acts = |note: &str| {
                there
                    .iter()
                    .any(|(of, name, acts)| of == table && name == note && *acts)
            };
            let missing = NOTES.into_iter().filter(|note| !acts(note));
            found.extend(missing.map(|note| of_trigger(table, note, false)));
        }
    }
    Ok(found)
}

fn of_trigger(table: &str, name: &str, is_strange: bool) -> Finding {
    Finding {
        organization: None,
        row: None,
        fault: Fault::Trigger {
            table: table.to_owned(),
            name: name.to_owned(),
            is_strange,
        },
    }
}
