//! What takes away from approvals, and how it is taken away again (EN-3).
//!
//! A use takes away as well: in a store that went back behind it the call would pass once more.

use super::model::{ApprovalId, State};
use super::{delegations, fences, make_void, store};
use provost_areas_platform::ends::{by_hand, of_document, unclear};
use provost_kernel::area::{Again, RepeatedRevocation, Right};
use provost_kernel::db::Tx;
use provost_kernel::ends::{Revocation, RowChange, Side};
use provost_kernel::{OperationContext, Result, Timestamp};

const APPROVAL: &str = "approval";
const DELEGATION: &str = "approval_delegation";
const ROUTES: &str = "approval_routes";

/// The tables that decide what somebody may do.
pub const RIGHTS: &[Right] = &[
    Right::ending("approval_delegations", delegation),
    Right::ending("approval_routes", routes),
    Right::ending("approvals", approval),
];

/// The ways back.
pub const RETAKINGS: &[RepeatedRevocation] = &[
    RepeatedRevocation {
        what: APPROVAL,
        again: approval_again,
    },
    RepeatedRevocation {
        what: DELEGATION,
        again: delegation_again,
    },
    RepeatedRevocation {
        what: ROUTES,
        again: routes_again,
    },
];

/// What is lent is lent no longer. One that ended by its time has ended in every store.
fn delegation(_: &mut Tx<'_>, change: &RowChange, now: Timestamp) -> Result<Vec<Revocation>> {
    let Some(was) = change.was.as_ref() else {
        return Ok(Vec::new());
    };
    let is_over = was.number("until_at")?.is_none_or(|until| until <= now.as_ms());
    let how = match &change.is {
        _ if was.has("ended_at")? || is_over => return Ok(Vec::new()),
        None => "deleted",
        Some(is) if is.has("ended_at")? => "ended",
        Some(_) => return Ok(Vec::new()),
    };
    Ok(vec![Revocation {
        what: DELEGATION,
        how,
        ids: was.ids(&["id"])?,
    }])
}

fn delegation_again(ctx: &mut OperationContext<'_>, _: &str, ids: &[String]) -> Result<Again> {
    let [id] = ids else { return Ok(unclear()) };
    if delegations::end_again(ctx, id)? {
        return Ok(Again::Done("ended; who lent their vote lends it again"));
    }
    Ok(Again::Already)
}

/// Fewer may decide, or more of them have to.
fn routes(_: &mut Tx<'_>, change: &RowChange, _: Timestamp) -> Result<Vec<Revocation>> {
    of_document(ROUTES, change)
}

fn routes_again(_: &mut OperationContext<'_>, _: &str, _: &[String]) -> Result<Again> {
    by_hand("the routes of approvals are what they were before; write them again")
}

fn is_open(side: &Side) -> Result<bool> {
    let state = side.text("state")?;
    Ok([State::Pending, State::Approved]
        .iter()
        .any(|open| state == Some(open.as_str())))
}

fn approval(_: &mut Tx<'_>, change: &RowChange, _: Timestamp) -> Result<Vec<Revocation>> {
    let Some(was) = change.was.as_ref() else {
        return Ok(Vec::new());
    };
    if !is_open(was)? {
        return Ok(Vec::new());
    }
    let how = match &change.is {
        None => "deleted",
        Some(is) if is.number("use_count")? > was.number("use_count")? => "used",
        Some(is) if !is_open(is)? => "ended",
        // A vote that was taken back or lost its weight: the request asks anew.
        Some(is) if is.text("state")? == was.text("state")? && !was.agrees(is, &["votes"])? => "voted",
        Some(_) => return Ok(Vec::new()),
    };
    Ok(vec![Revocation {
        what: APPROVAL,
        how,
        ids: was.ids(&["id"])?,
    }])
}

fn approval_again(ctx: &mut OperationContext<'_>, _: &str, ids: &[String]) -> Result<Again> {
    let [id] = ids else { return Ok(unclear()) };
    let mut approval = store::get(ctx, &ApprovalId::from_store(id.clone()))?;
    if approval.state.is_ended() {
        return Ok(Again::Already);
    }
    ctx.target(&fences::APPROVAL, id.as_str());
    let before = approval.state;
    make_void(ctx, &mut approval, "lost")?;
    ctx.change("/state", before.as_str(), approval.state.as_str());
    Ok(Again::Done("void; whoever needs it asks again"))
}
