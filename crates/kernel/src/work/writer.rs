//! Writers: which units run together, what happens when a transaction fails. Each has a thread of its own, or is a
//! task where the whole application runs on one thread.

use super::attempt::{self, Done};
use super::{Reply, Unit};
use crate::audit::Note;
use crate::auth::OrganizationId;
use crate::db::{Access, Conn, Location};
use crate::error::{Class, Error, Result};
use crate::kernel::Kernel;
use crate::operation::Answer;
use crate::threads::{Threads, Turn};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::thread::JoinHandle;
use std::time::Duration;

/// LIMIT: units that may wait for one writer.
const MAX_WAITING: usize = 4096;
/// How many notes one transaction carries.
const MAX_NOTES: usize = 2048;
/// How long a note may wait for company.
const NOTES_WAIT: Duration = Duration::from_millis(50);
/// How often a unit is run before it is given up (architecture §5, failures (c)).
const MAX_ATTEMPTS: usize = 5;

enum Message {
    Unit(Box<Unit>),
    Nudge,
    Stop,
}

struct Lane {
    sender: flume::Sender<Message>,
    waiting: Arc<AtomicUsize>,
}

/// The writers: one for SQLite, several for PostgreSQL; an organization is always on the same one.
pub(crate) struct Writers {
    lanes: Vec<Lane>,
    threads: Mutex<Vec<JoinHandle<()>>>,
    task: Mutex<Option<tokio::task::JoinHandle<()>>>,
}

impl Writers {
    /// Opens the writers' connections and starts their threads.
    pub fn start(kernel: &Arc<Kernel>, location: &Location) -> Result<Self> {
        let count = match location {
            Location::Sqlite(_) => 1,
            Location::Postgres(_) => kernel.settings.writers.max(1),
        };
        let mut writers = Self {
            lanes: Vec::new(),
            threads: Mutex::default(),
            task: Mutex::default(),
        };
        if let Threads::Inline(_) = kernel.settings.threads {
            writers.start_inline(kernel, location)?;
            return Ok(writers);
        }
        for place in 0..count {
            let (sender, receiver) = flume::unbounded();
            let waiting = Arc::new(AtomicUsize::new(0));
            let (ready, opened) = flume::bounded(1);
            let (kernel, location, counter) = (Arc::downgrade(kernel), location.clone(), waiting.clone());
            let body = move || match Conn::open(&location, Access::Write) {
                Ok(conn) => {
                    let _ = ready.send(Ok(()));
                    Writer {
                        kernel,
                        conn,
                        receiver,
                        waiting: counter,
                        place,
                        count,
                        notes: Notes::None,
                    }
                    .work();
                }
                Err(error) => {
                    let _ = ready.send(Err(error));
                }
            };
            let thread = std::thread::Builder::new()
                .name(format!("writer-{place}"))
                .spawn(body);
            let thread = thread.map_err(|e| Error::unavailable("no thread for the writer").caused_by(e))?;
            opened
                .recv()
                .map_err(|_| Error::unavailable("the writer did not start"))??;
            writers.lanes.push(Lane { sender, waiting });
            writers
                .threads
                .lock()
                .unwrap_or_else(PoisonError::into_inner)
                .push(thread);
        }
        Ok(writers)
    }

    /// Starts the one writer as a task of the runtime that this is called in.
    #[expect(
        clippy::disallowed_methods,
        reason = "the kernel ends its writer itself, as it does with the threads"
    )]
    fn start_inline(&mut self, kernel: &Arc<Kernel>, location: &Location) -> Result<()> {
        let (sender, receiver) = flume::unbounded();
        let waiting = Arc::new(AtomicUsize::new(0));
        let writer = Writer {
            kernel: Arc::downgrade(kernel),
            conn: Conn::open(location, Access::Write)?,
            receiver,
            waiting: waiting.clone(),
            place: 0,
            count: 1,
            notes: Notes::None,
        };
        self.lanes.push(Lane { sender, waiting });
        let task = tokio::spawn(writer.work_inline(kernel.settings.threads.clone()));
        *self.task.lock().unwrap_or_else(PoisonError::into_inner) = Some(task);
        Ok(())
    }

    /// Gives a unit to its organization's writer.
    ///
    /// Errors: `Unavailable` when too many wait.
    pub fn submit(&self, unit: Unit) -> Result<()> {
        let lane = &self.lanes[lane_of(&unit.organization, self.lanes.len())];
        if lane.waiting.fetch_add(1, Ordering::SeqCst) >= MAX_WAITING {
            lane.waiting.fetch_sub(1, Ordering::SeqCst);
            return Err(Error::unavailable("too many changes are waiting; try again"));
        }
        lane.sender
            .send(Message::Unit(Box::new(unit)))
            .map_err(|_| Error::unavailable("the server is shutting down"))
    }

    /// Says that notes wait for a chain.
    pub fn nudge(&self, organization: &OrganizationId) {
        let _ = self.lanes[lane_of(organization, self.lanes.len())]
            .sender
            .send(Message::Nudge);
    }

    /// Returns how many units wait for their writer.
    pub fn waiting(&self) -> usize {
        self.lanes
            .iter()
            .map(|lane| lane.waiting.load(Ordering::Relaxed))
            .sum()
    }

    /// Runs what waits, writes what is buffered, and ends the threads.
    pub async fn stop(&self) {
        for lane in &self.lanes {
            let _ = lane.sender.send(Message::Stop);
        }
        let threads = std::mem::take(&mut *self.threads.lock().unwrap_or_else(PoisonError::into_inner));
        let task = self.task.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(task) = task {
            let _ = task.await;
            return;
        }
        let _ = tokio::task::spawn_blocking(move || threads.into_iter().for_each(|t| drop(t.join()))).await;
    }
}

