//! One writer's queue: who may still wait, what runs together, when notes are asked for, and what happens at the end. It
//! knows no store; what is done with a batch, [`Commit`] says.
//!
//! ```text
//! callers   submit ─┐ at most `waiting` units
//!           nudge ──┼─► channel ─► wait ─► turn: gather at most `batch` · take notes · commit ─► wait …
//!           stop ───┘                                                                    stop ─► the rest, the end
//!
//! notes     None ── nudge ─► Wait ── nobody calls for 50 ms, or a unit comes ─► taken ─► None
//!                                                      written, as many as go ─► Pour ─► taken at once …
//!
//! the end   stop is gathered ─► closed: nobody is let in ─► everybody who was let in is received ─► the last notes
//! ```
//!
//! Notes themselves lie in the ledger: a nudge says that some wait, and whoever takes them takes all that wait by then.
//! They are taken after the messages were gathered. So a note whose nudge was gathered is among those that are taken, and
//! a note that comes later sends a nudge that is still in the channel.
//!
//! Who is let in is decided by one number, the count of those that wait: nobody is once it has reached its limit, or
//! carries the mark of a closed queue. A caller counts itself before it sends, so the end is reached when the count is
//! nought, whoever was held up between the two:
//!
//! ```text
//! caller   count ✓ ········································ send
//! writer            close · count is 1, so receive ············· run · count is 0: the end
//! ```
//!
//! INVARIANT WK-5: a unit that was let in is run once, or dropped with its reply when its writer is gone; a stop
//! waits for it. Proof: `cargo xtask endure schedules`.
//! INVARIANT WK-6: no more units wait for a writer than may, no transaction carries more than a batch, and those of
//! one sender keep their order. Proof: `cargo xtask endure schedules`.
//! INVARIANT WK-7: a note that was accepted is written without another call while the store takes notes; a stop
//! writes those that were accepted before it, and ends when the store takes none. Proof: `cargo xtask endure
//! schedules`.
//!
//! Absent on purpose: a timer that waits for fuller batches; a lock.

use super::sync::atomic::{AtomicUsize, Ordering};
use super::sync::channel::{self, Receiver, RecvTimeoutError, Sender};
use std::sync::Arc;
use std::time::Duration;

/// How long a note may wait so that others are written in the same transaction.
const NOTES_WAIT: Duration = Duration::from_millis(50);

/// How often the last notes are tried while the store takes none.
const LAST_ATTEMPTS: usize = 3;
/// Marks the count of a queue that lets nobody in any more.
const CLOSED: usize = 1 << (usize::BITS - 1);

/// The limits of a queue.
#[derive(Clone, Copy)]
pub(super) struct Limits {
    /// Units that may wait.
    pub waiting: usize,
    /// Units of one transaction.
    pub batch: usize,
    /// Notes of one transaction.
    pub notes: usize,
}

/// Commits what was taken from the queue.
pub(super) trait Commit<T> {
    /// What is written without anybody waiting for it.
    type Note;

    /// Takes notes that wait for this writer, at most `max`.
    fn take_notes(&mut self, max: usize) -> Vec<Self::Note>;

    /// Runs or refuses units, and writes notes or puts them back; says whether the notes were written.
    fn commit(&mut self, units: Vec<T>, notes: Vec<Self::Note>) -> bool;
}

/// Why a unit was not let in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum UnitRejection {
    /// Too many wait.
    Full,
    /// The writer ends, or has ended.
    Stopped,
}

/// A message to a writer.
pub(super) enum Message<T> {
    Unit(Box<T>),
    Nudge,
    Stop,
}

/// The callers' end.
pub(super) struct Lane<T> {
    sender: Sender<Message<T>>,
    waiting: Arc<AtomicUsize>,
    limit: usize,
}

/// The writer's end.
pub(super) struct Queue<T> {
    receiver: Receiver<Message<T>>,
    waiting: Arc<AtomicUsize>,
    limits: Limits,
    notes: QueuedRecords,
}

/// What a writer knows of the notes that wait for it.
#[derive(Clone, Copy, PartialEq, Eq)]
enum QueuedRecords {
    None,
    /// Some wait, and the writer gives others a moment to join them.
    Wait,
    /// More wait than the last transaction could carry.
    Pour,
}

/// Returns the two ends of a queue.
pub(super) fn queue<T>(limits: Limits) -> (Lane<T>, Queue<T>) {
    let (sender, receiver) = channel::unbounded();
    let waiting = Arc::new(AtomicUsize::new(0));
    let lane = Lane {
        sender,
        waiting: waiting.clone(),
        limit: limits.waiting,
    };
    let queue = Queue {
        receiver,
        waiting,
        limits,
        notes: QueuedRecords::None,
    };
    (lane, queue)
}

