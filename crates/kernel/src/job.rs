//! A durable job as a unit of work enqueues it; who runs it, [`crate::jobs`] says.

use crate::auth::OrganizationId;
use crate::db::{Call, Param};
use crate::entropy::UnitRng;
use crate::id::TypedId;
use crate::time::Timestamp;
use serde_json::Value;

crate::id!(JobId, "job", "A durable job.");

crate::statements! {
    /// Stores a job.
    INSERT = "INSERT INTO jobs (organization_id, id, kind, payload, run_at, attempts, lease_until, lease_epoch, state, last_error, created_at) VALUES (?1, ?2, ?3, ?4, ?5, 0, NULL, 0, 'queued', NULL, ?6)";
}

/// A job to be enqueued.
#[derive(Clone, Debug)]
pub struct NewJob {
    /// Which handler runs it.
    pub kind: &'static str,
    /// What it is about: ids, no secrets.
    pub payload: Value,
    /// Not before.
    pub run_at: Timestamp,
}

impl NewJob {
    pub(crate) fn insert(&self, organization: &OrganizationId, id: &JobId, now: Timestamp) -> Call<'static> {
        Call {
            statement: &INSERT,
            params: vec![
                Param::from(organization.as_str().to_owned()),
                Param::from(id.as_str().to_owned()),
                Param::from(self.kind),
                Param::from(self.payload.to_string()),
                Param::from(self.run_at),
                Param::from(now),
            ],
        }
    }
}

/// Returns a new job id; used by the writer only.
pub(crate) fn mint(now: Timestamp, rng: &mut UnitRng) -> JobId {
    JobId::mint(now, rng)
}
