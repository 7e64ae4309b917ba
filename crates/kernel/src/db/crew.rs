//! Threads that take jobs from one bounded queue, until they are stopped. It knows no store; what is done with a job, the
//! threads say.
//!
//! A job that was let in is run. A stop has the threads run what waits, and ends when they have ended.

use super::sync::atomic::{AtomicBool, Ordering};
use super::sync::channel::{self, Receiver, Sender};
use super::sync::thread::{self, JoinHandle};
use super::sync::{Mutex, MutexGuard, PoisonError};

enum Work<J> {
    Job(J),
    Stop,
}

/// Why a job was not let in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Refused {
    /// Too many wait, or no thread is left.
    Full,
    /// The threads were stopped.
    Stopped,
}

/// The threads, for those who have jobs.
pub(super) struct Crew<J> {
    queue: Sender<Work<J>>,
    threads: Mutex<Vec<JoinHandle<()>>>,
    stopped: AtomicBool,
}

/// The jobs, for one of the threads.
pub(super) struct Jobs<J>(Receiver<Work<J>>);

impl<J: Send + 'static> Crew<J> {
    /// Returns a crew of no threads, before which at most `bound` jobs may wait, and the jobs for its threads.
    pub fn new(bound: usize) -> (Self, Jobs<J>) {
        let (queue, receiver) = channel::bounded(bound);
        let crew = Self {
            queue,
            threads: Mutex::default(),
            stopped: AtomicBool::new(false),
        };
        (crew, Jobs(receiver))
    }

    /// Starts a thread.
    pub fn hire(&self, name: String, work: impl FnOnce() + Send + 'static) -> std::io::Result<()> {
        let thread = thread::Builder::new().name(name).spawn(work)?;
        self.threads().push(thread);
        Ok(())
    }

    /// Lets a job in for the next idle thread.
    pub fn submit(&self, job: J) -> Result<(), Refused> {
        if self.is_stopped() {
            return Err(Refused::Stopped);
        }
        self.queue.try_send(Work::Job(job)).map_err(|_| Refused::Full)
    }

    /// Says whether no more jobs are let in.
    pub fn is_stopped(&self) -> bool {
        self.stopped.load(Ordering::Acquire)
    }

    /// Lets the threads run what waits, ends them and waits for them.
    pub fn stop(&self) {
        self.stopped.store(true, Ordering::Release);
        let threads = std::mem::take(&mut *self.threads());
        for _ in &threads {
            // Without receivers there is nobody to stop.
            let _ = self.queue.send(Work::Stop);
        }
        for thread in threads {
            // A thread that drops the last owner cannot wait for itself. A panic was caught and told before.
            if thread.thread().id() != thread::current().id() {
                let _ = thread.join();
            }
        }
    }

    fn threads(&self) -> MutexGuard<'_, Vec<JoinHandle<()>>> {
        self.threads.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<J> Jobs<J> {
    /// Blocks until there is a job; `None` says that there will be no more.
    pub fn next(&self) -> Option<J> {
        match self.0.recv() {
            Ok(Work::Job(job)) => Some(job),
            Ok(Work::Stop) | Err(_) => None,
        }
    }
}

impl<J> Clone for Jobs<J> {
    fn clone(&self) -> Self {
        Self(self.0.clone())
    }
}
