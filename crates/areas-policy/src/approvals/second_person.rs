//! Requests that one person alone does not perform (F8.8, ADR 0126).
//!
//! ```text
//!   the request ──► 403 approval_required
//!   … ?requestApproval=true ──► 202, a request for an approval waits ──a second person──► approved
//!   … ?approvalId=apr_… ──► the approval is used, and the operation performed: one unit of work, or neither
//! ```
//!
//! INVARIANT AP-15: an approval of an operation lets exactly the person who asked perform exactly the request that it shows, once, within an hour of
//! the decision, while they can do what they could and what the request is about is what it was; a use and what it performs are one commit.
//! INVARIANT AP-16: where an act is named for two people, one person alone takes none of these words away, changes no route, makes nobody
//! an admin and gives nobody the sign-in of one; and nothing is named, and no route written, by which nobody could say yes to the next change.

use super::model::{Approval, ApprovalId, Behind, Effect, Kind, MOST, Party, State};
use super::opening::{self, Wish};
use super::plan::QUORUM;
use super::routes::{self, Route, Wanted};
use super::view::OperationWish;
use super::{expire, fences, make_void, rights, store};
use provost_areas_platform::settings::{self, ActOfTwo, ActsOfTwoChanged};
use provost_kernel::error::{Code, Error};
use provost_kernel::json::canonical;
use provost_kernel::keys::MacPurpose;
use provost_kernel::operation::Meta;
use provost_kernel::second_person::{ApprovalAsked, CallOfTwo, NamedWords, Passage, WaitingCall};
use provost_kernel::{OperationContext, Result, hex::hex};
use provost_words::visible::lines_visible;
use serde_json::{Map, Value, json};

/// The hash of a request, under a key of the installation.
const REQUEST: MacPurpose = MacPurpose::Own("provost/mac/approval-operation/v1");
/// LIMIT: bytes of a request that is shown to who decides. Ours: nobody approves what nobody reads.
const MAX_REQUEST: usize = 64 * 1024;
/// LIMIT: users and accounts that one request gives something.
const MOST_GAINS: usize = 100;
/// With it somebody asks.
const ASK: &str = "mcp_approvals:request";
/// Members of a request that name who gets something by it.
const GAINING: [&str; 7] = [
    "toUserId",
    "userId",
    "userIds",
    "serviceAccountId",
    "ownerConsoleUserId",
    "ownerUserId",
    "ids",
];
/// What begins the ids of those who can get something.
const PREFIXES: [&str; 2] = ["usr_", "sa_"];
/// The operations by which the rule itself is changed: somebody has to be able to say yes to them.
const WAYS: [&str; 3] = [
    "patchHeadlessAutomationSettings",
    "updateHeadlessAutomationSettings",
    "putHeadlessApprovalRoutes",
];

/// Returns the words that are named.
pub fn named(ctx: &mut OperationContext<'_>, _: &NamedWords) -> Result<Vec<String>> {
    let acts = settings::load(ctx)?.approvals.require_for;
    Ok(acts.into_iter().map(|act| act.as_str().to_owned()).collect())
}

/// Says what becomes of a call that needs a second person.
///
/// Keeps AP-15. Errors: `ApprovalRequired`, `ApprovalMismatch`; those of asking.
pub fn passage(ctx: &mut OperationContext<'_>, call: &CallOfTwo) -> Result<Vec<Passage>> {
    let asker = Party::of(ctx.actor());
    // Whoever has the token of an account may be the one who would say yes.
    if !asker.is_person() {
        let message = "two people do this, and no service account does: nobody can say who has its token; a user of the directory who signs in \
                       sends it, with the query requestApproval=true";
        return Err(required(call.meta, message));
    }
    let passage = match &call.said.approval_id {
        Some(id) => Passage::Used(consume(ctx, call, &asker, id)?),
        None if call.said.request_approval => Passage::Asked(ask(ctx, call, asker)?),
        None => {
            let message = "a second person has to say yes to this: send the same request with the query requestApproval=true (on the \
                           command line --request-approval), and once somebody has approved it the same request with approvalId";
            return Err(required(call.meta, message));
        }
    };
    Ok(vec![passage])
}

