//! One function for every operation and every surface (architecture §4): the order of checks of D1.4.
//!
//! The HTTP edge has done steps 1 and 2 (framing, route, method) before. Here, on a reader thread and in one
//! snapshot: authentication, organization, role and scope, rate buckets, media type, schema. A read goes on
//! and answers; a write becomes a unit and waits for its organization's writer.
//!
//! INVARIANT DP-1: a foreign and an unknown organization get the same bytes, decided before any look-up.
//! INVARIANT DP-2: nothing about schema, existence or state is said to a caller who may not call.

use crate::audit::{Decision, Note};
use crate::auth::{Actor, OrganizationId, Origin};
use crate::credential::{self, Credential, Presented, Use};
use crate::cx::Cx;
use crate::db::{Conn, Param, Tx};
use crate::error::{Code, Error, Result};
use crate::idempotency::KeyUse;
use crate::json;
use crate::kernel::{Kernel, buckets};
use crate::ledger::{USE_PRECISION_MS, network};
use crate::operation::{Answer, Entry, Kind, Raw, authorize};
use crate::rate::{Bucket, Taken};
use crate::wire::Trio;
use crate::work::{Call, Run, Unit};
use bytes::Bytes;
use http::HeaderMap;
use http::header::CONTENT_TYPE;
use serde_json::{Map, Value, json};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, PoisonError};
use std::time::Duration;
use tokio::sync::oneshot;

/// LIMIT: nesting of a body (D1.3).
pub const MAX_DEPTH: usize = 32;

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
    /// The token is used for the first time: its replay must end before the request goes on (D4.8).
    FirstUse(OrganizationId, String),
    /// A writer answers.
    Queued(
        oneshot::Receiver<Result<Answer>>,
        Option<(&'static Bucket, Taken)>,
    ),
    /// A writer answers a revoked token that may only fetch the lost answer of its own rotation.
    Fetching(oneshot::Receiver<Result<Answer>>, Box<Credential>),
}

/// Answers a request.
pub async fn dispatch(kernel: &Arc<Kernel>, request: Request) -> Outcome {
    let request = Arc::new(request);
    // Twice at most: a first use is settled once, then the token is an ordinary one.
    for _ in 0..3 {
        let (reply, answer) = oneshot::channel();
        let (shared, asked) = (kernel.clone(), request.clone());
        let submitted = kernel.submit_read(move |conn| {
            let step = catch_unwind(AssertUnwindSafe(|| on_reader(&shared, conn, &asked)));
            let step = step.unwrap_or_else(|_| refused(Error::internal("a reader panicked"), None));
            let _ = reply.send(step);
        });
        if let Err(error) = submitted {
            return Outcome {
                result: Err(error),
                rate: None,
            };
        }
        match answer.await {
            Ok(Step::Done(outcome)) => return outcome,
            Ok(Step::Queued(answer, rate)) => {
                let result = answer
                    .await
                    .unwrap_or_else(|_| Err(Error::unavailable("the server is shutting down")));
                return Outcome { result, rate };
            }
            Ok(Step::Fetching(answer, credential)) => {
                let result = answer
                    .await
                    .unwrap_or_else(|_| Err(Error::unavailable("the server is shutting down")));
                return match result {
                    Err(error) if error.code() == Code::TokenRevoked => {
                        known_but_dead(kernel, &request, &credential, error)
                    }
                    result => Outcome { result, rate: None },
                };
            }
            Ok(Step::FirstUse(organization, token_id)) => {
                if let Err(error) = first_use(kernel, organization, token_id).await {
                    return Outcome {
                        result: Err(error),
                        rate: None,
                    };
                }
            }
            Err(_) => break,
        }
    }
    Outcome {
        result: Err(Error::unavailable("the server is busy; try again")),
        rate: None,
    }
}

async fn first_use(kernel: &Arc<Kernel>, organization: OrganizationId, token_id: String) -> Result<()> {
    let shared = kernel.clone();
    let run = move |cx: &mut Cx<'_>| {
        cx.erase_replay(&token_id)?;
        shared.credentials.first_use(cx, &token_id)
    };
    kernel.system(organization, None, run).await
}

fn refused(error: Error, rate: Rate) -> Step {
    Step::Done(Outcome::refused(error, rate))
}

