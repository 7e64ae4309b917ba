//! What devices have configured: MCP servers by their identity, skills, extensions, and in which kinds of files credentials lie.
//!
//! ```text
//! device ── report ──► section of a client and an account ──► observations ──► servers (by key), assets (by kind and key)
//!                      complete: replaces it; with faults: adds to it
//! admin ── standing ──► server: shadow ⇄ approved (until an instant) ⇄ denied
//! ```
//!
//! A name decides nothing: a server is its key (crate `inventory` makes it), two of one name are two, and one under two names is one.
//! What is configured is not what is used, and every answer says how old its data are.
//!
//! INVARIANT IN-1: a report changes what is known of the device that sends it and of no other, and it is taken from that device alone; what
//! nobody had before is listed under the name that its first device has for it, and that name decides nothing.
//! INVARIANT IN-2: nothing that is absent from a section with faults is removed.
//! INVARIANT IN-3: a scan that its device counted before the last one that was taken changes nothing, and its answer says so and from
//! where on to count; no clock of a device decides which scan is the later one.
//! INVARIANT IN-4: no report changes the standing of a server that is known, and what is new is shadow, or built into its client by its
//! key; neither a name nor a second server of the same name stands for another.
//! INVARIANT IN-5: every approval has an end, ends there, and outlives no restore of the store.
//! INVARIANT IN-6: a server whose key does not say wholly what runs is not approved, and a place where it does not is shadow though its
//! server is approved; where that is so in every place, the server reads shadow in every answer.
//! INVARIANT IN-7: no value of a file is stored: what looks like one in a report is not kept, whoever wrote it.
//! INVARIANT IN-8: what a retired device reported reads removed from the retirement on and is kept for 90 days, no device fills what an
//! organization may know, and where something is not kept, the answers say how much.
//!
//! INVARIANT IN-9: the name in an event stands for a server only where the person's own devices have it under this name, and for that one
//! alone only where nothing else can be meant; what is used changes no standing.
//! INVARIANT IN-10: nothing that a device reports and no standing changes what a policy means or what it answers; a reference is resolved
//! by an id or a key.
//! INVARIANT IN-13: a call that names a denied server by its key, in any spelling that is no other server's key, is refused, by the server as by
//! devices, whatever policies say; no other standing lets anything pass or refuses it.
//! INVARIANT IN-12: what is imported is evidence of its own, with its source and with who brought it; it changes no place, no name and no
//! standing of what a device said, and nothing is approved by it.
//! INVARIANT IN-14: a skill on a device reads registered only where a version of the same organization has its digest, and neither a version
//! that has it nor the skill of one is withdrawn; a name makes none registered and hides none that is withdrawn, and whoever may not read
//! the registry learns nothing of it by an inventory.
//!
//! Standings open nothing. A denial refuses calls (ADR 0135); the others are shown. They stand in the server's own row until there is one
//! mechanism for approvals (ADR 0105); how a skill stands is derived in each answer (ADR 0136). Not there yet: standings `managed` and
//! `pending`, approvals of some versions or for some people, tools of servers, assets of other kinds than skills and extensions, findings,
//! counts of what was forgotten; a section of an account of which its device says nothing more stays until the device is retired.

mod called;
mod credentials;
mod denied;
mod device;
mod erase;
mod evidence;
mod facts;
pub mod fences;
mod import;
mod imported;
mod joining;
mod known;
mod list_uses;
mod maintenance;
mod model;
mod observations;
mod own;
mod project_names;
mod reads;
mod references;
mod report;
mod sections;
mod skills;
mod standing;
mod store;
mod taking;
mod uses;

pub use denied::{denied, denied_among};
pub use facts::{ServerFacts, facts};
pub use joining::join as join_uses;
pub use known::decided_among;
pub use model::ServerId;
pub use project_names::forget_hidden as forget_hidden_names;
pub use standing::{Candidate, approvable, approve};

use provost_kernel::announcement::{Answers, Subscriber};
use provost_kernel::area::{Area, Check, every};
use provost_kernel::auth::{Toolset, scope};
use provost_kernel::migrations;
use provost_kernel::operation::Entry;

/// The area.
pub static AREA: Area = Area {
    toolsets: &[Toolset {
        place: 7,
        name: "inventory",
        says: "What is in use in the organization.",
        title: "Inventory",
        holds: "the inventory",
    }],
    scopes: &[scope("inventory:read").everybody(), scope("inventory:write")],
    operations,
    fences: Some(&fences::FENCES),
    migrations: &migrations![
        "0036_inventory",
        "0039_inventory_use",
        "0058_project_names",
        "0059_inventory_denied"
    ],
    statements: &[
        store::STATEMENTS,
        known::STATEMENTS,
        imported::STATEMENTS,
        observations::STATEMENTS,
        maintenance::STATEMENTS,
        project_names::STATEMENTS,
        references::STATEMENTS,
        uses::STATEMENTS,
        joining::STATEMENTS,
        facts::STATEMENTS,
        denied::STATEMENTS,
    ],
    records: &[
        ("inventory_scans", "when a device looked last decides nothing"),
        (
            "inventory_sections",
            "what could be read on a device decides nothing",
        ),
        (
            "inventory_servers",
            "a standing gives no right: a denial alone is asked for, and takes calls away",
        ),
        ("inventory_assets", "what was found decides nothing"),
        ("inventory_observations", "what was found decides nothing"),
        ("inventory_imported", "what was found decides nothing"),
        ("inventory_leftovers", "what is still to be ended decides nothing"),
        ("inventory_use_queue", "what was used decides nothing"),
        ("inventory_uses", "what was used decides nothing"),
        ("inventory_use_bounds", "what is not kept decides nothing"),
    ],
    timers: &[
        every(60, "inventory-uses", |kernel, _| {
            Box::pin(async move { joining::join(&kernel).await })
        }),
        every(60, "inventory-project-names", |kernel, _| {
            Box::pin(async move { project_names::forget_hidden(&kernel).await })
        }),
    ],
    check: Check::Find(maintenance::broken_invariants),
    restore: Some(maintenance::end_approvals),
    on: &[
        &Subscriber(maintenance::device_retired),
        &Subscriber(maintenance::principal_ended),
        &Subscriber(uses::servers_used),
        &Answers(references::references),
        &Answers(maintenance::kept),
    ],
    prune: Some(maintenance::prune),
    guides: &[provost_kernel::guide!(
        "inventory",
        "Inventory: find shadow MCP servers"
    )],
    floor: 5,
    ..Area::named("inventory", "What devices have configured, and how it stands")
};

fn operations() -> Vec<Entry> {
    vec![
        Entry::of::<report::ReportScan>(),
        Entry::of::<device::GetDeviceInventory>(),
        Entry::of::<own::ListOwnInventory>(),
        Entry::of::<erase::EraseDeviceInventory>(),
        Entry::of::<reads::ListServers>(),
        Entry::of::<reads::GetServer>(),
        Entry::of::<reads::ListInstances>(),
        Entry::of::<standing::SetStanding>(),
        Entry::of::<import::ImportScan>(),
        Entry::of::<reads::ListAssets>(),
        Entry::of::<list_uses::ListUses>(),
        Entry::of::<reads::Summarize>(),
    ]
}
