//! An MCP server of the inventory that somebody asks for.
//!
//! INVARIANT AP-18: a server is approved by a vote only while nothing is known of it that could make it another thing than was shown: no
//! version, way of pinning it or transport that was not among those then, and no credentials beside it where there were none.

use super::{AskBody, joined, may_do};
use crate::approvals::model::{Approval, Kind, MOST, Party};
use crate::approvals::opening::{self, Wish};
use crate::approvals::view::{CallView, Drift, ServerWish};
use provost_areas_fleet::inventory::{self, ServerFacts, ServerId};
use provost_kernel::error::{Code, Error};
use provost_kernel::keys::{Keys, MacPurpose};
use provost_kernel::{Kernel, OperationContext, Result, hex::hex};
use provost_words::visible::lines_visible;
use serde_json::json;

/// The hash of a server that is asked for, under a key of the installation.
const REQUEST: MacPurpose = MacPurpose::Own("provost/mac/approval-request/v1");
/// With it somebody approves a server without being asked.
const APPROVING: &str = "inventory:write";

/// Asks for a server, or joins what waits for it.
///
/// Errors: `InvalidDefinition` for an unknown one; `Conflict` for one that cannot be approved.
pub fn ask(ctx: &mut OperationContext<'_>, id: &ServerId, body: &AskBody) -> Result<Approval> {
    let (org, now) = (ctx.org(), ctx.latest());
    let asker = Party::of(ctx.actor());
    let expires_in_seconds = body.expires_in_seconds.get();
    let server = inventory::approvable(ctx, id, now.plus_secs(expires_in_seconds)).map_err(|error| {
        match error.code() {
            Code::NotFound => Error::unfit("/serverId", "names no MCP server of the inventory"),
            _ => error,
        }
    })?;
    let wish = ServerWish {
        id: id.clone(),
        key: lines_visible(&server.key).into_owned(),
        name: lines_visible(&server.name).into_owned(),
        standing: server.standing.to_owned(),
        expires_in_seconds,
        facts: Some(inventory::facts(ctx, id)?),
    };
    let kernel = Kernel::behind(ctx.services())?;
    let call_mac = mac(&kernel.keys, org, &asker, &wish);
    if let Some(open) = joined(ctx, &call_mac)? {
        return Ok(open);
    }
    let of = Wish {
        kind: Kind::McpServer,
        tool: &wish.key,
        asker,
        call_mac,
        gains: Vec::new(),
        policies: Vec::new(),
        // What is asked for by hand waits for days, and leaves half of the queue to calls.
        most_waiting: MOST / 2,
        most_secs: i64::MAX,
    };
    let shown = json!({ "server": wish, "justification": lines_visible(body.justification.as_str()) });
    let shown = serde_json::to_vec(&shown).map_err(Error::internal)?;
    let approval = opening::open(ctx, of, |_| Ok(shown))?;
    opening::file(ctx, &approval, ("/serverId", id.as_str()))?;
    Ok(approval)
}

/// Returns the hash of what somebody asks for. What weighs is bound, so that who asks again after it moved asks anew.
fn mac(keys: &Keys, organization: &str, asker: &Party, wish: &ServerWish) -> String {
    let seconds = wish.expires_in_seconds.to_string();
    let weighty = wish.facts.as_ref().map(ServerFacts::weighty);
    let mut parts: Vec<&[u8]> = vec![
        organization.as_bytes(),
        asker.kind.as_bytes(),
        asker.id.as_bytes(),
        wish.id.as_str().as_bytes(),
        wish.key.as_bytes(),
        wish.standing.as_bytes(),
        seconds.as_bytes(),
    ];
    // What was asked for before facts were kept has none.
    parts.extend(weighty.as_ref().map(String::as_bytes));
    hex(&keys.mac(REQUEST, &parts))
}

/// Returns what is known of a server otherwise than when it was asked for; nothing for what is no request of a server.
pub fn drift(ctx: &mut OperationContext<'_>, shown: &CallView) -> Result<Vec<Drift>> {
    let Some((id, then)) = shown
        .server()
        .and_then(|wish| Some((&wish.id, wish.facts.as_ref()?)))
    else {
        return Ok(Vec::new());
    };
    let now = match inventory::facts(ctx, id) {
        Ok(now) => now,
        // It is in no inventory any more.
        Err(error) if error.code() == Code::NotFound => ServerFacts::default(),
        Err(error) => return Err(error),
    };
    let found = then.drift(&now).into_iter();
    Ok(found
        .map(|(path, then, now, is_weighty)| Drift {
            path: path.to_owned(),
            then,
            now,
            is_weighty,
        })
        .collect())
}

/// Approves the server in the name of the voter.
///
/// Keeps AP-11, AP-18. Errors: `InsufficientScope`; `Conflict` when it stands otherwise than it did, or is known otherwise.
pub fn perform(
    ctx: &mut OperationContext<'_>,
    approval: &mut Approval,
    shown: Option<&CallView>,
) -> Result<()> {
    let wish = shown.and_then(CallView::server);
    let (Some(wish), Some(shown)) = (wish, shown) else {
        return Err(Error::internal("a request of a server without the server"));
    };
    may_do(ctx, APPROVING)?;
    let (org, now) = (ctx.org(), ctx.latest());
    let kernel = Kernel::behind(ctx.services())?;
    if mac(&kernel.keys, org, &approval.asker, wish) != approval.call_mac {
        // The key of hashes is another since, or what was sealed is not what waits.
        return Err(moved());
    }
    if let Some(weighty) = drift(ctx, shown)?.into_iter().find(|drift| drift.is_weighty) {
        let path = weighty.path.clone();
        return Err(moved().with("drift", path));
    }
    let until = now.plus_secs(wish.expires_in_seconds);
    inventory::approve(ctx, &wish.id, until, &wish.standing).map_err(|error| match error.code() {
        Code::NotFound => moved(),
        _ => error,
    })?;
    approval.grant_until = Some(until);
    approval
        .consume(wish.id.as_str(), now)
        .map_err(|_| Error::internal("a request of a server that cannot be used"))?;
    Ok(())
}

fn moved() -> Error {
    let message = "the server is not known as it was when it was asked for; deny the request, whoever needs it asks again";
    Error::new(Code::Conflict, message)
}
