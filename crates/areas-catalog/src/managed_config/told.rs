//! How much is said of one machine, and what was left out.
//!
//! A machine says by itself where it stands, as often as it likes, and entries of the audit log are for ever. So of its changes so many
//! an hour are entries and events; of those beyond the row is kept, they are counted, and its next report for which there is room says
//! how many they were, also where it says what it said before. The last state of a machine is told in the end: who goes on reporting is
//! heard, and who does not is noticed by that.
//!
//! The counts are the process's. After a restart a state that was not told yet is told with its next change.
//!
//! INVARIANT DC-5: of one machine of a profile at most a bounded number of changes an hour are entries of the audit log that it made by
//! itself, and events, whatever it reports and whatever limits of requests are switched off.

use super::model::ProfileId;
use provost_kernel::OperationContext;
use provost_kernel::rate::Bucket;
use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

/// LIMIT: changes of one machine that are told: so many at once, and then as many an hour. Ours; a machine has one or two in a week.
const TOLD: Bucket = Bucket {
    name: "machine-states",
    burst: 12,
    per_second_num: 12,
    per_second_den: 3600,
};
/// LIMIT: machines of an organization of which it is known how much was left out. Ours; of more of them nobody counts.
const MOST_UNTOLD: usize = 1_000;

/// How many changes of machines were not told, by their organization, and by profile and machine.
#[derive(Default)]
struct Untold(Mutex<BTreeMap<String, BTreeMap<Place, u64>>>);

/// Profile and machine.
type Place = (String, String);

/// Says whether a report is told, and how many changes before it were not: a change is, where there is room, and so is what comes behind
/// changes for which there was none.
pub(super) fn told(
    ctx: &OperationContext<'_>,
    profile: &ProfileId,
    machine: &str,
    is_change: bool,
) -> Option<u64> {
    let (org, services) = (ctx.org(), ctx.services());
    let place = (profile.as_str().to_owned(), machine.to_owned());
    let mut untold = services
        .own(Untold::default)
        .0
        .lock()
        .unwrap_or_else(PoisonError::into_inner);
    let of_organization = untold.get(org);
    let before = of_organization
        .and_then(|own| own.get(&place))
        .copied()
        .unwrap_or(0);
    let has_room = before > 0 || of_organization.is_none_or(|own| own.len() < MOST_UNTOLD);
    if !is_change && before == 0 {
        return None;
    }
    if services.may_tell(&TOLD, &[org, profile.as_str(), machine]) {
        if let Some(own) = untold.get_mut(org) {
            own.remove(&place);
        }
        return Some(before);
    }
    if is_change && has_room {
        let own = untold.entry(org.to_owned()).or_default();
        own.insert(place, before + 1);
    }
    None
}
