//! All SQL of the area.

use super::model::Settings;
use provost_kernel::db::Tx;
use provost_kernel::{Error, OperationContext, Result, Timestamp, params};

provost_kernel::statements! {
    /// Returns the document of an organization.
    GET = "SELECT document, updated_at FROM automation_settings WHERE organization_id = ?1";
    /// Replaces it.
    PUT = "INSERT INTO automation_settings (organization_id, document, updated_at) VALUES (?1, ?2, ?3) ON CONFLICT (organization_id) DO UPDATE SET document = excluded.document, updated_at = excluded.updated_at";
}

/// The document of an organization, as a column of a statement that finds it by a condition on `$alias`.
#[macro_export]
macro_rules! settings_where {
    ($alias:literal, $condition:literal) => {
        concat!(
            "(SELECT ",
            $alias,
            ".document FROM automation_settings ",
            $alias,
            " WHERE ",
            $condition,
            ")"
        )
    };
}

/// Settings that were set.
pub(super) struct StoredSettings {
    pub settings: Settings,
    pub updated_at: Timestamp,
}

/// Returns the settings of a stored document.
///
/// Errors: `Internal` for a document that is none.
pub fn read(document: &str) -> Result<Settings> {
    serde_json::from_str(document).map_err(Error::internal)
}

/// Returns what was set, if anything was.
pub(super) fn get(tx: &mut Tx<'_>, org: &str) -> Result<Option<StoredSettings>> {
    tx.query_opt(&GET, params![org], |row| {
        Ok(StoredSettings {
            settings: read(row.str(0)?)?,
            updated_at: row.get(1)?,
        })
    })
}

/// Replaces what was set.
pub(super) fn put(ctx: &mut OperationContext<'_>, stored: &StoredSettings) -> Result<()> {
    let org = ctx.org();
    let document = serde_json::to_string(&stored.settings).map_err(Error::internal)?;
    ctx.execute(&PUT, params![org, document, stored.updated_at])
        .map(drop)
}
