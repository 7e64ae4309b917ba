//! Writers: which units run together, what happens when a transaction fails. Each has a thread of its own, or is a
//! task where the whole application runs on one thread.
//!
//! Keeps WK-1, WK-3.

use super::attempt::{self, Done};
use super::queue::{self, Commit, Lane, Limits, Message, Queue, UnitRejection};
use super::{Reply, Unit};
use crate::audit::AuditRecord;
use crate::auth::OrganizationId;
use crate::db::{Access, Conn, Location, Watch};
use crate::error::{Class, Error, Result};
use crate::kernel::Kernel;
use crate::operation::Answer;
use crate::threads::{SchedulePoint, Threads};
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::thread::JoinHandle;

/// LIMIT: units that may wait for one writer.
const MAX_WAITING: usize = 4096;
/// How many notes one transaction carries.
const MAX_NOTES: usize = 2048;
/// How often a unit is run before it is given up.
const MAX_ATTEMPTS: usize = 5;

/// The writers: one for SQLite, several for PostgreSQL; an organization is always on the same one.
pub(crate) struct Writers {
    lanes: Vec<Lane<Unit>>,
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
        let watch: Arc<dyn Watch> = kernel.watch.clone();
        for place in 0..count {
            let (lane, queue) = queue::queue(limits(kernel));
            let (ready, opened) = flume::bounded(1);
            let (rights, location) = (kernel.rights, location.clone());
            let kernel = Arc::downgrade(kernel);
            let watch = Arc::clone(&watch);
            let body = move || match Conn::open(&location, Access::Write) {
                Ok(mut conn) => {
                    let tracked = conn.track(rights);
                    let conn = conn.watched(watch);
                    let is_tracked = tracked.is_ok();
                    let _ = ready.send(tracked);
                    if !is_tracked {
                        return;
                    }
                    Writer {
                        kernel,
                        conn,
                        place,
                        count,
                    }
                    .work(queue);
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
            writers.lanes.push(lane);
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
        let (lane, queue) = queue::queue(limits(kernel));
        let mut conn = Conn::open(location, Access::Write)?;
        conn.track(kernel.rights)?;
        let writer = Writer {
            kernel: Arc::downgrade(kernel),
            conn: conn.watched(kernel.watch.clone()),
            place: 0,
            count: 1,
        };
        self.lanes.push(lane);
        let task = tokio::spawn(writer.work_inline(queue, kernel.settings.threads.clone()));
        *self.task.lock().unwrap_or_else(PoisonError::into_inner) = Some(task);
        Ok(())
    }

    /// Gives a unit to its organization's writer.
    ///
    /// Errors: `Unavailable` when too many wait.
    pub fn submit(&self, unit: Unit) -> Result<()> {
        let lane = &self.lanes[lane_of(&unit.organization, self.lanes.len())];
        lane.submit(unit).map_err(|refused| match refused {
            UnitRejection::Full => Error::unavailable("too many changes are waiting; try again"),
            UnitRejection::Stopped => Error::unavailable("the server is shutting down"),
        })
    }

    /// Says that notes wait for a chain.
    pub fn notify(&self, organization: &OrganizationId) {
        self.lanes[lane_of(organization, self.lanes.len())].notify();
    }

    /// Returns how many units wait for their writer.
    pub fn waiting(&self) -> usize {
        self.lanes.iter().map(Lane::waiting).sum()
    }

    /// Runs what waits, writes what is buffered, and ends the threads.
    pub async fn stop(&self) {
        self.lanes.iter().for_each(Lane::stop);
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

fn limits(kernel: &Kernel) -> Limits {
    Limits {
        waiting: MAX_WAITING,
        batch: kernel.settings.max_batch,
        notes: MAX_NOTES,
    }
}

struct Writer {
    kernel: Weak<Kernel>,
    conn: Conn,
    place: usize,
    count: usize,
}

/// A writer at work, while there is a kernel.
struct AtWork<'a> {
    writer: &'a mut Writer,
    kernel: &'a Kernel,
}

impl Commit<Unit> for AtWork<'_> {
    type Note = AuditRecord;

    fn take_notes(&mut self, max: usize) -> Vec<AuditRecord> {
        let (place, count) = (self.writer.place, self.writer.count);
        let owned = |organization: &OrganizationId| lane_of(organization, count) == place;
        self.kernel.write_behind.notes.take(max, owned)
    }

    fn commit(&mut self, units: Vec<Unit>, notes: Vec<AuditRecord>) -> bool {
        self.writer.process(self.kernel, units, notes)
    }
}

impl Writer {
    fn work(mut self, mut queue: Queue<Unit>) {
        loop {
            let first = queue.wait();
            if !self.turn(&mut queue, first) {
                return;
            }
        }
    }

    async fn work_inline(mut self, mut queue: Queue<Unit>, threads: Threads) {
        loop {
            let first = queue.wait_inline().await;
            threads.pause(SchedulePoint::Write).await;
            if !self.turn(&mut queue, first) {
                return;
            }
        }
    }

    fn turn(&mut self, queue: &mut Queue<Unit>, first: Option<Message<Unit>>) -> bool {
        let Some(kernel) = self.kernel.upgrade() else {
            return false;
        };
        let mut work = AtWork {
            writer: self,
            kernel: &kernel,
        };
        queue.turn(first, &mut work)
    }

    /// Runs units and writes notes or puts them back; every unit is answered. Says whether the notes were written.
    fn process(&mut self, kernel: &Kernel, units: Vec<Unit>, notes: Vec<AuditRecord>) -> bool {
        if kernel.is_broken() {
            refuse_all(kernel, units);
            return put_back(kernel, notes);
        }
        // INVARIANT CK-2: what is written now would be dated by a clock that is not the database's.
        if kernel.disagreement().is_some() {
            for unit in units {
                answer(unit.reply, Err(kernel.disagreement().unwrap_or_else(busy)));
            }
            return put_back(kernel, notes);
        }
        // A client that has gone must not be served: it may be retrying elsewhere by now.
        let (units, expired): (Vec<_>, Vec<_>) = units
            .into_iter()
            .filter(|unit| !unit.reply.as_ref().is_some_and(Reply::is_closed))
            .partition(|unit| kernel.clock.monotonic() < unit.expires);
        for unit in expired {
            answer(unit.reply, Err(busy()));
        }
        let units = self::dated(kernel, units);
        if units.is_empty() && notes.is_empty() {
            return true;
        }
        match attempt::run(kernel, &mut self.conn, &units, &notes) {
            Ok(done) => {
                notify_worker(kernel, &done);
                answer_all(units, done);
                true
            }
            Err(error) => self.recover(kernel, units, notes, &error),
        }
    }

    fn recover(&mut self, kernel: &Kernel, units: Vec<Unit>, notes: Vec<AuditRecord>, error: &Error) -> bool {
        self.conn.rollback();
        match error.work_class() {
            Class::Broken => {
                kernel.set_broken(error);
                refuse_all(kernel, units);
                put_back(kernel, notes)
            }
            Class::Unavailable => {
                // Nothing was run; running each unit again would pay the busy time-out once per unit.
                tracing::warn!(cause = ?error.private(), "the store is not available");
                for unit in units {
                    answer(
                        unit.reply,
                        Err(Error::unavailable("the store is busy; try again")),
                    );
                }
                put_back(kernel, notes)
            }
            Class::Retry | Class::Lost | Class::Refused => {
                tracing::warn!(cause = ?error.private(), units = units.len(), "a transaction failed; its units run one by one");
                if error.work_class() == Class::Lost {
                    self.reconnect();
                }
                for unit in units {
                    self.run_alone(kernel, unit);
                }
                self.write_notes(kernel, notes)
            }
        }
    }

    fn run_alone(&mut self, kernel: &Kernel, unit: Unit) {
        // INVARIANT WK-2: this unit is not run either when the unit before it found the store broken.
        if kernel.is_broken() {
            return answer(unit.reply, Err(kernel.brokenness()));
        }
        let units = [unit];
        let mut last = Error::unavailable("the store is busy; try again");
        for _ in 0..MAX_ATTEMPTS {
            if kernel.clock.monotonic() >= units[0].expires {
                break;
            }
            match attempt::run(kernel, &mut self.conn, &units, &[]) {
                Ok(done) => {
                    notify_worker(kernel, &done);
                    return answer_all(units.into(), done);
                }
                Err(error) => {
                    self.conn.rollback();
                    match error.work_class() {
                        Class::Broken => kernel.set_broken(&error),
                        Class::Lost | Class::Unavailable => self.reconnect(),
                        Class::Retry | Class::Refused => {}
                    }
                    last = error;
                }
            }
            if kernel.is_broken() {
                last = kernel.brokenness();
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

    fn write_notes(&mut self, kernel: &Kernel, notes: Vec<AuditRecord>) -> bool {
        if notes.is_empty() || kernel.is_broken() {
            return put_back(kernel, notes);
        }
        let Err(error) = attempt::run(kernel, &mut self.conn, &[], &notes) else {
            return true;
        };
        self.conn.rollback();
        kernel.note_failure(&error);
        tracing::error!(cause = ?error.private(), notes = notes.len(), "audit entries wait: they could not be written");
        put_back(kernel, notes)
    }

    fn reconnect(&mut self) {
        if let Err(error) = self.conn.reconnect() {
            tracing::warn!(cause = ?error.private(), "the store cannot be reached");
        }
    }
}

/// Returns the units whose instant can be the date of what they do; the others were made while the clock was wrong.
fn dated(kernel: &Kernel, units: Vec<Unit>) -> Vec<Unit> {
    let patience = kernel.settings.queue_deadline * 4;
    let patience_ms = i64::try_from(patience.as_millis()).unwrap_or(i64::MAX);
    let mut dated = Vec::with_capacity(units.len());
    for unit in units {
        match kernel.clockwatch.refusal_of(unit.now, patience_ms) {
            None => dated.push(unit),
            Some(error) => answer(unit.reply, Err(error)),
        }
    }
    dated
}

fn busy() -> Error {
    Error::unavailable("the server is busy; try again")
}

/// Puts notes back into their buffer, and returns whether there were none.
fn put_back(kernel: &Kernel, notes: Vec<AuditRecord>) -> bool {
    let was_none = notes.is_empty();
    kernel.write_behind.notes.put_back(notes);
    was_none
}

fn refuse_all(kernel: &Kernel, units: Vec<Unit>) {
    for unit in units {
        answer(unit.reply, Err(kernel.brokenness()));
    }
}

fn notify_worker(kernel: &Kernel, done: &[Done]) {
    if done.iter().any(|done| done.has_due_job) {
        kernel.jobs_due.notify_one();
    }
    for worker in done.iter().flat_map(|done| &done.wakes) {
        kernel.notify_worker(worker);
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
