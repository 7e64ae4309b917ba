//! `provost store`: looking after the store (D12.9, D12.10).

mod accept;
mod accept_clock;
mod accept_lost;
mod backup;
mod backup_mac;
mod check;
mod copy;
mod move_store;
mod moved_back;
mod replaced;
mod restore;
mod restored_line;
mod schema;
pub(crate) mod segments;
pub(crate) mod series;

pub use accept::Accept;
pub use backup::{Backup, open};
pub use check::{Check, findings};
pub use copy::all as copy_all;
pub use move_store::Move;
pub use restore::Restore;

use super::failure::Failure;
use provost_kernel::db::{Conn, Engine, Statement};

/// Returns every statement of these commands, for the test that prepares them on both engines.
pub fn statements() -> Vec<&'static [&'static Statement]> {
    vec![
        backup::STATEMENTS,
        check::STATEMENTS,
        restore::STATEMENTS,
        schema::STATEMENTS,
    ]
}

/// Lifts the server-side limits that suit requests: these commands read whole tables.
fn lift_statement_timeouts(conn: &mut Conn) -> Result<(), Failure> {
    if conn.engine() == Engine::Postgres {
        conn.batch("SET statement_timeout = 0; SET idle_in_transaction_session_timeout = 0")?;
    }
    Ok(())
}
