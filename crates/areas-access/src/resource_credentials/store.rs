//! All SQL of credentials but that of their secrets: no statement here reads a ciphertext (RC-1).

use super::assignment::{Assignees, KINDS};
use super::authentication::Authentication;
use super::checks::model::{Check, CheckId, OPEN_SECS};
use super::model::{Credential, CredentialId, Kind, Management};
use crate::resources::model::ResourceId;
use crate::resources::ownership::Owner;
use provost_areas_identity::subjects::SubjectKind;
use provost_kernel::db::{Row, Tx};
use provost_kernel::error::{Error, Result};
use provost_kernel::{OperationContext, Timestamp, params, statements};
use std::collections::HashMap;

statements! {
    /// One credential of one resource.
    GET = "SELECT id, resource_id, name, kind, is_default, username, header_name, authentication, \
        management_mode, manager_id, manager_instance, owner_id, external_path, external_field, \
        secret_version, created_at, updated_at, last_used_at, rotated_at \
        FROM resource_credentials \
        WHERE organization_id = ?1 AND id = ?2 AND resource_id = ?3";
    /// One credential, whatever its resource.
    FIND = "SELECT id, resource_id, name, kind, is_default, username, header_name, authentication, \
        management_mode, manager_id, manager_instance, owner_id, external_path, external_field, \
        secret_version, created_at, updated_at, last_used_at, rotated_at \
        FROM resource_credentials \
        WHERE organization_id = ?1 AND id = ?2";
    /// Every credential of a resource: the default first, then the oldest (D11.5).
    LIST = "SELECT id, resource_id, name, kind, is_default, username, header_name, authentication, \
        management_mode, manager_id, manager_instance, owner_id, external_path, external_field, \
        secret_version, created_at, updated_at, last_used_at, rotated_at \
        FROM resource_credentials \
        WHERE organization_id = ?1 AND resource_id = ?2 ORDER BY is_default DESC, created_at, id";
    /// Whom one credential is for.
    ASSIGNED = "SELECT credential_id, subject_kind, subject_id FROM resource_credential_assignments WHERE organization_id = ?1 AND credential_id = ?2 ORDER BY subject_kind, subject_id, credential_id";
    /// Whom the credentials of a resource are for.
    ASSIGNED_OF_RESOURCE = "SELECT credential_id, subject_kind, subject_id FROM resource_credential_assignments WHERE organization_id = ?1 AND resource_id = ?2 ORDER BY credential_id || '', subject_kind || '', subject_id";
    /// What a resource has: how many credentials of each kind.
    KINDS_OF_RESOURCE = "SELECT kind, COUNT(*) FROM resource_credentials WHERE organization_id = ?1 AND resource_id = ?2 GROUP BY kind ORDER BY kind";
    /// The default of a resource.
    DEFAULT = "SELECT id FROM resource_credentials WHERE organization_id = ?1 AND resource_id = ?2 AND is_default = ?3 ORDER BY id || ''";
    /// Makes a credential.
    INSERT = "\
        INSERT INTO resource_credentials (organization_id, id, resource_id, name, kind, is_default, username, \
        header_name, authentication, management_mode, manager_id, manager_instance, owner_id, external_path, \
        external_field, secret_version, created_at, updated_at, last_used_at, rotated_at) \
        VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16, ?17, ?18, ?19, ?20)";
    /// Replaces what can change of a credential.
    SAVE = "UPDATE resource_credentials \
        SET name = ?3, kind = ?4, is_default = ?5, username = ?6, header_name = ?7, authentication = ?8, \
        management_mode = ?9, manager_id = ?10, manager_instance = ?11, owner_id = ?12, external_path = ?13, \
        external_field = ?14, secret_version = ?15, updated_at = ?16, rotated_at = ?17 \
        WHERE organization_id = ?1 AND id = ?2";
    /// Removes a credential.
    DELETE = "DELETE FROM resource_credentials WHERE organization_id = ?1 AND id = ?2";
    /// Assigns.
    ASSIGN = "INSERT INTO resource_credential_assignments (organization_id, credential_id, subject_kind, subject_id, resource_id) VALUES (?1, ?2, ?3, ?4, ?5) ON CONFLICT DO NOTHING";
    /// Takes one assignment away.
    UNASSIGN = "DELETE FROM resource_credential_assignments WHERE organization_id = ?1 AND credential_id = ?2 AND subject_kind = ?3 AND subject_id = ?4";
    /// Takes every assignment of a credential away.
    UNASSIGN_ALL = "DELETE FROM resource_credential_assignments WHERE organization_id = ?1 AND credential_id = ?2";
    /// Marks the credentials of a subject as changed, at a later instant than their last change.
    MARK_OF_SUBJECT = "UPDATE resource_credentials \
        SET updated_at = CASE WHEN updated_at >= CAST(?4 AS BIGINT) THEN updated_at + 1 \
        ELSE CAST(?4 AS BIGINT) END \
        WHERE organization_id = ?1 \
        AND id IN (SELECT credential_id FROM resource_credential_assignments WHERE organization_id = ?1 \
        AND subject_kind = ?2 AND subject_id = ?3)";
    /// The credentials that are assigned to a subject.
    OF_SUBJECT = "SELECT credential_id FROM resource_credential_assignments WHERE organization_id = ?1 AND subject_kind = ?2 AND subject_id = ?3 ORDER BY credential_id || ''";
    /// Takes every assignment of a subject away.
    FORGET = "DELETE FROM resource_credential_assignments WHERE organization_id = ?1 AND subject_kind = ?2 AND subject_id = ?3";
    /// The lowest credential of a resource that is assigned to one subject, by the index of subjects.
    LOWEST_OF_SUBJECT = "SELECT MIN(credential_id) FROM resource_credential_assignments WHERE organization_id = ?1 AND subject_kind = ?2 AND subject_id = ?3 AND resource_id = ?4";
    /// Notes a use, to the minute.
    TOUCH = "UPDATE resource_credentials SET last_used_at = ?3 WHERE organization_id = ?1 AND id = ?2 AND (last_used_at IS NULL OR last_used_at <= ?4)";
    /// Makes a check.
    INSERT_CHECK = "INSERT INTO resource_credential_checks (organization_id, id, credential_id, state, reason, created_at, finished_at) VALUES (?1, ?2, ?3, 'pending', NULL, ?4, NULL)";
    /// The newest check of a credential that has not ended and began behind an instant.
    OPEN_CHECK = "SELECT id FROM resource_credential_checks WHERE organization_id = ?1 AND credential_id = ?2 AND state = 'pending' AND created_at > ?3 ORDER BY created_at DESC, id DESC LIMIT 1";
    /// A check of a credential of a resource, unless it is too old.
    GET_CHECK = "SELECT k.id, k.credential_id, k.state, k.reason, k.created_at, k.finished_at \
        FROM resource_credential_checks k \
        JOIN resource_credentials c ON c.organization_id = k.organization_id AND c.id = k.credential_id \
        WHERE k.organization_id = ?1 AND k.id = ?2 AND k.credential_id = ?3 AND c.resource_id = ?4 \
        AND k.created_at > ?5";
    /// Ends a check that has not ended.
    SETTLE_CHECK = "UPDATE resource_credential_checks SET state = ?3, reason = ?4, finished_at = ?5 WHERE organization_id = ?1 AND id = ?2 AND state = 'pending'";
    /// Removes the checks of a credential.
    DELETE_CHECKS = "DELETE FROM resource_credential_checks WHERE organization_id = ?1 AND credential_id = ?2";
    /// Removes old checks.
    PRUNE_CHECKS = unscoped("the sweep serves every organization") "DELETE FROM resource_credential_checks WHERE (organization_id, id) IN (SELECT k.organization_id, k.id FROM resource_credential_checks k WHERE k.created_at <= ?1 ORDER BY k.created_at, k.organization_id, k.id LIMIT ?2)";
}

