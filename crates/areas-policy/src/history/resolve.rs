//! Whom and what an event names: words become ids, and groups are those of the directory (decisions, imports and receivers
//! alike).
//!
//! Keeps WD-5.

use super::IncomingEvent;
use provost_areas_identity::words::{self, Counts, Kind, UnresolvedReason, WordQuery};
use provost_kernel::{OperationContext, Result};
use provost_policy::{Register, claim};

/// Puts the ids of records in place of the words that mean one, and the groups that a user is in now in place of what the
/// caller sent. Returns what the words mean, for whoever judges the events.
///
/// What stays as it was sent, and which groups a user has whom nobody knows, says `provost_policy::SentAttributes`; what means
/// nothing or several is counted.
///
/// Cost: as [`words::register`], whatever the number of events.
pub fn resolve(ctx: &mut OperationContext<'_>, events: &mut [IncomingEvent]) -> Result<Register> {
    let (org, now) = (ctx.org(), ctx.now());
    let register = words::register(&mut ctx.tx(), org, &asked(events), now)?;
    count(ctx, &register, events);
    apply(&register, events);
    Ok(register)
}

/// As [`resolve`], of events that nobody meets: nothing is counted.
pub fn meaning(ctx: &mut OperationContext<'_>, events: &mut [IncomingEvent]) -> Result<Register> {
    let (org, now) = (ctx.org(), ctx.now());
    let register = words::register(&mut ctx.tx(), org, &asked(events), now)?;
    apply(&register, events);
    Ok(register)
}

/// Returns the words of events.
pub(super) fn asked(events: &[IncomingEvent]) -> WordQuery {
    let mut asked = WordQuery::default();
    for event in events {
        for kind in Kind::ALL {
            event.words(kind).for_each(|word| asked.add(kind, word));
        }
        // What they are if the user is unknown.
        let groups = event.words(Kind::Group);
        groups.for_each(|group| asked.add(Kind::Group, &claim(group)));
    }
    asked
}

/// Puts in place what the register says.
pub(super) fn apply(register: &Register, events: &mut [IncomingEvent]) {
    for event in events {
        event.name(register);
    }
}

/// Counts what is not resolved, once for each event and kind.
fn count(ctx: &OperationContext<'_>, register: &Register, events: &[IncomingEvent]) {
    let counts = Counts::of(ctx.services());
    for event in events {
        let is_known = event
            .words(Kind::User)
            .any(|word| register.meant(Kind::User.field(), word).len() == 1);
        for kind in Kind::ALL {
            if kind == Kind::Group && is_known {
                // What is claimed of them does not count.
                continue;
            }
            let mut means = event
                .words(kind)
                .map(|word| register.meant(kind.field(), word).len());
            let why = means.find_map(|records| match records {
                0 => Some(UnresolvedReason::Unknown),
                1 => None,
                _ => Some(UnresolvedReason::Ambiguous),
            });
            if let Some(why) = why {
                counts.count(ctx.organization(), ctx.now(), kind, why);
            }
        }
    }
}
