//! Held changes.

use super::super::held::model::{HeldChange, HeldChangeId};
use super::super::imports::model::ImportId;
use super::super::model::{GroupId, UserId};
use provost_kernel::db::Row;
use provost_kernel::error::Error;
use provost_kernel::{OperationContext, Result, params, statements};
use serde::Serialize;
use serde::de::DeserializeOwned;

/// The columns of a held change, in the order that [`read`] expects.
macro_rules! columns {
    () => {
        "h.id, h.seq, h.import_id, h.line, h.user_id, h.was, h.wanted, h.joins, h.created_at"
    };
}

/// Of an import that is applied, of the row `h`: before that, nothing of it is there.
macro_rules! applied {
    () => {
        "EXISTS (SELECT 1 FROM directory_imports i WHERE i.organization_id = h.organization_id AND i.id = h.import_id AND i.state = 'applied')"
    };
}

statements! {
    /// Stages a held change.
    INSERT = "\
        INSERT INTO directory_held_changes (organization_id, id, seq, import_id, line, user_id, was, wanted, \
        joins, created_at) \
        SELECT ?1, CAST(?2 AS TEXT), COALESCE(MAX(seq), 0) + 1, CAST(?3 AS TEXT), CAST(?4 AS BIGINT), \
        CAST(?5 AS TEXT), CAST(?6 AS TEXT), CAST(?7 AS TEXT), CAST(?8 AS TEXT), CAST(?9 AS BIGINT) \
        FROM directory_held_changes \
        WHERE organization_id = ?1";
    /// A held change.
    GET = concat!("SELECT ", columns!(), " FROM directory_held_changes h WHERE h.organization_id = ?1 AND h.id = ?2 AND ", applied!());
    /// One page of held changes in the order of their making.
    LIST = concat!("SELECT ", columns!(), " FROM directory_held_changes h WHERE h.organization_id = ?1 AND h.seq > ?2 AND ", applied!(), " ORDER BY h.seq, h.id LIMIT ?3");
    /// Removes a held change.
    DELETE = "DELETE FROM directory_held_changes WHERE organization_id = ?1 AND id = ?2";
    /// Removes what earlier imports hold of the users of whom this one holds a change.
    REPLACE = "DELETE FROM directory_held_changes WHERE organization_id = ?1 AND import_id <> ?2 AND user_id IN (SELECT h.user_id FROM directory_held_changes h WHERE h.organization_id = ?1 AND h.import_id = ?2)";
    /// Removes what an import holds.
    DELETE_OF_IMPORT = "DELETE FROM directory_held_changes WHERE organization_id = ?1 AND import_id = ?2";
}

fn stored<T: DeserializeOwned>(text: &str) -> Result<T> {
    serde_json::from_str(text).map_err(Error::internal)
}

fn text<T: Serialize>(value: &T) -> Result<String> {
    serde_json::to_string(value).map_err(Error::internal)
}

fn read(row: &Row<'_>) -> Result<HeldChange> {
    let joins: Vec<String> = stored(row.str(7)?)?;
    Ok(HeldChange {
        id: HeldChangeId::from_store(row.get(0)?),
        seq: row.get(1)?,
        import_id: ImportId::from_store(row.get(2)?),
        line: row.get(3)?,
        user_id: UserId::from_store(row.get(4)?),
        before: stored(row.str(5)?)?,
        after: stored(row.str(6)?)?,
        joins: joins.into_iter().map(GroupId::from_store).collect(),
        created_at: row.get(8)?,
    })
}

/// Stages a held change of an open import.
pub fn insert(ctx: &mut OperationContext<'_>, change: &HeldChange) -> Result<()> {
    let org = ctx.org();
    ctx.queue(
        &INSERT,
        params![
            org,
            change.id.as_str(),
            change.import_id.as_str(),
            change.line,
            change.user_id.as_str(),
            text(&change.before)?,
            text(&change.after)?,
            text(&change.joins)?,
            change.created_at,
        ],
    )
}

/// Returns a held change of an applied import.
///
/// Errors: `NotFound` for an unknown one, one that is settled and one of another organization alike.
pub fn get(ctx: &mut OperationContext<'_>, id: &HeldChangeId) -> Result<HeldChange> {
    let org = ctx.org();
    ctx.query_opt(&GET, params![org, id.as_str()], read)?
        .ok_or_else(|| Error::not_found("held change"))
}

/// Returns a page of held changes behind a place, in the order of their making.
pub fn list(ctx: &mut OperationContext<'_>, after: i64, limit: i64) -> Result<Vec<HeldChange>> {
    let org = ctx.org();
    ctx.query(&LIST, params![org, after, limit], read)
}

/// Removes a held change.
pub fn delete(ctx: &mut OperationContext<'_>, id: &HeldChangeId) -> Result<()> {
    let org = ctx.org();
    ctx.queue(&DELETE, params![org, id.as_str()])
}

/// Lets what an import holds take the place of what earlier ones hold of the same users.
pub fn replace(ctx: &mut OperationContext<'_>, import: &ImportId) -> Result<()> {
    let org = ctx.org();
    ctx.queue(&REPLACE, params![org, import.as_str()])
}

/// Removes what an import holds.
pub fn delete_of_import(ctx: &mut OperationContext<'_>, import: &ImportId) -> Result<()> {
    let org = ctx.org();
    ctx.queue(&DELETE_OF_IMPORT, params![org, import.as_str()])
}
