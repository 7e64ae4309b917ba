//! Violations: decisions that did not simply allow, what became of them, and what their subjects say of them.
//!
//! ```text
//! history ── look ─────────────► violations, newest first ── one with its attributes
//!    └── chunk by chunk, once ─► counts of days, by policy, subject and tool ── groups
//! subject of a decision ── "this stop is wrong", once ──► a number of its policies, and words for admins and auditors
//! ```
//!
//! A violation is no record of its own: it is an event of the history whose decision is another than `allow`, or that passed by somebody's approval.
//!
//! INVARIANT VI-1: an event is a violation exactly when its decision is another than `allow` or it passed by an approval, and each has one outcome,
//! which follows from its action, its mode and whether an approval was used.
//! INVARIANT VI-2: each chunk of the history is counted once: the unit of work that counts it notes its number, and one that finds
//! another number than it began with counts nothing. What was never counted is a number in every answer with counts.
//! INVARIANT VI-3: counts are answered from numbers that are kept, and what they cannot answer exactly is refused.
//! INVARIANT VI-4: of a decision its subject alone says something, once; of another's, of one that is not there and of what is no
//! violation the refusal is the same.
//! INVARIANT VI-5: whoever reads violations may read decisions: the scope of policies alone shows nobody what people did.
//! INVARIANT VI-6: whoever may give feedback sees of the history the decisions by which they themselves were stopped, without what was asked and
//! without what only marked a call, and of anybody else's no more than that there are some, by where a page ends.
//! INVARIANT VI-7: each violation says on what it rests where that was noted: on policies, on the standing of an MCP server, whose key is beside it, on
//! an approval, or on why a device could not judge for certain.
//!
//! Absent on purpose: an outcome `failed`, since nobody tells of it (an agent that cannot judge writes nothing down, and a policy that could not be
//! evaluated decides with its own action), so that its number would be 0 whatever happened; the server of inventory behind a call, which no
//! recorded decision says; approvals that devices use, which use none: the server decides and records the call that passes, once; policies in
//! monitor mode that would have acted, which are not recorded; counts by device and by two things at once; an event
//! or a message when somebody says something; changing or taking back what was said.

mod count;
mod feedback;
pub mod fences;
mod get;
mod groups;
mod list;
mod model;
mod own;
mod store;
mod view;

pub use count::count_days;

use provost_kernel::announcement::Subscriber;
use provost_kernel::area::{Area, Check, now_and_every};
use provost_kernel::auth::Role::{Auditor, Member, Operator, Viewer};
use provost_kernel::auth::scope;
use provost_kernel::migrations;
use provost_kernel::operation::Entry;

/// The area.
pub static AREA: Area = Area {
    scopes: &[scope("policies:feedback")
        .says("Say that a decision about yourself was wrong")
        .held_by(&[Operator, Auditor, Viewer, Member])],
    operations,
    fences: Some(&fences::FENCES),
    migrations: &migrations!["0040_violations"],
    statements: &[store::STATEMENTS],
    records: &[
        ("violation_days", "how often something was decided"),
        ("violation_feedback", "what was said decides nothing"),
        ("violation_feedback_policies", "what was said decides nothing"),
        ("violation_heads", "numbers of chunks"),
    ],
    timers: &[now_and_every(60, "violation-days", |kernel, _| {
        Box::pin(async move { count_days(&kernel).await })
    })],
    on: &[&Subscriber(store::principal_ended)],
    check: Check::Find(store::broken_invariants),
    guides: &[provost_kernel::guide!(
        "violations",
        "Violations: see what was stopped"
    )],
    floor: 4,
    ..Area::named("violations", "Decisions that did not simply allow")
};

fn operations() -> Vec<Entry> {
    vec![
        Entry::of::<list::List>(),
        Entry::of::<own::ListOwn>(),
        Entry::of::<get::Get>(),
        Entry::of::<feedback::Give>(),
    ]
}
