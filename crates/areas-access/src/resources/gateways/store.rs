//! All SQL of gateways.

use super::model::{Gateway, GatewayId};
use crate::resources::ownership::Owner;
use provost_kernel::db::Row;
use provost_kernel::error::{Code, Error, Result};
use provost_kernel::text::name_key;
use provost_kernel::{OperationContext, Timestamp, params, statements};

statements! {
    /// One gateway.
    GET = "SELECT id, name, hostname, enabled, created_at, updated_at, manager_id, manager_instance, owner_id FROM resource_gateways WHERE organization_id = ?1 AND id = ?2";
    /// A page of gateways, the oldest first; see the list of resources.
    LIST = "SELECT id, name, hostname, enabled, created_at, updated_at, manager_id, manager_instance, owner_id FROM resource_gateways WHERE organization_id = ?1 AND created_at > ?2 ORDER BY created_at, id LIMIT ?3";
    /// Makes a gateway at an instant that no other has, unless its name is taken.
    INSERT = "INSERT INTO resource_gateways (organization_id, id, name, name_key, hostname, enabled, manager_id, \
        manager_instance, owner_id, created_at, updated_at) \
        VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, \
        (SELECT CASE WHEN COALESCE(MAX(created_at), 0) >= CAST(?10 AS BIGINT) THEN MAX(created_at) + 1 \
        ELSE CAST(?10 AS BIGINT) END FROM resource_gateways WHERE organization_id = ?1), \
        (SELECT CASE WHEN COALESCE(MAX(created_at), 0) >= CAST(?10 AS BIGINT) THEN MAX(created_at) + 1 \
        ELSE CAST(?10 AS BIGINT) END FROM resource_gateways WHERE organization_id = ?1)) \
        ON CONFLICT DO NOTHING \
        RETURNING created_at";
    /// The gateway of a name.
    NAMED = "SELECT id, name, hostname, enabled, created_at, updated_at, manager_id, manager_instance, owner_id FROM resource_gateways WHERE organization_id = ?1 AND name_key = ?2";
    /// Says whether another gateway has a name.
    NAME_TAKEN = "SELECT id FROM resource_gateways WHERE organization_id = ?1 AND name_key = ?2 AND id <> ?3";
    /// Replaces what can change of a gateway.
    SAVE = "UPDATE resource_gateways SET name = ?3, name_key = ?4, hostname = ?5, enabled = ?6, manager_id = ?7, manager_instance = ?8, owner_id = ?9, updated_at = ?10 WHERE organization_id = ?1 AND id = ?2";
    /// Removes a gateway.
    DELETE = "DELETE FROM resource_gateways WHERE organization_id = ?1 AND id = ?2";
}

fn gateway(row: &Row<'_>) -> Result<Gateway> {
    Ok(Gateway {
        id: GatewayId::from_store(row.get(0)?),
        name: row.get(1)?,
        hostname: row.get(2)?,
        enabled: row.get(3)?,
        created_at: row.get(4)?,
        updated_at: row.get(5)?,
        owner: Owner::read(row, 6)?,
    })
}

/// Returns a gateway.
///
/// Errors: `NotFound` for an unknown, a deleted and another organization's gateway alike.
pub fn get(ctx: &mut OperationContext<'_>, id: &GatewayId) -> Result<Gateway> {
    let org = ctx.org();
    ctx.query_opt(&GET, params![org, id.as_str()], gateway)?
        .ok_or_else(|| Error::not_found("resource gateway"))
}

/// Returns the gateway that has a name, upper and lower case alike.
pub fn named(ctx: &mut OperationContext<'_>, name: &str) -> Result<Option<Gateway>> {
    let (org, key) = (ctx.org(), name_key(name));
    ctx.query_opt(&NAMED, params![org, key], gateway)
}

/// Says whether an id that a definition may name is a gateway of the organization.
pub fn exists(ctx: &mut OperationContext<'_>, id: Option<&str>) -> Result<bool> {
    let org = ctx.org();
    match id {
        Some(id) => Ok(ctx.query_opt(&GET, params![org, id], |_| Ok(()))?.is_some()),
        None => Ok(false),
    }
}

/// Returns at most `limit` gateways that were made after an instant, the oldest first.
pub fn list(ctx: &mut OperationContext<'_>, after: Timestamp, limit: i64) -> Result<Vec<Gateway>> {
    let org = ctx.org();
    ctx.query(&LIST, params![org, after, limit], gateway)
}

/// Stores a new gateway and sets the instant at which it was made.
///
/// Errors: `AlreadyExists` when the name is taken.
pub fn insert(ctx: &mut OperationContext<'_>, gateway: &mut Gateway) -> Result<()> {
    let (org, key) = (ctx.org(), name_key(&gateway.name));
    let [manager, instance, owner] = gateway.owner.columns();
    let made = ctx.query_opt(
        &INSERT,
        params![
            org,
            gateway.id.as_str(),
            gateway.name.as_str(),
            key,
            gateway.hostname.as_str(),
            gateway.enabled,
            manager,
            instance,
            owner,
            gateway.created_at,
        ],
        |row| row.get::<Timestamp>(0),
    )?;
    gateway.created_at = made.ok_or_else(name_taken)?;
    gateway.updated_at = gateway.created_at;
    Ok(())
}

/// Returns the refusal of a name that another one has.
pub fn name_taken() -> Error {
    Error::new(
        Code::AlreadyExists,
        "a resource gateway of this name exists already",
    )
}

/// Stores what changed of a gateway.
///
/// Errors: `AlreadyExists` when a new name is taken.
pub fn save(ctx: &mut OperationContext<'_>, gateway: &Gateway, renamed: bool) -> Result<()> {
    let (org, id, key) = (ctx.org(), gateway.id.as_str(), name_key(&gateway.name));
    if renamed
        && ctx
            .query_opt(&NAME_TAKEN, params![org, key.as_str(), id], |_| Ok(()))?
            .is_some()
    {
        return Err(name_taken());
    }
    let [manager, instance, owner] = gateway.owner.columns();
    ctx.queue(
        &SAVE,
        params![
            org,
            id,
            gateway.name.as_str(),
            key,
            gateway.hostname.as_str(),
            gateway.enabled,
            manager,
            instance,
            owner,
            gateway.updated_at,
        ],
    )
}

/// Removes a gateway that no resource names.
pub fn delete(ctx: &mut OperationContext<'_>, id: &GatewayId) -> Result<()> {
    let org = ctx.org();
    ctx.queue(&DELETE, params![org, id.as_str()])
}
