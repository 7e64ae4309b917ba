//! Judging on devices: what a device judges by, and what it says that it judged (F4.6, F4.10).
//!
//! ```text
//!   server   live policies, people of the device, settings ─► bundle, signed ─► the device, for itself
//!   device   an event ─► a verdict by the bundle ─► a chain of entries ─► here: history, under `device:<id>`
//! ```
//!
//! What a device says is what a device says. It is kept and shown as that, it can make a verdict of a condition on the past stronger,
//! and it makes nothing weaker: it decides nothing here, uses no approval, and is the past of no user but the device's own.
//!
//! INVARIANT DJ-1: a bundle is given to its device alone, while that is active, and names no user but its owner, no further than the word
//! of whoever named the owner goes.
//! INVARIANT DJ-2: the numbers of bundles never go back within an epoch of the store, and whoever has the newest one hears so without it.
//! INVARIANT DJ-3: entries of a device are taken once, in their order and without a gap, together with the events that they tell of; what
//! does not follow is refused with the place from which to go on.
//! INVARIANT DJ-4: no entry of a device is an event of another user or account of the organization than its own, whatever it names and
//! whoever has the name later, and none that may be anybody's puts the past of others in doubt.
//! INVARIANT DJ-5: what devices tell of the past makes no verdict weaker than it would be without.
//! INVARIANT DJ-6: a device tells so much a day and no more; what it refused or asked an approval for has room of its own, and what has none
//! is refused by name and stays where it is.
//! INVARIANT DJ-7: no device gets anything to judge by, and none begins to tell what it judged, where the settings of its organization do not
//! switch that on; one that told before may tell the rest, which no condition on the past looks at then.
//! INVARIANT DJ-8: of what devices only counted every backtest says how much it is, since no event of it can be judged again.
//! INVARIANT DJ-9: with a device that is retired goes what it counted, and with a deleted person what was counted of them; what a quarantined
//! or a retired device told is no past.
//! INVARIANT DJ-10: of prompts, and of what tools are given and bring, no byte is kept that a device tells and that the settings of its
//! organization do not have told; it is missing, and an event that lacks what its policies read is not said to be judged otherwise.
//!
//! Absent on purpose: bundles in the store (they follow from what is there); trust in what a device says of itself; a second judgement of
//! what it left parts of out; a finding for a device that judges otherwise (an entry and an event tell of it).

mod again;
mod bundle;
mod counts;
mod denied;
mod ends;
mod entries;
pub mod fences;
mod report;
mod room;
mod store;
mod taking;

pub use denied::denied_servers;
pub use store::{counted as counted_on_devices, tells as device_tells};

use provost_kernel::announcement::{Answers, Subscriber};
use provost_kernel::area::{Area, Check};
use provost_kernel::migrations;
use provost_kernel::operation::Entry;

/// The area.
pub static AREA: Area = Area {
    operations,
    fences: Some(&fences::FENCES),
    migrations: &migrations![
        "0046_device_decisions",
        "0047_device_decision_counts",
        "0051_device_decision_days",
        "0052_device_decision_room",
        "0053_device_decision_ends"
    ],
    statements: &[store::STATEMENTS],
    records: &[
        (
            "device_decision_chains",
            "how far a device has told what it judged",
        ),
        ("device_decision_counts", "how often something passed"),
        (
            "device_decision_days",
            "how often something passed on devices, by days",
        ),
    ],
    on: &[
        &Subscriber(ends::device_retired),
        &Subscriber(ends::principal_ended),
        &Answers(bundle::newest),
        &Answers(ends::kept),
        &Answers(ends::told),
    ],
    prune: Some(store::prune),
    check: Check::Find(store::broken_invariants),
    floor: 5,
    ..Area::named(
        "device_judging",
        "What devices judge by, and what they say that they judged",
    )
};

fn operations() -> Vec<Entry> {
    vec![
        Entry::of::<bundle::GetPolicyBundle>(),
        Entry::of::<report::ReportDecisions>(),
        Entry::of::<counts::ListDecisionCounts>(),
    ]
}