/// Refuses settings by which nobody could say yes to the next change of them.
pub fn acts_changed(ctx: &mut OperationContext<'_>, _: &ActsOfTwoChanged) -> Result<()> {
    must_leave_a_way(ctx, "/approvals/requireFor")
}

/// Refuses a change after which no two people could change it again, where anything is named for two people.
///
/// Keeps AP-16. Errors: `InvalidDefinition`.
pub fn must_leave_a_way(ctx: &mut OperationContext<'_>, place: &str) -> Result<()> {
    if settings::load(ctx)?.approvals.require_for.is_empty() {
        return Ok(());
    }
    let (org, asker) = (ctx.org(), Party::of(ctx.actor()));
    let mut tx = ctx.tx();
    for operation in WAYS {
        let wanted = Wanted {
            kind: Kind::Operation,
            tool: operation,
            asker: &asker,
            subject: &asker,
        };
        let route = routes::fitting(&mut tx, org, &wanted)?;
        // Where fewer of a route's approvers are reached, all who may decide do; one more has to ask.
        let needed = route.as_ref().map_or(QUORUM, Route::quorum) + 1;
        let most = usize::try_from(needed).unwrap_or(usize::MAX);
        let nobody = Party::person(String::new());
        let anybody = Wanted {
            asker: &nobody,
            subject: &nobody,
            ..wanted
        };
        let found = routes::reachable(&mut tx, org, None, &anybody, &Behind::new(), most)?.len();
        if found < most {
            let message = format!(
                "would lock everybody out: the next change of it takes {needed} users of the directory who may decide about approvals, and \
                 there are {found}; give more of them the role admin first"
            );
            return Err(Error::unfit(place, message));
        }
    }
    Ok(())
}

fn required(meta: &Meta, message: impl Into<std::borrow::Cow<'static, str>>) -> Error {
    Error::new(Code::ApprovalRequired, message).with("operationId", meta.id)
}

/// Returns the hash of what somebody asks for.
fn mac(ctx: &OperationContext<'_>, call: &CallOfTwo, asker: &Party) -> String {
    let request = canonical(&call.request);
    let parts: [&[u8]; 5] = [
        ctx.org().as_bytes(),
        asker.kind.as_bytes(),
        asker.id.as_bytes(),
        call.meta.id.as_bytes(),
        request.as_bytes(),
    ];
    hex(&ctx.services().keys.mac(REQUEST, &parts))
}

/// Uses the approval that a request names, and returns its id.
///
/// Keeps AP-1, AP-5 and AP-15.
fn consume(ctx: &mut OperationContext<'_>, call: &CallOfTwo, asker: &Party, id: &str) -> Result<String> {
    store::keep_time(ctx)?;
    let (org, now) = (ctx.org(), ctx.latest());
    let found = store::find(&mut ctx.tx(), org, &ApprovalId::from_store(id.to_owned()))?;
    // Of somebody else, of another kind, and none at all are one answer: nobody learns what others asked for.
    let found = found.filter(|found| found.kind == Kind::Operation && found.asker == *asker);
    let Some(mut approval) = found else {
        let message = "approvalId names no approval that the caller asked for; ask for one with the query requestApproval=true";
        return Err(required(call.meta, message));
    };
    let named = |error: Error| error.with("approvalId", id);
    if approval.call_mac != mac(ctx, call, asker) {
        let message = "the approval is of another request, or what that is about has changed since; send exactly what was approved, or ask \
                       anew with the query requestApproval=true";
        return Err(named(Error::new(Code::ApprovalMismatch, message)).with("operationId", call.meta.id));
    }
    let refuse = |status: &str, message: String| {
        Err(named(required(call.meta, message)).with("status", status.to_owned()))
    };
    match approval.state_at(now) {
        State::Approved => {}
        State::Pending => {
            let until = approval.deadline_at.to_rfc3339();
            let message = format!("nobody has said yes yet; the request waits until {until}");
            return refuse(State::Pending.as_str(), message);
        }
        state => {
            let message = format!(
                "the approval is {}; ask anew with the query requestApproval=true",
                state.as_str()
            );
            return refuse(state.as_str(), message);
        }
    }
    if lapse(ctx, &approval, asker)?.is_some() {
        let message = "the approval is void: the caller can do something else than when it was asked for, or who said yes may not say it any \
                       more; ask anew with the query requestApproval=true";
        return refuse(State::Void.as_str(), message.to_owned());
    }
    let request_id = ctx
        .origin()
        .map(|origin| origin.request_id.clone())
        .unwrap_or_default();
    if approval.consume(&request_id, now) != Ok(Effect::Changed) {
        return Err(Error::internal("an approval that was approved cannot be used"));
    }
    store::save(ctx, &approval)?;
    let data = fences::UsedApproval {
        approval_id: approval.id.clone(),
        event_id: request_id,
        uses_left: approval.uses_left(),
    };
    ctx.emit(&fences::USED, &data);
    Ok(approval.id.as_str().to_owned())
}

