//! Whose places in routes somebody has now: the own one, and those of who lent them their vote.

use super::store;
use crate::approvals::model::{Approval, Kind, Party};
use crate::approvals::{rights, routes};
use provost_areas_identity::directory;
use provost_kernel::db::Tx;
use provost_kernel::{Result, Timestamp};

/// The places of one person.
pub struct Seats {
    caller: Party,
    seats: Vec<Seat>,
}

/// The place of one person, of which somebody says the yes.
struct Seat {
    holder: Party,
    groups: Vec<String>,
    /// About what; nothing for everything.
    kinds: Option<Vec<Kind>>,
}

impl Seats {
    /// Returns the places that somebody has now; none where they say no yes.
    ///
    /// Cost: some statements for each who lent them their vote, 20 at most.
    pub fn of(tx: &mut Tx<'_>, org: &str, caller: Party, now: Timestamp) -> Result<Self> {
        let mut seats = Vec::new();
        if caller.is_person() && rights::may_decide(tx, org, &caller)? {
            seats.push(Seat::of(tx, org, caller.clone(), None)?);
            for delegation in store::of_person(tx, org, &caller.id)? {
                let holder = Party::person(delegation.from_user_id.clone());
                if delegation.to_user_id != caller.id || !rights::may_decide(tx, org, &holder)? {
                    continue;
                }
                let mut kinds = Vec::new();
                for kind in &delegation.kinds {
                    if super::holds(tx, org, &delegation, (&holder.id, *kind), now)? {
                        kinds.push(*kind);
                    }
                }
                seats.push(Seat::of(tx, org, holder, Some(kinds))?);
            }
        }
        Ok(Self { caller, seats })
    }

    /// Says whether the caller has a place from which a yes to this can come. Who stands behind who asked is not looked for here.
    pub fn are_asked(&self, approval: &Approval) -> bool {
        let of_kind = |seat: &Seat| {
            seat.kinds
                .as_ref()
                .is_none_or(|kinds| kinds.contains(&approval.kind))
        };
        !approval.concerns(&self.caller)
            && self.seats.iter().any(|seat| {
                of_kind(seat)
                    && !approval.concerns(&seat.holder)
                    && routes::lets_one_of(approval.route.as_ref(), &seat.holder, &seat.groups)
            })
    }
}

impl Seat {
    fn of(tx: &mut Tx<'_>, org: &str, holder: Party, kinds: Option<Vec<Kind>>) -> Result<Self> {
        let groups = directory::groups_of(tx, org, &holder.id)?;
        Ok(Self {
            holder,
            groups,
            kinds,
        })
    }
}
