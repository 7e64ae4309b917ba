//! Whose hands were on a record, as the log says it.

use provost_kernel::db::Tx;
use provost_kernel::error::Error;
use provost_kernel::{Result, Timestamp, params, statements};

/// LIMIT: hands on one record; beyond it nobody can say whose they are.
const MOST: usize = 256;
/// LIMIT: acts of others on one record that are looked at. Ours: one an hour for eleven years. Keeps AL-5.
const MOST_ACTS: i64 = 100_000;

statements! {
    /// Who did one of some acts on a record, each once, and how often: whoever acts often pushes nobody else out, and the record itself,
    /// as an account that has its own token follow itself, pushes out nobody either.
    HANDS = "SELECT a.actor_id, COUNT(*) FROM (SELECT actor_id FROM audit_entries WHERE organization_id = ?1 AND target_id = ?2 AND decision = 'allowed' AND action IN (?3, ?4, ?5, ?6) AND time >= ?7 AND actor_id <> ?2 LIMIT 100001) a GROUP BY a.actor_id ORDER BY a.actor_id LIMIT 257";
}

/// Returns who ever did one of these acts on a record, sorted.
///
/// Errors: `Unavailable` when they, or their acts, are too many to say it.
/// Cost: one statement, which reads the entries of the record.
pub fn hands_on(tx: &mut Tx<'_>, organization: &str, target: &str, acts: [&str; 4]) -> Result<Vec<String>> {
    hands_since(tx, organization, target, acts, Timestamp::from_ms(0))
}

/// Returns who did one of these acts on a record since an instant, sorted.
///
/// Errors: `Unavailable` when they, or their acts, are too many to say it.
/// Cost: one statement, which reads the entries of the record.
pub fn hands_since(
    tx: &mut Tx<'_>,
    organization: &str,
    target: &str,
    acts: [&str; 4],
    since: Timestamp,
) -> Result<Vec<String>> {
    let [one, two, three, four] = acts;
    let values = params![organization, target, one, two, three, four, since];
    let counted = tx.query(&HANDS, values, |row| {
        Ok((row.get::<String>(0)?, row.get::<i64>(1)?))
    })?;
    let acts: i64 = counted.iter().map(|(_, acts)| acts).sum();
    if counted.len() > MOST || acts > MOST_ACTS {
        return Err(Error::unavailable(
            "too many have changed one record for the server to say who stands behind it",
        ));
    }
    Ok(counted.into_iter().map(|(hand, _)| hand).collect())
}