fn word(kind: SubjectKind) -> &'static str {
    KINDS
        .iter()
        .find(|(known, ..)| *known == kind)
        .map_or("", |(_, word, _)| word)
}

fn subject_kind(text: &str) -> Result<SubjectKind> {
    let found = KINDS.iter().find(|(_, word, _)| *word == text);
    found
        .map(|(kind, ..)| *kind)
        .ok_or_else(|| Error::internal("resource_credential_assignments.subject_kind is not a kind"))
}

fn management(row: &Row<'_>) -> Result<Management> {
    if row.str(8)? != "external" {
        return Ok(Management::Here(Owner::read(row, 9)?));
    }
    Ok(Management::External {
        manager: row.get(9)?,
        instance: row.get(10)?,
        path: row.get(12)?,
        field: row.get(13)?,
    })
}

fn credential(row: &Row<'_>) -> Result<Credential> {
    let kind = Kind::parse(row.str(3)?);
    let authentication: Option<String> = row.get(7)?;
    let authentication = authentication.map(|text| serde_json::from_str::<Authentication>(&text));
    Ok(Credential {
        id: CredentialId::from_store(row.get(0)?),
        resource_id: ResourceId::from_store(row.get(1)?),
        name: row.get(2)?,
        kind: kind.ok_or_else(|| Error::internal("resource_credentials.kind is not a kind"))?,
        is_default: row.get(4)?,
        assigned: Assignees::default(),
        username: row.get(5)?,
        header_name: row.get(6)?,
        authentication: authentication.transpose().map_err(Error::internal)?,
        management: management(row)?,
        secret_version: row.get(14)?,
        created_at: row.get(15)?,
        updated_at: row.get(16)?,
        last_used_at: row.get(17)?,
        rotated_at: row.get(18)?,
    })
}

