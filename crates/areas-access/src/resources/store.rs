//! All SQL of resources.
//!
//! Keeps RS-3.

use super::model::{Protocol, Resource, ResourceId};
use super::ownership::Owner;
use provost_kernel::db::Row;
use provost_kernel::error::{Code, Error, Result};
use provost_kernel::text::name_key;
use provost_kernel::{OperationContext, Timestamp, params, statements};
use provost_policy::match_key;

statements! {
    /// One resource.
    GET = "SELECT id, name, access_name, protocol, upstream_host, upstream_port, upstream_tls, upstream_ca_pem, enabled, transparent_routing, gateway_id, created_at, updated_at, manager_id, manager_instance, owner_id FROM resources WHERE organization_id = ?1 AND id = ?2";
    /// A page of resources, the oldest first. No two are made at one instant, so an instant is a place in the list.
    LIST = "SELECT id, name, access_name, protocol, upstream_host, upstream_port, upstream_tls, upstream_ca_pem, \
        enabled, transparent_routing, gateway_id, created_at, updated_at, manager_id, manager_instance, \
        owner_id \
        FROM resources \
        WHERE organization_id = ?1 AND created_at > ?2 ORDER BY created_at, id LIMIT ?3";
    /// Makes a resource at an instant that no other has, unless its name is taken.
    INSERT = "INSERT INTO resources (organization_id, id, name, name_key, access_name, protocol, upstream_host, \
        upstream_port, upstream_tls, upstream_ca_pem, enabled, transparent_routing, gateway_id, manager_id, \
        manager_instance, owner_id, name_match, created_at, updated_at) \
        VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16, ?18, \
        (SELECT CASE WHEN COALESCE(MAX(created_at), 0) >= CAST(?17 AS BIGINT) THEN MAX(created_at) + 1 \
        ELSE CAST(?17 AS BIGINT) END FROM resources WHERE organization_id = ?1), \
        (SELECT CASE WHEN COALESCE(MAX(created_at), 0) >= CAST(?17 AS BIGINT) THEN MAX(created_at) + 1 \
        ELSE CAST(?17 AS BIGINT) END FROM resources WHERE organization_id = ?1)) \
        ON CONFLICT DO NOTHING \
        RETURNING created_at";
    /// The resource of a name.
    NAMED = "SELECT id, name, access_name, protocol, upstream_host, upstream_port, upstream_tls, upstream_ca_pem, enabled, transparent_routing, gateway_id, created_at, updated_at, manager_id, manager_instance, owner_id FROM resources WHERE organization_id = ?1 AND name_key = ?2";
    /// Says whether another resource has a name.
    NAME_TAKEN = "SELECT id FROM resources WHERE organization_id = ?1 AND name_key = ?2 AND id <> ?3";
    /// Replaces what can change of a resource.
    SAVE = "UPDATE resources \
        SET name = ?3, name_key = ?4, protocol = ?5, upstream_host = ?6, upstream_port = ?7, \
        upstream_tls = ?8, upstream_ca_pem = ?9, enabled = ?10, transparent_routing = ?11, gateway_id = ?12, \
        manager_id = ?13, manager_instance = ?14, owner_id = ?15, updated_at = ?16, name_match = ?17 \
        WHERE organization_id = ?1 AND id = ?2";
    /// Removes a resource.
    DELETE = "DELETE FROM resources WHERE organization_id = ?1 AND id = ?2";
    /// How many resources a gateway has.
    COUNT_BY_GATEWAY = "SELECT COUNT(*) FROM resources WHERE organization_id = ?1 AND gateway_id = ?2";
}

fn resource(row: &Row<'_>) -> Result<Resource> {
    let protocol = Protocol::parse(row.str(3)?);
    Ok(Resource {
        id: ResourceId::from_store(row.get(0)?),
        name: row.get(1)?,
        access_name: row.get(2)?,
        protocol: protocol.ok_or_else(|| Error::internal("resources.protocol is not a protocol"))?,
        upstream_host: row.get(4)?,
        upstream_port: row.get(5)?,
        upstream_tls: row.get(6)?,
        upstream_ca_pem: row.get(7)?,
        enabled: row.get(8)?,
        transparent_routing: row.get(9)?,
        gateway_id: row.get(10)?,
        created_at: row.get(11)?,
        updated_at: row.get(12)?,
        owner: Owner::read(row, 13)?,
    })
}

