//! All SQL of the area.
//!
//! Keeps PO-1.

use super::model::{Policy, PolicyId, Revision, SetVersion};
use provost_areas_access::resources::ownership::Owner;
use provost_kernel::db::{Row, Tx};
use provost_kernel::error::Error;
use provost_kernel::text::name_key;
use provost_kernel::{OperationContext, Result, Timestamp, params, statements};
use provost_policy::Family;
use provost_words::url::fits_path;

/// The end of what has none.
const FOR_GOOD: i64 = 9_007_199_254_740_991;

statements! {
    /// A policy, deleted or not.
    GET = "SELECT id, family, name, action, enabled, current_revision, definition_sha256, created_at, updated_at, deleted_at, seq, manager_id, manager_instance, owner_id FROM policies WHERE organization_id = ?1 AND id = ?2";
    /// One page of policies that are not deleted, in the order of their making.
    LIST = "SELECT id, family, name, action, enabled, current_revision, definition_sha256, created_at, \
        updated_at, deleted_at, seq, manager_id, manager_instance, owner_id \
        FROM policies \
        WHERE organization_id = ?1 AND seq > ?2 AND deleted_at IS NULL \
        AND (CAST(?3 AS TEXT) IS NULL OR family = CAST(?3 AS TEXT)) \
        AND (CAST(?4 AS BIGINT) IS NULL OR CASE WHEN enabled THEN 1 ELSE 0 END = CAST(?4 AS BIGINT)) \
        AND (CAST(?5 AS TEXT) IS NULL OR search_key LIKE CAST(?5 AS TEXT) ESCAPE '!') ORDER BY seq, id \
        LIMIT ?6";
    /// Makes a policy at the end of the list.
    INSERT = "INSERT INTO policies (organization_id, id, seq, family, name, search_key, action, enabled, \
        current_revision, definition_sha256, manager_id, manager_instance, owner_id, created_at, updated_at) \
        SELECT ?1, CAST(?2 AS TEXT), COALESCE(MAX(seq), 0) + 1, CAST(?3 AS TEXT), CAST(?4 AS TEXT), \
        CAST(?5 AS TEXT), CAST(?6 AS TEXT), CAST(?7 AS BOOLEAN), CAST(?8 AS BIGINT), CAST(?9 AS TEXT), \
        CAST(?10 AS TEXT), CAST(?11 AS TEXT), CAST(?12 AS TEXT), CAST(?13 AS BIGINT), CAST(?13 AS BIGINT) \
        FROM policies \
        WHERE organization_id = ?1";
    /// Replaces what can change of a policy.
    SAVE = "UPDATE policies SET name = ?3, search_key = ?4, action = ?5, enabled = ?6, current_revision = ?7, definition_sha256 = ?8, manager_id = ?9, manager_instance = ?10, owner_id = ?11, updated_at = ?12, deleted_at = ?13 WHERE organization_id = ?1 AND id = ?2";
    /// What was authored and where it came from, of one revision.
    AUTHORED = "SELECT definition, source_ref FROM policy_revisions WHERE organization_id = ?1 AND policy_id = ?2 AND revision = ?3";
    /// What decides, of one revision.
    BOUND = "SELECT COALESCE(bound, definition) FROM policy_revisions WHERE organization_id = ?1 AND policy_id = ?2 AND revision = ?3";
    /// The digest of what decides, of the revision that is in the set now.
    IN_SET = "SELECT bound_sha256 FROM policy_revisions WHERE organization_id = ?1 AND policy_id = ?2 AND set_to = 9007199254740991";
    /// Adds a revision.
    INSERT_REVISION = "INSERT INTO policy_revisions (organization_id, policy_id, revision, family, definition, \
        definition_sha256, bound, bound_sha256, source_ref, action, enabled, set_from, set_to, created_at, \
        created_by_type, created_by_id) \
        VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16)";
    /// One page of a policy's revisions, the newest first.
    REVISIONS = "SELECT revision, definition_sha256, bound_sha256, action, enabled, set_from, set_to, created_at, created_by_type, created_by_id FROM policy_revisions WHERE organization_id = ?1 AND policy_id = ?2 AND revision < ?3 ORDER BY revision DESC LIMIT ?4";
    /// Takes a policy out of the set from a version on.
    LEAVE_SET = "UPDATE policy_revisions SET set_to = ?3 WHERE organization_id = ?1 AND policy_id = ?2 AND set_to = 9007199254740991";
    /// What the digest of the current set is made of.
    MEMBERS = "SELECT family, policy_id, bound_sha256 FROM policy_revisions WHERE organization_id = ?1 AND set_to = 9007199254740991";
    /// The definitions of a version.
    DEFINITIONS = "SELECT family, policy_id, bound_sha256, COALESCE(bound, definition) FROM policy_revisions WHERE organization_id = ?1 AND set_to > ?2 AND set_from <= ?2";
    /// The ids of a version's policies.
    MEMBER_IDS = "SELECT policy_id FROM policy_revisions WHERE organization_id = ?1 AND set_to > ?2 AND set_from <= ?2 ORDER BY policy_id";
    /// What decides of the newest revision of every policy that is not deleted.
    NEWEST = "SELECT p.id, p.family, p.action, p.enabled, COALESCE(r.bound, r.definition) \
        FROM policies p JOIN policy_revisions r ON r.organization_id = p.organization_id \
        AND r.policy_id = p.id AND r.revision = p.current_revision \
        WHERE p.organization_id = ?1 AND p.deleted_at IS NULL ORDER BY p.seq, p.id";
    /// The same, of one page of the list.
    NEWEST_OF_PAGE = "SELECT p.id, p.family, p.action, p.enabled, COALESCE(r.bound, r.definition) \
        FROM policies p JOIN policy_revisions r ON r.organization_id = p.organization_id \
        AND r.policy_id = p.id AND r.revision = p.current_revision \
        WHERE p.organization_id = ?1 AND p.seq >= ?2 AND p.seq <= ?3 AND p.deleted_at IS NULL \
        ORDER BY p.seq, p.id";
    /// Every policy with an id that a proxy may make another of; the program looks again.
    HARD_TO_NAME = unscoped("the store is looked through as a whole") "SELECT organization_id, id FROM policies WHERE deleted_at IS NULL AND (id LIKE '%/' OR id LIKE '%//%' OR id LIKE '%/.%') ORDER BY organization_id, id";
    /// Adds a version.
    INSERT_VERSION = "INSERT INTO policy_set_versions (organization_id, sequence, id, digest, policy_count, created_at, created_by_type, created_by_id) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)";
    /// The newest version.
    LATEST = "SELECT sequence, id, digest FROM policy_set_versions WHERE organization_id = ?1 ORDER BY sequence DESC LIMIT 1";
    /// A version by its id.
    VERSION = "SELECT sequence, id, digest, policy_count, created_at, created_by_type, created_by_id FROM policy_set_versions WHERE organization_id = ?1 AND id = ?2";
    /// A version by its number.
    AT_SEQUENCE = "SELECT sequence, id, digest FROM policy_set_versions WHERE organization_id = ?1 AND sequence = ?2";
    /// One page of versions, the newest first.
    VERSIONS = "SELECT sequence, id, digest, policy_count, created_at, created_by_type, created_by_id FROM policy_set_versions WHERE organization_id = ?1 AND sequence < ?2 ORDER BY sequence DESC LIMIT ?3";
}

