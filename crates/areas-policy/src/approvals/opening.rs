//! Opening a request that somebody makes for themselves: its share of the queue, who decides it, and what is sealed of it.

use super::model::{
    Approval, ApprovalId, BoundPolicy, GrantId, Kind, MOST_BY_HAND, MOST_OF_ASKER, Opening, Party,
};
use super::plan::QUORUM;
use super::routes::{self, Route, Wanted};
use super::{binding, fences, rights, store, view};
use provost_kernel::error::{Code, Error};
use provost_kernel::{Kernel, OperationContext, Result};
use serde_json::Value;

/// What somebody wants for themselves.
pub struct Wish<'a> {
    /// What is asked for.
    pub kind: Kind,
    /// The key of the server, or the id of the policy or the operation.
    pub tool: &'a str,
    /// Who asks.
    pub asker: Party,
    /// The keyed hash of what is asked for.
    pub call_mac: String,
    /// Who would get something by it beside who asks.
    pub gains: Vec<String>,
    /// The policies that it is about.
    pub policies: Vec<BoundPolicy>,
    /// LIMIT: requests of the organization that wait already.
    pub most_waiting: i64,
    /// After how many seconds nothing would come of a yes.
    pub most_secs: i64,
}

/// Returns a new request; `shown` makes what is sealed of it.
///
/// Keeps AP-8. Errors: `RateLimited` where too many wait, or were made within an hour.
pub fn open(
    ctx: &mut OperationContext<'_>,
    wish: Wish<'_>,
    shown: impl FnOnce(&ApprovalId) -> Result<Vec<u8>>,
) -> Result<Approval> {
    let (org, now) = (ctx.org(), ctx.latest());
    let kernel = Kernel::behind(ctx.services())?;
    let asker = wish.asker;
    let owner_id = rights::owner_of(&mut ctx.tx(), org, &asker)?;
    let counts = store::counts(&mut ctx.tx(), org, (&asker, &owner_id), &asker, now)?;
    // What waits for a second person has a share of its own: calls keep nobody from asking for it, against those who make them among others.
    let waiting = match wish.kind {
        Kind::Operation => counts.waiting_operations,
        _ => counts.waiting,
    };
    let is_full = waiting >= wish.most_waiting;
    if counts.by_hand >= MOST_BY_HAND || counts.of_asker >= MOST_OF_ASKER || is_full {
        let message = "too many approvals were asked for or wait; ask again when some are decided";
        return Err(Error::new(Code::RateLimited, message).retry_after(3_600));
    }
    let Some(subject_rights) = rights::of_party(&mut ctx.tx(), org, &asker)? else {
        return Err(Error::new(Code::Conflict, "the caller acts no more"));
    };
    let wanted = Wanted {
        kind: wish.kind,
        tool: wish.tool,
        asker: &asker,
        subject: &asker,
    };
    let mut tx = ctx.tx();
    let route = routes::fitting(&mut tx, org, &wanted)?;
    let frozen = match &route {
        Some(route) => {
            let behind = rights::behind_gains(&mut tx, org, &asker, &wish.gains)?;
            Some(routes::freeze(&mut tx, org, route, &wanted, &behind)?)
        }
        None => None,
    };
    let waits_secs = route
        .as_ref()
        .map_or(wish.kind.waits_secs(), Route::deadline_secs);
    let id: ApprovalId = ctx.new_id();
    let shown = shown(&id)?;
    let sealed = kernel.keys.seal(&view::place(org, &id), &shown, ctx.rng())?;
    let grant_id: GrantId = ctx.new_id();
    Ok(Approval::open(Opening {
        grant_id,
        kind: wish.kind,
        subject: asker.clone(),
        asker,
        owner_id,
        subject_rights,
        binding_mac: binding::digest(&kernel.keys, org, &id, &wish.call_mac, &wish.policies)?,
        call_mac: wish.call_mac,
        tool: wish.tool.to_owned(),
        gains: wish.gains,
        policies: wish.policies,
        route: frozen,
        quorum: route.as_ref().map_or(QUORUM, Route::quorum),
        waits_secs: waits_secs.min(wish.most_secs),
        sealed,
        at: now,
        id,
    }))
}

/// Stores a new request and tells of it, with the member of the entry that says what it is about.
pub fn file(
    ctx: &mut OperationContext<'_>,
    approval: &Approval,
    (member, of): (&'static str, &str),
) -> Result<()> {
    store::insert(ctx, approval)?;
    ctx.target(&fences::APPROVAL, approval.id.as_str());
    ctx.change("/state", Value::Null, approval.state.as_str());
    ctx.change(member, Value::Null, of);
    ctx.emit(&fences::REQUESTED, &fences::OfApproval::of(approval));
    Ok(())
}
