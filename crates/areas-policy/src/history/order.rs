//! The order of events of one instant: a number that acceptance gives, kept in the event's id.
//!
//! ```text
//!   id = instant (48 bits) · 12 ones · number (51 bits) · mark of the process (17 bits)
//!
//!   number = the greatest of   one more than the last that this process gave to the organization
//!                              one more than the greatest of what was committed before the request's snapshot
//!                              the server's clock
//! ```
//!
//! Whatever reads the history reads it in the order of (instant, event id), and an id never changes. So the order of
//! acceptance is kept through sealing, lists, grouping and backtests, and no reader knows of it.
//!
//! ```text
//!   server A   body 1: numbers 7, 8 ─ commit ─ answer ┐
//!   server B                                          └ body 2: the snapshot knows of 8, so 9, 10, whatever its clock says
//! ```
//!
//! The clock is part of it so that ids do not tell a caller how many events others record. The mark tells the numbers
//! of two processes apart that accept at once.
//!
//! INVARIANT HS-9: of two events of one instant the one that was accepted first is read first: of one body, request
//! or payload the one that stands first, of two the one of that which was answered before the other was sent, on
//! whatever server.
//!
//! Ids from before have 80 bits of chance behind their instant: they keep their order, and new ones of the same instant
//! come behind them (but for one old id of 4 096, which begins with as many ones; ADR 0037).
//!
//! Absent on purpose: a column of its own. Every reader, cursor and cut would have to know it, and events from before
//! would have none.

use super::model::EventId;
use super::store;
use provost_kernel::auth::OrganizationId;
use provost_kernel::db::Tx;
use provost_kernel::entropy::UnitRng;
use provost_kernel::{Error, Kernel, OperationContext, Result, Services, Timestamp};
use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

pub(super) const NUMBER_BITS: u32 = 51;
pub(super) const MARK_BITS: u32 = 17;
/// LIMIT: what the clock may say; behind it as many numbers are left again.
const CLOCK_LIMIT: u64 = (1 << (NUMBER_BITS - 1)) - 1;
/// How many numbers a millisecond has before they run ahead of the clock.
const TICKS: u64 = 1_024;
/// 2020-01-01T00:00:00Z: the clock's part lasts until 2054.
const BEGIN_MS: i64 = 1_577_836_800_000;

/// The numbers that a process gave last.
pub(super) struct Acceptance {
    mark: u32,
    last: Mutex<HashMap<OrganizationId, u64>>,
}

impl Acceptance {
    fn new(rng: &mut UnitRng) -> Self {
        let mut bytes = [0; 4];
        rng.fill(&mut bytes);
        Self {
            mark: u32::from_le_bytes(bytes) & ((1 << MARK_BITS) - 1),
            last: Mutex::default(),
        }
    }

    fn of(services: &Services) -> &Self {
        services.own(|| Self::new(&mut services.rng()))
    }

    fn has_given(&self, organization: &OrganizationId) -> bool {
        let last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        last.contains_key(organization)
    }

    /// Reserves `count` numbers behind `committed` and behind every number that was given before.
    ///
    /// Errors: `Internal` when there are not so many left.
    fn reserve(
        &self,
        organization: &OrganizationId,
        committed: u64,
        now: Timestamp,
        count: usize,
    ) -> Result<Sequence> {
        let clock = u64::try_from(now.as_ms() - BEGIN_MS).unwrap_or(0);
        let clock = clock.saturating_mul(TICKS).min(CLOCK_LIMIT);
        let mut all = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        let last = all.get(organization).copied().unwrap_or(0).max(committed);
        let next = last.saturating_add(1).max(clock);
        let end = next.saturating_add(count as u64);
        if end > 1 << NUMBER_BITS {
            return Err(Error::internal("the numbers of events are used up"));
        }
        all.insert(organization.clone(), end - 1);
        Ok(Sequence {
            next,
            end,
            mark: self.mark,
        })
    }
}

/// Numbers for events that are accepted together, for each in its turn.
#[derive(Debug)]
pub struct Sequence {
    next: u64,
    end: u64,
    mark: u32,
}

impl Sequence {
    /// Returns the id of the next event, which happened at this instant. Units: milliseconds since the Unix epoch.
    ///
    /// Errors: `Internal` when more ids are asked for than were reserved.
    pub fn id(&mut self, at_ms: i64) -> Result<EventId> {
        if self.next == self.end {
            return Err(Error::internal("more events than were accepted"));
        }
        let id = EventId::at(at_ms, self.next, self.mark);
        self.next += 1;
        Ok(id)
    }
}

