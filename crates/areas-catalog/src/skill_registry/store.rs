//! All SQL of items, versions and contents.
//!
//! Keeps SK-1.

use super::model::{Item, SkillItemId, Status, VersionSummary, VersionView};
use super::reference::Reference;
use super::version::Version;
use provost_kernel::db::Row;
use provost_kernel::dsse::Envelope;
use provost_kernel::error::{Error, Result};
use provost_kernel::{OperationContext, Timestamp, params, statements};

statements! {
    /// An item by its id.
    ITEM_BY_ID = "SELECT id, organization_id, namespace, name, description, latest_version, version_count, created_at, updated_at, withdrawn_at FROM skill_items WHERE organization_id = ?1 AND id = ?2";
    /// An item by its name.
    ITEM_BY_NAME = "SELECT id, organization_id, namespace, name, description, latest_version, version_count, created_at, updated_at, withdrawn_at FROM skill_items WHERE organization_id = ?1 AND name = ?2 AND namespace = ?3";
    /// One page of items, newest first.
    LIST_ITEMS = "\
        SELECT id, organization_id, namespace, name, description, latest_version, version_count, created_at, \
        updated_at, withdrawn_at, number \
        FROM skill_items \
        WHERE organization_id = ?1 AND number < ?2 \
        AND (CAST(?3 AS TEXT) IS NULL OR namespace = CAST(?3 AS TEXT)) \
        AND (CAST(?4 AS TEXT) IS NULL OR CASE WHEN withdrawn_at IS NULL THEN 'available' \
        ELSE 'withdrawn' END = CAST(?4 AS TEXT)) \
        AND (CAST(?5 AS TEXT) IS NULL OR search_key LIKE CAST(?5 AS TEXT) ESCAPE '!') \
        ORDER BY number DESC, id DESC LIMIT ?6";
    /// An item that is not withdrawn.
    OFFERED = "SELECT id FROM skill_items WHERE organization_id = ?1 AND id = ?2 AND withdrawn_at IS NULL";
    /// Makes an item.
    INSERT_ITEM = "\
        INSERT INTO skill_items (organization_id, id, number, namespace, name, search_key, description, \
        latest_version, version_count, created_at, updated_at) \
        SELECT ?1, CAST(?2 AS TEXT), COALESCE(MAX(number), 0) + 1, CAST(?3 AS TEXT), CAST(?4 AS TEXT), \
        CAST(?5 AS TEXT), CAST(?6 AS TEXT), CAST(?7 AS TEXT), CAST(?8 AS BIGINT), CAST(?9 AS BIGINT), \
        CAST(?9 AS BIGINT) \
        FROM skill_items \
        WHERE organization_id = ?1";
    /// Replaces what can change of an item.
    SAVE_ITEM = "UPDATE skill_items SET search_key = ?3, description = ?4, latest_version = ?5, version_count = ?6, updated_at = ?7, withdrawn_at = ?8 WHERE organization_id = ?1 AND id = ?2";
    /// What is known of every version of an item.
    KNOWN = "SELECT version, digest, number, withdrawn_at FROM skill_versions WHERE organization_id = ?1 AND item_id = ?2 ORDER BY number, version";
    /// One version.
    VERSION = "SELECT item_id, version, digest, size_bytes, published_at, published_by, withdrawn_at, manifest FROM skill_versions WHERE organization_id = ?1 AND item_id = ?2 AND version = ?3";
    /// One page of an item's versions, newest first.
    LIST_VERSIONS = "SELECT item_id, version, digest, size_bytes, published_at, published_by, withdrawn_at, number FROM skill_versions WHERE organization_id = ?1 AND item_id = ?2 AND number < ?3 ORDER BY number DESC, version DESC LIMIT ?4";
    /// The signed manifest of one version.
    ENVELOPE = "SELECT envelope FROM skill_versions WHERE organization_id = ?1 AND item_id = ?2 AND version = ?3";
    /// Stores a version.
    INSERT_VERSION = "INSERT INTO skill_versions (organization_id, item_id, version, number, digest, size_bytes, manifest, envelope, published_at, published_by) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10)";
    /// Withdraws one version.
    WITHDRAW_VERSION = "UPDATE skill_versions SET withdrawn_at = ?4 WHERE organization_id = ?1 AND item_id = ?2 AND version = ?3 AND withdrawn_at IS NULL";
    /// Stores content once (SK-1).
    INSERT_CONTENT = "INSERT INTO skill_contents (organization_id, digest, content, created_at) VALUES (?1, ?2, ?3, ?4) ON CONFLICT DO NOTHING";
    /// The content of a digest.
    CONTENT = "SELECT content FROM skill_contents WHERE organization_id = ?1 AND digest = ?2";
}

