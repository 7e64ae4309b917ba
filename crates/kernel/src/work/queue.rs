//! One writer's queue: who may still wait, what runs together, when notes are asked for, and what happens at the end. It
//! knows no store; what is done with a batch, [`Commit`] says.
//!
//! ```text
//! callers   submit ─┐ at most `waiting` units
//!           nudge ──┼─► channel ─► wait ─► turn: gather at most `batch` · take notes · commit ─► wait …
//!           stop ───┘                                                                    stop ─► the rest, the end
//!
//! notes     None ── nudge ─► Wait ── nobody calls for 50 ms, or a unit comes ─► taken ─► None
//!                                                                taken as many as go ─► Pour ─► taken at once …
//! ```
//!
//! Notes themselves lie in the ledger: a nudge says that some wait, and whoever takes them takes all that wait by then.
//! They are taken after the messages were gathered. So a note whose nudge was gathered is among those that are taken, and
//! a note that comes later sends a nudge that is still in the channel.
//!
//! Absent on purpose: a timer that waits for fuller batches; a lock.

use super::sync::atomic::{AtomicUsize, Ordering};
use super::sync::channel::{self, Receiver, RecvTimeoutError, Sender};
use std::sync::Arc;
use std::time::Duration;

/// How long a note may wait for company.
const NOTES_WAIT: Duration = Duration::from_millis(50);

/// How much of everything.
#[derive(Clone, Copy)]
pub(super) struct Limits {
    /// Units that may wait.
    pub waiting: usize,
    /// Units of one transaction.
    pub batch: usize,
    /// Notes of one transaction.
    pub notes: usize,
}

/// What is done with what was taken from the queue.
pub(super) trait Commit<T> {
    /// What is written without anybody waiting for it.
    type Note;

    /// Takes notes that wait for this writer, at most `max`.
    fn take_notes(&mut self, max: usize) -> Vec<Self::Note>;

    /// Runs units and writes notes.
    fn commit(&mut self, units: Vec<T>, notes: Vec<Self::Note>);

    /// Says whether nothing can be written any more.
    fn is_broken(&self) -> bool;
}

/// Why a unit was not let in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Refused {
    /// Too many wait.
    Full,
    /// The writer has ended.
    Stopped,
}

/// What a writer is told.
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
    notes: Notes,
}

/// What a writer knows of the notes that wait for it.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Notes {
    None,
    /// Some wait, and are given a moment's company.
    Wait,
    /// So many wait that the last transaction could not carry them all.
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
        notes: Notes::None,
    };
    (lane, queue)
}

impl<T> Lane<T> {
    /// Lets a unit in.
    ///
    /// Cost: one allocation, one short lock of the channel.
    pub fn submit(&self, unit: T) -> Result<(), Refused> {
        if self.waiting.fetch_add(1, Ordering::SeqCst) >= self.limit {
            self.waiting.fetch_sub(1, Ordering::SeqCst);
            return Err(Refused::Full);
        }
        self.sender
            .send(Message::Unit(Box::new(unit)))
            .map_err(|_| Refused::Stopped)
    }

    /// Says that notes wait.
    pub fn nudge(&self) {
        let _ = self.sender.send(Message::Nudge);
    }

    /// Has the writer run what waits, write what is buffered, and end.
    pub fn stop(&self) {
        let _ = self.sender.send(Message::Stop);
    }

    /// Returns how many units wait.
    pub fn waiting(&self) -> usize {
        self.waiting.load(Ordering::Relaxed)
    }
}

impl<T> Queue<T> {
    /// Blocks until somebody calls; `None` says that nobody did while notes were given their moment.
    pub fn wait(&self) -> Option<Message<T>> {
        match self.patience() {
            Some(patience) => match self.receiver.recv_timeout(patience) {
                Err(RecvTimeoutError::Timeout) => None,
                message => Some(message.unwrap_or(Message::Stop)),
            },
            None => Some(self.receiver.recv().unwrap_or(Message::Stop)),
        }
    }

    /// Does what [`Self::wait`] does, on a runtime whose one thread cannot be blocked.
    pub async fn wait_inline(&self) -> Option<Message<T>> {
        match self.patience() {
            Some(patience) => match tokio::time::timeout(patience, self.receiver.recv_async()).await {
                Err(_) => None,
                Ok(message) => Some(message.unwrap_or(Message::Stop)),
            },
            None => Some(self.receiver.recv_async().await.unwrap_or(Message::Stop)),
        }
    }

    /// Returns for how long the writer waits for a call; without notes it waits until there is one.
    fn patience(&self) -> Option<Duration> {
        match self.notes {
            Notes::None => None,
            Notes::Wait => Some(NOTES_WAIT),
            Notes::Pour => Some(Duration::ZERO),
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
                Message::Nudge if self.notes == Notes::None => self.notes = Notes::Wait,
                Message::Nudge => {}
                Message::Stop => stopping = true,
            }
            next = if units.len() < self.limits.batch {
                self.receiver.try_recv().ok()
            } else {
                None
            };
        }
        self.waiting.fetch_sub(units.len(), Ordering::SeqCst);
        if units.is_empty() && !timed_out && !stopping {
            return true;
        }
        let notes = work.take_notes(self.limits.notes);
        self.notes = if notes.len() == self.limits.notes {
            Notes::Pour
        } else {
            Notes::None
        };
        work.commit(units, notes);
        if stopping {
            self.finish(work);
        }
        !stopping
    }

    /// Commits the rest at the end.
    fn finish(&mut self, work: &mut impl Commit<T>) {
        loop {
            let mut units = Vec::new();
            while let Ok(message) = self.receiver.try_recv() {
                if let Message::Unit(unit) = message {
                    units.push(*unit);
                }
            }
            let notes = work.take_notes(self.limits.notes);
            if units.is_empty() && notes.is_empty() || work.is_broken() {
                return;
            }
            work.commit(units, notes);
        }
    }
}