fn assignment(row: &Row<'_>) -> Result<(String, SubjectKind, String)> {
    Ok((row.get(0)?, subject_kind(row.str(1)?)?, row.get(2)?))
}

fn not_found() -> Error {
    Error::not_found("resource credential")
}

/// Returns a credential of a resource with its assignments.
///
/// Errors: `NotFound` for an unknown, a deleted, another resource's and another organization's alike.
pub fn get(ctx: &mut OperationContext<'_>, resource: &ResourceId, id: &CredentialId) -> Result<Credential> {
    let org = ctx.org();
    let found = ctx.query_opt(&GET, params![org, id.as_str(), resource.as_str()], credential)?;
    with_assignments(ctx, found.ok_or_else(not_found)?)
}

/// Returns a credential without its assignments.
///
/// Errors: `NotFound`.
pub fn find(ctx: &mut OperationContext<'_>, id: &CredentialId) -> Result<Credential> {
    let org = ctx.org();
    ctx.query_opt(&FIND, params![org, id.as_str()], credential)?
        .ok_or_else(not_found)
}

/// Returns a credential without its assignments, outside of any unit.
pub fn find_outside(tx: &mut provost_kernel::db::Tx<'_>, org: &str, id: &str) -> Result<Option<Credential>> {
    tx.query_opt(&FIND, params![org, id], credential)
}

fn with_assignments(ctx: &mut OperationContext<'_>, mut credential: Credential) -> Result<Credential> {
    let org = ctx.org();
    for (_, kind, id) in ctx.query(&ASSIGNED, params![org, credential.id.as_str()], assignment)? {
        credential.assigned.of_mut(kind).push(id);
    }
    Ok(credential)
}

