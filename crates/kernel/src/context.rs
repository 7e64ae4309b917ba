//! What an operation sees of the world: one transaction, one actor, one instant, one generator.
//!
//! Accessors return references that outlive the borrow of the context, so that
//! `ctx.execute(&SQL, params![ctx.organization().as_str()])` compiles.
//!
//! INVARIANT CX-1: the organization of a change comes from the authenticated actor, never from the request.
//! INVARIANT CX-2: a unit that runs again draws the same instant, ids and secrets. Proof: in part.
//! INVARIANT CX-3: the bytes of a revealed secret stand in the answer and in no stored row.
//! Keeps CK-3.

use crate::auth::{Actor, OrganizationId, Origin};
use crate::db::{Param, Row, Statement, Tx};
use crate::effects::{DeferredResponse, Effects, Reveal};
use crate::entropy::UnitRng;
use crate::error::{Class, Code, Error, Result};
use crate::event::{EventData, EventOf};
use crate::fence::TargetKind;
use crate::id::TypedId;
use crate::job::NewJob;
use crate::rate::Bucket;
use crate::secret::Secret;
use crate::services::Services;
use crate::time::Timestamp;
use bytes::Bytes;
use serde::Serialize;
use serde_json::Value;
use std::time::Duration;

pub use crate::effects::{Change, Event, SecretPlaceholder};

/// See the module's text.
pub struct OperationContext<'a> {
    tx: Tx<'a>,
    services: &'a Services,
    actor: &'a Actor,
    /// The caller as whoever performs what a second person has said yes to.
    by_two: Option<&'a Actor>,
    /// Whatever is done is taken back.
    is_rehearsal: bool,
    /// Where the request came from.
    pub(crate) origin: Option<&'a Origin>,
    now: Timestamp,
    rng: UnitRng,
    deadline: Option<Duration>,
    has_more_to_prune: bool,
    pub(crate) effects: Effects,
}

/// LIMIT: rows of a table that one unit removes for their age. Ours: a unit has a quarter of a second, and everybody who writes waits for
/// it; what is due is as much as a setting, or a server that was off, made of it.
pub const PRUNED_ROWS: i64 = 1_000;

impl<'a> OperationContext<'a> {
    pub(crate) fn new(
        tx: Tx<'a>,
        services: &'a Services,
        actor: &'a Actor,
        now: Timestamp,
        seed: [u8; 32],
        deadline: Option<Duration>,
    ) -> Self {
        Self {
            tx,
            services,
            actor,
            by_two: None,
            is_rehearsal: false,
            origin: None,
            now,
            rng: UnitRng::new(seed),
            deadline,
            has_more_to_prune: false,
            effects: Effects::default(),
        }
    }

    /// Says who the caller is where a second person has said yes.
    pub(crate) fn by_two(mut self, actor: Option<&'a Actor>) -> Self {
        self.by_two = actor;
        self
    }

    /// From here on the caller is whoever performs what a second person has said yes to.
    pub(crate) fn act_by_two(&mut self) {
        self.actor = self.by_two.unwrap_or(self.actor);
    }

    /// From here on whatever is done is taken back: it takes from no bucket, which no rollback would fill again.
    pub(crate) fn rehearse(&mut self) {
        self.is_rehearsal = true;
    }

