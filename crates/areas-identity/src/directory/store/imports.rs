//! Imports, their refused lines, and the swap.

use super::super::imports::model::{
    AbortReason, Format, Import, ImportId, MAX_KEPT_REFUSALS, Mode, RefusedLine, State,
};
use provost_areas_platform::announcements::ImportApplied;
use provost_kernel::db::Row;
use provost_kernel::error::{Code, Error};
use provost_kernel::text::name_key;
use provost_kernel::{OperationContext, Result, params, statements};

statements! {
    /// An import.
    GET = "SELECT id, organization_id, directory_id, format, mode, partial, state, abort_reason, generation, next_sequence, file_lines, counts, created_at, updated_at, finished_at FROM directory_imports WHERE organization_id = ?1 AND id = ?2";
    /// The import that is not finished.
    UNFINISHED = "SELECT id, state FROM directory_imports WHERE organization_id = ?1 AND state IN ('open', 'applying', 'aborting') ORDER BY id || ''";
    /// Takes a generation that no import has had.
    ALLOCATE = "INSERT INTO directory_state (organization_id, generation, last_generation) VALUES (?1, 0, 1) ON CONFLICT (organization_id) DO UPDATE SET last_generation = directory_state.last_generation + 1 RETURNING last_generation";
    /// Stores a new import.
    INSERT = "INSERT INTO directory_imports (organization_id, id, directory_id, format, mode, partial, state, generation, next_sequence, file_lines, counts, created_at, updated_at) VALUES (?1, ?2, ?3, ?4, ?5, ?6, 'open', ?7, 1, 0, ?8, ?9, ?9)";
    /// Stores what changed of an import.
    SAVE = "UPDATE directory_imports SET state = ?3, abort_reason = ?4, next_sequence = ?5, file_lines = ?6, counts = ?7, updated_at = ?8, finished_at = ?9 WHERE organization_id = ?1 AND id = ?2";
    /// Makes a generation visible: the swap.
    SWAP = "UPDATE directory_state SET generation = ?2 WHERE organization_id = ?1 AND generation < ?2";
    /// Notes, for the open import of its directory, that a record was deleted through the API.
    NOTE_DELETION = "INSERT INTO directory_import_names (organization_id, import_id, kind, name_key, line) \
        SELECT i.organization_id, i.id, CAST(?2 AS TEXT), CAST(?3 AS TEXT), CAST(NULL AS BIGINT) \
        FROM directory_imports i \
        WHERE i.organization_id = ?1 AND i.directory_id = ?4 AND i.state IN ('open', 'applying') \
        ON CONFLICT DO NOTHING";
    /// Keeps a refused line.
    REFUSE = "INSERT INTO directory_import_refusals (organization_id, import_id, position, line, path, message) VALUES (?1, ?2, ?3, ?4, ?5, ?6)";
    /// One page of an import's refused lines.
    REFUSED = "SELECT position, line, path, message FROM directory_import_refusals WHERE organization_id = ?1 AND import_id = ?2 AND position > ?3 ORDER BY position, import_id LIMIT ?4";
}

fn read(row: &Row<'_>) -> Result<Import> {
    let reason = row.get::<Option<String>>(7)?;
    Ok(Import {
        id: ImportId::from_store(row.get(0)?),
        organization_id: row.get(1)?,
        directory_id: row.get(2)?,
        format: Format::from_store(row.str(3)?)?,
        mode: Mode::from_store(row.str(4)?)?,
        partial: row.get(5)?,
        state: State::from_store(row.str(6)?)?,
        abort_reason: reason.as_deref().map(AbortReason::from_store).transpose()?,
        generation: row.get(8)?,
        next_sequence: row.get(9)?,
        file_lines: row.get(10)?,
        counts: serde_json::from_str(row.str(11)?).map_err(Error::internal)?,
        created_at: row.get(12)?,
        updated_at: row.get(13)?,
        finished_at: row.get(14)?,
    })
}

/// Returns an import.
///
/// Errors: `NotFound` for an unknown and another organization's import alike.
pub fn get(ctx: &mut OperationContext<'_>, id: &ImportId) -> Result<Import> {
    let org = ctx.org();
    ctx.query_opt(&GET, params![org, id.as_str()], read)?
        .ok_or_else(|| Error::not_found("import"))
}

