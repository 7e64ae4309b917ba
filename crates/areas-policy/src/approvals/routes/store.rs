//! All SQL of routes.

use super::model::Route;
use provost_kernel::db::Tx;
use provost_kernel::error::{Error, Result};
use provost_kernel::{OperationContext, Timestamp, params, statements};

statements! {
    /// The routes of an organization.
    GET = "SELECT document, revision, updated_at FROM approval_routes WHERE organization_id = ?1";
    /// Replaces them.
    PUT = "INSERT INTO approval_routes (organization_id, document, revision, updated_at) VALUES (?1, ?2, ?3, ?4) ON CONFLICT (organization_id) DO UPDATE SET document = excluded.document, revision = excluded.revision, updated_at = excluded.updated_at";
}

/// Routes that somebody wrote.
#[derive(Clone, Debug)]
pub struct StoredRoutes {
    /// They, in the order in which they are looked at.
    pub routes: Vec<Route>,
    /// How often they were written.
    pub revision: i64,
    /// When they were written last.
    pub updated_at: Timestamp,
}

/// Returns what was written, if anything was.
pub fn load(tx: &mut Tx<'_>, org: &str) -> Result<Option<StoredRoutes>> {
    tx.query_opt(&GET, params![org], |row| {
        Ok(StoredRoutes {
            routes: serde_json::from_str(row.str(0)?).map_err(Error::internal)?,
            revision: row.get(1)?,
            updated_at: row.get(2)?,
        })
    })
}

/// Replaces what was written.
pub fn save(ctx: &mut OperationContext<'_>, stored: &StoredRoutes) -> Result<()> {
    let org = ctx.org();
    let document = serde_json::to_string(&stored.routes).map_err(Error::internal)?;
    ctx.execute(&PUT, params![org, document, stored.revision, stored.updated_at])
        .map(drop)
}
