//! What takes away by settings, and how it is taken away again (EN-3).

use crate::ends::{by_hand, of_document};
use provost_kernel::area::{Again, RepeatedRevocation, Right};
use provost_kernel::db::Tx;
use provost_kernel::ends::{Revocation, RowChange};
use provost_kernel::{OperationContext, Result, Timestamp};

const SETTINGS: &str = "settings";

/// The tables that decide what somebody may do.
pub const RIGHTS: &[Right] = &[Right::ending("automation_settings", settings)];

/// The ways back.
pub const RETAKINGS: &[RepeatedRevocation] = &[RepeatedRevocation {
    what: SETTINGS,
    again: settings_again,
}];

/// A limit that was lowered and a provider that was switched off are values.
fn settings(_: &mut Tx<'_>, change: &RowChange, _: Timestamp) -> Result<Vec<Revocation>> {
    of_document(SETTINGS, change)
}

fn settings_again(_: &mut OperationContext<'_>, _: &str, _: &[String]) -> Result<Again> {
    by_hand("the settings are what they were before; change them again")
}
