//! Who did it: names become ids, and groups are those of the directory (contract: decisions, imports and receivers
//! alike).

use super::Incoming;
use crate::areas::directory::{self, People};
use provost_kernel::{Cx, Result};
use std::collections::HashSet;

/// Puts the ids of users in place of their login names and addresses, and the groups that they are in now in place of
/// what the caller sent. The groups of a user whom the directory does not know stay as they were sent; where nothing
/// was sent they are missing. Without a user there are no groups, whatever was sent.
///
/// Cost: two statements, whatever the number of events; none where no event has a user.
pub fn resolve(cx: &mut Cx<'_>, events: &mut [Incoming]) -> Result<()> {
    let org = cx.org();
    let words: HashSet<&str> = events.iter().filter_map(Incoming::user).collect();
    let people = directory::people(&mut cx.tx(), org, &words)?;
    apply(&people, events);
    Ok(())
}

/// Puts in place what the directory says of these people.
pub(super) fn apply(people: &People, events: &mut [Incoming]) {
    for event in events {
        let Some(word) = event.user() else {
            event.have_no_user();
            continue;
        };
        match people.id(word) {
            Some(id) => event.set_user(id, people.groups(id)),
            None => event.miss_groups(),
        }
    }
}