impl<T> Lane<T> {
    /// Lets a unit in.
    ///
    /// Cost: one allocation, one short lock of the channel.
    pub fn submit(&self, unit: T) -> Result<(), UnitRejection> {
        let room = |count: usize| (count < self.limit).then_some(count + 1);
        let order = Ordering::SeqCst;
        if let Err(count) = self.waiting.fetch_update(order, order, room) {
            return Err(if count < CLOSED {
                UnitRejection::Full
            } else {
                UnitRejection::Stopped
            });
        }
        // The writer's end goes only when it has received everybody who was counted.
        self.sender
            .send(Message::Unit(Box::new(unit)))
            .map_err(|_| UnitRejection::Stopped)
    }

    /// Says that notes wait.
    pub fn notify(&self) {
        let _ = self.sender.send(Message::Nudge);
    }

    /// Has the writer run what waits, write what is buffered, and end.
    pub fn stop(&self) {
        let _ = self.sender.send(Message::Stop);
    }

    /// Returns how many units wait.
    pub fn waiting(&self) -> usize {
        self.waiting.load(Ordering::Relaxed) & !CLOSED
    }
}

impl<T> Queue<T> {
    /// Blocks until somebody calls; `None` says that nobody did while notes were given their moment.
    pub fn wait(&self) -> Option<Message<T>> {
        let message = match self.patience() {
            Some(patience) => match self.receiver.recv_timeout(patience) {
                Err(RecvTimeoutError::Timeout) => return None,
                message => message.ok(),
            },
            None => self.receiver.recv().ok(),
        };
        Some(message.map_or(Message::Stop, |message| self.received(message)))
    }

    /// Does what [`Self::wait`] does, on a runtime whose one thread cannot be blocked.
    pub async fn wait_inline(&self) -> Option<Message<T>> {
        let message = match self.patience() {
            Some(patience) => match tokio::time::timeout(patience, self.receiver.recv_async()).await {
                Err(_) => return None,
                Ok(message) => message.ok(),
            },
            None => self.receiver.recv_async().await.ok(),
        };
        Some(message.map_or(Message::Stop, |message| self.received(message)))
    }

    /// Takes a received message off the count. This happens at once and not with its batch: a task may be ended between
    /// the two, and the count must never include a message that nobody will send.
    fn received(&self, message: Message<T>) -> Message<T> {
        if let Message::Unit(_) = message {
            self.waiting.fetch_sub(1, Ordering::SeqCst);
        }
        message
    }

    /// Returns for how long the writer waits for a call; without notes it waits until there is one.
    fn patience(&self) -> Option<Duration> {
        match self.notes {
            QueuedRecords::None => None,
            QueuedRecords::Wait => Some(NOTES_WAIT),
            QueuedRecords::Pour => Some(Duration::ZERO),
        }
    }

    /// Takes what waits behind the first message and commits it. Says whether the writer goes on.
    pub fn turn(&mut self, first: Option<Message<T>>, work: &mut impl Commit<T>) -> bool {
        let timed_out = first.is_none();
        let mut stopping = false;
        let mut units = Vec::new();
        let mut next = first;
        while let Some(message) = next {
            match message {
                Message::Unit(unit) => units.push(*unit),
                Message::Nudge if self.notes == QueuedRecords::None => self.notes = QueuedRecords::Wait,
                Message::Nudge => {}
                Message::Stop => stopping = true,
            }
            next = if units.len() < self.limits.batch {
                let message = self.receiver.try_recv().ok();
                message.map(|message| self.received(message))
            } else {
                None
            };
        }
        if units.is_empty() && !timed_out && !stopping {
            return true;
        }
        let notes = work.take_notes(self.limits.notes);
        let is_full = notes.len() == self.limits.notes;
        let written = work.commit(units, notes);
        // Notes that the store refused wait for the next call, so that a broken store is not tried without end.
        self.notes = if is_full && written {
            QueuedRecords::Pour
        } else {
            QueuedRecords::None
        };
        if stopping {
            self.finish(work);
        }
        !stopping
    }

    /// Commits the rest at the end.
    fn finish(&mut self, work: &mut impl Commit<T>) {
        self.close();
        let mut refusals = 0;
        while refusals < LAST_ATTEMPTS {
            let units = self.rest();
            let notes = work.take_notes(self.limits.notes);
            if units.is_empty() && notes.is_empty() {
                return;
            }
            let is_last = units.is_empty();
            let written = work.commit(units, notes);
            if is_last && !written {
                refusals += 1;
            }
        }
    }

    /// Lets nobody in any more.
    fn close(&self) {
        self.waiting.fetch_or(CLOSED, Ordering::SeqCst);
    }

    /// Receives a batch of those who were let in before the queue was closed, also of those who are about to send.
    fn rest(&self) -> Vec<T> {
        let mut units = Vec::new();
        while units.len() < self.limits.batch && self.waiting.load(Ordering::SeqCst) != CLOSED {
            let Ok(message) = self.receiver.recv() else { break };
            if let Message::Unit(unit) = self.received(message) {
                units.push(*unit);
            }
        }
        units
    }
}

impl<T> Drop for Queue<T> {
    /// Drops those who wait for a writer that panicked, or whose kernel is gone, so that their callers hear of it: what
    /// stays in a channel stays there as long as its senders.
    fn drop(&mut self) {
        self.close();
        while !self.rest().is_empty() {}
    }
}
