//! One function for every operation and every surface: the order of checks of D1.4.
//!
//! The HTTP edge has done steps 1 and 2 (framing, route, method) before. Here, on a reader thread and in one
//! snapshot: authentication, organization, role and scope, rate buckets, media type, schema. A read goes on
//! and answers; a write becomes a unit and waits for its organization's writer.
//!
//! INVARIANT DP-1: a foreign and an unknown organization get the same bytes, decided before any look-up.
//! INVARIANT DP-2: nothing about schema, existence or state is said to a caller who may not call.
//! Keeps AU-1.

mod decode;
mod identify;
mod record;

pub use crate::credential::{McpClient, Presented, Surface};
pub use decode::percent_decode;
pub use identify::{Identity, Knock, identify_and_call, recognize};

use crate::auth::{Actor, OrganizationId, Origin};
use crate::credential::{self, Caller, Credential, Credentials, Kind, Verified};
use crate::cx::Cx;
use crate::db::{Conn, Param, Tx};
use crate::error::{Code, Error, Result};
use crate::kernel::{Kernel, buckets};
use crate::operation::{self, Answer, Entry, authorize};
use crate::rate::{Bucket, Taken};
use crate::supervisor::catch_panic;
use crate::threads::Turn;
use crate::traces::{Later, Traces};
use crate::work::{Call, Run, Unit};
use bytes::Bytes;
use decode::{Decoded, decode, path_of};
use http::{HeaderMap, Method};
use identify::Found;
use record::{BREATH, known_but_dead, note_denial, note_use, record_read, stranger};
use serde_json::Value;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use tokio::sync::oneshot;