/// Everything between the bytes of a request and either its answer or its unit.
fn on_reader(kernel: &Arc<Kernel>, conn: &mut Conn, request: &Request) -> Step {
    let entry = &kernel.registry.entries()[request.place];
    let presented = match Presented::from_headers(&request.headers) {
        Ok(presented) => presented,
        Err(error) => {
            let code = if request.headers.contains_key(http::header::AUTHORIZATION) {
                "invalid"
            } else {
                "absent"
            };
            return Step::Done(stranger(kernel, request, code, error));
        }
    };
    let step = conn.read(|tx| in_snapshot(kernel, tx, entry, request, &presented));
    step.unwrap_or_else(|error| refused(error, None))
}

fn in_snapshot(
    kernel: &Arc<Kernel>,
    tx: &mut Tx<'_>,
    entry: &Entry,
    request: &Request,
    presented: &Presented,
) -> Result<Step> {
    let lookup = [Param::from(presented.lookup_id.as_str())];
    let found = tx.query_opt(kernel.credentials.lookup(), &lookup, |row| {
        kernel.credentials.read(row)
    })?;
    let found = found.filter(|credential| presented.matches(credential, &kernel.keys));
    let Some(credential) = found else {
        return Ok(Step::Done(stranger(
            kernel,
            request,
            "invalid",
            credential::invalid_token(),
        )));
    };
    let now = kernel.clock.now();
    let actor = match credential.judge(now) {
        Ok(actor) => actor,
        Err(error) => return Ok(Step::Done(known_but_dead(kernel, request, &credential, error))),
    };
    if actor.replay_only {
        return Ok(fetch_lost_answer(
            kernel, entry, request, actor, presented, credential, now,
        ));
    }
    if credential.replay_pending {
        return Ok(Step::FirstUse(actor.organization, credential.token_id));
    }
    note_use(kernel, request, &credential, now);
    let path = path_of(request);
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
        Err(error) => return Ok(refused(error, rate)),
    };
    match entry.meta.kind {
        Kind::Read => Ok(Step::Done(read(
            kernel, tx, entry, request, &actor, &decoded, now, rate,
        )?)),
        Kind::Write => Ok(queue(
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
        Step::Done(known_but_dead(kernel, request, &credential, error))
    };
    let path = path_of(request);
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
    let (own, organization) = Kernel::class_buckets(entry.meta.rate);
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
    let (own, _) = Kernel::class_buckets(entry.meta.rate);
    let key = [actor.organization.as_str(), actor.id.as_str()];
    kernel
        .settings
        .rate_limits
        .then(|| (own, kernel.limiter.peek(own, &key)))
}

struct Decoded {
    bound: Box<dyn crate::operation::Bound>,
    path: Value,
    key: Option<KeyUse>,
}

/// Steps 7 and 8: the media type, the strict JSON, the trio, the schema.
fn decode(kernel: &Kernel, entry: &Entry, request: &Request, actor: &Actor, path: Value) -> Result<Decoded> {
    let mut body = body_of(entry, request)?;
    let query = query_of(entry, request)?;
    let trio = Trio::take(entry.meta, &request.headers, &mut body)?;
    let key = trio.key.as_ref().map(|key| {
        // Members of the fingerprint: D4.4.
        let mut fingerprint = Value::Object(body.clone());
        fingerprint["reason"] = json!(trio.reason.as_ref().map(crate::text::Reason::as_str));
        fingerprint["confirm"] = trio.confirm.into();
        let manager = |name: &str| {
            request
                .headers
                .get(name)
                .map(|v| String::from_utf8_lossy(v.as_bytes()))
        };
        let request_value = json!({
            "path": path,
            "query": query,
            "body": fingerprint,
            "manager": [manager("x-forge-terraform-manager"), manager("x-forge-terraform-instance")],
        });
        KeyUse::new(
            &kernel.keys,
            key.as_str(),
            actor.organization.as_str(),
            entry.meta.id,
            &request_value,
        )
    });
    let raw = Raw {
        path: path.clone(),
        query,
        body: Value::Object(body),
        reason: trio.reason,
        confirm: trio.confirm,
    };
    Ok(Decoded {
        bound: (entry.bind)(raw)?,
        path,
        key,
    })
}

fn path_of(request: &Request) -> Value {
    let members = request
        .path
        .iter()
        .map(|(name, value)| ((*name).to_owned(), Value::from(value.as_str())));
    Value::Object(members.collect())
}

fn body_of(entry: &Entry, request: &Request) -> Result<Map<String, Value>> {
    if request.body.is_empty() {
        return Ok(Map::new());
    }
    if !entry.meta.method.has_body() {
        return Err(Error::invalid("", "this method takes no body"));
    }
    let media_type = request
        .headers
        .get(CONTENT_TYPE)
        .and_then(|v| v.to_str().ok())
        .unwrap_or("");
    let essence = media_type.split(';').next().unwrap_or("").trim();
    if !essence.eq_ignore_ascii_case("application/json") {
        return Err(Error::new(
            Code::UnsupportedMediaType,
            "the body must be application/json",
        ));
    }
    match json::parse(&request.body, MAX_DEPTH)? {
        Value::Object(members) => Ok(members),
        _ => Err(Error::invalid("", "the body must be a JSON object")),
    }
}

fn query_of(entry: &Entry, request: &Request) -> Result<Value> {
    let mut members = Map::new();
    for pair in request
        .query
        .as_deref()
        .unwrap_or("")
        .split('&')
        .filter(|p| !p.is_empty())
    {
        let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
        let (name, value) = (decode_query(name)?, decode_query(value)?);
        if !entry.query_names.contains(&name) {
            let known = if entry.query_names.is_empty() {
                "none".into()
            } else {
                entry.query_names.join(", ")
            };
            let message = format!("this query parameter does not exist here; known: {known}");
            return Err(Error::new(Code::UnknownParameter, message));
        }
        if members.insert(name.clone(), Value::from(value)).is_some() {
            return Err(Error::invalid(format!("/query/{name}"), "is given twice"));
        }
    }
    Ok(Value::Object(members))
}

fn decode_query(text: &str) -> Result<String> {
    percent_decode(&text.replace('+', " "))
        .ok_or_else(|| Error::invalid("/query", "is not valid percent-encoded UTF-8"))
}

/// Decodes a percent-encoded text once; `None` when an escape is broken or the result is not UTF-8.
pub fn percent_decode(text: &str) -> Option<String> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.bytes();
    while let Some(byte) = rest.next() {
        if byte != b'%' {
            bytes.push(byte);
            continue;
        }
        let digit = |b: Option<u8>| char::from(b?).to_digit(16);
        let (high, low) = (digit(rest.next())?, digit(rest.next())?);
        bytes.push(u8::try_from(high * 16 + low).ok()?);
    }
    String::from_utf8(bytes).ok()
}

