//! Managed configuration: what the programs of an organization's machines may do, released, rolled back and
//! watched (specification §4.4, §2.8; D8).
//!
//! ```text
//! profile  active ⇄ archived              (archived: nothing changes; the last release is still delivered)
//! release  active → superseded            (append-only; a rollback is a new release with an old content)
//! machine  pending → applied → verified   → pending at the next release
//!          * → failed | drifted → applied
//! ```
//!
//! INVARIANT MC-1: a release never changes; what is signed anew of it says only what its profile says today.
//! INVARIANT MC-2: the versions of a profile are 1, 2, 3 … without a gap, and its current release is the last.
//! INVARIANT MC-3: a preview writes nothing, and refuses what its performance would refuse.
//! INVARIANT MC-4: what a preview says would change is exactly what the performance changes (R19).
//! INVARIANT MC-5: a hidden value stands in no preview, difference, listing, event, audit entry and refusal.
//! INVARIANT MC-6: nothing is released that its target's program refuses or leaves out, as far as it was asked and the schemas say.
//! INVARIANT MC-7: what is delivered is signed, and signed for this profile of this organization.
//! INVARIANT MC-8: of a machine's drift somebody is told once until it heals.
//! INVARIANT MC-9: values in the clear leave the store for callers who hold `managed_config:pull`, which nobody has
//! without naming it, for devices to which such a caller gave the profile (DC-2), and for no other; an upgrade gives it, once, to
//! accounts that could fetch before.
//! INVARIANT MC-10: the audit log names who fetched values in the clear, once for each principal, profile and hour,
//! before they are sent.
//! INVARIANT MC-11: about a machine only the account or the device reports to which it belongs; what another one says has no
//! effect, and an event tells of it.
//! INVARIANT MC-12: the digest of a content, which tells whether a guess at a hidden value is right, goes to callers
//! who hold `managed_config:pull`, and to devices with a release that hides nothing from them; answers to others, events and audit
//! entries have a keyed one.
//!
//! Absent on purpose: holds on a rollout and percentages (nothing sets them yet; D8.1 leaves room), groups of
//! machines (`affected.groups` is 0), migrations of old contents (there is one schema version), deletion of
//! releases (any retained release can be restored), the program's own adoption of what a machine holds (D8.12).

mod archive;
mod changes;
mod content;
mod content_of_release;
mod create;
pub(crate) mod current;
mod diff_releases;
mod difference;
mod digest;
mod drift;
mod ends;
pub mod fences;
mod forget_target;
mod get;
mod get_release;
mod lines;
mod list;
mod list_releases;
mod list_targets;
pub(crate) mod machines;
mod manifest;
pub mod model;
mod plan;
mod publish;
mod pulls;
pub(crate) mod redact;
pub(crate) mod report;
mod rollback;
mod secret_words;
pub(crate) mod store;
pub mod targets;
mod told;
mod update;
mod upgrade;
mod views;

pub use drift::watch_targets;

use provost_kernel::area::{Area, Check, every};
use provost_kernel::auth::{Role, Toolset, scope};
use provost_kernel::migrations;
use provost_kernel::operation::Entry;

/// The area.
pub static AREA: Area = Area {
    toolsets: &[Toolset {
        place: 9,
        name: "managed_config",
        says: "Configuration that machines take: profiles, releases, rollbacks.",
        title: "Managed configuration",
        holds: "configuration profiles and their releases",
    }],
    scopes: &[
        scope("managed_config:read").readers(),
        scope("managed_config:write"),
        // Whoever pulls gets values in the clear.
        scope("managed_config:pull")
            .says("Fetch configuration with its secret values, as machines do")
            .by_name(&[Role::Admin, Role::Operator, Role::Auditor]),
        scope("managed_config:rollback")
            .says("Put machines back to an earlier configuration")
            .held_by(&[Role::Operator]),
    ],
    operations,
    fences: Some(&fences::FENCES),
    migrations: &migrations![
        "0005_managed_config",
        "0019_managed_config_pull",
        "0031_client_versions"
    ],
    statements: &[
        store::STATEMENTS,
        machines::STATEMENTS,
        pulls::STATEMENTS,
        upgrade::STATEMENTS,
    ],
    rights: ends::RIGHTS,
    retakings: ends::RETAKINGS,
    records: &[
        (
            "managed_config_contents",
            "named by the digests in signed releases",
        ),
        (
            "managed_config_pulls",
            "hours of which the audit log knows who fetched",
        ),
    ],
    testimonies: &[&fences::PROFILES],
    timers: &[every(60, "targets", |kernel, _| {
        Box::pin(async move { watch_targets(&kernel).await.map(drop) })
    })],
    prepare: Some(upgrade::give_pull),
    check: Check::Nothing("releases are signed, and contents are named by their digests"),
    guides: &[provost_kernel::guide!("managed-config", "Managed configuration")],
    floor: 3,
    ..Area::named(
        "managed_config",
        "Managed configuration of machines: released, rolled back and watched",
    )
};

fn operations() -> Vec<Entry> {
    vec![
        Entry::of::<list::ListProfiles>(),
        Entry::of::<create::CreateProfile>(),
        Entry::of::<get::GetProfile>(),
        Entry::of::<update::UpdateProfile>(),
        Entry::of::<archive::ArchiveProfile>(),
        Entry::of::<archive::RestoreProfile>(),
        Entry::of::<list_releases::ListReleases>(),
        Entry::of::<publish::Publish>(),
        Entry::of::<get_release::GetRelease>(),
        Entry::of::<content_of_release::GetContent>(),
        Entry::of::<diff_releases::DiffReleases>(),
        Entry::of::<rollback::Rollback>(),
        Entry::of::<current::GetCurrent>(),
        Entry::of::<report::Report>(),
        Entry::of::<list_targets::ListTargets>(),
        Entry::of::<forget_target::ForgetTarget>(),
    ]
}

/// The scope that shows values in the clear and lets its holder report; no role holds it that does not name it (ADR 0048).
pub(crate) const PULL: &str = "managed_config:pull";

/// The roles that read managed configuration.
pub(crate) const READERS: &[provost_kernel::auth::Role] = {
    use provost_kernel::auth::Role::{Admin, Auditor, Operator};
    &[Admin, Operator, Auditor]
};
