//! Throw-away PostgreSQL clusters: found or installed, started on a socket of their own, and
//! removed whatever becomes of the task that wanted them.

mod cluster;
mod guardian;
mod install;

pub use cluster::{Cluster, Durability, as_owner_of, initdb};
pub use guardian::{Arguments as GuardianArguments, guard};
pub use install::{Binaries, find_or_install};

use crate::Engine;
use crate::failure::Outcome;

/// Finds or installs PostgreSQL where one of the engines is it.
pub fn find_for(engines: Engine) -> Outcome<Option<Binaries>> {
    engines.has_postgres().then(find_or_install).transpose()
}
