//! A writer over a store that keeps nothing but what it was given, and in which order.

use super::audit_buffer::AuditBuffer;
use super::queue::{self, Commit, Lane, Limits, Queue};
use super::sync::thread::{self, JoinHandle};
use crate::audit::AuditRecord;
use crate::auth::OrganizationId;
use crate::time::Timestamp;
use shuttle::sync::{Condvar, Mutex};
use std::sync::Arc;

/// Names a unit or a note: its sender, and its number among those of that sender.
pub(super) type SenderMark = (&'static str, i64);

/// What happened to each unit and note. A dropped unit was never run, and its sender was told.
#[derive(Default)]
pub(super) struct Endings {
    pub ran: Vec<SenderMark>,
    pub dropped: Vec<SenderMark>,
    pub written: Vec<SenderMark>,
    pub batches: Vec<(usize, usize)>,
    /// Transactions with notes that the store still refuses.
    pub refusals: usize,
    /// Transactions that it refused.
    pub refused: usize,
}

/// The store.
#[derive(Default)]
pub(super) struct Store {
    fates: Mutex<Endings>,
    changed: Condvar,
}

impl Store {
    pub fn refusing(refusals: usize) -> Arc<Self> {
        let store = Self::default();
        store.fates.lock().unwrap().refusals = refusals;
        Arc::new(store)
    }

    /// Looks at what became of everything.
    pub fn fates<T>(&self, look: impl FnOnce(&Endings) -> T) -> T {
        look(&self.fates.lock().unwrap())
    }

    /// Blocks until it is so.
    pub fn wait_until(&self, is_so: impl Fn(&Endings) -> bool) {
        let mut fates = self.fates.lock().unwrap();
        while !is_so(&fates) {
            fates = self.changed.wait(fates).unwrap();
        }
    }

    fn change(&self, change: impl FnOnce(&mut Endings)) {
        change(&mut self.fates.lock().unwrap());
        self.changed.notify_all();
    }
}

/// A unit: the store hears of it when it is dropped without having run, as the waiting client of a real one does.
pub(super) struct Unit {
    mark: SenderMark,
    store: Arc<Store>,
    has_run: bool,
}

impl Drop for Unit {
    fn drop(&mut self) {
        // A scene that has failed is not told more.
        if !self.has_run && !std::thread::panicking() {
            self.store.change(|fates| fates.dropped.push(self.mark));
        }
    }
}

/// The writer's side of a scene.
pub(super) struct Writer {
    pub store: Arc<Store>,
    pub notes: Arc<AuditBuffer>,
    /// The chain that it owns; all of them when absent.
    pub chain: Option<&'static str>,
}

impl Commit<Unit> for Writer {
    type Note = AuditRecord;

    fn take_notes(&mut self, max: usize) -> Vec<AuditRecord> {
        let owned = |chain: &OrganizationId| self.chain.is_none_or(|own| chain.as_str() == own);
        self.notes.take(max, owned)
    }

    fn commit(&mut self, units: Vec<Unit>, notes: Vec<AuditRecord>) -> bool {
        let is_refused = !notes.is_empty() && self.store.fates(|fates| fates.refusals > 0);
        if is_refused {
            self.notes.put_back(notes.clone());
        }
        let written = if is_refused { Vec::new() } else { notes };
        self.store.change(|fates| {
            if is_refused {
                fates.refusals -= 1;
                fates.refused += 1;
            }
            fates.batches.push((units.len(), written.len()));
            fates.written.extend(written.iter().map(mark_of));
            for mut unit in units {
                unit.has_run = true;
                fates.ran.push(unit.mark);
            }
        });
        !is_refused
    }
}

impl Writer {
    pub fn work(mut self, mut queue: Queue<Unit>) {
        loop {
            let first = queue.wait();
            if !queue.turn(first, &mut self) {
                return;
            }
        }
    }
}

/// One writer's thread, its lane, and what its callers share.
pub(super) struct Scene {
    pub lane: Arc<Lane<Unit>>,
    pub store: Arc<Store>,
    pub notes: Arc<AuditBuffer>,
    pub thread: JoinHandle<()>,
}

impl Scene {
    /// Starts a writer over a store that never fails.
    pub fn begin(limits: Limits) -> Self {
        Self::over(Store::refusing(0), limits)
    }

    /// Starts a writer over a store.
    pub fn over(store: Arc<Store>, limits: Limits) -> Self {
        let notes = Arc::new(AuditBuffer::new(8));
        let writer = Writer {
            store,
            notes,
            chain: None,
        };
        Self::of(writer, limits, Writer::work)
    }

    /// Starts a writer that works in its own way.
    pub fn of(writer: Writer, limits: Limits, work: fn(Writer, Queue<Unit>)) -> Self {
        let (lane, queue) = queue::queue(limits);
        let (store, notes) = (writer.store.clone(), writer.notes.clone());
        let thread = thread::spawn(move || work(writer, queue));
        Self {
            lane: Arc::new(lane),
            store,
            notes,
            thread,
        }
    }

    /// Returns what a thread needs that has units or notes for the writer.
    pub fn caller(&self, name: &'static str) -> Caller {
        Caller {
            name,
            lane: self.lane.clone(),
            store: self.store.clone(),
            notes: self.notes.clone(),
        }
    }

    /// Stops the writer and waits for its end.
    pub fn stop(self) -> (Arc<Lane<Unit>>, Arc<Store>, Arc<AuditBuffer>) {
        self.lane.stop();
        self.thread.join().unwrap();
        (self.lane, self.store, self.notes)
    }
}

/// Who has units or notes for a writer.
#[derive(Clone)]
pub(super) struct Caller {
    name: &'static str,
    lane: Arc<Lane<Unit>>,
    store: Arc<Store>,
    notes: Arc<AuditBuffer>,
}

impl Caller {
    /// Submits a unit; says whether it was let in.
    pub fn submit(&self, number: i64) -> Result<(), queue::UnitRejection> {
        self.lane.submit(Unit {
            mark: (self.name, number),
            store: self.store.clone(),
            has_run: false,
        })
    }

    /// Submits units 1 to `last`; returns those that were let in.
    pub fn submit_to(&self, last: i64) -> Vec<SenderMark> {
        (1..=last)
            .filter(|number| self.submit(*number).is_ok())
            .map(|number| (self.name, number))
            .collect()
    }

    /// Makes a note in the chain of its own name, as a reader does.
    pub fn note(&self, number: i64) {
        let chain = OrganizationId::parse(self.name).unwrap();
        let note = AuditRecord::new(chain, Timestamp::from_ms(number), "x");
        if self.notes.add(note).unwrap() {
            self.lane.notify();
        }
    }
}

pub(super) fn mark_of(note: &AuditRecord) -> SenderMark {
    let name = match note.organization.as_str() {
        "a" => "a",
        "b" => "b",
        _ => "c",
    };
    (name, note.time.as_ms())
}

/// Fails unless what each sender sent stands there in its order.
pub(super) fn assert_in_order(marks: &[SenderMark]) {
    for name in ["a", "b", "c"] {
        let numbers = marks.iter().filter(|mark| mark.0 == name).map(|mark| mark.1);
        assert!(numbers.is_sorted_by(|one, next| one < next), "{marks:?}");
    }
}

/// Returns marks in one order, for comparison.
pub(super) fn sorted(mut marks: Vec<SenderMark>) -> Vec<SenderMark> {
    marks.sort_unstable();
    marks
}
