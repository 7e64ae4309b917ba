//! Calls that one person alone does not make: a second one has to have said yes before (F8.8).
//!
//! The kernel knows which operations can be named for it and asks whether they are; what a yes is, an area says. It asks in the unit of
//! work that performs the call, in front of the operation, so that no area and no surface can forget it.
//!
//! ```text
//!   a write ── is it one of those that can be named? ── is it named now? ── the area: used (a yes is consumed), asked (202), refused
//!                     │ no                                │ no
//!                     └──────────── the operation ◄───────┘
//! ```
//!
//! INVARIANT TW-1: what is named for two people acts only in a unit of work that consumes a yes to this very request, by whichever door
//! the request came; a request that was not performed consumes none.
//! INVARIANT TW-2: nobody is asked for a yes to what would be refused all the same: what is asked for was performed before, and taken back.
//! It spends no limit of the caller or of what it is about, and nothing is performed for who may not ask or has asked already.
//! INVARIANT TW-3: whoever performs by a yes gives others no more than their role, and that alone with every scope of it: a session has a
//! list of scopes, as every session has, and without this nobody who signs in could make somebody an admin.
//!
//! Absent on purpose: reads and previews, which change nothing; what machines say of themselves; the program's own units, and the
//! operator's commands.

use crate::announcement::{Announcement, Question};
use crate::answer::Answer;
use crate::context::OperationContext;
use crate::error::{Error, Result};
use crate::operation::{Access, BoundCall, Meta};
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value;

pub use crate::operation::{PARAMETERS, SaidOfSecondPerson, SecondPerson};

/// What came of asking for a second person; nothing else was done.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ApprovalAsked {
    /// What waits for a second person. The same request with it as `approvalId` is performed once somebody has said yes.
    pub approval_id: String,
    /// Where it stands: `pending`, or `approved` where somebody has said yes already.
    pub state: String,
    /// Until when it waits.
    pub deadline_at: crate::Timestamp,
    /// What is to be done, in a sentence.
    pub message: String,
}

/// A decoded request for an operation that can be named.
pub(crate) struct Asked {
    pub said: SaidOfSecondPerson,
    /// All that the request says, but for its key and what it says of a second person.
    pub request: Value,
    /// It is refused anyway, because it says no `confirm: true`.
    pub is_unconfirmed: bool,
}

impl Asked {
    /// Says whether the request names an approval.
    pub(crate) fn names_approval(&self) -> bool {
        self.said.approval_id.is_some()
    }

    /// Says whether the request asks for a second person.
    pub(crate) fn is_asking(&self) -> bool {
        self.said.request_approval && !self.is_unconfirmed
    }
}

/// Asks which words are named in the caller's organization; each answer is one.
pub struct NamedWords;

impl Announcement for NamedWords {
    const IS_DECISIVE: bool = true;
}

impl Question for NamedWords {
    type Answer = String;
}

/// Asks what becomes of a call that needs a second person.
pub struct CallOfTwo {
    /// The operation.
    pub meta: &'static Meta,
    /// All that the request says, and what of the store a yes to it is a yes to.
    pub request: Value,
    /// What it says of a second person.
    pub said: SaidOfSecondPerson,
    /// The ids of the users and accounts that get something by it, as the operation says where a yes is asked for; those whom the request
    /// names are not among them.
    pub gains: Vec<String>,
}

impl Announcement for CallOfTwo {
    const IS_DECISIVE: bool = true;
}

impl Question for CallOfTwo {
    type Answer = Passage;
}

/// Asks, before a call is tried for which a yes is asked, whether the same waits for one already; an answer is what waits. Whoever may not
/// ask for it, or has asked for too much, is refused here.
pub struct WaitingCall(pub CallOfTwo);

impl Announcement for WaitingCall {
    const IS_DECISIVE: bool = true;
}

impl Question for WaitingCall {
    type Answer = ApprovalAsked;
}

/// What becomes of a call that needs a second person, where it is not refused.
pub enum Passage {
    /// The approval of this id was consumed: the call is performed, or the whole unit is rolled back.
    Used(String),
    /// It was asked for, and nothing is performed.
    Asked(ApprovalAsked),
}

