//! Opening a request that somebody makes for themselves: its share of the queue, who decides it, and what is sealed of it.

use super::model::{
    Approval, ApprovalId, Behind, BoundPolicy, GrantId, Kind, MOST_BY_HAND, MOST_OF_ASKER, Opening, Party,
};
use super::plan::QUORUM;
use super::routes::{self, Route, Wanted};
use super::{binding, fences, rights, store, view};
use provost_kernel::db::Tx;
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
/// Keeps AP-8 and TW-2. Errors: `RateLimited` where too many wait, or were made within an hour; `Conflict` for an operation to which nobody could
/// say yes.
pub fn open(
    ctx: &mut OperationContext<'_>,
    wish: Wish<'_>,
    shown: impl FnOnce(&ApprovalId) -> Result<Vec<u8>>,
) -> Result<Approval> {
    let (org, now) = (ctx.org(), ctx.latest());
    let kernel = Kernel::behind(ctx.services())?;
    let asker = wish.asker;
    let owner_id = rights::owner_of(&mut ctx.tx(), org, &asker)?;
    must_have_room(ctx, (wish.kind, wish.most_waiting), &asker, &owner_id)?;
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
    let frozen = if route.is_some() || wish.kind == Kind::Operation {
        let behind = rights::behind_gains(&mut tx, org, &asker, &wish.gains)?;
        let frozen = route
            .as_ref()
            .map(|route| routes::freeze(&mut tx, org, route, &wanted, &behind))
            .transpose()?;
        let quorum = route.as_ref().map_or(QUORUM, Route::quorum);
        if wish.kind == Kind::Operation && frozen.as_ref().is_none_or(|route| route.falls_to_admins) {
            must_reach(&mut tx, org, &wanted, &behind, quorum)?;
        }
        frozen
    } else {
        None
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

/// Refuses one request more than somebody, or the organization, may have waiting.
///
/// Keeps AP-8. Errors: `RateLimited`.
pub fn must_have_room(
    ctx: &mut OperationContext<'_>,
    (kind, most_waiting): (Kind, i64),
    asker: &Party,
    owner_id: &str,
) -> Result<()> {
    let (org, now) = (ctx.org(), ctx.latest());
    let mut tx = ctx.tx();
    let counts = store::counts(&mut tx, org, (asker, owner_id), asker, now)?;
    // What waits for a second person has a share of its own, of the queue and of who asks: calls keep nobody from asking for it, nor does
    // what accounts ask for that somebody named theirs.
    let (waiting, by_hand, within) = match kind {
        Kind::Operation => {
            let (by_hand, within) = store::operations_of(&mut tx, org, asker, now)?;
            (counts.waiting_operations, by_hand, within)
        }
        _ => (counts.waiting, counts.by_hand, counts.of_asker),
    };
    if by_hand >= MOST_BY_HAND || within >= MOST_OF_ASKER || waiting >= most_waiting {
        let message = "too many approvals were asked for or wait; ask again when some are decided";
        return Err(Error::new(Code::RateLimited, message).retry_after(3_600));
    }
    Ok(())
}

/// Refuses what nobody could say yes to: fewer people than have to may decide and neither ask for it nor get something by it.
///
/// Keeps TW-2. Errors: `Conflict`.
fn must_reach(tx: &mut Tx<'_>, org: &str, wanted: &Wanted<'_>, behind: &Behind, quorum: i64) -> Result<()> {
    let needed = usize::try_from(quorum).unwrap_or(usize::MAX);
    let found = routes::reachable(tx, org, None, wanted, behind, needed)?.len();
    if found >= needed {
        return Ok(());
    }
    let message = format!(
        "nobody could say yes to this: of the people who may decide and neither ask for it nor get something by it, nor stand behind an \
         account that does, it needs {needed}, and there are {found}; have one of those who get something by it ask, or ask for it in \
         parts (an import in several imports)"
    );
    Err(Error::new(Code::Conflict, message))
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
