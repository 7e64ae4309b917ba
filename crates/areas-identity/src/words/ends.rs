//! What takes away by mappings of words, and how it is taken away again (EN-3).

use super::identities::{self, model::MappingId};
use provost_areas_platform::ends::unclear;
use provost_kernel::area::{Again, RepeatedRevocation, Right};
use provost_kernel::db::Tx;
use provost_kernel::ends::{Revocation, RowChange};
use provost_kernel::{OperationContext, Result, Timestamp};

const MAPPING: &str = "identity_mapping";

/// The tables that decide what somebody may do.
pub const RIGHTS: &[Right] = &[
    Right::lasting(
        "ended_words",
        "notes what was deleted, whose end is a line of its own",
    ),
    Right::ending("identity_mappings", mapping),
];

/// The ways back.
pub const RETAKINGS: &[RepeatedRevocation] = &[RepeatedRevocation {
    what: MAPPING,
    again: mapping_again,
}];

fn mapping(_: &mut Tx<'_>, change: &RowChange, _: Timestamp) -> Result<Vec<Revocation>> {
    let Some(was) = change.was.as_ref() else {
        return Ok(Vec::new());
    };
    let how = match &change.is {
        None => "removed",
        Some(is) if !was.agrees(is, &["match_key", "user_id"])? => "changed",
        Some(_) => return Ok(Vec::new()),
    };
    Ok(vec![Revocation {
        what: MAPPING,
        how,
        ids: was.ids(&["id"])?,
    }])
}

fn mapping_again(ctx: &mut OperationContext<'_>, how: &str, ids: &[String]) -> Result<Again> {
    let [id] = ids else { return Ok(unclear()) };
    let mapping = identities::get(ctx, &MappingId::from_store(id.clone()))?;
    identities::delete(ctx, &mapping.id)?;
    ctx.change("/word", mapping.id.as_str(), serde_json::Value::Null);
    Ok(Again::Done(if how == "changed" {
        "removed; map the word anew by hand"
    } else {
        "removed"
    }))
}