/// Performs a call, where one person may or a second one has said yes.
///
/// Keeps TW-1.
pub(crate) fn perform(
    ctx: &mut OperationContext<'_>,
    meta: &'static Meta,
    (bound, path): (&dyn BoundCall, &Value),
    asked: Option<&Asked>,
) -> Result<Answer> {
    let Some(asked) = asked.filter(|asked| !asked.is_unconfirmed) else {
        return bound.call(ctx);
    };
    if !is_needed(ctx, meta, bound, path)? {
        return bound.call(ctx);
    }
    let mut call = call_of_two(ctx, meta, bound, asked)?;
    if asked.said.request_approval {
        call.gains = bound.gains(ctx)?;
    }
    let mut passages = ctx.ask(&call)?;
    match (passages.pop(), passages.is_empty()) {
        (Some(Passage::Used(id)), true) => {
            ctx.act_by_two();
            let answer = bound.call(ctx)?;
            // Behind the operation, which may ask whether it changed anything.
            ctx.change("/approvalId", Value::Null, id);
            Ok(answer)
        }
        (Some(Passage::Asked(asked)), true) => {
            ctx.effects.is_unkept = true;
            Ok(Answer {
                status: 202,
                headers: Vec::new(),
                body: serde_json::to_vec(&asked).map_err(Error::internal)?.into(),
                media_type: "application/json",
                replayed: false,
            })
        }
        _ => Err(Error::internal(
            "nobody, or several, said whether a second person has said yes",
        )),
    }
}

/// Returns what is asked about a call, without who gets something by it.
fn call_of_two(
    ctx: &mut OperationContext<'_>,
    meta: &'static Meta,
    bound: &dyn BoundCall,
    asked: &Asked,
) -> Result<CallOfTwo> {
    let mut request = asked.request.clone();
    request["standing"] = bound.standing(ctx)?;
    Ok(CallOfTwo {
        meta,
        request,
        said: asked.said.clone(),
        gains: Vec::new(),
    })
}

/// Returns why a call would be refused if a second person had said yes to it, where that is asked for. Whatever it did is to be rolled back.
///
/// Keeps TW-2.
pub(crate) fn rehearse(
    ctx: &mut OperationContext<'_>,
    meta: &'static Meta,
    (bound, path): (&dyn BoundCall, &Value),
    asked: Option<&Asked>,
) -> Result<()> {
    let Some(asked) = asked else {
        return Ok(());
    };
    // Who cannot ask, and what asks for nothing, is answered by the performance itself.
    if asked.is_asking() && ctx.actor().kind == "console_user" && is_needed(ctx, meta, bound, path)? {
        let call = call_of_two(ctx, meta, bound, asked)?;
        // Whoever may not ask has nothing tried for them, and what waits was tried before.
        if !ctx.ask(&WaitingCall(call))?.is_empty() {
            return Ok(());
        }
        ctx.act_by_two();
        ctx.rehearse();
        bound.call(ctx)?;
    }
    Ok(())
}

/// Says whether a word is named in the caller's organization.
///
/// Errors: those of the store.
pub fn is_named(ctx: &mut OperationContext<'_>, word: &str) -> Result<bool> {
    Ok(ctx.ask(&NamedWords)?.iter().any(|named| named == word))
}

/// Says whether a call needs a second person now.
fn is_needed(
    ctx: &mut OperationContext<'_>,
    meta: &'static Meta,
    bound: &dyn BoundCall,
    path: &Value,
) -> Result<bool> {
    let Some(declared) = meta.second_person else {
        return Ok(false);
    };
    let words = ctx.ask(&NamedWords)?;
    if words.is_empty() {
        return Ok(false);
    }
    // Whoever does it to itself gets nothing that it has not: where `rights` is named the rotation of a token sees to that.
    if let Access::ScopedOrSelf { parameter, .. } = meta.access
        && let Some(named) = path.get(parameter).and_then(Value::as_str)
        && ctx.actor().is_itself(named)
    {
        return Ok(false);
    }
    if declared
        .named
        .iter()
        .any(|word| words.iter().any(|named| named == word))
        && bound.is_of_two(ctx)?
    {
        return Ok(true);
    }
    Ok(declared.of_deciders && bound.touches_deciders(ctx)?)
}
