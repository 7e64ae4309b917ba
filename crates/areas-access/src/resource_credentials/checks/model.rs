//! The words of checks.

use crate::resource_credentials::model::CredentialId;
use crate::resources::model::ResourceId;
use provost_kernel::db::Row;
use provost_kernel::error::{Error, Result};
use provost_kernel::{Timestamp, id};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

id!(CheckId, "chk", "Names a check of a credential.");

/// How long a check is kept. Units: seconds.
pub const KEPT_SECS: i64 = 7 * 86_400;

/// How long a check that has not ended is taken to be under way: longer than its job is tried, after which nobody works on it
/// any more. Units: seconds.
pub const OPEN_SECS: i64 = 3_600;

/// How far a check is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(inline)]
pub enum State {
    /// Nobody has answered yet.
    Pending,
    /// The secret was had.
    Succeeded,
    /// It was not; the reason says why.
    Failed,
}

provost_kernel::word! {
    /// Why a secret could not be had.
    pub enum Reason {
        /// Nothing lies at the path, or the member is not there.
        NotFound = "not_found",
        /// The secret manager refuses this server.
        Denied = "denied",
        /// It cannot be reached, or says that it is not ready.
        Unreachable = "unreachable",
        /// It did not answer in time.
        Timeout = "timeout",
        /// It answered something else than a secret.
        InvalidAnswer = "invalid_answer",
        /// The operator does not declare it for this organization any more.
        NotConfigured = "not_configured",
        /// The secret that is kept here does not open.
        NotUnsealed = "not_unsealed",
    }
}

/// A check as it is stored and answered.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(rename = "ResourceCredentialCheck")]
pub struct Check {
    #[serde(rename = "checkId")]
    id: CheckId,
    credential_id: CredentialId,
    /// How far it is.
    pub state: State,
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<Reason>,
    created_at: Timestamp,
    #[serde(skip_serializing_if = "Option::is_none")]
    finished_at: Option<Timestamp>,
}

impl Check {
    /// Reads a row.
    pub fn read(row: &Row<'_>) -> Result<Self> {
        let state = match row.str(2)? {
            "pending" => State::Pending,
            "succeeded" => State::Succeeded,
            "failed" => State::Failed,
            _ => return Err(Error::internal("resource_credential_checks.state is not a state")),
        };
        let reason: Option<String> = row.get(3)?;
        Ok(Self {
            id: CheckId::from_store(row.get(0)?),
            credential_id: CredentialId::from_store(row.get(1)?),
            state,
            reason: reason.as_deref().and_then(Reason::parse),
            created_at: row.get(4)?,
            finished_at: row.get(5)?,
        })
    }
}

/// The path of operations on one check.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[schemars(inline)]
#[expect(
    clippy::struct_field_names,
    reason = "the parameters of the path are called so"
)]
pub struct CheckPath {
    /// The resource.
    pub resource_id: ResourceId,
    /// The credential.
    pub credential_id: CredentialId,
    /// The check.
    pub check_id: CheckId,
}
