//! Who stands behind an account: the people who can have its tokens by what they did.
//!
//! INVARIANT SA-13: behind an account stand its owner and whoever made it, gave it a token, changed or enabled it; in the place of an
//! account who stands behind that one.

use provost_areas_platform::audit;
use provost_kernel::db::Tx;
use provost_kernel::error::{Error, Result};
use provost_kernel::{params, statements};
use std::collections::BTreeSet;

/// LIMIT: accounts that are followed. Ours: beyond it nobody is said to stand behind nothing.
const MOST: usize = 256;
/// What begins the id of an account.
const PREFIX: &str = "sa_";
/// The acts by which somebody can have a token of an account.
const ACTS: [&str; 4] = [
    "createHeadlessServiceAccount",
    "rotateHeadlessServiceAccountToken",
    "updateHeadlessServiceAccount",
    "enableHeadlessServiceAccount",
];

statements! {
    /// The owner of an account, also of a deleted one.
    OWNER = "SELECT owner_console_user_id FROM service_accounts WHERE organization_id = ?1 AND id = ?2";
}

/// Returns the ids of the users who stand behind an account, whether they act now or not.
///
/// Keeps SA-13. Errors: `Unavailable` when too many accounts stand behind one another to say it.
/// Cost: three statements for each account.
pub fn people_behind(tx: &mut Tx<'_>, organization: &str, account: &str) -> Result<BTreeSet<String>> {
    let mut people = BTreeSet::new();
    let mut seen = BTreeSet::from([account.to_owned()]);
    let mut open = vec![account.to_owned()];
    while let Some(id) = open.pop() {
        let owner = tx.query_opt(&OWNER, params![organization, id.as_str()], |row| {
            row.get::<Option<String>>(0)
        })?;
        people.extend(owner.flatten());
        for hand in audit::hands_on(tx, organization, &id, ACTS)? {
            if !hand.starts_with(PREFIX) {
                people.insert(hand);
            } else if seen.insert(hand.clone()) {
                open.push(hand);
            }
        }
        if seen.len() > MOST {
            return Err(Error::unavailable(
                "too many service accounts made one another for the server to say who stands behind this one",
            ));
        }
    }
    Ok(people)
}
