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
mod throttled;

pub use crate::credential::{BearerToken, EntryPoint, McpClient};
pub use decode::percent_decode;
pub use identify::{AuthenticatedCaller, UnauthenticatedRequest, identify_and_call, recognize};

use crate::auth::{Actor, OrganizationId, Origin};
use crate::context::OperationContext;
use crate::credential::{self, Caller, Credential, Scheme, Sessions, Use, VerifiedToken};
use crate::db::{Conn, Tx};
use crate::effects::{DeferredResponse, Effects};
use crate::error::{Class, Code, Error, Result};
use crate::kernel::Kernel;
use crate::operation::{self, Answer, Entry, authorize};
use crate::rate::{Bucket, RateDecision, buckets};
use crate::supervisor::catch_panic;
use crate::threads::SchedulePoint;
use crate::time::Timestamp;
use crate::work::{Call, Run, Unit};
use bytes::Bytes;
use decode::{DecodedRequest, decode, path_of};
use http::{HeaderMap, Method};
use identify::TokenLookup;
use record::{BACKPRESSURE_DELAY, known_but_dead, note_use, refuse_unauthenticated};
use serde_json::Value;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use throttled::{Throttled, WaitingWrite};
use tokio::sync::oneshot;

/// A request for one operation, read completely.
#[derive(Debug)]
pub struct Request {
    /// The place of the operation in the registry.
    pub operation_index: usize,
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
    /// Whether it came over HTTP or MCP.
    pub entry_point: EntryPoint,
    /// The method of the HTTP request, and its raw path without query.
    pub line: (Method, String),
    /// The caller's token, where it was recognized before: by [`precheck`] or [`identify_and_call`]. A proof of possession
    /// serves once.
    pub presented: Option<Arc<BearerToken>>,
}

/// What came of a request.
#[derive(Debug)]
pub struct Outcome {
    /// The answer or the refusal.
    pub result: Result<Answer>,
    /// What the caller's bucket holds; present once the caller is known.
    pub rate: Option<(&'static Bucket, RateDecision)>,
}

impl Outcome {
    fn refused(error: Error, rate: Rate) -> Self {
        Self {
            result: Err(error),
            rate,
        }
    }
}

/// How far a reader thread came with a request.
enum Step {
    Done(Outcome),
    /// Something must be written before the request goes on: the token is used for the first time, so that its
    /// replay ends (D4.8), or its session is not there yet (D7.1).
    First(OrganizationId, First),
    /// The snapshot is released, and a future computes the rest of the answer.
    Later(Box<DeferredRead>),
    /// A writer answers.
    Queued(
        oneshot::Receiver<Result<Answer>>,
        Option<(&'static Bucket, RateDecision)>,
    ),
    /// A write waits for its rate bucket.
    Throttled(Box<Throttled>),
    /// A writer answers a revoked token that may only fetch the lost answer of its own rotation.
    Fetching(oneshot::Receiver<Result<Answer>>, Scheme, Box<Credential>),
}

/// What must happen before a request goes on.
enum Unsettled {
    /// Something is written.
    First(OrganizationId, First),
    /// There is a token in its bucket.
    Throttled(Box<Throttled>),
}

/// What is written before a request goes on.
#[derive(Clone)]
enum First {
    Use(Scheme, String),
    Open(Arc<VerifiedToken>),
    Join(Box<ClientArrival>),
}

impl std::fmt::Debug for First {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Use(..) => "Use",
            Self::Open(_) => "Open",
            Self::Join(_) => "Join",
        })
    }
}

impl First {
    /// Returns the use of a token, where it is the first one.
    fn use_of(presented: &BearerToken, credential: &Credential) -> Option<Self> {
        let is_first = credential.replay_pending;
        is_first.then(|| Self::Use(presented.scheme(), credential.token_id.clone()))
    }
}

/// A token that comes to the MCP endpoint as a client for the first time.
#[derive(Clone)]
struct ClientArrival {
    caller: Caller,
    token_id: String,
    client: McpClient,
}