/// Returns a resource.
///
/// Errors: `NotFound` for an unknown, a deleted and another organization's resource alike.
pub fn get(ctx: &mut OperationContext<'_>, id: &ResourceId) -> Result<Resource> {
    let org = ctx.org();
    ctx.query_opt(&GET, params![org, id.as_str()], resource)?
        .ok_or_else(|| Error::not_found("resource"))
}

/// Returns the resource that has a name, upper and lower case alike.
pub fn named(ctx: &mut OperationContext<'_>, name: &str) -> Result<Option<Resource>> {
    let (org, key) = (ctx.org(), name_key(name));
    ctx.query_opt(&NAMED, params![org, key], resource)
}

/// Returns at most `limit` resources that were made after an instant, the oldest first.
pub fn list(ctx: &mut OperationContext<'_>, after: Timestamp, limit: i64) -> Result<Vec<Resource>> {
    let org = ctx.org();
    ctx.query(&LIST, params![org, after, limit], resource)
}

/// Stores a new resource and sets the instant at which it was made.
///
/// Errors: `AlreadyExists` when the name is taken.
pub fn insert(ctx: &mut OperationContext<'_>, resource: &mut Resource) -> Result<()> {
    let (org, key) = (ctx.org(), name_key(&resource.name));
    let [manager, instance, owner] = resource.owner.columns();
    let made = ctx.query_opt(
        &INSERT,
        params![
            org,
            resource.id.as_str(),
            resource.name.as_str(),
            key,
            resource.access_name.as_str(),
            resource.protocol.as_str(),
            resource.upstream_host.as_str(),
            resource.upstream_port,
            resource.upstream_tls,
            resource.upstream_ca_pem.as_deref(),
            resource.enabled,
            resource.transparent_routing,
            resource.gateway_id.as_deref(),
            manager,
            instance,
            owner,
            resource.created_at,
            match_key(&resource.name),
        ],
        |row| row.get::<Timestamp>(0),
    )?;
    resource.created_at = made.ok_or_else(name_taken)?;
    resource.updated_at = resource.created_at;
    Ok(())
}

/// Returns the refusal of a name that another one has.
pub fn name_taken() -> Error {
    Error::new(Code::AlreadyExists, "a resource of this name exists already")
}

/// Stores what changed of a resource.
///
/// Errors: `AlreadyExists` when a new name is taken.
pub fn save(ctx: &mut OperationContext<'_>, resource: &Resource, renamed: bool) -> Result<()> {
    let (org, id, key) = (ctx.org(), resource.id.as_str(), name_key(&resource.name));
    if renamed
        && ctx
            .query_opt(&NAME_TAKEN, params![org, key.as_str(), id], |_| Ok(()))?
            .is_some()
    {
        return Err(name_taken());
    }
    let [manager, instance, owner] = resource.owner.columns();
    ctx.queue(
        &SAVE,
        params![
            org,
            id,
            resource.name.as_str(),
            key,
            resource.protocol.as_str(),
            resource.upstream_host.as_str(),
            resource.upstream_port,
            resource.upstream_tls,
            resource.upstream_ca_pem.as_deref(),
            resource.enabled,
            resource.transparent_routing,
            resource.gateway_id.as_deref(),
            manager,
            instance,
            owner,
            resource.updated_at,
            match_key(&resource.name),
        ],
    )
}

/// Removes a resource that has no credentials.
pub fn delete(ctx: &mut OperationContext<'_>, id: &ResourceId) -> Result<()> {
    let org = ctx.org();
    ctx.queue(&DELETE, params![org, id.as_str()])
}

/// Returns how many resources a gateway has.
pub fn count_by_gateway(ctx: &mut OperationContext<'_>, gateway: &str) -> Result<i64> {
    let org = ctx.org();
    let count = ctx.query_opt(&COUNT_BY_GATEWAY, params![org, gateway], |row| row.get(0))?;
    Ok(count.unwrap_or(0))
}
