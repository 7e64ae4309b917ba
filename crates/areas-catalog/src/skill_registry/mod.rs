//! The skill registry: skills, their versions, and who has installed them (specification §4.7; D10).
//!
//! ```text
//! item     available → withdrawn
//! version  available → withdrawn         (its content never changes)
//! install  installed → pending_cleanup → removed
//!              ↑ installing again at the same place
//! token    live → revoked | expired      (one live token for an install)
//! ```
//!
//! INVARIANT SK-1: a version's content never changes, and its digest, its archive and its signature agree.
//! INVARIANT SK-2: what was withdrawn is neither installed nor handed out, and its content is not published again
//! under the same item.
//! INVARIANT SK-3: an uninstall forgets the installs and revokes every gateway token of (principal, item) in one
//! transaction; after its answer none of them is accepted.
//! INVARIANT SK-4: an install in use has at most one gateway token that is not revoked; one that is not in use has
//! none.
//! INVARIANT SK-5: a principal has one install of an item in one place, and nobody touches another's.
//! INVARIANT SK-6: a gateway token's secret stands in one answer and in no row; rows hold its MAC (D2.3).
//! INVARIANT SK-7: a gateway token works while its principal does, for its own item, in operations that say so.
//! INVARIANT SK-8: a gateway token ends with what it came by: the session or the token of an account that was
//! revoked, the client that was blocked, the identity link that was taken away or held; it outlives their expiry, and
//! a rotation.
//!
//! INVARIANT SK-9: every name that a skill was ever published with (its own, that of its `SKILL.md`, that of its folder) means
//! it in events and definitions for as long as the item is there, withdrawn or not; publishing adds names and takes none
//! away. A name that two skills have means both.
//!
//! An uninstall that names a version removes the installs of that version. The tokens go all the same (D10.6):
//! installs that remain get a new one by being installed again. What was withdrawn is answered with 409, not 404:
//! its holders shall learn that they have to remove it.
//!
//! Absent on purpose: undoing a withdrawal; uninstalling for somebody else; build metadata in versions; the removal
//! of contents, which are evidence of what was handed out.

mod content;
mod credentials;
mod ends;
pub mod fences;
pub(crate) mod find;
mod get;
mod inputs;
mod install;
mod install_store;
mod list;
mod list_installs;
mod list_versions;
mod maintenance;
pub mod model;
mod publish;
pub mod reference;
mod report_removed;
pub(crate) mod store;
mod uninstall;
pub mod version;
mod withdraw;
mod words;

pub use credentials::FORM;

use provost_kernel::announcement::Subscriber;
use provost_kernel::area::{Area, Check};
use provost_kernel::auth::{Toolset, scope};
use provost_kernel::migrations;
use provost_kernel::operation::Entry;
use provost_kernel::{OperationContext, Result};

/// The area.
pub static AREA: Area = Area {
    toolsets: &[Toolset {
        place: 11,
        name: "registry",
        says: "Skills: published, installed, withdrawn.",
        title: "Skill registry",
        holds: "skills",
    }],
    scopes: &[
        scope("registry:read").readers(),
        scope("registry:write"),
        scope("registry:install")
            .says("Install and remove skills in your name")
            .everybody()
            .lasting(),
    ],
    schemes: &[&credentials::GatewayTokens],
    operations,
    fences: Some(&fences::FENCES),
    migrations: &migrations!["0006_skill_registry", "0028_skill_words", "0061_skill_digests"],
    statements: &[
        store::STATEMENTS,
        words::STATEMENTS,
        install_store::STATEMENTS,
        credentials::STATEMENTS,
        maintenance::STATEMENTS,
        ends::STATEMENTS,
    ],
    rights: ends::RIGHTS,
    retakings: ends::RETAKINGS,
    records: &[("skill_contents", "named by the digests in signed manifests")],
    check: Check::Find(|tx, _| maintenance::broken_invariants(tx)),
    on: &[
        &Subscriber(ends::principal_ended),
        &Subscriber(ends::token_revoked),
        &Subscriber(ends::sessions_ended),
    ],
    restore: Some(maintenance::revoke_every_token),
    guides: &[provost_kernel::guide!("skills", "The skill registry")],
    floor: 4,
    ..Area::named(
        "skill_registry",
        "Skills, their versions, and who has installed them",
    )
};

fn operations() -> Vec<Entry> {
    vec![
        Entry::of::<list::ListSkillRegistryItems>(),
        Entry::of::<publish::PublishSkillRegistryItem>(),
        Entry::of::<get::GetSkillRegistryItem>(),
        Entry::of::<list_versions::ListSkillRegistryVersions>(),
        Entry::of::<withdraw::WithdrawSkillRegistryItem>(),
        Entry::of::<content::GetSkillRegistryContent>(),
        Entry::of::<content::GetSkillRegistryManifest>(),
        Entry::of::<install::InstallSkillRegistryItem>(),
        Entry::of::<uninstall::UninstallSkillRegistryItem>(),
        Entry::of::<list_installs::ListSkillInstalls>(),
        Entry::of::<list_installs::ListOwnSkillInstalls>(),
        Entry::of::<report_removed::ReportSkillInstallRemoved>(),
    ]
}

/// Says whether an item of this id is there and not withdrawn.
pub fn is_offered(ctx: &mut OperationContext<'_>, id: &str) -> Result<bool> {
    store::is_offered(ctx, id)
}