/// Reserves the places of events whose sender says when they happened.
pub fn accept(ctx: &mut OperationContext<'_>, count: usize) -> Result<Sequence> {
    let org = ctx.org();
    let committed = committed(&mut ctx.tx(), org)?;
    Acceptance::of(ctx.services()).reserve(ctx.organization(), committed, ctx.now(), count)
}

/// Reserves the places of events that happen now. Of these, two servers have none in common but by their clocks, so the
/// store is asked once.
pub fn accept_now(ctx: &mut OperationContext<'_>, count: usize) -> Result<Sequence> {
    if !Acceptance::of(ctx.services()).has_given(ctx.organization()) {
        return accept(ctx, count);
    }
    Acceptance::of(ctx.services()).reserve(ctx.organization(), 0, ctx.now(), count)
}

/// As [`accept`], outside of an operation, with what [`committed`] said.
pub(super) fn accept_behind(
    kernel: &Kernel,
    organization: &OrganizationId,
    committed: u64,
    count: usize,
) -> Result<Sequence> {
    Acceptance::of(kernel).reserve(organization, committed, kernel.clock.now(), count)
}

/// Returns the greatest number of the events that were committed; 0 before the first.
pub(super) fn committed(tx: &mut Tx<'_>, org: &str) -> Result<u64> {
    Ok(store::last_number(tx, org)?.unsigned_abs())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn place(id: &EventId) -> u128 {
        EventId::place(id.as_str()).unwrap()
    }

    #[expect(clippy::needless_pass_by_value, reason = "it is taken once")]
    fn numbers(sequence: Sequence) -> std::ops::Range<u64> {
        sequence.next..sequence.end
    }

    /// Proves HS-9.
    #[test]
    fn numbers_go_up_whatever_the_clock_says() {
        let acceptance = Acceptance::new(&mut UnitRng::new([3; 32]));
        let (acme, other) = (
            OrganizationId::parse("acme").unwrap(),
            OrganizationId::parse("other").unwrap(),
        );
        let at = Timestamp::from_ms(1_795_144_500_000);
        let first = numbers(acceptance.reserve(&acme, 0, at, 5).unwrap());
        assert_eq!(first.end - first.start, 5);
        // The same instant, an earlier one, an instant before all, and one that the clock's bits do not hold.
        for now in [at, at.plus_secs(-3_600), Timestamp::from_ms(0)] {
            let next = numbers(acceptance.reserve(&acme, 0, now, 1).unwrap());
            assert!(next.start > first.end - 1);
        }
        let far = numbers(
            acceptance
                .reserve(&acme, 0, Timestamp::from_ms(i64::MAX), 2)
                .unwrap(),
        );
        assert_eq!(far.start, CLOCK_LIMIT);
        assert_eq!(
            numbers(acceptance.reserve(&acme, 0, at, 2).unwrap()).start,
            far.end
        );
        // What another server committed is behind none of ours.
        let behind = numbers(
            acceptance
                .reserve(&other, first.start + (1 << 40), at, 1)
                .unwrap(),
        );
        assert_eq!(behind.start, first.start + (1 << 40) + 1);
        // The last number there is.
        let last = (1 << NUMBER_BITS) - 2;
        assert_eq!(
            numbers(acceptance.reserve(&other, last, at, 1).unwrap()).start,
            last + 1
        );
        assert!(acceptance.reserve(&other, 0, at, 1).is_err());
    }

    #[test]
    fn a_sequence_gives_no_more_ids_than_were_reserved() {
        let acceptance = Acceptance::new(&mut UnitRng::new([4; 32]));
        let acme = OrganizationId::parse("acme").unwrap();
        let at = 1_795_144_500_000;
        let mut two = acceptance.reserve(&acme, 0, Timestamp::from_ms(at), 2).unwrap();
        let (first, second) = (two.id(at).unwrap(), two.id(at).unwrap());
        assert!(place(&first) < place(&second) && first.as_str() < second.as_str());
        assert!(two.id(at).is_err());
        // The instant comes before the number.
        let mut later = acceptance.reserve(&acme, 0, Timestamp::from_ms(at), 1).unwrap();
        assert!(place(&later.id(at - 1).unwrap()) < place(&first));
    }

    #[test]
    fn new_events_come_behind_those_of_the_same_instant_from_before() {
        let at = 1_795_144_500_000;
        let new = EventId::at(at, 0, 0);
        let mut rng = UnitRng::new([5; 32]);
        let old = (0..1_000).map(|_| provost_kernel::id::mint("hev", Timestamp::from_ms(at), &mut rng));
        let before = old
            .filter(|old| EventId::place(old).unwrap() < place(&new))
            .count();
        assert!(before >= 990, "{before}");
    }
}
