//! Which profiles of managed configuration and which skills devices get, and how a device gets them by an identity of its own.
//!
//! ```text
//! admin ── assign, unassign ──► (device, profile)        one profile for each program; gone with the device
//! admin ── assign, unassign ──► (device, skill)          the latest version; gone with the device
//! device ── its skills ──► versions ──► signed listing, archive ──► files of its person
//! device ── its profiles ──► versions ──► the release, signed ──► files ──► report: a machine of the profile by the device's id
//! ```
//!
//! The way of machine accounts (`managed_config`, with a token of `managed_config:pull`) stays for servers.
//!
//! INVARIANT DC-1: a device gets a profile or a skill only while the word of somebody stands, said of this device, who could write
//! managed configuration or skills; nothing that a device says, is called or is labelled with decides it.
//! INVARIANT DC-2: a release with hidden values goes to a device only where somebody who held `managed_config:pull` gave it the
//! profile, and to no device that is quarantined.
//! INVARIANT DC-3: a device has one profile for each program.
//! INVARIANT DC-4: about a device's profile the device alone reports, and what it reports changes nothing that anybody gets.
//!
//! A word does not end with whoever said it, as a release does not: an organization decided it, and the log names who did.
//!
//! Absent on purpose: assignment by labels, groups or owners. Whoever labels a machine would decide what it reads (labels decide
//! nothing, ADR 0114); who assigns many names them. Not there yet: rings, several profiles that are composed, versions of
//! skills that stay, other clients than Claude Code.

mod assign;
mod ends;
pub mod fences;
mod list;
mod own;
mod report;
mod skills;
mod store;
mod unassign;

use provost_areas_fleet::fleet::DeviceRetired;
use provost_kernel::OperationContext;
use provost_kernel::announcement::Subscriber;
use provost_kernel::area::{Area, Check};
use provost_kernel::error::Result;
use provost_kernel::migrations;
use provost_kernel::operation::Entry;

/// The area.
pub static AREA: Area = Area {
    operations,
    fences: Some(&fences::FENCES),
    migrations: &migrations!["0041_assignments", "0042_device_skills"],
    statements: &[store::STATEMENTS, skills::store::STATEMENTS],
    rights: ends::RIGHTS,
    retakings: ends::RETAKINGS,
    on: &[&Subscriber(device_retired)],
    check: Check::Nothing(
        "devices, profiles and skills are held by foreign keys, and what a device gets is looked at when it asks",
    ),
    floor: 5,
    ..Area::named("assignments", "Which profiles and skills devices get")
};

fn operations() -> Vec<Entry> {
    vec![
        Entry::of::<list::ListProfileDevices>(),
        Entry::of::<assign::AssignProfile>(),
        Entry::of::<unassign::UnassignProfile>(),
        Entry::of::<own::ListDeviceProfiles>(),
        Entry::of::<own::GetDeviceProfile>(),
        Entry::of::<report::ReportDeviceProfile>(),
        Entry::of::<skills::assign::ListSkillDevices>(),
        Entry::of::<skills::assign::AssignSkill>(),
        Entry::of::<skills::assign::UnassignSkill>(),
        Entry::of::<skills::own::ListDeviceSkills>(),
        Entry::of::<skills::own::GetDeviceSkill>(),
        Entry::of::<skills::own::GetDeviceSkillContent>(),
    ]
}

/// Takes every profile and every skill away from a device that is retired, in the same unit.
fn device_retired(ctx: &mut OperationContext<'_>, retired: &DeviceRetired) -> Result<()> {
    for given in store::of_device(ctx, &retired.id)? {
        store::remove(ctx, &retired.id, &given.profile_id)?;
    }
    skills::store::remove_all(ctx, &retired.id)
}