/// A request for one operation, read completely.
#[derive(Debug)]
pub struct Request {
    /// The place of the operation in the registry.
    pub place: usize,
    /// The organization of the path.
    pub organization: String,
    /// The other path parameters, decoded once.
    pub path: Vec<(&'static str, String)>,
    /// The raw query.
    pub query: Option<String>,
    /// The headers.
    pub headers: HeaderMap,
    /// The body.
    pub body: Bytes,
    /// Where it came from.
    pub origin: Origin,
    /// By which door it came.
    pub surface: Surface,
    /// The method of the HTTP request, and its raw path without query.
    pub line: (Method, String),
    /// The caller's token, where it was recognized before: by [`precheck`] or [`identify_and_call`]. A proof of possession
    /// serves once.
    pub presented: Option<Arc<Presented>>,
}

/// What came of a request.
#[derive(Debug)]
pub struct Outcome {
    /// The answer or the refusal.
    pub result: Result<Answer>,
    /// What the caller's bucket holds; present once the caller is known.
    pub rate: Option<(&'static Bucket, Taken)>,
}

impl Outcome {
    fn refused(error: Error, rate: Rate) -> Self {
        Self {
            result: Err(error),
            rate,
        }
    }
}

/// What a reader thread found out.
enum Step {
    Done(Outcome),
    /// Something must be written before the request goes on: the token is used for the first time, so that its
    /// replay ends (D4.8), or its session is not there yet (D7.1).
    First(OrganizationId, First),
    /// The snapshot is released; the rest of the answer is what a future gives.
    Later(Box<Promised>),
    /// A writer answers.
    Queued(
        oneshot::Receiver<Result<Answer>>,
        Option<(&'static Bucket, Taken)>,
    ),
    /// A writer answers a revoked token that may only fetch the lost answer of its own rotation.
    Fetching(oneshot::Receiver<Result<Answer>>, Box<Credential>),
}

/// What is written before a request goes on.
#[derive(Clone)]
enum First {
    Use(String),
    Open(Arc<Verified>),
    Join(Box<Joining>),
}

/// A service account's token that comes to the MCP endpoint as a client for the first time.
#[derive(Clone)]
struct Joining {
    caller: Caller,
    token_id: String,
    client: McpClient,
}

impl Joining {
    /// Opens the session.
    ///
    /// INVARIANT MS-5: whoever was disabled or lost the token since a reader looked opens none.
    ///
    /// Errors: those of a token that may not come.
    fn open(&self, cx: &mut Cx<'_>, credentials: &dyn Credentials) -> Result<()> {
        let statement = Caller::statement(self.caller.kind, credentials)?;
        let lookup = [Param::from(self.caller.lookup.as_str())];
        let found = cx.query_opt(statement, &lookup, |row| {
            Caller::read(self.caller.kind, credentials, row)
        })?;
        let credential = found.ok_or_else(credential::invalid_token)?;
        if credential.judge(cx.latest())?.replay_only {
            return Err(Error::new(Code::TokenRevoked, "the token was rotated"));
        }
        credential::sessions(credentials)?.join(cx, &credential, &self.client)
    }
}

/// An answer to a read whose bytes come later ([`Cx::later`]).
struct Promised {
    later: Later,
    answer: Answer,
    actor: Actor,
    traces: Traces,
    now: crate::Timestamp,
    rate: Rate,
}

/// Answers a request.
pub async fn dispatch(kernel: &Arc<Kernel>, mut request: Request) -> Outcome {
    if request.presented.is_none() {
        match identify::present(kernel, &request.knock()).await {
            Ok(presented) => request.presented = Some(presented),
            Err(outcome) => return outcome,
        }
    }
    let request = Arc::new(request);
    // Three times at most: a first use and a first session are settled once each.
    for _ in 0..3 {
        let (reply, answer) = oneshot::channel();
        let (shared, asked) = (kernel.clone(), request.clone());
        kernel.settings.threads.pause(Turn::Read).await;
        let submitted = kernel.submit_read(move |conn| {
            let step = catch_unwind(AssertUnwindSafe(|| on_reader(&shared, conn, &asked)));
            let step = step.unwrap_or_else(|_| refused(Error::internal("a reader panicked"), None));
            let _ = reply.send(step);
        });
        if let Err(error) = submitted {
            return Outcome::refused(error, None);
        }
        let Ok(step) = answer.await else { break };
        let (organization, first) = match conclude(kernel, &request, step).await {
            Ok(outcome) => return outcome,
            Err(first) => first,
        };
        if let Err(outcome) = settle(kernel, &request.origin, organization, first).await {
            return outcome;
        }
    }
    Outcome::refused(Error::unavailable("the server is busy; try again"), None)
}

/// Waits for what a reader thread left open.
///
/// Errors: what must be written before the request can be answered.
async fn conclude(
    kernel: &Arc<Kernel>,
    request: &Request,
    step: Step,
) -> std::result::Result<Outcome, (OrganizationId, First)> {
    let stopping = |_| Err(Error::unavailable("the server is shutting down"));
    Ok(match step {
        Step::Done(outcome) => outcome,
        Step::Later(promised) => keep(kernel, request, *promised).await,
        Step::Queued(answer, rate) => {
            let result = answer.await.unwrap_or_else(stopping);
            Outcome { result, rate }
        }
        Step::Fetching(answer, credential) => match answer.await.unwrap_or_else(stopping) {
            Err(error) if error.code() == Code::TokenRevoked => {
                known_but_dead(kernel, &request.origin, Kind::ServiceAccount, &credential, error)
            }
            result => Outcome { result, rate: None },
        },
        Step::First(organization, first) => return Err((organization, first)),
    })
}

/// Waits for the rest of an answer, and remembers the read as it came out.
async fn keep(kernel: &Arc<Kernel>, request: &Request, promised: Promised) -> Outcome {
    let Promised {
        later,
        mut answer,
        actor,
        traces,
        now,
        rate,
    } = promised;
    let bytes = catch_panic(later.bytes).await;
    let bytes = bytes.unwrap_or_else(|panic| Err(Error::internal(format!("panic: {panic}"))));
    let result = bytes.map(|bytes| {
        answer.body = bytes;
        answer.media_type = later.media_type.unwrap_or(answer.media_type);
        answer
    });
    let entry = &kernel.registry.entries()[request.place];
    let recorded = record_read(kernel, entry, request, &actor, traces, &result, now);
    if let Ok(true) = recorded {
        tokio::time::sleep(BREATH).await;
    }
    Outcome {
        result: recorded.and(result),
        rate,
    }
}

/// Writes what must be there before a request goes on.
///
/// Errors: the outcome that answers the request.
async fn settle(
    kernel: &Arc<Kernel>,
    origin: &Origin,
    organization: OrganizationId,
    first: First,
) -> std::result::Result<(), Outcome> {
    let shared = kernel.clone();
    let (is_stranger, is_joining) = (matches!(first, First::Open(_)), matches!(first, First::Join(_)));
    // Whose sessions are too many: a token of ours, or a grant of another issuer.
    let whose = match &first {
        First::Use(token_id) => token_id.clone(),
        First::Open(verified) => verified.grant.clone(),
        First::Join(joining) => joining.token_id.clone(),
    };
    let place = organization.clone();
    // A session that begins is news, and stands in the audit log.
    let action = (!matches!(first, First::Use(_))).then_some("mcp.session.issued");
    let run = move |cx: &mut Cx<'_>| match &first {
        First::Use(token_id) => {
            cx.erase_replay(token_id)?;
            shared.credentials.first_use(cx, token_id)
        }
        First::Open(verified) => credential::sessions(shared.credentials.as_ref())?.open(cx, verified),
        First::Join(joining) => joining.open(cx, shared.credentials.as_ref()),
    };
    let done = match kernel.system(organization, action, run).await {
        // Something happened to the token since: the next look says what, and counts it.
        Err(error) if is_joining && error.code().status() == 401 => Ok(()),
        done => done,
    };
    done.map_err(|error| match (error.code(), is_stranger, error.is_refusal()) {
        (Code::RateLimited, ..) => {
            kernel
                .ledger
                .count_known(&place, &whose, Code::RateLimited.as_str());
            Outcome::refused(error, None)
        }
        (_, true, true) => stranger(kernel, origin, "invalid", credential::invalid_token()),
        _ => Outcome::refused(error, None),
    })
}

fn refused(error: Error, rate: Rate) -> Step {
    Step::Done(Outcome::refused(error, rate))
}

/// Says, before the body of a request is read, whether its caller may call at all: steps 3 to 5 (ADR 0071). What `request`
/// holds of a body is not looked at. Returns the caller's token, for the request itself.
///
/// Errors: the outcome that answers the request.
pub async fn precheck(
    kernel: &Arc<Kernel>,
    request: &Request,
) -> std::result::Result<Arc<Presented>, Outcome> {
    let identity = identify::identify_for(kernel, request.knock(), Some(request.place)).await?;
    if identity.actor.replay_only {
        return Ok(identity.presented);
    }
    let entry = &kernel.registry.entries()[request.place];
    admit(entry, request, &identity.actor, &path_of(entry, request)).map_err(|error| {
        note_denial(kernel, entry, request, &identity.actor, &error);
        Outcome::refused(error, peek_rate(kernel, entry, &identity.actor))
    })?;
    Ok(identity.presented)
}

impl Request {
    fn knock(&self) -> Knock {
        Knock {
            headers: self.headers.clone(),
            origin: self.origin.clone(),
            surface: self.surface.clone(),
            line: self.line.clone(),
        }
    }
}

/// Everything between the bytes of a request and either its answer or its unit.
fn on_reader(kernel: &Arc<Kernel>, conn: &mut Conn, request: &Request) -> Step {
    let entry = &kernel.registry.entries()[request.place];
    let Some(presented) = &request.presented else {
        return refused(Error::internal("a request without its token"), None);
    };
    if presented.kind() == Kind::Gateway && !entry.meta.gateway {
        return Step::Done(stranger(
            kernel,
            &request.origin,
            "invalid",
            credential::invalid_token(),
        ));
    }
    let step = conn.read(|tx| in_snapshot(kernel, tx, entry, request, presented));
    step.unwrap_or_else(|error| refused(error, None))
}

fn in_snapshot(
    kernel: &Arc<Kernel>,
    tx: &mut Tx<'_>,
    entry: &Entry,
    request: &Request,
    presented: &Presented,
) -> Result<Step> {
    let now = kernel.clock.now();
    let found = identify::in_snapshot(kernel, tx, &request.origin, &request.surface, presented, now)?;
    let (actor, credential) = match found {
        Found::Known(known) => *known,
        Found::First(organization, first) => return Ok(Step::First(organization, first)),
        Found::Refused(outcome) => return Ok(Step::Done(outcome)),
    };
    if actor.replay_only {
        return Ok(fetch_lost_answer(
            kernel, entry, request, actor, presented, credential, now,
        ));
    }
    proceed(kernel, tx, entry, request, presented, actor, credential, now)
}

/// Everything behind the authentication, for a token that is alive.
#[expect(clippy::too_many_arguments, reason = "the parts of one request, used once")]
fn proceed(
    kernel: &Arc<Kernel>,
    tx: &mut Tx<'_>,
    entry: &Entry,
    request: &Request,
    presented: &Presented,
    actor: Actor,
    credential: Credential,
    now: crate::Timestamp,
) -> Result<Step> {
    if credential.replay_pending {
        return Ok(Step::First(actor.organization, First::Use(credential.token_id)));
    }
    note_use(kernel, &request.origin, presented.kind(), &credential, now);
    let path = path_of(entry, request);
    if let Err(error) = admit(entry, request, &actor, &path) {
        note_denial(kernel, entry, request, &actor, &error);
        return Ok(refused(error, peek_rate(kernel, entry, &actor)));
    }
    let rate = match take_rate(kernel, entry, &actor) {
        Ok(rate) => rate,
        Err((error, rate)) => return Ok(refused(error, rate)),
    };
    let decoded = match decode(kernel, entry, request, &actor, path) {
        Ok(decoded) => decoded,
        Err(error) => {
            note_denial(kernel, entry, request, &actor, &error);
            return Ok(refused(error, rate));
        }
    };
    let kind = if decoded.is_preview {
        operation::Kind::Read
    } else {
        entry.meta.kind
    };
    match kind {
        operation::Kind::Read => read(kernel, tx, entry, request, actor, &decoded, now, rate),
        operation::Kind::Write => Ok(queue(
            kernel, entry, request, actor, presented, decoded, now, rate,
        )),
    }
}

/// Steps 4 and 5: the organization's binding, then role and scope.
fn admit(entry: &Entry, request: &Request, actor: &Actor, path: &Value) -> Result<()> {
    if request.organization != actor.organization.as_str() {
        let message = "this token does not belong to the organization of the path";
        return Err(Error::new(Code::OrganizationForbidden, message));
    }
    authorize(entry.meta, actor, path)
}

/// A token that rotated itself may fetch the lost answer of that rotation. Whatever else it asks for, and
/// however wrongly it asks, it is a revoked token (D5.5).
fn fetch_lost_answer(
    kernel: &Arc<Kernel>,
    entry: &Entry,
    request: &Request,
    actor: Actor,
    presented: &Presented,
    credential: Credential,
    now: crate::Timestamp,
) -> Step {
    let dead = || {
        let error = credential::only_replays();
        Step::Done(known_but_dead(
            kernel,
            &request.origin,
            Kind::ServiceAccount,
            &credential,
            error,
        ))
    };
    let path = path_of(entry, request);
    if !entry.meta.reveals_secret || admit(entry, request, &actor, &path).is_err() {
        return dead();
    }
    if let Err(error) = kernel.limit(&buckets::SELF_REPLAY, &[&credential.token_id]) {
        return refused(error, None);
    }
    let Ok(decoded) = decode(kernel, entry, request, &actor, path) else {
        return dead();
    };
    match queue(kernel, entry, request, actor, presented, decoded, now, None) {
        Step::Queued(answer, _) => Step::Fetching(answer, Box::new(credential)),
        step => step,
    }
}

type Rate = Option<(&'static Bucket, Taken)>;

/// Step 6: the buckets of the principal and of its organization.
fn take_rate(kernel: &Kernel, entry: &Entry, actor: &Actor) -> std::result::Result<Rate, (Error, Rate)> {
    let (own, organization) = entry.meta.rate.buckets();
    let org = actor.organization.as_str();
    let key = [org, actor.id.as_str()];
    match kernel.limit(own, &key) {
        Ok(None) => Ok(None),
        Ok(Some(taken)) => match kernel.limit(organization, &[org]) {
            Ok(_) => Ok(Some((own, taken))),
            Err(error) => Err((error, Some((own, taken)))),
        },
        Err(error) => Err((error, Some((own, kernel.limiter.peek(own, &key))))),
    }
}

/// What the principal's bucket holds, for an answer that takes nothing from it (D1.11).
fn peek_rate(kernel: &Kernel, entry: &Entry, actor: &Actor) -> Rate {
    let (own, _) = entry.meta.rate.buckets();
    let key = [actor.organization.as_str(), actor.id.as_str()];
    kernel
        .settings
        .rate_limits
        .then(|| (own, kernel.limiter.peek(own, &key)))
}

#[expect(clippy::too_many_arguments, reason = "the parts of one request, used once")]
fn read(
    kernel: &Kernel,
    tx: &mut Tx<'_>,
    entry: &Entry,
    request: &Request,
    actor: Actor,
    decoded: &Decoded,
    now: crate::Timestamp,
    rate: Rate,
) -> Result<Step> {
    let mut cx = Cx::new(tx.reborrow(), kernel, &actor, now, kernel.entropy.seed(), None);
    cx.origin = Some(&request.origin);
    let result = catch_unwind(AssertUnwindSafe(|| decoded.bound.call(&mut cx)));
    let result = result.unwrap_or_else(|_| Err(Error::internal("the operation panicked")));
    let mut traces = std::mem::take(&mut cx.traces);
    drop(cx);
    if let Err(error) = &result
        && error.work_class() == crate::error::Class::Lost
    {
        // The connection repeats the whole read once on a new connection.
        return Err(result
            .map(|_| ())
            .err()
            .unwrap_or_else(|| Error::internal("a lost read without error")));
    }
    let later = traces.later.take();
    match (result, later) {
        (Ok(answer), Some(later)) => Ok(Step::Later(Box::new(Promised {
            later,
            answer,
            actor,
            traces,
            now,
            rate,
        }))),
        (result, _) => {
            let recorded = record_read(kernel, entry, request, &actor, traces, &result, now);
            if let Ok(true) = recorded {
                std::thread::sleep(BREATH);
            }
            let result = recorded.and(result);
            Ok(Step::Done(Outcome { result, rate }))
        }
    }
}

#[expect(clippy::too_many_arguments, reason = "the parts of one request, used once")]
fn queue(
    kernel: &Arc<Kernel>,
    entry: &Entry,
    request: &Request,
    actor: Actor,
    presented: &Presented,
    decoded: Decoded,
    now: crate::Timestamp,
    rate: Rate,
) -> Step {
    if kernel.is_broken() {
        return refused(kernel.brokenness(), rate);
    }
    let in_flight = match kernel.take_flight(&actor) {
        Ok(in_flight) => in_flight,
        Err(error) => return refused(error, rate),
    };
    let Some(key) = decoded.key else {
        return refused(Error::internal("a write without a key"), rate);
    };
    let call = Call {
        meta: entry.meta,
        bound: decoded.bound,
        path: decoded.path,
        caller: presented.caller.clone(),
        surface: request.surface.clone(),
        principal_id: actor.id,
        key,
        origin: request.origin.clone(),
        _in_flight: in_flight,
    };
    let (reply, answer) = oneshot::channel();
    let unit = Unit {
        organization: actor.organization,
        run: Run::Operation(Box::new(call)),
        now,
        seed: kernel.entropy.seed(),
        expires: kernel.clock.monotonic() + kernel.settings.queue_deadline,
        reply: Some(reply),
    };
    match kernel.submit(unit) {
        Ok(()) => Step::Queued(answer, rate),
        Err(error) => refused(error, rate),
    }
}
