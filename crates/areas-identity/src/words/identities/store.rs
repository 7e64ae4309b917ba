//! All SQL of mappings.

use super::model::{Mapping, MappingId};
use provost_kernel::db::Row;
use provost_kernel::error::Error;
use provost_kernel::{OperationContext, Result, params, statements};
use provost_policy::match_key;

statements! {
    /// One mapping.
    GET = "SELECT id, seq, word, user_id, created_at, updated_at FROM identity_mappings WHERE organization_id = ?1 AND id = ?2";
    /// The mapping of a word.
    OF_WORD = "SELECT id, seq, word, user_id, created_at, updated_at FROM identity_mappings WHERE organization_id = ?1 AND match_key = ?2";
    /// One page of mappings, the oldest first.
    LIST = "SELECT id, seq, word, user_id, created_at, updated_at FROM identity_mappings WHERE organization_id = ?1 AND seq > ?2 AND (CAST(?3 AS TEXT) IS NULL OR user_id = CAST(?3 AS TEXT)) ORDER BY seq, id LIMIT ?4";
    /// How many there are, up to a number.
    COUNT = "SELECT COUNT(*) FROM (SELECT 1 FROM identity_mappings WHERE organization_id = ?1 LIMIT ?2) m";
    /// Makes a mapping.
    INSERT = "INSERT INTO identity_mappings (organization_id, id, seq, match_key, word, user_id, created_at, updated_at) VALUES (?1, ?2, (SELECT COALESCE(MAX(seq), 0) + 1 FROM identity_mappings WHERE organization_id = ?1), ?3, ?4, ?5, ?6, ?6)";
    /// Gives a word to another user.
    MOVE = "UPDATE identity_mappings SET word = ?3, user_id = ?4, updated_at = ?5 WHERE organization_id = ?1 AND id = ?2";
    /// Removes a mapping.
    DELETE = "DELETE FROM identity_mappings WHERE organization_id = ?1 AND id = ?2";
}

fn mapping(row: &Row<'_>) -> Result<Mapping> {
    Ok(Mapping {
        id: MappingId::from_store(row.get(0)?),
        seq: row.get(1)?,
        word: row.get(2)?,
        user_id: row.get(3)?,
        created_at: row.get(4)?,
        updated_at: row.get(5)?,
    })
}

/// Returns a mapping.
///
/// Errors: `NotFound` for an unknown, a removed and another organization's alike.
pub fn get(ctx: &mut OperationContext<'_>, id: &MappingId) -> Result<Mapping> {
    let org = ctx.org();
    ctx.query_opt(&GET, params![org, id.as_str()], mapping)?
        .ok_or_else(|| Error::not_found("mapping"))
}

/// Returns the mapping of a word, however it is spelt.
pub fn of_word(ctx: &mut OperationContext<'_>, word: &str) -> Result<Option<Mapping>> {
    let org = ctx.org();
    ctx.query_opt(&OF_WORD, params![org, match_key(word)], mapping)
}

/// Returns a page of mappings behind a place, the oldest first.
pub fn list(
    ctx: &mut OperationContext<'_>,
    user: Option<&str>,
    after: i64,
    limit: i64,
) -> Result<Vec<Mapping>> {
    let org = ctx.org();
    ctx.query(&LIST, params![org, after, user, limit], mapping)
}

/// Says whether there are that many.
pub fn are(ctx: &mut OperationContext<'_>, many: i64) -> Result<bool> {
    let org = ctx.org();
    let count = ctx.query_opt(&COUNT, params![org, many], |row| row.get::<i64>(0))?;
    Ok(count == Some(many))
}

/// Stores a new mapping. The organization's chain head is locked, so nobody else maps the word.
pub fn insert(ctx: &mut OperationContext<'_>, mapping: &Mapping) -> Result<()> {
    let org = ctx.org();
    ctx.queue(
        &INSERT,
        params![
            org,
            mapping.id.as_str(),
            match_key(&mapping.word),
            mapping.word.as_str(),
            mapping.user_id.as_str(),
            mapping.created_at,
        ],
    )
}

/// Stores whom a word means from now on.
pub fn save(ctx: &mut OperationContext<'_>, mapping: &Mapping) -> Result<()> {
    let org = ctx.org();
    ctx.queue(
        &MOVE,
        params![
            org,
            mapping.id.as_str(),
            mapping.word.as_str(),
            mapping.user_id.as_str(),
            mapping.updated_at,
        ],
    )
}

/// Removes a mapping.
pub fn delete(ctx: &mut OperationContext<'_>, id: &MappingId) -> Result<()> {
    let org = ctx.org();
    ctx.queue(&DELETE, params![org, id.as_str()])
}