/// Returns the family of a stored word.
pub fn family(word: &str) -> Result<Family> {
    let found = Family::ALL.into_iter().find(|family| family.word() == word);
    found.ok_or_else(|| Error::internal("a policy is of no family"))
}

fn policy(row: &Row<'_>) -> Result<Policy> {
    Ok(Policy {
        id: PolicyId::from_store(row.get(0)?),
        family: family(row.str(1)?)?,
        name: row.get(2)?,
        action: row.get(3)?,
        enabled: row.get(4)?,
        revision: row.get(5)?,
        definition_sha256: row.get(6)?,
        created_at: row.get(7)?,
        updated_at: row.get(8)?,
        deleted_at: row.get(9)?,
        owner: Owner::read(row, 11)?,
    })
}

/// Returns a policy, deleted or not, if there is one.
pub fn find(ctx: &mut OperationContext<'_>, id: &PolicyId) -> Result<Option<Policy>> {
    let org = ctx.org();
    ctx.query_opt(&GET, params![org, id.as_str()], policy)
}

/// Returns a sentence about every policy whose id no path carries unchanged (PO-9).
pub fn ids_no_path_carries(tx: &mut Tx<'_>) -> Result<Vec<String>> {
    let found = tx.query(&HARD_TO_NAME, params![], |row| {
        Ok((row.get::<String>(0)?, row.get::<String>(1)?))
    })?;
    let hard = found.into_iter().filter(|(_, id)| !fits_path(id));
    let sentence = |(organization, id): (String, String)| {
        format!(
            "the policy {id} of {organization} has an id that proxies may make another of: read and delete it with - in the path \
             and policyId={id} in the query, and create it anew under an id without empty segments and dots"
        )
    };
    Ok(hard.map(sentence).collect())
}

