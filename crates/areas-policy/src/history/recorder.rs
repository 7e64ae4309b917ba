//! Writes the events of this process: of one organization, everything that waits becomes one commit.
//!
//! ```text
//! append ─┐            ┌─ flight: encode · unit of work (chunks, head) · answers
//! append ─┼─► waiting ─┤  while it flies, the next ones wait together; a second one starts when many do
//! append ─┘            └─ no timer where somebody waits for the disk; 50 ms where nobody does
//! ```
//!
//! A decision that asks about the past does not pass by what this process has answered and not written yet: it ends the
//! gathering and waits until that is written (`settle`, DE-6).
//!
//! What waits is bounded: beyond it whoever appends waits, and nothing is dropped (HS-1).
//!
//! Keeps HS-1, HS-8.

use super::decided_calls;
use super::model::{ChunkId, EventId, NewEvent, instant_of_place};
use super::store::{self, NewChunk};
use provost_backtest::record::{self, Attribute, OwnedRecord};
use provost_history::chunk;
use provost_kernel::auth::OrganizationId;
use provost_kernel::id::TypedId;
use provost_kernel::supervisor::Supervisor;
use provost_kernel::{Error, Kernel, OperationContext, Result};
use std::collections::{BTreeSet, HashMap, VecDeque};
use std::pin::pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;
use tokio::sync::{Notify, OwnedSemaphorePermit, Semaphore, oneshot};
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

/// LIMIT: what may wait for one organization. Units: KiB, of texts and a share for each event.
const ROOM_KIB: u32 = 64 * 1024;
/// The share of an event beside its texts. Units: bytes.
const EVENT_BYTES: usize = 256;
/// How long events that nobody waits for may gather; with the commit behind it they are written within 100 ms (D9.11).
const GATHERING: Duration = Duration::from_millis(50);
/// How many events make a second flight worth while.
const SECOND_FLIGHT: usize = 1_000;
/// How many events are encoded without a thread of its own.
const INLINE: usize = 64;
/// How long a stop waits for what was accepted.
const STOP_GRACE: Duration = Duration::from_secs(15);

/// When an append is answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Durability {
    /// After the commit that holds the events.
    Durable,
    /// At once, or when there is room; the events are written within 100 ms, and a crash may lose them.
    Buffered,
}

/// See the module's text.
pub struct Recorder {
    kernel: Weak<Kernel>,
    supervisor: Supervisor,
    lanes: Mutex<HashMap<OrganizationId, Arc<Lane>>>,
    closed: CancellationToken,
}

/// What waits of one organization.
struct Lane {
    waiting: Mutex<PendingAppends>,
    wake: Notify,
    /// Told when appends that nobody waits for were written, or could not be.
    landed: Notify,
    room: Arc<Semaphore>,
}

#[derive(Default)]
struct PendingAppends {
    appends: VecDeque<Append>,
    events: usize,
    /// How many of the appends somebody waits for.
    awaited: usize,
    /// The number of the last append that nobody waits for.
    last_number: u64,
    /// Those of them that were answered and are neither written nor lost yet, in flight or not.
    unwritten: BTreeSet<u64>,
    /// A decision waits for what nobody waited for.
    is_hurried: bool,
}

struct Append {
    events: Vec<NewEvent>,
    answer: Option<oneshot::Sender<Result<()>>>,
    /// Of one that nobody waits for.
    number: Option<u64>,
    room: OwnedSemaphorePermit,
}

impl PendingAppends {
    fn is_urgent(&self) -> bool {
        self.awaited > 0 || (self.is_hurried && self.events > 0)
    }
}

/// Appends that nobody waits for, on their way; gone once they are written or lost, however the flight ends.
struct BufferedFlight {
    lane: Arc<Lane>,
    numbers: Vec<u64>,
}

impl Drop for BufferedFlight {
    fn drop(&mut self) {
        let mut waiting = self.lane.lock();
        for number in &self.numbers {
            waiting.unwritten.remove(number);
        }
        drop(waiting);
        self.lane.landed.notify_waiters();
    }
}

impl Recorder {
    pub(super) fn new(kernel: &Kernel) -> Self {
        Self {
            kernel: Kernel::behind(kernel).map_or_else(|_| Weak::new(), |kernel| Arc::downgrade(&kernel)),
            supervisor: Supervisor::new(),
            lanes: Mutex::default(),
            closed: CancellationToken::new(),
        }
    }

