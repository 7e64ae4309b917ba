//! Whose hands were on a record, as the log says it.
//!
//! ```text
//!   the index of acts by which somebody can be whom another made them: record ─ hand ─ time
//!     ada  ada  ada  ada  bob  bob  carl        one look for each hand, however often it acted
//!     ▲                   ▲         ▲
//! ```

use provost_kernel::db::Tx;
use provost_kernel::error::Error;
use provost_kernel::{Result, Timestamp, params, statements};

/// LIMIT: hands on one record since an instant; beyond it nobody can say whose they are.
const MOST: usize = 256;
/// LIMIT: hands on one record that are looked at, whenever they acted. Ours. Keeps AL-5.
const MOST_READ: usize = 1_024;

/// The acts that count, as the index of them spells them: what has another text here finds no index. By the one who did one of them
/// a record is what it is: accounts, what acts as an account, users, and imports of users. Of each kind of record there are no others
/// among them, so that nobody has to say which of them count of a record.
macro_rules! acts {
    () => {
        "'applyHeadlessDirectoryImport', 'createHeadlessDirectoryUser', 'createHeadlessIdentityLink', 'createHeadlessMcpClient', \
         'createHeadlessServiceAccount', 'createHeadlessWorkloadTrust', 'directory.import.continued', 'enableHeadlessServiceAccount', \
         'openHeadlessDirectoryImport', 'reactivateHeadlessDirectoryUser', 'rotateHeadlessServiceAccountToken', \
         'sendHeadlessDirectoryImportChunk', 'updateHeadlessDirectoryUser', 'updateHeadlessMcpClient', 'updateHeadlessServiceAccount', \
         'updateHeadlessWorkloadTrust'"
    };
}

/// Returns the acts that count, for what has to know them all: each in quotes, with a comma between two.
pub const ACTS: &str = acts!();

/// The next hand behind one, of the acts on a record.
macro_rules! next {
    ($behind:literal) => {
        concat!(
            "(SELECT e.actor_id FROM audit_entries e WHERE e.organization_id = ?1 AND e.target_id = ?2 AND e.decision = 'allowed' AND \
             e.action IN (",
            acts!(),
            ") AND e.actor_id > ",
            $behind,
            " ORDER BY e.actor_id LIMIT 1)"
        )
    };
}

statements! {
    /// Whose hands were on a record, each once, and when each acted last: whoever acts often costs nothing more, and pushes nobody else out.
    /// Whether somebody acted since an instant is no part of it: PostgreSQL would read every act to say it.
    HANDS = concat!(
        "WITH RECURSIVE hand (id, place) AS (SELECT ", next!("''"), ", 1 UNION ALL SELECT ", next!("hand.id"),
        ", hand.place + 1 FROM hand WHERE hand.id IS NOT NULL AND hand.place < 1025) \
         SELECT hand.id, (SELECT e.time FROM audit_entries e WHERE e.organization_id = ?1 AND e.target_id = ?2 AND \
         e.decision = 'allowed' AND e.action IN (", acts!(), ") AND e.actor_id = hand.id ORDER BY e.time DESC LIMIT 1) \
         FROM hand WHERE hand.id IS NOT NULL ORDER BY hand.id LIMIT 1025"
    );
}

/// Returns whose hands were ever on a record, sorted: who did one of the acts that count, but for the record itself, as an account that has
/// its own token follow itself.
///
/// Errors: `Unavailable` when they are too many to say it.
/// Cost: one statement, which looks twice for each hand, however often it acted.
pub fn hands_on(tx: &mut Tx<'_>, organization: &str, target: &str) -> Result<Vec<String>> {
    hands_since(tx, organization, target, Timestamp::from_ms(0))
}

/// Returns whose hands were on a record since an instant, sorted.
///
/// Errors: `Unavailable` when they are too many to say it.
/// Cost: one statement, which looks twice for each hand, however often it acted.
pub fn hands_since(
    tx: &mut Tx<'_>,
    organization: &str,
    target: &str,
    since: Timestamp,
) -> Result<Vec<String>> {
    let found = tx.query(&HANDS, params![organization, target], |row| {
        Ok((row.get::<String>(0)?, row.get::<Timestamp>(1)?))
    })?;
    let read = found.len();
    let hands = found
        .into_iter()
        .filter(|(hand, last)| *last >= since && hand != target);
    let hands: Vec<String> = hands.map(|(hand, _)| hand).collect();
    if hands.len() > MOST || read > MOST_READ {
        return Err(Error::unavailable(
            "too many have changed one record for the server to say who stands behind it",
        ));
    }
    Ok(hands)
}