/// Returns why nothing passes any more by an approval: the caller can do something else than when it was asked for, or who said yes may not
/// say it any more.
fn lapse(ctx: &mut OperationContext<'_>, approval: &Approval, asker: &Party) -> Result<Option<&'static str>> {
    let org = ctx.org();
    let rights = rights::of_party(&mut ctx.tx(), org, asker)?;
    if rights.as_ref() != Some(&approval.subject_rights) {
        return Ok(Some("subject_changed"));
    }
    match approval.state {
        State::Approved => {
            let now = ctx.latest();
            rights::lapse(&mut ctx.tx(), org, approval, None, now)
        }
        _ => Ok(None),
    }
}

/// Asks for a second person, or joins what waits for one already.
///
/// Keeps AP-8. Errors: `InsufficientScope`, `RateLimited`, `InvalidDefinition` for a request that is too large to be shown, `Conflict` where
/// nobody could say yes.
fn ask(ctx: &mut OperationContext<'_>, call: &CallOfTwo, asker: Party) -> Result<ApprovalAsked> {
    may_ask(ctx)?;
    ctx.action(fences::ASKING);
    let call_mac = mac(ctx, call, &asker);
    if let Some(open) = joined(ctx, &call_mac, &asker)? {
        ctx.target(&fences::APPROVAL, open.id.as_str());
        return Ok(asked(&open));
    }
    let wish = Wish {
        kind: Kind::Operation,
        tool: call.meta.id,
        asker,
        call_mac,
        gains: gains(call)?,
        policies: Vec::new(),
        most_waiting: MOST,
        most_secs: i64::MAX,
    };
    let shown = shown(call)?;
    let approval = opening::open(ctx, wish, |_| Ok(shown))?;
    opening::file(ctx, &approval, ("/operationId", call.meta.id))?;
    Ok(asked(&approval))
}

/// Says whether the same waits for a yes already, before a call is tried for which somebody asks for one.
///
/// Keeps TW-2 and AP-8. Errors: those of asking.
pub fn waiting(
    ctx: &mut OperationContext<'_>,
    WaitingCall(call): &WaitingCall,
) -> Result<Vec<ApprovalAsked>> {
    may_ask(ctx)?;
    let asker = Party::of(ctx.actor());
    let call_mac = mac(ctx, call, &asker);
    if let Some(open) = joined(ctx, &call_mac, &asker)? {
        return Ok(vec![asked(&open)]);
    }
    // What could not be filed is not tried either.
    opening::must_have_room(ctx, (Kind::Operation, MOST), &asker, &asker.id)?;
    Ok(Vec::new())
}

/// Errors: `InsufficientScope`; `Unavailable` while the clock is behind what it showed before.
fn may_ask(ctx: &OperationContext<'_>) -> Result<()> {
    store::keep_time(ctx)?;
    if ctx.actor().permission.scopes.has(ASK) {
        return Ok(());
    }
    let message = format!("to ask for a second person this needs the scope {ASK}");
    Err(Error::new(Code::InsufficientScope, message).with("scope", ASK))
}

/// Returns what waits for a request, or was approved and is kept. What waited too long, or would let nothing pass any more, makes room.
fn joined(ctx: &mut OperationContext<'_>, call_mac: &str, asker: &Party) -> Result<Option<Approval>> {
    let org = ctx.org();
    for mut open in store::of_call(&mut ctx.tx(), org, call_mac)? {
        if expire(ctx, &mut open)? {
            continue;
        }
        if let Some(reason) = lapse(ctx, &open, asker)? {
            make_void(ctx, &mut open, reason)?;
            continue;
        }
        return Ok(Some(open));
    }
    Ok(None)
}

fn asked(approval: &Approval) -> ApprovalAsked {
    let message = match approval.state {
        State::Approved => "somebody has said yes: send the same request with this approvalId in the query",
        _ => {
            "nothing was done: once somebody has said yes, send the same request with this approvalId in the query"
        }
    };
    ApprovalAsked {
        approval_id: approval.id.as_str().to_owned(),
        state: approval.state.as_str().to_owned(),
        deadline_at: approval.deadline_at,
        message: message.to_owned(),
    }
}

/// Returns what people are shown of a request: all of it, and nothing that a terminal would hide.
///
/// Errors: `InvalidDefinition` for one that is too large.
fn shown(call: &CallOfTwo) -> Result<Vec<u8>> {
    let wish = OperationWish {
        operation_id: call.meta.id.to_owned(),
        summary: call.meta.summary.to_owned(),
        request: visible(&call.request)?,
    };
    let shown = serde_json::to_vec(&json!({ "operation": wish })).map_err(Error::internal)?;
    if shown.len() > MAX_REQUEST {
        let message = "is too large to be shown to who would decide; make it in smaller parts, or have what needs two people named otherwise";
        return Err(Error::unfit("", message));
    }
    Ok(shown)
}

/// Returns a document with what reorders or hides text spelled out, and without members that say nothing.
///
/// Errors: `InvalidDefinition` where two members look the same.
fn visible(value: &Value) -> Result<Value> {
    Ok(match value {
        Value::Object(members) => {
            let mut shown = Map::new();
            for (name, value) in members {
                if shown
                    .insert(lines_visible(name).into_owned(), visible(value)?)
                    .is_some()
                {
                    return Err(Error::unfit("", "has two members that look the same"));
                }
            }
            shown.into()
        }
        Value::Array(items) => items.iter().map(visible).collect::<Result<Vec<_>>>()?.into(),
        Value::String(text) => lines_visible(text).into(),
        Value::Null | Value::Bool(_) | Value::Number(_) => value.clone(),
    })
}

/// Returns who would get something by a request: of one that gives, users and accounts that its path and its body name, so that no operation
/// can forget them; and whom the operation says.
///
/// Errors: `InvalidDefinition` where they are too many.
fn gains(call: &CallOfTwo) -> Result<Vec<String>> {
    let gives = call
        .meta
        .second_person
        .is_some_and(|declared| declared.named.contains(&ActOfTwo::Rights.as_str()));
    let mut found = Vec::new();
    if gives {
        for (part, name) in ["path", "body"]
            .iter()
            .flat_map(|part| GAINING.map(|name| (part, name)))
        {
            match &call.request[part][name] {
                Value::String(id) => found.push(id.clone()),
                Value::Array(ids) => found.extend(ids.iter().filter_map(Value::as_str).map(str::to_owned)),
                _ => {}
            }
        }
    }
    found.extend(call.gains.iter().cloned());
    found.retain(|id| PREFIXES.iter().any(|prefix| id.starts_with(prefix)));
    found.sort_unstable();
    found.dedup();
    if found.len() > MOST_GAINS {
        let message = format!(
            "must give something to at most {MOST_GAINS} users and accounts at once; make several requests of it"
        );
        return Err(Error::unfit("", message));
    }
    Ok(found)
}