    /// Records events, all or none.
    ///
    /// Errors: `Unavailable` when they could not be written or the server is stopping; then none of them is recorded,
    /// unless the answer to the commit was lost. `Internal` when an id does not say when its event happened (HS-8).
    pub async fn append(
        &self,
        organization: &OrganizationId,
        events: Vec<NewEvent>,
        durability: Durability,
    ) -> Result<()> {
        if events.is_empty() {
            return Ok(());
        }
        check(&events)?;
        let lane = self.lane(organization)?;
        let bytes: usize = events
            .iter()
            .map(|event| EVENT_BYTES + size_bytes(&event.record))
            .sum();
        let permits = u32::try_from(bytes / 1024 + 1).unwrap_or(ROOM_KIB).min(ROOM_KIB);
        let room = lane.room.clone().acquire_many_owned(permits).await;
        let room = room.map_err(|_| stopping())?;
        let (answer, answered) = oneshot::channel();
        let awaited = durability == Durability::Durable;
        lane.push(Append {
            events,
            answer: awaited.then_some(answer),
            number: None,
            room,
        })
        .map_err(|()| stopping())?;
        if awaited {
            return answered.await.map_err(|_| stopping())?;
        }
        Ok(())
    }

    /// Records events in one unit of work with what `run` writes, all or none. The unit leaves an entry of this action.
    ///
    /// Errors: those of `run`, and of a unit of work; then nothing is recorded, unless the answer to the commit was lost.
    pub async fn append_with(
        &self,
        organization: &OrganizationId,
        events: Vec<NewEvent>,
        action: &'static str,
        run: impl Fn(&mut OperationContext<'_>) -> Result<()> + Send + 'static,
    ) -> Result<()> {
        self.append_in(organization, events, Some(action), run).await
    }

    /// As [`Self::append_with`]; without an action the unit leaves no entry.
    pub async fn append_in(
        &self,
        organization: &OrganizationId,
        events: Vec<NewEvent>,
        action: Option<&'static str>,
        run: impl Fn(&mut OperationContext<'_>) -> Result<()> + Send + 'static,
    ) -> Result<()> {
        check(&events)?;
        let kernel = self.kernel.upgrade().filter(|_| !self.closed.is_cancelled());
        let kernel = kernel.ok_or_else(stopping)?;
        write(&kernel, organization.clone(), events, action, run).await
    }

    /// Waits until what this process had answered before it was written is written, or lost; returns whether it ever answered
    /// something before it was written.
    ///
    /// ```text
    ///   buffered event ── answered ──────────────────── written
    ///   decision              snapshot ─ settle ───────────┘ ─ looks at the last chunk ─ recall
    ///   another decision      snapshot ───────────────────────── settle (nothing waits) ─ looks at the last chunk ─ recall
    /// ```
    ///
    /// What was written between the snapshot and here is not in the snapshot: whoever asks looks at the last chunk again.
    pub async fn settle(&self, organization: &OrganizationId) -> bool {
        let lane = {
            let lanes = self.lanes.lock().unwrap_or_else(PoisonError::into_inner);
            lanes.get(organization).cloned()
        };
        let Some(lane) = lane else { return false };
        let upto = {
            let mut waiting = lane.lock();
            let Some(last) = waiting.unwritten.last().copied() else {
                return waiting.last_number > 0;
            };
            waiting.is_hurried = waiting.events > 0;
            last
        };
        lane.wake.notify_one();
        loop {
            let mut landed = pin!(lane.landed.notified());
            landed.as_mut().enable();
            if lane.lock().unwritten.first().is_none_or(|first| *first > upto) {
                return true;
            }
            landed.await;
        }
    }

    /// Writes what was accepted and takes no more.
    pub async fn close(&self) {
        self.closed.cancel();
        let overdue = self.supervisor.stop(STOP_GRACE).await;
        if !overdue.is_empty() {
            tracing::error!("events that were accepted could not be written before the stop");
        }
    }

    fn lane(&self, organization: &OrganizationId) -> Result<Arc<Lane>> {
        let mut lanes = self.lanes.lock().unwrap_or_else(PoisonError::into_inner);
        if self.closed.is_cancelled() {
            return Err(stopping());
        }
        if let Some(lane) = lanes.get(organization) {
            return Ok(lane.clone());
        }
        let lane = Arc::new(Lane {
            waiting: Mutex::default(),
            wake: Notify::new(),
            landed: Notify::new(),
            room: Arc::new(Semaphore::new(ROOM_KIB as usize)),
        });
        lanes.insert(organization.clone(), lane.clone());
        let (kernel, organization, closed) = (self.kernel.clone(), organization.clone(), self.closed.clone());
        let worker = work(kernel, organization, lane.clone(), closed);
        self.supervisor.spawn("history-recorder", worker);
        Ok(lane)
    }
}

fn stopping() -> Error {
    Error::unavailable("the server is shutting down; nothing was recorded")
}

/// Refuses events whose ids do not say when they happened (HS-8).
fn check(events: &[NewEvent]) -> Result<()> {
    let is_right = |event: &NewEvent| {
        EventId::place(&event.id).is_some_and(|place| instant_of_place(place) == event.record.at_ms)
    };
    if events.iter().all(is_right) {
        Ok(())
    } else {
        Err(Error::internal(
            "the id of an event does not say when it happened",
        ))
    }
}

/// Returns how many bytes the texts of an event have, and eight for everything else.
pub(super) fn size_bytes(event: &OwnedRecord) -> usize {
    let columns = record::schema().columns().len();
    let text = |text: &Option<String>| text.as_ref().map_or(0, String::len);
    let attributes = event.attributes().iter().map(|(_, attribute)| match attribute {
        Attribute::Text(text) => text.len(),
        Attribute::Set(members) => members.iter().map(String::len).sum(),
        Attribute::Number(_) | Attribute::Boolean(_) => 0,
    });
    let missing = event.missing().iter().map(|field| field.name().len());
    let decision = event.decision.as_ref().map_or(0, |decision| {
        let ids = decision.policy_ids.iter().map(String::len);
        ids.sum::<usize>() + text(&decision.policy_set_version) + 32
    });
    let texts = [
        &event.source,
        &event.principal,
        &event.session,
        &event.call_id,
        &event.external_id,
    ];
    attributes.chain(missing).sum::<usize>()
        + decision
        + texts.into_iter().map(text).sum::<usize>()
        + 8 * columns
}

impl Lane {
    fn lock(&self) -> MutexGuard<'_, PendingAppends> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Lets an append wait for its flight.
    ///
    /// Errors: the lane's worker has ended.
    fn push(&self, mut append: Append) -> std::result::Result<(), ()> {
        let mut waiting = self.lock();
        if self.room.is_closed() {
            return Err(());
        }
        waiting.events += append.events.len();
        waiting.awaited += usize::from(append.answer.is_some());
        if append.answer.is_none() {
            waiting.last_number += 1;
            let number = waiting.last_number;
            waiting.unwritten.insert(number);
            append.number = Some(number);
        }
        waiting.appends.push_back(append);
        drop(waiting);
        self.wake.notify_one();
        Ok(())
    }

    /// Takes the appends of one flight: whole ones, until there are a chunk's events.
    fn take(&self) -> Vec<Append> {
        let mut waiting = self.lock();
        let (mut taken, mut events) = (Vec::new(), 0);
        while events < provost_history::CHUNK_EVENTS {
            let Some(append) = waiting.appends.pop_front() else {
                break;
            };
            events += append.events.len();
            waiting.awaited -= usize::from(append.answer.is_some());
            taken.push(append);
        }
        waiting.events -= events;
        waiting.is_hurried &= waiting.events > 0;
        taken
    }

    /// Returns when there is enough for one more flight.
    async fn ready(&self, flying: usize, closed: &CancellationToken) {
        loop {
            let (events, is_urgent) = {
                let waiting = self.lock();
                (waiting.events, waiting.is_urgent())
            };
            let many = events >= SECOND_FLIGHT;
            if many || (flying == 0 && (is_urgent || (events > 0 && closed.is_cancelled()))) {
                return;
            }
            if flying == 0 && events > 0 {
                let early = async {
                    // Somebody who waits ends the gathering, and so does the end of the server.
                    loop {
                        self.wake.notified().await;
                        let waiting = self.lock();
                        if waiting.is_urgent() || waiting.events >= SECOND_FLIGHT {
                            return;
                        }
                    }
                };
                tokio::select! {
                    biased;
                    () = tokio::time::sleep(GATHERING) => return,
                    () = early => return,
                    () = closed.cancelled() => return,
                }
            }
            self.wake.notified().await;
        }
    }

    fn is_empty(&self) -> bool {
        self.lock().appends.is_empty()
    }

    /// Takes no more, unless something still waits; says whether it ended.
    fn end(&self) -> bool {
        let waiting = self.lock();
        if !waiting.appends.is_empty() {
            return false;
        }
        self.room.close();
        true
    }
}

/// Writes what waits, until the end.
async fn work(
    kernel: Weak<Kernel>,
    organization: OrganizationId,
    lane: Arc<Lane>,
    closed: CancellationToken,
) {
    let mut flights: JoinSet<()> = JoinSet::new();
    loop {
        if closed.is_cancelled() && flights.is_empty() && lane.is_empty() && lane.end() {
            return;
        }
        let flying = flights.len();
        tokio::select! {
            biased;
            Some(_) = flights.join_next(), if flying > 0 => {}
            () = lane.ready(flying, &closed), if flying < 2 => {
                let appends = lane.take();
                flights.spawn(fly(kernel.clone(), organization.clone(), lane.clone(), appends));
            }
            () = closed.cancelled(), if flying == 0 && lane.is_empty() => {}
        }
    }
}

/// Writes these appends in one unit of work and answers them.
async fn fly(kernel: Weak<Kernel>, organization: OrganizationId, lane: Arc<Lane>, appends: Vec<Append>) {
    let numbers = appends.iter().filter_map(|append| append.number).collect();
    let _landing = BufferedFlight { lane, numbers };
    let mut events = Vec::with_capacity(appends.iter().map(|append| append.events.len()).sum());
    let mut answers = Vec::new();
    let mut rooms = Vec::new();
    let mut unawaited = 0;
    for append in appends {
        if append.answer.is_none() {
            unawaited += append.events.len();
        }
        events.extend(append.events);
        answers.extend(append.answer);
        rooms.push(append.room);
    }
    let outcome = match kernel.upgrade() {
        Some(kernel) => write(&kernel, organization, events, None, |_| Ok(())).await,
        None => Err(stopping()),
    };
    if let Err(error) = &outcome
        && unawaited > 0
    {
        metrics::counter!("provost_history_lost_events_total").increment(unawaited as u64);
        tracing::error!(events = unawaited, cause = ?error.private(), "buffered events were lost: {error}");
    }
    for answer in answers {
        // Who no longer waits has gone; the events are recorded all the same.
        let _ = answer.send(match &outcome {
            Ok(()) => Ok(()),
            Err(error) => Err(unwritten(error)),
        });
    }
}

/// Returns what each append is told of a commit that failed.
fn unwritten(error: &Error) -> Error {
    Error::unavailable("the events could not be recorded; try again")
        .caused_by(error.private().unwrap_or_else(|| error.to_string()))
        .retry_after(1)
}

async fn write(
    kernel: &Arc<Kernel>,
    organization: OrganizationId,
    events: Vec<NewEvent>,
    action: Option<&'static str>,
    first: impl Fn(&mut OperationContext<'_>) -> Result<()> + Send + 'static,
) -> Result<()> {
    let calls = decided_calls::among(&events);
    let chunks = if events.len() <= INLINE {
        encode(kernel, &events)?
    } else {
        let shared = kernel.clone();
        kernel.blocking(move || encode(&shared, &events)).await??
    };
    let told = ChunkMetrics::of(&chunks);
    let run = move |ctx: &mut OperationContext<'_>| {
        first(ctx)?;
        chunks.iter().try_for_each(|chunk| store::add_chunk(ctx, chunk))?;
        decided_calls::note(ctx, &calls)
    };
    kernel.system(organization, action, run).await?;
    told.count();
    Ok(())
}

/// Turns events into as few chunks as hold them.
pub(super) fn encode(kernel: &Kernel, events: &[NewEvent]) -> Result<Vec<NewChunk>> {
    let schema = record::schema();
    let mut rng = kernel.rng();
    let mut chunks = Vec::new();
    let mut close = |recorder: provost_history::Recorder, last_number: i64| -> Result<()> {
        let batch = recorder.finish().map_err(Error::internal)?;
        let content = chunk::encode(&schema, &batch).map_err(Error::internal)?;
        chunks.push(NewChunk {
            id: ChunkId::mint(kernel.clock.now(), &mut rng),
            summary: chunk::summary(&content).map_err(Error::internal)?,
            last_number,
            content,
        });
        Ok(())
    };
    let mut recorder = provost_history::Recorder::new(record::schema());
    let mut last_number = 0;
    for event in events {
        if recorder.is_full() {
            let full = std::mem::replace(&mut recorder, provost_history::Recorder::new(record::schema()));
            close(full, last_number)?;
        }
        record::put(&event.record, &event.id, &mut recorder).map_err(Error::internal)?;
        last_number = last_number.max(EventId::number(&event.id).unwrap_or(0));
    }
    if recorder.rows() > 0 {
        close(recorder, last_number)?;
    }
    Ok(chunks)
}

/// What the metrics learn of chunks once they are written.
pub(super) struct ChunkMetrics {
    events: u64,
    bytes: u64,
}

impl ChunkMetrics {
    pub fn of(chunks: &[NewChunk]) -> Self {
        Self {
            events: chunks.iter().map(|chunk| u64::from(chunk.summary.rows)).sum(),
            bytes: chunks.iter().map(|chunk| chunk.content.len() as u64).sum(),
        }
    }

    pub fn count(&self) {
        metrics::counter!("provost_history_events_total").increment(self.events);
        metrics::counter!("provost_history_chunk_bytes_total").increment(self.bytes);
    }
}