    /// Returns the caller.
    pub fn actor(&self) -> &'a Actor {
        self.actor
    }

    /// Returns where the request came from; nothing in a unit of work that no request asked for.
    pub fn origin(&self) -> Option<&'a Origin> {
        self.origin
    }

    /// Returns the caller's organization.
    pub fn organization(&self) -> &'a OrganizationId {
        &self.actor.organization
    }

    /// Returns the organization's key as text, for statements.
    pub fn org(&self) -> &'a str {
        self.actor.organization.as_str()
    }

    /// Returns the one instant of this unit.
    pub fn now(&self) -> Timestamp {
        self.now
    }

    /// Returns the instant by which what ends by time has ended: the later of this unit's and the last kept one (CK-3).
    pub fn latest(&self) -> Timestamp {
        self.services.clockwatch.latest(self.now)
    }

    /// Returns the installation's keys, clock and settings, and what areas keep in the process.
    pub fn services(&self) -> &'a Services {
        self.services
    }

    /// Returns a new id.
    pub fn new_id<T: TypedId>(&mut self) -> T {
        T::mint(self.now, &mut self.rng)
    }

    /// Returns the unit's generator.
    pub fn rng(&mut self) -> &mut UnitRng {
        &mut self.rng
    }

    /// Returns the transaction itself, for ports that are also asked outside of operations.
    pub fn tx(&mut self) -> Tx<'_> {
        self.tx.reborrow()
    }

    /// Runs a statement and returns the number of rows it changed.
    pub fn execute(&mut self, statement: &'static Statement, params: &[Param<'_>]) -> Result<u64> {
        self.check_deadline()?;
        self.tx.execute(statement, params)
    }

    /// Runs a statement whose row count does not matter; it may travel with the next one.
    pub fn queue(&mut self, statement: &'static Statement, params: &[Param<'_>]) -> Result<()> {
        self.check_deadline()?;
        self.tx.queue(statement, params)
    }

    /// Runs a statement that removes at most [`PRUNED_ROWS`] rows for their age, and keeps in mind whether there may be more:
    /// [`crate::Kernel::prune`] goes on then.
    pub fn prune(&mut self, statement: &'static Statement, params: &[Param<'_>]) -> Result<()> {
        let removed = self.execute(statement, params)?;
        self.has_more_to_prune |= i64::try_from(removed).unwrap_or(i64::MAX) >= PRUNED_ROWS;
        Ok(())
    }

    /// Says whether there may be more that is due than this unit removed.
    pub fn has_more_to_prune(&self) -> bool {
        self.has_more_to_prune
    }

    /// Returns every row of a statement.
    pub fn query<T>(
        &mut self,
        statement: &'static Statement,
        params: &[Param<'_>],
        map: impl FnMut(&Row<'_>) -> Result<T>,
    ) -> Result<Vec<T>> {
        self.check_deadline()?;
        self.tx.query(statement, params, map)
    }

    /// Returns the first row of a statement.
    pub fn query_opt<T>(
        &mut self,
        statement: &'static Statement,
        params: &[Param<'_>],
        map: impl FnMut(&Row<'_>) -> Result<T>,
    ) -> Result<Option<T>> {
        self.check_deadline()?;
        self.tx.query_opt(statement, params, map)
    }

    /// Names the record that the operation is about, for the audit entry.
    pub fn target(&mut self, kind: &'static TargetKind, id: impl Into<String>) {
        self.effects.target = Some((kind, id.into()));
    }

    /// Returns the id of what the unit is about; before a stored answer is repeated, of what it was about.
    pub fn target_id(&self) -> Option<&str> {
        self.effects.target.as_ref().map(|(_, id)| id.as_str())
    }

    /// Notes a changed member for the audit entry.
    pub fn change(&mut self, path: &'static str, before: impl Into<Value>, after: impl Into<Value>) {
        let (before, after) = (before.into(), after.into());
        if before != after {
            self.effects.changes.push(Change { after, before, path });
        }
    }

    /// Says whether any member was noted as changed.
    pub fn has_changes(&self) -> bool {
        !self.effects.changes.is_empty()
    }

    /// Emits an event with the transaction.
    pub fn emit<D: EventData>(&mut self, kind: &'static EventOf<D>, data: &D) {
        self.effects.events.push(Event::of(kind, data));
    }

    /// Emits an event if the unit is refused, with the audit entry of the refusal: for what somebody must hear of though it
    /// was not done. A refusal that leaves no entry emits nothing.
    pub fn emit_if_refused<D: EventData>(&mut self, kind: &'static EventOf<D>, data: &D) {
        self.effects.alarms.push(Event::of(kind, data));
    }

    /// Leaves the entry of the program's own unit in the name of the caller whose request it serves. The entry of an
    /// operation always names its own caller.
    pub fn in_the_name_of(&mut self, caller: Actor, origin: Option<Origin>) {
        self.effects.served = Some((caller, origin));
    }

    /// Enqueues a durable job with the transaction.
    pub fn enqueue(&mut self, job: NewJob) {
        self.effects.jobs.push(job);
    }

    /// Wakes the worker of this name in this server once the transaction is durable ([`crate::Kernel::work_notified`]).
    pub fn notify_worker(&mut self, worker: &'static str) {
        self.effects.wakes.push(worker);
    }

    /// Says that the unit changed what callers may do whom its target does not name, so that units behind it in one
    /// transaction judge their callers anew (WK-4).
    pub fn invalidate_cached_credentials(&mut self) {
        self.effects.credentials_invalidated = true;
    }

    /// Sets a header of the answer.
    pub fn header(&mut self, name: &'static str, value: String) {
        self.effects.headers.push((name, value));
    }

    /// Answers with the other status of success that [`crate::operation::Meta::also`] names.
    pub fn status(&mut self, status: u16) {
        self.effects.status = Some(status);
    }

    /// Answers with these bytes, in an operation that does not produce JSON.
    pub fn send(&mut self, content: Bytes) {
        self.effects.content = Some(content);
    }

    /// Answers with what the future gives: the operation returns `Ok(ctx.later(…))`. It runs once the snapshot is
    /// released, on the async side, so it may await; work that blocks goes to `spawn_blocking`. Its error becomes
    /// the answer. In an operation that reads; what the future does is no part of any transaction.
    pub fn later<T: Serialize + Default>(
        &mut self,
        future: impl Future<Output = Result<T>> + Send + 'static,
    ) -> T {
        let bytes = async move {
            let output = future.await?;
            serde_json::to_vec(&output)
                .map(Bytes::from)
                .map_err(Error::internal)
        };
        self.effects.later = Some(DeferredResponse {
            media_type: None,
            bytes: Box::pin(bytes),
        });
        T::default()
    }

    /// As [`Self::later`], with bytes of a media type that the request chose.
    pub fn send_later(
        &mut self,
        media_type: &'static str,
        future: impl Future<Output = Result<Bytes>> + Send + 'static,
    ) {
        self.effects.later = Some(DeferredResponse {
            media_type: Some(media_type),
            bytes: Box::pin(future),
        });
    }

    pub(crate) fn answers_later(&self) -> bool {
        self.effects.later.is_some()
    }

    /// Names the audit action when it is not the operation's id.
    pub fn action(&mut self, action: &'static str) {
        self.effects.action = Some(action);
    }

    /// Takes from a rate bucket that only the operation can know, for example per rotated account. While a call is only tried it takes
    /// nothing, and is refused where there is nothing to take.
    ///
    /// Keeps TW-2. Errors: `RateLimited` with `Retry-After`.
    pub fn limit(&mut self, bucket: &Bucket, key: &[&str]) -> Result<()> {
        if self.is_rehearsal {
            return self.services.would_limit(bucket, key);
        }
        self.services.limit(bucket, key).map(|_| ())
    }

    /// Shows a secret in the answer, once, at the place of the returned mark. For `replay_secs` seconds a
    /// replay with the same key repeats it, unless the token is used, revoked or superseded before (D4.8).
    pub fn reveal(&mut self, token_id: &str, secret: Secret<String>, replay_secs: i64) -> SecretPlaceholder {
        let mut bytes = [0; 16];
        self.rng.fill(&mut bytes);
        let mark = format!("<{:032x}>", u128::from_le_bytes(bytes));
        self.effects.reveal = Some(Reveal {
            token_id: token_id.to_owned(),
            secret,
            mark: mark.clone(),
            replay_secs,
        });
        SecretPlaceholder(mark)
    }

    /// Erases what a replay could repeat of a token: it was used, revoked, superseded or disabled (D4.8).
    pub fn erase_replay(&mut self, token_id: &str) -> Result<()> {
        let org = self.org();
        self.effects.erased.push(token_id.to_owned());
        self.queue(&crate::idempotency::ERASE_CELL, crate::params![org, token_id])
    }

    pub(crate) fn taken_status(&mut self) -> Option<u16> {
        self.effects.status.take()
    }

    pub(crate) fn take_headers(&mut self) -> Vec<(&'static str, String)> {
        std::mem::take(&mut self.effects.headers)
    }

    /// Encodes an answer. The mark of a revealed secret is cut out and its place remembered: what is stored
    /// and what is sent differ in the secret's bytes alone.
    pub(crate) fn encode<T: Serialize>(&mut self, output: &T, media_type: &str) -> Result<Vec<u8>> {
        if let Some(content) = self.effects.content.take() {
            return Ok(content.into());
        }
        let mut body = if media_type == "application/json" {
            serde_json::to_vec(output).map_err(Error::internal)?
        } else {
            // Text formats serialize as one JSON string that holds the text.
            match serde_json::to_value(output).map_err(Error::internal)? {
                Value::String(text) => text.into_bytes(),
                _ => return Err(Error::internal("a text answer must serialize as a string")),
            }
        };
        if let Some(reveal) = &self.effects.reveal {
            let mark = reveal.mark.as_bytes();
            let place = body.windows(mark.len()).position(|w| w == mark);
            let place =
                place.ok_or_else(|| Error::internal("a revealed secret has no place in the answer"))?;
            body.drain(place..place + mark.len());
            self.effects.secret_at = Some(place);
        }
        Ok(body)
    }

    pub(crate) fn tx_failed(&self) -> bool {
        self.tx.is_poisoned()
    }

    fn check_deadline(&self) -> Result<()> {
        match self.deadline {
            Some(deadline) if self.services.clock.monotonic() > deadline => Err(Error::new(
                Code::Unavailable,
                "this took longer than one unit of work may; try again later or with less",
            )
            .retry_after(1)
            .class(Class::Refused)),
            _ => Ok(()),
        }
    }
}
