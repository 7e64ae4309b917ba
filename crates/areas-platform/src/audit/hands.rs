//! Whose hands were on a record, as the log says it.

use provost_kernel::db::Tx;
use provost_kernel::{Result, Timestamp, params, statements};

/// LIMIT: acts on one record that are looked at, besides the first one. Keeps AL-5.
const LATEST: usize = 256;

statements! {
    /// Who did one of some acts on a record first.
    FIRST_HAND = "SELECT actor_id FROM audit_entries WHERE organization_id = ?1 AND target_id = ?2 AND decision = 'allowed' AND action IN (?3, ?4, ?5, ?6) ORDER BY seq LIMIT 1";
    /// Who did one of some acts on a record, the latest first.
    LATEST_HANDS = "SELECT actor_id FROM audit_entries WHERE organization_id = ?1 AND target_id = ?2 AND decision = 'allowed' AND action IN (?3, ?4, ?5, ?6) ORDER BY seq DESC LIMIT 256";
    /// Who did one of some acts on a record since an instant, the latest first.
    HANDS_SINCE = "SELECT actor_id FROM audit_entries WHERE organization_id = ?1 AND target_id = ?2 AND decision = 'allowed' AND action IN (?3, ?4, ?5, ?6) AND time >= ?7 ORDER BY seq DESC LIMIT 256";
}

/// Returns who did one of these acts on a record: the first of them, and the latest.
///
/// Cost: two statements, which read the entries of the record.
pub fn hands_on(tx: &mut Tx<'_>, organization: &str, target: &str, acts: [&str; 4]) -> Result<Vec<String>> {
    let [one, two, three, four] = acts;
    let mut hands = Vec::with_capacity(LATEST);
    for statement in [&FIRST_HAND, &LATEST_HANDS] {
        let found = tx.query(
            statement,
            params![organization, target, one, two, three, four],
            |row| row.get::<Option<String>>(0),
        )?;
        hands.extend(found.into_iter().flatten());
    }
    hands.sort_unstable();
    hands.dedup();
    Ok(hands)
}

/// Returns who did one of these acts on a record since an instant.
///
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
    let found = tx.query(&HANDS_SINCE, values, |row| row.get::<Option<String>>(0))?;
    let mut hands: Vec<String> = found.into_iter().flatten().collect();
    hands.sort_unstable();
    hands.dedup();
    Ok(hands)
}
