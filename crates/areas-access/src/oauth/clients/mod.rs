//! Clients that admins register (D2.7). Other clients are known by the URL of their document and need no row.
//!
//! A client's method of authentication and its account do not change: another one of these is another client.

mod create;
mod delete;
mod get;
mod list;
pub(super) mod model;
mod store;
mod update;

pub use store::{STATEMENTS, ids_of_account, wider_than_granted, write_ceilings};
pub(super) use store::{may_be_known, resolve};

use provost_kernel::operation::Entry;
use provost_kernel::{OperationContext, Result};

/// Says that a client is registered.
///
/// Errors: `NotFound`.
pub(super) fn exists(ctx: &mut OperationContext<'_>, id: &str) -> Result<()> {
    store::get(ctx, &model::ClientId::from_store(id.to_owned())).map(drop)
}

/// Returns the operations on clients.
pub fn operations() -> Vec<Entry> {
    vec![
        Entry::of::<list::ListMcpClients>(),
        Entry::of::<create::CreateMcpClient>(),
        Entry::of::<get::GetMcpClient>(),
        Entry::of::<update::UpdateMcpClient>(),
        Entry::of::<delete::DeleteMcpClient>(),
    ]
}