/// What a list shows of all policies.
pub struct Filter<'a> {
    /// Of this family alone.
    pub family: Option<Family>,
    /// Enabled ones alone, or the others.
    pub enabled: Option<bool>,
    /// With this in their id or name, whatever its case.
    pub query: Option<&'a str>,
}

/// Returns at most `limit` policies behind a place of the list, each with its place.
pub fn list(
    ctx: &mut OperationContext<'_>,
    filter: &Filter<'_>,
    after: i64,
    limit: i64,
) -> Result<Vec<(i64, Policy)>> {
    let org = ctx.org();
    let (family, pattern) = (filter.family.map(Family::word), filter.query.map(containing));
    let enabled = filter.enabled.map(i64::from);
    ctx.query(
        &LIST,
        params![org, after, family, enabled, pattern, limit],
        |row| Ok((row.get(10)?, policy(row)?)),
    )
}

/// Returns the `LIKE` pattern of texts that contain `text`.
fn containing(text: &str) -> String {
    let mut pattern = String::from("%");
    for c in name_key(text).chars() {
        if matches!(c, '%' | '_' | '!') {
            pattern.push('!');
        }
        pattern.push(c);
    }
    pattern.push('%');
    pattern
}

fn search_key(policy: &Policy) -> String {
    name_key(&format!(
        "{}\n{}",
        policy.id,
        policy.name.as_deref().unwrap_or_default()
    ))
}

/// Stores a new policy.
pub fn insert(ctx: &mut OperationContext<'_>, policy: &Policy) -> Result<()> {
    let org = ctx.org();
    let [manager, instance, owner] = policy.owner.columns();
    ctx.queue(
        &INSERT,
        params![
            org,
            policy.id.as_str(),
            policy.family.word(),
            policy.name.as_deref(),
            search_key(policy),
            policy.action.as_str(),
            policy.enabled,
            policy.revision,
            policy.definition_sha256.as_str(),
            manager,
            instance,
            owner,
            policy.created_at,
        ],
    )
}

/// Stores what changed of a policy.
pub fn save(ctx: &mut OperationContext<'_>, policy: &Policy) -> Result<()> {
    let org = ctx.org();
    let [manager, instance, owner] = policy.owner.columns();
    ctx.queue(
        &SAVE,
        params![
            org,
            policy.id.as_str(),
            policy.name.as_deref(),
            search_key(policy),
            policy.action.as_str(),
            policy.enabled,
            policy.revision,
            policy.definition_sha256.as_str(),
            manager,
            instance,
            owner,
            policy.updated_at,
            policy.deleted_at,
        ],
    )
}

/// Returns what was authored, and its source reference, of one revision: as JSON texts.
pub fn authored(
    ctx: &mut OperationContext<'_>,
    id: &PolicyId,
    revision: i64,
) -> Result<Option<(String, Option<String>)>> {
    let org = ctx.org();
    ctx.query_opt(&AUTHORED, params![org, id.as_str(), revision], |row| {
        Ok((row.get(0)?, row.get(1)?))
    })
}