/// Refuses a second import beside one that is not finished (DI-8).
///
/// Errors: `Conflict` with `importId`.
pub fn keep_alone(ctx: &mut OperationContext<'_>) -> Result<()> {
    let org = ctx.org();
    let other = ctx.query_opt(&UNFINISHED, params![org], |row| {
        Ok((row.get::<String>(0)?, row.get::<String>(1)?))
    })?;
    match other {
        None => Ok(()),
        Some((id, state)) => Err(Error::new(
            Code::Conflict,
            format!("the import {id} is {state}; apply or abort it, or wait until it is finished"),
        )
        .with("importId", id)),
    }
}

/// Returns a generation that no import has had.
pub fn allocate(ctx: &mut OperationContext<'_>) -> Result<i64> {
    let org = ctx.org();
    ctx.query_opt(&ALLOCATE, params![org], |row| row.get(0))?
        .ok_or_else(|| Error::internal("directory_state gave no generation"))
}

fn counts(import: &Import) -> Result<String> {
    serde_json::to_string(&import.counts).map_err(Error::internal)
}

/// Stores a new import.
pub fn insert(ctx: &mut OperationContext<'_>, import: &Import) -> Result<()> {
    let org = ctx.org();
    ctx.queue(
        &INSERT,
        params![
            org,
            import.id.as_str(),
            import.directory_id.as_str(),
            import.format.as_str(),
            import.mode.as_str(),
            import.partial,
            import.generation,
            counts(import)?,
            import.created_at,
        ],
    )
}

/// Stores what changed of an import.
pub fn save(ctx: &mut OperationContext<'_>, import: &Import) -> Result<()> {
    let org = ctx.org();
    ctx.queue(
        &SAVE,
        params![
            org,
            import.id.as_str(),
            import.state.as_str(),
            import.abort_reason.map(AbortReason::as_str),
            import.next_sequence,
            import.file_lines,
            counts(import)?,
            import.updated_at,
            import.finished_at,
        ],
    )
}

/// Makes everything visible that an import staged: one row changes (DI-2).
pub fn swap(ctx: &mut OperationContext<'_>, import: &Import) -> Result<()> {
    let org = ctx.org();
    if ctx.execute(&SWAP, params![org, import.generation])? == 1 {
        return ctx.announce(&ImportApplied {
            generation: import.generation,
        });
    }
    Err(Error::internal("the generation of an import is not a later one"))
}

/// Notes that a record was deleted through the API, so that a later line of an open import does not bring it back, neither
/// under a name of it nor under its external id. `kinds` are those of its names and of its external ids.
pub fn note_deletion<'a>(
    ctx: &mut OperationContext<'_>,
    kinds: [&'static str; 2],
    directory: &str,
    versions: impl Iterator<Item = (&'a str, Option<&'a str>)>,
) -> Result<()> {
    let org = ctx.org();
    for (name, external) in versions {
        ctx.queue(&NOTE_DELETION, params![org, kinds[0], name_key(name), directory])?;
        if let Some(id) = external {
            ctx.queue(&NOTE_DELETION, params![org, kinds[1], id, directory])?;
        }
    }
    Ok(())
}

/// Keeps refused lines; `known` were refused before them.
pub fn refuse(
    ctx: &mut OperationContext<'_>,
    import: &ImportId,
    known: i64,
    lines: &[RefusedLine],
) -> Result<()> {
    let org = ctx.org();
    for (position, line) in (known + 1..=MAX_KEPT_REFUSALS).zip(lines) {
        ctx.queue(
            &REFUSE,
            params![
                org,
                import.as_str(),
                position,
                line.line,
                line.path.as_deref(),
                line.message.as_str(),
            ],
        )?;
    }
    Ok(())
}

/// Returns a page of refused lines behind a place, each with its place.
pub fn refused(
    ctx: &mut OperationContext<'_>,
    import: &ImportId,
    after: i64,
    limit: i64,
) -> Result<Vec<(i64, RefusedLine)>> {
    let org = ctx.org();
    ctx.query(&REFUSED, params![org, import.as_str(), after, limit], |row| {
        let line = RefusedLine {
            line: row.get(1)?,
            path: row.get(2)?,
            message: row.get(3)?,
        };
        Ok((row.get(0)?, line))
    })
}
