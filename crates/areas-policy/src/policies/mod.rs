//! Policies: four families of definitions, their revisions, and the versions of the set that decides (client contract
//! §3; specification §4.10; D9 and D13).
//!
//! ```text
//!   (nothing) ──create──► live: enabled or not ──delete──► tombstone ──create by its owner──► live, next revision
//!                             │  ▲
//!                             └──┘ update: next revision; claim and release change the owner alone
//! ```
//!
//! Every write that changes which definitions decide makes the next version of the policy set in the same unit of work.
//!
//! INVARIANT PO-1: a version of the policy set never changes: every sequence gives the same definitions for ever.
//! INVARIANT PO-2: sequences of versions have no gap, and a write that leaves the enabled definitions as they are
//! makes none.
//! INVARIANT PO-3: a version's digest is the digest of the set that is compiled from its definitions.
//! INVARIANT PO-4: a definition comes back as the JSON value that was sent, with its source reference.
//! INVARIANT PO-5: a token of a plan is good for the one revision that was planned, by who planned it, as long as every name
//! in it means the same and the compiler is the same; equal plans have equal tokens.
//! INVARIANT PO-6: a stored definition that cannot be read stops every decision of its set; it is never left out.
//! INVARIANT PO-7: a policy of a living Terraform owner is changed by that principal with its labels alone.
//! INVARIANT PO-8: an id names one policy of the organization for ever, whatever its family, deleted or not.
//! INVARIANT PO-9: no policy is made whose id a path cannot carry unchanged; one that exists is read, changed and
//! deleted by its name in the query, and by no other.
//!
//! Keeps PO-10.
//!
//! Absent on purpose: break glass (a person's act in a console, which this server does not have); MCP ACLs as a family
//! of their own (clients write them as content policies); records of agents, products, devices, integrations and MCP
//! servers, so that policies name those as they are written.

mod admission;
mod authority;
mod capabilities;
mod check_rego;
mod collections;
mod compiled;
mod create;
mod delete;
mod ends;
pub mod exceptions;
pub mod fences;
mod gains;
mod get;
mod get_version;
mod inputs;
mod list;
mod list_revisions;
mod list_versions;
mod lost;
mod mentions;
mod model;
mod plan;
mod ports;
mod references;
mod schema;
mod store;
mod unresolved;
mod unseen;
mod update;
mod views;
mod write;

pub use inputs::{AuthoredDefinition, DEFINITION_LIMIT};
pub use model::{Document, FamilyWord};
pub use ports::{
    BoundChange, Change, Live, PolicyChanged, at_sequence, bind, bind_at, family_of, live, stored, version,
    version_at_hand, with_changes,
};
pub use references::violated;
pub use store::ids_no_path_carries;
pub use views::{Warning, warnings};

use collections::{AccessPolicies, Collection, ContentPolicies, ResourcePolicies, SkillAcls};
use provost_kernel::announcement::Answers;
use provost_kernel::area::{Area, Check};
use provost_kernel::auth::{Toolset, scope};
use provost_kernel::migrations;
use provost_kernel::operation::Entry;

/// The area.
pub static AREA: Area = Area {
    toolsets: &[Toolset {
        place: 13,
        name: "policies",
        says: "Policies, their versions and plans, decisions, history and backtests.",
        title: "Policies",
        holds: "policies",
    }],
    scopes: &[scope("policies:read").everybody(), scope("policies:write")],
    operations,
    fences: Some(&fences::FENCES),
    migrations: &migrations!["0008_policies"],
    statements: &[store::STATEMENTS],
    rights: ends::RIGHTS,
    retakings: ends::RETAKINGS,
    testimonies: &[&fences::POLICIES],
    check: Check::Nothing(
        "a version names its definitions by digest, and one that cannot be read stops every decision",
    ),
    notes: Some(ids_no_path_carries),
    on: &[&Answers(mentions::lost), &Answers(mentions::opened_to)],
    guides: &[
        provost_kernel::guide!("policies", "Policies"),
        provost_kernel::guide!("policy-language", "The policy language"),
    ],
    floor: 5,
    ..Area::named(
        "policies",
        "Policies, their revisions, and the versions of the set that decides",
    )
};

fn operations() -> Vec<Entry> {
    let mut all = vec![
        Entry::of::<capabilities::GetCapabilities>(),
        Entry::of::<schema::GetSchema>(),
        Entry::of::<plan::ValidatePlan>(),
        Entry::of::<check_rego::CheckRego>(),
        Entry::of::<list::ListPolicies>(),
        Entry::of::<list_versions::ListVersions>(),
        Entry::of::<get_version::GetVersion>(),
        Entry::of::<list_revisions::ListRevisions>(),
        Entry::of::<authority::get::GetAuthority>(),
        Entry::of::<authority::claim::ClaimAuthority>(),
        Entry::of::<authority::release::ReleaseAuthority>(),
    ];
    all.extend(of_collection::<ContentPolicies>());
    all.extend(of_collection::<AccessPolicies>());
    all.extend(of_collection::<ResourcePolicies>());
    all.extend(of_collection::<SkillAcls>());
    all
}

fn of_collection<C: Collection>() -> [Entry; 4] {
    [
        Entry::of::<create::CreatePolicy<C>>(),
        Entry::of::<get::GetPolicy<C>>(),
        Entry::of::<update::UpdatePolicy<C>>(),
        Entry::of::<delete::DeletePolicy<C>>(),
    ]
}