/// Returns what decides of one revision, as JSON text.
pub fn bound(ctx: &mut OperationContext<'_>, id: &PolicyId, revision: i64) -> Result<Option<String>> {
    let org = ctx.org();
    ctx.query_opt(&BOUND, params![org, id.as_str(), revision], |row| row.get(0))
}

/// Returns the digest of what decides in the current set, if the policy is in it.
pub fn in_set(ctx: &mut OperationContext<'_>, id: &PolicyId) -> Result<Option<String>> {
    let org = ctx.org();
    ctx.query_opt(&IN_SET, params![org, id.as_str()], |row| row.get(0))
}

/// Adds a revision; `set_from` is the version with which it comes into the set, if it does.
pub fn insert_revision(
    ctx: &mut OperationContext<'_>,
    policy: &Policy,
    revision: &Revision,
    set_from: Option<i64>,
) -> Result<()> {
    let org = ctx.org();
    ctx.queue(
        &INSERT_REVISION,
        params![
            org,
            policy.id.as_str(),
            policy.revision,
            policy.family.word(),
            revision.definition.as_str(),
            policy.definition_sha256.as_str(),
            revision.bound.as_deref(),
            revision.bound_sha256.as_str(),
            revision.source_ref.as_deref(),
            policy.action.as_str(),
            policy.enabled,
            set_from,
            set_from.map(|_| FOR_GOOD),
            ctx.now(),
            ctx.actor().kind,
            ctx.actor().id.as_str(),
        ],
    )
}

/// What decides of a policy's newest revision.
pub struct Newest {
    /// The policy.
    pub id: String,
    /// Its family.
    pub family: Family,
    /// What it does with a request that it matches.
    pub action: String,
    /// Whether it takes part in decisions.
    pub enabled: bool,
    /// The definition, as JSON text.
    pub definition: String,
}

fn newest_of(row: &Row<'_>) -> Result<Newest> {
    Ok(Newest {
        id: row.get(0)?,
        family: family(row.str(1)?)?,
        action: row.get(2)?,
        enabled: row.get(3)?,
        definition: row.get(4)?,
    })
}

/// Returns what decides of every policy that is not deleted, in the order of their making.
pub fn newest(ctx: &mut OperationContext<'_>) -> Result<Vec<Newest>> {
    let org = ctx.org();
    ctx.query(&NEWEST, params![org], newest_of)
}

/// Returns the same of the policies among these places of the list.
pub fn newest_of_page(ctx: &mut OperationContext<'_>, from: i64, to: i64) -> Result<Vec<Newest>> {
    let org = ctx.org();
    ctx.query(&NEWEST_OF_PAGE, params![org, from, to], newest_of)
}

/// A row of a policy's history.
pub struct HistoryRow {
    /// Its number.
    pub revision: i64,
    /// The digest of what was authored.
    pub definition_sha256: String,
    /// The digest of what decides.
    pub bound_sha256: String,
    /// The action.
    pub action: String,
    /// Whether it took part.
    pub enabled: bool,
    /// The first version that it belongs to.
    pub set_from: Option<i64>,
    /// The first version that it does not belong to any more.
    pub set_to: Option<i64>,
    /// When it was made.
    pub created_at: Timestamp,
    /// Who made it: kind and id.
    pub created_by: (String, String),
}

/// Returns at most `limit` revisions before a number, the newest first.
pub fn revisions(
    ctx: &mut OperationContext<'_>,
    id: &PolicyId,
    before: i64,
    limit: i64,
) -> Result<Vec<HistoryRow>> {
    let org = ctx.org();
    ctx.query(&REVISIONS, params![org, id.as_str(), before, limit], |row| {
        Ok(HistoryRow {
            revision: row.get(0)?,
            definition_sha256: row.get(1)?,
            bound_sha256: row.get(2)?,
            action: row.get(3)?,
            enabled: row.get(4)?,
            set_from: row.get(5)?,
            set_to: row.get::<Option<i64>>(6)?.filter(|end| *end < FOR_GOOD),
            created_at: row.get(7)?,
            created_by: (row.get(8)?, row.get(9)?),
        })
    })
}