#[expect(clippy::too_many_arguments, reason = "the parts of one request, used once")]
fn read(
    kernel: &Kernel,
    tx: &mut Tx<'_>,
    entry: &Entry,
    request: &Request,
    actor: &Actor,
    decoded: &Decoded,
    now: crate::Timestamp,
    rate: Rate,
) -> Result<Outcome> {
    let mut cx = Cx::new(tx.reborrow(), kernel, actor, now, kernel.entropy.seed(), None);
    let result = catch_unwind(AssertUnwindSafe(|| decoded.bound.call(&mut cx)));
    let result = result.unwrap_or_else(|_| Err(Error::internal("the operation panicked")));
    let target = cx.traces.target.take();
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
    let recorded = record_read(kernel, entry, request, actor, target, &result, now);
    Ok(Outcome {
        result: recorded.and(result),
        rate,
    })
}

fn record_read(
    kernel: &Kernel,
    entry: &Entry,
    request: &Request,
    actor: &Actor,
    target: Option<(&'static str, String)>,
    result: &Result<Answer>,
    now: crate::Timestamp,
) -> Result<()> {
    let missed = result.as_ref().err().is_some_and(|e| e.code() == Code::NotFound);
    if !entry.meta.sensitive && !missed {
        kernel
            .ledger
            .count_read(&actor.organization, &actor.id, entry.meta.id);
        return Ok(());
    }
    let mut note = Note::new(actor.organization.clone(), now, entry.meta.id);
    note.actor = Some(actor.clone());
    note.target = target;
    note.origin = Some(request.origin.clone());
    match result {
        Ok(answer) => note.status = answer.status,
        Err(error) => {
            note.status = error.code().status();
            note.code = Some(error.code().as_str());
            note.decision = Decision::of_status(note.status);
        }
    }
    if kernel.ledger.note(note)? {
        kernel.nudge(&actor.organization);
    }
    Ok(())
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
        let message = "the store failed and takes no changes until the server is restarted";
        return refused(Error::unavailable(message), rate);
    }
    let in_flight = match InFlight::take(kernel, &actor) {
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
        lookup_id: presented.lookup_id.clone(),
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

/// Counts the writes of one principal that wait or run.
pub(crate) struct InFlight {
    kernel: std::sync::Weak<Kernel>,
    principal: String,
}

impl InFlight {
    fn take(kernel: &Arc<Kernel>, actor: &Actor) -> Result<Self> {
        let principal = format!("{}/{}", actor.organization, actor.id);
        let mut in_flight = kernel.in_flight.lock().unwrap_or_else(PoisonError::into_inner);
        let count = in_flight.entry(principal.clone()).or_default();
        if *count >= kernel.settings.max_in_flight {
            return Err(Error::unavailable(
                "too many changes of this principal are in flight; try again",
            ));
        }
        *count += 1;
        Ok(Self {
            kernel: Arc::downgrade(kernel),
            principal,
        })
    }
}

impl Drop for InFlight {
    fn drop(&mut self) {
        let Some(kernel) = self.kernel.upgrade() else {
            return;
        };
        let mut in_flight = kernel.in_flight.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(count) = in_flight.get_mut(&self.principal) {
            *count -= 1;
            if *count == 0 {
                in_flight.remove(&self.principal);
            }
        }
    }
}

/// Counts a failure of somebody unknown.
fn stranger(kernel: &Kernel, request: &Request, code: &'static str, error: Error) -> Outcome {
    kernel.ledger.count_stranger(code, request.origin.source_ip);
    failed(kernel, request, error)
}

/// Answers a failed authentication; beyond the limit of its network with 429 (D1.11).
fn failed(kernel: &Kernel, request: &Request, error: Error) -> Outcome {
    let bucket = &buckets::AUTHENTICATION;
    let network = network(request.origin.source_ip);
    match kernel.limit(bucket, &[&network]) {
        Ok(_) => Outcome::refused(error, None),
        Err(limited) => Outcome::refused(limited, Some((bucket, kernel.limiter.peek(bucket, &[&network])))),
    }
}

fn known_but_dead(kernel: &Arc<Kernel>, request: &Request, credential: &Credential, error: Error) -> Outcome {
    let organization = &credential.organization;
    kernel
        .ledger
        .count_known(organization, &credential.token_id, error.code().as_str());
    let now = kernel.clock.now();
    let revoked = error.code() == Code::TokenRevoked;
    if revoked && kernel.ledger.is_new_reuse(&credential.token_id, now) {
        let (shared, token_id) = (kernel.clone(), credential.token_id.clone());
        let run = move |cx: &mut Cx<'_>| {
            cx.target("token", token_id.clone());
            shared.credentials.reused(cx, &token_id)
        };
        let action = Some("service_account.token.reuse_detected");
        let unit = Unit::system(kernel, organization.clone(), action, Box::new(run), None);
        if let Err(error) = kernel.submit(unit) {
            tracing::warn!("the reuse of a revoked token could not be recorded: {error}");
        }
    }
    failed(kernel, request, error)
}

fn note_use(kernel: &Kernel, request: &Request, credential: &Credential, now: crate::Timestamp) {
    let stale = credential
        .last_used_at
        .is_none_or(|at| now.as_ms() - at.as_ms() > USE_PRECISION_MS);
    if stale {
        kernel.ledger.used(Use {
            organization: credential.organization.clone(),
            token_id: credential.token_id.clone(),
            at: now,
            source_ip: request.origin.source_ip,
        });
    }
}

fn note_denial(kernel: &Kernel, entry: &Entry, request: &Request, actor: &Actor, error: &Error) {
    if error.code().status() != 403 {
        return;
    }
    let mut note = Note::new(actor.organization.clone(), kernel.clock.now(), entry.meta.id);
    note.actor = Some(actor.clone());
    note.origin = Some(request.origin.clone());
    (note.decision, note.status, note.code) = (Decision::Denied, 403, Some(error.code().as_str()));
    match kernel.ledger.note(note) {
        Ok(true) => kernel.nudge(&actor.organization),
        Ok(false) => {}
        Err(full) => tracing::error!("a denial could not be recorded: {full}"),
    }
}

/// Returns the longest time a request may wait in here.
pub fn patience(kernel: &Kernel) -> Duration {
    kernel.settings.queue_deadline * 2
}
