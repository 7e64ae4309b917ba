//! Decisions: what an organization's live policies say of an event, now (D9.10, D9.11).
//!
//! ```text
//!   in one snapshot, on a reader     parse ─ names and groups ─ the live set ─ what was recorded since the last look
//!   afterwards, without a snapshot   the past of the subjects ─ judge ─ record ─ answer
//! ```
//!
//! Gateways, hooks and agents ask; they enforce. Nothing here changes a request: obligations say what has to be done.
//!
//! INVARIANT DE-2: an answer names the version of the policy set that made it, which was live in the decision's
//! snapshot, and is what that version decides.
//! INVARIANT DE-3: a decision that says `recorded: true` is on the disk; one that could not be recorded is not given
//! out.
//! INVARIANT DE-4: every event of a request has its decision, at its place; one that cannot be read refuses the whole
//! request.
//! INVARIANT DE-5: what could not be evaluated in a live decision (a failed or stopped module, no time left, a past
//! that is not known yet) counts as matched, with its policy's own action.
//! INVARIANT DE-6: a history condition sees every event of the subject that was committed before the decision's
//! snapshot, on whatever server, every one that its own server had answered as buffered before, and those before it
//! in its request; else its answer is unknown.
//! INVARIANT DE-7: a gateway token decides about the skill that it is bound to, as its own principal, and about
//! nothing else.
//! INVARIANT DE-8: judging, and checking a module, takes no storage thread, and no more threads than the machine has
//! cores.
//! Keeps DE-11: nor all of them for one organization, where there are several (`modules/cores.rs`).
//!
//! What asks for an approval opens a request or passes by one: `approved.rs` and the area `approvals`.
//!
//! Absent on purpose: enforcement and waiting for approvals (who asks does that); an audit entry for each decision (they
//! are history, D9.11); answers for some of the events; SQL (the area has no table).

mod answer;
mod approved;
mod decide;
mod event_windows;
pub mod fences;
mod gateway;
mod judge;
mod observer;
mod trial;
mod trial_case;

pub use event_windows::remember;

use provost_kernel::area::{Area, Check, now_and_every};
use provost_kernel::auth::{Role, scope};
use provost_kernel::operation::Entry;

/// The area.
pub static AREA: Area = Area {
    scopes: &[scope("policies:decide")
        .says("Have requests decided, and recorded as yours")
        .held_by(&[Role::Operator])],
    operations,
    fences: Some(&fences::FENCES),
    timers: &[now_and_every(5, "pasts", |kernel, _| {
        Box::pin(async move { remember(&kernel).await })
    })],
    check: Check::Nothing("it owns no table"),
    guides: &[provost_kernel::guide!("decisions", "Decisions")],
    floor: 6,
    ..Area::named("decisions", "What the live policies say of an event, now")
};

fn operations() -> Vec<Entry> {
    vec![Entry::of::<decide::Decide>(), Entry::of::<trial::TestPolicies>()]
}