fn item(row: &Row<'_>) -> Result<Item> {
    Ok(Item {
        id: SkillItemId::from_store(row.get(0)?),
        organization_id: row.get(1)?,
        namespace: row.get(2)?,
        name: row.get(3)?,
        description: row.get(4)?,
        latest_version: row.get(5)?,
        version_count: row.get(6)?,
        created_at: row.get(7)?,
        updated_at: row.get(8)?,
        withdrawn_at: row.get(9)?,
    })
}

fn version(row: &Row<'_>) -> Result<VersionView> {
    let withdrawn_at: Option<Timestamp> = row.get(6)?;
    Ok(VersionView {
        item_id: SkillItemId::from_store(row.get(0)?),
        version: row.get(1)?,
        digest: row.get(2)?,
        size_bytes: row.get(3)?,
        status: Status::of(withdrawn_at),
        manifest: None,
        published_at: row.get(4)?,
        published_by: row.get(5)?,
        withdrawn_at,
    })
}

/// Returns the form in which items are searched.
fn search_key(item: &Item) -> String {
    provost_kernel::text::name_key(&format!("{}\n{}", item.full_name(), item.description))
}

/// Returns the `LIKE` pattern of texts that contain `text`.
fn containing(text: &str) -> String {
    let mut pattern = String::from("%");
    for c in provost_kernel::text::name_key(text).chars() {
        if matches!(c, '%' | '_' | '!') {
            pattern.push('!');
        }
        pattern.push(c);
    }
    pattern.push('%');
    pattern
}

/// Returns an item by its id, if there is one.
pub fn item_by_id(ctx: &mut OperationContext<'_>, id: &SkillItemId) -> Result<Option<Item>> {
    let org = ctx.org();
    ctx.query_opt(&ITEM_BY_ID, params![org, id.as_str()], item)
}

/// Returns an item by its name, if there is one.
pub fn item_by_name(ctx: &mut OperationContext<'_>, namespace: &str, name: &str) -> Result<Option<Item>> {
    let org = ctx.org();
    ctx.query_opt(&ITEM_BY_NAME, params![org, name, namespace], item)
}

/// Returns the item that a reference names, whatever the version behind it.
pub fn named(ctx: &mut OperationContext<'_>, reference: &Reference) -> Result<Option<Item>> {
    match reference {
        Reference::Id(id) => item_by_id(ctx, id),
        Reference::Named { namespace, name, .. } => item_by_name(ctx, namespace, name),
    }
}

/// What a list of items is narrowed by.
pub struct ItemFilter<'a> {
    /// Only of this namespace.
    pub namespace: Option<&'a str>,
    /// Only in this state.
    pub status: Option<Status>,
    /// Only with this in the name or the description.
    pub query: Option<&'a str>,
}

/// Returns a page of items below a place, newest first, each with its own place.
pub fn list_items(
    ctx: &mut OperationContext<'_>,
    filter: &ItemFilter<'_>,
    below: i64,
    limit: i64,
) -> Result<Vec<(i64, Item)>> {
    let org = ctx.org();
    let status = filter.status.map(Status::as_str);
    let pattern = filter.query.map(containing);
    ctx.query(
        &LIST_ITEMS,
        params![org, below, filter.namespace, status, pattern, limit],
        |row| Ok((row.get(10)?, item(row)?)),
    )
}

/// Stores a new item.
pub fn insert_item(ctx: &mut OperationContext<'_>, item: &Item) -> Result<()> {
    ctx.queue(
        &INSERT_ITEM,
        params![
            item.organization_id.as_str(),
            item.id.as_str(),
            item.namespace.as_str(),
            item.name.as_str(),
            search_key(item),
            item.description.as_str(),
            item.latest_version.as_deref(),
            item.version_count,
            item.created_at,
        ],
    )
}

/// Stores what changed of an item. The organization's chain head is locked, so nobody else changes it.
pub fn save_item(ctx: &mut OperationContext<'_>, item: &Item) -> Result<()> {
    ctx.queue(
        &SAVE_ITEM,
        params![
            item.organization_id.as_str(),
            item.id.as_str(),
            search_key(item),
            item.description.as_str(),
            item.latest_version.as_deref(),
            item.version_count,
            item.updated_at,
            item.withdrawn_at,
        ],
    )
}

