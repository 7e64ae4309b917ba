//! Resource gateways (client contract §4.3): the places where a gateway runs.

mod create;
mod delete;
mod get;
mod list;
pub(super) mod model;
mod store;
mod update;

pub use store::{STATEMENTS, exists};
pub(super) use store::{get, save};

use provost_kernel::operation::Entry;

/// Returns the operations on gateways.
pub fn operations() -> Vec<Entry> {
    vec![
        Entry::of::<list::ListResourceGateways>(),
        Entry::of::<create::CreateResourceGateway>(),
        Entry::of::<get::GetResourceGateway>(),
        Entry::of::<update::UpdateResourceGateway>(),
        Entry::of::<delete::DeleteResourceGateway>(),
    ]
}
