//! Who stands behind an account: the people who can have its tokens by what they did.
//!
//! INVARIANT SA-13: behind an account stand its owner and whoever made it, gave it a token, changed or enabled it, and whoever made or
//! changed what else acts as it (a client, a trust in workloads), and whoever owns a machine that gateways take for it; in the place of
//! an account who stands behind that one.

use provost_areas_platform::audit;
use provost_kernel::db::Tx;
use provost_kernel::error::{Error, Result};
use provost_kernel::{params, statements};
use std::collections::BTreeSet;

/// LIMIT: accounts that are followed. Ours: beyond it nobody is said to stand behind nothing.
const MOST: usize = 256;
/// What begins the id of an account.
const PREFIX: &str = "sa_";
/// What begins the id of a user.
const USER: &str = "usr_";
/// Returns the ids of the records by which something acts as an account, and of the users who hold one. Areas that stand on this one have
/// them.
pub type Doors = fn(&mut Tx<'_>, &str, &str) -> Result<Vec<String>>;

statements! {
    /// The owner of an account, also of a deleted one.
    OWNER = "SELECT owner_console_user_id FROM service_accounts WHERE organization_id = ?1 AND id = ?2";
}

/// Returns the id of the user who owns an account; nothing of an account that nobody owns.
pub fn owner_of(tx: &mut Tx<'_>, organization: &str, account: &str) -> Result<Option<String>> {
    let owner = tx.query_opt(&OWNER, params![organization, account], |row| {
        row.get::<Option<String>>(0)
    })?;
    Ok(owner.flatten())
}

/// Returns the ids of the users who stand behind accounts, whether they act now or not.
///
/// Keeps SA-13. Errors: `Unavailable` when too many accounts stand behind one another to say it.
/// Cost: three statements for each account and two for each of its doors, and those of the doors.
pub fn people_behind(
    tx: &mut Tx<'_>,
    organization: &str,
    parties: &[&str],
    doors: Doors,
) -> Result<BTreeSet<String>> {
    let mut people = BTreeSet::new();
    let (mut seen, mut open) = (BTreeSet::new(), Vec::new());
    for party in parties {
        if party.starts_with(PREFIX) {
            seen.insert((*party).to_owned());
            open.push((*party).to_owned());
        } else {
            people.insert((*party).to_owned());
        }
    }
    while let Some(id) = open.pop() {
        people.extend(owner_of(tx, organization, &id)?);
        let mut hands = audit::hands_on(tx, organization, &id)?;
        for door in doors(tx, organization, &id)? {
            if door.starts_with(USER) {
                people.insert(door);
            } else {
                hands.append(&mut audit::hands_on(tx, organization, &door)?);
            }
        }
        for hand in hands {
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