/// Returns what is known of every version of an item.
pub fn known(ctx: &mut OperationContext<'_>, item: &SkillItemId) -> Result<Vec<VersionSummary>> {
    let org = ctx.org();
    ctx.query(&KNOWN, params![org, item.as_str()], |row| {
        let version = Version::parse(row.str(0)?);
        Ok(VersionSummary {
            version: version.ok_or_else(|| Error::internal("skill_versions.version is not a version"))?,
            digest: row.get(1)?,
            number: row.get(2)?,
            withdrawn_at: row.get(3)?,
        })
    })
}

/// Returns one version of an item with its manifest.
///
/// Errors: `Internal` when it is not there: whoever asks has seen it in this transaction.
pub fn version_of(ctx: &mut OperationContext<'_>, item: &SkillItemId, number: &str) -> Result<VersionView> {
    let org = ctx.org();
    let found = ctx.query_opt(&VERSION, params![org, item.as_str(), number], |row| {
        let mut version = version(row)?;
        version.manifest = Some(serde_json::from_str(row.str(7)?).map_err(Error::internal)?);
        Ok(version)
    })?;
    found.ok_or_else(|| Error::internal("a skill's version has gone"))
}

/// Returns a page of an item's versions below a place, newest first, each with its own place.
pub fn list_versions(
    ctx: &mut OperationContext<'_>,
    item: &SkillItemId,
    below: i64,
    limit: i64,
) -> Result<Vec<(i64, VersionView)>> {
    let org = ctx.org();
    ctx.query(&LIST_VERSIONS, params![org, item.as_str(), below, limit], |row| {
        Ok((row.get(7)?, version(row)?))
    })
}

/// Returns the signed manifest of a version.
pub fn envelope(ctx: &mut OperationContext<'_>, item: &SkillItemId, number: &str) -> Result<Envelope> {
    let org = ctx.org();
    let text = ctx.query_opt(&ENVELOPE, params![org, item.as_str(), number], |row| {
        row.get::<String>(0)
    })?;
    let text = text.ok_or_else(|| Error::internal("a skill's version has gone"))?;
    serde_json::from_str(&text).map_err(Error::internal)
}

/// Stores a version, and its content behind it: 20 MiB may take longer than a unit has for what follows, so nothing
/// must follow.
pub fn insert_version(
    ctx: &mut OperationContext<'_>,
    version: &VersionView,
    number: i64,
    envelope: &Envelope,
    content: &[u8],
) -> Result<()> {
    let org = ctx.org();
    let manifest = serde_json::to_string(&version.manifest).map_err(Error::internal)?;
    ctx.queue(
        &INSERT_VERSION,
        params![
            org,
            version.item_id.as_str(),
            version.version.as_str(),
            number,
            version.digest.as_str(),
            version.size_bytes,
            manifest,
            serde_json::to_string(envelope).map_err(Error::internal)?,
            version.published_at,
            version.published_by.as_str(),
        ],
    )?;
    ctx.queue(
        &INSERT_CONTENT,
        params![org, version.digest.as_str(), content, version.published_at],
    )
}

/// Withdraws one version.
pub fn withdraw_version(
    ctx: &mut OperationContext<'_>,
    item: &SkillItemId,
    number: &str,
    at: Timestamp,
) -> Result<()> {
    let org = ctx.org();
    ctx.queue(&WITHDRAW_VERSION, params![org, item.as_str(), number, at])
}

/// Returns the content of a digest.
///
/// Errors: `Internal` when it is not there: a foreign key keeps it.
pub fn content(ctx: &mut OperationContext<'_>, digest: &str) -> Result<Vec<u8>> {
    let org = ctx.org();
    let found = ctx.query_opt(&CONTENT, params![org, digest], |row| row.get::<Vec<u8>>(0))?;
    found.ok_or_else(|| Error::internal("a skill's content has gone"))
}

/// Says whether an item of this id is there and not withdrawn.
pub fn is_offered(ctx: &mut OperationContext<'_>, id: &str) -> Result<bool> {
    let org = ctx.org();
    Ok(ctx.query_opt(&OFFERED, params![org, id], |_| Ok(()))?.is_some())
}
