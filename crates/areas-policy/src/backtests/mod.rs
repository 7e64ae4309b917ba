//! Backtests: what other policies would have decided on the recorded past (specification §3, §4.5, §4.9, §2.8;
//! D9).
//!
//! ```text
//! queued ─▶ running ─▶ succeeded | failed | canceled          queued ─▶ canceled
//! ```
//!
//! INVARIANT BT-1: a run ends in one terminal state, and an ended run is never written again.
//! INVARIANT BT-2: every state that is not terminal accepts cancel; on a canceled run it changes nothing.
//! INVARIANT BT-3: the counters of a run never decrease.
//! INVARIANT BT-4: of several workers of a run the last to claim it counts; what the others write is refused.
//! INVARIANT BT-5: the same sets over the same data have the same result digest, however often and wherever the work
//! was interrupted; results that were cut by duration have none.
//! INVARIANT BT-6: what a run judges was pinned when it was made.
//! INVARIANT BT-7: a run writes its own rows alone: no decision, no policy, nothing live.
//! INVARIANT BT-8: a run whose sets differ in policies that read content is made, and what came of it is read, with
//! the scope `policies:inspect` alone; others see totals, where none of them is small, and of the progress the
//! percentage alone.
//! INVARIANT BT-9: what a run asked is kept as long as its audit entry, for admins and auditors.
//! INVARIANT BT-10: a run that could not read some of its events is partial and names where they lie; one that could
//! not read more than 1 % of them has failed, and a gate of the command line wants none.
//!
//! Absent on purpose: `canceling` (it would last milliseconds), results that outlive their record, notifications of
//! progress (a poll with `If-None-Match` costs one indexed read), a run's own copy of the events.

mod body;
mod cancel;
mod create;
mod definitions;
mod engine;
pub mod fences;
mod get;
mod list;
pub mod model;
mod question;
mod results;
mod samples;
mod sight;
mod sources;
mod store;
mod view;
mod worker;

pub use engine::at_work;
pub use worker::start;

use provost_kernel::area::{Area, Check};
use provost_kernel::auth::Role::{self, Admin, Auditor, Operator, Viewer};
use provost_kernel::auth::scope;
use provost_kernel::migrations;
use provost_kernel::operation::Entry;
use provost_kernel::{Error, OperationContext, Result, SureTime};

/// The roles that read policies and what is made of them.
const READERS: &[Role] = &[Admin, Operator, Auditor, Viewer];
/// The roles that run backtests.
const RUNNERS: &[Role] = &[Admin, Operator];

/// The area.
pub static AREA: Area = Area {
    scopes: &[
        scope("policies:backtest")
            .says("Run policies against recorded history")
            .held_by(&[Role::Operator]),
        // Whoever inspects asks recorded content one question after the other.
        scope("policies:inspect")
            .says("Run policies that read recorded content, and see what they find in it")
            .by_name(&[Role::Operator]),
    ],
    operations,
    fences: Some(&fences::FENCES),
    migrations: &migrations!["0010_backtests"],
    statements: &[store::STATEMENTS],
    records: &[
        ("backtest_checkpoints", "where a run goes on"),
        ("backtest_questions", "what a run was asked"),
        ("backtest_results", "what a run found"),
        ("backtests", "runs, which change nothing that lives"),
    ],
    start: Some(|kernel, supervisor| worker::start(kernel, supervisor).map_err(Error::internal)),
    check: Check::Nothing("a run names its data by digest and changes nothing that lives"),
    prune: Some(prune),
    guides: &[provost_kernel::guide!("backtests", "Backtests")],
    floor: 6,
    ..Area::named(
        "backtests",
        "What other policies would have decided on the recorded past",
    )
};

fn operations() -> Vec<Entry> {
    vec![
        Entry::of::<create::CreateBacktest>(),
        Entry::of::<list::ListBacktests>(),
        Entry::of::<get::GetBacktest>(),
        Entry::of::<cancel::CancelBacktest>(),
        Entry::of::<samples::ListSamples>(),
        Entry::of::<definitions::GetDefinitions>(),
    ]
}

/// Forgets what came of the runs of every organization whose time is over (D9.5).
pub fn prune(ctx: &mut OperationContext<'_>, now: SureTime) -> Result<()> {
    store::prune(ctx, now)
}
