//! Resources and the gateways in front of them (client contract §4.1, §4.3).
//!
//! A resource is a system that people and agents reach through a gateway: an HTTP API, `PostgreSQL`, `MySQL` or
//! Redis. It exists from its creation to its deletion and has no other states.
//!
//! INVARIANT RS-1: a record of a living Terraform owner is changed by that principal with its labels alone.
//! INVARIANT RS-2: no credential outlives its resource, and none goes away with it silently.
//! INVARIANT RS-3: names are unique in the organization, by their folded form; a resource's access name never
//! changes.
//! INVARIANT RS-4: a create that a Terraform manager says again makes no second record, and answers with the first one for a
//! day alone, to the manager that made it, while it is exactly what is said.
//!
//! Absent on purpose: taking over a record of the service for Terraform (the client has no such call for
//! resources); deleting a resource with its credentials; the gateway's deployment files.

pub mod announcements;
mod create;
pub mod definition;
mod delete;
mod ends;
pub mod fences;
pub mod gateways;
mod get;
mod list;
pub mod model;
pub mod ownership;
mod store;
mod update;

use ownership::Owner;
use provost_kernel::area::{Area, Check};
use provost_kernel::auth::{Role, Toolset, scope};
use provost_kernel::db::Statement;
use provost_kernel::migrations;
use provost_kernel::operation::Entry;
use provost_kernel::{OperationContext, Result};

/// Who reads resources and gateways.
const READERS: &[Role] = &[Role::Admin, Role::Operator, Role::Auditor];

/// Every statement about gateways.
pub const GATEWAY_STATEMENTS: &[&Statement] = gateways::STATEMENTS;

/// The area.
pub static AREA: Area = Area {
    toolsets: &[Toolset {
        place: 17,
        name: "resources",
        says: "Data systems and the gateways in front of them.",
        title: "Resources",
        holds: "resources",
    }],
    scopes: &[
        scope("resources:read").readers(),
        scope("resources:write"),
        scope("resources:connect")
            .says("Connect to resources with the credentials that you may use")
            .held_by(&[Role::Operator]),
    ],
    operations,
    fences: Some(&fences::FENCES),
    migrations: &migrations!["0007_resources"],
    statements: &[store::STATEMENTS, gateways::STATEMENTS],
    rights: ends::RIGHTS,
    retakings: ends::RETAKINGS,
    testimonies: &[&fences::GATEWAYS, &fences::RESOURCES],
    check: Check::Nothing("names and owners are held by keys and checks of the schema"),
    guides: &[provost_kernel::guide!(
        "resources",
        "Resources and their credentials"
    )],
    floor: 3,
    ..Area::named("resources", "Resources and the gateways in front of them")
};

fn operations() -> Vec<Entry> {
    let mut all = vec![
        Entry::of::<list::ListResources>(),
        Entry::of::<create::CreateResource>(),
        Entry::of::<get::GetResource>(),
        Entry::of::<update::UpdateResource>(),
        Entry::of::<delete::DeleteResource>(),
    ];
    all.extend(gateways::operations());
    all
}

/// Returns what a resource speaks.
///
/// Errors: `NotFound`.
pub fn protocol_of(ctx: &mut OperationContext<'_>, id: &model::ResourceId) -> Result<model::Protocol> {
    store::get(ctx, id).map(|resource| resource.protocol)
}

fn note_owner(ctx: &mut OperationContext<'_>, before: &Owner, after: &Owner) {
    let ([manager, instance, owner], [new_manager, new_instance, new_owner]) =
        (before.columns(), after.columns());
    ctx.change("/managementMode", before.mode(), after.mode());
    ctx.change("/managerId", manager, new_manager);
    ctx.change("/managerInstance", instance, new_instance);
    ctx.change("/ownerId", owner, new_owner);
}