impl ClientArrival {
    /// Opens the session.
    ///
    /// INVARIANT MS-5: whoever was disabled or lost the token since a reader looked opens none.
    ///
    /// Errors: those of a token that may not come.
    fn open(&self, ctx: &mut OperationContext<'_>, sessions: &dyn Sessions) -> Result<()> {
        let found = self.caller.scheme.find(&mut ctx.tx(), &self.caller.lookup)?;
        let credential = found.ok_or_else(credential::invalid_token)?;
        if credential.authenticate(ctx.latest())?.replay_only {
            return Err(Error::new(Code::TokenRevoked, "the token was rotated"));
        }
        sessions.join(ctx, &credential, &self.client)
    }
}

/// An answer to a read whose bytes come later ([`OperationContext::later`]).
struct DeferredRead {
    later: DeferredResponse,
    answer: Answer,
    actor: Actor,
    effects: Effects,
    now: Timestamp,
    rate: Rate,
}

/// Answers a request.
pub async fn dispatch(kernel: &Arc<Kernel>, mut request: Request) -> Outcome {
    if request.presented.is_none() {
        match identify::present(kernel, &request.unauthenticated()).await {
            Ok(presented) => request.presented = Some(presented),
            Err(outcome) => return outcome,
        }
    }
    let request = Arc::new(request);
    let mut waiting = None;
    // Three rounds are enough: a first use and a first session each need one round before the request itself. One that waits
    // for its bucket takes as many more as it waits.
    let mut rounds = 0;
    while rounds < 3 {
        let (reply, answer) = oneshot::channel();
        let (shared, asked) = (kernel.clone(), request.clone());
        kernel.settings.threads.pause(SchedulePoint::Read).await;
        let submitted = kernel.submit_read(move |conn| {
            let step = catch_unwind(AssertUnwindSafe(|| on_reader(&shared, conn, &asked)));
            let step = step.unwrap_or_else(|_| refused(Error::internal("a reader panicked"), None));
            let _ = reply.send(step);
        });
        if let Err(error) = submitted {
            return Outcome::refused(error, None);
        }
        let Ok(step) = answer.await else { break };
        let unsettled = match conclude(kernel, &request, step).await {
            Ok(outcome) => return outcome,
            Err(unsettled) => unsettled,
        };
        rounds += i32::from(matches!(unsettled, Unsettled::First(..)));
        if let Err(outcome) = resume(kernel, &request.origin, unsettled, &mut waiting).await {
            return outcome;
        }
    }
    Outcome::refused(Error::unavailable("the server is busy; try again"), None)
}

/// Waits for what a reader thread left open.
///
/// Errors: what must happen before the request can be answered.
async fn conclude(
    kernel: &Arc<Kernel>,
    request: &Request,
    step: Step,
) -> std::result::Result<Outcome, Unsettled> {
    let stopping = |_| Err(Error::unavailable("the server is shutting down"));
    Ok(match step {
        Step::Done(outcome) => outcome,
        Step::Later(promised) => finish_deferred(kernel, request, *promised).await,
        Step::Queued(answer, rate) => {
            let result = answer.await.unwrap_or_else(stopping);
            Outcome { result, rate }
        }
        Step::Fetching(answer, scheme, credential) => match answer.await.unwrap_or_else(stopping) {
            Err(error) if error.code() == Code::TokenRevoked => {
                known_but_dead(kernel, &request.origin, scheme, &credential, error)
            }
            result => Outcome { result, rate: None },
        },
        Step::First(organization, first) => return Err(Unsettled::First(organization, first)),
        Step::Throttled(throttled) => return Err(Unsettled::Throttled(throttled)),
    })
}

