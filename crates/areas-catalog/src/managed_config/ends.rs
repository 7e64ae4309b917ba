//! What takes away by profiles of managed configuration, and how it is taken away again (EN-3).

use provost_areas_platform::ends::by_hand;
use provost_kernel::area::{Again, RepeatedRevocation, Right};
use provost_kernel::db::Tx;
use provost_kernel::ends::{Revocation, RowChange};
use provost_kernel::{OperationContext, Result, Timestamp};

const PROFILE: &str = "profile";

/// The tables that decide what somebody may do.
pub const RIGHTS: &[Right] = &[
    Right::ending("managed_config_profiles", profile),
    Right::lasting(
        "managed_config_releases",
        "a release counts while a profile names it, which is a line of its own",
    ),
    Right::lasting(
        "managed_config_targets",
        "what a machine reported; forgetting it takes nothing from anybody",
    )
    .loose(&["last_reported_at"]),
];

/// The ways back.
pub const RETAKINGS: &[RepeatedRevocation] = &[RepeatedRevocation {
    what: PROFILE,
    again: profile_again,
}];

fn profile(_: &mut Tx<'_>, change: &RowChange, _: Timestamp) -> Result<Vec<Revocation>> {
    let Some(was) = change.was.as_ref() else {
        return Ok(Vec::new());
    };
    let how = match &change.is {
        None => "deleted",
        Some(is) if !was.agrees(is, &["status"])? => "status_changed",
        Some(is) if !was.agrees(is, &["current_release_id"])? => "release_changed",
        Some(is) if !was.agrees(is, &["on_unavailable"])? => "changed",
        Some(_) => return Ok(Vec::new()),
    };
    Ok(vec![Revocation {
        what: PROFILE,
        how,
        ids: was.ids(&["id"])?,
    }])
}

fn profile_again(_: &mut OperationContext<'_>, how: &str, _: &[String]) -> Result<Again> {
    by_hand(match how {
        "release_changed" => "an earlier release is current; publish or roll back again",
        "status_changed" => "archive or restore it again",
        _ => "change it again",
    })
}
