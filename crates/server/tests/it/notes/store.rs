//! All SQL of notes.

use provost_kernel::db::{Row, Tx};
use provost_kernel::error::Error;
use provost_kernel::{OperationContext, Result, Timestamp, id, params, statements};
use schemars::JsonSchema;
use serde::Serialize;

id!(NoteId, "nte", "Names a note.");

statements! {
    /// One note.
    GET = "SELECT id, seq, text, expires_at FROM notes WHERE organization_id = ?1 AND id = ?2";
    /// A page of notes, the oldest first.
    LIST = "SELECT id, seq, text, expires_at FROM notes WHERE organization_id = ?1 AND seq > ?2 ORDER BY seq, id LIMIT ?3";
    /// Makes a note.
    INSERT = "INSERT INTO notes (organization_id, id, seq, text, expires_at) VALUES (?1, ?2, (SELECT COALESCE(MAX(seq), 0) + 1 FROM notes WHERE organization_id = ?1), ?3, ?4)";
    /// Changes a note.
    UPDATE = "UPDATE notes SET text = ?3 WHERE organization_id = ?1 AND id = ?2";
    /// Removes a note.
    DELETE = "DELETE FROM notes WHERE organization_id = ?1 AND id = ?2";
    /// The notes whose time is over.
    DUE = unscoped("the sweep is everybody's") "SELECT organization_id, id FROM notes WHERE expires_at <= ?1 ORDER BY organization_id, id LIMIT 100";
    /// Notes without a text.
    EMPTY = unscoped("the check reads everybody") "SELECT id FROM notes WHERE text = ''";
}

/// A note, as it is kept and shown.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Note {
    pub id: NoteId,
    #[serde(skip)]
    pub seq: i64,
    pub text: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub expires_at: Option<Timestamp>,
}

fn note(row: &Row<'_>) -> Result<Note> {
    Ok(Note {
        id: NoteId::from_store(row.get(0)?),
        seq: row.get(1)?,
        text: row.get(2)?,
        expires_at: row.get(3)?,
    })
}

/// Errors: `NotFound` for an unknown, a removed and another organization's alike.
pub fn get(ctx: &mut OperationContext<'_>, id: &NoteId) -> Result<Note> {
    let org = ctx.org();
    ctx.query_opt(&GET, params![org, id.as_str()], note)?
        .ok_or_else(|| Error::not_found("note"))
}

pub fn list(ctx: &mut OperationContext<'_>, after: i64, limit: i64) -> Result<Vec<Note>> {
    let org = ctx.org();
    ctx.query(&LIST, params![org, after, limit], note)
}

pub fn insert(ctx: &mut OperationContext<'_>, id: &NoteId, text: &str, end: Option<Timestamp>) -> Result<()> {
    let org = ctx.org();
    ctx.queue(&INSERT, params![org, id.as_str(), text, end])
}

pub fn update(ctx: &mut OperationContext<'_>, id: &NoteId, text: &str) -> Result<()> {
    let org = ctx.org();
    ctx.queue(&UPDATE, params![org, id.as_str(), text])
}

pub fn delete(ctx: &mut OperationContext<'_>, id: &NoteId) -> Result<()> {
    let org = ctx.org();
    ctx.queue(&DELETE, params![org, id.as_str()])
}

pub fn due(tx: &mut Tx<'_>, now: Timestamp) -> Result<Vec<(String, NoteId)>> {
    tx.query(&DUE, params![now], |row| {
        Ok((row.get(0)?, NoteId::from_store(row.get(1)?)))
    })
}

/// Returns what `store check` says of notes.
pub fn broken_invariants(tx: &mut Tx<'_>) -> Result<Vec<String>> {
    tx.query(&EMPTY, params![], |row| {
        Ok(format!("note {} has no text", row.get::<String>(0)?))
    })
}