/// Takes a policy out of the set from a version on.
pub fn leave_set(ctx: &mut OperationContext<'_>, id: &PolicyId, sequence: i64) -> Result<()> {
    let org = ctx.org();
    ctx.queue(&LEAVE_SET, params![org, id.as_str(), sequence])
}

/// Returns family, id and digest of every policy of the current set.
pub fn members(ctx: &mut OperationContext<'_>) -> Result<Vec<(Family, String, String)>> {
    let org = ctx.org();
    ctx.query(&MEMBERS, params![org], |row| {
        Ok((family(row.str(0)?)?, row.get(1)?, row.get(2)?))
    })
}

/// Calls `each` with family, id, digest and text of every definition of a version.
pub fn definitions<T>(
    tx: &mut Tx<'_>,
    org: &str,
    sequence: i64,
    mut each: impl FnMut(Family, &str, &str, &str) -> Result<T>,
) -> Result<Vec<T>> {
    tx.query(&DEFINITIONS, params![org, sequence], |row| {
        each(family(row.str(0)?)?, row.str(1)?, row.str(2)?, row.str(3)?)
    })
}

/// Returns the ids of a version's policies, sorted.
pub fn member_ids(ctx: &mut OperationContext<'_>, sequence: i64) -> Result<Vec<String>> {
    let org = ctx.org();
    ctx.query(&MEMBER_IDS, params![org, sequence], |row| row.get(0))
}

/// Adds a version.
pub fn insert_version(ctx: &mut OperationContext<'_>, version: &SetVersion) -> Result<()> {
    let org = ctx.org();
    let (kind, id) = &version.created_by;
    ctx.queue(
        &INSERT_VERSION,
        params![
            org,
            version.sequence,
            version.id.as_str(),
            version.digest.as_str(),
            version.policies,
            version.created_at,
            kind.as_str(),
            id.as_str(),
        ],
    )
}

/// A version's number, id and digest.
pub struct Label {
    /// Its number.
    pub sequence: i64,
    /// Its id.
    pub id: String,
    /// Its digest.
    pub digest: String,
}

fn label(row: &Row<'_>) -> Result<Label> {
    Ok(Label {
        sequence: row.get(0)?,
        id: row.get(1)?,
        digest: row.get(2)?,
    })
}

/// Returns the newest version, if there is one.
pub fn latest(tx: &mut Tx<'_>, org: &str) -> Result<Option<Label>> {
    tx.query_opt(&LATEST, params![org], label)
}

/// Returns the version of an id, if there is one.
pub fn by_id(tx: &mut Tx<'_>, org: &str, id: &str) -> Result<Option<Label>> {
    tx.query_opt(&VERSION, params![org, id], label)
}

/// Returns the version of a number, if there is one.
pub fn by_sequence(tx: &mut Tx<'_>, org: &str, sequence: i64) -> Result<Option<Label>> {
    tx.query_opt(&AT_SEQUENCE, params![org, sequence], label)
}

fn version(row: &Row<'_>) -> Result<SetVersion> {
    Ok(SetVersion {
        sequence: row.get(0)?,
        id: row.get(1)?,
        digest: row.get(2)?,
        policies: row.get(3)?,
        created_at: row.get(4)?,
        created_by: (row.get(5)?, row.get(6)?),
    })
}

/// Returns everything about a version, if there is one.
pub fn full_version(ctx: &mut OperationContext<'_>, id: &str) -> Result<Option<SetVersion>> {
    let org = ctx.org();
    ctx.query_opt(&VERSION, params![org, id], version)
}

/// Returns at most `limit` versions before a number, the newest first.
pub fn versions(ctx: &mut OperationContext<'_>, before: i64, limit: i64) -> Result<Vec<SetVersion>> {
    let org = ctx.org();
    ctx.query(&VERSIONS, params![org, before, limit], version)
}