/// Returns every credential of a resource, the default first, then the oldest.
pub fn list(ctx: &mut OperationContext<'_>, resource: &ResourceId) -> Result<Vec<Credential>> {
    let org = ctx.org();
    let mut found = ctx.query(&LIST, params![org, resource.as_str()], credential)?;
    let places: HashMap<String, usize> = found
        .iter()
        .enumerate()
        .map(|(place, credential)| (credential.id.as_str().to_owned(), place))
        .collect();
    ctx.query(&ASSIGNED_OF_RESOURCE, params![org, resource.as_str()], |row| {
        let (credential, kind, id) = assignment(row)?;
        if let Some(place) = places.get(&credential) {
            found[*place].assigned.of_mut(kind).push(id);
        }
        Ok(())
    })?;
    Ok(found)
}

/// Returns how many credentials of each kind a resource has.
pub fn kinds_of(ctx: &mut OperationContext<'_>, resource: &ResourceId) -> Result<Vec<(Kind, i64)>> {
    let org = ctx.org();
    ctx.query(&KINDS_OF_RESOURCE, params![org, resource.as_str()], |row| {
        let kind = Kind::parse(row.str(0)?);
        let kind = kind.ok_or_else(|| Error::internal("resource_credentials.kind is not a kind"))?;
        Ok((kind, row.get(1)?))
    })
}

/// Returns the default credential of a resource.
pub fn default_of(ctx: &mut OperationContext<'_>, resource: &ResourceId) -> Result<Option<CredentialId>> {
    let org = ctx.org();
    ctx.query_opt(&DEFAULT, params![org, resource.as_str(), true], |row| {
        Ok(CredentialId::from_store(row.get(0)?))
    })
}

fn authentication_text(credential: &Credential) -> Result<Option<String>> {
    let text = credential.authentication.as_ref().map(serde_json::to_string);
    text.transpose().map_err(Error::internal)
}

/// Stores a new credential and its assignments.
pub fn insert(ctx: &mut OperationContext<'_>, credential: &Credential) -> Result<()> {
    let org = ctx.org();
    let owner = credential.management.owner().columns()[2];
    let ([manager, instance], [path, field]) =
        (credential.management.labels(), credential.management.place());
    ctx.queue(
        &INSERT,
        params![
            org,
            credential.id.as_str(),
            credential.resource_id.as_str(),
            credential.name.as_str(),
            credential.kind.as_str(),
            credential.is_default,
            credential.username.as_deref(),
            credential.header_name.as_deref(),
            authentication_text(credential)?,
            credential.management.mode(),
            manager,
            instance,
            owner,
            path,
            field,
            credential.secret_version,
            credential.created_at,
            credential.updated_at,
            credential.last_used_at,
            credential.rotated_at,
        ],
    )?;
    reassign(ctx, credential, &Assignees::default())
}

/// Stores what changed of a credential and of its assignments.
pub fn save(ctx: &mut OperationContext<'_>, credential: &Credential, before: &Assignees) -> Result<()> {
    let org = ctx.org();
    let owner = credential.management.owner().columns()[2];
    let ([manager, instance], [path, field]) =
        (credential.management.labels(), credential.management.place());
    ctx.queue(
        &SAVE,
        params![
            org,
            credential.id.as_str(),
            credential.name.as_str(),
            credential.kind.as_str(),
            credential.is_default,
            credential.username.as_deref(),
            credential.header_name.as_deref(),
            authentication_text(credential)?,
            credential.management.mode(),
            manager,
            instance,
            owner,
            path,
            field,
            credential.secret_version,
            credential.updated_at,
            credential.rotated_at,
        ],
    )?;
    reassign(ctx, credential, before)
}

fn reassign(ctx: &mut OperationContext<'_>, credential: &Credential, before: &Assignees) -> Result<()> {
    let (org, id, resource) = (ctx.org(), credential.id.as_str(), credential.resource_id.as_str());
    for (kind, word, _) in KINDS {
        let (old, new) = (before.of(kind), credential.assigned.of(kind));
        for subject in old.iter().filter(|subject| new.binary_search(subject).is_err()) {
            ctx.queue(&UNASSIGN, params![org, id, word, subject])?;
        }
        for subject in new.iter().filter(|subject| old.binary_search(subject).is_err()) {
            ctx.queue(&ASSIGN, params![org, id, word, subject, resource])?;
        }
    }
    Ok(())
}