/// Waits for the rest of an answer, and records the read with its result.
async fn finish_deferred(kernel: &Arc<Kernel>, request: &Request, promised: DeferredRead) -> Outcome {
    let DeferredRead {
        later,
        mut answer,
        actor,
        effects,
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
    let recorded = Case::of(kernel, request, actor, now).record_read(effects, &result);
    if let Ok(true) = recorded {
        tokio::time::sleep(BACKPRESSURE_DELAY).await;
    }
    Outcome {
        result: recorded.and(result),
        rate,
    }
}

/// Does what must happen before a request goes on.
///
/// Errors: the outcome that answers the request.
async fn resume(
    kernel: &Arc<Kernel>,
    origin: &Origin,
    unsettled: Unsettled,
    waiting: &mut Option<WaitingWrite>,
) -> std::result::Result<(), Outcome> {
    match unsettled {
        Unsettled::First(organization, first) => settle(kernel, origin, organization, first).await,
        Unsettled::Throttled(throttled) => throttled::wait(kernel, origin, *throttled, waiting).await,
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
    let schemes = kernel.schemes;
    let (is_stranger, is_joining) = (matches!(first, First::Open(_)), matches!(first, First::Join(_)));
    // Whose sessions are too many: a token of ours, or a grant of another issuer.
    let whose = match &first {
        First::Use(_, token_id) => token_id.clone(),
        First::Open(verified) => verified.grant.clone(),
        First::Join(joining) => joining.token_id.clone(),
    };
    let place = organization.clone();
    // The beginning of a session is an entry of the audit log of its own.
    let began = schemes.delegated.map(Sessions::began);
    let action = began.filter(|_| !matches!(first, First::Use(..)));
    let run = move |ctx: &mut OperationContext<'_>| match &first {
        First::Use(scheme, token_id) => {
            ctx.erase_replay(token_id)?;
            scheme.first_use(ctx, token_id)
        }
        First::Open(verified) => schemes.sessions()?.0.open(ctx, verified),
        First::Join(joining) => joining.open(ctx, schemes.sessions()?.0),
    };
    let done = match kernel.system(organization, action, run).await {
        // The token changed in the meantime. The next round finds out how, and counts it.
        Err(error) if is_joining && error.code().status() == 401 => Ok(()),
        done => done,
    };
    done.map_err(|error| match (error.code(), is_stranger, error.is_refusal()) {
        (Code::RateLimited, ..) => {
            kernel
                .write_behind
                .count_known(&place, &whose, Code::RateLimited.as_str());
            Outcome::refused(error, None)
        }
        (_, true, true) => refuse_unauthenticated(kernel, origin, "invalid", credential::invalid_token()),
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
) -> std::result::Result<Arc<BearerToken>, Outcome> {
    let identity =
        identify::identify_for(kernel, request.unauthenticated(), Some(request.operation_index)).await?;
    if identity.actor.replay_only {
        return Ok(identity.presented);
    }
    let AuthenticatedCaller {
        actor,
        presented,
        unnoted,
    } = identity;
    let organization = actor.organization.clone();
    let case = Case::of(kernel, request, actor, kernel.clock.now());
    let admitted = case.admit(&path_of(case.entry, request));
    let notes_itself = admitted.is_ok() && presented.scheme().is_noted_by(case.entry.meta.id);
    if let Some(first) = unnoted.filter(|_| !notes_itself) {
        settle(kernel, &request.origin, organization, first).await?;
    }
    match admitted {
        Ok(()) => Ok(presented),
        Err(error) => Err(case.denied(error)),
    }
}

impl Request {
    fn unauthenticated(&self) -> UnauthenticatedRequest {
        UnauthenticatedRequest {
            headers: self.headers.clone(),
            origin: self.origin.clone(),
            entry_point: self.entry_point.clone(),
            line: self.line.clone(),
        }
    }
}

/// Takes a request, from its bytes to its answer (a read) or to its unit of work (a write).
fn on_reader(kernel: &Arc<Kernel>, conn: &mut Conn, request: &Request) -> Step {
    let Some(presented) = &request.presented else {
        return refused(Error::internal("a request without its token"), None);
    };
    let meta = kernel.registry.entries()[request.operation_index].meta;
    let is_http = matches!(request.entry_point, EntryPoint::Http);
    let asked_for = Some(meta).filter(|meta| is_http || meta.of_item);
    if !presented.scheme().reach().includes(asked_for) {
        return Step::Done(refuse_unauthenticated(
            kernel,
            &request.origin,
            "invalid",
            credential::invalid_token(),
        ));
    }
    let step = conn.read(|tx| in_snapshot(kernel, tx, request, presented));
    step.unwrap_or_else(|error| refused(error, None))
}

fn in_snapshot(
    kernel: &Arc<Kernel>,
    tx: &mut Tx<'_>,
    request: &Request,
    presented: &BearerToken,
) -> Result<Step> {
    let now = kernel.clock.now();
    let found = identify::in_snapshot(kernel, tx, &request.origin, &request.entry_point, presented, now)?;
    let (actor, credential) = match found {
        TokenLookup::Known(known) => *known,
        TokenLookup::First(organization, first) => return Ok(Step::First(organization, first)),
        TokenLookup::Refused(outcome) => return Ok(Step::Done(outcome)),
    };
    let case = Case::of(kernel, request, actor, now);
    if case.actor.replay_only {
        return Ok(case.fetch_lost_answer(presented, credential));
    }
    case.proceed(tx, presented, &credential)
}

/// A request whose caller is known, with the instant at which all of its checks are made.
struct Case<'a> {
    kernel: &'a Arc<Kernel>,
    entry: &'a Entry,
    request: &'a Request,
    actor: Actor,
    now: Timestamp,
}

type Rate = Option<(&'static Bucket, RateDecision)>;

impl<'a> Case<'a> {
    fn of(kernel: &'a Arc<Kernel>, request: &'a Request, actor: Actor, now: Timestamp) -> Self {
        Self {
            kernel,
            entry: &kernel.registry.entries()[request.operation_index],
            request,
            actor,
            now,
        }
    }

    /// Everything behind the authentication, for a token that is alive.
    fn proceed(self, tx: &mut Tx<'_>, presented: &BearerToken, credential: &Credential) -> Result<Step> {
        let organization = self.actor.organization.clone();
        let mut unnoted = First::use_of(presented, credential).map(|first| Step::First(organization, first));
        if let Some(first) = unnoted.take_if(|_| !presented.scheme().is_noted_by(self.entry.meta.id)) {
            return Ok(first);
        }
        let used = Use::of(credential, &self.request.origin, self.now);
        note_use(self.kernel, presented.scheme(), credential.last_used_at, used);
        let path = path_of(self.entry, self.request);
        if let Err(error) = self.admit(&path) {
            return Ok(unnoted.unwrap_or_else(|| Step::Done(self.denied(error))));
        }
        // A bucket that is empty says nothing of the use: the same request comes again, and is noted then.
        let rate = match self.take_rate() {
            Ok(rate) => rate,
            Err((error, rate)) => return Ok(self.throttled(error, rate)),
        };
        let decoded = match decode(self.kernel, self.entry, self.request, &self.actor, path) {
            Ok(decoded) => decoded,
            // What the operation would have noted is noted all the same: it is not called.
            Err(error) => {
                return Ok(unnoted.unwrap_or_else(|| {
                    self.note_denial(&error);
                    refused(error, rate)
                }));
            }
        };
        let kind = if decoded.is_preview {
            operation::Kind::Read
        } else {
            self.entry.meta.kind
        };
        match kind {
            operation::Kind::Read => self.read(tx, &decoded, rate),
            operation::Kind::Write => Ok(self.queue(presented, decoded, rate)),
        }
    }

    /// Steps 4 and 5: the organization's binding, then role and scope.
    fn admit(&self, path: &Value) -> Result<()> {
        if self.request.organization != self.actor.organization.as_str() {
            let message = "this token does not belong to the organization of the path";
            // Whose token it is, its holder reads in the capabilities as well.
            let own = self.actor.organization.as_str();
            return Err(Error::new(Code::OrganizationForbidden, message).with("tokenOrganizationId", own));
        }
        authorize(self.entry.meta, &self.actor, path)
    }

    /// Answers a caller who lacks the right, and records the refusal.
    fn denied(&self, error: Error) -> Outcome {
        self.note_denial(&error);
        Outcome::refused(error, self.peek_rate())
    }

    /// Lets a token that rotated itself fetch the lost answer of that rotation. For every other request, a malformed one
    /// included, it is answered as any revoked token is (D5.5).
    fn fetch_lost_answer(self, presented: &BearerToken, credential: Credential) -> Step {
        let (kernel, origin, scheme) = (self.kernel, &self.request.origin, presented.scheme());
        let dead = |credential: &Credential| {
            let error = credential::only_replays();
            Step::Done(known_but_dead(kernel, origin, scheme, credential, error))
        };
        let path = path_of(self.entry, self.request);
        if !self.entry.meta.reveals_secret || self.admit(&path).is_err() {
            return dead(&credential);
        }
        if let Err(error) = kernel.limit(&buckets::SELF_REPLAY, &[&credential.token_id]) {
            return refused(error, None);
        }
        let Ok(decoded) = decode(kernel, self.entry, self.request, &self.actor, path) else {
            return dead(&credential);
        };
        match self.queue(presented, decoded, None) {
            Step::Queued(answer, _) => Step::Fetching(answer, scheme, Box::new(credential)),
            step => step,
        }
    }

    /// Step 6: the buckets of the principal and of its organization.
    fn take_rate(&self) -> std::result::Result<Rate, (Error, Rate)> {
        let (own, organization) = self.entry.meta.rate.buckets();
        let key = self.rate_key();
        match self.kernel.limit(own, &key) {
            Ok(None) => Ok(None),
            Ok(Some(taken)) => match self.kernel.limit(organization, &key[..1]) {
                Ok(_) => Ok(Some((own, taken))),
                Err(error) => Err((error, Some((own, taken)))),
            },
            Err(error) => Err((error, Some((own, self.kernel.limiter.peek(own, &key))))),
        }
    }

    /// Answers a request that a bucket refused, or lets it wait.
    fn throttled(self, error: Error, rate: Rate) -> Step {
        let meta = self.entry.meta;
        if meta.kind != operation::Kind::Write || self.request.origin.manager.is_none() {
            return refused(error, rate);
        }
        let throttled = Throttled::new(self.actor, meta.rate.buckets(), error, rate);
        Step::Throttled(Box::new(throttled))
    }

    /// What the principal's bucket holds, for an answer that takes nothing from it (D1.11).
    fn peek_rate(&self) -> Rate {
        let (own, _) = self.entry.meta.rate.buckets();
        let peek = || (own, self.kernel.limiter.peek(own, &self.rate_key()));
        self.kernel.settings.rate_limits.then(peek)
    }

    fn rate_key(&self) -> [&str; 2] {
        [self.actor.organization.as_str(), &self.actor.id]
    }

    fn read(self, tx: &mut Tx<'_>, decoded: &DecodedRequest, rate: Rate) -> Result<Step> {
        let seed = self.kernel.entropy.seed();
        let mut ctx = OperationContext::new(tx.reborrow(), self.kernel, &self.actor, self.now, seed, None);
        ctx.origin = Some(&self.request.origin);
        let result = catch_unwind(AssertUnwindSafe(|| decoded.bound.call(&mut ctx)));
        let result = result.unwrap_or_else(|_| Err(Error::internal("the operation panicked")));
        let mut effects = std::mem::take(&mut ctx.effects);
        drop(ctx);
        let lost = |error: &Error| error.work_class() == Class::Lost;
        let later = effects.later.take();
        match (result, later) {
            // The connection repeats the whole read once on a new connection.
            (Err(error), _) if lost(&error) => Err(error),
            (Ok(answer), Some(later)) => Ok(Step::Later(Box::new(DeferredRead {
                later,
                answer,
                actor: self.actor,
                effects,
                now: self.now,
                rate,
            }))),
            (result, _) => {
                let recorded = self.record_read(effects, &result);
                if let Ok(true) = recorded {
                    std::thread::sleep(BACKPRESSURE_DELAY);
                }
                let result = recorded.and(result);
                Ok(Step::Done(Outcome { result, rate }))
            }
        }
    }

    fn queue(self, presented: &BearerToken, decoded: DecodedRequest, rate: Rate) -> Step {
        let Self {
            kernel,
            entry,
            request,
            actor,
            now,
        } = self;
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
            entry_point: request.entry_point.clone(),
            principal_id: actor.id,
            key,
            second_person: decoded.second_person,
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
}