fn lane_of(organization: &OrganizationId, lanes: usize) -> usize {
    crc32fast::hash(organization.as_str().as_bytes()) as usize % lanes
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

struct Writer {
    kernel: Weak<Kernel>,
    conn: Conn,
    receiver: flume::Receiver<Message>,
    waiting: Arc<AtomicUsize>,
    place: usize,
    count: usize,
    notes: Notes,
}

impl Writer {
    fn work(mut self) {
        loop {
            // Without notes the thread sleeps until somebody calls.
            let first = match self.patience() {
                Some(patience) => match self.receiver.recv_timeout(patience) {
                    Err(flume::RecvTimeoutError::Timeout) => None,
                    message => Some(message.unwrap_or(Message::Stop)),
                },
                None => Some(self.receiver.recv().unwrap_or(Message::Stop)),
            };
            if !self.turn(first) {
                return;
            }
        }
    }

    async fn work_inline(mut self, threads: Threads) {
        loop {
            let first = match self.patience() {
                Some(patience) => match tokio::time::timeout(patience, self.receiver.recv_async()).await {
                    Err(_) => None,
                    Ok(message) => Some(message.unwrap_or(Message::Stop)),
                },
                None => Some(self.receiver.recv_async().await.unwrap_or(Message::Stop)),
            };
            threads.pause(Turn::Write).await;
            if !self.turn(first) {
                return;
            }
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

    /// Takes what waits behind the first message and runs it; `None` says that nobody called in time. Says whether the
    /// writer goes on.
    fn turn(&mut self, first: Option<Message>) -> bool {
        let Some(kernel) = self.kernel.upgrade() else {
            return false;
        };
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
            next = if units.len() < kernel.settings.max_batch {
                self.receiver.try_recv().ok()
            } else {
                None
            };
        }
        self.waiting.fetch_sub(units.len(), Ordering::SeqCst);
        if units.is_empty() && !timed_out && !stopping {
            return true;
        }
        let (place, count) = (self.place, self.count);
        let notes = kernel
            .ledger
            .take_notes(MAX_NOTES, |org| lane_of(org, count) == place);
        self.notes = if notes.len() == MAX_NOTES {
            Notes::Pour
        } else {
            Notes::None
        };
        self.process(&kernel, units, notes);
        drop(kernel);
        if stopping {
            self.finish();
        }
        !stopping
    }

    /// Writes the rest at the end.
    fn finish(&mut self) {
        let Some(kernel) = self.kernel.upgrade() else {
            return;
        };
        loop {
            let mut units = Vec::new();
            while let Ok(message) = self.receiver.try_recv() {
                if let Message::Unit(unit) = message {
                    units.push(*unit);
                }
            }
            let (place, count) = (self.place, self.count);
            let notes = kernel
                .ledger
                .take_notes(MAX_NOTES, |org| lane_of(org, count) == place);
            if units.is_empty() && notes.is_empty() || kernel.is_broken() {
                return;
            }
            self.process(&kernel, units, notes);
        }
    }

    /// Runs units and writes notes; every unit is answered.
    fn process(&mut self, kernel: &Kernel, units: Vec<Unit>, notes: Vec<Note>) {
        if kernel.is_broken() {
            refuse_all(units);
            return;
        }
        // A client that has gone must not be served: it may be retrying elsewhere by now.
        let (units, expired): (Vec<_>, Vec<_>) = units
            .into_iter()
            .filter(|unit| !unit.reply.as_ref().is_some_and(Reply::is_closed))
            .partition(|unit| kernel.clock.monotonic() < unit.expires);
        for unit in expired {
            answer(
                unit.reply,
                Err(Error::unavailable("the server is busy; try again")),
            );
        }
        if units.is_empty() && notes.is_empty() {
            return;
        }
        match attempt::run(kernel, &mut self.conn, &units, &notes) {
            Ok(done) => {
                wake(kernel, &done);
                answer_all(units, done);
            }
            Err(error) => self.recover(kernel, units, notes, &error),
        }
    }

    fn recover(&mut self, kernel: &Kernel, units: Vec<Unit>, notes: Vec<Note>, error: &Error) {
        self.conn.rollback();
        match error.work_class() {
            Class::Broken => {
                tracing::error!(cause = ?error.private(), "the store failed");
                kernel.set_broken();
                kernel.ledger.put_back(notes);
                refuse_all(units);
            }
            Class::Unavailable => {
                // Nothing was run; running each unit again would pay the busy time-out once per unit.
                tracing::warn!(cause = ?error.private(), "the store is not available");
                kernel.ledger.put_back(notes);
                for unit in units {
                    answer(
                        unit.reply,
                        Err(Error::unavailable("the store is busy; try again")),
                    );
                }
            }
            Class::Retry | Class::Lost | Class::Refused => {
                tracing::warn!(cause = ?error.private(), units = units.len(), "a transaction failed; its units run one by one");
                if error.work_class() == Class::Lost {
                    self.reconnect();
                }
                for unit in units {
                    self.run_alone(kernel, unit);
                }
                self.write_notes(kernel, notes);
            }
        }
    }

    fn run_alone(&mut self, kernel: &Kernel, unit: Unit) {
        // INVARIANT WK-2: also not when the unit before this one found the store broken.
        if kernel.is_broken() {
            return answer(unit.reply, Err(broken()));
        }
        let units = [unit];
        let mut last = Error::unavailable("the store is busy; try again");
        for _ in 0..MAX_ATTEMPTS {
            if kernel.clock.monotonic() >= units[0].expires {
                break;
            }
            match attempt::run(kernel, &mut self.conn, &units, &[]) {
                Ok(done) => {
                    wake(kernel, &done);
                    return answer_all(units.into(), done);
                }
                Err(error) => {
                    self.conn.rollback();
                    match error.work_class() {
                        Class::Broken => kernel.set_broken(),
                        Class::Lost | Class::Unavailable => self.reconnect(),
                        Class::Retry | Class::Refused => {}
                    }
                    last = error;
                }
            }
            if kernel.is_broken() {
                last = broken();
                break;
            }
        }
        let public = match last.work_class() {
            Class::Refused => last,
            _ => Error::unavailable("the store is busy; try again").caused_by(last),
        };
        let [unit] = units;
        answer(unit.reply, Err(public));
    }

    fn write_notes(&mut self, kernel: &Kernel, notes: Vec<Note>) {
        if notes.is_empty() {
            return;
        }
        if kernel.is_broken() {
            return kernel.ledger.put_back(notes);
        }
        if let Err(error) = attempt::run(kernel, &mut self.conn, &[], &notes) {
            self.conn.rollback();
            kernel.note_failure(&error);
            tracing::error!(cause = ?error.private(), notes = notes.len(), "audit entries wait: they could not be written");
            kernel.ledger.put_back(notes);
        }
    }

    fn reconnect(&mut self) {
        if let Err(error) = self.conn.reconnect() {
            tracing::warn!(cause = ?error.private(), "the store cannot be reached");
        }
    }
}

fn broken() -> Error {
    Error::unavailable("the store failed and takes no changes until the server is restarted")
}

fn refuse_all(units: Vec<Unit>) {
    for unit in units {
        answer(unit.reply, Err(broken()));
    }
}

fn wake(kernel: &Kernel, done: &[Done]) {
    if done.iter().any(|done| done.has_due_job) {
        kernel.jobs_due.notify_one();
    }
    for worker in done.iter().flat_map(|done| &done.wakes) {
        kernel.wake(worker);
    }
}

fn answer_all(units: Vec<Unit>, done: Vec<Done>) {
    for (unit, done) in units.into_iter().zip(done) {
        let Unit { run, reply, .. } = unit;
        // The unit leaves the count of those in flight before its client can send the next one.
        drop(run);
        answer(reply, done.result);
    }
}

fn answer(reply: Option<Reply>, result: Result<Answer>) {
    match reply {
        // The receiver may be gone: the client left while its unit ran. The stored answer waits for its retry.
        Some(reply) => drop(reply.send(result)),
        None => {
            if let Err(error) = result {
                tracing::warn!(cause = ?error.private(), "work that nobody waited for failed: {error}");
            }
        }
    }
}