/// Removes a credential with its assignments and checks; its secret is erased before.
pub fn delete(ctx: &mut OperationContext<'_>, id: &CredentialId) -> Result<()> {
    let org = ctx.org();
    ctx.queue(&UNASSIGN_ALL, params![org, id.as_str()])?;
    ctx.queue(&DELETE_CHECKS, params![org, id.as_str()])?;
    ctx.queue(&DELETE, params![org, id.as_str()])
}

/// Returns the ids of the credentials that are assigned to a subject, sorted.
pub fn assigned_to(tx: &mut Tx<'_>, org: &str, kind: SubjectKind, subject: &str) -> Result<Vec<String>> {
    tx.query(&OF_SUBJECT, params![org, word(kind), subject], |row| row.get(0))
}

/// Takes every assignment of a subject away.
pub fn forget(ctx: &mut OperationContext<'_>, kind: SubjectKind, subject: &str) -> Result<()> {
    let (org, now) = (ctx.org(), ctx.now());
    ctx.queue(&MARK_OF_SUBJECT, params![org, word(kind), subject, now])?;
    ctx.queue(&FORGET, params![org, word(kind), subject])
}

/// Returns the lowest credential of a resource that is assigned to a subject.
pub fn lowest_of(
    ctx: &mut OperationContext<'_>,
    resource: &ResourceId,
    kind: SubjectKind,
    subject: &str,
) -> Result<Option<CredentialId>> {
    let org = ctx.org();
    let params = params![org, word(kind), subject, resource.as_str()];
    let found = ctx.query_opt(&LOWEST_OF_SUBJECT, params, |row| row.get::<Option<String>>(0))?;
    Ok(found.flatten().map(CredentialId::from_store))
}

/// Notes a use with a precision of a minute (D11.7).
pub fn touch(ctx: &mut OperationContext<'_>, id: &CredentialId) -> Result<()> {
    let (org, now) = (ctx.org(), ctx.now());
    ctx.queue(&TOUCH, params![org, id.as_str(), now, now.plus_secs(-60)])
}

/// Stores a check that has not begun.
pub fn insert_check(ctx: &mut OperationContext<'_>, id: &CheckId, credential: &CredentialId) -> Result<()> {
    let (org, now) = (ctx.org(), ctx.now());
    ctx.queue(&INSERT_CHECK, params![org, id.as_str(), credential.as_str(), now])
}

/// Returns the check of a credential that has not ended and looks at what the credential is now, if there is one.
pub fn open_check(ctx: &mut OperationContext<'_>, credential: &Credential) -> Result<Option<CheckId>> {
    let after = credential.updated_at.max(ctx.now().plus_secs(-OPEN_SECS));
    let org = ctx.org();
    let params = params![org, credential.id.as_str(), after];
    let found = ctx.query_opt(&OPEN_CHECK, params, |row| row.get(0))?;
    Ok(found.map(CheckId::from_store))
}

/// Returns a check that was made after an instant.
///
/// Errors: `NotFound`.
pub fn get_check(
    ctx: &mut OperationContext<'_>,
    resource: &ResourceId,
    credential: &CredentialId,
    id: &CheckId,
    after: Timestamp,
) -> Result<Check> {
    let org = ctx.org();
    let params = params![org, id.as_str(), credential.as_str(), resource.as_str(), after];
    ctx.query_opt(&GET_CHECK, params, Check::read)?
        .ok_or_else(|| Error::not_found("check of a resource credential"))
}

/// Ends a check that has not ended.
pub fn settle_check(
    ctx: &mut OperationContext<'_>,
    id: &str,
    state: &str,
    reason: Option<&str>,
) -> Result<()> {
    let (org, now) = (ctx.org(), ctx.now());
    ctx.queue(&SETTLE_CHECK, params![org, id, state, reason, now])
}
