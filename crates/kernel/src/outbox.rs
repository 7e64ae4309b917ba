//! Outgoing events: rows of the mutation's own transaction (D12.2).
//!
//! Delivery to webhooks comes later; `GET …/events` reads the rows. A sequence per organization, taken under
//! the chain head's lock, lets consumers order them. Rows are pruned after seven days.

use crate::auth::OrganizationId;

use crate::db::{Call, Param};
use crate::effects::Event;
use crate::time::Timestamp;

crate::statements! {
    /// Appends an event.
    INSERT = "INSERT INTO outbox (organization_id, sequence, id, type, time, data) VALUES (?1, ?2, ?3, ?4, ?5, ?6)";
    /// How many that removes.
    DUE = unscoped("retention is the installation's") "SELECT COUNT(*) FROM outbox WHERE time < ?1";
    /// How many it leaves, at most `?2`.
    LEFT = unscoped("retention is the installation's") "SELECT COUNT(*) FROM (SELECT 1 FROM outbox WHERE time >= ?1 LIMIT ?2) AS o";
    /// Removes what is older than the retention, of every organization.
    PRUNE = unscoped("retention is the installation's") "DELETE FROM outbox WHERE (organization_id, sequence) IN (SELECT o.organization_id, o.sequence FROM outbox o WHERE o.time < ?1 ORDER BY o.time, o.organization_id, o.sequence LIMIT ?2)";
}

/// How long events can be read. Units: seconds (D13: seven days).
pub const RETENTION_SECS: i64 = 7 * 86_400;

/// Returns the statement that stores an event. Its id is a ULID whose low bits are the sequence.
pub(crate) fn insert(
    organization: &OrganizationId,
    sequence: i64,
    time: Timestamp,
    event: &Event,
) -> Call<'static> {
    Call {
        statement: &INSERT,
        params: vec![
            Param::from(organization.as_str().to_owned()),
            Param::from(sequence),
            Param::from(crate::id::compose(
                "evt",
                time,
                u128::from(sequence.unsigned_abs()),
            )),
            Param::from(event.kind.word()),
            Param::from(time),
            Param::from(event.data.to_string()),
        ],
    }
}
