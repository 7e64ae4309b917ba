//! How automation behaves in an organization: one document, of which single members are changed, or all of it.
//!
//! An organization without a row is in the factory state. Other areas ask [`load`] inside their own
//! transaction, so that a change acts from the next request on.
//!
//! INVARIANT SE-1: every stored setting lies within its published bounds.
//! INVARIANT SE-2: a member that a document lacks, such as one of a later version, has its factory value.
//! INVARIANT SE-3: every changed member stands in the audit entry with its value before and after.
//!
//! INVARIANT SE-4: a shorter retention is confirmed and acts after 7 days; until then a longer one takes it back.
//! INVARIANT SE-5: no change of the settings resets a member that it does not name.
//! INVARIANT SE-6: nobody gives everybody a role by a setting who could not give it to one, and no setting gives more than `member`.
//! INVARIANT SE-7: no change of the settings has silence retire devices sooner than before where that was not confirmed; where nobody said
//! anything, it does so after 90 days.
//! INVARIANT SE-8: hooks of devices let nothing pass that they denied before, whatever their registration says, and tell no less, by a
//! setting, and no device works without the approval that they asked for, unless that was confirmed; all of what is confirmed is said.
//! INVARIANT SE-9: people are shown again that were pseudonyms, and names of machines that were hidden, and names of projects are collected,
//! and prompts, arguments and results told of calls that machines judge, only where that was confirmed; pseudonyms never stand beside names
//! of machines and of projects.
//!
//! INVARIANT SE-10: where an act is named for two people, every change of the settings needs a second one, and none is stored by which
//! nobody could say yes to the next.
//!
//! Specification §4.10; D2.4, D2.10, D4.8, D5, D13.
//!
//! Absent on purpose: retention of anything but the history. Audit entries are not pruned yet and events have one
//! fixed term (D13), so a value would promise what nothing keeps; members may be added later (D1.12).

mod approvals;
mod ends;
pub mod fences;
mod fleet;
mod get;
mod hooks;
mod model;
mod patch;
mod privacy;
mod put;
mod store;
#[cfg(test)]
mod tests;
mod write;

pub use approvals::{ActOfTwo, Approvals};
pub use fleet::{Fleet, FleetEnrolment, QuarantineAction, SelfEnrol};
pub use hooks::{FleetHooks, HookMode, HookRecording, Judging, OnUnknown};
pub use model::{
    DefaultRole, Directory, History, LlmGateway, ManagedConfig, Policies, Retention, Settings, Tokens,
};
pub use privacy::{HostNames, People, Privacy, ProjectNames, Prompts, ToolArguments};

pub use store::read;

use provost_kernel::announcement::Announcement;
use provost_kernel::area::{Area, Check};
use provost_kernel::auth::{Toolset, scope};
use provost_kernel::db::Tx;
use provost_kernel::migrations;
use provost_kernel::operation::Entry;
use provost_kernel::{OperationContext, Result};

/// The area.
pub static AREA: Area = Area {
    toolsets: &[Toolset {
        place: 15,
        name: "automation_settings",
        says: "How automation behaves in the organization.",
        title: "Settings",
        holds: "the settings of the organization",
    }],
    scopes: &[
        scope("automation_settings:read").readers(),
        scope("automation_settings:write").lasting(),
    ],
    operations,
    fences: Some(&fences::FENCES),
    migrations: &migrations!["0003_settings"],
    statements: &[store::STATEMENTS],
    rights: ends::RIGHTS,
    retakings: ends::RETAKINGS,
    check: Check::Nothing(
        "a value out of its bounds cannot be read, and a member that is missing has its factory value",
    ),
    floor: 1,
    ..Area::named("settings", "How automation behaves in an organization")
};

fn operations() -> Vec<Entry> {
    vec![
        Entry::of::<get::Get>(),
        Entry::of::<put::Put>(),
        Entry::of::<patch::Patch>(),
    ]
}

/// Returns the settings of the caller's organization.
pub fn load(ctx: &mut OperationContext<'_>) -> Result<Settings> {
    let org = ctx.org();
    of(&mut ctx.tx(), org)
}

/// What the settings say of acts that need two people is another; whoever decides about approvals refuses it where nobody could say yes
/// to the next change.
pub struct ActsOfTwoChanged;

impl Announcement for ActsOfTwoChanged {
    const IS_DECISIVE: bool = true;
}

/// Has no act need a second person any more: what an operator does where nobody is left who could say yes.
pub fn lift_acts_of_two(ctx: &mut OperationContext<'_>) -> Result<()> {
    let before = write::before(ctx)?;
    let mut after = before.settings().clone();
    after.approvals = Approvals::default();
    write::change(ctx, before, after, true).map(drop)
}

/// Returns the settings of an organization, outside of operations.
pub fn of(tx: &mut Tx<'_>, org: &str) -> Result<Settings> {
    Ok(store::get(tx, org)?
        .map(|stored| stored.settings)
        .unwrap_or_default())
}
