//! All SQL of delegations.

use super::model::{Delegation, DelegationId};
use crate::approvals::store::Place;
use provost_kernel::context::PRUNED_ROWS;
use provost_kernel::db::{Row, Tx};
use provost_kernel::error::{Code, Error, Result};
use provost_kernel::{OperationContext, SureTime, Timestamp, params, statements};

/// The columns of a delegation, in the order that [`read`] expects.
macro_rules! columns {
    () => {
        "id, from_user_id, to_user_id, kinds, starts_at, until_at, created_at, ended_at, end_reason"
    };
}

statements! {
    /// One delegation.
    GET = concat!("SELECT ", columns!(), " FROM approval_delegations WHERE organization_id = ?1 AND id = ?2");
    /// A page of delegations, the newest first: their ids say when they were made.
    LIST = concat!("SELECT ", columns!(), " FROM approval_delegations WHERE organization_id = ?1 AND id < ?2 ORDER BY id DESC LIMIT ?3");
    /// The open ones that somebody made, or that are made to them.
    OF_PERSON = concat!("SELECT ", columns!(), " FROM approval_delegations WHERE organization_id = ?1 AND id IN (SELECT id FROM approval_delegations WHERE organization_id = ?1 AND from_user_id = ?2 AND ended_at IS NULL UNION SELECT id FROM approval_delegations WHERE organization_id = ?1 AND to_user_id = ?2 AND ended_at IS NULL) ORDER BY id");
    /// The open ones.
    OPEN = concat!("SELECT ", columns!(), " FROM approval_delegations WHERE organization_id = ?1 AND ended_at IS NULL ORDER BY id");
    /// Adds one.
    INSERT = "INSERT INTO approval_delegations (organization_id, id, from_user_id, to_user_id, kinds, starts_at, until_at, created_at) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)";
    /// Ends one that is open.
    END = "UPDATE approval_delegations SET ended_at = ?3, end_reason = ?4 WHERE organization_id = ?1 AND id = ?2 AND ended_at IS NULL";
    /// Those that are open behind a place, of every organization.
    OPEN_OF_ALL = unscoped("the sweep works for every organization") "SELECT organization_id, id FROM approval_delegations WHERE ended_at IS NULL AND (organization_id, id) > (?1, ?2) ORDER BY organization_id, id LIMIT 1000";
    /// Those behind a place whose time has run out, of every organization.
    OVERDUE = unscoped("the sweep works for every organization") "SELECT organization_id, id FROM approval_delegations WHERE ended_at IS NULL AND until_at <= ?3 AND (organization_id, id) > (?1, ?2) ORDER BY organization_id, id LIMIT 1000";
    /// Forgets what ended long ago.
    FORGET = unscoped("retention is the same for every organization") "DELETE FROM approval_delegations WHERE (organization_id, id) IN (SELECT organization_id, id FROM approval_delegations WHERE ended_at < ?1 ORDER BY ended_at LIMIT ?2)";
}

fn read(row: &Row<'_>) -> Result<Delegation> {
    Ok(Delegation {
        id: DelegationId::from_store(row.get(0)?),
        from_user_id: row.get(1)?,
        to_user_id: row.get(2)?,
        kinds: serde_json::from_str(row.str(3)?).map_err(Error::internal)?,
        from: row.get(4)?,
        until: row.get(5)?,
        created_at: row.get(6)?,
        ended_at: row.get(7)?,
        end_reason: row.get(8)?,
    })
}

/// Returns a delegation, if it is there.
pub fn find(tx: &mut Tx<'_>, org: &str, id: &DelegationId) -> Result<Option<Delegation>> {
    tx.query_opt(&GET, params![org, id.as_str()], read)
}

/// Returns a delegation.
///
/// Errors: `NotFound` for an unknown one and one of another organization alike.
pub fn get(ctx: &mut OperationContext<'_>, id: &DelegationId) -> Result<Delegation> {
    let org = ctx.org();
    find(&mut ctx.tx(), org, id)?.ok_or_else(|| Error::not_found("delegation"))
}

/// Returns delegations before a place of the list, the newest first.
pub fn list(ctx: &mut OperationContext<'_>, before: &str, limit: i64) -> Result<Vec<Delegation>> {
    let org = ctx.org();
    ctx.query(&LIST, params![org, before, limit], read)
}

/// Returns the open delegations that somebody made, and those that are made to them.
pub fn of_person(tx: &mut Tx<'_>, org: &str, user: &str) -> Result<Vec<Delegation>> {
    tx.query(&OF_PERSON, params![org, user], read)
}

/// Returns the open delegations.
pub fn open(ctx: &mut OperationContext<'_>) -> Result<Vec<Delegation>> {
    let org = ctx.org();
    ctx.query(&OPEN, params![org], read)
}

/// Adds a delegation.
pub fn insert(ctx: &mut OperationContext<'_>, delegation: &Delegation) -> Result<()> {
    let org = ctx.org();
    let kinds = serde_json::to_string(&delegation.kinds).map_err(Error::internal)?;
    let values = params![
        org,
        delegation.id.as_str(),
        delegation.from_user_id.as_str(),
        delegation.to_user_id.as_str(),
        kinds,
        delegation.from,
        delegation.until,
        delegation.created_at,
    ];
    ctx.execute(&INSERT, values).map(drop)
}

/// Stores the end of a delegation that was open.
///
/// Errors: `Conflict` when it has ended by now; nothing is stored then.
pub fn end(ctx: &mut OperationContext<'_>, delegation: &Delegation) -> Result<()> {
    let org = ctx.org();
    let values = params![
        org,
        delegation.id.as_str(),
        delegation.ended_at,
        delegation.end_reason.as_deref(),
    ];
    if ctx.execute(&END, values)? == 1 {
        return Ok(());
    }
    Err(Error::new(
        Code::Conflict,
        "the delegation changed in the meantime; look at it and try again",
    ))
}

fn place(row: &Row<'_>) -> Result<Place> {
    Ok((row.get(0)?, row.get(1)?))
}

/// Returns the next open delegations behind a place, a thousand at most; none once there are no more.
pub fn open_of_all(tx: &mut Tx<'_>, (organization, id): &Place, _: Timestamp) -> Result<Vec<Place>> {
    tx.query(&OPEN_OF_ALL, params![organization.as_str(), id.as_str()], place)
}

/// Returns the next delegations behind a place whose time has run out, a thousand at most; none once there are no more.
pub fn overdue(tx: &mut Tx<'_>, (organization, id): &Place, now: Timestamp) -> Result<Vec<Place>> {
    tx.query(&OVERDUE, params![organization.as_str(), id.as_str(), now], place)
}

/// Forgets delegations of every organization that ended before.
pub fn forget(ctx: &mut OperationContext<'_>, before: SureTime) -> Result<()> {
    ctx.prune(&FORGET, params![before.instant(), PRUNED_ROWS])
}
